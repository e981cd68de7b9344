"""Why a statement does not parse, in words people use.

The parser stops at one token. What stands there, what stands before it, and which tokens it would
have taken decide the message: the rules are tried in order, and the last resort says what was
expected.
"""

from __future__ import annotations

from collections.abc import Callable

from hcmodel.grammar import habits
from hcmodel.grammar.diagnostics import Diagnostic
from hcmodel.grammar.foreign import FOREIGN
from hcmodel.grammar.habits import joined
from hcmodel.grammar.keywords import KEYWORDS
from hcmodel.grammar.parse_failure import ENDS_OPERAND, EXPRESSION, Failure, expected, list_words
from hcmodel.grammar.phrases import OPERATORS, quote, span_of

Rule = Callable[[Failure], Diagnostic | None]


def explain(failure: Failure) -> Diagnostic:
    """The first rule that knows the mistake, or what was expected instead."""
    for rule in RULES:
        found = rule(failure)
        if found is not None:
            return found
    return expected(failure)


def _quotes(at: Failure) -> Diagnostic | None:
    if at.text == '"':
        return at.say("this string is never closed", 'a `"` is missing on this line')
    if at.text != "'":
        return None
    if at.before.type in ENDS_OPERAND and at.position > 0:
        return at.say("`'` does not transpose", f"write `{at.before}.T`")
    return at.say("strings are written in double quotes", "write `\"fro\"`, not `'fro'`")


def _dot(at: Failure) -> Diagnostic | None:
    if at.text != ".":
        return None
    together = at.token is not None and joined(at.token, at.after)
    if at.before.type == "NUMBER" and not together:
        return at.say("a number cannot end with `.`", f"write `{at.before}.0` or `{at.before}`")
    if together and at.after is not None and at.after.type == "NUMBER":
        return at.say("a number cannot begin with `.`", f"write `0.{at.after}`")
    if together and at.after is not None and at.after.type == "NAME":
        hint = "transposition is `.T`; functions are written `f(x)`"
        return at.say(f"`.{at.after}` is not an operation", hint)
    return at.say("unexpected `.`", "a range is `1..n`, transposition `.T`")


def _foreign(at: Failure) -> Diagnostic | None:
    if at.kind not in ("UNKNOWN", "FOREIGN", "LBRACE", "RBRACE"):
        return None
    if at.text == "{" and at.before in ("sum", "prod", "min", "max"):
        return at.say("the language has no `{`", f"write `{at.before}(x[i] for i in S)`")
    if at.text == "{" and at.before.type == "IN" and at.statement == "VAR":
        hint = "variables are continuous: write `in [0, 1]` for all numbers from 0 to 1"
        return at.say("a variable is not chosen from a list of values", hint)
    if at.text.isprintable():
        return at.say(f"the language has no {quote(at.text)}", FOREIGN.get(at.text))
    name = f"U+{ord(at.text[0]):04X}"
    return at.say(f"unexpected character {name}", FOREIGN.get(at.text, "remove it"))


def _reserved(at: Failure) -> Diagnostic | None:
    if at.kind not in KEYWORDS:
        return None
    return at.say(f"{quote(at.text)} begins a statement", "put it on a line of its own")


def _equal_in_constraint(at: Failure) -> Diagnostic | None:
    if at.kind == "EQUAL" and "COMPARE" in at.accepts:
        return at.say("`=` does not compare", "write `==`")
    return None


def _equality_for_value(at: Failure) -> Diagnostic | None:
    if at.text == "==" and "EQUAL" in at.accepts:
        return at.say("`==` compares; a value is given with `=`", "write `=`")
    return None


def _value_of_variable(at: Failure) -> Diagnostic | None:
    if at.kind == "EQUAL" and at.statement == "VAR" and at.enclosing() is None:
        return at.say(
            "a variable has no value",
            "a first guess is `start x = …`; a name for an expression is `let`",
        )
    return None


