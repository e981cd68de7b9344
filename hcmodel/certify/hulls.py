"""Whether gradients near a point have an almost vanishing element in their hull.

For functions with kinks this takes the place of the KKT residual: with shares w_k >= 0, Σ w_k = 1, of
points x_k close to x and prices of the rows there,

    Σ w_k ∇F1(x_k) + Σ λ_ki ∇g_i(x_k) + Σ ν_kj ∇h_j(x_k)  ≈  0   up to what the domain holds back at x

is the condition of Clarke, up to the distance of the points. Points that are farther away count where no
linearisation exceeds the function at another of them: then their combination is a lower bound,

    F1(y)  >=  Σ w_k (F1(x_k) + ∇F1(x_k)·(y − x_k)) + Σ λ_ki (…) + Σ ν_kj (…)   for all y,

if the functions are convex, and the point is almost stationary where this promises no better point
within a natural length (Kiwiel, Methods of descent for nondifferentiable optimization, 1985). Whoever
found the shares, both are computed here from the evaluations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import HULL
from hcmodel.reductions.form import Form
from hcmodel.solvers.numerics import BACKEND_ROUNDING, TINY
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.result import WeightedPoint

FloatArray = NDArray[np.float64]


def is_hull_stationary(
    form: Form, evaluation: Evaluation, weighted: Sequence[WeightedPoint], allowed: float
) -> bool:
    """Whether the point is almost stationary by gradients close to it or by linearisations.

    `allowed` is what linearisations may promise.
    """
    total = sum(max(each.objective, 0.0) for each in weighted)
    if total <= 0:
        return False
    return _by_gradients(form, evaluation, weighted, total) or _by_linearisations(
        form, evaluation, weighted, total, allowed
    )


def _by_gradients(
    form: Form, evaluation: Evaluation, weighted: Sequence[WeightedPoint], total: float
) -> bool:
    point, domain = evaluation.point, form.domain
    metric = domain.metric(point)
    added, size = np.zeros(point.size), 0.0
    for each in weighted:
        there, count = each.evaluation, each.evaluation.inequalities
        if float(np.max(np.abs(there.point - point) / metric, initial=0.0)) > HULL.reach:
            return False
        share = max(each.objective, 0.0) / total
        prices = np.concatenate([np.maximum(each.rows[:count], 0.0), each.rows[count:]]) / total
        pulled = np.asarray(there.jacobian.T @ prices)
        added = added + share * there.gradient + pulled
        size = max(size, float(np.max(metric * np.abs(there.gradient), initial=0.0)))
    left = domain.normal_cone_distance(point, -added)
    return float(np.max(metric * np.abs(left), initial=0.0)) <= HULL.least * max(size, TINY)


def _by_linearisations(
    form: Form,
    evaluation: Evaluation,
    weighted: Sequence[WeightedPoint],
    total: float,
    allowed: float,
) -> bool:
    """Whether linearisations that fit together promise no better point within a natural length."""
    point, domain = evaluation.point, form.domain
    points, values = [point], [evaluation.objective]
    slopes: list[FloatArray] = []
    shares: list[float] = []
    for each in weighted:
        if each.objective <= 0:
            continue
        there, prices = each.evaluation, each.rows / each.objective
        points.append(there.point)
        values.append(there.objective + float(prices @ there.rows))
        slopes.append(there.gradient + np.asarray(there.jacobian.T @ prices))
        shares.append(each.objective / total)
    heights = np.array(values[1:])[:, None] + np.array(
        [
            [float(slope @ (other - there)) for other in points]
            for there, slope in zip(points[1:], slopes, strict=True)
        ]
    )
    size = float(np.max(np.abs(values)))
    if (heights > np.array(values) + max(BACKEND_ROUNDING * size, TINY)).any():
        return False
    slope = np.asarray(shares) @ np.array(slopes)
    left = domain.normal_cone_distance(point, -slope)
    lower, upper = domain.entry_bounds()
    room = np.where(left > 0, upper - point, point - lower)
    reach = np.minimum(HULL.promise * domain.metric(point), np.maximum(room, 0.0))
    promised = evaluation.objective - float(np.asarray(shares) @ heights[:, 0])
    return bool(promised + float(np.abs(left) @ reach) <= allowed)
