"""Definiteness of numbers: small entries beside large ones are data, and rounding proves nothing."""

from __future__ import annotations

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.atoms.rules import MatrixKind
from hcmodel.facts.definiteness import of_value
from hcmodel.maps.matrix_algebra.loop_weights import Weights
from hcmodel.reductions.forms import Forms
from hcmodel.solvers.algebra.definite import is_definite, is_semidefinite

HALF_TURN = np.pi / 2
TURN = np.array(
    [[np.cos(HALF_TURN), -np.sin(HALF_TURN)], [np.sin(HALF_TURN), np.cos(HALF_TURN)]]
)  # the cosine is 6e-17


@pytest.mark.parametrize(
    "matrix",
    [
        np.diag([1e13, -1.0]),
        np.diag([1.0, -1e-16]),
        np.array([[0.0, 1e-9], [1e-9, 1.0]]),
        np.array([[1e13, 1e6], [1e6, 0.1 * (1 - 1e-8)]]),
        np.array([[1.0, np.nan], [np.nan, 1.0]]),
    ],
)
def test_what_is_indefinite_beside_large_entries_is_not_semidefinite(matrix: np.ndarray) -> None:
    assert not is_semidefinite(matrix)
    assert not is_definite(matrix)
    assert of_value(matrix) <= MatrixKind.SYMMETRIC


@pytest.mark.parametrize(
    "matrix",
    [
        np.zeros((2, 2)),
        np.diag([1.0, 0.0]),
        TURN @ np.diag([1.0, 0.0]) @ TURN.T,
        np.eye(3) - np.full((3, 3), 1 / 3),
        np.array([[1e13, 1e6], [1e6, 0.1]]),
    ],
)
def test_singular_matrices_are_semidefinite_to_rounding_and_not_definite(
    matrix: np.ndarray,
) -> None:
    assert is_semidefinite(matrix)
    assert not is_definite(matrix)


def test_definite_matrices_of_any_scale() -> None:
    for matrix in (np.diag([1.0, 1e-13]), np.array([[1e13, 1e6], [1e6, 0.2]]), np.zeros((0, 0))):
        assert is_semidefinite(matrix)
        assert is_definite(matrix)


def test_random_gram_matrices() -> None:
    """C'C is semidefinite and singular; less of one diagonal entry makes it indefinite."""
    generator = np.random.default_rng(3)
    for _ in range(100):
        size = int(generator.integers(2, 8))
        columns = generator.normal(size=(size - 1, size)) * 10.0 ** generator.uniform(-6, 6, size)
        gram = columns.T @ columns
        assert is_semidefinite(gram)
        assert not is_definite(gram)
        gram[0, 0] *= 0.5
        root = np.sqrt(gram.diagonal())
        if np.linalg.eigvalsh(gram / np.outer(root, root))[0] < -1e-9:
            assert not is_semidefinite(gram)


def test_a_weight_that_is_negative_beside_large_ones_is_no_convex_cost() -> None:
    """The more input the better: trace(X) is not bounded below, whatever the states cost."""
    A, B = np.diag([-1.0, -2.0]), np.array([[0.0], [1.0]])
    X, K = hc.Variable((2, 2), name="X", PSD=True), hc.Variable((1, 2), name="K")
    F = A + B @ K
    row = F.T @ X + X @ F + 1e13 * np.eye(2) - K.T @ K == 0
    found = Forms(hc.Problem(hc.Minimize(1e-13 * hc.trace(X)), [row]).model).discovery
    assert found.substitution is None


def test_states_without_a_cost_of_their_own_do_not_keep_a_cost_matrix_definite() -> None:
    """(x + 3e-7 k)² + … is 0 for k = −x/3e-7, though the weight 1e-13 of k is almost 0."""
    small = np.sqrt(1e-13)
    weight = np.array([[1.0, small], [small, small**2]])
    nothing = np.zeros((1, 1))
    assert not Weights(nothing, nothing, nothing, nothing, weight, nothing).keeps_definite()
    weight = np.array([[1.0, small], [small, 2 * small**2]])
    assert Weights(nothing, nothing, nothing, nothing, weight, nothing).keeps_definite()


def test_how_far_a_regulator_reaches_is_no_less_than_what_rounding_hides() -> None:
    """W ⪰ λ I for a λ that is at most the least eigenvalue."""
    generator = np.random.default_rng(2)
    turn = np.linalg.qr(generator.normal(size=(3, 3)))[0]
    zero, one = np.zeros((2, 2)), np.zeros((2, 1))
    for least in (1e-9, 3e-12):
        weight = (turn * np.array([least, 1.0, 1.0])) @ turn.T
        found = Weights(-np.eye(2), np.ones((2, 1)), zero, one, (weight + weight.T) / 2, zero)
        assert found.reach() >= 2 * np.linalg.norm([[-1, 0, 1], [0, -1, 1]]) / least