def _named_objective(at: Failure) -> Diagnostic | None:
    objective = at.statement in ("MINIMIZE", "MAXIMIZE") and at.enclosing() is None
    if at.kind == "EQUAL" and objective and at.before.type == "NAME":
        return at.say("an objective has no name", f"remove `{at.before} =`")
    return None


def _label_elsewhere(at: Failure) -> Diagnostic | None:
    if at.kind != "COLON" or at.enclosing() is not None:
        return None
    if at.statement in ("MINIMIZE", "MAXIMIZE"):
        return at.say("an objective has no name", "remove the name and the `:`")
    if at.is_constraint:
        return at.say("unexpected `:`", "a constraint's name is one word: `area: x <= 1`")
    return None


def _colon_range(at: Failure) -> Diagnostic | None:
    inside = at.enclosing() is not None or "RANGE" in at.accepts
    if at.kind == "COLON" and inside:
        start = at.before if at.before.type in ("NAME", "NUMBER") else "a"
        end = at.after if at.after is not None and at.after.type in ("NAME", "NUMBER") else "n"
        return at.say("a range is written with `..`", f"write `{start}..{end}`")
    after_colon = at.before.type == "COLON" and at.enclosing() is not None
    if after_colon and at.kind in EXPRESSION:
        hint = f"write `1..{at.text}`" if at.kind in ("NAME", "NUMBER") else None
        return at.say("a range is written with `..`", hint, span_of(at.before))
    return None


def _missing_in(at: Failure) -> Diagnostic | None:
    if at.statement not in ("VAR", "PARAM") or "IN" not in at.accepts:
        return None
    if at.kind == "LPAR" and at.before == "psd":
        return at.say("`in` is missing before `psd`", "write `in psd(…)`", span_of(at.before))
    if at.kind in ("LSQB", "LPAR"):
        return at.say("`in` is missing before the bounds", "write `in [lower, upper]`")
    return None


def _interval_brackets(at: Failure) -> Diagnostic | None:
    if at.kind == "LPAR" and at.before.type == "IN" and at.statement in ("VAR", "PARAM"):
        return at.say("bounds are written in square brackets", "write `in [lower, upper]`")
    if at.kind in ("RANGE", "RSQB", "COMMA") and at.statement in ("VAR", "PARAM"):
        opening = at.enclosing()
        pairs = zip(at.tokens, at.tokens[1:], strict=False)
        if any(word.type == "IN" and bracket is opening for word, bracket in pairs):
            return at.say("bounds are two values", "write `in [lower, upper]`")
    if at.kind == "NUMBER" and at.before.type == "IN" and at.statement in ("VAR", "PARAM"):
        return at.say("bounds are written in square brackets", "write `in [lower, upper]`")
    return None


def _membership(at: Failure) -> Diagnostic | None:
    if at.kind != "IN":
        return None
    if at.is_constraint and at.enclosing() is None:
        return at.say(
            "`in` is not a constraint", "domains are written in the declaration: `var x in [0, 1]`"
        )
    if at.statement == "PARAM" and at.enclosing() is None:
        return at.say("bounds come before the default", "write `param p in [0, 1] = 0.5`")
    return at.say(
        "`in` is not an operator of expressions", "it is allowed in `for i in 1..n` and in domains"
    )


def _bounds_after_default(at: Failure) -> Diagnostic | None:
    if at.statement != "PARAM" or at.kind != "COMPARE" or at.enclosing() is not None:
        return None
    return at.say("bounds come before the default", "write `param r > 0 = 2`")


def _comparison(at: Failure) -> Diagnostic | None:
    if at.kind != "COMPARE" or at.wants_expression:
        return None
    hint = "comparisons are allowed in constraints, filters and bounds"
    return at.say(f"an expression cannot compare: {quote(at.text)}", hint)


def _logic(at: Failure) -> Diagnostic | None:
    if at.kind not in ("AND", "OR", "NOT"):
        return None
    if at.is_constraint and at.kind == "AND" and at.enclosing() is None:
        return at.say("`and` does not join constraints", "write each on a line of its own")
    return at.say(f"{quote(at.text)} is allowed only in filters", "filters follow `if`")


