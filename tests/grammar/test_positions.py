"""Spans of nodes, and messages with the source line and a caret."""

import pickle

import pytest

from hcmodel.grammar import Diagnostic, GrammarError, Span, parse, render
from hcmodel.grammar.syntax import walk

MODEL = """param n, A[n,2] > 0 = 3
var x[n] in [0, 1]
let y[i in 1..n] = sum((x[i] + 1)*A.T for j in 1..n if i != j)
minimize -x[:,1]^2 +
    norm(x, "fro", axis=1)
subject to
  c[i in 1..n]: 0 <= (x[i]) <= [1, 2]
hidden log(x), x
start x = 2
"""


def text_of(span):
    lines = MODEL.split("\n")[span.line - 1 : span.end_line]
    lines[-1] = lines[-1][: span.end_column - 1]
    lines[0] = lines[0][span.column - 1 :]
    return "\n".join(lines)


def texts(kind):
    return [text_of(each.span) for each in walk(parse(MODEL)) if type(each).__name__ == kind]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("ParameterDeclaration", ["n", "A[n,2] > 0 = 3"]),
        ("Bound", ["> 0"]),
        ("VariableDeclaration", ["x[n] in [0, 1]"]),
        ("Interval", ["in [0, 1]"]),
        ("LetDeclaration", ["y[i in 1..n] = sum((x[i] + 1)*A.T for j in 1..n if i != j)"]),
        ("Generator", ["i in 1..n", "j in 1..n", "i in 1..n"]),
        ("Comprehension", ["(x[i] + 1)*A.T for j in 1..n if i != j"]),
        (
            "Arithmetic",
            ["(x[i] + 1)*A.T", "(x[i] + 1)", '-x[:,1]^2 +\n    norm(x, "fro", axis=1)'],
        ),
        ("Transpose", ["A.T"]),
        ("Comparison", ["i != j", "0 <= (x[i]) <= [1, 2]"]),
        ("Signed", ["-x[:,1]^2"]),
        ("Power", ["x[:,1]^2"]),
        ("Everything", [":"]),
        ("String", ['"fro"']),
        ("Keyword", ["axis=1"]),
        ("Objective", ['minimize -x[:,1]^2 +\n    norm(x, "fro", axis=1)']),
        ("Constraint", ["c[i in 1..n]: 0 <= (x[i]) <= [1, 2]"]),
        ("ListLiteral", ["[1, 2]"]),
        ("Subscript", ["x[i]", "x[:,1]", "(x[i])"]),
        ("Hidden", ["hidden log(x), x"]),
        ("Start", ["x = 2"]),
    ],
)
def test_a_span_covers_the_text_of_its_node(kind, expected):
    assert texts(kind) == expected


def test_names_and_numbers_cover_themselves():
    nodes = list(walk(parse(MODEL)))
    names = [node for node in nodes if type(node).__name__ == "Name"]
    plain = [node for node in names if not text_of(node.span).startswith("(")]
    numbers = [node for node in nodes if type(node).__name__ == "Number"]
    assert plain
    assert numbers
    assert [text_of(node.span) for node in plain] == [node.identifier for node in plain]
    assert [float(text_of(node.span)) for node in numbers] == [node.value for node in numbers]


def test_the_model_spans_the_file():
    assert parse(MODEL).span == Span(1, 1, 10, 1)


def mistake(text, **place):
    return render(Diagnostic("wrong", "right", Span(**place)), text, "m.hc").split("\n")


def test_the_caret_stands_under_the_span():
    lines = mistake("var abc", line=1, column=5, end_line=1, end_column=8)
    assert lines == ["m.hc:1:5: wrong", "  1 | var abc", "    |     ^~~", "hint: right"]


def test_without_hint_and_file_name():
    text = render(Diagnostic("wrong", None, Span(1, 1, 1, 4)), "var x")
    assert text == "<model>:1:1: wrong\n  1 | var x\n    | ^~~"


def test_tabs_are_expanded():
    lines = mistake("\tx\ty", line=1, column=4, end_line=1, end_column=5)
    assert lines[1:3] == ["  1 |     x   y", "    |         ^"]


def test_wide_and_combining_characters_take_their_width():
    lines = mistake("漢e\u0301 z", line=1, column=5, end_line=1, end_column=6)
    assert lines[1:3] == ["  1 | 漢e\u0301 z", "    |     ^"]
    lines = mistake("漢字 z", line=1, column=1, end_line=1, end_column=3)
    assert lines[2] == "    | ^~~~"


def test_the_gutter_is_as_wide_as_the_line_number():
    lines = mistake("\n" * 99 + "z", line=100, column=1, end_line=100, end_column=2)
    assert lines[1:3] == ["  100 | z", "      | ^"]


def test_a_span_over_several_lines_is_underlined_on_its_first():
    lines = mistake("ab cd\nef", line=1, column=4, end_line=2, end_column=2)
    assert lines[2] == "    |    ^~"


def test_a_span_behind_the_line_has_a_caret():
    lines = mistake("ab", line=1, column=3, end_line=1, end_column=3)
    assert lines[2] == "    |   ^"


def test_long_lines_are_cut_around_the_caret():
    text = "a" * 500 + "z" + "b" * 500
    source, underline = mistake(text, line=1, column=501, end_line=1, end_column=502)[1:3]
    assert len(source) < 120
    assert source[underline.index("^")] == "z"
    assert source.startswith("  1 | …")
    assert source.endswith("…")


def test_control_characters_never_reach_the_terminal():
    lines = mistake("a\x1b[31mb\u202e", line=1, column=2, end_line=1, end_column=3)
    assert lines[1] == "  1 | a\ufffd[31mb\ufffd"


def test_columns_count_characters():
    with pytest.raises(GrammarError) as caught:
        parse("let λ漢 = 2\tx")
    assert caught.value.diagnostics[0].span == Span(1, 12, 1, 13)


def test_errors_know_their_file_and_pickle():
    with pytest.raises(GrammarError) as caught:
        parse("minimise x", "tank.hc")
    assert str(caught.value).startswith("tank.hc:1:1: unknown statement `minimise`")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
