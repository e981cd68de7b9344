"""The convex set X of a problem, with what a method may ask of it.

Methods see only `Domain`. A new kind of set (simplex, PSD cone) is one more class with the same
methods; `Product` puts sets side by side over slices of the flat vector. Steps d are handed to the
QP in the units of `metric(x)`, so that one unit is a natural move at x for every coordinate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.solvers.qp.program import Cone, StepRows

FloatArray = NDArray[np.float64]

# How far, relative to itself, a positive coordinate may move in one step: a linear model of x^p or
# log x says nothing beyond, and steps to a bound many orders of magnitude away would only be undone.
LARGEST_FALL = 0.7
LARGEST_RISE = 3.0
# Bounds farther than this, in natural units, stand for no bound: no step goes there, and numbers of
# such a size spoil the QP.
FARTHEST = 1e5
# The share of a variable's range that counts as a natural move at least, where units have to be safe.
ROOM = 1e-4


class Domain(Protocol):
    @property
    def dimension(self) -> int: ...

    def project(self, x: FloatArray) -> FloatArray:
        """The nearest point of X."""

    def contains(self, x: FloatArray, tolerance: float = 0.0) -> bool: ...

    def normal_cone_distance(self, x: FloatArray, direction: FloatArray) -> FloatArray:
        """direction minus its nearest element of the normal cone N_X(x), entry by entry."""

    def bound_multipliers(
        self, x: FloatArray, direction: FloatArray, tolerance: float
    ) -> FloatArray:
        """The part of a normal direction that bounds on single entries hold back.

        Positive at upper bounds, negative at lower ones; what is nearer to a bound than the tolerance,
        relative to max(1, |x|), counts as on it.
        """

    def metric(self, x: FloatArray) -> FloatArray:
        """A length for each coordinate: what counts as one unit of movement at x."""

    def norm(self, x: FloatArray) -> FloatArray:
        """M of the natural length √(sᵀMs) of a step s in units of the metric, a vector if diagonal."""

    def width(self) -> FloatArray:
        """How far each coordinate can move within X.

        Infinite without a bound, and where a coordinate moves by factors.
        """

    def step_rows(self, x: FloatArray, metric: FloatArray) -> StepRows:
        """The scaled steps from x that stay in X, as far as a linear model can be trusted."""

    def tangent_basis(self) -> scipy.sparse.csr_array:
        """Orthonormal columns that span the directions in which X extends."""

    def face_basis(self, x: FloatArray, share: float) -> scipy.sparse.csr_array:
        """Directions of natural length along the smallest face of X that x lies on or almost on.

        What is nearer to a bound than `share` of the natural length counts as on it.
        """

    def support(self, direction: FloatArray) -> float:
        """max of direction·x over X, possibly infinite."""

    def diameter(self) -> float:
        """An upper bound of ‖x − y‖ over X, possibly infinite."""

    def sample(self, generator: np.random.Generator) -> FloatArray:
        """A random point; unbounded directions are sampled at unit scale around the middle."""

    def middle(self) -> FloatArray:
        """A central point, geometric where the lower bound is positive."""


def roomy_metric(domain: Domain, x: FloatArray) -> FloatArray:
    """Natural lengths; a variable that may be very large has its unit even where it is small."""
    width = domain.width()
    roomy = np.where(np.isfinite(width), ROOM * width, 0.0)
    return np.maximum(domain.metric(x), roomy)


@dataclass(frozen=True)
class Box:
    """lower <= x <= upper, either of them infinite where there is no bound.

    `positive` marks coordinates that move by factors; by default those with a positive lower bound.
    """

    lower: FloatArray
    upper: FloatArray
    positive: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))

    def __post_init__(self) -> None:
        if self.lower.shape != self.upper.shape or self.lower.ndim != 1:
            raise ValueError("a box needs two vectors of one length")
        if np.isnan(self.lower).any() or np.isnan(self.upper).any():
            raise ValueError("a box bound is NaN")
        if (self.lower == np.inf).any() or (self.upper == -np.inf).any():
            raise ValueError("empty box: it holds no finite point")
        if (self.lower > self.upper).any():
            entry = int(np.argmax(self.lower > self.upper))
            raise ValueError(f"empty box: lower bound above upper bound in entry {entry}")
        if self.positive.size != self.lower.size:
            object.__setattr__(self, "positive", self.lower > 0)

    @staticmethod
    def of(dimension: int, lower: float = -np.inf, upper: float = np.inf) -> Box:
        return Box(np.full(dimension, lower), np.full(dimension, upper))

    @property
    def dimension(self) -> int:
        return self.lower.size

    def project(self, x: FloatArray) -> FloatArray:
        return np.clip(x, self.lower, self.upper)

    def contains(self, x: FloatArray, tolerance: float = 0.0) -> bool:
        return bool(((x >= self.lower - tolerance) & (x <= self.upper + tolerance)).all())

    def normal_cone_distance(self, x: FloatArray, direction: FloatArray) -> FloatArray:
        inward = direction.copy()
        rounding = 1e-14 * np.abs(x)  # steps that end on a bound miss it by as much
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

    def norm(self, x: FloatArray) -> FloatArray:
        return np.ones(self.dimension)

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
        movable = np.flatnonzero(self.upper > self.lower)
        identity = scipy.sparse.eye_array(self.dimension, format="csr")
        return scipy.sparse.csr_array(identity[:, movable])

    def face_basis(self, x: FloatArray, share: float) -> scipy.sparse.csr_array:
        metric = self.metric(x)
        reach = share * metric
        free = np.flatnonzero((x - self.lower > reach) & (self.upper - x > reach))
        shape = (self.dimension, free.size)
        return scipy.sparse.csr_array((metric[free], (free, np.arange(free.size))), shape=shape)

    def support(self, direction: FloatArray) -> float:
        corner = np.where(direction > 0, self.upper, self.lower)
        return float(np.sum(direction[direction != 0] * corner[direction != 0]))

    def diameter(self) -> float:
        return float(np.linalg.norm(self.upper - self.lower))

    def sample(self, generator: np.random.Generator) -> FloatArray:
        share = generator.random(self.dimension)
        middle = self.middle()
        spread = np.where(self.positive, np.maximum(np.abs(middle), 1e-300), 1.0)
        low = np.where(np.isfinite(self.lower), self.lower, middle - spread)
        low = np.where(self.positive & (low <= 0), 1e-3 * spread, low)
        high = np.where(np.isfinite(self.upper), self.upper, np.maximum(low, middle) + 9 * spread)
        ratio = np.where(self.positive, high / np.where(self.positive, low, 1.0), 1.0)
        return self.project(np.where(self.positive, low * ratio**share, low + share * (high - low)))

    def middle(self) -> FloatArray:
        result = np.zeros(self.dimension)
        for entry, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            if np.isfinite(low) and np.isfinite(high):
                result[entry] = np.sqrt(low) * np.sqrt(high) if low > 0 else low / 2 + high / 2
            elif np.isfinite(low):
                result[entry] = 2.0 * low if low > 0 else low + 1.0
            elif np.isfinite(high):
                result[entry] = min(high - 1.0, 0.0)
        return self.project(result)


@dataclass(frozen=True)
class Product:
    """Sets side by side: each factor holds the entries that follow those of the one before."""

    factors: tuple[Domain, ...]

    def __init__(self, factors: Sequence[Domain]) -> None:
        object.__setattr__(self, "factors", tuple(factors))

    @property
    def dimension(self) -> int:
        return sum(factor.dimension for factor in self.factors)

    def _parts(self, x: FloatArray) -> list[FloatArray]:
        ends = np.cumsum([factor.dimension for factor in self.factors])
        return np.split(x, ends[:-1]) if self.factors else []

    def project(self, x: FloatArray) -> FloatArray:
        pairs = zip(self.factors, self._parts(x), strict=True)
        return _join([factor.project(part) for factor, part in pairs])

    def contains(self, x: FloatArray, tolerance: float = 0.0) -> bool:
        pairs = zip(self.factors, self._parts(x), strict=True)
        return all(factor.contains(part, tolerance) for factor, part in pairs)

    def normal_cone_distance(self, x: FloatArray, direction: FloatArray) -> FloatArray:
        triples = zip(self.factors, self._parts(x), self._parts(direction), strict=True)
        return _join([factor.normal_cone_distance(part, d) for factor, part, d in triples])

    def bound_multipliers(
        self, x: FloatArray, direction: FloatArray, tolerance: float
    ) -> FloatArray:
        triples = zip(self.factors, self._parts(x), self._parts(direction), strict=True)
        return _join([factor.bound_multipliers(part, d, tolerance) for factor, part, d in triples])

    def metric(self, x: FloatArray) -> FloatArray:
        pairs = zip(self.factors, self._parts(x), strict=True)
        return _join([factor.metric(part) for factor, part in pairs])

    def norm(self, x: FloatArray) -> FloatArray:
        pairs = zip(self.factors, self._parts(x), strict=True)
        norms = [factor.norm(part) for factor, part in pairs]
        if all(norm.ndim == 1 for norm in norms):
            return _join(norms)
        blocks = [norm if norm.ndim == 2 else np.diag(norm) for norm in norms]
        return np.asarray(scipy.linalg.block_diag(*blocks))

    def width(self) -> FloatArray:
        return _join([factor.width() for factor in self.factors])

    def step_rows(self, x: FloatArray, metric: FloatArray) -> StepRows:
        triples = zip(self.factors, self._parts(x), self._parts(metric), strict=True)
        rows = [factor.step_rows(part, unit) for factor, part, unit in triples]
        cones: list[Cone] = []
        start = 0
        for factor, row in zip(self.factors, rows, strict=True):
            for cone in row.cones:
                own = cone.matrix
                wide = scipy.sparse.csr_array(
                    (own.data, own.indices + start, own.indptr),
                    shape=(own.shape[0], self.dimension),
                )
                cones.append(Cone(cone.kind, wide, cone.offset))
            start += factor.dimension
        lower, upper = _join([row.lower for row in rows]), _join([row.upper for row in rows])
        return StepRows(lower, upper, tuple(cones))

    def tangent_basis(self) -> scipy.sparse.csr_array:
        return scipy.sparse.csr_array(
            scipy.sparse.block_diag([factor.tangent_basis() for factor in self.factors])
        )

    def face_basis(self, x: FloatArray, share: float) -> scipy.sparse.csr_array:
        pairs = zip(self.factors, self._parts(x), strict=True)
        bases = [factor.face_basis(part, share) for factor, part in pairs]
        return scipy.sparse.csr_array(scipy.sparse.block_diag(bases))

    def support(self, direction: FloatArray) -> float:
        pairs = zip(self.factors, self._parts(direction), strict=True)
        return sum(factor.support(part) for factor, part in pairs)

    def diameter(self) -> float:
        return float(np.sqrt(sum(factor.diameter() ** 2 for factor in self.factors)))

    def sample(self, generator: np.random.Generator) -> FloatArray:
        return _join([factor.sample(generator) for factor in self.factors])

    def middle(self) -> FloatArray:
        return _join([factor.middle() for factor in self.factors])


def _join(parts: list[FloatArray]) -> FloatArray:
    return np.concatenate(parts) if parts else np.zeros(0)
