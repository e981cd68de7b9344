"""The whole problem as one smooth convex program, solved by an interior-point method (`interior-point`).

A model that is proven convex in coordinates u is a smooth convex program in u
(`hcmodel.reductions.smooth_convex`), whose posynomials stay exponents and coefficients down to the linear
algebra (`interior_point`). A program without feasible points ends with weights of the rows that prove it.
"""

from __future__ import annotations

import time

import numpy as np

from hcmodel.solvers.loop import Task
from hcmodel.solvers.result import Termination
from hcmodel.solvers.second_order.direct import Answer
from hcmodel.solvers.second_order.interior_point import (
    InteriorPointOptions,
    InteriorPointResult,
    InteriorPointStatus,
    solve,
)

ENDS = {
    InteriorPointStatus.SOLVED: Termination.CONVERGED,
    InteriorPointStatus.ALMOST_SOLVED: Termination.STALLED,
    InteriorPointStatus.INFEASIBLE: Termination.INFEASIBLE_STATIONARY,
    InteriorPointStatus.UNBOUNDED: Termination.STALLED,  # of logarithms, which says nothing of x
    InteriorPointStatus.ITERATION_LIMIT: Termination.STALLED,
    InteriorPointStatus.TIME_LIMIT: Termination.TIME_LIMIT,
    InteriorPointStatus.FAILED: Termination.BACKEND_FAILED,
}


class InteriorPointMethod:
    """`interior-point`."""

    def __init__(self, options: InteriorPointOptions | None = None) -> None:
        self.options = options or InteriorPointOptions()

    def solve(self, task: Task) -> Answer:
        whole = task.whole
        assert whole is not None
        deadline = task.oracle.budget.deadline
        left = None if deadline is None else (lambda: deadline - time.monotonic())
        found = solve(whole.program, self.options, left)
        end = ENDS[found.status]
        if found.certificate is not None:
            weights = (found.certificate.row_weights, found.certificate.equality_weights)
            conflict = whole.multipliers(np.concatenate(weights), found.point)
            return Answer(end, found.point, conflict=conflict, iterations=found.iterations)
        if not _has_point(found):
            return Answer(end, iterations=found.iterations)
        dual = np.concatenate([found.row_multipliers, found.equality_multipliers])
        return Answer(
            end, found.point, whole.multipliers(dual, found.point), iterations=found.iterations
        )


def _has_point(found: InteriorPointResult) -> bool:
    """Whether the point is worth looking at: every run that did not fail leaves one."""
    failed = found.status is InteriorPointStatus.FAILED
    return not failed and bool(np.isfinite(found.point).all())
