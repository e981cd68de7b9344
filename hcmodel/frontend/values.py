"""Values of expressions under evaluation: arrays whose first axes belong to comprehension indices.

`x[i] * a[k,i]` is one array over (k, i), whatever the lengths. A value knows the index axes that it
depends on, sorted by age, and its own shape behind them; operands are aligned by name of the axis,
never by position. Numbers are numpy arrays, folded at once; everything else is an expression.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np

from hcmodel.atoms.indexing import FrozenArray
from hcmodel.errors import ModelError
from hcmodel.expressions.leaves import Expression
from hcmodel.expressions.shapes import Shape
from hcmodel.expressions.table import ATOMS
from hcmodel.records import dataclass

MAX_ENTRIES = 10_000_000  # of one array
MAX_TOTAL = 50_000_000  # of all arrays of one model
MAX_DIMENSIONS = 16
MAX_FOLDED_MATRIX = 300  # larger inverses and the like are left to the engine

Node: TypeAlias = Expression | np.ndarray

_numbers = itertools.count()
_left: ContextVar[int] = ContextVar("entries left to the model", default=MAX_TOTAL)


@dataclass(frozen=True, eq=False)
class Axis:
    """The axis of one index, or of the tuples of several."""

    name: str
    length: int
    number: int = field(default_factory=lambda: next(_numbers))


@dataclass(frozen=True)
class Dimension:
    """The index range of one axis of a declared name: first..first+length-1, or a list."""

    length: int
    first: int = 1
    labels: tuple[int, ...] | None = None
    names: tuple[str, ...] | None = None
    """The members of a set of labels, which counts them from 1."""

    @property
    def keys(self) -> tuple[int | str, ...]:
        """What people call the members."""
        return tuple(self.values.tolist()) if self.names is None else self.names

    @property
    def values(self) -> np.ndarray:
        if self.labels is not None:
            return np.array(self.labels, dtype=int)
        return np.arange(self.first, self.first + self.length)

    def __str__(self) -> str:
        if self.names is not None:
            return "{" + ", ".join(f'"{name}"' for name in self.names) + "}"
        if self.labels is None:
            return f"{self.first}..{self.first + self.length - 1}"
        shown = ", ".join(str(label) for label in self.labels[:5])
        return f"[{shown}, …]" if len(self.labels) > 5 else f"[{shown}]"


@dataclass(frozen=True, eq=False)
class Value:
    """An array over `axes`, then its own shape; names also know their index ranges."""

    node: Node
    axes: tuple[Axis, ...] = ()
    dimensions: tuple[Dimension, ...] | None = None

    @property
    def shape(self) -> Shape:
        """The own shape, without the index axes."""
        return tuple(self.node.shape[len(self.axes) :])

    @property
    def is_number(self) -> bool:
        return isinstance(self.node, np.ndarray)


def number(value: Any) -> Value:
    return Value(np.asarray(value, dtype=float))


def check_entries(shape: Sequence[int]) -> None:
    """Refuse an array that a model should not ask for."""
    size = 1
    for length in shape:
        size *= int(length)
    if size > MAX_ENTRIES:
        raise ModelError(f"this needs an array of {size} numbers; the limit is {MAX_ENTRIES}")
    if len(shape) > MAX_DIMENSIONS:
        raise ModelError(f"this has {len(shape)} indices at once; the limit is {MAX_DIMENSIONS}")


def open_budget() -> None:
    """Give the model that is read next all entries it may spend."""
    _left.set(MAX_TOTAL)


def spend(shape: Sequence[int]) -> None:
    """Count an array that is made against what the model may ask for in all."""
    check_entries(shape)
    size = 1
    for length in shape:
        size *= int(length)
    _left.set(_left.get() - size)
    if _left.get() < 0:
        raise ModelError(f"the arrays of this model have more than {MAX_TOTAL} numbers in all")


def union(values: Iterable[Value]) -> tuple[Axis, ...]:
    """The axes of all values, sorted by age."""
    axes = {axis.number: axis for value in values for axis in value.axes}
    return tuple(axes[each] for each in sorted(axes))


def lengths(axes: Iterable[Axis]) -> Shape:
    return tuple(axis.length for axis in axes)


# ---- operations on nodes, folded for numbers ----------------------------------------------------


def apply(name: str, nodes: Sequence[Node], params: dict[str, Any] | None = None) -> Node:
    """The atom applied; numbers are computed at once."""
    atom = ATOMS[name]
    if all(isinstance(node, np.ndarray) for node in nodes):
        # Broadcast zeros stand in for the arrays, so that shapes are known before any is made.
        expression = atom.apply([_Placeholder(np.shape(node)) for node in nodes], params)
        spend(expression.shape)
        largest = max((max(np.shape(node), default=0) for node in nodes), default=0)
        if not atom.superlinear or largest <= MAX_FOLDED_MATRIX:
            return _folded(expression, nodes)
        return atom.apply(nodes, params)
    expression = atom.apply(nodes, params)
    spend(expression.shape)
    return expression


class _Placeholder(Expression):
    """A leaf with a shape only."""

    __slots__ = ()

    def __init__(self, shape: Shape) -> None:
        self._shape = shape


def _folded(expression: Any, arrays: Sequence[Any]) -> np.ndarray:
    if 0 in expression.shape:
        return np.zeros(expression.shape)
    try:
        with np.errstate(all="ignore"):
            result = expression.atom.function(np, *arrays, **dict(expression.params))
    except np.linalg.LinAlgError:
        result = np.nan
    result = np.asarray(result, dtype=float)
    if not np.isfinite(result).all() and (
        np.isnan(result).any() or all(np.isfinite(array).all() for array in arrays)
    ):
        raise ModelError("this is not a finite number")
    return result


def reshaped(node: Node, shape: Sequence[int]) -> Node:
    if tuple(node.shape) == tuple(shape):
        return node
    if isinstance(node, np.ndarray):
        return node.reshape(shape)
    return apply("reshape", [node], {"shape": tuple(shape)})


def transposed(node: Node, order: Sequence[int]) -> Node:
    if list(order) == list(range(len(order))):
        return node
    if isinstance(node, np.ndarray):
        return node.transpose(order)
    if len(order) == 2:
        return node.T
    return apply("transpose", [node], {"axes": tuple(order)})


def broadcasted(node: Node, shape: Sequence[int]) -> Node:
    check_entries(shape)
    if tuple(node.shape) == tuple(shape):
        return node
    if isinstance(node, np.ndarray):
        return np.broadcast_to(node, tuple(shape))
    return apply("broadcast_to", [node], {"shape": tuple(shape)})


def indexed(node: Node, key: Sequence[Any]) -> Node:
    """The node at a key of integers, slices and index arrays; whole slices make nothing."""
    whole = all(
        isinstance(entry, slice) and entry.indices(length) == (0, length, 1)
        for entry, length in zip(key, node.shape, strict=False)
    )
    if whole:
        return node
    if isinstance(node, np.ndarray):
        return np.asarray(node[tuple(key)])
    frozen = tuple(FrozenArray(e) if isinstance(e, np.ndarray) else e for e in key)
    return node[frozen]


# ---- operations on values -----------------------------------------------------------------------


def aligned(value: Value, axes: Sequence[Axis], dimensions: int) -> Node:
    """The node with an axis for each of `axes`, of length 1 where the value lacks it."""
    own = value.shape
    if not value.axes and not own:
        return value.node
    count = len(value.axes)
    if len(own) == dimensions and (count == 0 or tuple(axes[-count:]) == value.axes):
        return value.node  # numpy adds leading axes by itself
    shape = [axis.length if axis in value.axes else 1 for axis in axes]
    shape += [1] * (dimensions - len(own)) + list(own)
    return reshaped(value.node, shape)


def spread(value: Value, axes: tuple[Axis, ...]) -> Value:
    """The value repeated along the axes that it lacks."""
    if value.axes == axes:
        return value
    own = value.shape
    node = aligned(value, axes, len(own))
    return Value(broadcasted(node, (*lengths(axes), *own)), axes)


def combine(name: str, values: Sequence[Value], params: dict[str, Any] | None = None) -> Value:
    """An atom that works entry by entry."""
    axes = union(values)
    dimensions = max(len(value.shape) for value in values)
    try:
        own = np.broadcast_shapes(*[value.shape for value in values])
    except ValueError:
        listed = " and ".join(shown(value.shape) for value in values)
        raise ModelError(f"`{name}` cannot join shapes {listed}") from None
    check_entries((*lengths(axes), *own))
    return Value(apply(name, [aligned(v, axes, dimensions) for v in values], params), axes)


def multiply(left: Value, right: Value) -> Value:
    """left * right, where a factor 1 makes nothing."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one.node, np.ndarray) and one.node.ndim == 0 and one.node == 1:
            return other
    return combine("mul", [left, right])


