"""Statements as other modelling languages write them, with what to write here instead.

The same rules as in `explain`: each takes the place where the parser stopped and returns a message,
or None where the mistake is another one.
"""

from __future__ import annotations

from collections.abc import Sequence

from lark import Token

from hcmodel.grammar.diagnostics import Diagnostic
from hcmodel.grammar.keywords import FUNCTIONS, KEYWORDS, REDUCTIONS
from hcmodel.grammar.parse_failure import ENDS_OPERAND, Failure
from hcmodel.grammar.phrases import quote, span_of

LONGEST_EXAMPLE = 60
WORDS = ("IN", "FOR", "IF", "AND", "OR", "NOT")
NO_NAME = "is a reserved word and cannot be a name"
FLIPPED = {"<=": ">=", ">=": "<=", "<": ">", ">": "<"}


def written(tokens: Sequence[Token]) -> str:
    """The tokens as they stand in the text, on one line; `…` where that is long or nothing."""
    text = ""
    for index, token in enumerate(tokens):
        if index and not joined(tokens[index - 1], token):
            text += " "
        text += str(token)
    return text if 0 < len(text) <= LONGEST_EXAMPLE else "…"


def joined(first: Token, second: Token | None) -> bool:
    """Whether nothing stands between the two."""
    if second is None:
        return False
    return (first.end_line, first.end_column) == (second.line, second.column)


def closing(tokens: Sequence[Token], opening: int) -> int:
    """The position of the bracket that closes the one at `opening`, or the end."""
    depth = 0
    for position in range(opening, len(tokens)):
        depth += {"LPAR": 1, "LSQB": 1, "RPAR": -1, "RSQB": -1}.get(tokens[position].type, 0)
        if depth == 0:
            return position
    return len(tokens)


def operand(tokens: Sequence[Token], start: int) -> Sequence[Token]:
    """A name or number at `start` with the brackets and the exponent that follow it directly."""
    end = start + 1
    while end < len(tokens) and tokens[end].type in ("LPAR", "LSQB"):
        end = closing(tokens, end) + 1
    if end + 1 < len(tokens) and tokens[end].type == "POWER":
        return [*tokens[start : end + 1], *operand(tokens, end + 1)]
    return tokens[start:end]


# ---- declarations -------------------------------------------------------------------------------


def reserved_word(at: Failure) -> Diagnostic | None:
    """`var in`, and later `minimize in`."""
    if at.kind not in (*WORDS, *KEYWORDS) or at.position == 0 or "NAME" not in at.accepts:
        return None
    opens = at.before.type in ("COMMA", *KEYWORDS) and at.enclosing() is None
    declares = opens and at.accepts == {"NAME"}
    alone = at.after is None or at.after.type not in ("NAME", "NUMBER", "LPAR", "LSQB")
    if at.kind in KEYWORDS or declares or (at.before.type not in ENDS_OPERAND and alone):
        return at.say(f"{quote(at.text)} {NO_NAME}", "choose another name")
    return None


def lengths(at: Failure) -> Diagnostic | None:
    """`var x(2)` and `var x[2][2]`."""
    if at.statement not in ("VAR", "PARAM") or "IN" not in at.accepts or at.token is None:
        return None
    if at.kind not in ("LPAR", "LSQB") or not joined(at.before, at.token):
        return None
    inner = at.tokens[at.position + 1 : closing(at.tokens, at.position)]
    if at.kind == "LPAR" and at.before.type == "NAME" and at.before != "psd":
        return at.say(
            "lengths are written in square brackets", f"write `{at.before}[{written(inner)}]`"
        )
    if at.before.type != "RSQB" or any(each.type == "COMMA" for each in inner):
        return None
    first = _opening(at.tokens, at.position - 1)
    if first == 0 or at.tokens[first - 1].type != "NAME":
        return None
    name, outer = at.tokens[first - 1], at.tokens[first + 1 : at.position - 1]
    hint = f"write `{name}[{written(outer)}, {written(inner)}]`"
    return at.say("all lengths are written in one pair of brackets", hint)


def _opening(tokens: Sequence[Token], closed: int) -> int:
    depth = 0
    for position in range(closed, -1, -1):
        depth += {"RSQB": 1, "LSQB": -1}.get(tokens[position].type, 0)
        if depth == 0:
            return position
    return 0


def bounds_around_name(at: Failure) -> Diagnostic | None:
    """`var 0 <= x <= 1`."""
    if at.statement not in ("VAR", "PARAM") or at.accepts != {"NAME"}:
        return None
    rest = at.tokens[at.position :]
    sides: list[list[Token]] = [[]]
    signs: list[str] = []
    for token in rest:
        if token.type == "COMPARE":
            signs.append(str(token))
            sides.append([])
        elif token.type == "COMMA":
            break
        else:
            sides[-1].append(token)
    if at.kind not in ("NUMBER", "SIGN") or len(sides) not in (2, 3) or not sides[1]:
        return None
    name = written(sides[1])
    hint = f"write `{name} {FLIPPED.get(signs[0], signs[0])} {written(sides[0])}`"
    if len(sides) == 3:
        ends = [written(sides[0]), written(sides[2])]
        if signs[0].startswith(">"):
            ends.reverse()
        hint = f"write `{name} in [{ends[0]}, {ends[1]}]`"
    return at.say("a declaration begins with the name", hint)


