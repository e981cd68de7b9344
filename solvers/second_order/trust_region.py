"""The loop that the methods of second order share: QP step, trial point, correction, trust region.

`hidden-newton` and `prox-linear` differ in the coordinates they work in and in where the curvature
comes from (`Curvature`); everything else is here. A run ends when the KKT residual is well below the
tolerance and either the task's `certified` is content or, where nothing can be shown, the next step
promises nothing worth having; a run that can get no further ends with what it has.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hcmodel.solvers import kkt
from hcmodel.solvers.algebra.hessians import Hessian
from hcmodel.solvers.coordinates.geometry import Geometry, PlainGeometry
from hcmodel.solvers.loop import State, Task
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.qp import DEFAULT_BACKEND, QPBackend, make_backend
from hcmodel.solvers.result import Termination
from hcmodel.solvers.second_order.promise import worth_having
from hcmodel.solvers.second_order.sqp import Penalty, QuadraticModel, QuadraticStep, solve_step

FloatArray = NDArray[np.float64]

ACCEPTED = 1e-4  # of the promised decrease
# The share of the way to the edge of a matrix cone that a step may use up; it grows towards 1 once the
# steps are good ones. Beyond the edge K = Y P⁻¹, to name one, is not defined.
REACH = 0.7
POOR, GOOD = 0.25, 0.75
GROWTH = 4.0
SMALLEST_RADIUS = 1e-11
LARGEST_RADIUS = 1e8
# A promised decrease of the merit this small, relatively, drowns in rounding.
ROUNDING = 1e-15
# A relative fall of the merit that counts as progress.
PROGRESS = 1e-11
# How far below the tolerance residual and violation are brought while that is cheap.
SHARE = 1e-2
# How many steps in a row may fail at bounds that bend before others are tried.
MOST_HELD = 1
# The most steps in a row without the hidden coordinates, after bounds that bend got in the way.
LONGEST_TERM = 81
# An objective under −BOTTOM, still falling, is taken as unbounded.
BOTTOM = 1e20
# On a bounded domain too, since only a pole leads there.
POLE = 1e60
# The slope of a violated row, in natural units and relative to the violation, that counts as none.
FLAT = 1e-3
# A relaxed step that takes off less than this share of the violation finds it stationary.
LEAST_REPAIR = 1e-6


@dataclass(frozen=True)
class Options:
    """Options of the methods of second order."""

    backend: str = DEFAULT_BACKEND
    radius: float = 1.0
    """The first trust region, in natural units of the coordinates."""
    patience: int = 12
    """How many steps in a row may leave the merit where it is before the run counts as stalled."""

    def __post_init__(self) -> None:
        number = isinstance(self.radius, (int, float)) and not isinstance(self.radius, bool)
        if not number or not (np.isfinite(self.radius) and self.radius > 0):
            raise ValueError(f"radius must be a positive number, not {self.radius!r}")
        if isinstance(self.patience, bool) or not isinstance(self.patience, int):
            raise ValueError(f"patience is a whole number, not {self.patience!r}")
        if self.patience < 1:
            raise ValueError(f"patience must be at least 1, not {self.patience!r}")
        make_backend(self.backend)


class Curvature(Protocol):
    """Where B comes from: the engine's Hessian, or an approximation from gradients."""

    def at(
        self, task: Task, geometry: Geometry, evaluation: Evaluation, multipliers: FloatArray
    ) -> Hessian: ...

    def moved(self, old: Evaluation, new: Evaluation, multipliers: FloatArray) -> None:
        """Told of every accepted step."""


@dataclass(frozen=True)
class TrustRegionState(State):
    radius: float = 1.0
    reach: float = REACH
    penalty: Penalty = field(default_factory=lambda: Penalty(np.zeros(0)))
    hessian: Hessian | None = None
    stagnant: int = 0
    failures: int = 0
    near: bool = False
    converged: bool = False
    held: int = 0
    plain: int = 0
    term: int = 0


