"""The trust-region method that `hidden-newton` and `prox-linear` share.

They differ in the coordinates that they work in and in where the curvature comes from (`curvature`). An
iteration composes the other files of this folder: the model and its minimiser (`model`, `step`) make a
proposal, `acceptance` tries it, and `rest` decides where no step promises anything.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import replace
from hcmodel.solvers import kkt
from hcmodel.solvers.coordinates.plain import PlainCoordinates
from hcmodel.solvers.coordinates.protocol import Coordinates
from hcmodel.solvers.loop import Task
from hcmodel.solvers.numerics import BOTTOM, SUM_ROUNDING
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.qp import QPBackend, make_backend
from hcmodel.solvers.result import Termination
from hcmodel.solvers.second_order.acceptance import (
    Trial,
    accepted_region,
    makes_progress,
    multipliers_changed,
    rejected_region,
    trial_of,
)
from hcmodel.solvers.second_order.curvature import Curvature
from hcmodel.solvers.second_order.model import QuadraticModel
from hcmodel.solvers.second_order.options import Options
from hcmodel.solvers.second_order.penalty import Penalty
from hcmodel.solvers.second_order.promise import worth_having
from hcmodel.solvers.second_order.rest import at_rest, cannot_repair, finer, without_step
from hcmodel.solvers.second_order.state import Proposal, Region, TrustRegionState
from hcmodel.solvers.second_order.stationarity import judged
from hcmodel.solvers.second_order.step import solve_step

FloatArray = NDArray[np.float64]


class TrustRegion:
    """A second-order method, given its curvature."""

    def __init__(self, options: Options, curvature: Curvature) -> None:
        self.options = options
        self.curvature = curvature
        self.backend: QPBackend = make_backend(options.backend)

    def init(self, task: Task, start: Evaluation) -> TrustRegionState:
        zeros = np.zeros(start.rows.size)
        region = Region(self.options.radius, self.options.acceptance.reach)
        state = TrustRegionState(start, zeros, region=region, penalty=Penalty(zeros))
        fitted = kkt.least_squares_multipliers(start, task.domain, task.tolerance)
        if fitted is not None:
            state = replace(state, multipliers=fitted)
        return judged(task, state, self.options.rest)

    def terminate(self, task: Task, state: TrustRegionState) -> Termination | None:
        if state.converged:
            return Termination.CONVERGED
        current = state.current
        bounded = np.isfinite(task.domain.diameter())
        low = current.objective < -(self.options.rest.pole if bounded else BOTTOM)
        if low and current.relative_violation <= task.tolerance:
            return Termination.UNBOUNDED
        return None

    def step(self, task: Task, state: TrustRegionState) -> TrustRegionState:
        proposal = self._proposal(task, state)
        if proposal is None:
            return without_step(state, self.options)
        state = replace(state, hessian=proposal.hessian, penalty=proposal.penalty)
        ended = self._ended(task, state, proposal)
        if ended is not None:
            return ended
        trial = trial_of(task, proposal, state.region.radius, self.backend, self.options)
        detour = state.detour
        if not detour.active and proposal.geometry.bends(trial.evaluation.point):
            if trial.ratio < self.options.acceptance.poor and detour.is_due(self.options.detour):
                begun = detour.begun(self.options.detour)
                return replace(state, detour=begun, hessian=None, phase="plain", step=0.0)
            state = replace(state, detour=replace(detour, blocked=detour.blocked + 1))
        passed = trial.ratio >= self.options.acceptance.accepted
        if passed and trial.evaluation.differentiable:
            return self._accepted(task, state, proposal, trial)
        return self._rejected(task, state, proposal, trial)

    def _proposal(self, task: Task, state: TrustRegionState) -> Proposal | None:
        """The minimiser of the model at the current point; None where no program has an answer."""
        geometry, current = self._geometry(task, state), state.current
        hessian = state.hessian
        fresh = hessian is None
        if hessian is None:
            hessian = self.curvature.at(task, geometry, current, state.multipliers)
        frame = geometry.frame(current, hessian)
        reach, radius, own = state.region.reach, state.region.radius, self.options.step
        model = QuadraticModel.at(current, task.domain, frame, hessian, reach, state.multipliers)
        found = solve_step(model, radius, self.backend, options=own)
        if found is None:
            return None
        if fresh and self._changed(found.multipliers, state):
            # The rows' curvature depends on their multipliers; a second Hessian costs no point.
            multipliers = found.multipliers
            hessian = self.curvature.at(task, geometry, current, multipliers)
            model = QuadraticModel.at(current, task.domain, frame, hessian, reach, multipliers)
            found = solve_step(model, radius, self.backend, options=own) or found
        penalty = state.penalty.after(model, found, self.options.penalty)
        promised = penalty.predicted(model, found.w)
        return Proposal(geometry, hessian, model, found, penalty, promised)

    def _ended(
        self, task: Task, state: TrustRegionState, proposal: Proposal
    ) -> TrustRegionState | None:
        """The state where the proposal promises nothing; None where it is worth a trial."""
        rest = self.options.rest
        if state.near:
            worth = worth_having(state.current, task.tolerance)
            if proposal.promised <= rest.share * worth:
                return replace(state, converged=True)
        if cannot_repair(task, proposal, self.options):
            return at_rest(task, state, proposal, self.options)
        scale = max(1.0, abs(state.penalty.merit(state.current)))
        if proposal.promised <= SUM_ROUNDING * scale:
            after = finer(task, state, proposal, self.options)
            return after or at_rest(task, state, proposal, self.options)
        return None

    def _accepted(
        self, task: Task, state: TrustRegionState, proposal: Proposal, trial: Trial
    ) -> TrustRegionState:
        found, own = proposal.step, self.options.acceptance
        there, before = trial.evaluation, state.current
        self.curvature.moved(before, there, found.multipliers)
        near = own.circle * float(np.max(np.abs(there.point - before.point), initial=0.0))
        returned = any(np.max(np.abs(there.point - each)) <= near for each in state.left)
        progress = not returned and makes_progress(state.penalty, before, there, own, state.steps)
        detour = state.detour.after_step(blocked=proposal.geometry.bends(there.point))
        moved = replace(
            state,
            current=there,
            multipliers=found.multipliers,
            hessian=None,
            region=accepted_region(state.region, proposal, trial.ratio, own),
            detour=detour,
            phase="plain" if detour.active else "",
            step=found.length,
            shift=trial.ratio,
            failures=0,
            steps=state.steps + 1,
            stagnant=0 if progress else state.stagnant + 1,
            left=(*state.left, before.point)[-self.options.patience :],
        )
        after = judged(task, moved, self.options.rest)
        if after.stagnant >= self.options.patience and not after.converged:
            return replace(after, stop=Termination.STALLED)
        return after

    def _rejected(
        self, task: Task, state: TrustRegionState, proposal: Proposal, trial: Trial
    ) -> TrustRegionState:
        own, multipliers = self.options.acceptance, proposal.step.multipliers
        region = rejected_region(state.region, proposal, trial.evaluation, own)
        again = replace(state, region=region, multipliers=multipliers, step=0.0)
        if region.reach < state.region.reach:
            return again
        if self._changed(multipliers, state):
            again = replace(again, hessian=None)
        if region.radius < own.smallest_radius:
            return at_rest(task, again, proposal, self.options)
        return again

    def _changed(self, multipliers: FloatArray, state: TrustRegionState) -> bool:
        return multipliers_changed(multipliers, state.multipliers, self.options.acceptance)

    def _geometry(self, task: Task, state: TrustRegionState) -> Coordinates:
        geometry = task.geometry or PlainCoordinates(task.domain)
        return geometry.plain() if state.detour.active else geometry
