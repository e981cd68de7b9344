"""Names for what comes out of a chain: constraints, rows, entries of variables.

A family of the language keeps its rows compact; here its duals get the shape of its index ranges back,
with NaN where a filter left a member out, and its rows get names such as `pair[2]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.errors import ModelError
from hcmodel.expressions.by_name import UnknownNameError, unknown_name
from hcmodel.expressions.leaves import Constraint, Parameter, Variable
from hcmodel.expressions.model import Model
from hcmodel.grammar import syntax
from hcmodel.records import dataclass
from hcmodel.reductions.reduction import WHOLE, BoundOrigin, Origin

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Naming:
    """The names of a model's constraints, by position, and how its front end counts entries."""

    constraints: tuple[str, ...]
    families: Mapping[str, Any]
    first: int
    """The index of the first entry: 0 in Python, 1 in the language."""
    ranges: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(model: Model) -> Naming:
        given = [constraint.name for constraint in model.constraints]
        taken = set(given)
        if taken == {None}:  # thousands of rows from loops
            names = tuple([f"c{position + 1}" for position in range(len(given))])
        else:
            names = tuple([own or _automatic(place, taken) for place, own in enumerate(given)])
        first = 0 if model.source is None else 1
        return Naming(names, model.families, first, model.ranges)

    def row(self, origin: Origin) -> str:
        """The name of one row."""
        return label(self.constraints[origin.position], origin.entry, self.families, self.first)

    def entry(self, name: str, index: Iterable[int]) -> str:
        """An entry of a variable, counted as the front end counts."""
        entry = tuple(int(place) for place in index)
        ranges = self.ranges.get(name, ())
        if len(ranges) == len(entry) and any(each.names is not None for each in ranges):
            keys = [str(each.keys[place]) for each, place in zip(ranges, entry, strict=True)]
            return f"{name}[{', '.join(keys)}]"
        return label(name, entry, {}, self.first)

    def bound(self, origin: BoundOrigin) -> str:
        """A bound of a variable in words: `x[1] >= 0.4`, or its set."""
        variable = origin.variable
        if origin.side in WHOLE:
            return f"the set of {variable.name}"
        name = self.entry(variable.name, origin.entry)
        sign = {"lower": ">=", "upper": "<=", "fixed": "="}[origin.side]
        low, high = variable.set.interval  # entries of a distribution are >= 0 without bounds
        upper = origin.side == "upper"
        ends = np.minimum(variable.upper, high) if upper else np.maximum(variable.lower, low)
        value = float(np.broadcast_to(ends, variable.shape)[origin.entry])
        if variable.set.positive and origin.side == "lower" and not value:
            sign = ">"
        return f"{name} {sign} {value:.6g}"

    def dual(self, position: int, dual: FloatArray) -> FloatArray:
        """The dual of a constraint over the whole index ranges of its family."""
        return spread(self.constraints[position], dual, self.families)


def axes_of(model: Model) -> dict[str, tuple[tuple[Any, ...], ...]]:
    """For variables and families of the language, the index of each place on each axis."""
    found = {name: tuple(map(_keys, ranges)) for name, ranges in model.ranges.items()}
    if not model.families:
        return found
    for name in Naming.of(model).constraints:
        family = family_of(name, model.families)
        if family is not None and None not in family.ranges:
            found[name] = tuple(map(_keys, family.ranges))
    return found


def _keys(dimension: Any) -> tuple[Any, ...]:
    keys: tuple[Any, ...] = dimension.keys
    return keys


def find_named(model: Model, name: str) -> Variable | Parameter | Constraint:
    """The variable, parameter or constraint with a name; unnamed constraints are c1, c2, …"""
    if not isinstance(name, str):
        raise UnknownNameError(f"a part of a problem is found by its name, a string, not {name!r}")
    names = Naming.of(model).constraints
    leaves: list[Any] = [*model.variables, *model.parameters]
    known = [(leaf.name, leaf) for leaf in leaves]
    known += zip(names, model.constraints, strict=True)
    found = [each for own, each in known if own == name]
    if len(found) > 1:
        raise ModelError(
            f"'{name}' names {len(found)} things in this problem; use problem.variables, "
            "problem.parameters or problem.constraints"
        )
    if not found:
        raise UnknownNameError(
            unknown_name(name, "variable, parameter or constraint", [own for own, _ in known])
        )
    answer: Variable | Parameter | Constraint = found[0]
    return answer


def _automatic(position: int, taken: set[str | None]) -> str:
    """c1, c2, … by position, with a stroke where the user has taken that name."""
    name = f"c{position + 1}"
    while name in taken:
        name += "'"
    return name


def named_point(layout: Any, x: FloatArray) -> dict[str, FloatArray]:
    """A flat vector by the names of the variables."""
    arrays = layout.unpack(np, x)
    pairs = zip(layout.variables, arrays, strict=True)
    return {variable.name: np.array(array, dtype=float) for variable, array in pairs}


def in_order_of_declaration(model: Model, point: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """A point with its variables as the file declares them; in order of appearance without a file."""
    statements = () if model.source is None else model.source.model.statements
    declared = [
        each.name.identifier for each in statements if isinstance(each, syntax.VariableDeclaration)
    ]
    places = {name: place for place, name in enumerate(declared)}
    return dict(sorted(point.items(), key=lambda pair: places.get(pair[0], len(places))))


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
    indices: list[Any] = [first + place for place in entry]
    if family is not None and family.members is not None and len(entry) == 1:
        indices = [int(index) for index in family.members[entry[0]]]
    elif family is not None and None not in family.ranges and len(family.ranges) == len(entry):
        pairs = zip(family.ranges, entry, strict=True)
        indices = [dimension.keys[place] for dimension, place in pairs]
    return f"{name}[{', '.join(str(index) for index in indices)}]"
