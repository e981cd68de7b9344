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


def concave_kink() -> Model:
    x = hc.Variable(name="x", bounds=(-1, 2), start=0)
    return hc.Problem(hc.Minimize(x - hc.abs(x))), -2.0


def top_of_a_cone() -> Model:
    x = hc.Variable(2, name="x", bounds=(-1, 2), start=[0, 0])
    return hc.Problem(hc.Minimize(-hc.norm(x, 2))), -np.sqrt(8)


def exponents_of_two_kinds() -> Model:
    x = hc.Variable(2, name="x", bounds=(-3, 1))
    q = x ** np.array([2, 1.5])
    return hc.Problem(hc.Maximize(hc.abs(2 - q[0]) - q[1])), 7.0


def map_that_is_not_injective() -> Model:
    x = hc.Variable(2, name="x", bounds=(-1, 2))
    objective = (x[0] ** 2 - 1) ** 2 + 0.1 * x[0] + x[1] ** 2
    return hc.Problem(hc.Minimize(objective), hidden=[x[0] ** 2, x[1]]), -0.1


def map_that_is_not_defined() -> Model:
    x = hc.Variable(name="x", bounds=(-2, 2), start=2)
    return hc.Problem(hc.Minimize((x**2 - 1) ** 2 + 0.3 * x), hidden=[hc.log(x)]), -0.3054284837


def logarithm_of_a_polynomial() -> Model:
    y = hc.Variable(name="y", bounds=(0.1, 10), start=6)
    objective = (y - 1) ** 2 * (y - 5) ** 2 + 0.3 * y
    return hc.Problem(hc.Minimize(objective), hidden=[hc.log(y)]), 0.2985


def infimum_at_infinity() -> Model:
    z = hc.Variable(name="z", pos=True)
    return hc.Problem(hc.Minimize(1e30 * z**-0.1)), 0.0


@pytest.mark.parametrize(
    "make",
    [
        concave_kink,
        top_of_a_cone,
        exponents_of_two_kinds,
        map_that_is_not_injective,
        map_that_is_not_defined,
        logarithm_of_a_polynomial,
        infimum_at_infinity,
    ],
)
def test_optimal_is_never_said_elsewhere(make: Callable[[], Model]) -> None:
    problem, optimum = make()
    problem.solve(max_calls=5000)
    assert problem.solution is not None
    if problem.status == "optimal":
        assert problem.value == pytest.approx(optimum, rel=1e-5, abs=1e-6)
    bound = problem.solution.certificate.lower_bound
    if bound is not None and isinstance(problem.objective, hc.Minimize):
        assert bound <= optimum + 1e-9 * abs(optimum) + 1e-12


@pytest.mark.parametrize("make", [concave_kink, top_of_a_cone])
def test_a_concave_kink_is_no_stationary_point(make: Callable[[], Model]) -> None:
    problem, optimum = make()
    problem.solve(max_calls=5000)
    assert problem.status != "locally_optimal" or problem.value == pytest.approx(optimum)


def test_new_parameter_values_bring_new_bounds_and_directions_of_kinks() -> None:
    x = hc.Variable(name="x", bounds=(0, 1))
    p = hc.Parameter(name="p", value=1.0)
    problem = hc.Problem(hc.Minimize(hc.maximum(p * x, 0.5) + 100 * hc.square(x - 1)))
    problem.solve()
    p.value = 10.0
    assert problem.solve() == pytest.approx(9.75, abs=1e-5)
    y = hc.Variable(name="y", bounds=(-1, 2))
    turning = hc.Problem(hc.Minimize(p * hc.abs(y) + 0.1 * y**2))
    turning.solve()
    p.value = -1.0
    assert turning.solve(start={y: 1.0}) == pytest.approx(-1.6, abs=1e-5)


@pytest.mark.parametrize("rising", [lambda y: y, lambda y: y**2, hc.log, hc.sqrt])
def test_what_rises_without_end_is_unbounded(
    rising: Callable[[hc.Variable], hc.Expression],
) -> None:
    problem = hc.Problem(hc.Maximize(rising(hc.Variable(name="y", pos=True))))
    problem.solve()
    assert problem.status == "unbounded"


def test_an_analysis_speaks_of_the_parameters_of_its_time() -> None:
    x = hc.Variable(name="x", bounds=(-1, 2))
    p = hc.Parameter(name="p", value=1.0)
    problem = hc.Problem(hc.Minimize(p * x**2 + x))
    assert problem.is_hidden_convex() is True
    p.value = -1.0
    assert problem.is_hidden_convex() is not True
