"""A point whose value is the least that the objective can have is a global minimum without convexity."""

from __future__ import annotations

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.certify.least_values import ENCLOSURE


def solved(objective: hc.Minimize | hc.Maximize, *rows: hc.Constraint) -> hc.Solution:
    problem = hc.Problem(objective, list(rows))
    problem.solve()
    assert problem.solution is not None
    return problem.solution


def test_equations_that_are_solved_as_least_squares() -> None:
    x = hc.Variable(2, name="x")
    found = solved(hc.Minimize((x[0] * x[1] - 1) ** 2 + (hc.exp(x[0]) - 2) ** 2))
    assert found.status == "optimal"
    assert found.certificate.kind == ENCLOSURE
    assert found.certificate.lower_bound == 0.0
    assert found.point["x"] == pytest.approx([np.log(2), 1 / np.log(2)], rel=1e-4)


def test_equations_without_a_solution_stay_locally_optimal() -> None:
    x = hc.Variable(2, name="x", bounds=(-2, 2))
    found = solved(hc.Minimize((x[0] * x[1] - 1) ** 2 + (x[0] + 3) ** 2 + hc.sin(x[1]) ** 2))
    assert found.status == "locally_optimal"
    assert found.certificate.kind == "stationarity"


def test_a_maximum_at_the_end_of_all_values() -> None:
    x = hc.Variable(2, name="x", bounds=(-5, 5))
    found = solved(hc.Maximize(hc.sin(x[0]) * hc.cos(x[1]) + 2))
    assert found.status == "optimal"
    assert found.value == pytest.approx(3.0)
    assert found.certificate.lower_bound is not None
    assert found.certificate.lower_bound >= found.value - 1e-9


def test_black_boxes_in_squares() -> None:
    x = hc.Variable(2, name="x", bounds=(-4, 4))
    swirl = hc.function(
        lambda v: float(v[0] * v[1] - 1.0), x, grad=lambda v: np.array([v[1], v[0]])
    )
    found = solved(hc.Minimize(swirl**2 + (x[0] - 2) ** 2))
    assert found.status == "optimal"
    assert found.point["x"] == pytest.approx([2.0, 0.5], abs=1e-3)


def test_declared_coordinates_are_not_a_condition_of_it() -> None:
    x = hc.Variable(2, name="x", bounds=(-2, 2))
    problem = hc.Problem(
        hc.Minimize((x[0] ** 3 + x[0] - x[1]) ** 2 + (x[1] * x[0] - 2) ** 2), hidden=[x]
    )
    problem.solve()
    assert problem.solution is not None
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(0.0, abs=1e-8)
    assert "declared coordinates" not in problem.solution.message
