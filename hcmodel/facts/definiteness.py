"""Which matrices are proven to be symmetric, positive semidefinite or positive definite."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.rules import Argument, MatrixKind
from hcmodel.expressions.leaves import Apply, Expression, Variable
from hcmodel.expressions.sparse_data import Numbers, all_finite, dense
from hcmodel.expressions.variable_sets import VariableSet
from hcmodel.solvers.numerics import DATA_ROUNDING, SUM_ROUNDING

FloatArray = NDArray[np.float64]

# The order of constants whose eigenvalues are computed: it takes less than a tenth of a second.
MAX_ORDER = 400


def definiteness(
    expression: Expression, arguments: Sequence[Argument] = (), value: Numbers | None = None
) -> MatrixKind:
    """What is proven of a square matrix; other shapes are general."""
    shape = expression.shape
    if len(shape) != 2 or shape[0] != shape[1]:
        return MatrixKind.GENERAL
    if value is not None:
        return of_value(value)
    if isinstance(expression, Variable):
        return _of_set(expression.set)
    if isinstance(expression, Apply) and arguments:
        return expression.atom.definiteness(arguments, dict(expression.params))
    return MatrixKind.GENERAL


def _of_set(values: VariableSet) -> MatrixKind:
    """What holds for every matrix of a variable's set."""
    if not values.is_symmetric:
        return MatrixKind.GENERAL
    smallest = -np.inf if values.eigenvalue_bounds is None else values.eigenvalue_bounds[0]
    if smallest > 0:
        return MatrixKind.DEFINITE
    return MatrixKind.SEMIDEFINITE if smallest == 0 else MatrixKind.SYMMETRIC


def of_value(numbers: Numbers) -> MatrixKind:
    """By symmetry and eigenvalues, to rounding."""
    if numbers.shape[0] > MAX_ORDER or not all_finite(numbers):
        return MatrixKind.GENERAL
    matrix = dense(numbers)
    scale = float(np.max(np.abs(matrix), initial=0.0))
    if np.any(np.abs(matrix - matrix.T) > DATA_ROUNDING * scale):
        return MatrixKind.GENERAL
    if is_definite(matrix):
        return MatrixKind.DEFINITE
    return MatrixKind.SEMIDEFINITE if is_semidefinite(matrix) else MatrixKind.SYMMETRIC


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
    with: what rounding may have added to the diagonal is taken off.
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
