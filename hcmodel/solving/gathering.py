"""Look at the point that a run has found, by fresh evaluations.

Value and violation are those of the model as written, stationarity is judged on the form with kinks
lifted, and a lower bound comes from the hidden coordinates, where there are any. Nothing here trusts a
method's word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.least_values import ENCLOSURE
from hcmodel.certify.lower_bound import LowerBound
from hcmodel.certify.paths.candidate_paths import Run
from hcmodel.certify.paths.descent import Descent, falling_path, runs_away
from hcmodel.records import dataclass, replace
from hcmodel.reductions.form import Form
from hcmodel.reductions.forms import Forms
from hcmodel.reductions.reduction import BoundOrigin, Claim, Duals, Origin
from hcmodel.solvers import kkt
from hcmodel.solvers.algebra.marks import all_are_0
from hcmodel.solvers.oracle import CallsExhausted, Evaluation, OracleFailed
from hcmodel.solvers.result import Termination
from hcmodel.solving.better_points import better_beside, is_lower, lowest_enclosed
from hcmodel.solving.bounding import best_bound, domination_gap, is_certified, settled_bound
from hcmodel.solving.certifier import Certifier
from hcmodel.solving.evidence import Evidence, Outcome, Pair
from hcmodel.solving.judge import LIMITS, OUT_OF_TIME, gap_allowed
from hcmodel.solving.request import SolveRequest
from hcmodel.solving.user_functions import is_noisy

if TYPE_CHECKING:
    from hcmodel.certify.declared.curvature_boxes import Settlement

FloatArray = NDArray[np.float64]

# Multipliers of a certified point are taken as they are with a residual of so many tolerances: those of
# a regulator's cone program are exact to 1e-10 where a fit at the point is to 1e-6 (test_regulators.py).
CERTIFIED_RESIDUAL = 1e2
# How far, relative to both, a bound may lie above the value of a feasible point by rounding. Bounds and
# values are sums of terms that may cancel; a wrong bound is off by more than a millionth.
ROUNDED_BOUND = 1e-6


def gather(
    forms: Forms,
    hidden: Form | None,
    outcome: Outcome,
    request: SolveRequest,
    certifier: Certifier | None,
) -> Evidence:
    """Look at the point of an outcome. These evaluations are not among the method's calls."""
    result = outcome.result
    if result.evaluation is None or result.cause is not None:
        return at_first_sight(forms, outcome, request.tolerance)
    if forms.lifted is not forms.written:
        forms.written.compiled.expect_values()
    evaluation = _evaluated(forms, outcome)
    try:
        return _examined(forms, hidden, outcome, evaluation, request, certifier)
    except CallsExhausted:  # of functions of the user: the value is known, and nothing else
        return Evidence(Termination.CALL_LIMIT, request.tolerance, evaluation=evaluation)


@dataclass(frozen=True)
class _FirstOrder:
    """Multipliers of the form with kinks lifted, and their residual."""

    multipliers: FloatArray
    residual: float
    at_kink: bool = False
    exact: Duals | None = None
    """Those of the cone program, where the gradient at the point is not the one that counts."""


@dataclass(frozen=True)
class _Neighbourhood:
    """What lies around a point: a path along which the objective falls, and a better point."""

    stationary: bool
    """Whether nothing around the point contradicts that it is stationary."""
    termination: Termination
    descent: Descent | None = None
    better: FloatArray | None = None


