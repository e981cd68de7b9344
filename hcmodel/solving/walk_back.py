"""From a method's result back to the model: a fresh evaluation, what it shows, and names for it all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.lower_bound import LowerBound, gradient_domination, infeasibility, lower_bound
from hcmodel.reductions.canonical import CanonicalProblem
from hcmodel.reductions.forms import Form, Forms
from hcmodel.solvers import kkt
from hcmodel.solvers.numerics import BOTTOM, LARGEST_NUMBER
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.result import Record, Result, Termination
from hcmodel.solvers.second_order.promise import promised_decrease
from hcmodel.solvers.theory.theorems import Constants
from hcmodel.solving.naming import label, spread
from hcmodel.solving.solution import (
    LIMITS,
    BoundDuals,
    Certificate,
    Solution,
    Status,
    gap_allowed,
    judge,
)
from hcmodel.solving.strategy import Journey

FloatArray = NDArray[np.float64]

# The part of the largest weight from which on a row counts as involved in a conflict.
INVOLVED = 1e-3
# Around a point of a model with kinks: directions looked at, how far, and the slope that counts.
BESIDE = 8
ASIDE = 1e-5
STEEP = 1e-2
CERTIFIED = "shown to be within the tolerance of the optimal value"
FAR_OUT = 0.1 * LARGEST_NUMBER
DECLARED = "within the tolerance of the optimal value, if the declared coordinates are right"
IMPOSSIBLE = "shown to have no feasible point"
# Ends after which there is no time to look closer.
HURRIED = (Termination.TIME_LIMIT, Termination.INTERRUPTED)
# Of a point that is called stationary no step may promise more than this many times the gap allowed.
PROMISED = 10.0
# A bound is refined up to this part of what the status asks for, since it costs next to nothing.
FINE = 1e-5


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


@dataclass(frozen=True)
class Outcome:
    """Where a run ended, in the terms of the form that it worked on."""

    form: Form
    result: Result

    @property
    def point(self) -> FloatArray:
        """The point of the model as written, inside its domain."""
        return self.form.written.domain.project(self.form.to_written(self.result.point))

    def duals(self) -> Mapping[int, FloatArray]:
        """Multipliers of the constraints as written and of those that lifting added."""
        assert self.result.evaluation is not None
        return self.form.duals(self.result.evaluation, self.result.multipliers)


def judged_solution(
    forms: Forms,
    hidden: Form | None,
    outcome: Outcome,
    journey: Journey,
    tolerance: float,
    run: Run,
    naming: Naming,
    constants: Constants | None = None,
) -> Solution:
    """The solution in the user's terms. These evaluations are not among the method's calls.

    Value and violation are those of the model as written; stationarity is judged on the form with
    kinks lifted, and a lower bound comes from the hidden coordinates, where there are any.
    """
    canonical, lifted, result = forms.canonical, forms.lifted, outcome.result
    evaluation: Evaluation | None = None
    smooth: Evaluation | None = None
    multipliers, residual = np.zeros(lifted.canonical.outer.size), np.inf
    if result.evaluation is not None:
        evaluation = forms.written.oracle().at(outcome.point)
        smooth = lifted.oracle().at(lifted.from_written(evaluation.point))
        if smooth.finite and smooth.differentiable:
            candidates = [lifted.multipliers(smooth, outcome.duals())]
            multipliers, residual = kkt.best_multipliers(
                smooth, lifted.domain, candidates, tolerance
            )
    stationary = (
        smooth is not None
        and bool(np.isfinite(residual))
        and kkt.is_stationary(smooth, lifted.domain, multipliers, tolerance)
        and not (lifted.stack.kinked and _falls_beside(lifted, smooth, multipliers))
    )
    bound = None
    late = result.termination in HURRIED
    dear = hidden is not None and hidden.map_geometry is not None and late
    if hidden is not None and evaluation is not None and evaluation.finite and not dear:
        bound = _bound(hidden, outcome, evaluation, lifted, smooth, multipliers, tolerance)
    impossible = None
    violated = evaluation is not None and evaluation.relative_violation > tolerance
    if hidden is not None and violated and result.termination not in LIMITS:
        impossible = _impossible(hidden, outcome)
    gap = None if bound is None or evaluation is None else evaluation.objective - bound.value
    domination = None
    as_written = not lifted.definitions and not lifted.stack.kinked  # what the constants belong to
    if gap is None and constants is not None and as_written and stationary and smooth is not None:
        domination = gradient_domination(smooth, lifted.domain, multipliers, constants)
    certified = domination if gap is None else gap
    if stationary and smooth is not None:
        shown = certified is not None and certified <= gap_allowed(smooth.objective, tolerance)
        stationary = shown or not (
            late or _promises_more(hidden, lifted, smooth, multipliers, tolerance)
        )
    status = judge(
        _termination(result.termination, evaluation, canonical),
        evaluation,
        stationary,
        tolerance,
        certified,
        impossible is not None,
    )
    # A multiplier or a residual means something only at a point that may be a minimum.
    nowhere = status in (Status.INFEASIBLE, Status.INFEASIBLE_INACCURATE, Status.UNBOUNDED)
    known = smooth is not None and bool(np.isfinite(residual)) and not nowhere
    residual = residual if known else np.inf
    duals = lifted.duals(smooth, multipliers) if known and smooth is not None else {}
    proof = impossible if status is Status.INFEASIBLE else bound
    return Solution(
        value=_value(status, evaluation, canonical.sign),
        status=status,
        termination=result.termination,
        point={} if evaluation is None else _named(canonical, evaluation.point),
        duals=_duals(canonical, duals, naming) if known else {},
        bound_duals=(
            _bound_duals(canonical, lifted.canonical, smooth, multipliers, tolerance)
            if known
            else {}
        ),
        certificate=_certificate(
            status, evaluation, residual, canonical.sign, proof, domination, nowhere
        ),
        trace=tuple(signed_record(record, canonical.sign) for record in journey.trace),
        oracle_calls=journey.calls,
        iterations=journey.iterations,
        method=run.method,
        engine=run.engine,
        compile_seconds=run.compile_seconds,
        solve_seconds=run.solve_seconds,
        message=_message(status, result, hidden),
        conflict=_conflict(outcome, hidden, impossible, evaluation, status, naming),
    )


def _bound(
    hidden: Form,
    outcome: Outcome,
    evaluation: Evaluation,
    lifted: Form,
    smooth: Evaluation | None,
    multipliers: FloatArray,
    tolerance: float,
) -> LowerBound | None:
    """The best lower bound from the point: by the method's multipliers, and by those fitted here."""
    if outcome.form is hidden and outcome.result.evaluation is not None:
        there = hidden.oracle().at(outcome.result.point)
        candidates = [outcome.result.multipliers]
    else:
        there = hidden.oracle().at(hidden.from_written(evaluation.point))
        candidates = []
    if not there.finite or not there.differentiable:
        return None
    if smooth is not None:
        candidates.append(hidden.multipliers(there, lifted.duals(smooth, multipliers)))
    target = gap_allowed(evaluation.objective, tolerance)
    if outcome.result.termination in HURRIED:
        target = np.inf  # take the bound that costs nothing
    best: LowerBound | None = None
    for candidate in candidates:
        finest = FINE * target if np.isfinite(target) else None
        found = lower_bound(hidden, there, candidate, target=target, finest=finest)
        if found is not None and (best is None or found.value > best.value):
            best = found
        if best is not None and evaluation.objective - best.value <= target:
            break
    return best


