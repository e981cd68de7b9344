"""Residual and multipliers at the current point, and whether the run may end there.

A run ends when the KKT residual is well below the tolerance and either the task's `certified` confirms
the point or, where nothing can be shown, the next step promises no decrease that would show in the value.
"""

from __future__ import annotations

from hcmodel.records import replace
from hcmodel.solvers import kkt
from hcmodel.solvers.loop import Task
from hcmodel.solvers.second_order.options import RestOptions
from hcmodel.solvers.second_order.state import TrustRegionState


def judged(task: Task, state: TrustRegionState, options: RestOptions) -> TrustRegionState:
    """The state with the best multipliers found, their residual, and whether that is enough."""
    current, domain = state.current, task.domain
    tight = options.share * task.tolerance
    multipliers = state.multipliers
    value = kkt.residual(current, domain, multipliers)
    if value > tight:
        multipliers, value = kkt.best_multipliers(current, domain, [multipliers], task.tolerance)
    near = (
        value <= tight
        and current.relative_violation <= tight
        and kkt.is_stationary(current, domain, multipliers, task.tolerance, value)
    )
    shown = task.certified(current, multipliers) if near and task.certified else None
    return replace(
        state,
        multipliers=multipliers,
        residual=value,
        near=near and shown is None,
        converged=near and bool(shown),
    )
