"""The equation of a cost matrix X, as a function of the gain or as an inequality.

The cost of a gain K is often written with the matrix X of the costs to come, in continuous time or in
discrete time

    (A + B K)ᵀ X + X (A + B K) + Q + Kᵀ R K = 0,      (A + B K)ᵀ X (A + B K) − X + Q + Kᵀ R K = 0,

or with the gain of a filter and the covariance of its error. Where no singular X satisfies it by its
weights (`loop_weights`), F = A + B K is stable wherever X ⪰ 0: for F x = λ x the equation says

    2 Re(λ) x* X x = −x* (Q + Kᵀ R K) x ≤ 0    or    (|λ|² − 1) x* X x = −x* (Q + Kᵀ R K) x ≤ 0,

and with 0 the line of x is one that the weights do not see. Then X is `lyap(F.T, Q + K.T @ R @ K)` or
`dlyap(F.T, Q + K.T @ R @ K)`. Where one weighted sum of its entries counts, `adjoint` and `product` do
the rest, also where no K stabilises the plant, which the covariance of `product` shows.

Else the equation becomes an inequality, which is convex (`riccati`). Of all X with ⪯ 0 the solution of
the equation is the least one:

    X  =  ∫ exp(Fᵀt) (Q + Kᵀ R K + S) exp(F t) dt    with the slack S ⪰ 0

grows with S. So it does with noise that is proportional to the state or to the input, which adds terms
(C + D K)ᵀ X (C + D K). So nothing is lost where the objective and the other rows do not decrease as X
grows. The way back is the solution of the equation in both cases; it is linear in X. Bounds from below,
which the least X may violate, are left out, and the point that comes back is tested against them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.polynomials import Sums
from hcmodel.maps.algebra.expanded import Evaluation, Expanded, Row
from hcmodel.maps.algebra.rewriting import Exchange, rewritten
from hcmodel.maps.conditions import Unmet
from hcmodel.maps.map import Map, Obstacle, Points, Step, fresh_name, symbol_sums
from hcmodel.maps.matrix_algebra.growing import grows, row_grows
from hcmodel.maps.matrix_algebra.loop_weights import Weights, weights_of
from hcmodel.maps.matrix_algebra.slacks import slack_of
from hcmodel.maps.matrix_product import partners
from hcmodel.maps.riccati import orientations
from hcmodel.records import dataclass, replace

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]

# A bound on X from below, relative to the weights of the states, that is left to the test of the point.
# With 1e-7 in place of 0 the largest eigenvalue of an X with two states was not certified.
FAR = 1e-3


class CostEquation(Map):
    """`lyap` in place of the X of an equation, or a slack in it; see the module."""

    name = "cost-equation"
    summary = "lyap or dlyap(Fᵀ, Q + Kᵀ R K), or a larger X, in place of the X of this equation"
    literature = "Kleinman 1968; Boyd, El Ghaoui, Feron, Balakrishnan 1994, section 10.1"
    example = """
    # A regulator by the matrix X of its costs to come.
    param A[2,2] = [[0, 1], [1, 0]]
    param B[2,1] = [[0], [1]]
    var X[2,2] symmetric in psd(0)
    var K[1,2]

    let F = A + B @ K

    minimize trace(X)

    subject to
        cost: F.T @ X + X @ F + eye(2) + K.T @ K == 0
    """

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        for matrix in model.variables:
            row = _equation(model, matrix)
            found = None if row is None else _read(model, row, matrix)
            if row is None or found is None:
                continue
            reason = _obstacle(model, row, matrix)
            if reason is not None:
                yield Unmet(self.name, reason)
                continue
            function = _function(model, row, matrix, found)
            if function is not None and not _eigenvalues(matrix, found.weights)[0] > 0:
                yield _Solved(model, row, matrix, function)
            yield _Relaxed(model, row, matrix, found)


def _equation(model: Expanded, matrix: Variable) -> Row | None:
    """The equation of a matrix: linear in it, with weights that vary, and without a slack."""
    if not (matrix.set.is_curved and matrix.set.is_symmetric):
        return None
    own = model.symbols.of_variable(matrix)
    equalities = [row for row in model.rows if row.sense == "==" and row.sums.holding(own).any()]
    rows = [row for row in equalities if slack_of(model, row) is None]
    if len(rows) != 1 or rows[0].sums.shape != matrix.shape or rows[0].congruence is not None:
        return None
    sums = rows[0].sums
    among = sums.among(np.ravel(own) + 1).sum(axis=1)
    varying = (among == 1) & (sums.degrees > 1)
    if among.max() > 1 or not varying.any() or not np.trace(sums.value):
        return None
    return rows[0]


@dataclass(frozen=True, eq=False)
class _Read:
    """The weights of an equation, the gain in it as a matrix of symbols, and the sign of the row."""

    weights: Weights
    gain: Numbers
    sign: float


def _read(model: Expanded, row: Row, matrix: Variable) -> _Read | None:
    """What an equation is made of; None where it is not one of this kind."""
    symbols, sign = model.symbols, float(np.sign(np.trace(row.sums.value)))
    inner, sums = symbols.of_variable(matrix), row.sums.scaled(sign)
    for gain in partners(model, matrix):
        for own, _ in orientations(gain, symbols.of_variable(gain), matrix.shape[0]):
            weights = weights_of(sums, inner, own, symbols.count)
            if weights is not None and weights.is_convex() and not weights.disturbance.any():
                return _Read(weights, own, sign)
    return None


def _function(model: Expanded, row: Row, matrix: Variable, found: _Read) -> Numbers | None:
    """The symbols of X as a function of the gain; None where more counts than the objective."""
    sums, weights = row.sums.scaled(found.sign), found.weights
    coding, inner = sums.coding, model.symbols.of_variable(matrix)
    elsewhere = any(each.sums.holding(inner).any() for each in model.rows if each is not row)
    bounded = (matrix.eigenvalue_bounds or (0.0, np.inf))[1] < np.inf
    if elsewhere or bounded or weights.noise or not weights.keeps_definite():
        return None
    drift, entering, name, scale = weights.drift, weights.input, "lyap", 1.0
    if weights.step.any() or weights.step_input.any():
        rate = weights.decay()
        if rate is None or weights.input.any():
            return None
        scale, name = 1.0 / rate, "dlyap"
        drift, entering = (np.sqrt(scale) * each for each in (weights.step, weights.step_input))
    gain = Sums.symbols(found.gain, coding)
    closed = Sums.constant(drift, coding) + Sums.constant(entering, coding) @ gain
    arguments = (closed.transposed(), sums.chosen(~sums.holding(inner)).scaled(scale))
    return model.symbols.of_function(ATOMS[name], {}, arguments, matrix.shape)


def _obstacle(model: Expanded, row: Row, matrix: Variable) -> str | None:
    """What may get better as the matrix grows; None where nothing does."""
    others = (each for each in model.rows if each is not row)
    growing = grows(model.symbols, model.objective, matrix)
    if not growing or not all(row_grows(model, each, matrix) for each in others):
        return f"the objective or a row may get better as {matrix.name} grows"
    return None


def _eigenvalues(matrix: Variable, weights: Weights) -> tuple[float, float]:
    """The bounds of X where it satisfies the inequality.

    One from below is far from X where it is small beside the weights and the plant, as one that only says
    that X is definite. X is so without it, and the inverse has no large bound from above then.
    """
    low, high = matrix.eigenvalue_bounds or (0.0, np.inf)
    plant = max(float(np.linalg.norm(each)) for each in (weights.drift, weights.step))
    if weights.keeps_definite() and low * max(plant, 1.0) <= FAR * weights.least_weight():
        low = 0.0
    return low, high


class _Equation(Step):
    """A matrix that solves the equation of a row."""

    name = "cost-equation"

    def __init__(self, row: Row, matrix: Variable, numbers: Numbers) -> None:
        self._row, self._numbers = row.sums, numbers
        self.gone = (matrix,)
        low = (matrix.eigenvalue_bounds or (0.0, np.inf))[0]
        self.released = (matrix.name,) if matrix.has_bounds or low > 0 else ()

    def back(self, point: Points) -> None:
        """The solution for the values of the other variables."""
        sums, own = self._row, np.unique(self._numbers)
        marks = sums.among(own + 1)
        inside = np.asarray(marks.any(axis=1))
        count = int(inside.sum())
        keys = sums.coding.keys(np.where(marks, 0, sums.digits)[inside])
        beside = Sums((count,), np.arange(count), keys, sums.weight[inside], sums.coding)
        evaluation = Evaluation(self.after.symbols, point)
        system = np.zeros((sums.size, own.size))
        place = np.searchsorted(own, sums.digits[inside][marks[inside]] - 1)
        np.add.at(system, (sums.entry[inside], place), evaluation.of(beside))
        right = -evaluation.of(sums.chosen(~inside)).reshape(-1)
        upper = np.flatnonzero(np.triu(np.ones(sums.shape)).reshape(-1))
        try:
            found = np.linalg.solve(system[upper], right[upper])
        except np.linalg.LinAlgError:  # the closed loop has opposite eigenvalues
            found = np.full(own.size, np.nan)
        values = np.asarray(found, dtype=float)
        point[self.gone[0]] = values[np.searchsorted(own, self._numbers)]


class _Solved(_Equation):
    """The matrix is a function of the gain."""

    new = ()
    choice = "function"
    first = True  # the inequality loses digits where costs differ by many orders of magnitude

    def __init__(self, model: Expanded, row: Row, matrix: Variable, function: Numbers) -> None:
        symbols = model.symbols
        numbers = symbols.of_variable(matrix)
        super().__init__(row, matrix, numbers)
        whole = symbol_sums(symbols, function)
        even = (whole + whole.transposed()).scaled(0.5)
        upper = np.triu_indices(len(numbers))
        entries = even.taken(np.ravel_multi_index(upper, numbers.shape), upper[0].shape).entries()
        changes = dict(zip(numbers[upper].tolist(), entries, strict=True))
        kept = replace(model, rows=tuple(each for each in model.rows if each is not row))
        self.after = rewritten(kept, Exchange(symbols, changes), gone=self.gone, new=())

    def forward(self, point: Points) -> None:
        """Nothing is new."""

    def settle(self, point: Points) -> None:
        self.back(point)


class _Relaxed(_Equation):
    """A matrix that satisfies the inequality, and its slack, in place of the least one."""

    choice = "inequality"

    def __init__(self, model: Expanded, row: Row, matrix: Variable, found: _Read) -> None:
        symbols = model.symbols
        numbers = symbols.of_variable(matrix)
        super().__init__(row, matrix, numbers)
        bound = Variable(matrix.shape, matrix.name, PSD=_eigenvalues(matrix, found.weights))
        slack = Variable(matrix.shape, fresh_name(model, f"slack·{matrix.name}"), PSD=True)
        added = row.sums + symbol_sums(symbols, symbols.of_variable(slack)).scaled(found.sign)
        rows = tuple(replace(each, sums=added) if each is row else each for each in model.rows)
        exchange = Exchange.of(symbols, np.unique(numbers), np.unique(symbols.of_variable(bound)))
        self.new = (bound, slack)
        self.texts = {bound: matrix.name}
        self.after = rewritten(replace(model, rows=rows), exchange, gone=self.gone, new=self.new)

    def forward(self, point: Points) -> None:
        point[self.new[0]] = np.array(point[self.gone[0]], dtype=float)
        point[self.new[1]] = np.zeros(self.new[1].shape)
