"""Matrices by compressed rows, for building programs.

By hand, because scipy.sparse takes 50 to 200 µs for each operation on a matrix with a few entries, many
times what it takes to solve a small program. Entries at the same place count as their sum, so that sums
and products need not look for them; `to_scipy` adds them up. Nothing here loops over rows or entries.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.solvers.algebra.marks import every, some
from hcmodel.solvers.algebra.storage import is_sparse
from hcmodel.solvers.limits import check_time

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]

# A product that makes more entries than this before those at the same place are added up is left to
# scipy, which adds as it goes: the memory of 20 million entries is 320 MB.
LARGEST_PRODUCT = 20_000_000


class Rows:
    """Row i has the entries `data[s]` in the columns `indices[s]`, s in indptr[i] … indptr[i + 1] − 1."""

    __slots__ = ("_lengths", "data", "indices", "indptr", "shape")

    def __init__(
        self,
        data: FloatArray,
        indices: IndexArray,
        indptr: IndexArray,
        width: int,
        lengths: IndexArray | None = None,
    ) -> None:
        self.data, self.indices, self.indptr = data, indices, indptr
        self.shape = (indptr.size - 1, width)
        self._lengths = lengths

    @staticmethod
    def of(matrix: Any) -> Rows:
        """A matrix of scipy or numpy."""
        if isinstance(matrix, Rows):
            return matrix
        if not is_sparse(matrix):
            rows, columns = np.nonzero(matrix)
            return Rows.of_entries(matrix[rows, columns], rows, columns, matrix.shape)
        found = matrix if matrix.format == "csr" else scipy.sparse.csr_array(matrix)
        indptr, indices = found.indptr.astype(np.intp), found.indices.astype(np.intp)
        return Rows(np.asarray(found.data, dtype=float), indices, indptr, found.shape[1])

    @staticmethod
    def of_entries(
        data: FloatArray, rows: IndexArray, columns: IndexArray, shape: tuple[int, int]
    ) -> Rows:
        """Entries in any order."""
        check_time()
        if some(rows[1:] < rows[:-1]):
            order = rows.argsort(kind="stable")
            data, rows, columns = data[order], rows[order], columns[order]
        lengths = np.bincount(rows, minlength=shape[0])
        return Rows(np.asarray(data, dtype=float), columns, _starts(lengths), shape[1], lengths)

    @staticmethod
    def units(columns: IndexArray, width: int) -> Rows:
        """One entry of 1 in each row."""
        return Rows(np.ones(columns.size), columns, np.arange(columns.size + 1), width)

    @property
    def lengths(self) -> IndexArray:
        """The number of entries of each row."""
        if self._lengths is None:
            self._lengths = self.indptr[1:] - self.indptr[:-1]
        return self._lengths

    @property
    def nnz(self) -> int:
        """The number of entries; those at the same place count apart."""
        return self.data.size

    def entries(self) -> tuple[IndexArray, IndexArray, FloatArray]:
        """Rows, columns and numbers; those at the same place apart."""
        rows = np.arange(self.shape[0]).repeat(self.lengths)
        return rows, self.indices, self.data

    def dense(self) -> FloatArray:
        """The same as an array."""
        found = np.zeros(self.shape)
        rows, columns, values = self.entries()
        np.add.at(found, (rows, columns), values)
        return found

    def to_scipy(self) -> Any:
        """The same as scipy.sparse.csr_array, entries at the same place added up."""
        parts = (self.data.copy(), self.indices.copy(), self.indptr.copy())  # changed in place
        found = scipy.sparse.csr_array(parts, shape=self.shape)
        found.sum_duplicates()
        return found

    def largest(self, units: FloatArray | None = None) -> FloatArray:
        """The largest absolute entry of each row, 0 where there is none; each times that of its column.

        `units` are those of the first columns, the others have 1.
        """
        found = np.zeros(self.shape[0])
        full = self.lengths.nonzero()[0]
        if full.size:
            sizes = np.abs(self.data)
            if units is not None:
                own = self.indices < units.size
                sizes[own] *= units[self.indices[own]]
            found[full] = np.maximum.reduceat(sizes, self.indptr[full])
        return found

    def __getitem__(self, places: IndexArray) -> Rows:
        """Some rows, each as often as it is asked for."""
        starts, lengths = self.indptr[places], self.lengths[places]
        indptr = _starts(lengths)
        taken = (starts - indptr[:-1]).repeat(lengths) + np.arange(indptr[-1])
        return Rows(self.data[taken], self.indices[taken], indptr, self.shape[1], lengths)

    def scaled(self, weights: FloatArray) -> Rows:
        """Each row times a weight."""
        data = self.data * weights.repeat(self.lengths)
        return Rows(data, self.indices, self.indptr, self.shape[1], self.lengths)

    def widened(self, width: int) -> Rows:
        """With columns of zeros on the right."""
        return Rows(self.data, self.indices, self.indptr, width)

    def __neg__(self) -> Rows:
        return Rows(-self.data, self.indices, self.indptr, self.shape[1])

    def __add__(self, other: Rows) -> Rows:
        """Row by row the entries of both; the wider one gives the width."""
        indptr = self.indptr + other.indptr
        data, indices = np.empty(indptr[-1]), np.empty(indptr[-1], dtype=np.intp)
        for part, before in ((self, other.indptr[:-1]), (other, self.indptr[1:])):
            places = np.arange(part.nnz) + before.repeat(part.lengths)
            data[places], indices[places] = part.data, part.indices
        return Rows(data, indices, indptr, max(self.shape[1], other.shape[1]))

    def __matmul__(self, other: Any) -> Any:
        """Times a vector, or times a matrix."""
        if not isinstance(other, Rows):
            products = self.data * other[self.indices]
            owners = np.arange(self.shape[0]).repeat(self.lengths)
            return np.bincount(owners, products, minlength=self.shape[0])
        check_time()
        if other.nnz == other.shape[0] and every(other.lengths == 1):  # the entries of a variable
            places = self.indices
            data = self.data * other.data[places]
            return Rows(data, other.indices[places], self.indptr, other.shape[1])
        if other.lengths[self.indices].sum() > LARGEST_PRODUCT:
            return Rows.of(self.to_scipy() @ other.to_scipy())
        terms = other[self.indices].scaled(self.data)
        return Rows(terms.data, terms.indices, terms.indptr[self.indptr], other.shape[1])


def _starts(lengths: IndexArray) -> IndexArray:
    """Where rows of these lengths begin, and where the last one ends."""
    starts = np.zeros(lengths.size + 1, dtype=np.intp)
    np.add.accumulate(lengths, out=starts[1:])
    return starts


def stacked(parts: Sequence[Rows]) -> Rows:
    """The rows of all parts, one part after the other."""
    starts = itertools.accumulate([part.nnz for part in parts], initial=0)
    pieces = [part.indptr[1:] + start for part, start in zip(parts, starts, strict=False)]
    return Rows(
        np.concatenate([np.zeros(0), *[part.data for part in parts]]),
        np.concatenate([np.zeros(0, dtype=np.intp), *[part.indices for part in parts]]),
        np.concatenate([np.zeros(1, dtype=np.intp), *pieces]),
        max([part.shape[1] for part in parts], default=0),
    )


def small_units(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """The sizes of unknowns whose bounds say that they are small, 1 for the others."""
    sizes = np.maximum(np.abs(lower), np.abs(upper))
    return np.where(sizes > 0, np.minimum(sizes, 1.0), 1.0)
