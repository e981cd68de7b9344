"""Decision processes with entropies: occupancies, and divergences gathered from their logarithms.

A policy that pays τ for its divergence from another one has a value in closed form, by the iteration
V(s) = τ·log Σ_a π₀(a)·exp((r + γ·P V)/τ).
"""

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.reductions.discovery import discover
from hcmodel.reductions.forms import Forms

S, ACTIONS, GAMMA, PRICE = 4, 3, 0.9, 0.5
GENERATOR = np.random.default_rng(7)
MOVES = GENERATOR.dirichlet(np.ones(S), size=(S, ACTIONS))
REWARD = GENERATOR.uniform(size=(S, ACTIONS))
BASE = GENERATOR.dirichlet(np.ones(ACTIONS), size=S)
START = np.array([0.4, 0.3, 0.2, 0.1])


def soft_value(base: np.ndarray) -> float:
    """The fixed point of the iteration above; `base` need not sum to 1."""
    value = np.zeros(S)
    for _ in range(2000):
        value = PRICE * np.log((base * np.exp((REWARD + GAMMA * MOVES @ value) / PRICE)).sum(1))
    return float(START @ value)


def process() -> tuple[hc.Variable, hc.Expression, hc.Expression]:
    """The policy, its visits, and its reward."""
    pi = hc.Variable((S, ACTIONS), name="pi", simplex=True)
    steps = hc.einsum("sa,sat->st", pi, MOVES)
    visits = hc.solve(np.eye(S) - GAMMA * steps.T, START)
    return pi, visits, visits @ hc.sum(REWARD * pi, axis=1)


def by_divergences() -> hc.Expression:
    pi, visits, reward = process()
    return reward - PRICE * visits @ hc.sum(hc.rel_entr(pi, BASE), axis=1)


def by_logarithms() -> hc.Expression:
    pi, visits, reward = process()
    occupancy = hc.reshape(visits, (S, 1)) * pi
    return reward - hc.sum(PRICE * occupancy * (hc.log(pi) - np.log(BASE)))


def by_quotients() -> hc.Expression:
    pi, visits, reward = process()
    parts = [visits[s] * hc.kl_div(pi[s, a], BASE[s, a]) for s in range(S) for a in range(ACTIONS)]
    return reward - PRICE * sum(parts[1:], parts[0])


def by_entropies() -> hc.Expression:
    pi, visits, reward = process()
    entropy = hc.sum(hc.entr(pi) + pi * np.log(BASE), axis=1)
    return hc.sum(visits * (PRICE * entropy)) + reward


LANGUAGE = """
    param S, A
    param moves[S,A,S], reward[S,A], base[S,A], first[S], gamma, price
    var pi[S,A] in simplex
    let T[s in 1..S, t in 1..S] = sum(pi[s,a] * moves[s,a,t] for a in 1..A)
    let d = solve(eye(S) - gamma * T.T, first)
    let gain[s in 1..S, a in 1..A] = reward[s,a] * pi[s,a] - price * rel_entr(pi[s,a], base[s,a])
    maximize sum(d[s] * gain[s,a] for s in 1..S, a in 1..A)
"""


def assert_proven(problem: hc.Problem, value: float) -> None:
    assert problem.solve() == pytest.approx(value, rel=1e-7)
    assert problem.status == "optimal"
    assert "proven convex in visits * pi" in problem.solution.method


@pytest.mark.parametrize("way", [by_divergences, by_logarithms, by_quotients, by_entropies])
def test_the_price_of_a_divergence_is_proven_however_it_is_written(way):
    assert_proven(hc.Problem(hc.Maximize(way())), soft_value(BASE))


def test_the_price_of_a_divergence_in_the_language():
    data = {"moves": MOVES, "reward": REWARD, "base": BASE, "first": START}
    problem = hc.parse(LANGUAGE, {**data, "gamma": GAMMA, "price": PRICE})
    assert_proven(problem, soft_value(BASE))


def test_the_entropy_of_a_policy_is_proven():
    pi, visits, reward = process()
    problem = hc.Problem(hc.Maximize(reward + PRICE * visits @ hc.sum(hc.entr(pi), axis=1)))
    assert_proven(problem, soft_value(np.ones((S, ACTIONS))))


def test_a_limit_of_the_divergence_has_its_price_as_multiplier():
    """At the limit that the price PRICE leads to, the reward is that of the priced model."""
    pi, visits, reward = process()
    divergence = visits @ hc.sum(hc.rel_entr(pi, BASE), axis=1)
    priced = hc.Problem(hc.Maximize(reward - PRICE * divergence))
    priced.solve()
    limit, expected = float(divergence.value), float(reward.value)
    row = divergence <= limit
    problem = hc.Problem(hc.Maximize(reward), [row])
    assert_proven(problem, expected)
    assert abs(float(row.dual_value)) == pytest.approx(PRICE, rel=1e-4)


def test_a_reward_for_divergence_is_not_claimed():
    pi, visits, reward = process()
    far = reward + PRICE * visits @ hc.sum(hc.rel_entr(pi, BASE), axis=1)
    problem = hc.Problem(hc.Maximize(far))
    assert discover(Forms(problem.model).bounds.after).substitution is None
