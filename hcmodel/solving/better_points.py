"""Better points of the model than the one that a run has found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.paths.descent import Descent
from hcmodel.records import replace
from hcmodel.reductions.form import Form
from hcmodel.reductions.forms import Forms
from hcmodel.reductions.witness import Witness
from hcmodel.solvers.oracle import CallsExhausted, Evaluation
from hcmodel.solving.evidence import Evidence, Pair
from hcmodel.solving.judge import gap_allowed

if TYPE_CHECKING:
    from hcmodel.certify.declared.curvature_boxes import Settlement

FloatArray = NDArray[np.float64]


def is_lower(there: Evaluation, here: Evaluation, tolerance: float) -> bool:
    """Whether a point is better than another by more than an optimal point may be off."""
    return there.objective < here.objective - gap_allowed(here.objective, tolerance)


def better_beside(
    forms: Forms, evaluation: Evaluation, descent: Descent | None, pair: Pair, tolerance: float
) -> FloatArray | None:
    """A better point of the model beside the one found; none where the model has no bound."""
    smooth = pair.evaluation
    if (descent is not None and descent.endless) or not smooth.finite:
        return None
    from hcmodel.certify.paths.nearby import better_point

    least = gap_allowed(evaluation.objective, tolerance)
    found = better_point(pair.form, smooth, pair.multipliers, tolerance, least)
    if found is None:
        return None
    there = forms.written.oracle().at(
        forms.written.domain.project(pair.form.chain.point_back(found.point))
    )
    units = forms.written.domain.metric(there.point)
    inside = there.finite and there.violation_in_units(units) <= tolerance
    return there.point if inside and is_lower(there, evaluation, tolerance) else None


def with_witness(forms: Forms, evidence: Evidence, witness: Witness) -> Evidence:
    """The evidence with the best point at which functions of the user were called to judge it."""
    here, point = evidence.evaluation, witness.found()
    if here is None or point is None or not forms.written.compiled.has_black_boxes:
        return evidence
    if evidence.descent is not None:
        return evidence  # lower points lie on a path that says more than one of them
    tolerance = evidence.tolerance
    slack = gap_allowed(here.objective, tolerance) if evidence.feasible else -np.inf
    if not witness.value < here.objective - slack:
        return evidence
    try:
        there = forms.written.oracle().at(forms.written.domain.project(point))
    except CallsExhausted:
        return evidence
    units = forms.written.domain.metric(there.point)
    inside = there.finite and there.violation_in_units(units) <= tolerance
    if not inside or (evidence.feasible and not is_lower(there, here, tolerance)):
        return evidence
    return replace(evidence, better=there.point, stationary=False)


def lowest_enclosed(
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
    lower = best is not None and is_lower(best, evaluation, tolerance)
    return best.point if best is not None and lower else None
