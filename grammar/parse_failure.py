"""The place where a statement does not parse, and what was expected there."""

from __future__ import annotations

from collections.abc import Set

from lark import Token

from hcmodel.grammar.diagnostics import Diagnostic
from hcmodel.grammar.phrases import quote, span_of
from hcmodel.grammar.syntax import Span
from hcmodel.records import dataclass

EXPRESSION = {"NAME", "NUMBER", "LPAR", "LSQB", "SIGN"}
ENDS_OPERAND = {"NAME", "NUMBER", "RPAR", "RSQB", "TRANSPOSE"}
WORDS = {
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a string",
    "COMPARE": "a comparison",
    "SIGN": "`+` or `-`",
    "MULTIPLY": "`*`, `/` or `@`",
    "POWER": "`^`",
    "TRANSPOSE": "`.T`",
    "RANGE": "`..`",
    "EQUAL": "`=`",
    "COLON": "`:`",
    "COMMA": "`,`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "IN": "`in`",
    "FOR": "`for`",
    "IF": "`if`",
    "AND": "`and`",
    "OR": "`or`",
    "NOT": "`not`",
    "$END": "the end of the statement",
}


@dataclass(frozen=True, slots=True)
class Failure:
    """Where a phrase stopped: at `tokens[position]`, or behind them all."""

    tokens: list[Token]
    position: int
    accepts: Set[str]
    is_constraint: bool

    @property
    def token(self) -> Token | None:
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    @property
    def kind(self) -> str:
        """The type of the token it stopped at, "" at the end."""
        return self.token.type if self.token is not None else ""

    @property
    def text(self) -> str:
        return str(self.token) if self.token is not None else ""

    @property
    def before(self) -> Token:
        """The token before it (the first one where there is none)."""
        return self.tokens[max(self.position - 1, 0)]

    @property
    def after(self) -> Token | None:
        return self.tokens[self.position + 1] if self.position + 1 < len(self.tokens) else None

    @property
    def statement(self) -> str:
        """The keyword's token type, or "CONSTRAINT"."""
        return "CONSTRAINT" if self.is_constraint else self.tokens[0].type

    @property
    def span(self) -> Span:
        return span_of(self.token or self.tokens[-1])

    @property
    def wants_expression(self) -> bool:
        return self.accepts >= EXPRESSION

    def enclosing(self) -> Token | None:
        """The innermost bracket that is open here."""
        opened: list[Token] = []
        for token in self.tokens[: self.position]:
            if token.type in ("LPAR", "LSQB"):
                opened.append(token)
            elif token.type in ("RPAR", "RSQB") and opened:
                opened.pop()
        return opened[-1] if opened else None

    def say(self, message: str, hint: str | None = None, span: Span | None = None) -> Diagnostic:
        return Diagnostic(message, hint, span or self.span)


def expected(at: Failure) -> Diagnostic:
    """The message of last resort."""
    expression = at.wants_expression and at.position > 0
    wanted = "an expression" if expression else list_words(at.accepts)
    if at.token is None:
        return at.say(f"expected {wanted} after {quote(at.tokens[-1])}")
    return at.say(f"expected {wanted}, found {quote(at.text)}")


def list_words(accepts: Set[str]) -> str:
    """Token types in words, joined by commas and `or`."""
    operators = {"SIGN", "MULTIPLY", "POWER"}
    kinds = set(accepts)
    words = []
    if kinds >= EXPRESSION:
        words.append("an expression")
        kinds -= EXPRESSION
    if kinds >= operators:
        kinds -= {*operators, "TRANSPOSE", "LPAR", "LSQB"}
        kinds.discard("RANGE")
        words.append("an operator")
    words += [WORDS[each] for each in WORDS if each in kinds]
    if not words:
        return "the end of the statement"
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
