"""Parts of the certificate with prepared values, each number worked out by hand.

Rounding is made so large where it counts that a bound that takes it off on the wrong side is noticed.
"""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hcmodel as hc
from hcmodel.certify import conflicts, cut_bounds, impossible_rows, lower_bound
from hcmodel.certify.certificate_options import BOXES, CHART, ENCLOSURE, MAP_TEST
from hcmodel.certify.declared import curvature_boxes
from hcmodel.certify.declared import map_test as declared_test
from hcmodel.certify.declared.curvature_boxes import Enclosed, EnclosedFunctions, _Halving, _solved
from hcmodel.certify.minorants import (
    balls,
    charts,
    map_ranges,
    newton_steps,
    norm_minorants,
    term_balls,
)
from hcmodel.certify.minorants.charts import plain_chart
from hcmodel.certify.minorants.search import Minorant
from hcmodel.certify.paths import nearby
from hcmodel.expressions.model import Model
from hcmodel.facts.interval_jets import Interval, Jet, NotEnclosed, seeds
from hcmodel.facts.node_facts import Facts
from hcmodel.reductions.cone.compressed_rows import Rows
from hcmodel.reductions.reduction import Origin
from hcmodel.solvers import Box, function_oracle
from hcmodel.solvers.coordinates.frame import Frame
from hcmodel.solvers.first_order.cuts import CutPoint
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.result import WeightedPoint

FloatArray = NDArray[np.float64]
INF = np.inf


def at(
    point: list[float],
    value: float,
    slope: list[float],
    rows: tuple[float, ...] = (),
    slopes: list[list[float]] | None = None,
    count: int = 0,
) -> Evaluation:
    """An evaluation with these values and slopes; the first rows, `count` of them, are inequalities."""
    size = len(point)
    matrix = np.array(slopes or np.zeros((0, size))).reshape(-1, size)
    oracle = function_oracle(
        size,
        lambda x: (value, np.array(slope)),
        inequalities=(lambda x: (np.array(rows[:count]), matrix[:count])) if count else None,
        equalities=(lambda x: (np.array(rows[count:]), matrix[count:]))
        if len(rows) > count
        else None,
        sizes=(count, len(rows) - count),
    )
    return oracle.at(np.array(point))


# ---- rows that intervals exclude


def test_sides_have_to_be_apart_by_more_than_their_rounding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(impossible_rows, "DATA_ROUNDING", 0.01)
    z = hc.Variable(name="z", bounds=(0, 100))

    def possible(constraint: Any) -> bool:
        model = Model.checked(hc.Minimize(z), [constraint], None)
        return impossible_rows.impossible_row(model) is None

    # 100 against 101.9 and 102.1: their sizes add up to about 202
    assert possible(z >= 101.9)
    assert not possible(z >= 102.1)
    assert possible(z + 100 <= 98.1)
    assert not possible(z + 100 <= 97.9)


def test_matrix_inequalities_are_not_read_entry_by_entry() -> None:
    p = hc.Variable((2, 2), symmetric=True, name="P", bounds=(0.0, 1.0))
    # [[0, 1], [1, 0]] has the eigenvalue −1 and lies below I: entry by entry 1 <= 0 would be false
    low = Model.checked(hc.Minimize(hc.trace(p)), [np.array([[-2.0, 1.5], [1.5, -2.0]]) << p], None)
    assert impossible_rows.impossible_row(low) is None


# ---- ranges of maps


def test_a_product_is_bounded_by_the_sizes_of_its_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_ranges, "DATA_ROUNDING", 0.25)
    a = hc.Variable((1, 2), name="a", bounds=(-3, 1))
    b = hc.Variable((2, 1), name="b", bounds=(-2, 4))
    part = a @ b
    exact = {id(a): (-3.0, 1.0), id(b): (-2.0, 4.0), id(part): (-INF, 100.0)}
    facts: Any = SimpleNamespace()
    facts = type(
        "Known", (), {"__getitem__": lambda _, e: SimpleNamespace(interval=exact[id(e)])}
    )()
    low, high = map_ranges._interval(part, facts)
    assert low.tolist() == [-30.0]  # 2·3·4, a quarter more
    assert high.tolist() == [30.0]
    exact[id(part)] = (-INF, 7.0)
    assert map_ranges._interval(part, facts)[1].tolist() == [7.0]
    exact[id(part)] = (-5.0, INF)
    assert map_ranges._interval(part, facts)[0].tolist() == [-5.0]
    # the sizes of other operations say nothing: 1/0.01 is more than 1/4
    ratio = a / hc.transpose(b)
    exact[id(ratio)] = (-INF, INF)
    exact |= {id(each): (-2.0, 4.0) for each in ratio.args}
    assert [float(end[0]) for end in map_ranges._interval(ratio, facts)] == [-INF, INF]
    finite = hc.exp(a)
    exact[id(finite)] = (-INF, INF)
    assert float(map_ranges._interval(finite, facts)[1][0]) == INF
    exact[id(b)] = (-INF, 4.0)  # a factor without an end says nothing
    exact[id(part)] = (-INF, INF)
    assert [float(end[0]) for end in map_ranges._interval(part, facts)] == [-INF, INF]


def test_entries_are_weighted_where_a_nonnegative_variable_is_a_factor() -> None:
    share = hc.Variable(2, name="p", bounds=(0, 1))
    free = hc.Variable(2, name="q", bounds=(-3, 1))
    kinds = map_ranges._kinds([share * free, free * share, free * free, share + free])
    nodes = {id(share): map_ranges.SHARE, id(free): map_ranges.OTHER}
    for node, kind in nodes.items():
        assert (kinds[node] == kind).all()
    other = hc.Variable(2, name="r", bounds=(-3, 1))
    found = map_ranges.map_ranges([free * share, free * other, share * share])
    assert found[0].nonnegative is not None
    assert found[0].nonnegative.entry_bounds()[0].tolist() == [0, 0]
    assert found[0].domain.entry_bounds()[0] == pytest.approx([-3, -3])
    assert found[1].nonnegative is None
    assert found[2].nonnegative is None  # it is nonnegative anyway
    assert Facts()[share * share].interval[0].min() >= 0


# ---- charts


def test_images_lie_on_a_plane_up_to_a_share_of_their_size() -> None:
    normals = np.array([[0.0], [1.0]])
    center = np.array([50.0, 7.0])
    for size, image in ((50.0, [3.0, 7.0]), (200.0, [200.0, 7.0])):
        off = np.array(image)
        off[1] = 7 + 0.9 * CHART.hull * size
        assert charts._on_plane(normals, center, off)
        off[1] = 7 + 1.1 * CHART.hull * size
        assert not charts._on_plane(normals, center, off)
    small = np.array([0.0, 0.9 * CHART.hull])
    assert charts._on_plane(normals, np.zeros(2), small)  # relative to 1 at least
    assert not charts._on_plane(normals, np.zeros(2), 1.5 * small)


