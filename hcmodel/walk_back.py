"""From a method's result back to the model: a fresh evaluation, what it shows, and names for it all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.canonical import CanonicalProblem
from hcmodel.families import label, spread
from hcmodel.solution import BoundDuals, Certificate, Solution, Status, judge
from hcmodel.solvers import kkt
from hcmodel.solvers.oracle import Evaluation, Oracle, Stack
from hcmodel.solvers.result import Record, Result

FloatArray = NDArray[np.float64]

# The part of the largest weight from which on a row counts as involved in a conflict.
INVOLVED = 1e-3


@dataclass(frozen=True)
class Run:
    """How the result was produced."""

    method: str
    engine: str
    compile_seconds: float
    solve_seconds: float


@dataclass(frozen=True)
class Naming:
    """How the model's front end counts: from 0 in Python, by the families' own indices in text."""

    first: int
    families: Mapping[str, Any]


def judged_solution(
    canonical: CanonicalProblem,
    result: Result,
    stack: Stack,
    tolerance: float,
    run: Run,
    naming: Naming,
) -> Solution:
    """The solution in the user's terms. These evaluations are not among the method's calls."""
    evaluation: Evaluation | None = None
    multipliers, residual = np.zeros(canonical.outer.size), np.inf
    if result.evaluation is not None:
        evaluation = Oracle(stack, canonical.outer).at(result.point)
        if evaluation.finite and evaluation.differentiable:
            multipliers, residual = kkt.best_multipliers(
                evaluation, canonical.domain, [result.multipliers], tolerance
            )
    stationary = (
        evaluation is not None
        and bool(np.isfinite(residual))
        and kkt.is_stationary(evaluation, canonical.domain, multipliers, tolerance)
    )
    status = judge(result.termination, evaluation, stationary, tolerance)
    # A multiplier or a residual means something only at a point that may be a minimum.
    nowhere = status in (Status.INFEASIBLE_INACCURATE, Status.UNBOUNDED)
    known = evaluation is not None and bool(np.isfinite(residual)) and not nowhere
    residual = residual if known else np.inf
    return Solution(
        value=_value(status, evaluation, canonical.sign),
        status=status,
        termination=result.termination,
        point={} if evaluation is None else _named(canonical, evaluation.point),
        duals=_duals(canonical, multipliers, naming) if known else {},
        bound_duals=_bound_duals(canonical, evaluation, multipliers, tolerance) if known else {},
        certificate=_certificate(status, evaluation, residual),
        trace=tuple(signed_record(record, canonical.sign) for record in result.trace),
        oracle_calls=result.calls,
        iterations=result.iterations,
        method=run.method,
        engine=run.engine,
        compile_seconds=run.compile_seconds,
        solve_seconds=run.solve_seconds,
        message=result.termination.value,
        conflict=_conflict(canonical, result, evaluation, status, naming),
    )


def signed_record(record: Record, sign: float) -> Record:
    """A line of the trace in the user's sign."""
    if sign > 0:
        return record
    return replace(record, objective=-record.objective, level=-record.level, bound=-record.bound)


def _value(status: Status, evaluation: Evaluation | None, sign: float) -> float | None:
    if status is Status.INFEASIBLE_INACCURATE:
        return sign * np.inf
    if status is Status.UNBOUNDED:
        return -sign * np.inf
    return None if evaluation is None else sign * evaluation.objective


def _certificate(status: Status, evaluation: Evaluation | None, residual: float) -> Certificate:
    stationary = status is Status.LOCALLY_OPTIMAL
    return Certificate(
        kind="stationarity" if stationary else "none",
        violation=None if evaluation is None else float(np.max(evaluation.violations, initial=0.0)),
        stationarity=residual if np.isfinite(residual) else None,
        conditions=("global if the model is hidden convex",) if stationary else None,
    )


def _named(canonical: CanonicalProblem, point: FloatArray) -> dict[str, FloatArray]:
    arrays = canonical.layout.unpack(np, point)
    names = [variable.name for variable in canonical.layout.variables]
    return {name: np.array(array) for name, array in zip(names, arrays, strict=True)}


def _duals(
    canonical: CanonicalProblem, multipliers: FloatArray, naming: Naming
) -> dict[str, FloatArray]:
    """Difference rows carry the multiplier of the constraint as written; `>=` rows stand turned."""
    return {
        block.name: spread(
            block.name,
            multipliers[block.rows].reshape(block.constraint.shape),
            naming.families,
        )
        for block in sorted(canonical.blocks, key=lambda block: block.position)
    }


def _bound_duals(
    canonical: CanonicalProblem,
    evaluation: Evaluation | None,
    multipliers: FloatArray,
    tolerance: float,
) -> dict[str, BoundDuals]:
    """Multipliers of the bounds: what of ∇L a bound at the point holds back."""
    assert evaluation is not None
    gradient = _named(canonical, kkt.lagrangian_gradient(evaluation, multipliers))
    point = _named(canonical, evaluation.point)
    duals = {}
    for variable in canonical.layout.variables:
        x, slope = point[variable.name], gradient[variable.name]
        reach = tolerance * np.maximum(1.0, np.abs(x))
        lower = np.where(x <= variable.lower + reach, np.maximum(slope, 0.0), 0.0)
        upper = np.where(x >= variable.upper - reach, np.maximum(-slope, 0.0), 0.0)
        duals[variable.name] = BoundDuals(lower, upper)
    return duals


def _conflict(
    canonical: CanonicalProblem,
    result: Result,
    evaluation: Evaluation | None,
    status: Status,
    naming: Naming,
) -> tuple[str, ...]:
    """The rows that keep the violation up, where no feasible point was found."""
    if status is not Status.INFEASIBLE_INACCURATE or evaluation is None:
        return ()
    weights = result.conflict if result.conflict is not None else evaluation.violations
    largest = max(float(np.max(weights)), 1e-300)
    involved = np.flatnonzero(weights > INVOLVED * largest)
    places = [canonical.row_place(int(row)) for row in involved]
    return tuple(label(name, entry, naming.families, naming.first) for name, entry in places)
