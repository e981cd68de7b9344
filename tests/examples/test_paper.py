"""The script of the paper's figures, run as a user would, reproduces the paper's numbers.

The numbers are the paper's or, for Fig. 2, in closed form: the nearest feasible point to (0, 2) on the
face from (0.5, 1.4) to (1.3, 2.2) is (0.55, 1.45), at the distance 0.55·√2. The Ex-CGP start, α of Fig. 3
and Λ and τ of Fig. 6 are not printed there; the script says what it takes.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from tests.processes import Finished, run_python

pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "paper" / "reproduce.py"
PICTURES = ROOT / "docs" / "pictures"


def reproduce(*arguments: str) -> Finished:
    return run_python([str(SCRIPT), *arguments], ROOT)


def rows_of(done: Finished) -> dict[str, str]:
    """Column `ours` by quantity."""
    assert done.returncode == 0, done.stderr
    header, rule, *lines = done.stdout.splitlines()
    assert [cell.strip() for cell in header.split("|")] == ["quantity", "ours", "paper", "note"]
    assert set(rule) <= set("- |")
    cells = [[cell.strip() for cell in line.split("|")] for line in lines]
    return {quantity: ours for quantity, ours, *_ in cells}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """The numbers of Figs. 3 and 5, and the folder of their files."""
    folder = tmp_path_factory.mktemp("figures")
    return rows_of(reproduce("--figure", "3", "5", "--out", str(folder))), folder


@pytest.fixture(scope="module")
def quick(drawn):
    return drawn[0]


@pytest.fixture(scope="module")
def other():
    """The numbers of the figures that take longer to draw."""
    return rows_of(reproduce("--figure", "2", "4", "6", "--table"))


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", text)]


def test_figures_are_written_as_png_and_svg(drawn):
    _, folder = drawn
    for number in (3, 5):
        assert (folder / f"figure-{number}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / f"figure-{number}.svg").read_text("utf-8")[:2000]


def test_the_inconsistent_example_has_a_local_and_a_global_minimum(other):
    assert numbers(other["Fig. 2 global F1"])[0] == pytest.approx(0.55 * math.sqrt(2), abs=6e-6)
    assert numbers(other["Fig. 2 global x"]) == pytest.approx([0.55, 1.45], abs=1e-4)
    assert numbers(other["Fig. 2 local x"]) == pytest.approx([-0.3, 0.2], abs=1e-3)


def test_without_a_shift_the_step_goes_to_the_maximum_and_stays_there(quick):
    assert numbers(quick["StarBL from 0.891"])[0] == pytest.approx(-0.95, abs=1e-3)
    swing = numbers(quick["StarBL afterwards"])
    assert swing == pytest.approx([0.95, -0.95, 0.95, -0.95], abs=5e-3)


def test_with_a_shift_the_step_is_an_improvement(quick):
    assert numbers(quick["S-StarBL from 0.891"])[0] == pytest.approx(-0.24, abs=5e-3)
    assert numbers(quick["sbl-star ends at"])[0] < 1e-3


def test_the_constraint_that_is_not_shifted_cuts_off_the_optimum(quick):
    # ∇F2·(x* − x) + F2 = 0.74·0.66 − 1.34·0.24 + 0.9916 − 1 at x = (1.34, 0.74), x* = (2, 0.5)
    assert numbers(quick["F2 cut at x*"])[0] == pytest.approx(0.1584, abs=1e-4)
    assert numbers(quick["F2 cut at x_α"])[0] < 0.1213


@pytest.mark.parametrize("method", ["ippm-acgd", "sbl-star", "sbl-adals"])
def test_the_geometric_program_is_solved(quick, method):
    assert float(quick[f"Ex-CGP {method} F1"]) == pytest.approx(5, abs=1e-6)


def test_the_least_squares_problem_is_solved_across_the_kink(other):
    assert float(other["Ex-CNLS F1"]) == pytest.approx(0.15, abs=1e-5)
    assert numbers(other["Ex-CNLS x"]) == pytest.approx([0.85, 0.85], abs=1e-3)


def test_the_large_program_has_the_papers_optimum(other):
    assert other["d = 100 F1*"] == "0.07114"


def test_the_printed_settings_give_what_the_paper_describes(other):
    # Three of the four come near the optimum, S-StarBL within 100 calls; IPPM+SwSG is slow but feasible.
    errors = {name: numbers(other[f"{name} printed"]) for name in ("IPPM+ACGD", "S-StarBL")}
    assert all(0 < error < 5e-3 for error, *_ in errors.values())
    assert 0 < numbers(other["S-BL+AdaLS printed"])[0] < 2e-2
    slow, violation, _ = numbers(other["IPPM+SwSG printed"])
    assert slow > 1e-2
    assert violation <= 1e-3
    assert float(other["S-StarBL calls"]) < 100
    assert float(other["AdaLS violation"]) == pytest.approx(3e-3, rel=0.2)


def test_within_the_same_calls_the_adaptive_rule_is_nearer(other):
    for name in ("ippm-acgd", "sbl-star", "sbl-adals"):
        error, violation, calls = numbers(other[f"{name} adaptive"])
        assert abs(error) <= 1e-6
        assert violation <= 1e-6
        assert calls <= 1210


def test_asking_for_no_figure_is_an_error():
    done = reproduce()
    assert done.returncode == 2
    assert "--figure" in done.stderr


def test_each_method_has_a_page_with_its_picture():
    from hcmodel.solvers import METHODS

    for name in METHODS:
        page = (ROOT / "docs" / f"method-{name}.md").read_text("utf-8")
        assert f"(pictures/method-{name}.png)" in page
        assert (PICTURES / f"method-{name}.png").stat().st_size < 200_000
