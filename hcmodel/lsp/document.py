"""What an editor can ask of the text of a model: mistakes, descriptions, completions, definitions.

Nothing here knows of a protocol: places are those of the grammar, lines and columns from 1. A text that
does not parse keeps the names of the last one that did.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hcmodel import grammar
from hcmodel.errors import HCError, HCWarning
from hcmodel.expressions.leaves import Expression, Parameter, Variable
from hcmodel.expressions.printing import infix
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.bits import AFFINE, CONCAVE, CONVEX
from hcmodel.facts.curvature import Curvatures, can_be_log
from hcmodel.facts.node_facts import Facts
from hcmodel.frontend.build import Builder
from hcmodel.frontend.data import collect
from hcmodel.frontend.mistakes import Collector
from hcmodel.frontend.names import Kind, declared_names, function_names
from hcmodel.grammar.diagnostics import Diagnostic
from hcmodel.grammar.keywords import KEYWORDS
from hcmodel.grammar.last_reading import Memory
from hcmodel.grammar.syntax import Name, Span
from hcmodel.records import dataclass

DATA_ENDINGS = (".json", ".npz")
NO_DATA = "has no data"
CURVATURES = {AFFINE: "affine", CONVEX: "convex", CONCAVE: "concave"}
# Characters of an expression that a description shows.
LONGEST = 200


@dataclass(frozen=True)
class Problem:
    """A mistake, or a remark that is none: missing data, a variable that is not used."""

    message: str
    span: Span
    is_error: bool = True


@dataclass(frozen=True)
class Completion:
    """A word that fits, what it is, and a line about it."""

    word: str
    kind: str
    about: str = ""


class Document:
    """One text; `update` reads it again."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.text = ""
        self.problems: tuple[Problem, ...] = ()
        self._memory = Memory()
        self._builder: Builder | None = None
        self._data: tuple[tuple[Any, ...], Any] = ((), None)

    def update(self, text: str) -> tuple[Problem, ...]:
        """Read a text, and return what is wrong with it."""
        self.text = text
        self.problems = tuple(self._read(text))
        return self.problems

    def _read(self, text: str) -> Iterator[Problem]:
        name = None if self.path is None else str(self.path)
        try:
            tree = grammar.parse(text, name, self._memory)
        except grammar.GrammarError as error:
            yield from map(_problem, error.diagnostics)
            return
        try:
            arrays = self._arrays()
        except HCError as error:
            yield Problem(
                f"the data file next to the model: {error}", Span(1, 1, 1, 2), is_error=False
            )
            arrays = {}
        builder = Builder(tree, arrays, Collector(text, name), self.path)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", HCWarning)
            try:
                builder.finished()
            except HCError as error:
                if not error.diagnostics:
                    yield Problem(str(error), Span(1, 1, 1, 2))
                yield from map(_problem, error.diagnostics)
        self._builder = builder
        for warning in caught:
            yield Problem(str(warning.message), Span(1, 1, 1, 2), is_error=False)

    def _arrays(self) -> Any:
        """The data of a file with the same name beside the model, read again when it changes."""
        if self.path is None:
            return {}
        files = [self.path.with_suffix(ending) for ending in DATA_ENDINGS]
        found = [each for each in files if each.is_file()][:1]
        key = tuple((str(each), each.stat().st_mtime_ns) for each in found)
        if key != self._data[0] or self._data[1] is None:
            self._data = key, collect(str(found[0]) if found else None, None)
        return self._data[1]

    # ---- what stands at a place

    def word(self, line: int, column: int) -> tuple[str, Span] | None:
        """The name that a place is in or just behind."""
        lines = self.text.splitlines()
        if not 1 <= line <= len(lines):
            return None
        text = lines[line - 1]
        start = end = min(column - 1, len(text))
        while start > 0 and _in_name(text[start - 1]):
            start -= 1
        while end < len(text) and _in_name(text[end]):
            end += 1
        word = text[start:end]
        if not word or word[0].isdigit():
            return None
        return word, Span(line, start + 1, line, end + 1)

    def hover(self, line: int, column: int) -> tuple[str, Span] | None:
        """A description of the name, function or operation at a place, as Markdown."""
        found = self.word(line, column)
        if found is not None:
            described = self._described(found[0])
            if described is not None:
                return described, found[1]
        place = self._operation(line, column)
        if place is None:
            return None
        expression, span = place
        text = infix(expression, first=1)
        shown = text if len(text) <= LONGEST else text[:LONGEST] + "…"
        return f"```hc\n{shown}\n```\n{facts_line(expression)}", span

    def _described(self, word: str) -> str | None:
        symbol = None if self._builder is None else self._builder.names.get(word)
        if symbol is not None:
            head = f"**{symbol.kind.value.strip('`')} `{word}`**"
            if symbol.value is None:
                return f"{head}\n\nnot known yet: its declaration has a mistake or lacks data"
            node = symbol.value.node
            lines = [head, facts_line(node) or _number(symbol.data)]
            if isinstance(node, Variable):
                lines.append(node.set.summary())
            return "\n\n".join(line for line in lines if line)
        if word in ATOMS and word in function_names():
            atom = ATOMS[word]
            return f"**function `{word}`**\n\n{atom.documentation}"
        return f"**function `{word}`**" if word in function_names() else None

    def _operation(self, line: int, column: int) -> tuple[Expression, Span] | None:
        """The smallest operation whose text holds a place."""
        if self._builder is None:
            return None
        places = self._builder.names.places.items()
        inside = [(node, span) for node, span in places if _holds(span, line, column)]
        return min(inside, key=lambda pair: _length(pair[1]), default=None)

    def definition(self, line: int, column: int) -> Span | None:
        """Where the name at a place is declared."""
        found = self.word(line, column)
        if found is None or self._builder is None:
            return None
        for name in (*declared_names(self._builder.model), *self._other_names()):
            if name.identifier == found[0]:
                return name.span
        return None

    def _other_names(self) -> Iterator[Name]:
        assert self._builder is not None
        for node in grammar.walk(self._builder.model):
            for field in ("name", "index"):
                name = getattr(node, field, None)
                if isinstance(name, Name):
                    yield name

    def completions(self) -> list[Completion]:
        """Every word that a model can go on with: its own names first."""
        found: dict[str, Completion] = {}
        if self._builder is not None:
            for name in declared_names(self._builder.model):
                symbol = self._builder.names.get(name.identifier)
                kind = Kind.LET if symbol is None else symbol.kind
                about = "" if symbol is None or symbol.value is None else _shape(symbol.value.node)
                found[name.identifier] = Completion(name.identifier, kind.value.strip("`"), about)
        for word in function_names():
            about = ATOMS[word].documentation.split("\n")[0] if word in ATOMS else ""
            found.setdefault(word, Completion(word, "function", about))
        for group in KEYWORDS.values():
            for word in group.split():
                found.setdefault(word, Completion(word, "keyword"))
        return list(found.values())

    def formatted(self) -> str | None:
        """The text in the standard layout; None where it does not parse."""
        try:
            return grammar.format_model(self.text, self._memory)
        except grammar.GrammarError:
            return None


