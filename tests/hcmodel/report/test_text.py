"""Results as text: matrices as matrices, nothing that is rounding only, everything with `full`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.cli import main
from hcmodel.report.text import shown_array

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="module")
def solution() -> hc.Solution:
    problem = hc.load(EXAMPLES / "tank.hc")
    problem.solve()
    assert problem.solution is not None
    return problem.solution


def test_matrices_have_aligned_columns() -> None:
    assert shown_array("P = ", np.array([[1.0, -0.25], [0, 12]])) == [
        "P = [[    1, -0.25],",
        "     [    0,    12]]",
    ]


def test_large_arrays_are_cut_unless_all_is_asked_for() -> None:
    values = np.arange(400.0).reshape(20, 20)
    short = "\n".join(shown_array("A = ", values))
    assert "..." in short
    assert "(20, 20)" in short
    assert "210" not in short
    full = "\n".join(shown_array("A = ", values, full=True))
    assert "..." not in full
    assert all(str(number) in full for number in range(400))
    assert "…" in shown_array("x = ", np.arange(30.0))[0]
    assert "17" in " ".join(shown_array("x = ", np.arange(30.0), full=True))


def test_the_command_shows_all_with_full(capsys: pytest.CaptureFixture[str]) -> None:
    model = [str(EXAMPLES / "posynomial.hc"), "--data", str(EXAMPLES / "posynomial.json")]
    assert main(["solve", *model]) == 0
    assert "…" in capsys.readouterr().out
    assert main(["solve", *model, "--full"]) == 0
    out = capsys.readouterr().out
    assert "…" not in out
    variable = out[out.index("variable") : out.index("\ndual")]
    assert variable.count(",") == 99


def test_rounding_is_not_shown(solution: hc.Solution) -> None:
    duals = {"area": np.array([2.0, 3e-10]), "other": np.array(-1e-12)}
    text = str(replace(solution, duals=duals))
    assert "area = [2, 0]" in text
    assert "other = 0" in text
    below = replace(solution.certificate, gap=-3e-11)
    assert "gap           0.00e+00" in str(replace(solution, certificate=below))
    far = replace(solution.certificate, gap=-3e-3)
    assert "-3.00e-03, below 0 by what the violated rows gain" in str(
        replace(solution, certificate=far)
    )


def test_the_repr_is_short(solution: hc.Solution) -> None:
    assert repr(solution).startswith("Solution(optimal, value=5, gap=")
    assert len(repr(solution)) < 100


def test_variables_are_in_the_order_of_the_file() -> None:
    problem = hc.parse("var b in [1, 2], a in [1, 2]\nminimize a/b + a + b")
    problem.solve()
    assert list(problem.solution.point) == ["b", "a"]
    # in order of appearance they would be the other way round
    assert [variable.name for variable in problem.variables] == ["a", "b"]