def _comprehension(at: Failure) -> Diagnostic | None:
    if at.kind == "EQUAL" and "IN" in at.accepts and at.before.type == "NAME":
        return at.say(
            "a comprehension is the only argument of a function",
            f"remove {quote(at.before)}, or reduce an array: `sum(x, axis=1)`",
            span_of(at.before),
        )
    loop = at.text if at.kind == "FOR" else str(at.tokens[0]).lower()
    if at.is_constraint and at.position <= 1 and loop in ("for", "forall", "foreach"):
        return at.say(
            "a family of constraints begins with its name",
            "write `name[i in 1..n]: …`",
            span_of(at.tokens[0]),
        )
    if at.kind == "FOR":
        if at.before.type not in ENDS_OPERAND:
            return at.say(f"expected an expression, found {quote(at.text)}")
        if at.enclosing() is None and at.is_constraint:
            return at.say(
                "a family of constraints begins with its indices", "write `name[i in 1..n]: …`"
            )
        if any(each.type == "FOR" for each in at.tokens[: at.position]) and "IF" in at.accepts:
            return at.say(
                "`for` is written once", "separate the indices with `,`: `for i in S, j in T`"
            )
        return at.say(
            "a comprehension is the only argument of a function",
            "write `sum(x[i] for i in 1..n)`",
        )
    if at.kind == "IF" and "IF" not in at.accepts:
        return at.say(
            "`if` is allowed only in filters", "filters follow the indices: `for i in S if …`"
        )
    return None


def _index_name(at: Failure) -> Diagnostic | None:
    """`let y[n] = …` and `c[n]: …`, where indices have to be named."""
    opening = at.enclosing()
    whole = span_of(at.tokens[0])
    if at.statement == "LET" and opening is not None and "IN" in at.accepts:
        return at.say("expected `in` after the index", "write `let y[i in 1..n] = …`")
    if at.statement == "LET" and at.before is opening and "NAME" in at.accepts:
        return at.say("expected the name of an index", "write `let y[i in 1..n] = …`")
    if at.statement == "LET" and at.kind == "LPAR" and "EQUAL" in at.accepts:
        return at.say("`let` defines no functions", "for indices write `let y[i in 1..n] = …`")
    if at.statement == "START" and at.kind == "LSQB" and "EQUAL" in at.accepts:
        name = at.before
        hint = (
            f"write `start {name} = [0.5, 1]`, or one number for all entries: `start {name} = 0.5`"
        )
        return at.say("`start` gives the whole array", hint)
    if at.kind == "EQUAL" and "IN" in at.accepts and opening is not None:
        rest = at.tokens[at.position :]
        if opening.type == "LPAR" and all(each.type != "RANGE" for each in rest):
            return None  # `sum(x[i] for i in S, axis=1)`
        return at.say("an index runs over a set with `in`", f"write `{at.before} in 1..n`")
    if at.is_constraint and at.kind == "IN" and opening is at.tokens[0]:
        return at.say("a family of constraints needs a name", "write `name[i in 1..n]: …`", whole)
    if at.is_constraint and at.kind == "COLON" and at.before.type == "RSQB":
        return at.say(
            "expected indices with `in`", "write `name[i in 1..n]: …`", span_of(at.before)
        )
    return None


def _commas(at: Failure) -> Diagnostic | None:
    if at.kind in ("RPAR", "RSQB") and at.before.type == "COMMA":
        return at.say("nothing follows this comma", "remove it", span_of(at.before))
    if at.kind == "COMMA" and at.before.type == "COMMA":
        return at.say("two commas in a row", "remove one")
    if at.kind == "COMMA" and at.before.type in ENDS_OPERAND and at.enclosing() is None:
        if at.is_constraint:
            return at.say("a constraint ends with its line", "write each on a line of its own")
        if at.statement in ("MINIMIZE", "MAXIMIZE"):
            return at.say("an objective is one expression", None)
    if at.kind in ("RPAR", "RSQB") and at.before.type in ("LPAR", "LSQB"):
        return at.say(f"`{at.before}{at.text}` is empty", None, span_of(at.before, at.token))
    return None