def _falls_beside(form: Form, evaluation: Evaluation, multipliers: FloatArray) -> bool:
    """Whether the Lagrangian falls at first order beside the point, as at the top of a concave kink.

    The derivatives of a kink are those of one of its pieces and say nothing of the others.
    """
    generator, point = np.random.default_rng(0), evaluation.point
    metric, oracle = form.domain.metric(point), form.oracle()
    own = evaluation.objective + float(multipliers @ evaluation.rows)
    gradient = evaluation.gradient + evaluation.jacobian.T @ multipliers
    terms = np.abs(evaluation.gradient) + abs(evaluation.jacobian).T @ np.abs(multipliers)
    scale = max(abs(evaluation.objective), float(np.max(metric * terms, initial=0.0)), 1e-5)
    for _ in range(BESIDE):
        step = ASIDE * metric * generator.uniform(-1.0, 1.0, point.size)
        for sign in (1.0, -1.0):
            there = oracle.at(form.domain.project(point + sign * step))
            if not there.finite:
                continue
            value = there.objective + float(multipliers @ there.rows)
            expected = float(gradient @ (there.point - point))
            if value - own - min(expected, 0.0) < -STEEP * ASIDE * scale:
                return True
    return False


def _promises_more(
    hidden: Form | None,
    lifted: Form,
    smooth: Evaluation,
    multipliers: FloatArray,
    tolerance: float,
) -> bool:
    """Whether a Newton step from the point promises a decrease that would show in the value."""
    form, evaluation = lifted, smooth
    if hidden is not None:
        there = hidden.from_written(lifted.to_written(smooth.point))
        if not hidden.geometry.bends(there):  # bounds that bend are not in the model of a step
            form, evaluation = hidden, hidden.oracle().at(there)
            multipliers = hidden.multipliers(evaluation, lifted.duals(smooth, multipliers))
    if not (form.affords_hessian and evaluation.finite and evaluation.differentiable):
        return False
    decrease = promised_decrease(form.oracle(), form.domain, form.geometry, evaluation, multipliers)
    if decrease is None:
        return False
    value = form.plain_objective(evaluation.objective)
    fallen = value - form.plain_objective(evaluation.objective - decrease)
    return fallen > PROMISED * gap_allowed(value, tolerance)