def test_a_slope_is_tilted_along_the_normals_to_fall_least() -> None:
    """Around (1, 2) in [0, 10] × [−4, 5] with the normal (1, 1): the slope (3, 3) is (0, 0) as well."""
    normals = np.ones((2, 1)) / np.sqrt(2)
    center = np.array([1.0, 2.0])
    bounds = np.array([0.0, -4.0]), np.array([10.0, 5.0])
    found = charts._tilted(np.array([3.0, 3.0]), normals, center, bounds)
    assert found == pytest.approx(np.zeros(2), abs=1e-9)
    # (5, 3) − y (1, 1): 1·p₀ with p₀ = 2 where y = 3, against 6·2 at y = 5 and 3·2 for a rise
    found = charts._tilted(np.array([5.0, 3.0]), normals, center, bounds)
    assert found == pytest.approx([2.0, 0.0])
    # (3, 5): 2·6 of y = 3 against a q₀ of 2 with 9, or −2 of the first at the upper end 10
    found = charts._tilted(np.array([3.0, 5.0]), normals, center, bounds)
    assert found == pytest.approx([0.0, 2.0])
    # no entry may fall where it has no end: then 2·3 at the upper end of the second is the price
    open_end = np.array([-INF, -4.0]), np.array([10.0, 5.0])
    found = charts._tilted(np.array([5.0, 3.0]), normals, center, open_end)
    assert found == pytest.approx([0.0, -2.0])
    open_end = np.array([0.0, -4.0]), np.array([INF, 5.0])
    found = charts._tilted(np.array([3.0, 5.0]), normals, center, open_end)
    assert found == pytest.approx([0.0, 2.0])
    both = np.array([-INF, -4.0]), np.array([10.0, INF])
    assert charts._tilted(np.array([5.0, 3.0]), normals, center, both) is None
    # in [−2, 3] × [1, 4]: 2·3 for (2, 0) against 2·2 for (0, −2)
    narrow = np.array([-2.0, 1.0]), np.array([3.0, 4.0])
    found = charts._tilted(np.array([5.0, 3.0]), normals, center, narrow)
    assert found == pytest.approx([0.0, -2.0])
    # two slopes say the same of the hull
    chart = charts.Chart(plain_chart(Box(*bounds)).coordinates, Box(*bounds), None, normals)
    own = np.array([5.0, 3.0])
    assert [each.tolist() for each in chart.equals(own, center)] == [
        [5.0, 3.0],
        pytest.approx([2.0, 0.0]),
    ]
    assert plain_chart(Box(*bounds)).equals(own, center) == (own,)
    shut = np.array([-INF, -INF]), np.array([INF, INF])
    endless = charts.Chart(plain_chart(Box(*shut)).coordinates, Box(*shut), None, normals)
    assert endless.equals(own, center) == (own,)  # no tilt makes it 0


def test_bounds_that_bend_take_their_part_of_a_slope() -> None:
    box = Box.of(1, 0.0, 10.0)
    chart = charts.Chart(
        plain_chart(Box.of(2)).coordinates, Box.of(2), curved=((slice(1, 2), box),)
    )
    here = at([7.0, 4.0], 1.0, [0.0, 0.0])
    rest, cost = chart.without_curved(here, np.array([2.0, 3.0]))
    assert rest.tolist() == [2.0, 0.0]
    assert cost == -3 * 4  # down to 0
    rest, cost = chart.without_curved(here, np.array([2.0, -3.0]))
    assert cost == -3 * 6
    open_box = charts.Chart(
        plain_chart(Box.of(2)).coordinates, Box.of(2), curved=((slice(1, 2), Box.of(1)),)
    )
    rest, cost = open_box.without_curved(here, np.array([2.0, -3.0]))
    assert (rest.tolist(), cost) == ([2.0, -3.0], 0.0)
    assert open_box.curvature_of_bounds(here, np.zeros(2)) == ()  # without second derivatives
    assert plain_chart(Box.of(2)).curvature_of_bounds(here, np.zeros(2)) == ()
    # the part that the bounds hold back is −g·x, here −3 of the second entry
    seen: list[Any] = []
    coordinates: Any = SimpleNamespace(
        tangent=lambda x: SimpleNamespace(full_rank=x[0] < 9),
        hidden_hessian=lambda x, held, second: seen.append((x.tolist(), held.tolist())),
    )
    stack: Any = SimpleNamespace()
    held = charts.Chart(
        coordinates,
        Box.of(2),
        curved=((slice(1, 2), box),),
        stack=stack,
        elsewhere=(np.ones(2), np.full(2, 9.0)),
    )
    assert len(held.curvature_of_bounds(here, np.array([2.0, 3.0]))) == 2
    assert seen == [([7.0, 4.0], [0.0, -3.0]), ([1.0, 1.0], [0.0, -3.0])]


def test_weights_are_taken_to_be_nonnegative_where_all_samples_are() -> None:
    none: Any = None
    wide, part = Box.of(2, -3.0, 3.0), Box.of(2, 0.0, 3.0)
    ranges = [map_ranges.Range(none, Box.of(1, -5.0, 5.0)), map_ranges.Range(none, wide, part)]
    # −0.9e-10 is rounding next to 100
    inside = [np.array([-1.0, 100.0, -0.9e-10]), np.array([-1.0, 1.0, 1.0])]
    found, notes = charts._bounds(ranges, inside)
    assert found.entry_bounds()[0].tolist() == [-5.0, 0.0, 0.0]
    assert len(notes) == 1
    found, notes = charts._bounds(ranges, [*inside, np.array([-1.0, 100.0, -1.1e-10])])
    assert found.entry_bounds()[0].tolist() == [-5.0, -3.0, -3.0]
    assert notes == ()


# ---- balls


def test_weights_are_corrected_by_what_they_leave() -> None:
    # (1, −1)·(1, 1.2) leaves −0.2, and the correction of least size is 0.1 each
    normals = np.array([[1.0], [-1.0], [1.0]])
    found = balls._closer(normals, np.array([1.0, 1.2, 0.4]))
    assert found == pytest.approx([1.1, 1.1, 0.0])  # a weight below one half is left out
    assert balls._closer(normals, np.array([0.7, 0.9, 0.0])) == pytest.approx([0.8, 0.8, 0.0])
    none = np.array([0.1, 0.2, 0.0])
    assert balls._closer(normals, none) is none


def test_terms_of_an_objective_are_weighed_by_their_shares() -> None:
    """log(1·e^v + 3·e^−v) at v = 0, whose terms are ¼ and ¾ of it, and −(2 v + 1)."""
    exponents = Rows(np.array([1.0, -1.0]), np.array([0, 0]), np.array([0, 1, 2]), 1)
    terms = Rows(np.ones(2), np.array([0, 1]), np.array([0, 2]), 2)
    affine = Rows(np.array([2.0]), np.array([0]), np.array([0, 1]), 1)
    entries = SimpleNamespace(
        exponents=exponents,
        terms=terms,
        logs=np.log([1.0, 3.0]),
        affine=affine,
        offset=np.ones(1),
    )
    arrays: Any = SimpleNamespace(entries=entries, places=SimpleNamespace(in_logs=True, sign=1.0))
    half = term_balls._objective(arrays, np.zeros(1), 2.0)
    assert half.weights == pytest.approx([0.25, 0.75])
    assert half.offsets == pytest.approx([2.0, 2.0 - np.log(3.0)])
    assert half.normals.data.tolist() == [1.0, -1.0]
    moved = term_balls._objective(arrays, np.full(1, 800.0), 2.0)
    assert moved.weights == pytest.approx([1.0, 0.0])
    assert moved.offsets == pytest.approx([2.0 - 800, 2.0 + 800 - np.log(3.0)])
    arrays.places = SimpleNamespace(in_logs=False, sign=-1.0)
    half = term_balls._objective(arrays, np.full(1, 4.0), 2.0)
    assert (half.normals.data.tolist(), half.offsets.tolist()) == ([-2.0], [2.0 + 9.0])
    assert half.weights.tolist() == [1.0]


