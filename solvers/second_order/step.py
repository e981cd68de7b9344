"""The step: the minimiser of a quadratic model inside a trust region.

Where the linearised rows admit no step, a part of the step that a wider trust region admits is taken, and
where none does, the least relaxation of the rows is found first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace
from hcmodel.solvers.algebra.hessians import as_dense
from hcmodel.solvers.numerics import TINY
from hcmodel.solvers.qp import QPBackend, QPSolution, solve_program
from hcmodel.solvers.second_order.model import QuadraticModel
from hcmodel.solvers.second_order.options import StepOptions
from hcmodel.solvers.second_order.programs import relaxation_program, step_program

FloatArray = NDArray[np.float64]
Pair = tuple[FloatArray, FloatArray]
DEFAULTS = StepOptions()


@dataclass(frozen=True)
class QuadraticStep:
    """A step w, the multipliers of the rows, and by how much the rows had to be relaxed."""

    w: FloatArray
    multipliers: FloatArray
    relaxed: float
    on_edge: bool

    @property
    def length(self) -> float:
        return float(np.max(np.abs(self.w), initial=0.0))


def solve_step(
    model: QuadraticModel,
    radius: float,
    backend: QPBackend,
    rows: FloatArray | None = None,
    options: StepOptions = DEFAULTS,
) -> QuadraticStep | None:
    """The minimiser of the model; `rows` (scaled) replace the model's own in a correction."""
    rows = model.rows if rows is None else rows
    none = np.zeros(rows.size)
    found = _refined(model, radius, backend, rows, none, options)
    relaxed = 0.0
    if found is None and rows.size:
        found = _part(model, radius, backend, rows, options)
    if found is None and rows.size:
        slack = _relaxation(model, radius, backend, rows, options)
        if slack is None:
            return None
        relaxed = float(np.sum(np.abs(slack)))
        found = _refined(model, radius, backend, rows, slack, options)
    if found is None:
        return None
    w, multipliers = found
    edge = bool(np.max(np.abs(w), initial=0.0) >= options.edge * radius)
    return QuadraticStep(w, multipliers, relaxed, edge)


def _part(
    model: QuadraticModel,
    radius: float,
    backend: QPBackend,
    rows: FloatArray,
    options: StepOptions,
) -> Pair | None:
    """The part within the radius of the step that a wider trust region admits.

    In hidden coordinates the part α of it repairs the share α of every violation and keeps slack rows, as
    the paper's shifted rows do; the least relaxation would stay close to the edge of X instead.
    """
    if model.frame.columns is not None:
        hessian = as_dense(model.hessian)
        size = max(float(np.max(np.abs(part), initial=0.0)) for part in (model.slope, hessian))
        model = replace(model, hessian=hessian + options.centring * size * np.eye(model.dimension))
    for wider in options.wider:
        if wider <= radius:
            continue
        found = _refined(model, wider, backend, rows, np.zeros(rows.size), options)
        if found is not None:
            w, multipliers = found
            length = float(np.max(np.abs(w), initial=0.0))
            return w * min(1.0, radius / max(length, TINY)), multipliers
    return None


def _relaxation(
    model: QuadraticModel,
    radius: float,
    backend: QPBackend,
    rows: FloatArray,
    options: StepOptions,
) -> FloatArray | None:
    """What has to be added to the scaled rows' right-hand sides for a step to exist."""
    solution = solve_program(backend, relaxation_program(model, radius, rows, options))
    if not solution.usable:
        return None
    w = solution.step[: model.dimension]
    left = rows + model.jacobian @ w
    count = model.inequalities
    slack = np.array(left)
    slack[:count] = np.maximum(left[:count], 0.0)
    margin = options.relaxation_margin * (1.0 + np.max(np.abs(rows), initial=0.0))
    slack[:count] += margin
    return slack


def _refined(
    model: QuadraticModel,
    radius: float,
    backend: QPBackend,
    rows: FloatArray,
    slack: FloatArray,
    options: StepOptions,
) -> Pair | None:
    """Solve, and solve again in the unit of the step where that is small."""
    unit = min(1.0, radius)
    best: Pair | None = None
    for _ in range(options.refinements):
        program, size = step_program(model, radius, unit, rows, slack, options)
        solution = solve_program(backend, program)
        if not solution.usable:
            return best
        best = solution.step * unit, _multipliers(model, solution, size)
        length = float(np.max(np.abs(solution.step), initial=0.0))
        if length >= options.fine or unit <= options.smallest_unit:
            return best
        least = max(options.unit_decrease * unit, options.smallest_unit)
        unit = max(options.unit_per_length * length * unit, least)
    return best


def _multipliers(model: QuadraticModel, solution: QPSolution, size: float) -> FloatArray:
    """Multipliers of the rows as they are, from those of the scaled program."""
    inequality = np.maximum(solution.inequality_multipliers[: model.inequalities], 0.0) * size
    equality = solution.equality_multipliers * size + model.guess
    return np.asarray(np.concatenate([inequality, equality]) / model.row_scales)
