"""Small parts of the reductions, each with the reason why it answers as it does."""

from __future__ import annotations

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.reductions.matrix_bounds import MatrixRow
from hcmodel.reductions.reduction import BoundOrigin
from hcmodel.reductions.sum_arrays import needs_logarithms
from hcmodel.reductions.triangle import square_parameters


def test_bounds_are_the_same_where_variable_side_and_entry_are() -> None:
    x, y = hc.Variable(2, name="x"), hc.Variable(2, name="y")
    own = BoundOrigin(x, "lower", (0,))
    assert own == BoundOrigin(x, "lower", (0,))
    assert hash(own) == hash(BoundOrigin(x, "lower", (0,)))
    for other in (
        BoundOrigin(y, "lower", (0,)),  # of the same name and place, but another variable
        BoundOrigin(x, "upper", (0,)),
        BoundOrigin(x, "lower", (1,)),
    ):
        assert own != other


@pytest.mark.parametrize("factor", [2.0, -2.0])
def test_a_matrix_row_holds_back_the_part_of_the_slope_that_points_into_the_cone(
    factor: float,
) -> None:
    # slack = factor·P + I >= 0: a multiplier Z >= 0 of the slack adds −factor·Z to the slope in P, so
    # that Z is the positive part of slope/factor
    p, slack = hc.Variable((2, 2), name="P", symmetric=True), hc.Variable((2, 2), PSD=True)
    row = MatrixRow(0, p, slack, factor, 1.0)
    slope = slack.set.store(np.diag([4.0, -6.0]))
    expected = np.diag([2.0, 0.0]) if factor > 0 else np.diag([0.0, 3.0])
    assert slack.set.expand(np, row.slack_slope(slope)) == pytest.approx(expected)
    assert row.lower == (factor > 0)
    assert row.limit == pytest.approx(-1 / factor)  # factor·p + 1 = 0
    assert slack.set.expand(np, row.slack_of(slope)) == pytest.approx(
        factor * np.diag([4.0, -6.0]) + np.eye(2)
    )
    shared = MatrixRow(0, p, slack, factor, 1.0, own=False)
    assert not shared.slack_slope(slope).any()  # another row may be the one that holds


def test_only_square_parameters_decide_on_symmetry() -> None:
    p = hc.Variable((2, 2), name="P", symmetric=True)
    square = hc.Parameter((2, 2), name="W", value=np.eye(2))
    number = hc.Parameter(name="c", value=2.0)
    assert square_parameters(number * p + p @ np.eye(2) == square) == (square,)


def test_posynomials_are_told_from_affine_functions() -> None:
    x = hc.Variable(2, name="x", bounds=(1, 3))
    affine = hc.Problem(hc.Minimize(x[0] + x[1]), [x[0] - x[1] <= 1]).forms().hidden()
    monomials = hc.Problem(hc.Minimize(x[0] / x[1]), [x[0] * x[1] >= 2]).forms().hidden()
    assert affine is not None
    assert monomials is not None
    assert affine.arrays is not None  # sums of exponentials and affine functions both are
    assert not affine.has_posynomials
    assert monomials.has_posynomials


def test_only_sums_of_products_of_powers_can_need_logarithms() -> None:
    x = hc.Variable(2, name="x", bounds=(1, 3))
    for objective, needed in (
        (hc.sin(x[0]) + x[1], False),  # another function: nothing is known of its terms
        (x[0] * x[1] + x[0], True),  # two positive exponents
        (1 / x[0] + x[1] ** 2, False),
        (x[0] ** 0.5 + x[1], True),  # one exponent below 1
        (x[0] ** 2 / x[1], False),  # one positive exponent, and the sum is 1
    ):
        form = hc.Problem(hc.Minimize(objective)).forms().written
        assert needs_logarithms(form.compiled, form.canonical.outer) == needed
