"""Softmax policies with bounded parameters: proven in visits, whatever the bounds are.

Values are those of the linear program in the visits λ, with l_j λ_i <= h_i λ_j for each pair of actions.
"""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

import hcmodel as hc
from hcmodel.maps import shares
from tests.extent import ALL, several

STATES, ACTIONS, DISCOUNT = 3, 3, 0.8
FIRST = np.array([0.5, 0.3, 0.2])


def process(seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    moves = generator.dirichlet(np.ones(STATES), size=(STATES, ACTIONS))
    return moves, generator.uniform(0, 1, size=(STATES, ACTIONS))


def ends(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the parameters; some are infinite."""
    generator = np.random.default_rng(100 + seed)
    low, high = -generator.uniform(0, 2, size=(2, STATES, ACTIONS)) * np.array([[[1]], [[-1]]])
    low[generator.random(low.shape) < 0.2] = -np.inf
    high[generator.random(high.shape) < 0.2] = np.inf
    return low, high


def by_hand(moves: np.ndarray, gain: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    """The linear program in λ."""
    flow = np.zeros((STATES, STATES, ACTIONS))
    for s, a in np.ndindex(STATES, ACTIONS):
        flow[s, s, a] += 1
        flow[:, s, a] -= DISCOUNT * moves[s, a]
    rows = []
    for s, (i, j) in itertools.product(range(STATES), itertools.permutations(range(ACTIONS), 2)):
        if np.isfinite(high[s, i]) and np.isfinite(low[s, j]):
            row = np.zeros((STATES, ACTIONS))
            row[s, i], row[s, j] = np.exp(low[s, j]), -np.exp(high[s, i])
            rows.append(row.reshape(-1))
    found = linprog(
        -gain.reshape(-1),
        np.array(rows) if rows else None,
        np.zeros(len(rows)) if rows else None,
        flow.reshape(STATES, -1),
        FIRST,
    )
    return -float(found.fun)


def visited(policy: list[list[hc.Expression]], moves: np.ndarray, gain: np.ndarray) -> hc.Problem:
    """With the visits as variables."""
    d = hc.Variable(STATES, name="d", nonneg=True)
    pairs = list(np.ndindex(STATES, ACTIONS))
    rows = [
        d[q] == FIRST[q] + DISCOUNT * sum(moves[s, a, q] * d[s] * policy[s][a] for s, a in pairs)
        for q in range(STATES)
    ]
    return hc.Problem(hc.Maximize(sum(gain[s, a] * d[s] * policy[s][a] for s, a in pairs)), rows)


def by_exponentials(moves, gain, low, high) -> hc.Problem:
    theta = hc.Variable((STATES, ACTIONS), name="theta", bounds=(low, high))
    policy = [
        [hc.exp(theta[s, a]) / hc.sum(hc.exp(theta[s, :])) for a in range(ACTIONS)]
        for s in range(STATES)
    ]
    return visited(policy, moves, gain)


def by_negative_parameters(moves, gain, low, high) -> hc.Problem:
    """exp(−2 θ + 1): the bounds change places."""
    theta = hc.Variable((STATES, ACTIONS), name="theta", bounds=((1 - high) / 2, (1 - low) / 2))
    weight = hc.exp(1 - 2 * theta)
    policy = [
        [weight[s, a] / sum(weight[s, b] for b in (2, 0, 1)) for a in range(ACTIONS)]
        for s in range(STATES)
    ]
    return visited(policy, moves, gain)


def by_the_atom(moves, gain, low, high) -> hc.Problem:
    """With the visits as the solution of a system of equations, and parameters for numbers."""
    theta = hc.Variable((STATES, ACTIONS), name="theta", bounds=(low, high))
    discount = hc.Parameter(name="discount", value=DISCOUNT)
    policy = hc.softmax(theta, axis=1)
    step = sum(hc.diag(policy[:, a]) @ moves[:, a, :] for a in range(ACTIONS))
    visits = hc.solve(np.eye(STATES) - discount * step.T, FIRST)
    return hc.Problem(hc.Maximize(hc.sum(hc.multiply(gain, policy).T @ visits)))


def in_the_language(moves, gain, low, high) -> hc.Problem:
    text = """
        param P[3,3,3], r[3,3], first[3], low[3,3], high[3,3]
        var theta[3,3]
        let total[s in 1..3] = sum(exp(theta[s,a]) for a in 1..3)
        let policy[s in 1..3, a in 1..3] = exp(theta[s,a]) / total[s]
        let T[s in 1..3, q in 1..3] = sum(policy[s,a] * P[s,a,q] for a in 1..3)
        let d = solve(eye(3) - 0.8 * T.T, first)
        maximize sum(d[s] * policy[s,a] * r[s,a] for s in 1..3, a in 1..3)
        subject to
            from: theta >= low
            to: theta <= high
    """
    data = {"P": moves, "r": gain, "first": FIRST}
    return hc.parse(text, {**data, "low": low.clip(-30, 30), "high": high.clip(-30, 30)})


SPELLINGS = (by_exponentials, by_negative_parameters, by_the_atom, in_the_language)


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("seed", range(3 if ALL else 1))
def test_a_bounded_softmax_is_proven_however_it_is_written(spelling, seed):
    moves, gain = process(seed)
    low, high = ends(seed)
    problem = spelling(moves, gain, low, high)
    value = by_hand(moves, gain, low, high)
    assert problem.solve() == pytest.approx(value, rel=1e-6)
    assert problem.status == "optimal"
    assert "proven convex in" in problem.solution.method
    theta = problem.solution.point["theta"]
    if spelling is by_exponentials:
        assert (theta >= low - 1e-9).all()
        assert (theta <= high + 1e-9).all()


@pytest.mark.parametrize("seed", range(20 if ALL else 3))
def test_the_best_policy_is_a_corner_of_the_bounds(seed):
    """In each state the weights of some actions are largest, and those of the others least."""
    moves, gain = process(seed)
    low, high = (end.clip(-6, 6) for end in ends(seed))
    problem = by_exponentials(moves, gain, low, high)
    problem.solve()
    assert problem.status == "optimal"
    corners = np.array(list(itertools.product((0.0, 1.0), repeat=STATES * ACTIONS)))
    weight = np.exp(low + corners.reshape(-1, STATES, ACTIONS) * (high - low))
    policy = weight / weight.sum(axis=2, keepdims=True)
    flow = np.eye(STATES) - DISCOUNT * np.einsum("ksa,saq->kqs", policy, moves)
    visits = np.linalg.solve(flow, np.broadcast_to(FIRST[:, None], (len(corners), STATES, 1)))
    best = float(np.max(np.einsum("ks,ksa,sa->k", visits[:, :, 0], policy, gain)))
    assert best <= problem.solution.lower_bound + 1e-10
    assert best == pytest.approx(problem.value, rel=1e-7)


def test_a_wrong_pair_is_found_out(monkeypatch):
    """Rows that lose the pairs are a relaxation: its point is not within the bounds."""
    moves, gain = process(0)
    low, high = -0.2 * np.ones((STATES, ACTIONS)), 0.3 * np.ones((STATES, ACTIONS))
    value = by_hand(moves, gain, low, high)
    monkeypatch.setattr(shares, "_pairs", lambda *_: iter(()))
    problem = by_exponentials(moves, gain, low, high)
    problem.solve(max_calls=several(100, 5000))
    assert problem.status != "optimal"
    assert problem.solution.lower_bound >= value
