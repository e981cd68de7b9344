"""hidden-bundle on its own: functions of u = x, with and without a bounded set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hcmodel.solvers import Box, Termination, function_oracle, minimize
from hcmodel.solvers.coordinates.plain import PlainCoordinates
from hcmodel.solvers.first_order.cuts import Bundle, cut_point
from hcmodel.solvers.first_order.hidden_bundle import HiddenBundleOptions

FloatArray = NDArray[np.float64]


def cross(x: FloatArray) -> tuple[float, FloatArray]:
    """|x₁| + 2|x₂ − 1|: piecewise linear, minimum 0 at (0, 1)."""
    away = x - np.array([0.0, 1.0])
    weights = np.array([1.0, 2.0])
    return float(weights @ np.abs(away)), weights * np.where(away >= 0, 1.0, -1.0)


def solved(objective: Any = cross, size: float = 5.0, **more: Any) -> Any:
    oracle = function_oracle(2, objective, smooth=False, **more.pop("rows", {}))
    start = np.array([3.0, -2.0])
    box = Box(np.full(2, -size), np.full(2, size))
    return minimize(oracle, box, start, method="hidden-bundle", **more)


def test_piecewise_linear_functions_end_after_few_cuts() -> None:
    result = solved()
    assert result.termination is Termination.GAP_CLOSED
    assert result.calls.points <= 25
    assert abs(result.evaluation.objective) <= 1e-9


@pytest.mark.parametrize("size", [5.0, np.inf])
def test_bounds_rise_to_the_minimum_and_never_pass_it(size: float) -> None:
    result = solved(lambda x: (float(x @ x) / 2 + cross(x)[0], x + cross(x)[1]), size)
    bounds = [record.bound for record in result.trace]
    assert bounds == sorted(bounds)
    assert bounds[-1] <= 0.5 + 1e-12  # the minimum is at the kink (0, 1)
    assert result.evaluation.objective == pytest.approx(0.5, abs=1e-6)
    assert bounds[-1] == pytest.approx(0.5, abs=1e-6)


def test_rows_that_contradict_each_other_are_found() -> None:
    def rows(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        values = np.array([abs(x[0]) - 1, 4 - x[0] - x[1] ** 0, x @ x - 9])
        return values, np.array([[np.sign(x[0]), 0.0], [-1.0, 0.0], 2 * x])

    result = solved(rows={"inequalities": rows, "sizes": (3, 0)})
    assert result.termination is Termination.INFEASIBLE_STATIONARY
    assert result.conflict is not None
    assert (result.conflict[:2] > 0).all()


def test_a_function_that_is_not_convex_contradicts_its_cuts() -> None:
    def waves(x: FloatArray) -> tuple[float, FloatArray]:
        return float(np.sum(np.cos(2 * x))), -2 * np.sin(2 * x)

    result = solved(waves)
    assert result.termination is Termination.CONTRADICTED
    assert result.trace[-1].bound == -np.inf
    assert result.weighted == ()


def test_idle_cuts_are_dropped_and_the_bound_is_kept() -> None:
    tight = {"cuts": 4, "cuts_per_unknown": 1, "youth": 1}
    smooth = lambda x: (float(np.sum((x - 1) ** 4 + x**2)), 4 * (x - 1) ** 3 + 2 * x)  # noqa: E731
    free, few = solved(smooth), solved(smooth, options={"limits": tight})
    assert few.termination is Termination.GAP_CLOSED
    assert few.evaluation.objective == pytest.approx(free.evaluation.objective, rel=1e-5)
    assert len(few.weighted) < len(free.weighted)


def test_thinning_keeps_the_points_asked_for() -> None:
    oracle = function_oracle(2, cross, smooth=False)
    coordinates = PlainCoordinates(Box(np.full(2, -5.0), np.full(2, 5.0)))
    points = [cut_point(coordinates, oracle.at(np.full(2, float(i)))) for i in range(1, 5)]
    bundle = Bundle.of(points[0])
    for point in points[1:]:
        bundle = bundle.aged(np.zeros(bundle.size, dtype=bool)).extended(point)
    together = Bundle.of_all(points)
    for name in ("slopes", "constants", "owners", "sources"):
        np.testing.assert_array_equal(getattr(together, name), getattr(bundle, name))
    thinner = bundle.thinned(2, 1, [points[0]])
    assert thinner.size == 2
    assert thinner.points[0] is points[0]
    assert thinner.last is points[-1]
    values = [thinner.points[i].evaluation.objective for i in thinner.sources]
    images = np.array([thinner.points[i].image for i in thinner.sources])
    assert np.allclose(thinner.constants + np.sum(thinner.slopes * images, axis=1), values)


def test_a_violated_row_is_passed_by_a_margin() -> None:
    """On its cuts alone, a row that bends is violated less and less, at one point after the other."""

    def rows(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.array([np.sum(x**4) - 1]), 4 * x[None, :] ** 3

    def until_feasible(margin: float) -> int:
        result = solved(
            lambda x: (float(-x[0]), np.array([-1.0, 0.0])),
            rows={"inequalities": rows, "sizes": (1, 0)},
            options={"limits": {"margin": margin}},
        )
        assert result.termination is Termination.GAP_CLOSED
        assert result.evaluation.objective == pytest.approx(-1, abs=1e-6)
        kept = [each.violation <= 1e-6 for each in result.trace]
        return kept.index(True)

    assert until_feasible(1.0) <= 3
    assert until_feasible(0.0) > 3


@pytest.mark.parametrize("small", [0, 15])
def test_small_programs_and_backends_find_the_same_bounds(small: int) -> None:
    def rows(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.array([x @ x - 2.0]), 2 * x[None, :]

    result = solved(
        rows={"inequalities": rows, "sizes": (1, 0)}, options={"limits": {"small": small}}
    )
    assert result.termination is Termination.GAP_CLOSED
    first = result.trace[0]
    # |x₁| + 2|x₂ − 1| from (3, −2): the cut x₁ + 2(1 − x₂) and the row 11 + 6(x₁ − 3) − 4(x₂ + 2) <= 0
    assert first.bound == pytest.approx(-13, abs=1e-8)
    assert result.evaluation.objective == pytest.approx(0, abs=1e-6)


def test_a_level_outside_the_gap_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        HiddenBundleOptions(level=1.0)
