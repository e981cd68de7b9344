"""What is known of the point that a run has found: one frozen record, from fresh evaluations.

Value and violation are those of the model as written, stationarity is judged on the form with kinks
lifted, and a lower bound comes from the hidden coordinates, where there are any. Nothing here trusts a
method's word.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.conflicts import irreducible_conflict
from hcmodel.certify.descent import Descent, Run, falling_path, runs_away
from hcmodel.certify.hulls import is_hull_stationary
from hcmodel.certify.impossible_rows import impossible_row
from hcmodel.certify.lower_bound import (
    LowerBound,
    dual_infeasibility,
    gradient_domination,
    infeasibility,
    lower_bound,
    tested,
)
from hcmodel.certify.nearby import better_point
from hcmodel.certify.norm_minorants import minorant_bound
from hcmodel.records import dataclass
from hcmodel.reductions.forms import Form, Forms
from hcmodel.reductions.reduction import BoundOrigin, Claim, Origin, Refusal
from hcmodel.solvers import kkt
from hcmodel.solvers.oracle import Evaluation, OracleFailed
from hcmodel.solvers.qp import ConeOptions, make_cone_backend
from hcmodel.solvers.result import Result, Termination
from hcmodel.solvers.second_order.promise import promised_decrease
from hcmodel.solving.certifier import Certifier
from hcmodel.solving.judge import FINEST, LIMITS, gap_allowed
from hcmodel.solving.request import SolveRequest
from hcmodel.solving.user_functions import is_noisy

if TYPE_CHECKING:
    from hcmodel.certify.curvature_boxes import Settlement

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class EvidenceRules:
    """How closely a point is looked at; the claims' tests (test_claims.py) chose the numbers."""

    kink_directions: int = 8
    """Random directions, each taken both ways, along which a kink is tested for descent."""
    kink_distance: float = 1e-5
    """How far these tests go, in natural units: well above rounding, well below a model's features."""
    kink_slope: float = 1e-2
    """The slope, relative to the terms of the Lagrangian, that counts as descent."""
    promised: float = 10.0
    """A stationary point has no step that promises more than this many times the gap allowed."""
    certified_residual: float = 1e2
    """Multipliers of a certified point are taken as they are with a residual of so many tolerances:
    those of a regulator's cone program are exact to 1e-10 where a fit at the point is to 1e-6."""


RULES = EvidenceRules()
# Ends of a method by a rule of its own.
ENDED = (Termination.CONVERGED, Termination.STALLED)
# Ends after which no time is left to look closer.
OUT_OF_TIME = (Termination.TIME_LIMIT, Termination.INTERRUPTED)


@dataclass(frozen=True)
class Outcome:
    """Where a run ended, in the terms of the form that it worked on."""

    form: Form
    result: Result
    start: FloatArray
    """Where the solve has started, a point of the model."""

    def point(self, forms: Forms) -> FloatArray:
        """The point of the model, inside its domain."""
        return forms.written.domain.project(self.form.chain.point_back(self.result.point))


@dataclass(frozen=True)
class Evidence:
    """Evaluations, multipliers, residual, bound and conflict at a point, for a minimisation.

    `evaluation` is of the model as written, `smooth` of the form with kinks lifted, to which
    `multipliers` and `residual` belong. `domination` is a gap from constants that the user gave.
    """

    termination: Termination
    tolerance: float
    evaluation: Evaluation | None = None
    smooth: Evaluation | None = None
    multipliers: FloatArray | None = None
    residual: float = np.inf
    stationary: bool = False
    bound: LowerBound | None = None
    domination: float | None = None
    conflict: LowerBound | None = None
    parts: tuple[Origin | BoundOrigin, ...] | None = None
    """The rows and bounds of an irreducible conflict, where the model is proven convex."""
    descent: Descent | None = None
    """A path on which the objective falls to the end of the numbers."""
    violation: float | None = None
    """The largest violation of a row, relative to its sides and its slopes."""
    better: FloatArray | None = None
    """A feasible point of the model beside this one that is better."""
    cause: BaseException | None = None
    """The exception that ended the run."""
    proven: bool = False
    """Whether the coordinates behind the bound are proven."""
    relaxed: bool = False
    """Whether the bound is one of the model without some of its bounds, so that a gap shows nothing."""
    bends_at: FloatArray | None = None
    """A point of the model at which it is shown not to be convex in the declared coordinates."""
    infimum: float | None = None
    """What the objective comes as near to as one likes, where no point attains it."""
    undefined: str | None = None
    """Why the model has no value at the point, although its formula gives one."""

    @property
    def feasible(self) -> bool:
        if self.evaluation is None:
            return False
        violation = self.violation
        if violation is None:
            violation = self.evaluation.relative_violation
        return violation <= self.tolerance

    @property
    def in_small_units(self) -> bool:
        """Whether the rows look satisfied only because they are in units far below 1."""
        loose = self.evaluation is not None and self.evaluation.relative_violation <= self.tolerance
        return loose and not self.feasible

    @property
    def gap(self) -> float | None:
        """The certified distance to the minimum; None where nothing is certified."""
        if self.bound is None or self.evaluation is None:
            return self.domination
        return self.evaluation.objective - self.bound.value


