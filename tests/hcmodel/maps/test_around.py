"""Increasing functions around the objective, and ratios of squares."""

from __future__ import annotations

from collections.abc import Callable

import cvxpy as cp
import numpy as np
import pytest

import hcmodel as hc
from hcmodel.reductions.discovery import discover
from hcmodel.reductions.forms import Forms

MEAN = np.array([0.07, 0.03, 0.05])
ROOT = np.array([[0.2, 0.0, 0.0], [0.05, 0.1, 0.0], [0.02, -0.03, 0.15]])
COVARIANCE = ROOT @ ROOT.T
RATE = 0.02


def least_variance(rate: float = 0.0) -> float:
    """The least yᵀSy with (μ − r)ᵀy = 1, y >= 0: the square of risk over excess return."""
    y = cp.Variable(3, nonneg=True)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(ROOT.T @ y)), [(MEAN - rate) @ y == 1])
    return float(problem.solve(solver="CLARABEL"))


def _simplex() -> hc.Problem:
    x = hc.Variable(3, name="x", simplex=True)
    return hc.Problem(hc.Minimize(hc.quad_form(x, COVARIANCE) / (MEAN @ x) ** 2))


def _rows() -> hc.Problem:
    x = hc.Variable(3, name="x")
    squares = hc.sum_squares(ROOT.T @ x) / hc.square(MEAN @ x)
    return hc.Problem(hc.Minimize(squares), [hc.sum(x) == 1, x >= 0])


def _sums() -> hc.Problem:
    x = hc.Variable(3, name="x", nonneg=True)
    variance = sum(COVARIANCE[i, j] * x[i] * x[j] for i in range(3) for j in range(3))
    return hc.Problem(hc.Minimize(variance * (x @ MEAN) ** -2), [x @ np.ones(3) == 1])


@pytest.mark.parametrize("model", [_simplex, _rows, _sums])
def test_the_square_of_risk_over_return_is_proven(model: Callable[[], hc.Problem]) -> None:
    problem = model()
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(least_variance(), rel=1e-6)


@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_the_logarithm_of_return_over_risk_is_proven(weight: float) -> None:
    """k log μᵀx − k/2 log xᵀSx is −k/2 times the logarithm of the least variance."""
    x = hc.Variable(3, name="x", nonneg=True)
    cap = x[0] <= 0.9
    risk = 0.5 * weight * hc.log(hc.quad_form(x, COVARIANCE))
    problem = hc.Problem(hc.Maximize(weight * hc.log(MEAN @ x) - risk + 2), [hc.sum(x) == 1, cap])
    assert problem.solve() == pytest.approx(2 - 0.5 * weight * np.log(least_variance()), rel=1e-6)
    assert problem.status == "optimal"
    assert problem.solution is not None
    assert problem.solution.lower_bound == pytest.approx(problem.value, rel=1e-5)


def test_logarithms_of_which_one_does_not_bound_the_other_are_not_claimed() -> None:
    """log x + log y is least at the ends of a box: no ratio, and not convex."""
    x = hc.Variable(2, name="x", bounds=(1, 2))
    affine = [x[0] + 2 * x[1], 3 * x[0] - x[1] + 1]
    for objective in (
        hc.log(affine[0]) + hc.log(affine[1]),
        hc.log(affine[0]) - 0.7 * hc.log(hc.sum_squares(x)),
    ):
        assert Forms(hc.Problem(hc.Minimize(objective)).model).discovery.substitution is None


def test_the_square_of_an_excess_return_over_the_variance() -> None:
    """The row says that the return is above the rate, so that its square increases with it."""
    x = hc.Variable(3, name="x", nonneg=True)
    ratio = (MEAN @ x - RATE) ** 2 / (x @ COVARIANCE @ x)
    problem = hc.Problem(hc.Maximize(ratio), [hc.sum(x) == 1, MEAN @ x >= RATE])
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(1 / least_variance(RATE), rel=1e-6)


def test_a_square_of_either_sign_is_not_claimed() -> None:
    """With short sales below −1 the return has both signs: there are two local maxima."""
    x = hc.Variable(3, name="x", bounds=(-2, 2))
    ratio = (MEAN @ x) ** 2 / (x @ COVARIANCE @ x)
    found = discover(Forms(hc.Problem(hc.Maximize(ratio)).model).bounds.after)
    assert found.substitution is None
    assert any("sign of" in each for each in found.near_misses)


def test_two_norms_are_not_claimed() -> None:
    """|x|² over another square has a minimum for each eigenvector."""
    x = hc.Variable(3, name="x", bounds=(1, 2))
    ratio = hc.sum_squares(x) / hc.quad_form(x, COVARIANCE)
    assert discover(Forms(hc.Problem(hc.Minimize(ratio)).model).bounds.after).substitution is None


