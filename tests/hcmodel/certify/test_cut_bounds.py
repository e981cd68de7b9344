"""Certificates of kind `cuts`: black boxes with kinks whose optima are known."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import autograd.numpy as anp
import numpy as np
import pytest

import hcmodel as hc
from hcmodel.certify import cut_bounds
from hcmodel.certify.cut_bounds import _Sum, cut_bound, cut_conflict
from tests.problems.black_boxes import (
    chebyshev_rosenbrock,
    least_squares_box,
    random_box,
)


def checked(problem: hc.Problem, optimum: float, points: int) -> None:
    problem.solve("hidden-bundle")
    solution = problem.solution
    assert solution.status == "optimal"
    assert solution.certificate.kind == "cuts"
    assert solution.certificate.lower_bound <= optimum + 1e-12 * max(1.0, abs(optimum))
    assert abs(solution.value - optimum) <= 2e-6 * max(1.0, abs(optimum))
    assert solution.oracle_calls.points <= points


def test_the_paper_s_kinked_example_takes_few_points() -> None:
    checked(least_squares_box(), 0.15, 40)


def test_chebyshev_rosenbrock_is_certified() -> None:
    checked(chebyshev_rosenbrock(5), 0.0, 60)


@pytest.mark.parametrize("seed", [0, 10])
def test_bounds_of_random_black_boxes_are_not_above_the_optimum(seed: int) -> None:
    problem, optimum = random_box(seed)
    checked(problem, optimum, 60)


def sharp(x):
    return anp.max(anp.array([x[0] + x[1], 1 / (x[0] * x[1]), x[0] / x[1]]))


def test_positive_variables_without_bounds_have_a_bound_too() -> None:
    x = hc.Variable(2, name="x", pos=True, start=[3.0, 0.5])
    problem = hc.Problem(hc.Minimize(hc.function(sharp, x)), hidden=[hc.log(x)])
    optimum = 4 ** (1 / 3)  # x = y and 2x = 1/x²
    checked(problem, optimum, 60)


def test_weights_of_any_kind_give_no_bound_above_the_optimum() -> None:
    problem, optimum = random_box(1)
    problem.solve("hidden-bundle")
    form = problem.forms().hidden()
    assert form is not None
    oracle, generator = form.oracle(), np.random.default_rng(0)
    points = [oracle.at(form.domain.sample(generator)) for _ in range(6)]
    from hcmodel.solvers.result import WeightedPoint

    weighted = [
        WeightedPoint(each, float(generator.random()), generator.random(each.rows.size))
        for each in points
    ]
    bound = cut_bound(form, weighted)
    assert bound is not None
    assert bound.value <= optimum
    assert cut_bound(form, [replace(each, objective=0.0) for each in weighted]) is None


def test_a_map_that_does_not_fit_is_not_believed() -> None:
    x = hc.Variable(2, name="x", bounds=(0.1, 3), start=[2.5, 0.3])
    wavy = hc.function(lambda x: anp.max(anp.sin(3 * x)) + anp.sum(x) / 10, x)
    problem = hc.Problem(hc.Minimize(wavy), hidden=[hc.log(x)])
    problem.solve("hidden-bundle")
    assert problem.status != "optimal"
    assert problem.solution.certificate.kind != "cuts"


def test_contradicting_rows_are_proven_infeasible_by_their_cuts() -> None:
    x = hc.Variable(2, name="x", bounds=(0.1, 10), start=[1.0, 2.0])
    rows = [
        (hc.function(sharp, x) <= 1.2).named("low"),
        (hc.function(lambda x: x[0] ** 2, x) <= 50).named("wide"),
    ]
    problem = hc.Problem(hc.Minimize(hc.sum(x)), rows, hidden=[hc.log(x)])
    problem.solve("hidden-bundle")
    assert problem.status == "infeasible"
    assert problem.solution.conflict == ("low",)


class Least:
    """Stands for a set or an enclosure with a given answer."""

    def __init__(self, least: float, level: float = 0.0) -> None:
        self.answer, self.level, self.bounds = least, level, self

    def least(self, *a: object) -> float:
        return self.answer

    def reach(self, center: object) -> float:
        return np.inf


def test_a_sum_of_cuts_takes_rounding_off_and_is_no_bound_where_it_is_no_number() -> None:
    total = _Sum(1.0, np.ones(1), np.zeros(1), terms=1e6)
    # 1 − 1 less 1e-14 of its terms, 1e6 + 1
    assert total.least(Least(-1.0), None) == pytest.approx(-1e-14 * (1e6 + 1), rel=1e-6)
    # of the set and of what an enclosure leaves of it the better one counts
    assert total.least(Least(-np.inf), Least(-0.25)) == pytest.approx(0.75)
    assert total.least(Least(-0.25), Least(-3.0)) == pytest.approx(0.75)
    assert replace(total, value=np.inf).least(Least(-np.inf), None) == -np.inf  # ∞ − ∞


@pytest.mark.parametrize(
    ("value", "consistent", "shown"),
    [(0.5, True, True), (0.5, False, False), (-0.5, True, False), (-0.5, False, False)],
)
def test_cuts_show_something_in_coordinates_that_no_sample_contradicts(
    value: float, consistent: bool, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a conflict needs a positive sum of the rows as well, a bound only a finite one
    evaluation = SimpleNamespace(magnitudes=np.ones(1), objective=1.0)
    point = SimpleNamespace(evaluation=evaluation, violation=0.0, image=np.zeros(1))
    weighted: Any = [SimpleNamespace(rows=np.ones(1), objective=1.0)]
    form: Any = SimpleNamespace(chain=SimpleNamespace(value_back=lambda v: v))
    total = _Sum(value, np.zeros(1), np.zeros(1), 1.0)
    monkeypatch.setattr(cut_bounds, "_prepared", lambda *a: (Least(0.0), [point]))
    monkeypatch.setattr(cut_bounds, "_added", lambda *a, **k: total)
    monkeypatch.setattr(cut_bounds, "_enclosure", lambda *a: None)
    monkeypatch.setattr(cut_bounds, "_consistent", lambda *a: consistent)
    monkeypatch.setattr(cut_bounds, "_result", lambda *a: a[-1])
    conflict = cut_conflict(form, weighted)
    assert conflict == (pytest.approx(value) if shown else None)
    assert cut_bound(form, weighted) == (pytest.approx(value) if consistent else None)
    assert cut_bound(form, weighted, assume_convex=True) == pytest.approx(value)
    weighted[0].objective = 0.0  # cuts of rows alone say nothing of the objective
    assert cut_bound(form, weighted) is None


@pytest.mark.parametrize(
    ("least", "level", "expected"), [(-0.25, 2.0, 0.75), (-0.25, 0.5, 0.5), (None, 0.5, None)]
)
def test_where_the_set_is_unbounded_an_enclosure_may_bound_the_cuts(
    least: float | None, level: float, expected: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 1 − ¼ within the enclosure, of which only points below its level are known to be inside
    evaluation = SimpleNamespace(magnitudes=np.ones(1), objective=1.0)
    point = SimpleNamespace(evaluation=evaluation, violation=0.0, image=np.zeros(1))
    weighted: Any = [SimpleNamespace(rows=np.ones(1), objective=2.0)]
    form: Any = SimpleNamespace(chain=SimpleNamespace(value_back=lambda v: v))
    scales: list[float] = []

    def added(points: Any, own: Any, center: Any, scale: float, *, objective: bool) -> _Sum:
        scales.append(scale)
        return _Sum(1.0, np.zeros(1), np.zeros(1), 1.0)

    around = None if least is None else Least(least, level)
    monkeypatch.setattr(cut_bounds, "_prepared", lambda *a: (Least(-np.inf), [point]))
    monkeypatch.setattr(cut_bounds, "_added", added)
    monkeypatch.setattr(cut_bounds, "_enclosure", lambda *a: around)
    monkeypatch.setattr(cut_bounds, "_consistent", lambda *a: True)
    monkeypatch.setattr(cut_bounds, "_result", lambda *a: a[-1])
    found = cut_bound(form, weighted)
    assert found == (None if expected is None else pytest.approx(expected))
    assert scales == [0.5]  # shares of the objective add up to 1
    # the weights of a conflict are those of a relative violation: 1 over |w|·magnitudes
    evaluation.magnitudes = np.array([4.0])
    cut_conflict(form, weighted)
    assert scales == [0.5, 0.25]
