"""How numbers are stored: densely by numpy, or sparsely by scipy."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

_SPARSE: dict[type, bool] = {}


def is_sparse(value: Any) -> bool:
    """Whether this is a sparse matrix of scipy."""
    # by its class, which is asked once: scipy looks it up among abstract classes every time
    try:
        return _SPARSE[type(value)]
    except KeyError:
        found = _SPARSE[type(value)] = bool(scipy.sparse.issparse(value))
        return found


def as_array(matrix: Any) -> NDArray[np.float64]:
    """The numbers as an array, whichever way they are stored."""
    return np.asarray(matrix.toarray() if is_sparse(matrix) else matrix, dtype=float)


def by_rows(matrix: Any) -> Any:
    """The matrix in compressed rows: itself where it is, without scipy's checks of a new one."""
    return matrix if type(matrix) is scipy.sparse.csr_array else scipy.sparse.csr_array(matrix)
