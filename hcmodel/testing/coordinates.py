"""`check_coordinates`: coordinates u = c(x) against finite differences, and there and back.

The test function is F = H∘c with a quadratic H(u) that is known exactly, so the slope has to be ∇H and
the hidden Hessian Jᵀ∇²H J. Differences of images, of F, and of F along the hidden straight line are
compared with what the coordinates say; second derivatives by x are differences of gradients.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers.algebra.hessians import Hessian, as_dense
from hcmodel.solvers.coordinates.protocol import Coordinates
from hcmodel.solvers.numerics import TINY
from hcmodel.solvers.oracle import Forward, Oracle
from hcmodel.solvers.outer import Outer

FloatArray = NDArray[np.float64]

# Central differences with this share of a natural step err by its square and by rounding over it.
DIFFERENCE, FIRST_TOLERANCE = 1e-5, 1e-6
# Differences of exact gradients, then once more through the inverse of J.
SECOND_TOLERANCE = 1e-4
# What Newton's method on the map has to reach, relative to the images.
INVERSE_TOLERANCE = 1e-8
# Samples are drawn towards the middle by this share, so that differences stay inside X.
INWARD = 0.5
# The length of a step, and the share of the way to another sample, from which the way back must be found.
STEP, NEAR = 0.05, 0.2


@dataclass(frozen=True)
class CoordinatesReport:
    """What was checked: the points of X, and their dimensions in x, on X and in u."""

    points: int
    dimensions: tuple[int, int, int]


def check_coordinates(
    coordinates: Coordinates,
    points: Sequence[FloatArray] | None = None,
    *,
    samples: int = 3,
    seed: int = 0,
) -> CoordinatesReport:
    """Raise `AssertionError` unless image, slope, Hessian, retraction and inverse fit together.

    `points` are inside X and in the domain of the map; without them some are drawn. Coordinates with a
    `selection` are checked without it.
    """
    generator, domain = np.random.default_rng(seed), coordinates.domain
    chosen = list(points or ())
    middle = domain.middle()
    while len(chosen) < (samples if points is None else len(points)):
        chosen.append(middle + INWARD * (domain.sample(generator) - middle))
    assert chosen, "there is no point to check"
    size = coordinates.image(chosen[0]).size
    for number, x in enumerate(chosen):
        assert domain.contains(x), f"the point {x} is not in X"
        other = chosen[number - 1] if len(chosen) > 1 else middle
        _Check(coordinates, _quadratic(size, generator), x, generator).run(other)
    spanned = coordinates.tangent(chosen[0]).directions.shape[1]
    return CoordinatesReport(len(chosen), (domain.dimension, spanned, size))


@dataclass(frozen=True)
class _Quadratic:
    """H(u) = ½ uᵀQu + q·u with Q positive definite."""

    matrix: FloatArray
    linear: FloatArray

    def value(self, u: FloatArray) -> float:
        return float(0.5 * u @ self.matrix @ u + self.linear @ u)

    def gradient(self, u: FloatArray) -> FloatArray:
        return np.asarray(self.matrix @ u + self.linear)


def _quadratic(size: int, generator: np.random.Generator) -> _Quadratic:
    root = np.eye(size) + generator.standard_normal((size, size)) / (2.0 * max(size, 1))
    return _Quadratic(root.T @ root, generator.standard_normal(size))


@dataclass(frozen=True)
class _Check:
    """The test function in the coordinates, at a point."""

    coordinates: Coordinates
    function: _Quadratic
    x: FloatArray
    generator: np.random.Generator

    def run(self, other: FloatArray) -> None:
        tangent = self.coordinates.tangent(self.x)
        assert tangent.defined, f"the map has no derivatives at {self.x}"
        assert tangent.full_rank, (
            f"the map is singular at {self.x}, so it gives no coordinates there"
        )
        self._derivatives()
        self._slopes()
        self._hessians()
        self._retraction()
        self._inverse(self.x + NEAR * (other - self.x))
        self._steps()

    # ---- F, its gradient and second derivatives on the directions of X

    def value(self, x: FloatArray) -> float:
        return self.function.value(self.coordinates.image(x))

    def _along(self, x: FloatArray) -> FloatArray:
        """J along the directions of X at the point under test."""
        tangent, here = self.coordinates.tangent(x), self.coordinates.tangent(self.x).directions
        lengths = np.linalg.norm(tangent.directions, axis=0) / np.linalg.norm(here, axis=0)
        return np.asarray(tangent.derivative / lengths)

    def _covector(self, along: FloatArray) -> FloatArray:
        """A gradient over x, from its products with the directions, which are orthogonal."""
        directions = self.coordinates.tangent(self.x).directions
        return np.asarray((directions / np.sum(directions**2, axis=0)) @ along)

    def gradient(self, x: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Of F + weights·c, over x."""
        slope = self.function.gradient(self.coordinates.image(x))
        slope = slope if weights is None else slope + weights
        return self._covector(self._along(x).T @ slope)

    def second(self, weights: FloatArray | None) -> Hessian:
        """∇²(F + weights·c) on the directions of X."""
        image = self.coordinates.image(self.x)
        assert weights is None or weights.size == image.size, (
            "check coordinates without a selection"
        )
        columns = []
        for direction in self.coordinates.tangent(self.x).directions.T:
            step = DIFFERENCE * direction
            ends = [self.gradient(self.x + sign * step, weights) for sign in (1.0, -1.0)]
            columns.append((ends[0] - ends[1]) / (2.0 * DIFFERENCE))
        matrix = self._covector(np.array(columns))
        return np.asarray((matrix + matrix.T) / 2.0)

    # ---- the checks

    def _derivatives(self) -> None:
        """J along the directions of X against differences of images."""
        tangent = self.coordinates.tangent(self.x)
        for direction, found in zip(tangent.directions.T, tangent.derivative.T, strict=True):
            ahead, behind = (
                self.coordinates.image(self.x + sign * DIFFERENCE * direction)
                for sign in (1.0, -1.0)
            )
            expected = (ahead - behind) / (2.0 * DIFFERENCE)
            size = np.abs(tangent.derivative).max() + np.abs(ahead).max()
            self._equal("derivative of the image", found, expected, FIRST_TOLERANCE, size)

    def _slopes(self) -> None:
        """s·dc against dF, for two functions at once."""
        gradients = np.array([self.gradient(self.x), 2.0 * self.gradient(self.x)])
        slopes = self.coordinates.slopes(self.x, gradients)
        assert slopes is not None, f"there are no slopes at {self.x}"
        for direction in self.coordinates.tangent(self.x).directions.T:
            ends = [self.x + sign * DIFFERENCE * direction for sign in (1.0, -1.0)]
            ahead, behind = (self.coordinates.image(end) for end in ends)
            moved = (ahead - behind) / (2.0 * DIFFERENCE)
            change = (self.value(ends[0]) - self.value(ends[1])) / (2.0 * DIFFERENCE)
            size = np.abs(slopes) @ np.abs(moved) + abs(change) + abs(self.value(self.x))
            found = slopes @ moved
            self._equal("slope", found, np.array([1.0, 2.0]) * change, FIRST_TOLERANCE, size.max())

    def _hessians(self) -> None:
        """B against Jᵀ∇²H J, and against second differences of F along the hidden straight line."""
        hidden = self.coordinates.hidden_hessian(self.x, self.gradient(self.x), self.second)
        tangent = self.coordinates.tangent(self.x)
        found = tangent.directions.T @ as_dense(hidden) @ tangent.directions
        expected = tangent.derivative.T @ self.function.matrix @ tangent.derivative
        # What cancels in B: the curvature of F itself is that of the map too.
        plain = tangent.directions.T @ as_dense(self.second(None)) @ tangent.directions
        size = max(float(np.max(np.abs(part), initial=0.0)) for part in (expected, plain))
        self._equal("hidden Hessian", found, expected, SECOND_TOLERANCE, size)
        step = self._inside(self._random_direction())
        ends = [self.coordinates.retract(self.x, sign * step) for sign in (1.0, -1.0)]
        bent = self.value(ends[0]) + self.value(ends[1]) - 2.0 * self.value(self.x)
        curvature = float(step @ as_dense(hidden) @ step)
        size = max(curvature, INVERSE_TOLERANCE * abs(self.value(self.x)))
        self._equal("curvature along the hidden line", curvature, bent, SECOND_TOLERANCE, size)

    def _retraction(self) -> None:
        """c(retract(x, d)) = c(x) + J d, and no step leads nowhere."""
        still = self.coordinates.retract(self.x, np.zeros(self.x.size))
        self._equal("retraction of 0", still, self.x, INVERSE_TOLERANCE, np.abs(self.x).max())
        tangent = self.coordinates.tangent(self.x)
        weights = self.generator.uniform(-1.0, 1.0, tangent.directions.shape[1])
        step = self._inside(tangent.directions @ weights)
        whole = float(np.linalg.norm(tangent.directions @ weights))
        share = float(np.linalg.norm(step)) / max(whole, TINY)
        here = self.coordinates.image(self.x)
        goal = here + share * (tangent.derivative @ weights)
        found = self.coordinates.image(self.coordinates.retract(self.x, step))
        self._equal("retraction", found, goal, INVERSE_TOLERANCE, np.abs(goal).max())

    def _inverse(self, other: FloatArray) -> None:
        """The image of a point near by leads back to it."""
        found = self.coordinates.inverse(self.coordinates.image(other), self.x)
        assert found is not None, f"no inverse was found from {self.x} for the image of {other}"
        size = np.abs(other).max()
        self._equal("inverse", found, other, np.sqrt(INVERSE_TOLERANCE), size)

    def _steps(self) -> None:
        """What methods ask for: a frame along X, and the Hessian of a Lagrangian."""
        oracle = Oracle(_Stack(self), Outer.of_rows(0, 0))
        evaluation = oracle.at(self.x)
        frame = self.coordinates.frame(evaluation)
        basis = np.asarray(self.coordinates.domain.tangent_basis().toarray())
        width = self.x.size if frame.columns is None else frame.columns.shape[1]
        step = frame.step(self.generator.uniform(0.5, 1.0, width))
        assert np.isfinite(step).all(), f"the frame at {self.x} has steps that are not finite"
        if frame.columns is not None:
            self._equal(
                "frame", basis @ (basis.T @ step), step, FIRST_TOLERANCE, np.abs(step).max()
            )
        found = as_dense(self.coordinates.hessian(oracle, evaluation, np.zeros(0)))
        hidden = self.coordinates.hidden_hessian(self.x, self.gradient(self.x), self.second)
        expected = basis.T @ as_dense(hidden) @ basis
        size = float(np.max(np.abs(expected), initial=0.0))
        self._equal("Hessian", basis.T @ found @ basis, expected, SECOND_TOLERANCE, size)
        plain = self.coordinates.plain()
        assert not plain.bends(self.x), "no bound is curved in x itself"
        moved = plain.retract(self.x, step)
        assert self.coordinates.domain.contains(moved), "a plain step leads out of X"

    def _random_direction(self) -> FloatArray:
        directions = self.coordinates.tangent(self.x).directions
        return np.asarray(directions @ self.generator.uniform(-1.0, 1.0, directions.shape[1]))

    def _inside(self, direction: FloatArray) -> FloatArray:
        """A part of the direction along which a step stays well inside X, both ways."""
        step = STEP * direction
        while not all(
            self.coordinates.domain.contains(self.x + sign * step) for sign in (2.0, -2.0)
        ):
            step = step / 2.0
            assert np.abs(step).max() > INVERSE_TOLERANCE, f"the point {self.x} is not inside X"
        return step

    def _equal(
        self,
        name: str,
        found: FloatArray | float,
        expected: FloatArray | float,
        tolerance: float,
        size: float,
    ) -> None:
        off = float(np.max(np.abs(np.asarray(found) - np.asarray(expected)), initial=0.0))
        assert off <= tolerance * max(size, TINY), (
            f"{name} at {self.x}: {found} and not {expected} (off by {off:.1e}, size {size:.1e})"
        )


@dataclass(frozen=True)
class _Pass:
    """A forward pass of the test function, or of the map."""

    values: FloatArray
    derivatives: FloatArray

    def jacobian(self) -> FloatArray:
        return self.derivatives

    def pullback(self, weights: FloatArray) -> FloatArray:
        return np.asarray(weights @ self.derivatives)


@dataclass(frozen=True)
class _Stack:
    """The test function as the one function of a stack, for the point under test."""

    check: _Check
    size: int = 1
    objective_size: int = 1
    kinked: bool = False

    @property
    def dimension(self) -> int:
        return self.check.x.size

    def evaluate(self, x: FloatArray, part: str) -> Forward:
        return _Pass(np.array([self.check.value(x)]), self.check.gradient(x)[None, :])

    def hessian(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        more = weights[1:] if weights.size > 1 else None
        return as_dense(self.check.second(more))
