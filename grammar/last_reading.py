"""What the last reading of a text found, line by line and statement by statement.

An editor reads the same text again after every key. Lines that it had before are not cut into tokens
again, statements that it had before are not parsed again; those that stand on another line now are moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import TypeAlias

from lark import Token

from hcmodel.grammar import syntax
from hcmodel.grammar.phrases import Phrase
from hcmodel.records import dataclass

Key: TypeAlias = tuple[object, ...]


@dataclass
class Memory:
    """Tokens by line and nodes by statement, with the line on which they stood."""

    lines: dict[str, tuple[int, list[Token]]] = field(default_factory=dict)
    statements: dict[Key, tuple[int, list[syntax.Node]]] = field(default_factory=dict)

    def tokens(self, text: str, lex: Callable[[str], Iterable[Token]]) -> Iterator[Token]:
        """The tokens of a text. Their positions are lines and columns, as no token spans two lines."""
        before, self.lines = self.lines, {}
        rows = text.split("\n")
        for number, row in enumerate(rows, 1):
            known = self.lines.get(row) or before.get(row)
            if known is None:
                known = 1, list(lex(row))
            line, tokens = known
            if line != number:
                tokens = [_on_line(token, number) for token in tokens]
            self.lines[row] = number, tokens
            yield from tokens
            if number < len(rows):
                yield Token("NEWLINE", "\n", 0, number, len(row) + 1, number + 1, 1, 0)

    def parsed(
        self, phrases: Iterable[Phrase], parse: Callable[[Phrase], list[syntax.Node]]
    ) -> Iterator[list[syntax.Node]]:
        """The nodes of each phrase; only those that are new are parsed."""
        before, self.statements = self.statements, {}
        for phrase in phrases:
            first = phrase.tokens[0].line or 1
            places = ((each.line or 1) - first for each in phrase.tokens)
            words = ((each.type, each.value, each.column) for each in phrase.tokens)
            key = (phrase.is_constraint, *places, *words)
            known = self.statements.get(key) or before.get(key)
            line, nodes = (first, parse(phrase)) if known is None else known
            if line != first:
                nodes = [syntax.moved(node, first - line) for node in nodes]
            if nodes:  # what has a mistake is explained each time
                self.statements[key] = first, nodes
            yield nodes


def _on_line(token: Token, line: int) -> Token:
    return Token(token.type, token.value, 0, line, token.column, line, token.end_column, 0)
