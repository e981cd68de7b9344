"""A solve: one run after the other, each judged as it ends, until something is shown of a point."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.call_memory import AtMost
from hcmodel.certify.domains.nowhere import nowhere_in
from hcmodel.certify.minorants.charts import chart_of
from hcmodel.errors import ModelError
from hcmodel.records import dataclass, replace
from hcmodel.reductions.form import Form
from hcmodel.reductions.forms import Forms
from hcmodel.reductions.reduction import Claim, Refusal
from hcmodel.reductions.witness import Witnessed
from hcmodel.solvers.limits import TimeExhausted, beyond, until
from hcmodel.solvers.loop import ENDINGS, WholeProgram, ending
from hcmodel.solvers.methods import minimize
from hcmodel.solvers.result import Record, Result, Termination
from hcmodel.solvers.theory.theorems import Constants
from hcmodel.solving.better_points import with_witness
from hcmodel.solving.call_budget import calls_for_judging, calls_left, held_back
from hcmodel.solving.certifier import Certifier
from hcmodel.solving.conclude import History, conclude, nowhere, signed
from hcmodel.solving.data_checks import undefined_at
from hcmodel.solving.evidence import Evidence, Outcome
from hcmodel.solving.gathering import at_first_sight, at_the_far_end, gather
from hcmodel.solving.judge import LIMITS, Status, gap_allowed, is_nearly_optimal
from hcmodel.solving.request import SolveRequest
from hcmodel.solving.solution import Solution
from hcmodel.solving.strategy import Queue, Stage, describe, made_instead, start_only

FloatArray = NDArray[np.float64]
Watch = Callable[[Record], bool]
Plan = tuple[Form | None, Queue]

# How much a status says, to choose between the outcomes of several methods.
RANKS = {
    Status.OPTIMAL: 5,
    Status.INFEASIBLE: 5,
    Status.UNBOUNDED: 4,
    Status.LOCALLY_OPTIMAL: 4,
    Status.OPTIMAL_INACCURATE: 3,
    Status.INFEASIBLE_INACCURATE: 2,
    Status.USER_LIMIT: 1,
    Status.SOLVER_ERROR: 0,
}
# Statuses that are claims about the model and not about a point only.
CERTAIN = (Status.OPTIMAL, Status.INFEASIBLE, Status.UNBOUNDED)
# Statuses after which another method may still find something better.
UNSETTLED = (Status.OPTIMAL_INACCURATE, Status.INFEASIBLE_INACCURATE, Status.SOLVER_ERROR)
# Statuses of a first run after which the domains of functions are looked at.
DOUBTFUL = (*UNSETTLED, Status.UNBOUNDED, Status.LOCALLY_OPTIMAL)
# How often a run is made again from a better point beside the one that it has found: the model may have
# many local minima, and each restart lowers the value.
MOST_RESTARTS = 5
# Runs from points beside the start where no run has found a feasible point, and how far beside it they
# begin, in units of the variables. Two rows of a rectangle need one; the numbers were not tuned.
MOST_ELSEWHERE = 2
ELSEWHERE = 0.5
# Ends after which no other run is made.
STOPPED = (
    Termination.EXCLUDED,
    Termination.CALLBACK,
    Termination.INTERRUPTED,
    Termination.FAILED,
    Termination.OUT_OF_MEMORY,
)
# How far outside its domain, by rounding, a point may lie and still be the next start.
START_SLACK = 1e-9


def run(
    stages: Queue,
    forms: Forms,
    hidden: Form | None,
    first: FloatArray,
    request: SolveRequest,
    constants: Constants | None,
    watch: Watch | None,
    otherwise: Callable[[], Plan] | None = None,
) -> Solution:
    """Run the stages until a point can be shown to be something; keep the best.

    `otherwise` makes the form and the stages to be tried where these do not show a point to be optimal.
    """
    with until(request.deadline):
        done = list[Stage]()
        found, history = _run(
            stages, forms, hidden, first, request, constants, watch, History(), done
        )
        shown = found.status in (Status.OPTIMAL, Status.INFEASIBLE)
        if otherwise is None or shown or found.termination in STOPPED:
            return found
        if _is_spent(request, history):
            return found
        try:
            hidden, stages = otherwise()
        except TimeExhausted:
            ended = Termination.TIME_LIMIT
            return replace(found, status=Status.USER_LIMIT, termination=ended, message=ended.value)
        return _run(stages, forms, hidden, first, request, constants, watch, history, done)[0]


def _run(
    left: Queue,
    forms: Forms,
    own: Form | None,
    first: FloatArray,
    request: SolveRequest,
    constants: Constants | None,
    watch: Watch | None,
    history: History,
    done: list[Stage],
) -> tuple[Solution, History]:
    """`history` and `done` have the costs and the stages of runs before; these are added to `done`."""
    best: _Judged | None = None
    # `small`: whether rows are in units far below 1; `hurried`: whether a method had too little time
    point, restarts, elsewhere, small, hurried = first, 0, 0, False, False
    while left and not (best is not None and _is_spent(request, history)):
        found = _within_calls(left.pop(), forms, own, request, history)
        try:
            stage = _ready(found)
            if stage is None:
                continue
            whole = None if stage.whole is None else stage.whole()
        except TimeExhausted:
            stage, whole = start_only(forms), None
        if isinstance(whole, Refusal):
            continue
        hidden = own if stage.instead is None else stage.form
        certifier = _certifier(stage, hidden, request)
        with np.errstate(all="ignore"):  # what is not finite is refused, not warned about
            result = _run_stage(
                stage,
                whole,
                forms,
                point,
                request,
                history,
                constants,
                watch,
                certifier,
                small,
                hidden,
            )
            history, hurried = history.extended(result), hurried or result.hurried
            outcome, evidence = _looked_at_within_calls(
                stage,
                forms,
                hidden,
                Outcome(stage.form, result, first),
                request,
                certifier,
                history,
                bool(left),
            )
            unattained = at_the_far_end(hidden, outcome, evidence)
            evidence = unattained or evidence
            done += [stage] if stage not in done else []
            method = describe(request.method, done)
            solution, evidence = _concluded(
                forms, hidden, outcome, evidence, history, method, best is None, request
            )
        if _is_passed_over(stage, solution, best, left):
            continue
        best = _better(_Judged(solution, evidence), best)
        if unattained is not None or _is_over(evidence, whole):
            break
        if evidence.in_small_units and solution.status is not Status.INFEASIBLE and not small:
            small = True
            left.again(stage if whole is None else None)
            continue
        if _is_worth_a_restart(evidence, request) and restarts < MOST_RESTARTS:
            assert evidence.better is not None
            point, restarts = evidence.better, restarts + 1
            left.again(stage)
            continue
        follows = bool(left) and _goes_on(left.first, solution)
        if solution.status not in UNSETTLED and not follows:
            break
        if _rank(solution) > 0:
            point = _next_start(stage, whole, forms, result, point)
        if not left and elsewhere < MOST_ELSEWHERE:
            left.again(_again(best, left.taken, request))
            elsewhere += 1
            point = _beside(forms, first, elsewhere) if left else point
    assert best is not None
    best = _at_better(forms, own, outcome, best, calls_left(request, history.calls))
    return _in_time(best.solution, request, hurried, bool(left)), history


def _is_over(evidence: Evidence, whole: WholeProgram | None) -> bool:
    """Whether no other run would find more."""
    if evidence.termination in STOPPED or evidence.in_valley:
        return True
    # what is missing after a second method is lost to rounding, in other coordinates too
    return whole is None and is_nearly_optimal(evidence)


def _concluded(
    forms: Forms,
    hidden: Form | None,
    outcome: Outcome,
    evidence: Evidence,
    history: History,
    method: str,
    first: bool,
    request: SolveRequest,
) -> tuple[Solution, Evidence]:
    """What a run has shown, the first one if the model has a point at which every function is defined.

    Points that satisfy the rows within the tolerance may lie beside a function's domain.
    """
    with beyond():  # one point, whose derivatives are known
        solution = conclude(forms, hidden, outcome, evidence, history, method)
    if not first or solution.status not in DOUBTFUL or solution.termination in STOPPED:
        return solution, evidence
    try:
        found = nowhere_in(forms, every=solution.status is not Status.LOCALLY_OPTIMAL)
        if found is None and outcome.result.evaluation is None:
            from hcmodel.solving.convex_rows import convex_nowhere

            found = convex_nowhere(forms, request)  # no point was there to ask it of
    except TimeExhausted:
        found = None
    if found is None:
        return solution, evidence
    made = nowhere(forms, found, solution.method, request)
    costs = {name: getattr(solution, name) for name in ("trace", "oracle_calls", "iterations")}
    return replace(made, **costs), Evidence(made.termination, evidence.tolerance)


def _ready(stage: Stage) -> Stage | None:
    """The stage as it is run; None where it is left out."""
    if stage.affordable is not None and not stage.affordable():
        return None
    return stage if stage.instead is None else made_instead(stage)


def _goes_on(stage: Stage, solution: Solution) -> bool:
    """Whether a stage is run though the last run found something: other coordinates may show more."""
    other = stage.instead is not None and solution.status is Status.LOCALLY_OPTIMAL
    return stage.follows or other


def _is_no_answer(stage: Stage, solution: Solution) -> bool:
    """Whether a run in other coordinates has shown nothing: the methods that were to follow do."""
    if stage.instead is None or solution.termination in STOPPED:
        return False
    return solution.status is not Status.OPTIMAL


def _is_passed_over(stage: Stage, solution: Solution, best: _Judged | None, left: Queue) -> bool:
    """Whether it is as if the stage had not been run; no other is where the best one needs none."""
    if not _is_no_answer(stage, solution):
        return False
    if best is not None and best.solution.status not in UNSETTLED:
        left.end()
    return True


def _next_start(
    stage: Stage, whole: WholeProgram | None, forms: Forms, result: Result, before: FloatArray
) -> FloatArray:
    """Where the next run begins: at the point of the last one, if it is one to begin at."""
    at_kink = whole is not None and stage.form.stack.kinked  # where no derivative holds
    if result.evaluation is None or at_kink:
        return before
    found = stage.form.chain.point_back(result.point)
    # else left-out bounds are broken
    return found if forms.written.domain.contains(found, START_SLACK) else before


def _looked_at_within_calls(
    stage: Stage,
    forms: Forms,
    hidden: Form | None,
    outcome: Outcome,
    request: SolveRequest,
    certifier: Certifier | None,
    history: History,
    more: bool,
) -> tuple[Outcome, Evidence]:
    """The evidence, from as many calls of a user's functions as methods that follow can spare."""
    if stage.without_sets and _is_outside(forms, outcome, request.tolerance):
        with beyond():  # values at one point
            return outcome, at_first_sight(forms, outcome, request.tolerance)
    ended, calls = outcome.result.termination, history.calls
    with AtMost(calls_for_judging(request, calls, outcome.result, stage, forms, hidden, more)):
        outcome, evidence = _looked_at(forms, hidden, outcome, request, certifier)
    if evidence.termination is Termination.CALL_LIMIT and more and not _is_spent(request, history):
        evidence = replace(evidence, termination=ended)  # only judging had no call left
    return outcome, evidence


