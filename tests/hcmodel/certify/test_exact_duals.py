"""Duals that are exact in some equations: the shift is bounded, and stays in the dual cone."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse

from hcmodel.certify.duals import cone_ranges, exact_duals
from hcmodel.certify.duals.cone_ranges import ConePlaces, _least_weights
from hcmodel.certify.duals.exact_duals import _margins, exact_shift, has_no_residual, simple_dual
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
        assert all(abs(each) <= size for each, size in zip(exact, shift.sizes, strict=True))
        assert shift.sizes.max() <= 10 * np.abs(np.linalg.inv(square)).sum(axis=1).max() * 1e-8


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


def test_columns_that_share_no_row_are_shifted_apart_by_the_row_that_is_farthest_inside() -> None:
    # x_0 stands in rows 0 and 1, x_1 in row 2, and both in an equation that is not needed
    own = places(ConeBlock(ConeKind.NONNEGATIVE, 3), ConeBlock(ConeKind.ZERO, 1))
    matrix = scipy.sparse.csc_array(np.array([[4.0, 0.0], [2.0, 0.0], [0.0, -5.0], [1.0, 1.0]]))
    z = np.array([1.0, 3.0, 1.0, 0.0])
    shift = exact_shift(matrix, own, z, np.arange(2), np.array([1e-9, 1e-6]))
    assert shift is not None
    assert shift.rows.tolist() == [1, 2]  # 2·3 is more than 4·1
    assert shift.sizes == pytest.approx([1e-9 / 2, 1e-6 / 5])
    # without a row inside, the equation has to move
    edge = exact_shift(
        matrix, own, np.array([0.0, 0.0, 1.0, 0.0]), np.arange(2), np.array([1e-9, 1e-6])
    )
    assert edge is not None
    assert 3 in edge.rows


def test_more_columns_than_can_be_inverted_at_once_are_shifted_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules = replace(exact_duals.CONE_DUALITY, most_exact=2)
    monkeypatch.setattr(exact_duals, "CONE_DUALITY", rules)
    parts = [
        np.array([[2.0, 1.0], [0.0, 4.0]]),
        np.array([[3.0]]),
        np.array([[1.0, 2.0], [2.0, 1.0]]),
    ]
    matrix = scipy.sparse.csc_array(scipy.sparse.block_diag(parts))
    own = places(ConeBlock(ConeKind.NONNEGATIVE, 5))
    shift = exact_shift(matrix, own, np.ones(5), np.arange(5), np.full(5, 1e-6))
    assert shift is not None
    expected = np.zeros(5)
    for part, rows in zip(parts, ([0, 1], [2], [3, 4]), strict=True):
        expected[rows] = 1e-6 * np.abs(np.linalg.inv(part.T)).sum(axis=1)
    found = np.zeros(5)
    found[shift.rows] = shift.sizes
    assert found == pytest.approx(expected)
    joined = scipy.sparse.csc_array(matrix + np.eye(5, k=1))  # all hang together
    assert exact_shift(joined, own, np.ones(5), np.arange(5), np.full(5, 1e-6)) is None


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
    # diag(3, 2) after a row that is equal, which may move as far as any, and one that is not
    own = places(
        ConeBlock(ConeKind.ZERO, 1),
        ConeBlock(ConeKind.NONNEGATIVE, 1),
        ConeBlock(ConeKind.PSD_TRIANGLE, 3),
        ConeBlock(ConeKind.PSD_TRIANGLE, 1),
    )
    z = np.array([0.5, 7.0, 3.0, 0.0, 2.0, 4.0])
    assert _margins(own, z) == pytest.approx([7, 7, 2, 2, 2, 4])


def test_a_weight_inside_a_matrix_cone_bounds_the_diagonal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # <d, s> of d = diag(3, 2) and s ⪰ 0 is at least 2 times each entry of the diagonal
    own = places(ConeBlock(ConeKind.NONNEGATIVE, 1), ConeBlock(ConeKind.PSD_TRIANGLE, 3))
    weights = _least_weights(own, np.array([5.0, 3.0, 0.0, 2.0]))
    assert weights == pytest.approx([5, 2, 0, 2])
    assert (weights[[1, 3]] < 2).all()  # rounding is taken off
    # outside of the dual cone nothing is known
    assert _least_weights(own, np.array([5.0, -2.0, 0.0, 3.0])).size == 0
    # a rounding of 0.01: 2 − 0.01·2·3 of the eigenvalues, and 0.99 of that
    monkeypatch.setattr(cone_ranges, "DATA_ROUNDING", 0.01)
    rough = _least_weights(own, np.array([5.0, 3.0, 0.0, 2.0]))
    assert rough == pytest.approx([5 * 0.99, 1.94 * 0.99, 0, 1.94 * 0.99])


# ---- rounding, made so large that each place where it counts shows in the numbers


@pytest.fixture
def rough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_duals, "SUM_ROUNDING", 0.1)
    monkeypatch.setattr(exact_duals, "OPERATION_ROUNDING", 0.05)
    monkeypatch.setattr(exact_duals, "PRODUCT_ROUNDING", 0.02)


@pytest.mark.parametrize(
    ("first", "last", "stays"),
    [
        # √½ of an entry off the diagonal moves: 0.9·√½·(1 + 0.1·2) = 0.764 in each row, and 0.1 of
        # the diagonal
        (0.86, 5.0, True),
        (0.84, 5.0, False),
        (5.0, 0.86, True),
        (5.0, 0.84, False),
    ],
)
@pytest.mark.usefixtures("rough")
def test_a_matrix_stays_inside_by_what_its_rows_lose(
    first: float, last: float, stays: bool
) -> None:
    z, moved = np.array([0.0, first, 0.0, last]), np.array([9.0, 0.0, 0.9, 0.0])
    assert exact_duals._block(z, moved, 2, 1) == stays
    # a block that does not move may be anywhere
    assert exact_duals._block(-z, np.array([9.0, 0.0, 0.0, 0.0]), 2, 1)


@pytest.mark.parametrize(
    ("top", "moved", "stays"),
    [
        # ‖(3, 4)‖ = 5 times 1 + 0.1 + 0.05·2, and the top falls by ½
        (6.6, [0.5, 0.0, 0.0], True),
        (6.4, [0.5, 0.0, 0.0], False),
        # ‖(4, 4)‖ where the first entry grows by 1: 5.657·1.2 = 6.788
        (6.9, [0.0, 1.0, 0.0], True),
        (6.7, [0.0, 1.0, 0.0], False),
        (1.0, [0.0, 0.0, 0.0], True),
    ],
)
@pytest.mark.usefixtures("rough")
def test_a_second_order_cone_is_left_by_its_top_and_by_its_members(
    top: float, moved: list[float], stays: bool
) -> None:
    own = places(ConeBlock(ConeKind.SECOND_ORDER, 3))
    assert exact_duals._second_order(own, np.array([top, -3.0, 4.0]), np.array(moved)) == stays


@pytest.mark.parametrize(
    ("z", "moved", "stays"),
    [
        # v/u = −1: exp(−2)·(1 + 0.2·(2 + 1)) = 0.2165, and w falls by ¼
        ([-1.0, 1.0, 0.47], [0.0, 0.0, 0.25], True),
        ([-1.0, 1.0, 0.46], [0.0, 0.0, 0.25], False),
        # u in [−1.5, −0.5]: v/u is at most −2/3, and 1.5·exp(−5/3)·(1 + 0.2·(2 + 2/3)) = 0.4344
        ([-1.0, 1.0, 0.44], [0.5, 0.0, 0.0], True),
        ([-1.0, 1.0, 0.43], [0.5, 0.0, 0.0], False),
        # v in [0.5, 1.5]: v/u is at most −½, and exp(−1.5)·(1 + 0.2·2.5) = 0.3347
        ([-1.0, 1.0, 0.34], [0.0, 0.5, 0.0], True),
        ([-1.0, 1.0, 0.33], [0.0, 0.5, 0.0], False),
        # u may become 0
        ([-0.4, 1.0, 100.0], [0.5, 0.0, 0.0], False),
    ],
)
@pytest.mark.usefixtures("rough")
def test_an_exponential_cone_is_left_at_the_worst_corner(
    z: list[float], moved: list[float], stays: bool
) -> None:
    assert exact_duals._exponential(np.array(z), np.array(moved)) == stays


def rough_shift() -> exact_duals.Shift | None:
    """Two equations with the matrix [[2, 0], [1, 4]], residuals of 1e-3."""
    matrix = scipy.sparse.csc_array(np.array([[2.0, 1.0], [0.0, 4.0]]))
    own = places(ConeBlock(ConeKind.NONNEGATIVE, 2))
    return exact_shift(matrix, own, np.ones(2), np.arange(2), np.full(2, 1e-3))


def test_a_shift_is_that_of_an_approximate_inverse_and_what_it_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # the inverse [[½, 0], [−⅛, ¼]] takes 1e-3 to ½e-3 and ⅜e-3; its product with the matrix has terms of
    # [[1, 0], [½, 1]], and with those of the identity rows of 2 and 2½
    monkeypatch.setattr(exact_duals, "SUM_ROUNDING", 0.01)
    monkeypatch.setattr(exact_duals, "OPERATION_ROUNDING", 0.005)
    monkeypatch.setattr(exact_duals, "PRODUCT_ROUNDING", 0.02)
    rounding = 0.01 + 2 * 0.005
    left = rounding * 2.5 * (1 + rounding)
    shift = rough_shift()
    assert shift is not None
    first = np.array([0.5e-3, 0.375e-3]) * (1 + rounding)
    assert shift.sizes == pytest.approx((first + left / (1 - left) * first[0]) * 1.02)
    # 0.35·2.5·1.35 is above 1: the inverse shows nothing
    monkeypatch.setattr(exact_duals, "SUM_ROUNDING", 0.25)
    monkeypatch.setattr(exact_duals, "OPERATION_ROUNDING", 0.05)
    assert rough_shift() is None


@pytest.mark.parametrize(
    ("z", "taken"),
    [
        ([10.0, 0.45], True),  # moved by 0.05, a two-hundredth of the largest
        ([3.0, 0.45], False),  # more than a hundredth
        ([0.5, 0.492], True),  # of 1 at least
        ([0.5, 0.485], False),
    ],
)
def test_simple_fractions_are_near_in_units_of_the_largest_weight(
    z: list[float], taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = replace(exact_duals.CONE_DUALITY, denominator=2, rounded=0.01, most_exact=2)
    monkeypatch.setattr(exact_duals, "CONE_DUALITY", rules)
    program = ConeProgram(
        scipy.sparse.csc_array((2, 2)),
        np.zeros(2),
        scipy.sparse.csc_array(np.ones((2, 2))),
        np.zeros(2),
        (ConeBlock(ConeKind.NONNEGATIVE, 2),),
    )
    found = simple_dual(program, np.arange(2), np.array(z))
    assert (found is not None) == taken
    if found is not None:
        assert found.tolist() == [z[0], 0.5]
    # two rows and two unknowns are too many for a limit of one
    monkeypatch.setattr(exact_duals, "CONE_DUALITY", replace(rules, most_exact=1))
    assert simple_dual(program, np.arange(2), np.array(z)) is None


def test_an_equation_may_move_by_one_where_all_weights_are_small() -> None:
    own = places(ConeBlock(ConeKind.ZERO, 1), ConeBlock(ConeKind.NONNEGATIVE, 1))
    assert _margins(own, np.array([0.1, 0.2])) == pytest.approx([1.0, 0.2])
