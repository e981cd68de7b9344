"""Hidden coordinates u = c(x), as methods of second order use them.

Two kinds. Coordinates that are each x_i or log x_i are a change of variables: `LogStack` and
`log_domain` hand the methods the same problem in u, and nothing else has to know. A general map is a
`MapGeometry`: steps are taken in x, but measured in u, with the hidden Hessian

    B = ∇²[L − s·c],   Jᵀs = ∇L on the tangent space of X   (s held fixed),

which is Jᵀ∇²H J for the convex H with L = H∘c, and walked along the hidden straight line
x ← c⁻¹(c(x) + J d).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.solvers.domain import Box, Domain, Product
from hcmodel.solvers.hessians import Hessian, SparseHessian, as_dense, congruent, with_diagonal
from hcmodel.solvers.oracle import Evaluation, Forward, Matrix, Oracle, Stack

FloatArray = NDArray[np.float64]

# Numbers beyond exp(±this) count as outside every domain: their products and slopes leave the range of
# floating point, and a slope that underflows would pass for a minimum.
LARGEST_LOG = 230.0
# Newton's method on c: iterations, the accuracy of c(x') relative to the terms in c that makes an end,
# and that which is accepted where rounding allows no better.
RETRACTIONS = 40
RETRACTION_ACCURACY = 1e-13
ROUGH_ACCURACY = 1e-10
# The factor by which the miss must fall from one iteration to the next for old derivatives to be kept.
FAST = 0.1
# Entries of c whose terms are smaller than this share of the largest are measured by that.
LEAST_SCALE = 1e-4
# Coordinates that move by less than this factor, or its inverse, are measured in their own units.
MODERATE = 1e6
# A map whose Jacobian has singular values this far apart is not used as a frame at that point.
SINGULAR = 1e-10


class _LogForward:
    """A forward pass of the inner stack, with the chain rule of x = exp(u) on its derivatives."""

    def __init__(self, inner: Forward, scale: FloatArray) -> None:
        self.inner = inner
        self.scale = scale

    @property
    def values(self) -> FloatArray:
        return self.inner.values

    def jacobian(self) -> Any:
        jacobian = self.inner.jacobian()
        if scipy.sparse.issparse(jacobian):
            return scipy.sparse.csr_array(jacobian @ scipy.sparse.diags_array(self.scale))
        return jacobian * self.scale

    def pullback(self, weights: FloatArray) -> FloatArray:
        return self.inner.pullback(weights) * self.scale


@dataclass(frozen=True)
class LogStack:
    """A stack as a function of u, where x_i = exp(u_i) for the entries marked in `logs`."""

    inner: Stack
    logs: NDArray[np.bool_]

    @property
    def dimension(self) -> int:
        return self.inner.dimension

    @property
    def size(self) -> int:
        return self.inner.size

    @property
    def objective_size(self) -> int:
        return self.inner.objective_size

    @property
    def kinked(self) -> bool:
        return self.inner.kinked

    def point(self, u: FloatArray) -> FloatArray:
        """x, from u."""
        exponents = np.where(self.logs & (np.abs(u) <= LARGEST_LOG), u, np.nan)
        return np.asarray(np.where(self.logs, np.exp(exponents), u))

    def coordinates(self, x: FloatArray) -> FloatArray:
        """u, from x."""
        with np.errstate(all="ignore"):
            return np.asarray(np.where(self.logs, np.log(np.where(self.logs, x, 1.0)), x))

    def evaluate(self, u: FloatArray, part: str) -> Forward:
        x = self.point(u)
        return _LogForward(self.inner.evaluate(x, part), np.where(self.logs, x, 1.0))

    def hessian(self, u: FloatArray, weights: FloatArray) -> Matrix:
        x = self.point(u)
        scale = np.where(self.logs, x, 1.0)
        forward = self.inner.evaluate(x, "all")
        inner = self.inner.hessian(x, weights)
        if scipy.sparse.issparse(inner):
            gradient = forward.pullback(weights[: self.size])
            bend = np.where(self.logs, gradient * x, 0.0)
            return with_diagonal(congruent(inner, scale), bend)
        gradient = np.asarray(forward.jacobian().T @ weights[: self.size]).reshape(-1)
        hessian = np.asarray(inner * np.outer(scale, scale))
        hessian[np.diag_indices_from(hessian)] += np.where(self.logs, gradient * x, 0.0)
        return hessian


@dataclass(frozen=True)
class LogBox(Box):
    """A box in u. Where u is a logarithm, 1 is its natural length, whatever its value."""

    logs: NDArray[np.bool_] = None  # type: ignore[assignment]

    def metric(self, x: FloatArray) -> FloatArray:
        width = self.upper - self.lower
        own = np.where(width > 0, np.minimum(1.0, width), 1.0)
        return np.where(self.logs, own, super().metric(x))


def log_domain(domain: Domain, logs: NDArray[np.bool_]) -> Domain:
    """X in the coordinates u: a box stays a box, the other factors stay as they are."""
    if isinstance(domain, Product):
        factors, start = [], 0
        for factor in domain.factors:
            stop = start + factor.dimension
            factors.append(log_domain(factor, logs[start:stop]))
            start = stop
        return Product(factors)
    if not logs.any():
        return domain
    if not isinstance(domain, Box):
        raise ValueError("logarithmic coordinates are for boxes")
    with np.errstate(all="ignore"):
        lower = np.where(logs, np.log(np.maximum(domain.lower, 0.0)), domain.lower)
        upper = np.where(logs, np.log(np.maximum(domain.upper, 0.0)), domain.upper)
    return LogBox(lower, upper, domain.positive & ~logs, logs)


@dataclass(frozen=True)
class Frame:
    """How steps are measured at a point: d = scale * w, or d = columns @ w where there is a matrix.

    `free` marks entries of x whose bounds bend in u and are therefore left out of the model.
    """

    scale: FloatArray
    columns: FloatArray | None = None
    free: NDArray[np.bool_] | None = None

    def step(self, w: FloatArray) -> FloatArray:
        return self.scale * w if self.columns is None else self.columns @ w

    def gradient(self, g: FloatArray) -> FloatArray:
        return g * self.scale if self.columns is None else g @ self.columns

    def matrix(self, jacobian: Any) -> Any:
        """A matrix of derivatives by x as one of derivatives by w."""
        if self.columns is not None:
            return np.asarray(jacobian @ self.columns)
        if scipy.sparse.issparse(jacobian):
            return scipy.sparse.csr_array(jacobian @ scipy.sparse.diags_array(self.scale))
        return jacobian * self.scale

    def hessian(self, hessian: Hessian) -> Hessian:
        if self.columns is not None:
            return np.asarray(self.columns.T @ as_dense(hessian) @ self.columns)
        if isinstance(hessian, SparseHessian):
            return hessian.scaled(self.scale)
        return hessian * np.outer(self.scale, self.scale)


class Geometry(Protocol):
    """What a method of second order asks of the coordinates it works in."""

    def frame(self, evaluation: Evaluation) -> Frame: ...

    def hessian(self, oracle: Oracle, evaluation: Evaluation, multipliers: FloatArray) -> Hessian:
        """∇²L, or the hidden Hessian of L, as a matrix over x."""

    def retract(self, x: FloatArray, step: FloatArray) -> FloatArray:
        """The point that a step leads to."""

    def bends(self, x: FloatArray) -> bool:
        """Whether x is held by a bound that is curved in these coordinates."""

    def plain(self) -> Geometry:
        """The coordinates to go on with where such a bound is active: x itself."""


@dataclass(frozen=True)
class PlainGeometry:
    """x is its own coordinate."""

    domain: Domain

    def frame(self, evaluation: Evaluation) -> Frame:
        return Frame(self.domain.metric(evaluation.point))

    def hessian(self, oracle: Oracle, evaluation: Evaluation, multipliers: FloatArray) -> Hessian:
        return oracle.lagrangian_hessian(evaluation, multipliers)

    def retract(self, x: FloatArray, step: FloatArray) -> FloatArray:
        return self.domain.project(x + step)

    def bends(self, x: FloatArray) -> bool:
        return False

    def plain(self) -> Geometry:
        return self


@dataclass(frozen=True)
class MapGeometry:
    """Coordinates u = c(x), c being the map of the stack.

    `bending` marks entries of x whose bounds are curved in u: they do not enter the model, and a step
    that crosses them is cut short by the search.
    """

    stack: Stack
    domain: Domain
    bending: NDArray[np.bool_]
    _memo: list[FloatArray] = field(default_factory=list, compare=False, repr=False)

    def forget(self) -> None:
        """To be called when the map itself has changed, by new data."""
        self._memo.clear()

    def _tangent(self, x: FloatArray) -> FloatArray:
        """Directions along which X extends, of natural length where that is far from 1."""
        basis = np.asarray(self.domain.tangent_basis().toarray())
        return basis * _unusual(np.sqrt((basis**2).T @ self.domain.metric(x) ** 2))

    def _jacobian(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """c and its derivatives, those of the last point from memory."""
        if self._memo and np.array_equal(self._memo[0], x):
            return self._memo[1], self._memo[2]
        forward = self.stack.evaluate(x, "map")
        jacobian: Any = forward.jacobian()
        dense = jacobian.toarray() if scipy.sparse.issparse(jacobian) else np.asarray(jacobian)
        self._memo[:] = [x.copy(), forward.values, dense]
        return forward.values, dense

    def _local(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Tangent directions T, the map's derivative along them in units of u, and those units."""
        tangent = self._tangent(x)
        along = self._jacobian(x)[1] @ tangent
        sizes = _unusual(np.max(np.abs(along), axis=1, initial=0.0))
        return tangent, along / sizes[:, None], sizes

    def frame(self, evaluation: Evaluation) -> Frame:
        """Orthonormal directions of u, in natural units, walked back to x."""
        plain = Frame(self.domain.metric(evaluation.point))
        tangent, along, _ = self._local(evaluation.point)
        if not np.isfinite(along).all():
            return plain
        _, sizes, right = np.linalg.svd(along, full_matrices=False)
        if sizes.size < tangent.shape[1] or sizes[-1] <= SINGULAR * sizes[0]:
            return plain
        return Frame(plain.scale, tangent @ (right.T / sizes), self.bending)

    def hessian(self, oracle: Oracle, evaluation: Evaluation, multipliers: FloatArray) -> Hessian:
        tangent, along, sizes = self._local(evaluation.point)
        if not np.isfinite(along).all():
            return oracle.lagrangian_hessian(evaluation, multipliers)
        gradient = evaluation.gradient + evaluation.jacobian.T @ multipliers
        slope = np.linalg.lstsq(along.T, tangent.T @ gradient, rcond=1e-14)[0] / sizes
        hessian = as_dense(oracle.lagrangian_hessian(evaluation, multipliers, -slope))
        basis = np.asarray(self.domain.tangent_basis().toarray())
        return np.asarray(basis @ (basis.T @ hessian @ basis) @ basis.T)

    def retract(self, x: FloatArray, step: FloatArray) -> FloatArray:
        """c⁻¹(c(x) + J d) by Newton's method on c from x + d; the plain step where that fails."""
        plain = self.domain.project(x + step)
        tangent = self._tangent(x)
        start, jacobian = self._jacobian(x)
        goal = start + jacobian @ step
        if not np.isfinite(goal).all():
            return plain
        for first in (x + step, x):
            found = self._invert(goal, first, tangent)
            if found is not None:
                return self.domain.project(found)
        return plain

    def _invert(
        self, goal: FloatArray, first: FloatArray, tangent: FloatArray
    ) -> FloatArray | None:
        """Newton's method until the miss is rounding, or small and falling no more."""
        point, last = first, np.inf
        jacobian = along = np.zeros((0, 0))
        falling = False
        with np.errstate(all="ignore"):
            for _ in range(RETRACTIONS):
                if falling:  # fast enough with the derivatives of an earlier point
                    values = self.stack.evaluate(point, "map").values
                else:
                    values, jacobian = self._jacobian(point)
                    along = jacobian @ tangent
                miss = goal - values
                if not (np.isfinite(miss).all() and np.isfinite(along).all()):
                    return None
                correction = _solved(along, miss)
                # Of the miss only what lies in the range of J can be mended; sizes are those of the
                # terms that cancel in c.
                scale = np.abs(goal) + np.abs(jacobian) @ np.abs(point)
                scale = np.maximum(scale, LEAST_SCALE * max(float(np.max(scale)), 1e-300))
                worst = float(np.max(np.abs(along @ correction) / scale))
                if not np.isfinite(worst):
                    return None
                if worst <= RETRACTION_ACCURACY or (worst >= last and last <= ROUGH_ACCURACY):
                    return point
                falling = worst <= FAST * last and np.isfinite(last)
                point, last = point + tangent @ correction, worst
        return None

    def orientation(self, x: FloatArray) -> bool | None:
        """Whether J keeps the orientation, where it is square; None where it is singular or undefined."""
        tangent, along, _ = self._local(x)
        if not np.isfinite(along).all():
            return None
        sizes = np.linalg.svd(along, compute_uv=False)
        if sizes.size < tangent.shape[1] or sizes[-1] <= SINGULAR * sizes[0]:
            return None
        square = along.shape[0] == along.shape[1]
        return bool(np.linalg.slogdet(along)[0] > 0) if square else True

    def bends(self, x: FloatArray) -> bool:
        room = self.domain.step_rows(x, np.ones(x.size))
        least = 1e-12 * np.maximum(1.0, np.abs(x))
        return bool((self.bending & ((room.upper <= least) | (-room.lower <= least))).any())

    def plain(self) -> Geometry:
        return PlainGeometry(self.domain)


def _unusual(sizes: FloatArray) -> FloatArray:
    """Sizes where they are very large or small, 1 elsewhere."""
    moderate = (sizes > 1 / MODERATE) & (sizes < MODERATE)
    return np.asarray(np.where(moderate | (sizes == 0), 1.0, sizes))


def _solved(matrix: FloatArray, target: FloatArray) -> FloatArray:
    """matrix⁻¹ target: exact elimination where the matrix is square, for triangular maps are steep."""
    if matrix.shape[0] == matrix.shape[1]:
        try:
            return np.asarray(np.linalg.solve(matrix, target))
        except np.linalg.LinAlgError:
            pass
    return np.asarray(np.linalg.lstsq(matrix, target, rcond=None)[0])
