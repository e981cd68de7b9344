"""The convex set X of a problem, with everything that is asked of it.

A new set has to define five members: its dimension, the nearest point (`project`), itself as bounds and
cones (`cone_rows`), the directions in which it extends (`tangent_basis`) and a central point (`middle`).
Everything else has a default that follows from these. The defaults are correct but slow, most of them
solve a cone program; a set overrides them where it has something faster or exact.

Steps d are handed to a QP in the units of `metric(x)`, so that one unit is a natural move at x for every
coordinate.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import cached_property
from hcmodel.solvers.numerics import BACKEND_ROUNDING, DATA_ROUNDING, SUM_ROUNDING
from hcmodel.solvers.qp.program import StepRows
from hcmodel.solvers.sets.cone_programs import face_equations, shifted, solve_over, tangent_rows
from hcmodel.solvers.sets.half_spaces import HalfSpaces

FloatArray = NDArray[np.float64]

# Bounds farther than this, in natural units, are left out: no step goes there, and numbers of such a size
# spoil the QP. Without it tests/solvers/first_order/test_bundle_level.py fails at bounds of ±1e7; from
# 1e3 to 1e8 the problems of tests/benchmarks/calls.py need the same points.
FARTHEST = 1e5
# The share of a variable's range that counts as a natural move at least, where units have to be safe.
# With 1e-6 a test of false minima in tests/hcmodel/solving/test_claims.py fails; with 1e-2 the problems
# of tests/benchmarks/calls.py need the same points.
ROOM = 1e-4
# Proximal steps of the default support function: their length in diameters, by which each of them
# reduces the error on a curved set, and their number, which reduces 1e-6 to rounding.
PROXIMAL_LENGTH = 1e3
PROXIMAL_STEPS = 3
# The margin, relative to max(1, |value|), by which bounds from a cone program are widened: the
# accuracy that is asked of the backend, with room for what it reports as solved to less.
PROGRAM_MARGIN = 1e-7


class Domain(ABC):
    """A closed convex set that is not empty, immutable."""

    # ---- what every set has to say

    if (
        TYPE_CHECKING
    ):  # only the type: a dataclass field of this name would take a property as default

        @property
        @abstractmethod
        def dimension(self) -> int:
            """The number of coordinates of a point."""

    @abstractmethod
    def project(self, x: FloatArray) -> FloatArray:
        """The nearest point of X."""

    @abstractmethod
    def cone_rows(self) -> StepRows:
        """X itself: bounds on x, and cones that `offset + matrix @ x` lies in."""

    @abstractmethod
    def tangent_basis(self) -> scipy.sparse.csr_array:
        """Orthonormal columns that span the directions in which X extends."""

    @abstractmethod
    def middle(self) -> FloatArray:
        """A central point, geometric where the lower bound is positive."""

    @cached_property
    def moving_together(self) -> tuple[NDArray[np.intp], ...]:
        """The entries of each matrix and of each distribution, which can only move together."""
        groups: dict[tuple[int, ...], NDArray[np.intp]] = {}
        if self.is_box:
            return ()
        for cone in self.cone_rows().cones:
            matrix = cone.matrix
            parts = [matrix.indices]
            if cone.kind != "psd":
                parts = np.split(matrix.indices, matrix.indptr[1:-1])
            groups.update({tuple(part.tolist()): part for part in parts if part.size})
        return tuple(groups.values())

    # ---- a point of X, and what X looks like from there

    def contains(self, x: FloatArray, tolerance: float = 0.0) -> bool:
        """Whether x lies in X, within the tolerance or rounding in each entry."""
        if not np.isfinite(x).all():
            return False
        slack = max(tolerance, DATA_ROUNDING * max(1.0, float(np.max(np.abs(x), initial=0.0))))
        return float(np.max(np.abs(self.project(x) - x), initial=0.0)) <= slack

    def normal_cone_distance(self, x: FloatArray, direction: FloatArray) -> FloatArray:
        """direction minus its nearest element of the normal cone N_X(x), entry by entry.

        By Moreau's theorem this is the projection of the direction onto the tangent cone.
        """
        return self._inward(x, direction, BACKEND_ROUNDING)[0]

    def bound_multipliers(
        self, x: FloatArray, direction: FloatArray, tolerance: float
    ) -> FloatArray:
        """The part of a normal direction that bounds on single entries balance.

        Positive at upper bounds, negative at lower ones; what is nearer to a bound than the tolerance,
        relative to max(1, |x|), counts as on it.
        """
        return self._inward(x, direction, tolerance)[1]

    def _inward(
        self, x: FloatArray, direction: FloatArray, tolerance: float
    ) -> tuple[FloatArray, FloatArray]:
        """The nearest direction of the tangent cone, and the multipliers of the bounds on entries."""
        length = float(np.linalg.norm(direction))
        if length == 0.0:
            return direction, direction
        rows = tangent_rows(self.cone_rows(), x, tolerance)
        solution = solve_over(rows, np.ones(x.size), -direction / length)
        return length * solution.step, length * solution.bound_multipliers

    def face_basis(self, x: FloatArray, share: float) -> scipy.sparse.csr_array:
        """Directions of natural length along the smallest face of X that x lies on or almost on.

        What is nearer to a bound than `share` of the natural length counts as on it.
        """
        metric = self.metric(x)
        held, equations = face_equations(self.cone_rows(), x, metric, share)
        tangent = self.tangent_basis().toarray()
        # scipy before 1.14 takes no empty matrix
        hull = scipy.linalg.null_space(tangent.T) if tangent.size else np.eye(x.size)
        equations = np.vstack([equations, hull.T * metric])
        free = np.flatnonzero(~held)
        inner = np.eye(free.size)
        if equations.shape[0] and free.size:
            inner = scipy.linalg.null_space(equations[:, free])
        basis = np.zeros((x.size, inner.shape[1]))
        basis[free] = inner * metric[free, None]
        return scipy.sparse.csr_array(basis)

    def along_face(self, x: FloatArray, share: float, vectors: FloatArray) -> FloatArray:
        """The transposed `face_basis` times the columns of an array, without the basis where known."""
        return np.asarray(self.face_basis(x, share).T @ vectors)

    def step_rows(self, x: FloatArray, metric: FloatArray) -> StepRows:
        """The scaled steps from x that stay in X, as far as a linear model can be trusted."""
        rows = shifted(self.cone_rows(), x, metric)
        lower = np.where(rows.lower < -FARTHEST, -np.inf, rows.lower)
        return StepRows(lower, np.where(rows.upper > FARTHEST, np.inf, rows.upper), rows.cones)

    # ---- units

    def metric(self, x: FloatArray) -> FloatArray:
        """A length for each coordinate: what counts as one unit of movement at x."""
        width = self.width()
        return np.where(width > 0, np.minimum(np.maximum(np.abs(x), 1.0), width), 1.0)

    def norm(self, x: FloatArray) -> FloatArray:
        """M of the natural length √(sᵀMs) of a step s in units of the metric, a vector if diagonal."""
        return np.ones(self.dimension)

    def width(self) -> FloatArray:
        """How far each coordinate can move within X.

        Infinite without a bound, and where a coordinate moves by factors.
        """
        lower, upper = self.entry_bounds()
        return upper - lower

    # ---- the set as a whole

    @property
    def is_box(self) -> bool:
        """Whether X is all that lies within its `entry_bounds`."""
        return False

    def entry_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Bounds of the single entries over X: never too narrow, infinite where there is none."""
        return self._program_bounds

    @cached_property
    def _program_bounds(self) -> tuple[FloatArray, FloatArray]:
        """The bounds of the rows, and those that follow from cones by two programs for each entry."""
        rows = self.cone_rows()
        lower, upper = rows.lower.copy(), rows.upper.copy()
        entries = [np.unique(cone.matrix.indices) for cone in rows.cones]
        for entry in np.unique(np.concatenate([*entries, np.zeros(0, dtype=int)])):
            for bounds, sign in ((upper, 1.0), (lower, -1.0)):
                if np.isinf(bounds[entry]):
                    direction = np.zeros(self.dimension)
                    direction[entry] = sign
                    far = self._farthest(direction)
                    if far is not None:
                        value = float(far[entry])
                        bounds[entry] = value + sign * PROGRAM_MARGIN * max(1.0, abs(value))
        return lower, upper

    def support(self, direction: FloatArray) -> float:
        """max of direction·x over X, possibly infinite; never too small but for rounding.

        By default from a point y near the maximum. With y' = project(y + t·direction) every x of X has
        direction·x <= direction·y' + |y' − y||x − y'|/t, which is exact at the maximum. Where X is
        unbounded and the maximum is finite, it has the accuracy of the cone program.
        """
        point = self._farthest(direction)
        if point is None:
            return np.inf
        point, length = self.project(point), float(np.linalg.norm(direction))
        reach = self.diameter()
        if length == 0.0 or reach == 0.0:
            return float(direction @ point)
        if np.isinf(reach):
            value = float(direction @ point)
            return value + PROGRAM_MARGIN * max(1.0, abs(value))
        values = []
        for _ in range(PROXIMAL_STEPS):
            moved = self.project(point + PROXIMAL_LENGTH * reach / length * direction)
            slack = float(np.linalg.norm(moved - point)) * length / PROXIMAL_LENGTH
            values.append(float(direction @ moved) + slack)
            point = moved
        return min(values) + SUM_ROUNDING * abs(min(values))

    def _farthest(self, direction: FloatArray) -> FloatArray | None:
        """A point that is farthest in the direction, to the backend's accuracy; None without one."""
        length = float(np.linalg.norm(direction))
        if length == 0.0:
            return self.middle()
        solution = solve_over(self.cone_rows(), np.zeros(self.dimension), -direction / length)
        return solution.step if solution.usable else None

    def diameter(self) -> float:
        """An upper bound of ‖x − y‖ over X, possibly infinite."""
        lower, upper = self.entry_bounds()
        return float(np.linalg.norm(upper - lower))

    def sample(self, generator: np.random.Generator) -> FloatArray:
        """A random point; unbounded directions are sampled at unit scale around the middle."""
        middle, width = self.middle(), self.width()
        spread = np.where(np.isfinite(width), width, self.metric(middle))
        far = self.project(middle + spread * generator.normal(size=self.dimension))
        # Moved inwards, because the projection alone would put most of the points on the boundary.
        return np.asarray(middle + generator.random() * (far - middle))

    # ---- what certificates ask

    def least(self, slope: FloatArray, center: FloatArray, reach: float = np.inf) -> float:
        """A number that slope·(v − center) does not fall below for v in X, |v − center| <= reach."""
        value = -self.support(-slope) - float(slope @ center)
        if np.isinf(value) and np.isfinite(reach):
            return -float(np.linalg.norm(slope)) * reach
        return value

    def half_spaces(self, center: FloatArray) -> HalfSpaces:
        """Half-spaces that contain X: those of the bounds on entries first, then `cuts`."""
        lower, upper = self.entry_bounds()
        return HalfSpaces.joined([HalfSpaces.between(lower, upper, center), self.cuts(center)])

    def cuts(self, center: FloatArray) -> HalfSpaces:
        """Half-spaces that contain X and are not bounds on single entries."""
        return HalfSpaces.none(self.dimension)

    # ---- what the analysis asks: KKT points beyond doubt

    def snapped(self, x: FloatArray, share: float) -> FloatArray:
        """x with the coordinates that are almost on a bound put onto it, where that is well defined.

        `share` is in natural lengths. The default moves nothing.
        """
        return x.copy()

    def flat_face(self, x: FloatArray, share: float) -> FloatArray | None:
        """`face_basis` as an array where the face of x is flat; None on curved faces.

        By default only an inner point is known to lie on a flat face.
        """
        basis = self.face_basis(x, share).toarray()
        return None if basis.shape[1] < self.dimension else np.asarray(basis)

    def weakest_bound(self, x: FloatArray, gradient: FloatArray) -> float:
        """The least force, −gradient in natural units, against a bound that holds x on a flat face."""
        return np.inf

    # ---- the same set in other terms

    def in_logarithms(self, logs: NDArray[np.bool_]) -> Domain:
        """X in the coordinates log x_i for the marked entries and x_i for the others."""
        if logs.any():
            raise ValueError("logarithmic coordinates are for boxes")
        return self

    def without_bounds(self, entries: NDArray[np.bool_]) -> Domain:
        """X without the bounds of the marked entries, where these are bounds of a box."""
        return self


def roomy_metric(domain: Domain, x: FloatArray) -> FloatArray:
    """Natural lengths; a variable that may be very large has its unit even where it is small."""
    width = domain.width()
    roomy = np.where(np.isfinite(width), ROOM * width, 0.0)
    return np.maximum(domain.metric(x), roomy)
