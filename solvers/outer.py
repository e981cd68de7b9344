"""How objective and rows are made from the stack φ: the static outer part of a canonical problem.

Nothing here is compiled. A row compares two affine combinations of φ, `left <= right` or
`left == right`, and its normal form says which number the methods see: the difference left − right,
or log left − log right where both sides are positive. The objective is seen plain or through its
logarithm. Another form of the same problem is another `Outer` over the same stack.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Outer:
    """`objective` weighs the objective part of φ; `left` and `right` the constraint part.

    The first `inequalities` rows are inequalities, the others equalities. `log_rows` marks the rows
    in log form. With `log_objective` the value seen is ±log of |objective|·φ, the sign that of the
    objective's weights.
    """

    objective: FloatArray
    left: scipy.sparse.csr_array
    right: scipy.sparse.csr_array
    inequalities: int
    log_objective: bool = False
    log_rows: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))

    def __post_init__(self) -> None:
        if self.log_rows.size != self.size:
            object.__setattr__(self, "log_rows", np.zeros(self.size, dtype=bool))

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

    @property
    def _sign(self) -> float:
        return 1.0 if self.objective[0] >= 0 else -1.0

    def objective_value(self, values: FloatArray) -> float:
        plain = float(self.objective @ values)
        if not self.log_objective:
            return plain
        with np.errstate(all="ignore"):
            return self._sign * float(np.log(self._sign * plain))

    def objective_slope(self, values: FloatArray) -> float:
        """The derivative of the objective as it is seen by the plain one."""
        return abs(1.0 / float(self.objective @ values)) if self.log_objective else 1.0

    def objective_gradient(self, values: FloatArray, jacobian: Any) -> FloatArray:
        plain = np.asarray(self.objective @ jacobian, dtype=float).reshape(-1)
        return plain * self.objective_slope(values) if self.log_objective else plain

    def row_values(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The rows, and max(1, |lhs|, |rhs|) against which their violation is measured."""
        left, right = self.left @ values, self.right @ values
        rows = left - right
        magnitudes = np.maximum(1.0, np.maximum(np.abs(left), np.abs(right)))
        if self.log_rows.any():
            with np.errstate(all="ignore"):
                rows = np.where(self.log_rows, np.log(left) - np.log(right), rows)
            magnitudes = np.where(self.log_rows, 1.0, magnitudes)
        return rows, magnitudes

    def row_jacobian(self, values: FloatArray, jacobian: Any) -> Any:
        """∂rows/∂x, dense or sparse as the Jacobian of φ is."""
        result = self._weighing(values) @ jacobian
        return (
            scipy.sparse.csr_array(result) if scipy.sparse.issparse(result) else np.asarray(result)
        )

    def _weighing(self, values: FloatArray) -> scipy.sparse.csr_array:
        """∂rows/∂φ."""
        if not self.log_rows.any():
            return self._difference
        with np.errstate(all="ignore"):
            left = np.where(self.log_rows, 1.0 / (self.left @ values), 1.0)
            right = np.where(self.log_rows, 1.0 / (self.right @ values), 1.0)
        diagonal = scipy.sparse.diags_array
        return scipy.sparse.csr_array(diagonal(left) @ self.left - diagonal(right) @ self.right)

    def lagrangian_weights(
        self, top: FloatArray, values: FloatArray, multipliers: FloatArray
    ) -> FloatArray:
        """Weights on φ whose gradient is that of the Lagrangian F1 + Σ multipliers·rows.

        `top` holds the objective part of φ at the point, `values` the constraint part.
        """
        rows = self._weighing(values).T @ multipliers
        return np.concatenate([self.objective * self.objective_slope(top), rows])

    def lagrangian_squares(
        self,
        top: FloatArray,
        values: FloatArray,
        slopes: tuple[Any, Any],
        multipliers: FloatArray,
    ) -> list[tuple[FloatArray, Any]]:
        """What the logarithms add to the weighted Hessian of φ: a sum of weighted squares of gradients.

        `slopes` are the Jacobians of the two parts. Each pair holds weights and rows of derivatives.
        """
        found: list[tuple[FloatArray, Any]] = []
        if self.log_objective:
            gradient = np.asarray(self.objective @ slopes[0]).reshape(1, -1)
            found.append((np.array([-self._sign]), gradient / float(self.objective @ top)))
        used = np.flatnonzero(self.log_rows & (multipliers != 0))
        if used.size:
            for side, direction in ((self.left[used], -1.0), (self.right[used], 1.0)):
                gradients = _divided(side @ slopes[1], side @ values)
                found.append((direction * multipliers[used], gradients))
        return found


def _divided(rows: Any, by: FloatArray) -> Any:
    """Each row over a number."""
    if not scipy.sparse.issparse(rows):
        return rows / by[:, None]
    rows = scipy.sparse.csr_array(rows)
    entries = rows.data / np.repeat(by, np.diff(rows.indptr))
    return scipy.sparse.csr_array((entries, rows.indices, rows.indptr), shape=rows.shape)
