"""Which rows are bounds: each entry compares one entry of a variable with a number.

The entries are followed through indexing, reshaping, sums with constants and products with them, so that
`3 - 2 * x[1:3] >= u` is a bound as well as `x <= 3`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.rules import Dependence
from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Apply, Expression, Parameter, Variable
from hcmodel.expressions.model import Model
from hcmodel.expressions.sparse_data import dense
from hcmodel.expressions.variable_sets import BoxSet, VariableSet
from hcmodel.records import dataclass

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]
Marks = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class BoundRow:
    """A constraint each entry of which compares one entry of a variable with a number.

    `places` are the entries of the variable, counted in C order, one for each entry of the constraint;
    `factors` what they are multiplied with in the row. `lower` marks lower bounds.
    """

    position: int
    variable: Variable
    places: IndexArray
    factors: FloatArray
    limits: FloatArray
    lower: Marks

    def implied(self) -> bool:
        """Whether the variable's own set says as much."""
        low, high = _range(self.variable)
        weaker = np.where(
            self.lower, self.limits <= low[self.places], self.limits >= high[self.places]
        )
        return bool(weaker.all())

    def cut(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds of all entries of the variable, with those of the row."""
        low, high = low.copy(), high.copy()
        np.maximum.at(low, self.places[self.lower], self.limits[self.lower])
        np.minimum.at(high, self.places[~self.lower], self.limits[~self.lower])
        return low, high

    def crossing(self, low: FloatArray, high: FloatArray) -> int:
        """The first entry of the row whose bound leaves no value between the bounds of its entry."""
        empty = (low > high) | (self.variable.pos & (high <= 0.0))
        ends = np.where(self.lower, low[self.places], high[self.places])
        return int(np.flatnonzero(empty[self.places] & (self.limits == ends))[0])


@dataclass(frozen=True, eq=False)
class Tightened:
    """The boxes that rows make, by variable, and for each row the entries whose bound is its own."""

    rows: tuple[BoundRow, ...]
    lower: Mapping[Variable, FloatArray]
    upper: Mapping[Variable, FloatArray]
    own: tuple[Marks, ...]
    parameters: tuple[Parameter, ...]
    """Those whose values decide about it."""
    contradiction: tuple[BoundRow, int] | None = None
    """A row that leaves an entry of its variable no value, and the number of its own entry that does."""

    def set_of(self, variable: Variable) -> VariableSet:
        lower, upper = (each[variable].reshape(variable.shape) for each in (self.lower, self.upper))
        lower.flags.writeable = upper.flags.writeable = False
        return BoxSet(variable.name, variable.shape, lower, upper, variable.pos)

    def same_rows(self, other: Tightened) -> bool:
        return [row.position for row in self.rows] == [row.position for row in other.rows]


def _range(variable: Variable) -> tuple[FloatArray, FloatArray]:
    """What the set says of each entry."""
    low, high = (np.broadcast_to(end, variable.shape) for end in variable.set.interval)
    return (
        np.ravel(np.maximum(low, variable.lower)),
        np.ravel(np.minimum(high, variable.upper)),
    )


def sides(constraint: Constraint) -> tuple[Expression, Expression]:
    """Left and right side."""
    return constraint.lhs, constraint.rhs


def tightened(model: Model) -> Tightened:
    """The rows that are bounds. One that contradicts the variable's box, or rows before it, is none."""
    found, parameters = _bound_rows(model)
    rows: list[BoundRow] = []
    boxes: dict[Variable, tuple[FloatArray, FloatArray]] = {}
    contradiction: tuple[BoundRow, int] | None = None
    for row in found:
        if row.implied():
            rows.append(row)
        elif row.variable.set.is_box:
            box = row.cut(*boxes.get(row.variable, _range(row.variable)))
            if _has_points(row.variable, *box):
                boxes[row.variable] = box
                rows.append(row)
            elif contradiction is None:
                contradiction = row, row.crossing(*box)
    lower = {variable: low for variable, (low, _) in boxes.items()}
    upper = {variable: high for variable, (_, high) in boxes.items()}
    own = _owned(rows, boxes)
    return Tightened(tuple(rows), lower, upper, own, parameters, contradiction)


def _has_points(variable: Variable, low: FloatArray, high: FloatArray) -> bool:
    return bool((low <= high).all()) and not (variable.pos and bool((high <= 0.0).any()))


def _owned(
    rows: Sequence[BoundRow], boxes: Mapping[Variable, tuple[FloatArray, FloatArray]]
) -> tuple[Marks, ...]:
    """For each row the entries whose bound is tighter than the set and first set by this row."""
    taken: dict[Variable, list[Marks]] = {}
    for variable, (low, high) in boxes.items():
        least, most = _range(variable)
        taken[variable] = [low <= least, high >= most]
    found = []
    for row in rows:
        own = np.zeros(row.places.size, dtype=bool)
        for side, wanted in enumerate((row.lower, ~row.lower)):
            if row.variable in boxes:
                claimed, end = taken[row.variable][side], boxes[row.variable][side]
                tight = wanted & ~claimed[row.places] & (row.limits == end[row.places])
                chosen = np.flatnonzero(tight)
                own[chosen[np.unique(row.places[chosen], return_index=True)[1]]] = True
                claimed[row.places[chosen]] = True
        found.append(own)
    return tuple(found)


class _Liveness:
    """Whether expressions depend on variables. A walk ends at the first variable that it meets."""

    def __init__(self) -> None:
        self._constant: set[int] = set()

    def __call__(self, expression: Expression) -> bool:
        pending: list[Expression] = [expression]
        seen: set[int] = set()
        while pending:
            node = pending.pop()
            if isinstance(node, Variable):
                return True
            if id(node) not in seen and id(node) not in self._constant:
                seen.add(id(node))
                pending.extend(node.args)
        self._constant |= seen
        return False


def _bound_rows(model: Model) -> tuple[list[BoundRow], tuple[Parameter, ...]]:
    """The rows, and the parameters whose values decide about them."""
    live = _Liveness()
    found: list[BoundRow] = []
    deciding: list[Parameter] = []
    for position, constraint in enumerate(model.constraints):
        path = _path_of(constraint, live)
        if path is None:
            continue
        nodes = topological_order(sides(constraint))
        deciding += [node for node in nodes if isinstance(node, Parameter)]
        row = _bound_row(position, constraint, path, live)
        if row is not None:
            found.append(row)
    return found, tuple(dict.fromkeys(deciding))


Path = tuple[Variable, list[tuple[Apply, int]]]


def _path_of(constraint: Constraint, live: _Liveness) -> Path | None:
    """The way from a variable to a side of a constraint, the other side being a constant."""
    varying = [side for side in sides(constraint) if live(side)]
    if constraint.sense == "==" or len(varying) != 1 or not constraint.size:
        return None
    path: list[tuple[Apply, int]] = []
    node = varying[0]
    while not isinstance(node, Variable):
        if not isinstance(node, Apply):
            return None
        places = [place for place, argument in enumerate(node.args) if live(argument)]
        if len(places) != 1 or not _keeps_entries(node, places[0]):
            return None
        path.append((node, places[0]))
        node = node.args[places[0]]
    return node, path


def _bound_row(
    position: int, constraint: Constraint, path: Path, live: _Liveness
) -> BoundRow | None:
    """The constraint as a bound, for the parameters' current values; None where it is none."""
    on_left = live(constraint.lhs)
    number = _number(constraint.rhs if on_left else constraint.lhs)
    entries = _entries(*path)
    if entries is None or number is None:
        return None
    places, factors, offsets, numbers = (
        np.broadcast_to(each, constraint.shape).ravel() for each in (*entries, number)
    )
    with np.errstate(all="ignore"):
        limits = (numbers - offsets) / factors
    if not np.isfinite(limits).all():
        return None
    above = (constraint.sense == ">=") == on_left
    lower = (factors > 0) == above
    return BoundRow(position, path[0], places, factors, limits, lower)


Entries = tuple[Any, Any, Any]


def _entries(variable: Variable, path: Sequence[tuple[Apply, int]]) -> Entries | None:
    """Which entry of the variable each entry at the end of the path is; its factor and its offset."""
    shape = variable.shape
    places = np.arange(variable.size).reshape(shape)
    found: Entries | None = (places, np.ones(shape), np.zeros(shape))
    for step, place in reversed(path):
        assert found is not None
        found = _applied(step, place, found)
        if found is None:
            return None
    return found


def _keeps_entries(node: Apply, place: int) -> bool:
    atom = node.atom
    if atom.moves_entries:
        return len(node.args) == 1
    if atom.summed:
        return True
    shapes = [argument.shape for argument in node.args]
    elementwise = atom.dependence(shapes, dict(node.params)) is Dependence.ELEMENTWISE
    return elementwise and place in atom.linear_in


def _applied(node: Apply, place: int, entries: Entries) -> Entries | None:
    places, factors, offsets = entries
    atom, params = node.atom, dict(node.params)
    if atom.moves_entries:
        numbers = np.asarray(
            atom.function(np, 1 + np.arange(places.size).reshape(places.shape), **params)
        )
        if not numbers.all():
            return None  # zeros between the entries
        moved = numbers.astype(np.intp) - 1
        return places.ravel()[moved], factors.ravel()[moved], offsets.ravel()[moved]
    constants = [None if i == place else _number(each) for i, each in enumerate(node.args)]
    if any(each is None for i, each in enumerate(constants) if i != place):
        return None
    wide: list[Any] = [np.broadcast_to(each, node.shape) for each in (places, factors, offsets)]
    if atom.summed:
        signs = atom.signs(len(node.args))
        total = sum(
            sign * each for sign, each in zip(signs, constants, strict=True) if each is not None
        )
        return wide[0], signs[place] * wide[1], signs[place] * wide[2] + total
    ones = [np.ones(node.args[place].shape) if each is None else each for each in constants]
    with np.errstate(all="ignore"):
        weights = np.asarray(atom.function(np, *ones, **params), dtype=float)
    if not np.isfinite(weights).all() or not weights.all():
        return None
    return wide[0], weights * wide[1], weights * wide[2]


def _number(expression: Expression) -> FloatArray | None:
    """The value of a constant; None where a parameter has none, or it is not finite."""
    value = expression.value
    if value is None:
        return None
    array = np.asarray(dense(value), dtype=float)
    return array if np.isfinite(array).all() else None
