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


# Arguments that answer habits of other tools, and those that are not for users.
NOT_FOR_USERS = re.compile(r", \*\*foreign: [\w.~]+|, _\w+: [^)]*(?=\)$)")
# Classes that hcmodel makes and users read; users do not call them.
RESULTS = ("Analysis", "Certificate", "Record", "Solution", "SweepRow", "SweepTable", "ValueCurve")
# Full names of types that everybody knows by their last part.
LONG_NAMES = re.compile(r"~?(?:collections\.abc|typing|numpy|pathlib)\.(?=[A-Za-z])")


def signature(
    app: Any, what: str, name: str, documented: Any, options: Any, given: Any, returns: Any
) -> tuple[Any, Any]:
    """The hook `autodoc-process-signature`: signatures as users need them."""
    if what == "class" and name.rpartition(".")[2] in RESULTS:
        return "", None
    return tuple(None if each is None else shortened(each) for each in (given, returns))  # type: ignore[return-value]


def shortened(text: str) -> str:
    """A signature without private arguments and without the modules of well-known types."""
    text = LONG_NAMES.sub("", NOT_FOR_USERS.sub("", text))
    return text.replace("ndarray[tuple[Any, ...], dtype[float64]]", "ndarray").replace("~", "")


def escaped(line: str) -> str:
    """The line with signs outside of code escaped; code that names nothing stays code."""
    parts = CODE.split(line)
    for number, part in enumerate(parts):
        if number % 2 == 0:
            parts[number] = SPECIAL.sub(r"\\\1", part)
        elif not re.fullmatch(r"`[\w.]+`", part) and not part.startswith("``"):
            parts[number] = f"`{part}`"  # an expression: a literal, not a name
    return "".join(parts)
