"""The pages of the applications show the examples as they are, and what they print.

A ```hc block behind `<!-- file: NAME -->` is the file NAME of `examples/`, one behind
`<!-- from: NAME -->` a part of it. Sessions run in a folder with the data of the examples, and are
read as in `test_language_pages.py`.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.docs.code_blocks import matches
from tests.docs.test_language_pages import Block, blocks, compared, replay

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("application-*.md"))


def models(page: Path) -> list[Block]:
    return [block for block in blocks(page.read_text("utf-8")) if block.language == "hc"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_shows_the_examples_as_they_are(page: Path) -> None:
    assert models(page)
    for block in models(page):
        said = re.fullmatch(r"(file|from): (\S+)", block.comment)
        assert said is not None, f"line {block.line} does not say which example it shows"
        text = (ROOT / "examples" / said[2]).read_text("utf-8")
        assert block.text == text if said[1] == "file" else block.text in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_its_pictures(page: Path) -> None:
    pictures = re.findall(r"!\[[^]]+\]\((pictures/[^)]+)\)", page.read_text("utf-8"))
    assert pictures
    assert [each for each in pictures if not (ROOT / "docs" / each).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sessions_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    for data in (ROOT / "examples").glob("*.json"):
        shutil.copy(data, tmp_path)
    done = replay(page.read_text("utf-8"), tmp_path)
    assert done
    for command in done:
        hint = f"{page.name}:{command.line}: $ {command.text}\nprints\n{command.printed}"
        assert matches(compared(command.shown), compared(command.printed)), hint
