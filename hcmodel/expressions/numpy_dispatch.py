"""numpy's own functions on expressions: `np.log(x)`, `np.sum(x)`, `ndarray @ x`.

Each goes to the atom of the same meaning; what has none raises an error that says so.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hcmodel.errors import ModelError
from hcmodel.expressions.foreign_habits import MODULE
from hcmodel.expressions.table import ATOMS

UFUNCS = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "power": "power",
    "float_power": "power",
    "matmul": "matmul",
    "negative": "neg",
    "absolute": "abs",
    "fabs": "abs",
    "exp": "exp",
    "log": "log",
    "log1p": "log1p",
    "sqrt": "sqrt",
    "square": "square",
    "sin": "sin",
    "cos": "cos",
    "tanh": "tanh",
    "maximum": "maximum",
    "minimum": "minimum",
}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "less_equal": operator.le,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "greater": operator.gt,
    "right_shift": operator.rshift,
    "left_shift": operator.lshift,
}
FUNCTIONS: dict[Any, str] = {
    np.sum: "sum",
    np.prod: "prod",
    np.mean: "mean",
    np.cumsum: "cumsum",
    np.max: "max",
    np.amax: "max",
    np.min: "min",
    np.amin: "min",
    np.dot: "dot",
    np.trace: "trace",
    np.diag: "diag",
    np.reshape: "reshape",
    np.transpose: "transpose",
    np.hstack: "hstack",
    np.vstack: "vstack",
    np.concatenate: "concatenate",
    np.kron: "kron",
    np.outer: "outer",
    np.einsum: "einsum",
    np.broadcast_to: "broadcast_to",
    np.linalg.norm: "norm",
    np.linalg.inv: "inv",
    np.linalg.solve: "solve",
    np.linalg.det: "det",
}
QUERIES = {np.shape: "shape", np.ndim: "ndim", np.size: "size"}
# numpy spells these keywords differently
KEYWORDS = {"norm": {"ord": "p"}, "reshape": {"newshape": "shape"}}
# numpy takes axis by position too, where the atoms ask for the keyword
AXIS_POSITION = {"sum": 1, "prod": 1, "mean": 1, "cumsum": 1, "max": 1, "min": 1, "concatenate": 1}


def ufunc(function: Any, method: str, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """The answer to `function(*inputs)`, all inputs being expressions."""
    name = function.__name__
    if method != "__call__" or keywords:
        raise ModelError(
            f"np.{name} with {'method ' + method if method != '__call__' else 'keywords'} has no "
            f"meaning for expressions; use the plain call, or hc.sum, hc.prod, hc.max"
        )
    if name in UFUNCS:
        return ATOMS[UFUNCS[name]].apply(tuple(inputs))
    if name in COMPARISONS:
        return COMPARISONS[name](*inputs)
    if name == "reciprocal":
        return ATOMS["div"].apply((1.0, inputs[0]))
    if name == "positive":
        return inputs[0]
    raise ModelError(_unknown(f"np.{name}"))


def function(wanted: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """The answer to a numpy function that is no ufunc."""
    if wanted in QUERIES:
        return getattr(args[0], QUERIES[wanted])
    if wanted is np.ravel:
        return ATOMS["reshape"](args[0], (-1,))
    if wanted not in FUNCTIONS:
        module = getattr(wanted, "__module__", "numpy").replace("numpy", "np")
        raise ModelError(_unknown(f"{module}.{wanted.__name__}"))
    name = FUNCTIONS[wanted]
    renamed = {KEYWORDS.get(name, {}).get(key, key): value for key, value in keywords.items()}
    position = AXIS_POSITION.get(name)
    if position is not None and len(args) == position + 1:
        renamed["axis"] = args[position]
        args = args[:position]
    return ATOMS[name](*args, **renamed)


def _unknown(name: str) -> str:
    """What to write instead of a function of numpy."""
    own = MODULE.get(name.rpartition(".")[2])
    if own is not None:
        return f"{name} is not known for expressions; write {own}"
    return (
        f"{name} is not known for expressions; wrap it with hc.function, or write it with atoms "
        "(docs/atoms.md lists them)"
    )
