"""Functions that are written with other atoms, under the names that CVXPY gives them.

Each is said once, by calls of atoms by name, and serves Python and the language: the first argument,
`call`, applies an atom to expressions, or to the values of the language. A result is an ordinary
expression: its proof, its derivatives and its cone form are those of the atoms.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hcmodel.errors import ModelError
from hcmodel.expressions.node import Expression, as_expression
from hcmodel.expressions.table import ATOMS
from hcmodel.records import dataclass

COMPOSITIONS: dict[str, Composition] = {}
Call = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Composition:
    """A function of expressions. `static` names the arguments that are known when it is called."""

    name: str
    build: Callable[..., Any]
    signature: inspect.Signature
    static: tuple[str, ...]
    documentation: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self.documentation)
        object.__setattr__(self, "__name__", self.name)
        object.__setattr__(self, "__signature__", self.signature)

    def __call__(self, *args: Any, **keywords: Any) -> Expression:
        try:
            bound = self.signature.bind(*args, **keywords)
        except TypeError as error:
            raise ModelError(
                f"'{self.name}{self.signature}' cannot be called like this: {error}. "
                f"{self.documentation.splitlines()[0]}"
            ) from None
        result: Expression = self.build(_applied, *bound.args, **bound.kwargs)
        return result

    def __reduce__(self) -> tuple[Any, ...]:
        return _by_name, (self.name,)

    def __repr__(self) -> str:
        return f"<function {self.name}{self.signature}>"


def _by_name(name: str) -> Composition:
    return COMPOSITIONS[name]


def _applied(name: str, *operands: Any, **params: Any) -> Expression:
    return ATOMS[name](*operands, **params)


def composition(*static: str) -> Callable[[Callable[..., Any]], Composition]:
    """Enter a function under its name; `static` are arguments that may be given by position too."""

    def define(build: Callable[..., Any]) -> Composition:
        parameters = list(inspect.signature(build).parameters.values())[1:]
        bare = [each.replace(annotation=inspect.Parameter.empty) for each in parameters]
        names = [p.name for p in bare if p.kind is p.KEYWORD_ONLY or p.name in static]
        name = build.__name__
        COMPOSITIONS[name] = Composition(
            name,
            build,
            inspect.Signature(bare),
            tuple(names),
            inspect.cleandoc(build.__doc__ or ""),
        )
        return COMPOSITIONS[name]

    return define


@composition()
def sum_squares(call: Call, a: Any, *, axis: Any = None) -> Any:
    """The sum of squares of all entries, or along `axis`."""
    return call("sum", call("square", a), axis=axis)


@composition("k")
def sum_smallest(call: Call, a: Any, k: Any, *, axis: Any = None) -> Any:
    """The sum of the k smallest entries, of all or along `axis`."""
    return call("neg", call("sum_largest", call("neg", a), k=k, axis=axis))


@composition()
def lambda_min(call: Call, A: Any) -> Any:
    """The smallest eigenvalue of a symmetric matrix."""
    return call("neg", call("lambda_max", call("neg", A)))


@composition()
def tr_inv(call: Call, A: Any) -> Any:
    """The trace of the inverse of a positive definite matrix."""
    return call("trace", call("inv", A))


@composition()
def one_minus_pos(call: Call, a: Any) -> Any:
    """1 - a for a < 1, entry by entry; NaN elsewhere."""
    return call("diff_pos", 1.0, a)


@composition()
def resolvent(call: Call, A: Any, s: Any) -> Any:
    """inv(s I - A) for entries >= 0 and a spectral radius below s > 0; NaN elsewhere."""
    return call("div", call("eye_minus_inv", call("div", A, s)), s)


@composition()
def multiply(call: Call, a: Any, b: Any) -> Any:
    """a * b, entry by entry."""
    return call("mul", a, b)


@composition()
def norm1(call: Call, a: Any, *, axis: Any = None) -> Any:
    """The sum of absolute values, of all entries or along `axis`."""
    return call("sum", call("abs", a), axis=axis)


@composition()
def norm_inf(call: Call, a: Any, *, axis: Any = None) -> Any:
    """The largest absolute value, of all entries or along `axis`."""
    return call("max", call("abs", a), axis=axis)


@composition("p")
def pnorm(call: Call, a: Any, p: Any = 2.0, *, axis: Any = None) -> Any:
    """The p-norm of a vector, or along `axis`."""
    return call("norm", a, p=p, axis=axis)


@composition()
def log_sum_exp(call: Call, a: Any, *, axis: Any = None) -> Any:
    """The same as logsumexp."""
    return call("logsumexp", a, axis=axis)


@composition()
def logistic(call: Call, a: Any) -> Any:
    """log(1 + exp(a)), the same as softplus."""
    return call("softplus", a)


@composition()
def log_det(call: Call, A: Any) -> Any:
    """The same as logdet."""
    return call("logdet", A)


def bmat(blocks: Sequence[Sequence[Any]]) -> Expression:
    """A matrix of blocks, given as a list of rows: bmat([[A, B], [C, D]]); a number is a 1×1 block."""
    rows = list(blocks) if isinstance(blocks, (list, tuple, np.ndarray)) else []
    if not rows or not all(isinstance(row, (list, tuple, np.ndarray)) for row in rows):
        raise ModelError("bmat takes a list of rows of blocks: hc.bmat([[A, B], [C, D]])")
    wide = [[as_expression(block) for block in row] for row in rows]
    if any(block.ndim == 2 for row in wide for block in row):
        wide = [
            [block if block.ndim else ATOMS["reshape"](block, (1, 1)) for block in row]
            for row in wide
        ]
    return ATOMS["vstack"](*[ATOMS["hstack"](*row) for row in wide])
