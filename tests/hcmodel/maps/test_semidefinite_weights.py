"""Cost matrices that semidefinite weights keep definite, against the solutions of Riccati's equation.

`loop_weights` derives it: the kernel of X is a subspace that the plant keeps and that no weight sees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.linalg import (
    expm,
    solve_continuous_are,
    solve_discrete_are,
    solve_discrete_lyapunov,
)

import hcmodel as hc
from hcmodel.maps.matrix_algebra.loop_weights import is_observable
from hcmodel.reductions.forms import Forms
from tests.extent import pairs
from tests.proven import is_proven

N, M = 3, 2


def plant(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A, B, the weight Q of one output, R, and the weight N of Kᵀ N + Nᵀ K."""
    generator = np.random.default_rng(seed)
    A, B = generator.normal(size=(N, N)), generator.normal(size=(N, M))
    output = generator.normal(size=(1, N))
    root = generator.normal(size=(M, M))
    R = root @ root.T + 0.1 * np.eye(M)
    return A, B, output.T @ output, R, 0.3 * generator.normal(size=(M, 1)) @ output


def variables() -> tuple[hc.Variable, hc.Variable]:
    return hc.Variable((N, N), PSD=True, name="X"), hc.Variable((M, N), name="K")


def near_misses(problem: hc.Problem) -> tuple[str, ...] | None:
    """What is in the way of a proof; None where there is one."""
    found = Forms(problem.model).discovery
    return None if found.substitution is not None else found.near_misses


def flow(X: Any, K: Any, seed: int, discrete: bool) -> Any:
    A, B, Q, R, _ = plant(seed)
    F = A + B @ K
    moved = F.T @ X @ F - X if discrete else F.T @ X + X @ F
    return moved + Q + K.T @ R @ K


def cost(seed: int, discrete: bool) -> float:
    A, B, Q, R, _ = plant(seed)
    solve = solve_discrete_are if discrete else solve_continuous_are
    return float(np.trace(solve(A, B, Q, R)))


KINDS: dict[str, Callable[[Any], Any]] = {
    "equation": lambda a: a == 0,
    "inequality": lambda a: a << 0,
}


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize(("kind", "seed"), pairs(KINDS, range(3)))
def test_the_weight_of_one_output_is_enough(kind: str, seed: int, discrete: bool) -> None:
    X, K = variables()
    problem = hc.Problem(hc.Minimize(hc.trace(X)), [KINDS[kind](flow(X, K, seed, discrete))])
    assert problem.solve() == pytest.approx(cost(seed, discrete), rel=1e-6)
    assert problem.status == "optimal"
    assert is_proven(problem)


def test_a_weight_between_states_and_inputs() -> None:
    """Then Q − Nᵀ R⁻¹ N and A − B R⁻¹ N count."""
    A, B, Q, R, N_ = plant(2)
    both = Q + N_.T @ np.linalg.solve(R, N_)
    X, K = variables()
    row = flow(X, K, 2, False) - Q + both + K.T @ N_ + N_.T @ K << 0
    problem = hc.Problem(hc.Minimize(hc.trace(X)), [row])
    exact = solve_continuous_are(A, B, both, R, s=N_.T)
    assert problem.solve() == pytest.approx(float(np.trace(exact)), rel=1e-6)
    assert problem.status == "optimal"


def test_a_short_step_in_discrete_time() -> None:
    """A is near the unit matrix, which shows nothing, but the rest of it does."""
    step = 0.1
    drift, entering = np.array([[1.0, step], [0.0, 1.0]]), np.array([[step**2 / 2], [step]])
    X, K = hc.Variable((2, 2), PSD=True, name="X"), hc.Variable((1, 2), name="K")
    F, Q = drift + entering @ K, np.diag([1.0, 0.0])
    problem = hc.Problem(hc.Minimize(hc.trace(X)), [F.T @ X @ F - X + Q + K.T @ K << 0])
    exact = solve_discrete_are(drift, entering, Q, np.eye(1))
    assert problem.solve() == pytest.approx(float(np.trace(exact)), rel=1e-6)
    assert problem.status == "optimal"


@pytest.mark.parametrize("copies", [1, 2])
def test_block_matrices(copies: int) -> None:
    """With Kᵀ beside the states, and in discrete time with the states twice."""
    A, B, Q, _, _ = plant(2)
    X, K = variables()
    F, unit = A + B @ K, np.eye(M)
    if copies == 1:
        row = hc.bmat([[F.T @ X + X @ F + Q, K.T], [K, -unit]]) << 0
        exact = solve_continuous_are(A, B, Q, unit)
    else:
        none = np.zeros((N, M))
        row = hc.bmat([[X - Q, F.T @ X, K.T], [X @ F, X, none], [K, none.T, unit]]) >> 0
        exact = solve_discrete_are(A, B, Q, unit)
    problem = hc.Problem(hc.Minimize(hc.trace(X)), [row])
    assert problem.solve() == pytest.approx(float(np.trace(exact)), rel=1e-6)
    assert problem.status == "optimal"


