"""Gains by the equation of their cost matrix, and filters by that of their error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy

import hcmodel as hc
from hcmodel.maps.algebra.expanded import Expanded
from hcmodel.maps.cost_equation import CostEquation
from hcmodel.maps.map import Obstacle
from hcmodel.reductions.forms import Forms
from tests.extent import pairs
from tests.proven import is_proven

N, M = 3, 2


def plant(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A, B, definite weights Q and R, and the covariance of the start, of rank 2."""
    generator = np.random.default_rng(seed)
    A, B = generator.normal(size=(N, N)), generator.normal(size=(N, M))
    roots = generator.normal(size=(3, N, N))
    Q, R = (root @ root.T + 0.1 * np.eye(N) for root in roots[:2])
    start = roots[2][:, :2]
    return A, B, Q, R[:M, :M], start @ start.T


def variables() -> tuple[hc.Variable, hc.Variable]:
    return hc.Variable((N, N), PSD=True, name="X"), hc.Variable((M, N), name="K")


def continuous(X: Any, K: Any, seed: int) -> list[Any]:
    A, B, Q, R, _ = plant(seed)
    F = A + B @ K
    return [F.T @ X + X @ F + Q + K.T @ R @ K == 0]


def negated(X: Any, K: Any, seed: int) -> list[Any]:
    A, B, Q, R, _ = plant(seed)
    F = A - B @ K
    return [2 * (Q + hc.transpose(K) @ R @ K) == -2 * X @ F - 2 * F.T @ X]


def by_sides(X: Any, K: Any, seed: int) -> list[Any]:
    A, B, Q, R, _ = plant(seed)
    both = hc.vstack([np.eye(N), K])
    weights = np.block([[Q, np.zeros((N, M))], [np.zeros((M, N)), R]])
    return [-both.T @ weights @ both == (A + B @ K).T @ X + X @ (A + B @ K)]


@pytest.mark.parametrize(("rows", "seed"), pairs([continuous, negated, by_sides], range(3)))
def test_a_cost_equation_in_continuous_time_is_proven(
    rows: Callable[..., list[Any]], seed: int
) -> None:
    A, B, Q, R, start = plant(seed)
    X, K = variables()
    problem = hc.Problem(hc.Minimize(hc.trace(X @ start)), rows(X, K, seed))
    expected = scipy.linalg.solve_continuous_are(A, B, Q, R)
    assert problem.solve() == pytest.approx(np.trace(expected @ start), rel=1e-6)
    assert problem.status == "optimal"
    assert problem.is_hidden_convex()


@pytest.mark.parametrize("seed", range(3))
def test_a_cost_equation_in_discrete_time_is_proven(seed: int) -> None:
    A, B, Q, R, start = plant(seed)
    X, K = variables()
    F = A + B @ K
    equation = X == F.T @ X @ F + Q + K.T @ R @ K
    problem = hc.Problem(hc.Minimize(hc.trace(start @ X)), [equation])
    expected = scipy.linalg.solve_discrete_are(A, B, Q, R)
    assert problem.solve() == pytest.approx(np.trace(expected @ start), rel=1e-6)
    assert problem.status == "optimal"


@pytest.mark.parametrize("seed", range(3))
def test_the_gain_of_a_filter_is_proven(seed: int) -> None:
    """The error of x̂ has the covariance P: F P + P Fᵀ + Q + L R Lᵀ = 0 with F = A − L C."""
    A, C, Q, R, weights = plant(seed)
    P, L = hc.Variable((N, N), PSD=True, name="P"), hc.Variable((N, M), name="L")
    F = A.T - L @ C.T
    problem = hc.Problem(
        hc.Minimize(hc.trace(weights @ P)), [F @ P + P @ F.T + Q + L @ R @ L.T == 0]
    )
    expected = scipy.linalg.solve_continuous_are(A, C, Q, R)
    assert problem.solve() == pytest.approx(np.trace(expected @ weights), rel=1e-6)
    assert problem.status == "optimal"


def test_a_row_that_grows_with_the_matrix_may_stay() -> None:
    """A cap on the cost of one start, against the best value on a grid of weights of both costs."""
    A, B, Q, R, start = plant(1)
    X, K = variables()
    other = np.diag([1.0, 0.0, 0.0])
    free = scipy.linalg.solve_continuous_are(A, B, Q, R)
    cap = hc.trace(other @ X) <= 1.05 * float(free[0, 0])
    problem = hc.Problem(hc.Minimize(hc.trace(start @ X)), [*continuous(X, K, 1), cap])
    assert problem.solve() == pytest.approx(
        np.trace(free @ start), rel=1e-6
    )  # one K is best for all
    assert problem.status == "optimal"


