"""How objective and rows are made from the stack φ."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from hcmodel.solvers.outer import Outer

FloatArray = NDArray[np.float64]


def random_outer(generator: np.random.Generator) -> Outer:
    left, right = generator.standard_normal((2, 4, 5))
    return Outer(generator.standard_normal(3), sp.csr_array(left), sp.csr_array(right), 2)


def test_rows_are_left_minus_right_and_magnitudes_the_larger_side() -> None:
    outer = Outer(
        np.ones(1), sp.csr_array([[2.0, 0.0], [1.0, 0.0]]), sp.csr_array([[0.0, 1.0]] * 2), 1
    )
    rows, magnitudes = outer.row_values(np.array([3.0, -10.0]))
    np.testing.assert_array_equal(rows, [16.0, 13.0])
    np.testing.assert_array_equal(magnitudes, [10.0, 10.0])
    rows, magnitudes = outer.row_values(np.array([0.1, 0.2]))
    np.testing.assert_allclose(rows, [0.0, -0.1], atol=1e-15)
    np.testing.assert_array_equal(magnitudes, [1.0, 1.0])
    assert outer.size == 2


def test_plain_rows_stand_against_zero() -> None:
    outer = Outer.of_rows(2, 1)
    rows, magnitudes = outer.row_values(np.array([-0.5, 4.0, 3.0]))
    np.testing.assert_array_equal(rows, [-0.5, 4.0, 3.0])
    np.testing.assert_array_equal(magnitudes, [1.0, 4.0, 3.0])
    assert (outer.size, outer.inequalities) == (3, 2)


@pytest.mark.parametrize("sparse", [False, True])
def test_derivatives_are_those_of_the_values(sparse: bool) -> None:
    # φ linear, φ = B x: then the derivative of the rows is their difference quotient, exactly
    generator = np.random.default_rng(0)
    outer = random_outer(generator)
    inner, top = generator.standard_normal((5, 6)), generator.standard_normal((3, 6))
    x, direction = generator.standard_normal((2, 6))
    jacobian = outer.row_jacobian(inner @ x, sp.csr_array(inner) if sparse else inner)
    assert sp.issparse(jacobian) == sparse
    change = outer.row_values(inner @ (x + direction))[0] - outer.row_values(inner @ x)[0]
    np.testing.assert_allclose(jacobian @ direction, change, atol=1e-12)
    gradient = outer.objective_gradient(sp.csr_array(top) if sparse else top)
    change = outer.objective_value(top @ (x + direction)) - outer.objective_value(top @ x)
    assert gradient.shape == (6,)
    assert gradient @ direction == pytest.approx(change, abs=1e-12)


def test_lagrangian_weights_give_the_lagrangian() -> None:
    generator = np.random.default_rng(1)
    outer = random_outer(generator)
    top, inner = generator.standard_normal(3), generator.standard_normal(5)
    multipliers = generator.standard_normal(4)
    weights = outer.lagrangian_weights(multipliers, 3)
    expected = outer.objective_value(top) + multipliers @ outer.row_values(inner)[0]
    assert weights @ np.concatenate([top, inner]) == pytest.approx(expected)


def test_no_rows_are_a_normal_case() -> None:
    outer = Outer.of_rows(0, 0)
    rows, magnitudes = outer.row_values(np.zeros(0))
    assert rows.shape == magnitudes.shape == (0,)
    assert outer.row_jacobian(np.zeros(0), np.zeros((0, 3))).shape == (0, 3)
    np.testing.assert_array_equal(outer.lagrangian_weights(np.zeros(0), 1), [1.0])
