"""The inverse of a map at one point, by Newton's method on the tangent space.

Nothing keeps the iterates inside X: a point outside that the map sends to the target is worth
knowing, since it shows that a bound of X bends in the hidden coordinates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.analysis.hidden_map import HiddenMap, MapPoint

FloatArray = NDArray[np.float64]

ITERATIONS = 30
ACCURACY = 1e-12
HALVINGS = 8
# The share of the way that a continuation makes at once, when Newton's method fails from the start.
WAYPOINTS = 8


def inverse(hidden: HiddenMap, target: FloatArray, start: MapPoint) -> MapPoint | None:
    """A point with c(x) = target to rounding, or None where none was found."""
    found = _newton(hidden, target, start)
    if found is not None:
        return found
    current = start
    for share in np.linspace(0.0, 1.0, WAYPOINTS + 1)[1:]:
        step = _newton(hidden, start.image + share * (target - start.image), current)
        if step is None:
            return None
        current = step
    return current


def _newton(hidden: HiddenMap, target: FloatArray, start: MapPoint) -> MapPoint | None:
    """Damped Gauss–Newton steps; the residual must fall to rounding."""
    scale = float(np.linalg.norm(target)) + float(np.linalg.norm(start.image)) + 1e-300
    current = start
    distance = float(np.linalg.norm(current.image - target))
    for _ in range(ITERATIONS):
        if distance <= 1e-15 * scale or not current.invertible:
            break
        step = np.linalg.lstsq(current.map_jacobian, target - current.image, rcond=1e-14)[0]
        moved, shorter = None, 1.0
        for _ in range(HALVINGS):
            trial = hidden.at(current.point + hidden.basis @ (shorter * step))
            if float(np.linalg.norm(trial.image - target)) < distance:  # not so where it is NaN
                moved = trial
                break
            shorter /= 2.0
        if moved is None:
            break
        current, distance = moved, float(np.linalg.norm(moved.image - target))
    return current if distance <= ACCURACY * scale and current.invertible else None
