"""Riccati's inequality in a cost matrix X and a gain K, against the solutions of Riccati's equation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.linalg import solve_continuous_are, solve_continuous_lyapunov, solve_discrete_are

import hcmodel as hc
from hcmodel.maps import riccati
from hcmodel.records import replace
from hcmodel.reductions.forms import Forms

RNG = np.random.default_rng(7)
A, B = RNG.normal(size=(2, 2)), RNG.normal(size=(2, 1))
Q = np.array([[2.0, 0.5], [0.5, 1.0]])
R = np.array([[0.7]])
N = np.array([[0.3, -0.2]])
W = np.array([[1.5, -0.4], [-0.4, 0.8]])
CONTINUOUS = solve_continuous_are(A, B, Q, R)
DISCRETE = solve_discrete_are(A, B, Q, R)


def variables(definite: Any = True) -> tuple[hc.Variable, hc.Variable]:
    return hc.Variable((2, 2), name="X", PSD=definite), hc.Variable((1, 2), name="K")


def near_misses(problem: hc.Problem) -> tuple[str, ...] | None:
    """What is in the way of a proof; None where there is one."""
    found = Forms(problem.model).discovery
    return None if found.substitution is not None else found.near_misses


def loop(K: Any) -> Any:
    return A + B @ K


Row = Callable[[Any, Any], Any]

WRITTEN: dict[str, Row] = {
    "as in books": lambda X, K: loop(K).T @ X + X @ loop(K) + Q + K.T @ R @ K << 0,
    "turned": lambda X, K: 0 >> X @ loop(K) + (X @ loop(K)).T + K.T @ R @ K + Q,
    "with a minus sign": lambda X, K: -(loop(K).T @ X) - X @ loop(K) - K.T @ R @ K >> Q,
    "multiplied out": lambda X, K: (
        A.T @ X + X @ A + K.T @ B.T @ X + X @ B @ K + Q / 2 << -Q / 2 - K.T @ R @ K
    ),
    "scaled": lambda X, K: 3 * (loop(K).T @ X + X @ loop(K)) + 3 * Q << -3 * (K.T @ (R @ K)),
    "products of entries": lambda X, K: (
        hc.einsum("ki,kj->ij", loop(K), X) + hc.einsum("ik,kj->ij", X, loop(K)) + Q
        << -0.7 * hc.outer(K[0], K[0])
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_the_inequality_is_proven_however_it_is_written(name: str) -> None:
    X, K = variables()
    problem = hc.Problem(hc.Minimize(hc.trace(W @ X)), [WRITTEN[name](X, K)])
    assert near_misses(problem) is None


def test_the_value_gain_and_multipliers_are_those_of_the_riccati_equation() -> None:
    """The multiplier is the covariance of the closed loop with noise W: F Λ + Λ Fᵀ + W = 0."""
    X, K = variables()
    row = WRITTEN["as in books"](X, K)
    problem = hc.Problem(hc.Minimize(hc.trace(W @ X)), [row])
    assert problem.solve() == pytest.approx(np.trace(W @ CONTINUOUS), rel=1e-7)
    assert problem.status == "optimal"
    assert "proven convex in inv(X), K @ inv(X)" in problem.solution.method
    gain = -np.linalg.solve(R, B.T @ CONTINUOUS)
    assert K.value == pytest.approx(gain, abs=1e-4)
    closed = A + B @ gain
    assert row.dual_value == pytest.approx(solve_continuous_lyapunov(closed, -W), abs=1e-4)
    assert problem.is_hidden_convex() is True


def test_multipliers_of_a_turned_and_scaled_row_by_differences() -> None:
    """The slope of the value by the right-hand side, from Riccati's equation; cross weights N too."""
    X, K = variables()
    free = loop(K).T @ X + X @ loop(K) + K.T @ R @ K + K.T @ N + N.T @ K
    row = -2 * free >> 2 * Q
    problem = hc.Problem(hc.Minimize(hc.trace(W @ X)), [row])

    def value(weight: np.ndarray) -> float:
        return float(np.trace(W @ solve_continuous_are(A, B, weight, R, s=N.T)))

    assert problem.solve() == pytest.approx(value(Q), rel=1e-7)
    for direction in (np.diag([1.0, 0.0]), np.array([[0.0, 1.0], [1.0, 0.0]])):
        step = 1e-5 * direction
        slope = (value(Q + step / 2) - value(Q - step / 2)) / 2e-5
        assert float(np.sum(row.dual_value * direction)) == pytest.approx(slope, abs=1e-4)


