"""Multipliers of bounds of models with kinks: the variables that bound the kinks take no part of them.

The values are slopes of the optimal value by the bound, from closed forms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hcmodel as hc

EXACT = 1e-6


def bound_duals(objective: Any, rows: Any = ()) -> Any:
    problem = hc.Problem(objective, list(rows))
    problem.solve()
    assert problem.status == "optimal"
    return problem.solution.bound_duals["x"]


def variable(shape: Any = (), lower: float = 1.0, **kind: Any) -> hc.Variable:
    return hc.Variable(shape, name="x", bounds=(lower, 3), **kind)


def test_an_absolute_value_above_its_kink() -> None:
    x = variable()
    assert bound_duals(hc.Minimize(abs(2 * x + 1))).lower == pytest.approx(2, rel=EXACT)


@pytest.mark.parametrize("nonneg", [False, True])
def test_a_sum_of_absolute_values(nonneg: bool) -> None:
    x = variable(2, nonneg=nonneg)
    found = bound_duals(hc.Minimize(hc.norm(2 * x + 1, 1)))
    assert found.lower == pytest.approx(np.full(2, 2.0), rel=EXACT)


def test_the_largest_entry_of_a_vector() -> None:
    """max(2 x0 + 1, 2 x1 + 1/2) has the slope 2 by x0 alone."""
    x = variable(2)
    found = bound_duals(hc.Minimize(hc.max(2 * x + np.array([1, 0.5]))))
    assert found.lower == pytest.approx(np.array([2.0, 0.0]), abs=EXACT)


def test_the_sum_of_the_largest_entries() -> None:
    x = variable(2)
    found = bound_duals(hc.Minimize(hc.sum_largest(2 * x + np.array([1, 0.5]), 1)))
    assert found.lower == pytest.approx(np.array([2.0, 0.0]), abs=EXACT)


def test_the_largest_eigenvalue() -> None:
    """Of diag(2 x0, x1) it is 2 x0."""
    x = variable(2)
    found = bound_duals(hc.Minimize(hc.lambda_max(hc.diag(hc.multiply(x, np.array([2.0, 1]))))))
    assert found.lower == pytest.approx(np.array([2.0, 0.0]), abs=EXACT)


def test_an_inactive_row_with_a_kink_takes_nothing() -> None:
    """−log x has the slope −1/3 at the bound 3, where the row has a slack of 4."""
    x, row = variable(), None
    row = hc.maximum(2 * x, x + 0.5) <= 10
    assert bound_duals(hc.Minimize(-hc.log(x)), [row]).upper == pytest.approx(1 / 3, rel=EXACT)
    assert row.dual_value == pytest.approx(0, abs=EXACT)


def test_a_concave_kink_of_a_maximisation() -> None:
    x = variable()
    found = bound_duals(hc.Maximize(hc.minimum(2 * x, x + 5)))
    assert found.upper == pytest.approx(2, rel=EXACT)


def test_a_kink_whose_smallest_value_is_zero() -> None:
    """At x = 0 the maximum of x and 2 x has the subgradients from 1 to 2, and 0 is none of them."""
    x = variable(lower=0.0)
    assert 1 - EXACT <= bound_duals(hc.Minimize(hc.maximum(2 * x, x))).lower <= 2 + EXACT


def test_a_function_that_rises_only_right_of_the_smallest_value() -> None:
    """(1 + max(9 x, 10 x))² has the subgradients from 18 to 20 at 0; its proof needs max(…) >= 0."""
    x = variable(lower=0.0)
    found = bound_duals(hc.Minimize(hc.square(1 + hc.maximum(9 * x, 10 * x))))
    assert 18 - 1e-4 <= found.lower <= 20 + 1e-4


def test_a_fixed_variable() -> None:
    """The slope of max(x, 2 x) + x at 1 is 3."""
    x = hc.Variable(name="x", bounds=(1, 1))
    found = bound_duals(hc.Minimize(hc.maximum(2 * x, x) + x))
    assert found.lower - found.upper == pytest.approx(3, rel=EXACT)


def test_the_derivative_of_a_value_at_a_bound() -> None:
    c, x = hc.Parameter(name="c", value=1.0), variable()
    problem = hc.Problem(hc.Minimize(abs(2 * x + c)))
    problem.solve()
    assert problem.derivative(c).value == pytest.approx(1, rel=EXACT)


def test_a_ratio_at_a_kink_whose_value_is_zero() -> None:
    """At x0 = 14/9, where 0.9 x0 = 1.4, the ratio rises by 0.8/(1.5 x0 + 1) = 0.24 with x1."""
    x = hc.Variable(2, name="x", bounds=([0.7, 0.5], [np.inf, 3]))
    kinks = 2.9 * hc.maximum(abs(0.9 * x[0] - 1.4), 0.6 * x[0] - 1.2)
    smooth = 0.8 * hc.sum(hc.huber(np.array([1.3, -0.8, 0.3]) * x[0] + np.array([-1.4, 0.5, -0.5])))
    found = bound_duals(hc.Minimize((kinks + smooth + 0.8 * x[1]) / (1.5 * x[0] + 1)))
    assert found.lower == pytest.approx([0.0, 0.24], abs=EXACT)
    assert found.upper == pytest.approx([0.0, 0.0], abs=EXACT)
