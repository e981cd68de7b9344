"""Precision and covariance as two unknowns, and functions of diagonal matrices, against closed forms."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import hcmodel as hc
from tests.extent import pairs
from tests.proven import is_proven

GENERATOR = np.random.default_rng(2)
DATA = GENERATOR.normal(size=(20, 3))
SAMPLE = np.cov(DATA.T)
LIKELIHOOD = float(np.linalg.slogdet(SAMPLE)[1] + 3)
CLOSE = 1e-7

ROWS: dict[str, Any] = {
    "T S": lambda T, S: np.eye(3) == T @ S,
    "S T": lambda T, S: np.eye(3) == S @ T,
    "times 2": lambda T, S: 2 * np.eye(3) == 2 * S @ T,
    "difference": lambda T, S: T @ S - np.eye(3) == 0,
}
KINDS: dict[str, dict[str, Any]] = {
    "semidefinite": {"PSD": True},
    "symmetric": {"symmetric": True},
    "plain": {},
}


@pytest.mark.parametrize(("row", "kind"), sorted({*pairs(ROWS, KINDS), *pairs(["S T"], KINDS)}))
def test_a_covariance_and_its_inverse(row: str, kind: str) -> None:
    S, T = hc.Variable((3, 3), name="S", PSD=True), hc.Variable((3, 3), name="T", **KINDS[kind])
    problem = hc.Problem(hc.Minimize(hc.logdet(S) + hc.trace(SAMPLE @ T)), [ROWS[row](T, S)])
    assert problem.is_hidden_convex()
    assert problem.solve() == pytest.approx(LIKELIHOOD, rel=CLOSE)
    assert problem.status == "optimal"
    assert T.value @ S.value == pytest.approx(np.eye(3), abs=1e-6)
    assert S.value == pytest.approx(SAMPLE, rel=1e-3, abs=1e-4)


def test_rows_in_both_matrices() -> None:
    """Zeros of the precision and a bound of the covariance are both convex in the precision."""
    S, T = (hc.Variable((3, 3), name=name, PSD=True) for name in "ST")
    rows = [np.eye(3) == T @ S, T[0, 1] == 0, hc.trace(S) <= 0.95 * np.trace(SAMPLE)]
    problem = hc.Problem(hc.Minimize(hc.logdet(S) + hc.trace(SAMPLE @ T)), rows)
    U = cp.Variable((3, 3), PSD=True)
    peer = cp.Problem(
        cp.Minimize(-cp.log_det(U) + cp.trace(SAMPLE @ U)),
        [U[0, 1] == 0, cp.matrix_frac(np.eye(3), U) <= 0.95 * np.trace(SAMPLE)],
    )
    assert problem.solve() == pytest.approx(peer.solve(solver=cp.CLARABEL), rel=1e-5)
    assert problem.status == "optimal"


WRONG: dict[str, Any] = {
    "another matrix": lambda T, S: np.diag([1.0, 2.0, 3.0]) == T @ S,
    "an entry is different": lambda T, S: T @ S + 0.1 * hc.outer(S[0], np.eye(3)[0]) == np.eye(3),
    "a product of three": lambda T, S: np.eye(3) == T @ S @ T,
}


@pytest.mark.parametrize("row", WRONG.values(), ids=WRONG)
def test_other_rows_are_not_claimed(row: Any) -> None:
    S, T = hc.Variable((3, 3), name="S", PSD=True), hc.Variable((3, 3), name="T")
    problem = hc.Problem(hc.Minimize(hc.logdet(S) + hc.trace(SAMPLE @ T)), [row(T, S)])
    assert not is_proven(problem)


def test_an_inverse_with_bounds_is_left_alone() -> None:
    S, T = hc.Variable((3, 3), name="S", PSD=True), hc.Variable((3, 3), name="T", bounds=(-1, 0.5))
    rows = [np.eye(3) == T @ S]
    assert not is_proven(hc.Problem(hc.Minimize(hc.logdet(S) + hc.trace(SAMPLE @ T)), rows))


DIAGONAL: dict[str, Any] = {
    "logdet": lambda D: hc.logdet(D) + hc.trace(SAMPLE @ hc.inv(D)),
    "log of det": lambda D: hc.log(hc.det(D)) + hc.trace(hc.inv(D) @ SAMPLE),
}


@pytest.mark.parametrize("cost", DIAGONAL.values(), ids=DIAGONAL)
def test_diagonal_covariances(cost: Any) -> None:
    d = hc.Variable(3, name="d", pos=True)
    problem = hc.Problem(hc.Minimize(cost(hc.diag(d))))
    assert problem.solve() == pytest.approx(float(np.log(np.diag(SAMPLE)).sum() + 3), rel=CLOSE)
    assert problem.status == "optimal"


def test_means_and_diagonal_covariances() -> None:
    mean, d = hc.Variable(3, name="mean"), hc.Variable(3, name="d", pos=True)
    D, count = hc.diag(d), len(DATA)
    squares = sum((x - mean) @ hc.inv(D) @ (x - mean) for x in DATA)
    problem = hc.Problem(hc.Maximize(-count * hc.logdet(D) - squares))
    best = -count * (np.log(DATA.var(axis=0)).sum() + 3)
    assert problem.solve() == pytest.approx(float(best), rel=CLOSE)
    assert problem.status == "optimal"


LIKELIHOODS: dict[str, Any] = {
    "power": lambda S: hc.det(S) ** -0.5 * hc.exp(-0.5 * hc.trace(SAMPLE @ hc.inv(S))),
    "quotient": lambda S: hc.exp(-0.5 * hc.trace(SAMPLE @ hc.inv(S))) / hc.sqrt(hc.det(S)),
}


@pytest.mark.parametrize("likelihood", LIKELIHOODS.values(), ids=LIKELIHOODS)
def test_a_likelihood_is_maximised_by_its_logarithm(likelihood: Any) -> None:
    S = hc.Variable((3, 3), name="S", PSD=True)
    problem = hc.Problem(hc.Maximize(3 * likelihood(S) + 1))
    assert problem.solve() == pytest.approx(3 * np.exp(-LIKELIHOOD / 2) + 1, rel=CLOSE)
    assert problem.status == "optimal"
    assert S.value == pytest.approx(SAMPLE, rel=1e-3, abs=1e-4)
