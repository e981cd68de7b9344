"""How objective and rows are made from the stack φ."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from hcmodel.solvers.algebra.hessians import as_dense, with_squares
from hcmodel.solvers.outer import Outer, Side, form_numbers

FloatArray = NDArray[np.float64]


def random_outer(generator: np.random.Generator) -> Outer:
    left, right = generator.standard_normal((2, 4, 5))
    left, right = Side.of(sp.csr_array(left)), Side.of(sp.csr_array(right))
    return Outer(generator.standard_normal(3), left, right, 2)


def test_rows_are_left_minus_right_and_magnitudes_the_larger_side() -> None:
    outer = Outer(
        np.ones(1),
        Side.of(sp.csr_array([[2.0, 0.0], [1.0, 0.0]])),
        Side.of(sp.csr_array([[0.0, 1.0]] * 2)),
        1,
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
    gradient = outer.objective_gradient(top @ x, sp.csr_array(top) if sparse else top)
    change = outer.objective_value(top @ (x + direction)) - outer.objective_value(top @ x)
    assert gradient.shape == (6,)
    assert gradient @ direction == pytest.approx(change, abs=1e-12)


def test_lagrangian_weights_give_the_lagrangian() -> None:
    generator = np.random.default_rng(1)
    outer = random_outer(generator)
    top, inner = generator.standard_normal(3), generator.standard_normal(5)
    multipliers = generator.standard_normal(4)
    weights = outer.lagrangian_weights(top, inner, multipliers)
    expected = outer.objective_value(top) + multipliers @ outer.row_values(inner)[0]
    assert weights @ np.concatenate([top, inner]) == pytest.approx(expected)


def test_no_rows_are_a_normal_case() -> None:
    outer = Outer.of_rows(0, 0)
    rows, magnitudes = outer.row_values(np.zeros(0))
    assert rows.shape == magnitudes.shape == (0,)
    assert outer.row_jacobian(np.zeros(0), np.zeros((0, 3))).shape == (0, 3)
    weights = outer.lagrangian_weights(np.ones(1), np.zeros(0), np.zeros(0))
    np.testing.assert_array_equal(weights, [1.0])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_log_forms_have_the_derivatives_of_their_values(sign: float) -> None:
    # φ = exp(B x) is positive, and its derivatives are known
    generator = np.random.default_rng(2)
    inner, top = generator.standard_normal((4, 3)), generator.standard_normal((1, 3))
    left, right = Side(4, np.arange(2)), Side(4, np.arange(2, 4))
    objective_form = "log" if sign > 0 else "negative log"
    forms = form_numbers(["log", "difference"])
    outer = Outer(np.array([sign]), left, right, 1, objective_form, forms)
    multipliers = np.array([0.7, -0.4])

    def value(x: FloatArray) -> float:
        rows = outer.row_values(np.exp(inner @ x))[0]
        return outer.objective_value(np.exp(top @ x)) + float(multipliers @ rows)

    def gradient(x: FloatArray) -> FloatArray:
        phi, first = np.exp(inner @ x), np.exp(top @ x)
        slopes = (first[:, None] * top, phi[:, None] * inner)
        rows = outer.row_jacobian(phi, slopes[1])
        return outer.objective_gradient(first, slopes[0]) + rows.T @ multipliers

    x, step = generator.standard_normal(3), 1e-6
    for direction in np.eye(3):
        difference = value(x + step * direction) - value(x - step * direction)
        assert gradient(x) @ direction == pytest.approx(difference / (2 * step), rel=1e-6)
    phi, first = np.exp(inner @ x), np.exp(top @ x)
    slopes = (first[:, None] * top, phi[:, None] * inner)
    weights = outer.lagrangian_weights(first, phi, multipliers)
    functions = np.vstack([top, inner])
    hessian = functions.T @ ((np.concatenate([first, phi]) * weights)[:, None] * functions)
    squares = outer.lagrangian_squares(first, phi, slopes, multipliers)
    extra = as_dense(with_squares(np.zeros((3, 3)), squares))
    for direction in np.eye(3):
        difference = gradient(x + step * direction) - gradient(x - step * direction)
        np.testing.assert_allclose(
            (hessian + extra) @ direction, difference / (2 * step), rtol=1e-5, atol=1e-7
        )
    # without the objective, what is left belongs to the rows
    assert outer.lagrangian_weights(None, phi, multipliers).tolist() == [0.0, *weights[1:]]
    below = outer.lagrangian_squares(None, phi, (np.zeros((0, 3)), slopes[1]), multipliers)
    assert len(below) == len(squares) - 1
    only_rows = as_dense(with_squares(np.zeros((3, 3)), below))
    slope = outer.objective_gradient(first, slopes[0])  # of log F it is that of F over F
    np.testing.assert_allclose(extra - only_rows, -sign * np.outer(slope, slope), atol=1e-12)


def test_log_rows_are_relative_violations() -> None:
    outer = Outer(
        np.ones(1),
        Side(2, np.array([0])),
        Side(2, np.array([1])),
        1,
        "plain",
        form_numbers(["log"]),
    )
    rows, magnitudes = outer.row_values(np.array([2e9, 1e9]))
    np.testing.assert_allclose(rows, [np.log(2.0)])
    np.testing.assert_array_equal(magnitudes, [1.0])
    assert np.isnan(outer.row_values(np.array([-1.0, 1.0]))[0]).all()