def test_multipliers_of_the_equation_are_derivatives_of_the_value() -> None:
    A, B, Q, R, start = plant(2)
    X, K = variables()
    (equation,) = continuous(X, K, 2)
    hc.Problem(hc.Minimize(hc.trace(X @ start)), [equation]).solve(tol=1e-8)
    step = 1e-4 * np.diag([1.0, 0.0, 0.0])
    ends = [
        np.trace(scipy.linalg.solve_continuous_are(A, B, Q + sign * step, R) @ start)
        for sign in (1, -1)
    ]
    slope = (ends[0] - ends[1]) / 2e-4  # of the constant on the left side
    assert abs(float(equation.dual_value[0, 0])) == pytest.approx(slope, rel=1e-4)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_costs_of_other_sizes_are_certified(scale: float) -> None:
    """As an inequality they were not: the least eigenvalues of the inverse of X are far below 1."""
    A, B, Q, R, start = plant(4)
    X, K = variables()
    F = A + B @ K
    problem = hc.Problem(
        hc.Minimize(hc.trace(X @ start)), [F.T @ X + X @ F + scale * Q + K.T @ R @ K == 0]
    )
    expected = scipy.linalg.solve_continuous_are(A, B, scale * Q, R)
    assert problem.solve() == pytest.approx(np.trace(expected @ start), rel=1e-6)
    assert problem.status == "optimal"


LEVEL = hc.Variable(name="level")
INCREASING: dict[str, Callable[[Any], tuple[Any, list[Any], Callable[[np.ndarray], float]]]] = {
    "largest eigenvalue": lambda X: (hc.lambda_max(X), [], largest_eigenvalue),
    "a row of matrices": lambda X: (LEVEL, [X << LEVEL * np.eye(N)], largest_eigenvalue),
    "a largest eigenvalue in a row": lambda X: (
        LEVEL,
        [hc.lambda_max(CORNER @ X @ CORNER.T) <= LEVEL],
        lambda best: largest_eigenvalue(CORNER @ best @ CORNER.T),
    ),
    "determinant": lambda X: (hc.logdet(X), [], lambda best: np.linalg.slogdet(best)[1]),
}
CORNER = np.array([[1.0, 0.5, 0.0], [0.0, 0.0, 2.0]])


def largest_eigenvalue(matrix: np.ndarray) -> float:
    return float(np.linalg.eigvalsh(matrix)[-1])


@pytest.mark.parametrize("name", INCREASING)
@pytest.mark.parametrize("discrete", [False, True])
def test_what_increases_with_the_cost_matrix_is_proven(name: str, discrete: bool) -> None:
    """Riccati's solution is below the cost matrices of all gains, so that it is best for all of these."""
    A, B, Q, R, _ = plant(1)
    X, K = variables()
    F = A + B @ K
    equation = continuous(X, K, 1)
    if discrete:
        equation = [X == F.T @ X @ F + Q + K.T @ R @ K]
    objective, rows, value = INCREASING[name](X)
    best = (scipy.linalg.solve_discrete_are if discrete else scipy.linalg.solve_continuous_are)(
        A, B, Q, R
    )
    problem = hc.Problem(hc.Minimize(objective), [*equation, *rows])
    assert problem.solve() == pytest.approx(value(best), rel=1e-6)
    assert problem.status == "optimal"
    np.testing.assert_allclose(X.value, best, rtol=1e-2)


# ---- where the inequality is another model


@pytest.mark.parametrize(
    "rows",
    [
        lambda X: [LEVEL * np.eye(N) - X == hc.Variable((N, N), PSD=(0.0, 1.0), name="S")],
        lambda X: [hc.lambda_max(-X) <= LEVEL],
        lambda X: [hc.logdet(X) >= LEVEL],
        lambda X: [X[0, 1] <= LEVEL],
    ],
    ids=[
        "a slack with a largest one",
        "decreasing",
        "from below by a determinant",
        "an entry",
    ],
)
def test_rows_that_a_smaller_matrix_may_violate_are_refused(
    rows: Callable[[Any], list[Any]],
) -> None:
    X, K = variables()
    problem = hc.Problem(hc.Minimize(hc.trace(X) + LEVEL), [*continuous(X, K, 0), *rows(X)])
    found = proposals(problem)
    assert all(isinstance(each, Obstacle) for each in found)
    assert Forms(problem.model).hidden(None) is None


def proposals(problem: hc.Problem) -> list[Any]:
    return list(CostEquation().propose(Expanded.of(Forms(problem.model).bounds.after)))


