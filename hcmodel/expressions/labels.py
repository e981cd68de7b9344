"""Data with labels, of pandas or as dictionaries, in the order of the index sets that they belong to.

Variables and parameters of the language know what each place on each axis is called (`labels`). Series,
data frames and dictionaries are brought into that order; a label that is missing or too much is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hcmodel.errors import DataError
from hcmodel.records import dataclass
from hcmodel.solvers.algebra.storage import is_sparse

Labels = tuple[tuple[Any, ...], ...]
# Labels that a message shows.
SHOWN = 5


@dataclass(frozen=True)
class Labelled:
    """Values with the labels of each axis; `keyed` where the labels are all there is."""

    values: Any
    axes: tuple[list[Any], ...]
    keyed: bool


def labelled(value: Any, what: str) -> Labelled | None:
    """A dictionary or an object of pandas with its labels; None for other data."""
    if is_sparse(value):  # scipy's dictionaries of keys are mappings too
        return None
    if isinstance(value, Mapping):
        return _of_mapping(value, what)
    if not (hasattr(value, "index") and hasattr(value, "to_numpy")):
        return None
    if hasattr(value, "columns"):
        return Labelled(value.to_numpy(), (list(value.index), list(value.columns)), keyed=False)
    if getattr(value.index, "nlevels", 1) > 1:
        return _of_mapping(dict(zip(value.index, value.to_numpy(), strict=True)), what)
    return Labelled(value.to_numpy(), (list(value.index),), keyed=False)


def _of_mapping(value: Mapping[Any, Any], what: str) -> Labelled:
    """{label: value}, {label: {label: value}}, or {(label, label): value}."""
    inner = list(value.values())
    if inner and all(isinstance(each, Mapping) for each in inner):
        columns = list(inner[0])
        if any(set(each) != set(columns) for each in inner):
            raise DataError(f"{what} is ragged: all rows must have the same labels")
        rows = [[each[key] for key in columns] for each in inner]
        return Labelled(rows, (list(value), columns), keyed=True)
    if value and all(isinstance(key, tuple) for key in value):
        lengths = {len(key) for key in value}
        if len(lengths) == 1:
            axes = tuple(list(dict.fromkeys(place)) for place in zip(*value, strict=True))
            shape = tuple(map(len, axes))
            if int(np.prod(shape)) == len(value):
                whole = np.empty(shape, dtype=object)
                for key, entry in value.items():
                    whole[tuple(a.index(k) for a, k in zip(axes, key, strict=True))] = entry
                return Labelled(whole.tolist(), axes, keyed=True)
        raise DataError(f"{what} is ragged: each combination of labels is needed once")
    return Labelled(inner, (list(value),), keyed=True)


def in_order(value: Any, labels: Labels | None, what: str) -> Any:
    """The value as an array in the order of `labels`; data without labels stay as they are."""
    given = labelled(value, what)
    if given is None:
        return value
    if labels is None or len(labels) != len(given.axes):
        if given.keyed:
            raise DataError(_without_labels(given, labels, what))
        return given.values
    found = np.asarray(given.values)
    for axis, (own, wanted) in enumerate(zip(given.axes, labels, strict=True)):
        if given.keyed or _speaks_of(own, wanted):
            found = np.take(found, _order(own, wanted, what), axis=axis)
    return found


def _speaks_of(own: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether the index of an object of pandas names the members of a set, and not only counts rows."""
    if all(isinstance(each, str) for each in own):
        return isinstance(wanted[0], str)
    return own != list(range(len(own))) and set(own) == set(wanted)


def _order(own: Sequence[Any], wanted: Sequence[Any], what: str) -> list[int]:
    places = {label: place for place, label in enumerate(own)}
    missing = [each for each in wanted if each not in places]
    surplus = [each for each in own if each not in set(wanted)]
    if missing or surplus:
        wrong = f"lacks {_listed(missing)}" if missing else f"has {_listed(surplus)} as well"
        raise DataError(f"{what} {wrong}; its labels are {_listed(wanted)}")
    return [places[each] for each in wanted]


def _without_labels(given: Labelled, labels: Labels | None, what: str) -> str:
    if labels:
        return f"{what} has labels for {len(given.axes)} axes, but {len(labels)} are needed"
    return (
        f"{what} is given by labels, {_listed(given.axes[0])}, but it has none: give an array in order, "
        "or declare a set of labels in the language"
    )


def _listed(labels: Sequence[Any]) -> str:
    shown = [f'"{each}"' if isinstance(each, str) else str(each) for each in labels[:SHOWN]]
    return ", ".join([*shown, "…"] if len(labels) > SHOWN else shown)
