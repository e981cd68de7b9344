"""Balls from the terms of sums of exponentials hold every feasible point of low value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.certify.term_balls import term_radius
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
    radius = term_radius(form.arrays, there, multipliers, level)
    assert radius is not None
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
    assert term_radius(form.arrays, there, np.ones(1), 1.0) is None


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