def _examined(
    forms: Forms,
    hidden: Form | None,
    outcome: Outcome,
    evaluation: Evaluation,
    request: SolveRequest,
    certifier: Certifier | None,
) -> Evidence:
    """Multipliers, bounds, paths and better points for a point whose values are known."""
    tolerance, lifted = request.tolerance, forms.lifted
    smooth = evaluation
    if lifted is not forms.written:
        smooth = _evaluated_in(lifted, outcome, lifted.chain.point(evaluation.point))
    certified = is_certified(hidden, outcome, evaluation, tolerance, certifier)
    violation = evaluation.violation_in_units(forms.written.domain.metric(evaluation.point))
    violated = violation > tolerance
    conflict, parts, near = (
        _contradiction(forms, hidden, outcome, evaluation, request)
        if violated
        else (None, None, False)
    )
    if conflict is None:
        known = _first_order(lifted, outcome, smooth, tolerance, certified)
    else:  # where no point satisfies the rows, no multipliers mean anything
        known = _FirstOrder(np.zeros(smooth.rows.size), np.inf)
    pair = Pair(lifted, smooth, known.multipliers)
    stationary = certified or _is_stationary(
        forms, outcome, evaluation, pair, known.residual, tolerance
    )
    bound, settled = None, None
    if evaluation.finite and conflict is None:
        bound, settled = _bounded(forms, hidden, outcome, evaluation, pair, request, certifier)
    domination = domination_gap(pair, request) if bound is None and stationary else None
    gap = domination if bound is None else evaluation.objective - bound.value
    shown = gap is not None and gap <= gap_allowed(smooth.objective, tolerance)
    if shown and not certified:  # as for a point that was known to be certified
        known = _with_exact(known, lifted, outcome, smooth, tolerance)
    around = _neighbourhood(
        forms, hidden, outcome, evaluation, pair, settled, tolerance, stationary, shown, violated
    )
    return Evidence(
        termination=_termination(around.termination, around.descent, near),
        tolerance=tolerance,
        evaluation=evaluation,
        smooth=smooth,
        multipliers=known.multipliers,
        residual=known.residual,
        at_kink=known.at_kink,
        exact=known.exact is not None,
        slope=None if known.exact is None else known.exact.sets,
        stationary=around.stationary,
        bound=bound,
        domination=domination,
        conflict=conflict,
        parts=parts,
        descent=around.descent,
        better=around.better,
        violation=violation,
        proven=_is_proven(hidden, bound, settled),
        bends_at=_bends_at(forms, hidden, settled),
        relaxed=hidden is not None and Claim.UNBOUNDED not in hidden.chain.keeps,
    )


def _first_order(
    lifted: Form, outcome: Outcome, smooth: Evaluation, tolerance: float, certified: bool
) -> _FirstOrder:
    """The multipliers; those of the cone program where others leave a residual and these are exact."""
    multipliers, residual = _multipliers(lifted, outcome, smooth, tolerance, certified)
    known = _FirstOrder(multipliers, residual)
    if certified or lifted.stack.kinked:
        return _with_exact(known, lifted, outcome, smooth, tolerance)
    return known


def _with_exact(
    known: _FirstOrder, lifted: Form, outcome: Outcome, smooth: Evaluation, tolerance: float
) -> _FirstOrder:
    """At a certified point or a kink the multipliers of the cone program, if others leave a residual."""
    if known.residual <= CERTIFIED_RESIDUAL * tolerance or known.exact is not None:
        return known
    at_kink, exact = _at_kink(lifted, outcome, smooth)
    multipliers = known.multipliers if exact is None else lifted.multipliers(smooth, exact)
    return _FirstOrder(multipliers, known.residual, at_kink, exact)


def _bounded(
    forms: Forms,
    hidden: Form | None,
    outcome: Outcome,
    evaluation: Evaluation,
    pair: Pair,
    request: SolveRequest,
    certifier: Certifier | None,
) -> tuple[LowerBound | None, Settlement | None]:
    """A lower bound that the point does not refute, and what was settled about declared coordinates."""
    late = outcome.result.termination in OUT_OF_TIME
    if late and hidden is not None and hidden.map_geometry is not None:
        return None, None  # it takes too long
    bound = best_bound(forms, hidden, outcome, evaluation, pair, request, certifier)
    bound = _unless_beyond(forms, outcome, evaluation, bound, request.tolerance)
    bound = _unless_refuted(evaluation, bound)
    settled, bound = settled_bound(hidden, bound, evaluation, pair, late)
    return bound, settled


