"""Rows that are bounds become bounds: `x >= 0.4`, `2 * x[1:3] <= u`, `cap - x >= 0`, `P >> 0`.

The model after it has tighter boxes and lacks those rows, so that the proof, the coordinates and the
methods see them as they see bounds. Rows that the variables' own sets imply are left out, whatever the
set. The multiplier of a row is that of its bound, where the bound is its own and no other is as tight.
Where a proof fails, rows of any kind that hold wherever the sets do are left out as well (`idle_rows`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.exchanged import exchanged, follow
from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Expression, Variable
from hcmodel.expressions.model import Model
from hcmodel.expressions.variable_sets import VariableSet, make_domain
from hcmodel.facts.node_facts import Facts
from hcmodel.records import replace
from hcmodel.reductions.bound_rows import BoundRow, Marks, Tightened, tightened
from hcmodel.reductions.idle_rows import idle_rows, is_idle
from hcmodel.reductions.matrix_bounds import MatrixRow
from hcmodel.reductions.reduction import WHOLE, BoundOrigin, Duals, ModelReduction, Origin

FloatArray = NDArray[np.float64]


class Bounds(ModelReduction):
    """The model with rows that are bounds in its variables' boxes; variables so changed are new ones."""

    def __init__(
        self,
        before: Model,
        after: Model,
        found: Tightened,
        renewed: Mapping[Variable, Variable],
        sources: Mapping[int, Expression],
        idle: Sequence[Constraint] = (),
    ) -> None:
        super().__init__(before, after)
        self._found = found
        self._idle = tuple(idle)  # with the variables of `after`
        self._renewed = dict(renewed)
        self._new = dict(sources)  # of expressions before, by identity, where they are others after
        self._old = {id(self._new[id(each)]): each for each in _changed(before, self._new)}
        taken = set(found.positions)
        self._kept = [i for i in range(len(before.constraints)) if i not in taken]

    @staticmethod
    def of(model: Model) -> Bounds:
        """The reduction of a minimisation; `rows` is empty where no row is a bound."""
        found = tightened(model)
        renewed = {variable: _renewed(variable, found) for variable in found.variables}
        new: dict[int, Expression] = {id(old): each for old, each in renewed.items()}
        after = model if not found.positions else _rewritten(model, found, new)
        return Bounds(model, after, found, renewed, new)

    def without_idle_rows(self, facts: Facts | None = None) -> Bounds | None:
        """The same, with rows left out that hold wherever the sets do; None where there are none."""
        idle = idle_rows(self.after, Facts() if facts is None else facts)
        if not idle:
            return None
        places = (*self._found.idle, *(self._kept[each] for each in idle))
        found, new = self._found.with_idle(self.before, places), dict(self._new)
        rows = (*self._idle, *(self.after.constraints[each] for each in idle))
        after = _rewritten(self.before, found, new)
        return Bounds(self.before, after, found, self._renewed, new, rows)

    @property
    def rows(self) -> tuple[int, ...]:
        """The positions of the constraints that are bounds, or implied by others."""
        return self._found.positions

    def renewed(self, variable: Variable) -> Variable:
        """The variable of `after` that stands for one of `before`."""
        return self._renewed.get(variable, variable)

    def original(self, variable: Variable) -> Variable:
        """The variable of `before` that one of `after` stands for."""
        found = self._old.get(id(variable), variable)
        assert isinstance(found, Variable)
        return found

    def refresh(self) -> bool:
        """Bounds may be parameters. Boxes get new numbers; other rows or signs are another model."""
        if not self._found.parameters:
            return True
        found = tightened(self.before).with_idle(self.before, self._found.idle)
        if found.positions != self._found.positions or found.variables != self._found.variables:
            return False
        sets = {old: found.set_of(old) for old in found.variables}
        if any(_kind(sets[old]) != _kind(self._renewed[old].set) for old in sets):
            return False
        for old, each in sets.items():
            if not _same_box(each, self._renewed[old].set):
                self._renewed[old].set = each
        self._found = found
        facts = Facts()
        return all(is_idle(row, facts) for row in self._idle)

    # ---- points

    def has_image(self, x: FloatArray) -> bool:
        return bool(np.array_equal(self.point_back(self.point(x)), x))

    def point(self, x: FloatArray) -> FloatArray:
        """The same point, moved into the sets."""
        u = self._moved(x, back=False)
        for old, new in self._renewed.items():
            if self.after.layout.holds(new):
                stored = x[self.before.layout.slice(old)]
                u[self.after.layout.slice(new)] = make_domain([new]).project(stored)
        return u

    def point_back(self, u: FloatArray) -> FloatArray:
        x = self._moved(u, back=True)
        for old in self.before.variables:
            new = self.renewed(old)
            if not self.after.layout.holds(new):  # it was in rows alone that are bounds
                x[self.before.layout.slice(old)] = make_domain([new]).middle()
        for row, matrix, slack in self._slacks():
            x[slack] = row.slack_of(x[matrix])
        return x

    def tangent_back(self, u: FloatArray, direction: FloatArray) -> FloatArray:
        moved = self._moved(direction, back=True)
        for row, matrix, slack in self._slacks():
            moved[slack] = row.factor * moved[matrix]
        return moved

    def cotangent(self, u: FloatArray, weights: FloatArray) -> FloatArray:
        whole = weights.copy()
        for row, matrix, slack in self._slacks():
            whole[matrix] += row.factor * whole[slack]
        return self._moved(whole, back=False)

    def _slacks(self) -> list[tuple[MatrixRow, slice, slice]]:
        """Rows of eigenvalues, and where the matrix and the slack stand before."""
        place = self.before.layout.slice
        return [(row, place(row.variable), place(row.slack)) for row in self._found.matrices]

    def _moved(self, vector: FloatArray, *, back: bool) -> FloatArray:
        """A vector in the order of the other model; 0 for variables that this one lacks."""
        before, after = self.before.layout, self.after.layout
        result = np.zeros(before.size if back else after.size)
        for old in self.before.variables:
            new = self.renewed(old)
            if after.holds(new):
                places = (before.slice(old), after.slice(new))
                target, source = places if back else places[::-1]
                result[target] = vector[source]
        return result

    # ---- multipliers

    def duals(self, x: FloatArray, duals: Duals) -> Duals:
        rows = tuple(duals.rows[position] for position in self._kept)
        return replace(duals, rows=rows, added=_translated(duals.added, self._new))

    def duals_back(self, u: FloatArray, duals: Duals) -> Duals:
        rows: list[FloatArray | None] = [None] * len(self.before.constraints)
        for position, dual in zip(self._kept, duals.rows, strict=True):
            rows[position] = dual
        if duals.sets is not None:
            slopes = self._moved(duals.sets, back=True)
            for position in self._found.idle:
                rows[position] = np.zeros(self.before.constraints[position].shape)
            for row, own in zip(self._found.rows, self._found.own, strict=True):
                rows[row.position] = self._dual(row, own, slopes)
            for matrix_row, matrix, _ in self._slacks():
                held = matrix_row.slack_slope(slopes[matrix])
                rows[matrix_row.position] = -matrix_row.slack.set.expand(np, held)
        return replace(duals, rows=tuple(rows), added=_translated(duals.added, self._old))

    def _dual(self, row: BoundRow, own: Marks, slopes: FloatArray) -> FloatArray:
        """What a row of its own has to balance of the Lagrangian's slope."""
        start = self.before.layout.slice(row.variable).start
        multipliers = np.zeros(row.places.size)
        held = slopes[start + row.places[own]] * np.where(row.lower[own], 1.0, -1.0)
        multipliers[own] = np.maximum(held, 0.0) / np.abs(row.factors[own])
        return multipliers.reshape(self.before.constraints[row.position].shape)

    def set_duals_back(self, u: FloatArray, sets: FloatArray) -> FloatArray:
        """Those of the variables' own sets: what belongs to rows is subtracted."""
        slopes = self._moved(sets, back=True)
        for row, own in zip(self._found.rows, self._found.own, strict=True):
            start = self.before.layout.slice(row.variable).start
            places = start + row.places[own]
            taken = np.maximum(slopes[places] * np.where(row.lower[own], 1.0, -1.0), 0.0)
            slopes[places] -= np.where(row.lower[own], taken, -taken)
        for matrix_row, matrix, slack in self._slacks():
            slopes[slack] = matrix_row.slack_slope(slopes[matrix])
        for matrix_row, matrix, slack in self._slacks():
            slopes[matrix] -= matrix_row.factor * slopes[slack]
        return slopes

    def bound_origin(self, origin: BoundOrigin) -> Origin | BoundOrigin:
        """The row that a bound of `after` comes from, or the bound of the variable itself."""
        variable = self.original(origin.variable)
        place = int(np.ravel_multi_index(origin.entry, variable.shape)) if origin.entry else 0
        for row, own in zip(self._found.rows, self._found.own, strict=True):
            sides = {"lower": row.lower, "upper": ~row.lower}.get(origin.side, own)
            hits = np.flatnonzero(own & sides & (row.places == place))
            if row.variable is variable and hits.size and origin.side not in WHOLE:
                shape = self.before.constraints[row.position].shape
                entry = tuple(int(i) for i in np.unravel_index(hits[0], shape))
                return Origin(row.position, entry)
        for matrix_row in self._found.matrices if origin.side in WHOLE else ():
            fits = matrix_row.lower == (origin.side == "set")
            if matrix_row.variable is variable and matrix_row.own and fits:
                return Origin(matrix_row.position)
        return replace(origin, variable=variable)

    def contradiction(self) -> tuple[Origin | BoundOrigin, ...]:
        """Two bounds between which an entry has no value, one of them a row; none where all have one."""
        if self._found.contradiction is None:
            return ()
        row, number = self._found.contradiction
        shape = self.before.constraints[row.position].shape
        entry = tuple(int(i) for i in np.unravel_index(number, shape))
        place = tuple(int(i) for i in np.unravel_index(row.places[number], row.variable.shape))
        side = "upper" if row.lower[number] else "lower"
        other = self.bound_origin(BoundOrigin(self.renewed(row.variable), side, place))
        return Origin(row.position, entry), other

    def origin(self, origin: Origin) -> Origin | None:
        return origin._replace(position=self._kept[origin.position])