DISCRETE_WRITTEN: dict[str, Row] = {
    "as in books": lambda X, K: loop(K).T @ X @ loop(K) - X + Q + K.T @ R @ K << 0,
    "turned": lambda X, K: X - Q >> (X @ loop(K)).T @ loop(K) + K.T @ R @ K,
    "multiplied out": lambda X, K: (
        A.T @ X @ A + A.T @ X @ B @ K + (A.T @ X @ B @ K).T + K.T @ (B.T @ X @ B + R) @ K << X - Q
    ),
}


@pytest.mark.parametrize("name", DISCRETE_WRITTEN)
def test_discrete_time(name: str) -> None:
    X, K = variables()
    problem = hc.Problem(hc.Minimize(hc.trace(X)), [DISCRETE_WRITTEN[name](X, K)])
    assert problem.solve() == pytest.approx(np.trace(DISCRETE), rel=1e-7)
    assert problem.status == "optimal"
    gain = -np.linalg.solve(R + B.T @ DISCRETE @ B, B.T @ DISCRETE @ A)
    assert K.value == pytest.approx(gain, abs=1e-3)


@pytest.mark.parametrize("shape", [(2, 1), (2,)])
def test_a_gain_that_stands_upright_or_is_a_vector(shape: tuple[int, ...]) -> None:
    X = hc.Variable((2, 2), name="X", symmetric=True)
    L = hc.Variable(shape, name="L")
    row = L.T if len(shape) == 2 else hc.reshape(L, (1, 2))
    rows = [WRITTEN["as in books"](X, row), X >> 0]
    problem = hc.Problem(hc.Minimize(hc.trace(X)), rows)
    assert problem.solve() == pytest.approx(np.trace(CONTINUOUS), rel=1e-7)
    assert problem.status == "optimal"


def test_a_disturbance_of_given_gain() -> None:
    """The inequality of H∞ control, against the equation with an indefinite weight of both inputs."""
    disturbance, level = np.array([[0.4], [0.3]]), 2.0
    X, K = variables()
    more = X @ disturbance @ disturbance.T @ X / level**2
    row = -loop(K).T @ X - X @ loop(K) - K.T @ R @ K - more >> Q
    problem = hc.Problem(hc.Minimize(hc.trace(X)), [row])
    weight = np.diag([R[0, 0], -(level**2)])
    exact = solve_continuous_are(A, np.hstack([B, disturbance]), Q, weight)
    assert problem.solve() == pytest.approx(np.trace(exact), rel=1e-7)
    assert problem.status == "optimal"
    assert "proven" in problem.solution.method


UNSTABLE, ENTERING, UNIT = np.array([[0.0, 1.0], [2.0, -1.0]]), np.array([[0.0], [1.0]]), np.eye(2)


def bounded_real(level: Any, covariance: bool = False) -> list[Any]:
    """Riccati's inequality of H∞ control with a level, in X and in its inverse, X bounded."""
    X, K = variables()
    closed = UNSTABLE + ENTERING @ K
    if covariance:
        cost = X @ (UNIT + K.T @ K) @ X / level
        return [closed @ X + X @ closed.T + UNIT + cost << 0, X >> 0.2 * UNIT]
    return [closed.T @ X + X @ closed + X @ X / level + UNIT + K.T @ K << 0, X << 50 * UNIT]