def comma_between_bounds(at: Failure) -> Diagnostic | None:
    """`var x >= 0, <= 1`."""
    if at.statement not in ("VAR", "PARAM") or at.accepts != {"NAME"}:
        return None
    if at.kind not in ("COMPARE", "IN") or at.before.type != "COMMA":
        return None
    hint = "the bounds of one name follow each other: `x >= 0 <= 1`, or `x in [0, 1]`"
    return at.say("no comma between the bounds of a name", hint, span_of(at.before))


def bare_list(at: Failure) -> Diagnostic | None:
    """`param a[2] = 1, 2`."""
    if at.statement not in ("PARAM", "LET", "START", "SET") or at.accepts != {"NAME"}:
        return None
    if at.kind not in ("NUMBER", "SIGN") or at.before.type != "COMMA":
        return None
    equal = [index for index, each in enumerate(at.tokens[: at.position]) if each.type == "EQUAL"]
    if not equal:
        return None
    end = at.position
    while end < len(at.tokens) and at.tokens[end].type in ("NUMBER", "SIGN", "COMMA"):
        end += 1
    if at.tokens[end - 1].type == "COMMA":
        end -= 1
    items = at.tokens[equal[-1] + 1 : end]
    span = span_of(items[0], items[-1])
    return at.say("a list is written in square brackets", f"write `[{written(items)}]`", span)


def hidden_names(at: Failure) -> Diagnostic | None:
    """`hidden u = log(x)` and `hidden x -> log(x)`."""
    arrow = at.text == ">" and at.before == "-" and joined(at.before, at.token)
    if at.statement == "HIDDEN" and at.enclosing() is None and (arrow or at.kind == "EQUAL"):
        coordinates = [_unnamed(each) for each in _parts(at.tokens[1:])]
        listed = ", ".join(written(each) for each in coordinates)
        hint = f"list the coordinates alone: `hidden {listed}`"
        return at.say("`hidden` gives no names", hint)
    if arrow:
        return at.say("the language has no `->`", None, span_of(at.before, at.token))
    return None


def _parts(tokens: Sequence[Token]) -> list[list[Token]]:
    """The tokens cut at the commas outside brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += {"LPAR": 1, "LSQB": 1, "RPAR": -1, "RSQB": -1}.get(token.type, 0)
        if token.type == "COMMA" and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _unnamed(tokens: Sequence[Token]) -> Sequence[Token]:
    """What follows `u =` or `u ->`."""
    for position, token in enumerate(tokens):
        arrow = token == ">" and position > 0 and tokens[position - 1] == "-"
        if token.type == "EQUAL" or arrow:
            return tokens[position + 1 :]
    return tokens


# ---- expressions --------------------------------------------------------------------------------


def sum_over(at: Failure) -> Diagnostic | None:
    """`sum(x[i], i in 1..3)`, `sum(i in 1..3) x[i]` and `sum[i in 1..3] x[i]`."""
    opening = at.enclosing()
    if at.kind == "IN" and at.accepts == {"NAME"} and at.before.type == "FOR":
        return at.say("expected the name of an index before `in`", "write `for i in 1..n`")
    if at.kind != "IN" or opening is None or at.before.type != "NAME":
        return None
    start = next(index for index, each in enumerate(at.tokens) if each is opening)
    if start == 0 or at.tokens[start - 1] not in REDUCTIONS:
        return None
    end = closing(at.tokens, start)
    first = at.position - 1
    index_set = written(at.tokens[first:end])
    if first == start + 1:
        body = operand(at.tokens, end + 1)
    elif at.tokens[first - 1].type == "COMMA":
        parts = _parts(at.tokens[start + 1 : first - 1])
        body = parts[0] if len(parts) == 1 else ()
    else:
        return None
    hint = f"write `{at.tokens[start - 1]}({written(body)} for {index_set})`"
    return at.say("the indices of a comprehension follow `for`", hint)


def call_without_brackets(at: Failure) -> Diagnostic | None:
    """`sum x`."""
    if at.kind not in ("NAME", "NUMBER") or at.before not in FUNCTIONS:
        return None
    if at.before.type != "NAME" or "LPAR" not in at.accepts or at.position < 1:
        return None
    argument = written(operand(at.tokens, at.position))
    hint = f"write `{at.before}({argument})`"
    return at.say("the arguments of a function are written in brackets", hint)


def list_comma(at: Failure) -> Diagnostic | None:
    """`[0 1]`."""
    opening = at.enclosing()
    if opening is None or opening.type != "LSQB" or at.kind not in ("NAME", "NUMBER"):
        return None
    if at.before.type not in ENDS_OPERAND or joined(at.before, at.token):
        return None
    return at.say(f"a comma is missing before {quote(at.text)}", "write `[a, b]`, not `[a b]`")


def numbers(at: Failure) -> Diagnostic | None:
    """`1_000`, `1e` and `1,000`."""
    if at.before.type != "NUMBER" or at.position < 1 or not joined(at.before, at.token):
        return None
    digits = at.text.replace("_", "")
    both = span_of(at.before, at.token)
    if at.kind == "NAME" and at.text.startswith("_") and digits.isdecimal():
        return at.say("`_` does not group digits", f"write `{at.before}{digits}`", both)
    if at.kind == "NAME" and at.text in ("e", "E"):
        hint = f"write `{at.before}e3`, or a product: `{at.before} * {at.text}`"
        return at.say(f"`{at.before}{at.text}` has no exponent", hint, both)
    after = at.after
    if at.kind != "COMMA" or at.token is None or after is None or at.enclosing() is not None:
        return None
    if after.type == "NUMBER" and len(after) == 3 and joined(at.token, after):
        whole = span_of(at.before, after)
        return at.say("`,` does not group digits", f"write `{at.before}{after}`", whole)
    return None
