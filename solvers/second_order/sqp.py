"""One step of sequential quadratic programming on linearised rows, inside a trust region.

    minimise ∇F1·d + ½ dᵀB d   s.t.   g + ∇g·d <= 0,   h + ∇h·d = 0,   x + d in X,   ‖w‖∞ <= Δ

Where the linearised rows admit no such step, the least relaxation of them that does is found first.
Merit is the exact penalty F1 + Σ λ_i [row_i]₊ with a weight for each row; a step that fails it because
the rows bend is corrected once with the rows' values where it led (second-order correction).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.solvers.algebra.hessians import (
    Hessian,
    SparseHessian,
    as_dense,
    convexified,
    largest_entry,
)
from hcmodel.solvers.coordinates.geometry import Frame
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.qp import QPBackend, QPSolution, QuadraticProgram, solve_program
from hcmodel.solvers.qp.program import Cone, StepRows, nearer
from hcmodel.solvers.sets.cone_units import centred
from hcmodel.solvers.sets.domain import Domain

FloatArray = NDArray[np.float64]

# A step this much shorter than the unit it was computed in is computed again in its own.
FINE = 1e-2
SMALLEST_UNIT = 1e-13
# Relative to the largest entry: what is added to B so that the program is strictly convex.
PROXIMAL = 1e-9
# The least weight of a row, relative to the slopes of objective and row: a merit must see every row.
LEAST_WEIGHT = 1e-3
# Trust regions that are tried for a step of which a part is taken; one as wide as the last is none.
WIDER = (10.0, 1e3, 1e8)
ENDLESS = 1e6
# The proximal term of such a step in a matrix frame, relative to slopes and curvature: it keeps to the
# middle of cones, where the whole step alone would end at their edge.
CENTRING = 1e-2


@dataclass(frozen=True)
class QuadraticModel:
    """Objective and rows at a point, in the units of a frame; rows are divided by their slopes."""

    evaluation: Evaluation
    frame: Frame
    gradient: FloatArray
    slope: FloatArray
    guess: FloatArray
    hessian: Hessian
    jacobian: Any
    rows: FloatArray
    row_scales: FloatArray
    steps: StepRows
    walls: tuple[FloatArray, FloatArray]

    @staticmethod
    def at(
        evaluation: Evaluation,
        domain: Domain,
        frame: Frame,
        hessian: Hessian,
        reach: float = 1.0,
        multipliers: FloatArray | None = None,
    ) -> QuadraticModel:
        """`hessian` is a matrix over x; it is made positive semidefinite in the frame.

        The program is solved for what is to be added to the equalities' `multipliers`: slopes that
        equalities take up would otherwise drown the others in the backend's tolerances.
        """
        jacobian = frame.matrix(evaluation.jacobian)
        largest = (
            np.asarray(abs(jacobian).max(axis=1).todense()).reshape(-1)
            if scipy.sparse.issparse(jacobian)
            else np.max(np.abs(jacobian), axis=1, initial=0.0)
        )
        scales = np.where(largest > 0, largest, 1.0)
        if scipy.sparse.issparse(jacobian):
            jacobian = scipy.sparse.csr_array(scipy.sparse.diags_array(1 / scales) @ jacobian)
        else:
            jacobian = jacobian / scales[:, None]
        count = evaluation.inequalities
        guess = np.zeros(scales.size - count)
        if multipliers is not None:
            guess = multipliers[count:] * scales[count:]
        gradient = frame.gradient(evaluation.gradient)
        steps, walls = _step_rows(domain, evaluation.point, frame, reach)
        return QuadraticModel(
            evaluation=evaluation,
            frame=frame,
            gradient=gradient,
            slope=gradient + np.asarray(jacobian[count:].T @ guess).reshape(-1),
            guess=guess,
            hessian=convexified(frame.hessian(hessian)),
            jacobian=jacobian,
            rows=evaluation.rows / scales,
            row_scales=scales,
            steps=steps,
            walls=walls,
        )

    @property
    def inequalities(self) -> int:
        return self.evaluation.inequalities

    @property
    def dimension(self) -> int:
        return self.gradient.size

    def curvature(self, w: FloatArray) -> float:
        if isinstance(self.hessian, SparseHessian):
            return float(w @ (self.hessian @ w))
        return float(w @ self.hessian @ w)

    def change(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Predicted change of the objective, and the predicted rows."""
        return (
            float(self.gradient @ w) + 0.5 * self.curvature(w),
            (self.rows + self.jacobian @ w) * self.row_scales,
        )

    def violations(self, rows: FloatArray) -> FloatArray:
        count = self.inequalities
        return np.concatenate([np.maximum(rows[:count], 0.0), np.abs(rows[count:])])

    def program(
        self, radius: float, unit: float, rows: FloatArray, slack: FloatArray
    ) -> tuple[QuadraticProgram, float]:
        """The QP with w measured in `unit`s, and the factor that the objective was divided by."""
        count = self.inequalities
        size = max(
            float(np.max(np.abs(self.slope), initial=0.0)),
            unit * largest_entry(self.hessian),
            1e-300,
        )
        quadratic = self.hessian * (unit / size)
        if isinstance(quadratic, SparseHessian):
            quadratic = quadratic.shifted(PROXIMAL * max(1.0, float(np.max(quadratic.diagonal()))))
        else:
            diagonal = np.diag_indices_from(quadratic)
            largest = float(np.max(quadratic[diagonal], initial=0.0))
            quadratic[diagonal] += PROXIMAL * max(1.0, largest)
        walls, limits = self.walls
        inequality = self.jacobian[:count]
        # A row that no step within the trust region meets is as good as one that none of them meets by
        # far, and numbers of that size spoil the program.
        bound = np.minimum(
            slack[:count] - rows[:count], 2.0 * self.dimension * min(radius, ENDLESS)
        )
        if limits.size:
            stack = scipy.sparse.vstack if scipy.sparse.issparse(inequality) else np.vstack
            inequality = stack([inequality, walls])
            bound = np.concatenate([bound, limits])
        return (
            QuadraticProgram(
                quadratic=quadratic,
                linear=self.slope / size,
                inequality=inequality,
                inequality_bound=bound / unit,
                equality=self.jacobian[count:],
                equality_bound=(slack[count:] - rows[count:]) / unit,
                domain=self._within(radius, unit),
            ),
            size,
        )

    def relaxation_program(self, radius: float, rows: FloatArray) -> QuadraticProgram:
        """Over (w, e): the least sum of relaxations e of the scaled rows."""
        count, total, dimension = self.inequalities, rows.size, self.dimension
        equal = total - count
        walls, limits = self.walls
        wide = total + equal
        above = np.arange(count)
        level = np.arange(equal)
        signs = scipy.sparse.csr_array(
            (
                np.concatenate([-np.ones(total), np.ones(equal)]),
                (
                    np.concatenate([above, count + level, count + level]),
                    np.concatenate([above, count + level, total + level]),
                ),
            ),
            shape=(total, wide),
        )
        relaxed = _beside(self.jacobian, signs)
        wall = _beside(walls, scipy.sparse.csr_array((limits.size, wide)))
        stack = scipy.sparse.vstack if scipy.sparse.issparse(relaxed) else np.vstack
        steps = self._within(radius, 1.0)
        padding = [scipy.sparse.csr_array((cone.matrix.shape[0], wide)) for cone in steps.cones]
        cones = tuple(
            replace(cone, matrix=scipy.sparse.csr_array(scipy.sparse.hstack([cone.matrix, pad])))
            for cone, pad in zip(steps.cones, padding, strict=True)
        )
        return QuadraticProgram(
            quadratic=np.concatenate([np.full(dimension, 1e-8), np.zeros(wide)]),
            linear=np.concatenate([np.zeros(dimension), np.ones(wide)]),
            inequality=stack([relaxed[:count], wall]) if limits.size else relaxed[:count],
            inequality_bound=np.concatenate([-rows[:count], limits]),
            equality=relaxed[count:],
            equality_bound=-rows[count:],
            domain=StepRows(
                np.concatenate([steps.lower, np.zeros(wide)]),
                np.concatenate([steps.upper, np.full(wide, np.inf)]),
                cones,
            ),
        )

    def _within(self, radius: float, unit: float) -> StepRows:
        radius = radius if radius < ENDLESS else np.inf
        return StepRows(
            np.maximum(self.steps.lower, -radius) / unit,
            np.minimum(self.steps.upper, radius) / unit,
            tuple(replace(cone, offset=cone.offset / unit) for cone in self.steps.cones),
        )


