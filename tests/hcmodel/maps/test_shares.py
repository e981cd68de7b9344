"""Shares: logit prices, sigmoids and softmax are proven with nothing declared."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq

import hcmodel as hc
from hcmodel.maps import shares
from hcmodel.reductions import discovery
from hcmodel.reductions.discovery import discover
from hcmodel.reductions.forms import Forms

EXAMPLES = Path(__file__).parents[3] / "examples"
APPEAL = np.array([2.0, 1.0, 1.5])
SLOPE = np.array([0.02, 0.03, 0.025])
COST = np.array([10.0, 20.0, 15.0])


def closed_form() -> float:
    """The profit m without rows: each price is cost + 1/b + m, so that m = Σ q/(b q0)."""

    def error(profit: float) -> float:
        price = COST + 1 / SLOPE + profit
        return float(np.sum(np.exp(APPEAL - SLOPE * price) / SLOPE) - profit)

    return brentq(error, 0.0, 1000.0, xtol=1e-13)


def plain(bounds: tuple[float, float] | None = (0, 500)) -> hc.Problem:
    price = hc.Variable(3, name="price", bounds=bounds)
    weight = hc.exp(APPEAL - SLOPE * price)
    return hc.Problem(hc.Maximize(hc.sum((price - COST) * (weight / (1 + hc.sum(weight))))))


def over_scaled_sums() -> hc.Problem:
    """Numerator and denominator times two, in another order; tens for the unit of prices."""
    tens = hc.Variable(3, name="tens", bounds=(0, 50))
    weight = [2 * hc.exp(APPEAL[i] - 10 * SLOPE[i] * tens[i]) for i in range(3)]
    total = weight[2] + 2 + weight[0] + weight[1]
    profit = sum(10 * tens[i] * weight[i] / total for i in (1, 2, 0))
    return hc.Problem(hc.Minimize((COST @ hc.hstack(weight)) / total - profit))


def by_softmax() -> hc.Problem:
    """An outside option of utility 0 in a softmax."""
    price = hc.Variable(3, name="price", bounds=(0, 500))
    share = hc.softmax(hc.concatenate([np.zeros(1), APPEAL - SLOPE * price]))
    return hc.Problem(hc.Maximize((price - COST) @ share[1:]))


def by_logarithms() -> hc.Problem:
    """Shares by their logarithms, as one writes them against overflow."""
    price = hc.Variable(3, name="price", bounds=(0, 500))
    utility = APPEAL - SLOPE * price
    total = hc.logsumexp(hc.concatenate([np.zeros(1), utility]))
    return hc.Problem(hc.Maximize((price - COST) @ hc.exp(utility - total)))


LANGUAGE = """
param n = 3
param appeal[n], slope[n], cost[n]
var price[n] in [0, 500]
let total = 1 + sum(exp(appeal[i] - slope[i]*price[i]) for i in 1..n)
let share[i in 1..n] = exp(appeal[i] - slope[i]*price[i]) / total
maximize sum(share[i] * (price[i] - cost[i]) for i in 1..n)
"""


def in_the_language() -> hc.Problem:
    data = {"appeal": APPEAL.tolist(), "slope": SLOPE.tolist(), "cost": COST.tolist()}
    return hc.parse(LANGUAGE, data=data)


@pytest.mark.parametrize(
    "written", [plain, over_scaled_sums, by_softmax, by_logarithms, in_the_language]
)
def test_logit_prices_end_at_the_closed_form_however_they_are_written(written):
    problem = written()
    problem.solve()
    assert problem.status == "optimal"
    assert "proven convex in exp(" in problem.solution.method
    assert abs(problem.value) == pytest.approx(closed_form(), rel=1e-6)


@pytest.mark.parametrize("declared", [False, True])
def test_the_example_with_scarce_parts_ends_optimal(declared):
    """Equal prices of scarce parts: a KKT point in x must have the value that is found."""
    text = (EXAMPLES / "logit.hc").read_text() + ("\nhidden share\n" if declared else "")
    problem = hc.parse(text, data=json.loads((EXAMPLES / "logit.json").read_text()))
    problem.solve()
    assert problem.status == "optimal"
    assert "proven" in problem.solution.method


def test_a_price_box_is_kept_as_linear_rows():
    """Against CVXPY in the shares, with q_i >= exp(a − b h) q0."""
    cvxpy = pytest.importorskip("cvxpy")
    problem = plain(bounds=(0, 90))
    problem.solve()
    q, rest = cvxpy.Variable(3), cvxpy.Variable()
    profit = cvxpy.sum(
        cvxpy.multiply(APPEAL / SLOPE - COST, q)
        - cvxpy.multiply(1 / SLOPE, cvxpy.rel_entr(q, rest * np.ones(3)))
    )
    rows = [cvxpy.sum(q) + rest == 1, q >= np.exp(APPEAL - SLOPE * 90) * rest]
    reference = cvxpy.Problem(cvxpy.Maximize(profit), rows).solve("CLARABEL")
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(reference, rel=1e-6)
    assert problem.value < closed_form() * (1 - 1e-3)
    assert problem.solution.point["price"].max() <= 90


@pytest.mark.parametrize("most", [50, 100, 400])
@pytest.mark.parametrize("written", ["quotient", "sigmoid"])
def test_a_price_bound_far_above_the_optimum_does_not_hide_it(written, most):
    """The bound of the exponential is exp(72) and more; profit W(exp(a − b c − 1))/b, by Lambert's W."""
    from scipy.special import lambertw

    price = hc.Variable(name="p", bounds=(0, most))
    share = (
        hc.sigmoid(3 - 1.5 * price) if written == "sigmoid" else 1 / (1 + hc.exp(1.5 * price - 3))
    )
    problem = hc.Problem(hc.Maximize((price - 0.7) * share))
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(lambertw(np.exp(3 - 1.5 * 0.7 - 1)).real / 1.5, rel=1e-9)


