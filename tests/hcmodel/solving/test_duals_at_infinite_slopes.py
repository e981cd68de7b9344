"""Multipliers where an optimal point lies beside the edge of a domain, at which slopes are infinite.

There they cannot be fitted to a gradient. The values are closed forms, or those of CVXPY.
"""

from __future__ import annotations

import numpy as np
import pytest

import hcmodel as hc


def test_a_matrix_of_rank_one_has_no_slope() -> None:
    """min xᵀP⁻¹x + trace P over P is 2‖x‖, at P = x xᵀ/‖x‖: the multipliers of x >= b are 2b/‖b‖."""
    x, P = hc.Variable(2), hc.Variable((2, 2), PSD=True)
    row = x >= np.array([1.0, 2.0])
    problem = hc.Problem(hc.Minimize(hc.matrix_frac(x, P) + hc.trace(P)), [row])
    assert problem.solve() == pytest.approx(2 * np.sqrt(5), rel=2e-6)
    assert problem.status == "optimal"
    assert row.dual_value == pytest.approx(2 * np.array([1, 2]) / np.sqrt(5), rel=1e-3)
    assert problem.solution.certificate.stationarity is None  # of a gradient that is not that


def test_a_budget_of_such_a_matrix() -> None:
    """min xᵀP⁻¹x with trace P <= 1 is ‖x‖²: multipliers 2b and ‖b‖²."""
    x, P = hc.Variable(2), hc.Variable((2, 2), PSD=True)
    rows = [x >= np.array([1.0, 2.0]), hc.trace(P) <= 1]
    problem = hc.Problem(hc.Minimize(hc.matrix_frac(x, P)), rows)
    assert problem.solve() == pytest.approx(5.0, rel=1e-6)
    assert rows[0].dual_value == pytest.approx(np.array([2.0, 4.0]), rel=1e-4)
    assert rows[1].dual_value == pytest.approx(5.0, rel=1e-4)


def test_entropies_of_almost_nothing() -> None:
    """The multipliers are not unique, but the derivative along x0 = x1, −3, is that of their sum."""
    x = hc.Variable(2)
    row, t = x <= 1, x[0] - x[1]
    problem = hc.Problem(hc.Minimize(40 * t - hc.entr(t) - 3 * x[0]), [row])
    assert problem.solve() == pytest.approx(-3.0, rel=1e-6)
    assert problem.status == "optimal"
    assert np.sum(row.dual_value) == pytest.approx(3.0, rel=1e-3)
    assert np.min(row.dual_value) >= 0


def test_relative_entropies_of_almost_nothing() -> None:
    x = hc.Variable(3)
    row = x <= 1
    cost = hc.rel_entr(x[0] - x[1], x[2]) - 3 * x[0] + 10 * x[2] + hc.square(x[2] - x[1])
    problem = hc.Problem(hc.Minimize(cost), [row, x >= -1])
    assert problem.solve() == pytest.approx(-2.0, rel=1e-6)
    assert row.dual_value == pytest.approx(np.array([0.677, 0.323, 0.0]), abs=5e-3)


def test_a_bound_within_reach_has_the_multipliers_of_its_program_too() -> None:
    """The bound is found after the multipliers, which were fitted to slopes that are nearly infinite.

    −1.30375 is the difference quotient of the optimal value by c2's right-hand side, and CVXPY's dual.
    """
    problem = hc.parse(
        """
var x[4]
minimize sum(([[0,0,0,1.3],[0,1.4,0.4,-0.3],[0,0,0,-0.7]] @ x + [-1,0,3])^1.25) +
    max([[0.77,-1.33,-1.4,1.36]] @ x + [3])
subject to
    c1: (-sum(entr([1] - x @ [[-2],[1],[1],[0]]))) <= 5
    c2: x[[2]] * 2 + 1 == 2
    c3: [[-1.23,0.63,0.36,-2.61]] @ x - 2 <= [-1]
"""
    )
    problem.solve()
    assert problem.status == "optimal"
    assert problem.constraints[1].dual_value == pytest.approx(-1.30375, abs=1e-5)
