"""One policy for units and rank: what does not depend on units, and what is left out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hcmodel.solvers.coordinates.tangent import (
    Tangent,
    balanced,
    orientations,
    unit_sizes,
)

FloatArray = NDArray[np.float64]


def scaled(matrix: FloatArray, seed: int, spread: float) -> Tangent:
    """The same map in other units of x and u."""
    generator = np.random.default_rng(seed)
    rows, columns = matrix.shape
    left = 10.0 ** generator.uniform(-spread, spread, (rows, 1))
    right = 10.0 ** generator.uniform(-spread, spread, columns)
    return Tangent(np.diag(right), left * matrix * right)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("shape", "spread"), [((3, 3), 8.0), ((5, 3), 3.0)])
def test_rank_and_slopes_do_not_depend_on_units(
    seed: int, shape: tuple[int, int], spread: float
) -> None:
    generator = np.random.default_rng(10 + seed)
    matrix = generator.standard_normal(shape)
    assert scaled(matrix, seed, 8.0).full_rank
    tangent = scaled(matrix, seed, spread)
    assert tangent.rank == 3
    assert not tangent.singular
    gradients = generator.standard_normal((2, 3)) / np.diag(tangent.directions)
    slopes = tangent.slopes(gradients)
    along = gradients @ tangent.directions
    terms = np.abs(slopes) @ np.abs(tangent.derivative)
    np.testing.assert_array_less(np.abs(slopes @ tangent.derivative - along), 1e-12 * terms)


def test_a_dependent_direction_is_found_in_any_units() -> None:
    matrix = np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [2.0, 1.0, 3.0]])
    for seed in range(5):
        tangent = scaled(matrix, seed, 6.0)
        assert tangent.rank == 2
        assert not tangent.full_rank
        assert tangent.singular
        assert tangent.orientation is None


def test_fewer_entries_than_directions_are_dependent() -> None:
    tangent = Tangent(np.eye(3), np.ones((2, 3)))
    assert tangent.rank == 1
    assert tangent.singular
    assert tangent.orthonormal() is None


def test_nearly_dependent_is_not_singular_but_has_no_slopes_to_rely_on() -> None:
    tangent = Tangent(np.eye(2), np.array([[1.0, 1.0], [1.0, 1.0 + 1e-12]]))
    assert not tangent.full_rank
    assert not tangent.singular
    assert tangent.orientation is True


def test_orientation_is_the_sign_of_the_determinant() -> None:
    assert Tangent(np.eye(2), np.diag([1e9, 1e-9])).orientation is True
    assert Tangent(np.eye(2), np.diag([1e9, -1e-9])).orientation is False
    assert Tangent(np.eye(2), np.vstack([-np.eye(2), np.ones((1, 2))])).orientation is True


def test_orientations_of_several_matrices_are_those_of_each() -> None:
    generator = np.random.default_rng(4)
    matrices = generator.standard_normal((6, 3, 3))
    matrices[1, 2] = matrices[1, 0] + matrices[1, 1]
    expected = np.sign(np.round(np.linalg.det(matrices), 12))
    assert set(expected) == {-1.0, 0.0, 1.0}
    assert orientations(matrices).tolist() == expected.tolist()
    assert orientations(matrices[:, :, :2]).tolist() == [1] * 6
    assert orientations(matrices[:, :2]).tolist() == [0] * 6


@pytest.mark.parametrize("spread", [0.0, 6.0])
def test_a_direction_in_which_no_entry_moves_is_found_in_any_units(spread: float) -> None:
    matrix = np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0]])  # (1, 1, −1) is lost
    tangent = scaled(matrix, 1, spread)
    still = tangent.still
    assert still is not None
    moved = still * np.diag(tangent.directions)
    np.testing.assert_allclose(moved / moved[0], [1.0, 1.0, -1.0], rtol=1e-8)
    assert scaled(matrix + np.eye(3), 1, spread).still is None


def test_a_chain_that_shrinks_moves_in_every_direction() -> None:
    """x_k − 2 x_(k−1): its least singular value is 2^−60, which is less than rounding."""
    tangent = Tangent(np.eye(60), np.eye(60) - 2 * np.eye(60, k=-1))
    assert tangent.singular
    assert tangent.still is None


def test_a_map_without_derivatives_says_so() -> None:
    tangent = Tangent(np.eye(2), np.array([[1.0, np.nan], [0.0, 1.0]]))
    assert not tangent.defined
    assert not tangent.full_rank
    assert tangent.orientation is None
    assert tangent.orthonormal() is None
    assert np.isnan(tangent.slopes(np.ones((1, 2)))).all()


def test_orthonormal_columns_move_u_by_unit_steps() -> None:
    generator = np.random.default_rng(0)
    tangent = Tangent(np.eye(3), generator.standard_normal((5, 3)))
    columns = tangent.orthonormal()
    assert columns is not None
    moved = tangent.derivative @ columns
    np.testing.assert_allclose(moved.T @ moved, np.eye(3), atol=1e-12)


def test_steps_are_those_of_least_squares() -> None:
    generator = np.random.default_rng(1)
    matrix, change = generator.standard_normal((5, 3)), generator.standard_normal(5)
    expected = np.linalg.lstsq(matrix, change, rcond=None)[0]
    np.testing.assert_allclose(Tangent(np.eye(3), matrix).step(change), expected, rtol=1e-10)


def test_slopes_are_the_least_that_fit() -> None:
    generator = np.random.default_rng(2)
    matrix, gradient = generator.standard_normal((5, 3)), generator.standard_normal(3)
    expected = np.linalg.lstsq(matrix.T, gradient, rcond=None)[0]
    found = Tangent(np.eye(3), matrix).slopes(gradient[None, :])[0]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_hull_spans_the_image() -> None:
    matrix = np.array([[1.0, 0.0], [0.0, 1e8], [1.0, 1e8]])
    hull = Tangent(np.eye(2), matrix).hull
    np.testing.assert_allclose(hull.T @ hull, np.eye(2), atol=1e-12)
    rest = matrix - hull @ (hull.T @ matrix)
    np.testing.assert_allclose(rest / [1.0, 1e8], 0.0, atol=1e-12)


def test_only_unusual_sizes_are_units() -> None:
    np.testing.assert_array_equal(
        unit_sizes(np.array([0.0, 1e-7, 1e-3, 1.0, 1e5, 1e7])), [1.0, 1e-7, 1.0, 1.0, 1.0, 1e7]
    )


def test_balancing_makes_rows_and_columns_of_size_about_one() -> None:
    whole = scaled(np.random.default_rng(3).uniform(1.0, 2.0, (4, 5)), 0, 10.0).derivative
    matrix = balanced(whole)
    for axis in (0, 1):
        sizes = np.max(np.abs(matrix), axis=axis)
        assert (sizes > 0.5).all()
        assert (sizes < 2.0).all()
