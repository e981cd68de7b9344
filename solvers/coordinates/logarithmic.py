"""Logarithms of some entries: u_i = log x_i where marked, u_i = x_i elsewhere.

This is a change of variables, so methods need not know of it: `LogStack` and `Domain.in_logarithms` give
them the same problem in u, in which `plain` coordinates serve. `LogCoordinates` is the same map seen from
x, as the protocol asks for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import cached_property, dataclass
from hcmodel.solvers.algebra.hessians import Hessian, SparseHessian, congruent, with_diagonal
from hcmodel.solvers.algebra.marks import every
from hcmodel.solvers.algebra.storage import is_sparse
from hcmodel.solvers.coordinates.frame import Frame
from hcmodel.solvers.coordinates.plain import PlainCoordinates
from hcmodel.solvers.coordinates.protocol import Coordinates, SecondDerivatives
from hcmodel.solvers.coordinates.tangent import Tangent, tangent_directions
from hcmodel.solvers.numerics import LARGEST_LOG
from hcmodel.solvers.oracle import Evaluation, Forward, Matrix, Oracle, Stack
from hcmodel.solvers.sets.domain import Domain, roomy_metric

FloatArray = NDArray[np.float64]
Marks = NDArray[np.bool_]


def to_logarithms(x: FloatArray, logs: Marks) -> FloatArray:
    """u, from x."""
    with np.errstate(all="ignore"):
        return np.asarray(np.where(logs, np.log(np.where(logs, x, 1.0)), x))


def exponentials(u: FloatArray) -> FloatArray:
    """x, from its logarithms; not a number where it would leave the range of floating point."""
    return np.asarray(np.exp(np.where(np.abs(u) <= LARGEST_LOG, u, np.nan)))


def from_logarithms(u: FloatArray, logs: Marks) -> FloatArray:
    """x, from u; not a number where it would leave the range of floating point."""
    if logs.all():
        return exponentials(u)
    exponents = np.where(logs & (np.abs(u) <= LARGEST_LOG), u, np.nan)
    return np.asarray(np.where(logs, np.exp(exponents), u))


def stretch(x: FloatArray, logs: Marks) -> FloatArray:
    """∂x/∂u, entry by entry."""
    return np.where(logs, x, 1.0)


def _curvature(x: FloatArray, gradient: FloatArray, logs: Marks) -> FloatArray:
    """What the map adds to the diagonal of the Hessian by u: ∇F · ∂²x/∂u²."""
    return np.where(logs, gradient * x, 0.0)


class _LogForward:
    """A forward pass of the inner stack, with the chain rule of x = exp(u) on its derivatives."""

    def __init__(self, inner: Forward, scale: FloatArray) -> None:
        self.inner = inner
        self.scale = scale
        self.values = inner.values
        self._jacobian: Any = None

    def jacobian(self) -> Any:
        if self._jacobian is None:
            self._jacobian = self._scaled(self.inner.jacobian())
        return self._jacobian

    def _scaled(self, jacobian: Any) -> Any:
        if not is_sparse(jacobian):
            return jacobian * self.scale
        entries = jacobian.data * self.scale[jacobian.indices]
        parts = (entries, jacobian.indices, jacobian.indptr)
        return scipy.sparse.csr_array(parts, shape=jacobian.shape)

    def pullback(self, weights: FloatArray) -> FloatArray:
        return self.inner.pullback(weights) * self.scale


@dataclass(frozen=True)
class LogStack:
    """A stack as a function of u, where x_i = exp(u_i) for the entries marked in `logs`."""

    inner: Stack
    logs: Marks

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
        return exponentials(u) if self._only_logs else from_logarithms(u, self.logs)

    def coordinates(self, x: FloatArray) -> FloatArray:
        """u, from x."""
        return to_logarithms(x, self.logs)

    @cached_property
    def _only_logs(self) -> bool:
        return every(self.logs)

    def evaluate(self, u: FloatArray, part: str) -> Forward:
        x = self.point(u)
        scale = x if self._only_logs else stretch(x, self.logs)
        return _LogForward(self.inner.evaluate(x, part), scale)

    def hessian(self, u: FloatArray, weights: FloatArray) -> Matrix:
        x = self.point(u)
        scale = stretch(x, self.logs)
        gradient = self.inner.evaluate(x, "all").pullback(weights[: self.size])
        inner = self.inner.hessian(x, weights)
        if is_sparse(inner):
            return with_diagonal(congruent(inner, scale), _curvature(x, gradient, self.logs))
        hessian = np.ascontiguousarray(inner * (scale[:, None] * scale))
        hessian.reshape(-1)[:: x.size + 1] += _curvature(x, gradient, self.logs)  # the diagonal
        return hessian


@dataclass(frozen=True)
class LogCoordinates:
    """u = log x for the entries of boxes marked in `logs`, u = x for the others."""

    domain: Domain
    logs: Marks

    @cached_property
    def _images(self) -> Domain:
        """c(X)."""
        return self.domain.in_logarithms(self.logs)

    def image(self, x: FloatArray) -> FloatArray:
        return to_logarithms(x, self.logs)

    def tangent(self, x: FloatArray) -> Tangent:
        basis = np.asarray(self.domain.tangent_basis().toarray())
        directions = tangent_directions(self.domain, basis, x)
        return Tangent(directions, directions / stretch(x, self.logs)[:, None])

    def slopes(self, x: FloatArray, gradients: FloatArray) -> FloatArray | None:
        return gradients * stretch(x, self.logs)

    def hidden_hessian(
        self, x: FloatArray, gradient: FloatArray, second: SecondDerivatives
    ) -> Hessian:
        hessian = second(None)
        more = _curvature(x, gradient, self.logs) / stretch(x, self.logs) ** 2
        if isinstance(hessian, SparseHessian):
            return hessian.shifted(more)
        return np.asarray(hessian + np.diag(more))

    def inverse(
        self, image: FloatArray, start: FloatArray, *, thorough: bool = True
    ) -> FloatArray | None:
        x = from_logarithms(image, self.logs)
        return x if np.isfinite(x).all() else None

    def frame(self, evaluation: Evaluation, curvature: Hessian | None = None) -> Frame:
        x = evaluation.point
        return Frame(roomy_metric(self._images, self.image(x)) * stretch(x, self.logs))

    def hessian(self, oracle: Oracle, evaluation: Evaluation, multipliers: FloatArray) -> Hessian:
        gradient = evaluation.gradient + evaluation.jacobian.T @ multipliers
        return self.hidden_hessian(
            evaluation.point,
            np.asarray(gradient),
            lambda weights: oracle.lagrangian_hessian(evaluation, multipliers),
        )

    def retract(self, x: FloatArray, step: FloatArray) -> FloatArray:
        moved = self.image(x) + step / stretch(x, self.logs)
        return from_logarithms(self._images.project(moved), self.logs)

    def bends(self, x: FloatArray) -> bool:
        return False

    def plain(self) -> Coordinates:
        return PlainCoordinates(self.domain)
