"""Text to tokens to phrases: the rules of lines, brackets and comments, and the limits on size.

A phrase is one statement or one constraint. It ends with its line or `;`, and goes on inside
brackets and after an operator, a comma, `:`, `=` or a statement keyword. Since keywords are
reserved, a keyword at the start of a line always opens a new phrase, which is where the parser
takes up after a mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field

from lark import Token

from hcmodel.grammar.diagnostics import Diagnostic, GrammarError
from hcmodel.grammar.keywords import KEYWORDS, misspelt_keyword
from hcmodel.grammar.syntax import Comment, Span
from hcmodel.records import dataclass

MAX_CHARACTERS = 262_144  # of one file
MAX_TOKENS = 50_000
MAX_NESTING = 50  # brackets inside brackets
MAX_NAME_LENGTH = 100
MAX_NUMBER_LENGTH = 40

OPERATORS = {"SIGN", "MULTIPLY", "POWER", "COMPARE", "RANGE", "AND", "OR"}
CONTINUES = {*KEYWORDS, *OPERATORS, "COMMA", "COLON", "EQUAL", "IN", "FOR", "IF", "NOT"}
CLOSING = {"(": ")", "[": "]", "{": "}"}

# Commands of AMPL, GAMS and JuMP, which people write into the model.
COMMANDS = ("solve", "display", "option", "options", "print", "printf", "end", "optimize", "reset")

Report = Callable[[Diagnostic], None]


@dataclass(slots=True)
class Phrase:
    """The tokens of one statement or constraint; a broken one was reported and is not parsed."""

    tokens: list[Token] = field(default_factory=list)
    is_constraint: bool = False
    broken: bool = False


def span_of(first: Token, last: Token | None = None) -> Span:
    """The span from one token to another, or of one token."""
    last = last or first
    return Span(first.line or 1, first.column or 1, last.end_line or 1, last.end_column or 1)


def quote(text: str) -> str:
    """The text in back-quotes, shortened where it is long."""
    return f"`{text}`" if len(text) <= 40 else f"`{text[:37]}...`"


def check_size(text: str) -> None:
    """Refuse a text that is too long before anything looks at it."""
    if len(text) > MAX_CHARACTERS:
        raise GrammarError(
            (
                Diagnostic(
                    f"the file has {len(text)} characters; the limit is {MAX_CHARACTERS}",
                    "keep arrays in a data file and declare them with `param`",
                    Span(1, 1, 1, 1),
                ),
            )
        )


def split_comments(stream: Iterable[Token]) -> tuple[list[Token], list[Comment]]:
    """Comments apart from the other tokens, one line end where several stand, limits kept."""
    tokens: list[Token] = []
    comments: list[Comment] = []
    for token in stream:
        if token.type == "COMMENT":
            comments.append(Comment(token.value.rstrip(), span=span_of(token)))
            continue
        if token.type == "NEWLINE" and tokens and tokens[-1].type == "NEWLINE":
            continue
        tokens.append(token)
        if len(tokens) > MAX_TOKENS:
            raise _fatal(
                f"the model has more than {MAX_TOKENS} words and signs",
                "keep arrays in a data file and declare them with `param`",
                token,
            )
        if token.type == "NAME" and len(token.value) > MAX_NAME_LENGTH:
            raise _fatal(f"this name is longer than {MAX_NAME_LENGTH} characters", None, token)
        if token.type == "NUMBER" and len(token.value) > MAX_NUMBER_LENGTH:
            raise _fatal(f"this number is longer than {MAX_NUMBER_LENGTH} characters", None, token)
    return tokens, comments


def _fatal(message: str, hint: str | None, token: Token) -> GrammarError:
    return GrammarError((Diagnostic(message, hint, span_of(token)),))


def cut(tokens: Sequence[Token], report: Report) -> list[Phrase]:
    """The phrases of a model; what is wrong with brackets and line starts is reported."""
    return _Cutter(tokens, report).run()


class _Cutter:
    """The state of one pass over the tokens."""

    def __init__(self, tokens: Sequence[Token], report: Report) -> None:
        self.tokens = tokens
        self.report = report
        self.phrases: list[Phrase] = []
        self.phrase = Phrase()
        self.open: list[Token] = []
        self.in_section = False

    def run(self) -> list[Phrase]:
        position = 0
        while position < len(self.tokens):
            token = self.tokens[position]
            position += 1
            if token.type == "NEWLINE":
                self._end_line(position)
            elif token.type == "SEMICOLON":
                self._semicolon(token)
            elif token.type == "SUBJECT_TO" and not self.phrase.tokens:
                self.in_section = True
                position = self._skip_colon(position)
            else:
                self._take(token, position)
                if token.type in KEYWORDS and len(self.phrase.tokens) == 1:
                    position = self._skip_colon(position)
        self._close_all()
        self._finish()
        return self.phrases

    def _take(self, token: Token, position: int) -> None:
        if not self.phrase.tokens and token.type in OPERATORS | {"EQUAL", "COMMA", "TRANSPOSE"}:
            self._leading_operator(token, position)
        self.phrase.tokens.append(token)
        if token.value in CLOSING:
            self.open.append(token)
            if len(self.open) > MAX_NESTING:
                raise _fatal(
                    f"brackets are nested more than {MAX_NESTING} deep",
                    "name the parts with `let`",
                    token,
                )
        elif token.value in CLOSING.values():
            self._close(token)

    def _leading_operator(self, token: Token, position: int) -> None:
        before = self.tokens[position - 2] if position >= 2 else None
        if before is not None and before.type != "NEWLINE":
            return  # after `;`, where a constraint may begin with a sign
        if token.type == "SIGN" and self._opens_section(position - 1):
            return
        if self.phrases:
            self.phrases[-1].broken = True  # it was meant to go on
        hint = f"a statement goes on after an operator: end the line above with {quote(token)}"
        if self.in_section and token.type == "SIGN":
            hint += "; if this is a constraint of its own, give it a name"
        self._break(f"a line cannot begin with {quote(token)}", hint, token)

    def _opens_section(self, position: int) -> bool:
        """Whether `subject to` stands before this position, on this line or above."""
        while position > 0 and self.tokens[position - 1].type in ("NEWLINE", "COLON"):
            position -= 1
        return position > 0 and self.tokens[position - 1].type == "SUBJECT_TO"

    def _skip_colon(self, position: int) -> int:
        if position < len(self.tokens) and self.tokens[position].type == "COLON":
            keyword = self.tokens[position - 1]
            self.report(
                Diagnostic(
                    f"no `:` after {quote(keyword)}",
                    "remove the `:`",
                    span_of(self.tokens[position]),
                )
            )
            return position + 1
        return position

    def _end_line(self, position: int) -> None:
        if position == len(self.tokens) or self.tokens[position].type in KEYWORDS:
            opens_phrase = True
        else:
            last = self.phrase.tokens[-1].type if self.phrase.tokens else ""
            opens_phrase = last not in {"COLON", *KEYWORDS} and self._is_label(position)
        if self.open:
            if opens_phrase:
                self._close_all()
                self._finish()
        elif self.phrase.tokens and (opens_phrase or self.phrase.tokens[-1].type not in CONTINUES):
            self._finish()

    def _is_label(self, position: int) -> bool:
        """Whether the tokens from here are `name:` or `name[… in …]:`."""
        tokens = self.tokens
        if tokens[position].type != "NAME" or position + 1 == len(tokens):
            return False
        position += 1
        if tokens[position].type == "LSQB":
            depth = 0
            while position < len(tokens) and tokens[position].type != "NEWLINE":
                depth += {"LSQB": 1, "RSQB": -1}.get(tokens[position].type, 0)
                position += 1
                if depth == 0:
                    break
        return position < len(tokens) and tokens[position].type == "COLON"

    def _semicolon(self, token: Token) -> None:
        if not self.open:
            self._finish()
        elif not self.phrase.broken:
            hint = "separate with `,`"
            if self.open[-1].type == "LSQB":
                hint += "; a matrix is a list of rows: `[[1, 2], [3, 4]]`"
            self._break("`;` inside brackets", hint, token)

    def _close(self, token: Token) -> None:
        if not self.open:
            self._break(f"{quote(token)} closes nothing", "remove it or add the opening one", token)
        elif CLOSING[self.open[-1].value] == token.value:
            self.open.pop()
        else:
            opening = self.open.pop()
            wanted = CLOSING[opening.value]
            if any(CLOSING[each.value] == token.value for each in self.open):
                message = f"{quote(opening)} is never closed"
                while CLOSING[self.open.pop().value] != token.value:
                    pass
            else:
                message = f"{quote(opening)} is closed by {quote(token)}"
            self._break(message, f"a {quote(wanted)} belongs to it", opening)

    def _close_all(self) -> None:
        if self.open:
            opening = self.open[-1]
            wanted = CLOSING[opening.value]
            self._break(
                f"{quote(opening)} is never closed", f"a {quote(wanted)} is missing", opening
            )
            self.open.clear()

    def _break(self, message: str, hint: str | None, token: Token) -> None:
        if not self.phrase.broken:
            self.report(Diagnostic(message, hint, span_of(token)))
        self.phrase.broken = True

    def _finish(self) -> None:
        phrase, self.phrase = self.phrase, Phrase()
        self.open.clear()
        if not phrase.tokens:
            return
        self.phrases.append(phrase)
        if phrase.tokens[0].type in KEYWORDS:
            self.in_section = any(each.type == "SUBJECT_TO" for each in phrase.tokens)
            return
        found = misspelt_keyword(phrase.tokens)
        if found is not None and not phrase.broken:
            self._misspelt(phrase, *found)
            return
        phrase.is_constraint = True
        if not self.in_section and not phrase.broken:
            self._outside_section(phrase)

    def _misspelt(self, phrase: Phrase, keyword: str, length: int) -> None:
        words = phrase.tokens[:length]
        written = "".join(
            (" " if index and word.type == "NAME" == words[index - 1].type else "") + word.value
            for index, word in enumerate(words)
        )
        self.report(
            Diagnostic(
                f"unknown statement {quote(written)}",
                f"did you mean `{keyword}`?",
                span_of(words[0], words[-1]),
            )
        )
        phrase.broken = True
        self.in_section = keyword == "subject to"
        rest = phrase.tokens[length:]
        if self.in_section and rest:
            self.phrases.append(Phrase(rest, is_constraint=True))

    def _outside_section(self, phrase: Phrase) -> None:
        first = phrase.tokens[0]
        types = [each.type for each in phrase.tokens]
        if "COMPARE" in types or types[:2] == ["NAME", "COLON"]:
            message = "a constraint outside the constraint section"
            hint = "put `subject to` on a line above the constraints"
            self.in_section = True  # one such message is enough
        elif types[:2] == ["NAME", "EQUAL"]:
            message = "a statement begins with a keyword"
            hint = f"write `let {first} = …` to name an expression"
        elif first.value in COMMANDS:
            message = f"a model has no command {quote(first)}"
            hint = "a file says what the model is; `hcmodel solve FILE` solves it and prints the result"
        elif any(each in ("UNKNOWN", "FOREIGN", "LBRACE", "RBRACE") for each in types):
            return  # the parser explains the character, which is the likelier mistake
        else:
            message = f"expected a statement, found {quote(first)}"
            hint = "statements begin with " + ", ".join(f"`{each}`" for each in KEYWORDS.values())
        self.report(Diagnostic(message, hint, span_of(first)))
        phrase.broken = True
