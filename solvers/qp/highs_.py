"""HiGHS, the simplex method of Huangfu and Hall through scipy, as a backend for linear programs.

scipy returns no rays. The certificate of an infeasible or an unbounded program is therefore the
solution of a second linear program, which is always feasible and bounded:

    infeasible:  minimise bᵀz   s.t.  Aᵀz = 0,  −1 <= z <= 1,  z >= 0 on the inequalities
    unbounded:   minimise qᵀx   s.t.  A x = 0 or <= 0,  −1 <= x <= 1
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import replace
from hcmodel.solvers.limits import seconds_left
from hcmodel.solvers.numerics import DATA_ROUNDING
from hcmodel.solvers.qp.cone_options import ConeOptions
from hcmodel.solvers.qp.cone_program import (
    ConeKind,
    ConeProgram,
    ConeSolution,
    ConeStatus,
    without_point,
)

FloatArray = NDArray[np.float64]

# HiGHS takes tolerances from 1e-10 on (its manual, primal_feasibility_tolerance).
SMALLEST_TOLERANCE = 1e-10

# What linprog's numbers say; 2, 3 and 4 (infeasible, unbounded, undecided) ask for a certificate.
SOLVED, LIMIT = 0, 1


class HighsConeBackend:
    def fits(self, program: ConeProgram) -> bool:
        return program.is_linear

    def solve(self, program: ConeProgram, options: ConeOptions) -> ConeSolution:
        if not self.fits(program):
            raise ValueError("HiGHS solves linear programs: no quadratic part, no curved cones")
        start = time.monotonic()
        sizes = [cone.size for cone in program.cones]
        kinds = [cone.kind is ConeKind.ZERO for cone in program.cones]
        equal = np.repeat(np.array(kinds, dtype=bool), sizes)
        rows = program.sparse.tocsr()
        answer = _linprog(program.linear, rows, program.offset, equal, (None, None), options)
        if answer.status == SOLVED:
            dual = np.zeros(equal.size)
            dual[equal] = -answer.eqlin.marginals
            dual[~equal] = np.maximum(-answer.ineqlin.marginals, 0.0)
            slack = program.offset - rows @ answer.x
            slack[equal] = 0.0
            return ConeSolution(ConeStatus.SOLVED, answer.x, slack, dual, int(answer.nit))
        if answer.status == LIMIT:
            late = "ime limit" in answer.message
            return without_point(
                program, ConeStatus.TIME_LIMIT if late else ConeStatus.ITERATION_LIMIT
            )
        left = max(options.time_limit - (time.monotonic() - start), 0.0)
        return _certificate(program, rows, equal, replace(options, time_limit=left))


def _linprog(
    linear: FloatArray,
    rows: Any,
    offset: FloatArray,
    equal: NDArray[np.bool_],
    bounds: Any,
    options: ConeOptions,
) -> Any:
    from scipy.optimize import linprog  # imported late: it takes 0.1 s

    tolerance = max(options.tolerance, SMALLEST_TOLERANCE)
    settings = {
        "primal_feasibility_tolerance": tolerance,
        "dual_feasibility_tolerance": tolerance,
    }
    limit = min(options.time_limit, seconds_left())
    if np.isfinite(limit):
        settings["time_limit"] = limit
    return linprog(
        linear,
        A_ub=rows[~equal],
        b_ub=offset[~equal],
        A_eq=rows[equal],
        b_eq=offset[equal],
        bounds=bounds,
        method="highs",
        options=settings,
    )


def _certificate(
    program: ConeProgram, rows: Any, equal: NDArray[np.bool_], options: ConeOptions
) -> ConeSolution:
    size = program.linear.size
    limits = np.column_stack([np.where(equal, -1.0, 0.0), np.ones(equal.size)])
    weights = _linprog(
        program.offset,
        rows.T.tocsr(),
        np.zeros(size),
        np.ones(size, dtype=bool),
        limits,
        options,
    )
    if _decreases(weights, program.offset):
        z = weights.x / -weights.fun
        nowhere = np.full(size, np.nan)
        return ConeSolution(ConeStatus.INFEASIBLE, nowhere, np.full(equal.size, np.nan), z)
    direction = _linprog(program.linear, rows, np.zeros(equal.size), equal, (-1.0, 1.0), options)
    if _decreases(direction, program.linear):
        x = direction.x / -direction.fun
        return ConeSolution(ConeStatus.UNBOUNDED, x, -(rows @ x), np.full(equal.size, np.nan))
    return without_point(program, ConeStatus.FAILED)


def _decreases(answer: Any, weights: FloatArray) -> bool:
    scale = float(np.max(np.abs(weights), initial=0.0))
    return bool(answer.status == SOLVED and answer.fun < -np.sqrt(DATA_ROUNDING) * scale)
