"""Regulators whose products K P and K P Kᵀ have names before anything is multiplied out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import hcmodel as hc
from hcmodel.maps import matrix_product
from hcmodel.maps.matrix_algebra import matrix_inequalities
from hcmodel.maps.matrix_algebra.named_products import named
from hcmodel.reductions.forms import Forms


def plant(states: int, inputs: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    drift = 1.1 * generator.normal(size=(states, states)) / np.sqrt(states)
    return drift, generator.normal(size=(states, inputs))


def variables(states: int, inputs: int) -> tuple[hc.Variable, hc.Variable]:
    P = hc.Variable((states, states), name="P", PSD=(1e-3, 1e4))
    return P, hc.Variable((inputs, states), name="K")


def cost(P: Any, K: Any) -> Any:
    return hc.trace((np.eye(P.shape[0]) + K.T @ K) @ P)


def names(objective: Any, rows: list[Any]) -> list[Any]:
    return list(named(hc.Problem(hc.Minimize(objective), rows).model))


@pytest.mark.parametrize("form", [">>", "=="])
def test_a_discrete_regulator_of_twenty_states_is_proven_and_solved(form: str) -> None:
    """Against the discrete Riccati equation; multiplied out it has three million terms."""
    A, B = plant(20, 4)
    P, K = variables(20, 4)
    F = A + B @ K
    after = F @ P @ F.T + np.eye(20)
    problem = hc.Problem(hc.Minimize(cost(P, K)), [P >> after if form == ">>" else after == P])
    problem.solve()
    expected = np.trace(scipy.linalg.solve_discrete_are(A, B, np.eye(20), np.eye(4)))
    assert problem.status == "optimal"
    assert problem.solution.certificate.conditions == ("proven convex in P, K @ P",)
    assert problem.value == pytest.approx(expected, rel=1e-7)
    assert np.abs(np.linalg.eigvals(A + B @ K.value)).max() < 1


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("discrete", [False, True])
def test_both_ways_prove_the_same(
    discrete: bool, turned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values and multipliers with names for the products, and with all entries multiplied out."""
    A, B = plant(3, 2, seed=1)
    found = []
    for ways in ("both", "entries"):
        if ways == "entries":
            monkeypatch.setattr(matrix_product, "named", lambda model: iter(()))
        P, K = variables(3, 2)
        gain = hc.Variable((3, 2), name="K").T if turned else K
        F = A + 2 * B @ gain
        row = P >> F @ P @ F.T + np.eye(3) if discrete else F @ P + P @ F.T + np.eye(3) == 0
        row = row.named("plant")
        problem = hc.Problem(hc.Minimize(cost(P, gain)), [row, hc.trace(P) <= 1e3])
        assert list(named(problem.model))
        problem.solve(tol=1e-8)
        assert problem.status == "optimal"
        found.append((problem.value, row.dual_value))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-8)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-4, atol=1e-5)


def test_blocks_with_the_drift_on_their_side_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    A, B = plant(4, 2, seed=2)
    found = []
    for few in (0, 10**9):
        monkeypatch.setattr(matrix_inequalities, "FEW_TERMS", few)
        P, K = variables(4, 2)
        F = A + B @ K
        row = (P >> F @ P @ F.T + np.eye(4)).named("plant")
        problem = hc.Problem(hc.Minimize(cost(P, K)), [row])
        problem.solve(tol=1e-8)
        found.append(
            (problem.value, row.dual_value, K.value, problem.get_problem_data().program.sparse.nnz)
        )
    assert found[0][3] < found[1][3]
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-8)
    for one, two in zip(found[0][1:3], found[1][1:3], strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-4)


NOT_NAMED: dict[str, Callable[[Any, Any], Any]] = {
    "a gain alone": lambda P, K: cost(P, K) + hc.sum(K),
    "a matrix between them": lambda P, K: (
        cost(P, K) + hc.trace(K @ np.diag([1.0, 2, 3]) @ P)
        if K.shape[0] == 3
        else cost(P, K) + hc.sum(hc.square(K))
    ),
    "a function": lambda P, K: cost(P, K) + hc.exp(P[0, 0]),
}


@pytest.mark.parametrize("name", NOT_NAMED)
def test_other_models_are_multiplied_out(name: str) -> None:
    P, K = variables(3, 3)
    assert names(cost(P, K), [])
    assert not names(NOT_NAMED[name](P, K), [])


def test_two_gains_are_multiplied_out() -> None:
    P, K = variables(3, 2)
    other = hc.Variable((2, 3), name="L")
    assert not names(cost(P, K) + hc.trace(other @ P @ other.T), [])


def test_an_equation_stays_one_where_a_larger_covariance_would_be_better(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a floor under a variance, or a reward for one, P ⪰ F P Fᵀ + W has a lower optimum."""
    monkeypatch.setattr(matrix_product.Product, "propose", lambda self, model: iter(()))
    A, B = plant(3, 2)
    for floor, weight, proven in ((False, 1.0, True), (True, 1.0, False), (False, -1.0, False)):
        P, K = variables(3, 2)
        F = A + B @ K
        rows = [F @ P @ F.T + np.eye(3) == P, *([P[0, 0] >= 5] if floor else [])]
        problem = hc.Problem(hc.Minimize(weight * P[1, 1] + hc.trace(K @ P @ K.T)), rows)
        assert list(named(problem.model))
        assert (Forms(problem.model).discovery.substitution is not None) == proven
