"""Products of several functions that are maximised."""

from __future__ import annotations

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.reductions.discovery import discover
from hcmodel.reductions.forms import Forms

x = hc.Variable(2, name="x", nonneg=True)
BARGAIN = [x[0] + x[1] <= 8, x[0] >= 1, x[1] >= 2]
PROVEN = {
    # the surplus 8 − 1 − 2 is shared equally
    "bargaining": (hc.Problem(hc.Maximize((x[0] - 1) * (x[1] - 2)), BARGAIN), 6.25),
    "minimised": (hc.Problem(hc.Minimize(-2 * (x[0] - 1) * (x[1] - 2)), BARGAIN), -12.5),
    "beside constants": (
        hc.Problem(hc.Maximize(3 - (7 - 2 * (x[0] - 1) * (x[1] - 2)) + 1), BARGAIN),
        9.5,
    ),
    "both negative": (hc.Problem(hc.Maximize((1 - x[0]) * (2 - x[1])), BARGAIN), 6.25),
    # powers 1 and 2 share the surplus 1 : 2
    "powers": (hc.Problem(hc.Maximize((x[0] - 1) * (x[1] - 2) ** 2), BARGAIN), 500 / 27),
    # all three factors are 2; the last one is negative at other points of the box
    "one of either sign": (
        hc.Problem(hc.Maximize(x[0] * (6 - x[0] - x[1]) * x[1]), [x <= 6]),
        8.0,
    ),
}


@pytest.mark.parametrize("name", PROVEN)
def test_products_of_concave_functions_are_maximised(name: str) -> None:
    problem, value = PROVEN[name]
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("periods", [9, 10, 40])
def test_products_of_many_factors(periods: int) -> None:
    """More than one term of sums has room for; as a product, as a root of it and with a minus sign."""
    returns = np.random.default_rng(0).uniform(0.8, 1.3, size=(periods, 3))
    bets = hc.Variable(3, name="bets", simplex=True)
    value = np.exp(hc.Problem(hc.Maximize(hc.sum(hc.log(returns @ bets)))).solve())
    product = hc.prod(returns @ bets)
    for problem, expected in (
        (hc.Problem(hc.Maximize(product)), value),
        (hc.Problem(hc.Maximize(product ** (1 / periods))), value ** (1 / periods)),
        (hc.Problem(hc.Minimize(-product)), -value),
    ):
        assert problem.solve() == pytest.approx(expected, rel=1e-6)
        assert problem.status == "optimal"


@pytest.mark.parametrize("shape", [(4,), (2, 2)])
def test_the_product_of_an_array_is_one_of_its_entries(shape: tuple[int, ...]) -> None:
    """Kelly's bets: the product of the returns is largest where the sum of their logarithms is."""
    returns = np.random.default_rng(0).uniform(0.5, 1.7, size=(4, 3))
    bets = hc.Variable(3, name="bets", simplex=True)
    product = hc.Problem(hc.Maximize(2 * hc.prod(hc.reshape(returns @ bets, shape)) + 1))
    logarithms = hc.Problem(hc.Maximize(hc.sum(hc.log(returns @ bets))))
    value = 2 * np.exp(logarithms.solve()) + 1
    assert product.solve() == pytest.approx(value, rel=1e-6)
    assert product.status == "optimal"


free = hc.Variable(2, name="free", bounds=(-3, 3))
NOT_CLAIMED = {
    "both of either sign": hc.Problem(hc.Maximize((free[0] - 1) * (free[1] - 1))),
    "minimised": hc.Problem(hc.Minimize((x[0] - 1) * (x[1] - 2)), BARGAIN),
    "convex factors": hc.Problem(hc.Maximize(((x[0] - 1) ** 2 + 0.1) * (x[1] + 1)), [x <= 2.5]),
    "a square of either sign": hc.Problem(hc.Maximize((free[0] - 1) ** 2 * (free[1] + 4))),
}


@pytest.mark.parametrize("name", NOT_CLAIMED)
def test_other_products_are_not_claimed(name: str) -> None:
    assert discover(Forms(NOT_CLAIMED[name].model).bounds.after).substitution is None


def test_a_product_that_cannot_be_positive() -> None:
    """x[0] = 1 is the only point of its row: the largest product is 0, and nothing is infeasible."""
    problem = hc.Problem(hc.Maximize((x[0] - 1) * (x[1] - 2)), [*BARGAIN, 2 * x[0] + x[1] <= 4])
    problem.solve()
    assert problem.status not in ("infeasible", "infeasible_inaccurate")
    assert problem.value == pytest.approx(0.0, abs=1e-6)


def test_a_level_that_is_nowhere_positive_is_not_claimed_to_be_so() -> None:
    """Against the largest value on a grid of shares."""
    level, share = hc.Variable(name="level"), hc.Variable(2, name="share", bounds=(0, 1))
    rows = [level * (share[0] + 0.5) <= share[1] - 3, level * (share[1] + 0.5) <= share[0] - 1]
    problem = hc.Problem(hc.Maximize(level), rows)
    problem.solve()
    grid = np.linspace(0, 1, 401)
    one, two = np.meshgrid(grid, grid)
    best = np.minimum((two - 3) / (one + 0.5), (one - 1) / (two + 0.5)).max()
    assert problem.value == pytest.approx(best, abs=1e-4)
    assert problem.status == "locally_optimal"
    assert problem.solution.lower_bound is None


def test_signal_to_noise_ratios_with_powers_that_may_be_zero() -> None:
    """The least ratio is largest where all are equal, at full power for equal gains."""
    power = hc.Variable(2, name="power", bounds=(0, 1))
    ratios = [power[0] / (0.1 * power[1] + 0.1), power[1] / (0.1 * power[0] + 0.1)]
    least = hc.Problem(hc.Maximize(hc.minimum(*ratios)))
    level = hc.Variable(name="level", nonneg=True)
    rows = hc.Problem(hc.Maximize(level), [ratio >= level for ratio in ratios])
    any_sign = hc.Variable(name="any_sign")
    noise = [0.1 * power[1] + 0.1, 0.1 * power[0] + 0.1]
    products = [any_sign * noise[i] <= power[i] for i in range(2)]
    levels = hc.Problem(hc.Maximize(3 * any_sign), products)
    assert levels.solve() == pytest.approx(3 * rows.solve(), rel=1e-6)
    assert levels.status == "optimal"
    logs = hc.Problem(hc.Maximize(hc.log(ratios[0]) + hc.log(ratios[1])))
    values = []
    for problem in (least, rows, logs):
        values.append(problem.solve())
        assert problem.status == "optimal"
    assert values == pytest.approx([5.0, 5.0, 2 * np.log(5.0)], rel=1e-6)
