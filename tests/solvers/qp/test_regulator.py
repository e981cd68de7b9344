"""Cone programs of linear regulators, solved by Riccati's equation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import hcmodel as hc
from hcmodel.solvers.algebra.symmetric import to_matrix
from hcmodel.solvers.qp import regulator
from hcmodel.solvers.qp.cone_program import ConeKind, ConeProgram, cone_residuals
from hcmodel.solvers.qp.regulator import RULES, solve_regulator

ACCURATE = 1e-10


def plant(states: int, inputs: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """A random plant, most likely unstable, with costs (Q, N, R) that are convex together."""
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(states, states)), rng.normal(size=(states, inputs))
    root = rng.normal(size=(states + inputs, states + inputs))
    C = root @ root.T + 0.1 * np.eye(states + inputs)
    return A, B, C[:states, :states], C[:states, states:], C[states:, states:]


def problem(
    data: tuple[np.ndarray, ...], *, sign: float = 1.0, psd: Any = True, rows: Any = lambda P, K: []
) -> hc.Problem:
    A, B, Q, N, R = data
    states, inputs = B.shape
    P = hc.Variable((states, states), PSD=psd, name="P")
    K = hc.Variable((inputs, states), name="K")
    closed = A + B @ K
    balance = sign * (closed @ P + P @ closed.T + np.eye(states)) == 0
    cost = Q + N @ K + K.T @ N.T + K.T @ R @ K
    return hc.Problem(hc.Minimize(hc.trace(cost @ P)), [balance, *rows(P, K)])


def program(*args: Any, **keywords: Any) -> ConeProgram:
    return problem(*args, **keywords).get_problem_data().program


def riccati(data: tuple[np.ndarray, ...]) -> float:
    A, B, Q, N, R = data
    return float(np.trace(scipy.linalg.solve_continuous_are(A, B, Q, R, s=N)))


@pytest.mark.parametrize("sign", [1.0, -2.0])
@pytest.mark.parametrize(("states", "inputs"), [(2, 1), (3, 3), (5, 2)])
def test_the_answer_is_optimal_and_its_dual_is_inside_of_the_cone(
    states: int, inputs: int, sign: float
) -> None:
    data = plant(states, inputs)
    cone = program(data, sign=sign)
    found = solve_regulator(cone, ACCURATE, small=True)
    assert found is not None
    assert cone.linear @ found.primal == pytest.approx(riccati(data), rel=1e-9)
    left = cone_residuals(cone, found)
    assert max(left.primal, left.dual) <= 1e-9
    assert 0 < left.gap <= 1e-8 * riccati(data)  # the dual is not quite optimal, and so inside
    block = np.cumsum([0, *(each.size for each in cone.cones)])
    kinds = [each.kind for each in cone.cones]
    last = len(kinds) - 1 - kinds[::-1].index(ConeKind.PSD_TRIANGLE)
    assert np.linalg.eigvalsh(to_matrix(found.dual[block[last] : block[last + 1]]))[0] > 0


def test_small_programs_are_left_to_the_backend() -> None:
    small, large = plant(RULES.fewest - 4, 3), plant(RULES.fewest - 3, 3)
    assert solve_regulator(program(small), ACCURATE) is None
    assert solve_regulator(program(large), ACCURATE) is not None


@pytest.mark.parametrize(
    "keywords",
    [
        {"rows": lambda P, K: [P[0, 0] == 2]},  # another equation
        {"rows": lambda P, K: [hc.trace(P) <= 1.9]},  # a row below the trace at the minimum, 2.02
        {"psd": (1e-6, 0.5)},  # an upper bound of P that does
    ],
)
def test_programs_with_more_in_them_are_left_to_the_backend(keywords: Any) -> None:
    data = (np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]]))
    costs = (np.eye(2), np.zeros((2, 1)), np.eye(1))
    plain = solve_regulator(program((*data, *costs)), ACCURATE, small=True)
    assert plain is not None
    assert solve_regulator(program((*data, *costs), **keywords), ACCURATE, small=True) is None


def test_rows_that_do_not_hold_the_minimum_back_are_no_obstacle() -> None:
    data = plant(4, 2)
    wide = program(data, psd=(1e-9, 1e9), rows=lambda P, K: [hc.trace(P) <= 1e6])
    found = solve_regulator(wide, ACCURATE, small=True)
    assert found is not None
    assert wide.linear @ found.primal == pytest.approx(riccati(data), rel=1e-9)


def test_a_plant_that_cannot_be_stabilised_has_no_answer() -> None:
    A, B = np.diag([1.0, -1.0]), np.array([[0.0], [1.0]])
    data = (A, B, np.eye(2), np.zeros((2, 1)), np.eye(1))
    assert solve_regulator(program(data), ACCURATE, small=True) is None


def test_eigenvalues_that_add_up_to_0_are_no_answer_and_no_warning() -> None:
    # two integrators with the same input: their difference stays what it is
    data = (np.zeros((2, 2)), np.ones((2, 1)), np.eye(2), np.zeros((2, 1)), np.eye(1))
    assert solve_regulator(program(data), ACCURATE, small=True) is None
    model = problem(data)
    model.solve()
    assert model.status == "infeasible"


def test_other_programs_are_none_of_its_business() -> None:
    X = hc.Variable((3, 3), PSD=True)
    rows = [X[0, 1] == 1, X[0, 2] == 1]  # as many as no triangle has
    cone = hc.Problem(hc.Minimize(hc.trace(X)), rows).get_problem_data().program
    assert solve_regulator(cone, ACCURATE, small=True) is None


def test_an_equation_that_only_looks_alike_is_seen() -> None:
    # the diagonal rows give A and B; those off the diagonal have to agree with them
    cone = program(plant(3, 1))
    zero = [each.kind for each in cone.cones].index(ConeKind.ZERO)
    first = sum(each.size for each in cone.cones[:zero])
    matrix = cone.matrix.tolil()
    matrix[first + 1] *= 1.001  # the row of the entry (0, 1)
    changed = ConeProgram(
        cone.quadratic, cone.linear, matrix.tocsc(), cone.offset, cone.cones, cone.constant
    )
    assert regulator._regulator(cone, 0) is not None
    assert regulator._regulator(changed, 0) is None


# ---- whole models


def test_a_large_regulator_without_bounds_is_certified() -> None:
    data = plant(20, 3, seed=1)
    model = problem(data)
    value = model.solve()
    assert model.status == "optimal"
    assert value == pytest.approx(riccati(data), rel=1e-9)


def test_data_that_differ_by_six_orders_of_magnitude_are_solved_to_all_digits() -> None:
    # CAREX 13, the control of a magnetic tape (Benner, Laub, Mehrmann 1995)
    A = np.array(
        [
            [0.0, 0.4, 0.0, 0.0],
            [0.0, 0.0, 0.345, 0.0],
            [0.0, -0.524e6, -0.465e6, 0.262e6],
            [0.0, 0.0, 0.0, -1e6],
        ]
    )
    B = np.array([[0.0], [0.0], [0.0], [1e6]])
    Q, N, R = np.diag([1.0, 0.0, 1.0, 0.0]), np.zeros((4, 1)), np.eye(1)
    model = problem((A, B, Q, N, R))
    value = model.solve()
    assert model.status == "optimal"
    assert value == pytest.approx(14.535632054315, rel=1e-10)
