"""Whether a step is accepted, by actual over predicted decrease, and the trust region after it.

A step that fails because the rows are curved is corrected once, with the rows' values at the point that
it led to (second-order correction; Nocedal and Wright 2006, section 18.3).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace
from hcmodel.solvers.loop import Task
from hcmodel.solvers.numerics import PRODUCT_ROUNDING, TINY
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.qp import QPBackend
from hcmodel.solvers.second_order.options import AcceptanceOptions, Options
from hcmodel.solvers.second_order.penalty import Penalty
from hcmodel.solvers.second_order.state import Proposal, Region
from hcmodel.solvers.second_order.step import solve_step

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Trial:
    """The point that a step leads to, and the actual decrease of the merit over the predicted one."""

    evaluation: Evaluation
    ratio: float


def trial_of(
    task: Task, proposal: Proposal, radius: float, backend: QPBackend, options: Options
) -> Trial:
    """Evaluate at the end of the step, and of its correction where the rows' curvature spoils it."""
    own = options.acceptance
    trial = walked(task, proposal, proposal.step.w)
    ratio = _ratio(proposal, trial)
    if ratio < own.poor and trial.finite and _rows_are_curved(proposal, trial):
        corrected = _corrected(task, proposal, trial, radius, backend, options)
        if corrected is not None:
            other = _ratio(proposal, corrected)
            if other > max(ratio, own.accepted):
                return Trial(corrected, other)
    return Trial(trial, ratio)


def walked(task: Task, proposal: Proposal, w: FloatArray) -> Evaluation:
    """The evaluation where a step of the proposal's frame leads."""
    model = proposal.model
    step = model.frame.step(w)
    point = proposal.geometry.retract(model.evaluation.point, step)
    return task.oracle.at(task.settled(point))


def _ratio(proposal: Proposal, trial: Evaluation) -> float:
    if not trial.finite:
        return -np.inf
    penalty, promised = proposal.penalty, proposal.promised
    merit, start = penalty.merit(trial), penalty.merit(proposal.model.evaluation)
    allowance = PRODUCT_ROUNDING * max(abs(start), abs(merit))
    return (start - merit + allowance) / (promised + allowance)


def _rows_are_curved(proposal: Proposal, trial: Evaluation) -> bool:
    """Whether a row is more violated than the model predicted."""
    model = proposal.model
    predicted = model.violations(model.change(proposal.step.w)[1]) / model.row_scales
    actual = trial.violations / model.row_scales
    return bool(np.max(actual - predicted, initial=0.0) > 0)


def _corrected(
    task: Task,
    proposal: Proposal,
    trial: Evaluation,
    radius: float,
    backend: QPBackend,
    options: Options,
) -> Evaluation | None:
    model, w = proposal.model, proposal.step.w
    rows = trial.rows / model.row_scales - model.jacobian @ w
    step = solve_step(model, radius, backend, rows, options.step)
    if step is None or np.max(np.abs(step.w - w)) > radius:
        return None
    return walked(task, proposal, step.w)


def accepted_region(
    region: Region, proposal: Proposal, ratio: float, options: AcceptanceOptions
) -> Region:
    """The trust region after a step that was accepted."""
    radius, length = region.radius, proposal.step.length
    good = ratio > options.good
    if ratio < options.poor:
        radius = options.poor_decrease * min(radius, length)
    elif good and proposal.step.on_edge:
        radius = min(options.growth * radius, options.largest_radius)
    reach = 1.0 - options.reach_decrease * (1.0 - region.reach) if good else options.reach
    return Region(max(radius, options.radius_after_acceptance), reach)


def rejected_region(
    region: Region, proposal: Proposal, trial: Evaluation, options: AcceptanceOptions
) -> Region:
    """The trust region after a step that was rejected; a wide reach is taken back first."""
    if region.reach > options.reach and trial.finite and proposal.model.steps.cones:
        return replace(region, reach=options.reach)
    factor = options.rejected_decrease if trial.finite else options.failed_decrease
    return replace(region, radius=factor * min(proposal.step.length, region.radius))


def makes_progress(
    penalty: Penalty,
    before: Evaluation,
    after: Evaluation,
    options: AcceptanceOptions,
    steps: int,
) -> bool:
    """Whether the merit decreased by more than rounding and noise, after many steps by more than that."""
    start, end = penalty.merit(before), penalty.merit(after)
    least = options.progress if steps < options.many else options.late_progress
    return start - end > least * max(1.0, abs(start))


def multipliers_changed(new: FloatArray, old: FloatArray, options: AcceptanceOptions) -> bool:
    """Whether multipliers have changed enough to make another Hessian worth its cost."""
    size = max(TINY, float(np.max(np.abs(new), initial=0.0)))
    return bool(np.max(np.abs(new - old), initial=0.0) > options.changed_multipliers * size)