@pytest.mark.parametrize("covariance", [False, True])
def test_the_level_of_h_infinity_control_and_its_square(covariance: bool) -> None:
    """The least level s, and the least g with the level g²: g² is s, and their multipliers agree."""
    s, g = hc.Variable(name="s", pos=True), hc.Variable(name="g", pos=True)
    plain = hc.Problem(hc.Minimize(s), bounded_real(s, covariance))
    squared = hc.Problem(hc.Minimize(g), bounded_real(g**2, covariance))
    assert squared.solve() == pytest.approx(plain.solve() ** 0.5, rel=1e-7)
    assert squared.status == plain.status == "optimal"
    ours, theirs = (each.constraints[0].dual_value for each in (squared, plain))
    assert np.asarray(ours) * 2 * squared.value == pytest.approx(np.asarray(theirs), rel=1e-4)


def test_an_increasing_function_of_the_level_has_the_same_minimum() -> None:
    """g² + g, whose level has no map of its own: the block of the inequality becomes one of another."""
    s, g = hc.Variable(name="s", pos=True), hc.Variable(name="g", pos=True)
    least = hc.Problem(hc.Minimize(s), bounded_real(s)).solve()
    problem = hc.Problem(hc.Minimize(g**2 + g), bounded_real(g**2))
    assert problem.solve() == pytest.approx(least + least**0.5, rel=1e-6)
    assert problem.status == "optimal"


def test_two_plants_with_one_gain_against_cvxpy() -> None:
    """One X and one K for two plants, and X bounded from above: the same in P and Y by hand."""
    cvxpy = pytest.importorskip("cvxpy")
    other, limit = A + 0.2 * np.eye(2), 30 * np.eye(2)
    X, K = variables()
    rows = [WRITTEN["as in books"](X, K), X << limit]
    second = other + B @ K
    rows.append(second.T @ X + X @ second + Q + K.T @ R @ K << 0)
    problem = hc.Problem(hc.Minimize(hc.trace(W @ X)), rows)
    problem.solve()
    P, Y = cvxpy.Variable((2, 2), PSD=True), cvxpy.Variable((1, 2))
    root, unit = np.linalg.cholesky(Q).T, np.linalg.cholesky(W)
    limits = [P >> np.linalg.inv(limit)]
    for drift in (A, other):
        first = drift @ P + B @ Y
        above = cvxpy.vstack([root @ P, np.sqrt(R) @ Y])
        block = cvxpy.bmat([[-first - first.T, above.T], [above, np.eye(3)]])
        limits.append(block >> 0)
    peer = cvxpy.Problem(cvxpy.Minimize(cvxpy.matrix_frac(unit, P)), limits)
    peer.solve(solver="CLARABEL")
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(peer.value, rel=1e-6)


def test_a_plant_that_no_gain_stabilises_is_infeasible() -> None:
    X, K = variables((0.0, 1e3))
    closed = np.diag([1.0, -1.0]) + np.array([[0.0], [1.0]]) @ K
    rows = [closed.T @ X + X @ closed + Q + K.T @ R @ K << 0]
    problem = hc.Problem(hc.Minimize(hc.trace(X)), rows)
    problem.solve()
    assert problem.status == "infeasible"


@pytest.mark.parametrize("discrete", [False, True])
def test_a_plant_that_no_gain_stabilises_is_named_where_nothing_bounds_the_cost(
    discrete: bool,
) -> None:
    """Then only a singular inverse is left of the model in it, which no dual shows to be impossible."""
    X, K = variables()
    closed = np.diag([1.0, -0.5]) + np.array([[0.0], [1.0]]) @ K
    flow = closed.T @ X @ closed - X if discrete else closed.T @ X + X @ closed
    problem = hc.Problem(hc.Minimize(hc.trace(X)), [flow + Q + K.T @ R @ K << 0])
    found = near_misses(problem)
    assert found is not None
    assert any("no K stabilises the plant of c1" in each for each in found)
    forms = Forms(problem.model)
    assert forms.near_miss is None  # before maps were tried
    assert forms.hidden() is None
    assert str(forms.near_miss) == "riccati map: no K stabilises the plant of c1"
    assert forms.near_miss is not forms.discovery.obstacles[0]  # other maps know less of it


