"""Whether a point is stationary: by its multipliers, at kinks, and by what a Newton step promises."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.hulls import is_hull_stationary
from hcmodel.records import dataclass
from hcmodel.reductions.form import Form
from hcmodel.reductions.forms import Forms
from hcmodel.reductions.reduction import Claim
from hcmodel.solvers import kkt
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.result import Termination
from hcmodel.solvers.second_order.promise import promised_decrease
from hcmodel.solving.evidence import Outcome, Pair
from hcmodel.solving.judge import gap_allowed
from hcmodel.solving.user_functions import is_noisy

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class StationarityRules:
    """How closely a point is looked at; the claims' tests (test_claims.py) chose the numbers."""

    kink_directions: int = 8
    """Random directions, each taken both ways, along which a kink is tested for descent."""
    kink_distance: float = 1e-5
    """How far these tests go, in natural units: well above rounding, well below a model's features."""
    kink_slope: float = 1e-2
    """The slope, relative to the terms of the Lagrangian, that counts as descent."""
    promised: float = 10.0
    """A stationary point has no step that promises more than this many times the gap allowed."""


RULES = StationarityRules()


def is_stationary(
    forms: Forms,
    outcome: Outcome,
    written: Evaluation,
    pair: Pair,
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
        and _is_stationary_in_own_size(forms, pair, tolerance)
    )


def _is_stationary_in_own_size(forms: Forms, pair: Pair, tolerance: float) -> bool:
    """Whether the point is stationary for the logarithm of a positive function that is maximised.

    The residual is absolute, so that a likelihood of 1e-19 is stationary everywhere. What is minimised
    may be 0 at its minimum, where nothing is small beside it.
    """
    if not -1.0 < pair.evaluation.objective < 0.0:
        return True
    form = forms.in_own_size()
    if form is None:
        return True
    moved = pair.moved(form)
    return kkt.is_stationary(moved.evaluation, form.domain, moved.multipliers, tolerance)


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


def promises_more(hidden: Form | None, pair: Pair, tolerance: float) -> bool:
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
