"""The files of the VS Code extension and the pre-commit hooks fit what they use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hcmodel.cli.check_hook import main
from tests.problems.examples import FOLDER

ROOT = Path(__file__).parents[3]
EXTENSION = ROOT / "editors" / "vscode"


def test_the_extension_names_files_that_are_there() -> None:
    package = json.loads((EXTENSION / "package.json").read_text())
    language, grammar = (
        package["contributes"]["languages"][0],
        package["contributes"]["grammars"][0],
    )
    for name in (package["main"], language["configuration"], grammar["path"]):
        assert (EXTENSION / name).is_file(), name
    own = json.loads((EXTENSION / grammar["path"]).read_text())
    assert own == json.loads((ROOT / "grammar" / "hc.tmLanguage.json").read_text())
    assert own["scopeName"] == grammar["scopeName"]
    assert package["contributes"]["configuration"]["properties"]["hcmodel.command"]["default"] == [
        "hcmodel",
        "lsp",
    ]


def test_the_hooks_run_commands_that_are_there() -> None:
    text = (ROOT / ".pre-commit-hooks.yaml").read_text()
    assert "entry: hcmodel fmt\n" in text
    assert "entry: python -m hcmodel.cli.check_hook\n" in text


def test_the_check_hook_reads_data_beside_a_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(FOLDER / "tank.hc"), str(FOLDER / "pricing.hc")]) == 0
    assert capsys.readouterr().out.count("proven") == 2
    lacking, wrong = tmp_path / "lacking.hc", tmp_path / "wrong.hc"
    lacking.write_text("param n\nvar x[n] > 0\nminimize sum(x)\n")
    wrong.write_text("var x > 0\nminimize xx\n")
    assert main([str(lacking)]) == 0
    assert "not in a file of the same name" in capsys.readouterr().out
    assert main([str(lacking), str(wrong)]) == 1
    bent = tmp_path / "bent.hc"
    bent.write_text("var x in [-2, 2]\nminimize sin(3*x) + 0.1*x^2\n")
    assert main([str(bent)]) == 5
