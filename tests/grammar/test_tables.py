"""The stored LALR tables are those of the grammar, and any other are built."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import lark
import pytest

from hcmodel.grammar import parser, tables

GRAMMAR = parser.GRAMMAR_FILE.read_text(encoding="utf-8")
TEXT = "var x[2] in [0.4, 3]\nminimize x[1]*x[2] + 4/x[1]\nsubject to\n  area: x[1]*x[2] <= 1\n"


def test_the_stored_tables_are_current() -> None:
    stored = json.loads(tables.TABLES_FILE.read_text(encoding="utf-8"))
    if lark.__version__ != stored["lark"]:
        pytest.skip("the tables are for another version of lark")
    built = json.loads(tables.serialized(parser.build_lark(), GRAMMAR))
    hint = "run python -m hcmodel.grammar.tables"
    assert stored["of"] == built["of"], hint
    assert stored["data"]["options"] == built["data"]["options"], hint
    assert _terminals(stored) == _terminals(built), hint
    # states are numbered in another order each time
    states = [len(each["data"]["parser"]["parser"]["states"]) for each in (stored, built)]
    assert states[0] == states[1], hint


def _terminals(found: dict[str, Any]) -> dict[str, Any]:
    """Terminals and rules; releases of Python differ in the number for a pattern of any length."""
    memo: dict[str, Any] = copy.deepcopy(found["memo"])
    for each in memo.values():
        pattern = each.get("pattern", {})
        if "_width" in pattern:
            pattern["_width"] = [min(width, 2**32 - 1) for width in pattern["_width"]]
    return memo


def test_another_grammar_is_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert tables.stored(GRAMMAR + "// changed\n", {}) is None
    expected = parser.parse(TEXT)
    monkeypatch.setattr(tables, "TABLES_FILE", tmp_path / "none.json")
    assert tables.stored(GRAMMAR, {}) is None
    parser._lark.cache_clear()
    try:
        assert parser.parse(TEXT) == expected
    finally:
        parser._lark.cache_clear()
