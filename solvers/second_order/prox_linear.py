"""prox-linear: the outer polyhedral structure kept exactly, the smooth inner parts linearised.

max, abs and norms reach this method as rows over variables that bound them, so that the model of a
step is exact but for the curvature of the smooth parts. Where that is known, from second derivatives or
from gradients by damped BFGS, it enters the model of the Lagrangian; the trust region plays the part of
the proximal weight ρ̂, and is adapted like it by actual over predicted decrease. No coordinates are
needed, and nothing global is claimed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.solvers.algebra.hessians import Hessian, SparseHessian
from hcmodel.solvers.coordinates.geometry import Geometry
from hcmodel.solvers.loop import Task
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.second_order.hidden_newton import ExactCurvature
from hcmodel.solvers.second_order.quasi_newton import (
    LARGEST_MATRIX,
    LimitedMemoryCurvature,
    make_bfgs,
)
from hcmodel.solvers.second_order.trust_region import Curvature, Options, TrustRegion

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ProxLinearOptions(Options):
    """Options of `prox-linear`."""

    curvature: str = "exact"
    """Where the quadratic term comes from: "exact" second derivatives, "bfgs" from gradients (with
    limited memory for many unknowns), "lbfgs" (always so), "none"."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.curvature not in CURVATURES:
            raise ValueError(f"curvature is one of {', '.join(CURVATURES)}, not {self.curvature!r}")


class NoCurvature:
    """A linear model; the trust region alone holds the step."""

    def at(
        self, task: Task, geometry: Geometry, evaluation: Evaluation, multipliers: FloatArray
    ) -> Hessian:
        shape = (evaluation.point.size, evaluation.point.size)
        if evaluation.point.size <= LARGEST_MATRIX:
            return np.zeros(shape)
        return SparseHessian(scipy.sparse.csr_array(shape), convex=True)

    def moved(self, old: Evaluation, new: Evaluation, multipliers: FloatArray) -> None:
        """Nothing to learn."""


class FromGradients:
    """Damped BFGS, with limited memory where a matrix would be large."""

    def __init__(self) -> None:
        self._inner: Curvature | None = None

    def at(
        self, task: Task, geometry: Geometry, evaluation: Evaluation, multipliers: FloatArray
    ) -> Hessian:
        if self._inner is None:
            self._inner = make_bfgs(evaluation.point.size)
        return self._inner.at(task, geometry, evaluation, multipliers)

    def moved(self, old: Evaluation, new: Evaluation, multipliers: FloatArray) -> None:
        if self._inner is not None:
            self._inner.moved(old, new, multipliers)


CURVATURES: dict[str, Callable[[], Curvature]] = {
    "exact": ExactCurvature,
    "bfgs": FromGradients,
    "lbfgs": LimitedMemoryCurvature,
    "none": NoCurvature,
}


class ProxLinear(TrustRegion):
    """`prox-linear`."""

    def __init__(self, options: ProxLinearOptions | None = None) -> None:
        chosen = options or ProxLinearOptions()
        super().__init__(chosen, CURVATURES[chosen.curvature]())
