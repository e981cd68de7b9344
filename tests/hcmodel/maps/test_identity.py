"""Models that are convex in their own variables, once they are multiplied out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.reductions.forms import Forms

SLOPE = np.array([[4.0, -1.0], [-1.5, 3.0]])
BASE = np.array([50.0, 40.0])


def test_revenue_of_a_linear_demand() -> None:
    """Stationary where the slopes of a concave quadratic vanish; the slopes are not symmetric."""
    price = hc.Variable(2, name="price", nonneg=True)
    problem = hc.Problem(hc.Maximize(price @ (BASE - SLOPE @ price)))
    problem.solve()
    expected = np.linalg.solve(SLOPE + SLOPE.T, BASE)
    assert problem.status == "optimal"
    assert price.value == pytest.approx(expected, rel=1e-6)


def test_gibbs_energy_of_a_mixture() -> None:
    """Without a balance of elements but the total, shares are those of a softmax."""
    amount = hc.Variable(3, name="amount", pos=True)
    potential = np.array([-1.0, -2.0, -0.5])
    energy = hc.sum(amount * (potential + hc.log(amount / hc.sum(amount))))
    problem = hc.Problem(hc.Minimize(energy), [hc.sum(amount) == 2])
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(-2 * np.log(np.exp(-potential).sum()), rel=1e-7)


def test_deviations_as_reciprocals() -> None:
    """The likelihood of a mean and a deviation in 1/σ and m/σ, by squares of ratios."""
    data = np.array([1.0, 2.5, 3.0, 5.0])
    mean, deviation = hc.Variable(name="mean"), hc.Variable(name="deviation", pos=True)
    squares = hc.sum(hc.square((data - mean) / deviation)) / 2
    problem = hc.Problem(hc.Minimize(4 * hc.log(deviation) + squares))
    problem.solve()
    assert problem.status == "optimal"
    assert mean.value == pytest.approx(data.mean(), rel=1e-6)
    assert deviation.value == pytest.approx(data.std(), rel=1e-6)


LOGISTIC = {
    "a reciprocal": lambda z: 1 / (1 + hc.exp(-z)),
    "a quotient": lambda z: hc.exp(z) / (1 + hc.exp(z)),
    "a sigmoid": hc.sigmoid,
}


@pytest.mark.parametrize("name", LOGISTIC)
def test_the_likelihood_of_both_outcomes_of_a_logistic_model(name: str) -> None:
    """log p and log(1 − p), as in books, are those of softplus."""
    generator = np.random.default_rng(5)
    data = generator.normal(size=(12, 2))
    seen = (data @ [1.0, -1.0] + generator.normal(size=12) > 0).astype(int)
    weights = hc.Variable(2, name="weights")
    chance = LOGISTIC[name](data @ weights)
    likelihood = hc.sum(seen * hc.log(chance) + (1 - seen) * hc.log(1 - chance))
    problem = hc.Problem(hc.Maximize(likelihood))
    expected = hc.Problem(hc.Minimize(hc.sum(hc.softplus((1 - 2 * seen) * (data @ weights)))))
    assert problem.solve() == pytest.approx(-expected.solve(), rel=1e-7)
    assert problem.status == "optimal"


x = hc.Variable(2, name="x", bounds=(-1, 2))
NOT_CONVEX: dict[str, tuple[Any, list[Any]]] = {
    "a saddle": (x[0] * x[0] + 3 * x[0] * x[1] + x[1] * x[1], []),
    "a product alone": (x[0] * x[1], []),
    "a curved equality": (hc.sum(x), [x[0] * x[0] + x[1] * x[1] == 1]),
    "the logarithm of another difference": (-hc.log(1.5 - 1 / (1 + hc.exp(hc.sum(x)))), []),
    "a reverse row": (hc.sum(x), [x[0] * x[0] + x[1] * x[1] >= 1]),
}


@pytest.mark.parametrize("name", NOT_CONVEX)
def test_what_is_not_convex_is_not_claimed(name: str) -> None:
    objective, rows = NOT_CONVEX[name]
    problem = hc.Problem(hc.Minimize(objective), rows)
    assert Forms(problem.model).discovery.substitution is None