def test_equalities_are_half_spaces_both_ways() -> None:
    # v = 2 alone closes an interval, v <= 2 does not
    normals = Rows(np.array([1.0]), np.array([0]), np.array([0, 1]), 1)
    closed = term_balls._by_program(normals, np.array([2.0]), np.array([True]))
    assert closed == pytest.approx(2.0)
    assert term_balls._by_program(normals, np.array([2.0]), np.array([False])) is None


def test_the_least_singular_value_is_less_by_its_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balls, "PRODUCT_ROUNDING", 0.01)
    # 3 and 4 in two columns: 3 − 0.01·2·4
    assert balls.least_singular_value(np.diag([4.0, 3.0])) == pytest.approx(3 - 0.08)
    tall = np.array([[4.0, 0.0], [0.0, 3.0], [0.0, 0.0]])
    assert balls.least_singular_value(tall) == pytest.approx(3 - 0.08)


def test_rounding_of_many_columns_is_that_of_their_squares(monkeypatch: pytest.MonkeyPatch) -> None:
    """3·I has squares of 9, a sum of n products each, whose eigenvalues are off by 2n·trace at most."""
    count, rounding = balls.ENCLOSURE.few + 1, 1e-7
    monkeypatch.setattr(balls, "PRODUCT_ROUNDING", rounding)
    expected = np.sqrt(9 - rounding * 2 * count * 9 * count)
    assert 3 - expected > 10 * rounding  # so large that it shows
    found = balls.least_singular_value(3 * np.eye(count))
    assert found == pytest.approx(expected, abs=1e-2 * (3 - expected))


# ---- norms


def test_a_norm_vanishes_relative_to_the_largest_of_its_kind() -> None:
    kink = norm_minorants.KINK

    def found(*values: float) -> list[bool]:
        slope: Any = SimpleNamespace(value=np.array(values))
        marks: list[bool] = norm_minorants._at_kink(slope).tolist()
        return marks

    assert found(0.9 * kink, 0.1) == [True, False]  # relative to 1 at least
    assert found(1.1 * kink, 0.1) == [False, False]
    assert found(90 * kink, 100.0) == [True, False]
    assert found(110 * kink, 100.0) == [False, False]


# ---- lower bounds


