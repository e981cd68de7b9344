"""When gradients near a point, or linearisations, show it to be stationary: worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import HULL
from hcmodel.certify.hulls import _by_gradients, _by_linearisations, is_hull_stationary
from hcmodel.solvers import Box, function_oracle
from hcmodel.solvers.numerics import BACKEND_ROUNDING
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.result import WeightedPoint

FloatArray = NDArray[np.float64]


def form_of(lower: float = -np.inf, upper: float = np.inf, size: int = 1) -> Any:
    return SimpleNamespace(domain=Box(np.full(size, lower), np.full(size, upper)))


def at(
    point: list[float],
    slope: list[float],
    value: float = 0.0,
    rows: tuple[list[float], list[list[float]], int] | None = None,
) -> Evaluation:
    """An evaluation with this slope and value, and rows (values, slopes, how many inequalities)."""
    size, inequality, equality = len(point), None, None
    values, slopes, count = rows or ([], [], 0)
    first = np.array(values[:count]), np.array(slopes[:count]).reshape(-1, size)
    others = np.array(values[count:]), np.array(slopes[count:]).reshape(-1, size)
    if count:
        inequality = lambda x: first  # noqa: E731
    if len(values) > count:
        equality = lambda x: others  # noqa: E731
    oracle = function_oracle(
        size,
        lambda x: (value, np.array(slope)),
        inequalities=inequality,
        equalities=equality,
        sizes=(count, len(values) - count),
    )
    return oracle.at(np.array(point))


def weigh(evaluation: Evaluation, objective: float, rows: list[float] | None = None) -> Any:
    return WeightedPoint(evaluation, objective, np.array(rows or [], dtype=float))


def gradients(form: Any, here: Evaluation, *weighted: Any) -> bool:
    total = sum(max(each.objective, 0.0) for each in weighted)
    return _by_gradients(form, here, weighted, total)


def test_slopes_on_both_sides_of_a_kink_cancel_with_their_shares() -> None:
    # −1 and 3 with weights 6 and 2, which are shares of ¾ and ¼
    here = at([5.0], [3.0])
    left, right = at([5.0], [-1.0]), at([5.0], [3.0])
    assert gradients(form_of(), here, weigh(left, 6.0), weigh(right, 2.0))
    assert not gradients(form_of(), here, weigh(left, 2.0), weigh(right, 6.0))
    assert not gradients(form_of(), here, weigh(left, 6.0), weigh(right, 6.0))
    # weights below 0 do not count
    assert gradients(form_of(), here, weigh(left, 6.0), weigh(right, 2.0), weigh(left, -4.0))
    assert is_hull_stationary(form_of(), here, [weigh(left, 6.0), weigh(right, 2.0)], -1.0)
    assert not is_hull_stationary(form_of(), here, [weigh(left, 0.0)], 1.0)


def test_what_is_left_is_measured_by_the_largest_gradient_in_natural_units() -> None:
    # ½·(100 − 100 + 2 d): d is at most 1e-4 of 100; the unit of 5 is on both sides
    for d, small in ((0.9e-2, True), (1.1e-2, False)):
        pair = [weigh(at([5.0], [-100.0]), 1.0), weigh(at([5.0], [100.0 + 2 * d]), 1.0)]
        assert gradients(form_of(), at([5.0], [1.0]), *pair) == small
    # a gradient of the other entry counts for neither
    pair = [weigh(at([5.0, 1.0], [-1.0, 2.0]), 1.0), weigh(at([5.0, 1.0], [1.0, 2.0]), 1.0)]
    assert not gradients(form_of(size=2), at([5.0, 1.0], [1.0, 2.0]), *pair)


def test_points_that_are_far_in_natural_units_show_nothing() -> None:
    here = at([100.0], [1.0])
    for distance, near in ((0.9, True), (1.1, False)):
        there = at([100.0 + 100 * distance * HULL.reach], [1.0])
        pair = [weigh(there, 1.0), weigh(at([100.0], [-1.0]), 1.0)]
        assert gradients(form_of(), here, *pair) == near


def test_rows_pull_with_their_prices() -> None:
    # slope 2, an inequality with slope −1 and an equality with slope 1; prices over the weight of 2
    there = at([0.0], [2.0], rows=([0.0, 0.0], [[-1.0], [1.0]], 1))
    assert gradients(form_of(), there, weigh(there, 2.0, [4.0, 0.0]))
    assert gradients(form_of(), there, weigh(there, 2.0, [0.0, -4.0]))
    assert gradients(form_of(), there, weigh(there, 2.0, [6.0, 2.0]))
    assert not gradients(form_of(), there, weigh(there, 2.0, [2.0, 0.0]))
    # prices of inequalities below 0 do not count
    assert not gradients(form_of(), there, weigh(there, 2.0, [-4.0, -2.0]))
    assert gradients(form_of(), there, weigh(there, 2.0, [-4.0, -4.0]))


def test_a_bound_holds_a_slope_back() -> None:
    up, down = at([1.0], [2.0]), at([1.0], [-2.0])
    assert gradients(form_of(1.0, 5.0), up, weigh(up, 1.0))  # at its lower bound
    assert not gradients(form_of(1.0, 5.0), down, weigh(down, 1.0))


def promised(form: Any, here: Evaluation, allowed: float, *weighted: Any) -> bool:
    total = sum(max(each.objective, 0.0) for each in weighted)
    return _by_linearisations(form, here, weighted, total, allowed)


def test_linearisations_promise_the_least_value_that_they_allow() -> None:
    """|x| + 7 by its pieces at −4 and 8, seen from x = 1, which is 1 above the minimum."""
    here = at([1.0], [1.0], 8.0)
    pair = weigh(at([-4.0], [-1.0], 11.0), 3.0), weigh(at([8.0], [1.0], 15.0), 3.0)
    assert promised(form_of(), here, 1.01, *pair)
    assert not promised(form_of(), here, 0.99, *pair)
    # with shares of ⅓ and ⅔ the slope is ⅓ over a length of 1, and the height 6 + 2·8 over 3
    uneven = weigh(at([-4.0], [-1.0], 11.0), 1.0), weigh(at([8.0], [1.0], 15.0), 2.0)
    assert promised(form_of(), here, 8 - 22 / 3 + 1 / 3 + 0.01, *uneven)
    assert not promised(form_of(), here, 8 - 22 / 3 + 1 / 3 - 0.01, *uneven)
    # points without a weight do not count
    assert promised(form_of(), here, 1.01, *pair, weigh(at([0.0], [50.0], 900.0), 0.0))


def test_the_length_is_the_natural_one_or_the_room_up_to_a_bound() -> None:
    # the slope 1 at 40: down by 40 in its own unit, or by 2 where the bound is 38
    here = at([40.0], [1.0], 0.0)
    for lower, upper, reach in ((-1e3, 1e3, 40.0), (38.0, 1e3, 2.0), (-1e3, 40.5, 40.0)):
        assert promised(form_of(lower, upper), here, reach + 0.01, weigh(here, 1.0))
        assert not promised(form_of(lower, upper), here, reach - 0.01, weigh(here, 1.0))
    down = at([40.0], [-1.0], 0.0)
    assert promised(form_of(38.0, 40.5), down, 0.51, weigh(down, 1.0))
    assert not promised(form_of(38.0, 40.5), down, 0.49, weigh(down, 1.0))


def test_rows_count_in_linearisations_with_their_prices() -> None:
    # x with the row 1 − x <= 0 at the price 1: the sum is 1, whatever x is
    here = at([3.0], [1.0], 3.0, ([-2.0], [[-1.0]], 1))
    assert promised(form_of(), here, 2.01, weigh(here, 4.0, [4.0]))
    assert not promised(form_of(), here, 1.99, weigh(here, 4.0, [4.0]))


def test_linearisations_that_exceed_the_function_are_not_believed() -> None:
    # 8 at x = 1 lies below the line 15 − 1·(x − 8) there
    here = at([1.0], [1.0], 8.0)
    assert not promised(form_of(), here, 1e9, weigh(at([8.0], [-1.0], 15.0), 1.0))
    # but for the accuracy of a backend, relative to the largest value
    for share, fits in ((0.9, True), (1.1, False)):
        value = 15.0 + share * BACKEND_ROUNDING * 15.0
        assert promised(form_of(), here, 1e9, weigh(at([8.0], [1.0], value), 1.0)) == fits


def test_a_point_is_stationary_by_gradients_or_by_linearisations() -> None:
    here = at([1.0], [1.0], 8.0)
    pair = [weigh(at([-4.0], [-1.0], 11.0), 3.0), weigh(at([8.0], [1.0], 15.0), 3.0)]
    assert is_hull_stationary(form_of(), here, pair, 1.01)
    assert not is_hull_stationary(form_of(), here, pair, 0.99)
    assert pytest.approx(1e-5) == HULL.reach
