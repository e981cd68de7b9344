"""A symmetric matrix that is put together from numbers and blocks, as a variable of its own.

    P = [[p₁, p₂], [p₂, p₃]],    P ⪰ C

has an entry of a variable in each place, the same one in (i, j) and (j, i) and a different one anywhere
else. So the entries of these variables are the entries of a symmetric matrix, whatever they are called.
The row says that P is semidefinite where C is, and with P ⪰ C ⪰ 2 c I the set of P may be P ⪰ c I: the
row is stronger, and its multiplier is its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.maps.algebra.expanded import Expanded, Row
from hcmodel.maps.algebra.rewriting import Exchange, rewritten
from hcmodel.maps.map import Points, Step, fresh_name
from hcmodel.maps.matrix_algebra.slacks import slack_of
from hcmodel.solvers.algebra.definite import is_semidefinite

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]


def assembled(model: Expanded) -> Iterator[tuple[Numbers, float]]:
    """The symbols of the first matrix P that a row makes semidefinite, and what P is at least times I."""
    for row in model.rows:
        found = _matrix(model, row) if row.sense == "==" and row.sums.size > 1 else None
        if found is not None and _is_put_together(model, found[0]):
            yield found
            return


def _matrix(model: Expanded, row: Row) -> tuple[Numbers, float] | None:
    """The symbols of P in the slack w (P − C), and the least eigenvalue of C; None for other rows."""
    sums = row.sums
    size = sums.shape[0]
    if sums.shape != (size, size) or sums.degrees.max(initial=0) != 1:
        return None
    slack = slack_of(model, row)
    if slack is None:
        return None
    own = sums.holding(model.symbols.of_variable(slack))
    rest = sums.chosen(~own).scaled(-1.0 / float(sums.weight[own][0]))
    linear = rest.chosen(rest.degrees == 1)
    if not np.array_equal(linear.entry, np.arange(sums.size)):
        return None
    numbers, weight = linear.key.reshape(size, size) - 1, float(linear.weight[0])
    different = np.unique(numbers).size == size * (size + 1) // 2
    if not different or (numbers != numbers.T).any() or (linear.weight != weight).any():
        return None
    shift = -rest.value / weight
    if weight < 0 or not is_semidefinite(shift):
        return None
    return numbers, max(float(np.linalg.eigvalsh(shift).min()), 0.0)


def _is_put_together(model: Expanded, numbers: Numbers) -> bool:
    """Whether symbols are all entries of several variables or of a vector, and stand in products."""
    used = np.unique(numbers)
    for source, _, own in model.symbols.grouped(used):
        if not isinstance(source, Variable) or source.set.is_curved or source.set.is_distribution:
            return False
        entries = model.symbols.of_variable(source)
        if np.unique(entries).size != own.size or np.array_equal(entries, numbers):
            return False
    return any((sums.holding(used) & (sums.degrees > 1)).any() for sums in model.arrays)


class Assembled(Step):
    """P in place of the variables that its entries are of."""

    name = "matrices"

    def __init__(self, model: Expanded, numbers: Numbers, least: float) -> None:
        grouped = model.symbols.grouped(np.unique(numbers))
        self.gone = tuple(source for source, _, _ in grouped if isinstance(source, Variable))
        low = least / 2 if least > 0 else True
        new = Variable(numbers.shape, name=fresh_name(model, "P"), PSD=low)
        self.new = (new,)
        self.texts = {new: ", ".join(each.name for each in self.gone)}
        self.released = tuple(each.name for each in self.gone if each.has_bounds)
        self._least, self._numbers = least, numbers
        self._entries = {each: model.symbols.of_variable(each) for each in self.gone}
        upper = np.triu_indices(len(numbers))
        fresh = model.symbols.of_variable(new)
        exchange = Exchange.of(model.symbols, numbers[upper], fresh[upper])
        self.after = rewritten(model, exchange, gone=self.gone, new=self.new)

    def settle(self, point: Points) -> None:
        """Onto the set of P: eigenvalues change their sign, and are not too small."""
        self.forward(point)
        values, vectors = np.linalg.eigh(point[self.new[0]])
        if values[0] < self._least or values[0] <= 0:
            raised = np.maximum(np.abs(values), self._least)
            point[self.new[0]] = (vectors * raised) @ vectors.T
            self.back(point)
            self.forward(point)

    def forward(self, point: Points) -> None:
        known = np.zeros(int(self._numbers.max()) + 1)
        for each, own in self._entries.items():
            known[own] = point[each]
        point[self.new[0]] = known[self._numbers]

    def back(self, point: Points) -> None:
        known = np.zeros(int(self._numbers.max()) + 1)
        known[self._numbers] = point[self.new[0]]
        for each, own in self._entries.items():
            point[each] = known[own]

    def tangent_back(self, point: Points, moves: Points) -> None:
        self.back(moves)
