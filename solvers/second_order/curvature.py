"""Where the matrix B of the quadratic model comes from: second derivatives, or none at all.

`quasi_newton` has the approximations from gradients.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.solvers.algebra.hessians import Hessian, SparseHessian
from hcmodel.solvers.coordinates.protocol import Coordinates
from hcmodel.solvers.loop import Task
from hcmodel.solvers.oracle import Evaluation

FloatArray = NDArray[np.float64]


class Curvature(Protocol):
    """The source of B."""

    def at(
        self, task: Task, geometry: Coordinates, evaluation: Evaluation, multipliers: FloatArray
    ) -> Hessian:
        """B at a point, as a matrix over x."""

    def moved(self, old: Evaluation, new: Evaluation, multipliers: FloatArray) -> None:
        """Called after every accepted step."""


class ExactCurvature:
    """B from the engine's second derivatives."""

    def at(
        self, task: Task, geometry: Coordinates, evaluation: Evaluation, multipliers: FloatArray
    ) -> Hessian:
        return geometry.hessian(task.oracle, evaluation, multipliers)

    def moved(self, old: Evaluation, new: Evaluation, multipliers: FloatArray) -> None:
        """Nothing is kept from one point to the next."""


class NoCurvature:
    """B = 0: a linear model, limited by the trust region alone."""

    def at(
        self, task: Task, geometry: Coordinates, evaluation: Evaluation, multipliers: FloatArray
    ) -> Hessian:
        shape = (evaluation.point.size, evaluation.point.size)
        return SparseHessian(scipy.sparse.csr_array(shape), convex=True)

    def moved(self, old: Evaluation, new: Evaluation, multipliers: FloatArray) -> None:
        """Nothing is kept from one point to the next."""
