"""Systems whose factors fill up, by preconditioned conjugate gradients.

A graph without small separators has factors that fill up; but few steps lead from any vertex to any
other, and so iterations are few, too. What makes them many are the large weights of active rows, and
these go into the preconditioner. M is scaled to a diagonal of 1. Its largest entries off the diagonal
are kept, and each of the others, c, is replaced by |c| on the diagonal of its row and of its column: that
adds matrices |c|·[1, ±1; ±1, 1], so that the preconditioner is definite where M is. It is factorised.

| circuit with long wires | seconds by blocks | by conjugate gradients | steps of one solution |
|---|---|---|---|
| 1,000 gates | 1.1 | 0.5 | 40 to 190 |
| 3,000 gates | 8.3 | 2.2 | 40 to 450 |
| 10,000 gates | 336 | 14 | 40 to 380 |
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sparse

from hcmodel.solvers.algebra.products import Product
from hcmodel.solvers.second_order.interior_point.convex_program import FloatArray
from hcmodel.solvers.second_order.interior_point.factorisation import (
    FactorisationError,
    SparseFactor,
)

# Entries off the diagonal that the preconditioner keeps, per column. A random graph with fewer edges than
# half its vertices falls into small trees (Erdős and Rényi 1960), whose factors do not fill up (10,000
# gates with long wires: 0.25, 0.6 and 0.75 take 1.13, 1.12 and 1.7 times as long).
KEPT = 0.5
# The residual of a solution relative to that of 0, in the norm of the preconditioner's inverse. What a
# step needs beyond comes from refinement (3,000 gates with long wires: 1e-4 to 1e-12 take the same
# iterations).
ACCURACY = 1e-8
# Up to this multiple of it is accepted in the end: rounding leaves more than the recursion says.
DRIFT = 100.0


class Factor(Protocol):
    """What solves systems with matrices of one pattern."""

    def factorise(self, entries: FloatArray) -> None: ...

    def solve(self, right: FloatArray) -> FloatArray: ...


class ConjugateGradients:
    """For matrices of one pattern, the upper triangle in compressed columns.

    A solution that is not accurate after `most` steps is an error, and `direct` takes over for good.
    """

    def __init__(self, upper: Any, direct: Factor, most: int) -> None:
        self.size = upper.shape[0]
        self.direct, self.most, self.failed = direct, most, False
        rows, columns = upper.indices, np.repeat(np.arange(self.size), np.diff(upper.indptr))
        self._diagonal, self._sides = (
            np.flatnonzero(rows == columns),
            np.flatnonzero(rows < columns),
        )
        self._rows, self._columns = rows[self._sides], columns[self._sides]
        number = np.arange(self._sides.size)
        pairs = (np.append(self._rows, self._columns), np.append(self._columns, self._rows))
        self._pattern = sparse.csr_array((np.tile(number, 2), pairs), shape=upper.shape)

    def factorise(self, entries: FloatArray) -> None:
        if self.failed:
            self.direct.factorise(entries)
            return
        diagonal = entries[self._diagonal]
        if not (diagonal > 0).all():
            raise FactorisationError
        self._scale = 1.0 / np.sqrt(diagonal)
        sides = entries[self._sides] * self._scale[self._rows] * self._scale[self._columns]
        pattern = self._pattern
        self._matrix = Product(
            sparse.csr_array((sides[pattern.data], pattern.indices, pattern.indptr), pattern.shape)
        )
        self._precondition(sides)

    def _precondition(self, sides: FloatArray) -> None:
        size, sizes = self.size, np.abs(sides)
        count = min(int(KEPT * size), sizes.size)
        kept, left = np.split(np.argsort(-sizes), [count])
        diagonal = np.ones(size)
        for ends in (self._rows, self._columns):
            diagonal += np.bincount(ends[left], sizes[left], minlength=size)
        places = np.arange(size)
        upper = sparse.csc_matrix(
            (
                np.append(sides[kept], diagonal),
                (np.append(self._rows[kept], places), np.append(self._columns[kept], places)),
            ),
            shape=(size, size),
        )
        upper.sort_indices()
        self._preconditioner = SparseFactor(upper.indices, upper.indptr, size)
        self._preconditioner.factorise(upper.data)

    def solve(self, right: FloatArray) -> FloatArray:
        """For a vector, or a matrix of right-hand sides."""
        if self.failed:
            return self.direct.solve(right)
        if right.ndim > 1:
            found = np.empty(right.shape)
            for column, each in enumerate(right.T):
                found[:, column] = self.solve(each)
            return found
        return self._scale * self._iterated(self._scale * right)

    def _iterated(self, right: FloatArray) -> FloatArray:
        found, rest = np.zeros(self.size), right.copy()
        image = self._preconditioner.solve(rest)
        direction, error = image.copy(), float(rest @ image)
        enough = ACCURACY**2 * abs(error)
        for _ in range(self.most):
            if error <= enough:
                break
            product = direction + self._matrix @ direction
            curvature = float(direction @ product)
            if not curvature > 0:
                break
            length = error / curvature
            found += length * direction
            rest -= length * product
            image = self._preconditioner.solve(rest)
            before, error = error, float(rest @ image)
            direction *= error / before
            direction += image
        rest = right - found - self._matrix @ found
        if not 0 <= float(rest @ self._preconditioner.solve(rest)) <= DRIFT**2 * enough:
            self.failed = True
            raise FactorisationError
        return found
