"""A ball that holds every feasible point of low value, from linear minorants at a few points.

Needed where the set V of a certificate is unbounded, or far larger than what matters of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import ENCLOSURE
from hcmodel.certify.minorants.balls import ball, least_over
from hcmodel.certify.minorants.charts import Chart
from hcmodel.certify.minorants.term_balls import term_ball
from hcmodel.certify.minorants.term_duals import WeighedTerms
from hcmodel.records import dataclass
from hcmodel.reductions.form import Form
from hcmodel.solvers import kkt
from hcmodel.solvers.algebra.hessians import as_dense
from hcmodel.solvers.algebra.marks import length
from hcmodel.solvers.numerics import TINY
from hcmodel.solvers.oracle import Evaluation, Oracle
from hcmodel.solvers.sets.domain import Domain
from hcmodel.solvers.sets.half_spaces import HalfSpaces

FloatArray = NDArray[np.float64]

# How far points are moved from the one at hand, by the name of the probing.
REACHES = {"around": ENCLOSURE.around, "close": ENCLOSURE.close}


@dataclass(frozen=True)
class Ball:
    """Every feasible v with F1(v) <= level has |v − center| <= radius; `halves` say more of v.

    `terms` are those that it was found from, with weights that give a bound of their own.
    """

    level: float
    center: FloatArray
    radius: float
    halves: HalfSpaces | None
    hull: FloatArray | None
    terms: WeighedTerms | None = None

    def least(self, slope: FloatArray, point: FloatArray) -> float:
        """A number that slope·(v − point) does not fall below, from all that is known of v."""
        if self.halves is None:
            return -length(slope) * self.reach(point)
        own = least_over(self.halves, slope, self.radius, self.hull)
        return own + float(slope @ (self.center - point))

    def reach(self, point: FloatArray) -> float:
        """A bound of the distance from a point to all of them."""
        return self.radius + length(point - self.center)


def level_ball(
    form: Form,
    oracle: Oracle,
    chart: Chart,
    pair: tuple[Evaluation, FloatArray],
    probing: str,
) -> Ball | None:
    """A ball around the point's image; without an objective, one that holds all feasible points.

    Without a `probing`, from the terms of sums of exponentials, where the form has them (`term_balls`).
    Else from minorants at the point itself and, with `probing` "zero", of the objective where a variable
    that is no coordinate is 0 and around there (for a regulator: without control), or with "around"
    and "close" at points moved along the coordinates, so far that the level is about reached or less.
    """
    evaluation, multipliers = pair
    center, level = chart.image(evaluation), level_above(evaluation)
    if not probing and form.arrays is not None:
        in_logs = form.arrays.places.in_logs  # a margin of the value itself
        above = evaluation.objective + ENCLOSURE.margin if in_logs else level
        found = term_ball(form.arrays, evaluation, multipliers, above)
        return None if found is None else Ball(above, center, found[0], None, None, found[1])
    if _too_many(chart.bounds):
        return None
    known = [chart.bounds.half_spaces(center)]
    cuts = [_minorants(chart, evaluation, multipliers, center, level, rows=True)]
    if probing == "zero":
        plain = oracle.restricted(rows=False)
        none = np.zeros(0)
        for point in _from_zero(form, evaluation):
            cuts.append(_minorants(chart, plain.at(point), none, center, level, rows=False))
    if probing in REACHES:
        for move in _moves(form, oracle, chart, *pair):
            move = REACHES[probing] * move
            cuts.append(_moved_minorants(form, oracle, chart, pair, move, center))
    known += [cut for cut in cuts if cut is not None]
    unit = max(float(np.max(np.abs(center), initial=0.0)), ENCLOSURE.smallest_image)
    halves = HalfSpaces.joined(known)
    radius = ball(halves, unit, chart.hull)
    return None if radius is None else Ball(level, center, radius, halves, chart.hull)


def _too_many(bounds: Domain) -> bool:
    """Whether the bounds of single entries alone are more half-spaces than a ball is looked for from."""
    finite = sum(int(np.count_nonzero(np.isfinite(end))) for end in bounds.entry_bounds())
    return max(finite, bounds.dimension) > ENCLOSURE.most_half_spaces


def level_above(evaluation: Evaluation) -> float:
    """A level a little above the value at a point; 0 without an objective."""
    if not evaluation.has_objective:
        return 0.0
    value = evaluation.objective
    return value + ENCLOSURE.margin * max(abs(value), ENCLOSURE.smallest_value)


def _minorants(
    chart: Chart,
    evaluation: Evaluation,
    multipliers: FloatArray,
    center: FloatArray,
    level: float,
    *,
    rows: bool,
) -> HalfSpaces | None:
    """Where F1, L and the rows (all of them, or the most violated) can be low enough."""
    if not (evaluation.finite and evaluation.differentiable):
        return None
    count = evaluation.inequalities
    gradients = [kkt.lagrangian_gradient(evaluation, multipliers)]
    objective = evaluation.objective if evaluation.has_objective else 0.0
    room = [level - objective - float(multipliers @ evaluation.rows)]
    if evaluation.has_objective and evaluation.rows.size:
        gradients.append(evaluation.gradient)
        room.append(level - objective)
    if evaluation.rows.size:
        chosen = np.arange(evaluation.rows.size)
        if not rows:
            chosen = chosen[:count][np.argsort(-evaluation.rows[:count])[:1]]
        jacobian = _dense(evaluation.jacobian[chosen])
        gradients += [*jacobian, *(-jacobian[chosen >= count])]
        room += [*(-evaluation.rows[chosen]), *evaluation.rows[chosen[chosen >= count]]]
    slopes = chart.slopes(evaluation, np.array(gradients))
    if slopes is None or not np.isfinite(slopes).all():
        return None
    return HalfSpaces(slopes, np.array(room) + slopes @ (chart.image(evaluation) - center))


def _from_zero(form: Form, evaluation: Evaluation) -> list[FloatArray]:
    """The point with the entries of bending boxes at 0, and moved from there along each of them."""
    if form.map_geometry is None or not evaluation.has_objective:
        return []
    bending = np.flatnonzero(form.map_geometry.bending)
    if not 0 < bending.size <= ENCLOSURE.largest_search:
        return []
    zero = evaluation.point.copy()
    zero[bending] = 0.0
    points = [zero]
    for place in bending:
        for sign in (1.0, -1.0):
            points.append(zero.copy())
            points[-1][place] = sign
    return [form.domain.project(point) for point in points]


def _moved_minorants(
    form: Form,
    oracle: Oracle,
    chart: Chart,
    pair: tuple[Evaluation, FloatArray],
    move: FloatArray,
    center: FloatArray,
) -> HalfSpaces | None:
    """Minorants at a moved point, nearer where the functions are not defined there."""
    (evaluation, multipliers), inner = pair, form.map_geometry
    for share in ENCLOSURE.shares:
        if inner is None:
            point = form.domain.project(evaluation.point + share * move)
        else:
            point = inner.retract(evaluation.point, share * move)
        level = level_above(evaluation)
        found = _minorants(chart, oracle.at(point), multipliers, center, level, rows=False)
        if found is not None:
            return found
    return None


def _moves(
    form: Form, oracle: Oracle, chart: Chart, evaluation: Evaluation, multipliers: FloatArray
) -> list[FloatArray]:
    """Moves both ways along each coordinate that has no bound, or each direction of the map.

    They lead to where the Lagrangian has about reached the level, but not farther than is natural.
    """
    point, domain, inner = evaluation.point, form.domain, form.map_geometry
    geometry = form.geometry if inner is None else inner
    columns = None if inner is None else inner.frame(evaluation).columns
    if inner is None:
        lower, upper = domain.entry_bounds()
        open_ended = np.flatnonzero(np.isinf(lower) | np.isinf(upper))
        if open_ended.size > ENCLOSURE.largest_search:
            return []
        columns = np.zeros((point.size, open_ended.size))
        columns[open_ended, np.arange(open_ended.size)] = domain.metric(point)[open_ended]
    elif columns is None or columns.shape[1] > ENCLOSURE.largest_map_search:
        return []
    hessian = as_dense(geometry.hessian(oracle, evaluation, multipliers))
    size = 1.0
    if inner is not None:
        size = ENCLOSURE.longest * float(np.max(np.abs(chart.image(evaluation))))
    rise = level_above(evaluation) - evaluation.objective if evaluation.has_objective else 1.0
    curvature = np.einsum("ij,ik,kj->j", columns, hessian, columns)
    lengths = np.sqrt(2.0 * ENCLOSURE.rise * rise / np.maximum(curvature, TINY))
    steps = np.where(np.isfinite(lengths), np.minimum(lengths, size), size) * columns
    return [sign * step for step in steps.T for sign in (1, -1)]


def _dense(matrix: Any) -> FloatArray:
    return np.asarray(matrix.toarray() if scipy.sparse.issparse(matrix) else matrix)
