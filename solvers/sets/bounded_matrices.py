"""Symmetric matrices with bounds on their eigenvalues and on their entries.

This is the intersection of two sets that are easy by themselves, a box and a spectral set; so is its
tangent cone at a point. The support function and a central point come from small cone programs.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import cached_property, dataclass
from hcmodel.solvers.algebra.symmetric import (
    clip_slope,
    rotated_basis,
    to_matrix,
    to_vector,
    triangle,
)
from hcmodel.solvers.numerics import BACKEND_ROUNDING, DATA_ROUNDING, PRODUCT_ROUNDING
from hcmodel.solvers.qp.program import Cone, QuadraticProgram, StepRows
from hcmodel.solvers.qp.table import make_backend
from hcmodel.solvers.sets.box import Box
from hcmodel.solvers.sets.cone_programs import solve_over
from hcmodel.solvers.sets.domain import FARTHEST, Domain
from hcmodel.solvers.sets.half_spaces import HalfSpaces
from hcmodel.solvers.sets.intersection import Equation, find_multipliers
from hcmodel.solvers.sets.matrices import SymmetricMatrices

FloatArray = NDArray[np.float64]

# The weight of a matrix's own size in the search for a central one: it decides between matrices of equal
# room, and costs about 1e-6 of it.
SMALL_CENTER = 1e-6
# The room, relative to the bounds, that counts as none: a hundred times the backend's accuracy.
NO_ROOM = 1e-8


@dataclass(frozen=True)
class BoundedMatrices(Domain):
    """`entries` bounds the stored vector, whose off-diagonal entries are times √2."""

    matrices: SymmetricMatrices
    entries: Box

    def __post_init__(self) -> None:
        if self.entries.dimension != self.matrices.dimension:
            raise ValueError("the bounds on entries are those of the stored triangle")
        if self._center[1] < 0.0:
            raise ValueError(
                "empty set: no matrix satisfies the bounds on its eigenvalues and those on its entries"
            )

    @property
    def dimension(self) -> int:
        return self.matrices.dimension

    # ---- the projection

    def project(self, x: FloatArray) -> FloatArray:
        if self.entries.contains(x) and self.matrices.contains(x):
            return np.array(x)
        equation = Equation(
            x, self.matrices.project, self._slope, self.entries.lower, self.entries.upper
        )
        multipliers = find_multipliers(
            equation, lambda: solve_over(self.cone_rows(), np.ones(x.size), -x).bound_multipliers
        )
        return self._inside(equation.point(multipliers))

    def _slope(self, x: FloatArray) -> FloatArray:
        """The derivative of the projection onto the bounds on eigenvalues."""
        return clip_slope(to_matrix(x), self.matrices.smallest, self.matrices.largest)

    def _inside(self, x: FloatArray) -> FloatArray:
        """x, which satisfies the bounds on entries, moved towards the center until it satisfies all."""
        values = np.linalg.eigvalsh(to_matrix(x))
        center = self._center[0]
        inner = np.linalg.eigvalsh(to_matrix(center))
        share = 0.0
        for excess, room in (
            (self.matrices.smallest - values[0], inner[0] - self.matrices.smallest),
            (values[-1] - self.matrices.largest, self.matrices.largest - inner[-1]),
        ):
            if excess > 0 and room > 0:
                share = max(share, excess / (excess + room))
        return np.asarray(x + share * (center - x))

    def contains(self, x: FloatArray, tolerance: float = 0.0) -> bool:
        slack = max(tolerance, DATA_ROUNDING * max(1.0, float(np.abs(x).max(initial=0.0))))
        return self.entries.contains(x, slack) and self.matrices.contains(x, tolerance)

    # ---- what a point looks like from inside

    def normal_cone_distance(self, x: FloatArray, direction: FloatArray) -> FloatArray:
        """The projection onto the tangent cone: inward at the bounds of entries and eigenvalues."""
        return self._split(x, direction, BACKEND_ROUNDING)[0]

    def bound_multipliers(
        self, x: FloatArray, direction: FloatArray, tolerance: float
    ) -> FloatArray:
        return self._split(x, direction, tolerance)[1]

    def _split(
        self, x: FloatArray, direction: FloatArray, tolerance: float
    ) -> tuple[FloatArray, FloatArray]:
        """The direction's part in the tangent cone, and the multipliers of the bounds on entries."""
        length = float(np.linalg.norm(direction))
        if length == 0.0:
            return direction, direction
        cone = _TangentCone.at(x, self.matrices, tolerance)
        reach = tolerance * np.maximum(1.0, np.abs(x))
        lower = np.where(x <= self.entries.lower + reach, 0.0, -np.inf)
        upper = np.where(x >= self.entries.upper - reach, 0.0, np.inf)
        wanted = direction / length

        def by_program() -> FloatArray:
            rows = StepRows(lower, upper, cone.cones())
            return solve_over(rows, np.ones(x.size), -wanted).bound_multipliers

        equation = Equation(wanted, cone.project, cone.slope, lower, upper)
        multipliers = find_multipliers(equation, by_program)
        return length * equation.point(multipliers), length * multipliers

    def norm(self, x: FloatArray) -> FloatArray:
        return self.matrices.norm(x)

    def width(self) -> FloatArray:
        return np.full(self.dimension, np.inf)

    def metric(self, x: FloatArray) -> FloatArray:
        width = self.entries.upper - self.entries.lower
        length = self.matrices.metric(x)
        return np.where(width > 0, np.minimum(length, width), length)

    def cone_rows(self) -> StepRows:
        return StepRows(self.entries.lower, self.entries.upper, self.matrices.cone_rows().cones)

    def step_rows(self, x: FloatArray, metric: FloatArray) -> StepRows:
        lower = np.minimum((self.entries.lower - x) / metric, 0.0)
        upper = np.maximum((self.entries.upper - x) / metric, 0.0)
        return StepRows(
            np.where(lower < -FARTHEST, -np.inf, lower),
            np.where(upper > FARTHEST, np.inf, upper),
            self.matrices.step_rows(x, metric).cones,
        )

    def tangent_basis(self) -> scipy.sparse.csr_array:
        """The entries that are not fixed; fixed ones are taken to leave the eigenvalues room."""
        return self.entries.tangent_basis()

    def face_basis(self, x: FloatArray, share: float) -> scipy.sparse.csr_array:
        """The directions along the eigenvalues' face that do not move entries off their bounds."""
        basis = self.matrices.face_basis(x, share).toarray()
        reach = share * self.metric(x)
        held = (x - self.entries.lower <= reach) | (self.entries.upper - x <= reach)
        if not held.any() or not basis.size:
            return scipy.sparse.csr_array(basis)
        length = np.linalg.norm(basis[:, 0])
        return scipy.sparse.csr_array(basis @ scipy.linalg.null_space(basis[held] / length))

    # ---- the set as a whole

    def entry_bounds(self) -> tuple[FloatArray, FloatArray]:
        low, high = self.matrices.entry_bounds()
        return np.maximum(low, self.entries.lower), np.minimum(high, self.entries.upper)

    def cuts(self, center: FloatArray) -> HalfSpaces:
        return self.matrices.cuts(center)

    def least(self, slope: FloatArray, center: FloatArray, reach: float = np.inf) -> float:
        if np.isfinite(self.matrices.largest):
            return super().least(slope, center, reach)
        return max(each.least(slope, center, reach) for each in (self.matrices, self.entries))

    def support(self, direction: FloatArray) -> float:
        """By duality: σ(d) <= σ₁(d − z) + σ₂(z) for every z, with equality at the multipliers.

        So the value is never too small but for an unbounded set on which the maximum is finite,
        where it has the accuracy of the cone program.
        """
        origin = np.zeros(self.dimension)
        solution = solve_over(self.cone_rows(), origin, -direction)
        candidates = [origin, direction]
        if solution.usable:
            candidates.append(solution.bound_multipliers)
        bounds = [self._dual_bound(direction, multipliers) for multipliers in candidates]
        best = min(bounds)
        if np.isinf(best) and solution.usable:
            return float(direction @ solution.step)
        return best

    def _dual_bound(self, direction: FloatArray, multipliers: FloatArray) -> float:
        if np.isinf(self.matrices.largest):  # d − z must have no positive eigenvalue, to rounding
            rest = np.linalg.eigvalsh(to_matrix(direction - multipliers))
            excess = rest[-1] + PRODUCT_ROUNDING * float(np.abs(rest).max())
            identity = to_vector(np.eye(self.matrices.order))
            multipliers = multipliers + max(excess, 0.0) * identity
        return self.matrices.support(direction - multipliers) + self.entries.support(multipliers)

    def diameter(self) -> float:
        return min(self.matrices.diameter(), self.entries.diameter())

    def sample(self, generator: np.random.Generator) -> FloatArray:
        middle = self.middle()
        # Moved inwards, because the projection alone would put most of the points on bounds.
        far = self.project(self.matrices.sample(generator))
        return middle + generator.random() * (far - middle)

    def middle(self) -> FloatArray:
        plain = self.matrices.middle()
        inside = (plain > self.entries.lower) & (plain < self.entries.upper)
        return plain if inside.all() else np.array(self._center[0])

    @cached_property
    def _center(self) -> tuple[FloatArray, float]:
        """A matrix as far inside as possible, and by how much (at most 1); fixed entries do not count.

        A set without room, such as a fixed matrix with an eigenvalue on its bound, has 0; one that is
        empty a negative number.
        """
        size, box = self.dimension, self.entries
        scale = self._scale()
        margin = np.append(np.zeros(size), 1.0)
        units = np.eye(size + 1)[:size]
        above = (box.upper > box.lower) & np.isfinite(box.upper)
        below = (box.upper > box.lower) & np.isfinite(box.lower)
        fixed = box.lower == box.upper
        free = np.full(size + 1, np.inf)
        program = QuadraticProgram(
            # of several central matrices, a small one
            quadratic=np.append(np.full(size, SMALL_CENTER / scale**2), 0.0),
            linear=-margin,
            inequality=np.vstack([margin[None], margin + units[above], margin - units[below]]),
            inequality_bound=np.concatenate([[1.0], box.upper[above], -box.lower[below]]),
            equality=units[fixed],
            equality_bound=box.lower[fixed],
            domain=StepRows(-free, free, self._margin_cones()),
        )
        solution = make_backend().solve(program)
        if not solution.usable:
            return np.zeros(size), -np.inf
        room = float(solution.step[size])
        return box.project(solution.step[:size]), 0.0 if abs(room) <= NO_ROOM * scale else room

    def _margin_cones(self) -> tuple[Cone, ...]:
        """(smallest + t)·I ⪯ P ⪯ (largest − t)·I in (P, t)."""
        identity = to_vector(np.eye(self.matrices.order))
        stored = scipy.sparse.eye_array(self.dimension)
        column = identity.reshape(-1, 1)
        cones = []
        for bound, sign in ((self.matrices.smallest, 1.0), (self.matrices.largest, -1.0)):
            if np.isfinite(bound):
                matrix = scipy.sparse.csr_array(scipy.sparse.hstack([sign * stored, -column]))
                cones.append(Cone("psd", matrix, -sign * bound * identity))
        return tuple(cones)

    def _scale(self) -> float:
        """The size of the largest of the bounds that hold a matrix away from zero."""
        below = np.where(self.entries.lower > 0, self.entries.lower, 0.0)
        above = np.where(self.entries.upper < 0, -self.entries.upper, 0.0)
        least = self.matrices.smallest if np.isfinite(self.matrices.smallest) else 0.0
        return max(1.0, abs(least), float(below.max(initial=0.0)), float(above.max(initial=0.0)))


