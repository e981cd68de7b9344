"""Occupancies: decision processes are proven and solved with nothing declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import hcmodel as hc
from hcmodel.maps.algebra import scaling
from hcmodel.reductions.forms import Forms

GENERATOR = np.random.default_rng(2)
S, ACTIONS, GAMMA = 4, 3, 0.9
MOVES = GENERATOR.dirichlet(np.ones(S), size=(S, ACTIONS))
REWARD = GENERATOR.uniform(size=(S, ACTIONS))
COST = GENERATOR.uniform(size=(S, ACTIONS))
START = np.array([0.4, 0.3, 0.2, 0.1])
BALANCE = np.kron(np.eye(S), np.ones((1, ACTIONS))) - GAMMA * MOVES.reshape(S * ACTIONS, S).T
CAP = 4.0


def by_linear_program(cap: float = CAP) -> float:
    """The best reward, by the linear program in λ."""
    found = scipy.optimize.linprog(
        -REWARD.ravel(), A_ub=[COST.ravel()], b_ub=[cap], A_eq=BALANCE, b_eq=START
    )
    return -float(found.fun)


def policy() -> hc.Variable:
    return hc.Variable((S, ACTIONS), name="policy", simplex=True)


def visits(pi: Any) -> Any:
    steps = hc.einsum("sa,sat->st", pi, MOVES)
    return hc.solve(np.eye(S) - GAMMA * steps.T, START)


Model = tuple[Any, list[Any]]


def system() -> Model:
    """The visits as the solution of a linear system."""
    pi = policy()
    occupancy = hc.reshape(visits(pi), (S, 1)) * pi
    return hc.sum(REWARD * occupancy), [hc.sum(COST * occupancy) <= CAP]


def normalised() -> Model:
    """Visits that sum to 1, with the reward in other units."""
    pi = policy()
    share = (1 - GAMMA) * visits(pi)
    occupancy = hc.reshape(share, (S, 1)) * pi
    scale = 1 / (1 - GAMMA)
    return scale * hc.sum(REWARD * occupancy), [scale * hc.sum(COST * occupancy) <= CAP]


def indexed() -> Model:
    """Sums over states and actions."""
    pi = policy()
    often = visits(pi)
    pairs = [(s, a) for s in range(S) for a in range(ACTIONS)]
    reward = sum(REWARD[s, a] * often[s] * pi[s, a] for s, a in pairs)
    cost = sum(COST[s, a] * pi[s, a] * often[s] for s, a in pairs)
    return reward, [CAP - cost >= 0]


def rows() -> Model:
    """The visits as variables, with the balance as rows."""
    pi, often = policy(), hc.Variable(S, name="often", nonneg=True)
    flow = hc.reshape(often, (S, 1)) * pi
    balance = often == START + GAMMA * hc.einsum("sa,sat->t", flow, MOVES)
    return hc.sum(REWARD * flow), [balance, hc.sum(COST * flow) <= CAP]


def undeclared() -> Model:
    """Visits as variables that nothing but the balance makes nonnegative."""
    pi, often = policy(), hc.Variable(S, name="often")
    flow = hc.reshape(often, (S, 1)) * pi
    balance = often == START + GAMMA * hc.einsum("sa,sat->t", flow, MOVES)
    return hc.sum(REWARD * flow), [balance, hc.sum(COST * flow) <= CAP]


def in_other_units() -> Model:
    """Each row of the balance times a number of its own."""
    pi, often = policy(), hc.Variable(S, name="often")
    units = np.array([0.1, 7.0, 1.0, 3.0])
    flow = hc.reshape(often, (S, 1)) * pi
    balance = units * (often - START) == units * GAMMA * hc.einsum("sa,sat->t", flow, MOVES)
    return hc.sum(REWARD * flow), [balance, hc.sum(COST * flow) <= CAP]


def contracted() -> Model:
    """Visits, policy and moves multiplied by one contraction."""
    pi, often = policy(), hc.Variable(S, name="often", nonneg=True)
    balance = often == START + GAMMA * hc.einsum("s,sa,sat->t", often, pi, MOVES)
    reward = hc.einsum("s,sa,sa->", often, pi, REWARD)
    return reward, [balance, hc.einsum("sa,s,sa->", COST, often, pi) <= CAP]


def expected() -> Model:
    """The reward of a state first, then over the states."""
    pi = policy()
    reward = hc.sum(REWARD * pi, axis=1) @ visits(pi)
    return reward, [hc.sum(COST * pi, axis=1) @ visits(pi) <= CAP]


def by_value() -> Model:
    """The value of the policy by a linear system, and that of the cost."""
    pi = policy()
    matrix = np.eye(S) - GAMMA * hc.einsum("sa,sat->st", pi, MOVES)
    value = hc.solve(matrix, hc.sum(REWARD * pi, axis=1))
    cost = hc.solve(matrix, hc.sum(COST * pi, axis=1))
    return START @ value, [2 * (START @ cost) <= 2 * CAP]


def by_inverse() -> Model:
    """Both values at once, by an inverse."""
    pi = policy()
    matrix = hc.inv(np.eye(S) - GAMMA * hc.einsum("sa,sat->st", pi, MOVES))
    rates = hc.einsum("sa,sak->sk", pi, np.stack([REWARD, COST], axis=2))
    both = START @ matrix @ rates
    return both[0], [both[1] <= CAP]


def by_inverse_of_the_transpose() -> Model:
    """Visits by the inverse of the transposed system: its rows are weighted in one proportion."""
    pi = policy()
    moves = hc.einsum("sa,sat->st", pi, MOVES)
    often = hc.inv(np.eye(S) - GAMMA * moves.T) @ START
    reward, cost = hc.sum(REWARD * pi, axis=1), hc.sum(COST * pi, axis=1)
    return often @ reward, [cost @ often <= CAP]


def bellman() -> Model:
    """The values as unknowns, Bellman's equations as rows, one a state and turned around."""
    pi, cost, value = policy(), hc.Variable(S, name="cost"), hc.Variable(S, name="value")
    rows = [
        each[s] == sum(pi[s, a] * (rate[s, a] + GAMMA * MOVES[s, a] @ each) for a in range(ACTIONS))
        for each, rate in ((value, REWARD), (cost, COST))
        for s in reversed(range(S))
    ]
    return START @ value, [*rows, START @ cost <= CAP]