def contract(
    left: Value, left_labels: str, right: Value, right_labels: str, result: str, over: set[Axis]
) -> Value:
    """Sums of products along the axes in `over` and the own labels that the result lacks."""
    axes = union([left, right])
    letters = dict(zip(axes, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", strict=False))
    kept = tuple(axis for axis in axes if axis not in over)
    terms = [
        "".join(letters[axis] for axis in value.axes) + labels
        for value, labels in ((left, left_labels), (right, right_labels))
    ]
    output = "".join(letters[axis] for axis in kept) + result
    return Value(_product(left.node, terms[0], right.node, terms[1], output), kept)


def _product(left: Node, first: str, right: Node, second: str, output: str) -> Node:
    """The plain matrix product where it is one, else einsum."""
    for a, a_labels, b, b_labels in ((left, first, right, second), (right, second, left, first)):
        if a_labels and b_labels and len(a_labels) <= 2 and len(b_labels) <= 2:
            inner = a_labels[-1]
            others = a_labels[:-1] + b_labels[1:]
            if b_labels[0] == inner and inner not in output and output == others:
                return apply("matmul", [a, b])
    return apply("einsum", [left, right], {"subscripts": f"{first},{second}->{output}"})


def shown(shape: Shape) -> str:
    """A shape as messages show it."""
    return "×".join(str(length) for length in shape) if shape else "1 (a number)"
