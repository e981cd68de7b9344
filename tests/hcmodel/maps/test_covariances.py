"""Covariances that gains propagate from stage to stage, written as equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import hcmodel as hc
from hcmodel.reductions.forms import Forms
from tests.extent import pairs

FloatArray = np.ndarray


class Plant:
    """A random plant with other matrices at each stage."""

    def __init__(self, states: int, inputs: int, stages: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.states, self.inputs, self.stages = states, inputs, stages
        self.A = rng.normal(size=(stages, states, states))
        self.B = rng.normal(size=(stages, states, inputs))
        root = rng.normal(size=(states, states))
        self.W, self.begin = 0.1 * root @ root.T + 0.01 * np.eye(states), np.eye(states) + 0.3
        self.Q, self.R = np.eye(states) + root.T @ root, np.eye(inputs)

    def gains(self) -> list[hc.Variable]:
        return [hc.Variable((self.inputs, self.states), name=f"K{t}") for t in range(self.stages)]

    def covariances(self) -> list[hc.Variable]:
        shape = (self.states, self.states)
        return [hc.Variable(shape, name=f"S{t + 1}", PSD=True) for t in range(self.stages)]

    def next(self, t: int, K: Any, S: Any) -> Any:
        closed = self.A[t] + self.B[t] @ K
        return closed @ S @ closed.T + self.W

    def cost(self, K: list[Any], S: list[Any]) -> Any:
        running = sum(hc.trace((self.Q + k.T @ self.R @ k) @ s) for k, s in zip(K, S, strict=False))
        return running + hc.trace(self.Q @ S[-1])

    def best(self) -> float:
        """By Riccati's recursion, backwards."""
        X, value = self.Q, 0.0
        for A, B in zip(self.A[::-1], self.B[::-1], strict=True):
            value += float(np.trace(X @ self.W))
            gain = -np.linalg.solve(self.R + B.T @ X @ B, B.T @ X @ A)
            closed = A + B @ gain
            X = self.Q + gain.T @ self.R @ gain + closed.T @ X @ closed
        return value + float(np.trace(X @ self.begin))


def as_equations(plant: Plant) -> hc.Problem:
    K, S = plant.gains(), [plant.begin, *plant.covariances()]
    rows = [S[t + 1] == plant.next(t, K[t], S[t]) for t in range(plant.stages)]
    return hc.Problem(hc.Minimize(plant.cost(K, S)), rows)


def with_the_first_as_variable(plant: Plant) -> hc.Problem:
    K, S = plant.gains(), plant.covariances()
    first = hc.Variable((plant.states, plant.states), name="S0", PSD=True)
    S = [first, *S]
    rows = [first == plant.begin]
    rows += [plant.next(t, K[t], S[t]) - S[t + 1] == 0 for t in reversed(range(plant.stages))]
    return hc.Problem(hc.Minimize(plant.cost(K, S)), rows)


def with_transposed_gains(plant: Plant) -> hc.Problem:
    K = [hc.Variable((plant.states, plant.inputs), name=f"L{t}").T for t in range(plant.stages)]
    S = [plant.begin, *plant.covariances()]
    rows = [2 * S[t + 1] == 2 * plant.next(t, -K[t], S[t]) for t in range(plant.stages)]
    return hc.Problem(hc.Minimize(plant.cost(K, S)), rows)


def as_inequalities(plant: Plant) -> hc.Problem:
    K, S = plant.gains(), [plant.begin, *plant.covariances()]
    rows = [S[t + 1] >> plant.next(t, K[t], S[t]) for t in range(plant.stages)]
    return hc.Problem(hc.Minimize(plant.cost(K, S)), rows)


NOTATIONS: dict[str, Callable[[Plant], hc.Problem]] = {
    each.__name__: each
    for each in (as_equations, with_the_first_as_variable, with_transposed_gains, as_inequalities)
}


@pytest.mark.parametrize(
    ("sizes", "name"), pairs([(2, 1, 2), (3, 2, 3), (1, 1, 6)], NOTATIONS), ids=str
)
def test_finite_horizons_have_the_cost_of_riccati(name: str, sizes: tuple[int, int, int]) -> None:
    plant = Plant(*sizes)
    problem = NOTATIONS[name](plant)
    assert problem.solve() == pytest.approx(plant.best(), rel=1e-7)
    assert problem.status == "optimal"


