"""Hidden coordinates u = c(x), as methods of second order use them.

Two kinds. Coordinates that are each x_i or log x_i are a change of variables: `LogStack` and
`Domain.in_logarithms` hand the methods the same problem in u, and nothing else has to know. A general
map is a `Geometry` of its own (`map_geometry`), where steps are taken in x but measured in u.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.solvers.algebra.hessians import (
    Hessian,
    SparseHessian,
    as_dense,
    congruent,
    with_diagonal,
)
from hcmodel.solvers.oracle import Evaluation, Forward, Matrix, Oracle, Stack
from hcmodel.solvers.sets.domain import Domain, roomy_metric

FloatArray = NDArray[np.float64]

# Numbers beyond exp(±this) count as outside every domain: their products and slopes leave the range of
# floating point, and a slope that underflows would pass for a minimum.
LARGEST_LOG = 230.0


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

    def frame(self, evaluation: Evaluation, curvature: Hessian | None = None) -> Frame:
        """Units for a step; `curvature`, a Hessian over x, may have a say in them."""

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

    def frame(self, evaluation: Evaluation, curvature: Hessian | None = None) -> Frame:
        return Frame(roomy_metric(self.domain, evaluation.point))

    def hessian(self, oracle: Oracle, evaluation: Evaluation, multipliers: FloatArray) -> Hessian:
        return oracle.lagrangian_hessian(evaluation, multipliers)

    def retract(self, x: FloatArray, step: FloatArray) -> FloatArray:
        return self.domain.project(x + step)

    def bends(self, x: FloatArray) -> bool:
        return False

    def plain(self) -> Geometry:
        return self