def _beside(left: Any, right: scipy.sparse.csr_array) -> Any:
    """Two matrices side by side, sparse where the left one is."""
    if scipy.sparse.issparse(left):
        return scipy.sparse.csr_array(scipy.sparse.hstack([left, right]))
    return np.hstack([left, right.toarray()])


def _step_rows(
    domain: Domain, x: FloatArray, frame: Frame, reach: float
) -> tuple[StepRows, tuple[FloatArray, FloatArray]]:
    """X as bounds on w and cones; under a matrix frame, bounds become rows of their own."""
    if frame.columns is None:
        steps = nearer(domain.step_rows(x, frame.scale), reach)
        return steps, (np.zeros((0, x.size)), np.zeros(0))
    steps = nearer(domain.step_rows(x, np.ones(x.size)), reach)
    width = frame.columns.shape[1]
    kept = np.ones(x.size, dtype=bool) if frame.free is None else ~frame.free
    above = np.flatnonzero(kept & np.isfinite(steps.upper))
    below = np.flatnonzero(kept & np.isfinite(steps.lower))
    walls = np.vstack([frame.columns[above], -frame.columns[below]])
    limits = np.concatenate([steps.upper[above], -steps.lower[below]])
    cones = []
    for cone in steps.cones:
        matrix = np.asarray(cone.matrix @ frame.columns)
        if cone.kind == "zero" and np.max(np.abs(matrix), initial=0.0) < 1e-12:
            continue  # the frame spans the tangent space already
        cones.append(centred(Cone(cone.kind, scipy.sparse.csr_array(matrix), cone.offset)))
    free = np.full(width, np.inf)
    return StepRows(-free, free, tuple(cones)), (walls, limits)


