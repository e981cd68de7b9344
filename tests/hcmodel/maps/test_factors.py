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


def test_signal_to_noise_ratios_with_powers_that_may_be_zero() -> None:
    """The least ratio is largest where all are equal, at full power for equal gains."""
    power = hc.Variable(2, name="power", bounds=(0, 1))
    ratios = [power[0] / (0.1 * power[1] + 0.1), power[1] / (0.1 * power[0] + 0.1)]
    least = hc.Problem(hc.Maximize(hc.minimum(*ratios)))
    level = hc.Variable(name="level", nonneg=True)
    rows = hc.Problem(hc.Maximize(level), [ratio >= level for ratio in ratios])
    logs = hc.Problem(hc.Maximize(hc.log(ratios[0]) + hc.log(ratios[1])))
    values = []
    for problem in (least, rows, logs):
        values.append(problem.solve())
        assert problem.status == "optimal"
    assert values == pytest.approx([5.0, 5.0, 2 * np.log(5.0)], rel=1e-6)