WAYS: dict[str, Callable[[], Model]] = {
    "a linear system": system,
    "normalised": normalised,
    "indexed sums": indexed,
    "visits as variables": rows,
    "visits without a sign": undeclared,
    "rows in other units": in_other_units,
    "one contraction": contracted,
    "rewards of states": expected,
    "values": by_value,
    "an inverse": by_inverse,
    "the inverse of the transpose": by_inverse_of_the_transpose,
    "Bellman's equations": bellman,
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_write_it_is_solved(way: str) -> None:
    """Proven, certified, and as good as the linear program."""
    objective, constraints = WAYS[way]()
    problem = hc.Problem(hc.Maximize(objective), constraints)
    assert problem.solve() == pytest.approx(by_linear_program(), rel=1e-7)
    assert problem.status == "optimal"
    assert "proven convex" in problem.solution.method


def test_bounds_on_the_policy_are_linear() -> None:
    """No action is taken with less than a tenth."""
    pi = hc.Variable((S, ACTIONS), name="policy", simplex=True, bounds=(0.1, 1))
    occupancy = hc.reshape(visits(pi), (S, 1)) * pi
    problem = hc.Problem(hc.Maximize(hc.sum(REWARD * occupancy)))
    value = problem.solve()
    rows = np.kron(np.eye(S), 0.1 * np.ones((ACTIONS, ACTIONS))) - np.eye(S * ACTIONS)
    found = scipy.optimize.linprog(
        -REWARD.ravel(),
        A_ub=rows,
        b_ub=np.zeros(S * ACTIONS),
        A_eq=BALANCE,
        b_eq=START,
    )
    assert value == pytest.approx(-found.fun, rel=1e-7)
    assert problem.status == "optimal"
    assert pi.value.min() >= 0.1 - 1e-7


def test_states_that_are_never_visited() -> None:
    """Their policy does not matter; the point that comes back is feasible and attains the bound."""
    moves = MOVES.copy()
    moves[:, :, 3] = 0.0
    moves /= moves.sum(axis=2, keepdims=True)
    start = np.array([0.5, 0.5, 0.0, 0.0])
    pi = policy()
    steps = hc.einsum("sa,sat->st", pi, moves)
    often = hc.solve(np.eye(S) - GAMMA * steps.T, start)
    occupancy = hc.reshape(often, (S, 1)) * pi
    problem = hc.Problem(hc.Maximize(hc.sum(REWARD * occupancy)), [hc.sum(COST * occupancy) <= CAP])
    problem.solve()
    assert problem.status == "optimal"
    assert pi.value.sum(axis=1) == pytest.approx(np.ones(S))


@pytest.mark.parametrize("method", ["interior-point", "hidden-newton"])
def test_a_larger_process_is_certified_by_every_method(method: str) -> None:
    """Occupancies have no bounds of their own; the dual of the cone program is what certifies them."""
    states, actions = 52, 4
    generator = np.random.default_rng(3)
    moves = generator.dirichlet(np.ones(states), size=(states, actions))
    reward, cost = generator.uniform(size=(2, states, actions))
    pi = hc.Variable((states, actions), name="pi", simplex=True)
    steps = hc.einsum("sa,sat->st", pi, moves)
    often = hc.solve(np.eye(states) - GAMMA * steps.T, np.full(states, 1 / states))
    occupancy = hc.reshape(often, (states, 1)) * pi
    cap = 0.45 / (1 - GAMMA)
    problem = hc.Problem(hc.Maximize(hc.sum(reward * occupancy)), [hc.sum(cost * occupancy) <= cap])
    problem.solve(method)
    assert problem.status == "optimal"


def test_a_policy_that_two_processes_share_is_not_claimed() -> None:
    """Robust policies are not convex in the occupancies of one process."""
    pi = policy()
    other = GENERATOR.dirichlet(np.ones(S), size=(S, ACTIONS))
    steps = hc.einsum("sa,sat->st", pi, other)
    second = hc.solve(np.eye(S) - GAMMA * steps.T, START)
    occupancies = [hc.reshape(each, (S, 1)) * pi for each in (visits(pi), second)]
    problem = hc.Problem(hc.Maximize(sum(hc.sum(REWARD * each) for each in occupancies)))
    assert Forms(problem.model).discovery.substitution is None


def test_a_policy_alone_is_not_claimed() -> None:
    """A cost of the policy that does not count the visits keeps an x."""
    pi = policy()
    occupancy = hc.reshape(visits(pi), (S, 1)) * pi
    problem = hc.Problem(hc.Maximize(hc.sum(REWARD * occupancy) - hc.sum(hc.square(pi))))
    assert Forms(problem.model).discovery.substitution is None


def test_visits_that_may_be_negative_are_not_claimed() -> None:
    """Without discount nothing says that the system has a nonnegative solution."""
    pi = policy()
    steps = hc.einsum("sa,sat->st", pi, MOVES)
    often = hc.solve(np.eye(S) - 1.2 * steps.T, START)
    problem = hc.Problem(hc.Maximize(hc.sum(REWARD * hc.reshape(often, (S, 1)) * pi)))
    discovery = Forms(problem.model).discovery
    assert discovery.substitution is None
    assert discovery.near_misses == ("occupancy map: the visits are not known to be nonnegative",)


def test_values_of_two_starts_are_not_claimed() -> None:
    """Each start has visits of its own, and a policy that serves both is not convex in either."""
    pi = policy()
    matrix = np.eye(S) - GAMMA * hc.einsum("sa,sat->st", pi, MOVES)
    value = hc.solve(matrix, hc.sum(REWARD * pi, axis=1))
    problem = hc.Problem(hc.Maximize(START @ value), [value[3] >= 5.0])
    discovery = Forms(problem.model).discovery
    assert discovery.substitution is None
    assert "weighted in more than one proportion" in " ".join(discovery.near_misses)


@pytest.mark.parametrize("discount", [1.0, 1.3])
def test_equations_without_a_discount_do_not_determine_values(discount: float) -> None:
    """At 1 the system is singular for every policy: the values are no function of it."""
    pi, value = policy(), hc.Variable(S, name="value")
    steps = hc.einsum("sa,sat->st", pi, MOVES)
    rows = [value == hc.sum(REWARD * pi, axis=1) + discount * steps @ value]
    problem = hc.Problem(hc.Maximize(START @ value), rows)
    assert Forms(problem.model).discovery.substitution is None


def test_values_with_bounds_are_left_alone() -> None:
    """Bounds of values are rows of their own, from which nothing follows by the visits of one start."""
    pi, value = policy(), hc.Variable(S, name="value", bounds=(0, 6))
    steps = hc.einsum("sa,sat->st", pi, MOVES)
    rows = [value == hc.sum(REWARD * pi, axis=1) + GAMMA * steps @ value]
    problem = hc.Problem(hc.Maximize(START @ value), rows)
    assert Forms(problem.model).discovery.substitution is None


def test_values_and_duals_of_bellmans_equations() -> None:
    """The values satisfy them at the policy that comes back; their multipliers are the visits."""
    pi, value = policy(), hc.Variable(S, name="value")
    steps = hc.einsum("sa,sat->st", pi, MOVES)
    row = value == hc.sum(REWARD * pi, axis=1) + GAMMA * steps @ value
    problem = hc.Problem(hc.Maximize(START @ value), [row])
    problem.solve()
    moves = np.einsum("sa,sat->st", pi.value, MOVES)
    expected = np.linalg.solve(np.eye(S) - GAMMA * moves, (REWARD * pi.value).sum(axis=1))
    assert value.value == pytest.approx(expected, rel=1e-9)
    visited = np.linalg.solve(np.eye(S) - GAMMA * moves.T, START)
    assert np.abs(row.dual_value) == pytest.approx(visited, rel=1e-5)


def test_a_broken_rule_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong product is found where the numbers are compared."""
    right = scaling.Scaling.after_factors
    monkeypatch.setattr(
        scaling.Scaling, "after_factors", lambda self, sums: right(self, sums).scaled(1.001)
    )
    objective, constraints = system()
    problem = hc.Problem(hc.Maximize(objective), constraints)
    assert Forms(problem.model).discovery.substitution is None


def test_the_average_over_a_long_time() -> None:
    """The visits are a distribution that the policy leaves as it is."""
    pi, often = policy(), hc.Variable(S, name="often", simplex=True)
    flow = hc.reshape(often, (S, 1)) * pi
    stationary = often == hc.einsum("sa,sat->t", flow, MOVES)
    problem = hc.Problem(
        hc.Maximize(hc.sum(REWARD * flow)), [stationary, hc.sum(COST * flow) <= 0.45]
    )
    value = problem.solve()
    stays = np.kron(np.eye(S), np.ones((1, ACTIONS))) - MOVES.reshape(S * ACTIONS, S).T
    found = scipy.optimize.linprog(
        -REWARD.ravel(),
        A_ub=[COST.ravel()],
        b_ub=[0.45],
        A_eq=np.vstack([stays, np.ones(S * ACTIONS)]),
        b_eq=np.append(np.zeros(S), 1.0),
    )
    assert value == pytest.approx(-found.fun, rel=1e-7)
    assert problem.status == "optimal"


def test_several_stages() -> None:
    """One policy for each stage; the first one stands alone, as the start is given."""
    stages = 3
    pi = hc.Variable((stages, S, ACTIONS), name="policy", simplex=True)
    often = hc.Variable((stages - 1, S), name="often", nonneg=True)
    flows = [START[:, None] * pi[0]]
    flows += [hc.reshape(often[t], (S, 1)) * pi[t + 1] for t in range(stages - 1)]
    rows = [often[t] == hc.einsum("sa,sat->t", flows[t], MOVES) for t in range(stages - 1)]
    problem = hc.Problem(hc.Maximize(sum(hc.sum(REWARD * flow) for flow in flows)), rows)
    value = problem.solve()
    ahead = np.zeros(S)
    for _ in range(stages):  # dynamic programming, from the last stage to the first
        ahead = (REWARD + MOVES @ ahead).max(axis=1)
    assert value == pytest.approx(START @ ahead, rel=1e-7)
    assert problem.status == "optimal"
    capped = hc.Problem(problem.objective, [*rows, hc.sum(COST * flows[2]) <= 0.4])
    capped.solve()
    assert capped.status == "optimal"
    assert "proven convex" in capped.solution.method


def test_a_shortest_path() -> None:
    """No discount: the last state, which is left out, ends the process."""
    kept = S - 1
    pi = hc.Variable((kept, ACTIONS), name="policy", simplex=True)
    steps = hc.einsum("sa,sat->st", pi, MOVES[:kept, :, :kept])
    often = hc.solve(np.eye(kept) - steps.T, START[:kept])
    price = COST[:kept] + 0.1
    problem = hc.Problem(hc.Minimize(hc.sum(price * hc.reshape(often, (kept, 1)) * pi)))
    value = problem.solve()
    ahead = np.zeros(kept)
    for _ in range(2000):
        ahead = (price + MOVES[:kept, :, :kept] @ ahead).min(axis=1)
    assert value == pytest.approx(START[:kept] @ ahead, rel=1e-7)
    assert problem.status == "optimal"
