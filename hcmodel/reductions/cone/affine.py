"""Arrays whose entries are affine functions of the unknowns of a program, as sparse rows.

The unknowns may still grow in number: a matrix is read as if columns of zeros followed it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.sparse_data import dense
from hcmodel.records import dataclass
from hcmodel.reductions.cone.compressed_rows import Rows, stacked
from hcmodel.solvers.numerics import TINY

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Affine:
    """`offset + matrix @ unknowns`, reshaped to `shape`; None as matrix stands for 0."""

    shape: tuple[int, ...]
    offset: FloatArray
    matrix: Rows | None = None

    @staticmethod
    def constant(value: Any) -> Affine:
        array = np.asarray(dense(value), dtype=float)
        return Affine(array.shape, array.reshape(-1))

    @property
    def size(self) -> int:
        return self.offset.size

    @property
    def is_constant(self) -> bool:
        return self.matrix is None

    @property
    def value(self) -> FloatArray:
        """The array of a constant."""
        assert self.matrix is None
        return self.offset.reshape(self.shape)

    def reshaped(self, shape: tuple[int, ...]) -> Affine:
        """The same entries in C order; one length may be -1, as numpy has it."""
        if -1 in shape:
            shape = np.broadcast_to(0.0, self.shape).reshape(shape).shape
        return Affine(shape, self.offset, self.matrix)

    def transposed(self) -> Affine:
        numbers = np.arange(self.size).reshape(self.shape).T
        return self.taken(numbers.reshape(-1), numbers.shape)

    def flat(self) -> Affine:
        return self.reshaped((self.size,))

    def taken(self, places: NDArray[np.intp], shape: tuple[int, ...]) -> Affine:
        """The entries at `places`, counted in C order, as an array of `shape`."""
        matrix = None if self.matrix is None else self.matrix[places]
        return Affine(shape, self.offset[places], matrix)

    def broadcast(self, shape: tuple[int, ...]) -> Affine:
        if self.shape == shape:
            return self
        numbers = np.arange(self.size).reshape(self.shape)
        return self.taken(np.broadcast_to(numbers, shape).reshape(-1), shape)

    def mapped(self, matrix: Any, shape: tuple[int, ...]) -> Affine:
        """A constant matrix, of any kind, applied to the entries."""
        rows = Rows.of(matrix)
        inner = None if self.matrix is None else rows @ self.matrix
        return Affine(shape, rows @ self.offset, inner)

    def scaled(self, factors: Any) -> Affine:
        """Entry by entry times constants, which broadcast."""
        own, shape = np.asarray(factors), self.shape
        if own.shape in ((), shape):
            wide = self
            weights = own.reshape(-1) if own.shape == shape else np.full(self.size, own)
        else:
            shape = np.broadcast_shapes(shape, own.shape)
            wide = self.broadcast(shape)
            weights = np.broadcast_to(own, shape).reshape(-1)
        matrix = None if wide.matrix is None else wide.matrix.scaled(weights)
        return Affine(shape, weights * wide.offset, matrix)

    def sizes(self, units: FloatArray | None = None) -> FloatArray:
        """The largest number in each entry, those of the first unknowns times their units."""
        sizes = np.abs(self.offset)
        if self.matrix is not None:
            sizes = np.maximum(sizes, self.matrix.largest(units))
        return np.maximum(sizes, TINY)

    def __neg__(self) -> Affine:
        matrix = None if self.matrix is None else -self.matrix
        return Affine(self.shape, -self.offset, matrix)

    def __add__(self, other: Affine | float) -> Affine:
        other = other if isinstance(other, Affine) else Affine.constant(other)
        shape = np.broadcast_shapes(self.shape, other.shape)
        one, two = self.broadcast(shape), other.broadcast(shape)
        matrix = one.matrix if two.matrix is None else two.matrix
        if one.matrix is not None and two.matrix is not None:
            matrix = one.matrix + two.matrix
        return Affine(shape, one.offset + two.offset, matrix)

    def __sub__(self, other: Affine | float) -> Affine:
        return self + (-other)

    def rows(self, width: int) -> Rows:
        """The matrix with `width` columns."""
        if self.matrix is None:
            nothing = np.zeros(0, dtype=np.intp)
            return Rows(np.zeros(0), nothing, np.zeros(self.size + 1, dtype=np.intp), width)
        return self.matrix.widened(width)


def joined(parts: Sequence[Affine]) -> Affine:
    """All entries, one part after the other."""
    offset = np.concatenate([np.zeros(0), *[each.offset for each in parts]])
    if all(each.matrix is None for each in parts):
        return Affine((offset.size,), offset)
    rows = [each.rows(0) if each.matrix is None else each.matrix for each in parts]
    return Affine((offset.size,), offset, stacked(rows))
