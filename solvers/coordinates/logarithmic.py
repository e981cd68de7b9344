"""Logarithms of some entries: u_i = log x_i where marked, u_i = x_i elsewhere.

This is a change of variables, so methods need not know of it: `LogStack` and `Domain.in_logarithms` give
them the same problem in u, in which `plain` coordinates serve.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import cached_property, dataclass
from hcmodel.solvers.algebra.hessians import congruent, with_diagonal
from hcmodel.solvers.algebra.marks import every
from hcmodel.solvers.algebra.storage import is_sparse
from hcmodel.solvers.numerics import LARGEST_LOG
from hcmodel.solvers.oracle import Forward, Matrix, Stack

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