def facts_line(node: Any) -> str:
    """Shape, sign and curvature of an expression in words."""
    if not isinstance(node, Expression):
        return ""
    parts = [_shape(node)]
    facts = Facts()
    known = facts[node]
    if known.sign.value != "unknown":
        parts.append(known.sign.value)
    variables = node.variables()
    if not variables:
        value = node.value
        if isinstance(node, Parameter) and value is None:
            parts.append("no value")
        elif value is not None and node.size == 1:
            parts.append(f"= {float(np.asarray(value).reshape(-1)[0]):g}")
        return ", ".join([*parts, "constant"] if not isinstance(node, Parameter) else parts)
    plain, _, _ = Curvatures(facts, 0).channels[known.number]
    parts.append(CURVATURES.get(plain, "neither convex nor concave by the rules"))
    if all(can_be_log(variable) for variable in variables):
        logs = 0
        for variable in variables:
            logs |= facts[variable].variables
        inner, log, _ = Curvatures(facts, logs).channels[known.number]
        words = CURVATURES.get(log)
        if words is not None:
            parts.append(f"log-log {words}")
        elif inner in CURVATURES:
            parts.append(f"{CURVATURES[inner]} in logarithms")
    return ", ".join(parts)


def _shape(node: Any) -> str:
    if not isinstance(node, Expression):
        return ""
    return "scalar" if node.shape == () else "×".join(str(size) for size in node.shape)


def _number(data: Any) -> str:
    """The value of a parameter that shapes or ranges depend on, where it is one number."""
    if data is None or np.size(data) != 1:
        return ""
    return f"scalar, = {float(np.asarray(data).reshape(-1)[0]):g}, fixed when the model is loaded"


def _problem(diagnostic: Diagnostic) -> Problem:
    hint = f"\n{diagnostic.hint}" if diagnostic.hint else ""
    missing = diagnostic.message.endswith(NO_DATA)
    return Problem(diagnostic.message + hint, diagnostic.span, is_error=not missing)


def _in_name(character: str) -> bool:
    return character == "_" or character.isalnum()


def _holds(span: Span, line: int, column: int) -> bool:
    return (span.line, span.column) <= (line, column) < (span.end_line, span.end_column)


def _length(span: Span) -> tuple[int, int]:
    return span.end_line - span.line, span.end_column - span.column