def test_a_matrix_that_may_be_singular_is_not_claimed() -> None:
    """2 x (1 + k) + k² <= 0 holds at x = k = 0, while every x > 0 is at least 2."""
    for least, proven in ((True, False), (0.5, True)):
        x, k = hc.Variable((1, 1), name="x", PSD=least), hc.Variable((1, 1), name="k")
        closed = np.eye(1) + k
        problem = hc.Problem(hc.Minimize(hc.trace(x)), [closed.T @ x + x @ closed + k.T @ k << 0])
        found = near_misses(problem)
        assert (found is None) is proven
        if found is not None:
            assert any("x may be singular" in each for each in found)
    assert problem.solve() == pytest.approx(2.0, rel=1e-6)


NOT_CLAIMED: dict[str, Row] = {
    "the other direction": lambda X, K: loop(K).T @ X + X @ loop(K) + Q + K.T @ R @ K >> 0,
    "gains that pay": lambda X, K: loop(K).T @ X + X @ loop(K) + Q - K.T @ R @ K << 0,
    "cross weights too large": lambda X, K: (
        loop(K).T @ X + X @ loop(K) + Q + K.T @ R @ K + 9 * (K.T @ N + N.T @ K) << 0
    ),
    "two factors of X": lambda X, K: X @ (loop(K) + loop(K).T) @ X + Q + K.T @ R @ K << X,
}


@pytest.mark.parametrize("name", NOT_CLAIMED)
def test_other_inequalities_are_not_claimed(name: str) -> None:
    X, K = variables()
    problem = hc.Problem(hc.Minimize(hc.trace(X)), [NOT_CLAIMED[name](X, K)])
    assert near_misses(problem) is not None


def test_a_gain_with_a_structure_is_not_claimed() -> None:
    X, K = variables()
    problem = hc.Problem(hc.Minimize(hc.trace(X)), [WRITTEN["as in books"](X, K), K[0, 1] == 0])
    found = near_misses(problem)
    assert found is not None
    assert any("K[0, 1] is not affine" in each for each in found)


def test_a_cost_that_falls_with_the_matrix_is_not_claimed() -> None:
    """−trace(X) has no lower bound, and trace(X⁻¹) with a minus sign is not convex in X⁻¹."""
    X, K = variables((1e-3, 1e3))
    problem = hc.Problem(hc.Minimize(-hc.trace(X)), [WRITTEN["as in books"](X, K)])
    assert near_misses(problem) is not None


def test_bounds_on_the_gain_are_tested_on_the_point() -> None:
    """Bounds that do not hold at the optimum without them leave it without a proof."""
    best = float(np.abs(np.linalg.solve(R, B.T @ CONTINUOUS)).max())
    statuses = {}
    for share in (2.0, 0.9):
        X = hc.Variable((2, 2), name="X", PSD=True)
        K = hc.Variable((1, 2), name="K", bounds=(-share * best, share * best))
        problem = hc.Problem(hc.Minimize(hc.trace(X)), [WRITTEN["as in books"](X, K)])
        problem.solve(time_limit=2)
        statuses[share] = problem.status
        assert problem.value >= np.trace(CONTINUOUS) * (1 - 1e-6)
    assert statuses[2.0] == "optimal"
    assert statuses[0.9] != "optimal"


def test_a_wrong_rule_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models before and after are compared at points."""
    right = riccati._Inequality.block

    def wrong(self: Any, model: Any, inner: Any, product: Any, slack: Any) -> Any:
        return right(self, model, inner, product.scaled(1.01), slack)

    monkeypatch.setattr(riccati._Inequality, "block", wrong)
    X, K = variables()
    problem = hc.Problem(hc.Minimize(hc.trace(X)), [WRITTEN["as in books"](X, K)])
    assert near_misses(problem) is not None


def test_a_row_of_another_shape_is_a_near_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    """A map that does not say which part of its block the user's row is."""
    right = riccati._Inequality.block

    def whole(self: Any, model: Any, *parts: Any) -> Any:
        found = right(self, model, *parts)
        return replace(found, row=replace(found.row, leading=None))

    monkeypatch.setattr(riccati._Inequality, "block", whole)
    X, K = variables()
    problem = hc.Problem(hc.Minimize(hc.trace(X)), [WRITTEN["as in books"](X, K)])
    assert "riccati map: the rewriting changed c1" in (near_misses(problem) or ())
