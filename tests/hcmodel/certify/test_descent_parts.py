"""Paths along which an objective falls: each kind of path and each verdict, worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

import hcmodel as hc
from hcmodel.certify.paths import candidate_paths, descent
from hcmodel.certify.paths.candidate_paths import RULES, CandidatePath, Run
from hcmodel.certify.paths.descent import _Followed
from hcmodel.reductions.reduction import Claim
from hcmodel.solvers import Box, function_oracle
from hcmodel.solvers.numerics import LARGEST_LOG
from hcmodel.solvers.oracle import Oracle

FloatArray = NDArray[np.float64]
INF = np.inf


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):  # as `falling_path` has it
        yield


def form_of(lower: Sequence[float], upper: Sequence[float]) -> Any:
    return SimpleNamespace(domain=Box(np.array(lower, dtype=float), np.array(upper, dtype=float)))


def of_value(function: Callable[[FloatArray], float], size: int = 1) -> Oracle:
    return function_oracle(size, lambda x: (float(function(x)), np.zeros(size)))


# ---- the paths


def test_entries_are_far_out_where_no_bound_holds_them() -> None:
    box = Box(
        np.array([-INF, -INF, 0.0, -INF, -INF, -1e7]), np.array([INF, 5.0, INF, INF, 1e7, INF])
    )
    point = np.array([2e6, -3e6, RULES.large, 10.0, 2e6, -2e6])
    assert candidate_paths.far_out(box, point).tolist() == [1, -1, 1, 0, 0, 0]
    assert descent.runs_away(SimpleNamespace(domain=box), SimpleNamespace(point=point))  # type: ignore[arg-type]
    near: Any = SimpleNamespace(point=np.zeros(6))
    assert not descent.runs_away(SimpleNamespace(domain=box), near)  # type: ignore[arg-type]


def test_directions_have_a_largest_entry_of_one() -> None:
    assert candidate_paths._unit(np.array([2.0, -4.0])).tolist() == [0.5, -1.0]  # type: ignore[union-attr]
    assert candidate_paths._unit(np.zeros(2)) is None
    assert candidate_paths._unit(np.array([1.0, INF])) is None
    lengths = list(candidate_paths._decades(2.0))
    assert lengths[:2] == [2.0, 20.0]
    assert len(lengths) == 300  # 2e299 is the last below 1e300


def test_a_ray_begins_at_a_hundredth_of_its_point_and_goes_on_by_tens() -> None:
    form = form_of([-INF, -INF, -INF, -INF], [INF, 7.0, INF, INF])
    way = candidate_paths._ray(form, np.array([200.0, 0, 0, 0]), np.array([1.0, 1.0, -0.01, 1e-10]))
    points = way.points()
    # the first length is 0.01·200
    assert next(points) == pytest.approx([202.0, 2, -0.02, 2e-10])
    assert next(points) == pytest.approx([220.0, 7, -0.2, 2e-9])  # 7 is a bound
    assert way.moves.tolist() == [1, 0, -1, 0]  # held by a bound; too slow to be said to move
    assert not way.vanishing.any()
    assert way.from_here
    small = candidate_paths._ray(form, np.full(4, 0.5), np.array([1.0, 0, 0, 0]))
    assert next(small.points())[0] == pytest.approx(0.51)  # relative to 1 at least


def test_a_path_to_an_edge_comes_as_near_as_numbers_do() -> None:
    form = form_of([0.0], [9.0])
    (to_zero,) = candidate_paths._to_edge(form, np.ones(1), -np.ones(1))
    assert len(list(to_zero.points())) == 301  # 1, 0.1, …, 1e-300
    (to_nine,) = candidate_paths._to_edge(form, np.ones(1), np.ones(1))
    assert len(list(to_nine.points())) < 20  # no number is nearer to 9
    assert (
        list(candidate_paths._to_edge(form, np.full(1, 9.0), np.ones(1))) == []
    )  # it is there already


def reciprocal_at(place: float) -> Oracle:
    return function_oracle(1, lambda x: (float(1 / (x[0] - place)), -1 / (x - place) ** 2))


def test_a_pole_inside_is_approached_from_where_the_objective_is_negative() -> None:
    # 1/(x − 3) just below 3: the way begins 0.01·3 before the pole
    oracle = reciprocal_at(3.0)
    ways = list(
        candidate_paths._to_pole(
            form_of([-5.0], [5.0]), oracle, oracle.at(np.array([3.0 - 2**-30]))
        )
    )
    assert len(ways) == 1
    (way,) = ways
    assert way.edge is not None
    assert way.edge.tolist() == [3.0]
    assert (way.inside, way.throughout, way.from_here) == (True, False, False)
    assert way.vanishing.tolist() == [True]
    points = list(way.points())
    assert points[0] == pytest.approx([2.97])
    assert points[1] == pytest.approx([2.997])
    assert all(point[0] < 3.0 for point in points)
    # points outside of the domain are left out, and a pole outside is none of the model's
    (held,) = candidate_paths._to_pole(
        form_of([2.99], [5.0]), oracle, oracle.at(np.array([3.0 - 2**-30]))
    )
    assert next(held.points()) == pytest.approx([2.997])
    outside = form_of([-5.0], [3.0 - 2**-40])
    assert (
        list(candidate_paths._to_pole(outside, oracle, oracle.at(np.array([3.0 - 2**-30])))) == []
    )


def test_a_pole_is_approached_along_the_slope() -> None:
    """1/(x + y/2 − 3), and 1/(x − 3) which does not depend on y."""
    for share in (0.5, 0.0):
        slope = np.array([1.0, share])
        oracle = function_oracle(
            2,
            lambda x, s=slope: (float(1 / (s @ x - 3)), -s / (s @ x - 3) ** 2),  # type: ignore[misc]
        )
        here = oracle.at(np.array([3.0 - 2**-30, 0.0]))
        (way,) = candidate_paths._to_pole(form_of([-5.0, -5.0], [5.0, 5.0]), oracle, here)
        assert way.edge is not None
        assert slope @ way.edge == pytest.approx(3.0, rel=1e-12)
        assert next(way.points()) - way.edge == pytest.approx([-0.03, -0.03 * share])


def test_entries_that_are_exactly_zero_are_a_pole_of_their_own() -> None:
    oracle = reciprocal_at(0.0)
    form = form_of([-5.0], [5.0])
    ways = list(candidate_paths._to_pole(form, oracle, oracle.at(np.array([-1e-9]))))
    assert [way.throughout for way in ways] == [True, False]
    way = ways[0]
    assert way.edge is not None
    assert (way.edge.tolist(), way.vanishing.tolist(), way.inside) == ([0.0], [True], True)
    points = list(way.points())
    assert points[0] == pytest.approx([-0.01])  # from the side of the point
    assert points[1] == pytest.approx([-0.001])
    assert len(points) == 299  # down to 1e-300
    # only where 0 is in the domain and has no value
    assert (
        list(candidate_paths._to_zero(form_of([-5.0], [-1.0]), oracle, np.array([-1e-9]), 0.01))
        == []
    )
    defined = of_value(lambda x: float(x[0]))
    assert list(candidate_paths._to_zero(form, defined, np.array([-1e-9]), 0.01)) == []
    # entries that are not small stay where they are
    pair = of_value(lambda x: 1 / x[0], 2)
    two = form_of([-5.0, -5.0], [5.0, 5.0])
    (mixed,) = candidate_paths._to_zero(two, pair, np.array([-1e-9, 2.0]), 0.01)
    assert mixed.edge is not None
    assert mixed.edge.tolist() == [0.0, 2.0]
    assert mixed.vanishing.tolist() == [True, False]
    assert next(mixed.points()).tolist() == [-0.01, 2.0]


def test_the_first_number_behind_a_pole_is_found_by_tens_and_by_halves() -> None:
    def behind(x: FloatArray) -> bool:
        return bool(x[0] >= 5.0)

    origin, unit = np.zeros(1), np.ones(1)
    found = candidate_paths._crossed(behind, origin, unit, 0.1, 100.0)
    assert found is not None
    assert found.tolist() == [5.0]
    assert (
        candidate_paths._crossed(behind, origin, unit, 0.1, 2.0) is None
    )  # it is farther than the length
    # along a direction whose entries differ
    slanted = np.array([1.0, 0.5])
    found = candidate_paths._crossed(lambda x: bool(x[1] >= 5.0), np.zeros(2), slanted, 0.1, 100.0)
    assert found is not None
    assert found.tolist() == [10.0, 5.0]
    found = candidate_paths._crossed(lambda x: bool(x[1] >= 0.1), np.zeros(2), slanted, 0.1, 100.0)
    assert found is not None
    assert found.tolist() == [0.2, 0.1]
    # twice the expected distance is tried first
    assert candidate_paths._crossed(
        lambda x: bool(0.15 <= x[0] <= 0.3), origin, unit, 0.1, 0.1
    ) == pytest.approx(0.15)


def test_a_path_of_powers_goes_on_from_the_start_through_the_point() -> None:
    """The exponents 30, −15, log 2e6 and ½ are stretched until the first entry reaches 1e300."""
    form = form_of([0.0, 0.0, -INF, -INF, 0.0], [INF] * 5)
    first = np.array([1.0, np.e, 8.0, 3.0, 1.0])
    point = np.array([np.exp(30.0), np.exp(1.0 - 15.0), -2e6, 3.0, np.exp(0.5)])
    (way,) = candidate_paths._powers(form, point, first)
    stretch = (np.log(1e300) - 1.0) / 30  # the largest logarithm of the start is 1
    points = list(way.points())
    assert len(points) == RULES.pieces
    assert points[0] == pytest.approx([1, np.e, -1, 3, 1])
    last = [30 * stretch, 1 - 15 * stretch, np.log(2e6) * stretch, 0.5 * stretch]
    assert np.log(points[-1][[0, 1, 4]]) == pytest.approx([last[0], last[1], last[3]])
    assert points[-1][2:4] == pytest.approx([-np.exp(last[2]), 3])
    assert way.moves.tolist() == [1, 0, -1, 0, 0]  # ½·23 is below eight decades
    assert way.vanishing.tolist() == [False, True, False, False, False]
    # a point that is not far from the start shows nothing
    near = np.array([np.exp(19.0), 1.0, 1.0, 3.0, 1.0])
    assert list(candidate_paths._powers(form, near, np.array([1.0, 1, 1, 1, 1]))) == []
    # entries that are 0 at the start, or at the point, do not move by powers
    assert (
        list(candidate_paths._powers(form_of([0.0], [INF]), np.exp([30.0]) * 0, np.ones(1))) == []
    )
    kept = candidate_paths._powers(
        form_of([0.0, 0.0], [INF, INF]), np.exp([30.0, 3.0]), np.array([1, 0.0])
    )
    assert next(next(kept).points())[1] == pytest.approx(np.exp(3.0))


def run_of(
    back: Callable[[FloatArray], FloatArray],
    kind: str,
    direction: Sequence[float],
    last: FloatArray,
) -> Run:
    variable = hc.Variable(name="x")
    layout = SimpleNamespace(variables=[variable], slice=lambda _: slice(0, 1))
    form: Any = SimpleNamespace(
        chain=SimpleNamespace(keeps=frozenset([Claim.UNBOUNDED]), point_back=back),
        canonical=SimpleNamespace(layout=layout),
        last=SimpleNamespace(coordinates={variable: kind}),
    )
    return Run(form, last, last, np.array(direction), recedes=True)


def test_rays_of_a_form_are_followed_with_rounded_and_with_exact_directions() -> None:
    form = form_of([-INF, -INF, 0.0], [INF, INF, 4.0])
    run = run_of(lambda u: u, "plain", [3.0, -1.0, 3.0], np.array([1.0, 2.0, 3.0]))
    rounded, exact = candidate_paths._hidden_rays(form, np.array([1.0, 2.0, 3.0]), run)
    assert list(rounded.points())[:2] == [
        pytest.approx([2.0, 2 - 0.333333, 4.0], rel=1e-12),
        pytest.approx([11.0, 2 - 3.33333, 4.0], rel=1e-12),
    ]
    assert next(exact.points()) == pytest.approx([2.0, 2 - 1 / 3, 4.0], rel=1e-12)
    assert len(list(exact.points())) == 300  # up to about 1e299
    assert exact.moves.tolist() == [1, -1, 0]
    assert exact.vanishing.tolist() == [False, False, True]  # it moves to its bound
    assert (exact.edge, exact.from_here, exact.convex) == (None, True, True)
    # only to an edge: the far end is where a pole may be
    only = run_of(lambda u: u, "plain", [0.0, 0.0, 3.0], np.array([1.0, 2.0, 3.0]))
    way = next(candidate_paths._hidden_rays(form, np.array([1.0, 2.0, 3.0]), only))
    assert way.edge is not None
    assert way.edge.tolist() == [1.0, 2.0, 4.0]
    assert way.vanishing.tolist() == [False, False, True]
    # without some bounds a limit shows nothing, and the far end is one that a way back has digits of
    assert not exact.behind
    run.form.chain.keeps = frozenset()
    relaxed, _ = candidate_paths._hidden_rays(form, np.array([1.0, 2.0, 3.0]), run)
    assert relaxed.behind
    assert not relaxed.convex
    assert relaxed.moves.tolist() == [1, -1, 0]
    still = run_of(lambda u: u, "plain", [0.0, 0.0, 0.0], np.zeros(3))
    assert list(candidate_paths._hidden_rays(form, np.zeros(3), still)) == []


def test_rays_of_logarithms_end_with_the_range_of_doubles() -> None:
    form = form_of([0.0, 0.0], [INF, INF])
    last = np.array([2.0, 1.0])
    run = run_of(np.exp, "log", [1.0, -1.0], last)
    way = next(candidate_paths._hidden_rays(form, np.exp(last), run))
    points = list(way.points())
    assert len(points) == RULES.pieces
    assert points[0] == pytest.approx(np.exp(last))
    step = np.log(1e300) / (RULES.pieces - 1)
    assert points[1] == pytest.approx([np.exp(2 + step), np.exp(1 - step)])
    assert way.moves.tolist() == [1, 0]
    assert way.vanishing.tolist() == [False, True]
    assert way.edge is None
    assert not way.convex
    # an entry that only grows by more than ten times within the reach moves too
    last = np.array([100.0, 1.0])
    slow = run_of(np.exp, "log", [1.0, 3 / (LARGEST_LOG - 100)], last)
    assert next(candidate_paths._hidden_rays(form, np.exp(last), slow)).moves.tolist() == [1, 1]
    slower = run_of(np.exp, "log", [1.0, 2 / (LARGEST_LOG - 100)], last)
    assert next(candidate_paths._hidden_rays(form, np.exp(last), slower)).moves.tolist() == [1, 0]
    # 0 is no value of a positive variable: there is no edge
    down = run_of(np.exp, "log", [-1.0, -1.0], last)
    assert next(candidate_paths._hidden_rays(form, np.exp(last), down)).edge is None


def test_only_logarithms_that_move_make_a_path_one_of_powers() -> None:
    run = run_of(np.exp, "log", [1.0, 0.0], np.zeros(2))
    assert candidate_paths._moves_logarithms(run.form, np.array([1.0, 0.0]))
    assert not candidate_paths._moves_logarithms(run.form, np.array([0.0, 1.0]))
    plain = run_of(np.exp, "plain", [1.0, 0.0], np.zeros(2))
    assert not candidate_paths._moves_logarithms(plain.form, np.array([1.0, 0.0]))


def valleys(
    point: Sequence[float], curvature: FloatArray, slopes: Sequence[float], **form: Any
) -> list[CandidatePath]:
    """The valleys of a function with this Hessian and these slopes by the logarithms of its entries."""
    x = np.array(point, dtype=float)
    inside = np.where(x != 0, x, 1.0)
    gradient = np.array(slopes) / inside
    hessian = (curvature - np.diag(slopes)) / np.outer(inside, inside)
    own: Any = SimpleNamespace(
        **{
            "domain": Box.of(x.size),
            "compiled": SimpleNamespace(has_black_boxes=False),
            "affords_hessian": True,
            "stack": SimpleNamespace(kinked=False),
            **form,
        }
    )
    oracle: Any = SimpleNamespace(lagrangian_hessian=lambda *a: hessian)
    here = function_oracle(x.size, lambda x: (1.0, gradient)).at(x)
    return list(candidate_paths._valleys(own, oracle, here))


def test_valleys_are_followed_by_factors_along_the_least_curvature() -> None:
    """The curvature [[2, 2], [2, 2]] by logarithms vanishes along (1, −1), on which the slope is 3."""
    flat = np.array([[2.0, 2.0], [2.0, 2.0]])
    rounded, exact = valleys([2.0, -0.5], flat, [2.0, -1.0])
    for way in (rounded, exact):
        reach = np.log(1e300) - np.log(2.0)
        points = list(way.points())
        assert len(points) == RULES.pieces
        first = reach * RULES.closest
        assert points[0] == pytest.approx([2 * np.exp(-first), -0.5 * np.exp(first)])
        assert points[-1][1] == pytest.approx(-0.5 * np.exp(reach))
        assert way.moves.tolist() == [0, -1]
        assert way.vanishing.tolist() == [True, False]
        assert (way.valley, way.from_here) == (True, True)
    # down the slope, whichever sign the eigenvector has
    (other, _) = valleys([2.0, -0.5], flat, [-2.0, 1.0])
    assert other.vanishing.tolist() == [False, True]
    # no valley: too much curvature, too large, no second derivatives
    assert valleys([2.0, -0.5], np.diag([2.0, 3.0]), [2.0, -1.0]) == []
    assert valleys([2.0, -0.5], np.diag([2.0, 0.9 * 2 * RULES.flat]), [2.0, -1.0]) != []
    assert valleys([2.0, -0.5], np.diag([2.0, 1.1 * 2 * RULES.flat]), [2.0, -1.0]) == []
    assert valleys([0.0, 0.0], flat, [2.0, -1.0]) == []
    assert valleys([2.0, -0.5], flat, [2.0, -1.0], affords_hessian=False) == []
    assert valleys([2.0, -0.5], flat, [2.0, -1.0], stack=SimpleNamespace(kinked=True)) == []
    black = SimpleNamespace(has_black_boxes=True)
    assert valleys([2.0, -0.5], flat, [2.0, -1.0], compiled=black) == []
    assert valleys([2.0, -0.5], flat * np.nan, [2.0, -1.0]) == []
    # an entry that changes by less than eight decades is not said to move
    slow = candidate_paths._by_factors(
        form_of([0.0] * 3, [INF] * 3), np.ones(3), np.array([1, 0.01, -0.01])
    )
    assert (slow.moves.tolist(), slow.vanishing.tolist()) == ([1, 0, 0], [False] * 3)
    # an entry that is 0 does not move
    (still, _) = valleys([2.0, 0.0], np.diag([0.0, 2.0]), [1.0, 0.0])
    assert still.vanishing.tolist() == [True, False]
    assert next(still.points())[1] == 0.0


def test_which_paths_are_tried() -> None:
    """From x₀ = 1 to x = 3 with a slope of 2: along x − x₀, down the slope, and no farther ones."""
    form = form_of([-INF], [5.0])
    oracle = function_oracle(1, lambda x: (2 * float(x[0]), np.full(1, 2.0)))
    here = oracle.at(np.array([3.0]))
    run = Run(form, np.ones(1), here.point)
    ways = list(candidate_paths._ways(form, here, run))
    # towards 5: a ray and an edge; down: a ray without an edge
    assert [way.from_here for way in ways] == [True, False, True]
    assert [float(next(way.points())[0]) for way in ways] == pytest.approx([3.03, 1.0, 2.97])
    surrounded = Run(form, np.ones(1), here.point, surrounded=True)
    assert [way.from_here for way in candidate_paths._ways(form, here, surrounded)] == [True]
    passed = Run(form, np.ones(1), here.point, surrounded=True, passed=True)
    assert (
        list(candidate_paths._ways(form, here, passed)) == []
    )  # it was evaluated beyond the point
    # large entries are followed outwards
    far = oracle.at(np.array([-2e6]))
    there = Run(form, np.array([-2e6]), far.point, surrounded=True)
    assert list(candidate_paths._ways(form, far, there)) == []
    open_run = Run(form, np.array([-2e6]), far.point)
    assert (
        len(list(candidate_paths._ways(form, far, open_run))) == 2 + 0
    )  # the slope and the point agree


def test_an_endless_path_is_told_before_one_that_has_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    none = np.zeros(1, dtype=bool)
    end_of_path: Any = SimpleNamespace(objective=-1.0, violations=np.zeros(0), rows=np.zeros(0))
    limit, other, endless = (
        descent.Descent(end, value, end_of_path, np.zeros(1), none)
        for end, value in ((False, 1.0), (False, 2.0), (True, 3.0))
    )
    canonical = SimpleNamespace(layout=SimpleNamespace(variables=()))
    form: Any = SimpleNamespace(domain=Box.of(1), oracle=lambda: None, canonical=canonical)
    here: Any = SimpleNamespace(objective=0.0, point=np.zeros(1))
    run: Any = SimpleNamespace(surrounded=True, direction=None)

    def told(*answers: descent.Descent | None) -> descent.Descent | None:
        monkeypatch.setattr(descent, "candidate_paths", lambda *a: iter(answers))
        monkeypatch.setattr(descent, "_followed", lambda model, way, *a: way)
        return descent.falling_path(form, here, run, 1e-6, 0.0)

    assert told(None, limit, endless) is endless
    assert told(None, limit, other, None) is limit
    assert told(None) is None


# ---- following a path


def along(
    function: Callable[[float], float],
    lengths: Sequence[float],
    at: float = 1.0,
    *,
    slack: float = 0.0,
    rows: Callable[[FloatArray], Any] | None = None,
    **kind: Any,
) -> descent.Descent | None:
    """The verdict on the points `lengths` of one entry, from the value at `at`."""
    oracle = function_oracle(
        1,
        lambda x: (float(function(float(x[0]))), np.zeros(1)),
        inequalities=rows,
        sizes=(1, 0) if rows else (0, 0),
    )
    way = CandidatePath(
        lambda: (np.array([length]) for length in lengths),
        np.array([kind.pop("moves", 1.0)]),
        np.array([kind.pop("vanishing", False)]),
        **kind,
    )
    model = _Followed(oracle, Box.of(1), 1e-6)
    return descent._followed(model, way, oracle.at(np.array([at])), slack)


DECADES = 10.0 ** np.arange(1, 10)


def test_decreases_that_grow_show_that_there_is_no_bound() -> None:
    found = along(lambda x: -x, DECADES)
    assert found is not None
    assert found.endless
    assert found.limit == -1e9
    assert found.lowest.point.tolist() == [1e9]
    assert found.moves.tolist() == [1.0]
    assert found.pole is None


def test_decreases_that_shrink_show_a_limit() -> None:
    found = along(lambda x: 2 + 1 / x, DECADES, 2.0)
    assert found is not None
    assert not found.endless
    assert found.limit == pytest.approx(2.0)
    assert found.moves.tolist() == [1.0]
    # entries that are far out at the lowest point are said to move as well
    still = along(lambda x: 2 + 1 / x, DECADES, 2.0, moves=0.0, vanishing=True)
    assert still is not None
    assert still.moves.tolist() == [1.0]
    endless = along(lambda x: -x, DECADES, moves=0.0, vanishing=True)
    assert endless is not None
    assert endless.moves.tolist() == [0.0]


def test_a_path_has_to_reach_the_value_at_hand() -> None:
    # 2 + 1/x falls to 2 + 1e-9; the point has 1.5, then 2.5
    def level(x: float) -> float:
        return 1.5 if x == -1 else 2 + 1 / x

    assert along(level, DECADES, -1.0, slack=0.4) is None
    assert along(level, DECADES, -1.0, slack=0.6) is not None


def test_a_path_that_goes_on_from_the_point_may_not_rise_from_there() -> None:
    # −x from 10 on is −10, −100, …; the point has −1, and for the second test −50
    assert along(lambda x: -x, DECADES, 1.0, from_here=True) is not None
    assert along(lambda x: -x, DECADES, 50.0, from_here=True) is None
    assert along(lambda x: -x, DECADES, 50.0) is not None


def test_few_points_show_nothing() -> None:
    assert along(lambda x: -x, DECADES[:7]) is None
    assert along(lambda x: -x, DECADES[:8]) is not None
    assert along(lambda x: -x, DECADES[:7], from_here=True) is not None  # with the point itself
    # but for a value of −∞: it has passed all numbers
    assert along(lambda x: -(x**2) if x < 1e3 else -INF, DECADES) is not None
    assert along(lambda x: -(x**2) if x < 1e2 else -INF, DECADES) is None
    assert along(lambda x: -x, DECADES, moves=0.0) is None  # nothing moves


def test_a_valley_may_rise_by_rounding_and_shows_no_pole() -> None:
    # 10, then 9 and less; it rises by 0.5 and by 2 of RULES.level of the first value
    for share, found in ((0.5, True), (2.0, False)):
        rise = share * RULES.level * 10

        def value(x: float, rise: float = rise) -> float:
            return 10 - np.log10(x) / 2 + (rise + 0.5 if x == 1e5 else 0.0)

        own = along(value, DECADES, slack=9.0, valley=True)
        assert (own is not None) == found
        assert along(value, DECADES, slack=9.0) is None
        if own is not None:
            assert not own.endless
            assert own.valley
    # steady decreases along a valley are no proof that there is no bound
    steep = along(lambda x: -x, DECADES, valley=True)
    assert steep is not None
    assert not steep.endless
    # what lies behind a minimum counts only where it has no bound
    assert along(lambda x: 2 + 1 / x, DECADES, 2.0, behind=True) is None
    assert along(lambda x: -x, DECADES, behind=True) is not None


def test_a_path_without_a_decrease_shows_nothing() -> None:
    assert along(lambda x: 1.0, DECADES) is None
    # less than the rounding of its first value: 1e13·1e-13 = 1
    assert along(lambda x: 1e13 - 0.05 * np.log10(x), DECADES, slack=1.0) is None
    assert along(lambda x: 1e13 - 0.5 * np.log10(x), DECADES, slack=1.0) is not None


def test_a_path_that_rises_ends_nowhere() -> None:
    assert along(lambda x: -x if x < 1e5 else 0.0, DECADES) is None
    assert along(lambda x: -x if x < 1e9 else 0.0, DECADES) is None  # also after eight points
    # values that cannot be computed far out end the path where it is
    far = 10.0 ** np.arange(20, 300, 20)
    found = along(lambda x: -x if x < 1e200 else np.nan, far)
    assert found is not None
    assert found.limit == pytest.approx(-1e180)


def test_the_rows_hold_along_the_path() -> None:
    def until(limit: float) -> Callable[[FloatArray], Any]:
        return lambda x: (x - limit, np.ones((1, 1)))

    assert along(lambda x: -x, DECADES, rows=until(1e10)) is not None
    assert along(lambda x: -x, DECADES, rows=until(1e4)) is None
    undefined: Callable[[FloatArray], Any] = lambda x: (np.full(1, np.nan), np.ones((1, 1)))  # noqa: E731
    assert along(lambda x: -x, DECADES, rows=undefined) is None


def test_an_edge_with_a_value_is_no_pole() -> None:
    shares = 10.0 ** -np.arange(0.0, 12.0)
    edge = np.zeros(1)
    kind: dict[str, Any] = {"moves": 0.0, "vanishing": True, "edge": edge}
    poles = along(lambda x: -1 / x if x else np.nan, shares, **kind)
    assert poles is not None
    assert poles.endless
    assert poles.pole is None
    assert along(lambda x: -1 / x if x else 7.0, shares, **kind) is None
    # an infimum next to an edge is no pole either
    assert along(lambda x: x if x else np.nan, shares, **kind) is None
    inside = along(lambda x: -1 / x if x else 7.0, shares, **kind, inside=True)
    assert inside is not None
    assert inside.pole is edge


def test_next_to_zero_all_decreases_have_to_grow() -> None:
    def first_fast(x: float) -> float:
        return -100.0 - 1 / x if x < 0.5 else 0.0

    shares = 10.0 ** -np.arange(0.0, 12.0)
    kind: dict[str, Any] = {"moves": 0.0, "vanishing": True, "edge": np.zeros(1), "inside": True}
    # 110, then 90, 900, …
    assert along(first_fast, shares, **kind) is not None
    assert along(first_fast, shares, **kind, throughout=True) is None


def test_the_lowest_point_is_one_with_a_value_no_higher_than_before() -> None:
    found = along(lambda x: -x, DECADES, 1e12, slack=1e13)
    assert found is not None
    assert found.lowest.point.tolist() == [1e12]  # the point itself is lower


FAR = 10.0 ** np.arange(1, 100)


@pytest.mark.parametrize("in_a_row", [False, True])
def test_an_overflow_in_between_ends_a_convex_path(in_a_row: bool) -> None:
    """Squares overflow at 1e90 here."""

    def falling(x: float) -> float:
        return -x if x < 1e90 or in_a_row else INF

    def rows(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.array([-1.0 if x[0] < 1e90 else INF]), np.zeros((1, 1))

    row = rows if in_a_row else None
    found = along(falling, FAR, rows=row, convex=True)
    assert found is not None
    assert found.endless
    assert found.lowest.point.tolist() == [1e89]
    assert along(falling, FAR, rows=row) is None  # what is not convex may rise there
    assert along(falling, FAR[40:], rows=row, convex=True) is None  # over too few decades

    def rising(x: float) -> float:  # numbers exceed x beyond 5e89
        return falling(x) if x < 5e89 else -x + 1e3 * (x - 5e89)

    assert along(rising, FAR, rows=row, convex=True) is None
    # decreases that shrink say nothing about a slope that stays
    assert along(lambda x: 1 / x if x < 1e90 else INF, FAR, convex=True) is None


# ---- what a point that does not continue a path shows


def model_of(
    function: Callable[[float], float], row: Callable[[float], float] | None = None
) -> _Followed:
    def rows(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        assert row is not None
        return np.array([row(float(x[0]))]), np.ones((1, 1))

    oracle = function_oracle(
        1,
        lambda x: (float(function(float(x[0]))), np.zeros(1)),
        inequalities=None if row is None else rows,
        sizes=(0, 0) if row is None else (1, 0),
    )
    return _Followed(oracle, Box.of(1), 1e-6)


@pytest.mark.parametrize(
    ("at", "value", "shows"),
    [
        (1e150, np.nan, False),  # ∞ − ∞ far out
        (1e50, np.nan, True),
        (1e150, INF, True),
        (1e50, INF, True),
        (1e50, 3.0, True),
    ],
)
def test_what_cannot_be_computed_far_out_shows_nothing(
    at: float, value: float, shows: bool
) -> None:
    model = model_of(lambda x: value)
    assert descent._is_computable(model, model.oracle.at(np.array([at])), [-1.0]) == shows
    assert descent._is_computable(model, model.oracle.at(np.array([at])), []) == shows


def test_points_that_are_no_numbers_show_nothing() -> None:
    model = model_of(lambda x: 3.0)
    there: Any = SimpleNamespace(point=np.array([INF]), objective=3.0)
    assert not descent._is_computable(model, there, [-1.0])
    # one entry far out is enough
    pair: Any = SimpleNamespace(point=np.array([1e150, 1.0]), objective=np.nan)
    assert not descent._is_computable(model, pair, [-1.0])


def test_a_rise_that_the_last_digits_change_is_rounding() -> None:
    # a factor of 1 ± 1e-15 moves 1e16 (x − 1) by 10, a tenth of 100
    model = model_of(lambda x: 1e16 * (x - 1) + 7.0)
    here = model.oracle.at(np.ones(1))
    assert descent._is_rounding(model, here, 7.0 - 70.0)
    assert not descent._is_rounding(model, here, 7.0 - 150.0)
    assert not descent._is_rounding(model, here, 8.0)  # it does not rise
    assert not descent._is_computable(model, here, [7.0 - 70.0])
    assert descent._is_computable(model, here, [7.0 - 150.0])


def test_a_row_that_the_last_digits_change_is_rounding() -> None:
    # the row is broken by 70 and moves by 10, then by 150
    for broken, rounding in ((70.0, True), (150.0, False)):
        model = model_of(lambda x: 0.0, lambda x, b=broken: 1e16 * (x - 1) + b)  # type: ignore[misc]
        assert descent._is_rounding(model, model.oracle.at(np.ones(1)), 1.0) == rounding
    # a row that holds within the tolerance is not what fails
    model = model_of(lambda x: 0.0, lambda x: 1e9 * (x - 1) + 1e-7)
    assert not descent._is_rounding(model, model.oracle.at(np.ones(1)), 1.0)
    # 1e-5 of a row of size 100 is within the tolerance of 1e-6
    there: Any = SimpleNamespace(
        point=np.ones(1), objective=0.0, violations=np.array([1e-5]), magnitudes=np.array([100.0])
    )
    model = model_of(lambda x: 0.0, lambda x: 1e16 * (x - 1))
    assert not descent._is_rounding(model, there, 1.0)


def test_directions_keep_to_equations() -> None:
    """Of (−1, 0), x + y == c leaves (−1/2, 1/2); a square system leaves nothing."""

    def left(rows: FloatArray, inequalities: int = 0) -> FloatArray | None:
        there: Any = SimpleNamespace(jacobian=rows, inequalities=inequalities)
        return candidate_paths._along_equations(there, np.array([-1.0, 0.0]))

    found = left(np.array([[1.0, 1.0]]))
    assert found is not None
    assert found == pytest.approx([-1.0, 1.0])
    assert left(np.eye(2)) is None
    assert left(np.array([[1.0, 1.0]]), 1) is None  # no equation
    assert left(np.array([[np.nan, 1.0]])) is None
    twice = left(scipy.sparse.csr_array([[5.0, 0.0], [1.0, 1.0], [2.0, 2.0]]), 1)
    assert twice is not None
    assert twice == pytest.approx([-1.0, 1.0])