def _is_outside(forms: Forms, outcome: Outcome, tolerance: float) -> bool:
    """Whether the point of a run is outside of the variables' sets by more than the tolerance."""
    if outcome.result.evaluation is None:
        return False
    x = outcome.form.chain.point_back(outcome.result.point)
    return not forms.written.domain.contains(x, tolerance * max(1.0, float(np.abs(x).max())))


def _at_better(
    forms: Forms, hidden: Form | None, outcome: Outcome, best: _Judged, left: int | None
) -> _Judged:
    """The better point that judging has found beside the best one, where no run went on from it.

    Calls of a user's functions are not made for nothing; else a limit keeps the point of the run.
    """
    seen, point = best.evidence, best.evidence.better
    if point is None or best.solution.status in CERTAIN:
        return best
    if not forms.written.compiled.has_black_boxes:
        return best
    try:
        with beyond(), AtMost(left):
            there = forms.written.oracle().at(point)
    except ENDINGS:
        return best
    bound = seen.bound if seen.bound is not None and seen.bound.value <= there.objective else None
    found = Evidence(
        seen.termination,
        seen.tolerance,
        evaluation=there,
        bound=bound,
        proven=seen.proven and bound is not None,
        violation=there.violation_in_units(forms.written.domain.metric(there.point)),
    )
    with beyond():
        kept = conclude(forms, hidden, outcome, found, History(), best.solution.method)
    old = best.solution
    costs = {"trace": old.trace, "oracle_calls": old.oracle_calls, "iterations": old.iterations}
    return _Judged(replace(kept, **costs), found)


