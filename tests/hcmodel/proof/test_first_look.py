"""A first look at a model says whether maps or the proof as written come first; it decides no verdict."""

from __future__ import annotations

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.proof.first_look import needs_a_map


def regulator(row: str) -> hc.Problem:
    P = hc.Variable((2, 2), PSD=(1e-3, 1e3))
    K = hc.Variable((1, 2), bounds=(-9, 9))
    closed = np.array([[0.0, 1.0], [1.0, 0.0]]) + np.array([[0.0], [1.0]]) @ K
    rows = {
        "product": closed @ P + P @ closed.T + np.eye(2) == 0,
        "inequality": closed @ P + P @ closed.T + np.eye(2) << 0,
        "affine": hc.trace(P) + hc.sum(K) == 3,
    }
    return hc.Problem(hc.Minimize(hc.trace(P)), [rows[row]])


@pytest.mark.parametrize(
    ("row", "expected"), [("product", True), ("inequality", False), ("affine", False)]
)
def test_an_equality_that_multiplies_variables_is_affine_in_no_coordinates_of_its_own(
    row: str, expected: bool
) -> None:
    assert needs_a_map(regulator(row).model) is expected


def test_products_of_positive_variables_may_be_straight_in_logarithms() -> None:
    x, y = hc.Variable(pos=True), hc.Variable(pos=True)
    assert not needs_a_map(hc.Problem(hc.Minimize(x + y), [x * y == 2]).model)


def test_a_policy_in_the_matrix_of_a_linear_system_needs_a_map_and_one_beside_it_does_not() -> None:
    pi, moves = hc.Variable((2, 2), simplex=True), np.full((2, 2, 2), 0.5)
    step = hc.einsum("sa,sat->st", pi, moves)
    visits = hc.solve(np.eye(2) - 0.9 * step.T, np.full(2, 0.5))
    assert needs_a_map(hc.Problem(hc.Minimize(hc.sum(visits))).model)
    solved = hc.solve(np.array([[2.0, 1.0], [0.0, 1.0]]), pi)
    assert not needs_a_map(hc.Problem(hc.Minimize(hc.sum(solved))).model)


def test_a_model_that_fails_the_look_is_proven_as_written_where_no_map_proves_it() -> None:
    x, y = hc.Variable(bounds=(-1, 2)), hc.Variable(bounds=(-1, 2))
    problem = hc.Problem(hc.Minimize((x - 1) ** 2 + y), [x * y - y * x + x + y == 1])
    assert needs_a_map(problem.model)
    problem.solve()
    assert problem.status == "optimal"
    # y = 1 − x: (x − 1)² + 1 − x is least at x = 3/2
    assert problem.value == pytest.approx(-0.25, abs=1e-6)


def test_a_closed_loop_in_the_matrix_of_an_equation_needs_a_map_and_a_symmetric_one_does_not() -> (
    None
):
    K, X = hc.Variable((1, 2), name="K"), hc.Variable((2, 2), name="X", PSD=True)
    loop = hc.lyap(-np.eye(2) + np.ones((2, 1)) @ K, np.eye(2))
    assert needs_a_map(hc.Problem(hc.Minimize(hc.trace(loop))).model)
    solved = hc.solve(np.eye(2) + X, np.ones(2))
    assert not needs_a_map(hc.Problem(hc.Minimize(np.ones(2) @ solved)).model)
    beside = hc.lyap(-np.eye(2), K.T @ K)
    assert not needs_a_map(hc.Problem(hc.Minimize(hc.trace(beside))).model)
