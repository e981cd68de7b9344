"""The LALR tables of the grammar, stored beside it: building them takes longer than most solves.

They hold for one version of lark and one text of the grammar; any other builds its own. After a change of
the grammar, or of lark, `python -m hcmodel.grammar.tables` writes them again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

TABLES_FILE = Path(__file__).with_name("tables.json")
# Objects of Python, which are handed in when the tables are read.
GIVEN = ("postlex", "transformer")


def fingerprint(grammar: str) -> str:
    """What the tables depend on."""
    return hashlib.sha256(f"{lark.__version__}\n{grammar}".encode()).hexdigest()


def serialized(parser: lark.Lark, grammar: str) -> str:
    """The tables of a parser as the text of the file."""
    data, memo = parser.memo_serialize([TerminalDef, Rule])
    options = {key: value for key, value in data["options"].items() if key not in GIVEN}
    content = {
        "of": fingerprint(grammar),
        "lark": lark.__version__,
        "data": {**data, "options": options},
        "memo": memo,
    }
    return json.dumps(content, sort_keys=True, default=_listed, separators=(",", ":")) + "\n"


def stored(grammar: str, given: Mapping[str, Any]) -> lark.Lark | None:
    """The parser of the stored tables; None where they are for another grammar or lark."""
    try:
        text = TABLES_FILE.read_text(encoding="utf-8")
    except OSError:
        return None
    if fingerprint(grammar) not in text:
        return None
    content = json.loads(text, object_pairs_hook=_with_numbers)
    untyped: Any = lark.Lark
    found: lark.Lark = untyped._load_from_dict(content["data"], content["memo"], **given)
    return found


def _listed(value: Any) -> list[Any]:
    return sorted(value)


def _with_numbers(pairs: list[tuple[str, Any]]) -> dict[Any, Any]:
    """States and places in the memo are numbered, and JSON has texts as keys alone."""
    return {int(key) if key.isdigit() else key: value for key, value in pairs}


def main() -> None:
    """Write the tables."""
    from hcmodel.grammar.parser import GRAMMAR_FILE, build_lark

    grammar = GRAMMAR_FILE.read_text(encoding="utf-8")
    TABLES_FILE.write_text(serialized(build_lark(), grammar), encoding="utf-8")


if __name__ == "__main__":
    main()
