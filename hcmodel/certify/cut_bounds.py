"""Lower bounds and contradictions from the cuts that a bundle method has gathered.

With weights w_k >= 0, Σ w_k = 1, of the objective's cuts, λ_ki >= 0 of those of inequalities and any ν of
equalities, which are affine in u,

    F1* >= Σ_k w_k F1(x_k) + λ_k·g(x_k) + … + (slopes of the same)·(v − u_k)   for an optimal v in V,

so that the least value of one linear function over V is a bound, whoever found the weights. Slopes are
computed afresh from the evaluations of the run. Coordinates that are declared and not proven are tested
first: no function may lie below one of its cuts, at the points of the run and at samples of X.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import BOUND, ENCLOSURE, MAP_TEST
from hcmodel.certify.declared.samples import has_no_inverse, samples_around
from hcmodel.certify.lower_bound import LowerBound, bound_conditions
from hcmodel.certify.minorants.balls import ball
from hcmodel.certify.minorants.charts import Chart, chart_of
from hcmodel.certify.minorants.level_sets import Ball, level_above
from hcmodel.records import dataclass
from hcmodel.reductions.form import Form
from hcmodel.solvers.first_order.cuts import Bundle, CutPoint, cut_point
from hcmodel.solvers.numerics import PRODUCT_ROUNDING, TINY
from hcmodel.solvers.result import WeightedPoint
from hcmodel.solvers.sets.half_spaces import HalfSpaces

FloatArray = NDArray[np.float64]

KIND = "cuts"


@dataclass(frozen=True)
class _Sum:
    """The weighted sum of cuts as value + slope·(v − center), and the size of its terms."""

    value: float
    slope: FloatArray
    center: FloatArray
    terms: float

    def least(self, chart: Chart, enclosure: Ball | None) -> float:
        """What it does not fall below over V, or over what an enclosure leaves of it."""
        reach = np.inf if enclosure is None else enclosure.reach(self.center)
        change = chart.bounds.least(self.slope, self.center, reach)
        if enclosure is not None:
            change = max(change, enclosure.least(self.slope, self.center))
        value = self.value + change - PRODUCT_ROUNDING * (self.terms + abs(change))
        return -np.inf if np.isnan(value) else value


def cut_bound(
    form: Form, weighted: Sequence[WeightedPoint], assume_convex: bool = False
) -> LowerBound | None:
    """The bound that weighted cuts show, in units of the plain objective; None where they show none."""
    found = _prepared(form, weighted)
    total = sum(max(point.objective, 0.0) for point in weighted)
    if found is None or total <= 0:
        return None
    chart, points = found
    best = min(points, key=lambda each: (each.violation, each.evaluation.objective))
    added = _added(points, weighted, best.image, 1.0 / total, objective=True)
    value = added.least(chart, None)
    if not np.isfinite(value):
        enclosure = _enclosure(chart, points, best)
        if enclosure is not None:
            value = min(added.least(chart, enclosure), enclosure.level)
    value = form.chain.value_back(value)
    if not np.isfinite(value) or not (assume_convex or _consistent(form, chart, points)):
        return None
    return _result(form, chart, points, weighted, best, value)


def cut_conflict(form: Form, weighted: Sequence[WeightedPoint]) -> LowerBound | None:
    """A proof that no feasible point exists: a weighted sum of cuts of the rows is positive on V.

    The weights are normalised as in `infeasibility`, so that the value is a relative violation.
    """
    found = _prepared(form, weighted)
    if found is None:
        return None
    chart, points = found
    size = sum(
        float(np.abs(each.rows) @ point.evaluation.magnitudes)
        for each, point in zip(weighted, points, strict=True)
    )
    least = min(points, key=lambda each: each.violation)
    added = _added(points, weighted, least.image, 1.0 / max(size, TINY), objective=False)
    value = added.least(chart, None)
    if not value > BOUND.conflict or not _consistent(form, chart, points):
        return None
    return _result(form, chart, points, weighted, least, value)


def _prepared(form: Form, weighted: Sequence[WeightedPoint]) -> tuple[Chart, list[CutPoint]] | None:
    """The coordinates, and the points with their slopes; None where a slope is missing."""
    if not weighted:
        return None
    chart = chart_of(form, weighted[0].evaluation)
    if chart is None:
        return None
    points = [cut_point(chart.coordinates, each.evaluation) for each in weighted]
    known = [point for point in points if point is not None]
    return (chart, known) if len(known) == len(points) else None


def _added(
    points: Sequence[CutPoint],
    weighted: Sequence[WeightedPoint],
    center: FloatArray,
    scale: float,
    *,
    objective: bool,
) -> _Sum:
    """The sum of the cuts; weights of inequalities and of the objective are at least 0."""
    value, terms, slope = 0.0, 0.0, np.zeros(center.size)
    for point, weights in zip(points, weighted, strict=True):
        evaluation = point.evaluation
        count = evaluation.inequalities
        own = scale * max(weights.objective, 0.0) if objective else 0.0
        rows = scale * np.concatenate([np.maximum(weights.rows[:count], 0.0), weights.rows[count:]])
        tilt = own * point.slope + rows @ point.row_slopes
        size = own * np.abs(point.slope) + np.abs(rows) @ np.abs(point.row_slopes)
        away = center - point.image
        value += own * evaluation.objective + float(rows @ evaluation.rows) + float(tilt @ away)
        terms += own * abs(evaluation.objective) + float(np.abs(rows) @ np.abs(evaluation.rows))
        terms += float(size @ (np.abs(center) + np.abs(point.image)))
        slope = slope + tilt
    return _Sum(value, slope, center, terms)


def _enclosure(chart: Chart, points: Sequence[CutPoint], best: CutPoint) -> Ball | None:
    """A ball that holds every feasible point of low value, from the cuts themselves."""
    center, level = best.image, level_above(best.evaluation)
    known = [chart.bounds.half_spaces(center)]
    for point in points:
        evaluation = point.evaluation
        count = evaluation.inequalities
        slopes = np.vstack([point.slope, point.row_slopes, -point.row_slopes[count:]])
        values = np.concatenate([[evaluation.objective - level], evaluation.rows])
        values = np.concatenate([values, -evaluation.rows[count:]])
        known.append(HalfSpaces(slopes, -values - slopes @ (center - point.image)))
    unit = max(float(np.max(np.abs(center), initial=0.0)), ENCLOSURE.smallest_image)
    halves = HalfSpaces.joined(known)
    radius = ball(halves, unit, chart.hull)
    return None if radius is None else Ball(level, center, radius, halves, chart.hull)


def _consistent(form: Form, chart: Chart, points: Sequence[CutPoint]) -> bool:
    """Whether no function lies below its cuts at samples of X; not asked where there is a proof.

    Each sample is a call of the user's functions, so that black boxes get few of them.
    """
    if form.proof is not None:
        return True
    bundle = Bundle.of_all(points)
    count = MAP_TEST.fewest if form.compiled.has_black_boxes else MAP_TEST.samples
    oracle, none = form.oracle(), np.zeros(0)
    derivatives = list[FloatArray]()
    for there in samples_around(form.domain, points[-1].evaluation.point, count):
        sample = oracle.at(form.settled(there))
        image = chart.coordinates.image(sample.point)
        if not (sample.finite and np.isfinite(image).all()):
            continue
        if bundle.above(CutPoint(sample, image, none, none)) > MAP_TEST.cut:
            return False
        if form.map_geometry is not None and not form.stack.kinked:
            derivatives.append(chart.coordinates.tangent(sample.point).derivative)
    kinked = np.zeros(len(derivatives), dtype=bool)  # functions of the user need not be smooth
    return not derivatives or not has_no_inverse(np.array(derivatives), kinked)


def _result(
    form: Form,
    chart: Chart,
    points: Sequence[CutPoint],
    weighted: Sequence[WeightedPoint],
    best: CutPoint,
    value: float,
) -> LowerBound:
    conditions = bound_conditions(form, chart, best.evaluation.point)
    conditions += (
        f"the functions and their slopes are right at the {len(points)} points of the cuts",
    )
    multipliers = np.sum([each.rows for each in weighted], axis=0)
    reference = best.evaluation.point
    return LowerBound(value, conditions, 0, reference, multipliers, kind=KIND)
