"""x is its own coordinate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers.algebra.hessians import Hessian
from hcmodel.solvers.coordinates.frame import Frame
from hcmodel.solvers.coordinates.protocol import Coordinates, SecondDerivatives
from hcmodel.solvers.coordinates.tangent import Tangent, tangent_directions
from hcmodel.solvers.oracle import Evaluation, Oracle
from hcmodel.solvers.sets.domain import Domain, roomy_metric

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class PlainCoordinates:
    """u = x."""

    domain: Domain

    def image(self, x: FloatArray) -> FloatArray:
        return x

    def tangent(self, x: FloatArray) -> Tangent:
        basis = np.asarray(self.domain.tangent_basis().toarray())
        directions = tangent_directions(self.domain, basis, x)
        return Tangent(directions, directions)

    def slopes(self, x: FloatArray, gradients: FloatArray) -> FloatArray | None:
        return gradients

    def hidden_hessian(
        self, x: FloatArray, gradient: FloatArray, second: SecondDerivatives
    ) -> Hessian:
        return second(None)

    def inverse(
        self, image: FloatArray, start: FloatArray, *, thorough: bool = True
    ) -> FloatArray | None:
        return image

    def frame(self, evaluation: Evaluation, curvature: Hessian | None = None) -> Frame:
        return Frame(roomy_metric(self.domain, evaluation.point))

    def hessian(self, oracle: Oracle, evaluation: Evaluation, multipliers: FloatArray) -> Hessian:
        return oracle.lagrangian_hessian(evaluation, multipliers)

    def retract(self, x: FloatArray, step: FloatArray) -> FloatArray:
        return self.domain.project(x + step)

    def bends(self, x: FloatArray) -> bool:
        return False

    def plain(self) -> Coordinates:
        return self
