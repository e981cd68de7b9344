"""Boxes, in the variables themselves and in logarithms of some of them."""

from __future__ import annotations

from dataclasses import field

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import cached_property, dataclass
from hcmodel.solvers.algebra.marks import every, length, some
from hcmodel.solvers.numerics import PRODUCT_ROUNDING, TINY
from hcmodel.solvers.qp.program import StepRows
from hcmodel.solvers.sets.domain import FARTHEST, Domain

FloatArray = NDArray[np.float64]

# How far, relative to itself, a positive coordinate may move in one step: a linear model of x^p or
# log x says nothing beyond, and steps to a bound many orders of magnitude away would only be undone.
# On 18 problems of tests/benchmarks/calls.py, sbl-adals and prox-linear need within 4 % as many points
# with falls of 0.5 to 0.9, and within 2 % with rises of 1.5 to 10.
LARGEST_FALL = 0.7
LARGEST_RISE = 3.0
# Where samples end without a bound, in natural lengths beyond the middle, and where those of a
# positive entry begin whose bound is 0: a sample has to be some point, and no result rests on which.
SAMPLED_LENGTHS = 9.0
LEAST_SAMPLE = 1e-3


@dataclass(frozen=True)
class Box(Domain):
    """lower <= x <= upper, either of them infinite where there is no bound.

    `positive` marks coordinates that move by factors; by default those with a positive lower bound.
    """

    lower: FloatArray
    upper: FloatArray
    positive: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))

    def __post_init__(self) -> None:
        if self.lower.shape != self.upper.shape or self.lower.ndim != 1:
            raise ValueError("a box needs two vectors of one length")
        lower, upper = self.lower, self.upper
        if not every((lower <= upper) & (lower < np.inf) & (upper > -np.inf)):
            self._refuse()
        if self.positive.size != self.lower.size:
            object.__setattr__(self, "positive", self.lower > 0)

    def _refuse(self) -> None:
        """Say what is wrong with the bounds."""
        if np.isnan(self.lower).any() or np.isnan(self.upper).any():
            raise ValueError("a box bound is NaN")
        if (self.lower == np.inf).any() or (self.upper == -np.inf).any():
            raise ValueError("empty box: it holds no finite point")
        entry = int(np.argmax(self.lower > self.upper))
        raise ValueError(f"empty box: lower bound above upper bound in entry {entry}")

    @staticmethod
    def of(dimension: int, lower: float = -np.inf, upper: float = np.inf) -> Box:
        return Box(np.full(dimension, lower), np.full(dimension, upper))

    @property
    def dimension(self) -> int:
        return self.lower.size

    def project(self, x: FloatArray) -> FloatArray:
        return np.minimum(np.maximum(x, self.lower), self.upper)  # half of the time of np.clip

    def cone_rows(self) -> StepRows:
        return StepRows(self.lower, self.upper)

    def contains(self, x: FloatArray, tolerance: float = 0.0) -> bool:
        return every((x >= self.lower - tolerance) & (x <= self.upper + tolerance))

    def normal_cone_distance(self, x: FloatArray, direction: FloatArray) -> FloatArray:
        inward = direction.copy()
        rounding = PRODUCT_ROUNDING * np.abs(x)  # steps that end on a bound miss it by as much
        inward[(x <= self.lower + rounding) & (direction < 0)] = 0.0
        inward[(x >= self.upper - rounding) & (direction > 0)] = 0.0
        return inward

    def bound_multipliers(
        self, x: FloatArray, direction: FloatArray, tolerance: float
    ) -> FloatArray:
        reach = tolerance * np.maximum(1.0, np.abs(x))
        below = np.where(x <= self.lower + reach, np.minimum(direction, 0.0), 0.0)
        return below + np.where(x >= self.upper - reach, np.maximum(direction, 0.0), 0.0)

    def metric(self, x: FloatArray) -> FloatArray:
        # Positive coordinates move by factors: at x one unit is x itself, which is the metric of
        # their logarithm. Others move by their own size, at least 1. Never more than the width.
        length = np.where(self.positive, np.abs(x), np.maximum(np.abs(x), 1.0))
        width = self.upper - self.lower
        return np.where((width > 0) & (length > 0), np.minimum(length, width), 1.0)

    def width(self) -> FloatArray:
        return np.where(self.positive, np.inf, self.upper - self.lower)

    def step_rows(self, x: FloatArray, metric: FloatArray) -> StepRows:
        lower, upper = (self.lower - x) / metric, (self.upper - x) / metric
        lower = np.where(lower < -FARTHEST, -np.inf, lower)
        upper = np.where(upper > FARTHEST, np.inf, upper)
        reach = np.where(x == 0, 1.0, np.abs(x)) / metric
        return StepRows(
            np.where(self.positive, np.maximum(lower, -LARGEST_FALL * reach), lower),
            np.where(self.positive, np.minimum(upper, LARGEST_RISE * reach), upper),
        )

    def tangent_basis(self) -> scipy.sparse.csr_array:
        movable = (self.upper > self.lower).nonzero()[0]
        identity = scipy.sparse.eye_array(self.dimension, format="csr")
        return scipy.sparse.csr_array(identity[:, movable])

    def face_basis(self, x: FloatArray, share: float) -> scipy.sparse.csr_array:
        metric, free = self._face(x, share)
        starts = free.searchsorted(np.arange(self.dimension + 1))  # a row has one entry or none
        parts = (metric[free], np.arange(free.size), starts)
        return scipy.sparse.csr_array(parts, shape=(self.dimension, free.size))

    def along_face(self, x: FloatArray, share: float, vectors: FloatArray) -> FloatArray:
        metric, free = self._face(x, share)
        return metric[free, None] * vectors[free]

    def flat_face(self, x: FloatArray, share: float) -> FloatArray | None:
        metric, free = self._face(x, share)
        basis = np.zeros((self.dimension, free.size))
        basis[free, np.arange(free.size)] = metric[free]
        return basis

    def _face(self, x: FloatArray, share: float) -> tuple[FloatArray, NDArray[np.intp]]:
        """The metric, and the entries that are on no bound."""
        metric = self.metric(x)
        reach = share * metric
        return metric, ((x - self.lower > reach) & (self.upper - x > reach)).nonzero()[0]

    def snapped(self, x: FloatArray, share: float) -> FloatArray:
        reach = share * self.metric(x)
        x = np.where(x - self.lower <= reach, self.lower, x)
        return np.where(self.upper - x <= reach, self.upper, x)

    def weakest_bound(self, x: FloatArray, gradient: FloatArray) -> float:
        held = ((x <= self.lower) | (x >= self.upper)) & (self.upper > self.lower)
        return float((np.abs(gradient) * self.metric(x))[held].min(initial=np.inf))

    @property
    def is_box(self) -> bool:
        return True

    def entry_bounds(self) -> tuple[FloatArray, FloatArray]:
        return self.lower, self.upper

    def least(self, slope: FloatArray, center: FloatArray, reach: float = np.inf) -> float:
        return least_over_sides(slope, self.lower - center, self.upper - center, reach)

    def support(self, direction: FloatArray) -> float:
        corner = np.where(direction > 0, self.upper, self.lower)
        return float(np.sum(direction[direction != 0] * corner[direction != 0]))

    def diameter(self) -> float:
        return float(np.linalg.norm(self.upper - self.lower))

    def sample(self, generator: np.random.Generator) -> FloatArray:
        share = generator.random(self.dimension)
        low, high, ratio = self._sampled
        there = low + share * (high - low)
        if ratio is not None:
            there = np.where(self.positive, low * ratio**share, there)
        return self.project(there)

    @cached_property
    def _sampled(self) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """The ends of what is sampled, and their ratio, None where no entry is positive."""
        middle = self.middle()
        spread = np.where(self.positive, np.maximum(np.abs(middle), TINY), 1.0)
        low = np.where(np.isfinite(self.lower), self.lower, middle - spread)
        low = np.where(self.positive & (low <= 0), LEAST_SAMPLE * spread, low)
        high = np.where(
            np.isfinite(self.upper), self.upper, np.maximum(low, middle) + SAMPLED_LENGTHS * spread
        )
        if not self.positive.any():
            return low, high, None
        return low, high, np.where(self.positive, high / np.where(self.positive, low, 1.0), 1.0)

    def middle(self) -> FloatArray:
        return self._middle.copy()

    @cached_property
    def _middle(self) -> FloatArray:
        low, high = self.lower, self.upper
        has_low, has_high = np.isfinite(low), np.isfinite(high)
        above = has_low & (low > 0)
        with np.errstate(all="ignore"):
            between = np.where(above, np.sqrt(low) * np.sqrt(high), low / 2 + high / 2)
            from_low = np.where(above, 2.0 * low, low + 1.0)
            from_high = np.where(has_high, np.minimum(high - 1.0, 0.0), 0.0)
        result = np.where(has_low, np.where(has_high, between, from_low), from_high)
        return self.project(result)

    def in_logarithms(self, logs: NDArray[np.bool_]) -> Domain:
        if not some(logs):
            return self
        with np.errstate(all="ignore"):
            lower = np.where(logs, np.log(np.maximum(self.lower, 0.0)), self.lower)
            upper = np.where(logs, np.log(np.maximum(self.upper, 0.0)), self.upper)
        return LogBox(lower, upper, self.positive & ~logs, logs)

    def without_bounds(self, entries: NDArray[np.bool_]) -> Domain:
        if not entries.any():
            return self
        lower = np.where(entries, -np.inf, self.lower)
        upper = np.where(entries, np.inf, self.upper)
        return ReleasedBox(lower, upper, self.positive & ~entries, self)


@dataclass(frozen=True)
class LogBox(Box):
    """A box in u. Where u is a logarithm, 1 is its natural length, whatever its value."""

    logs: NDArray[np.bool_] = None  # type: ignore[assignment]

    def metric(self, x: FloatArray) -> FloatArray:
        width = self.upper - self.lower
        own = np.where(width > 0, np.minimum(1.0, width), 1.0)
        return np.where(self.logs, own, super().metric(x))


@dataclass(frozen=True)
class ReleasedBox(Box):
    """A box some of whose bounds are left out; they still say in which units its entries move."""

    units: Box = None  # type: ignore[assignment]

    def metric(self, x: FloatArray) -> FloatArray:
        return self.units.metric(x)

    def width(self) -> FloatArray:
        return self.units.width()


def least_over_sides(
    slope: FloatArray, below: FloatArray, above: FloatArray, reach: float
) -> float:
    """The least slope·d over below <= d <= above, |d| <= reach."""
    side = np.where(slope > 0, below, above)
    far = (np.abs(side) >= reach) & (slope != 0)
    near = (slope != 0) & ~far
    total = float(slope[near] @ side[near])
    if some(far):
        total -= length(slope[far]) * reach
    return total
