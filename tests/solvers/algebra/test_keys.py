"""Distinct keys are those of numpy, whether they are marked or sorted."""

from __future__ import annotations

import numpy as np
import pytest

from hcmodel.solvers.algebra.keys import SPARSE, distinct


@pytest.mark.parametrize("bound", [1, 50, 400, 400 * SPARSE + 1, 10**12])
@pytest.mark.parametrize("count", [0, 1, 400])
def test_distinct_keys_are_those_of_numpy(bound: int, count: int) -> None:
    keys = np.random.default_rng(bound % 97 + count).integers(0, bound, size=count)
    found, places = distinct(keys, bound)
    wanted, inverse = np.unique(keys, return_inverse=True)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(places, inverse)
    assert found.dtype == places.dtype == np.intp