def test_noise_that_is_proportional_to_the_state() -> None:
    """X is that of the generalised Riccati equation, whose gain is iterated (value iteration)."""
    A, B, Q, R, _ = plant(0)
    A, size = 0.5 * A, 0.3 * np.eye(N)
    X, K = variables()
    F = A + B @ K
    row = F.T @ X @ F + size.T @ X @ size - X + Q + K.T @ R @ K << 0
    problem = hc.Problem(hc.Minimize(hc.trace(X)), [row])
    best = np.zeros((N, N))
    for _ in range(2000):
        gain = -np.linalg.solve(R + B.T @ best @ B, B.T @ best @ A)
        closed = A + B @ gain
        best = closed.T @ best @ closed + size.T @ best @ size + Q + gain.T @ R @ gain
    assert problem.solve() == pytest.approx(float(np.trace(best)), rel=1e-6)
    assert problem.status == "optimal"


# ---- what the weights do not show


def hidden(kind: str, discrete: bool, Q: Any, R: Any, drift: Any, entering: Any) -> hc.Problem:
    X, K = hc.Variable((2, 2), PSD=True, name="X"), hc.Variable((entering.shape[1], 2), name="K")
    F = drift + entering @ K
    moved = F.T @ X @ F - X if discrete else F.T @ X + X @ F
    return hc.Problem(hc.Minimize(hc.trace(X)), [KINDS[kind](moved + Q + K.T @ R @ K)])


NOT_SHOWN: dict[str, tuple[Any, ...]] = {
    "an unstable state": (np.diag([0.0, 1.0]), np.eye(1), np.diag([1.5, -0.5]), np.ones((2, 1))),
    "a stable state": (np.diag([0.0, 1.0]), np.eye(1), np.diag([-0.5, 1.5]), np.ones((2, 1))),
    "states that are alike": (np.ones((2, 2)), np.eye(1), 1.2 * np.eye(2), np.ones((2, 1))),
    "an input without a weight": (
        np.diag([1.0, 0.0]),
        np.diag([1.0, 0.0]),
        np.array([[0.0, 1.0], [2.0, -1.0]]),
        np.eye(2),
    ),
}


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NOT_SHOWN)
def test_a_matrix_that_may_be_singular_is_not_claimed(name: str, kind: str, discrete: bool) -> None:
    found = near_misses(hidden(kind, discrete, *NOT_SHOWN[name]))
    assert any("X may be singular" in each for each in found or ())


def test_there_are_singular_solutions_where_a_state_is_not_shown() -> None:
    """X = diag(0, x) where the first state grows: less than half of the cost of Riccati."""
    Q, R, drift, entering = NOT_SHOWN["an unstable state"]
    left = float(solve_discrete_lyapunov(drift[1:, 1:].T, Q[1:, 1:])[0, 0])
    X, K = np.diag([0.0, left]), np.zeros((1, 2))
    F = drift + entering @ K
    assert np.linalg.eigvalsh(F.T @ X @ F - X + Q + K.T @ R @ K).max() <= 1e-12
    assert left < np.trace(solve_discrete_are(drift, entering, Q + 1e-9 * np.eye(2), R)) / 2


# ---- observability


@pytest.mark.parametrize("seed", range(5))
def test_subspaces_that_are_not_observed_are_found_in_any_basis(seed: int) -> None:
    generator = np.random.default_rng(seed)
    whole = generator.normal(size=(5, 5))
    turn = np.linalg.qr(generator.normal(size=(5, 5)))[0]
    output = generator.normal(size=(1, 5))
    assert is_observable(whole, output.T @ output, float(np.linalg.norm(whole)))
    whole[:3, 3:], output[0, 3:] = 0.0, 0.0  # the last two states are not observed
    flow, row = turn @ whole @ turn.T, output @ turn.T
    assert not is_observable(flow, row.T @ row, float(np.linalg.norm(flow)))


def test_rounding_shows_no_state() -> None:
    """A multiple of the unit matrix up to rounding keeps all subspaces."""
    noise = 1e-17 * np.random.default_rng(0).normal(size=(3, 3))
    assert not is_observable(np.eye(3) / 10 + noise, np.diag([1.0, 0.0, 0.0]), 0.3)


def test_a_chain_of_integrators_is_observed_from_its_end_in_short_steps() -> None:
    for order in (2, 3, 4):
        step = expm(0.1 * np.eye(order, k=1))
        first, last = (np.diag(np.eye(order)[place]) for place in (0, -1))
        assert is_observable(step, first, float(np.linalg.norm(step)))
        assert not is_observable(step, last, float(np.linalg.norm(step)))
