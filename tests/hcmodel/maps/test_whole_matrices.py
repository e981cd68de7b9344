"""Regulators that are written entry by entry: proven and solved as those written with matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import hcmodel as hc
from hcmodel.maps import whole_matrices
from tests import extent
from tests.proven import is_proven

GENERATOR = np.random.default_rng(3)
N, M = 3, 2
A = GENERATOR.normal(size=(N, N))
A *= 1.1 / np.abs(np.linalg.eigvals(A)).max()
B = GENERATOR.normal(size=(N, M))
Q, W = np.eye(N) + 0.3, np.eye(N) + 0.2
R = np.array([[1.0, 0.4], [0.4, 2.0]])  # with a cross weight
CONTINUOUS = float(np.trace(scipy.linalg.solve_continuous_are(A, B, Q, R) @ W))
DISCRETE = float(np.trace(scipy.linalg.solve_discrete_are(A, B, Q, R) @ W))
PAIRS = [(i, j) for i in range(N) for j in range(N)]
UPPER = [(i, j) for i, j in PAIRS if i <= j]
LOWER = [(i, j) for i, j in PAIRS if i >= j]
# How near the values of regulators come to those of Riccati's equation.
CLOSE = 1e-7

Gain = Callable[[], tuple[Any, list[hc.Variable]]]


def matrix(name: str = "P", **kinds: Any) -> hc.Variable:
    return hc.Variable((N, N), name=name, **(kinds or {"PSD": True}))


def cost(P: Any, K: Any) -> Any:
    return hc.trace((Q + K.T @ R @ K) @ P)


def ahead(P: Any, K: Any) -> Any:
    """The covariance after one step."""
    return (A + B @ K) @ P @ (A + B @ K).T + W


def by_entries(P: Any, K: Any, pairs: list[tuple[int, int]]) -> list[Any]:
    after = ahead(P, K)
    return [P[i, j] == after[i, j] for i, j in pairs]


def by_sums(P: Any, K: Any) -> list[Any]:
    F = A + B @ K
    return [
        P[i, j] == sum(F[i, a] * P[a, b] * F[j, b] for a in range(N) for b in range(N)) + W[i, j]
        for i, j in PAIRS
    ]


def by_kron(P: Any, K: Any) -> list[Any]:
    F, flat = A + B @ K, hc.reshape(P, (N * N,))
    return [(np.eye(N * N) - hc.kron(F, F)) @ flat == W.reshape(-1)]


ROWS: dict[str, Callable[[Any, Any], list[Any]]] = {
    "all entries": lambda P, K: by_entries(P, K, PAIRS),
    "upper triangle": lambda P, K: by_entries(P, K, UPPER),
    "lower triangle": lambda P, K: by_entries(P, K, LOWER),
    "sums over indices": by_sums,
    "multiplied by 3": lambda P, K: [3 * ahead(P, K)[i, j] == 3 * P[i, j] for i, j in PAIRS],
    "line by line": lambda P, K: [P[i] == ahead(P, K)[i] for i in range(N)],
    "kron": by_kron,
    "one vector": lambda P, K: [hc.reshape(P - ahead(P, K), (N * N,)) == 0],
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_a_discrete_regulator_with_rows_for_entries_is_proven(rows: Any) -> None:
    P, K = matrix(), hc.Variable((M, N), name="K")
    problem = hc.Problem(hc.Minimize(cost(P, K)), rows(P, K))
    assert problem.is_hidden_convex()
    assert problem.solve() == pytest.approx(DISCRETE, rel=CLOSE)
    assert problem.status == "optimal"


def test_a_symmetric_matrix_that_a_row_makes_definite() -> None:
    P, K = matrix(symmetric=True), hc.Variable((M, N), name="K")
    rows = [P >> 1e-3 * np.eye(N), *by_entries(P, K, UPPER)]
    problem = hc.Problem(hc.Minimize(cost(P, K)), rows)
    assert problem.solve() == pytest.approx(DISCRETE, rel=CLOSE)
    assert problem.status == "optimal"


@pytest.mark.parametrize("kind", [{"PSD": True}, {"symmetric": True}])
@pytest.mark.parametrize("least", [0.0, 1e-3])
def test_a_row_for_the_smallest_eigenvalue(kind: dict[str, Any], least: float) -> None:
    for continuous, best in ((True, CONTINUOUS), (False, DISCRETE)):
        P, K = matrix(**kind), hc.Variable((M, N), name="K")
        F = A + B @ K
        rows = [F @ P + P @ F.T + W == 0] if continuous else by_entries(P, K, UPPER)
        for row in (hc.lambda_min(P) >= least, 2 * least <= hc.lambda_min(2 * P)):
            problem = hc.Problem(hc.Minimize(cost(P, K)), [*rows, row])
            assert problem.solve() == pytest.approx(best, rel=CLOSE)
            assert problem.status == "optimal"


def test_a_smallest_eigenvalue_that_is_active() -> None:
    """The same as P >> c I in continuous time; in discrete time the equation may not be relaxed."""
    values = []
    for row in (lambda P: hc.lambda_min(P) >= 0.9, lambda P: P >> 0.9 * np.eye(N)):
        P, K = matrix(symmetric=True), hc.Variable((M, N), name="K")
        F = A + B @ K
        problem = hc.Problem(hc.Minimize(cost(P, K)), [F @ P + P @ F.T + W == 0, row(P)])
        values.append(problem.solve())
        assert problem.status == "optimal"
    assert values[0] == pytest.approx(values[1], rel=CLOSE)
    assert values[0] > CONTINUOUS + 0.1
    P, K = matrix(), hc.Variable((M, N), name="K")
    problem = hc.Problem(hc.Minimize(cost(P, K)), [ahead(P, K) == P, hc.lambda_min(P) >= 1.5])
    assert not is_proven(problem)


HEAD = """param n, m
param A[n,n], B[n,m], Q[n,n], R[m,m], W[n,n]
var P[n,n] symmetric in psd(0)
var K[m,n]
let F = A + B @ K
minimize trace((Q + K.T @ R @ K) @ P)
subject to
    lyapunov"""
LINES = {
    "triangle": "[i in 1..n, j in i..n]: P[i,j] =="
    " sum(F[i,a]*P[a,b]*F[j,b] for a in 1..n, b in 1..n) + W[i,j]",
    "kron": ": (eye(n*n) - kron(F, F)) @ reshape(P, [n*n]) == reshape(W, [n*n])",
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_the_same_in_the_language(line: str) -> None:
    data = {"n": N, "m": M, "A": A, "B": B, "Q": Q, "R": R, "W": W}
    problem = hc.parse(f"{HEAD}{line}\n", data=data)
    assert problem.solve() == pytest.approx(DISCRETE, rel=CLOSE)
    assert problem.status == "optimal"


@pytest.mark.parametrize("pairs", [PAIRS, UPPER])
def test_cost_matrices_by_entries(pairs: list[tuple[int, int]]) -> None:
    X, K = matrix("X"), hc.Variable((M, N), name="K")
    F = A + B @ K
    weight = Q + K.T @ R @ K
    discrete, continuous = F.T @ X @ F + weight - X, F.T @ X + X @ F + weight
    for equation, best in ((discrete, DISCRETE), (continuous, CONTINUOUS)):
        rows = [equation[i, j] == 0 for i, j in pairs]
        problem = hc.Problem(hc.Minimize(hc.trace(W @ X)), rows)
        assert problem.solve() == pytest.approx(best, rel=CLOSE)
        assert problem.status == "optimal"


def test_stages_by_entries() -> None:
    """Against the recursion of Riccati over two stages."""
    S, T = matrix("S"), matrix("T")
    K, L = (hc.Variable((M, N), name=name) for name in "KL")
    first, second = ahead(np.eye(N), K), ahead(S, L)
    rows = [S[i, j] == first[i, j] for i, j in PAIRS] + [T[i, j] == second[i, j] for i, j in UPPER]
    total = cost(np.eye(N), K) + cost(S, L) + hc.trace(Q @ T)
    problem = hc.Problem(hc.Minimize(total), rows)
    X, best = Q, 0.0
    for _ in range(2):
        best += float(np.trace(X @ W))
        gain = -np.linalg.solve(R + B.T @ X @ B, B.T @ X @ A)
        X = Q + gain.T @ R @ gain + (A + B @ gain).T @ X @ (A + B @ gain)
    assert problem.solve() == pytest.approx(best + float(np.trace(X)), rel=CLOSE)
    assert problem.status == "optimal"


def vectors() -> tuple[Any, list[hc.Variable]]:
    parts = [hc.Variable(N, name=f"k{a}", bounds=(-50, 50)) for a in range(M)]
    return hc.vstack(parts), parts


def scalars() -> tuple[Any, list[hc.Variable]]:
    parts = [hc.Variable(name=f"k{i}{j}") for i in range(M) for j in range(N)]
    return hc.vstack([hc.hstack(parts[N * i : N * i + N]) for i in range(M)]), parts


def columns() -> tuple[Any, list[hc.Variable]]:
    parts = [hc.Variable(M, name=f"c{i}") for i in range(N)]
    return hc.vstack(parts).T, parts


def reshaped() -> tuple[Any, list[hc.Variable]]:
    part = hc.Variable(M * N, name="k")
    return hc.reshape(part, (M, N)), [part]


def blocks() -> tuple[Any, list[hc.Variable]]:
    parts = [hc.Variable((1, N), name=f"k{a}") for a in range(M)]
    return hc.bmat([[each] for each in parts]), parts


GAINS: dict[str, Gain] = {
    each.__name__: each for each in (vectors, scalars, columns, reshaped, blocks)
}


@pytest.mark.parametrize("gain", GAINS.values(), ids=GAINS)
def test_a_gain_in_parts_is_one_matrix(gain: Gain) -> None:
    for continuous, best in ((True, CONTINUOUS), (False, DISCRETE)):
        P, (K, parts) = matrix(), gain()
        F = A + B @ K
        row = F @ P + P @ F.T + W == 0 if continuous else ahead(P, K) == P
        problem = hc.Problem(hc.Minimize(cost(P, K)), [row])
        assert problem.solve() == pytest.approx(best, rel=CLOSE)
        assert problem.status == "optimal"
        riccati = (
            scipy.linalg.solve_continuous_are if continuous else scipy.linalg.solve_discrete_are
        )
        X = riccati(A, B, Q, R)
        known = np.linalg.solve(R, B.T @ X)
        if not continuous:
            known = np.linalg.solve(R + B.T @ X @ B, B.T @ X @ A)
        assert np.asarray(K.value) == pytest.approx(-known, rel=1e-3, abs=1e-4)
        assert all(each.value is not None for each in parts)


@pytest.mark.parametrize("gain", GAINS.values(), ids=GAINS)
def test_a_gain_in_parts_in_the_equation_of_a_cost_matrix(gain: Gain) -> None:
    for continuous, form in extent.pairs((True, False), range(3)):
        X, (K, _) = matrix("X"), gain()
        F = A + B @ K
        weight = Q + K.T @ R @ K
        equation = F.T @ X + X @ F + weight if continuous else F.T @ X @ F - X + weight
        forms = [[equation == 0], [equation[i, j] == 0 for i, j in UPPER], [equation << 0]]
        problem = hc.Problem(hc.Minimize(hc.trace(W @ X)), forms[form])
        assert problem.solve() == pytest.approx(CONTINUOUS if continuous else DISCRETE, rel=CLOSE)
        assert problem.status == "optimal"


def test_the_columns_of_a_filter_gain() -> None:
    sensors, noise = GENERATOR.normal(size=(M, N)), np.diag([1.0, 0.5])
    for discrete in (False, True):
        P, parts = matrix(), [hc.Variable(N, name=f"l{c}") for c in range(M)]
        L = hc.vstack(parts).T
        F = A - L @ sensors
        added = W + L @ noise @ L.T
        row = F @ P @ F.T + added == P if discrete else F @ P + P @ F.T + added == 0
        problem = hc.Problem(hc.Minimize(hc.trace(P)), [row])
        riccati = scipy.linalg.solve_discrete_are if discrete else scipy.linalg.solve_continuous_are
        best = float(np.trace(riccati(A.T, sensors.T, W, noise)))
        assert problem.solve() == pytest.approx(best, rel=CLOSE)
        assert problem.status == "optimal"


def test_two_inputs_that_do_the_same() -> None:
    """The weights of the rows of K are the same: the order of the entries tells them apart."""
    both = np.hstack([B[:, :1], B[:, :1]])
    P, (K, _) = matrix(), vectors()
    F = A + both @ K
    problem = hc.Problem(hc.Minimize(cost(P, K)), [P == F @ P @ F.T + W])
    best = float(np.trace(scipy.linalg.solve_discrete_are(A, both, Q, R) @ W))
    assert problem.solve() == pytest.approx(best, rel=CLOSE)
    assert problem.status == "optimal"


def test_a_matrix_with_a_multiple_of_the_identity() -> None:
    for continuous, best in ((True, CONTINUOUS), (False, DISCRETE)):
        X, (K, _) = matrix("X"), vectors()
        P = X + 1e-3 * np.eye(N)
        F = A + B @ K
        row = F @ P + P @ F.T + W == 0 if continuous else ahead(P, K) == P
        problem = hc.Problem(hc.Minimize(cost(P, K)), [row])
        assert problem.solve() == pytest.approx(best, rel=CLOSE)
        assert problem.status == "optimal"
        assert float(np.linalg.eigvalsh(X.value).min()) > 0


def test_a_shift_that_is_active_bounds_the_covariance() -> None:
    """P ⪰ c I with a c above what the best regulator has: the same as a bound of P itself."""
    K = hc.Variable((M, N), name="K")
    values = []
    for P in (matrix("X") + 0.9 * np.eye(N), matrix(PSD=0.9)):
        F = A + B @ K
        problem = hc.Problem(hc.Minimize(cost(P, K)), [F @ P + P @ F.T + W == 0])
        values.append(problem.solve())
        assert problem.status == "optimal"
    assert values[0] == pytest.approx(values[1], rel=CLOSE)
    assert values[0] > CONTINUOUS + 0.1


@pytest.mark.parametrize("kind", [{"nonneg": True}, {"pos": True}, {"bounds": (0.5, 100)}])
def test_one_state_in_numbers(kind: dict[str, Any]) -> None:
    p, k = hc.Variable(name="p", **kind), hc.Variable(name="k")
    problem = hc.Problem(hc.Minimize((1 + k**2) * p), [p == (1.2 + k) ** 2 * p + 1])
    one = np.eye(1)
    best = float(scipy.linalg.solve_discrete_are(1.2 * one, one, one, one)[0, 0])
    assert problem.solve() == pytest.approx(best, rel=CLOSE)
    assert problem.status == "optimal"


def test_multipliers_are_those_of_the_rows_as_they_are_written() -> None:
    """The value moves with W[i,j] + W[j,i] as Riccati's solution says, whoever carries it."""
    X = scipy.linalg.solve_discrete_are(A, B, Q, R)
    for pairs in (PAIRS, UPPER, LOWER):
        P, K = matrix(), hc.Variable((M, N), name="K")
        rows = by_entries(P, K, pairs)
        hc.Problem(hc.Minimize(cost(P, K)), rows).solve()
        for (i, j), row in zip(pairs, rows, strict=True):
            twice = 2.0 if i != j and len(pairs) < N * N else 1.0
            assert float(row.dual_value) == pytest.approx(-twice * X[i, j], rel=1e-4, abs=1e-4)


