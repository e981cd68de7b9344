"""Balls from the terms of sums of exponentials hold every feasible point of low value."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.certify.minorants import balls, term_balls
from hcmodel.certify.minorants.term_balls import term_ball
from hcmodel.reductions.cone.compressed_rows import Rows
from hcmodel.solvers.oracle import Evaluation


def chair() -> hc.Problem:
    """No bounds: rows and objective alone keep the points of low value together."""
    x = hc.Variable(3, name="x", pos=True)
    cost = x[0] * x[1] + 2 / x[0] + x[2] + 1 / x[2]
    return hc.Problem(hc.Minimize(cost), [x[0] / x[1] + 0.5 / x[1] <= 1])


def equated() -> hc.Problem:
    """An equality, and bounds of some entries on one side or on both."""
    x = hc.Variable(3, name="x", bounds=([0.1, 0.01, 0.5], [np.inf, np.inf, 4]))
    y = hc.Variable(name="y", pos=True)
    cost = x[0] + x[1] + 1 / x[2] + y
    return hc.Problem(hc.Minimize(cost), [x[0] * x[1] == 2 * x[2], 1 / y + x[2] / y <= 3])


def beyond_the_optimal_rows() -> hc.Problem:
    """Rows with room at the optimum close what those without leave open."""
    x = hc.Variable(2, name="x", pos=True)
    return hc.Problem(
        hc.Minimize(x[0]), [1 / x[0] <= 1, x[0] * x[1] <= 50, 1 / (x[0] * x[1]) <= 40]
    )


MODELS = [chair, equated, beyond_the_optimal_rows]


@pytest.mark.parametrize("model", MODELS)
def test_feasible_points_of_low_value_lie_within_the_radius(
    model: Callable[[], hc.Problem],
) -> None:
    problem = model()
    problem.solve()
    form = problem.forms().hidden()
    assert form is not None
    assert form.arrays is not None
    point = np.concatenate([np.ravel(each.value) for each in problem.variables])
    there = form.oracle().at(form.chain.point(point))
    multipliers = form.multipliers(there, problem.forms().written.duals(*_written(problem, point)))
    level = there.objective + 0.1
    ball = term_ball(form.arrays, there, multipliers, level)
    assert ball is not None
    radius = ball[0]
    assert np.isfinite(radius)
    found = 0
    generator = np.random.default_rng(2)
    for _ in range(600):
        step = generator.normal(size=there.point.size)
        v = there.point + 2.0 * generator.uniform() * step
        if model is equated:
            v[0] = np.log(2.0) + v[2] - v[1]
        if not form.domain.contains(v):
            continue
        here = form.oracle().at(v)
        feasible = (here.rows[: here.inequalities] <= 0).all()
        if feasible and here.objective <= level:
            found += 1
            assert np.linalg.norm(v - there.point) <= radius
    assert found


def _written(problem: hc.Problem, point: np.ndarray) -> tuple[Evaluation, np.ndarray]:
    """The point as written and the multipliers that the solve has found there."""
    written = problem.forms().written
    evaluation = written.oracle().at(point)
    rows = [np.ravel(each.dual_value) for each in problem.constraints]
    order = sorted(range(len(rows)), key=lambda i: problem.constraints[i].sense == "==")
    return evaluation, np.concatenate([rows[i] for i in order])


def test_a_set_that_is_not_bounded_has_no_radius_and_a_condition() -> None:
    x = hc.Variable(2, name="x", pos=True)  # nothing keeps x[1] above 0
    problem = hc.Problem(hc.Minimize(x[0]), [1 / x[0] + x[1] / x[0] ** 2 <= 1])
    problem.solve()
    form = problem.forms().hidden()
    assert form is not None
    assert form.arrays is not None
    there = form.oracle().at(np.zeros(2))
    assert term_ball(form.arrays, there, np.ones(1), 1.0) is None


@pytest.mark.parametrize("model", MODELS)
def test_bounds_without_a_box_are_certified_without_a_condition(
    model: Callable[[], hc.Problem],
) -> None:
    problem = model()
    problem.solve(tol=1e-8)
    certificate = problem.solution.certificate
    assert problem.status == "optimal"
    assert certificate.conditions is not None
    assert not any("double" in each for each in certificate.conditions)


# ---- the parts of a radius, worked out by hand


def interval(weights: list[float], both: bool = False) -> float | None:
    """A radius from v <= 2 and −v <= 1 around u = ½, with weights that leave 0.1."""
    normals = Rows(np.array([1.0, -1.0]), np.array([0, 0]), np.array([0, 1, 2]), 1)
    pair = np.full(2, both)
    return term_balls._radius(
        normals, np.array([2.0, 1.0]), np.array(weights), pair, np.array([0.1]), np.array([0.5])
    )


def test_a_radius_counts_rounding_in_offsets_sums_and_singular_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (term_balls, balls):  # so large that it shows
        monkeypatch.setattr(module, "PRODUCT_ROUNDING", 0.01)
    offsets = np.array([2 + 0.01 * (0.5 + 2 + 1), 1 + 0.01 * (0.5 + 1 + 1)])
    weights = np.array([2.0, 1.5])
    rest = 0.1 + 0.01 * 3.5  # what the weights leave, and the rounding of their sum
    total = float(weights @ offsets) * (1 + 0.01 * 2)
    # a slack is at most total over its weight, so that each product lies between two ends
    widths = np.maximum(offsets, np.abs(total / weights - offsets))
    smallest = 0.99 * np.linalg.norm(1 / widths) - rest * np.linalg.norm(1 / (weights * widths))
    assert interval([2.0, 1.5]) == pytest.approx(np.sqrt(2) / smallest)
    # half-spaces that hold both ways need no weights
    alone = 0.99 * np.linalg.norm(1 / offsets)
    assert interval([2.0, 1.5], both=True) == pytest.approx(np.sqrt(2) / alone)


def test_half_spaces_of_a_row_have_the_shares_of_its_terms_as_weights() -> None:
    """x₀ + 3 x₁ <= 8 at (2, 1): terms of 2 and 3, so that log x₀ may grow by log 4, log x₁ by log 8/3."""
    x = hc.Variable(2, name="x", pos=True)
    problem = hc.Problem(hc.Minimize(x[0] * x[1] + 1 / x[0]), [x[0] + 3 * x[1] <= 8])
    form = problem.forms().hidden()
    assert form is not None
    assert form.arrays is not None
    u = np.log([2.0, 1.0])
    for multiplier, weights in (
        (5.0, [2.0, 3.0]),
        (-5.0, [0.0, 0.0]),
    ):  # no row pushes the other way
        halves = term_balls._rows(form.arrays, u, np.array([multiplier]))
        (half,) = [each for each in halves if each.offsets.size]
        assert not half.both
        order = np.argsort(half.normals @ np.array([1.0, 2.0]))
        assert (half.normals @ np.array([1.0, 2.0]))[order].tolist() == [1.0, 2.0]
        assert half.offsets[order] == pytest.approx(np.log([4.0, 8 / 3]))
        assert half.weights[order] == pytest.approx(weights)


def test_shares_are_those_of_the_terms_of_each_sum() -> None:
    found = term_balls._shares(np.log([1.0, 3.0, 2.0]) + 800.0, np.array([0, 0, 1]), 2)
    assert found == pytest.approx([0.25, 0.75, 1.0])


def test_bounds_take_up_the_pull_towards_them() -> None:
    # x >= 0, x <= 4, −2 <= x <= 5 and no bound, all at 1: a slope up is held by a lower bound
    arrays: Any = SimpleNamespace(
        lower=np.array([0, -np.inf, -2, -np.inf]), upper=np.array([np.inf, 4, 5, np.inf])
    )
    (low, high, pair), left = term_balls._bounds(arrays, np.ones(4), np.array([2, -3, 1.5, 0.7]))
    assert left.tolist() == [0, 0, 0, 0.7]
    assert (low.normals.data, low.offsets, low.weights) == (-1, 1, 2)
    assert (high.normals.data, high.offsets, high.weights) == (1, 3, 3)
    # of the pair the farther end counts, with the weight that the nearer one would have at its distance
    assert (pair.offsets, pair.weights, pair.both) == (4, 3 * 1.5 / 4, True)
    # away from its only bound nothing holds a pull
    free = term_balls._bounds(arrays, np.ones(4), np.array([-2.0, 3, 0, 0]))
    assert free[1].tolist() == [-2, 3, 0, 0]
    assert (free[0][0].weights, free[0][1].weights) == (0, 0)
