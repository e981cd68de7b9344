"""Small matrices in compressed columns, written out: dense rows above the entries of bounds.

scipy's constructors take many times longer than Clarabel's solve when a program is small.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]


class Columns(NamedTuple):
    """What Clarabel reads of a matrix; rows are in order within each column."""

    data: FloatArray
    indices: IndexArray
    indptr: IndexArray
    shape: tuple[int, int]

    @property
    def nnz(self) -> int:
        return self.data.size

    def sparse(self) -> scipy.sparse.csc_matrix:
        """The same as a matrix of scipy."""
        return scipy.sparse.csc_matrix((self.data, self.indices, self.indptr), shape=self.shape)

    @property
    def has_sorted_indices(self) -> bool:
        return True

    @property
    def has_canonical_format(self) -> bool:
        return True


def diagonal(entries: FloatArray) -> Columns:
    """A diagonal matrix."""
    size = entries.size
    return Columns(entries, np.arange(size), np.arange(size + 1), (size, size))


def upper_triangle(matrix: FloatArray) -> Columns:
    """What a dense matrix has on and above its diagonal, without zeros."""
    kept = np.triu(matrix).T != 0
    columns, rows = kept.nonzero()
    starts = np.zeros(len(matrix) + 1, dtype=np.int64)
    np.cumsum(kept.sum(axis=1), out=starts[1:])
    return Columns(matrix[rows, columns], rows, starts, (len(matrix), len(matrix)))


def above_bounds(
    rows: FloatArray, upper: IndexArray, lower: IndexArray, *, zeros: bool = True
) -> Columns:
    """Dense rows, then a row with 1 for each column in `upper`, one with −1 for each in `lower`.

    With `zeros`, those of the dense rows are kept, so that the pattern is the same for other numbers.
    """
    count, size = rows.shape
    indices = np.empty((size, count + 2), dtype=np.int64)
    entries = np.empty((size, count + 2))
    present = np.ones((size, count + 2), dtype=bool)
    indices[:, :count] = np.arange(count)
    entries[:, :count] = rows.T
    if not zeros:
        present[:, :count] = entries[:, :count] != 0
    present[:, count:] = False
    for column, held, first, sign in (
        (count, upper, count, 1.0),
        (count + 1, lower, count + upper.size, -1.0),
    ):
        indices[held, column] = np.arange(first, first + held.size)
        entries[held, column] = sign
        present[held, column] = True
    starts = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(present.sum(axis=1), out=starts[1:])
    shape = (count + upper.size + lower.size, size)
    return Columns(entries[present], indices[present], starts, shape)
