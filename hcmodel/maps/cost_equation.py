"""The equation of a cost matrix X, as an inequality.

The cost of a gain K is often written with the matrix X of the costs to come, in continuous time or in
discrete time

    (A + B K)ᵀ X + X (A + B K) + Q + Kᵀ R K = 0,      (A + B K)ᵀ X (A + B K) − X + Q + Kᵀ R K = 0,

or with the gain of a filter and the covariance of its error. Equations have to be linear in the hidden
coordinates, and this one is not; but ⪯ 0 is convex (`riccati`). Of all X with ⪯ 0 the solution of the
equation is the least one: where X ⪰ 0 and the weights are definite, the closed loop F is stable, and

    X  =  ∫ exp(Fᵀt) (Q + Kᵀ R K + S) exp(F t) dt    with the slack S ⪰ 0

grows with S. So nothing is lost where the objective and the other rows do not decrease as X grows. The
row gets a slack, and the way back is the solution of the equation, which is linear in X.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.facts.polynomials import Sums
from hcmodel.maps.expanded import Evaluation, Expanded, Row
from hcmodel.maps.map import Map, Obstacle, Points, Step, fresh_name, symbol_sums
from hcmodel.maps.matrix_inequalities import slack_of
from hcmodel.maps.rewriting import Exchange, rewritten
from hcmodel.solvers.numerics import DATA_ROUNDING

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]


class CostEquation(Map):
    """… + S = 0 with S ⪰ 0 in place of an equation for X; see the module."""

    name = "cost-equation"
    summary = "an inequality in place of an equation for a cost matrix X; back: X solves it"
    literature = "Boyd, El Ghaoui, Feron, Balakrishnan 1994, section 10.1"

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        for matrix in model.variables:
            if matrix.set.is_curved and matrix.set.is_symmetric:
                row = _equation(model, matrix)
                if row is not None:
                    reason = _obstacle(model, row, matrix)
                    yield (
                        _Relaxed(model, row, matrix)
                        if reason is None
                        else Obstacle(self.name, reason)
                    )


def _equation(model: Expanded, matrix: Variable) -> Row | None:
    """The equation of a matrix: linear in it, with weights that vary, and without a slack."""
    own = model.symbols.of_variable(matrix)
    rows = [row for row in model.rows if row.sense == "==" and row.sums.holding(own).any()]
    if len(rows) != 1 or rows[0].sums.shape != matrix.shape or rows[0].congruence is not None:
        return None
    sums = rows[0].sums
    among = sums.among(np.ravel(own) + 1).sum(axis=1)
    varying = (among == 1) & (sums.degrees > 1)
    if among.max() > 1 or not varying.any() or not np.trace(sums.value):
        return None
    return rows[0] if slack_of(model, rows[0]) is None else None


def _obstacle(model: Expanded, row: Row, matrix: Variable) -> str | None:
    """What may get better as the matrix grows; None where nothing does."""
    if matrix.has_bounds or (matrix.eigenvalue_bounds or (0.0, np.inf))[0] > 0:
        return f"{matrix.name} is bounded from below, which the least solution may not satisfy"
    own = model.symbols.of_variable(matrix)
    arrays = [model.objective, *(each.sums for each in model.rows if each is not row)]
    if not all(_grows(sums, own) for sums in arrays):
        return f"the objective or a row may get better as {matrix.name} grows"
    if any(sums.holding(own).any() for each in model.functions() for sums in each.arguments):
        return f"{matrix.name} stands inside of a function"
    return None


def _grows(sums: Sums, own: Numbers) -> bool:
    """Whether entries are linear in the matrix, with semidefinite weights."""
    holding = sums.holding(own)
    if not holding.any():
        return True
    if (sums.degrees[holding] > 1).any():
        return False
    weights = np.zeros((sums.size, int(own.max()) + 1))
    np.add.at(weights, (sums.entry[holding], sums.digits[holding, 0] - 1), sums.weight[holding])
    halves = np.where(np.eye(len(own), dtype=bool), 1.0, 0.5)
    values = np.linalg.eigvalsh(weights[:, own] * halves)
    return bool((values.min(axis=1) >= -DATA_ROUNDING * np.abs(values).max(axis=1)).all())


class _Relaxed(Step):
    """The least matrix in place of one that satisfies the inequality, and its slack."""

    name = "cost-equation"

    def __init__(self, model: Expanded, row: Row, matrix: Variable) -> None:
        symbols = model.symbols
        bound = Variable(matrix.shape, matrix.name, PSD=matrix.eigenvalue_bounds or True)
        slack = Variable(matrix.shape, fresh_name(model, f"slack·{matrix.name}"), PSD=True)
        sign = float(np.sign(np.trace(row.sums.value)))
        added = row.sums + symbol_sums(symbols, symbols.of_variable(slack)).scaled(sign)
        rows = tuple(replace(each, sums=added) if each is row else each for each in model.rows)
        self._row, self._old = row.sums, symbols.of_variable(matrix)
        exchange = Exchange.of(symbols, np.unique(self._old), np.unique(symbols.of_variable(bound)))
        self.gone, self.new = (matrix,), (bound, slack)
        self.texts = {bound: matrix.name}
        self.after = rewritten(replace(model, rows=rows), exchange, gone=self.gone, new=self.new)

    def forward(self, point: Points) -> None:
        point[self.new[0]] = np.array(point[self.gone[0]], dtype=float)
        point[self.new[1]] = np.zeros(self.new[1].shape)

    def back(self, point: Points) -> None:
        """The solution of the equation for the values of the other variables."""
        own = np.unique(self._old)
        sums = self._row
        marks = sums.among(own + 1)
        inside = np.asarray(marks.any(axis=1))
        rest = Sums(
            (int(inside.sum()),),
            np.arange(int(inside.sum())),
            sums.coding.keys(np.where(marks, 0, sums.digits)[inside]),
            sums.weight[inside],
            sums.coding,
        )
        evaluation = Evaluation(self.after.symbols, point)
        system = np.zeros((sums.size, own.size))
        place = np.searchsorted(own, sums.digits[inside][marks[inside]] - 1)
        np.add.at(system, (sums.entry[inside], place), evaluation.of(rest))
        right = -evaluation.of(sums.chosen(~inside)).reshape(-1)
        upper = np.flatnonzero(np.triu(np.ones(sums.shape)).reshape(-1))
        try:
            found = np.linalg.solve(system[upper], right[upper])
        except np.linalg.LinAlgError:  # the closed loop has opposite eigenvalues
            found = np.full(own.size, np.nan)
        point[self.gone[0]] = np.asarray(found, dtype=float)[np.searchsorted(own, self._old)]