class TrustRegion:
    """A method of second order, but for its curvature."""

    def __init__(self, options: Options, curvature: Curvature) -> None:
        self.options = options
        self.curvature = curvature
        self.backend: QPBackend = make_backend(options.backend)

    def init(self, task: Task, start: Evaluation) -> TrustRegionState:
        zeros = np.zeros(start.rows.size)
        state = TrustRegionState(start, zeros, radius=self.options.radius, penalty=Penalty(zeros))
        fitted = kkt.least_squares_multipliers(start, task.domain, task.tolerance)
        if fitted is not None:
            state = replace(state, multipliers=fitted)
        return self._judged(task, state)

    def terminate(self, task: Task, state: TrustRegionState) -> Termination | None:
        if state.converged:
            return Termination.CONVERGED
        current = state.current
        endless = not np.isfinite(task.domain.diameter())
        low = current.objective < (-BOTTOM if endless else -POLE)
        if low and current.relative_violation <= task.tolerance:
            return Termination.UNBOUNDED
        return None

    def step(self, task: Task, state: TrustRegionState) -> TrustRegionState:
        geometry = self._geometry(task, state)
        current = state.current
        hessian = state.hessian
        fresh = hessian is None
        if hessian is None:
            hessian = self.curvature.at(task, geometry, current, state.multipliers)
        frame = geometry.frame(current, hessian)
        model = QuadraticModel.at(
            current, task.domain, frame, hessian, state.reach, state.multipliers
        )
        found = solve_step(model, state.radius, self.backend)
        if found is not None and fresh and _far(found.multipliers, state.multipliers):
            # The rows' curvature belongs to their multipliers: a second look costs no point.
            hessian = self.curvature.at(task, geometry, current, found.multipliers)
            model = QuadraticModel.at(
                current, task.domain, frame, hessian, state.reach, found.multipliers
            )
            found = solve_step(model, state.radius, self.backend) or found
        if found is None:
            return self._failed(state)
        state = replace(state, hessian=hessian, penalty=state.penalty.after(model, found))
        promised = state.penalty.predicted(model, found.w)
        scale = max(1.0, abs(state.penalty.merit(current)))
        if state.near and promised <= SHARE * worth_having(current, task.tolerance):
            return replace(state, converged=True)
        if self._cannot_repair(task, model, found):
            return self._at_rest(task, state, model, found)
        if promised <= ROUNDING * scale:
            finer = self._finer(task, geometry, state, model, found)
            return finer or self._at_rest(task, state, model, found)
        trial = task.oracle.at(geometry.retract(current.point, frame.step(found.w)))
        ratio = self._ratio(state, trial, promised)
        if ratio < POOR and trial.finite and self._bent(model, trial, found):
            corrected = self._correction(task, geometry, state, model, trial, found)
            if corrected is not None:
                other = self._ratio(state, corrected, promised)
                if other > max(ratio, ACCEPTED):
                    trial, ratio = corrected, other
        length = float(np.max(np.abs(found.w), initial=0.0))
        held = not state.plain and geometry.bends(trial.point)
        if ratio < POOR and held and state.held >= MOST_HELD:
            # The hidden line leads through a bound that the model cannot see: some steps without it.
            term = min(max(1, 3 * state.term), LONGEST_TERM)
            return replace(
                state, plain=term, term=term, held=0, hessian=None, phase="plain", step=0.0
            )
        state = replace(state, held=state.held + held)
        if ratio < ACCEPTED or not trial.differentiable:
            radius = (0.25 if trial.finite else 0.1) * min(length, state.radius)
            if state.reach > REACH and trial.finite and model.steps.cones:
                return replace(state, reach=REACH, multipliers=found.multipliers, step=0.0)
            rejected = replace(
                state,
                radius=radius,
                multipliers=found.multipliers,
                hessian=None if _far(found.multipliers, state.multipliers) else hessian,
                step=0.0,
            )
            if radius < SMALLEST_RADIUS:
                return self._at_rest(task, rejected, model, found)
            return rejected
        return self._accepted(task, state, found, trial, ratio, length)

    def _geometry(self, task: Task, state: TrustRegionState) -> Geometry:
        geometry = task.geometry or PlainGeometry(task.domain)
        return geometry.plain() if state.plain > 0 else geometry

    def _accepted(
        self,
        task: Task,
        state: TrustRegionState,
        found: QuadraticStep,
        trial: Evaluation,
        ratio: float,
        length: float,
    ) -> TrustRegionState:
        radius = state.radius
        if ratio < POOR:
            radius = 0.5 * min(radius, length)
        elif ratio > GOOD and found.on_edge:
            radius = min(GROWTH * radius, LARGEST_RADIUS)
        good = ratio > GOOD
        self.curvature.moved(state.current, trial, found.multipliers)
        before, after = state.penalty.merit(state.current), state.penalty.merit(trial)
        progress = before - after > PROGRESS * max(1.0, abs(before))
        moved = replace(
            state,
            current=trial,
            multipliers=found.multipliers,
            hessian=None,
            radius=max(radius, 1e-6),
            held=state.held if self._geometry(task, state).bends(trial.point) else 0,
            plain=max(state.plain - 1, 0),
            phase="plain" if state.plain > 1 else "",
            reach=1.0 - 0.3 * (1.0 - state.reach) if good else REACH,
            step=length,
            shift=ratio,
            failures=0,
            stagnant=0 if progress else state.stagnant + 1,
        )
        judged = self._judged(task, moved)
        if judged.stagnant >= self.options.patience and not judged.converged:
            return replace(judged, stop=Termination.STALLED)
        return judged

    def _judged(self, task: Task, state: TrustRegionState) -> TrustRegionState:
        """Residual and multipliers at the current point, and whether that is enough."""
        current, domain = state.current, task.domain
        tight = SHARE * task.tolerance
        multipliers = state.multipliers
        value = kkt.residual(current, domain, multipliers)
        if value > tight:
            multipliers, value = kkt.best_multipliers(
                current, domain, [multipliers], task.tolerance
            )
        near = (
            value <= tight
            and current.relative_violation <= tight
            and kkt.is_stationary(current, domain, multipliers, task.tolerance)
        )
        shown = task.certified(current, multipliers) if near and task.certified else None
        return replace(
            state,
            multipliers=multipliers,
            residual=value,
            near=near and shown is None,
            converged=near and bool(shown),
        )

    def _at_rest(
        self,
        task: Task,
        state: TrustRegionState,
        model: QuadraticModel,
        found: QuadraticStep,
    ) -> TrustRegionState:
        """No step promises anything: a solution to rounding, a stall, or a conflict of the rows."""
        current = state.current
        violated = current.relative_violation > task.tolerance
        if violated and found.relaxed > 0 and state.radius < LARGEST_RADIUS:
            if state.failures < 3:
                widened = min(1e3 * max(state.radius, 1.0), LARGEST_RADIUS)
                return replace(state, radius=widened, failures=state.failures + 1)
            left = model.violations(model.change(found.w)[1]) / model.row_scales
            prices = np.abs(found.multipliers) * model.row_scales
            weights = left / max(float(np.max(left)), 1e-300)
            weights = np.maximum(weights, prices / max(float(np.max(prices)), 1e-300))
            return replace(state, conflict=weights, stop=Termination.INFEASIBLE_STATIONARY)
        rows = current.violations
        if violated and (model.row_scales <= FLAT * rows)[rows > 0.5 * np.max(rows)].all():
            # Rows without slope: the violation has a stationary point here.
            return replace(state, conflict=rows, stop=Termination.INFEASIBLE_STATIONARY)
        multipliers, value = kkt.best_multipliers(
            current, task.domain, [found.multipliers, state.multipliers], task.tolerance
        )
        state = replace(state, multipliers=multipliers, residual=value)
        if not violated and kkt.is_stationary(current, task.domain, multipliers, task.tolerance):
            return replace(state, stop=Termination.CONVERGED)
        return replace(state, stop=Termination.STALLED)

    def _finer(
        self,
        task: Task,
        geometry: Geometry,
        state: TrustRegionState,
        model: QuadraticModel,
        found: QuadraticStep,
    ) -> TrustRegionState | None:
        """A step too small to show in the merit is taken where it halves the residual."""
        trial = task.oracle.at(geometry.retract(state.current.point, model.frame.step(found.w)))
        if not (trial.finite and trial.differentiable):
            return None
        worse = max(state.current.relative_violation, SHARE * task.tolerance)
        moved = replace(state, current=trial, multipliers=found.multipliers, hessian=None)
        judged = self._judged(task, moved)
        if judged.residual > 0.5 * state.residual or trial.relative_violation > worse:
            return None
        return judged

    def _failed(self, state: TrustRegionState) -> TrustRegionState:
        if state.failures >= 4:
            return replace(state, stop=Termination.BACKEND_FAILED)
        return replace(state, failures=state.failures + 1, radius=0.1 * state.radius, hessian=None)

    def _cannot_repair(self, task: Task, model: QuadraticModel, found: QuadraticStep) -> bool:
        """Whether violated rows stay as violated as they are, for all that the model can do."""
        if found.relaxed == 0 or model.evaluation.relative_violation <= task.tolerance:
            return False
        now = float(np.sum(model.evaluation.violations / model.row_scales))
        left = float(np.sum(model.violations(model.change(found.w)[1]) / model.row_scales))
        return now - left <= LEAST_REPAIR * now

    def _ratio(self, state: TrustRegionState, trial: Evaluation, promised: float) -> float:
        if not trial.finite:
            return -np.inf
        merit, start = state.penalty.merit(trial), state.penalty.merit(state.current)
        allowance = 1e-14 * max(abs(start), abs(merit))
        return (start - merit + allowance) / (promised + allowance)

    def _bent(self, model: QuadraticModel, trial: Evaluation, found: QuadraticStep) -> bool:
        """Whether it is the rows' curvature that spoils the step."""
        foreseen = model.violations(model.change(found.w)[1]) / model.row_scales
        met = trial.violations / model.row_scales
        return bool(np.max(met - foreseen, initial=0.0) > 0)

    def _correction(
        self,
        task: Task,
        geometry: Geometry,
        state: TrustRegionState,
        model: QuadraticModel,
        trial: Evaluation,
        found: QuadraticStep,
    ) -> Evaluation | None:
        rows = trial.rows / model.row_scales - model.jacobian @ found.w
        step = solve_step(model, state.radius, self.backend, rows)
        if step is None or np.max(np.abs(step.w - found.w)) > state.radius:
            return None
        return task.oracle.at(geometry.retract(state.current.point, model.frame.step(step.w)))


def _far(new: FloatArray, old: FloatArray) -> bool:
    """Whether multipliers have changed enough to make another Hessian worth its price."""
    size = max(1e-300, float(np.max(np.abs(new), initial=0.0)))
    return bool(np.max(np.abs(new - old), initial=0.0) > 0.1 * size)
