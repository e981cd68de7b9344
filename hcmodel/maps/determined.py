"""Variables that a linear system determines, as functions of the others.

The values of a policy are often written as unknowns with Bellman's equations as rows,

    V[s] = Σ_a π[s,a] (r[s,a] + γ Σ_t P[s,a,t] V[t]),   that is   N(π) V = r(π)

Where every row of N has a positive diagonal that outweighs the rest of the row, whatever the policy, N
has an inverse and V is `solve(N, r)`. The same with columns holds for visits, d = μ + γ P(π)ᵀ d, that
are not declared to be nonnegative. The rows are satisfied by that alone and leave the model; `adjoint`
and `occupancy` do the rest. A variable with bounds is left alone: these would be rows of the solution.

Affine equalities with as many rows as unknowns have one solution, numbers, as the traffic equations
λ = γ + Rᵀ λ of a network of queues do. These take the place of the unknowns where they lie in their sets,
and where the condition of the system leaves them exact to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.polynomials import ONE, Sums, stacked
from hcmodel.maps.algebra.expanded import Evaluation, Expanded, Row
from hcmodel.maps.algebra.ranges import is_affine
from hcmodel.maps.algebra.replacing import Replacing
from hcmodel.maps.algebra.rewriting import Exchange, applied, rewritten
from hcmodel.maps.map import Map, Obstacle, Points, Step, symbol_sums
from hcmodel.maps.occupancy import columns_by_action
from hcmodel.records import dataclass, replace
from hcmodel.solvers.numerics import DATA_ROUNDING, SUM_ROUNDING

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]

# Unknowns of a system of numbers: its condition takes half a second for this many.
MOST_UNKNOWNS = 1_000


class Determined(Map):
    """V = solve(N, r) for a variable with the rows N V = r; see the module."""

    name = "determined"
    summary = "solve(N, r) in place of a variable V with the rows N V = r"
    literature = "Puterman 1994, chapter 6"
    example = "bellman.hc"
    large = True

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        numbers = _solved(model)
        if numbers is not None:
            yield numbers
        policies = [each for each in model.variables if each.set.is_distribution and each.size]
        found = [_system(model, each) for each in model.variables if policies]
        systems = [
            each
            for each in found
            if each is not None and any(_invertible(model, each.matrix, pi) for pi in policies)
        ]
        if systems:
            yield _substituted(model, systems)


@dataclass(frozen=True, eq=False)
class _System:
    """A variable and the rows that determine it: matrix @ variable == right."""

    variable: Variable
    rows: list[Row]
    matrix: Sums
    right: Sums


def _system(model: Expanded, values: Variable) -> _System | None:
    """N and r of the rows N V − r = 0, the row with the entry V[s] on the diagonal as row s."""
    coding, size = model.symbols.coding, values.size
    if (
        values.has_bounds
        or values.set.is_symmetric
        or not size
        or not (rows := model.equations_of(values))
    ):
        return None
    sums = stacked([row.sums for row in rows], coding)
    own = model.symbols.of_variable(values).reshape(-1)
    digits = sums.digits
    inside = (digits > own[0]) & (digits <= own[-1] + 1)
    count = inside.sum(axis=1)
    if (count > 1).any():
        return None
    hit = count == 1
    column = digits[hit][inside[hit]] - 1 - own[0]
    key = coding.keys(np.where(inside[hit], 0, digits[hit]))
    weights = np.zeros((size, size))
    plain = key == 0
    np.add.at(weights, (sums.entry[hit][plain], column[plain]), sums.weight[hit][plain])
    diagonal = np.abs(weights).argmax(axis=1)
    scale = weights[np.arange(size), diagonal]
    if np.unique(diagonal).size < size or not scale.all():
        return None
    # rows may be multiplied by numbers, which the columns of N would not outweigh
    place, units = diagonal[sums.entry], 1.0 / scale[sums.entry]
    matrix = Sums.merged(
        (size, size), place[hit] * size + column, key, (sums.weight * units)[hit], coding
    )
    rest = Sums.merged((size,), place[~hit], sums.key[~hit], -(sums.weight * units)[~hit], coding)
    return _System(values, rows, matrix, rest)


def _invertible(model: Expanded, matrix: Sums, policy: Variable) -> bool:
    """Whether all rows, or all columns, have a diagonal that outweighs the rest, for every policy."""
    places = np.arange(matrix.shape[0])
    for each in (matrix.transposed(), matrix):
        columns = columns_by_action(model, each, policy)
        if columns is not None:
            diagonal = columns[places, places]
            others = np.abs(columns).sum(axis=0) - np.abs(diagonal)
            if (diagonal - others > DATA_ROUNDING * np.abs(diagonal)).all():
                return True
    return False


def _substituted(model: Expanded, systems: list[_System]) -> Step | Obstacle:
    symbols, changes, taken = model.symbols, dict[int, Sums](), list[Row]()
    functions = []
    for each in systems:
        arguments, shape = (each.matrix, each.right), (each.variable.size,)
        functions.append(symbols.of_function(ATOMS["solve"], {}, arguments, shape))
        own = symbols.of_variable(each.variable).reshape(-1)
        new = symbol_sums(symbols, functions[-1])
        changes |= dict(zip(own.tolist(), new.entries(), strict=True))
        taken += each.rows
    rewriting = Exchange(symbols, changes)
    kept = tuple(row for row in model.rows if row not in taken)
    rest = Expanded(symbols, model.objective, kept, model.variables, closed=model.closed)
    gone = tuple(each.variable for each in systems)
    after = applied(rest, rewriting, gone=gone, new=[])
    if isinstance(after, np.ndarray):
        return Obstacle("determined", f"{gone[0].name} stands inside of its own equation")
    return _Values(gone, functions, after)


class _Values(Step):
    """The variable is the function evaluated."""

    name = "determined"

    def __init__(
        self, gone: tuple[Variable, ...], functions: list[Numbers], after: Expanded
    ) -> None:
        self.gone = gone
        self.new = ()
        self.after = after
        self._functions = functions

    def forward(self, point: Points) -> None:
        """Nothing is new."""

    def settle(self, point: Points) -> None:
        self.back(point)

    def back(self, point: Points) -> None:
        for variable, numbers in zip(self.gone, self._functions, strict=True):
            evaluation = Evaluation(self.after.symbols, point)
            values = evaluation.of(symbol_sums(self.after.symbols, numbers))
            point[variable] = values.reshape(variable.shape)


# ---- systems of numbers


def has_numbers(model: Expanded) -> bool:
    """Whether affine equalities determine variables to be numbers."""
    return _solved(model) is not None


def _solved(model: Expanded) -> Step | None:
    """The model with numbers for the variables that affine equalities determine."""
    rows = [
        row
        for row in model.rows
        if row.sense == "==" and row.entries is None and is_affine(model, row.sums)
    ]
    if not rows:
        return None
    coding = model.symbols.coding
    sums = stacked([row.sums for row in rows], coding)
    used = sums.symbols_used()
    moving = sums.key != ONE
    cells = sums.entry[moving], np.searchsorted(used, sums.key[moving] - 1)
    matrix = csr_array((sums.weight[moving], cells), shape=(sums.size, used.size))
    values: dict[int, float] = {}
    taken = np.zeros(sums.size, dtype=bool)
    parts = list(_components(matrix))
    if all(columns.size == 1 for _, columns in parts):
        return None  # rows that say a value themselves are known without a map
    for own, columns in parts:
        found = _numbers(matrix[own][:, columns].toarray(), -sums.value[own])
        if found is not None:
            values |= dict(zip(used[columns].tolist(), found.tolist(), strict=True))
            taken[own] = True
    whole = [each for each in model.variables if _is_inside(model, each, values)]
    known = {int(s) for each in whole for s in np.ravel(model.symbols.of_variable(each))}
    if not known or set(values) != known:
        return None  # else a part of a variable would be left
    starts = np.cumsum([0, *(row.sums.size for row in rows)])
    gone = [row for row, i, j in zip(rows, starts, starts[1:], strict=False) if taken[i:j].all()]
    if sum(row.sums.size for row in gone) < taken.sum():
        return None
    return _Numbers.of(model, whole, values, gone)


def _components(matrix: csr_array) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """The rows and columns of the square parts of a system that share nothing with others."""
    rows, columns = matrix.shape
    links = matrix.tocoo()
    graph = coo_array(
        (np.ones(links.nnz), (links.row, rows + links.col)), shape=(rows + columns,) * 2
    )
    _, part = scipy.sparse.csgraph.connected_components(graph, directed=False)
    for each in np.unique(part[rows:]):
        own, inside = np.flatnonzero(part[:rows] == each), np.flatnonzero(part[rows:] == each)
        if own.size == inside.size <= MOST_UNKNOWNS:
            yield own, inside


def _numbers(matrix: FloatArray, right: FloatArray) -> FloatArray | None:
    """The solution of a system that is well conditioned; rounding is DATA_ROUNDING then."""
    if not np.linalg.cond(matrix) * SUM_ROUNDING <= DATA_ROUNDING:
        return None
    return np.asarray(np.linalg.solve(matrix, right))


def _is_inside(model: Expanded, variable: Variable, values: Mapping[int, float]) -> bool:
    """Whether a box has numbers for all entries, within its bounds."""
    own = np.ravel(model.symbols.of_variable(variable)).tolist()
    if not variable.set.is_box or not own or not all(each in values for each in own):
        return False
    found = np.array([values[each] for each in own]).reshape(variable.shape)
    if variable.pos and (found <= 0).any():
        return False
    return bool(((found >= variable.lower) & (found <= variable.upper)).all())


class _Numbers(Step):
    """Numbers in place of variables."""

    name = "determined"
    new = ()

    def __init__(self, values: Mapping[Variable, FloatArray], after: Expanded) -> None:
        self.gone, self.after, self._values = tuple(values), after, values

    @staticmethod
    def of(
        model: Expanded, gone: list[Variable], values: Mapping[int, float], taken: list[Row]
    ) -> _Numbers:
        symbols = model.symbols
        changes = {each: Sums.constant(value, symbols.coding) for each, value in values.items()}
        rows = tuple(row for row in model.rows if row not in taken)
        rest = replace(model, rows=rows, is_original=False, written=None)
        arrays = {
            each: np.array([values[int(s)] for s in np.ravel(symbols.of_variable(each))])
            for each in gone
        }
        after = rewritten(rest, Replacing(symbols, changes), gone=gone, new=[])
        return _Numbers({v: each.reshape(v.shape) for v, each in arrays.items()}, after)

    def forward(self, point: Points) -> None:
        """Nothing is new."""

    def settle(self, point: Points) -> None:
        self.back(point)

    def back(self, point: Points) -> None:
        point.update(self._values)

    def tangent_back(self, point: Points, moves: Points) -> None:
        moves.update({each: np.zeros(each.shape) for each in self.gone})
