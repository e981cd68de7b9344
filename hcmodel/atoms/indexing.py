"""Index keys as hashable values, so that equal indexing merges and pickles.

`IndexKey` keeps what the user wrote between the brackets, with arrays frozen, and gives it back in
the form numpy takes.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from hcmodel.errors import ModelError
from hcmodel.expressions.labels import Labels
from hcmodel.expressions.shapes import Shape
from hcmodel.records import cached_property, dataclass


class FrozenArray:
    """An integer or Boolean array that hashes and compares by content."""

    __slots__ = ("_key", "array")

    def __init__(self, array: np.ndarray) -> None:
        self.array = np.array(array)
        self.array.flags.writeable = False
        self._key = (self.array.dtype.str, self.array.shape, self.array.tobytes())

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrozenArray) and self._key == other._key

    def __repr__(self) -> str:
        return np.array2string(self.array, separator=", ", threshold=8).replace("\n", "")

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenArray, (self.array,)


@dataclass(frozen=True)
class Slice:
    """A slice that hashes; Python's own does so only from 3.12 on."""

    start: int | None
    stop: int | None
    step: int | None

    def __repr__(self) -> str:
        ends = [("" if end is None else str(end)) for end in (self.start, self.stop)]
        return ":".join(ends + ([] if self.step is None else [str(self.step)]))


@dataclass(frozen=True)
class IndexKey:
    """What stands between the brackets, entry by entry."""

    entries: tuple[Any, ...]

    @cached_property
    def numpy(self) -> tuple[Any, ...]:
        """The key as numpy takes it."""
        if all(type(entry) is int for entry in self.entries):
            return self.entries
        return tuple([_thawed(entry) for entry in self.entries])

    def __repr__(self) -> str:
        words = {None: "None", Ellipsis: "..."}
        return ", ".join(
            words[entry] if entry is None or entry is Ellipsis else repr(entry)
            for entry in self.entries
        )

    def counted(self, first: int, labels: Labels | None = None) -> str:
        """The key as the language writes it: places from `first` on, both ends of a range included.

        `labels` are what the places on each axis are called, where a declaration says so.
        """
        words, axes = [], iter(labels or ())
        for entry in self.entries:
            if entry is None:
                words.append("None")
            elif entry is Ellipsis:
                words.append("...")
                axes = iter(())  # it stands for an unknown number of axes
            else:
                words.append(_counted(entry, first, next(axes, None)))
        return ", ".join(words)


def _counted(entry: Any, first: int, labels: tuple[Any, ...] | None) -> str:
    """One entry of a key, counted from `first`, or by the labels of its axis.

    What the language does not write, such as places from the end, stays as it is in Python.
    """

    def name(place: int) -> str:
        label = place + first if labels is None else labels[place]
        return f'"{label}"' if isinstance(label, str) else str(label)

    if isinstance(entry, Slice):
        start, stop = entry.start, entry.stop
        if start is None or stop is None or entry.step is not None or not 0 <= start < stop:
            return repr(entry)
        return f"{name(start)}..{name(stop - 1)}"
    if not isinstance(entry, FrozenArray):
        return name(entry) if entry >= 0 else str(entry)
    if entry.array.dtype.kind == "b" or (entry.array < 0).any():
        return repr(entry)
    named = entry.array + first if labels is None else np.array(labels)[entry.array]
    return repr(FrozenArray(named)).replace("'", '"')


def _thawed(entry: Any) -> Any:
    if isinstance(entry, Slice):
        return slice(entry.start, entry.stop, entry.step)
    return entry.array if isinstance(entry, FrozenArray) else entry


def frozen_key(key: Any) -> IndexKey:
    """`key` as an `IndexKey`; whether it fits a shape `indexed_shape` finds out."""
    entries = key if isinstance(key, tuple) else (key,)
    return IndexKey(tuple([_frozen(entry) for entry in entries]))


def indexed_shape(key: IndexKey, shape: Shape) -> Shape:
    """The shape that remains after indexing with `key`."""
    # The plain case first, and fast: models built in loops index entry by entry.
    if len(key.entries) <= len(shape) and all(
        type(entry) is int and -length <= entry < length
        for entry, length in zip(key.entries, shape, strict=False)
    ):
        return shape[len(key.entries) :]
    try:
        return tuple(np.broadcast_to(np.zeros(()), shape)[key.numpy].shape)
    except IndexError as error:
        raise ModelError(
            f"index [{key}] does not fit shape {shape}: {error} (indices start at 0)"
        ) from None


def _frozen(entry: Any) -> Any:
    if type(entry) is int:
        return entry
    if entry is None or entry is Ellipsis or isinstance(entry, (IndexKey, FrozenArray, Slice)):
        return entry
    if isinstance(entry, slice):
        return Slice(*(_end(end) for end in (entry.start, entry.stop, entry.step)))
    if isinstance(entry, (list, np.ndarray)):
        try:
            array = np.asarray(entry)
        except ValueError:
            raise ModelError(f"an index has rows of different lengths: {entry!r}") from None
        if array.size == 0 and array.dtype.kind == "f":
            array = array.astype(int)
        if array.dtype.kind in "iu":
            return FrozenArray(array.astype(int)) if array.ndim else int(array)
        if array.dtype.kind == "b":
            return FrozenArray(array)
    if isinstance(entry, (bool, np.bool_)):
        return FrozenArray(np.asarray(entry))
    return _end(entry)


def _end(entry: Any) -> int | None:
    if entry is None:
        return None
    try:
        return operator.index(entry)
    except TypeError:
        raise ModelError(
            f"an index is an integer, a slice, ..., None, or an array of integers or Booleans, "
            f"not {entry!r}"
        ) from None