def _adjacent(at: Failure) -> Diagnostic | None:
    """Two operands without an operator, as in `2x` and `x y`."""
    if at.position == 0 or at.before.type not in ENDS_OPERAND or "MULTIPLY" not in at.accepts:
        return None
    if at.kind not in ("NAME", "NUMBER", "LPAR", "STRING"):
        return None
    if at.is_constraint and at.position == 1 and at.kind == "NAME":
        hint = f"a name ends with `:`, a product is `{at.before} * {at.text}`"
        return at.say(f"an operator is missing before {quote(at.text)}", hint)
    hint = "a product needs `*`"
    if at.statement == "HIDDEN" and at.enclosing() is None:
        hint = "separate coordinates with `,`"
    elif at.before.type in ("NAME", "NUMBER") and at.kind in ("NAME", "NUMBER"):
        hint = f"a product is `{at.before} * {at.text}`"
        if at.before.type == at.kind == "NUMBER":
            hint = f"a list is `[{at.before}, {at.text}]`, a product `{at.before} * {at.text}`"
    return at.say(f"an operator is missing before {quote(at.text)}", hint)


def _range(at: Failure) -> Diagnostic | None:
    if at.kind == "RANGE" and at.position > 0 and at.before.type in ENDS_OPERAND:
        return at.say(
            "a range is not a value", "ranges are allowed in indices, in sets and after `in`"
        )
    return None


def _name(at: Failure) -> Diagnostic | None:
    if at.kind == "NUMBER" and at.accepts == {"NAME"}:
        return at.say(f"expected a name, found {quote(at.text)}", "names begin with a letter")
    return None


def _string(at: Failure) -> Diagnostic | None:
    if at.kind == "STRING":
        hint = 'a set of labels is written `{"a", "b"}`' if at.statement == "SET" else None
        return at.say("a string is allowed only as an argument of a function", hint)
    if at.statement == "SET" and at.accepts == {"STRING"}:
        hint = 'labels are strings: `{"a", "b"}`; a set of numbers is a list, `[1, 2]`'
        return at.say(f"expected a string, found {quote(at.text)}", hint)
    return None


def _ends_early(at: Failure) -> Diagnostic | None:
    if at.token is not None:
        return None
    last = at.tokens[-1]
    if last.type in OPERATORS or last.type in ("COMMA", "EQUAL", "COLON", "NOT"):
        wanted = "an expression" if at.wants_expression else list_words(at.accepts)
        return at.say(f"expected {wanted} after {quote(last)}", None)
    if at.is_constraint and "COMPARE" in at.accepts:
        whole = span_of(at.tokens[0], last)
        return at.say("a constraint needs a comparison", "add `<=`, `>=` or `==`", whole)
    if at.statement in ("LET", "SET", "START") and "EQUAL" in at.accepts:
        word = KEYWORDS[at.statement]
        return at.say("expected `=` and a value", f"write `{word} {at.tokens[1]} = …`")
    return None


RULES: tuple[Rule, ...] = (
    _quotes,
    _dot,
    _foreign,
    habits.reserved_word,
    _reserved,
    habits.hidden_names,
    habits.bounds_around_name,
    habits.comma_between_bounds,
    habits.bare_list,
    habits.lengths,
    habits.sum_over,
    habits.numbers,
    habits.call_without_brackets,
    habits.list_comma,
    _value_of_variable,
    _named_objective,
    _equality_for_value,
    _index_name,
    _label_elsewhere,
    _equal_in_constraint,
    _colon_range,
    _missing_in,
    _interval_brackets,
    _membership,
    _bounds_after_default,
    _comparison,
    _logic,
    _comprehension,
    _commas,
    _adjacent,
    _range,
    _name,
    _string,
    _ends_early,
)
