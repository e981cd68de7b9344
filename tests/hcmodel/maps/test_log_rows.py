"""Rows between prices, and others between logarithms or products, are proven with nothing declared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import hcmodel as hc
from hcmodel.maps import log_rows
from hcmodel.maps.algebra.expanded import Expanded, Image
from hcmodel.maps.log_rows import LogRows, without_logs
from hcmodel.reductions import discovery
from hcmodel.reductions.discovery import discover
from hcmodel.reductions.forms import Forms
from tests.extent import pairs

APPEAL = np.array([2.0, 1.0, 1.5])
SLOPE = 0.02
COST = np.array([10.0, 20.0, 15.0])


def logit(rows: Any, slope: Any = SLOPE) -> hc.Problem:
    """The profit of prices by a logit, with rows between the prices."""
    price = hc.Variable(3, name="price", bounds=(0, 500))
    weight = hc.exp(APPEAL - slope * price)
    profit = hc.sum((price - COST) * weight) / (1 + hc.sum(weight))
    return hc.Problem(hc.Maximize(profit), rows(price))


def by_cvxpy(rows: Any) -> float:
    """The same in shares q and what is left of them, by CVXPY."""
    cvxpy = pytest.importorskip("cvxpy")
    q, rest = cvxpy.Variable(3), cvxpy.Variable()
    entropy = cvxpy.sum(cvxpy.rel_entr(q, rest * np.ones(3)))
    profit = (APPEAL / SLOPE - COST) @ q - entropy / SLOPE
    return float(
        cvxpy.Problem(
            cvxpy.Maximize(profit), [cvxpy.sum(q) + rest == 1, *rows(cvxpy, q, rest)]
        ).solve("CLARABEL")
    )


def lift(gap: float, first: int, second: int) -> float:
    """C for which p_first <= p_second + gap where q_second <= C q_first."""
    return float(np.exp(SLOPE * gap - APPEAL[first] + APPEAL[second]))


def gap_row(price: hc.Expression) -> list[hc.Constraint]:
    return [price[1] - price[0] >= 20]


def by_softmax(rows: Any) -> hc.Problem:
    price = hc.Variable(3, name="price", bounds=(0, 500))
    share = hc.softmax(hc.concatenate([np.zeros(1), APPEAL - SLOPE * price]))
    return hc.Problem(hc.Maximize((price - COST) @ share[1:]), rows(price))


def in_tens(rows: Any) -> hc.Problem:
    """Tens for the unit of prices, which are no variables then; a sum that is split."""
    tens = hc.Variable(3, name="tens", bounds=(0, 50))
    price = 10 * tens
    weight = [2 * hc.exp(APPEAL[i] - SLOPE * price[i]) for i in range(3)]
    total = weight[2] + 2 + weight[0] + weight[1]
    profit = sum((price[i] - COST[i]) * weight[i] / total for i in (1, 2, 0))
    return hc.Problem(hc.Maximize(profit), rows(price))


def one_by_one(rows: Any) -> hc.Problem:
    """A variable for each price."""
    prices = [hc.Variable(name=f"p{i}", bounds=(0, 500)) for i in range(3)]
    weight = [hc.exp(APPEAL[i] - SLOPE * prices[i]) for i in range(3)]
    total = 1 + weight[0] + weight[1] + weight[2]
    shares = [each / total for each in weight]
    profit = sum((p - c) * q for p, c, q in zip(prices, COST, shares, strict=True))
    return hc.Problem(hc.Minimize(-profit), rows(prices))


LANGUAGE = """
param n = 3
param appeal[n], cost[n]
param gap = 20
var price[n] in [0, 500]
let weight[i in 1..n] = exp(appeal[i] - 0.02*price[i])
let difference = price[2] - price[1]
maximize sum(weight[i]*(price[i] - cost[i]) for i in 1..n) / (1 + sum(weight))
subject to
    apart: gap <= difference
