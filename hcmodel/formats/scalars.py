"""Expressions entry by entry: an array of hcmodel as an array of scalar formulas.

Formats such as MathOptFormat know scalars only. A `Scalar` is an affine form, as long as it is one, or an
operator with arguments. Atoms whose numeric meaning is arithmetic run on arrays of scalars as they are;
those with a formula of their own have it in `FORMULAS`. Others are refused by name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hcmodel.errors import ModelError
from hcmodel.expressions.graph import merge
from hcmodel.expressions.leaves import Constant, Expression, Parameter, Variable
from hcmodel.expressions.sparse_data import dense


class Scalar:
    """Σ coefficient·variable + constant, or `operator(*arguments)`."""

    __slots__ = ("arguments", "constant", "operator", "terms")

    def __init__(
        self,
        terms: Mapping[str, float] | None = None,
        constant: float = 0.0,
        operator: str = "",
        arguments: Sequence[Scalar] = (),
    ) -> None:
        self.terms = dict(terms or {})
        self.constant = constant
        self.operator = operator
        self.arguments = tuple(arguments)

    @property
    def is_affine(self) -> bool:
        return not self.operator

    @property
    def is_constant(self) -> bool:
        return not self.operator and not self.terms

    def __add__(self, value: Any) -> Scalar:
        other = scalar(value)
        if self.is_affine and other.is_affine:
            terms = dict(self.terms)
            for name, number in other.terms.items():
                terms[name] = terms.get(name, 0.0) + number
            return Scalar(terms, self.constant + other.constant)
        if self.is_constant and not self.constant:
            return other
        if other.is_constant and not other.constant:
            return self
        parts = [*_addends(self), *_addends(other)]
        return Scalar(operator="+", arguments=parts)

    __radd__ = __add__

    def __neg__(self) -> Scalar:
        return self * -1.0

    def __sub__(self, value: Any) -> Scalar:
        other = scalar(value)
        if other.is_affine or self.is_constant:
            return self + (-other)
        return Scalar(operator="-", arguments=(self, other))

    def __rsub__(self, other: Any) -> Scalar:
        return scalar(other) - self

    def __mul__(self, value: Any) -> Scalar:
        other = scalar(value)
        for one, two in ((self, other), (other, self)):
            if one.is_constant and two.is_affine:
                scaled = {name: one.constant * number for name, number in two.terms.items()}
                kept = {name: number for name, number in scaled.items() if number}
                return Scalar(kept, one.constant * two.constant)
            if one.is_constant and one.constant == 1.0:
                return two
            if one.is_constant and one.constant == 0.0:
                return Scalar()
        return Scalar(operator="*", arguments=(self, other))

    __rmul__ = __mul__

    def __truediv__(self, value: Any) -> Scalar:
        other = scalar(value)
        if other.is_constant:
            return self * (1.0 / other.constant)
        return Scalar(operator="/", arguments=(self, other))

    def __rtruediv__(self, other: Any) -> Scalar:
        return scalar(other) / self

    def __pow__(self, value: Any) -> Scalar:
        other = scalar(value)
        if self.is_constant and other.is_constant:
            return Scalar(constant=float(self.constant**other.constant))
        if other.is_constant and other.constant == 1.0:
            return self
        if other.is_constant and other.constant == 0.0:
            return Scalar(constant=1.0)
        return Scalar(operator="^", arguments=(self, other))

    def __rpow__(self, other: Any) -> Scalar:
        return scalar(other) ** self

    def called(self, name: str) -> Scalar:
        """A function of one argument."""
        return Scalar(operator=name, arguments=(self,))


def _addends(term: Scalar) -> tuple[Scalar, ...]:
    return term.arguments if term.operator == "+" else (term,)


def scalar(value: Any) -> Scalar:
    return value if isinstance(value, Scalar) else Scalar(constant=float(value))


def _each(name: str) -> Callable[..., Any]:
    """An atom that is a function of single entries, by the name of that function."""
    return lambda a, **_: _map(lambda entry: entry.called(name), a)


def _map(function: Callable[..., Scalar], *arrays: Any) -> Any:
    together = np.broadcast_arrays(*[np.asarray(array, dtype=object) for array in arrays])
    flat = [
        function(*map(scalar, entries)) for entries in zip(*(a.flat for a in together), strict=True)
    ]
    result = np.empty(len(flat), dtype=object)
    result[:] = flat
    return result.reshape(together[0].shape)


def _pairs(name: str) -> Callable[..., Any]:
    def combined(*arrays: Any, **_: Any) -> Any:
        return _map(lambda *entries: Scalar(operator=name, arguments=entries), *arrays)

    return combined


def _reduced(combine: Callable[[list[Scalar]], Scalar]) -> Callable[..., Any]:
    """An atom that reduces all entries, or those along an axis."""

    def reduction(a: Any, *, axis: Any = None, **_: Any) -> Any:
        array = np.asarray(a, dtype=object)
        axes = tuple(range(array.ndim)) if axis is None else np.atleast_1d(axis)
        axes = tuple(int(each) % array.ndim for each in axes)
        kept = [each for each in range(array.ndim) if each not in axes]
        moved = np.transpose(array, [*kept, *axes])
        shape = moved.shape[: len(kept)]
        flat = moved.reshape((*shape, -1)) if shape else moved.reshape(1, -1)
        rows = [combine([scalar(e) for e in row]) for row in flat.reshape(-1, flat.shape[-1])]
        result = np.empty(len(rows), dtype=object)
        result[:] = rows
        return result.reshape(shape) if shape else result[0]

    return reduction


def _total(entries: Sequence[Scalar]) -> Scalar:
    return functools.reduce(lambda one, two: one + two, entries, Scalar())


def _log_sum(entries: list[Scalar]) -> Scalar:
    return _total([each.called("exp") for each in entries]).called("log")


def _norm(a: Any, *, p: Any = 2, axis: Any = None, **_: Any) -> Any:
    combine: dict[Any, Callable[[list[Scalar]], Scalar]] = {
        1: lambda entries: _total([each.called("abs") for each in entries]),
        np.inf: lambda entries: _n_ary("max", [each.called("abs") for each in entries]),
        "inf": lambda entries: _n_ary("max", [each.called("abs") for each in entries]),
    }
    euclidean: Callable[[list[Scalar]], Scalar] = lambda entries: _total(  # noqa: E731
        [each**2 for each in entries]
    ).called("sqrt")
    if p not in (1, 2, np.inf, "inf", "fro"):
        raise ModelError(f"norms of order {p} have no formula here")
    return _reduced(combine.get(p, euclidean))(a, axis=axis)


def _n_ary(name: str, entries: Sequence[Scalar]) -> Scalar:
    return entries[0] if len(entries) == 1 else Scalar(operator=name, arguments=entries)


def _entropy(entry: Scalar) -> Scalar:
    return -(entry * entry.called("log"))


def _relative(one: Scalar, two: Scalar) -> Scalar:
    return one * (one / two).called("log")


def _squares(a: Any, b: Any, **_: Any) -> Any:
    return _reduced(lambda entries: _total([each**2 for each in entries]))(a) / b


# Atoms with a formula of their own: their numeric meaning asks for more than arithmetic.
FORMULAS: dict[str, Callable[..., Any]] = {
    **{name: _each(name) for name in ("exp", "log", "log1p", "sqrt", "abs", "sin", "cos", "tanh")},
    "square": lambda a, **_: _map(lambda entry: entry**2, a),
    "inv_pos": lambda a, **_: _map(lambda entry: 1.0 / entry, a),
    "power": lambda a, b, **_: _map(lambda one, two: one**two, a, b),
    "sigmoid": lambda a, **_: _map(lambda e: 1.0 / (1.0 + (-e).called("exp")), a),
    "softplus": lambda a, **_: _map(lambda e: (1.0 + e.called("exp")).called("log"), a),
    "maximum": _pairs("max"),
    "minimum": _pairs("min"),
    "max": _reduced(lambda entries: _n_ary("max", entries)),
    "min": _reduced(lambda entries: _n_ary("min", entries)),
    "prod": _reduced(
        lambda entries: functools.reduce(lambda one, two: one * two, entries, scalar(1.0))
    ),
    "logsumexp": _reduced(_log_sum),
    "norm": _norm,
    "entr": lambda a, **_: _map(_entropy, a),
    "rel_entr": lambda a, b, **_: _map(_relative, a, b),
    "kl_div": lambda a, b, **_: _map(lambda one, two: _relative(one, two) - one + two, a, b),
    "quad_over_lin": _squares,
    "diff_pos": lambda a, b, **_: _map(lambda one, two: one - two, a, b),
}
# Atoms whose numeric meaning is arithmetic and moving of entries.
ARITHMETIC = frozenset(
    (
        *("add", "sub", "neg", "mul", "div", "sum", "mean", "cumsum", "matmul", "dot", "outer"),
        *("kron", "einsum", "trace", "quad_form", "diag", "reshape", "transpose", "index"),
        *("broadcast_to", "concatenate", "hstack", "vstack"),
    )
)


def scalars(roots: Sequence[Expression], names: Mapping[Variable, Any]) -> list[Any]:
    """The entries of expressions as scalars; `names` has an array of names for each variable."""
    graph = merge(roots)
    values: list[Any] = []
    for step in graph.steps:
        if isinstance(step.leaf, Variable):
            own = np.asarray(names[step.leaf], dtype=object)
            values.append(_map(lambda entry: entry, _leaves(own)))
        elif isinstance(step.leaf, (Constant, Parameter)):
            if step.leaf.value is None:
                raise ModelError(f"parameter '{step.leaf.name}' has no value")  # type: ignore[union-attr]
            values.append(np.asarray(dense(step.leaf.value), dtype=float))
        else:
            values.append(_applied(step, [values[i] for i in step.arguments]))
    return [np.asarray(values[root], dtype=object) for root in graph.roots]


def _leaves(names: Any) -> Any:
    result = np.empty(names.size, dtype=object)
    result[:] = [Scalar({str(name): 1.0}) for name in names.flat]
    return result.reshape(names.shape)


def _applied(step: Any, arguments: list[Any]) -> Any:
    name = step.atom.name
    if all(np.asarray(argument).dtype != object for argument in arguments):
        return np.asarray(dense(step.atom.numbers(arguments, step.params)))
    if name in FORMULAS:
        found = FORMULAS[name](*arguments, **step.params)
    elif name in ARITHMETIC:
        found = step.atom.function(np, *arguments, **step.params)
    else:
        raise ModelError(
            f"'{name}' has no formula in single numbers, which this format asks for; write the model "
            "as .hc, or its cone form as .cbf"
        )
    return np.asarray(found, dtype=object).reshape(step.shape)
