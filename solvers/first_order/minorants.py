"""Linearisations of a function that looks convex: a lower bound around a point, and the next point.

Level method (Lemaréchal, Nemirovskii and Nesterov, New variants of bundle methods, 1995). Every trial
k of a run gives a linearisation, and all of them are kept. In a box of the radius R around the best
point ŷ,

    bound:   minimise t      s.t.  f_k + g_k·(y − y_k) <= t,      |y − ŷ| <= R
    level:   project ŷ onto        f_k + g_k·(y − y_k) <= level

The weights of the first program combine the linearisations to one that is flat where no side of the box
holds the minimum. It shows that a convex function has no value below the bound anywhere. Of a function
that is not known to be convex it shows that ŷ is stationary as far as the trials tell.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf

from hcmodel.records import dataclass
from hcmodel.solvers.numerics import BACKEND_ROUNDING, TINY
from hcmodel.solvers.qp import (
    ConeBlock,
    ConeKind,
    ConeOptions,
    QuadraticProgram,
    cone_program,
    make_cone_backend,
)
from hcmodel.solvers.qp.program import StepRows

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LinearBound:
    """`gap` is the value at the point above the bound, `weights` are those of the linearisations.

    `held` says that a side of the box, and no bound of the domain, holds the minimum.
    """

    gap: float
    weights: FloatArray
    held: bool


@dataclass(frozen=True, eq=False)
class Minorants:
    """Points, values and gradients of all trials."""

    points: FloatArray
    values: FloatArray
    slopes: FloatArray

    def errors(self, y: FloatArray, value: float) -> FloatArray:
        """How far the linearisations lie below a value at a point; negative above it."""
        return np.asarray(value - self.values - np.sum(self.slopes * (y - self.points), axis=1))

    def bound(
        self, y: FloatArray, value: float, radius: float, limits: tuple[FloatArray, FloatArray]
    ) -> LinearBound | None:
        """The first program; None where the backend fails."""
        size, count = y.size, self.values.size
        scale = self._scale
        lower, upper = _sides(y, radius, limits)
        cuts = np.hstack([self.slopes / scale, -np.ones((count, 1))])
        sides = np.hstack([np.eye(size), np.zeros((size, 1))])
        matrix = scipy.sparse.csc_matrix(np.vstack([cuts, sides, -sides]))
        offset = np.concatenate([self.errors(y, value) / (scale * radius), upper, -lower])
        linear = np.append(np.zeros(size), 1.0)
        program = cone_program(
            linear, matrix, offset, [ConeBlock(ConeKind.NONNEGATIVE, offset.size)]
        )
        answer = make_cone_backend().solve(program, ConeOptions(tolerance=BACKEND_ROUNDING))
        if not answer.usable:
            return None
        weights = np.maximum(answer.dual[:count], 0.0)
        above, below = answer.dual[count : count + size], answer.dual[count + size :]
        held = np.where(upper >= 1.0, above, 0.0) + np.where(lower <= -1.0, below, 0.0)
        return LinearBound(
            gap=-float(answer.primal[-1]) * scale * radius,
            weights=weights / max(float(np.sum(weights)), TINY),
            held=float(np.max(np.abs(held), initial=0.0)) > np.sqrt(BACKEND_ROUNDING),
        )

    def step(
        self,
        y: FloatArray,
        value: float,
        fall: float,
        radius: float,
        limits: tuple[FloatArray, FloatArray],
        backend: Any,
    ) -> FloatArray | None:
        """The second program: the shortest step on which no linearisation stays above the level."""
        size = y.size
        scale = self._scale
        lower, upper = _sides(y, radius, limits)
        program = QuadraticProgram(
            np.eye(size),
            np.zeros(size),
            self.slopes / scale,
            (self.errors(y, value) - fall) / (scale * radius),
            np.zeros((0, size)),
            np.zeros(0),
            StepRows(lower, upper),
        )
        answer = backend.solve(program)
        if not answer.usable:
            return None
        return np.asarray(radius * np.clip(answer.step, lower, upper))

    def newton(
        self, y: FloatArray, value: float, slope: FloatArray, inverse: FloatArray
    ) -> FloatArray:
        """The step to the least value of the larger of a quadratic model and all linearisations.

        The model has value and slope of the point y, and the inverse of its matrix is given. Where no
        linearisation exceeds it at its own minimum, the step is that of a quasi-Newton method.
        """
        step = -inverse @ slope
        fall = -float(slope @ step)
        below = self.errors(y, value)
        if not fall > 0 or np.all(self.slopes @ step - below <= -fall / 2):
            return step
        root, failed = dpotrf(inverse, lower=1, clean=1)
        if failed:
            return step
        # d = √fall·L z with L Lᵀ = inverse, and values in units of the fall: z and the slope are near 1
        slopes = np.vstack([slope, self.slopes]) @ root / np.sqrt(fall)
        count, size = slopes.shape
        cone = np.zeros((size + 2, size + 1))  # ½|z|² <= t − slope·z as ‖(z, u − ½)‖ <= u + ½
        cone[0, :size] = cone[-1, :size] = slopes[0]
        cone[0, size] = cone[-1, size] = -1.0
        cone[1:-1, :size] = -np.eye(size)
        cuts = np.hstack([slopes[1:], -np.ones((count - 1, 1))])
        offset = np.concatenate([below / fall, [0.5], np.zeros(size), [-0.5]])
        blocks = [
            ConeBlock(ConeKind.NONNEGATIVE, count - 1),
            ConeBlock(ConeKind.SECOND_ORDER, size + 2),
        ]
        matrix = scipy.sparse.csc_matrix(np.vstack([cuts, cone]))
        program = cone_program(np.append(np.zeros(size), 1.0), matrix, offset, blocks)
        answer = make_cone_backend().solve(program, ConeOptions(tolerance=BACKEND_ROUNDING))
        if not answer.usable:
            return step
        return np.asarray(np.sqrt(fall) * (root @ answer.primal[:size]))

    @property
    def _scale(self) -> float:
        return max(float(np.max(np.abs(self.slopes), initial=0.0)), TINY)


def _sides(
    y: FloatArray, radius: float, limits: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """The sides of the box around y, in radii."""
    lower = np.maximum((limits[0] - y) / radius, -1.0)
    upper = np.minimum((limits[1] - y) / radius, 1.0)
    return np.minimum(lower, 0.0), np.maximum(upper, 0.0)
