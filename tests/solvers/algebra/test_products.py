"""Products with the compiled routines of scipy are those of its operators."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sparse

from hcmodel.solvers.algebra import products

DENSE = np.array([[0.0, 2.0, -1.0, 0.0], [0.0, 0.0, 0.0, 0.0], [5.0, 0.0, 3.0, -4.0]])


@pytest.mark.parametrize("routines", [True, False])
def test_a_product_and_that_with_the_transpose(routines: bool) -> None:
    by_rows = products.BY_ROWS if routines else None
    found = products.Product(sparse.csr_array(DENSE), by_rows)
    right, left = np.array([1.0, 2.0, 3.0, 4.0]), np.array([3.0, 7.0, -2.0])
    assert (found @ right).tolist() == [1.0, 0.0, -2.0]
    assert (found.T @ left).tolist() == [-10.0, 6.0, -9.0, 8.0]
    # every second entry of a longer vector, and numbers that are whole
    assert (found @ np.repeat(right, 2)[::2]).tolist() == [1.0, 0.0, -2.0]
    assert (found @ right.astype(int)).tolist() == [1.0, 0.0, -2.0]


def test_the_installed_scipy_has_the_routines() -> None:
    assert products.BY_ROWS is not None
    assert products.BY_COLUMNS is not None


def test_arrays_are_multiplied_by_numpy() -> None:
    assert products.product(DENSE) is DENSE
    assert isinstance(products.product(sparse.csr_array(DENSE)), products.Product)
