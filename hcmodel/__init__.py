"""hcmodel: write a hidden-convex problem as it stands, get its global minimum.

The names in `__all__` are the public interface; see `docs/public-interface.md`.
"""

from __future__ import annotations

import importlib as _importlib
from typing import Any as _Any

from hcmodel import deprecation as _deprecation
from hcmodel.atoms import (
    abs,
    concatenate,
    cos,
    cumsum,
    det,
    diag,
    dlyap,
    dot,
    einsum,
    entr,
    exp,
    function,
    hstack,
    inv,
    inv_pos,
    kl_div,
    kron,
    log,
    log1p,
    logdet,
    logsumexp,
    lyap,
    max,
    maximum,
    mean,
    min,
    minimum,
    norm,
    outer,
    power,
    prod,
    quad_form,
    reshape,
    sigmoid,
    sin,
    softmax,
    softplus,
    solve,
    sqrt,
    square,
    sum,
    tanh,
    trace,
    transpose,
    vstack,
)
from hcmodel.errors import (
    DataError,
    HCError,
    HCWarning,
    ModelError,
    ModelSyntaxError,
    NotHiddenConvexError,
    SolverError,
)
from hcmodel.expressions.leaves import Constant, Constraint, Expression, Parameter, Variable
from hcmodel.expressions.model import Maximize, Minimize
from hcmodel.problem import Problem, load, parse
from hcmodel.report.versions import show_versions
from hcmodel.solvers.result import Record, Termination
from hcmodel.solvers.theory.theorems import Constants
from hcmodel.solving.judge import Status
from hcmodel.solving.solution import Certificate, Solution

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "Constant",
    "Constants",
    "Constraint",
    "DataError",
    "Expression",
    "HCError",
    "HCWarning",
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
    "concatenate",
    "cos",
    "cumsum",
    "det",
    "diag",
    "dlyap",
    "dot",
    "einsum",
    "entr",
    "exp",
    "function",
    "hstack",
    "inv",
    "inv_pos",
    "kl_div",
    "kron",
    "load",
    "log",
    "log1p",
    "logdet",
    "logsumexp",
    "lyap",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "norm",
    "outer",
    "parse",
    "power",
    "prod",
    "quad_form",
    "reshape",
    "show_versions",
    "sigmoid",
    "sin",
    "softmax",
    "softplus",
    "solve",
    "sqrt",
    "square",
    "sum",
    "tanh",
    "trace",
    "transpose",
    "vstack",
]

# Packages that are imported when they are first used.
_LAZY = ("testing",)

_deprecation.install()


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        return _importlib.import_module(f"hcmodel.{name}")
    raise AttributeError(f"module 'hcmodel' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
