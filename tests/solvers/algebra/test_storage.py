"""How numbers are stored."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from hcmodel.solvers.algebra.storage import as_array


def test_matrices_become_arrays_of_floats_whichever_way_they_are_stored() -> None:
    numbers = np.array([[1.0, 0.0], [2.0, 3.0]])
    assert as_array(numbers) is numbers
    for stored in (
        scipy.sparse.csr_array(numbers),
        scipy.sparse.coo_matrix(numbers),
        [[1, 0], [2, 3]],
    ):
        found = as_array(stored)
        assert (type(found), found.dtype) == (np.ndarray, float)
        np.testing.assert_array_equal(found, numbers)
