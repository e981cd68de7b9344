"""Hidden Newton: sequential quadratic programming in the coordinates in which the problem is convex.

The quadratic model carries the hidden Hessian of the Lagrangian, so that this is Newton's method on
the convex problem in u, written without c⁻¹ but for the way along which a step is walked.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.solvers.algebra.hessians import Hessian
from hcmodel.solvers.coordinates.geometry import Geometry
from hcmodel.solvers.loop import Task
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.second_order.trust_region import Options, TrustRegion

FloatArray = NDArray[np.float64]


class ExactCurvature:
    """B from the engine's second derivatives."""

    def at(
        self, task: Task, geometry: Geometry, evaluation: Evaluation, multipliers: FloatArray
    ) -> Hessian:
        return geometry.hessian(task.oracle, evaluation, multipliers)

    def moved(self, old: Evaluation, new: Evaluation, multipliers: FloatArray) -> None:
        """Nothing is kept from one point to the next."""


class HiddenNewton(TrustRegion):
    """`hidden-newton`."""

    def __init__(self, options: Options | None = None) -> None:
        super().__init__(options or Options(), ExactCurvature())
