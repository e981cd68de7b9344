"""Runs the Python blocks of a page, in order and in one namespace, and checks what they print.

A ```python block whose next block is ```text must print just that; any other must print nothing. In
the expected text `…` stands for anything on its line, and a line that is only `…` for any lines.

    python tests/docs/code_blocks.py PAGE             prints each difference and returns their number
    python tests/docs/code_blocks.py PAGE --update    writes what was printed into the page instead
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    """A block of code, the line of the page it starts at, and the place of its output, if any."""

    code: str
    line: int
    output: str
    place: tuple[int, int] | None


@dataclass(frozen=True)
class Difference:
    """An example that printed something else."""

    example: Example
    printed: str

    def __str__(self) -> str:
        line = self.example.line + 1
        return f"line {line}: the block prints\n{self.printed}and shows\n{self.example.output}"


def examples(text: str) -> list[Example]:
    """The Python blocks of a page with the output shown under them."""
    fences = list(FENCE.finditer(text))
    found = []
    for fence, below in zip(fences, [*fences[1:], None], strict=False):
        if fence[1] == "python":
            line = text.count("\n", 0, fence.start(2))
            shown = below if below is not None and below[1] == "text" else None
            output = "" if shown is None else shown[2]
            found.append(Example(fence[2], line, output, None if shown is None else shown.span(2)))
    return found


def matches(expected: str, printed: str) -> bool:
    """Whether `printed` is `expected`, `…` standing for what varies."""
    pattern = ""
    for line in _lines(expected):
        if line.strip() == "…":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += "[^\n]+?".join(re.escape(part) for part in line.split("…")) + "\n"
    return re.fullmatch(pattern, "".join(line + "\n" for line in _lines(printed))) is not None


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def differences(text: str, name: str) -> list[Difference]:
    """Run a page and report each block that prints something else."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    found = []
    for example in examples(text):
        code = compile("\n" * example.line + example.code, name, "exec")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, namespace)
        if not matches(example.output, printed.getvalue()):
            found.append(Difference(example, printed.getvalue()))
    return found


def updated(text: str, found: list[Difference]) -> str:
    """The page with what was printed; put the `…` back by hand where something varies."""
    for difference in reversed(found):
        if difference.example.place is not None:
            start, stop = difference.example.place
            text = text[:start] + difference.printed + text[stop:]
    return text


if __name__ == "__main__":
    page = Path(sys.argv[1]).resolve()
    text = page.read_text(encoding="utf-8")
    found = differences(text, page.name)
    if "--update" in sys.argv[2:]:
        page.write_text(updated(text, found), encoding="utf-8")
    else:
        print("\n".join(str(difference) for difference in found))
        sys.exit(min(len(found), 100))