def test_two_markets_have_shares_of_their_own():
    prices = [hc.Variable(3, name=name, bounds=(0, 500)) for name in ("north", "south")]
    profit = 0.0
    for price in prices:
        weight = hc.exp(APPEAL - SLOPE * price)
        profit = profit + hc.sum((price - COST) * weight) / (1 + hc.sum(weight))
    problem = hc.Problem(hc.Maximize(profit))
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(2 * closed_form(), rel=1e-6)


def test_a_sigmoid_is_a_share():
    """Profit p·sigmoid(3 − p/2): p = 2 (1 + W(exp(2))), by Lambert's W."""
    from scipy.special import lambertw

    price = hc.Variable(name="p", bounds=(0, 50))
    problem = hc.Problem(hc.Maximize(price * hc.sigmoid(3 - 0.5 * price)))
    problem.solve()
    assert problem.status == "optimal"
    assert "proven" in problem.solution.method
    assert problem.value == pytest.approx(2 * lambertw(np.exp(2.0)).real, rel=1e-8)


REWARD = np.array([1.0, 2.0, 0.5, 3.0])


def by_quotient(theta: hc.Variable) -> hc.Expression:
    weight = hc.exp(2 * theta + 1)
    return weight / hc.sum(weight)


@pytest.mark.parametrize("softmax", [hc.softmax, by_quotient], ids=["softmax", "quotient"])
def test_softmax_is_a_distribution(softmax):
    """max r·p + τ·entropy over the simplex is τ log Σ exp(r/τ)."""
    theta = hc.Variable(4, name="theta")
    share = softmax(theta)
    problem = hc.Problem(hc.Maximize(REWARD @ share + 0.7 * hc.sum(hc.entr(share))))
    problem.solve()
    assert problem.status == "optimal"
    assert "/ sum(exp(" in problem.solution.method
    assert problem.value == pytest.approx(0.7 * np.log(np.exp(REWARD / 0.7).sum()), rel=1e-7)


def test_bounds_on_what_stands_in_a_softmax_are_kept():
    """The best entry at its upper and the others at their lower bound."""
    theta = hc.Variable(4, name="theta", bounds=(-1, 1))
    problem = hc.Problem(hc.Maximize(REWARD @ hc.softmax(theta)))
    problem.solve()
    weights = np.exp([np.where(level <= REWARD, 1.0, -1.0) for level in REWARD])
    best = max(float(REWARD @ each / each.sum()) for each in weights)
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(best, rel=1e-6)


def test_a_policy_by_softmax_is_proven_by_two_maps():
    generator = np.random.default_rng(1)
    states, actions, discount = 3, 2, 0.9
    moves = generator.dirichlet(np.ones(states), size=(states, actions))
    reward = generator.uniform(size=(states, actions))
    theta = hc.Variable((states, actions), name="theta")
    policy = hc.softmax(theta, axis=1)
    chain = hc.einsum("sa,sat->st", policy, moves)
    visits = hc.solve(np.eye(states) - discount * chain.T, np.ones(states) / states)
    problem = hc.Problem(hc.Maximize(hc.sum(hc.reshape(visits, (states, 1)) * policy * reward)))
    problem.solve()
    value = np.zeros(states)
    for _ in range(2000):  # value iteration
        value = (reward + discount * moves @ value).max(axis=1)
    assert "proven" in problem.solution.method
    assert problem.value == pytest.approx(value.mean(), rel=1e-6)


def test_an_upper_bound_of_a_sum_of_prices_is_proven_with_two_maps():
    """Monotone and fractional maps together; the value is the best of twenty starts of SLSQP."""
    price = hc.Variable(3, name="price", bounds=(0, 500))
    weight = hc.exp(APPEAL - SLOPE * price)
    profit = hc.sum((price - COST) * (weight / (1 + hc.sum(weight))))
    problem = hc.Problem(hc.Maximize(profit), [hc.sum(price) <= 60])
    assert problem.solve() == pytest.approx(7.6246948204, rel=1e-7)
    assert problem.status == "optimal"


def test_sums_of_prices_from_below_are_not_claimed():
    price = hc.Variable(3, name="price", bounds=(0, 500))
    weight = hc.exp(APPEAL - SLOPE * price)
    share = weight / (1 + hc.sum(weight))
    profit = hc.sum((price - COST) * share)
    for problem in (
        hc.Problem(hc.Maximize(profit), [hc.sum(price) >= 400]),
        hc.Problem(hc.Minimize(profit), [share[0] >= 0.1]),
    ):
        assert discover(Forms(problem.model).bounds.after).substitution is None


def test_prices_that_share_a_product_are_named_as_an_obstacle():
    price = hc.Variable(2, name="price", bounds=(0, 50))
    weight = hc.exp(1 - 0.1 * (price[0] + 0.5 * price[1])), hc.exp(1 - 0.1 * price[1])
    total = 1 + weight[0] + weight[1]
    problem = hc.Problem(hc.Maximize((price[0] * weight[0] + price[1] * weight[1]) / total))
    found = discover(Forms(problem.model).bounds.after)
    assert found.substitution is None
    assert any("more than one entry" in each.reason for each in found.obstacles)


def test_wrong_shares_are_caught_by_the_comparison(monkeypatch):
    true = shares._solved
    monkeypatch.setattr(shares, "_solved", lambda *arguments: true(*arguments).scaled(0.999))
    monkeypatch.setattr(discovery, "MAPS", (shares.Shares(),))
    found = discover(Forms(plain().model).bounds.after)
    assert found.substitution is None
    assert any("the rewriting changed" in each.reason for each in found.obstacles)
