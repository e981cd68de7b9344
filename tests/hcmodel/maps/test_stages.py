"""Processes of several stages with a policy for each, the visits multiplied out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import hcmodel as hc
from hcmodel.reductions import discovery
from hcmodel.reductions.forms import Forms

S, A, T = 3, 2, 3
RNG = np.random.default_rng(3)
MOVES = RNG.dirichlet(np.ones(S), (S, A))
REWARD, COST = RNG.uniform(size=(2, S, A))
START = np.array([0.5, 0.2, 0.3])


def best() -> float:
    """By dynamic programming."""
    value = np.zeros(S)
    for _ in range(T):
        value = (REWARD + MOVES @ value).max(axis=1)
    return float(START @ value)


def best_with(cap: float, most: float = 1.0) -> float:
    """The linear program in the visits of states and actions, with a cap on the cost."""
    size = T * S * A
    often = np.zeros((T * S, size))
    for stage, state, action in np.ndindex(T, S, A):
        place = (stage * S + state) * A + action
        often[stage * S + state, place] += 1
        if stage < T - 1:
            often[(stage + 1) * S : (stage + 2) * S, place] -= MOVES[state, action]
    right = np.concatenate([START, np.zeros((T - 1) * S)])
    totals = np.repeat(np.eye(T * S), A, axis=1).repeat(A, axis=0)
    rows = np.vstack([np.tile(COST.ravel(), T), np.eye(size) - most * totals])
    limits = np.append(cap, np.zeros(size))
    return float(-linprog(-np.tile(REWARD.ravel(), T), rows, limits, often, right).fun)


def forwards(policies: Sequence[Any], weights: np.ndarray) -> Any:
    often, total = START, 0.0
    for policy in policies:
        both = hc.reshape(often, (S, 1)) * policy
        total = total + hc.sum(both * weights)
        often = hc.einsum("sa,saz->z", both, MOVES)
    return total


def by_matrices(policies: Sequence[Any], weights: np.ndarray) -> Any:
    often, total = START, 0.0
    for policy in policies:
        total = total + often @ hc.sum(policy * weights, axis=1)
        often = often @ hc.einsum("sa,saz->sz", policy, MOVES)
    return total


def by_entries(policies: Sequence[Any], weights: np.ndarray) -> Any:
    often: list[Any] = list(START)
    total: Any = 0.0
    for policy in policies:
        pairs = list(np.ndindex(S, A))
        both = {(s, a): often[s] * policy[s, a] for s, a in pairs}
        total = total + sum(both[pair] * weights[pair] for pair in pairs)
        often = [sum(both[pair] * MOVES[(*pair, z)] for pair in pairs) for z in range(S)]
    return total


def backwards(policies: Sequence[Any], weights: np.ndarray) -> Any:
    value: Any = np.zeros(S)
    for policy in reversed(policies):
        later = hc.einsum("saz,z->sa", MOVES, value)
        value = hc.sum(policy * (weights + later), axis=1)
    return START @ value


NOTATIONS = {each.__name__: each for each in (forwards, by_matrices, by_entries, backwards)}


def one_array(**options: Any) -> list[Any]:
    policy = hc.Variable((T, S, A), name="policy", simplex=True, **options)
    return [policy[stage] for stage in range(T)]


def several() -> list[Any]:
    return [hc.Variable((S, A), name=f"policy{stage}", simplex=True) for stage in range(T)]


@pytest.mark.parametrize("name", NOTATIONS)
def test_stages_that_are_multiplied_out_are_proven(name: str) -> None:
    notation = NOTATIONS[name]
    problem = hc.Problem(hc.Maximize(notation(one_array(), REWARD)))
    assert problem.solve() == pytest.approx(best(), rel=1e-8)
    assert problem.status == "optimal"
    apart = hc.Problem(hc.Maximize(notation(several(), REWARD)))
    assert Forms(apart.model).discovery.proof is not None


def test_a_cap_on_the_cost_and_bounds_on_the_policies() -> None:
    """Against the linear program; bounds on a policy are bounds on its part of the visits."""
    policies = one_array(bounds=(0, 0.8))
    cost = forwards(policies, COST)
    problem = hc.Problem(hc.Maximize(forwards(policies, REWARD)), [cost <= 1.4])
    assert problem.solve() == pytest.approx(best_with(1.4, 0.8), rel=1e-7)
    assert problem.status == "optimal"
    assert best_with(1.4, 0.8) < best_with(1.4) < best() - 1e-3


def test_few_actions_with_a_reward_and_moves_that_are_certain() -> None:
    """The cofactors of several stages have something in common; the last stage is the right one."""
    moves = np.zeros((4, 2, 4))
    for state in range(4):
        moves[state, 0, state] = moves[state, 1, (state + 1) % 4] = 1.0
    reward = np.zeros((4, 2))
    reward[2, 1], reward[3, 0] = 1.0, 0.5
    often, total = np.array([1.0, 0, 0, 0]), 0.0
    for stage in range(4):
        both = hc.reshape(often, (4, 1)) * hc.Variable((4, 2), name=f"p{stage}", simplex=True)
        total = total + hc.sum(both * reward)
        often = hc.einsum("sa,saz->z", both, moves)
    problem = hc.Problem(hc.Maximize(total))
    assert problem.solve() == pytest.approx(1.5)
    assert problem.status == "optimal"


NOT_CLAIMED = {
    "one policy for all stages": (
        lambda p: [p[0]] * T,
        lambda p: [],
        "is not drawn after the same",
    ),
    "a row of a policy alone": (lambda p: p, lambda p: [p[1][0, 0] <= 0.5], "not drawn after"),
    "a product of policies": (lambda p: p, lambda p: [p[1][0, 0] * p[2][0, 0] <= 0.1], "not drawn"),
}


@pytest.mark.parametrize("name", NOT_CLAIMED)
def test_other_products_of_policies_are_not_claimed(name: str) -> None:
    stages, rows, reason = NOT_CLAIMED[name]
    policies = several()
    problem = hc.Problem(hc.Maximize(forwards(stages(policies), REWARD)), rows(policies))
    found = Forms(problem.model).discovery
    assert found.substitution is None
    assert reason in " ".join(found.near_misses)


def test_stages_that_are_too_long_are_answered_with_what_to_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(discovery, "LIMITS", replace(discovery.LIMITS, most_products=100))
    found = Forms(hc.Problem(hc.Maximize(forwards(several(), REWARD))).model).discovery
    assert found.substitution is None
    said = "the products are too many to multiply out: make their parts variables"
    assert found.near_misses == (said,)