def _neighbourhood(
    forms: Forms,
    hidden: Form | None,
    outcome: Outcome,
    evaluation: Evaluation,
    pair: Pair,
    settled: Settlement | None,
    tolerance: float,
    stationary: bool,
    shown: bool,
    violated: bool,
) -> _Neighbourhood:
    """Look around a feasible point, if time is left.

    Beside a point that is shown to be optimal, only an infimum that no point attains is looked for.
    """
    ended = outcome.result.termination
    if ended in OUT_OF_TIME:
        return _Neighbourhood(stationary and shown, ended)
    if violated or not (shown or evaluation.finite):
        return _Neighbourhood(stationary, ended)
    descent, better = None, None
    try:
        if shown:
            descent = _unattained(forms, outcome, evaluation, tolerance)
        else:
            descent, better = _around(forms, hidden, outcome, evaluation, pair, settled, tolerance)
            lower = descent is not None and is_lower(descent.lowest, evaluation, tolerance)
            stationary = stationary and better is None and not lower
            stationary = stationary and not _promises_more(hidden, pair, tolerance)
    except CallsExhausted:
        if not shown:  # nothing is said of a point whose neighbourhood was not looked at
            stationary, ended = False, ended if ended in LIMITS else Termination.CALL_LIMIT
    return _Neighbourhood(stationary, ended, descent, better)


def _contradiction(
    forms: Forms,
    hidden: Form | None,
    outcome: Outcome,
    evaluation: Evaluation,
    request: SolveRequest,
) -> tuple[LowerBound | None, tuple[Origin | BoundOrigin, ...] | None, bool]:
    from hcmodel.solving.impossibility import contradiction  # few solves ask for one

    return contradiction(forms, hidden, outcome, evaluation, request)


def _is_stationary(*arguments: Any) -> bool:
    from hcmodel.solving.stationary_points import is_stationary  # where nothing is certified

    return is_stationary(*arguments)


def _promises_more(*arguments: Any) -> bool:
    from hcmodel.solving.stationary_points import promises_more

    return promises_more(*arguments)


def _around(
    forms: Forms,
    hidden: Form | None,
    outcome: Outcome,
    evaluation: Evaluation,
    pair: Pair,
    settled: Settlement | None,
    tolerance: float,
) -> tuple[Descent | None, FloatArray | None]:
    """A path along which the objective falls from a feasible point, and a better point beside it."""
    descent = _descent(forms, outcome, evaluation, tolerance)
    counted = (
        outcome.result.termination is Termination.CALL_LIMIT
        and forms.lifted.compiled.has_black_boxes
    )
    noisy = is_noisy(forms.sign.before)  # then values close to each other cannot be compared
    better = None if noisy else lowest_enclosed(forms, hidden, evaluation, settled, tolerance)
    unknown = better is None and (hidden is None or hidden.proof is None)
    if unknown and not (counted or noisy or _is_surrounded(outcome)):
        better = better_beside(forms, evaluation, descent, pair, tolerance)
    return descent, better


def _multipliers(
    lifted: Form, outcome: Outcome, smooth: Evaluation, tolerance: float, certified: bool
) -> tuple[FloatArray, float]:
    """Multipliers of the form with kinks lifted, from those of the run or a fit, and their residual."""
    result = outcome.result
    if result.evaluation is None or not (smooth.finite and smooth.differentiable):
        return np.zeros(lifted.canonical.outer.size), np.inf
    own = lifted.multipliers(smooth, outcome.form.duals(result.evaluation, result.multipliers))
    enough = CERTIFIED_RESIDUAL * tolerance if certified else None
    return kkt.best_multipliers(smooth, lifted.domain, [own], tolerance, enough)


def _at_kink(lifted: Form, outcome: Outcome, smooth: Evaluation) -> tuple[bool, Duals | None]:
    """Whether a residual that is not small is one of another gradient than that which counts.

    So it is at a kink, and where a slope is nearly infinite, as that of x log x is beside 0. The
    multipliers are those of the cone program, where it has been solved.
    """
    kinked = lifted.stack.kinked
    if not smooth.finite:
        return kinked, None
    exact = outcome.form.program_duals(outcome.result)
    if not kinked and exact is not None and any(each is None for each in exact.rows):
        exact = None  # a map derives the others from slopes
    return kinked or exact is not None, exact


def at_first_sight(forms: Forms, outcome: Outcome, tolerance: float) -> Evidence:
    """The value of the point and nothing else: what is left where looking closer failed."""
    result, spare = outcome.result, None
    if result.evaluation is not None:
        try:
            spare = _evaluated(forms, outcome)
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
        bound=LowerBound(
            0.0,
            ("the objective is positive",),
            0,
            lowest.point,
            np.zeros(lowest.rows.size),
            kind=ENCLOSURE,
        ),
        proven=True,
        descent=descent,
        infimum=0.0 if near else None,  # directions of a backend are exact to some digits
    )


