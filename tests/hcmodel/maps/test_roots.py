"""Rows with roots of energies and variances, and levels in squares, against Riccati and LMIs."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.linalg

import hcmodel as hc
from tests.proven import is_proven

GENERATOR = np.random.default_rng(11)
N, M = 3, 2
A = GENERATOR.normal(size=(N, N))
B, C = GENERATOR.normal(size=(N, M)), GENERATOR.normal(size=(1, N))
Q, R, W = np.eye(N), np.diag([1.0, 2.0]), np.eye(N)
CONTINUOUS = float(np.trace(scipy.linalg.solve_continuous_are(A, B, Q, R) @ W))
DISCRETE = float(np.trace(scipy.linalg.solve_discrete_are(A, B, Q, R) @ W))
# How near the values of regulators come to those of Riccati's equation, and to those of CVXPY.
CLOSE, PEER = 1e-7, 1e-5


def variables() -> tuple[hc.Variable, hc.Variable]:
    return hc.Variable((N, N), name="P", PSD=True), hc.Variable((M, N), name="K")


def cost(P: Any, K: Any) -> Any:
    return hc.trace((Q + K.T @ R @ K) @ P)


def loop(P: Any, K: Any) -> Any:
    F = A + B @ K
    return F @ P + P @ F.T + W == 0


def by_hand(limit: Any) -> float:
    """The least cost with a row in P and Y = K P, by CVXPY."""
    P, Y = cp.Variable((N, N), symmetric=True), cp.Variable((M, N))
    Z = cp.Variable((M, M), symmetric=True)
    F = A @ P + B @ Y
    rows = [F + F.T + W == 0, cp.bmat([[Z, Y], [Y.T, P]]) >> 0, limit(P, Z)]
    problem = cp.Problem(cp.Minimize(cp.trace(Q @ P) + cp.trace(R @ Z)), rows)
    return float(problem.solve(solver=cp.CLARABEL))


def plain(limit: Any) -> float:
    """The largest that the limited quantity may be, a little below where it does not bind."""
    P, K = variables()
    hc.Problem(hc.Minimize(cost(P, K)), [loop(P, K)]).solve()
    return 0.9 * float(np.ravel(limit(P, K).value)[0])


LIMITS: dict[str, tuple[Any, Any]] = {
    "energy": (lambda P, K: hc.sqrt(hc.trace(K @ P @ K.T)), lambda P, Z: cp.trace(Z)),
    "variance": (lambda P, K: hc.sqrt(P[0, 0]), lambda P, Z: P[0, 0]),
    "output": (lambda P, K: hc.sqrt((C @ P @ C.T)[0, 0]), lambda P, Z: (C @ P @ C.T)[0, 0]),
}


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_a_limit_of_a_standard_deviation_that_binds(limit: tuple[Any, Any]) -> None:
    mine, theirs = limit
    most = plain(mine)
    best = by_hand(lambda P, Z: theirs(P, Z) <= most**2)
    for row in (
        lambda P, K: mine(P, K) <= most,
        lambda P, K: 3 * mine(P, K) - 1 <= 3 * most - 1,
        lambda P, K: most >= mine(P, K),
    ):
        P, K = variables()
        problem = hc.Problem(hc.Minimize(cost(P, K)), [loop(P, K), row(P, K)])
        assert problem.is_hidden_convex()
        assert problem.solve() == pytest.approx(best, rel=PEER)
        assert problem.status == "optimal"
        assert best > CONTINUOUS * 1.0001


def test_the_multiplier_is_that_of_the_row_with_the_root() -> None:
    """The derivative of the value by the limit, by central differences."""
    mine, _ = LIMITS["variance"]
    most, step = plain(mine), 1e-3

    def solved(limit: float) -> tuple[float, Any]:
        P, K = variables()
        row = mine(P, K) <= limit
        return hc.Problem(hc.Minimize(cost(P, K)), [loop(P, K), row]).solve(), row

    slope = (solved(most + step)[0] - solved(most - step)[0]) / (2 * step)
    assert float(solved(most)[1].dual_value) == pytest.approx(-slope, rel=1e-3)


LEVELS: dict[str, Any] = {
    "root": lambda P, K, s: hc.sqrt(cost(P, K)) <= s,
    "twice": lambda P, K, s: 2 * hc.sqrt(cost(P, K)) <= 2 * s,
    "square": lambda P, K, s: cost(P, K) <= s**2,
}


@pytest.mark.parametrize("row", LEVELS.values(), ids=LEVELS)
def test_a_level_of_which_the_square_counts(row: Any) -> None:
    for discrete, best in ((False, CONTINUOUS), (True, DISCRETE)):
        P, K = variables()
        s = hc.Variable(name="s", nonneg=True)
        F = A + B @ K
        equation = P == F @ P @ F.T + W if discrete else loop(P, K)
        problem = hc.Problem(hc.Minimize(3 * s + 1), [equation, row(P, K, s)])
        assert problem.solve() == pytest.approx(3 * best**0.5 + 1, rel=CLOSE)
        assert problem.status == "optimal"
        assert float(s.value) == pytest.approx(best**0.5, rel=1e-5)


def test_a_level_that_its_row_keeps_from_being_negative() -> None:
    P, K = variables()
    s = hc.Variable(name="s")
    problem = hc.Problem(hc.Minimize(s), [loop(P, K), hc.sqrt(cost(P, K)) <= s])
    assert problem.solve() == pytest.approx(CONTINUOUS**0.5, rel=CLOSE)
    assert problem.status == "optimal"


def test_the_language_and_the_norm_with_a_square() -> None:
    """H∞ of state feedback with γ² in the matrix, against the same with γ."""
    text = """param n, m