def _is_spent(request: SolveRequest, history: History) -> bool:
    """Whether a limit was reached already."""
    left = calls_left(request, history.calls)
    return left == 0 or (request.deadline is not None and request.time_left <= 0)


def _within_calls(
    stage: Stage, forms: Forms, hidden: Form | None, request: SolveRequest, history: History
) -> Stage:
    """The stage; where no call would be left to judge its point, one that ends with the start."""
    left = calls_left(request, history.calls)
    if left is None or stage.form is forms.written:
        return stage  # the other forms are looked at with what is left
    point = len(forms.sign.before.user_functions)
    if held_back(stage, forms, hidden, left) + point <= left:
        return stage
    return start_only(forms, "no calls left")


def _in_time(solution: Solution, request: SolveRequest, hurried: bool, more: bool) -> Solution:
    """The solution; it says so where a method was stopped for lack of time, or had none at all."""
    ended = Termination.TIME_LIMIT
    if solution.status is not Status.OPTIMAL_INACCURATE:
        return solution
    if more and request.time_left <= 0:
        return replace(solution, status=Status.USER_LIMIT, termination=ended, message=ended.value)
    if not hurried:
        return solution
    message = (
        "the time limit stopped a method that may solve the model, and no other one did "
        f"({solution.message}); give it more time"
    )
    return replace(solution, status=Status.USER_LIMIT, termination=ended, message=message)


