"""Paths along which an objective falls, and points beside another one: their parts by themselves."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

import hcmodel as hc
from hcmodel.certify.paths import nearby
from hcmodel.certify.paths.candidate_paths import _to_edge, _to_pole
from hcmodel.certify.paths.descent import _Followed, _steady
from hcmodel.solvers import Box, function_oracle

FloatArray = NDArray[np.float64]


@pytest.mark.parametrize("unit", [0.1, 1.0, 30.0])
def test_decreases_that_do_not_shrink_are_steady(unit: float) -> None:
    # the last five, each at least as large as the one before it but for 1e-6
    assert _steady(-unit * np.array([9, 1, 1, 1, 1, 1.0]))
    assert _steady(-unit * np.array([9, 1, 2, 3, 4, 5.0]))
    assert _steady(-unit * np.array([1, 1, 1, 1, 1 - 0.5e-6]))
    assert not _steady(-unit * np.array([1, 1, 1, 1, 1 - 2e-6]))
    assert not _steady(-unit * np.array([1, 0.5, 0.25, 0.125, 0.0625]))
    assert not _steady(-unit * np.array([1, 1, 1, -1, 1.0]))


def test_a_point_of_a_path_is_inside_within_the_tolerance() -> None:
    oracle = function_oracle(
        1,
        lambda x: (float(x[0]), np.ones(1)),
        inequalities=lambda x: (x - 1.0, np.ones((1, 1))),
        sizes=(1, 0),
    )
    model = _Followed(oracle, Box.of(1), 1e-6)
    assert model.inside(oracle.at(np.array([1.0])))
    assert not model.inside(oracle.at(np.array([1.1])))


def reciprocal(x: FloatArray) -> tuple[float, FloatArray]:
    with np.errstate(all="ignore"):
        return float(1 / x[0]), -1 / x**2


@pytest.mark.parametrize(("at", "found"), [(-1e-9, True), (1e-9, False), (-1.0, False)])
def test_a_pole_is_looked_for_where_the_objective_is_negative_and_steep(
    at: float, found: bool
) -> None:
    # 1/x falls to −∞ at 0 from the left: at −1e-9 the slope expects the pole 1e-9 ahead; from the right
    # it is positive, and at −1 the pole is not next to the point
    oracle = function_oracle(1, reciprocal)
    form = SimpleNamespace(domain=Box.of(1, -5.0, 5.0))
    assert bool(list(_to_pole(form, oracle, oracle.at(np.array([at]))))) == found


def test_a_path_runs_to_the_bounds_that_its_direction_points_to() -> None:
    # down to 0, up to 9, and an entry that does not move stays
    form = SimpleNamespace(domain=Box(np.array([0.0, 0.0, 0.0]), np.array([9.0, 9.0, np.inf])))
    (way,) = _to_edge(form, np.ones(3), np.array([-1.0, 1.0, 0.0]))
    assert way.edge is not None
    assert way.edge.tolist() == [0, 9, 1]
    assert way.vanishing.tolist() == [True, True, False]
    points = list(way.points())
    assert points[0].tolist() == [1, 1, 1]
    assert points[1] == pytest.approx([0.1, 8.2, 1])  # a tenth of the way is left
    # no bound that way
    assert list(_to_edge(form, np.ones(3), np.array([0.0, 0.0, 1.0]))) == []


def problem() -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(-50, 50))
    return hc.Problem(hc.Minimize(hc.sum_squares(x)), [x[0] + 2 * x[1] <= 1])


def test_points_beside_another_one_are_no_farther_than_the_scales() -> None:
    form = problem().forms().lifted
    oracle = form.oracle()
    evaluation = oracle.at(np.array([3.0, -4.0]))
    metric = form.domain.metric(evaluation.point)
    rules = nearby.RULES
    found = list(nearby._candidates(form, oracle, evaluation, np.zeros(1), rules))
    pairs = found[: 2 * rules.directions * len(rules.scales)]
    scales = np.repeat(rules.scales, 2 * rules.directions)
    for point, scale in zip(pairs, scales, strict=True):
        assert (np.abs(point - evaluation.point) <= scale * metric).all()
    # each step is taken both ways
    for there, back in zip(pairs[::2], pairs[1::2], strict=True):
        assert there + back == pytest.approx(2 * evaluation.point)


def test_a_point_is_put_back_on_the_row_that_it_breaks() -> None:
    form = problem().forms().lifted
    found = nearby._restored(form.oracle(), form, np.array([3.0, 4.0]), 1e-9, nearby.RULES)
    assert found is not None
    assert found.point[0] + 2 * found.point[1] == pytest.approx(1)
    inside = nearby._restored(form.oracle(), form, np.array([-1.0, 0.0]), 1e-9, nearby.RULES)
    assert inside is not None
    assert inside.point == pytest.approx([-1, 0])