def test_constants_bound_the_gap_with_the_rounding_of_a_face(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At (0, 4) of x >= 0, y free, with slope (3, 2): 2·½ of what is left, and 3·0.01·4 of the face."""
    monkeypatch.setattr(lower_bound, "BACKEND_ROUNDING", 0.01)
    box = Box(np.array([0.0, -INF]), np.array([9.0, INF]))
    constants = hc.Constants(mu_c=2.0, diameter_u=1.0)

    def gap(here: Evaluation, *multipliers: float) -> float | None:
        return lower_bound.gradient_domination(here, box, np.array(multipliers), constants)

    assert gap(at([0.0, 4.0], 1.0, [3.0, 2.0])) == pytest.approx(1.0 + 3 * 0.01 * 4)
    assert gap(at([0.0, 0.5], 1.0, [3.0, 2.0])) == pytest.approx(1.0 + 3 * 0.01)  # at least 1
    # a row of −2 at the price 1.5 adds 3
    row = at([0.0, 0.5], 1.0, [3.0, 2.0], (-2.0,), [[0.0, 0.0]], 1)
    assert gap(row, 1.5) == pytest.approx(1.0 + 3 * 0.01 + 3.0)
    # and one that is violated takes off, but not below 0
    broken = at([0.0, 0.5], 1.0, [3.0, 2.0], (2.0,), [[0.0, 0.0]], 1)
    assert gap(broken, 1.5) == 0.0
    assert gap(at([0.0, 0.5], 1.0, [np.nan, 2.0])) is None
    assert gap(at([-1.0, 0.5], 1.0, [3.0, 2.0])) is None  # outside
    for poor in (hc.Constants(mu_c=2.0), hc.Constants(diameter_u=1.0)):
        here = at([0.0, 4.0], 1.0, [3.0, 2.0])
        assert lower_bound.gradient_domination(here, box, np.zeros(0), poor) is None


# ---- cuts


def cut(
    image: float,
    value: float,
    slope: float,
    row: float,
    row_slope: float,
    weights: tuple[float, float],
    inequality: bool = True,
) -> tuple[CutPoint, WeightedPoint]:
    here = at([image], value, [slope], (row,), [[row_slope]], int(inequality))
    own = CutPoint(here, np.array([image]), np.array([slope]), np.array([[row_slope]]))
    return own, WeightedPoint(here, weights[0], np.array([weights[1]]))


def test_cuts_are_added_with_their_weights_at_one_place() -> None:
    """From 1: 3·(4 + 2·(1 − 3)) + ½·(5 − (1 − 3)) and 1·(7 − 2·(1 + 2)), all of it doubled."""
    one = cut(3.0, 4.0, 2.0, 5.0, -1.0, (3.0, 0.5))
    two = cut(-2.0, 7.0, -2.0, 9.0, 4.0, (1.0, -8.0))  # a weight of an inequality below 0 is 0
    points, weighted = zip(one, two, strict=True)
    center = np.array([1.0])
    total = cut_bounds._added(points, weighted, center, 2.0, objective=True)
    assert total.value == pytest.approx(2 * (3 * 0 + 0.5 * 7 + 1))
    assert total.slope == pytest.approx([2 * (3 * 2 - 0.5 - 2)])
    first = 3 * 4 + 0.5 * 5 + (3 * 2 + 0.5) * (1 + 3)
    second = 7 + 2 * (1 + 2)
    assert total.terms == pytest.approx(2 * (first + second))
    rows = cut_bounds._added(points, weighted, center, 2.0, objective=False)
    assert rows.value == pytest.approx(2 * 0.5 * 7)
    assert rows.slope == pytest.approx([-1.0])
    assert rows.terms == pytest.approx(2 * (0.5 * 5 + 0.5 * 4))
    equality = [cut(-2.0, 7.0, -2.0, 9.0, 4.0, (1.0, -8.0), False)]
    points, weighted = zip(*equality, strict=True)
    signed = cut_bounds._added(points, weighted, center, 1.0, objective=False)
    assert signed.value == pytest.approx(-8 * (9 + 4 * 3))
    assert signed.terms == pytest.approx(8 * 9 + 8 * 4 * 3)


def test_cuts_enclose_the_points_of_low_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """|v| + 10 by its two slopes at ±2, seen from 2, where the level is 12 + 1.2; a row v <= 7."""
    right, _ = cut(2.0, 12.0, 1.0, -5.0, 1.0, (1.0, 0.0))
    left, _ = cut(-2.0, 12.0, -1.0, -9.0, 1.0, (1.0, 0.0))
    seen: list[Any] = []
    monkeypatch.setattr(cut_bounds, "ball", lambda *a: seen.append(a) or 3.0)
    chart = plain_chart(Box.of(1, -100.0, 50.0))
    found = cut_bounds._enclosure(chart, [right, left], right)
    assert found is not None
    assert (found.level, found.radius, found.center.tolist()) == (pytest.approx(13.2), 3.0, [2.0])
    halves, unit, _ = seen[0]
    # the box; 1·(v − 2) <= 1.2; v <= 7; −(v − 2) <= 1.2 + 4; and v <= 7 from the other point
    assert halves.normals.ravel().tolist() == [1, -1, 1, 1, -1, 1]
    assert halves.offsets == pytest.approx([48, 102, 1.2, 5, 5.2, 5])
    assert unit == 2.0
    equal, _ = cut(0.0, 12.0, 1.0, -5.0, 1.0, (1.0, 0.0), False)
    cut_bounds._enclosure(chart, [equal], equal)
    halves, unit, _ = seen[1]
    assert halves.normals.ravel().tolist() == [1, -1, 1, 1, -1]
    assert halves.offsets == pytest.approx([50, 100, 1.2, 5, -5])
    assert unit == ENCLOSURE.smallest_image
    monkeypatch.setattr(cut_bounds, "ball", lambda *a: None)
    assert cut_bounds._enclosure(chart, [right, left], right) is None


# ---- points beside another one


def test_negative_curvature_is_followed_both_ways() -> None:
    form: Any = SimpleNamespace(domain=Box.of(2, -50.0, 50.0), affords_hessian=True)
    here = at([3.0, 4.0], 1.0, [0.0, 0.0])

    def directions(*curvature: float) -> list[Any]:
        oracle: Any = SimpleNamespace(lagrangian_hessian=lambda *a: np.diag(curvature))
        return list(nearby._along_curvature(form, oracle, here, np.zeros(0)))

    found = directions(2.0, -1.0)
    assert len(found) == 2 * len(nearby.RULES.curved)
    unit = form.domain.face_basis(here.point, nearby.RULES.negative).toarray()[1, 1]
    for i, length in enumerate(nearby.RULES.curved):
        steps = [found[2 * i] - here.point, found[2 * i + 1] - here.point]
        assert steps[0] == pytest.approx(-steps[1])
        assert np.abs(steps[0]) == pytest.approx([0.0, length * unit])
    assert directions(2.0, 1.0) == []
    # relative to the largest curvature
    negative = nearby.RULES.negative
    scale = unit**2
    assert scale > 0
    assert directions(1e6, -0.5e6 * negative) == []
    assert directions(1e6, -2e6 * negative) != []
    assert directions(1e-6, -0.5e-6 * negative) == []
    assert directions(1e-6, -2e-6 * negative) != []
    assert directions(np.nan, -1.0) == []
    form.affords_hessian = False
    assert directions(2.0, -1.0) == []


def test_active_rows_forbid_directions() -> None:
    """At the size 1e3 of its sides, a row within 1e-5 counts as active; one farther away does not."""
    box = Box.of(2, -1e4, 1e4)
    for row, free in ((1e-6, 1), (-1e-6, 1), (-1e-3, 2)):
        here = at([3.0, 4.0], 1.0, [0.0, 0.0], (row,), [[1.0, 0.0]], 1)
        here.magnitudes = np.array([1e3])
        found = nearby._free_directions(box, here)
        assert found.shape == (2, free)
        if free == 1:
            assert found[0] == pytest.approx(0.0)
    equality = at([3.0, 4.0], 1.0, [0.0, 0.0], (5.0,), [[1.0, 0.0]], 0)
    assert nearby._free_directions(box, equality).shape == (2, 1)
    steep = at([3.0, 4.0], 1.0, [0.0, 0.0], (0.0,), [[np.nan, 0.0]], 1)
    assert nearby._free_directions(box, steep).shape == (2, 0)


def test_a_better_point_is_lower_by_more_than_asked_rows_paid_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = at([0.0], 10.0, [0.0], (0.0,), [[1.0]], 1)
    form: Any = SimpleNamespace(
        oracle=lambda: None, compiled=SimpleNamespace(has_black_boxes=False)
    )

    def lowest(*values: tuple[float, float]) -> float | None:
        """Of points with these values and rows, where 1 is asked for and a row costs 2."""
        monkeypatch.setattr(nearby, "_candidates", lambda *a: iter(values))
        monkeypatch.setattr(
            nearby,
            "_restored",
            lambda o, f, point, *a: at([0.0], point[0], [0.0], (point[1],), [[1.0]], 1),
        )
        found = nearby.better_point(form, here, np.array([-2.0]), 1e-6, 1.0)
        return None if found is None else found.objective

    assert lowest((8.9, -1.0)) == 8.9
    assert lowest((9.1, -1.0)) is None
    assert lowest((8.5, -1.0), (8.0, -1.0), (8.2, -1.0)) == 8.0
    assert lowest((8.0, 0.4)) == 8.0  # 8.8 with what the row gives
    assert lowest((8.0, 0.6)) is None  # 9.2
    monkeypatch.setattr(nearby, "_candidates", lambda *a: iter([1]))
    monkeypatch.setattr(nearby, "_restored", lambda *a: None)
    assert nearby.better_point(form, here, np.array([-2.0]), 1e-6, 1.0) is None


def test_steps_around_a_point_are_in_natural_units() -> None:
    form: Any = SimpleNamespace(domain=Box.of(1, -1e4, 1e4), affords_hessian=False)
    here = at([500.0], 1.0, [0.0])
    found = list(nearby._candidates(form, None, here, np.zeros(0), nearby.RULES))  # type: ignore[arg-type]
    count = 2 * nearby.RULES.directions
    assert len(found) == count * len(nearby.RULES.scales) + nearby.RULES.samples
    for i, scale in enumerate(nearby.RULES.scales):
        own = np.abs(np.ravel(found[i * count : (i + 1) * count]) - 500.0)
        assert 0.1 * scale * 500 < own.max() <= scale * 500


# ---- boxes of second derivatives


def interval(low: Any, high: Any | None = None) -> Interval:
    return Interval(
        np.array(low, dtype=float), np.array(low if high is None else high, dtype=float)
    )


def test_systems_with_intervals_are_solved_by_elimination() -> None:
    """Jᵀs = g for J = [[2, 1], [4, 5]]: 2 s₀ + 4 s₁ = 10 and s₀ + 5 s₁ = 11, s = (1, 2)."""
    jacobian = interval([[[2.0, 1.0]], [[4.0, 5.0]]])  # by entry of the map, box, unknown
    found = _solved(jacobian, interval([[10.0, 11.0]]))
    assert [float(each.low[0]) for each in found] == pytest.approx([1.0, 2.0])
    assert [float(each.high[0]) for each in found] == pytest.approx([1.0, 2.0])
    # s₁ in [2, 3]: s₀ = (10 − 4 s₁)/2 in [−1, 1]
    wide = _solved(interval([[[2.0, 0.0]], [[4.0, 5.0]]]), interval([[10.0, 10.0]], [[10.0, 15.0]]))
    assert (float(wide[1].low[0]), float(wide[1].high[0])) == pytest.approx((2.0, 3.0))
    assert (float(wide[0].low[0]), float(wide[0].high[0])) == pytest.approx((-1.0, 1.0))


def test_a_map_acts_entry_by_entry_where_each_coordinate_moves_with_its_own_unknown() -> None:
    def acts(low: Any, high: Any = None) -> list[bool]:
        own: Any = SimpleNamespace(gradient=interval(low, high))
        found: list[bool] = Enclosed(None, [], None, own).acts_entrywise.tolist()  # type: ignore[arg-type]
        return found

    # by entry, box and unknown; the second box of the first test has a cross term
    assert acts([[[1.0, 0.0], [1.0, 0.5]], [[0.0, 2.0], [0.0, 2.0]]]) == [True, False]
    assert acts([[[-1.0, 0.0]], [[0.0, 2.0]]]) == [True]  # falling is moving
    assert acts([[[-1.0, 0.0]], [[0.0, 2.0]]], [[[1.0, 0.0]], [[0.0, 2.0]]]) == [False]  # may be 0


def test_the_lagrangian_of_enclosures_weighs_the_rows() -> None:
    x = hc.Variable(2, name="x", bounds=(-1, 1))
    rows = [x[0] ** 2 <= 1, 3 * x[1] ** 2 + x[0] <= 2]
    form = hc.Problem(hc.Minimize(5 * x[0] ** 2 + 7), rows, hidden=[x]).forms().hidden()
    assert form is not None
    functions = EnclosedFunctions(form, plain_chart(Box.of(2)), np.array([2.0, 4.0]), np.arange(2))
    point = np.zeros((1, 2))
    over = functions.over(point, point)
    assert over.objective.hessian.low[0] == pytest.approx(np.diag([10.0, 0.0]))
    assert over.lagrangian.hessian.low[0] == pytest.approx(np.diag([10.0 + 2 * 2, 4 * 6.0]))
    assert over.lagrangian.gradient.low[0] == pytest.approx([4.0, 0.0])
    assert over.lagrangian.value.low[0] == pytest.approx(7 - 2 * 1 - 4 * 2)
    assert len(over.rows) == 2
    constant = curvature_boxes._flat(np.array([3.0, -4.0]), seeds(point, point, np.zeros(2, bool)))
    assert np.ravel(constant.value.low) == pytest.approx([3.0, -4.0])


def enclosed_jet(curvature: Interval, value: Any = 0.0, slope: Interval | None = None) -> Jet:
    """A function of one unknown over boxes, of which the second derivatives are given."""
    boxes = len(curvature.low)
    values = np.broadcast_to(np.asarray(value, dtype=float), boxes)
    flat = Interval(np.zeros((boxes, 1)), np.zeros((boxes, 1)))
    matrix = Interval(curvature.low[:, None, None], curvature.high[:, None, None])
    return Jet(Interval(values, values), flat if slope is None else slope, matrix)


class Mixed(Enclosed):
    """Coordinates that do not act entry by entry."""

    acts_entrywise = property(lambda self: np.zeros(len(self.objective.value.low), dtype=bool))


def halving(
    curvature: Any, *, objective: Any = lambda low, high: 0.0, kind: type[Enclosed] = Enclosed
) -> Any:
    """A model of one unknown whose curvature and value over a box are given by functions."""

    def over(lows: FloatArray, highs: FloatArray) -> Enclosed:
        boxes = list(zip(lows[:, 0], highs[:, 0], strict=True))
        low, high = np.array([curvature(*each) for each in boxes], dtype=float).T
        jet = enclosed_jet(Interval(low, high), [objective(*each) for each in boxes])
        return kind(jet, [], jet, None)

    return SimpleNamespace(over=over, plain=True, used=[], inequalities=0)


def test_boxes_are_halved_until_each_is_convex() -> None:
    # the enclosure of 1 over a box of length l is [1 − l, 1 + l]: convex from a length of 1 on
    curvature = lambda low, high: (1 - (high - low), 1 + (high - low))  # noqa: E731
    found = _Halving(halving(curvature)).run(np.zeros(1), np.full(1, 8.0))
    assert found.convex
    assert found.bends_at is None
    # the same through a map that does not act entry by entry is no proof
    mixed = _Halving(halving(curvature, kind=Mixed)).run(np.zeros(1), np.full(1, 8.0))
    assert not mixed.convex
    assert mixed.bends_at is None
    other = halving(curvature)
    other.plain = False
    assert not _Halving(other).run(np.zeros(1), np.full(1, 8.0)).convex


def test_a_point_that_bends_is_kept_and_lower_ones_are_looked_for() -> None:
    # concave between 2 and 3; the objective is lowest at 2.6
    def curvature(low: float, high: float) -> tuple[float, float]:
        if high <= 2 or low >= 3:
            return 1.0, 1.0
        return (-1.0, -1.0) if low >= 2 and high <= 3 else (-1.0, 1.0)

    functions = halving(curvature, objective=lambda low, high: abs((low + high) / 2 - 2.6))
    found = _Halving(functions).run(np.zeros(1), np.full(1, 8.0))
    assert not found.convex
    assert found.bends_at is not None
    assert 2 <= found.bends_at[0] <= 3
    assert len(found.lowest) == BOXES.kept
    heights = [abs(point[0] - 2.6) for point in found.lowest]
    assert heights == sorted(heights)
    assert heights[0] < 2 ** -(BOXES.further - 2)  # the box that holds it was halved on


def refuted_by(curvature: Interval, slope: Interval | None = None) -> bool:
    """Whether a point with this curvature and slope refutes the coordinates."""
    jet = enclosed_jet(curvature, slope=slope)
    return bool(Enclosed(jet, [], jet, None).bends[0])


def test_small_curvatures_do_not_refute() -> None:
    # relative to the slope of 1e3
    slope = Interval(np.full((1, 1), -1e3), np.full((1, 1), 1.0))
    for bend, refuted in ((-0.5e3 * BOXES.bent, False), (-2e3 * BOXES.bent, True)):
        assert refuted_by(interval([bend]), slope) == refuted
    # an enclosure without an end shows nothing
    assert not refuted_by(interval([-INF], [-1.0]))


@pytest.mark.parametrize(("radius", "refuted"), [(0.5, True), (2.0, False)])
def test_a_function_bends_where_no_curvature_in_the_enclosure_is_positive(
    radius: float, refuted: bool
) -> None:
    # −1 ± ½ is negative for sure, −1 ± 2 is not
    assert refuted_by(interval([-1 - radius], [-1 + radius])) == refuted


def test_the_point_that_refutes_is_the_lowest_of_those_that_bend() -> None:
    jet = enclosed_jet(interval([-1.0, 1.0, -1.0]), [3.0, 1.0, 2.0])
    found = _Halving(halving(None))._bends(
        Enclosed(jet, [], jet, None), np.array([[5.0], [6], [7]])
    )
    assert found is not None
    assert found.tolist() == [7]


def test_equalities_have_to_be_affine_and_inequalities_convex() -> None:
    flat, up, down = (enclosed_jet(interval([number])) for number in (0.0, 1.0, -1.0))

    def shown(objective: Jet, row: Jet, *, inequality: bool) -> bool:
        functions: Any = SimpleNamespace(used=[0], inequalities=int(inequality), plain=True)
        over = Enclosed(objective, [row], objective, None)
        return bool(_Halving(functions)._convex(over, provable=True)[0])

    assert shown(up, up, inequality=True)
    assert shown(flat, flat, inequality=True)
    assert not shown(up, down, inequality=True)
    assert not shown(down, up, inequality=True)
    assert shown(up, flat, inequality=False)
    assert not shown(up, up, inequality=False)


def test_where_nothing_can_be_proven_boxes_are_left_in_which_the_lagrangian_is_convex() -> None:
    up, down = enclosed_jet(interval([1.0])), enclosed_jet(interval([-1.0]))
    functions: Any = SimpleNamespace(used=[0], inequalities=1, plain=False)
    halved = _Halving(functions)
    assert halved._convex(Enclosed(up, [down], up, None), provable=False).tolist() == [True]
    assert halved._convex(Enclosed(up, [up], down, None), provable=False).tolist() == [False]


@pytest.mark.parametrize(
    ("curvature", "most"),
    [
        (lambda low, high: (-1.0, 1.0), 2 * BOXES.boxes_without_proof),  # nothing is shown anywhere
        (lambda low, high: (1.0, 1.0) if high < 4 else (-1.0, 1.0), BOXES.most_boxes),
    ],
)
@pytest.mark.parametrize("plain", [True, False])
def test_boxes_have_an_end(curvature: Any, most: int, plain: bool) -> None:
    seen = []
    functions = halving(curvature)
    over, functions.plain = functions.over, plain
    functions.over = lambda low, high: (seen.append(len(low) // 2), over(low, high))[1]
    found = _Halving(functions).run(np.zeros(1), np.full(1, 8.0))
    assert (found.convex, found.bends_at) == (False, None)
    assert 1 < sum(seen) <= (most if plain else min(most, BOXES.unproven))


# ---- a declared map put to the test


def map_test(value: Any, *, form: Any = None, slope: float = 1.0) -> declared_test._Test:
    """The Lagrangian `value` of one unknown in [−4, 4], with its minorant at 1."""
    oracle = function_oracle(1, lambda x: (float(value(float(x[0]))), np.full(1, slope)))
    here = oracle.at(np.ones(1))
    best = Minorant(here, np.zeros(0), np.ones(1), (np.full(1, slope),), 0.0)
    domain = Box.of(1, -4.0, 4.0)
    own = form or SimpleNamespace(domain=domain, map_geometry=None)
    return declared_test._Test(own, oracle, plain_chart(domain), best)


def test_a_function_below_its_minorant_contradicts_the_map() -> None:
    assert not map_test(lambda x: 3 + x + (x - 1) ** 2)._undercut()
    assert map_test(lambda x: 3 + x - (x - 1) ** 2)._undercut()
    # the margin is 1e-7 of the value, of the start and of the minorant: 0.3 next to 1e6
    assert not map_test(lambda x: 1e6 + x - 0.25 * (x != 1))._undercut()
    assert map_test(lambda x: 1e6 + x - 0.35 * (x != 1))._undercut()


def test_samples_are_drawn_from_all_of_the_domain_and_around_the_reference() -> None:
    own = map_test(lambda x: 3 + x + (x - 1) ** 2)
    seen: list[float] = []
    oracle = own.oracle

    def at_point(x: FloatArray) -> Evaluation:
        seen.append(float(x[0]))
        return oracle.at(x)

    spied = declared_test._Test(own.form, SimpleNamespace(at=at_point), own.chart, own.best)  # type: ignore[arg-type]
    assert not spied._undercut()
    assert len(seen) == MAP_TEST.samples * MAP_TEST.more
    generator = np.random.default_rng(0)
    for number, point in enumerate(seen):
        sample = float(own.form.domain.sample(generator)[0])
        if number % 2:  # so many times nearer to 1
            sample = 1 + (sample - 1) / 2 ** (number % 16)
        assert point == pytest.approx(sample)
    # of a general map with many unknowns, few
    size = MAP_TEST.many + 1
    calls: list[Any] = []
    large = function_oracle(size, lambda x: (0.0, np.zeros(size)))
    best = Minorant(large.at(np.zeros(size)), np.zeros(0), np.zeros(size), (np.zeros(size),), 0.0)
    tangent = SimpleNamespace(derivative=np.eye(size))
    form: Any = SimpleNamespace(
        domain=Box.of(size, -1.0, 1.0),
        map_geometry=SimpleNamespace(tangent=lambda x: tangent),
        stack=SimpleNamespace(kinked=False),
    )
    counted: Any = SimpleNamespace(at=lambda x: calls.append(x) or large.at(x))
    chart = plain_chart(form.domain)
    assert not declared_test._Test(form, counted, chart, best)._undercut()
    assert len(calls) == MAP_TEST.fewest
    form.map_geometry = None
    calls.clear()
    assert not declared_test._Test(form, counted, chart, best)._undercut()
    assert len(calls) == MAP_TEST.samples


def test_the_lagrangian_and_the_size_of_its_terms() -> None:
    here = at([0.0], -10.0, [0.0], (2.0, -3.0), [[0.0], [0.0]], 1)
    best = Minorant(here, np.array([0.5, 2.0]), np.zeros(1), (np.zeros(1),), 0.0)
    own = declared_test._Test(None, None, None, best)  # type: ignore[arg-type]
    assert own._lagrangian(here) == (-10 + 1 - 6, 10 + 1 + 6)


def test_bulges_are_looked_for_along_the_most_negative_curvature(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Relative to the largest curvature and to the slope of the terms."""
    own = map_test(lambda x: 3 + x)
    monkeypatch.setattr(
        declared_test._Test, "_frame", lambda *a: SimpleNamespace(hessian=lambda h: h)
    )
    asked: list[Any] = []

    def bulges(curvature: list[float], slope: float, *, above: bool = True) -> bool:
        asked.clear()
        monkeypatch.setattr(declared_test._Test, "_hessian", lambda *a: np.diag(curvature))
        monkeypatch.setattr(declared_test._Test, "_slope", lambda *a: slope)
        monkeypatch.setattr(
            declared_test._Test, "_above_chord", lambda self, s, f, w: asked.append(w) or above
        )
        return own._bulges()

    assert bulges([1.0, -1.0], 0.0)
    assert np.abs(asked[0]).tolist() == [0.0, 1.0]
    assert not bulges([1.0, -1.0], 0.0, above=False)
    assert len(asked) == MAP_TEST.curvatures * MAP_TEST.more
    assert not bulges([1.0, 2.0], 0.0)
    tiny = MAP_TEST.curved * 1e3
    for bend, found in ((-0.5 * tiny, False), (-2 * tiny, True)):
        assert bulges([1e3, bend], 0.0) == found
        assert bulges([0.0, bend], 1e3) == found
    assert not bulges([np.nan, -1.0], 0.0)
    assert not bulges([], 0.0)


def test_each_of_the_tests_contradicts_the_map(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples one by one bulge or lie too low; where all are looked at in arrays, these decide."""
    own = map_test(lambda x: 3 + x)
    monkeypatch.setattr(
        declared_test._Test, "_frame", lambda *a: SimpleNamespace(hessian=lambda h: h)
    )
    monkeypatch.setattr(declared_test._Test, "_slope", lambda *a: 0.0)
    answers: dict[str, bool] = {}
    for name in ("_bulges", "_undercut"):
        monkeypatch.setattr(declared_test._Test, name, lambda self, n=name: answers[n])
    batch = SimpleNamespace(fails=lambda: answers["batch"])
    for curved, bulges, undercut, small in itertools.product((False, True), repeat=4):
        sign = -1.0 if curved else 1.0
        monkeypatch.setattr(declared_test._Test, "_hessian", lambda *a, s=sign: np.full((1, 1), s))
        found = batch if small else None
        monkeypatch.setattr(declared_test._EnclosedSamples, "of", lambda test, f=found: f)
        for fails in (False, True):
            answers.update({"_bulges": bulges, "_undercut": undercut, "batch": fails})
            assert own.fails() == (curved or (fails if small else bulges or undercut))


def test_a_map_that_turns_round_is_no_map() -> None:
    domain = Box.of(1, -4.0, 4.0)

    def fails(slope: Any, kinked: bool = False) -> bool:
        geometry = SimpleNamespace(
            tangent=lambda x: SimpleNamespace(derivative=np.full((1, 1), slope(float(x[0]))))
        )
        form: Any = SimpleNamespace(
            domain=domain, map_geometry=geometry, stack=SimpleNamespace(kinked=kinked)
        )
        return map_test(lambda x: 3 + x + (x - 1) ** 2, form=form)._undercut()

    assert not fails(lambda x: 2.0)
    assert not fails(lambda x: -2.0)
    assert fails(lambda x: x)
    assert not fails(lambda x: x, kinked=True)  # derivatives say nothing there
    # singular or undefined where the model is smooth
    assert fails(lambda x: 0.0)
    assert fails(lambda x: np.nan if x > 0 else 1.0)


def test_the_terms_of_a_slope_are_added_by_size() -> None:
    here = at([1.0, 1.0], 0.0, [3.0, -1.0], (0.0, 0.0), [[-2.0, 0.0], [0.0, 5.0]], 1)
    form: Any = SimpleNamespace(
        geometry=SimpleNamespace(frame=lambda e: Frame(np.full(2, 2.0))), domain=Box.of(2)
    )
    best = Minorant(here, np.array([4.0, -1.0]), np.zeros(2), (np.zeros(2),), 0.0)
    own = declared_test._Test(form, None, None, best)  # type: ignore[arg-type]
    assert own._slope(here) == 2 * (3 + 4 * 2)


def test_the_lagrangian_above_its_chord_contradicts_the_map() -> None:
    """Around (3, 1): L − the mean of L at 3 ± ½ length, beside the terms of all three."""

    def above(value: Any, image: Any = lambda x: x) -> bool:
        oracle = function_oracle(2, lambda x: (float(value(float(x[0]))), np.zeros(2)))
        middle = oracle.at(np.array([3.0, 1.0]))
        geometry = SimpleNamespace(retract=lambda point, step: point + step)
        form: Any = SimpleNamespace(geometry=geometry, settled=lambda x: x)
        chart: Any = SimpleNamespace(image=lambda e: image(e.point))
        best = Minorant(middle, np.zeros(0), np.zeros(2), (np.zeros(2),), 0.0)
        frame: Any = SimpleNamespace(step=lambda w: w)
        return declared_test._Test(form, oracle, chart, best)._above_chord(
            middle, frame, np.array([0.5, 0.0])
        )

    assert above(lambda x: -(x**2))
    assert not above(lambda x: x**2)
    assert not above(lambda x: 5 * x)
    # a bend that rounding may make: 1e-7 of twice 1e6 and of 1e6 at each end is 0.4
    assert not above(lambda x: 1e6 - 0.18 * (x != 3))
    assert above(lambda x: 1e6 - 0.22 * (x != 3))
    # undefined ends show nothing
    assert not above(lambda x: -(x**2) if x == 3 else np.nan)
    # nor does a segment whose image is bent by more than 1e-6 of its length
    bent = 1e-6 * 0.5 / 2 / 0.5**2
    assert above(lambda x: -(x**2), lambda x: x + 0.9 * bent * (x - 3) ** 2 * [1, 0])
    assert not above(
        lambda x: -(x**2) if abs(x - 3) > 0.2 or x == 3 else np.nan,
        lambda x: x + 1.2 * bent * (x - 3) ** 2 * [1, 0],
    )
    # a shorter segment is tried after one whose end is not defined
    assert above(lambda x: -(x**2) if abs(x - 3) < 0.25 else np.nan)
    assert not above(lambda x: -(x**2) if x == 3 or abs(x - 3) > 1 else np.nan)


def test_few_unknowns_are_tested_more() -> None:
    assert declared_test._effort(MAP_TEST.few) == MAP_TEST.more
    assert declared_test._effort(MAP_TEST.few + 1) == 1


# ---- steps, norms, conflicts


def test_a_newton_step_is_halved_until_the_lagrangian_falls() -> None:
    """√(1 + x²) from 2: Newton's step leads to −8, half of it to −3, a quarter to −½, which is lower."""
    x = hc.Variable(name="x", bounds=(-50, 50))
    for cost, expected in ((hc.sqrt(1 + x**2), -0.5), ((x - 3) ** 2, 3.0)):
        form = hc.Problem(hc.Minimize(cost)).forms().lifted
        oracle = form.oracle()
        found = newton_steps.lagrangian_step(form, oracle, oracle.at(np.array([2.0])), np.zeros(0))
        assert found is not None
        assert found.point == pytest.approx([expected], rel=1e-6)
    # a step that does not change the value but for rounding is taken
    flat = hc.Problem(hc.Minimize((x - 2) ** 2 + 1e9)).forms().lifted
    oracle = flat.oracle()
    assert newton_steps.lagrangian_step(flat, oracle, oracle.at(np.array([2.0])), np.zeros(0))


def test_functions_rise_or_fall_with_a_norm_in_them() -> None:
    x = hc.Variable(2, name="x", bounds=(0.5, 2))
    norm = hc.norm(x)
    proof: Any = SimpleNamespace(curvatures=SimpleNamespace(facts=Facts()))
    placed = {id(norm): norm}

    def ways(root: Any) -> set[float]:
        return norm_minorants._directions(root, placed, proof)

    assert ways(norm) == {1.0}
    assert ways(hc.exp(norm) + x[0]) == {1.0}
    assert ways(x[0] - 2 * norm) == {-1.0}
    assert ways(-hc.exp(-norm)) == {1.0}
    assert ways(hc.sin(norm)) == {0.0}
    assert ways(norm - hc.exp(norm)) == {1.0, -1.0}
    assert ways(hc.sum(x)) == set()


def test_parts_of_a_conflict_weigh_a_share_of_the_largest() -> None:
    parts = [conflicts.Part(None, np.array(rows)) for rows in ([0, 1], [2], [3])]  # type: ignore[arg-type]
    least = conflicts.RULES.involved
    weights = np.array([0.0, 8.0, 9 * least, 7 * least])
    assert conflicts._weighted(parts, weights) == parts[:2]
    assert conflicts._weighted([], weights) == []


def test_a_deletion_keeps_what_the_contradiction_needs() -> None:
    """Parts 1 and 3 contradict each other, whatever 0 and 2 say; the time may be over at once."""
    whole = {Origin(i): [i] for i in range(4)}
    parts = conflicts._Parts(whole).whole()
    program = SimpleNamespace(offset=np.zeros(4))
    relaxed: Any = SimpleNamespace(program=program, amount=0)

    class Told(conflicts._Deletion):
        def _tested(self, kept: Any) -> Any:
            rows = {int(part.rows[0]) for part in kept}
            if not {1, 3} <= rows:
                return conflicts._Tested(known=True, weights=None)
            weights = np.zeros(4)
            weights[sorted(rows)] = 1.0
            return conflicts._Tested(known=True, weights=weights)

        def _only_sum(self, kept: Any) -> None:
            return None  # there is no program whose rows could show it

    def told(deadline: float | None, first: Any = None, count: int = 4) -> Any:
        listed = conflicts._Parts({Origin(i): whole[Origin(i)] for i in range(count)})
        found = Told(relaxed, listed, deadline).conflict(first)
        return None if found is None else [part.origins[0].position for part in found]

    assert told(None) == told(np.inf) == [1, 3]
    assert told(-np.inf) is None
    assert told(None, count=3) is None
    # where the parts to begin with say nothing, all are looked at
    for first in ([parts[1], parts[3]], parts[1:], parts[:3], []):
        assert told(None, first) == [1, 3]


def test_rows_with_a_weight_and_all_bounds_are_looked_at_first() -> None:
    # rows 2 and 3 of the program are those of one equality, row 4 that of an inequality; 0 and 1 bounds
    least: Any = SimpleNamespace(
        program=SimpleNamespace(offset=np.zeros(5)), rows=np.array([4, 2]), others=np.array([-1, 3])
    )
    relaxation: Any = SimpleNamespace(least=least)
    parts = conflicts._Parts({Origin(0): [0, 1], Origin(1): [2, 3], Origin(2): [4]})
    involved = conflicts.RULES.involved

    def likely(*weights: float) -> Any:
        found = conflicts._likely(relaxation, parts, np.array(weights))
        return None if found is None else {each.origins[0].position: [*each.rows] for each in found}

    assert likely(0.5 * involved, -1.0) == {0: [0, 1], 1: [2, 3]}
    assert likely(1.0, 0.0) == {0: [0, 1], 2: [4]}
    assert likely(1.0, 1.0) is None  # these are all
    assert likely(1.0, 1.0, 1.0) is None  # weights of other rows


def test_the_least_eigenvalue_of_an_enclosure_is_less_by_its_rounding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # diag(2, 3) ± ½ in each entry: 2 − 1·1.25 − ¼ of the largest sum of a row, 3
    monkeypatch.setattr(curvature_boxes, "MERIT_ROUNDING", 0.25)
    center = np.diag([2.0, 3.0])
    found = curvature_boxes._least(Interval(center - 0.5, center + 0.5))
    assert found == pytest.approx(2 - 1.25 - 0.75)
    # of the rows of radii, ¾ and ¼, the largest counts
    radius = np.array([[0.5, 0.25], [0.25, 0.0]])
    found = curvature_boxes._least(Interval(center - radius, center + radius))
    assert found == pytest.approx(2 - 0.75 * 1.25 - 0.75)
    # an enclosure that is not symmetric is taken with its transpose
    skew = np.array([[2.0, 4.0], [0.0, 2.0]])
    assert curvature_boxes._least(Interval(skew, skew)) == pytest.approx(2 - 2 - 0.25 * 4)


def test_the_hessian_of_a_map_is_that_of_the_function_less_the_slopes_of_the_map() -> None:
    """∇²F − Σ s_k ∇²c_k with Jᵀs = ∇F, for J = diag(2, 4) and ∇F = (6, 4): s = (3, 1)."""
    jet: Any = SimpleNamespace(
        gradient=interval([[6.0, 4.0]]), hessian=interval([[[9.0, 1.0], [1.0, 8.0]]])
    )
    bends = interval([[[[1.0, 0.0], [0.0, 0.0]]], [[[0.0, 0.0], [0.0, 5.0]]]])
    own: Any = SimpleNamespace(
        shape=(2,), gradient=interval([[[2.0, 0.0]], [[0.0, 4.0]]]), hessian=bends
    )
    enclosed = Enclosed(None, [], None, own)  # type: ignore[arg-type]
    found = enclosed.hidden(jet)
    expected = np.array([[9.0 - 3 * 1, 1.0], [1.0, 8.0 - 1 * 5]])
    assert found.low[0] == pytest.approx(expected)
    assert found.high[0] == pytest.approx(expected)
    assert Enclosed(None, [], None, None).hidden(jet) is jet.hessian  # type: ignore[arg-type]
    x = hc.Variable(2, name="x", bounds=(0.5, 2))
    more = hc.Problem(hc.Minimize(hc.sum(x)), hidden=[x**3 + x, hc.sum(x)]).forms().as_declared()
    with pytest.raises(NotEnclosed):  # more coordinates than unknowns
        EnclosedFunctions(more, plain_chart(more.domain), np.zeros(0), np.zeros(0, dtype=int))


def test_matrices_that_bend_are_told_by_the_least_eigenvector() -> None:
    """[[0, −2], [−2, 3]] ± r has the eigenvalues 4 and −1, and r adds 1.8 r along its vector."""
    center = np.array([[0.0, -2.0], [-2.0, 3.0]])
    vector = np.linalg.eigh(center)[1][:, 0]
    spread = float(np.abs(vector) @ np.ones((2, 2)) @ np.abs(vector))
    for radius, found in ((0.9 / spread, True), (1.1 / spread, False)):
        matrix = Interval((center - radius)[None], (center + radius)[None])
        none = Interval(np.zeros((1, 2)), np.zeros((1, 2)))
        jet = Jet(Interval(np.zeros(1), np.zeros(1)), none, matrix)
        assert Enclosed(jet, [], jet, None).bends.tolist() == [found]


def test_boxes_are_settled_for_few_unknowns_without_added_variables() -> None:
    def small(**changes: Any) -> bool:
        given: dict[str, Any] = {"written": True, "added": 0, "box": True, "size": 2, **changes}
        form: Any = SimpleNamespace(
            canonical=SimpleNamespace(outer=SimpleNamespace(is_written=given["written"])),
            chain=SimpleNamespace(adds_variables=given["added"]),
            domain=SimpleNamespace(
                is_box=given["box"],
                dimension=given["size"],
                entry_bounds=lambda: (np.zeros(2), np.array([0.0, given.get("upper", 1.0)])),
            ),
        )
        return curvature_boxes.is_small(form)

    assert small()
    assert small(size=BOXES.most_unknowns)
    assert not small(size=BOXES.most_unknowns + 1)
    assert not small(written=False)
    assert not small(added=1)
    assert not small(box=False)
    assert not small(upper=0.0)  # nothing is left to move
