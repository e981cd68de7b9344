"""The repository keeps its own promises: packaging, README, layers."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.benchmarks.__main__ import names
from tests.processes import run_python

ROOT = Path(__file__).parents[1]


def test_the_package_list_equals_the_tree() -> None:
    listed = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    )
    found = set()
    for folder, package in (
        ("hcmodel", "hcmodel"),
        ("grammar", "hcmodel.grammar"),
        ("solvers", "hcmodel.solvers"),
    ):
        for init in (ROOT / folder).rglob("__init__.py"):
            inner = init.parent.relative_to(ROOT / folder)
            if inner.parts[:1] not in (("grammar",), ("solvers",)) or folder != "hcmodel":
                found.add(".".join((package, *inner.parts)))
    assert listed == found


def test_the_gate_runs_the_test_command_of_the_readme() -> None:
    commands = re.findall(r"^python3 -m venv .*$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(commands) == 2
    gate = (ROOT / ".ci" / "run").read_text().splitlines()
    assert commands[1] in gate


def test_the_nightly_run_names_benchmarks_that_exist() -> None:
    nightly = (ROOT / ".ci" / "nightly").read_text()
    looped = re.findall(r"^for name in (.*?);", nightly, re.MULTILINE)
    called = re.findall(r"tests\.benchmarks (\w+)", nightly)
    assert looped
    assert {*" ".join(looped).split(), *called} <= set(names())


def test_the_readmes_example_prints_what_it_shows(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    shown = re.search(r"```text\n(.*?)```", text, re.DOTALL)
    assert code is not None
    assert shown is not None
    script = tmp_path / "readme.py"
    script.write_text(code[1], encoding="utf-8")
    run = run_python([str(script)], ROOT)
    assert run.returncode == 0, run.stderr
    # times vary from run to run, the last digits and with them the counts from machine to machine
    vary = re.compile(
        r"[\d.e+-]+ s\b|(?<=KKT residual  )\S+|(?<=gap           )\S+"
        r"|\d+(?= iterations| oracle)|\d+ points?"
    )
    assert vary.sub("…", run.stdout.strip()) == vary.sub("…", shown[1].strip())


@pytest.mark.parametrize("example", sorted((ROOT / "examples" / "python").glob("*.py")))
def test_python_examples_run(example: Path, tmp_path: Path) -> None:
    run = run_python([str(example)], tmp_path)
    assert run.returncode == 0, run.stderr
    assert re.search(r"\b(locally_)?optimal\b", run.stdout)


def test_the_gate_tests_the_oldest_versions_that_are_allowed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest = dict(
        line.split("==")
        for line in (ROOT / ".ci" / "oldest.txt").read_text().splitlines()
        if "==" in line
    )
    allowed = dict(each.split(">=") for each in project["dependencies"])
    assert oldest.keys() == allowed.keys()
    for name, version in allowed.items():
        padded = [*version.split("."), "0", "0"][:3]
        assert oldest[name].split(".") == padded, name


def test_the_fast_part_of_the_suite_exists() -> None:
    listed = (ROOT / ".ci" / "fast.txt").read_text().splitlines()
    for line in listed:
        assert line.startswith("#") or (ROOT / line).exists(), line


def test_one_version_stands_everywhere() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f'__version__ = "{version}"' in (ROOT / "hcmodel" / "__init__.py").read_text()
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()
    extension = (ROOT / "editors" / "vscode" / "package.json").read_text()
    assert f'"version": "{version}"' in extension
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text()
