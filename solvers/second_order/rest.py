"""No step promises anything: a solution to rounding, a stall, or a conflict of the rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import replace
from hcmodel.solvers import kkt
from hcmodel.solvers.loop import Task
from hcmodel.solvers.numerics import TINY
from hcmodel.solvers.result import Termination
from hcmodel.solvers.second_order.acceptance import walked
from hcmodel.solvers.second_order.options import Options
from hcmodel.solvers.second_order.state import Proposal, TrustRegionState
from hcmodel.solvers.second_order.stationarity import judged

FloatArray = NDArray[np.float64]


def at_rest(
    task: Task, state: TrustRegionState, proposal: Proposal, options: Options
) -> TrustRegionState:
    """How the run ends, or goes on, at a point from which no step promises anything."""
    current, found = state.current, proposal.step
    violated = current.relative_violation > task.tolerance
    widest = options.acceptance.largest_radius
    if violated and found.relaxed > 0 and state.region.radius < widest:
        if state.failures < options.rest.widenings:
            radius = min(options.rest.widening * max(state.region.radius, 1.0), widest)
            region = replace(state.region, radius=radius)
            return replace(state, region=region, failures=state.failures + 1)
        return replace(state, conflict=_conflict(proposal), stop=Termination.INFEASIBLE_STATIONARY)
    if violated and _rows_are_flat(proposal, options):
        return replace(state, conflict=current.violations, stop=Termination.INFEASIBLE_STATIONARY)
    multipliers, value = kkt.best_multipliers(
        current, task.domain, [found.multipliers, state.multipliers], task.tolerance
    )
    state = replace(state, multipliers=multipliers, residual=value)
    if not violated and kkt.is_stationary(current, task.domain, multipliers, task.tolerance):
        return replace(state, stop=Termination.CONVERGED)
    return replace(state, stop=Termination.STALLED)


def _conflict(proposal: Proposal) -> FloatArray:
    """Weights of the rows that the relaxed step leaves violated, or that have a price there."""
    model, found = proposal.model, proposal.step
    left = model.violations(model.change(found.w)[1]) / model.row_scales
    prices = np.abs(found.multipliers) * model.row_scales
    weights = left / max(float(np.max(left)), TINY)
    return np.maximum(weights, prices / max(float(np.max(prices)), TINY))


def _rows_are_flat(proposal: Proposal, options: Options) -> bool:
    """Whether the violated rows have no slope: the violation has a stationary point here."""
    rows = proposal.model.evaluation.violations
    flat = proposal.model.row_scales <= options.rest.flat * rows
    return bool(flat[rows > options.rest.violated * np.max(rows)].all())


def cannot_repair(task: Task, proposal: Proposal, options: Options) -> bool:
    """Whether violated rows stay as violated as they are, whatever step the model takes."""
    model, found = proposal.model, proposal.step
    if found.relaxed == 0 or model.evaluation.relative_violation <= task.tolerance:
        return False
    now = float(np.sum(model.evaluation.violations / model.row_scales))
    left = float(np.sum(model.violations(model.change(found.w)[1]) / model.row_scales))
    return now - left <= options.rest.least_repair * now


def finer(
    task: Task, state: TrustRegionState, proposal: Proposal, options: Options
) -> TrustRegionState | None:
    """The state after a step too small to show in the merit, if that halves the residual."""
    trial = walked(task, proposal, proposal.step.w)
    if not (trial.finite and trial.differentiable):
        return None
    worse = max(state.current.relative_violation, options.rest.share * task.tolerance)
    moved = replace(state, current=trial, multipliers=proposal.step.multipliers, hessian=None)
    after = judged(task, moved, options.rest)
    improved = after.residual <= options.rest.finer * state.residual
    return after if improved and trial.relative_violation <= worse else None


def without_step(state: TrustRegionState, options: Options) -> TrustRegionState:
    """No program had an answer: try a smaller trust region, a few times."""
    if state.failures >= options.rest.failures:
        return replace(state, stop=Termination.BACKEND_FAILED)
    radius = options.acceptance.failed_decrease * state.region.radius
    region = replace(state.region, radius=radius)
    return replace(state, failures=state.failures + 1, region=region, hessian=None)