def _again(best: _Judged, taken: list[Stage], request: SolveRequest) -> Stage | None:
    """The run to be made from another start: none of all runs of `auto` has found a feasible point.

    A start from which all steps keep a symmetry may lead to a stationary point of the violation.
    """
    stuck = best.solution.status in (Status.INFEASIBLE_INACCURATE, Status.SOLVER_ERROR)
    if request.method != "auto" or not stuck or best.evidence.feasible:
        return None
    if best.evidence.evaluation is None or not best.evidence.evaluation.rows.size:
        return None
    able = (stage for stage in reversed(taken) if stage.whole is None and stage.entry.second_order)
    return next(able, None)


def _beside(forms: Forms, start: FloatArray, number: int) -> FloatArray:
    """A point some units of the variables away from the start, the same one in every solve."""
    domain, generator = forms.written.domain, np.random.default_rng(number)
    inside = domain.project(start)
    shift = generator.uniform(-1, 1, size=inside.size) * domain.metric(inside)
    return domain.project(inside + shift * ELSEWHERE)


def _is_worth_a_restart(evidence: Evidence, request: SolveRequest) -> bool:
    """Whether a better point is known and may be started from; a theorem speaks of one run."""
    limited = evidence.termination in LIMITS
    return evidence.better is not None and not limited and request.rule != "theory"


def _looked_at(
    forms: Forms,
    hidden: Form | None,
    outcome: Outcome,
    request: SolveRequest,
    certifier: Certifier | None,
) -> tuple[Outcome, Evidence]:
    """The evidence at the end of a run; the point is kept where the search for it fails or is stopped."""
    try:
        with beyond(request.last_moment), Witnessed(request.tolerance) as witness:
            found = gather(forms, hidden, outcome, request, certifier)
            found = with_witness(forms, found, witness)
            return outcome, _unless_undefined(forms, hidden, found)
    except ENDINGS as error:
        ended, cause = ending(error)
    outcome = replace(outcome, result=replace(outcome.result, termination=ended, cause=cause))
    with beyond():  # values at one point
        return outcome, at_first_sight(forms, outcome, request.tolerance)


def _unless_undefined(forms: Forms, hidden: Form | None, evidence: Evidence) -> Evidence:
    """A value that was computed through a pole is not a value; a run without any found no point."""
    here = evidence.evaluation
    if here is None:
        return evidence
    if not here.finite:
        limited = evidence.termination in LIMITS
        return evidence if limited else replace(evidence, termination=Termination.OUTSIDE_DOMAIN)
    if hidden is not None and hidden.has_posynomials:
        return evidence  # without poles at positive points
    reason = undefined_at(forms.sign.before, here.point)
    if reason is None:
        return evidence
    return Evidence(evidence.termination, evidence.tolerance, undefined=reason)


def _certifier(stage: Stage, hidden: Form | None, request: SolveRequest) -> Certifier | None:
    """For runs in hidden coordinates, with or without the bounds that bend."""
    if hidden is None or stage.form not in (hidden, hidden.released):
        return None
    return Certifier(hidden, request.tolerance, once=stage.whole is not None)


