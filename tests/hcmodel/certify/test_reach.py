"""Objectives that do not change along a line: a bound for coordinates up to some size.

Rounding leaves a slope of 1e-16 along such a line, so that no bound holds on all of it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.linalg

import hcmodel as hc
from hcmodel.expressions.leaves import Expression

WORDS = "coordinates without bounds are at most"


def conditions(problem: hc.Problem) -> str:
    assert problem.solution is not None
    return " ".join(problem.solution.certificate.conditions or ())


@pytest.mark.parametrize(
    "penalty",
    [
        hc.sum_squares,
        hc.norm1,
        hc.norm,
        lambda e: hc.sum(hc.huber(e)),
        lambda e: hc.sum(hc.logistic(e) + hc.logistic(-e)),
    ],
)
def test_fits_with_dependent_columns(penalty: Callable[[Expression], Expression]) -> None:
    rng = np.random.default_rng(5)
    matrix = rng.normal(size=(6, 2)) @ rng.normal(size=(2, 4))
    right = rng.normal(size=6)
    x, z = hc.Variable(4, name="x"), hc.Variable(4, name="z", bounds=(-50, 50))
    problem = hc.Problem(hc.Minimize(penalty(matrix @ x - right)))
    value = problem.solve()
    assert problem.status == "optimal"
    assert WORDS in conditions(problem)
    bounded = hc.Problem(hc.Minimize(penalty(matrix @ z - right)))
    assert value == pytest.approx(bounded.solve(), rel=1e-6)
    assert bounded.status == "optimal"
    assert WORDS not in conditions(bounded)


def test_a_regulator_with_a_weight_of_rank_one() -> None:
    """Example 1 of the benchmark collection DAREX."""
    A, B = np.array([[4.0, 3.0], [-4.5, -3.5]]), np.array([[1.0], [-1.0]])
    Q = np.array([[9.0, 6.0], [6.0, 4.0]])
    P, K = hc.Variable((2, 2), name="P", PSD=True), hc.Variable((1, 2), name="K")
    closed = A + B @ K
    cost = hc.trace((Q + K.T @ K) @ P)
    problem = hc.Problem(hc.Minimize(cost), [closed @ P @ closed.T - P + np.eye(2) == 0])
    riccati = np.trace(scipy.linalg.solve_discrete_are(A, B, Q, np.eye(1)))
    assert problem.solve() == pytest.approx(riccati, rel=1e-7)
    assert problem.status == "optimal"


@pytest.mark.parametrize("slope", [1e-4, 1e-10, 1e-13])
def test_a_slope_along_which_there_is_no_end_is_followed(slope: float) -> None:
    x = hc.Variable(2, name="x")
    problem = hc.Problem(hc.Minimize(hc.square(x[0]) + slope * x[1]))
    problem.solve()
    assert problem.status == "unbounded"


def test_rows_with_dependent_columns_that_contradict_each_other() -> None:
    """Rounding makes the columns independent, and there is a solution at 1e16."""
    rng = np.random.default_rng(2)
    matrix = np.outer(rng.uniform(1, 2, size=4), rng.normal(size=3))
    x = hc.Variable(3, name="x")
    problem = hc.Problem(hc.Minimize(hc.sum(x)), [matrix @ x >= 1, matrix[0] @ x <= -1])
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution is not None
    assert "for coordinates up to 1e+0" in problem.solution.message
    assert WORDS in conditions(problem)


def test_a_solution_far_away_is_found() -> None:
    x = hc.Variable(name="x")
    problem = hc.Problem(hc.Minimize(hc.abs(x)), [1e-11 * x >= 1])
    assert problem.solve() == pytest.approx(1e11, rel=1e-6)
    assert problem.status == "optimal"


def test_a_dense_fit_with_dependent_columns_on_which_an_interior_point_method_fails() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(260, 100)) @ rng.normal(size=(100, 130)) / 100
    right = rng.normal(size=260)
    x = hc.Variable(130, name="x")
    problem = hc.Problem(hc.Minimize(hc.sum_squares(matrix @ x - right)))
    least = np.linalg.lstsq(matrix, right, rcond=1e-12)[0]
    assert problem.solve() == pytest.approx(float(np.sum((matrix @ least - right) ** 2)), rel=1e-9)
    assert problem.status == "optimal"
    np.testing.assert_allclose(x.value, least, atol=1e-6)  # the shortest of all minima


@pytest.mark.parametrize("unit", [1e-80, 1e-60, 1e-25, 1e60])
def test_points_beyond_a_reach_are_no_contradiction(unit: float) -> None:
    """Minima are at x0 = 2/unit; in x, which is tried first, log x0 + log x1 >= −log(unit) is far out."""
    x = hc.Variable(2, name="x", pos=True)
    problem = hc.Problem(hc.Minimize(unit * x[0] + 2 * x[1]), [unit * x[0] * x[1] >= 1.0])
    assert problem.solve() == pytest.approx(np.sqrt(8.0), rel=1e-6)
    assert problem.status == "optimal"
    problem.solve(method="cone")
    assert problem.status != "infeasible"
