"""Powers whose numbers overflow: maps end without a number, and the solve says what overflows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import hcmodel as hc

OVERFLOWS: dict[str, Callable[[Any], Any]] = {
    "a sum": lambda x: hc.Maximize((2 * x[0] + 3) ** 1500 * x[1] / (x[0] + 1)),
    "a product": lambda x: hc.Minimize((20 * x[0]) ** 1500 * x[1] / (x[0] + 1)),
}


@pytest.mark.parametrize("name", OVERFLOWS)
def test_a_power_that_overflows_is_named(name: str) -> None:
    x = hc.Variable(2, name="x", bounds=(0.5, 3))
    problem = hc.Problem(OVERFLOWS[name](x))
    with pytest.raises(hc.SolverError, match=r"1500\)? is not finite \(an overflow"):
        problem.solve()


@pytest.mark.parametrize("power", [1500, 1500.5])
def test_the_power_of_a_ratio_whose_numbers_overflow(power: float) -> None:
    """20 x₀/(3 x₁ + 1) is least at x = (½, 3), where it is 1; 20^1500 is no number."""
    x = hc.Variable(2, name="x", bounds=(0.5, 3))
    problem = hc.Problem(hc.Minimize(((20 * x[0]) / (3 * x[1] + 1)) ** power))
    assert problem.solve() == pytest.approx(1.0, rel=1e-6)
    assert problem.status == "optimal"
