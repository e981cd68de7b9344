"""Designs of experiments by entries of the inverse of the information matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import hcmodel as hc
from tests.extent import several
from tests.proven import is_proven

Goal = Callable[[Any], Any]
C = np.array([1.0, 2.0, -1.0])
GOALS: dict[str, tuple[Goal, Goal]] = {
    # as written, and the same of numbers; the first ones ended at values such as -1e14
    "an entry": (lambda M: hc.inv(M)[1, 1], lambda S: S[1, 1]),
    "the sum of the diagonal": (lambda M: hc.sum(hc.diag(hc.inv(M))), np.trace),
    "the largest variance": (lambda M: hc.max(hc.diag(hc.inv(M))), lambda S: S.diagonal().max()),
    "a contrast by entries": (
        lambda M: hc.inv(M)[0, 0] + hc.inv(M)[1, 1] - 2 * hc.inv(M)[0, 1],
        lambda S: S[0, 0] + S[1, 1] - 2 * S[0, 1],
    ),
    "a block": (lambda M: hc.trace(hc.inv(M)[:2, :2]), lambda S: S[0, 0] + S[1, 1]),
    "c-optimal": (lambda M: C.T @ hc.inv(M) @ C, lambda S: C @ S @ C),
    "two goals": (
        lambda M: hc.inv(M)[0, 0] + 0.5 * hc.max(hc.diag(hc.inv(M))),
        lambda S: S[0, 0] + 0.5 * S.diagonal().max(),
    ),
}


def design(seed: int) -> tuple[Any, hc.Variable, Any]:
    """Regressors, weights and the information matrix."""
    rows = np.random.default_rng(seed).normal(size=(8, 3))
    w = hc.Variable(8, name="w", simplex=True)
    return rows, w, rows.T @ hc.diag(w) @ rows


def least_of_random(rows: Any, value: Goal, centre: Any, seed: int) -> float:
    """The least value at random weights, many of them near given ones."""
    generator = np.random.default_rng(seed)
    weights = generator.dirichlet(np.full(8, 0.5), size=2000)
    weights = centre + generator.choice([1.0, 0.1, 0.01], size=(2000, 1)) * (weights - centre)
    inverses = np.linalg.inv(np.einsum("ki,ia,ib->kab", weights, rows, rows))
    return min(float(value(each)) for each in inverses)


@pytest.mark.parametrize("name", GOALS)
@pytest.mark.parametrize("seed", range(several(1, 5)))
def test_entries_of_an_inverse_are_proven(name: str, seed: int) -> None:
    goal, value = GOALS[name]
    rows, w, M = design(seed)
    problem = hc.Problem(hc.Minimize(goal(M)))
    best = problem.solve()
    assert problem.status == "optimal"
    found = least_of_random(rows, value, w.value, seed)
    assert best <= found * (1 + 1e-6)
    assert best >= 0.9 * found


def test_rows_with_a_diagonal_are_proven() -> None:
    rows = design(0)[0]
    w = hc.Variable(8, name="w", nonneg=True)
    variances = hc.diag(hc.inv(rows.T @ hc.diag(w) @ rows)) <= np.array([1.0, 2.0, 3.0])
    problem = hc.Problem(hc.Minimize(hc.sum(w)), [variances])
    problem.solve()
    assert problem.status == "optimal"
    # twice the observations halve all variances: the multipliers are the value of a unit
    assert float(np.array([1.0, 2.0, 3.0]) @ variances.dual_value) == pytest.approx(
        problem.value, rel=1e-4
    )


@pytest.mark.parametrize("entry", [(0, 1), (1, 0)])
def test_an_entry_beside_the_diagonal_is_not_taken_for_convex(entry: tuple[int, int]) -> None:
    rows, w = design(0)[0][:4], hc.Variable(4, name="w", simplex=True)
    M = rows.T @ hc.diag(w) @ rows + np.eye(3)
    assert not is_proven(hc.Problem(hc.Minimize(hc.inv(M)[entry])))


@pytest.mark.parametrize("seed", range(several(2, 12)))
def test_nothing_false_is_claimed_of_other_matrices(seed: int) -> None:
    """With coefficients of both signs the matrix may be indefinite, and its inverse anything."""
    generator = np.random.default_rng(seed)
    parts = generator.normal(size=(2, 2, 2))
    parts = parts + parts.transpose(0, 2, 1)
    x = hc.Variable(2, name="x", bounds=(-1, 1))
    constant = float(generator.choice([0.5, 2.0, 8.0])) * np.eye(2)
    M = constant + x[0] * parts[0] + x[1] * parts[1]
    problem = hc.Problem(hc.Minimize(hc.inv(M)[0, 0] + 0.1 * hc.sum(x)))
    problem.solve()
    assert problem.solution is not None
    bound = problem.solution.certificate.lower_bound  # None where nothing is certified
    points = generator.uniform(-1, 1, size=(3000, 2))
    inverses = np.linalg.inv(constant + np.tensordot(points, parts, axes=1))
    found = np.min(inverses[:, 0, 0] + 0.1 * points.sum(axis=1))
    assert (-np.inf if bound is None else bound) <= found + 1e-6


# ---- products with entries of an inverse

PLANT, INPUT = np.array([[0.0, 1.0], [1.0, 0.2]]), np.array([[0.0], [1.0]])
COSTS: dict[str, Callable[[Any, Any], Any]] = {
    "an inverse": lambda P, Y: hc.trace(Y @ hc.inv(P) @ Y.T),
    "by columns": lambda P, Y: hc.sum(hc.diag(Y @ hc.inv(P) @ Y.T)),
    "a system of equations": lambda P, Y: hc.trace(Y @ hc.solve(P, Y.T)),
    "a fraction": lambda P, Y: hc.matrix_frac(Y.T, P),
}


@pytest.mark.parametrize("name", COSTS)
def test_the_cost_of_inputs_with_an_inverse_is_proven(name: str) -> None:
    P, Y = hc.Variable((2, 2), name="P", PSD=True), hc.Variable((1, 2), name="Y")
    flow = PLANT @ P + INPUT @ Y
    problem = hc.Problem(
        hc.Minimize(hc.trace(P) + COSTS[name](P, Y)), [flow + flow.T + np.eye(2) == 0]
    )
    best = scipy.linalg.solve_continuous_are(PLANT, INPUT, np.eye(2), np.eye(1))
    assert problem.solve() == pytest.approx(np.trace(best), rel=1e-6)
    assert problem.status == "optimal"


def test_other_products_with_an_inverse_are_not_claimed() -> None:
    """Products of the entries with different signs, and the inverse of an indefinite matrix."""
    P, Y = hc.Variable((2, 2), name="P", PSD=True), hc.Variable((2, 2), name="Y", bounds=(-2, 2))
    S = hc.Variable((2, 2), name="S", symmetric=True)
    sign = np.diag([1.0, -1.0])
    for matrix, cost in (
        (P, hc.trace(sign @ Y @ hc.inv(P) @ Y.T)),
        (P, hc.sum(Y * (hc.inv(P) @ Y)) - 3 * hc.inv(P)[0, 0] * Y[0, 0] ** 2),
        (S, hc.trace(Y @ hc.inv(S) @ Y.T)),
    ):
        rows = [matrix << 2 * np.eye(2), hc.sum(Y) == 1]
        assert not is_proven(hc.Problem(hc.Minimize(cost + hc.trace(matrix)), rows))
