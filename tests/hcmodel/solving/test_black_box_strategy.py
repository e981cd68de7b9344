"""What `auto` does with black boxes, with and without hidden coordinates."""

from __future__ import annotations

import autograd.numpy as anp
import numpy as np
import pytest

import hcmodel as hc
from tests.extent import ALL
from tests.problems.black_boxes import geometric_box, geometric_program_box, random_box


@pytest.mark.parametrize("name", ["gpkit_water_tank", "hs072", "fatkhullin_smooth"])
def test_smooth_black_boxes_are_optimal_with_a_map_and_close_without(name: str) -> None:
    mapped, optimum = geometric_program_box(name)
    mapped.solve()
    assert mapped.status == "optimal"
    assert mapped.solution.certificate.kind == "cuts"
    plain, _ = geometric_program_box(name, mapped=False)
    plain.solve()
    assert plain.status == "locally_optimal"
    for problem in (mapped, plain):
        assert problem.value == pytest.approx(optimum, rel=1e-5)
        assert problem.solution.oracle_calls.hessians == 0


def test_kinks_with_a_map_go_to_the_bundle() -> None:
    problem = geometric_box(23).problem()
    problem.solve()
    assert problem.status == "optimal"
    assert problem.solution.method.startswith("auto: hidden-bundle")
    assert problem.solution.oracle_calls.points <= 200


def test_rows_that_bend_much_at_the_start_do_not_stop_the_bundle() -> None:
    problem, optimum = random_box(164)
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(optimum, rel=1e-5)
    assert problem.solution.method == "auto: hidden-bundle (black boxes, coordinates as declared)"


def test_kinks_without_a_map_are_locally_optimal_by_the_hull() -> None:
    x = hc.Variable(2, name="x", start=[-1.2, 1.0])
    kinked = hc.function(lambda x: 8 * anp.abs(x[0] ** 2 - x[1]) + (1 - x[0]) ** 2, x)
    problem = hc.Problem(hc.Minimize(kinked))
    problem.solve()
    assert problem.status == "locally_optimal"
    assert problem.value <= 1e-5


def test_a_wrong_map_falls_back_on_methods_without_one() -> None:
    x = hc.Variable(2, name="x", bounds=(0.1, 3), start=[2.5, 0.3])
    wavy = hc.function(lambda x: anp.sum(anp.sin(3 * x)) + anp.sum(x) / 10, x)
    problem = hc.Problem(hc.Minimize(wavy), hidden=[hc.log(x)])
    problem.solve()
    assert problem.status in ("locally_optimal", "optimal_inaccurate")
    assert problem.solution.certificate.kind != "cuts"
    assert "prox-linear" in problem.solution.method


def test_the_calls_of_the_user_s_code_are_those_that_are_counted() -> None:
    calls = []
    x = hc.Variable(2, name="x", bounds=(0.1, 10), start=[3.0, 0.5])

    def sharp(x):
        calls.append(1)
        return np.max([x[0] + x[1], 1 / (x[0] * x[1])])

    def slope(x):
        if x[0] + x[1] >= 1 / (x[0] * x[1]):
            return np.ones(2)
        return -1 / (x * np.prod(x))

    problem = hc.Problem(hc.Minimize(hc.function(sharp, x, grad=slope)), hidden=[hc.log(x)])
    problem.solve()
    assert problem.status == "optimal"
    # beside the points of the run: the point afresh, and the samples that test the map
    assert len(calls) <= problem.solution.oracle_calls.points + 12
    assert len(calls) == problem.solution.function_calls.values


def test_a_smooth_minimum_of_value_0_is_found_stationary() -> None:
    x = hc.Variable(5, name="x", bounds=(0.1, 10), start=3)
    problem = hc.Problem(hc.Minimize(hc.function(lambda x: anp.sum((x - 1) ** 2), x)))
    problem.solve()
    assert problem.status == "locally_optimal"
    assert problem.value <= 1e-9


def test_an_objective_that_spans_many_orders_of_magnitude_is_certified() -> None:
    """e^−80/(x₁²x₂³) with e^20·(x₁ + x₂) <= 1 is least at e^−20·(0.4, 0.6), far from the start."""
    x = hc.Variable(2, name="x", pos=True, start=[1.0, 2.0])
    cost = hc.function(lambda z: anp.exp(-2 * anp.log(z[0]) - 3 * anp.log(z[1]) - 80), x)
    row = hc.function(lambda z: anp.exp(20) * anp.sum(z), x)
    problem = hc.Problem(hc.Minimize(cost), [row <= 1], hidden=[hc.log(x)])
    problem.solve(method="hidden-bundle")
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(np.exp(20) / (0.4**2 * 0.6**3), rel=1e-5)


@pytest.mark.skipif(
    not ALL, reason="a long run: the bundle gives up at bounds that V does not know"
)
def test_a_bundle_that_hardly_moves_leaves_the_rest_to_other_methods() -> None:
    problem, optimum = random_box(7076)
    problem.solve(max_calls=1000)
    assert problem.status in ("optimal", "locally_optimal")
    assert problem.value == pytest.approx(optimum, abs=1e-5)
