"""Average rewards by gain and bias: proven, and solved as the linear program in occupancies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy

import hcmodel as hc
from tests.proven import is_proven

GENERATOR = np.random.default_rng(5)
STATES, ACTIONS = 4, 3
CHANCES = GENERATOR.random((STATES, ACTIONS, STATES))
CHANCES /= CHANCES.sum(axis=2, keepdims=True)
REWARDS, COSTS = GENERATOR.normal(size=(STATES, ACTIONS)), GENERATOR.random((STATES, ACTIONS))
# The linear program and the cone program agree to this.
CLOSE = 1e-8


def best(chances: Any, rewards: Any) -> float:
    """The largest average reward, by the linear program in occupancies."""
    states, actions = rewards.shape
    balance = np.zeros((states + 1, states * actions))
    for s in range(states):
        for a in range(actions):
            balance[s, s * actions + a] += 1.0
            balance[:states, s * actions + a] -= chances[s, a]
    balance[states] = 1.0
    right = np.append(np.zeros(states), 1.0)
    return -float(scipy.optimize.linprog(-rewards.reshape(-1), A_eq=balance, b_eq=right).fun)


def variables(states: int = STATES, actions: int = ACTIONS) -> tuple[Any, Any, Any]:
    policy = hc.Variable((states, actions), name="pi", simplex=True)
    return policy, hc.Variable(states, name="h"), hc.Variable(name="g")


def by_matrices(policy: Any, h: Any, g: Any) -> list[Any]:
    chances = hc.einsum("sa,saz->sz", policy, CHANCES)
    return [g + h == hc.sum(policy * REWARDS, axis=1) + chances @ h]


def by_states(policy: Any, h: Any, g: Any) -> list[Any]:
    return [
        g + h[s] == sum(policy[s, a] * (REWARDS[s, a] + CHANCES[s, a] @ h) for a in range(ACTIONS))
        for s in range(STATES)
    ]


FORMS: dict[str, Callable[[Any, Any, Any], list[Any]]] = {
    "matrices": lambda pi, h, g: [*by_matrices(pi, h, g), h[0] == 0],
    "states": lambda pi, h, g: [*by_states(pi, h, g), h[2] == 0],
    "a sum of 0": lambda pi, h, g: [hc.sum(h) == 0, *by_matrices(pi, h, g)],
    "another level": lambda pi, h, g: [*by_matrices(pi, h, g), h[1] == 3.0],
    "no level": by_matrices,
    "multiplied by −2": lambda pi, h, g: [
        -2 * (g + h) == -2 * (hc.sum(pi * (REWARDS + CHANCES @ h), axis=1)),
        h[0] == 0,
    ],
}


@pytest.mark.parametrize("rows", FORMS.values(), ids=FORMS)
def test_the_gain_of_the_best_policy(rows: Any) -> None:
    policy, h, g = variables()
    problem = hc.Problem(hc.Maximize(g), rows(policy, h, g))
    assert problem.is_hidden_convex()
    assert problem.solve() == pytest.approx(best(CHANCES, REWARDS), rel=CLOSE)
    assert problem.status == "optimal"
    reward, chances = (
        (policy.value * REWARDS).sum(axis=1),
        np.einsum("sa,saz->sz", policy.value, CHANCES),
    )
    assert float(g.value) + h.value == pytest.approx(reward + chances @ h.value, abs=1e-6)


def test_policies_that_rows_make_distributions_and_the_language() -> None:
    text = """param n, m
param r[n,m], P[n,m,n]
var pi[n,m] >= 0
var h[n]
var g
maximize 2*g + 1
subject to
    drawn[s in 1..n]: sum(pi[s,a] for a in 1..m) == 1
    poisson[s in 1..n]: g + h[s] ==
        sum(pi[s,a]*(r[s,a] + sum(P[s,a,t]*h[t] for t in 1..n)) for a in 1..m)
    level: h[1] == 0