@dataclass(frozen=True)
class QuadraticStep:
    """A step w, the multipliers of the rows, and by how much the rows had to be relaxed."""

    w: FloatArray
    multipliers: FloatArray
    relaxed: float
    on_edge: bool


def solve_step(
    model: QuadraticModel,
    radius: float,
    backend: QPBackend,
    rows: FloatArray | None = None,
) -> QuadraticStep | None:
    """The minimiser of the model; `rows` (scaled) replace the model's own in a correction."""
    rows = model.rows if rows is None else rows
    none = np.zeros(rows.size)
    found = _refined(model, radius, backend, rows, none)
    relaxed = 0.0
    if found is None and rows.size:
        found = _shifted(model, radius, backend, rows)
    if found is None and rows.size:
        slack = relaxation(model, radius, backend, rows)
        if slack is None:
            return None
        relaxed = float(np.sum(np.abs(slack)))
        found = _refined(model, radius, backend, rows, slack)
    if found is None:
        return None
    w, multipliers = found
    edge = bool(np.max(np.abs(w), initial=0.0) >= 0.99 * radius)
    return QuadraticStep(w, multipliers, relaxed, edge)


def _shifted(
    model: QuadraticModel, radius: float, backend: QPBackend, rows: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """The part within reach of the step that a wider trust region admits.

    In hidden coordinates a part α of it repairs that part of every violation and keeps slack rows, as
    the paper's shifted rows do; the least relaxation within reach would hug the edge of X instead.
    """
    if model.frame.columns is not None:
        hessian = as_dense(model.hessian)
        size = max(float(np.max(np.abs(part), initial=0.0)) for part in (model.slope, hessian))
        model = replace(model, hessian=hessian + CENTRING * size * np.eye(model.dimension))
    for wider in WIDER:
        if wider <= radius:
            continue
        found = _refined(model, wider, backend, rows, np.zeros(rows.size))
        if found is not None:
            w, multipliers = found
            length = float(np.max(np.abs(w), initial=0.0))
            return w * min(1.0, radius / max(length, 1e-300)), multipliers
    return None


def relaxation(
    model: QuadraticModel, radius: float, backend: QPBackend, rows: FloatArray
) -> FloatArray | None:
    """What has to be added to the scaled rows' right-hand sides for a step to exist."""
    solution = solve_program(backend, model.relaxation_program(radius, rows))
    if not solution.usable:
        return None
    w = solution.step[: model.dimension]
    left = rows + model.jacobian @ w
    count = model.inequalities
    slack = np.array(left)
    slack[:count] = np.maximum(left[:count], 0.0)
    margin = 1e-9 * (1.0 + np.max(np.abs(rows), initial=0.0))
    slack[:count] += margin
    return slack


def _refined(
    model: QuadraticModel,
    radius: float,
    backend: QPBackend,
    rows: FloatArray,
    slack: FloatArray,
) -> tuple[FloatArray, FloatArray] | None:
    """Solve, and solve again in the unit of the step where that is small."""
    unit = min(1.0, radius)
    best: tuple[FloatArray, FloatArray] | None = None
    for _ in range(4):
        program, size = model.program(radius, unit, rows, slack)
        solution = solve_program(backend, program)
        if not solution.usable:
            return best
        best = solution.step * unit, _multipliers(model, solution, size)
        length = float(np.max(np.abs(solution.step), initial=0.0))
        if length >= FINE or unit <= SMALLEST_UNIT:
            return best
        unit = max(10.0 * length * unit, 1e-3 * unit, SMALLEST_UNIT)
    return best


def _multipliers(model: QuadraticModel, solution: QPSolution, size: float) -> FloatArray:
    """Multipliers of the rows as they are, from those of the scaled program."""
    inequality = np.maximum(solution.inequality_multipliers[: model.inequalities], 0.0) * size
    equality = solution.equality_multipliers * size + model.guess
    return np.asarray(np.concatenate([inequality, equality]) / model.row_scales)


@dataclass(frozen=True)
class Penalty:
    """Weights of the rows in the merit F1 + Σ weights·violations."""

    weights: FloatArray

    def merit(self, evaluation: Evaluation) -> float:
        return evaluation.objective + float(self.weights @ evaluation.violations)

    def predicted(self, model: QuadraticModel, w: FloatArray) -> float:
        """The decrease of the merit that the model promises."""
        change, rows = model.change(w)
        now, then = model.evaluation.violations, model.violations(rows)
        return -change + float(self.weights @ (now - then))

    def after(self, model: QuadraticModel, step: QuadraticStep) -> Penalty:
        """Weights above the multipliers, under which the step is one of descent.

        They come down by and by, so that the multipliers of an early, far step do not rule for ever.
        """
        steepest = float(np.max(np.abs(model.gradient), initial=0.0)) or 1.0
        needed = np.maximum(np.abs(step.multipliers), LEAST_WEIGHT * steepest / model.row_scales)
        weights = np.maximum(
            2.0 * needed, np.where(self.weights > 4 * needed, 0.1, 1.0) * self.weights
        )
        penalty = Penalty(weights)
        change, rows = model.change(step.w)
        repaired = model.evaluation.violations - model.violations(rows)
        total = float(np.sum(np.maximum(repaired, 0.0) / model.row_scales))
        gain = float(weights @ repaired)
        if change > 0 and total > 0 and gain < 2.0 * change:
            extra = np.where(repaired > 0, 2.0 * change / total / model.row_scales, 0.0)
            penalty = Penalty(weights + extra)
        return penalty
