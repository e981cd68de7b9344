"""Weights of the terms of sums of exponentials that balance each other: the dual of a geometric program.

A sum of exponentials lies above its linear minorants of all shares, not only above that of its own shares
s_k at ũ. So for weights y >= 0 of the terms, with Σ y = 1 over the objective and λ_i = Σ y over row i,

    F1(v) + λ·row(v) >= F1(ũ) + λ·row(ũ) − Σ y_k log(y_k / (λ_i s_k)) + (Σ y_k a_k)·(v − ũ)

for every v. At a point that is nearly stationary the slope Σ y_k a_k of y_k = λ_i s_k is small, but it
counts over sets without bounds. Weights a little different have a slope of 0 but for rounding, and cost
the square of the difference: a bound as good as after a Newton step, for one small linear system.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import cached_property, dataclass, replace
from hcmodel.reductions.cone.compressed_rows import Rows
from hcmodel.solvers.algebra.marks import largest, length
from hcmodel.solvers.algebra.storage import is_sparse
from hcmodel.solvers.numerics import OPERATION_ROUNDING, SUM_ROUNDING

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]

# The largest relative change of a weight: beyond it the point is not nearly stationary.
MOST_CHANGE = 0.5
# Entries up to which products of arrays take less time than those of sparse matrices.
MOST_DENSE = 20_000


@dataclass(frozen=True, eq=False)
class WeighedTerms:
    """Terms with normals a_k and weights y_k; `rows` has 0 for the objective's, 1 + i for those of row i.

    Weights of equalities have any sign. `shares` are what the terms are of their sums at the point.
    """

    normals: Rows
    weights: FloatArray
    rows: IndexArray
    shares: FloatArray

    @cached_property
    def slope(self) -> FloatArray:
        """Σ y_k a_k."""
        entries = self.normals.data * self.weights.repeat(self.normals.lengths)
        width = self.normals.shape[1]
        return np.asarray(np.bincount(self.normals.indices, entries, minlength=width), dtype=float)

    def balanced(self, free: NDArray[np.bool_]) -> WeighedTerms | None:
        """The terms with weights whose slope is 0 in the entries `free`; None where none are near."""
        columns = free.nonzero()[0]
        wanted = self.slope[columns]
        if not np.count_nonzero(wanted):
            return None
        sizes = np.abs(self.weights)
        matrix, scaled = (_stored(rows) for rows in (self.normals, self.normals.scaled(sizes)))
        squares = matrix.T @ scaled
        system = (squares.toarray() if is_sparse(squares) else squares)[np.ix_(columns, columns)]
        step = np.zeros(free.size)
        try:
            step[columns] = np.linalg.solve(system, wanted)
            # squares lose half of the digits, and a second round finds them
            left = wanted - ((matrix @ step) @ scaled)[columns]
            step[columns] += np.linalg.solve(system, left)
        except np.linalg.LinAlgError:
            return None
        change = np.asarray(matrix @ step)
        if not largest(np.abs(change)) <= MOST_CHANGE:  # or not a number
            return None
        weights = self.weights - sizes * change
        return replace(self, weights=weights / float(weights[self.rows == 0].sum()))

    def multipliers(self, count: int) -> FloatArray:
        """λ, the sums of the weights of each of the rows."""
        found = np.bincount(self.rows, self.weights, minlength=1 + count)
        return np.asarray(found[1:], dtype=float)

    def loss(self, multipliers: FloatArray) -> float:
        """Σ y_k log(y_k / (λ_i s_k)), with rounding added."""
        used = self.weights.nonzero()[0]
        own, sums = self.weights[used], np.concatenate([[1.0], multipliers])[self.rows[used]]
        return float(
            own @ np.log(own / (sums * self.shares[used])) + SUM_ROUNDING * np.abs(own).sum()
        )

    def exact_slope(self) -> tuple[FloatArray, float]:
        """The slope and how long a vector its rounding may be, in numbers of more digits if there are."""
        normals = self.normals
        entries = normals.data * self.weights.astype(np.longdouble).repeat(normals.lengths)
        slope, sizes = np.zeros((2, normals.shape[1]), dtype=np.longdouble)
        np.add.at(slope, normals.indices, entries)
        np.add.at(sizes, normals.indices, np.abs(entries))
        count = np.bincount(normals.indices, minlength=normals.shape[1])
        found = slope.astype(float)
        rounding = float(np.finfo(np.longdouble).eps) * (count + 2) * sizes
        rounding += OPERATION_ROUNDING * np.abs(found)
        return found, length(rounding.astype(float))


def _stored(rows: Rows) -> Any:
    """The rows as an array, or a sparse matrix where that is a large one."""
    return rows.dense() if rows.shape[0] * rows.shape[1] <= MOST_DENSE else rows.to_scipy()
