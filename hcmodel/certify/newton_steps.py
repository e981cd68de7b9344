"""Single Newton steps in the coordinates of a form, as certificates take them to find better pairs.

Nothing rests on these steps: a bound holds at every point and for all multipliers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import NEWTON
from hcmodel.reductions.forms import Form
from hcmodel.solvers import kkt
from hcmodel.solvers.algebra.hessians import SparseHessian, is_finite, largest_entry
from hcmodel.solvers.numerics import PRODUCT_ROUNDING, TINY
from hcmodel.solvers.oracle import Evaluation, Oracle
from hcmodel.solvers.qp import QuadraticProgram, make_backend, solve_program
from hcmodel.solvers.qp.program import StepRows
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
    """The same with the rows and bounds that now seem active held as equations.

    One linear system instead of a program: exact to rounding once the active ones are known.
    """
    if not form.affords_hessian:
        return None
    geometry, point = form.geometry, evaluation.point
    hessian = geometry.hessian(oracle, evaluation, multipliers)
    basis = form.domain.face_basis(point, NEWTON.on_face)
    count = evaluation.inequalities
    near = np.abs(evaluation.rows) <= NEWTON.nearly * evaluation.magnitudes
    held = np.arange(evaluation.rows.size) >= count
    held |= near & (
        multipliers > NEWTON.on_face * max(float(np.max(multipliers, initial=0.0)), TINY)
    )
    if isinstance(hessian, SparseHessian):
        solved = _held_minimiser(evaluation, hessian, basis, held)
        if solved is None:
            return None
        found = np.zeros(evaluation.rows.size)
        w, found[held] = solved
        return _walked(form, point, w, basis @ w), found
    face = np.asarray(basis.toarray())
    jacobian = _dense(evaluation.jacobian[np.flatnonzero(held)]) @ face
    curvature = face.T @ hessian @ face
    slope = evaluation.gradient @ face
    if not all(np.isfinite(part).all() for part in (jacobian, curvature, slope)):
        return None
    size = max(float(np.max(np.abs(curvature), initial=0.0)), TINY)
    scales = np.maximum(np.max(np.abs(jacobian), axis=1, initial=0.0), TINY) / size
    jacobian = jacobian / scales[:, None]
    rows = jacobian.shape[0]
    system = np.block([[curvature, jacobian.T], [jacobian, np.zeros((rows, rows))]])
    target = -np.concatenate([slope, evaluation.rows[held] / scales])
    solution = np.linalg.lstsq(system, target, rcond=NEWTON.rank)[0]
    found = np.zeros(evaluation.rows.size)
    found[held] = solution[face.shape[1] :] / scales
    w = solution[: face.shape[1]]
    return _walked(form, point, w, face @ w), found


def _walked(form: Form, point: FloatArray, w: FloatArray, step: FloatArray) -> FloatArray:
    if float(np.max(np.abs(w), initial=0.0)) <= NEWTON.straight:  # what bends is below rounding
        return form.domain.project(point + step)
    return form.settled(form.geometry.retract(point, step))


def _held_minimiser(
    evaluation: Evaluation,
    hessian: SparseHessian,
    basis: scipy.sparse.csr_array,
    held: NDArray[np.bool_],
) -> tuple[FloatArray, FloatArray] | None:
    """The step along a face, and the multipliers of the rows held, of a model with structure.

    A program whose rows are all equations is one linear system too.
    """
    jacobian = scipy.sparse.csr_array(evaluation.jacobian)[np.flatnonzero(held)] @ basis
    sizes = np.asarray(abs(jacobian).max(axis=1).todense()).reshape(-1) if held.any() else 0.0
    scales = np.maximum(sizes, TINY)
    slope = np.asarray(basis.T @ evaluation.gradient)
    along = SparseHessian(
        scipy.sparse.csr_array(basis.T @ hessian.sparse @ basis),
        basis.T @ hessian.plus,
        basis.T @ hessian.minus,
    )
    if not (is_finite(along) and np.isfinite(jacobian.data).all() and np.isfinite(slope).all()):
        return None
    size = max(float(np.max(np.abs(slope), initial=0.0)), largest_entry(along), TINY)
    free = np.full(slope.size, np.inf)
    program = QuadraticProgram(
        quadratic=along * (1 / size),
        linear=slope / size,
        inequality=scipy.sparse.csr_array((0, slope.size)),
        inequality_bound=np.zeros(0),
        equality=scipy.sparse.csr_array(scipy.sparse.diags_array(1 / scales) @ jacobian)
        if held.any()
        else jacobian,
        equality_bound=-evaluation.rows[held] / scales,
        domain=StepRows(-free, free, ()),
    )
    solution = solve_program(make_backend(), program)
    if not solution.usable:
        return None
    return solution.step, solution.equality_multipliers * size / scales


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


def _dense(matrix: Any) -> FloatArray:
    return np.asarray(matrix.toarray() if scipy.sparse.issparse(matrix) else matrix)
