"""Which of several runs' points is returned, and when a solve goes on to the next run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.solvers import Termination
from hcmodel.solvers.result import Result
from hcmodel.solving import run as module
from hcmodel.solving.strategy import Stage

End = tuple[float, Termination]


def solved(monkeypatch: pytest.MonkeyPatch, *ends: End) -> tuple[hc.Problem, int]:
    """A model whose runs end at the given points; how many of them were made."""
    x = hc.Variable(name="x", bounds=(-2, 2), start=0.5)
    row = x**3 >= -1
    problem = hc.Problem(hc.Minimize(hc.sin(3 * x) + x**4), [row])
    left: Iterator[End] = iter(ends)
    made = []

    def scripted(stage: Stage, *_: Any) -> Result:
        oracle = stage.form.oracle()
        at, termination = next(left)
        made.append(at)
        evaluation = oracle.at(np.array([at]))
        return Result(evaluation, np.zeros(1), termination, 1, oracle.calls, ())

    monkeypatch.setattr(module, "_run_stage", scripted)
    monkeypatch.setattr(module, "MOST_RESTARTS", 0)
    problem.solve()
    return problem, len(made)


def test_of_two_points_that_show_nothing_the_better_one_is_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends = (0.5, Termination.STALLED), (-0.4, Termination.CALL_LIMIT)
    problem, runs = solved(monkeypatch, *ends)
    assert runs == 2
    assert problem.variables[0].value == pytest.approx(-0.4)
    assert problem.value == pytest.approx(np.sin(-1.2) + 0.4**4)


def test_feasibility_comes_before_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = (0.5, Termination.STALLED), (-1.2, Termination.STALLED)
    problem, _ = solved(monkeypatch, *ends)
    assert problem.value == pytest.approx(np.sin(1.5) + 0.5**4)


def test_the_dual_of_a_constraint_that_is_listed_twice_is_the_sum() -> None:
    x = hc.Variable(name="x", bounds=(0, 2))
    row = x >= 1
    problem = hc.Problem(hc.Minimize(3 * x), [row, row])
    problem.solve()
    assert problem.solution is not None
    assert row.dual_value == pytest.approx(3.0)
    assert sum(problem.solution.duals.values()) == pytest.approx(3.0)
    problem.solve()
    assert row.dual_value == pytest.approx(3.0)  # and not the sum of both solves


def test_another_start_that_ends_at_the_same_violation_does_not_weaken_the_status() -> None:
    """The row is at most 2.55, at x = ±1: both runs end there, and one of them says what it is."""
    x = hc.Variable(name="x", bounds=(-1, 1), start=0.5)
    problem = hc.Problem(hc.Minimize(x), [hc.sin(x) ** 2 + x**4 + x * hc.sin(x) >= 2.6])
    problem.solve()
    assert problem.status == "infeasible_inaccurate"
