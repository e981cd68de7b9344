"""Products of simplices: distributions over a finite number of outcomes, one after the other."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import cached_property, dataclass
from hcmodel.solvers.numerics import BACKEND_ROUNDING, DATA_ROUNDING
from hcmodel.solvers.qp.program import Cone, StepRows
from hcmodel.solvers.sets.domain import Domain

FloatArray = NDArray[np.float64]

# The unit of a probability near 0, in even shares 1/length. On the decision processes of
# tests/benchmarks/calls.py sbl-adals needs 82 points in all; with 0.01 it needs 120, with 1 it needs 71.
SMALLEST_SHARE = 0.1


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


def shift_above(values: FloatArray, lower: FloatArray) -> FloatArray:
    """The same for the sum 0, without upper bounds and without a search.

    The entries are sorted by how far they are above their bounds. If exactly the first k of them stay
    above, the sum determines the shift. The right k is the largest whose own entry stays above.
    """
    order = np.argsort(lower - values, axis=1)
    rows = np.arange(values.shape[0])[:, None]
    first, bounds = values[rows, order], lower[rows, order]
    held = np.where(np.isfinite(bounds), bounds, 0.0)  # what has no bound is never held
    after = held.sum(axis=1, keepdims=True) - np.cumsum(held, axis=1)
    shifts = (np.cumsum(first, axis=1) + after) / np.arange(1, values.shape[1] + 1)
    count = np.maximum((first - shifts > bounds).sum(axis=1), 1)
    return np.asarray(shifts[rows[:, 0], count - 1])


def clipped_to_sum(
    values: FloatArray, lower: FloatArray, upper: FloatArray, total: float
) -> FloatArray:
    """The nearest point, row by row, of {lower <= x <= upper, sum x = total}."""
    shift = shift_to_sum(values, lower, upper, total)
    return np.clip(values - shift[:, None], lower, upper)


def sums(count: int, weights: FloatArray, offset: float) -> Cone:
    """The weighted sum of each of `count` rows, and the offset, is zero."""
    starts = np.arange(count + 1) * (weights.size // count)
    entries = (weights, np.arange(weights.size), starts)
    matrix = scipy.sparse.csr_array(entries, shape=(count, weights.size))
    return Cone("zero", matrix, np.full(count, offset))


@dataclass(frozen=True)
class Simplices(Domain):
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

    @cached_property
    def moving_together(self) -> tuple[NDArray[np.intp], ...]:
        return tuple(np.arange(self.dimension).reshape(self.count, self.length))

    def cone_rows(self) -> StepRows:
        ones, none = np.ones(self.dimension), np.full(self.dimension, np.inf)
        return StepRows(0.0 * ones, none, (sums(self.count, ones, -1.0),))

    def contains(self, x: FloatArray, tolerance: float = 0.0) -> bool:
        rows = self._rows(x)
        slack = max(tolerance, DATA_ROUNDING)
        return bool((rows >= -slack).all() and (np.abs(rows.sum(axis=1) - 1.0) <= slack).all())

    def normal_cone_distance(self, x: FloatArray, direction: FloatArray) -> FloatArray:
        """The projection of the direction onto the tangent cone: rows of sum 0, inward at zeros."""
        low, wanted = (
            np.where(self._rows(x) <= BACKEND_ROUNDING, 0.0, -np.inf),
            self._rows(direction),
        )
        shift = shift_above(wanted, low)
        return np.maximum(wanted - shift[:, None], low).reshape(-1)

    def bound_multipliers(
        self, x: FloatArray, direction: FloatArray, tolerance: float
    ) -> FloatArray:
        """What the zeros balance after the multiplier of the sum is subtracted."""
        wanted = self._rows(direction)
        low = np.where(self._rows(x) <= tolerance, 0.0, -np.inf)
        rest = wanted - shift_above(wanted, low)[:, None]
        return np.ravel(rest - np.maximum(rest, low))

    def width(self) -> FloatArray:
        return np.ones(self.dimension)

    def metric(self, x: FloatArray) -> FloatArray:
        # A probability moves by its own size; one near 0 by a small part of an even share.
        return np.maximum(x, SMALLEST_SHARE / self.length)

    def step_rows(self, x: FloatArray, metric: FloatArray) -> StepRows:
        still = sums(self.count, metric, 0.0)
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

    def flat_face(self, x: FloatArray, share: float) -> FloatArray | None:
        return np.asarray(self.face_basis(x, share).toarray())

    def snapped(self, x: FloatArray, share: float) -> FloatArray:
        return self.project(np.where(x <= share / self.length, 0.0, x))

    def weakest_bound(self, x: FloatArray, gradient: FloatArray) -> float:
        """At zeros, by how much the slope is above the mean of those that are not."""
        least = np.inf
        for row, at_zero in zip(self._rows(gradient), self._rows(x) <= 0.0, strict=True):
            if at_zero.any():
                least = min(least, float((row[at_zero] - row[~at_zero].mean()).min()))
        return least

    def entry_bounds(self) -> tuple[FloatArray, FloatArray]:
        return np.zeros(self.dimension), np.ones(self.dimension)

    def support(self, direction: FloatArray) -> float:
        return float(self._rows(direction).max(axis=1).sum())

    def diameter(self) -> float:
        return float(np.sqrt(2.0 * self.count)) if self.length > 1 else 0.0

    def sample(self, generator: np.random.Generator) -> FloatArray:
        return np.ravel(generator.dirichlet(np.ones(self.length), size=self.count))

    def middle(self) -> FloatArray:
        return np.full(self.dimension, 1.0 / self.length)
