"""The units of a step at a point: d = scale · w, or d = columns @ w."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers.algebra.hessians import Hessian, SparseHessian, as_dense

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Frame:
    """How steps are measured at a point: d = scale * w, or d = columns @ w where there is a matrix.

    `free` marks entries of x whose bounds are curved in u and are therefore left out of the model.
    """

    scale: FloatArray
    columns: FloatArray | None = None
    free: NDArray[np.bool_] | None = None

    def step(self, w: FloatArray) -> FloatArray:
        return self.scale * w if self.columns is None else self.columns @ w

    def gradient(self, g: FloatArray) -> FloatArray:
        return g * self.scale if self.columns is None else g @ self.columns

    def matrix(self, jacobian: Any) -> Any:
        """A matrix of derivatives by x as one of derivatives by w."""
        if self.columns is not None:
            return np.asarray(jacobian @ self.columns)
        if scipy.sparse.issparse(jacobian):
            return scipy.sparse.csr_array(jacobian @ scipy.sparse.diags_array(self.scale))
        return jacobian * self.scale

    def hessian(self, hessian: Hessian) -> Hessian:
        if self.columns is not None:
            return np.asarray(self.columns.T @ as_dense(hessian) @ self.columns)
        if isinstance(hessian, SparseHessian):
            return hessian.scaled(self.scale)
        return hessian * np.outer(self.scale, self.scale)
