"""Tables of the pages are those of the code, and links between pages lead somewhere."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import hcmodel as hc

DOCS = Path(__file__).parents[2] / "docs"
GENERATORS = (
    "generate_architecture",
    "generate_atoms",
    "generate_coordinates",
    "generate_methods",
)


@pytest.mark.parametrize("name", GENERATORS)
def test_the_committed_page_is_what_its_generator_writes(name, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    generator = importlib.import_module(name)
    regions = importlib.import_module("regions")
    page = (DOCS / generator.PAGE).read_text(encoding="utf-8")
    hint = f"run `python docs/{name}.py` and commit the page"
    assert regions.filled(page, generator.regions()) == page, hint


def test_a_page_without_its_region_is_an_error(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    regions = importlib.import_module("regions")
    with pytest.raises(ValueError, match="exactly once"):
        regions.filled("# A page\n", {"atoms": "body"})


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([^)#:]+\.md)", text))
    assert {target for target in linked if not (DOCS / target).exists()} == set()


def toctrees(page):
    """The pages that the lists of a page name, for the navigation of the site."""
    text = (DOCS / page).read_text(encoding="utf-8")
    bodies = re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line.strip() for body in bodies for line in body.splitlines()]
    return [line for line in lines if line and not line.startswith(":")]


def test_the_navigation_names_every_page_once():
    named = [entry for page in sorted(DOCS.glob("*.md")) for entry in toctrees(page)]
    pages = {page.stem for page in DOCS.glob("*.md")} - {"index"}
    assert len(named) == len(set(named))
    assert {entry for entry in named if "/" not in entry} == pages


def test_the_api_pages_name_everything_public():
    text = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("api-*.md"))
    shown = set(re.findall(r"^\.\. auto\w+:: (\w+)$", text, re.MULTILINE))
    assert set(hc.__all__) - shown == {"__version__", "plot"}
    assert "automodule:: hcmodel.report.plot" in text
