"""`hcmodel sweep`, and the solution of one solve as the start of another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hcmodel.cli import main

TANK = """param cap > 0 = 1
var x[2] in [0.4, 3]
minimize x[1]*x[2] + 4/x[1] + 1/x[2]
subject to
    area: x[1]*x[2] <= cap
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "tank.hc"
    path.write_text(TANK)
    return str(path)


def test_a_range_of_values_is_a_table_and_a_file(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "tank.csv"
    files = ["--csv", str(table)]
    assert main(["sweep", model, "--set", "cap=0.5:2:4", *files]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["cap", "status", "value", "gap", "x[1]", "x[2]"]
    assert [line.split()[0] for line in lines[1:5]] == ["0.5", "1", "1.5", "2"]
    assert lines[2].split()[2] == "5"
    written = table.read_text().splitlines()
    assert len(written) == 5
    table.write_text("\n".join([*written[:3], written[3][:20]]))  # killed while it wrote a line
    assert main(["sweep", model, "--set", "cap=0.5:2:4", "--csv", str(table), "--resume"]) == 0
    again = table.read_text().splitlines()
    assert again[1:3] == written[1:3]  # kept, seconds and all
    assert len(again) == 5


@pytest.mark.parametrize(
    ("setting", "values"),
    [("cap=1,1.5", [1, 1.5]), ("cap=0.5:2:3:log", [0.5, 1, 2]), ("cap=1:1:1", [1])],
)
def test_values_are_ranges_or_lists(
    model: str, setting: str, values: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", model, "--set", setting, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["parameters"]["cap"] for row in rows] == pytest.approx(values)
    assert all(row["status"] == "optimal" for row in rows)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--set", "cap=0.5:2"], 2, "write cap=0.5:2:20"),
        (["--set", "cap=-1:2:3:log"], 2, "needs positive ends"),
        (["--set", "cap=1:2:0"], 2, "from 1 to"),
        ([], 2, "a sweep needs values"),
        (["--set", "cap=1:2:3", "--resume"], 2, "--csv F --resume"),
        (["--set", "cap=1:2:3", "--method", "simplex"], 2, "simplex"),
        (["--set", "cop=1:2:3"], 1, "did you mean `cap`"),
        (["--set", "cap=0.1,2"], 4, ""),
    ],
)
def test_exit_codes_and_messages(
    model: str, arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", model, *arguments]) == code
    assert words in capsys.readouterr().err


def test_what_output_wrote_is_a_start(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "solution.json")
    assert main(["solve", model, "--output", output]) == 0
    newton = ["--method", "hidden-newton", "--json"]
    capsys.readouterr()
    assert main(["solve", model, *newton]) == 0
    cold = json.loads(capsys.readouterr().out)
    assert main(["solve", model, "--start", output, *newton]) == 0
    warm = json.loads(capsys.readouterr().out)
    assert warm["oracle_calls"]["points"] < cold["oracle_calls"]["points"]
