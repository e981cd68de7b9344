"""Optimal points at which functions have values and no slopes."""

from __future__ import annotations

import numpy as np
import pytest

import hcmodel as hc


@pytest.mark.parametrize("options", [{}, {"nonneg": True}])
def test_rows_may_hold_a_point_at_the_edge_of_a_root(options: dict[str, bool]) -> None:
    """√x₀ with x₀ <= 0 is 0, and its slope infinite: the dual alone shows that the point is optimal."""
    for function, value in ((lambda x: hc.sum(hc.sqrt(x)), np.sqrt(2)), (hc.geo_mean, 0.0)):
        x = hc.Variable(2, **options)
        problem = hc.Problem(hc.Maximize(function(x)), [x[0] <= 0, x[1] <= 2])
        assert problem.solve() == pytest.approx(value, abs=1e-9)
        assert problem.status == "optimal"
        assert problem.solution.certificate.gap is not None