def _evaluated(forms: Forms, outcome: Outcome) -> Evaluation:
    """The model at the point; functions of the user, which may be expensive, are not called again."""
    return _evaluated_in(forms.written, outcome, outcome.point(forms))


def _evaluated_in(form: Form, outcome: Outcome, point: FloatArray) -> Evaluation:
    known = outcome.result.evaluation
    if (
        known is not None
        and outcome.form is form
        and form.compiled.has_black_boxes
        and np.array_equal(known.point, point)
    ):
        return known
    return form.oracle().at(point)


def _is_surrounded(outcome: Outcome) -> bool:
    """Whether the run itself has called functions of the user all around its point."""
    return outcome.result.surrounded and outcome.form.compiled.has_black_boxes


def _is_proven(hidden: Form | None, bound: LowerBound | None, settled: Settlement | None) -> bool:
    """Whether a bound rests on no coordinates that are only declared."""
    if bound is not None and bound.kind == ENCLOSURE:
        return True
    settled_so = settled is not None and settled.convex
    return hidden is not None and (hidden.proof is not None or settled_so)


def _bends_at(forms: Forms, hidden: Form | None, settled: Settlement | None) -> FloatArray | None:
    if hidden is None or settled is None or settled.bends_at is None:
        return None
    return forms.written.domain.project(hidden.chain.point_back(settled.bends_at))


def _descent(
    forms: Forms,
    outcome: Outcome,
    evaluation: Evaluation,
    tolerance: float,
    *,
    bounded: bool = False,
) -> Descent | None:
    """A path along which the objective falls; `bounded` where a bound near the point is known."""
    result = outcome.result
    return falling_path(
        forms.written,
        evaluation,
        Run(
            outcome.form,
            outcome.start,
            result.point,
            result.direction,
            _is_surrounded(outcome),
            result.passed,
            result.recedes,
            bounded and outcome.form.proof is not None,
        ),
        tolerance,
        gap_allowed(evaluation.objective, tolerance),
    )


def _unattained(
    forms: Forms, outcome: Outcome, evaluation: Evaluation, tolerance: float
) -> Descent | None:
    """A path to better points than one that is shown to be optimal within the tolerance."""
    if not runs_away(forms.written, evaluation):
        return None
    path = _descent(forms, outcome, evaluation, tolerance)
    return None if path is None or path.endless else path


def _unless_beyond(
    forms: Forms,
    outcome: Outcome,
    evaluation: Evaluation,
    bound: LowerBound | None,
    tolerance: float,
) -> LowerBound | None:
    """The bound; None where better points lie beyond the sizes of coordinates that it holds for."""
    if bound is None or not np.isfinite(bound.reach):
        return bound
    try:
        path = _descent(forms, outcome, evaluation, tolerance, bounded=True)
    except CallsExhausted:
        return None
    lower = path is not None and is_lower(path.lowest, evaluation, tolerance)
    return None if lower or (path is not None and path.endless) else bound


def _unless_refuted(evaluation: Evaluation, bound: LowerBound | None) -> LowerBound | None:
    """The bound; None where the point satisfies all rows exactly and is far better than it.

    Rounding can make a bound false at the end of the numbers, where √x is 1e50. Where the point is a
    little better, that little is what rounding comes to, and the bound is as far below the point.
    """
    if bound is None or not all_are_0(evaluation.violations):
        return bound
    value = evaluation.objective
    excess = bound.value - value
    if excess > ROUNDED_BOUND * max(abs(value), abs(bound.value), 1.0):
        return None
    return replace(bound, value=value - excess) if excess > 0 else bound


def _termination(
    termination: Termination, descent: Descent | None, near: bool = False
) -> Termination:
    """Why the run ended: an objective without a bound needs a path that shows it.

    `near` says that almost no point satisfies the rows (`contradiction`).
    """
    if near:
        return Termination.INFEASIBLE_STATIONARY
    if descent is not None and descent.endless:
        return Termination.UNBOUNDED
    return Termination.STALLED if termination is Termination.UNBOUNDED else termination
