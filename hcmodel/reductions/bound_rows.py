"""Which rows are bounds: each entry compares one entry of a variable with a number.

`3 - 2 * x[1:3] >= u` is a bound as well as `x <= 3` (see `entry_paths`), and so are matrix inequalities
such as `P >> 0` (see `matrix_bounds`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Expression, Parameter, Variable
from hcmodel.expressions.model import Model
from hcmodel.expressions.variable_sets import BoxSet, VariableSet
from hcmodel.records import dataclass, replace
from hcmodel.reductions.entry_paths import Liveness, Path, entries_on, number_of, path_of
from hcmodel.reductions.matrix_bounds import (
    Limits,
    MatrixRow,
    eigenvalue_limits,
    matrix_rows,
    set_with,
)

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
    matrices: tuple[MatrixRow, ...] = ()
    """Rows that bound the eigenvalues of a variable."""
    eigenvalues: Limits = field(default_factory=dict)
    idle: tuple[int, ...] = ()
    """The positions of rows of other kinds that hold wherever the sets do."""

    @property
    def variables(self) -> list[Variable]:
        """Those whose sets are others."""
        return [*self.lower, *self.eigenvalues]

    @property
    def positions(self) -> tuple[int, ...]:
        """The constraints that the sets say."""
        own = [row.position for row in self.rows]
        return (*own, *(row.position for row in self.matrices), *self.idle)

    def with_idle(self, model: Model, positions: Iterable[int]) -> Tightened:
        """The same with these rows of the model left out; their parameters decide about it too."""
        idle = tuple(positions)
        parameters = _parameters(model.constraints[position] for position in idle)
        return replace(self, idle=idle, parameters=(*self.parameters, *parameters))

    def set_of(self, variable: Variable) -> VariableSet:
        if variable in self.eigenvalues:
            return set_with(variable, self.eigenvalues[variable])
        lower, upper = (each[variable].reshape(variable.shape) for each in (self.lower, self.upper))
        lower.flags.writeable = upper.flags.writeable = False
        return BoxSet(variable.name, variable.shape, lower, upper, variable.pos)


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
    live = Liveness()
    found, parameters = _bound_rows(model, live)
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
    matrices, limits = eigenvalue_limits(matrix_rows(model, live))
    parameters += _parameters(model.constraints[row.position] for row in matrices)
    return Tightened(
        tuple(rows), lower, upper, own, parameters, contradiction, tuple(matrices), limits
    )


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


def _bound_rows(model: Model, live: Liveness) -> tuple[list[BoundRow], tuple[Parameter, ...]]:
    """The rows, and the parameters whose values decide about them."""
    found: list[BoundRow] = []
    deciding: list[Constraint] = []
    for position, constraint in enumerate(model.constraints):
        path = _path_of(constraint, live)
        if path is None:
            continue
        deciding.append(constraint)
        row = _bound_row(position, constraint, path, live)
        if row is not None:
            found.append(row)
    return found, _parameters(deciding)


def _parameters(constraints: Iterable[Constraint]) -> tuple[Parameter, ...]:
    """Those of some constraints, each once."""
    nodes = topological_order(side for each in constraints for side in sides(each))
    return tuple(node for node in nodes if isinstance(node, Parameter))


def _path_of(constraint: Constraint, live: Liveness) -> Path | None:
    """The way from a variable to a side of a constraint, the other side being a constant."""
    if constraint.sense == "==" or not constraint.size:
        return None
    varying = [side for side in sides(constraint) if live(side)]
    return path_of(varying[0], live) if len(varying) == 1 else None


def _bound_row(
    position: int, constraint: Constraint, path: Path, live: Liveness
) -> BoundRow | None:
    """The constraint as a bound, for the parameters' current values; None where it is none."""
    on_left = live(constraint.lhs)
    number = number_of(constraint.rhs if on_left else constraint.lhs)
    entries = entries_on(*path)
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
