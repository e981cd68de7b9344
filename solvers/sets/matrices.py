"""Symmetric matrices between two multiples of the identity, stored as `algebra.symmetric` stores them."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import cached_property, dataclass
from hcmodel.solvers.algebra.symmetric import (
    ROOT_TWO,
    rotated_basis,
    to_matrix,
    to_vector,
    triangle,
)
from hcmodel.solvers.numerics import BACKEND_ROUNDING, DATA_ROUNDING
from hcmodel.solvers.qp.program import Cone, StepRows
from hcmodel.solvers.sets.box import least_over_sides
from hcmodel.solvers.sets.domain import Domain
from hcmodel.solvers.sets.half_spaces import HalfSpaces

FloatArray = NDArray[np.float64]

# Smaller eigenvalues, relative to the largest, are raised to this in lengths relative to them. On the
# regulators of tests/benchmarks/calls.py sbl-adals needs the same points with 1e-8.
SMALLEST_FACTOR = 1e-3
# Without an upper bound, eigenvalues are sampled up to this much above the lower one, or above 0.
SAMPLED_LENGTHS = 10.0


@dataclass(frozen=True)
class SymmetricMatrices(Domain):
    """Symmetric P with smallest·I ⪯ P ⪯ largest·I; either may be infinite."""

    order: int
    smallest: float = -np.inf
    largest: float = np.inf

    @property
    def dimension(self) -> int:
        return self.order * (self.order + 1) // 2

    def project(self, x: FloatArray) -> FloatArray:
        if np.isinf(self.smallest) and np.isinf(self.largest):
            return np.array(x)
        values, vectors = np.linalg.eigh(to_matrix(x))
        if values[0] >= self.smallest and values[-1] <= self.largest:
            return np.array(x)
        inside = np.clip(values, self.smallest, self.largest)
        return to_vector((vectors * inside) @ vectors.T)

    def contains(self, x: FloatArray, tolerance: float = 0.0) -> bool:
        if not np.isfinite(x).all():
            return False
        values = np.linalg.eigvalsh(to_matrix(x))
        slack = max(tolerance, DATA_ROUNDING * max(1.0, float(np.abs(values).max(initial=0.0))))
        return bool(values[0] >= self.smallest - slack and values[-1] <= self.largest + slack)

    def normal_cone_distance(self, x: FloatArray, direction: FloatArray) -> FloatArray:
        """The projection onto the tangent cone: semidefinite on the eigenspaces of the bounds."""
        values, vectors = np.linalg.eigh(to_matrix(x))
        wanted = vectors.T @ to_matrix(direction) @ vectors
        reach = BACKEND_ROUNDING * max(1.0, float(np.abs(values).max(initial=0.0)))
        for held, sign in (
            (values <= self.smallest + reach, 1.0),
            (values >= self.largest - reach, -1.0),
        ):
            if held.any():
                block = np.ix_(held, held)
                inner, frame = np.linalg.eigh(sign * wanted[block])
                wanted[block] = sign * (frame * np.maximum(inner, 0.0)) @ frame.T
        return to_vector(vectors @ wanted @ vectors.T)

    def bound_multipliers(
        self, x: FloatArray, direction: FloatArray, tolerance: float
    ) -> FloatArray:
        return np.zeros(self.dimension)

    def norm(self, x: FloatArray) -> FloatArray:
        """‖P^−½ D P^−½‖, since positive definite matrices move by factors, as positive numbers do."""
        if self.smallest < 0:
            return np.ones(self.dimension)
        values, vectors = np.linalg.eigh(to_matrix(x / self.metric(x)))
        values = np.maximum(values, SMALLEST_FACTOR)
        rows, columns = triangle(self.order)
        basis = rotated_basis(vectors)
        return np.asarray((basis / (values[rows] * values[columns])) @ basis.T)

    def width(self) -> FloatArray:
        return np.full(self.dimension, np.inf)

    def metric(self, x: FloatArray) -> FloatArray:
        size = max(1.0, float(np.max(np.abs(x), initial=0.0)))
        width = self.largest - self.smallest
        return np.full(self.dimension, min(size, width) if width > 0 else 1.0)

    @cached_property
    def moving_together(self) -> tuple[NDArray[np.intp], ...]:
        bounded = np.isfinite(self.smallest) or np.isfinite(self.largest)
        return (np.arange(self.dimension),) if bounded and self.dimension else ()

    def cone_rows(self) -> StepRows:
        return self.step_rows(np.zeros(self.dimension), np.ones(self.dimension))

    def step_rows(self, x: FloatArray, metric: FloatArray) -> StepRows:
        free = np.full(self.dimension, np.inf)
        numbers = np.arange(self.dimension + 1)
        identity = to_vector(np.eye(self.order))
        cones = []
        for end, sign in ((self.smallest, 1.0), (self.largest, -1.0)):
            if np.isfinite(end):
                parts = (sign * metric, numbers[:-1], numbers)
                scaled = scipy.sparse.csr_array(parts, shape=(self.dimension, self.dimension))
                cones.append(Cone("psd", scaled, sign * (x - end * identity)))
        return StepRows(-free, free, tuple(cones))

    def tangent_basis(self) -> scipy.sparse.csr_array:
        free = self.dimension if self.largest > self.smallest else 0
        return scipy.sparse.csr_array(scipy.sparse.eye_array(self.dimension, free))

    def face_basis(self, x: FloatArray, share: float) -> scipy.sparse.csr_array:
        """All symmetric directions but those within the eigenspace of a bound."""
        length, vectors, free = self._face(x, share)
        return scipy.sparse.csr_array(length * rotated_basis(vectors)[:, free])

    def along_face(self, x: FloatArray, share: float, vectors: FloatArray) -> FloatArray:
        """The columns as matrices in the basis of the eigenvectors: n³ operations each, and not n⁴."""
        length, own, free = self._face(x, share)
        columns = vectors.reshape(self.dimension, -1).T
        turned = [to_vector(own.T @ to_matrix(column) @ own)[free] for column in columns]
        found = length * np.array(turned).reshape(len(columns), -1).T
        return np.asarray(found.reshape(-1, *vectors.shape[1:]))

    def _face(self, x: FloatArray, share: float) -> tuple[float, FloatArray, NDArray[np.bool_]]:
        """The natural length, the eigenvectors, and which pairs of them no bound holds."""
        values, vectors = np.linalg.eigh(to_matrix(x))
        length = float(self.metric(x)[0])
        bound = np.where(values - self.smallest <= share * length, -1, 0)
        bound = np.where(self.largest - values <= share * length, 1, bound)
        rows, columns = triangle(self.order)
        return length, vectors, (bound[rows] == 0) | (bound[rows] != bound[columns])

    def entry_bounds(self) -> tuple[FloatArray, FloatArray]:
        rows, columns = triangle(self.order)
        # |P_ij| is at most half the spread of the eigenvalues, and √2 P_ij is what is stored
        spread = (self.largest - self.smallest) / ROOT_TWO
        on = rows == columns
        return np.where(on, self.smallest, -spread), np.where(on, self.largest, spread)

    def cuts(self, center: FloatArray) -> HalfSpaces:
        """±2 P_ij <= (P_ii − δ) + (P_jj − δ) for matrices P ⪰ δ I."""
        if np.isinf(self.smallest):
            return HalfSpaces.none(self.dimension)
        rows, columns = triangle(self.order)
        diagonal = np.flatnonzero(rows == columns)
        normals, offsets = [], []
        for place in np.flatnonzero(rows != columns):
            for sign in (1.0, -1.0):
                normal = np.zeros(self.dimension)
                normal[place] = sign * ROOT_TWO
                normal[diagonal[[rows[place], columns[place]]]] = -1.0
                normals.append(normal)
                offsets.append(-2.0 * self.smallest - float(normal @ center))
        return HalfSpaces(np.array(normals).reshape(-1, self.dimension), np.array(offsets))

    def least(self, slope: FloatArray, center: FloatArray, reach: float = np.inf) -> float:
        values, vectors = np.linalg.eigh(to_matrix(slope))
        own = np.einsum("ki,kl,li->i", vectors, to_matrix(center), vectors)
        return least_over_sides(values, self.smallest - own, self.largest - own, reach)

    def support(self, direction: FloatArray) -> float:
        values = np.linalg.eigvalsh(to_matrix(direction))
        bounds = np.where(values > 0, self.largest, self.smallest)
        return float(np.sum(values[values != 0] * bounds[values != 0]))

    def diameter(self) -> float:
        return float(np.sqrt(self.order) * (self.largest - self.smallest))

    def sample(self, generator: np.random.Generator) -> FloatArray:
        frame, _ = np.linalg.qr(generator.normal(size=(self.order, self.order)))
        low = self.smallest if np.isfinite(self.smallest) else min(-1.0, self.largest - 1.0)
        high = self.largest if np.isfinite(self.largest) else max(low, 0.0) + SAMPLED_LENGTHS
        share = generator.random(self.order)
        values = low * (high / low) ** share if low > 0 else low + share * (high - low)
        return to_vector((frame * values) @ frame.T)

    def middle(self) -> FloatArray:
        low, high = self.smallest, self.largest
        if low > 0 and np.isfinite(high):
            value = np.sqrt(low) * np.sqrt(high)
        elif np.isfinite(low) and np.isfinite(high):
            value = 0.5 * (low + high)
        else:
            value = float(np.clip(1.0, low, high)) if np.isfinite(low) else min(0.0, high)
        return to_vector(value * np.eye(self.order))


def eigenvalue_multipliers(
    matrix: FloatArray, direction: FloatArray, limits: tuple[float, float], tolerance: float
) -> tuple[FloatArray, FloatArray]:
    """L and U, semidefinite: U − L is the part of a direction that limits of eigenvalues balance.

    L is on the eigenspace of the smallest eigenvalue and U on that of the largest, as far as the matrix
    has them within the tolerance, relative to max(1, |eigenvalues|).
    """
    values, vectors = np.linalg.eigh(matrix)
    reach = tolerance * max(1.0, float(np.abs(values).max(initial=0.0)))
    found = []
    for held, sign in ((values <= limits[0] + reach, -1.0), (values >= limits[1] - reach, 1.0)):
        own = vectors[:, held]
        pushes, frame = np.linalg.eigh(sign * (own.T @ direction @ own))
        turned = own @ frame
        found.append((turned * np.maximum(pushes, 0.0)) @ turned.T)
    return found[0], found[1]