def gather(
    forms: Forms,
    hidden: Form | None,
    outcome: Outcome,
    request: SolveRequest,
    certifier: Certifier | None,
) -> Evidence:
    """Look at the point of an outcome. These evaluations are not among the method's calls."""
    result, tolerance, lifted = outcome.result, request.tolerance, forms.lifted
    if result.evaluation is None or result.cause is not None:
        return at_first_sight(forms, outcome, tolerance)
    evaluation = _evaluated(forms, outcome)
    smooth = evaluation
    if lifted is not forms.written:
        smooth = lifted.oracle().at(lifted.chain.point(evaluation.point))
    multipliers, residual = np.zeros(lifted.canonical.outer.size), np.inf
    certified = _certified(hidden, outcome, evaluation, tolerance, certifier)
    if smooth.finite and smooth.differentiable:
        found = outcome.form.duals(result.evaluation, result.multipliers)
        own = lifted.multipliers(smooth, found)
        enough = RULES.certified_residual * tolerance if certified else None
        multipliers, residual = kkt.best_multipliers(
            smooth, lifted.domain, [own], tolerance, enough
        )
    pair = _Pair(lifted, smooth, multipliers)
    stationary = certified or _stationary(forms, outcome, evaluation, pair, residual, tolerance)
    late = result.termination in OUT_OF_TIME
    violation = evaluation.violation_in_units(forms.written.domain.metric(evaluation.point))
    violated = violation > tolerance
    conflict, parts, near = None, None, False
    if violated:
        conflict, parts, near = _contradiction(forms, hidden, outcome, evaluation, request)
    bound, settled = None, None
    expensive = hidden is not None and hidden.map_geometry is not None and late
    if hidden is not None and evaluation.finite and conflict is None and not expensive:
        bound = _bound(hidden, outcome, evaluation, pair, request, certifier)
        settled, bound = _settled(hidden, bound, late)
    domination = None
    if bound is None and stationary:
        domination = _domination(pair, request)
    found_gap = domination if bound is None else evaluation.objective - bound.value
    shown = found_gap is not None and found_gap <= gap_allowed(smooth.objective, tolerance)
    descent, better = None, None
    if not shown and not violated and not late and evaluation.finite:
        descent = _descent(forms, outcome, evaluation, tolerance)
        counted = (
            result.termination is Termination.CALL_LIMIT and forms.lifted.compiled.has_black_boxes
        )
        noisy = is_noisy(forms.sign.before)  # then values close to each other cannot be compared
        better = None if noisy else _lowest(forms, hidden, evaluation, settled, tolerance)
        unknown = better is None and (hidden is None or hidden.proof is None)
        if unknown and not (counted or noisy or _is_surrounded(outcome)):
            better = _better(forms, evaluation, descent, pair, tolerance)
        stationary = (
            stationary
            and better is None
            and not (descent is not None and _is_lower(descent.lowest, evaluation, tolerance))
            and not _promises_more(hidden, pair, tolerance)
        )
    elif shown and not violated and not late:
        descent = _unattained(forms, outcome, evaluation, tolerance)
    elif late and not shown:
        stationary = False
    return Evidence(
        termination=_termination(result.termination, descent, near),
        tolerance=tolerance,
        evaluation=evaluation,
        smooth=smooth,
        multipliers=multipliers,
        residual=residual,
        stationary=stationary,
        bound=bound,
        domination=domination,
        conflict=conflict,
        parts=parts,
        descent=descent,
        better=better,
        violation=violation,
        proven=hidden is not None and (hidden.proof is not None or _shown(settled)),
        bends_at=_bends_at(forms, hidden, settled),
        relaxed=hidden is not None and Claim.UNBOUNDED not in hidden.chain.keeps,
    )


