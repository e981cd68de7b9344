"""Compressed rows against dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from hcmodel.reductions.cone import compressed_rows as module
from hcmodel.reductions.cone.compressed_rows import Rows, stacked


def random_matrix(seed: int, shape: tuple[int, int]) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return generator.normal(size=shape) * (generator.uniform(size=shape) < 0.4)


def dense(matrix: Rows) -> np.ndarray:
    return matrix.to_scipy().toarray()


SHAPES = [(4, 5), (1, 1), (0, 3), (3, 0), (6, 2)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("convert", [np.asarray, scipy.sparse.coo_array, scipy.sparse.csc_matrix])
def test_matrices_of_numpy_and_scipy(convert, shape) -> None:
    matrix = random_matrix(0, shape)
    found = Rows.of(convert(matrix))
    assert found.shape == shape
    np.testing.assert_array_equal(dense(found), matrix)
    assert Rows.of(found) is found


@pytest.mark.parametrize("shape", SHAPES)
def test_operations_are_those_of_matrices(shape) -> None:
    one, two = random_matrix(1, shape), random_matrix(2, shape)
    a, b = Rows.of(one), Rows.of(two)
    np.testing.assert_allclose(dense(a + b), one + two)
    np.testing.assert_allclose(dense(-a), -one)
    weights = np.arange(shape[0]) - 1.0
    np.testing.assert_allclose(dense(a.scaled(weights)), weights[:, None] * one)
    vector = np.linspace(-1, 2, shape[1])
    np.testing.assert_allclose(a @ vector, one @ vector, atol=1e-14)
    wide = dense(a.widened(shape[1] + 2))
    np.testing.assert_allclose(wide, np.pad(one, ((0, 0), (0, 2))))
    np.testing.assert_allclose(a.largest(), np.max(np.abs(one), axis=1, initial=0.0))
    np.testing.assert_allclose(dense(stacked([a, b, a])), np.vstack([one, two, one]))
    assert stacked([]).shape == (0, 0)


@pytest.mark.parametrize("limit", [0, 10**9])
def test_products(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST_PRODUCT", limit)
    one, two = random_matrix(1, (4, 5)), random_matrix(2, (5, 7))
    product = Rows.of(one) @ Rows.of(two)
    assert product.shape == (4, 7)
    np.testing.assert_allclose(dense(product), one @ two, atol=1e-14)


def test_rows_are_taken_in_any_order_and_as_often_as_asked_for() -> None:
    matrix = random_matrix(3, (5, 4))
    places = np.array([4, 0, 0, 2])
    np.testing.assert_array_equal(dense(Rows.of(matrix)[places]), matrix[places])
    assert Rows.of(matrix)[np.zeros(0, dtype=np.intp)].shape == (0, 4)


def test_entries_in_any_order_are_added_up_where_they_meet() -> None:
    entries = (np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1]), np.array([2, 0, 2]))
    found = Rows.of_entries(*entries, (2, 3))
    np.testing.assert_array_equal(dense(found), [[2, 0, 0], [0, 0, 5]])
    rows, columns, numbers = found.entries()
    assert sorted(zip(rows, columns, numbers, strict=True)) == [(0, 0, 2), (1, 2, 1), (1, 2, 4)]


def test_wider_matrices_give_the_width_of_a_sum() -> None:
    narrow, wide = Rows.of(np.eye(2)), Rows.of(np.ones((2, 3)))
    for total in (narrow + wide, wide + narrow):
        np.testing.assert_array_equal(dense(total), [[2, 1, 1], [1, 2, 1]])


def test_a_product_with_single_entries_is_that_of_matrices() -> None:
    """Entries of a variable, each row with one of them; their product is not made by taking rows."""
    one, two = random_matrix(3, (4, 6)), np.zeros((6, 9))
    two[np.arange(6), [8, 0, 3, 3, 1, 5]] = [1.0, -2.0, 1.0, 0.5, 1.0, 4.0]
    product = Rows.of(one) @ Rows.of(two)
    assert product.shape == (4, 9)
    np.testing.assert_allclose(dense(product), one @ two, atol=1e-14)
