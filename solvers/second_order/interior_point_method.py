"""The whole problem as one smooth convex program, solved by an interior-point method (`interior-point`).

A model that is proven convex in coordinates u is a smooth convex program in u
(`hcmodel.reductions.smooth_convex`), whose posynomials stay exponents and coefficients down to the linear
algebra (`interior_point`). A program without feasible points ends with weights of the rows that prove it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hcmodel.records import replace
from hcmodel.solvers.limits import seconds_left
from hcmodel.solvers.loop import Task, WholeProgram, find_start
from hcmodel.solvers.result import Termination
from hcmodel.solvers.second_order.direct import Answer, larger_unit
from hcmodel.solvers.second_order.interior_point import (
    InteriorPointOptions,
    InteriorPointResult,
    InteriorPointStatus,
    solve,
)
from hcmodel.solvers.second_order.interior_point.convex_program import SmoothConvexProgram
from hcmodel.solvers.second_order.interior_point.phase_one import (
    certificate_of,
    feasibility_program,
)

FloatArray = NDArray[np.float64]

ENDS = {
    InteriorPointStatus.SOLVED: Termination.CONVERGED,
    InteriorPointStatus.ALMOST_SOLVED: Termination.STALLED,
    InteriorPointStatus.INFEASIBLE: Termination.INFEASIBLE,
    InteriorPointStatus.UNBOUNDED: Termination.STALLED,  # the direction has to be followed first
    InteriorPointStatus.ITERATION_LIMIT: Termination.STALLED,
    InteriorPointStatus.TIME_LIMIT: Termination.TIME_LIMIT,
    InteriorPointStatus.FAILED: Termination.BACKEND_FAILED,
}


class InteriorPointMethod:
    """`interior-point`."""

    def __init__(self, options: InteriorPointOptions | None = None) -> None:
        self.options = options or InteriorPointOptions()

    def solve(self, task: Task, start: Callable[[], FloatArray]) -> Answer:
        whole = task.whole
        assert whole is not None
        program, factor = _in_units(whole.program)
        found = solve(program, self.options, seconds_left)
        if found.status is InteriorPointStatus.FAILED and program.smooth:
            # the middle of the bounds may lie outside of a logarithm
            first = find_start(task, start())
            if first is not None:
                found = solve(program, self.options, seconds_left, first.point)
        if found.certificate is not None:
            return self._conflict(whole, found, seconds_left)
        end = ENDS[found.status]
        if not _has_point(found):
            return Answer(end, iterations=found.iterations, direction=found.direction)
        dual = np.concatenate([found.row_multipliers, found.equality_multipliers])
        multipliers = whole.multipliers(dual / factor, found.point)
        return Answer(
            end,
            found.point,
            multipliers,
            iterations=found.iterations,
            direction=found.direction,
        )

    def _conflict(
        self, whole: WholeProgram, found: InteriorPointResult, left: Callable[[], float] | None
    ) -> Answer:
        """The point of the least relaxation with its weights: tangents there show the contradiction.

        The certificate of the run has tangents of its own, which is known nowhere else.
        """
        program, iterations = whole.program, found.iterations
        certificate, point = found.certificate, found.point
        assert certificate is not None
        relaxed = feasibility_program(program)
        search = solve(relaxed, self.options, left)
        if search.usable and search.value > 0:
            iterations, point = iterations + search.iterations, search.point[:-1]
            # a row takes part if its multiplier exceeds its room; the others' are not quite 0
            room = -relaxed.values(search.point)[1:]
            held = np.where(search.row_multipliers > room, search.row_multipliers, 0.0)
            certificate = certificate_of(program, held, search.point, self.options.reach)
        weights = np.concatenate([certificate.row_weights, certificate.equality_weights])
        conflict = whole.multipliers(weights, point)
        end = ENDS[InteriorPointStatus.INFEASIBLE]
        return Answer(end, point, conflict=conflict, iterations=iterations)


def _in_units(program: SmoothConvexProgram) -> tuple[SmoothConvexProgram, float]:
    """A linear program whose objective is not tiny, and what that was multiplied by."""
    if not program.is_linear:
        return program, 1.0
    objective = program.affine[[0]]
    factor = larger_unit(float(abs(objective).max()) if objective.size else 0.0)
    if factor == 1.0:
        return program, factor
    factors = np.ones(program.affine.shape[0])
    factors[0] = factor
    affine = program.affine * factors[:, None]
    if sparse.issparse(program.affine):
        affine = sparse.diags_array(factors) @ program.affine
    return replace(program, affine=affine, constants=factors * program.constants), factor


def _has_point(found: InteriorPointResult) -> bool:
    """Whether the point is worth looking at: every run that did not fail leaves one."""
    failed = found.status is InteriorPointStatus.FAILED
    return not failed and bool(np.isfinite(found.point).all())
