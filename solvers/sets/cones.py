"""Domains that are no boxes: products of simplices, and symmetric matrices between two multiples of I.

Symmetric matrices are stored once, as the upper triangle column by column with off-diagonal entries
times √2, so that the Euclidean norm of the stored vector is the Frobenius norm of the matrix and the
vector is what Clarabel's cone of positive semidefinite matrices takes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.solvers.qp.program import Cone, StepRows

FloatArray = NDArray[np.float64]

ROOT_TWO = float(np.sqrt(2.0))
# A probability as near as this to a bound is on it: interior-point steps that end there miss it by less.
ROUNDING = 1e-10
# Eigenvalues below this share of the largest count as so large where a length is relative to them.
SMALLEST_FACTOR = 1e-3


def helmert(length: int) -> FloatArray:
    """Helmert's contrasts: length − 1 orthonormal columns of sum 0."""
    contrasts = np.zeros((length, max(length - 1, 0)))
    for k in range(1, length):
        contrasts[:k, k - 1] = 1.0
        contrasts[k, k - 1] = -k
        contrasts[:, k - 1] /= np.sqrt(k * (k + 1))
    return contrasts


def shift_to_sum(
    values: FloatArray, lower: FloatArray, upper: FloatArray, total: float
) -> FloatArray:
    """For each row the number to subtract so that it, clipped to its bounds, sums to `total`.

    As the number rises the sum falls, linearly between the breaks where an entry meets a bound.
    """
    rows = np.arange(values.shape[0])
    from_upper, to_lower = values - upper, values - lower
    breaks = np.sort(np.hstack([from_upper, to_lower]), axis=1)
    low, high = np.full(rows.size, -1), np.full(rows.size, breaks.shape[1])
    while (high - low > 1).any():  # the last break before which the sum is still too large
        middle = np.clip((low + high) // 2, 0, breaks.shape[1] - 1)
        shifted = values - breaks[rows, middle][:, None]
        above = np.clip(shifted, lower, upper).sum(axis=1) > total
        moves = high - low > 1
        low, high = np.where(moves & above, middle, low), np.where(moves & ~above, middle, high)
    ends = np.pad(breaks, ((0, 0), (1, 1)), constant_values=((0, 0), (-np.inf, np.inf)))
    first, last = ends[rows, low + 1], ends[rows, high + 1]
    at_lower, at_upper = to_lower <= first[:, None], from_upper >= last[:, None]
    free = ~at_lower & ~at_upper
    held = np.where(at_lower, lower, np.where(at_upper, upper, values)).sum(axis=1) - total
    count = free.sum(axis=1)
    nearest = np.where(np.isfinite(first), first, np.where(np.isfinite(last), last, 0.0))
    return np.where(count > 0, held / np.maximum(count, 1), nearest)


def clipped_to_sum(
    values: FloatArray, lower: FloatArray, upper: FloatArray, total: float
) -> FloatArray:
    """The nearest point, row by row, of {lower <= x <= upper, sum x = total}."""
    shift = shift_to_sum(values, lower, upper, total)
    return np.clip(values - shift[:, None], lower, upper)


@dataclass(frozen=True)
class Simplices:
    """`count` distributions over `length` outcomes, one after the other."""

    count: int
    length: int

    @property
    def dimension(self) -> int:
        return self.count * self.length

    def _rows(self, x: FloatArray) -> FloatArray:
        return x.reshape(self.count, self.length)

    def project(self, x: FloatArray) -> FloatArray:
        """Subtract from each row the number that makes the positive parts sum to one."""
        rows = self._rows(x)
        largest_first = -np.sort(-rows, axis=1)
        excess = np.cumsum(largest_first, axis=1) - 1.0
        counts = np.arange(1, self.length + 1)
        support = np.sum(largest_first * counts > excess, axis=1)
        threshold = excess[np.arange(self.count), support - 1] / support
        clipped = np.maximum(rows - threshold[:, None], 0.0)
        return np.ravel(clipped / clipped.sum(axis=1, keepdims=True))

    def contains(self, x: FloatArray, tolerance: float = 0.0) -> bool:
        rows = self._rows(x)
        slack = max(tolerance, 1e-12)
        return bool((rows >= -slack).all() and (np.abs(rows.sum(axis=1) - 1.0) <= slack).all())

    def normal_cone_distance(self, x: FloatArray, direction: FloatArray) -> FloatArray:
        """The projection of the direction onto the tangent cone: rows of sum 0, inward at zeros."""
        low = np.where(self._rows(x) <= ROUNDING, 0.0, -np.inf)
        endless = np.full_like(low, np.inf)
        return clipped_to_sum(self._rows(direction), low, endless, 0.0).reshape(-1)

    def bound_multipliers(
        self, x: FloatArray, direction: FloatArray, tolerance: float
    ) -> FloatArray:
        """What the zeros hold back once the number that belongs to the sum is taken off."""
        wanted = self._rows(direction)
        low = np.where(self._rows(x) <= tolerance, 0.0, -np.inf)
        rest = wanted - shift_to_sum(wanted, low, np.full_like(low, np.inf), 0.0)[:, None]
        return np.ravel(rest - np.maximum(rest, low))

    def norm(self, x: FloatArray) -> FloatArray:
        return np.ones(self.dimension)

    def width(self) -> FloatArray:
        return np.ones(self.dimension)

    def metric(self, x: FloatArray) -> FloatArray:
        # A probability moves by its own size; one near 0 by a small part of an even share.
        return np.maximum(x, 0.1 / self.length)

    def step_rows(self, x: FloatArray, metric: FloatArray) -> StepRows:
        columns = np.arange(self.dimension)
        owners = np.repeat(np.arange(self.count), self.length)
        sums = scipy.sparse.csr_array(
            (metric, (owners, columns)), shape=(self.count, self.dimension)
        )
        still = Cone("zero", sums, np.zeros(self.count))
        return StepRows(-x / metric, np.full(self.dimension, np.inf), (still,))

    def tangent_basis(self) -> scipy.sparse.csr_array:
        """Orthonormal columns of sum 0, in each row."""
        contrasts = helmert(self.length)
        return scipy.sparse.csr_array(scipy.sparse.block_diag([contrasts] * self.count))

    def face_basis(self, x: FloatArray, share: float) -> scipy.sparse.csr_array:
        """Contrasts between the outcomes that have a probability, in each row."""
        blocks = []
        for row in self._rows(x):
            likely = np.flatnonzero(row > share / self.length)
            block = np.zeros((self.length, max(likely.size - 1, 0)))
            block[likely] = helmert(likely.size) / self.length
            blocks.append(block)
        return scipy.sparse.csr_array(scipy.sparse.block_diag(blocks))

    def support(self, direction: FloatArray) -> float:
        return float(self._rows(direction).max(axis=1).sum())

    def diameter(self) -> float:
        return float(np.sqrt(2.0 * self.count)) if self.length > 1 else 0.0

    def sample(self, generator: np.random.Generator) -> FloatArray:
        return np.ravel(generator.dirichlet(np.ones(self.length), size=self.count))

    def middle(self) -> FloatArray:
        return np.full(self.dimension, 1.0 / self.length)


def triangle(order: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Row and column of each stored entry: the upper triangle, column by column."""
    columns, rows = np.tril_indices(order)
    return rows, columns


def to_vector(matrix: FloatArray) -> FloatArray:
    """The stored vector of a symmetric matrix; the two triangles are averaged."""
    rows, columns = triangle(matrix.shape[0])
    even = 0.5 * (matrix + matrix.T)
    return np.asarray(even[rows, columns] * np.where(rows == columns, 1.0, ROOT_TWO))


def to_matrix(vector: FloatArray) -> FloatArray:
    """The symmetric matrix of a stored vector."""
    order = int((np.sqrt(8 * vector.size + 1) - 1) / 2)
    rows, columns = triangle(order)
    matrix = np.zeros((order, order))
    matrix[rows, columns] = vector / np.where(rows == columns, 1.0, ROOT_TWO)
    return np.asarray(matrix + np.triu(matrix, 1).T)


def rotated_basis(vectors: FloatArray) -> FloatArray:
    """The stored vectors of vᵢvⱼᵀ + vⱼvᵢᵀ, at length 1, as columns: i <= j column by column."""
    rows, columns = triangle(vectors.shape[0])
    first, second = vectors[:, rows], vectors[:, columns]
    products = first[rows] * second[columns] + first[columns] * second[rows]
    off = np.where(rows == columns, 1.0, ROOT_TWO)
    return np.asarray(products * off[:, None] * off / 2.0)


def clip_slope(matrix: FloatArray, smallest: float, largest: float) -> FloatArray:
    """The derivative of clipping a matrix's eigenvalues, for stored vectors (Löwner's formula)."""
    values, vectors = np.linalg.eigh(matrix)
    clipped = np.clip(values, smallest, largest)
    rows, columns = triangle(values.size)
    apart = values[rows] - values[columns]
    close = np.abs(apart) <= 1e-12 * np.maximum(1.0, np.abs(values).max())
    inside = (values[rows] >= smallest) & (values[rows] <= largest)
    quotient = (clipped[rows] - clipped[columns]) / np.where(close, 1.0, apart)
    basis = rotated_basis(vectors)
    return np.asarray((basis * np.where(close, inside, quotient)) @ basis.T)


@dataclass(frozen=True)
class SymmetricMatrices:
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
        values = np.linalg.eigvalsh(to_matrix(x))
        slack = max(tolerance, 1e-12 * max(1.0, float(np.abs(values).max(initial=0.0))))
        return bool(values[0] >= self.smallest - slack and values[-1] <= self.largest + slack)

    def normal_cone_distance(self, x: FloatArray, direction: FloatArray) -> FloatArray:
        """The projection onto the tangent cone: semidefinite on the eigenspaces of the bounds."""
        values, vectors = np.linalg.eigh(to_matrix(x))
        wanted = vectors.T @ to_matrix(direction) @ vectors
        reach = 1e-10 * max(1.0, float(np.abs(values).max(initial=0.0)))
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
        """‖P^−½ D P^−½‖, for positive definite matrices move by factors, as positive numbers do."""
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

    def step_rows(self, x: FloatArray, metric: FloatArray) -> StepRows:
        free = np.full(self.dimension, np.inf)
        scaled = scipy.sparse.csr_array(scipy.sparse.diags_array(metric))
        identity = to_vector(np.eye(self.order))
        cones = []
        if np.isfinite(self.smallest):
            cones.append(Cone("psd", scaled, x - self.smallest * identity))
        if np.isfinite(self.largest):
            cones.append(Cone("psd", -scaled, self.largest * identity - x))
        return StepRows(-free, free, tuple(cones))

    def tangent_basis(self) -> scipy.sparse.csr_array:
        free = self.dimension if self.largest > self.smallest else 0
        return scipy.sparse.csr_array(scipy.sparse.eye_array(self.dimension, free))

    def face_basis(self, x: FloatArray, share: float) -> scipy.sparse.csr_array:
        """All symmetric directions but those within the eigenspace of a bound."""
        values, vectors = np.linalg.eigh(to_matrix(x))
        length = float(self.metric(x)[0])
        bound = np.where(values - self.smallest <= share * length, -1, 0)
        bound = np.where(self.largest - values <= share * length, 1, bound)
        rows, columns = triangle(self.order)
        free = (bound[rows] == 0) | (bound[rows] != bound[columns])
        return scipy.sparse.csr_array(length * rotated_basis(vectors)[:, free])

    def support(self, direction: FloatArray) -> float:
        values = np.linalg.eigvalsh(to_matrix(direction))
        bounds = np.where(values > 0, self.largest, self.smallest)
        return float(np.sum(values[values != 0] * bounds[values != 0]))

    def diameter(self) -> float:
        return float(np.sqrt(self.order) * (self.largest - self.smallest))

    def sample(self, generator: np.random.Generator) -> FloatArray:
        frame, _ = np.linalg.qr(generator.normal(size=(self.order, self.order)))
        low = self.smallest if np.isfinite(self.smallest) else min(-1.0, self.largest - 1.0)
        high = self.largest if np.isfinite(self.largest) else max(low, 0.0) + 10.0
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