def _impossible(hidden: Form, outcome: Outcome) -> LowerBound | None:
    result = outcome.result
    own = outcome.form is hidden
    there = hidden.oracle().at(result.point if own else hidden.from_written(outcome.point))
    if not there.finite or not there.differentiable:
        return None
    return infeasibility(hidden, there, result.conflict if own else None)


def signed_record(record: Record, sign: float) -> Record:
    """A line of the trace in the user's sign."""
    if sign > 0:
        return record
    return replace(record, objective=-record.objective, level=-record.level, bound=-record.bound)


def _termination(
    termination: Termination, evaluation: Evaluation | None, canonical: CanonicalProblem
) -> Termination:
    """Whatever stopped the run: an objective under −BOTTOM on an unbounded domain is without end.

    So is a negative one at the end of the numbers, where log x, to name one, still is small.
    """
    if evaluation is None or np.isfinite(canonical.domain.diameter()):
        return termination
    far = float(np.max(np.abs(evaluation.point))) >= FAR_OUT
    if evaluation.objective < -BOTTOM or (far and evaluation.objective < 0):
        return Termination.UNBOUNDED
    return termination


def _message(status: Status, result: Result, hidden: Form | None) -> str:
    """What the status rests on, or why the run ended where nothing was shown."""
    if status is Status.OPTIMAL:
        return DECLARED if hidden is not None and hidden.proof is None else CERTIFIED
    return IMPOSSIBLE if status is Status.INFEASIBLE else result.termination.value


def _value(status: Status, evaluation: Evaluation | None, sign: float) -> float | None:
    if status in (Status.INFEASIBLE, Status.INFEASIBLE_INACCURATE):
        return sign * np.inf
    if status is Status.UNBOUNDED:
        return -sign * np.inf
    return None if evaluation is None else sign * evaluation.objective


