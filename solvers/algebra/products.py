"""Products of a sparse matrix with vectors, many times.

The operators of scipy take 10 µs to find out what they are asked for, five times what the product of a
small matrix takes. Its compiled routines are called here without that, where scipy has them in the usual
place; elsewhere its operators do the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    from scipy.sparse import _sparsetools
except ImportError:  # pragma: no cover - a scipy that keeps them elsewhere
    _sparsetools = None

FloatArray = NDArray[np.float64]

BY_ROWS: Callable[..., None] | None = getattr(_sparsetools, "csr_matvec", None)
BY_COLUMNS: Callable[..., None] | None = getattr(_sparsetools, "csc_matvec", None)


class Product:
    """`matrix @ vector` for a matrix by compressed rows; `T` is the product with its transpose."""

    __slots__ = ("_parts", "_routine", "matrix", "shape")

    def __init__(self, matrix: Any, routine: Callable[..., None] | None = BY_ROWS) -> None:
        self.matrix, self.shape = matrix, matrix.shape
        self._parts = (matrix.indptr, matrix.indices, matrix.data)
        self._routine = routine if matrix.data.dtype == float else None

    @property
    def T(self) -> Product:  # noqa: N802 (as numpy has it)
        return Product(self.matrix.T, BY_COLUMNS)

    def __matmul__(self, vector: FloatArray) -> FloatArray:
        if self._routine is None or vector.dtype != float:
            return np.asarray(self.matrix @ vector)
        found = np.zeros(self.shape[0])
        self._routine(*self.shape, *self._parts, np.ascontiguousarray(vector), found)
        return found


def product(matrix: Any) -> Any:
    """The matrix for products with vectors: itself where it is an array."""
    return matrix if isinstance(matrix, np.ndarray) else Product(matrix)
