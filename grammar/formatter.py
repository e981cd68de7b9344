"""The one way to lay out a model: `hcmodel fmt`.

The formatter works on tokens, so that it can change nothing but white space, `;` and `**`: line
breaks inside a statement and comments stay, statements get lines of their own, declarations are
aligned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from lark import Token

from hcmodel.grammar.diagnostics import normalize_newlines
from hcmodel.grammar.keywords import KEYWORDS
from hcmodel.grammar.last_reading import Memory
from hcmodel.grammar.parse_failure import ENDS_OPERAND
from hcmodel.grammar.parser import parse, tokenize
from hcmodel.grammar.phrases import Phrase, cut
from hcmodel.grammar.syntax import Comment
from hcmodel.records import dataclass

INDENT = 4
ALIGNED = ("SET", "PARAM", "LET", "VAR", "START")
SEPARATORS = {
    *KEYWORDS,
    "COMMA",
    "COMPARE",
    "EQUAL",
    "COLON",
    "IN",
    "FOR",
    "IF",
    "AND",
    "OR",
    "NOT",
}
OPENING = ("LPAR", "LSQB", "LBRACE")
CLOSING = ("RPAR", "RSQB", "RBRACE")


@dataclass(slots=True)
class Row:
    """One line of the result."""

    text: str
    line: int  # where it began and ended in the source
    end_line: int
    comment: str = ""
    keyword: str = ""  # of a declaration in one row, which may be aligned
    split: int = 0  # where the aligned part of the text begins
    is_comment: bool = False


def format_model(text: str, memory: Memory | None = None) -> str:
    """The model in its standard layout; a GrammarError where it does not parse."""
    parse(text, memory=memory)
    tokens, comments = tokenize(normalize_newlines(text), memory)
    rows = _add_comments(_rows(tokens), comments)
    _indent_comments(rows)
    _align_declarations(rows)
    _align_comments(rows)
    return "".join(f"{line}\n" for line in _lines(rows))


def _rows(tokens: Sequence[Token]) -> list[Row]:
    rows: list[Row] = []
    blocks: list[tuple[Token, Phrase | None]] = []
    for phrase in cut(tokens, lambda _: None):
        blocks.append((phrase.tokens[0], phrase))
    inside = {id(token) for _, phrase in blocks if phrase for token in phrase.tokens}
    blocks += [
        (each, None) for each in tokens if each.type == "SUBJECT_TO" and id(each) not in inside
    ]
    for first, block in sorted(blocks, key=lambda item: _place(item[0])):
        if block is None:
            line = first.line or 1
            rows.append(Row("subject to", line, line))
        else:
            _add_phrase(rows, block)
    return rows


def _place(token: Token) -> tuple[int, int]:
    return token.line or 1, token.column or 1


def _add_phrase(rows: list[Row], phrase: Phrase) -> None:
    base = INDENT if phrase.is_constraint else 0
    joined = phrase.is_constraint and phrase.tokens[0].type == "SIGN"
    if joined and rows and rows[-1].text != "subject to":
        # On a line of its own it would begin with an operator.
        before = rows.pop()
        start = before.text + "; "
        added = _phrase_rows(phrase.tokens, base, start)
        added[0].line = before.line
    else:
        added = _phrase_rows(phrase.tokens, base, " " * base)
    if len(added) == 1 and phrase.tokens[0].type in ALIGNED:
        added[0].keyword = phrase.tokens[0].type
        added[0].split = _split(phrase.tokens)
    rows += added


def _phrase_rows(tokens: Sequence[Token], base: int, start: str) -> list[Row]:
    """The rows of a phrase: its own line breaks, each row indented by the brackets open there."""
    gaps = _gaps(tokens)
    rows: list[Row] = []
    opened: list[
        tuple[int, int]
    ] = []  # where the content stands, and where the closing bracket does
    text = start
    first_of_row = tokens[0]
    for index, token in enumerate(tokens):
        previous = tokens[index - 1] if index else None
        if previous is not None and token.line != previous.end_line:
            rows.append(Row(text, first_of_row.line or 1, previous.end_line or 1))
            first_of_row = token
            if not opened:
                indent = base + INDENT
            elif token.type in CLOSING:
                indent = opened[-1][1]
            else:
                indent = opened[-1][0]
            text = " " * indent
        elif previous is not None and gaps[index]:
            text += " "
        column = len(text)
        text += "^" if token == "**" else str(token)
        if token.type in OPENING:
            following = tokens[index + 1]
            if following.line == token.line:
                opened.append((len(text), column))
            else:
                indent = len(text) - len(text.lstrip())
                opened.append((indent + INDENT, indent))
        elif token.type in CLOSING:
            opened.pop()
    rows.append(Row(text, first_of_row.line or 1, tokens[-1].end_line or 1))
    return rows


def _add_comments(rows: list[Row], comments: Sequence[Comment]) -> list[Row]:
    """Comments at the end of the row that ends on their line, or on rows of their own."""
    ends = {row.end_line: row for row in rows}
    for comment in comments:
        line = comment.span.line
        if line in ends:
            ends[line].comment = comment.text
        else:
            rows.append(Row(comment.text, line, line, is_comment=True))
    return sorted(rows, key=lambda row: row.line)


# ---- spaces -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Group:
    """What stands between two separators at one bracket depth; its operators are spaced alike."""

    subscript: bool = False
    sign: bool = False
    range: bool = False
    matrix: bool = False


def _gaps(tokens: Sequence[Token]) -> list[bool]:
    """For each token, whether a space stands before it."""
    groups = list(_groups(tokens))
    gaps = [False]
    for index in range(1, len(tokens)):
        unary = tokens[index - 1].type == "SIGN" and not _is_binary(tokens, index - 1)
        gaps.append(not unary and _gap(tokens, index, groups))
    return gaps


def _gap(tokens: Sequence[Token], index: int, groups: Sequence[_Group]) -> bool:
    left, right = tokens[index - 1], tokens[index]
    tight = ("POWER", "RANGE", "TRANSPOSE")
    if left.type in OPENING or right.type in (*CLOSING, "COMMA", "TRANSPOSE"):
        return False
    if left.type in tight[:2] or right.type in tight:
        return False
    if right.type in OPENING and left.type in ENDS_OPERAND:
        return False
    if left.type == "COMMA":
        return not groups[index - 1].subscript
    if right.type == "COLON":
        return False
    if left.type == "COLON":
        return not groups[index - 1].subscript
    for position in (index, index - 1):
        token, group = tokens[position], groups[position]
        if token.type == "EQUAL":
            return not _in_brackets(tokens, position)
        if token.type == "SIGN" and _is_binary(tokens, position):
            return not (group.subscript or group.range)
        if token.type == "MULTIPLY":
            loose = not (group.subscript or group.range or group.sign)
            return group.matrix or loose
    return True


def _groups(tokens: Sequence[Token]) -> Iterator[_Group]:
    stack = [_Group()]
    for index, token in enumerate(tokens):
        if token.type in CLOSING:
            stack.pop()
        elif token.type in SEPARATORS:
            stack[-1] = _Group(subscript=stack[-1].subscript)
        elif token.type == "SIGN" and _is_binary(tokens, index):
            stack[-1].sign = True
        elif token.type == "RANGE":
            stack[-1].range = True
        elif token == "@":
            stack[-1].matrix = True
        yield stack[-1]
        if token.type in OPENING:
            stack.append(_Group(subscript=_is_subscript(tokens, index)))


def _is_binary(tokens: Sequence[Token], index: int) -> bool:
    return index > 0 and tokens[index - 1].type in ENDS_OPERAND


def _is_subscript(tokens: Sequence[Token], index: int) -> bool:
    """Whether a bracket opens plain indices: `x[1,2]`, unlike `[1, 2]` and `c[i in S, j in T]`."""
    if tokens[index].type != "LSQB" or not _is_binary(tokens, index):
        return False
    depth = 0
    for token in tokens[index:]:
        depth += (token.type in OPENING) - (token.type in CLOSING)
        if depth == 0:
            break
        if depth == 1 and token.type == "IN":
            return False
    return True


def _in_brackets(tokens: Sequence[Token], index: int) -> bool:
    before = tokens[:index]
    return sum((each.type in OPENING) - (each.type in CLOSING) for each in before) > 0


# ---- alignment ----------------------------------------------------------------------------------


def _split(tokens: Sequence[Token]) -> int:
    """The column at which `in`, `=`, a bound or a property follows a lone declared name, or 0."""
    depth = 0
    split = 0
    gaps = _gaps(tokens)
    column = 0
    for index, token in enumerate(tokens):
        column += gaps[index]
        if depth == 0 and token.type == "COMMA":
            return 0
        if index > 1 and depth == 0 and not split and token.type not in OPENING:
            split = column
        column += 1 if token == "**" else len(token)
        depth += (token.type in OPENING) - (token.type in CLOSING)
    return split


def _runs(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Rows with no blank line between them."""
    run: list[Row] = []
    for row in rows:
        if run and row.line > run[-1].end_line + 1:
            yield run
            run = []
        run.append(row)
    yield run


def _align_declarations(rows: Sequence[Row]) -> None:
    for run in _runs(rows):
        for keyword, members in groupby(run, key=lambda row: row.keyword):
            aligned = [row for row in members if keyword and row.split]
            width = max((row.split for row in aligned), default=0)
            for row in aligned:
                row.text = row.text[: row.split].ljust(width) + row.text[row.split :]


def _indent_comments(rows: list[Row]) -> None:
    """A comment on its own line stands as far in as what follows it."""
    indent = 0
    for row in reversed(rows):
        if row.is_comment:
            row.text = " " * indent + row.text
        else:
            indent = len(row.text) - len(row.text.lstrip())


def _align_comments(rows: Sequence[Row]) -> None:
    for run in _runs(rows):
        for commented, members in groupby(run, key=lambda row: bool(row.comment)):
            beside = list(members) if commented else []
            width = max((len(row.text) for row in beside), default=0)
            for row in beside:
                row.text = f"{row.text.ljust(width)}  {row.comment}"


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    for index, row in enumerate(rows):
        if index and row.line > rows[index - 1].end_line + 1:
            yield ""
        yield row.text.rstrip()
