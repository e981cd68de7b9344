"""Small polyhedra: the lowest vertex and the nearest point, beside the backends for general programs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from hcmodel.solvers.qp import QPStatus, QuadraticProgram, make_backend
from hcmodel.solvers.qp.program import StepRows
from hcmodel.solvers.qp.small_polyhedra import lowest_vertex, nearest_point

FloatArray = NDArray[np.float64]


def polyhedron(seed: int, size: int = 4, count: int = 12) -> tuple[FloatArray, FloatArray]:
    """Random rows of length 1 around 0, which is outside of some of them, and a box of 3."""
    generator = np.random.default_rng(seed)
    normals = generator.normal(size=(count, size))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    offset = np.concatenate([generator.uniform(-0.3, 1.0, count), np.full(2 * size, 3.0)])
    return np.concatenate([normals, np.eye(size), -np.eye(size)]), offset


def box_basis(cost: FloatArray, count: int) -> list[int]:
    """The sides of the box against which the cost falls."""
    return [count + i + cost.size * (slope > 0) for i, slope in enumerate(cost.tolist())]


@pytest.mark.parametrize("seed", range(20))
def test_the_lowest_vertex_is_that_of_highs(seed: int) -> None:
    matrix, offset = polyhedron(seed)
    cost = np.random.default_rng(seed + 100).normal(size=4)
    found = lowest_vertex(matrix, offset, cost, box_basis(cost, 12))
    known = scipy.optimize.linprog(cost, A_ub=matrix, b_ub=offset, bounds=(None, None))
    assert found is not None
    assert found.conflict == (known.status == 2)
    rows = list(found.basis)
    assert (found.weights >= 0).all()
    if found.conflict:  # the rows, weighed and added, say 0 <= a negative number
        np.testing.assert_allclose(found.weights @ matrix[rows], 0, atol=1e-10)
        assert found.weights @ offset[rows] < 0
    else:
        assert (matrix @ found.point <= offset + 1e-10).all()
        assert cost @ found.point == pytest.approx(known.fun, abs=1e-9)
        np.testing.assert_allclose(found.weights @ matrix[rows], -cost, atol=1e-10)
        again = lowest_vertex(matrix, offset, cost, rows)
        assert again is not None
        assert again.basis == found.basis


def test_a_basis_that_bounds_nothing_is_refused() -> None:
    matrix, offset = polyhedron(1)
    cost = np.ones(4)
    assert lowest_vertex(matrix, offset, cost, box_basis(-cost, 12)) is None
    assert lowest_vertex(matrix, offset, cost, [12, 12, 13, 14]) is None  # singular
    assert lowest_vertex(matrix, offset * np.nan, cost, box_basis(cost, 12)) is None


@pytest.mark.parametrize("seed", range(20))
def test_the_nearest_point_is_that_of_a_quadratic_program(seed: int) -> None:
    matrix, offset = polyhedron(seed, count=9)
    offset[0] = np.inf  # a row that is left out
    found = nearest_point(matrix, offset)
    nothing = np.zeros((0, 4))
    box = StepRows(np.full(4, -3.0), np.full(4, 3.0))
    program = QuadraticProgram(
        np.ones(4), np.zeros(4), matrix[1:9], offset[1:9], nothing, np.zeros(0), box
    )
    known = make_backend("clarabel").solve(program)
    assert (found is None) == (known.status is QPStatus.INFEASIBLE)
    if found is not None:
        point, weights = found
        np.testing.assert_allclose(point, known.step, atol=1e-8)
        np.testing.assert_allclose(weights[1:9], known.inequality_multipliers, atol=1e-7)
        np.testing.assert_allclose(point, -(weights @ matrix), atol=1e-12)
        assert (weights >= 0).all()


def test_rows_on_opposite_sides_and_rows_without_a_slope_have_no_nearest_point() -> None:
    apart = np.array([[1.0, 0.0], [-1.0, 0.0]])
    assert nearest_point(apart, np.array([-1.0, -1.0])) is None
    assert nearest_point(np.zeros((1, 2)), np.array([-1.0])) is None
    point, weights = nearest_point(apart, np.array([-1.0, 2.0])) or (None, None)
    np.testing.assert_allclose(point, [-1.0, 0.0])
    np.testing.assert_allclose(weights, [1.0, 0.0])
