"""The decrease that the quadratic model promises: the last test of a point that looks stationary.

A KKT residual depends on the units of variables and rows, and in bad units it is small far from every
minimum. The decrease that Newton's step promises, ½ gᵀB⁻¹g without rows, does not: it is the same in all
coordinates that are affine in each other, and near a minimum it is the error of the value.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import replace
from hcmodel.solvers.coordinates.protocol import Coordinates
from hcmodel.solvers.oracle import Evaluation, Oracle
from hcmodel.solvers.qp import DEFAULT_BACKEND, make_backend
from hcmodel.solvers.second_order.model import QuadraticModel
from hcmodel.solvers.second_order.options import Options
from hcmodel.solvers.second_order.penalty import Penalty
from hcmodel.solvers.second_order.step import solve_step
from hcmodel.solvers.sets.domain import Domain, roomy_metric

FloatArray = NDArray[np.float64]

# The least size that an objective is taken to have: a gap within tol·|value| + 1e-3·tol is `optimal`.
SMALLEST_VALUE = 1e-3


def worth_having(evaluation: Evaluation, tolerance: float) -> float:
    """The least decrease of the objective that would show in its value."""
    return tolerance * (abs(evaluation.objective) + SMALLEST_VALUE)


def promised_decrease(
    oracle: Oracle,
    domain: Domain,
    geometry: Coordinates,
    evaluation: Evaluation,
    multipliers: FloatArray,
    backend: str = DEFAULT_BACKEND,
) -> float | None:
    """The decrease of the merit that a Newton step promises; None where there is no such step."""
    options = Options(backend=backend)
    hessian = geometry.hessian(oracle, evaluation, multipliers)
    frame = geometry.frame(evaluation, hessian)
    frame = replace(frame, scale=roomy_metric(domain, evaluation.point))
    model = QuadraticModel.at(evaluation, domain, frame, hessian, multipliers=multipliers)
    # The step may be as long as any trust region allows: beyond that a quadratic model says nothing.
    radius = options.acceptance.largest_radius
    found = solve_step(model, radius, make_backend(backend), options=options.step)
    if found is None:
        return None
    penalty = Penalty(np.zeros(evaluation.rows.size)).after(model, found, options.penalty)
    return penalty.predicted(model, found.w)
