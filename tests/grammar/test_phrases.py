"""Where a statement ends and where it goes on."""

import pytest

from hcmodel.grammar import GrammarError, parse


def same(text, other):
    return parse(text) == parse(other)


@pytest.mark.parametrize(
    "text",
    [
        "minimize x +\n y",
        "minimize x\t+ # why\n\n  # more\n y",
        "minimize\n\n x + y",
        "minimize (x\n + y)",
        "minimize (\nx\n+\ny\n)",
        "minimize x + y;",
        ";minimize x + y ; ;",
    ],
)
def test_an_expression_goes_on_in_brackets_and_after_operators_and_keywords(text):
    assert same(text, "minimize x + y")


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "@", "^", "**"])
def test_a_line_goes_on_after_each_operator(operator):
    assert same(f"let z = x {operator}\n  y", f"let z = x {operator} y")


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("let z =\n x", "let z = x"),
        ("param\n n,\n m", "param n, m"),
        ("subject to a:\n x <= 1", "subject to\n a: x <= 1"),
        ("subject to\n a: x <=\n 1", "subject to\n a: x <= 1"),
        ("subject to\n x <=\n 1", "subject to x <= 1"),
        ("subject to\n\n -x <= 1", "subject to (-x) <= 1"),
        ("subject to\n a:\n -x <= 1", "subject to\n a: -x <= 1"),
        ("subject to x <= 1; -y <= 2", "subject to\n x <= 1\n (-y) <= 2"),
        ("set S = 1..\n n", "set S = 1..n"),
        ("var x in\n [0, 1]", "var x in [0, 1]"),
        (
            "let y = sum(x[i] for\n i in 1..n\n if i != 2)",
            "let y = sum(x[i] for i in 1..n if i!=2)",
        ),
        ("hidden x,\n y", "hidden x, y"),
        ("start x = [1,\n 2\n]", "start x = [1, 2]"),
    ],
)
def test_other_places_where_a_line_goes_on(text, joined):
    assert same(text, joined)


def test_lines_and_semicolons_end_statements():
    text = "var x; var y\nminimize x; subject to a: x <= 1; y <= 2\n b: x >= 0; hidden x"
    kinds = [type(each).__name__ for each in parse(text).statements]
    assert kinds == ["VariableDeclaration"] * 2 + ["Objective"] + ["Constraint"] * 3 + ["Hidden"]


@pytest.mark.parametrize("sign", ["+", "-", "*", "/", "@", "^", "<=", "==", "..", ".T", ",", "="])
def test_a_line_cannot_begin_with_an_operator(sign):
    with pytest.raises(GrammarError) as caught:
        parse(f"let z = x\n  {sign} y")
    (only,) = caught.value.diagnostics
    assert only.message == f"a line cannot begin with `{sign}`"
    assert f"end the line above with `{sign}`" in only.hint
    assert (only.span.line, only.span.column) == (2, 3)


def test_a_semicolon_ends_no_statement_inside_brackets():
    with pytest.raises(GrammarError, match="`;` inside brackets"):
        parse("minimize (x; y)")


@pytest.mark.parametrize(
    "text",
    [
        "let a = (1 +\nvar x\nminimize y z",
        "let a = f(1,\n\nvar x\nminimize y z",
        "let a = 1 +\nvar x\nminimize y z",
    ],
)
def test_a_keyword_at_the_start_of_a_line_always_begins_a_statement(text):
    with pytest.raises(GrammarError) as caught:
        parse(text)
    first, second = caught.value.diagnostics
    assert first.span.line == 1
    assert second.message == "an operator is missing before `z`"


@pytest.mark.parametrize("label", ["b", "b[i in 1..n]"])
def test_a_constraint_name_at_the_start_of_a_line_closes_open_brackets(label):
    with pytest.raises(GrammarError) as caught:
        parse(f"subject to\n a: (x <= 1\n {label}: x = 2")
    first, second = caught.value.diagnostics
    assert (first.message, first.span.line) == ("`(` is never closed", 2)
    assert (second.message, second.span.line) == ("`=` does not compare", 3)
