"""Declared coordinates are confirmed or refuted by enclosures of second derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.certify.declared.curvature_boxes import _halved, _least, _middle
from hcmodel.cli import main
from hcmodel.facts.interval_jets import Interval
from tests.extent import first

CONFIRMED = "convex in the declared coordinates, shown by enclosures of second derivatives"


def variable(size: int = 1, low: float | None = -1, high: float | None = 1) -> Any:
    shape = () if size == 1 else size
    return hc.Variable(shape, name="x", bounds=(low, high), start=np.zeros(shape) + 0.1)


def bump(x: Any, at: float, sharp: float = 1e6) -> Any:
    return 5 * hc.exp(-sharp * hc.sum_squares(x - at))


# The value at the bottom of the well is −5 + the smooth part there, up to the smooth part's slope.
WELLS: dict[str, tuple[Callable[[], hc.Problem], float]] = {}  # the first two run by default


def well(name: str, value: float) -> Callable[[Callable[[], hc.Problem]], Callable[[], hc.Problem]]:
    def add(make: Callable[[], hc.Problem]) -> Callable[[], hc.Problem]:
        WELLS[name] = make, value
        return make

    return add


@well("one variable", -4.51)
def _one() -> hc.Problem:
    x = variable()
    return hc.Problem(hc.Minimize(x**2 - bump(x, 0.7)), hidden=[x])


@well("logarithmic coordinates", 1.7**2 + 1 / 1.7 - 5)
def _logarithmic() -> hc.Problem:
    x = variable(1, 0.1, 3)
    return hc.Problem(hc.Minimize(x**2 + 1 / x - bump(x, 1.7)), hidden=[hc.log(x)])


@well("no bounds", -4.51)
def _free() -> hc.Problem:
    x = variable(1, None, None)
    return hc.Problem(hc.Minimize(x**2 - bump(x, 0.7)), hidden=[x])


@well("two variables, maximised", 4.82)
def _two() -> hc.Problem:
    x = variable(2)
    return hc.Problem(hc.Maximize(bump(x, 0.3) - hc.sum_squares(x)), hidden=[x])


@well("rational", -2.51)
def _rational() -> hc.Problem:
    x = variable()
    return hc.Problem(hc.Minimize(x**2 - 3 / (1 + 1e8 * (x - 0.7) ** 2)), hidden=[x])


@well("three variables", -4.52)
def _three() -> hc.Problem:
    x = variable(3)
    return hc.Problem(hc.Minimize(hc.sum_squares(x) - bump(x, 0.4, 1e4)), hidden=[x])


@pytest.mark.parametrize("name", first(2, WELLS))
def test_a_narrow_well_refutes_the_coordinates_and_is_found(name: str) -> None:
    make, value = WELLS[name]
    problem = make()
    problem.solve()
    assert problem.status == "locally_optimal"
    assert problem.value == pytest.approx(value, abs=1e-4)
    assert problem.solution is not None
    assert "not convex in the declared coordinates, as at x = " in problem.solution.message
    assert problem.solution.certificate.lower_bound is None


@pytest.mark.parametrize("name", first(1, WELLS))
def test_the_analysis_finds_the_well_too(name: str) -> None:
    """200 samples miss it; it was "not refuted" while the solve said that it is not convex."""
    analysis = WELLS[name][0]().analyze()
    assert analysis.verdict == "refuted"
    example = analysis.counterexample
    assert example is not None
    assert example.kind == "objective"
    assert example.left > example.right


def test_the_command_says_the_same(tmp_path: Any, capsys: Any) -> None:
    text = "var x in [-1, 1]\nminimize x^2 - 5*exp(-1e6*(x - 0.3)^2)\nhidden x\n"
    (tmp_path / "well.hc").write_text(text)
    assert main(["check", str(tmp_path / "well.hc")]) == 5
    assert "refuted" in capsys.readouterr().out


def test_a_bump_upwards_refutes_as_well() -> None:
    # nothing shows the minimum at −0.05: the function is not convex around 0.7
    x = variable()
    problem = hc.Problem(hc.Minimize(x**2 + 0.1 * x + bump(x, 0.7)), hidden=[x])
    problem.solve()
    assert problem.status == "locally_optimal"
    assert problem.value == pytest.approx(-0.0025, abs=1e-9)
    # the least value of all needs no convexity
    problem = hc.Problem(hc.Minimize(x**2 + bump(x, 0.7)), hidden=[x])
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(0.0, abs=1e-9)


def test_convex_functions_that_no_rule_knows_are_confirmed() -> None:
    # the second derivatives are 2 − 0.3 sin, and [2, 2] − 0.3 sin·[[1, 1], [1, 1]]
    x = variable(2)
    objective = hc.sum_squares(x) + 0.3 * hc.sin(hc.sum(x))
    row = x[0] * x[1] + hc.sum_squares(x) <= 1
    problem = hc.Problem(hc.Minimize(objective), [row], hidden=[x])
    problem.solve()
    assert problem.status == "optimal"
    assert problem.solution is not None
    assert problem.solution.message == "shown to be within the tolerance of the optimal value"
    assert problem.solution.certificate.conditions == (CONFIRMED,)
    analysis = problem.analyze()
    assert (analysis.verdict, analysis.derivation) == ("proven", CONFIRMED)
    assert problem.is_hidden_convex()


def test_a_row_that_bends_is_not_confirmed_by_the_analysis() -> None:
    # convex objective; the row sin(3 x1) <= 0.9 + x2 bends both ways and may not be needed
    x = variable(2)
    row = hc.sin(3 * x[0]) <= 0.9 + x[1]
    objective = hc.sum_squares(x) + 0.3 * hc.sin(hc.sum(x))
    assert hc.Problem(hc.Minimize(objective), [row], hidden=[x]).analyze(20).verdict != "proven"


def test_an_equality_that_bends_is_not_confirmed() -> None:
    x = variable(2, 0.5, 2)
    curve = x[1] + 0.1 * hc.sin(x[0]) == 1.2
    problem = hc.Problem(hc.Minimize(hc.sum_squares(x)), [curve], hidden=[x])
    problem.solve()
    assert problem.solution is not None
    assert problem.status in ("optimal", "locally_optimal")
    assert CONFIRMED not in (problem.solution.certificate.conditions or ())


def test_where_nothing_is_enclosed_the_status_says_what_it_rests_on() -> None:
    x = variable(2, 0.5, 2)
    objective = hc.sum_squares(x) + 0.05 * hc.det(hc.vstack([x, x[::-1] + hc.sin(x)]))
    problem = hc.Problem(hc.Minimize(objective), hidden=[x])
    problem.solve()
    assert problem.status == "optimal"
    assert problem.solution is not None
    assert "if the declared coordinates hold" in problem.solution.message


def test_a_map_entry_by_entry_is_confirmed() -> None:
    # in u = exp(x): u² − 3u + 0.1 u⁻¹, whose second derivative is positive
    x = variable(1, None, None)
    objective = hc.exp(2 * x) - 3 * hc.exp(x) + 0.1 * hc.exp(-x) + 0 * hc.cos(x)
    problem = hc.Problem(hc.Minimize(objective), hidden=[hc.exp(x)])
    problem.solve()
    assert problem.status == "optimal"


def test_the_least_eigenvalue_of_matrices_in_an_interval_is_bounded_from_below() -> None:
    # diag(2, 3) with every entry uncertain by 1/4: Gershgorin's ½ in each row
    center = np.diag([2.0, 3.0])
    assert _least(Interval(center - 0.25, center + 0.25)) == pytest.approx(1.5)
    # rounding, which is relative to the size of the matrix, is taken off
    large = np.diag([1e6, 2e6])
    found = float(_least(Interval(large, large)))
    assert found == pytest.approx(1e6 - 1e-13 * 2e6, abs=1e-8)
    assert found < 1e6 - 1e-7
    assert _least(Interval(center, np.full((2, 2), np.inf))) == -np.inf


def test_a_box_is_halved_across_its_longest_side_in_units_of_the_domain() -> None:
    # 4 of 8 is less than 1 of 1
    lows, highs = _halved(np.zeros((1, 2)), np.array([[4.0, 1.0]]), np.array([8.0, 1.0]))
    assert lows.tolist() == [[0, 0], [0, 0.5]]
    assert highs.tolist() == [[4, 0.5], [4, 1]]


def test_the_middle_of_a_box_without_an_end_is_farther_out() -> None:
    low = np.array([1.0, 3.0, -np.inf, -np.inf, -2.0, -np.inf])
    high = np.array([5.0, np.inf, -3.0, np.inf, np.inf, 2.0])
    assert _middle(low, high).tolist() == [3, 7, -7, 0, 0, 0]
