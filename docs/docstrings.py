"""Docstrings for Sphinx: they are plain text with `code`, and Sphinx reads reStructuredText.

A star, a bar or an underscore outside of code has no meaning in our docstrings, and is escaped.
"""

from __future__ import annotations

import re
from typing import Any

CODE = re.compile(r"(``[^`]+``|`[^`]+`)")
SPECIAL = re.compile(r"([*|]|(?<=\w)_(?!\w))")


def process(
    app: Any, what: str, name: str, documented: Any, options: Any, lines: list[str]
) -> None:
    """The hook `autodoc-process-docstring`: changes the lines in place."""
    if any(line.lstrip().startswith((".. ", ":param")) for line in lines):
        return  # written for Sphinx
    literal = False
    for number, line in enumerate(lines):
        if line.strip() and not line.startswith(" "):
            literal = False
        if not literal and not line.startswith("    "):
            lines[number] = escaped(line)
        if line.rstrip().endswith("::"):
            literal = True


def escaped(line: str) -> str:
    """The line with signs outside of code escaped; code that names nothing stays code."""
    parts = CODE.split(line)
    for number, part in enumerate(parts):
        if number % 2 == 0:
            parts[number] = SPECIAL.sub(r"\\\1", part)
        elif not re.fullmatch(r"`[\w.]+`", part) and not part.startswith("``"):
            parts[number] = f"`{part}`"  # an expression: a literal, not a name
    return "".join(parts)
