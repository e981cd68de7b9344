"""Models on which a careless test of optimality claims too much; optima in closed form."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hcmodel as hc

Model = tuple[hc.Problem, float]


def steep_row() -> Model:
    # a row takes up a slope of 1e7, which must not hide that x is wrong
    x = hc.Variable(2, name="x")
    return hc.Problem(hc.Minimize(1e7 * (x[1] - 1) + (x[0] - 2) ** 2), [x[1] == 1]), 0.0


def near_a_bound() -> Model:
    # within 1e-6 of its bound, and far from stationary
    x = hc.Variable(name="x", nonneg=True)
    return hc.Problem(hc.Minimize((1e8 * x - 3) ** 2)), 0.0


def steep_near_a_bound() -> Model:
    x = hc.Variable(name="x", bounds=(0, 1), start=9e-7)
    return hc.Problem(hc.Minimize(1e9 * x)), 0.0


def entropy_from_zero() -> Model:
    x = hc.Variable(name="x", nonneg=True, start=0)
    return hc.Problem(hc.Minimize(-hc.entr(x))), -1 / np.e


def relative_entropy_from_zero() -> Model:
    x = hc.Variable(name="x", nonneg=True, start=0)
    return hc.Problem(hc.Minimize(hc.kl_div(x, 1.0))), 0.0


def steep_on_a_compact_box() -> Model:
    x = hc.Variable(name="x", bounds=(0, 1))
    return hc.Problem(hc.Minimize(1e21 * (x - 1))), -1e21


def far_minimum() -> Model:
    x = hc.Variable(name="x", pos=True)
    return hc.Problem(hc.Minimize(x + 1e42 / x)), 2e21


def steep_posynomial() -> Model:
    x, y = (hc.Variable(name=name, bounds=(0.01, 100), start=100) for name in "xy")
    problem = hc.Problem(hc.Minimize(x**4 * y**4 + 1 / x + 1 / y + x))
    return problem, 3.35665981  # scipy in logarithms


@pytest.mark.parametrize(
    "make",
    [
        steep_row,
        near_a_bound,
        steep_near_a_bound,
        entropy_from_zero,
        relative_entropy_from_zero,
        steep_on_a_compact_box,
        far_minimum,
        steep_posynomial,
    ],
)
@pytest.mark.parametrize("method", ["auto", "sbl-adals"])
def test_optimality_is_said_only_at_the_optimum(make: Callable[[], Model], method: str) -> None:
    problem, optimum = make()
    problem.solve(method, max_calls=5000)
    assert problem.status in ("optimal", "locally_optimal")
    assert problem.value == pytest.approx(optimum, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("method", ["sbl-adals", "ippm-acgd"])
@pytest.mark.parametrize("start", [-60.0, 0.0])
def test_rows_almost_without_slope_are_not_called_infeasible(method: str, start: float) -> None:
    x = hc.Variable(name="x", start=start)
    problem = hc.Problem(hc.Minimize(x), [hc.exp(x) >= 5])
    assert problem.solve(method) == pytest.approx(np.log(5), abs=1e-5)


def test_a_logarithm_without_a_bound_is_not_called_optimal() -> None:
    x = hc.Variable(name="x", pos=True)
    problem = hc.Problem(hc.Minimize(hc.log(x)))
    problem.solve(max_calls=5000)
    assert problem.status not in ("optimal", "locally_optimal")
