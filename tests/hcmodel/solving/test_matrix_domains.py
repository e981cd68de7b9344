"""Models over policies and matrices, against linear programs and Riccati equations."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.linalg
from scipy.optimize import linprog

import hcmodel as hc
from tests.extent import first

GAMMA = 0.9


def regulator(A: np.ndarray, B: np.ndarray) -> tuple[hc.Problem, hc.Variable, np.ndarray]:
    """LQR in (P, K) with Q = R = W = I, from K = 0, and the solution X of its Riccati equation."""
    n, m = B.shape
    P = hc.Variable((n, n), name="P", PSD=(1e-3, 1e3), start=np.eye(n))
    K = hc.Variable((m, n), name="K", bounds=(-50, 50), start=np.zeros((m, n)))
    closed = A + B @ K
    lyapunov = (closed @ P + P @ closed.T + np.eye(n) == 0).named("lyapunov")
    problem = hc.Problem(hc.Minimize(hc.trace((np.eye(n) + K.T @ K) @ P)), [lyapunov])
    return problem, K, scipy.linalg.solve_continuous_are(A, B, np.eye(n), np.eye(m))


@pytest.mark.parametrize("seed", first(1, range(3)))
def test_an_unstable_plant_is_regulated_from_no_feedback_at_all(seed: int) -> None:
    generator = np.random.default_rng(seed)
    A, B = generator.normal(size=(3, 3)), generator.normal(size=(3, 2))
    assert np.linalg.eigvals(A).real.max() > 0
    problem, K, riccati = regulator(A, B)
    optimum = np.trace(riccati)
    assert problem.solve("sbl-adals", max_calls=12_000) == pytest.approx(optimum, rel=1e-6)
    assert problem.solution is not None
    assert problem.solution.certificate.violation <= 1e-6
    assert K.value is not None
    assert np.linalg.eigvals(A + B @ K.value).real.max() < 0


@pytest.mark.parametrize("seed", first(1, range(3)))
def test_the_multiplier_of_the_lyapunov_equality_is_the_riccati_solution(seed: int) -> None:
    # ∇_P of tr((I + KᵀK)P) + <Λ, AP + PAᵀ + I> is I + KᵀK + AᵀΛ + ΛA, the Riccati equation in Λ
    generator = np.random.default_rng(seed)
    A, B = generator.normal(size=(3, 3)), generator.normal(size=(3, 2))
    problem, _, riccati = regulator(A, B)
    problem.solve("sbl-adals", max_calls=12_000)
    assert problem.canonical.outer.size == 6  # one triangle
    dual = problem.constraints[0].dual_value
    assert dual == pytest.approx(riccati, abs=1e-3)
    np.testing.assert_array_equal(dual, dual.T)


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
@pytest.mark.parametrize("seed", first(1, range(3)))
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


def test_bounds_on_the_entries_of_a_psd_matrix_hold_and_have_cvxpys_duals() -> None:
    target = np.array([[1.0, 2.0, 0.0], [2.0, -1.0, 3.0], [0.0, 3.0, 1.0]])
    P = hc.Variable((3, 3), name="P", PSD=(0.1, 10), bounds=(-0.5, 1.2))
    problem = hc.Problem(hc.Minimize(hc.sum((P - target) ** 2)))
    peer = cp.Variable((3, 3), symmetric=True)
    upper = peer <= 1.2
    rows = [peer >> 0.1 * np.eye(3), peer << 10 * np.eye(3), upper, peer >= -0.5]
    expected = cp.Problem(cp.Minimize(cp.sum_squares(peer - target)), rows).solve()
    assert problem.solve() == pytest.approx(expected, rel=1e-6)
    assert P.value == pytest.approx(peer.value, abs=1e-4)
    assert P.value.max() <= 1.2
    assert np.linalg.eigvalsh(P.value).min() >= 0.1 - 1e-9
    duals = problem.solution.bound_duals["P"]
    multiplier = upper.dual_value
    assert multiplier.max() > 0.1
    assert duals.upper == pytest.approx((multiplier + multiplier.T) / 2, abs=1e-3)
    assert duals.lower == pytest.approx(np.zeros((3, 3)), abs=1e-3)


def test_bounds_on_a_distribution_hold_and_have_cvxpys_duals() -> None:
    weights, high = np.array([3.0, 1.0, 2.0, 1.0]), np.array([[0.4, 1, 1, 0.1], [1, 1, 0.2, 0]])
    p = hc.Variable((2, 4), name="p", simplex=True, bounds=(0.05 * (high > 0), high))
    problem = hc.Problem(hc.Minimize(hc.sum(weights * (p - 1) ** 2)))
    peer = cp.Variable((2, 4))
    lower, upper = peer >= 0.05 * (high > 0), peer <= high
    objective = cp.sum(cp.multiply(np.vstack([weights] * 2), (peer - 1) ** 2))
    rows = [cp.sum(peer, axis=1) == 1, lower, upper]
    expected = cp.Problem(cp.Minimize(objective), rows).solve()
    assert problem.solve() == pytest.approx(expected, rel=1e-6)
    assert p.value == pytest.approx(peer.value, abs=1e-4)
    assert p.value[1, 3] == 0.0  # a fixed entry
    assert p.value.sum(axis=1) == pytest.approx(np.ones(2), abs=1e-12)
    duals = problem.solution.bound_duals["p"]
    free = high > 0  # the multipliers of a fixed entry are known up to their difference
    assert upper.dual_value[free].max() > 0.1
    assert duals.upper[free] == pytest.approx(upper.dual_value[free], abs=1e-3)
    assert duals.lower[free] == pytest.approx(lower.dual_value[free], abs=1e-3)


@pytest.mark.parametrize("method", first(2, ["ippm-acgd", "sbl-star", "sbl-adals"]))
def test_methods_run_on_bounded_matrices_and_distributions_at_once(method: str) -> None:
    target, weights = np.array([[1.0, 2.0], [2.0, -1.0]]), np.array([3.0, 1.0, 2.0])
    P = hc.Variable((2, 2), name="P", PSD=(0.1, 10), bounds=(-0.5, 1.2))
    p = hc.Variable(3, name="p", simplex=True, bounds=(0.05, 0.6))
    objective = hc.sum((P - target) ** 2) + hc.sum(weights * (p - 1) ** 2)
    problem = hc.Problem(hc.Minimize(objective), [2 * P[0, 1] + p[0] <= 2])
    Q, q = cp.Variable((2, 2), symmetric=True), cp.Variable(3)
    distance = cp.sum_squares(Q - target) + cp.sum(cp.multiply(weights, (q - 1) ** 2))
    rows = [Q >> 0.1 * np.eye(2), Q << 10 * np.eye(2), Q <= 1.2, Q >= -0.5]
    rows += [q >= 0.05, q <= 0.6, cp.sum(q) == 1, 2 * Q[0, 1] + q[0] <= 2]
    expected = cp.Problem(cp.Minimize(distance), rows).solve()
    known = expected if method == "sbl-star" else None
    value = problem.solve(method, optimal_value=known, max_calls=1000)
    assert value == pytest.approx(expected, rel=1e-6)
    assert problem.canonical.domain.contains(problem.canonical.layout.pack([P.value, p.value]))


def test_bounds_on_a_symmetric_matrix_are_bounds_on_what_is_stored() -> None:
    low = np.array([[0.0, 0.5], [-np.inf, 0.0]])  # holds for both entries of the pair
    P = hc.Variable((2, 2), name="P", symmetric=True, bounds=(low, 2))
    problem = hc.Problem(hc.Minimize(hc.sum((P - np.array([[3.0, -1.0], [-1.0, 1.0]])) ** 2)))
    problem.solve()
    assert P.value == pytest.approx(np.array([[2.0, 0.5], [0.5, 1.0]]), abs=1e-5)


def test_the_language_knows_bounds_on_matrices_and_distributions() -> None:
    problem = hc.parse(
        "var P[2,2] symmetric in psd(0.5, 4) in [-0.2, 1]\n"
        "var p[2] in simplex <= 0.7\n"
        "minimize trace(P) - P[1,2] - p[1]"
    )
    # tr P − P12 with P22 = P11 = ½ + P12 >= … : both diagonals ½, p at its bound
    assert problem.solve() == pytest.approx(1.0 - 0.7, abs=1e-5)
    again = hc.parse(problem.to_hc())
    assert again.solve() == pytest.approx(problem.value, abs=1e-6)


COST = np.array([[1.0, 2.0], [2.0, -1.0]])  # eigenvalues ±√5


@pytest.mark.parametrize("as_rows", [(False, False), (False, True), (True, False)])
def test_multipliers_of_limits_of_eigenvalues(as_rows: tuple[bool, bool]) -> None:
    """min <C, P> over [½ I, 2 I] is ½ Σ w⁺ − 2 Σ w⁻: the multipliers are the parts of C."""
    values, vectors = np.linalg.eigh(COST)
    positive = (vectors * np.maximum(values, 0)) @ vectors.T
    negative = (vectors * np.maximum(-values, 0)) @ vectors.T
    limits = [0.25 if as_rows[0] else 0.5, 9.0 if as_rows[1] else 2.0]
    P = hc.Variable((2, 2), name="P", PSD=tuple(limits))
    low, high = P >> 0.5 * np.eye(2), P << 2 * np.eye(2)
    rows = [row for row, wanted in zip((low, high), as_rows, strict=True) if wanted]
    problem = hc.Problem(hc.Minimize(hc.trace(COST @ P)), rows)
    assert problem.solve() == pytest.approx(0.5 * np.sqrt(5) - 2 * np.sqrt(5), rel=1e-7)
    assert problem.status == "optimal"
    bounds = problem.solution.bound_duals["P"]
    assert (low.dual_value if as_rows[0] else bounds.lower) == pytest.approx(positive, abs=1e-5)
    assert (high.dual_value if as_rows[1] else bounds.upper) == pytest.approx(negative, abs=1e-5)
    assert not (as_rows[0] and bounds.lower.any())
    assert not (as_rows[1] and bounds.upper.any())


def test_the_multiplier_of_a_semidefinite_matrix() -> None:
    """min <C, P> with trace P = 1 is the least eigenvalue w, and the multiplier of P ⪰ 0 is C − w I."""
    P = hc.Variable((2, 2), name="P", PSD=True)
    problem = hc.Problem(hc.Minimize(hc.trace(COST @ P)), [hc.trace(P) == 1])
    assert problem.solve() == pytest.approx(-np.sqrt(5), rel=1e-7)
    held = problem.solution.bound_duals["P"]
    assert held.lower == pytest.approx(COST + np.sqrt(5) * np.eye(2), abs=1e-5)
    assert not held.upper.any()


def test_multipliers_of_eigenvalues_beside_bounds_on_entries() -> None:
    """C = L − U − l + u, of which only u, at P₁₁ <= 3/2, belongs to the entries' bounds."""
    P = hc.Variable((2, 2), name="P", symmetric=True, bounds=(None, 1.5))
    low, high = P >> 0.5 * np.eye(2), P << 2 * np.eye(2)
    problem = hc.Problem(hc.Minimize(hc.trace(COST @ P)), [low, high])
    problem.solve()
    assert problem.status == "optimal"
    held = problem.solution.bound_duals["P"]
    pushes = low.dual_value - high.dual_value - held.upper
    assert pushes == pytest.approx(COST, abs=1e-5)
    assert np.linalg.eigvalsh(low.dual_value)[0] >= -1e-6
    assert np.linalg.eigvalsh(high.dual_value)[0] >= -1e-6
    assert held.upper[1, 1] > 0.1
