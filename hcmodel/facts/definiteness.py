"""Which matrices are proven to be symmetric, positive semidefinite or positive definite."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hcmodel.atoms.rules import Argument, MatrixKind
from hcmodel.expressions.leaves import Apply, Expression, Variable
from hcmodel.expressions.sparse_data import Numbers, all_finite, dense
from hcmodel.expressions.variable_sets import VariableSet
from hcmodel.solvers.algebra.definite import is_definite, is_semidefinite
from hcmodel.solvers.numerics import DATA_ROUNDING

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