def _evaluated(forms: Forms, outcome: Outcome) -> Evaluation:
    """The model at the point; functions of the user, which may be expensive, are not called again."""
    known, point = outcome.result.evaluation, outcome.point(forms)
    if (
        known is not None
        and outcome.form is forms.written
        and forms.written.compiled.has_black_boxes
        and np.array_equal(known.point, point)
    ):
        return known
    return forms.written.oracle().at(point)


def _is_surrounded(outcome: Outcome) -> bool:
    """Whether the run itself has called functions of the user all around its point."""
    return outcome.result.surrounded and outcome.form.compiled.has_black_boxes


def _settled(
    hidden: Form, bound: LowerBound | None, late: bool
) -> tuple[Settlement | None, LowerBound | None]:
    """What enclosures of second derivatives say of declared coordinates, and what is left of a bound."""
    if bound is None or bound.search is None or hidden.proof is not None:
        return None, bound
    if late or hidden.compiled.has_black_boxes:
        return None, bound
    from hcmodel.certify.curvature_boxes import SHOWN, settle  # of declared coordinates only

    with np.errstate(all="ignore"):
        found = settle(bound.search)
    if found.bends_at is not None:
        return found, None
    if not found.convex:
        return found, bound
    # the first condition is settled, and the image of a box entry by entry is a box
    rest = bound.conditions[1 if hidden.map_geometry is None else 2 :]
    return found, replace(bound, conditions=(SHOWN, *rest))


def _shown(settled: Settlement | None) -> bool:
    return settled is not None and settled.convex


def _bends_at(forms: Forms, hidden: Form | None, settled: Settlement | None) -> FloatArray | None:
    if hidden is None or settled is None or settled.bends_at is None:
        return None
    return forms.written.domain.project(hidden.chain.point_back(settled.bends_at))


def _lowest(
    forms: Forms,
    hidden: Form | None,
    evaluation: Evaluation,
    settled: Settlement | None,
    tolerance: float,
) -> FloatArray | None:
    """The best of the points at which enclosures were taken, where it is better than the one found."""
    if hidden is None or settled is None:
        return None
    best: Evaluation | None = None
    for point in settled.lowest:
        there = forms.written.oracle().at(
            forms.written.domain.project(hidden.chain.point_back(point))
        )
        units = forms.written.domain.metric(there.point)
        inside = there.finite and there.violation_in_units(units) <= tolerance
        if inside and (best is None or there.objective < best.objective):
            best = there
    lower = best is not None and _is_lower(best, evaluation, tolerance)
    return best.point if best is not None and lower else None


def at_first_sight(forms: Forms, outcome: Outcome, tolerance: float) -> Evidence:
    """The value of the point and nothing else: what is left where looking closer failed."""
    result, spare = outcome.result, None
    if result.evaluation is not None:
        try:
            spare = forms.written.oracle().at(outcome.point(forms))
        except OracleFailed:
            spare = result.evaluation if outcome.form is forms.written else None
    return Evidence(result.termination, tolerance, evaluation=spare, cause=result.cause)


def at_the_far_end(hidden: Form | None, outcome: Outcome, evidence: Evidence) -> Evidence | None:
    """The farthest point of a path to an infimum that no point attains; None where there is no such path.

    A positive objective whose logarithm falls for ever, along a direction of the convex program, has the
    infimum 0: no method would find a minimum. The path was followed in the model as written.
    """
    descent, end = evidence.descent, None if hidden is None else hidden.canonical.outer
    if end is None or end.objective_form != "log" or outcome.form is not hidden:
        return None
    if outcome.result.direction is None or descent is None or descent.endless:
        return None
    lowest, tolerance = descent.lowest, evidence.tolerance
    near = lowest.objective <= gap_allowed(0.0, tolerance)
    return Evidence(
        evidence.termination,
        tolerance,
        evaluation=lowest,
        stationary=near,
        descent=descent,
        infimum=0.0 if near else None,  # directions of a backend are exact to some digits
    )


