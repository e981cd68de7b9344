"""A matrix that a row says to be the inverse of another one: inv(S) in the place of T with T S == I.

A precision T and a covariance S are often both unknown, with the row T @ S == I, in either order and
times a number. Its entries are products of unknowns, so that it is convex in no coordinates of T and S.
It has one solution for each S, and none where S is singular. With inv(S) in the place of T the row holds,
and leaves the model; `inverse` does the rest. T may be symmetric or semidefinite, as the inverse of a
semidefinite S is. Bounds of T would be rows of the inverse: such a T is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.polynomials import ONE, Sums
from hcmodel.maps.algebra.expanded import Evaluation, Expanded, Row
from hcmodel.maps.algebra.replacing import Replacing
from hcmodel.maps.algebra.rewriting import rewritten
from hcmodel.maps.map import Map, Obstacle, Points, Step, symbol_sums
from hcmodel.records import replace
from hcmodel.solvers.numerics import DATA_ROUNDING


class InversePairs(Map):
    """inv(S) in the place of T with T S == I; see the module."""

    name = "inverse-pairs"
    summary = "inv(S) in place of a variable T with the row T S == I"
    literature = "Boyd, Vandenberghe 2004, section 7.1.1"
    example = """
    # The most likely covariance C and precision T of samples with the second moments S.
    param S[2,2] = [[2, 1], [1, 3]]
    var C[2,2] symmetric in psd(0.01, 100)
    var T[2,2] symmetric

    minimize logdet(C) + trace(S @ T)

    subject to
        inverse: T @ C == eye(2)
    """

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        if not any(each.set.is_curved for each in model.variables):
            return
        for row in model.rows:
            for gone, kept, scale in _pairs(model, row):
                yield _InversePair(model, row, gone, kept, scale)


def _pairs(model: Expanded, row: Row) -> Iterator[tuple[Variable, Variable, float]]:
    """T, S and c of a row T S == c I, for each that can be T."""
    sums, shape = row.sums, row.sums.shape
    plain = row.factor is None and row.congruence is None and row.image is None
    if row.sense != "==" or not plain or len(shape) != 2 or shape[0] != shape[1]:
        return
    if not sums.key.size or not set(sums.degrees.tolist()) <= {0, 2}:
        return
    order = shape[0]
    used = [source for source, _, _ in model.symbols.grouped(sums.symbols_used())]
    variables = [each for each in used if isinstance(each, Variable) and each.shape == shape]
    if len(variables) != 2 or len(used) != 2:
        return
    moving, number = sums.chosen(sums.key != ONE), sums.value
    weight, scale = float(moving.weight[0]), float(number[0, 0])
    if not scale or (np.abs(number - scale * np.eye(order)) > DATA_ROUNDING * abs(scale)).any():
        return
    one, two = (symbol_sums(model.symbols, model.symbols.of_variable(each)) for each in variables)
    products = (
        first @ second
        for a in (one, one.T)
        for b in (two, two.T)
        for first, second in ((a, b), (b, a))
    )
    if not any(moving.equals(each.scaled(weight)) for each in products):
        return
    for gone, kept in (variables, variables[::-1]):
        if kept.set.is_curved and _is_free(gone) and -scale / weight > 0:
            yield gone, kept, -scale / weight


def _is_free(variable: Variable) -> bool:
    """Whether all inverses of definite matrices are in its set."""
    if variable.has_bounds or variable.pos:
        return False
    return variable.set.is_box or variable.eigenvalue_bounds in (None, (0.0, np.inf))


class _InversePair(Step):
    """T is the inverse of S."""

    name = "inverse-pairs"
    new = ()

    def __init__(
        self, model: Expanded, row: Row, gone: Variable, kept: Variable, scale: float
    ) -> None:
        symbols = model.symbols
        inner = symbol_sums(symbols, symbols.of_variable(kept))
        numbers = symbols.of_function(ATOMS["inv"], {}, (inner,), kept.shape)
        if kept.set.is_symmetric:
            numbers = np.minimum(numbers, numbers.T)
        self._value = Sums.symbols(numbers, symbols.coding).scaled(scale)
        self._row, self.gone = row.sums, (gone,)
        own = symbols.of_variable(gone).reshape(-1).tolist()
        changes = dict(zip(own, self._value.entries(), strict=True))
        rows = tuple(each for each in model.rows if each is not row)
        plain = replace(model, rows=rows, is_original=False, written=None)
        self.after = rewritten(plain, Replacing(symbols, changes), gone=self.gone, new=())

    def forward(self, point: Points) -> None:
        """Nothing is new."""

    def settle(self, point: Points) -> None:
        self.back(point)

    def back(self, point: Points) -> None:
        point[self.gone[0]] = Evaluation(self.after.symbols, point).of(self._value)
