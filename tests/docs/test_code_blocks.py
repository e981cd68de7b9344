"""What the pages show is what the code does: their Python blocks run and print the text under them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.code_blocks import differences, examples, matches, updated
from tests.processes import run_python

ROOT = Path(__file__).parents[2]
RUNNER = Path(__file__).with_name("code_blocks.py")
# Pages whose code needs an extra.
NEEDED = {"method-ipopt.md": "casadi"}
PAGES = [page for page in sorted((ROOT / "docs").glob("*.md")) if examples(page.read_text("utf-8"))]


def test_pages_with_code_are_found():
    assert "getting-started.md" in [page.name for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_print_what_the_page_shows(page, tmp_path):
    if page.name in NEEDED:
        pytest.importorskip(NEEDED[page.name])
    # A process of its own: pages add atoms and methods to the tables, and write files.
    done = run_python([str(RUNNER), str(page)], tmp_path)
    hint = f"{page.name} shows another output; see tests/docs/code_blocks.py --update\n"
    assert done.returncode == 0, hint + done.stdout + done.stderr


def test_another_output_is_reported():
    page = "```python\nprint(1)\n```\n\n```text\n2\n```\n"
    assert len(differences(page, "page.md")) == 1


def test_an_update_writes_what_was_printed():
    page = "```python\nprint(1)\n```\n\n```text\n2\n```\n\nprose\n"
    mended = updated(page, differences(page, "page.md"))
    assert mended == page.replace("2", "1")


def test_output_that_the_page_does_not_show_is_reported():
    assert len(differences("```python\nprint(1)\n```\n", "page.md")) == 1


def test_blocks_share_one_namespace():
    page = "```python\na = 1\n```\nthen\n```python\nprint(a)\n```\n```text\n1\n```\n"
    assert differences(page, "page.md") == []


@pytest.mark.parametrize(
    ("expected", "printed", "fits"),
    [
        ("took … s\n", "took 0.3 s\n", True),
        ("took … s\n", "took  s\n", False),
        ("took … s\n", "took 0.3 s\nmore\n", False),
        ("a\n…\nc\n", "a\nb\nb\nc\n", True),
        ("a\n…\nc\n", "a\nb\n", False),
    ],
)
def test_an_ellipsis_stands_for_what_varies(expected, printed, fits):
    assert matches(expected, printed) is fits