def test_a_plant_that_no_gain_stabilises_is_infeasible() -> None:
    plant, reach = np.diag([1.5, 0.5]), np.array([[0.0], [1.0]])
    P, K = hc.Variable((2, 2), name="P", PSD=True), hc.Variable((1, 2), name="K")
    after = (plant + reach @ K) @ P @ (plant + reach @ K).T + np.eye(2)
    rows = [P[i, j] == after[i, j] for i in range(2) for j in range(2)]
    problem = hc.Problem(hc.Minimize(hc.trace(P)), rows)
    problem.solve()
    assert problem.status == "infeasible"


def wrong_rows(P: Any, K: Any) -> list[Any]:
    """One entry is not that of the equation."""
    after = ahead(P, K)
    return [P[i, j] == after[i, j] + 0.1 * (i > j) for i, j in PAIRS]


BROKEN: dict[str, Callable[[Any, Any], list[Any]]] = {
    "an entry is another one": wrong_rows,
    "a bound from below": lambda P, K: [*by_entries(P, K, PAIRS), P[0, 0] >= 4.0],
    "an entry is missing": lambda P, K: by_entries(P, K, PAIRS[:-1]),
    "a gain that is fixed": lambda P, K: [*by_entries(P, K, PAIRS), K[0, 0] == 0.1],
    "entries in another order": lambda P, K: [
        P[i, j] == ahead(P, K)[j, (i + 1) % N] for i, j in PAIRS
    ],
}


