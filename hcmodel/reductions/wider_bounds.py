"""Bounds that rows imply, away from the points of the model.

An interior-point method divides the multiplier between a bound and the rows that imply it. Of variables
that a reduction has added, programs whose functions are defined beyond the bounds get wider ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.layout import Layout

FloatArray = NDArray[np.float64]


def with_wider_bounds(
    layout: Layout, logs: NDArray[np.bool_], lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bounds of all unknowns, wider where rows imply them; those of logarithms stay as they are."""
    for variable in layout.variables:
        wider, own = variable.set.wider, layout.slice(variable)
        if wider is not None and not logs[own].any():
            lower, upper = lower.copy(), upper.copy()
            lower[own], upper[own] = map(np.ravel, wider)
    return lower, upper