def _stationary(
    forms: Forms,
    outcome: Outcome,
    written: Evaluation,
    pair: _Pair,
    residual: float,
    tolerance: float,
) -> bool:
    """Whether the point is stationary, by its multipliers or by gradients close to it."""
    result, form, evaluation = outcome.result, pair.form, pair.evaluation
    if result.termination is Termination.HULL_STATIONARY and outcome.form is forms.written:
        allowed = tolerance * max(1.0, abs(written.objective))
        shown = is_hull_stationary(forms.written, written, result.weighted, allowed)
        return shown and not is_noisy(forms.sign.before)  # a hull of noise contains 0
    return (
        bool(np.isfinite(residual))
        and kkt.is_stationary(evaluation, form.domain, pair.multipliers, tolerance, residual)
        and not (form.stack.kinked and _falls_at_kink(form, evaluation, pair.multipliers))
    )


def _descent(
    forms: Forms, outcome: Outcome, evaluation: Evaluation, tolerance: float
) -> Descent | None:
    result = outcome.result
    return falling_path(
        forms.written,
        evaluation,
        Run(outcome.form, outcome.start, result.point, result.direction, _is_surrounded(outcome)),
        tolerance,
        gap_allowed(evaluation.objective, tolerance),
    )


def _contradiction(
    forms: Forms,
    hidden: Form | None,
    outcome: Outcome,
    evaluation: Evaluation,
    request: SolveRequest,
) -> tuple[LowerBound | None, tuple[Origin | BoundOrigin, ...] | None, bool]:
    """A proof that no point satisfies the rows, and the rows and bounds that it cannot do without.

    The last one says that no point with an image does, where the model has others.
    """
    near = False
    if hidden is not None and outcome.result.termination not in LIMITS:
        conflict = _conflict(forms, hidden, outcome, request)
        if conflict is not None:
            parts = irreducible_conflict(hidden, request.deadline)
            if hidden.chain.excludes(parts):
                return conflict, parts, False
            near = True
    parts = forms.bounds.contradiction()
    if not parts and not any(parameter.value is None for parameter in forms.model.parameters):
        row = impossible_row(forms.bounds.before)
        parts = () if row is None else (row,)
    if not parts:
        return None, None, near
    # two bounds, or a row and all values that it can have, whatever the other functions are
    return LowerBound(np.inf, (), 0, evaluation.point, np.zeros(0)), parts, False


def _unattained(
    forms: Forms, outcome: Outcome, evaluation: Evaluation, tolerance: float
) -> Descent | None:
    """A path to better points than one that is shown to be optimal within the tolerance."""
    if not runs_away(forms.written, evaluation):
        return None
    path = _descent(forms, outcome, evaluation, tolerance)
    return None if path is None or path.endless else path


def _domination(pair: _Pair, request: SolveRequest) -> float | None:
    """A bound of the gap from constants of the user, for models as written."""
    form, constants = pair.form, request.given_constants
    if constants is None or form.chain.adds_variables or form.stack.kinked:
        return None
    return gradient_domination(pair.evaluation, form.domain, pair.multipliers, constants)


def _better(
    forms: Forms, evaluation: Evaluation, descent: Descent | None, pair: _Pair, tolerance: float
) -> FloatArray | None:
    """A better point of the model beside the one found; none where the model has no bound."""
    smooth = pair.evaluation
    if (descent is not None and descent.endless) or not smooth.finite:
        return None
    least = gap_allowed(evaluation.objective, tolerance)
    found = better_point(pair.form, smooth, pair.multipliers, tolerance, least)
    if found is None:
        return None
    there = forms.written.oracle().at(
        forms.written.domain.project(pair.form.chain.point_back(found.point))
    )
    units = forms.written.domain.metric(there.point)
    inside = there.finite and there.violation_in_units(units) <= tolerance
    return there.point if inside and _is_lower(there, evaluation, tolerance) else None


def _is_lower(there: Evaluation, here: Evaluation, tolerance: float) -> bool:
    """Whether a point is better than another by more than an optimal point may be off."""
    return there.objective < here.objective - gap_allowed(here.objective, tolerance)


def _termination(
    termination: Termination, descent: Descent | None, near: bool = False
) -> Termination:
    """Why the run ended: an objective without a bound needs a path that shows it.

    `near` says that almost no point satisfies the rows (`_contradiction`).
    """
    if near:
        return Termination.INFEASIBLE_STATIONARY
    if descent is not None and descent.endless:
        return Termination.UNBOUNDED
    return Termination.STALLED if termination is Termination.UNBOUNDED else termination


