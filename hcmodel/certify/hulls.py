"""Whether gradients near a point have an almost vanishing element in their hull.

For functions with kinks this takes the place of the KKT residual: with shares w_k >= 0, Σ w_k = 1, of
points x_k close to x and prices of the rows there,

    Σ w_k ∇F1(x_k) + Σ λ_ki ∇g_i(x_k) + Σ ν_kj ∇h_j(x_k)  ≈  0   up to what the domain holds back at x

is the condition of Clarke, up to the distance of the points. Whoever found the shares, it is computed
here from the evaluations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import HULL
from hcmodel.reductions.forms import Form
from hcmodel.solvers.numerics import TINY
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.result import WeightedPoint

FloatArray = NDArray[np.float64]


def is_hull_stationary(
    form: Form, evaluation: Evaluation, weighted: Sequence[WeightedPoint]
) -> bool:
    """Whether the point is almost stationary by gradients close to it."""
    point, domain = evaluation.point, form.domain
    metric = domain.metric(point)
    total = sum(max(each.objective, 0.0) for each in weighted)
    if total <= 0:
        return False
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
