"""Whether symmetric matrices are definite, as far as rounding of their entries can tell."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.solvers.algebra.marks import all_finite
from hcmodel.solvers.numerics import DATA_ROUNDING, SUM_ROUNDING

FloatArray = NDArray[np.float64]


def is_semidefinite(matrix: FloatArray) -> bool:
    """Whether a symmetric matrix is positive semidefinite, to the rounding of its own entries.

    A small entry may be data beside large ones: diag(1e13, −1) is indefinite. So the matrix has to be
    semidefinite after changes of 1e-12 of its diagonal, each entry by what it is itself. Rows that are
    nothing but rounding beside those that they are coupled with count as 0.
    """
    if not all_finite(matrix):
        return False
    kept = np.abs(matrix).max(axis=1, initial=0.0) > SUM_ROUNDING * _beside(matrix)
    if not kept.all():
        matrix = matrix[np.ix_(kept, kept)]
    return bool((matrix.diagonal() > 0).all()) and _least_scaled(matrix) >= -DATA_ROUNDING


def is_definite(matrix: FloatArray) -> bool:
    """Whether a symmetric matrix is positive definite, whatever rounding has done to its entries.

    These may be differences of numbers as large as the diagonal entries of the rows that a row is coupled
    with: what rounding may have added to the diagonal is subtracted.
    """
    rounding = SUM_ROUNDING * len(matrix) * _beside(matrix)
    if not (matrix.diagonal() > rounding).all():
        return False
    return _least_scaled(matrix - np.diag(rounding)) > DATA_ROUNDING


def _beside(matrix: FloatArray) -> FloatArray:
    """For each row the largest diagonal entry of the others that it is coupled with."""
    coupled = np.where(matrix != 0, np.abs(matrix.diagonal()), 0.0)
    np.fill_diagonal(coupled, 0.0)
    return np.asarray(coupled.max(axis=1, initial=0.0))


def _least_scaled(matrix: FloatArray) -> float:
    """The least eigenvalue after rows and columns were scaled, so that the diagonal is 1."""
    root = np.sqrt(matrix.diagonal())
    return float(np.min(np.linalg.eigvalsh(matrix / np.outer(root, root)), initial=np.inf))
