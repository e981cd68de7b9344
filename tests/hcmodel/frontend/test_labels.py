"""Sets of labels in the language: data by label, entries by label, results with labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.grammar import format_model

GASES = """set gas = {"N2", "O2", "Ar"}
param price[gas] > 0
var n[gas] in [0.1, 10]
minimize sum(price[g] / n[g] for g in gas) + n["O2"]
subject to
    total: sum(n) <= 5
    each[g in gas]: n[g] * n[g] <= 9
"""
PRICES = {"O2": 2, "Ar": 3, "N2": 1}


@pytest.fixture(scope="module")
def gases() -> hc.Problem:
    problem = hc.parse(GASES, {"price": PRICES})
    problem.solve()
    return problem


def test_labels_are_members_in_order(gases: hc.Problem) -> None:
    same = hc.parse(
        "param price[3] = [1, 2, 3]\nvar n[3] in [0.1, 10]\n"
        "minimize sum(price[g] / n[g] for g in 1..3) + n[2]\n"
        "subject to\n total: sum(n) <= 5\n each[g in 1..3]: n[g]*n[g] <= 9"
    )
    assert gases.value == pytest.approx(same.solve())
    assert gases["price"].value.tolist() == [1, 2, 3]


def test_results_have_the_labels(gases: hc.Problem) -> None:
    solution = gases.solution
    assert solution is not None
    assert solution["n", "O2"] == solution["n"][1]
    assert "n = {N2: 1.40809, O2: 1.15303, Ar: 2.43888}" in str(solution)
    assert solution.to_json()["labels"]["each"] == [["N2", "O2", "Ar"]]
    assert [row["index"] for row in solution.records()][:3] == ["N2", "O2", "Ar"]
    with pytest.raises(KeyError, match="'n' has no entry 'He'"):
        solution["n", "He"]


@pytest.mark.parametrize("kind", ["series", "list", "file"])
def test_data_by_label_come_from_pandas_lists_and_files(kind: str, tmp_path: Path) -> None:
    data: Any = {"price": [1, 2, 3]}
    if kind == "series":
        data = {"price": pytest.importorskip("pandas").Series(PRICES, dtype=float)}
    elif kind == "file":
        data = tmp_path / "data.json"
        data.write_text(json.dumps({"price": PRICES}))
    assert hc.parse(GASES, data)["price"].value.tolist() == [1, 2, 3]


def test_matrices_have_labels_on_both_axes() -> None:
    text = (
        'set a = {"x", "y"}\nset b = {"u", "v"}\nparam A[a,b]\nvar n[b] in [1, 2]\n'
        "minimize sum(sum(A[i,j]*n[j] for j in b) for i in a)"
    )
    wanted = np.array([[4.0, 3.0], [2.0, 1.0]])
    nested = {"y": {"v": 1, "u": 2}, "x": {"u": 4, "v": 3}}
    assert (hc.parse(text, {"A": nested})["A"].value == wanted).all()
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([[1, 2], [3, 4]], index=["y", "x"], columns=["v", "u"])
    assert (hc.parse(text, {"A": frame})["A"].value == wanted).all()


@pytest.mark.parametrize(
    ("text", "data", "words"),
    [
        (GASES, {"price": {"N2": 1, "O2": 2}}, 'lack "Ar"'),
        (GASES, {"price": {**PRICES, "He": 4}}, 'have "He" as well'),
        (GASES.replace('n["O2"]', 'n["02"]'), {"price": PRICES}, 'members are {"N2", "O2",'),
        ('var n[2] in [1, 2]\nminimize n["a"]', None, "indexed by numbers, 1..2"),
        ("param c[2]\nvar n[2] in [1,2]\nminimize c @ n", {"c": {"a": 1, "b": 2}}, "set s = "),
        ('set s = {"a", "a"}\nvar n[s] in [1,2]\nminimize sum(n)', None, '"a" occurs twice'),
        ("set s = {1, 2}\nvar n[s] in [1,2]\nminimize sum(n)", None, "labels are strings"),
        ('set s = ["a", "b"]\nvar n[s] in [1,2]\nminimize sum(n)', None, '`{"a", "b"}`'),
    ],
)
def test_mistakes_with_labels_are_answered(text: str, data: Any, words: str) -> None:
    with pytest.raises(hc.HCError) as raised:
        hc.parse(text, data)
    assert words in str(raised.value)


def test_a_conflict_names_the_labels() -> None:
    problem = hc.parse(GASES.replace("<= 9", "<= 0.001"), {"price": PRICES})
    problem.solve()
    assert problem.solution is not None
    assert problem.status == "infeasible"
    name, bound = problem.solution.conflict
    assert name.startswith("each[")
    assert bound.startswith(f"n[{name[5:-1]}] >= 0.1")


def test_labels_are_formatted_and_written_back(gases: hc.Problem) -> None:
    text = 'set   gas={"N2","O2"}\nvar n[gas]>=0\nminimize n[ "N2" ]'
    assert format_model(text) == 'set gas = {"N2", "O2"}\nvar n[gas] >= 0\nminimize n["N2"]\n'
    assert hc.parse(gases.to_hc()).solve() == pytest.approx(gases.value)
