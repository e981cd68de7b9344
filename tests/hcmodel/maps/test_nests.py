"""Prices of products in nests: buyers choose a nest, then a product of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import lambertw

import hcmodel as hc
from hcmodel.reductions.forms import Forms
from tests.extent import pairs

APPEAL = np.array([[2.0, 1.5], [1.8, 2.2]])
SLOPE = np.array([[1.0], [0.8]])
GAMMA = np.array([0.6, 0.8])
COST = np.array([[0.3, 0.2], [0.4, 0.1]])


def profit(xp: Any, price: Any, slope: np.ndarray = SLOPE, gamma: np.ndarray = GAMMA) -> Any:
    """By shares within nests times shares of nests."""
    value = xp.exp(APPEAL - slope * price)
    nests = xp.sum(value, axis=1)
    shares = nests**gamma / (1 + xp.sum(nests**gamma))
    both = value / xp.reshape(nests, (2, 1)) * xp.reshape(shares, (2, 1))
    return xp.sum((price - COST) * both)


def by_powers(price: Any, gamma: np.ndarray = GAMMA) -> Any:
    value = hc.exp(APPEAL - SLOPE * price)
    nests = hc.sum(value, axis=1)
    below = 1 + hc.sum(nests**gamma)
    return hc.sum((price - COST) * value * hc.reshape(nests ** (gamma - 1), (2, 1))) / below


def by_inclusive_values(price: Any, gamma: np.ndarray = GAMMA) -> Any:
    utility = APPEAL - SLOPE * price
    nests = hc.exp(gamma * hc.logsumexp(utility, axis=1))
    shares = nests / (1 + hc.sum(nests))
    return hc.sum((price - COST) * hc.softmax(utility, axis=1) * hc.reshape(shares, (2, 1)))


def by_entries(price: Any, gamma: np.ndarray = GAMMA) -> Any:
    pairs = [(k, i) for k in range(2) for i in range(2)]
    value = {(k, i): hc.exp(APPEAL[k, i] - float(SLOPE[k, 0]) * price[k, i]) for k, i in pairs}
    nests = [value[k, 0] + value[k, 1] for k in range(2)]
    below = nests[1] ** gamma[1] + 1 + nests[0] ** gamma[0]
    return sum(
        (price[k, i] - COST[k, i]) * nests[k] ** gamma[k] / below / nests[k] * value[k, i]
        for k, i in pairs
    )


def from_many_starts(slope: np.ndarray, gamma: np.ndarray, low: float, high: float) -> float:
    starts = np.random.default_rng(0).uniform(max(low, 1), min(high, 6), (4, 4))

    def loss(x: np.ndarray) -> float:
        return -float(profit(np, x.reshape(2, 2), slope, gamma))

    box = [(low, high)] * 4
    return max(-minimize(loss, start, bounds=box, tol=1e-12).fun for start in starts)


NOTATIONS: dict[str, Any] = {
    "shares": lambda price, gamma=GAMMA: profit(hc, price, gamma=gamma),
}
NOTATIONS |= {each.__name__: each for each in (by_powers, by_inclusive_values, by_entries)}


@pytest.mark.parametrize("name", NOTATIONS)
def test_prices_of_nested_products_are_proven(name: str) -> None:
    price = hc.Variable((2, 2), name="price", bounds=(0, 10))
    problem = hc.Problem(hc.Maximize(NOTATIONS[name](price)))
    assert problem.solve() == pytest.approx(from_many_starts(SLOPE, GAMMA, 0, 10), rel=1e-8)
    assert problem.status == "optimal"
    assert problem.analyze(samples=None).coordinates == {"q": "shares(price)"}


@pytest.mark.parametrize(
    ("gamma", "name"), pairs([[1.0, 0.8], [0.6, 1.0], [1.0, 1.0]], NOTATIONS), ids=str
)
def test_a_nest_with_exponent_1_is_none(name: str, gamma: list[float]) -> None:
    price = hc.Variable((2, 2), name="price", bounds=(0, 10))
    exponents = np.array(gamma)
    problem = hc.Problem(hc.Maximize(NOTATIONS[name](price, exponents)))
    assert problem.solve() == pytest.approx(from_many_starts(SLOPE, exponents, 0, 10), rel=1e-8)
    assert problem.status == "optimal"


def test_one_nest_has_the_prices_of_lambert() -> None:
    """All markups are (1 + W)/(γ b) with W = W(V^γ / e), V the value of the nest at cost."""
    gamma, slope, cost = 0.5, 2.0, np.array([0.2, 0.5, 0.1])
    appeal = np.array([1.0, 2.0, 0.5])
    price = hc.Variable(3, name="price")
    value = hc.exp(appeal - slope * price)
    nest = hc.sum(value)
    share = value / nest * (nest**gamma / (1 + nest**gamma))
    problem = hc.Problem(hc.Maximize((price - cost) @ share))
    at_cost = np.exp(appeal - slope * cost).sum() ** gamma
    root = float(lambertw(at_cost / np.e).real)
    assert problem.solve() == pytest.approx(root / (gamma * slope), rel=1e-8)
    assert problem.status == "optimal"
    np.testing.assert_allclose(price.value - cost, (1 + root) / (gamma * slope), rtol=1e-5)


CASES = {
    "prices at their upper bounds": (SLOPE, GAMMA, 0.0, 2.5),
    # concave where the largest slope times 1 − γ is at most the least slope
    "slopes of a nest that differ": (np.array([[1.0, 0.6], [0.8, 0.9]]), GAMMA, 0.0, 9.0),
    "an exponent above 1": (SLOPE, np.array([1.4, 0.8]), 0.0, 9.0),
}


@pytest.mark.parametrize("name", CASES)
def test_bounds_slopes_and_exponents(name: str) -> None:
    slope, gamma, low, high = CASES[name]
    price = hc.Variable((2, 2), name="price", bounds=(low, high))
    problem = hc.Problem(hc.Maximize(profit(hc, price, slope, gamma)))
    assert problem.solve() == pytest.approx(from_many_starts(slope, gamma, low, high), rel=1e-8)
    assert problem.status == "optimal"


def test_lower_bounds_that_are_active_are_not_certified() -> None:
    """They are not convex in the shares: the bound without them lies above."""
    price = hc.Variable((2, 2), name="price", bounds=(4.2, 9))
    problem = hc.Problem(hc.Maximize(profit(hc, price)))
    value = problem.solve()
    assert value == pytest.approx(from_many_starts(SLOPE, GAMMA, 4.2, 9), rel=1e-6)
    assert problem.status == "locally_optimal"
    assert problem.solution.certificate.gap > 1e-3


def test_slopes_that_differ_too_much_are_not_claimed() -> None:
    price = hc.Variable((2, 2), name="price", bounds=(0, 9))
    steep = np.array([[3.0, 0.3], [0.8, 0.9]])
    problem = hc.Problem(hc.Maximize(profit(hc, price, steep, np.array([0.2, 0.8]))))
    assert Forms(problem.model).discovery.substitution is None


def test_a_price_that_two_nests_share_is_not_claimed() -> None:
    price = hc.Variable((2, 1), name="price", bounds=(0, 9))
    value = hc.exp(APPEAL - price.T)
    nests = hc.sum(value, axis=1)
    share = nests**GAMMA / (1 + hc.sum(nests**GAMMA))
    problem = hc.Problem(hc.Maximize(hc.sum(share) * hc.sum(price)))
    found = Forms(problem.model).discovery
    assert found.substitution is None
    assert "nests map: an entry stands in two exponentials" in found.near_misses
