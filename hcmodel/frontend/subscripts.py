"""Index ranges and subscripts: `x[i+1]` as a slice, everything irregular as one gather.

Indices are the language's: from 1, or from what the declaration says. Index sets are turned into
integers here, with their sizes bounded before anything is allocated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hcmodel.frontend.mistakes import Mistake, nearest
from hcmodel.frontend.values import (
    Axis,
    Dimension,
    Value,
    aligned,
    check_entries,
    indexed,
    lengths,
    shown,
    transposed,
    union,
)
from hcmodel.grammar import Span, syntax
from hcmodel.records import dataclass

if TYPE_CHECKING:
    from hcmodel.frontend.expressions import Evaluator

MAX_RANGE = 2_000_000


# ---- index sets ---------------------------------------------------------------------------------


def integer(evaluator: Evaluator, node: syntax.Expression, what: str) -> int:
    """The value of an expression that must be one integer."""
    value = evaluator.constant(what).evaluate(node)
    if value.axes:
        raise Mistake(f"{what} cannot depend on `{value.axes[0].name}` here", node.span)
    if value.shape:
        raise Mistake(f"{what} is an integer, not an array of {shown(value.shape)}", node.span)
    return int(integers(value, node.span, what))


def integers(value: Value, span: Span, what: str) -> np.ndarray:
    """The entries of a value as integers."""
    array = np.asarray(value.node)
    rounded = np.rint(array)
    wrong = ~np.isfinite(array) | (np.abs(array) > 2.0**53) | (rounded != array)
    if wrong.any():
        raise Mistake(f"{what} is an integer, not {float(array[wrong].flat[0]):g}", span)
    return np.asarray(rounded, dtype=np.int64)


def check_range(lower: int, upper: int, span: Span) -> None:
    """Refuse ranges that no array could follow, before anything is made of them."""
    if upper - lower + 1 > MAX_RANGE:
        raise Mistake(
            f"the range {lower}..{upper} has {upper - lower + 1} members; the limit is {MAX_RANGE}",
            span,
        )


def dimension(evaluator: Evaluator, node: syntax.IndexSet, *, is_shape: bool) -> Dimension:
    """An index set; in a shape, a number `n` stands for 1..n."""
    what = "a length" if is_shape else "the end of a range"
    if isinstance(node, syntax.Range):
        lower = integer(evaluator, node.lower, "the end of a range")
        upper = integer(evaluator, node.upper, "the end of a range")
        literal = isinstance(node.lower, syntax.Number) and isinstance(node.upper, syntax.Number)
        if upper < lower and literal:
            raise Mistake(
                f"the range {lower}..{upper} runs backwards",
                node.span,
                "write the smaller end first",
            )
        check_range(lower, upper, node.span)
        return Dimension(max(upper - lower + 1, 0), lower)
    value = evaluator.constant("an index set").evaluate(node)
    if value.axes:
        raise Mistake(f"an index set cannot depend on `{value.axes[0].name}` here", node.span)
    if not value.shape:
        if not is_shape:
            raise Mistake(
                "an index set is a range or a list, not a number",
                node.span,
                "write a range: `1..n`",
            )
        length = int(integers(value, node.span, what))
        if length < 0:
            raise Mistake(f"a length cannot be negative: {length}", node.span)
        check_range(1, length, node.span)
        return Dimension(length)
    if len(value.shape) != 1:
        raise Mistake(
            f"an index set is a range or a list, not an array of {shown(value.shape)}", node.span
        )
    members = integers(value, node.span, "a member of an index set")
    if len(np.unique(members)) < len(members):
        raise Mistake("duplicate member in this index set", node.span)
    if value.dimensions is not None and len(members):  # a set that was a range
        return value.dimensions[0]
    return Dimension(len(members), labels=tuple(members.tolist()))


# ---- subscripts ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Iterated:
    """An index that depends on comprehension indices: positions over their axes."""

    place: int
    positions: Value


def subscript(evaluator: Evaluator, node: syntax.Subscript) -> Value:
    """`base[indices]`."""
    base = evaluator.evaluate(node.base)
    name = f"`{node.base.identifier}`" if isinstance(node.base, syntax.Name) else "this"
    own = base.shape
    if len(node.indices) != len(own):
        raise Mistake(
            _count_message(name, len(own), len(node.indices)), node.span, _count_hint(node, own)
        )
    dimensions = base.dimensions or tuple(Dimension(length) for length in own)
    key: list[Any] = []
    iterated: list[_Iterated] = []
    for place, (index, range_) in enumerate(zip(node.indices, dimensions, strict=True)):
        entry = _entry(evaluator, index, range_, name)
        if isinstance(entry, Value):
            iterated.append(_Iterated(place, entry))
            key.append(slice(None))
        else:
            key.append(entry)
    if not iterated:
        return Value(_plain(base, key), base.axes)
    regular = _regular(base, key, iterated)
    return regular if regular is not None else _gathered(base, key, iterated)


def _count_message(name: str, wanted: int, given: int) -> str:
    if wanted == 0:
        return f"{name} is a number and has no entries"
    plural = "index" if wanted == 1 else "indices"
    return f"{name} has {wanted} {plural}, not {given}"


def _count_hint(node: syntax.Subscript, own: tuple[int, ...]) -> str | None:
    if 0 < len(node.indices) < len(own) and isinstance(node.base, syntax.Name):
        return f"a `:` takes a whole axis: `{node.base.identifier}[1{',:' * (len(own) - 1)}]`"
    return None


def _entry(evaluator: Evaluator, index: syntax.Index, range_: Dimension, name: str) -> Any:
    """A slice, an integer, an array for a list, or a Value of positions over index axes."""
    if isinstance(index, syntax.Everything):
        return slice(None)
    if isinstance(index, syntax.String):
        return _place_of_label(index, range_, name)
    if isinstance(index, syntax.Range):
        lower = integer(evaluator, index.lower, "the end of a slice")
        upper = integer(evaluator, index.upper, "the end of a slice")
        if upper < lower:
            return slice(0, 0)
        ends = _positions(np.array([lower, upper]), range_, index.span, name)
        return slice(int(ends[0]), int(ends[1]) + 1)
    value = evaluator.constant("an index").evaluate(index)
    wanted = integers(value, index.span, "an index")
    if len(value.shape) > 1 or (value.shape and value.axes):
        raise Mistake(
            f"an index is a number or a list, not an array of {shown(value.shape)}", index.span
        )
    positions = _positions(wanted, range_, index.span, name, _where(evaluator, value))
    if value.axes:
        return Value(positions, value.axes)
    return positions if value.shape else int(positions)


def _place_of_label(index: syntax.String, range_: Dimension, name: str) -> int:
    """The position of a member that is written as `n["N2"]`."""
    if range_.names is None:
        raise Mistake(
            f"{name} is indexed by numbers, {range_}, and not by labels",
            index.span,
            'declare a set of labels: `set gas = {"N2", "O2"}` and `var n[gas]`',
        )
    if index.value not in range_.names:
        close = nearest(index.value, range_.names)
        hint = f'did you mean `"{close}"`?' if close else f"its members are {range_}"
        raise Mistake(f'{name} has no entry "{index.value}"', index.span, hint)
    return range_.names.index(index.value)


def _where(evaluator: Evaluator, value: Value) -> Callable[[int], str | None]:
    """Says for which values of the indices in scope an entry of `value` is the one."""

    def where(entry: int) -> str | None:
        if not value.axes:
            return None
        places = dict(zip(value.axes, np.unravel_index(entry, lengths(value.axes)), strict=True))
        words = [
            f"{name} = {np.asarray(index.node)[places[index.axes[0]]]:g}"
            for name, index in evaluator.scope.items()
            if index.axes and index.axes[0] in places
        ]
        return f"this happens at {', '.join(words)}"

    return where


def _positions(
    wanted: np.ndarray,
    range_: Dimension,
    span: Span,
    name: str,
    where: Callable[[int], str | None] = lambda entry: None,
) -> np.ndarray:
    """Positions from 0 of indices as written."""
    if range_.labels is None:
        positions = wanted - range_.first
        outside = (positions < 0) | (positions >= range_.length)
    else:
        labels = range_.values
        order = np.argsort(labels)
        place = np.searchsorted(labels, wanted, sorter=order)
        positions = order[np.minimum(place, len(labels) - 1)] if len(labels) else wanted * 0
        outside = (labels[positions] != wanted) if len(labels) else np.ones(wanted.shape, bool)
    if np.any(outside):
        entry = int(np.flatnonzero(outside)[0])
        first = int(np.ravel(wanted)[entry])
        hint = where(entry)
        if first == 0 and range_.first == 1 and range_.labels is None:
            hint = f"indices start at 1; {hint}" if hint else "indices start at 1"
        if first < 0 and not hint:
            hint = "indices do not count from the end: write the number of the entry"
        message = f"index {first} of {name} is outside {range_}"
        if range_.length == 0:
            message = f"{name} has no entries, so index {first} does not exist"
        raise Mistake(message, span, hint)
    return np.asarray(positions)


def _plain(base: Value, key: list[Any]) -> Any:
    """Slices and integers in one step; lists one after the other, so that each keeps its axis."""
    before = [slice(None)] * len(base.axes)
    node = base.node
    lists = [place for place, entry in enumerate(key) if isinstance(entry, np.ndarray)]
    for place in lists:
        only = [slice(None)] * len(key)
        only[place] = key[place]
        node = indexed(node, [*before, *only])
    rest = [slice(None) if place in lists else entry for place, entry in enumerate(key)]
    return indexed(node, [*before, *rest])


def _regular(base: Value, key: list[Any], iterated: list[_Iterated]) -> Value | None:
    """Slices and a transposition, where each index runs over an axis of its own, by ones."""
    axes = [each.positions.axes for each in iterated]
    if base.axes or any(len(found) != 1 for found in axes) or len(set(axes)) < len(axes):
        return None
    key = list(key)
    for each in iterated:
        positions = np.asarray(each.positions.node)
        if len(positions) == 0 or not np.array_equal(
            positions, np.arange(positions[0], positions[0] + len(positions))
        ):
            return None
        key[each.place] = slice(int(positions[0]), int(positions[-1]) + 1)
    node = _plain(base, key)
    left = [place for place, entry in enumerate(key) if not isinstance(entry, int)]
    ordered = sorted(iterated, key=lambda each: each.positions.axes[0].number)
    front = [left.index(each.place) for each in ordered]
    order = [*front, *(place for place in range(len(left)) if place not in front)]
    return Value(transposed(node, order), union(each.positions for each in iterated))


def _gathered(base: Value, key: list[Any], iterated: list[_Iterated]) -> Value:
    """One gather with index arrays over all axes involved."""
    node = _plain(base, key)
    left = [place for place, entry in enumerate(key) if not isinstance(entry, int)]
    count = len(base.axes)
    front = [count + left.index(each.place) for each in iterated]
    rest = [count + place for place in range(len(left)) if count + place not in front]
    node = transposed(node, [*range(count), *front, *rest])
    own = [Value(np.arange(axis.length), (axis,)) for axis in base.axes]
    indices = [*own, *(each.positions for each in iterated)]
    axes: tuple[Axis, ...] = union(indices)
    check_entries((*lengths(axes), *node.shape[count + len(front) :]))
    arrays = [
        np.broadcast_to(np.asarray(aligned(each, axes, 0)), _kept(each, axes)).astype(np.int64)
        for each in indices
    ]
    return Value(indexed(node, arrays), axes)


def _kept(value: Value, axes: tuple[Axis, ...]) -> tuple[int, ...]:
    """The length 1 of lacking axes kept: numpy broadcasts index arrays by itself."""
    return tuple(
        length if axis in value.axes else 1
        for axis, length in zip(axes, lengths(axes), strict=True)
    )
