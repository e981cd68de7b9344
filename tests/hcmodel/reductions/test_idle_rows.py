"""Rows that hold wherever the variables may be do not stand in the way of a proof."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.expressions.model import Model
from hcmodel.facts.node_facts import Facts
from hcmodel.reductions.bounds import Bounds
from hcmodel.reductions.idle_rows import is_idle
from hcmodel.testing import check_reduction

IDLE: dict[str, Callable[[hc.Variable], hc.Constraint]] = {
    "sum": lambda x: x[0] + x[1] >= 0,
    "product": lambda x: x[0] * x[1] >= 0,
    "ratio": lambda x: x[0] / x[1] >= -2,
    "power": lambda x: x[0] ** 2 >= 0,
    "root": lambda x: np.zeros(2) <= hc.sqrt(x),
    "exponential": lambda x: -hc.exp(x) <= 0,
    "other side": lambda x: x[0] >= -x[1],
}


def tank(x: hc.Variable) -> hc.Expression:
    return x[0] * x[1] + 4 / x[0] + 1 / x[1]


@pytest.mark.parametrize("name", IDLE)
@pytest.mark.parametrize("free", [False, True])
def test_a_row_that_says_nothing_breaks_no_proof(name: str, free: bool) -> None:
    x = hc.Variable(2, name="x", pos=not free)
    idle, area = IDLE[name](x), x[0] * x[1] <= 1
    rows = [idle, area, *([x >= 0.4] if free else [])]
    problem = hc.Problem(hc.Minimize(tank(x)), rows)
    assert problem.is_hidden_convex()
    assert problem.solve() == pytest.approx(5.0, rel=1e-8)
    assert problem.status == "optimal"
    assert area.dual_value == pytest.approx(1.0, rel=1e-6)
    assert idle.dual_value.shape == idle.shape
    assert not idle.dual_value.any()


def test_declared_logarithms_are_proven_beside_such_a_row() -> None:
    x = hc.Variable(2, name="x", pos=True)
    problem = hc.Problem(hc.Minimize(tank(x)), [x[0] * x[1] >= 0], hidden=[hc.log(x)])
    problem.solve()
    assert problem.solution.method == "auto: cone (proven convex in log(x))"


def test_a_parameter_decides_at_each_solve() -> None:
    x, least = hc.Variable(2, name="x", pos=True), hc.Parameter(name="least", value=-1.0)
    row = x[0] * x[1] >= least
    problem = hc.Problem(hc.Minimize(tank(x)), [row, x[0] + x[1] >= 0])
    for value in (-1.0, 3.0, 0.0, 4.0, -2.0):
        least.value = value
        problem.solve()
        assert problem.status == "optimal"
        assert problem.value == pytest.approx(cost(value), rel=1e-7)
        slope = max(0.0, 1 - 2 * max(value, 1.0) ** -1.5)
        assert row.dual_value == pytest.approx(slope if value > 0 else 0.0, abs=1e-6)


def cost(least: float) -> float:
    """The least of s + 2·√(4/s) over products s >= least."""
    product = max(least, 4 ** (1 / 3))  # where the derivative 1 − 2·s^(−3/2) is 0
    return product + 4 / np.sqrt(product)


def test_a_row_that_keeps_its_function_defined_says_something() -> None:
    y, x = hc.Variable(name="y"), hc.Variable(2, name="x", pos=True)
    facts = Facts()
    assert not is_idle(hc.sqrt(y) >= 0, facts)
    assert not is_idle(hc.exp(hc.log(y)) >= 0, facts)
    assert not is_idle(hc.sum(hc.eye_minus_inv(hc.bmat([[x[0], x[1]], [x[1], x[0]]]))) >= 0, facts)
    assert is_idle(hc.sqrt(y**2) >= 0, facts)
    assert not is_idle(x[0] * x[1] >= 1e-9, facts)
    assert not is_idle(x[0] * x[1] == 0, facts)


def test_the_reduction_without_idle_rows_walks_like_every_other() -> None:
    x = hc.Variable(2, name="x", bounds=(0.1, 4))
    rows = [x[0] * x[1] >= 0, x[0] * x[1] <= 1, x <= 3]
    before = Bounds.of(Model.checked(hc.Minimize(tank(x)), rows))
    found = before.without_idle_rows()
    assert found is not None
    assert set(found.rows) == {0, 2}
    assert found.without_idle_rows() is None
    check_reduction(found)
