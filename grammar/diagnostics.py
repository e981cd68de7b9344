"""What is wrong with a model, where, and how it is shown: the source line with a caret."""

from __future__ import annotations

import unicodedata

from hcmodel.grammar.syntax import Span
from hcmodel.records import dataclass

TAB_WIDTH = 4
EXCERPT_WIDTH = 100  # longer source lines are cut around the caret


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One mistake: what was found or expected, a suggestion where there is one, and the place."""

    message: str
    hint: str | None
    span: Span


class GrammarError(Exception):
    """A text that is no model; `diagnostics` holds its mistakes in the order of the text."""

    def __init__(
        self, diagnostics: tuple[Diagnostic, ...], text: str = "", filename: str | None = None
    ) -> None:
        super().__init__(diagnostics, text, filename)
        self.diagnostics = diagnostics
        self.text = text
        self.filename = filename

    def __str__(self) -> str:
        return "\n\n".join(render(each, self.text, self.filename) for each in self.diagnostics)


def normalize_newlines(text: str) -> str:
    """The text with `\\n` as its only line end and without a byte-order mark."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def render(diagnostic: Diagnostic, text: str, filename: str | None = None) -> str:
    """`file:line:column: message`, the source line, a caret under the span, and the hint."""
    span = diagnostic.span
    parts = [f"{filename or '<model>'}:{span.line}:{span.column}: {diagnostic.message}"]
    lines = normalize_newlines(text).split("\n")
    if 1 <= span.line <= len(lines):
        line = lines[span.line - 1]
        end = span.end_column - 1 if span.end_line == span.line else len(line)
        source, underline = _excerpt(line, span.column - 1, end)
        number = str(span.line)
        parts.append(f"  {number} | {source}".rstrip())
        parts.append(f"  {' ' * len(number)} | {underline}")
    if diagnostic.hint is not None:
        parts.append(f"hint: {diagnostic.hint}")
    return "\n".join(parts)


def _excerpt(line: str, start: int, end: int) -> tuple[str, str]:
    """The line as a terminal shows it, and the underline of its characters `start:end`."""
    first, last = 0, len(line)
    if last > EXCERPT_WIDTH:
        first = max(0, start - EXCERPT_WIDTH // 2)
        last = min(last, first + EXCERPT_WIDTH)
    shown = "…" if first else ""
    begin = finish = None
    width = len(shown)
    for position in range(first, last):
        if position == start:
            begin = width
        cell = _cell(line[position], width)
        shown += cell
        width += _width(cell)
        if position < max(end, start + 1):
            finish = width
    if last < len(line):
        shown += "…"
    if begin is None:  # the span stands behind the last character
        begin, finish = width, width + 1
    return shown, " " * begin + "^" + "~" * (max(finish or 0, begin + 1) - begin - 1)


def _cell(character: str, width: int) -> str:
    if character == "\t":
        return " " * (TAB_WIDTH - width % TAB_WIDTH)
    if unicodedata.category(character) in ("Cc", "Cs", "Co", "Cn", "Cf", "Zl", "Zp"):
        return "\ufffd"  # control characters must not reach a terminal
    return character


def _width(cell: str) -> int:
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1
        for each in cell
    )
