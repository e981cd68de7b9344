"""Lower bounds of the minimum, for the point that a run has found, and the gap that they leave."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from hcmodel.certify.least_values import least_value
from hcmodel.certify.lower_bound import (
    LowerBound,
    bound_within_reach,
    gradient_domination,
    lower_bound,
    tested,
)
from hcmodel.records import replace
from hcmodel.reductions.form import Form
from hcmodel.reductions.forms import Forms
from hcmodel.reductions.reduction import Refusal
from hcmodel.solvers.oracle import CallsExhausted, Evaluation
from hcmodel.solvers.qp import ConeOptions, make_cone_backend
from hcmodel.solvers.qp.cone_program import ConeSolution
from hcmodel.solving.certifier import Certifier
from hcmodel.solving.evidence import Outcome, Pair
from hcmodel.solving.judge import ENDED, FINEST, LIMITS, OUT_OF_TIME, gap_allowed
from hcmodel.solving.request import SolveRequest

if TYPE_CHECKING:
    from hcmodel.certify.declared.curvature_boxes import Settlement


def best_bound(
    forms: Forms,
    hidden: Form | None,
    outcome: Outcome,
    evaluation: Evaluation,
    pair: Pair,
    request: SolveRequest,
    certifier: Certifier | None,
) -> LowerBound | None:
    """The best lower bound that is found before one is good enough."""
    allowed = gap_allowed(evaluation.objective, request.tolerance)
    if hidden is None:
        return _enclosed_bound(forms, evaluation, allowed)
    best: LowerBound | None = None
    try:
        for found in _bounds(forms, hidden, outcome, evaluation, pair, request, certifier):
            if best is None or (found is not None and found.value > best.value):
                best = found
            if best is not None and evaluation.objective - best.value <= allowed:
                break
    except (
        CallsExhausted
    ):  # the functions of the user may not be called again: what is known counts
        pass
    return best


def _bounds(
    forms: Forms,
    hidden: Form,
    outcome: Outcome,
    evaluation: Evaluation,
    pair: Pair,
    request: SolveRequest,
    certifier: Certifier | None,
) -> Iterator[LowerBound | None]:
    """Lower bounds, first those that rest on least and cost least.

    The cuts of a bundle show one without another evaluation. Where they are not good enough, a search
    from the point may be, but not with black boxes: it takes second derivatives. At kinks that no linear
    row expresses, one comes from the cone program.
    """
    target, ended = gap_allowed(evaluation.objective, request.tolerance), outcome.result.termination
    proven = hidden.proof is not None
    if outcome.form is hidden and outcome.result.weighted:
        from hcmodel.certify.cut_bounds import cut_bound  # of a method of its own

        try:
            yield cut_bound(hidden, outcome.result.weighted)
        except CallsExhausted:  # coordinates that were not tested bound nothing
            yield None
        if hidden.compiled.has_black_boxes:
            yield _enclosed_bound(forms, evaluation, target)
            return
    if not proven:
        yield _enclosed_bound(forms, evaluation, target)
    if hidden.compiled.has_black_boxes and ended in LIMITS:
        return  # a search, and the test of its coordinates, call functions of the user hundreds of times
    searched = functools.partial(
        _searched_bound, hidden, outcome, evaluation, pair, request.tolerance, certifier
    )
    yield searched(thorough=not proven)
    if ended in OUT_OF_TIME:
        return
    if proven:
        yield _enclosed_bound(forms, evaluation, target)
    known = outcome.result.cone if outcome.form is hidden else None
    if hidden.stack.kinked:
        from hcmodel.certify.minorants.norm_minorants import minorant_bound

        yield minorant_bound(hidden, target, request.time_left)
    elif ended in ENDED and known is None:  # else its dual was asked already
        yield _cone_bound(hidden, target, request.time_left)
    if ended in ENDED:
        yield _cone_bound(hidden, target, request.time_left, known, within_reach=True)
    if proven:
        yield searched(thorough=True)


def _enclosed_bound(forms: Forms, evaluation: Evaluation, allowed: float) -> LowerBound | None:
    """The least value that the objective can have, where the point's own value is as low as that."""
    found = least_value(forms.bounds.after, evaluation)
    return found if found is not None and evaluation.objective - found.value <= allowed else None


def _cone_bound(
    hidden: Form,
    target: float,
    left: float,
    solution: ConeSolution | None = None,
    *,
    within_reach: bool = False,
) -> LowerBound | None:
    """A bound from the cone program of a proven form, for points of methods that know no multipliers.

    At kinks that are lifted to rows the multipliers of a stationary point are seldom unique, and those
    of a first-order method may bound nothing. `solution` is one that is known; `within_reach` asks for a
    bound for coordinates up to some size.
    """
    if hidden.proof is None or hidden.compiled.has_black_boxes:
        return None
    whole = hidden.whole("cone")
    if isinstance(whole, Refusal):
        return None
    if solution is None:
        solution = make_cone_backend().solve(whole.program, ConeOptions(time_limit=left))
    if not solution.usable:
        return None
    there = hidden.oracle().at(
        hidden.domain.project(hidden.settled(solution.primal[: hidden.domain.dimension]))
    )
    if not (there.finite and there.differentiable):
        return None
    multipliers = whole.multipliers(solution.dual, there.point)
    if within_reach:
        return bound_within_reach(hidden, there, multipliers, solution, target)
    return lower_bound(hidden, there, multipliers, target=target, solution=solution, thorough=False)


def _searched_bound(
    hidden: Form,
    outcome: Outcome,
    evaluation: Evaluation,
    pair: Pair,
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


def is_certified(
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


def settled_bound(
    hidden: Form | None, bound: LowerBound | None, evaluation: Evaluation, pair: Pair, late: bool
) -> tuple[Settlement | None, LowerBound | None]:
    """What enclosures show about declared coordinates, and the bound that remains.

    If no bound was found, they may still show where lower points lie.
    """
    if hidden is None or hidden.proof is not None or late:
        return None, bound
    if hidden.compiled.has_black_boxes or hidden.is_convex_in_map:
        return None, bound
    if bound is None:
        return _settled_without(hidden, evaluation, pair), None
    if bound.search is None:
        return None, bound
    from hcmodel.certify.declared.curvature_boxes import (  # of declared coordinates only
        SHOWN,
        settle,
    )

    with np.errstate(all="ignore"):
        found = settle(bound.search)
    if found.bends_at is not None:
        return found, None
    if not found.convex:
        return found, bound
    # the first condition is settled, and the image of a box entry by entry is a box
    rest = bound.conditions[1 if hidden.map_geometry is None else 2 :]
    return found, replace(bound, conditions=(SHOWN, *rest))


def _settled_without(hidden: Form, evaluation: Evaluation, pair: Pair) -> Settlement | None:
    """What enclosures refute in coordinates in which no bound was found; they prove nothing there."""
    from hcmodel.certify.declared.curvature_boxes import is_small, settle_form

    if not is_small(hidden):
        return None
    there = hidden.oracle().at(hidden.chain.point(evaluation.point))
    if not (there.finite and there.differentiable):
        return None
    duals = pair.form.duals(pair.evaluation, pair.multipliers)
    with np.errstate(all="ignore"):
        found = settle_form(hidden, there, hidden.multipliers(there, duals))
    return replace(found, convex=False)


def domination_gap(pair: Pair, request: SolveRequest) -> float | None:
    """A bound of the gap from constants of the user, for models as written."""
    form, constants = pair.form, request.given_constants
    if constants is None or form.chain.adds_variables or form.stack.kinked:
        return None
    return gradient_domination(pair.evaluation, form.domain, pair.multipliers, constants)