def _certified(
    hidden: Form | None,
    outcome: Outcome,
    evaluation: Evaluation,
    tolerance: float,
    certifier: Certifier | None,
) -> bool:
    """Whether the bound that ended the run shows the point to be optimal."""
    if hidden is None or hidden.proof is None or certifier is None or outcome.form is not hidden:
        return False
    known = certifier.bound_at(outcome.result.point)
    value = evaluation.objective
    return known is not None and abs(value - known.value) <= gap_allowed(value, tolerance)


@dataclass(frozen=True)
class _Pair:
    """A point of a form, and multipliers of its rows."""

    form: Form
    evaluation: Evaluation
    multipliers: FloatArray

    def moved(self, form: Form) -> _Pair:
        """The same pair in another form of the same model."""
        there = form.oracle().at(
            form.chain.point(self.form.chain.point_back(self.evaluation.point))
        )
        duals = self.form.duals(self.evaluation, self.multipliers)
        return _Pair(form, there, form.multipliers(there, duals))


def _bound(
    hidden: Form,
    outcome: Outcome,
    evaluation: Evaluation,
    pair: _Pair,
    request: SolveRequest,
    certifier: Certifier | None,
) -> LowerBound | None:
    """The best lower bound; at kinks that no linear row expresses, one from the cone program.

    The cuts of a bundle show one without another evaluation. Where they are not good enough, a search
    from the point may be, but not with black boxes: it takes second derivatives.
    """
    from_cuts = None
    if outcome.form is hidden and outcome.result.weighted:
        from hcmodel.certify.cut_bounds import cut_bound  # of a method of its own

        from_cuts = cut_bound(hidden, outcome.result.weighted)
        allowed = gap_allowed(evaluation.objective, request.tolerance)
        shown = from_cuts is not None and evaluation.objective - from_cuts.value <= allowed
        if shown or hidden.compiled.has_black_boxes:
            return from_cuts
    target = gap_allowed(evaluation.objective, request.tolerance)
    left = np.inf if request.seconds_left is None else max(request.seconds_left, 0.0)

    def better(one: LowerBound | None, other: LowerBound | None) -> LowerBound | None:
        if one is None or (other is not None and other.value > one.value):
            return other
        return one

    def good(bound: LowerBound | None) -> bool:
        return bound is not None and evaluation.objective - bound.value <= target

    searched = functools.partial(
        _searched_bound, hidden, outcome, evaluation, pair, request.tolerance, certifier
    )
    best = better(searched(thorough=hidden.proof is None), from_cuts)
    if good(best) or outcome.result.termination in OUT_OF_TIME:
        return best
    if hidden.stack.kinked:
        best = better(best, minorant_bound(hidden, target, left))
    elif outcome.result.termination in ENDED:
        best = better(best, _cone_bound(hidden, target, left))
    if hidden.proof is not None and not good(best):
        best = better(best, searched(thorough=True))
    return best


def _cone_bound(hidden: Form, target: float, left: float) -> LowerBound | None:
    """A bound from the cone program of a proven form, for points of methods that know no multipliers.

    At kinks that are lifted to rows the multipliers of a stationary point are seldom unique, and those
    of a first-order method may bound nothing.
    """
    if hidden.proof is None or hidden.compiled.has_black_boxes:
        return None
    whole = hidden.whole("cone")
    if isinstance(whole, Refusal):
        return None
    solution = make_cone_backend().solve(whole.program, ConeOptions(time_limit=left))
    if not solution.usable:
        return None
    there = hidden.oracle().at(
        hidden.domain.project(hidden.settled(solution.primal[: hidden.domain.dimension]))
    )
    if not (there.finite and there.differentiable):
        return None
    multipliers = whole.multipliers(solution.dual, there.point)
    return lower_bound(hidden, there, multipliers, target=target, solution=solution, thorough=False)


