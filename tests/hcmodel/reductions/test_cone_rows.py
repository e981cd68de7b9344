"""Rows of the builder of cone programs, against values of the functions that they bound."""

from __future__ import annotations

import numpy as np
import pytest

from hcmodel.reductions.cone.affine import Affine
from hcmodel.reductions.cone.cone_rows import ConeRows
from hcmodel.solvers.qp import solve_cone


def best(rows: ConeRows, bound: Affine, sign: float = 1.0) -> np.ndarray:
    """The bound of least sum, or of largest sum for a sign of −1."""
    solution = solve_cone(rows.program(rows.summed(bound, None).scaled(sign)))
    assert solution.usable
    found = bound.offset + bound.rows(rows.size) @ solution.primal
    return np.asarray(found).reshape(bound.shape)


def held(rows: ConeRows, values: np.ndarray) -> Affine:
    """Unknowns that are held at these values."""
    unknown = rows.unknown(values.shape)
    rows.zero(unknown - Affine.constant(values))
    return unknown


@pytest.mark.parametrize(
    ("exponent", "kind", "sign"),
    [
        # squares, roots and reciprocals are quadratic cones, which are solved to more digits
        (2.0, "SECOND_ORDER", 1.0),
        (0.5, "SECOND_ORDER", -1.0),
        (-1.0, "SECOND_ORDER", 1.0),
        (3.0, "POWER", 1.0),
        (1.5, "POWER", 1.0),
        (0.25, "POWER", -1.0),
        (-0.5, "POWER", 1.0),
        (-2.0, "POWER", 1.0),
        (1.0, None, 1.0),
        (0.0, None, 1.0),
    ],
)
def test_powers(exponent: float, kind: str | None, sign: float) -> None:
    rows, values = ConeRows(0), np.array([0.5, 2.0, 3.0])
    bound = rows.power_of(held(rows, values), exponent)
    assert {cone.kind.name for group, _ in rows.blocks[1:] for cone in group} == (
        {kind} if kind else set()
    )
    assert best(rows, bound, sign) == pytest.approx(values**exponent, rel=1e-6)


def test_powers_with_an_exponent_for_each_entry() -> None:
    rows, values = ConeRows(0), np.array([2.0, 3.0, 2.0, 0.5])
    exponents = np.array([2.0, -1.0, 1.0, 2.0])
    assert best(rows, rows.power_of(held(rows, values), exponents)) == pytest.approx(
        values**exponents, rel=1e-6
    )


def test_the_inverse_of_the_identity_less_a_matrix_has_the_zeros_that_the_pattern_has() -> None:
    """A = [0, a, 0; 0, 0, b; 0, 0, c]: inv(I − A) = I + A + A² + …, upper triangular."""
    a, b, c = 0.5, 0.25, 0.2
    matrix = np.array([[0.0, a, 0.0], [0.0, 0.0, b], [0.0, 0.0, c]])
    with np.errstate(divide="ignore"):
        logarithms = Affine.constant(np.log(matrix))
    rows = ConeRows(0)
    found = rows.eye_minus_inverse(logarithms)
    lower = np.tril_indices(3, -1)
    assert (found.offset.reshape(3, 3)[lower] == -np.inf).all()
    own = np.flatnonzero(found.offset > -np.inf)
    values = best(rows, found.flat().taken(own, (own.size,)))
    last = 1 / (1 - c)
    assert np.exp(values) == pytest.approx([1, a, a * b * last, 1, b * last, last], rel=1e-5)


def test_squares_of_sums_get_unknowns_of_their_own_and_those_of_unknowns_do_not() -> None:
    """So that P stays as sparse as Q: (x₀ + x₁)² is r² with r = x₀ + x₁."""
    rows = ConeRows(0)
    x = rows.unknown((2,))
    rows.add_quadratic(x, np.diag([3.0, 5.0]))
    assert rows.size == 2
    both = x.mapped(np.ones((1, 2)), (1,)) - Affine.constant(np.array([4.0]))
    rows.add_quadratic(both, np.array([[7.0]]))
    assert rows.size == 3
    program = rows.program(rows.summed(x, None))
    assert program.quadratic.toarray() == pytest.approx(np.diag([6.0, 10.0, 14.0]))
    assert program.constant == 0.0
    # r − (x₀ + x₁ − 4) is b − A x, and 0
    assert program.matrix.toarray().tolist() == [[1.0, 1.0, -1.0]]
    assert program.offset.tolist() == [4.0]
    rows.add_quadratic(Affine.constant(np.array([2.0])), np.array([[0.5]]))
    assert rows.program(rows.summed(x, None)).constant == pytest.approx(2.0)


def test_weighted_squares_of_single_unknowns_have_the_matrix_of_the_product() -> None:
    found = []
    for weights in (np.array([3.0, 5.0, 2.0]), np.diag([3.0, 5.0, 2.0])):
        rows = ConeRows(0)
        x = rows.unknown((3,))
        moved = x.taken(np.array([2, 0, 2]), (3,)).scaled(np.array([1.0, -2.0, 4.0]))
        rows.add_quadratic(moved + Affine.constant(np.array([1.0, 0.5, -3.0])), weights)
        found.append(rows.program(Affine.constant(np.array([7.0]))))
    short, whole = found
    np.testing.assert_allclose(short.quadratic.toarray(), whole.quadratic.toarray())
    np.testing.assert_allclose(short.linear, whole.linear)
    assert short.constant == pytest.approx(whole.constant)
    assert short.quadratic.nnz == 2