def test_covariances_are_those_of_the_gains() -> None:
    plant = Plant(2, 1, 4, seed=3)
    problem = as_equations(plant)
    problem.solve()
    point, S = problem.solution.point, plant.begin
    for t in range(plant.stages):
        S = plant.next(t, point[f"K{t}"], S)
        np.testing.assert_allclose(point[f"S{t + 1}"], S, rtol=1e-9)


def reference(plant: Plant, *, aim: FloatArray | None = None, energy: float | None = None) -> float:
    """The semidefinite program in S and Y = K S."""
    n, m = plant.states, plant.inputs
    S = [plant.begin, *(cp.Variable((n, n), PSD=True) for _ in range(plant.stages))]
    Y = [cp.Variable((m, n)) for _ in range(plant.stages)]
    Z = [cp.Variable((m, m), PSD=True) for _ in range(plant.stages)]
    rows = []
    for t in range(plant.stages):
        moved = plant.A[t] @ S[t] + plant.B[t] @ Y[t]
        rows.append(cp.bmat([[S[t + 1] - plant.W, moved], [moved.T, S[t]]]) >> 0)
        rows.append(cp.bmat([[Z[t], Y[t]], [Y[t].T, S[t]]]) >> 0)
    if aim is not None:
        rows.append(S[-1] << aim)
    if energy is not None:
        rows.append(sum(cp.trace(z) for z in Z) <= energy)
    cost = sum(cp.trace(plant.Q @ s) for s in S)
    if energy is None:
        cost += sum(cp.trace(plant.R @ z) for z in Z)
    problem = cp.Problem(cp.Minimize(cost), rows)
    return float(problem.solve(solver=cp.CLARABEL))


def test_a_bound_on_the_last_covariance_is_kept() -> None:
    plant = Plant(2, 1, 3, seed=1)
    free = as_equations(plant)
    free.solve()
    aim = 0.6 * free.solution.point["S3"] + 0.5 * plant.W
    K, S = plant.gains(), [plant.begin, *plant.covariances()]
    rows = [S[t + 1] == plant.next(t, K[t], S[t]) for t in range(plant.stages)]
    problem = hc.Problem(hc.Minimize(plant.cost(K, S)), [*rows, S[-1] << aim])
    assert problem.solve() == pytest.approx(reference(plant, aim=aim), rel=1e-5)
    assert problem.status == "optimal"
    assert problem.value > free.value * (1 + 1e-3)


def test_energy_that_is_limited_is_a_row_that_grows() -> None:
    plant = Plant(2, 1, 3, seed=2)
    K, S = plant.gains(), [plant.begin, *plant.covariances()]
    rows = [S[t + 1] == plant.next(t, K[t], S[t]) for t in range(plant.stages)]
    used = sum(hc.trace(k @ s @ k.T) for k, s in zip(K, S, strict=False))
    free = hc.Problem(hc.Minimize(sum(hc.trace(plant.Q @ s) for s in S)), [*rows, used <= 2.0])
    assert free.solve() == pytest.approx(reference(plant, energy=2.0), rel=1e-5)
    assert free.status == "optimal"


REFUSED: dict[str, Callable[[list[Any], list[Any]], tuple[Any, list[Any]]]] = {
    "an objective that falls": lambda K, S: (hc.sum_squares(K[1]) - hc.trace(S[-1]), []),
    "a last covariance that is given": lambda K, S: (hc.trace(S[1]), [S[-1] == 3 * np.eye(2)]),
    "a covariance that is large enough": lambda K, S: (
        hc.trace(K[1] @ S[1] @ K[1].T),
        [S[-1][0, 0] >= 50.0],
    ),
    "a function of a covariance": lambda K, S: (hc.trace(S[-1]) - hc.logdet(S[1]), []),
}


@pytest.mark.parametrize("name", REFUSED)
def test_where_covariances_may_be_too_small_nothing_is_claimed(name: str) -> None:
    plant = Plant(2, 1, 2, seed=4)
    K, S = plant.gains(), [plant.begin, *plant.covariances()]
    rows = [S[t + 1] == plant.next(t, K[t], S[t]) for t in range(plant.stages)]
    objective, more = REFUSED[name](K, S)
    found = Forms(hc.Problem(hc.Minimize(objective), [*rows, *more]).model).discovery
    assert found.substitution is None
    assert any(each.startswith("covariances map") for each in found.near_misses)


def test_noise_that_is_negative_is_none() -> None:
    plant = Plant(2, 1, 2)
    plant.W = -plant.W
    assert Forms(as_equations(plant).model).discovery.substitution is None