@dataclass(frozen=True)
class _TangentCone:
    """Directions that keep eigenvalues on a bound there, or move them inwards, to first order.

    In the eigenvectors' basis these are blocks with a semidefinite matrix in them, and free numbers.
    """

    basis: FloatArray
    blocks: tuple[tuple[NDArray[np.bool_], float], ...]

    @staticmethod
    def at(x: FloatArray, matrices: SymmetricMatrices, tolerance: float) -> _TangentCone:
        values, vectors = np.linalg.eigh(to_matrix(x))
        reach = tolerance * max(1.0, float(np.abs(values).max()))
        rows, columns = triangle(values.size)
        blocks = [
            (held[rows] & held[columns], sign)
            for held, sign in (
                (values <= matrices.smallest + reach, 1.0),
                (values >= matrices.largest - reach, -1.0),
            )
            if held.any()
        ]
        return _TangentCone(rotated_basis(vectors), tuple(blocks))

    def project(self, direction: FloatArray) -> FloatArray:
        parts = self.basis.T @ direction
        for block, sign in self.blocks:
            values, vectors = np.linalg.eigh(to_matrix(sign * parts[block]))
            parts[block] = sign * to_vector((vectors * np.maximum(values, 0.0)) @ vectors.T)
        return np.asarray(self.basis @ parts)

    def slope(self, direction: FloatArray) -> FloatArray:
        parts = self.basis.T @ direction
        inner = np.eye(parts.size)
        for block, sign in self.blocks:
            inner[np.ix_(block, block)] = clip_slope(to_matrix(sign * parts[block]), 0.0, np.inf)
        return np.asarray(self.basis @ inner @ self.basis.T)

    def cones(self) -> tuple[Cone, ...]:
        return tuple(
            Cone(
                "psd", scipy.sparse.csr_array(sign * self.basis[:, block].T), np.zeros(block.sum())
            )
            for block, sign in self.blocks
        )
