"""Proofs that a matrix is semidefinite, where its eigenvalues are too near to 0 to be computed."""

from __future__ import annotations

import numpy as np
import pytest

from hcmodel.solvers.algebra import symmetric
from hcmodel.solvers.algebra.symmetric import cholesky_rounding, is_surely_semidefinite


def test_a_small_eigenvalue_is_told_from_rounding_by_the_scale_of_its_own_rows() -> None:
    # eigenvalues 1e12 and about 1e-6: an eigenvalue solver knows them up to 1e-4
    matrix = np.array([[1e12, 1e3], [1e3, 2e-6]])
    assert is_surely_semidefinite(matrix)
    assert not is_surely_semidefinite(matrix - np.diag([0.0, 1.1e-6]))


@pytest.mark.parametrize(
    ("matrix", "sure"),
    [
        ([[0.0, 0.0], [0.0, 0.0]], True),
        ([[0.0, 0.0], [0.0, 1.0]], True),
        ([[0.0, 1e-300], [1e-300, 1.0]], False),  # no entry stands beside a 0 of the diagonal
        ([[1.0, 1.0], [1.0, 1.0]], False),  # on the edge: it is semidefinite, and nothing shows it
        ([[-1e-300, 0.0], [0.0, 1.0]], False),
        ([[np.nan, 0.0], [0.0, 1.0]], False),
    ],
)
def test_matrices_at_the_edge(matrix: list[list[float]], sure: bool) -> None:
    assert is_surely_semidefinite(np.array(matrix)) == sure


def test_the_rounding_of_the_method_is_taken_off_the_diagonal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # n = 2, ε = 0.01: 2·2·4·0.01 = 0.16 of the diagonal; [[1, c], [c, 1]] needs c < 0.84
    monkeypatch.setattr(symmetric, "OPERATION_ROUNDING", 0.01)
    assert cholesky_rounding(2) == pytest.approx(0.16)
    assert is_surely_semidefinite(np.array([[1.0, 0.83], [0.83, 1.0]]))
    assert not is_surely_semidefinite(np.array([[1.0, 0.85], [0.85, 1.0]]))
