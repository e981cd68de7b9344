"""Tables of the pages are those of the code, and links between pages lead somewhere."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
GENERATORS = ("generate_atoms", "generate_coordinates", "generate_methods")


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


def test_the_index_names_every_page():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    pages = {page.name for page in DOCS.glob("*.md")} - {"index.md"}
    assert {page for page in pages if f"({page})" not in index} == set()
