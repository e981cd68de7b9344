"""Units of cone programs with semidefinite cones, and regulators with states in any units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import hcmodel as hc
from hcmodel.solvers.algebra.symmetric import to_matrix
from hcmodel.solvers.qp import ConeOptions, ConeProgram, ConeStatus, make_cone_backend
from hcmodel.solvers.qp.balance import Balance, balanced, is_unbalanced
from hcmodel.solvers.qp.cone_program import ConeBlock, ConeKind, cone_program, cone_residuals

SPREAD = 1e3
"""Units of the states are between 1/SPREAD and SPREAD."""


def plant(seed: int, spread: float = SPREAD) -> tuple[np.ndarray, ...]:
    """(A, B, Q, R, W) of a random plant in discrete time, its states in random units."""
    rng = np.random.default_rng(seed)
    states = int(rng.integers(2, 6))
    inputs = int(rng.integers(1, min(states, 3) + 1))
    A = rng.normal(size=(states, states))
    A *= rng.uniform(0.8, 1.3) / np.abs(np.linalg.eigvals(A)).max()
    B, noise = rng.normal(size=(states, inputs)), rng.normal(size=(states, states))
    units = np.diag(spread ** rng.uniform(-1, 1, size=states))
    Q = np.linalg.inv(units) @ np.linalg.inv(units)
    R = np.eye(inputs) * 10 ** rng.uniform(-2, 1)
    return units @ A @ np.linalg.inv(units), units @ B, Q, R, units @ noise @ noise.T @ units


def regulator(data: tuple[np.ndarray, ...], rows: Any = None) -> hc.Problem:
    A, B, Q, R, W = data
    states, inputs = B.shape
    P = hc.Variable((states, states), PSD=True, name="P")
    K = hc.Variable((inputs, states), name="K")
    closed = A + B @ K
    more = [] if rows is None else rows(P, K)
    cost = hc.trace((Q + K.T @ R @ K) @ P)
    return hc.Problem(hc.Minimize(cost), [P >> closed @ P @ closed.T + W, *more])


def program(seed: int) -> ConeProgram:
    return regulator(plant(seed)).get_problem_data().program


def units_of(cone: ConeProgram) -> Balance:
    found = balanced(cone)
    assert found is not None
    return found


def test_numbers_come_nearer_to_each_other_and_keep_all_their_digits() -> None:
    cone = program(2)
    found = units_of(cone)
    sizes = np.abs(found.program.matrix.data)
    assert is_unbalanced(cone)
    assert not is_unbalanced(found.program)
    assert sizes.max() / sizes.min() < 1e5  # 3e19 before
    for units in (found.rows, found.columns, np.array([found.objective, found.offset])):
        assert (np.frexp(units)[0] == 0.5).all()  # powers of two
    back = found.program.matrix.toarray() / found.rows[:, None] / found.columns
    assert (back == cone.matrix.toarray()).all()


def test_rows_of_a_matrix_have_units_and_its_entries_products_of_them() -> None:
    cone = program(2)
    found, first, matrices = units_of(cone), 0, 0
    for block in cone.cones:
        own = slice(first, first + block.size)
        first += block.size
        if block.kind is ConeKind.PSD_TRIANGLE:
            matrices += 1
            diagonal = np.diag(to_matrix(found.rows[own]))
            expected = np.sqrt(np.outer(diagonal, diagonal))
            rows, columns = np.tril_indices(block.order)
            assert (found.rows[own] == expected[rows, columns]).all()
    assert matrices > 1


def test_a_solution_walks_there_and_back() -> None:
    cone = program(2)
    found = units_of(cone)
    solution = make_cone_backend().solve(cone, ConeOptions())
    there = found.taken(solution)
    assert found.program.linear @ there.primal == pytest.approx(
        found.value * (cone.linear @ solution.primal), rel=1e-12
    )
    left = cone_residuals(found.program, there)
    assert left.largest <= 1e-7
    back = found.solution(there)
    for one, other in ((back.primal, solution.primal), (back.dual, solution.dual)):
        assert (one == other).all()


UNIT = 1e8


def two_by_two(third: float, objective: float = 1.0) -> ConeProgram:
    """min objective·x s.t. [x, UNIT; UNIT, third·UNIT²] ⪰ 0, so that x >= 1/third."""
    root = np.sqrt(2.0) * UNIT
    return cone_program(
        np.array([objective]),
        np.array([[-1.0], [0.0], [0.0]]),
        np.array([0.0, root, third * UNIT**2]),
        [ConeBlock(ConeKind.PSD_TRIANGLE, 3)],
        constant=0.0,
    )


def test_certificates_of_programs_without_a_solution_are_in_their_units() -> None:
    infeasible = two_by_two(-1.0)
    found = make_cone_backend().solve(infeasible, ConeOptions())
    assert found.status is ConeStatus.INFEASIBLE
    assert infeasible.offset @ found.dual == pytest.approx(-1.0)
    unbounded = two_by_two(1.0, objective=-1.0)
    found = make_cone_backend().solve(unbounded, ConeOptions())
    assert found.status is ConeStatus.UNBOUNDED
    assert unbounded.linear @ found.primal == pytest.approx(-1.0)


def test_programs_in_fair_units_and_programs_without_matrices_keep_theirs() -> None:
    assert balanced(regulator(plant(2, spread=1.0)).get_problem_data().program) is None
    x = hc.Variable(2)
    linear = hc.Problem(hc.Minimize(x[0] + 1e9 * x[1]), [x >= 1e-9, 1e9 * x[0] + x[1] >= 1])
    assert balanced(linear.get_problem_data().program) is None


# ---- whole models: they took minutes and ended without a certificate


@pytest.mark.parametrize("seed", range(6))
def test_a_regulator_in_any_units_is_solved_and_certified(seed: int) -> None:
    data = plant(seed)
    problem = regulator(data)
    expected = np.trace(scipy.linalg.solve_discrete_are(*data[:4]) @ data[4])
    assert problem.solve(method="cone") == pytest.approx(expected, rel=1e-8)
    assert problem.status == "optimal"


def test_a_cap_that_holds_a_regulator_back_is_not_lost_in_large_units() -> None:
    # the variance of the state with the smallest unit: far below rounding of the largest one
    A, B, Q, R, W = plant(3)
    free = regulator((A, B, Q, R, W))
    free.solve()
    variances = np.diag(free["P"].value)
    least = int(np.argmin(variances))
    cap = 0.99 * variances[least]
    assert cap > 1.01 * W[least, least]  # no gain makes it less than the noise
    capped = regulator((A, B, Q, R, W), lambda P, K: [P[least, least] <= cap])
    assert capped.solve() > free.value * (1 + 1e-6)
    assert capped.status == "optimal"
    assert capped["P"].value[least, least] <= cap * (1 + 1e-6)


def test_continuous_regulators_with_a_cap_in_small_units_are_not_called_solved_without_it() -> None:
    A, B, Q, R, W = plant(3)
    X = scipy.linalg.solve_continuous_are(A, B, Q, R)
    closed = A - B @ np.linalg.solve(R, B.T @ X)
    free = scipy.linalg.solve_continuous_lyapunov(closed, -W)
    least = int(np.argmin(np.diag(free)))
    P = hc.Variable(W.shape, PSD=True, name="P")
    K = hc.Variable(B.T.shape, name="K")
    F = A + B @ K
    rows = [F @ P + P @ F.T + W == 0, P[least, least] <= 0.98 * free[least, least]]
    problem = hc.Problem(hc.Minimize(hc.trace((Q + K.T @ R @ K) @ P)), rows)
    assert problem.solve() > np.trace(X @ W) * (1 + 1e-6)
    assert problem.status == "optimal"
