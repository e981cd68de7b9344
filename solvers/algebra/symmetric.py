"""Symmetric matrices as vectors: each stored once, so that norms and inner products are kept.

The vector is the upper triangle column by column with off-diagonal entries times √2. Its Euclidean norm
is the Frobenius norm of the matrix, and Clarabel takes semidefinite matrices in this form.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

from hcmodel.solvers.numerics import DATA_ROUNDING, OPERATION_ROUNDING

FloatArray = NDArray[np.float64]

ROOT_TWO = float(np.sqrt(2.0))


@functools.cache
def triangle(order: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Row and column of each stored entry: the upper triangle, column by column; read-only."""
    columns, rows = np.tril_indices(order)
    rows.flags.writeable = columns.flags.writeable = False
    return rows, columns


@functools.cache
def upper_entries(order: int) -> NDArray[np.intp]:
    """The numbers, in C order, of the entries of the upper triangle, row by row; read-only."""
    found = np.arange(order * order).reshape(order, order)[np.triu_indices(order)]
    found.flags.writeable = False
    return found


@functools.cache
def _weights(order: int) -> FloatArray:
    """1 for the entries on the diagonal, √2 for the others; read-only."""
    rows, columns = triangle(order)
    weights = np.where(rows == columns, 1.0, ROOT_TWO)
    weights.flags.writeable = False
    return weights


def to_vector(matrix: FloatArray) -> FloatArray:
    """The stored vector of a symmetric matrix; the two triangles are averaged."""
    order = matrix.shape[0]
    even = 0.5 * (matrix + matrix.T)
    return np.asarray(even[triangle(order)] * _weights(order))


def to_matrix(vector: FloatArray) -> FloatArray:
    """The symmetric matrix of a stored vector."""
    order = (math.isqrt(8 * vector.size + 1) - 1) // 2
    rows, columns = triangle(order)
    matrix = np.empty((order, order))
    matrix[rows, columns] = matrix[columns, rows] = vector / _weights(order)
    return matrix


def rotated_basis(vectors: FloatArray) -> FloatArray:
    """The stored vectors of vᵢvⱼᵀ + vⱼvᵢᵀ, at length 1, as columns: i <= j column by column."""
    rows, columns = triangle(vectors.shape[0])
    first, second = vectors[:, rows], vectors[:, columns]
    products = first[rows] * second[columns] + first[columns] * second[rows]
    off = np.where(rows == columns, 1.0, ROOT_TWO)
    return np.asarray(products * off[:, None] * off / 2.0)


def clip_slope(matrix: FloatArray, smallest: float, largest: float) -> FloatArray:
    """The derivative of clipping a matrix's eigenvalues, for stored vectors (Löwner's formula)."""
    values, vectors = np.linalg.eigh(matrix)
    clipped = np.clip(values, smallest, largest)
    rows, columns = triangle(values.size)
    apart = values[rows] - values[columns]
    close = np.abs(apart) <= DATA_ROUNDING * np.maximum(1.0, np.abs(values).max())
    inside = (values[rows] >= smallest) & (values[rows] <= largest)
    quotient = (clipped[rows] - clipped[columns]) / np.where(close, 1.0, apart)
    basis = rotated_basis(vectors)
    return np.asarray((basis * np.where(close, inside, quotient)) @ basis.T)


def cholesky_rounding(order: int) -> float:
    """n γ of `is_surely_semidefinite`, and as much for the rounding of the entries themselves."""
    return 2.0 * order * (order + 2) * OPERATION_ROUNDING


def is_surely_semidefinite(matrix: FloatArray) -> bool:
    """Whether a symmetric matrix, exact as it is stored, is proven positive semidefinite.

    Cholesky's method that runs through has factored a matrix that differs from A by at most γ √(aᵢᵢ aⱼⱼ),
    γ = (n + 2)ε (N. Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., theorem 10.3). So
    it is run on A − n γ diag(A), and no eigenvalue has to stand out of the rounding of the largest one.
    """
    diagonal = np.diagonal(matrix)
    if not np.isfinite(matrix).all() or (diagonal < 0).any():
        return False
    used = diagonal > 0
    if (matrix[~used] != 0).any():
        return False
    own = matrix[np.ix_(used, used)]
    less = cholesky_rounding(own.shape[0])
    try:
        np.linalg.cholesky(own - less * np.diag(np.diagonal(own)))
    except np.linalg.LinAlgError:
        return False
    return True