INDEFINITE = np.array([[1.0, 1.2, 0.0], [1.2, 1.0, 0.0], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize(
    "objective",
    [
        lambda X, K: hc.trace(np.diag([1.0, 1.0, -0.1]) @ X),
        lambda X, K: hc.trace(INDEFINITE @ X),
        lambda X, K: hc.trace(X) + X[0, 0] * K[0, 0],
    ],
    ids=["a sign", "a product of entries", "a factor that varies"],
)
def test_an_objective_that_may_fall_as_the_matrix_grows_is_refused(
    objective: Callable[..., Any],
) -> None:
    X, K = variables()
    problem = hc.Problem(hc.Minimize(objective(X, K)), continuous(X, K, 0))
    (found,) = proposals(problem)
    assert isinstance(found, Obstacle)
    assert "grows" in str(found)
    assert Forms(problem.model).hidden(None) is None


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_weights_are_semidefinite_whatever_their_size(scale: float) -> None:
    """Rounding is relative: a weight of rank 1 has eigenvalues that are 0 but for it."""
    ones = np.array([1.0, 0.1, 0.3])
    X, K = variables()
    weight = scale * np.outer(ones, ones)
    problem = hc.Problem(hc.Minimize(hc.trace(weight @ X)), continuous(X, K, 0))
    assert not any(isinstance(each, Obstacle) for each in proposals(problem))
    slightly = weight - 1e-6 * scale * np.eye(N)
    problem = hc.Problem(hc.Minimize(hc.trace(slightly @ X)), continuous(X, K, 0))
    assert all(isinstance(each, Obstacle) for each in proposals(problem))


def test_equations_of_other_kinds_are_left_as_they_are() -> None:
    """Indefinite weights of the gain, and the quadratic equation of H∞ control."""
    A, B, Q, R, _ = plant(0)
    X, K = variables()
    F = A + B @ K
    indefinite = np.diag([1.0, -1.0])
    for row in (
        F.T @ X + X @ F + Q + K.T @ indefinite @ K == 0,
        F.T @ X + X @ F + Q + K.T @ R @ K + 0.01 * X @ X == 0,
    ):
        assert proposals(hc.Problem(hc.Minimize(hc.trace(X)), [row])) == []


def test_a_bound_from_above_that_no_gain_meets_is_infeasible() -> None:
    """The solution of Riccati's equation is below the cost matrices of all gains."""
    A, B, Q, R, start = plant(0)
    largest = np.linalg.eigvalsh(scipy.linalg.solve_continuous_are(A, B, Q, R))[-1]
    for factor, status in ((1.01, "optimal"), (0.9, "infeasible")):
        X = hc.Variable((N, N), PSD=(0.0, factor * largest), name="X")
        problem = hc.Problem(hc.Minimize(hc.trace(X @ start)), continuous(X, variables()[1], 0))
        problem.solve()
        assert problem.status == status


UNSTABLE = {
    "one that grows": np.diag([1.5, 0.2]),
    "one that turns its sign": np.diag([-1.1, 0.2]),
    "two that grow": np.diag([1.02, 1.5]),
}


@pytest.mark.parametrize("name", UNSTABLE)
def test_a_plant_that_no_gain_stabilises_in_discrete_time_is_infeasible(name: str) -> None:
    """v = (1, 0) has vᵀ F = λ vᵀ for all K and |λ| >= 1: Fᵀ X F − X would not be negative definite."""
    X, K = hc.Variable((2, 2), PSD=True, name="X"), hc.Variable((1, 2), name="K")
    F = UNSTABLE[name] + np.array([[0.0], [1.0]]) @ K
    problem = hc.Problem(hc.Minimize(hc.trace(X)), [F.T @ X @ F - X + np.eye(2) + K.T @ K == 0])
    problem.solve()
    assert problem.status == "infeasible"
    assert is_proven(problem)


def test_a_short_step_in_discrete_time_is_certified() -> None:
    """As an inequality it was not: eigenvalues of X and of its inverse are far from 1."""
    step = 1e-2
    A, B = np.array([[1.0, step], [0.0, 1.0]]), np.array([[step**2 / 2], [step]])
    X, K = hc.Variable((2, 2), PSD=True, name="X"), hc.Variable((1, 2), name="K")
    F = A + B @ K
    for Q in (np.eye(2), np.diag([1.0, 0.0])):
        row = 2 * (F.T @ X @ F - X) == -2 * (Q + K.T @ K)
        problem = hc.Problem(hc.Minimize(hc.trace(X)), [row])
        best = scipy.linalg.solve_discrete_are(A, B, Q, np.eye(1))
        assert problem.solve() == pytest.approx(np.trace(best), rel=1e-6)
        assert problem.status == "optimal"


def test_a_row_from_below_is_refused() -> None:
    X, K = variables()
    problem = hc.Problem(hc.Minimize(hc.trace(X)), [*continuous(X, K, 0), X[0, 0] + K[0, 0] >= 50])
    (found,) = proposals(problem)
    assert isinstance(found, Obstacle)


@pytest.mark.parametrize("least", [1e-7, 1e-3])
@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("objective", [hc.trace, hc.lambda_max])
def test_a_bound_that_only_says_that_the_matrix_is_definite_is_left_out(
    least: float, discrete: bool, objective: Callable[..., Any]
) -> None:
    A, B, Q, R, _ = plant(1)
    X, K = hc.Variable((N, N), PSD=least, name="X"), hc.Variable((M, N), name="K")
    F = A + B @ K
    flow = F.T @ X @ F - X if discrete else F.T @ X + X @ F
    problem = hc.Problem(hc.Minimize(objective(X)), [flow + Q + K.T @ R @ K == 0])
    best = (scipy.linalg.solve_discrete_are if discrete else scipy.linalg.solve_continuous_are)(
        A, B, Q, R
    )
    expected = np.trace(best) if objective is hc.trace else largest_eigenvalue(best)
    assert problem.solve() == pytest.approx(expected, rel=1e-6)
    assert problem.status == "optimal"
    (*_, found) = proposals(problem)  # the inequality
    assert found.released == ("X",)


@pytest.mark.parametrize("discrete", [False, True])
def test_a_lower_bound_that_binds_is_only_claimed_where_a_point_attains_it(discrete: bool) -> None:
    """Against the best of many gains, all of which have cost matrices that are large enough."""
    A, B, least = np.array([[0.0, 1.0], [1.0, 0.2]]), np.array([[0.0], [1.0]]), 3.0
    X, K = hc.Variable((2, 2), PSD=(least, 1e6), name="X"), hc.Variable((1, 2), name="K")
    F = A + B @ K
    flow = F.T @ X @ F - X if discrete else F.T @ X + X @ F
    problem = hc.Problem(hc.Minimize(hc.trace(X)), [flow + np.eye(2) + K.T @ K == 0])
    value = problem.solve()

    def cost(gain: np.ndarray) -> float:
        closed, weight = A + B @ gain[None], np.eye(2) + np.outer(gain, gain)
        roots = np.linalg.eigvals(closed)
        if (np.abs(roots) - 1 if discrete else roots.real).max() >= 0:
            return 1e6
        solver = (
            scipy.linalg.solve_discrete_lyapunov
            if discrete
            else lambda matrix, right: scipy.linalg.solve_continuous_lyapunov(matrix, -right)
        )
        found = solver(closed.T, weight)
        return float(np.trace(found) + 1e3 * max(least - np.linalg.eigvalsh(found)[0], 0.0))

    generator = np.random.default_rng(0)
    starts = generator.normal(size=(20, 2)) * 2 - 1
    options = {"xatol": 1e-9, "fatol": 1e-9, "maxiter": 2000}
    runs = [scipy.optimize.minimize(cost, x, method="Nelder-Mead", options=options) for x in starts]
    best = min(each.fun for each in runs)
    assert np.linalg.eigvalsh(X.value)[0] >= least - 1e-5
    assert value >= best * (1 - 1e-6)
    assert value == pytest.approx(best, rel=1e-5)
    assert problem.solution.lower_bound <= best * (1 + 1e-6)


def test_weights_that_a_singular_matrix_satisfies_are_no_proof() -> None:
    """With Q = 0 the equation holds at X = K = 0 whatever the plant is, and the value 0 is right."""
    A, B, _, R, start = plant(0)
    X, K = variables()
    F = A + B @ K
    problem = hc.Problem(hc.Minimize(hc.trace(X @ start)), [F.T @ X + X @ F + K.T @ R @ K == 0])
    assert Forms(problem.model).hidden(None) is None
    assert proposals(problem) == []


def test_the_way_back_solves_the_equation() -> None:
    """Whatever matrix and slack come from the inequality."""
    X, K = variables()
    problem = hc.Problem(hc.Minimize(hc.trace(X)), continuous(X, K, 0))
    A, B, Q, R, _ = plant(0)
    gain = -np.linalg.pinv(B) @ (A + 5 * np.eye(N))
    F = A + B @ gain
    for step in proposals(problem):  # as a function, and as an inequality
        point = {K: gain, **{each: np.eye(N) for each in step.new}}
        step.back(point)
        (found,) = (point[each] for each in step.gone)
        np.testing.assert_allclose(F.T @ found + found @ F + Q + gain.T @ R @ gain, 0, atol=1e-9)
