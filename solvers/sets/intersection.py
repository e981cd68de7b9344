"""The nearest point of the intersection of a box with another convex set whose projection P is known.

With z the multipliers of the bounds, the nearest point to x is P(x − z), and z solves

    z = (y + z) − clip(y + z),    y = P(x − z).

Iterating the right-hand side is Dykstra's method (Boyle and Dykstra 1986). Newton steps on the equation,
with the derivative of P, finish it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers.numerics import PRODUCT_ROUNDING

FloatArray = NDArray[np.float64]

# How far from its fixed point a search may stop, relative to the size of the numbers: the rounding of
# an eigenvalue decomposition of moderate order.
ACCURACY = 1e-13
# Steps of Dykstra's method before the first try of Newton's, and before the second. Of 480 random
# projections onto bounded semidefinite matrices of order 2 to 8, half ended in the first try and a
# sixth in the second; the others began again with the multipliers of a cone program.
DYKSTRA_STEPS = (2, 15)
# Steps of Newton's method, which converges quadratically: twice the most that these projections needed.
NEWTON_STEPS = 12


@dataclass(frozen=True)
class Equation:
    """What z has to solve for one x; `slope` is the derivative of `project`."""

    x: FloatArray
    project: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], FloatArray]
    lower: FloatArray
    upper: FloatArray

    @property
    def scale(self) -> float:
        return max(1.0, float(np.max(np.abs(self.x), initial=0.0)))

    def gap(self, multipliers: FloatArray) -> FloatArray:
        """The right-hand side minus z."""
        y = self.project(self.x - multipliers)
        return np.asarray(y - np.clip(y + multipliers, self.lower, self.upper))

    def point(self, multipliers: FloatArray) -> FloatArray:
        """The nearest point that belongs to the multipliers, in the box to the last digit."""
        return np.clip(self.project(self.x - multipliers), self.lower, self.upper)

    def newton(self, multipliers: FloatArray) -> tuple[FloatArray, float]:
        """Newton steps as long as each halves the gap; the multipliers and the gap that is left."""
        gap = self.gap(multipliers)
        distance = float(np.max(np.abs(gap), initial=0.0))
        for _ in range(NEWTON_STEPS):
            if distance <= ACCURACY * self.scale:
                break
            pushed = self.project(self.x - multipliers) + multipliers
            held = (pushed < self.lower) | (pushed > self.upper) | (self.lower == self.upper)
            slope = self.slope(self.x - multipliers)
            step = np.where(held, 0.0, -multipliers)
            missing = gap[held] - slope[np.ix_(held, ~held)] @ step[~held]
            step[held] = np.linalg.lstsq(
                slope[np.ix_(held, held)], missing, rcond=PRODUCT_ROUNDING
            )[0]
            gap = self.gap(multipliers + step)
            found = float(np.max(np.abs(gap), initial=0.0))
            if not found < 0.5 * distance:
                break
            multipliers, distance = multipliers + step, found
        return multipliers, distance


def find_multipliers(equation: Equation, far_start: Callable[[], FloatArray | None]) -> FloatArray:
    """The multipliers of the box, the most accurate that were found.

    Dykstra's method needs many steps to large ones: `far_start` gives others to begin with.
    """
    multipliers = np.zeros(equation.x.size)
    best, least = multipliers, np.inf
    goal = ACCURACY * equation.scale
    for steps in DYKSTRA_STEPS:
        for _ in range(steps):
            multipliers = multipliers + equation.gap(multipliers)
        found, distance = equation.newton(multipliers)
        if distance < least:
            best, least = found, distance
        if least <= goal:
            return best
    start = far_start()
    if start is not None:
        found, distance = equation.newton(start)
        if distance < least:
            best = found
    return best
