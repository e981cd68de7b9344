"""What a minorant of the Lagrangian proves, and which pairs a search takes: worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hcmodel.certify.certificate_options import ENCLOSURE, SEARCH
from hcmodel.certify.minorants import level_sets
from hcmodel.certify.minorants import search as module
from hcmodel.certify.minorants.charts import plain_chart
from hcmodel.certify.minorants.level_sets import (
    Ball,
    _from_zero,
    _minorants,
    _moves,
    _too_many,
    level_ball,
)
from hcmodel.certify.minorants.search import Minorant, Search, _simple_weights, signed
from hcmodel.solvers import Box, function_oracle
from hcmodel.solvers.coordinates.logarithmic import LogStack
from hcmodel.solvers.oracle import Evaluation, Oracle


def oracle_of(
    value: float, slope: list[float], rows: list[float], slopes: list[list[float]], count: int
) -> Oracle:
    """Functions with these values and slopes: the first rows are inequalities."""
    matrix = np.array(slopes).reshape(-1, 2)
    return function_oracle(
        2,
        lambda x: (value, np.array(slope)),
        inequalities=lambda x: (np.array(rows[:count]), matrix[:count]),
        equalities=lambda x: (np.array(rows[count:]), matrix[count:]),
        sizes=(count, len(rows) - count),
    )


def here_of(
    value: float = 10.0, rows: tuple[float, float] = (-2.0, 5.0), count: int = 1
) -> Evaluation:
    return oracle_of(value, [1.0, -2.0], list(rows), [[1.0, 0.0], [0.0, 1.0]], count).at(
        np.array([3.0, 4.0])
    )


def minorant(evaluation: Evaluation, *slopes: list[float], curved: float = 0.0) -> Minorant:
    multipliers = np.array([0.5, -2.0])
    center = np.array([3.0, 4.0])
    return Minorant(evaluation, multipliers, center, tuple(map(np.array, slopes)), curved)


BOX = Box(np.array([0.0, 1.0]), np.array([5.0, 10.0]))


def test_a_minorant_is_the_lagrangian_and_its_least_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SUM_ROUNDING", 0.01)  # so large that it shows
    # 10 + ½·(−2) − 2·5 = −1; the slope (1, −2) falls by 3 and by 2·6
    terms = 10 + 0.5 * 2 + 2 * 5
    one = minorant(here_of(), [1.0, -2.0])
    assert one.least(BOX, None) == pytest.approx(-1 - 15 - 0.01 * (terms + 15))
    # of slopes that say the same of U the one that falls least counts
    two = minorant(here_of(), [1.0, -2.0], [1.0, 0.0])
    assert two.least(BOX, None) == pytest.approx(-1 - 3 - 0.01 * (terms + 3))
    # what bounds that bend take off is part of the change
    bent = minorant(here_of(), [1.0, 0.0], curved=-4.0)
    assert bent.least(BOX, None) == pytest.approx(-1 - 7 - 0.01 * (terms + 7))


def test_a_ball_makes_the_change_smaller_and_the_level_limits_the_bound() -> None:
    one = minorant(here_of(), [1.0, 0.0])
    ball = Ball(7.0, np.array([3.0, 4.0]), 2.0, None, None)
    assert one.least(BOX, ball) == pytest.approx(-1 - 2)
    # no bound is above the level of the ball
    assert one.least(BOX, Ball(-9.0, np.array([3.0, 4.0]), 2.0, None, None)) == -9.0
    assert one.within(ball) == pytest.approx(-1 - 2)
    assert one.within(Ball(-9.0, np.array([3.0, 4.0]), 2.0, None, None)) == -9.0


def test_an_unbounded_change_proves_nothing() -> None:
    assert minorant(here_of(), [np.nan, 0.0]).least(BOX, None) == -np.inf
    assert minorant(here_of(), [1.0, 0.0]).least(Box.of(2), None) == -np.inf


def test_logarithms_without_bounds_change_as_far_as_doubles_do() -> None:
    reach = SEARCH.largest_logarithm
    open_box = Box(np.array([-np.inf, 1.0]), np.array([5.0, 10.0]))
    free = np.array([True, False])
    # 2·(−700 − 3), and −1·(10 − 4)
    falls = minorant(here_of(), [2.0, -1.0])
    assert falls.among_doubles(open_box, free) == pytest.approx(-1 - 2 * (reach + 3) - 6)
    # −2·(5 − 3) at the end that has a bound
    rises = minorant(here_of(), [-2.0, -1.0])
    assert rises.among_doubles(open_box, free) == pytest.approx(-1 - 4 - 6)
    other = Box(np.array([0.0, 1.0]), np.array([np.inf, 10.0]))
    assert rises.among_doubles(other, free) == pytest.approx(-1 - 2 * (reach - 3) - 6)
    assert falls.among_doubles(other, free) == pytest.approx(-1 - 2 * 3 - 6)


def test_multipliers_of_inequalities_are_at_least_zero() -> None:
    assert signed(here_of(), np.array([-3.0, -2.0])).tolist() == [0.0, -2.0]
    assert signed(here_of(), np.array([3.0, 2.0])).tolist() == [3.0, 2.0]


def form_of(**more: Any) -> Any:
    return SimpleNamespace(
        map_geometry=None, arrays=None, domain=BOX, proof=None, stack=SimpleNamespace(), **more
    )


def search_of(bounds: Box = BOX, **more: Any) -> Search:
    oracle = oracle_of(10.0, [1.0, -2.0], [-2.0, 5.0], [[1.0, 0.0], [0.0, 1.0]], 1)
    return Search(form_of(**more), oracle, plain_chart(bounds))


def test_the_best_pair_is_kept() -> None:
    search = search_of()
    here = here_of()
    search.consider(here, np.array([0.0, 2.0]))
    # slope (1, 0): 10 + 2·5 − 3
    assert search.value == pytest.approx(17.0)
    best = search.best
    search.consider(here, np.zeros(2))  # slope (1, −2): 10 − 3 − 12
    assert search.value == pytest.approx(17.0)
    assert search.best is best
    assert search.pair == (here, best.multipliers if best else None)
    assert len(search.minorants) == 2
    search.consider(here, np.array([np.inf, 0.0]))  # no multipliers
    assert len(search.minorants) == 2


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_points_without_values_or_slopes_give_no_minorant(value: float) -> None:
    search = search_of()
    search.consider(here_of(value), np.zeros(2))
    steep = oracle_of(1.0, [value, 0.0], [-2.0, 5.0], [[1.0, 0.0], [0.0, 1.0]], 1)
    search.consider(steep.at(np.array([3.0, 4.0])), np.zeros(2))
    assert search.minorants == []


def test_a_smaller_ball_replaces_a_larger_one(monkeypatch: pytest.MonkeyPatch) -> None:
    search = search_of(Box.of(2))
    here = here_of()
    search.consider(here, np.array([0.0, 2.0]))  # slope (1, 0) over the whole plane
    assert search.value == -np.inf
    balls: dict[str, Any] = {
        "first": Ball(99.0, np.array([3.0, 4.0]), 5.0, None, None),
        "smaller": Ball(99.0, np.array([3.0, 4.0]), 2.0, None, None),
        "larger": Ball(99.0, np.array([3.0, 4.0]), 7.0, None, None),
        "none": None,
    }
    monkeypatch.setattr("hcmodel.certify.minorants.level_sets.level_ball", lambda *a: balls[a[-1]])
    for probing, value in (("none", -np.inf), ("first", 15.0), ("larger", 15.0), ("smaller", 18.0)):
        search.enclose(probing)
        assert search.value == pytest.approx(value)
    # a later pair is judged within the smallest ball: slope (1, 1), 10 + 3·5 − 2·√2
    search.consider(here, np.array([0.0, 3.0]))
    assert search.value == pytest.approx(25 - 2 * np.sqrt(2))


def test_what_half_spaces_say_within_a_ball_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    search = search_of(Box.of(2))
    search.consider(here_of(), np.array([0.0, 2.0]))
    ball: Any = SimpleNamespace(
        radius=5.0, level=99.0, terms=None, reach=lambda p: 5.0, least=lambda slope, point: -1.0
    )
    monkeypatch.setattr("hcmodel.certify.minorants.level_sets.level_ball", lambda *a: ball)
    search.enclose("around")
    assert search.value == pytest.approx(20 - 1)


def test_a_gap_of_a_thousandth_is_near() -> None:
    search = search_of()
    search.consider(here_of(), np.array([0.0, 2.0]))
    search.consider(here_of(20.0), np.zeros(2))  # the least value met counts
    for value, near in ((10 - 0.0099, True), (10 - 0.011, False), (11.0, True)):
        search.value = value
        assert search._near == near
    search._ball = Ball(0.0, np.zeros(2), SEARCH.largest_logarithm + 1, None, None)
    assert not search._hopeless  # near, though far
    search.value = 0.0
    assert search._hopeless
    search._ball = Ball(0.0, np.zeros(2), SEARCH.largest_logarithm - 1, None, None)
    assert not search._hopeless


def test_weights_are_rounded_to_simple_fractions_of_the_largest() -> None:
    weights = np.array([4.0, -4.0 / 3 + 1e-6, 1.2345])
    simple, other = _simple_weights(weights, 1)
    assert simple[0] == 1.0
    assert simple[1] == -840 / 2520  # −⅓ but for 2.5e-7
    assert simple[2] == 1.2345 / 4  # farther than 1e-6 from a multiple of 1/2520
    assert other.tolist() == [0.0, 840 / 2520, -1.2345 / 4]  # inequalities keep their sign
    assert _simple_weights(np.zeros(2), 1) == []
    assert _simple_weights(np.array([np.inf, 1.0]), 1) == []


def test_a_bound_among_doubles_says_so() -> None:
    """x without a lower bound: the slope (1, 0) proves nothing over the set, and −700 among doubles."""
    bounds = Box(np.array([-np.inf, 1.0]), np.array([5.0, 10.0]))
    logs = LogStack.__new__(LogStack)
    object.__setattr__(logs, "logs", np.array([True, True]))
    search = search_of(bounds)
    search.form.stack = logs  # type: ignore[misc]
    search.consider(here_of(), np.array([0.0, 2.0]))
    search.take_doubles()
    assert search.value == -np.inf  # not without a proof
    search.form.proof = "a proof"  # type: ignore[misc, assignment]
    search.take_doubles()
    reach = SEARCH.largest_logarithm
    assert search.value == pytest.approx(20 - (reach + 3))
    assert search.among_doubles
    # a bound that holds everywhere is better, and says no more than that: slope (0, 0)
    search.consider(here_of(), np.array([0.0, 2.0]) * 0)  # (1, −2): 10 − 703 − 12
    assert search.value == pytest.approx(20 - (reach + 3))
    flat = oracle_of(11.0, [0.0, 0.0], [-2.0, 5.0], [[1.0, 0.0], [0.0, 1.0]], 1)
    search.consider(flat.at(np.array([3.0, 4.0])), np.zeros(2))
    assert search.value == pytest.approx(11.0)
    assert not search.among_doubles


def test_steps_go_on_until_several_of_them_were_in_vain() -> None:
    """A step counts where it closes a tenth of the gap to the least value met, here 10."""
    search = search_of()
    search.consider(here_of(), np.zeros(2))
    taken: list[float] = []

    def walk(values: list[float], enough: float = np.inf) -> int:
        taken.clear()
        left = iter(values)

        def move(step: object, stop: object) -> None:
            search.value = max(search.value, next(left))
            taken.append(search.value)

        search._move = move  # type: ignore[assignment, method-assign]
        search.value = -90.0
        steps: Any = (None,) * len(values)
        search._walk(steps, lambda value: value >= enough)
        return len(taken)

    assert SEARCH.patience == 3
    assert walk([-90.0] * 6) == 3
    assert walk([-81.0] * 6) == 3  # 9 of a gap of 100 is in vain
    assert walk([-79.0] + [-79.0] * 6) == 4  # 11 is not
    assert walk([-90.0, -90.0, -70.0, -70.0, -70.0, -70.0, -70.0]) == 6  # counted afresh
    assert walk([-90.0, -20.0, 5.0], enough=-30.0) == 2
    search.value = -np.inf


def test_rows_that_contradict_each_other_are_weighed_by_what_they_are_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """g = −2 holds and h = 5 is broken; the weights are over |w|·magnitudes, and signed as h is."""
    search = search_of()
    seen: list[list[float]] = []
    monkeypatch.setattr(Search, "consider", lambda self, here, w: seen.append(w.tolist()))
    monkeypatch.setattr(
        "hcmodel.certify.minorants.newton_steps.repair_weights",
        lambda form, here: np.array([0.0, 3.0]),
    )
    here = here_of()
    assert here.magnitudes.tolist() == [2.0, 5.0]
    search.contradict(here, np.array([4.0, -4.0]), lambda value: True)
    assert seen == [
        pytest.approx([0.0, 1 / 5]),  # what is violated
        pytest.approx([4 / 28, 4 / 28]),  # the weights with these signs
        pytest.approx([1 / 7, -1 / 7]),  # as simple fractions
        pytest.approx([0.0, 1 / 5]),  # the other way, inequalities at least 0
        pytest.approx([0.0, 1 / 5]),  # what repairs the rows
    ]
    seen.clear()
    negative = here_of(rows=(1.0, -5.0))
    monkeypatch.setattr(
        "hcmodel.certify.minorants.newton_steps.repair_weights", lambda form, here: None
    )
    search.contradict(negative, None, lambda value: True)
    assert seen == [pytest.approx([1 / 6, -1 / 6])]


def test_a_point_of_a_map_with_kinks_is_moved_off_them() -> None:
    search = search_of()
    here = here_of()
    assert search._off_kinks(here) is here
    for kinked, moved in ((False, False), (True, True)):
        search.form.map_geometry = "a map"  # type: ignore[misc, assignment]
        search.form.stack = SimpleNamespace(kinked=kinked)  # type: ignore[misc, assignment]
        there = search._off_kinks(here)
        assert (there is not here) == moved
    noise = np.random.default_rng(1).uniform(-SEARCH.off_kinks, SEARCH.off_kinks, 2)
    assert there.point - here.point == pytest.approx(noise * [3.0, 4.0], rel=1e-4)


# ---- half-spaces of low value


def test_minorants_bound_where_values_are_low_and_rows_hold() -> None:
    """At (3, 4), seen from (2, 2): each offset is the room there and the slope times (1, 2)."""
    chart = plain_chart(BOX)
    center = np.array([2.0, 2.0])
    found = _minorants(chart, here_of(), np.array([0.5, -2.0]), center, 12.0, rows=True)
    assert found is not None
    # L = −1 with slope (1.5, −4), F1 = 10 with (1, −2), g = −2 with (1, 0), h = 5 with (0, ±1)
    assert found.normals.tolist() == [[1.5, -4], [1, -2], [1, 0], [0, 1], [0, -1]]
    assert found.offsets == pytest.approx([13 + 1.5 - 8, 2 + 1 - 4, 2 + 1, -5 + 2, 5 - 2])
    # of inequalities only the most violated one, where not all are asked for
    two = here_of(rows=(-2.0, 3.0), count=2)
    few = _minorants(chart, two, np.array([0.5, 2.0]), center, 12.0, rows=False)
    assert few is not None
    assert few.normals.tolist() == [[1.5, 0], [1, -2], [0, 1]]
    assert few.offsets == pytest.approx([12 - 10 + 1 - 6 + 1.5, 2 + 1 - 4, -3 + 2])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_points_without_values_or_slopes_bound_nothing(value: float) -> None:
    chart, none = plain_chart(BOX), np.zeros(2)
    assert _minorants(chart, here_of(value), none, none, 12.0, rows=True) is None
    steep = oracle_of(1.0, [value, 0.0], [-2.0, 5.0], [[1.0, 0.0], [0.0, 1.0]], 1)
    there = steep.at(np.array([3.0, 4.0]))
    assert _minorants(chart, there, none, none, 12.0, rows=True) is None


def test_variables_that_are_no_coordinates_are_tried_at_zero_and_around() -> None:
    geometry = SimpleNamespace(bending=np.array([False, True]))
    form: Any = SimpleNamespace(map_geometry=geometry, domain=Box.of(2, -0.5, 9.0))
    found = [point.tolist() for point in _from_zero(form, here_of())]
    assert found == [[3, 0], [3, 1], [3, -0.5]]
    none: Any = SimpleNamespace(map_geometry=None)
    assert _from_zero(none, here_of()) == []
    geometry.bending = np.zeros(2, dtype=bool)
    assert _from_zero(form, here_of()) == []


def test_moves_lead_to_where_a_parabola_reaches_the_level_twice() -> None:
    """Along the one entry without a bound, of natural length 4, with curvature h: ½ h (4 t)² = 2·2."""
    domain = Box(np.array([0.0, 0.0]), np.array([10.0, np.inf]))
    chart = plain_chart(domain)
    for h, expected in ((9.0, np.sqrt(8 / 9)), (0.0, 4.0), (0.01, 4.0)):
        geometry = SimpleNamespace(hessian=lambda *a, h=h: np.diag([5.0, h]))
        form: Any = SimpleNamespace(map_geometry=None, domain=domain, geometry=geometry)
        oracle: Any = None
        found = _moves(form, oracle, chart, here_of(20.0), np.zeros(2))
        # the level is a tenth of 20 above the value
        assert [move.tolist() for move in found] == [
            pytest.approx([0, expected]),
            pytest.approx([0, -expected]),
        ]
    mapped = SimpleNamespace(
        hessian=lambda *a: np.zeros((2, 2)), frame=lambda e: SimpleNamespace(columns=np.eye(2))
    )
    form = SimpleNamespace(map_geometry=mapped, domain=domain, geometry=mapped)
    found = _moves(form, None, chart, here_of(), np.zeros(2))  # type: ignore[arg-type]
    longest = ENCLOSURE.longest * 4  # of the image (3, 4)
    assert [np.abs(move).max() for move in found] == pytest.approx([longest] * 4)


def test_too_many_bounds_are_counted_on_both_sides() -> None:
    most = ENCLOSURE.most_half_spaces
    assert not _too_many(Box.of(most // 2, 0.0, 1.0))
    assert _too_many(Box.of(most // 2 + 1, 0.0, 1.0))
    assert _too_many(Box.of(most + 1))
    assert not _too_many(Box.of(most))


def test_a_ball_from_the_box_and_the_minorants() -> None:
    """x² + y² at (3, 4) with x <= 5, y <= 10 and the level 27.5: 6 (v − 3) + 8 (w − 4) <= 2.5."""
    oracle = function_oracle(2, lambda x: (float(x @ x), 2 * x))
    here = oracle.at(np.array([3.0, 4.0]))
    found = level_ball(form_of(), oracle, plain_chart(BOX), (here, np.zeros(0)), "none of these")
    assert found is not None
    assert found.level == pytest.approx(27.5)
    assert found.halves is not None
    assert found.halves.normals.tolist() == [[1, 0], [0, 1], [-1, 0], [0, -1], [6, 8]]
    assert found.halves.offsets == pytest.approx([2, 6, 3, 3, 2.5])


def test_the_level_of_a_sum_of_powers_is_a_tenth_above_its_logarithm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a probing the terms enclose the points; logarithms have a margin as they are."""
    seen: list[float] = []

    def ball(arrays: Any, evaluation: Any, multipliers: Any, above: float) -> Any:
        seen.append(above)
        return None if above > 99 else (3.0, None)

    monkeypatch.setattr(level_sets, "term_ball", ball)
    for in_logs, value, above in ((True, 5.0, 5 + ENCLOSURE.margin), (False, 5.0, 5.5)):
        form: Any = SimpleNamespace(arrays=SimpleNamespace(places=SimpleNamespace(in_logs=in_logs)))
        oracle = function_oracle(2, lambda x, v=value: (v, np.zeros(2)))  # type: ignore[misc]
        here = oracle.at(np.array([3.0, 4.0]))
        found = level_ball(form, oracle, plain_chart(BOX), (here, np.zeros(0)), "")
        assert found is not None
        assert (found.level, found.radius, found.halves) == (pytest.approx(above), 3.0, None)
    assert seen == pytest.approx([5 + ENCLOSURE.margin, 5.5])
    high = function_oracle(2, lambda x: (1e3, np.zeros(2)))
    pair = high.at(np.array([3.0, 4.0])), np.zeros(0)
    assert level_ball(form, high, plain_chart(BOX), pair, "") is None


