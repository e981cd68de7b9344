"""What a minorant proves over a set, and the weights that are tried for a contradiction."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from hcmodel.certify.minorants.search import Minorant, _simple_weights, signed
from hcmodel.solvers import Box, function_oracle


def minorant(curved: float = 0.0, value: float = 5.0) -> Minorant:
    """5 + 2·(−3) + 4·(v − 1) of an objective 5 and a row −3 with the multiplier 2."""
    evaluation = function_oracle(
        1,
        lambda x: (value, np.ones(1)),
        inequalities=lambda x: (np.array([-3.0]), np.ones((1, 1))),
        sizes=(1, 0),
    ).at(np.zeros(1))
    return Minorant(evaluation, np.array([2.0]), np.ones(1), (np.array([4.0]),), curved)


def test_the_least_value_is_that_at_the_lower_end() -> None:
    # over [−1, 2] the slope 4 from 1 takes off 8; what bounds that bend take off joins
    found = minorant().least(Box.of(1, -1.0, 2.0), None)
    assert found == pytest.approx(5 - 6 - 8)
    assert found < 5 - 6 - 8  # rounding is taken off
    assert minorant(-0.5).least(Box.of(1, -1.0, 2.0), None) == pytest.approx(-9.5)


def test_values_above_the_level_of_a_ball_are_not_proven() -> None:
    # points above the level are outside of the ball, so that the level is all that is known of them
    ball = SimpleNamespace(level=-20.0, reach=lambda center: np.inf, least=lambda *a: -8.0)
    assert minorant().least(Box.of(1, -1.0, 2.0), ball) == -20.0
    assert minorant().within(ball) == -20.0
    ball.level = 3.0
    assert minorant().within(ball) == pytest.approx(-9)


def test_what_is_not_a_number_proves_nothing() -> None:
    assert minorant(value=np.inf).least(Box.of(1), None) == -np.inf  # ∞ − ∞


def test_logarithms_without_bounds_are_those_of_numbers() -> None:
    # 4·(v − 1) over |v| <= the largest logarithm that is looked at
    from hcmodel.certify.certificate_options import SEARCH

    found = minorant().among_doubles(Box.of(1), np.array([True]))
    assert found == pytest.approx(-1 + 4 * (-SEARCH.largest_logarithm - 1))
    narrow = minorant().among_doubles(Box.of(1, -1.0, 2.0), np.array([True]))
    assert narrow == pytest.approx(-9)


def test_weights_of_inequalities_are_not_negative() -> None:
    evaluation = minorant().evaluation
    assert signed(evaluation, np.array([-2.0])) == pytest.approx([0])
    assert signed(evaluation, np.array([2.0])) == pytest.approx([2])


def test_simple_weights_are_fractions_of_the_largest_with_either_sign() -> None:
    # two inequalities and an equality; 2/3 and −1/3 but for rounding
    found = _simple_weights(np.array([2.0 + 1e-11, -1.0, -3.0]), 2)
    assert [each.tolist() for each in found] == [
        [pytest.approx(2 / 3), 0.0, -1.0],
        [0.0, pytest.approx(1 / 3), 1.0],
    ]
    assert _simple_weights(np.zeros(3), 2) == []
    assert _simple_weights(np.array([np.inf, 1.0, 1.0]), 2) == []