y = hc.Variable(2, name="y", bounds=(0, 5))
QUOTIENT = (y[0] + 2 * y[1] + 1) / (y[0] + y[1] + 2)  # least at (1, 0) with y[0] + y[1] >= 1: 2/3
SLOPE = 1 / 9  # its derivative by y[0] there
AROUND = {
    "log": (hc.Minimize(hc.log(QUOTIENT)), np.log(2 / 3), 3 / 2),
    "root": (hc.Minimize(3 + 2 * hc.sqrt(QUOTIENT)), 3 + 2 * np.sqrt(2 / 3), np.sqrt(3 / 2)),
    "square": (hc.Minimize(2 * QUOTIENT**2 - 1), -1 / 9, 8 / 3),
    "exp": (hc.Maximize(hc.exp(-QUOTIENT)), np.exp(-2 / 3), np.exp(-2 / 3)),
    "reciprocal": (hc.Maximize(1 / QUOTIENT), 3 / 2, 9 / 4),
}


@pytest.mark.parametrize("name", AROUND)
def test_values_and_multipliers_are_those_of_the_whole_objective(name: str) -> None:
    objective, value, factor = AROUND[name]
    row = y[0] + y[1] >= 1
    problem = hc.Problem(objective, [row])
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(value, rel=1e-7)
    assert float(row.dual_value) == pytest.approx(factor * SLOPE, rel=1e-5)


def test_the_largest_of_ratios_with_one_denominator() -> None:
    """Where both are equal: y0 + 1 = 2·y1 + 1/2 on the bound y0 = 4 of the grid."""
    below = y[0] + y[1] + 1
    largest = hc.maximum((y[0] + 1) / below, (2 * y[1] + 0.5) / below)
    problem = hc.Problem(hc.Minimize(largest), [y[0] <= 4])
    problem.solve()
    assert problem.status == "optimal"
    axis = np.linspace(0, 4, 401)
    a, b = np.meshgrid(axis, axis)
    least = np.maximum((a + 1) / (a + b + 1), (2 * b + 0.5) / (a + b + 1)).min()
    assert problem.value <= least + 1e-9
    assert problem.value == pytest.approx(least, abs=1e-2)


def test_an_objective_that_is_zero_at_the_point_of_the_comparison() -> None:
    """A convex quadratic of which the terms cancel at (1, 1, 1); its least value is 1/9."""
    x = hc.Variable(3, name="x", nonneg=True)
    squares = 2 * x[0] ** 2 + 2 * x[1] ** 2 + x[2] ** 2 + 2 * x[0] * x[1] + 2 * x[0] * x[2]
    problem = hc.Problem(
        hc.Minimize(9 - 8 * x[0] - 6 * x[1] - 4 * x[2] + squares), [x[0] + x[1] + 2 * x[2] <= 3]
    )
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(1 / 9, rel=1e-6)


def test_demands_with_different_elasticities() -> None:
    """(p − 1)·a/p^e is largest at p = e/(e − 1), for each product by itself."""
    price = hc.Variable(2, name="price", bounds=(0.5, 5))
    size, elasticity = np.array([10.0, 5.0]), np.array([2.0, 1.5])
    problem = hc.Problem(hc.Maximize(hc.sum((price - 1) * size / price**elasticity)))
    problem.solve()
    assert problem.status == "optimal"
    assert price.value == pytest.approx(elasticity / (elasticity - 1), rel=1e-4)


X = hc.Variable((2, 2), name="X", PSD=True)
CORNER = [X[0, 0] <= 2, X[1, 1] <= 3, X[0, 1] == 1]
DETERMINANTS = {
    "a determinant": (hc.Maximize(hc.det(X)), 5.0),
    "of a multiple": (hc.Maximize(hc.det(2 * X)), 20.0),
    "its root": (hc.Maximize(hc.det(X) ** 0.5), 5.0**0.5),
    "its reciprocal": (hc.Minimize(1 / hc.det(X)), 0.2),
    "beside a constant": (hc.Minimize(3 - 2 * hc.det(X)), -7.0),
}


@pytest.mark.parametrize("name", DETERMINANTS)
def test_determinants_are_maximised_through_their_logarithm(name: str) -> None:
    objective, value = DETERMINANTS[name]
    problem = hc.Problem(objective, CORNER)
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(value, rel=1e-6)


def test_a_determinant_that_is_least_where_it_is_zero_is_not_claimed_otherwise() -> None:
    """Singular matrices have no log det, and are the best ones here."""
    least = hc.Problem(hc.Minimize(hc.det(X)), [X[0, 0] >= 1, X[1, 1] >= 1])
    assert least.solve() == pytest.approx(0.0, abs=1e-6)
    assert least.solution.lower_bound is None  # one by the logarithm would be above 0


def test_a_determinant_that_can_only_be_zero_is_not_called_infeasible() -> None:
    rows = [X[0, 0] == 1, X[1, 1] == 1, X[0, 1] == 1]
    problem = hc.Problem(hc.Maximize(hc.det(X)), rows)
    assert problem.solve() == pytest.approx(0.0, abs=1e-6)