# ---- the model after it


def _rewritten(model: Model, found: Tightened, new: dict[int, Expression]) -> Model:
    """The model with new variables and without the rows; `new` gets all expressions that change."""
    follow(topological_order([*model.roots, *(model.hidden or ())]), new)
    slacks = {row.slack for row in found.matrices}
    hidden, source = _hidden(model, slacks, new), with_places(model.source, new)
    return exchanged(model, new, set(found.positions), hidden=hidden, source=source)


def _hidden(
    model: Model, slacks: Set[Expression], new: Mapping[int, Expression]
) -> tuple[Expression, ...] | None:
    """The declared coordinates; slacks that are gone are none of them."""
    if not model.hidden:
        return None
    return tuple(new.get(id(each), each) for each in model.hidden if each not in slacks)


def with_places(source: Any, new: Mapping[int, Expression]) -> Any:
    """The text of a model, which also knows the places of expressions that stand for others."""
    if source is None:
        return None
    moved = {new[id(old)]: span for old, span in source.places.items() if id(old) in new}
    return replace(source, places={**source.places, **moved})


def _renewed(variable: Variable, found: Tightened) -> Variable:
    new = Variable(variable.shape, variable.name, start=variable.start)
    new.set = found.set_of(variable)
    new.labels = variable.labels
    return new


def _changed(model: Model, new: Mapping[int, Expression]) -> list[Expression]:
    """The expressions of a model that have another one after it."""
    if not new:
        return []
    nodes = model.nodes_and_hidden
    return [node for node in nodes if id(node) in new]


def _translated(
    added: Mapping[Hashable, FloatArray], names: Mapping[int, Expression]
) -> dict[Hashable, FloatArray]:
    """Multipliers of added rows, whose sources are an expression and a number, by other expressions."""
    return {
        (names.get(id(key[0]), key[0]), *key[1:]) if isinstance(key, tuple) else key: dual
        for key, dual in added.items()
    }


def _kind(values: VariableSet) -> tuple[bool, ...]:
    """What a form rests on besides the numbers."""
    return (
        values.has_logarithm,
        bool((values.lower >= 0).all()),
        bool((values.upper <= 0).all()),
        bool((values.lower == values.upper).any()),
        values.eigenvalue_bounds is not None and values.eigenvalue_bounds[0] > 0,
    )


def _same_box(one: VariableSet, other: VariableSet) -> bool:
    same = np.array_equal(one.lower, other.lower) and np.array_equal(one.upper, other.upper)
    return same and one.eigenvalue_bounds == other.eigenvalue_bounds
