"""Adaptive sweeps: certified curves with few solves, and no claim where none is proven."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.studies.affine_parameter import is_affine_in_objective
from hcmodel.studies.value_curve import Line, interval_width


def test_the_curve_of_a_geometric_program_needs_at_most_26_solves() -> None:
    A = hc.Variable(name="A", pos=True)
    l = hc.Parameter(name="l", value=1.0, pos=True)  # noqa: E741
    row = (l**2 + 1 <= A).named("row")
    problem = hc.Problem(hc.Minimize(A**2), [row])
    table = problem.sweep({l: (1, 10)}, adaptive=True, accuracy=1e-3, progress=False)
    curve = table.curve
    assert curve.within
    assert curve.solves == len(table) <= 26  # GPkit: 33
    across = np.linspace(1, 10, 2001)
    known = (across**2 + 1) ** 2
    assert (curve.lower(across) <= known * (1 + 1e-8)).all()
    assert (curve.upper(across) >= known * (1 - 1e-8)).all()
    assert np.abs(np.log(curve.middle(across) / known)).max() <= 1e-3
    # rows are as those of any sweep: value, point and multiplier at their parameter
    at = table["l"]
    assert table["value"] == pytest.approx((at**2 + 1) ** 2, rel=1e-5)
    assert table["row"] == pytest.approx(2 * (at**2 + 1), rel=1e-3)
    assert l.value == 1.0
    assert np.isnan(curve.lower(11.0))
    assert "log V is convex in log(l)" in str(table)


def test_a_straight_line_in_logarithms_needs_three_solves() -> None:
    problem = hc.parse(
        'set gas = {"N2", "O2"}\nparam cap > 0 = 1\nvar n[gas] in [0.01, 100]\n'
        "minimize 1/n[1] + 2/n[2]\nsubject to total: sum(n) <= cap"
    )
    table = problem.sweep({"cap": (1, 2)}, adaptive=True, progress=False)
    assert table.curve.relative
    assert len(table) == 3
    # V = (1 + √2)²/cap
    assert table.curve.upper(1.5) == pytest.approx((1 + np.sqrt(2)) ** 2 / 1.5, rel=1e-6)
    assert "n[N2]" in table.layout.columns()


@pytest.mark.parametrize("sense", ["minimize", "maximize"])
def test_a_value_that_may_be_negative_has_a_curve_as_it_is(sense: str) -> None:
    x = hc.Variable(2, name="x", bounds=(-5, 5))
    b = hc.Parameter(name="b", value=1.0)
    cost = hc.sum_squares(x) - 3  # least on x₁ + x₂ >= b: b²/2 − 3
    objective = hc.Minimize(cost) if sense == "minimize" else hc.Maximize(-cost)
    table = hc.Problem(objective, [hc.sum(x) >= b]).sweep(
        {"b": [1, 4]}, adaptive=True, accuracy=0.01, progress=False
    )
    curve = table.curve
    sign = 1 if sense == "minimize" else -1
    across = np.linspace(1, 4, 301)
    known = sign * (across**2 / 2 - 3)
    assert curve.within
    assert not curve.relative
    assert (curve.lower(across) <= known + 1e-6).all()
    assert (curve.upper(across) >= known - 1e-6).all()
    assert np.abs(curve.middle(across) - known).max() <= 0.01 * 5


def test_a_parameter_in_an_exponent_has_no_curve() -> None:
    x = hc.Variable(name="x", bounds=(0.5, 2))
    k = hc.Parameter(name="k", value=1.0)
    problem = hc.Problem(hc.Minimize(x**k + 1 / x))
    with pytest.raises(hc.ModelError, match="proven convex jointly in its variables and 'k'"):
        problem.sweep({k: (1, 2)}, adaptive=True)


def test_a_proof_that_leaves_bounds_out_makes_no_curve() -> None:
    # Without the bounds of x[1] the model is convex in log(k) and x[1] + φ(x[0], k); with them it is not.
    x = hc.Variable(2, name="x", bounds=(0.1, 5))
    k = hc.Parameter(name="k", value=1.0)
    problem = hc.Problem(hc.Minimize(x[0] ** k + 1 / x[0] + x[1]))
    with pytest.raises(hc.ModelError, match="this one is neither"):
        problem.sweep({k: (1, 2)}, adaptive=True)


@pytest.mark.parametrize("sense", ["minimize", "maximize"])
def test_a_parameter_of_the_objective_has_a_curve_that_bends_the_other_way(sense: str) -> None:
    # min (x − 1)² + q·x: q − q²/4
    x = hc.Variable(name="x", bounds=(-5, 5))
    q = hc.Parameter(name="q", value=0.5)
    sign = 1 if sense == "minimize" else -1
    cost = (x - 1) ** 2 + q * x
    problem = hc.Problem(hc.Minimize(cost) if sign > 0 else hc.Maximize(-cost))
    table = problem.sweep({q: (-2, 2)}, adaptive=True, accuracy=0.02, progress=False)
    curve = table.curve
    across = np.linspace(-2, 2, 401)
    known = sign * (across - across**2 / 4)
    assert curve.within
    assert (curve.lower(across) <= known + 1e-9).all()
    assert (curve.upper(across) >= known - 1e-9).all()
    assert np.abs(curve.middle(across) - known).max() <= 0.02 * 3
    assert f"V is {'concave' if sign > 0 else 'convex'} in q" in str(table)
    assert table["value"] == pytest.approx(sign * (table["q"] - table["q"] ** 2 / 4), abs=1e-6)
    assert q.value == 0.5


@pytest.mark.parametrize(
    ("objective", "is_affine"),
    [
        (lambda x, q: q * x[0] + x[1] ** 2, True),
        (lambda x, q: (q + 1) * hc.log(x[0]) - 3 * q, True),
        (lambda x, q: q**2 * x[0] + x[1], False),
        (lambda x, q: hc.maximum(q * x[0], x[1]), False),
        (lambda x, q: x[0] ** q, False),
        (lambda x, q: x[1] / q, False),
    ],
)
def test_a_parameter_is_known_to_be_affine_in_the_objective(objective, is_affine: bool) -> None:
    x = hc.Variable(2, name="x", bounds=(1, 2))
    q = hc.Parameter(name="q", value=1.0, pos=True)
    model = hc.Problem(hc.Minimize(objective(x, q)), [x[0] >= 1.5]).model
    assert is_affine_in_objective(model, "q") == is_affine
    row = hc.Problem(hc.Minimize(objective(x, q)), [x[0] >= q]).model
    assert not is_affine_in_objective(row, "q")


def test_workers_split_all_intervals_at_once() -> None:
    A = hc.Variable(name="A", pos=True)
    l = hc.Parameter(name="l", value=1.0, pos=True)  # noqa: E741
    problem = hc.Problem(hc.Minimize(A**2), [l**2 + 1 <= A])
    with ThreadPoolExecutor(2) as executor:
        table = problem.sweep(
            {l: (1, 10)}, adaptive=True, accuracy=0.01, progress=False, executor=executor
        )
        assert executor.submit(int).result() == 0  # it is left running
    across = np.linspace(1, 10, 301)
    known = np.log((across**2 + 1) ** 2)
    assert table.curve.within
    assert (np.log(table.curve.lower(across)) <= known + 1e-8).all()
    assert (np.log(table.curve.upper(across)) >= known - 1e-8).all()


@pytest.mark.parametrize(
    ("grid", "arguments", "words"),
    [
        ({"b": [1, 1]}, {}, "needs a range of 'b'"),
        ({"b": [1, 2], "x": [[0, 0]]}, {}, "for one parameter"),
        ({"b": [1, 2]}, {"starts": 2}, "starts is for grids"),
        ({"b": [1, 2]}, {"executor": "dask"}, "give an object with `submit`"),
        ({"b": [1, 2]}, {"accuracy": 0}, "accuracy"),
        ({"b": [1, 30]}, {}, "at b = 30 the status is infeasible"),
    ],
)
def test_mistakes_are_answered_in_words(grid, arguments, words: str) -> None:
    x = hc.Variable(2, name="x", bounds=(-5, 5))
    b = hc.Parameter(name="b", value=1.0)
    problem = hc.Problem(hc.Minimize(hc.sum_squares(x)), [hc.sum(x) >= b])
    with pytest.raises(hc.HCError, match=words):
        problem.sweep(grid, adaptive=True, **arguments)


def test_the_width_of_an_interval_is_that_where_the_lines_meet() -> None:
    # tangents of q² at −1 and 1 meet at 0 with −1; the chord is 1 there
    lines = [Line(-2.0, -1.0), Line(2.0, -1.0)]
    assert interval_width((-1.0, 1.0), (1.0, 1.0), lines) == 2.0
    assert interval_width((-1.0, 1.0), (1.0, 1.0), []) == np.inf
