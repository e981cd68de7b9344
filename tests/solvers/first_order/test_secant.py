"""The metric from past gradients, against Hessians that are known."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hcmodel.solvers import Box
from hcmodel.solvers.first_order.secant import secant_matrix
from hcmodel.solvers.oracle import function_oracle

FloatArray = NDArray[np.float64]

HESSIAN = np.diag([1000.0, 10.0, 1.0])
FREE = Box.of(3)  # within [-1, 1] one unit of its metric is 1


def quadratic(x: FloatArray) -> tuple[float, FloatArray]:
    return float(0.5 * x @ HESSIAN @ x), HESSIAN @ x


def bent_row(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    return np.array([x[0] + 0.5 * x[1] ** 2]), np.array([[1.0, x[1], 0.0]])


def staircase() -> list[FloatArray]:
    """Points that differ in one coordinate after the other, and end at the minimum."""
    return [np.array([0.1, 0.1, 0.1]) * (np.arange(3) >= k) for k in range(4)]


def test_pairs_along_every_axis_give_the_hessian() -> None:
    oracle = function_oracle(3, quadratic)
    bundle = [oracle.at(x) for x in staircase()]
    found = secant_matrix(bundle, bundle[-1], np.zeros(0), FREE)
    assert found == pytest.approx(HESSIAN, abs=1e-9)


def test_one_point_tells_nothing() -> None:
    point = function_oracle(3, quadratic).at(np.ones(3))
    assert secant_matrix([point], point, np.zeros(0), FREE) is None


def test_rows_bend_the_lagrangian_by_the_multipliers_of_today_and_only_along_equalities() -> None:
    oracle = function_oracle(3, quadratic, equalities=bent_row, sizes=(0, 1))
    bundle = [oracle.at(x) for x in staircase()]
    found = secant_matrix(bundle, bundle[-1], np.array([7.0]), FREE)
    assert found is not None
    # The row's normal at the last point is the first axis; along the others, ∇²F1 + 7 ∇²row.
    assert found[1:, 1:] == pytest.approx(np.diag([17.0, 1.0]), abs=1e-9)
    assert found[0, 1:] == pytest.approx(np.zeros(2), abs=1e-9)


def test_a_flat_model_asks_for_no_step_longer_than_a_natural_one() -> None:
    def saddle(x: FloatArray) -> tuple[float, FloatArray]:
        return float(x[0] ** 2 - x[1] ** 2 + x[2]), np.array([2 * x[0], -2 * x[1], 1.0])

    oracle = function_oracle(3, saddle)
    bundle = [oracle.at(x) for x in staircase()]
    current = bundle[0]
    found = secant_matrix(bundle, current, np.zeros(0), FREE)
    assert found is not None
    assert np.linalg.norm(np.linalg.solve(found, current.gradient)) <= 1.0 + 1e-9