def _certificate(
    status: Status,
    evaluation: Evaluation | None,
    residual: float,
    sign: float,
    bound: LowerBound | None,
    domination: float | None,
    nowhere: bool,
) -> Certificate:
    """What is known of the point, strongest first; for a maximisation the bound is one from above."""
    stationary = status is Status.LOCALLY_OPTIMAL
    kind, lower, gap = "stationarity" if stationary else "none", None, None
    conditions: tuple[str, ...] | None = None
    if stationary:
        conditions = ("global if the model is hidden convex",)
    if evaluation is not None and not nowhere:
        if bound is not None:
            kind, conditions = "duality", bound.conditions
            lower, gap = sign * bound.value, evaluation.objective - bound.value
        elif domination is not None:
            kind, gap = "gradient-domination", domination
            lower = sign * (evaluation.objective - domination)
            conditions = ("the constants mu_c and diameter_u are right",)
    elif status is Status.INFEASIBLE and bound is not None:
        kind, conditions = "duality", bound.conditions
    return Certificate(
        kind=kind,
        violation=None if evaluation is None else float(np.max(evaluation.violations, initial=0.0)),
        stationarity=residual if np.isfinite(residual) else None,
        lower_bound=lower,
        gap=gap,
        conditions=conditions,
    )


def _named(canonical: CanonicalProblem, point: FloatArray) -> dict[str, FloatArray]:
    arrays = canonical.layout.unpack(np, point)
    names = [variable.name for variable in canonical.layout.variables]
    return {name: np.array(array) for name, array in zip(names, arrays, strict=True)}


def _duals(
    canonical: CanonicalProblem, duals: Mapping[int, FloatArray], naming: Naming
) -> dict[str, FloatArray]:
    """Difference rows carry the multiplier of the constraint as written; `>=` rows stand turned."""
    return {
        block.name: spread(block.name, duals[block.position], naming.families)
        for block in sorted(canonical.blocks, key=lambda block: block.position)
    }


def _bound_duals(
    canonical: CanonicalProblem,
    lifted: CanonicalProblem,
    evaluation: Evaluation | None,
    multipliers: FloatArray,
    tolerance: float,
) -> dict[str, BoundDuals]:
    """Multipliers of the bounds: what of ∇L a bound at the point holds back."""
    assert evaluation is not None
    downhill = -kkt.lagrangian_gradient(evaluation, multipliers)
    bounds = lifted.domain.bound_multipliers(evaluation.point, downhill, tolerance)
    held_back = _named(lifted, bounds)
    point = _named(lifted, evaluation.point)
    duals = {}
    for variable in canonical.layout.variables:
        x, held = point[variable.name], held_back[variable.name]
        reach = tolerance * np.maximum(1.0, np.abs(x))
        # A simplex holds its entries above 0 by itself: only bounds as written have a dual.
        lower = np.where(x <= variable.lower + reach, np.maximum(-held, 0.0), 0.0)
        upper = np.where(x >= variable.upper - reach, np.maximum(held, 0.0), 0.0)
        duals[variable.name] = BoundDuals(lower, upper)
    return duals


def _conflict(
    outcome: Outcome,
    hidden: Form | None,
    impossible: LowerBound | None,
    evaluation: Evaluation | None,
    status: Status,
    naming: Naming,
) -> tuple[str, ...]:
    """The rows that contradict each other, or else those that keep the violation up."""
    if status not in (Status.INFEASIBLE, Status.INFEASIBLE_INACCURATE) or evaluation is None:
        return ()
    canonical, result = outcome.form.canonical, outcome.result
    written = {block.position: block for block in outcome.form.written.blocks}
    weights = result.conflict
    if hidden is not None and impossible is not None:
        canonical = hidden.canonical
        sizes = hidden.oracle().at(impossible.reference).magnitudes
        weights = np.abs(impossible.multipliers) * sizes
    elif weights is None:
        assert result.evaluation is not None
        weights = result.evaluation.violations
    largest = max(float(np.max(weights)), 1e-300)
    labels = []
    for row in np.flatnonzero(weights > INVOLVED * largest):
        block, entry = canonical.row_block(int(row))
        if block.position in written:  # rows that lifting added have no name
            name = written[block.position].name
            labels.append(label(name, entry, naming.families, naming.first))
    return tuple(labels)
