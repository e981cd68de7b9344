"""Indexed constraints of the language in reports: the user's own indices, and places for absent members.

A family keeps its rows compact; here its duals get the shape of its index ranges back, with NaN where a
filter left a member out, and its rows get names such as `pair[2]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def family_of(name: str, families: Mapping[str, Any]) -> Any:
    """The family behind a constraint's name; the two halves of a chain share one."""
    stem, _, half = name.rpartition(".")
    return families.get(stem if half in ("lower", "upper") else name, families.get(name))


def spread(name: str, duals: FloatArray, families: Mapping[str, Any]) -> FloatArray:
    """Duals over the whole index ranges, NaN for members that a filter left out."""
    family = family_of(name, families)
    if family is None or family.members is None or None in family.ranges:
        return duals
    shape = tuple(dimension.length for dimension in family.ranges)
    whole = np.full(shape, np.nan)
    places = [
        np.searchsorted(dimension.values, members)
        for dimension, members in zip(family.ranges, family.members.T, strict=True)
    ]
    whole[tuple(places)] = duals.reshape(-1)
    return whole


def label(name: str, entry: tuple[int, ...], families: Mapping[str, Any], first: int) -> str:
    """The name of one row: the family's own indices, else the entry counted from `first`."""
    if not entry:
        return name
    family = family_of(name, families)
    indices = [first + place for place in entry]
    if family is not None and family.members is not None and len(entry) == 1:
        indices = [int(index) for index in family.members[entry[0]]]
    elif family is not None and None not in family.ranges and len(family.ranges) == len(entry):
        pairs = zip(family.ranges, entry, strict=True)
        indices = [int(dimension.values[place]) for dimension, place in pairs]
    return f"{name}[{', '.join(str(index) for index in indices)}]"
