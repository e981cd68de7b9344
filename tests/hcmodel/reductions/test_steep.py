"""Which entries keep off their bound 0."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.reductions.steepness import steep_entries


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (hc.log, True),
        (hc.sqrt, True),
        (hc.entr, True),
        (lambda x: hc.kl_div(x, 1.0), True),
        (lambda x: hc.entr(3 * x), True),
        (lambda x: x**0.5, True),
        (lambda x: 1 / x, True),
        (lambda x: x**1.5, False),
        (lambda x: hc.log(1 + x), False),
        (lambda x: hc.log(-x), False),
        (hc.exp, False),
    ],
)
def test_an_infinite_slope_at_0(
    function: Callable[[hc.Variable], hc.Expression], expected: bool
) -> None:
    x = hc.Variable(2, name="x", nonneg=True)
    steep = steep_entries([hc.sum(function(x))], [x])
    assert steep[x].tolist() == [expected, expected]


def test_only_the_entries_that_are_arguments_count_and_only_with_a_bound_at_0() -> None:
    x = hc.Variable(3, name="x", bounds=([0, 0, -1], None))
    y = hc.Variable((2, 2), name="y", nonneg=True)
    steep = steep_entries([hc.log(x[1]) + hc.sqrt(x[2]) + hc.sum(hc.entr(y.T[0]))], [x, y])
    assert steep[x].tolist() == [False, True, False]
    assert steep[y].tolist() == [[True, False], [True, False]]


def test_a_minimum_on_the_bound_is_reached_all_the_same() -> None:
    # of √x + y only the root is steep; y belongs on its bound, x far from it
    x, y = (hc.Variable(name=name, bounds=(0, 4)) for name in "xy")
    problem = hc.Problem(hc.Minimize(y + x - 2 * hc.sqrt(x)))
    assert problem.solve() == pytest.approx(-1.0, abs=1e-6)
    np.testing.assert_allclose([x.value, y.value], [1.0, 0.0], atol=1e-3)
