"""prox-linear: the outer polyhedral structure kept exactly, the smooth inner parts linearised.

max, abs and norms reach this method as rows over variables that bound them, so that the model of a
step is exact but for the curvature of the smooth parts. Where that is known, from second derivatives or
from gradients by damped BFGS, it enters the model of the Lagrangian; the trust region plays the part of
the proximal weight ρ̂, and is adapted like it by actual over predicted decrease. No coordinates are
needed, and nothing global is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hcmodel.solvers.coordinates import Geometry
from hcmodel.solvers.hidden_newton import ExactCurvature
from hcmodel.solvers.loop import Task
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.trust_region import Curvature, Options, TrustRegion

FloatArray = NDArray[np.float64]

CURVATURES = ("exact", "bfgs", "none")
# Powell's damping: the share of the model's curvature that an update must leave.
DAMPING = 0.2


@dataclass(frozen=True)
class ProxLinearOptions(Options):
    """Options of `prox-linear`."""

    curvature: str = "exact"
    """Where the quadratic term comes from: "exact" second derivatives, "bfgs" from gradients, "none"."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.curvature not in CURVATURES:
            raise ValueError(f"curvature is one of {', '.join(CURVATURES)}, not {self.curvature!r}")


class NoCurvature:
    """A linear model; the trust region alone holds the step."""

    def at(
        self, task: Task, geometry: Geometry, evaluation: Evaluation, multipliers: FloatArray
    ) -> FloatArray:
        size = evaluation.point.size
        return np.zeros((size, size))

    def moved(self, old: Evaluation, new: Evaluation, multipliers: FloatArray) -> None:
        """Nothing to learn."""


class BfgsCurvature:
    """B from the gradients of the Lagrangian at successive points, damped so that it stays definite."""

    def __init__(self) -> None:
        self._matrix: FloatArray | None = None

    def at(
        self, task: Task, geometry: Geometry, evaluation: Evaluation, multipliers: FloatArray
    ) -> FloatArray:
        if self._matrix is None:
            gradient = evaluation.gradient + evaluation.jacobian.T @ multipliers
            metric = task.domain.metric(evaluation.point)
            size = float(np.max(np.abs(gradient * metric), initial=0.0)) or 1.0
            self._matrix = np.diag(0.1 * size / metric**2)
        return self._matrix

    def moved(self, old: Evaluation, new: Evaluation, multipliers: FloatArray) -> None:
        if self._matrix is None:
            return
        step = new.point - old.point
        change = new.gradient - old.gradient + (new.jacobian - old.jacobian).T @ multipliers
        product = self._matrix @ step
        curvature = float(step @ product)
        if curvature <= 0 or not np.isfinite(change).all():
            return
        inner = float(step @ change)
        if inner < DAMPING * curvature:
            share = (1 - DAMPING) * curvature / (curvature - inner)
            change = share * change + (1 - share) * product
            inner = float(step @ change)
        self._matrix = (
            self._matrix - np.outer(product, product) / curvature + np.outer(change, change) / inner
        )


def make_curvature(name: str) -> Curvature:
    if name == "exact":
        return ExactCurvature()
    return BfgsCurvature() if name == "bfgs" else NoCurvature()


class ProxLinear(TrustRegion):
    """`prox-linear`."""

    def __init__(self, options: ProxLinearOptions | None = None) -> None:
        chosen = options or ProxLinearOptions()
        super().__init__(chosen, make_curvature(chosen.curvature))
