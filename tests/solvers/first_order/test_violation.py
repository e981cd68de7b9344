"""The scalar constraint F2 and its sub-gradient."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from hcmodel.solvers import Evaluation, Oracle, function_oracle
from hcmodel.solvers.first_order.violation import max_of_abs

FloatArray = NDArray[np.float64]


def curved_oracle() -> Oracle:
    def inequalities(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        values = np.array([x[0] * x[1] - 1, np.sin(x[0]) - 2])
        return values, np.array([[x[1], x[0]], [np.cos(x[0]), 0.0]])

    def equalities(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.array([x[0] ** 2 - x[1]]), np.array([[2 * x[0], -1.0]])

    return function_oracle(
        2,
        lambda x: (0.0, np.zeros(2)),
        inequalities=inequalities,
        equalities=equalities,
        sizes=(2, 1),
    )


def fixed(rows: list[float], jacobian: FloatArray, inequalities: int) -> Evaluation:
    count = len(rows)
    oracle = function_oracle(
        jacobian.shape[1],
        lambda x: (0.0, np.zeros(jacobian.shape[1])),
        inequalities=lambda x: (np.array(rows[:inequalities]), jacobian[:inequalities]),
        equalities=lambda x: (np.array(rows[inequalities:]), jacobian[inequalities:]),
        sizes=(inequalities, count - inequalities),
    )
    return oracle.at(np.zeros(jacobian.shape[1]))


def test_value_is_the_largest_of_the_rows_and_absolute_equalities() -> None:
    oracle = curved_oracle()
    generator = np.random.default_rng(0)
    for x in generator.uniform(-3, 3, (30, 2)):
        expected = max(x[0] * x[1] - 1, np.sin(x[0]) - 2, abs(x[0] ** 2 - x[1]))
        assert max_of_abs(oracle.at(x))[0] == pytest.approx(expected)


def test_gradient_agrees_with_finite_differences_away_from_ties() -> None:
    oracle = curved_oracle()
    generator = np.random.default_rng(1)
    checked: set[int] = set()
    for x in generator.uniform(-3, 3, (60, 2)):
        pieces = [x[0] * x[1] - 1, x[0] ** 2 - x[1], x[1] - x[0] ** 2]
        if np.diff(np.sort(pieces))[-1] < 1e-3:
            continue
        checked.add(int(np.argmax(pieces)))
        _, gradient = max_of_abs(oracle.at(x))
        step = 1e-6
        for i in range(2):
            ahead, behind = x.copy(), x.copy()
            ahead[i] += step
            behind[i] -= step
            slope = (max_of_abs(oracle.at(ahead))[0] - max_of_abs(oracle.at(behind))[0]) / 2 / step
            assert gradient[i] == pytest.approx(slope, abs=1e-5)
    assert checked == {0, 1, 2}  # an inequality and both signs of the equality were met


def test_an_equality_at_zero_takes_the_plus_sign() -> None:
    jacobian = np.array([[1.0, 2.0]])
    value, gradient = max_of_abs(fixed([0.0], jacobian, 0))
    assert value == 0.0
    np.testing.assert_array_equal(gradient, [1.0, 2.0])


def test_of_several_largest_rows_the_first_is_taken() -> None:
    jacobian = np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 3.0]])
    value, gradient = max_of_abs(fixed([2.0, 2.0, -2.0], jacobian, 2))
    assert value == 2.0
    np.testing.assert_array_equal(gradient, [1.0, 0.0])
    _, gradient = max_of_abs(fixed([1.0, 1.0, -2.0], jacobian, 2))
    np.testing.assert_array_equal(gradient, [-3.0, -3.0])


def test_slack_rows_give_a_negative_value() -> None:
    value, gradient = max_of_abs(fixed([-3.0, -1.0], np.eye(2), 2))
    assert value == -1.0
    np.testing.assert_array_equal(gradient, [0.0, 1.0])


def test_no_rows_are_always_satisfied() -> None:
    oracle = function_oracle(3, lambda x: (0.0, np.zeros(3)))
    value, gradient = max_of_abs(oracle.at(np.zeros(3)))
    assert value == -np.inf
    np.testing.assert_array_equal(gradient, np.zeros(3))


def test_sparse_jacobians_give_the_same_answer() -> None:
    dense = fixed([1.0, -4.0], np.array([[1.0, 2.0], [0.0, 5.0]]), 1)
    sparse = fixed([1.0, -4.0], np.array([[1.0, 2.0], [0.0, 5.0]]), 1)
    sparse._jacobian = sp.csr_array(sparse.jacobian)
    value, gradient = max_of_abs(sparse)
    assert (value, gradient.tolist()) == (4.0, [0.0, -5.0])
    np.testing.assert_array_equal(gradient, max_of_abs(dense)[1])