@pytest.mark.parametrize("rows", BROKEN.values(), ids=BROKEN)
def test_what_is_no_such_equation_is_not_claimed(rows: Any) -> None:
    P, K = matrix(), hc.Variable((M, N), name="K")
    assert not is_proven(hc.Problem(hc.Minimize(cost(P, K)), rows(P, K)))


def test_a_gain_with_zeros_is_not_claimed() -> None:
    P, (a, b, c) = matrix(), (hc.Variable(name=each) for each in "abc")
    K = hc.vstack([hc.hstack([a, 0 * a, 0 * a]), hc.hstack([0 * a, b, c])])
    assert not is_proven(hc.Problem(hc.Minimize(cost(P, K)), [ahead(P, K) == P]))


@pytest.mark.parametrize("seed", range(6))
def test_bounds_of_random_members_are_below_what_any_gain_reaches(seed: int) -> None:
    """Random plants, weights, orders of rows and parts of gains, against Riccati's value."""
    generator = np.random.default_rng(seed)
    n, m = int(generator.integers(2, 5)), int(generator.integers(1, 3))
    a, b = generator.normal(size=(n, n)), generator.normal(size=(n, m))
    q = generator.normal(size=(n, n))
    q = q @ q.T + 0.1 * np.eye(n)
    r = np.diag(generator.uniform(0.5, 2.0, m))
    P = hc.Variable((n, n), name="P", PSD=True)
    parts = [hc.Variable(n, name=f"k{each}") for each in range(m)]
    K = hc.vstack(parts)
    after = (a + b @ K) @ P @ (a + b @ K).T + np.eye(n)
    kept = [lambda i, j: True, lambda i, j: i <= j, lambda i, j: i >= j][seed % 3]
    rows = [P[i, j] == after[i, j] for i in range(n) for j in range(n) if kept(i, j)]
    problem = hc.Problem(hc.Minimize(hc.trace((q + K.T @ r @ K) @ P)), rows)
    value = problem.solve()
    best = float(np.trace(scipy.linalg.solve_discrete_are(a, b, q, r)))
    assert problem.status == "optimal"
    assert value == pytest.approx(best, rel=CLOSE)
    assert problem.solution.certificate.lower_bound <= best * (1 + 1e-9)


def test_wrong_places_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows in another order are not the user's, which is seen at a point of the model."""
    right = whole_matrices._origins
    monkeypatch.setattr(whole_matrices, "_origins", lambda rows, places: right(rows, places[::-1]))
    P, K = matrix(), hc.Variable((M, N), name="K")
    problem = hc.Problem(hc.Minimize(cost(P, K)), by_entries(P, K, PAIRS))
    assert not is_proven(problem)
