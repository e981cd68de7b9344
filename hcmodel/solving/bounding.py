"""Lower bounds of the minimum, for the point that a run has found, and the gap that they leave."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from hcmodel.certify.lower_bound import LowerBound, gradient_domination, lower_bound, tested
from hcmodel.certify.norm_minorants import minorant_bound
from hcmodel.records import replace
from hcmodel.reductions.forms import Form
from hcmodel.reductions.reduction import Refusal
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.qp import ConeOptions, make_cone_backend
from hcmodel.solving.certifier import Certifier
from hcmodel.solving.evidence import Outcome, Pair
from hcmodel.solving.judge import ENDED, FINEST, OUT_OF_TIME, gap_allowed
from hcmodel.solving.request import SolveRequest

if TYPE_CHECKING:
    from hcmodel.certify.curvature_boxes import Settlement


def best_bound(
    hidden: Form,
    outcome: Outcome,
    evaluation: Evaluation,
    pair: Pair,
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
    left = request.time_left

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


def domination_gap(pair: Pair, request: SolveRequest) -> float | None:
    """A bound of the gap from constants of the user, for models as written."""
    form, constants = pair.form, request.given_constants
    if constants is None or form.chain.adds_variables or form.stack.kinked:
        return None
    return gradient_domination(pair.evaluation, form.domain, pair.multipliers, constants)
