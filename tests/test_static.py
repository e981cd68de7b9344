"""What the source text itself has to keep: no heuristic number without a source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.benchmarks.constants import ROOT, Number, files, numbers

NUMBERS = [number for path in files() for number in numbers(path)]

# Packages in which every number says where it comes from.
EXPLAINED = (
    "solvers/",
    *(f"hcmodel/{p}/" for p in ("certify", "analysis", "solving", "reductions")),
)
# Packages whose numbers have not been sorted yet.
OPEN = (
    "solvers/sets/",
    "solvers/coordinates/",
    "solvers/second_order/",
    "hcmodel/analysis/",
    "hcmodel/certify/",
    "hcmodel/solving/",
    "hcmodel/reductions/",
)
# Functions that are a theorem's formula: their docstrings have the theorem.
THEOREMS = ("solvers/theory/", "solvers/first_order/switching_subgradient.py:step_length")


def places(wanted: Callable[[Number], bool]) -> list[str]:
    """The numbers that break a rule, one line each."""
    return [
        f"{n.path}:{n.line} {n.name} = {n.value}"
        for n in NUMBERS
        if wanted(n) and not n.path.startswith(OPEN)
    ]


def test_every_numeric_constant_says_where_it_comes_from() -> None:
    assert not places(
        lambda n: n.kind != "inline" and not n.explained and n.path.startswith(EXPLAINED)
    )


def test_heuristics_of_the_solvers_are_fields_and_not_literals_in_functions() -> None:
    def loose(number: Number) -> bool:
        place = f"{number.path}:{number.name}"
        return (
            number.kind == "inline"
            and number.path.startswith("solvers/")
            and not place.startswith(THEOREMS)
        )

    assert not places(loose)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("LIMIT = 3\n", [("module", False)]),
        ("# Why.\nLIMIT = 3\nOTHER = 1e-3\n", [("module", True), ("module", True)]),
        ("class A:\n    share: float = 0.1\n    'Why.'\n    count: int = 0\n", [("field", True)]),
        ("def f(x: float = 1e-6) -> float:\n    return 0.5 * x + 3.0\n", [("inline", False)] * 2),
        ("names = (1, 2)\ndef f() -> float:\n    return 2.0 - 1.0\n", []),
    ],
)
def test_numbers_are_found_where_they_stand(
    text: str, kinds: list[tuple[str, bool]], tmp_path: Path
) -> None:
    path = tmp_path / "module.py"
    path.write_text(text)
    assert [(n.kind, n.explained) for n in numbers(path, tmp_path)] == kinds


def test_there_is_something_to_look_at() -> None:
    assert len({number.path for number in NUMBERS}) > 30
    assert any((ROOT / number.path).name == "numerics.py" for number in NUMBERS)
