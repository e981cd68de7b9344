"""The table of habits in docs/coming-from.md: each line works, or answers in the words of the table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hcmodel as hc

PAGE = (Path(__file__).parents[2] / "docs" / "coming-from.md").read_text("utf-8")
ROW = re.compile(r"^\| ([^|`]+) \| `` (.+?) `` \| (works|`` .+? ``) \|$", re.MULTILINE)
HABITS = [(tool, code, words.strip("` ")) for tool, code, words in ROW.findall(PAGE)]
BEFORE = "var x[3] in [1, 2]\nparam c[3] = [1, 2, 3]\n"


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    x = hc.Variable(3, name="x", bounds=(0.5, 2))
    cap = hc.Parameter(name="cap", value=1.0)
    problem = hc.Problem(hc.Minimize(hc.sum(x**2)), [hc.prod(x) >= cap])
    problem.solve()
    X = hc.Variable((2, 2), name="X")
    return {"hc": hc, "np": np, "x": x, "X": X, "c": np.ones(3), "problem": problem}


def test_there_are_forty_habits_and_more() -> None:
    assert len(HABITS) >= 40
    assert len({code for _, code, _ in HABITS}) == len(HABITS)
    assert {tool.split(",")[0] for tool, _, _ in HABITS} >= {"CVXPY", "GPkit", "JuMP", "AMPL"}


@pytest.mark.parametrize(("tool", "code", "words"), HABITS, ids=[code for _, code, _ in HABITS])
def test_a_habit_works_or_is_answered(
    names: dict[str, Any], tool: str, code: str, words: str
) -> None:
    def run() -> Any:
        if "file" in tool:
            return hc.parse(BEFORE + code.replace("; ", "\n"))
        return eval(code, names)

    if words == "works":
        assert run() is not None
        return
    with pytest.raises((hc.HCError, AttributeError)) as raised:
        run()
    assert words in str(raised.value)


def test_sums_of_lists_are_those_of_their_entries(names: dict[str, Any]) -> None:
    x = hc.Variable(3, name="y")
    x.value = [1.0, 2.0, 4.0]
    assert hc.sum([x[0], 2 * x[1]]).value == 5.0
    assert hc.sum(i * x[i] for i in range(3)).value == 10.0
    assert hc.max([x[0], 3]).value == 3.0
    with pytest.raises(hc.ModelError, match="add them with Python's sum"):
        hc.sum([x, x])
    problem = names["problem"]
    assert problem.objective.value == pytest.approx(problem.value)
    assert problem.solution("x") is problem.solution["x"]


def test_unknown_arguments_and_attributes_stay_errors(names: dict[str, Any]) -> None:
    with pytest.raises(
        TypeError, match="solve has no argument 'colour'; its arguments are method, tol"
    ):
        names["problem"].solve(colour="red")
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        names["x"].colour  # noqa: B018
    assert not hasattr(names["problem"], "is_dcp")
