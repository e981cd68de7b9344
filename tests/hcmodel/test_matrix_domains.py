"""Models over policies and matrices, against linear programs and Riccati equations."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from scipy.optimize import linprog

import hcmodel as hc

GAMMA = 0.9


def regulator(A: np.ndarray, B: np.ndarray) -> tuple[hc.Problem, hc.Variable, float]:
    """LQR in (P, K) with Q = R = W = I, from K = 0, and its optimal value tr X, by Riccati."""
    n, m = B.shape
    P = hc.Variable((n, n), name="P", PSD=(1e-3, 1e3), start=np.eye(n))
    K = hc.Variable((m, n), name="K", bounds=(-50, 50), start=np.zeros((m, n)))
    closed = A + B @ K
    lyapunov = closed @ P + P @ closed.T + np.eye(n)
    rows = lyapunov[np.triu_indices(n)] == 0
    problem = hc.Problem(hc.Minimize(hc.trace((np.eye(n) + K.T @ K) @ P)), [rows.named("lyapunov")])
    riccati = scipy.linalg.solve_continuous_are(A, B, np.eye(n), np.eye(m))
    return problem, K, float(np.trace(riccati))


@pytest.mark.parametrize("seed", range(3))
def test_an_unstable_plant_is_regulated_from_no_feedback_at_all(seed: int) -> None:
    generator = np.random.default_rng(seed)
    A, B = generator.normal(size=(3, 3)), generator.normal(size=(3, 2))
    assert np.linalg.eigvals(A).real.max() > 0
    problem, K, optimum = regulator(A, B)
    assert problem.solve("sbl-adals", max_calls=12_000) == pytest.approx(optimum, rel=1e-6)
    assert problem.solution is not None
    assert problem.solution.certificate.violation <= 1e-6
    assert K.value is not None
    assert np.linalg.eigvals(A + B @ K.value).real.max() < 0


def decision_process(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    transition = generator.dirichlet(0.3 * np.ones(6), size=(6, 3))
    return transition, generator.random((6, 3)), generator.random((6, 3)), np.full(6, 1 / 6)


def by_linear_program(seed: int, bound: float | None) -> tuple[float, float]:
    """The largest reward over occupancy measures, and the least cost."""
    transition, reward, cost, first = decision_process(seed)
    states, actions = reward.shape
    leaving = np.repeat(np.eye(states), actions, axis=1)
    arriving = transition.reshape(-1, states).T
    flow = {"A_eq": leaving - GAMMA * arriving, "b_eq": (1 - GAMMA) * first}
    least = linprog(cost.ravel(), **flow).fun
    limit = least if bound is None else bound
    best = linprog(-reward.ravel(), A_ub=cost.reshape(1, -1), b_ub=[limit + 1e-10], **flow)
    return -best.fun, least


def policy_problem(seed: int, bound: float) -> tuple[hc.Problem, hc.Variable]:
    transition, reward, cost, first = decision_process(seed)
    policy = hc.Variable(reward.shape, name="policy", simplex=True)
    step = hc.einsum("sa,sat->st", policy, transition)
    visits = (1 - GAMMA) * hc.solve(np.eye(6) - GAMMA * step.T, first)
    occupancy = hc.reshape(visits, (6, 1)) * policy
    capped = (hc.sum(cost * occupancy) <= bound).named("cost")
    return hc.Problem(hc.Maximize(hc.sum(reward * occupancy)), [capped]), policy


@pytest.mark.parametrize("share", [0.5, 0.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_policy_under_a_cost_reaches_the_linear_program(seed: int, share: float) -> None:
    # share 0 leaves no Slater point: the bound is the least cost that any policy achieves
    _, least = by_linear_program(seed, None)
    bound = least + share * 0.1
    optimum, _ = by_linear_program(seed, bound)
    problem, policy = policy_problem(seed, bound)
    assert problem.solve("sbl-adals") == pytest.approx(optimum, rel=1e-5)
    assert problem.solution is not None
    assert problem.solution.certificate.violation <= 1e-6
    assert policy.value is not None
    assert policy.value.sum(axis=1) == pytest.approx(np.ones(6), abs=1e-9)
    assert policy.value.min() >= 0


def test_a_symmetric_variable_is_stored_once_and_returned_whole() -> None:
    target = np.array([[1.0, 2.0], [2.0, -3.0]])
    P = hc.Variable((2, 2), name="P", PSD=True)
    problem = hc.Problem(hc.Minimize(hc.sum((P - target) ** 2)))
    problem.solve()
    values, vectors = np.linalg.eigh(target)
    nearest = (vectors * np.maximum(values, 0)) @ vectors.T  # Higham
    assert problem.canonical.layout.size == 3
    assert P.value == pytest.approx(nearest, abs=1e-5)


def test_domains_with_bounds_of_their_own_are_refused() -> None:
    p = hc.Variable(3, name="p", simplex=True, bounds=(0.2, 1))
    with pytest.raises(hc.ModelError, match="'p' is a simplex and has bounds of its own"):
        hc.Problem(hc.Minimize(hc.sum(p**2)))
    P = hc.Variable((2, 2), name="P", symmetric=True, bounds=(0, 1))
    with pytest.raises(hc.ModelError, match="'P' is symmetric and has bounds"):
        hc.Problem(hc.Minimize(hc.trace(P)))