"""
    data = {"n": STATES, "m": ACTIONS, "r": REWARDS, "P": CHANCES}
    problem = hc.parse(text, data=data)
    assert problem.solve() == pytest.approx(2 * best(CHANCES, REWARDS) + 1, rel=CLOSE)
    assert problem.status == "optimal"


def test_states_that_are_not_visited() -> None:
    """Nothing leads to the last state; its policy does not matter, and its bias has a value."""
    chances = CHANCES.copy()
    chances[:, :, -1] = 0.0
    chances /= chances.sum(axis=2, keepdims=True)
    policy, h, g = variables()
    after = hc.einsum("sa,saz->sz", policy, chances)
    rows = [g + h == hc.sum(policy * REWARDS, axis=1) + after @ h, h[0] == 0]
    problem = hc.Problem(hc.Maximize(g), rows)
    assert problem.solve() == pytest.approx(best(chances, REWARDS), rel=CLOSE)
    assert problem.status == "optimal"


def test_two_gains_with_one_policy() -> None:
    """The cost per step has a gain and a bias of its own, and a limit; against occupancies."""
    policy, h, g = variables()
    bias, cost = hc.Variable(STATES, name="b"), hc.Variable(name="c")
    after = hc.einsum("sa,saz->sz", policy, CHANCES)
    rows = [g + h == hc.sum(policy * REWARDS, axis=1) + after @ h, h[0] == 0]
    rows += [cost + bias == hc.sum(policy * COSTS, axis=1) + after @ bias, bias[0] == 0]
    limit = -best(CHANCES, -COSTS) + 0.08
    problem = hc.Problem(hc.Maximize(g), [*rows, cost <= limit])
    d = hc.Variable(STATES, name="d", nonneg=True)
    visits = hc.reshape(d, (STATES, 1)) * policy
    flow = [d == after.T @ d, hc.sum(d) == 1, hc.sum(visits * COSTS) <= limit]
    other = hc.Problem(hc.Maximize(hc.sum(visits * REWARDS)), flow)
    known = other.solve()
    assert other.status == "optimal"
    value = problem.solve()
    assert value == pytest.approx(known, rel=1e-5)
    assert value < best(CHANCES, REWARDS) - 0.1  # the limit binds


def closed_classes() -> tuple[Any, list[Any]]:
    """Two states that never leave themselves: the gain depends on where one is."""
    policy, h, g = variables(2, 2)
    chances = np.array([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])
    rewards = np.array([[1.0, 0.0], [0.5, 2.0]])
    after = hc.einsum("sa,saz->sz", policy, chances)
    return g, [g + h == hc.sum(policy * rewards, axis=1) + after @ h, h[0] == 0]


def discounted() -> tuple[Any, list[Any]]:
    """Rows of N that do not sum to 0 are no gain and bias."""
    policy, h, g = variables()
    after = hc.einsum("sa,saz->sz", policy, CHANCES)
    return g, [g + h == hc.sum(policy * REWARDS, axis=1) + 0.9 * after @ h, h[0] == 0]


def bias_elsewhere() -> tuple[Any, list[Any]]:
    policy, h, g = variables()
    return g + h[1], [*by_matrices(policy, h, g), h[0] == 0]


def negative_chances() -> tuple[Any, list[Any]]:
    policy, h, g = variables()
    wrong = CHANCES.copy()
    wrong[0, 0] += np.array([1.0, -1.0, 0.0, 0.0])
    after = hc.einsum("sa,saz->sz", policy, wrong)
    return g, [g + h == hc.sum(policy * REWARDS, axis=1) + after @ h, h[0] == 0]


WRONG = {
    each.__name__: each for each in (closed_classes, discounted, bias_elsewhere, negative_chances)
}


@pytest.mark.parametrize("model", WRONG.values(), ids=WRONG)
def test_what_is_no_gain_and_bias_is_not_claimed(model: Any) -> None:
    objective, rows = model()
    assert not is_proven(hc.Problem(hc.Maximize(objective), rows))


@pytest.mark.parametrize("seed", range(4))
def test_bounds_of_random_members_are_above_all_policies(seed: int) -> None:
    generator = np.random.default_rng(seed)
    chances = generator.random((3, 2, 3)) * (generator.random((3, 2, 3)) < 0.7)
    chances[..., 0] += 0.1
    chances /= chances.sum(axis=2, keepdims=True)
    rewards = generator.normal(size=(3, 2))
    policy, h, g = variables(3, 2)
    after = hc.einsum("sa,saz->sz", policy, chances)
    rows = [g + h == hc.sum(policy * rewards, axis=1) + after @ h, h[0] == 0]
    problem = hc.Problem(hc.Maximize(g), rows)
    problem.solve()
    assert problem.status == "optimal"
    bound = problem.solution.certificate.lower_bound  # of the least −g, in the user's sign
    for choice in np.ndindex(2, 2, 2):
        moves = chances[np.arange(3), choice]
        system = np.vstack([np.eye(3) - moves.T, np.ones(3)])
        d = np.linalg.lstsq(system, np.array([0, 0, 0, 1.0]), rcond=None)[0]
        assert float(d @ rewards[np.arange(3), choice]) <= bound + 1e-7
