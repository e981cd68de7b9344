"""What the build of the site rests on, without building it: notebooks, gallery, links of the README."""

from __future__ import annotations

import ast
import importlib
import json
import re
from pathlib import Path

import pytest

from tests.extent import ALL

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def test_the_navigation_names_every_notebook():
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    assert len(NOTEBOOKS) == 3
    assert [each.stem for each in NOTEBOOKS if f"\nnotebooks/{each.stem}\n" not in index] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_without_outputs_and_are_valid_python(path):
    notebook = json.loads(path.read_text("utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert code
    for cell in code:
        assert cell["outputs"] == []
        ast.parse("".join(cell["source"]))


@pytest.mark.skipif(not ALL, reason="the build of the site runs them")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path):
    pytest.importorskip("matplotlib")
    names: dict[str, object] = {}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert names["problem"].solution.point.keys()


def test_every_example_has_a_card(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    site_pages = importlib.import_module("site_pages")
    found = {example.path.stem: example for example in site_pages.examples()}
    assert found.keys() == {path.stem for path in (ROOT / "examples").glob("*.hc")}
    grouped = [name for group in site_pages.GROUPS.values() for name in group]
    assert len(set(grouped)) == len(grouped)
    assert set(grouped) <= found.keys()
    assert found["lqr_energy"].data == "lqr.json"
    assert found["tank"].data is None
    assert all(example.title for example in found.values())
    data = {example.data for example in found.values()} - {None}
    assert data
    assert [each for each in data if not (ROOT / "examples" / each).exists()] == []


def test_links_and_pictures_of_the_readme_lead_somewhere():
    text = (ROOT / "README.md").read_text("utf-8")
    targets = re.findall(r"\]\(([^):#]+)(?:#[^)]*)?\)", text)
    assert targets
    assert [each for each in targets if not (ROOT / each).exists()] == []


def test_times_of_the_readme_are_those_of_the_benchmarks():
    readme = (ROOT / "README.md").read_text("utf-8")
    times = re.findall(r"[\d.]+ ms", readme)
    measured = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    assert len(times) >= 8
    assert [each for each in times if each not in measured] == []
    rows = re.findall(r"^\|[^|]*\| ([\d.]+) ms \|(.*)\|$", readme, re.MULTILINE)
    for own, others in rows:
        for time, multiple in re.findall(r"([\d.]+) ms \(([\d.]+)×\)", others):
            assert f"{float(time) / float(own):.1f}" == multiple


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_models_of_the_pages_can_be_highlighted(page):
    """What the lexer does not know is a warning of the build, and so an error."""
    pytest.importorskip("pygments")
    from pygments.token import Error

    from hcmodel.grammar.lexer import HCLexer

    for model in re.findall(
        r"^```hc\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
    ):
        wrong = [text for kind, text in HCLexer().get_tokens(model) if kind is Error]
        assert wrong == []
