"""Large models with sparse derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

import hcmodel as hc


def chained_program(size: int, seed: int = 0) -> tuple[hc.Problem, hc.Variable]:
    """A geometric program whose terms and rows have three neighbouring variables each."""
    rng = np.random.default_rng(seed)
    x = hc.Variable(size, name="x", bounds=(0.1, 10))

    def terms(powers: np.ndarray, coefficients: np.ndarray) -> hc.Expression:
        logs = sum(powers[:, i] * hc.log(x[i : size - 2 + i]) for i in range(3))
        return coefficients * hc.exp(logs)

    count = size - 2
    cost = terms(rng.uniform(-2, 2, (count, 3)), rng.uniform(0.5, 2, count))
    row = terms(rng.uniform(0, 2, (count, 3)), rng.uniform(0.5, 2, count))
    return hc.Problem(hc.Minimize(hc.sum(cost)), [row <= 2.0]), x


def sparse_process(
    states: int, actions: int = 5, successors: int = 8, seed: int = 1
) -> tuple[hc.Problem, dict[str, Any]]:
    """A discounted decision process with few successors, written in its policy, and its data.

    Each pair of state and action leads to `successors` states. The cost has a limit. The data are those
    of the linear program in occupancies, for scipy's linprog.
    """
    rng = np.random.default_rng(seed)
    gamma, pairs = 0.9, states * actions
    reached = np.argsort(rng.uniform(size=(pairs, min(4 * successors, states))), axis=1)
    spread = rng.integers(states, size=(pairs, 1))
    reached = (spread + 7 * reached[:, :successors]) % states
    moves = np.zeros((pairs, states))
    shares = rng.dirichlet(np.ones(successors), size=pairs)
    np.add.at(moves, (np.arange(pairs)[:, None], reached), shares)
    reward, cost = rng.uniform(size=(2, states, actions))
    start, limit = np.full(states, 1 / states), 0.45 / (1 - gamma)

    policy = hc.Variable((states, actions), name="policy", simplex=True)
    steps = hc.einsum("sa,sat->st", policy, moves.reshape(states, actions, states))
    visits = hc.solve(np.eye(states) - gamma * steps.T, start)
    occupancy = hc.reshape(visits, (states, 1)) * policy
    objective = hc.Minimize(-hc.sum(occupancy * reward))
    balance = sparse.csr_array(
        sparse.kron(sparse.eye_array(states), np.ones((1, actions))) - gamma * moves.T
    )
    program = {
        "c": -reward.ravel(),
        "A_ub": cost.reshape(1, -1),
        "b_ub": [limit],
        "A_eq": balance,
        "b_eq": start,
    }
    return hc.Problem(objective, [hc.sum(occupancy * cost) <= limit]), program
