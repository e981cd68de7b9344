"""Text to syntax tree: reads a model statement by statement and collects every mistake of the file.

The LALR tables are read on first use, or built where the stored ones do not fit, and kept. A statement
that does not parse is explained and left out; the next one is read as if nothing had happened, so that
one run shows all mistakes, up to ten.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

from lark import Lark, Token, UnexpectedInput

from hcmodel.grammar import syntax, tables
from hcmodel.grammar.builder import RejectedError, TreeBuilder, check_depth
from hcmodel.grammar.diagnostics import Diagnostic, GrammarError, normalize_newlines
from hcmodel.grammar.habits import NO_NAME
from hcmodel.grammar.last_reading import Memory
from hcmodel.grammar.parse_failure import Failure
from hcmodel.grammar.phrases import Phrase, check_size, cut, split_comments
from hcmodel.grammar.syntax import Span

MAX_DIAGNOSTICS = 10
GRAMMAR_FILE = Path(__file__).with_name("hcmodel.lark")
LAYOUT_TERMINALS = ("SUBJECT_TO", "SEMICOLON", "NEWLINE", "COMMENT", "FOREIGN", "UNKNOWN")


class _KeepLayout:
    """Tells lark to keep the terminals that no rule mentions; the stream passes unchanged."""

    always_accept = LAYOUT_TERMINALS

    def process(self, stream: Any) -> Any:
        return stream


def build_lark(strict: bool = False) -> Lark:
    """The LALR parser of the grammar file; `strict` also refuses ambiguous terminals."""
    return Lark(
        GRAMMAR_FILE.read_text(encoding="utf-8"),
        parser="lalr",
        lexer="basic",
        start=["statement", "constraint"],
        postlex=_KeepLayout(),
        transformer=TreeBuilder(),
        maybe_placeholders=False,
        strict=strict,
    )


@cache
def _lark() -> Lark:
    grammar = GRAMMAR_FILE.read_text(encoding="utf-8")
    given = {"postlex": _KeepLayout(), "transformer": TreeBuilder()}
    return tables.stored(grammar, given) or build_lark()


class _TooManyError(Exception):
    """Enough mistakes for one run."""


class _Collector:
    """Gathers diagnostics up to the limit."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []

    def add(self, diagnostic: Diagnostic) -> None:
        repeated = any(each.message == diagnostic.message for each in self.found)
        if repeated and diagnostic.message.endswith(NO_NAME):
            return  # a use of what a declaration could not name
        self.found.append(diagnostic)
        if len(self.found) >= 4 * MAX_DIAGNOSTICS:
            raise _TooManyError

    def sorted(self) -> tuple[Diagnostic, ...]:
        return tuple(sorted(self.found, key=_position)[:MAX_DIAGNOSTICS])


def _position(diagnostic: Diagnostic) -> tuple[int, int]:
    return diagnostic.span.line, diagnostic.span.column


def tokenize(text: str, memory: Memory | None = None) -> tuple[list[Token], list[syntax.Comment]]:
    """The tokens of a text, line ends among them, and its comments; no character is an error."""
    return split_comments(_stream(text) if memory is None else memory.tokens(text, _stream))


def _stream(text: str) -> Iterable[Token]:
    interactive = _lark().parse_interactive(text, start="statement")
    stream: Iterable[Token] = interactive.lexer_thread.lex(interactive.parser_state)  # type: ignore[no-untyped-call]
    return stream


def parse(text: str, filename: str | None = None, memory: Memory | None = None) -> syntax.Model:
    """The syntax tree of a model, or a GrammarError with all mistakes, up to ten.

    With a `memory` of the last reading only what is new in the text is read.
    """
    original = text
    text = normalize_newlines(text)
    collector = _Collector()
    statements: list[Any] = []
    comments: list[syntax.Comment] = []
    try:
        check_size(text)
        tokens, comments = tokenize(text, memory)
        whole = [phrase for phrase in cut(tokens, collector.add) if not phrase.broken]
        parsed = partial(_parse_phrase, collector=collector)
        for nodes in map(parsed, whole) if memory is None else memory.parsed(whole, parsed):
            statements += nodes
    except _TooManyError:
        pass
    except GrammarError as fatal:
        raise GrammarError(fatal.diagnostics, original, filename) from None
    _check_objectives(statements, collector)
    if collector.found:
        raise GrammarError(collector.sorted(), original, filename)
    lines = text.split("\n")
    span = Span(1, 1, len(lines), len(lines[-1]) + 1)
    return syntax.Model(tuple(statements), tuple(comments), span=span)


def _parse_phrase(phrase: Phrase, collector: _Collector) -> list[syntax.Node]:
    start = "constraint" if phrase.is_constraint else "statement"
    interactive = _lark().parse_interactive(start=start)
    position = 0
    try:
        for position, token in enumerate(phrase.tokens):  # noqa: B007
            interactive.feed_token(token)
        position = len(phrase.tokens)
        end = Token.new_borrow_pos("$END", "", phrase.tokens[-1])
        nodes: list[syntax.Node] = interactive.feed_token(end)
        for node in nodes:
            check_depth(node)
    except RejectedError as rejected:
        collector.add(rejected.diagnostic)
    except UnexpectedInput:
        from hcmodel.grammar.explain import explain  # of models with a mistake

        accepts = _accepted(phrase.tokens[:position], start)
        collector.add(explain(Failure(phrase.tokens, position, accepts, phrase.is_constraint)))
    else:
        return nodes
    return []


def _accepted(tokens: list[Token], start: str) -> set[str]:
    """What may follow these tokens. The parser that failed has reduced too far to say."""
    interactive = _lark().parse_interactive(start=start)
    for token in tokens:
        interactive.feed_token(token)
    return set(interactive.accepts())  # type: ignore[no-untyped-call]


def _check_objectives(statements: list[Any], collector: _Collector) -> None:
    objectives = [each for each in statements if isinstance(each, syntax.Objective)]
    for second in objectives[1:2]:
        first = objectives[0].span.line
        collector.found.append(
            Diagnostic(
                "a model has one objective",
                f"first declared on line {first}",
                second.span,
            )
        )
