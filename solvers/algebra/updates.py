"""Damped BFGS updates of a matrix of second derivatives.

    B ← B − (B s)(B s)ᵀ / sᵀB s + y yᵀ / sᵀy,   s the step, y the change of ∇L along it,

y moved towards B s where sᵀy < 0.2 sᵀB s, so that B stays definite (Powell 1978).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dger

from hcmodel.records import dataclass

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class UpdateRules:
    damping: float = 0.2
    """The share of the model's curvature that an update must leave (Powell 1978)."""


RULES = UpdateRules()


def updated(matrix: FloatArray, step: FloatArray, change: FloatArray) -> FloatArray:
    """B after one more step; as it was where the step tells nothing."""
    found = np.array(matrix, order="F")
    if np.isfinite(change).all():
        update(found, step, change)
    return found


def update(matrix: FloatArray, step: FloatArray, change: FloatArray) -> None:
    """The same for finite numbers and in the place of B, whose columns have to be contiguous."""
    product = matrix @ step
    curvature, inner = float(step @ product), float(step @ change)
    if not curvature > 0:
        return
    if inner < RULES.damping * curvature:
        change = _moved(change, product, curvature, inner)
        inner = float(step @ change)
        if not inner > 0:  # it has underflowed
            return
    first, second = product / math.sqrt(curvature), change / math.sqrt(inner)
    dger(-1.0, first, first, a=matrix, overwrite_a=1)
    dger(1.0, second, second, a=matrix, overwrite_a=1)


def damped(step: FloatArray, change: FloatArray, product: FloatArray) -> FloatArray:
    curvature, inner = float(step @ product), float(step @ change)
    if inner >= RULES.damping * curvature:
        return change
    return _moved(change, product, curvature, inner)


def _moved(change: FloatArray, product: FloatArray, curvature: float, inner: float) -> FloatArray:
    share = (1 - RULES.damping) * curvature / (curvature - inner)
    return share * change + (1 - share) * product