def test_minorants_are_taken_at_moved_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """A move of (1, 0), then shorter ones where the functions are not defined."""
    seen: list[Any] = []

    def value(x: Any) -> tuple[float, Any]:
        seen.append(x.tolist())
        return (np.nan if x[0] > limit else 5.0), np.ones(2)

    chart = plain_chart(BOX)
    limit = 9.0
    here = function_oracle(2, value).at(np.array([3.0, 4.0]))
    move = np.array([1.0, -2.0])

    def taken(**form: Any) -> list[list[float]]:
        seen.clear()
        own: Any = SimpleNamespace(**{"map_geometry": None, "domain": BOX, **form})
        oracle = function_oracle(2, value)
        level_sets._moved_minorants(own, oracle, chart, (here, np.zeros(0)), move, np.zeros(2))
        return [list(point) for point in seen]

    assert taken() == [[4.0, 2.0]]
    limit = 3.5
    assert taken() == [[4.0, 2.0], pytest.approx([3.3, 3.4])]
    limit = -1.0
    assert len(taken()) == len(ENCLOSURE.shares)
    limit = 99.0
    mapped = SimpleNamespace(retract=lambda point, step: point + 10 * step)
    assert taken(map_geometry=mapped) == [[13.0, -16.0]]


def test_which_minorants_a_probing_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    oracle = function_oracle(2, lambda x: (float(x @ x), 2 * x))
    here = oracle.at(np.array([3.0, 4.0]))
    monkeypatch.setattr(level_sets, "_from_zero", lambda *a: asked.append("zero") or [])
    monkeypatch.setattr(level_sets, "_moves", lambda *a: [np.array([2.0, 0.0])])
    monkeypatch.setattr(
        level_sets,
        "_moved_minorants",
        lambda *a: asked.append(float(a[4][0])) or None,  # type: ignore[arg-type]
    )

    def probes(probing: str) -> list[Any]:
        asked.clear()
        level_ball(form_of(), oracle, plain_chart(BOX), (here, np.zeros(0)), probing)
        return list(asked)

    assert probes("") == []
    assert probes("zero") == ["zero"]
    assert probes("around") == [2 * ENCLOSURE.around]
    assert probes("close") == [2 * ENCLOSURE.close]
