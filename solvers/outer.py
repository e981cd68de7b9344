"""How objective and rows are made from the stack φ: the static outer part of a canonical problem.

Nothing here is compiled. A row compares two affine combinations of φ, `left <= right` or
`left == right`, and its normal form says which number the methods see; the difference is the form in
use, and others (ratio, log-difference) are one more branch in `row_values` and `row_jacobian`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Outer:
    """`objective` weighs the objective part of φ; `left` and `right` the constraint part.

    The first `inequalities` rows are `left - right <= 0`, the others `left - right == 0`.
    """

    objective: FloatArray
    left: scipy.sparse.csr_array
    right: scipy.sparse.csr_array
    inequalities: int

    @staticmethod
    def of_rows(inequalities: int, equalities: int) -> Outer:
        """Rows that are entries of φ themselves, against zero."""
        count = inequalities + equalities
        left = scipy.sparse.csr_array(scipy.sparse.eye_array(count))
        return Outer(np.ones(1), left, scipy.sparse.csr_array((count, count)), inequalities)

    @functools.cached_property
    def _difference(self) -> scipy.sparse.csr_array:
        return scipy.sparse.csr_array(self.left - self.right)

    @property
    def size(self) -> int:
        return int(self.left.shape[0])

    def objective_value(self, values: FloatArray) -> float:
        return float(self.objective @ values)

    def objective_gradient(self, jacobian: Any) -> FloatArray:
        return np.asarray(self.objective @ jacobian, dtype=float).reshape(-1)

    def row_values(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The rows, and max(1, |lhs|, |rhs|) against which their violation is measured."""
        left, right = self.left @ values, self.right @ values
        magnitudes = np.maximum(1.0, np.maximum(np.abs(left), np.abs(right)))
        return left - right, magnitudes

    def row_jacobian(self, values: FloatArray, jacobian: Any) -> Any:
        """∂rows/∂x, dense or sparse as the Jacobian of φ is; `values` serve non-linear forms."""
        result = self._difference @ jacobian
        return (
            scipy.sparse.csr_array(result) if scipy.sparse.issparse(result) else np.asarray(result)
        )

    def lagrangian_weights(self, multipliers: FloatArray, objective_size: int) -> FloatArray:
        """Weights on φ of the Lagrangian F1 + Σ multipliers·rows."""
        rows = self._difference.T @ multipliers
        return np.concatenate([self.objective[:objective_size], rows])