def _run_stage(
    stage: Stage,
    whole: WholeProgram | None,
    forms: Forms,
    point: FloatArray,
    request: SolveRequest,
    history: History,
    constants: Constants | None,
    watch: Watch | None,
    certifier: Certifier | None,
    small: bool,
    hidden: Form | None,
) -> Result:
    """Run a stage from a point of the model, within what is left of the limits.

    `small`: rows are measured in the units that their slopes have at the start, and not against 1.
    """
    chain, oracle = stage.form.chain, stage.form.oracle()
    if whole is not None and whole.is_semidefinite:
        stage.form.compiled.expect_values()  # what the program itself says of slopes is exact

    def start() -> FloatArray:
        return chain.point(forms.written.domain.project(point))

    if small:
        there = start()
        units = stage.form.domain.metric(there)
        floors = stage.form.oracle().at(there).row_floors(units)
        oracle.outer = replace(oracle.outer, floors=floors)
    left = calls_left(request, history.calls)
    if left is not None:
        left -= held_back(stage, forms, hidden, left)
    own = stage.max_calls is not None and (left is None or stage.max_calls < left)
    optimal_value = request.optimal_value
    try:
        result = minimize(
            oracle,
            stage.form.domain,
            start() if whole is None else start,
            method=stage.entry.name,
            tolerance=request.tolerance,
            optimal_value=None if optimal_value is None else forms.sign.value(optimal_value),
            rule=request.rule,
            constants=constants,
            max_calls=stage.max_calls if own else left,
            time_limit=request.seconds_left,
            callback=_shown(watch, history, stage.form, forms),
            options=stage.options,
            geometry=stage.form.geometry if stage.entry.uses_coordinates else None,
            certified=certifier,
            settle=stage.form.settle,
            whole=whole,
            affords_hessian=whole is not None and stage.form.affords_hessian,
            ends_at_kinks=stage.ends_at_kinks,
            keep_points=request.trace_points,
            images=functools.partial(chart_of, stage.form) if stage.entry.takes_cuts else None,
        )
    except ValueError as error:
        # a constant is missing or does not fit the theorem, or a backend does not fit the program
        if request.rule == "theory" or whole is not None:
            raise ModelError(str(error)) from None
        raise
    termination = result.termination
    if termination is Termination.CALL_LIMIT and own:
        termination = Termination.STALLED  # the limit was not the user's
    if (
        termination is Termination.TIME_LIMIT
        and request.method == "auto"
        and not _is_spent(request, history)
    ):
        # too little time for this method; others may have enough
        termination, result = Termination.STALLED, replace(result, hurried=True)
    if termination is Termination.ITERATION_LIMIT and request.options is None:
        termination = Termination.STALLED  # a safeguard of the loop
    if termination is Termination.UNBOUNDED and Claim.UNBOUNDED not in chain.keeps:
        termination = Termination.STALLED  # without some bounds, which says nothing of the model
    trace = tuple(chain.record(record) for record in result.trace)
    return replace(result, trace=trace, termination=termination)


def _shown(watch: Watch | None, history: History, form: Form, forms: Forms) -> Watch | None:
    """The callback for records of a run on a form, which comes after others."""
    if watch is None:
        return None
    return lambda record: watch(signed(history.shifted(form.chain.record(record)), forms))


def _rank(solution: Solution) -> int:
    known = bool(solution.point) or solution.status is Status.INFEASIBLE
    return RANKS[solution.status] if known else -1


@dataclass(frozen=True)
class _Judged:
    """A solution and what it rests on."""

    solution: Solution
    evidence: Evidence

    @property
    def rank(self) -> int:
        return _rank(self.solution)


def _better(new: _Judged, old: _Judged | None) -> _Judged:
    """The better of two solutions, with the costs and the trace of both."""
    if old is None or _is_better(new, old):
        return new
    last = new.solution
    kept = replace(
        old.solution,
        trace=last.trace,
        oracle_calls=last.oracle_calls,
        iterations=last.iterations,
        method=last.method,
    )
    return replace(old, solution=kept)


def _is_better(new: _Judged, old: _Judged) -> bool:
    """What is certain comes first, then feasibility, then the value, whatever ended the runs."""
    here, there = new.evidence.evaluation, old.evidence.evaluation
    certain = any(each.solution.status in CERTAIN for each in (new, old))
    gaps = new.evidence.gap, old.evidence.gap
    shown = all(each.evidence.feasible for each in (new, old))
    if shown and new.rank == old.rank and gaps[0] is not None and gaps[1] is not None:
        return abs(gaps[0]) <= abs(gaps[1])  # as after a polish: both are shown, one more closely
    if certain or here is None or there is None or not (here.finite and there.finite):
        return new.rank > old.rank
    if new.evidence.feasible != old.evidence.feasible:
        return new.evidence.feasible
    if not new.evidence.feasible:
        mine, its = (each.evidence.violation or 0.0 for each in (new, old))
        if abs(mine - its) <= old.evidence.tolerance * its and new.rank != old.rank:
            return new.rank > old.rank  # as where another start leads to the same point
        return mine <= its
    slack = gap_allowed(there.objective, old.evidence.tolerance)
    if abs(here.objective - there.objective) <= slack and new.rank != old.rank:
        return new.rank > old.rank
    return here.objective <= there.objective
