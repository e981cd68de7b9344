"""Duals that are exact in some equations: the shift is bounded, and stays in the dual cone."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse

from hcmodel.certify.cone_ranges import ConePlaces, _least_weights
from hcmodel.certify.exact_duals import _margins, exact_shift, has_no_residual, simple_dual
from hcmodel.solvers.qp.cone_program import ConeBlock, ConeKind, ConeProgram


def places(*cones: ConeBlock) -> ConePlaces:
    rows = sum(cone.size for cone in cones)
    return ConePlaces.of(
        ConeProgram(
            scipy.sparse.csc_array((1, 1)),
            np.zeros(1),
            scipy.sparse.csc_array((rows, 1)),
            np.zeros(rows),
            cones,
        )
    )


def exact_solution(matrix: np.ndarray, right: np.ndarray) -> list[Fraction]:
    """Cramer's rule for two equations."""
    (a, b), (c, d) = [[Fraction(float(number)) for number in row] for row in matrix]
    e, f = (Fraction(float(number)) for number in right)
    determinant = a * d - b * c
    return [(e * d - b * f) / determinant, (a * f - e * c) / determinant]


def test_the_shift_bounds_the_exact_solution() -> None:
    generator = np.random.default_rng(0)
    own = places(ConeBlock(ConeKind.NONNEGATIVE, 4))
    for _ in range(20):
        matrix = scipy.sparse.csc_array(generator.normal(size=(4, 2)))
        z = generator.uniform(1, 2, 4)
        residual = 1e-9 * generator.normal(size=2)
        shift = exact_shift(matrix, own, z, np.arange(2), np.abs(residual))
        assert shift is not None
        square = matrix.toarray()[shift.rows].T
        exact = exact_solution(square, -residual)
        assert max(abs(each) for each in exact) <= shift.size
        assert shift.size <= 10 * np.abs(np.linalg.inv(square)).sum(axis=1).max() * 1e-8


@pytest.mark.parametrize(
    ("cone", "inside", "outside"),
    [
        (ConeBlock(ConeKind.NONNEGATIVE, 3), [1.0, 1.0, 1.0], [1e-12, 1e-12, 1e-12]),
        (ConeBlock(ConeKind.SECOND_ORDER, 3), [2.0, 1.0, 1.0], [2**0.5, 1.0, 1.0]),
        # −u·exp(v/u − 1) <= w: at u = −1, v = 1 it is exp(−2)
        (ConeBlock(ConeKind.EXPONENTIAL, 3), [-1.0, 1.0, 1.0], [-1.0, 1.0, np.exp(-2.0)]),
        (ConeBlock(ConeKind.PSD_TRIANGLE, 3), [1.0, 0.0, 1.0], [1.0, 2**0.5, 1.0]),
    ],
)
def test_a_dual_at_the_edge_of_its_cone_is_not_shifted(
    cone: ConeBlock, inside: list[float], outside: list[float]
) -> None:
    matrix = scipy.sparse.csc_array(np.ones((3, 1)))
    found = [
        exact_shift(matrix, places(cone), np.array(z), np.arange(1), np.array([1e-9]))
        for z in (inside, outside)
    ]
    assert found[0] is not None
    assert found[1] is None


def test_equations_that_no_row_can_solve_are_not() -> None:
    own = places(ConeBlock(ConeKind.NONNEGATIVE, 2))
    twice = scipy.sparse.csc_array(np.array([[1.0, 2.0], [2.0, 4.0]]))
    assert exact_shift(twice, own, np.ones(2), np.arange(2), np.full(2, 1e-9)) is None


def test_simple_fractions_are_taken_where_they_solve_the_equations_exactly() -> None:
    # q + Aᵀz with z = (1/2, 1/2, 0): the last row holds an unknown that no other has
    matrix = scipy.sparse.csc_matrix(np.array([[-1.0, -1.0], [1.0, -1.0], [2.0, 0.0]]))
    program = ConeProgram(
        scipy.sparse.csc_matrix((2, 2)),
        np.array([0.0, 1.0]),
        matrix,
        np.zeros(3),
        (ConeBlock(ConeKind.NONNEGATIVE, 3),),
    )
    columns = np.arange(2)
    found = simple_dual(program, columns, np.array([0.5 + 2e-9, 0.5 - 1e-9, 3e-11]))
    assert found is not None
    assert found.tolist() == [0.5, 0.5, 0.0]
    assert has_no_residual(program, columns, found)
    assert not has_no_residual(program, columns, np.array([0.5, np.nextafter(0.5, 1), 0.0]))
    assert simple_dual(program, columns, np.array([0.5, 0.123456, 0.0])) is None


def test_a_matrix_may_move_by_its_least_eigenvalue() -> None:
    # diag(2, 3) after a row that is equal, which may move freely, and one of a power cone, which may not
    own = places(
        ConeBlock(ConeKind.ZERO, 1),
        ConeBlock(ConeKind.NONNEGATIVE, 1),
        ConeBlock(ConeKind.PSD_TRIANGLE, 3),
        ConeBlock(ConeKind.PSD_TRIANGLE, 1),
    )
    z = np.array([0.5, 7.0, 2.0, 0.0, 3.0, 4.0])
    assert _margins(own, z) == pytest.approx([7, 7, 2, 2, 2, 4])


def test_a_weight_inside_a_matrix_cone_bounds_the_diagonal() -> None:
    # <d, s> of d = diag(2, 3) and s ⪰ 0 is at least 2 times each entry of the diagonal
    own = places(ConeBlock(ConeKind.NONNEGATIVE, 1), ConeBlock(ConeKind.PSD_TRIANGLE, 3))
    weights = _least_weights(own, np.array([5.0, 2.0, 0.0, 3.0]))
    assert weights == pytest.approx([5, 2, 0, 2])
    assert (weights[[1, 3]] < 2).all()  # rounding is taken off
    # outside of the dual cone nothing is known
    assert _least_weights(own, np.array([5.0, -2.0, 0.0, 3.0])).size == 0
