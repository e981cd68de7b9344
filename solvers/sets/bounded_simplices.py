"""Simplices with bounds on their entries.

The formulas are those of the plain simplex, with [lower, upper] in place of [0, ∞).
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import cached_property, dataclass
from hcmodel.solvers.numerics import BACKEND_ROUNDING, DATA_ROUNDING, PRODUCT_ROUNDING
from hcmodel.solvers.qp.program import StepRows
from hcmodel.solvers.sets.domain import Domain
from hcmodel.solvers.sets.simplices import (
    SMALLEST_SHARE,
    clipped_to_sum,
    helmert,
    shift_to_sum,
    sums,
)

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class BoundedSimplices(Domain):
    """`count` distributions over `length` outcomes, that also satisfy lower <= x <= upper."""

    count: int
    length: int
    lower: FloatArray
    upper: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "lower", np.maximum(self.lower, 0.0))
        object.__setattr__(self, "upper", np.minimum(self.upper, 1.0))
        low, high = self._rows(self.lower), self._rows(self.upper)
        slack = PRODUCT_ROUNDING * self.length
        empty = (low > high).any(axis=1) | (low.sum(axis=1) > 1.0 + slack)
        empty |= high.sum(axis=1) < 1.0 - slack
        if empty.any():
            raise ValueError(f"empty simplex: row {int(np.argmax(empty))} cannot sum to 1")

    @cached_property
    def _range(self) -> tuple[FloatArray, FloatArray]:
        """The least and the largest value of each entry: its bounds, or what the others leave."""
        low, high = self._rows(self.lower), self._rows(self.upper)
        least, most = low.sum(axis=1, keepdims=True), high.sum(axis=1, keepdims=True)
        tight_low = np.maximum(low, 1.0 - (most - high))
        tight_high = np.minimum(high, 1.0 - (least - low))
        fixed = tight_high - tight_low <= PRODUCT_ROUNDING * self.length
        tight_low = np.where(fixed, np.clip(tight_low, low, high), tight_low)
        return tight_low.reshape(-1), np.where(fixed, tight_low, tight_high).reshape(-1)

    @property
    def dimension(self) -> int:
        return self.count * self.length

    def _rows(self, x: FloatArray) -> FloatArray:
        return x.reshape(self.count, self.length)

    def project(self, x: FloatArray) -> FloatArray:
        bounds = self._rows(self.lower), self._rows(self.upper)
        return clipped_to_sum(self._rows(x), *bounds, 1.0).reshape(-1)

    def cone_rows(self) -> StepRows:
        return StepRows(self.lower, self.upper, (sums(self.count, np.ones(self.dimension), -1.0),))

    def contains(self, x: FloatArray, tolerance: float = 0.0) -> bool:
        slack = max(tolerance, DATA_ROUNDING)
        inside = (x >= self.lower - slack) & (x <= self.upper + slack)
        return bool(inside.all() and (np.abs(self._rows(x).sum(axis=1) - 1.0) <= slack).all())

    def normal_cone_distance(self, x: FloatArray, direction: FloatArray) -> FloatArray:
        """The projection of the direction onto the tangent cone: sum 0, inward at the bounds."""
        low = np.where(x <= self.lower + BACKEND_ROUNDING, 0.0, -np.inf)
        high = np.where(x >= self.upper - BACKEND_ROUNDING, 0.0, np.inf)
        bounds = self._rows(low), self._rows(high)
        return clipped_to_sum(self._rows(direction), *bounds, 0.0).reshape(-1)

    def bound_multipliers(
        self, x: FloatArray, direction: FloatArray, tolerance: float
    ) -> FloatArray:
        """What the bounds balance after the multiplier of the sum is subtracted."""
        low = np.where(x <= self.lower + tolerance, 0.0, -np.inf)
        high = np.where(x >= self.upper - tolerance, 0.0, np.inf)
        wanted = self._rows(direction)
        rest = wanted - shift_to_sum(wanted, self._rows(low), self._rows(high), 0.0)[:, None]
        return rest.reshape(-1) - np.clip(rest.reshape(-1), low, high)

    def width(self) -> FloatArray:
        return np.ones(self.dimension)

    def metric(self, x: FloatArray) -> FloatArray:
        least, most = self._range
        width = most - least
        length = np.maximum(x, SMALLEST_SHARE / self.length)
        return np.where(width > 0, np.minimum(length, width), 1.0)

    def step_rows(self, x: FloatArray, metric: FloatArray) -> StepRows:
        still = sums(self.count, metric, 0.0)
        lower = np.minimum((self.lower - x) / metric, 0.0)
        return StepRows(lower, np.maximum((self.upper - x) / metric, 0.0), (still,))

    def _contrasts(self, free: NDArray[np.bool_]) -> scipy.sparse.csr_array:
        """Orthonormal directions of sum 0 among the free entries of each row."""
        blocks = []
        for row in free.reshape(self.count, self.length):
            places = np.flatnonzero(row)
            block = np.zeros((self.length, max(places.size - 1, 0)))
            block[places] = helmert(places.size)
            blocks.append(block)
        return scipy.sparse.csr_array(scipy.sparse.block_diag(blocks))

    def tangent_basis(self) -> scipy.sparse.csr_array:
        least, most = self._range
        return self._contrasts(most > least)

    def face_basis(self, x: FloatArray, share: float) -> scipy.sparse.csr_array:
        """Contrasts between the entries that no bound holds, in each row."""
        reach = share / self.length
        free = (x - self.lower > reach) & (self.upper - x > reach)
        return scipy.sparse.csr_array(self._contrasts(free) / self.length)

    def entry_bounds(self) -> tuple[FloatArray, FloatArray]:
        return self.lower, self.upper

    def support(self, direction: FloatArray) -> float:
        """Fill up the entries from their lower bounds, those of the largest slope first."""
        slopes, low, high = (self._rows(v) for v in (direction, self.lower, self.upper))
        order = np.argsort(-slopes, axis=1)
        room = np.take_along_axis(high - low, order, axis=1)
        before = np.cumsum(room, axis=1) - room
        filled = np.clip(1.0 - low.sum(axis=1, keepdims=True) - before, 0.0, room)
        return float(np.sum(slopes * low) + np.sum(np.take_along_axis(slopes, order, 1) * filled))

    def diameter(self) -> float:
        least, most = self._range
        widths = np.linalg.norm(self._rows(most - least), axis=1)
        return float(np.linalg.norm(np.minimum(widths, np.sqrt(2.0))))

    def sample(self, generator: np.random.Generator) -> FloatArray:
        low = self._rows(self.lower)
        shares = generator.dirichlet(np.ones(self.length), size=self.count)
        spread = low + (1.0 - low.sum(axis=1, keepdims=True)) * shares
        middle = self.middle()
        # Moved inwards, because the projection alone would put most of the points on upper bounds.
        return middle + generator.random() * (self.project(spread.reshape(-1)) - middle)

    def middle(self) -> FloatArray:
        """The same share of the way from the least to the largest values, in each row."""
        low, high = (self._rows(bound) for bound in self._range)
        room = (high - low).sum(axis=1, keepdims=True)
        missing = 1.0 - low.sum(axis=1, keepdims=True)
        share = np.where(room > 0, missing / np.where(room > 0, room, 1.0), 0.0)
        return np.ravel(low + np.clip(share, 0.0, 1.0) * (high - low))
