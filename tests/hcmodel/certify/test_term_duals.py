"""Weights of terms that balance bound the Lagrangian from below everywhere, and the minimum exactly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.certify.minorants.search import Search
from hcmodel.certify.minorants.term_balls import term_ball
from hcmodel.certify.minorants.term_duals import WeighedTerms
from hcmodel.reductions.cone.compressed_rows import Rows
from hcmodel.reductions.form import Form
from hcmodel.solvers.oracle import Evaluation
from tests.hcmodel.certify.test_term_balls import chair, equated


def pair_of_terms(shares: list[float]) -> WeighedTerms:
    """log(e^v + 3 e^−2v), the weights being the shares of the terms at a point."""
    normals = Rows(np.array([1.0, -2.0]), np.array([0, 0]), np.array([0, 1, 2]), 1)
    return WeighedTerms(normals, np.array(shares), np.zeros(2, dtype=np.intp), np.array(shares))


def test_balanced_weights_of_two_terms_are_those_of_the_minimum() -> None:
    terms = pair_of_terms([0.6, 0.4])
    assert terms.slope == pytest.approx([-0.2])
    balanced = terms.balanced(np.array([True]))
    assert balanced is not None
    assert balanced.weights == pytest.approx([2 / 3, 1 / 3])  # e^v = 6 e^−2v
    assert balanced.slope == pytest.approx([0.0], abs=1e-15)
    divergence = 2 / 3 * np.log(2 / 3 / 0.6) + 1 / 3 * np.log(1 / 3 / 0.4)
    assert balanced.loss(np.zeros(0)) == pytest.approx(divergence)
    # the dual's value is the minimum, from the shares at any point
    v = np.log(2.0) / 3  # where the terms are e^v and 1.5 e^v
    value = np.log(np.exp(v) + 3 * np.exp(-2 * v))
    here = pair_of_terms([0.4, 0.6])
    # two thirds of a weight is no small change
    assert here.balanced(np.array([True])) is None
    exact = WeighedTerms(here.normals, np.array([2 / 3, 1 / 3]), here.rows, here.shares)
    lowest = np.log(6.0) / 3
    least = np.log(np.exp(lowest) + 3 * np.exp(-2 * lowest))
    assert value - exact.loss(np.zeros(0)) == pytest.approx(least)


def test_what_bounds_hold_is_not_balanced() -> None:
    normals = Rows(np.array([1.0, 1.0, -1.0]), np.array([0, 1, 1]), np.array([0, 2, 3]), 2)
    shares = np.array([0.6, 0.4])
    terms = WeighedTerms(normals, shares, np.zeros(2, dtype=np.intp), shares)
    assert terms.balanced(np.zeros(2, dtype=bool)) is None
    held = terms.balanced(np.array([False, True]))
    assert held is not None
    assert held.slope == pytest.approx([0.5, 0.0])
    # nothing pulls the first entry back
    assert terms.balanced(np.ones(2, dtype=bool)) is None


def test_the_rounding_of_a_slope_is_counted() -> None:
    """1e16 + 1 − 1e16 is 0 in doubles; in any numbers the slope is known within its rounding."""
    normals = Rows(np.ones(3), np.zeros(3, dtype=np.intp), np.arange(4), 1)
    weights = np.array([1e16, 1.0, -1e16])
    terms = WeighedTerms(normals, weights, np.array([0, 1, 2]), np.ones(3))
    slope, rounding = terms.exact_slope()
    assert abs(slope[0] - 1.0) <= rounding
    assert terms.multipliers(3).tolist() == [1.0, -1e16, 0.0]


def maximised() -> hc.Problem:
    x = hc.Variable(2, name="x", pos=True)
    return hc.Problem(hc.Maximize(x[0] * x[1]), [x[0] + x[1] + 2 * x[0] * x[1] <= 4])


def nearly_solved(problem: hc.Problem) -> tuple[Form, Evaluation, np.ndarray]:
    """The form, a point near the minimum, and multipliers fitted there."""
    problem.solve(tol=1e-8)
    assert problem.status == "optimal"
    form = problem.forms().hidden()
    assert form is not None
    point = np.concatenate([np.ravel(each.value) for each in problem.variables])
    u = form.chain.point(point)
    lower, upper = form.domain.entry_bounds()
    free = (u > lower + 1e-6) & (u < upper - 1e-6)  # what bounds hold stays there
    there = form.oracle().at(u + 1e-5 * free * np.random.default_rng(5).normal(size=u.size))
    jacobian = np.asarray(there.jacobian)
    multipliers = np.linalg.lstsq(jacobian.T[free], -there.gradient[free], rcond=None)[0]
    return form, there, multipliers


@pytest.mark.parametrize("model", [chair, equated, maximised])
def test_the_minorant_of_balanced_weights_lies_below_the_lagrangian(
    model: Callable[[], hc.Problem],
) -> None:
    problem = model()
    form, there, multipliers = nearly_solved(problem)
    assert form.arrays is not None
    ball = term_ball(form.arrays, there, multipliers, there.objective + 0.1)
    assert ball is not None
    terms = ball[1]
    found = terms.multipliers(there.rows.size)
    assert (found[: there.inequalities] >= 0).all()
    value = there.objective + float(found @ there.rows) - terms.loss(found)
    generator = np.random.default_rng(7)
    for _ in range(200):
        v = there.point + 3.0 * generator.uniform() * generator.normal(size=there.point.size)
        here = form.oracle().at(v)
        lagrangian = here.objective + float(found @ here.rows)
        assert lagrangian >= value + float(terms.slope @ (v - there.point)) - 1e-12
    # as good as after a Newton step: the value at the minimum to more digits than the point has
    best = form.oracle().at(
        form.chain.point(np.concatenate([np.ravel(each.value) for each in problem.variables]))
    )
    search = Search.of(form, form.oracle(), there)
    assert search is not None
    search.begin(there, multipliers)
    search.enclose("")
    assert best.objective - 1e-8 <= search.value <= best.objective + 1e-10