def _searched_bound(
    hidden: Form,
    outcome: Outcome,
    evaluation: Evaluation,
    pair: _Pair,
    tolerance: float,
    certifier: Certifier | None,
    *,
    thorough: bool,
) -> LowerBound | None:
    """The best lower bound from the point: the one that ended the run, or a search from here."""
    result = outcome.result
    if certifier is not None and outcome.form in (hidden, hidden.released):
        known = certifier.bound_at(result.point)
        shown = known is not None and evaluation.objective - known.value <= gap_allowed(
            evaluation.objective, tolerance
        )
        if known is not None and (shown or not thorough or hidden.proof is None):
            return tested(known)
    candidates = []
    if outcome.form is hidden:
        there = hidden.oracle().at(result.point)
        candidates = [result.multipliers]
    else:
        there = hidden.oracle().at(hidden.chain.point(evaluation.point))
    if not there.finite or not there.differentiable:
        return None
    duals = pair.form.duals(pair.evaluation, pair.multipliers)
    candidates.append(hidden.multipliers(there, duals))
    target = gap_allowed(evaluation.objective, tolerance)
    if result.termination in OUT_OF_TIME:
        target = np.inf  # take the bound that costs nothing
    finest = FINEST * target if np.isfinite(target) else None
    best: LowerBound | None = None
    for candidate in candidates:
        found = lower_bound(
            hidden, there, candidate, target=target, finest=finest, thorough=thorough
        )
        if found is not None and (best is None or found.value > best.value):
            best = found
        if best is not None and evaluation.objective - best.value <= target:
            break
    return best


def _conflict(
    forms: Forms, hidden: Form, outcome: Outcome, request: SolveRequest
) -> LowerBound | None:
    """A proof in hidden coordinates that no feasible point exists."""
    if outcome.form is hidden and outcome.result.conflict is not None and outcome.result.weighted:
        from hcmodel.certify.cut_bounds import cut_conflict  # of a method of its own

        return cut_conflict(hidden, outcome.result.weighted)
    if outcome.form is hidden:
        there = hidden.oracle().at(outcome.result.point)
        weights = outcome.result.conflict
    else:
        there = hidden.oracle().at(hidden.chain.point(outcome.point(forms)))
        weights = None
    left = np.inf if request.seconds_left is None else max(request.seconds_left, 0.0)
    found = dual_infeasibility(hidden, there, left)
    if found is not None or not there.finite or not there.differentiable:
        return found
    return infeasibility(hidden, there, weights)


def _falls_at_kink(form: Form, evaluation: Evaluation, multipliers: FloatArray) -> bool:
    """Whether the Lagrangian decreases at first order near the point, as at the top of a concave kink.

    The derivatives of a kink are those of one of its pieces and say nothing of the others.
    """
    generator, point = np.random.default_rng(0), evaluation.point
    metric, oracle = form.domain.metric(point), form.oracle()
    own = evaluation.objective + float(multipliers @ evaluation.rows)
    gradient = evaluation.gradient + evaluation.jacobian.T @ multipliers
    terms = np.abs(evaluation.gradient) + abs(evaluation.jacobian).T @ np.abs(multipliers)
    scale = max(
        abs(evaluation.objective),
        float(np.max(metric * terms, initial=0.0)),
        RULES.kink_distance,
    )
    for _ in range(RULES.kink_directions):
        step = RULES.kink_distance * metric * generator.uniform(-1.0, 1.0, point.size)
        for sign in (1.0, -1.0):
            there = oracle.at(form.domain.project(point + sign * step))
            if not there.finite:
                continue
            value = there.objective + float(multipliers @ there.rows)
            expected = float(gradient @ (there.point - point))
            least = -RULES.kink_slope * RULES.kink_distance * scale
            if value - own - min(expected, 0.0) < least:
                return True
    return False


def _promises_more(hidden: Form | None, pair: _Pair, tolerance: float) -> bool:
    """Whether a Newton step from the point promises a decrease that would show in the value."""
    if hidden is not None:
        there = hidden.chain.point(pair.form.chain.point_back(pair.evaluation.point))
        whole = Claim.UNBOUNDED in hidden.chain.keeps  # else a map has left bounds out
        if whole and not hidden.geometry.bends(there):  # those that bend are not in a step's model
            pair = pair.moved(hidden)
    form, evaluation = pair.form, pair.evaluation
    if not (form.affords_hessian and evaluation.finite and evaluation.differentiable):
        return False
    decrease = promised_decrease(
        form.oracle(), form.domain, form.geometry, evaluation, pair.multipliers
    )
    if decrease is None:
        return False
    value = form.chain.value_back(evaluation.objective)
    fallen = value - form.chain.value_back(evaluation.objective - decrease)
    return fallen > RULES.promised * gap_allowed(value, tolerance)