param A[n,n], B[n,m]
var P[n,n] symmetric in psd(1e-6)
var K[m,n]
var g >= 0
let F = A + B @ K
let Z = P + 0*P
minimize {0}
subject to
    lmi: vstack(hstack(F @ P + P @ F.T + eye(n), P), hstack(P, -{1}*eye(n))) << 0
"""
    data = {"n": N, "m": M, "A": A, "B": B}
    plain, squared = (hc.parse(text.format("g", level), data=data) for level in ("g", "g^2"))
    value = plain.solve()
    assert squared.solve() == pytest.approx(value**0.5, rel=PEER)
    assert squared.status == "optimal"


def wrong(P: Any, K: Any, s: Any) -> dict[str, tuple[Any, list[Any]]]:
    return {
        "a level in another row": (s, [hc.sqrt(cost(P, K)) <= s, s >= P[0, 0]]),
        "a level without a sign": (s, [cost(P, K) <= s**2]),
        "a sum of roots": (cost(P, K), [hc.sqrt(P[0, 0]) + hc.sqrt(P[1, 1]) <= 1.0]),
        "a root from below": (cost(P, K), [hc.sqrt(P[0, 0]) >= 5.0, hc.sqrt(cost(P, K)) <= 90.0]),
        "what may be negative": (cost(P, K), [hc.sqrt(P[0, 1]) <= 5.0]),
        "a weight that is indefinite": (
            cost(P, K),
            [hc.sqrt(P[0, 0] - (K @ P @ K.T)[0, 0]) <= 5.0],
        ),
    }


@pytest.mark.parametrize("kind", [*wrong(*variables(), hc.Variable())])
def test_what_is_not_convex_is_not_claimed(kind: str) -> None:
    P, K = variables()
    objective, rows = wrong(P, K, hc.Variable(name="s"))[kind]
    if kind == "a root from below":  # of a variance in discrete time, where the equation is relaxed
        F = A + B @ K
        rows = [P == F @ P @ F.T + W, *rows]
    else:
        rows = [loop(P, K), *rows]
    assert not is_proven(hc.Problem(hc.Minimize(objective), rows))


FROM_BELOW: dict[str, Any] = {
    "smallest eigenvalue": lambda P: hc.lambda_min(P) >= 1.5,
    "logdet": lambda P: hc.logdet(P) >= 3.0,
    "log": lambda P: hc.log(P[0, 0]) >= 2.0,
    "root": lambda P: hc.sqrt(P[0, 0]) >= 3.0,
    "largest eigenvalue of −P": lambda P: hc.lambda_max(np.eye(N) - P) <= -0.5,
}


@pytest.mark.parametrize("row", FROM_BELOW.values(), ids=FROM_BELOW)
def test_an_equality_is_not_relaxed_where_a_function_wants_a_larger_covariance(row: Any) -> None:
    """P == F P Fᵀ + W as ⪰ would have larger P: 23.4 in place of 39.9 for two states."""
    P, K = variables()
    F = A + B @ K
    problem = hc.Problem(hc.Minimize(cost(P, K)), [P == F @ P @ F.T + W, row(P)])
    assert not is_proven(problem)


FROM_ABOVE: dict[str, Any] = {
    "largest eigenvalue": lambda P: hc.lambda_max(2 * P) <= 1e4,
    "exp": lambda P: hc.exp(hc.trace(P) / 100) <= 1e6,
}


@pytest.mark.parametrize("row", FROM_ABOVE.values(), ids=FROM_ABOVE)
def test_functions_that_grow_with_the_covariance_leave_the_proof(row: Any) -> None:
    P, K = variables()
    F = A + B @ K
    problem = hc.Problem(hc.Minimize(cost(P, K)), [P == F @ P @ F.T + W, row(P)])
    assert problem.solve() == pytest.approx(DISCRETE, rel=CLOSE)
    assert problem.status == "optimal"