"""


def in_the_language(rows: Any) -> hc.Problem:
    return hc.parse(LANGUAGE, data={"appeal": APPEAL.tolist(), "cost": COST.tolist()})


def doubled(price: Any) -> list[hc.Constraint]:
    return [2 * price[0] + 40 <= 2 * price[1]]


def turned(price: Any) -> list[hc.Constraint]:
    return [0.5 * price[1] - 3 >= 0.25 * price[0] + 7 + 0.25 * price[0]]


def by_matrix(price: Any) -> list[hc.Constraint]:
    return [np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]]) @ hc.hstack(price) <= [-20, 400]]


def by_parameter(price: Any) -> list[hc.Constraint]:
    gap = hc.Parameter(name="gap", value=20.0)
    return [price[0] - price[1] <= -gap]


@pytest.mark.parametrize(
    ("rows", "written"),
    pairs(
        [gap_row, doubled, turned, by_matrix, by_parameter],
        [logit, by_softmax, in_tens, one_by_one, in_the_language],
    ),
)
def test_a_gap_between_two_prices_is_proven_however_it_is_written(written, rows):
    problem = written(rows)
    problem.solve()
    limit = lift(-20.0, 0, 1)
    reference = by_cvxpy(lambda cvxpy, q, rest: [q[1] <= limit * q[0]])
    assert problem.status == "optimal"
    assert "proven convex" in problem.solution.method
    assert abs(problem.value) == pytest.approx(reference, rel=1e-6)


def test_an_order_of_all_prices_is_one_row_of_the_array():
    problem = logit(lambda price: [price[:-1] <= price[1:]])
    problem.solve()
    limits = [lift(0.0, i, i + 1) for i in range(2)]
    reference = by_cvxpy(lambda cvxpy, q, rest: [q[i + 1] <= limits[i] * q[i] for i in range(2)])
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(reference, rel=1e-6)


def test_prices_that_differ_by_a_given_amount_are_an_equality():
    problem = logit(lambda price: [price[0] == price[1] + 3])
    problem.solve()
    reference = by_cvxpy(lambda cvxpy, q, rest: [q[1] == lift(3.0, 0, 1) * q[0]])
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(reference, rel=1e-6)


def test_a_ratio_of_prices_is_a_geometric_mean_of_shares():
    """p₂ <= 1.25 p₁ − 30: log q₁ <= 0.8 log q₂ + 0.2 log r + constant; not convex the other way round."""
    problem = logit(lambda price: [price[1] <= 1.25 * price[0] - 30])
    problem.solve()
    limit = float(np.exp((1.25 * APPEAL[0] - APPEAL[1] - 30 * SLOPE) / 1.25))
    reference = by_cvxpy(
        lambda cvxpy, q, rest: [q[0] <= limit * cvxpy.geo_mean(cvxpy.hstack([q[1], rest]), [4, 1])]
    )
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(reference, rel=1e-6)
    refused = logit(lambda price: [price[0] >= 1.1 * price[1]])
    assert discover(Forms(refused.model).bounds.after).substitution is None


def test_different_slopes_allow_one_direction():
    slope = np.array([0.02, 0.03, 0.025])
    proven = logit(lambda price: [price[1] <= price[0] - 9], slope)
    proven.solve()
    assert proven.status == "optimal"
    refused = logit(lambda price: [price[0] <= price[1] - 9], slope)
    assert discover(Forms(refused.model).bounds.after).substitution is None


@pytest.mark.parametrize("gap", [-60.0, 5.0, 60.0])
@pytest.mark.parametrize("sense", ["<=", "=="])
def test_multipliers_are_those_of_the_row_as_it_is_written(gap, sense):
    """The derivative of the profit by the gap, by differences of optimal values."""
    level = hc.Parameter(name="level", value=gap)

    def rows(price):
        left, right = 3 * price[0], 3 * price[1] - level
        return [left <= right if sense == "<=" else left == right]

    problem = logit(rows)
    problem.solve(tol=1e-9)
    dual = float(problem.constraints[0].dual_value)
    values = []
    for step in (1.0, -1.0):
        level.value = gap + 1e-2 * step
        values.append(problem.solve(tol=1e-9))
    assert problem.status == "optimal"
    assert dual == pytest.approx((values[1] - values[0]) / 2e-2, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("elasticity", [(2.0, 2.0), (2.0, 3.0), (3.0, 2.0)])
def test_prices_of_demands_that_are_powers_have_proven_ratios(elasticity):
    """The row holds with equality: one price is left, by a search along a line."""
    first, second = elasticity
    price = hc.Variable(2, name="price", bounds=(0.1, 50))
    profit = (price[0] - 1) * 5 * price[0] ** -first + (price[1] - 2) * 3 * price[1] ** -second
    row = 2 * price[0] >= 2.4 * price[1]
    problem = hc.Problem(hc.Maximize(profit), [row])
    problem.solve()

    def loss(scale, p):
        q = scale * p
        return -((q - 1) * 5 * q**-first + (p - 2) * 3 * p**-second)

    found = minimize_scalar(lambda p: loss(1.2, p), bounds=(0.5, 20), method="bounded")
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(-found.fun, rel=1e-6)
    change = (loss(1.2001, found.x) - loss(1.1999, found.x)) / 2e-4
    assert row.dual_value == pytest.approx(change / (2 * found.x), rel=1e-3)


def test_prices_of_one_nest_are_compared():
    """Within a nest prices differ by logarithms of shares; the point is tested as it is written."""
    price = hc.Variable(3, name="price", bounds=(0, 50))
    value = [hc.exp(1.0 + 0.3 * i - price[i]) for i in range(3)]
    nest = (value[0] + value[1]) ** 0.6
    total = 1 + nest + value[2]
    inside = nest / (value[0] + value[1]) / total
    profit = (
        price[0] * value[0] * inside + price[1] * value[1] * inside + price[2] * value[2] / total
    )
    row = price[0] <= price[1] - 0.2
    problem = hc.Problem(hc.Maximize(profit), [row])
    problem.solve()
    assert problem.status == "optimal"
    assert problem.solution.point["price"][0] <= problem.solution.point["price"][1] - 0.2 + 1e-6
    across = hc.Problem(hc.Maximize(profit), [price[0] <= price[2]])
    assert discover(Forms(across.model).bounds.after).substitution is None


def test_a_square_below_a_product_is_below_a_geometric_mean():
    cvxpy = pytest.importorskip("cvxpy")
    x = hc.Variable(3, name="x", bounds=(0.01, 10))
    target = np.array([3.0, 1.0, 2.0])
    row = x[0] ** 2 <= x[1] * x[2]
    problem = hc.Problem(hc.Minimize(hc.sum((x - target) ** 2)), [row])
    problem.solve()
    y = cvxpy.Variable(3)
    reference = cvxpy.Problem(
        cvxpy.Minimize(cvxpy.sum_squares(y - target)), [y[0] <= cvxpy.geo_mean(y[1:])]
    ).solve("CLARABEL")
    assert problem.status == "optimal"
    assert "proven" in problem.solution.method
    assert problem.value == pytest.approx(reference, rel=1e-6)
    point = problem.solution.point["x"]
    assert 2 * (point[0] - 3) + row.dual_value * 2 * point[0] == pytest.approx(0.0, abs=1e-4)


REFUSED = [
    lambda x: hc.log(x[0]) + hc.log(x[1]) <= 0.3,
    lambda x: hc.log(x[0]) - 1.2 * hc.log(x[1]) <= 0.3,
    lambda x: hc.log(x[0]) + 0.1 * hc.log(x[1]) - hc.log(x[2]) <= 0,
    lambda x: hc.log(x[0]) - 0.5 * hc.log(x[1]) == 0.3,
    lambda x: hc.log(x[0]) - hc.log(x[1]) + 0.1 * x[2] <= 0.3,
    lambda x: x[0] * x[1] <= x[2],
    lambda x: x[0] ** 2 >= x[1] * x[2],
    lambda x: x[0] <= x[1] * x[2],
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_rows_that_are_not_convex_are_not_claimed(number):
    x = hc.Variable(3, name="x", bounds=(0.01, 10))
    target = np.array([3.0, 1.0, 2.0])
    problem = hc.Problem(hc.Minimize(hc.sum((x - target) ** 2)), [REFUSED[number](x)])
    assert discover(Forms(problem.model).bounds.after).substitution is None


def test_what_may_be_negative_is_left_alone():
    """x − 1 <= C·y holds where the logarithm of x − 1 is not defined."""
    x = hc.Variable(2, name="x", bounds=(0.5, 10))
    row = hc.log(x[0] - 1) - hc.log(x[1]) <= 0.3
    problem = hc.Problem(hc.Minimize((x[0] + 3) ** 2 + (x[1] - 3) ** 2), [row])
    model = Expanded.of(problem.model)
    assert without_logs(model) is model


def test_rows_that_are_convex_as_they_are_stay():
    x = hc.Variable(2, name="x", bounds=(0.5, 10))
    rows = [x[0] ** 2 <= x[1], -hc.log(x[0]) <= 0.3, 1 / x[0] <= x[1] ** 0.5, x[0] <= 2 * x[1]]
    model = Expanded.of(hc.Problem(hc.Minimize(x[0]), rows).model)
    assert without_logs(model) is model


def test_the_image_of_a_row_has_the_slope_one_at_zero():
    model = Expanded.of(hc.Problem(hc.Minimize(hc.Variable(name="x", bounds=(1, 2)))).model)
    image = Image(np.array([0.0, 2.0, 0.5]), model.objective)
    scales = np.array([0.0, 0.0, 3.0])
    near = image.of(np.full(3, 1e-7), scales)
    assert near == pytest.approx(np.full(3, 1e-7), rel=1e-6)
    far = image.of(np.ones(3), scales)
    assert far == pytest.approx([1.0, np.expm1(2.0) / 2, 3 * ((4 / 3) ** 0.5 - 1) / 0.5])


@pytest.mark.parametrize("part", ["row", "factor"])
def test_wrong_rows_are_caught_by_the_comparison(monkeypatch, part):
    true = getattr(log_rows._Comparison, part)
    monkeypatch.setattr(
        log_rows._Comparison, part, lambda self, symbols: true(self, symbols).scaled(1.001)
    )
    monkeypatch.setattr(discovery, "MAPS", (LogRows(),))
    x = hc.Variable(2, name="x", bounds=(0.01, 10))
    rows = [hc.log(x[0]) - hc.log(x[1]) >= 0.3]
    problem = hc.Problem(hc.Minimize((x[0] - 1) ** 2 + (x[1] - 3) ** 2), rows)
    found = discover(Forms(problem.model).bounds.after)
    assert found.substitution is None
    assert any("the rewriting changed" in each.reason for each in found.obstacles)
