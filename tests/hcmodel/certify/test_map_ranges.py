"""What is known of the values that each part of a declared map can take."""

from __future__ import annotations

import numpy as np

import hcmodel as hc
from hcmodel.certify.minorants.map_ranges import map_ranges
from hcmodel.solvers.sets.box import Box
from hcmodel.solvers.sets.matrices import SymmetricMatrices


def test_parts_of_a_map_have_the_ranges_that_are_known() -> None:
    P = hc.Variable((2, 2), name="P", PSD=(0.1, 10))
    K = hc.Variable((1, 2), name="K", bounds=(-5, 5))
    own, product = map_ranges([P, K @ P])
    assert isinstance(own.domain, SymmetricMatrices)
    assert own.selection.shape == (3, 4)
    assert isinstance(product.domain, Box)
    np.testing.assert_allclose(product.domain.upper, [100, 100], rtol=1e-9)
    policy = hc.Variable((2, 2), name="policy", simplex=True)
    visits = hc.solve(2 * np.eye(2) - policy, np.ones(2))
    (occupancy,) = map_ranges([hc.reshape(visits, (2, 1)) * policy])
    assert occupancy.nonnegative is not None
    np.testing.assert_array_equal(occupancy.nonnegative.entry_bounds()[0], np.zeros(4))
    assert np.isinf(occupancy.domain.entry_bounds()[0]).all()
