"""Single Newton steps in the coordinates of a form, as certificates take them to find better pairs.

Nothing rests on these steps: a bound holds at every point and for all multipliers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import NEWTON
from hcmodel.records import replace
from hcmodel.reductions.form import Form
from hcmodel.solvers import kkt
from hcmodel.solvers.algebra.hessians import SparseHessian, is_finite
from hcmodel.solvers.numerics import PRODUCT_ROUNDING
from hcmodel.solvers.oracle import Evaluation, Oracle
from hcmodel.solvers.qp import make_backend, solve_program
from hcmodel.solvers.second_order import polishing
from hcmodel.solvers.second_order.model import QuadraticModel
from hcmodel.solvers.second_order.options import StepOptions
from hcmodel.solvers.second_order.programs import relaxation_program, step_program
from hcmodel.solvers.second_order.step import solve_step

FloatArray = NDArray[np.float64]


def constrained_step(
    form: Form, oracle: Oracle, evaluation: Evaluation, multipliers: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Where a Newton step on the whole problem leads, and its multipliers."""
    if not form.affords_hessian:
        return None
    geometry = form.geometry
    hessian = geometry.hessian(oracle, evaluation, multipliers)
    if not is_finite(hessian):
        return None
    frame = geometry.frame(evaluation)
    model = QuadraticModel.at(evaluation, form.domain, frame, hessian)
    step = solve_step(model, NEWTON.radius, make_backend())
    if step is None:
        return None
    moved = form.settled(geometry.retract(evaluation.point, frame.step(step.w)))
    return moved, step.multipliers


def polishing_step(
    form: Form, oracle: Oracle, evaluation: Evaluation, multipliers: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """The same with the rows and bounds that now seem active held as equations."""
    if not form.affords_hessian:
        return None
    return polishing.polishing_step(oracle, form.geometry, form.settled, evaluation, multipliers)


def lagrangian_step(
    form: Form, oracle: Oracle, evaluation: Evaluation, multipliers: FloatArray
) -> Evaluation | None:
    """A Newton step on the Lagrangian over X, shortened until the Lagrangian falls."""
    if not form.affords_hessian:
        return None
    inner = form.map_geometry
    geometry = form.geometry if inner is None else inner
    hessian = geometry.hessian(oracle, evaluation, multipliers)
    gradient = kkt.lagrangian_gradient(evaluation, multipliers)
    if not (is_finite(hessian) and np.isfinite(gradient).all()):
        return None
    frame = geometry.frame(evaluation)
    model = QuadraticModel.at(evaluation, form.domain, frame, hessian)
    none = np.zeros(0)
    model = replace(
        model,
        gradient=frame.gradient(gradient),
        jacobian=np.zeros((0, model.dimension)),
        rows=none,
        row_scales=none,
    )
    w = _minimiser(model)
    if w is None:
        return None
    start = _lagrangian(evaluation, multipliers)
    size = abs(start) + float(np.abs(multipliers) @ evaluation.magnitudes)
    for _ in range(NEWTON.halvings):
        there = oracle.at(form.settled(geometry.retract(evaluation.point, frame.step(w))))
        defined = there.finite and there.differentiable
        if defined and _lagrangian(there, multipliers) <= start + PRODUCT_ROUNDING * size:
            return there
        w = 0.5 * w
    return None


def _minimiser(model: QuadraticModel) -> FloatArray | None:
    """The minimiser of a model without rows, computed again in its own unit where it is small."""
    backend, unit = make_backend(), 1.0
    best: FloatArray | None = None
    none = np.zeros(0)
    for _ in range(NEWTON.units):
        program, _ = step_program(model, NEWTON.radius, unit, none, none, StepOptions())
        solution = solve_program(backend, program)
        if not solution.usable:
            return best
        best = solution.step * unit
        length = float(np.max(np.abs(solution.step), initial=0.0))
        if length >= NEWTON.fine or unit <= NEWTON.smallest_unit:
            return best
        unit *= max(NEWTON.unit_per_length * length, NEWTON.unit_decrease)
    return best


def _lagrangian(evaluation: Evaluation, multipliers: FloatArray) -> float:
    objective = evaluation.objective if evaluation.has_objective else 0.0
    return objective + float(multipliers @ evaluation.rows)


def repair_weights(form: Form, evaluation: Evaluation) -> FloatArray | None:
    """Multipliers of the least relaxation of the linearised rows: they weigh what is in conflict."""
    if not (evaluation.finite and evaluation.differentiable):
        return None
    frame = form.geometry.frame(evaluation)
    size = evaluation.point.size
    none = SparseHessian(scipy.sparse.csr_array((size, size)))
    model = QuadraticModel.at(evaluation, form.domain, frame, none)
    backend = make_backend()
    solution = solve_program(
        backend, relaxation_program(model, NEWTON.radius, model.rows, StepOptions())
    )
    if not solution.usable:
        return None
    count = evaluation.inequalities
    found = [
        np.maximum(solution.inequality_multipliers[:count], 0.0),
        solution.equality_multipliers,
    ]
    return np.asarray(np.concatenate(found) / model.row_scales)


Step = Callable[[Form, Oracle, Evaluation, FloatArray], tuple[FloatArray, FloatArray] | None]
NEWTON_STEPS: dict[str, Step] = {"constrained": constrained_step, "polish": polishing_step}
