"""hcmodel: write a hidden-convex problem as it stands, get its global minimum.

The names in `__all__` are the public interface; see `docs/public-interface.md`.
"""

from __future__ import annotations

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from hcmodel import deprecation as _deprecation
from hcmodel.atoms import (
    abs,
    bmat,
    concatenate,
    cos,
    cumsum,
    det,
    diag,
    diff_pos,
    dlyap,
    dot,
    einsum,
    entr,
    exp,
    eye_minus_inv,
    function,
    geo_mean,
    hstack,
    huber,
    inv,
    inv_pos,
    kl_div,
    kron,
    lambda_max,
    lambda_min,
    log,
    log1p,
    log_det,
    log_sum_exp,
    logdet,
    logistic,
    logsumexp,
    lyap,
    matrix_frac,
    max,
    maximum,
    mean,
    min,
    minimum,
    multiply,
    norm,
    norm1,
    norm_inf,
    one_minus_pos,
    outer,
    pf_eigenvalue,
    pnorm,
    power,
    prod,
    quad_form,
    quad_over_lin,
    rel_entr,
    reshape,
    resolvent,
    sigmoid,
    sin,
    softmax,
    softplus,
    solve,
    sqrt,
    square,
    sum,
    sum_largest,
    sum_smallest,
    sum_squares,
    tanh,
    tr_inv,
    trace,
    transpose,
    vstack,
)
from hcmodel.atoms.code_map import Map
from hcmodel.errors import (
    DataError,
    HCError,
    HCWarning,
    ModelError,
    ModelSyntaxError,
    NotHiddenConvexError,
    SolverError,
)
from hcmodel.expressions import printing as _printing
from hcmodel.expressions.foreign_habits import MODULE as _MODULE
from hcmodel.expressions.leaves import Constant, Constraint, Expression, Parameter, Variable
from hcmodel.expressions.model import Maximize, Minimize

if _TYPE_CHECKING:
    from hcmodel.problem import Problem, load, parse, read
    from hcmodel.report.versions import show_versions
    from hcmodel.solvers.result import Record, Termination
    from hcmodel.solvers.theory.theorems import Constants
    from hcmodel.solving.judge import Status
    from hcmodel.solving.registration import register_method
    from hcmodel.solving.solution import Certificate, Solution

__version__ = "0.2.0"

__all__ = [
    "Certificate",
    "Constant",
    "Constants",
    "Constraint",
    "DataError",
    "Expression",
    "HCError",
    "HCWarning",
    "Map",
    "Maximize",
    "Minimize",
    "ModelError",
    "ModelSyntaxError",
    "NotHiddenConvexError",
    "Parameter",
    "Problem",
    "Record",
    "Solution",
    "SolverError",
    "Status",
    "Termination",
    "Variable",
    "__version__",
    "abs",
    "bmat",
    "concatenate",
    "cos",
    "cumsum",
    "det",
    "diag",
    "diff_pos",
    "dlyap",
    "dot",
    "einsum",
    "entr",
    "exp",
    "eye_minus_inv",
    "function",
    "geo_mean",
    "hstack",
    "huber",
    "inv",
    "inv_pos",
    "kl_div",
    "kron",
    "lambda_max",
    "lambda_min",
    "load",
    "log",
    "log1p",
    "log_det",
    "log_sum_exp",
    "logdet",
    "logistic",
    "logsumexp",
    "lyap",
    "matrix_frac",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "multiply",
    "norm",
    "norm1",
    "norm_inf",
    "one_minus_pos",
    "outer",
    "parse",
    "pf_eigenvalue",
    "plot",
    "pnorm",
    "power",
    "prod",
    "quad_form",
    "quad_over_lin",
    "read",
    "register_method",
    "rel_entr",
    "reshape",
    "resolvent",
    "show_versions",
    "sigmoid",
    "sin",
    "softmax",
    "softplus",
    "solve",
    "sqrt",
    "square",
    "sum",
    "sum_largest",
    "sum_smallest",
    "sum_squares",
    "tanh",
    "tr_inv",
    "trace",
    "transpose",
    "vstack",
]

# Packages and modules that are imported when they are first used.
_LAZY = (
    *(
        "analysis",
        "certify",
        "cli",
        "engines",
        "facts",
        "formats",
        "frontend",
        "grammar",
        "maps",
        "problem",
    ),
    *("proof", "reductions", "report", "solvers", "solving", "studies", "testing"),
)
# Where names are defined that a model can be written without: they are imported when first used.
_MODULES = {
    "Certificate": "solving.solution",
    "Constants": "solvers.theory.theorems",
    "Problem": "problem",
    "Record": "solvers.result",
    "Solution": "solving.solution",
    "Status": "solving.judge",
    "Termination": "solvers.result",
    "load": "problem",
    "parse": "problem",
    "register_method": "solving.registration",
    "read": "problem",
    "show_versions": "report.versions",
}

_deprecation.install()


def _typeset(kind: str) -> _Any:
    """How notebooks show an expression; what it needs is imported when it is first used."""
    return lambda shown: getattr(_importlib.import_module("hcmodel.report.notebook"), kind)(shown)


_printing.RICH.update({kind: _typeset(kind) for kind in ("latex", "html")})


def __getattr__(name: str) -> _Any:
    if name == "plot":  # a public module that stands with what it draws with
        return _importlib.import_module("hcmodel.report.plot")
    if name in _LAZY:
        return _importlib.import_module(f"hcmodel.{name}")
    if name in _MODULES:
        found = getattr(_importlib.import_module(f"hcmodel.{_MODULES[name]}"), name)
        globals()[name] = found
        return found
    hint = f"; write {_MODULE[name]}" if name in _MODULE else ""
    raise AttributeError(f"module 'hcmodel' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted(__all__)
