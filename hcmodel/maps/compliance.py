"""The compliance of a structure: t ≥ fᵀ K(a)⁻¹ f in place of displacements u with K(a) u = f.

A truss with bars of areas a has the stiffness K(a) = Σ a_k K_k with K_k ⪰ 0, and loads f displace its
nodes by the u that solves K(a) u = f, products of unknowns. What matters of u is the work fᵀ u of the
loads, which is the energy uᵀ K(a) u too. It is fᵀ K(a)⁻¹ f, a convex function of a:

    fᵀ u <= t    where    [[K(a), f], [fᵀ, t]] ⪰ 0

In the same way a network of conductances a has potentials u, and f feeds it with currents. Every point
of the model has an image, also where K(a) is singular, as that of a truss with loose nodes. The way back
is a solution of K(a) u = f. Nothing is lost by the inequality where objective and rows do not decrease
as t grows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.facts.polynomials import ONE, Sums, placed, stacked
from hcmodel.facts.symbols import Symbols
from hcmodel.maps.algebra.expanded import Evaluation, Expanded, Row
from hcmodel.maps.map import Map, Obstacle, Points, Step, fresh_name, symbol_sums
from hcmodel.records import dataclass, replace
from hcmodel.solvers.algebra.definite import is_definite, is_semidefinite
from hcmodel.solvers.algebra.symmetric import upper_entries
from hcmodel.solvers.numerics import DATA_ROUNDING, SUM_ROUNDING

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]


class Compliance(Map):
    """fᵀ u for the u of K(a) u = f; see the module."""

    name = "compliance"
    summary = "t ≥ fᵀ K⁻¹ f for displacements u with K(a) u = f and K(a) ⪰ 0; back: u = K⁻¹ f"
    literature = "Vandenberghe, Boyd 1996, section 2; Ben-Tal, Nemirovski 1997"
    example = "truss.hc"
    large = True

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        for variable in model.variables:
            if variable.has_bounds or not variable.set.is_box or not variable.size:
                continue
            rows = model.equations_of(variable)
            systems = _systems(model, variable, rows) if rows else []
            if systems:
                yield _substituted(model, variable, rows, systems)


@dataclass(frozen=True, eq=False)
class _System:
    """matrix @ u[places] == right, with a matrix that is semidefinite at all points of the model."""

    places: Numbers
    matrix: Sums
    right: FloatArray


def _systems(model: Expanded, variable: Variable, rows: Sequence[Row]) -> list[_System]:
    """The rows as systems with semidefinite matrices, each of its own entries; [] where they are not."""
    coding, size = model.symbols.coding, variable.size
    sums = stacked([row.sums for row in rows], coding)
    own = model.symbols.of_variable(variable).reshape(-1)
    digits = sums.digits
    inside = (digits > own[0]) & (digits <= own[-1] + 1)
    count = inside.sum(axis=1)
    hit = count == 1
    if (count > 1).any() or (sums.key[~hit] != ONE).any():
        return []
    column = digits[hit][inside[hit]] - 1 - own[0]
    keys = coding.keys(np.where(inside[hit], 0, digits[hit]))
    entry, weight = sums.entry[hit], sums.weight[hit]
    diagonal = np.bincount(entry[entry == column], weights=weight[entry == column], minlength=size)
    if not diagonal.all():
        return []
    signs = np.sign(diagonal)
    matrix = Sums.merged((size, size), entry * size + column, keys, weight * signs[entry], coding)
    if not _is_semidefinite(model, matrix):
        return []
    right = np.zeros(size)
    right[sums.entry[~hit]] = -sums.weight[~hit] * signs[sums.entry[~hit]]
    graph = scipy.sparse.coo_array((np.ones(entry.size), (entry, column)), shape=(size, size))
    parts, label = scipy.sparse.csgraph.connected_components(graph, directed=False)
    numbers = np.arange(size * size).reshape(size, size)
    found = []
    for part in range(parts):
        places = np.flatnonzero(label == part)
        block = matrix.taken(numbers[np.ix_(places, places)].reshape(-1), (places.size,) * 2)
        found.append(_System(places, block, right[places]))
    return found


def _is_semidefinite(model: Expanded, matrix: Sums) -> bool:
    """Whether it is a sum of semidefinite matrices, each times something that is not negative."""
    size = matrix.shape[0]
    keys, which = np.unique(matrix.key, return_inverse=True)
    if (_terms(model.symbols, matrix)[0] < 0).any():
        return False
    for place in range(keys.size):
        own = which == place
        row, column = np.divmod(matrix.entry[own], size)
        used = np.unique([row, column])
        part = np.zeros((used.size, used.size))
        part[np.searchsorted(used, row), np.searchsorted(used, column)] = matrix.weight[own]
        largest = np.abs(part).max()
        if np.abs(part - part.T).max() > DATA_ROUNDING * largest:
            return False
        if not is_semidefinite((part + part.T) / 2):
            return False
    return True


@dataclass(frozen=True, eq=False)
class _Work:
    """fᵀ u and uᵀ K u, the level t in their place, and the matrix [[K, f], [fᵀ, t]] with its variable."""

    work: Sums
    energy: Sums
    level: Sums
    variable: Variable
    matrix: Sums
    block: Variable

    def row(self, symbols: Symbols) -> Row:
        """That the variable is the matrix."""
        inner = symbol_sums(symbols, symbols.of_variable(self.block))
        return Row(self.matrix - inner, "==", None, entries=upper_entries(self.block.shape[0]))


def _is_definite(symbols: Symbols, matrix: Sums) -> bool:
    """Whether such a matrix is definite at the lower bounds of what its parts are multiplied by."""
    least = _terms(symbols, matrix)[0][np.unique(matrix.key, return_inverse=True)[1]]
    dense = np.bincount(matrix.entry, weights=matrix.weight * least, minlength=matrix.size)
    return is_definite(np.asarray(dense.reshape(matrix.shape), dtype=float))


def _terms(symbols: Symbols, matrix: Sums) -> tuple[FloatArray, FloatArray]:
    """The ranges of the products of symbols in a matrix, by their order."""
    keys = np.unique(matrix.key)
    terms = Sums.merged(keys.shape, np.arange(keys.size), keys, np.ones(keys.size), matrix.coding)
    return symbols.interval(terms)


def _substituted(
    model: Expanded, variable: Variable, rows: Sequence[Row], systems: Sequence[_System]
) -> Step | Obstacle:
    own = model.symbols.of_variable(variable).reshape(-1)
    inside = (each for function in model.functions() for each in function.arguments)
    if any(each.holding(own).any() for each in inside):
        return Obstacle("compliance", f"{variable.name} stands inside of a function")
    works = [_work(model, own, each) for each in systems if each.right.any()]
    objective = _levelled(model.objective, own, works, "<=")
    kept = [row for row in model.rows if not any(row is each for each in rows)]
    changed = []
    for row in kept:
        sums = _levelled(row.sums, own, works, row.sense)
        if sums is not None:
            changed.append(replace(row, sums=sums))
    if objective is None or len(changed) < len(kept):
        return Obstacle("compliance", f"{variable.name} stands outside of the work of the loads")
    others = [each for each in model.variables if each is not variable]
    new = [*(each.variable for each in works), *(each.block for each in works)]
    more = [each.row(model.symbols) for each in works]
    after = Expanded(
        model.symbols, objective, (*changed, *more), (*others, *new), closed=model.closed
    )
    return _Compliance(variable, systems, works, after)


def _work(model: Expanded, own: Numbers, system: _System) -> _Work:
    symbols, coding, size = model.symbols, model.symbols.coding, system.places.size
    u = Sums.symbols(own[system.places], coding).reshaped((size, 1))
    side = Sums.constant(system.right, coding)
    level = Variable((), name=fresh_name(model, "t"))
    t = symbol_sums(symbols, symbols.of_variable(level))
    block = Variable((size + 1, size + 1), name=fresh_name(model, "block"), PSD=True)
    symbols.of_variable(block)
    numbers = np.arange((size + 1) ** 2).reshape(size + 1, size + 1)
    parts = [
        (system.matrix, numbers[:size, :size]),
        (side, numbers[:size, size]),
        (side, numbers[size, :size]),
        (t, numbers[size:, size:]),
    ]
    matrix = placed(parts, numbers.shape, coding)
    work, energy = (side @ u).reshaped(()), (u.T @ system.matrix @ u).reshaped(())
    return _Work(work, energy, t, level, matrix, block)


def _levelled(sums: Sums, own: Numbers, works: Sequence[_Work], sense: str) -> Sums | None:
    """The sums with levels for positive multiples of work or energy; None where anything else is left."""
    if not sums.holding(own).any():
        return sums
    if sense != "<=":
        return None
    parts = []
    for each in sums.entries():
        rest = each
        for work in works:
            for form in (work.work, work.energy):
                scale = rest.chosen(np.isin(rest.key, form.key)).multiple_of(form)
                if scale is not None and scale > 0:
                    rest = rest - form.scaled(scale) + work.level.scaled(scale)
        parts.append(rest)
    found = stacked(parts, sums.coding).reshaped(sums.shape)
    return None if found.holding(own).any() else found


class _Compliance(Step):
    """Displacements in place of the work of the loads."""

    name = "compliance"

    def __init__(
        self,
        variable: Variable,
        systems: Sequence[_System],
        works: Sequence[_Work],
        after: Expanded,
    ) -> None:
        self.gone = (variable,)
        self.new = (*(each.variable for each in works), *(each.block for each in works))
        self.after = after
        # else nodes may be loose, and move as they like
        self.injective = all(_is_definite(after.symbols, each.matrix) for each in systems)
        self._systems, self._works = systems, works
        numbers = [""] if len(works) == 1 else [f", {place + 1}" for place in range(len(works))]
        self.texts = {
            each.variable: f"work({variable.name}{number})"
            for each, number in zip(works, numbers, strict=True)
        }

    def forward(self, point: Points) -> None:
        evaluation = Evaluation(self.after.symbols, point)
        for each in self._works:
            point[each.variable] = np.asarray(evaluation.of(each.work))
        evaluation = Evaluation(self.after.symbols, point)
        for each in self._works:
            point[each.block] = evaluation.of(each.matrix)

    def settle(self, point: Points) -> None:
        self.back(point)

    def back(self, point: Points) -> None:
        evaluation = Evaluation(self.after.symbols, point)
        variable = self.gone[0]
        values = np.zeros(variable.size)
        for each in self._systems:
            matrix = evaluation.of(each.matrix)
            with np.errstate(all="ignore"):
                finite = bool(np.isfinite(matrix).all())
            values[each.places] = (
                np.linalg.lstsq(matrix, each.right, rcond=SUM_ROUNDING)[0] if finite else np.nan
            )
        point[variable] = values.reshape(variable.shape)
