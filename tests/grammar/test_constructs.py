"""Every construct of the language and the tree it gives."""

import pytest

from hcmodel.grammar import GrammarError, parse
from hcmodel.grammar.syntax import (
    Arithmetic,
    Bound,
    Call,
    Comparison,
    Comprehension,
    Constraint,
    Everything,
    Generator,
    Hidden,
    Interval,
    Keyword,
    LetDeclaration,
    ListLiteral,
    Logical,
    Name,
    Not,
    Number,
    Objective,
    ParameterDeclaration,
    PositiveSemidefinite,
    Power,
    Range,
    Sense,
    SetDeclaration,
    Signed,
    Simplex,
    Span,
    Start,
    String,
    Subscript,
    Transpose,
    VariableDeclaration,
)

HERE = Span(1, 1, 1, 1)  # spans take no part in equality


def number(value):
    return Number(float(value), span=HERE)


def name(identifier):
    return Name(identifier, span=HERE)


def span_to(upper):
    return Range(number(1), upper, span=HERE)


def only(text):
    (statement,) = parse(text).statements
    return statement


def expression(text):
    return only(f"minimize {text}").expression


def constraint(text):
    return only(f"subject to\n    {text}")


def bound(operator, value):
    return Bound(operator, number(value), span=HERE)


i, j, n, x, A, S = (name(each) for each in "ijnxAS")
upto_n = span_to(n)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1..n", upto_n),
        ("[1, 3]", ListLiteral((number(1), number(3)), span=HERE)),
        ("T", name("T")),
    ],
)
def test_sets_are_ranges_lists_or_other_sets(text, value):
    assert only(f"set S = {text}") == SetDeclaration(S, value, span=HERE)


@pytest.mark.parametrize(
    ("text", "shape", "bounds", "default"),
    [
        ("n", (), (), None),
        ("n[3]", (number(3),), (), None),
        ("n[S,n]", (S, n), (), None),
        ("n[0..x]", (Range(number(0), x, span=HERE),), (), None),
        ("n > 0", (), (bound(">", 0),), None),
        ("n > 0 = 2", (), (bound(">", 0),), number(2)),
        ("n >= 0 <= 5", (), (bound(">=", 0), bound("<=", 5)), None),
        ("n in [0, 1] = 2", (), (Interval(number(0), number(1), span=HERE),), number(2)),
        ("n = 2", (), (), number(2)),
    ],
)
def test_parameters_have_shape_then_bounds_then_default(text, shape, bounds, default):
    expected = ParameterDeclaration(n, shape, bounds, default, span=HERE)
    assert only(f"param {text}") == expected


@pytest.mark.parametrize(
    ("text", "shape", "domains", "symmetric"),
    [
        ("x", (), (), False),
        ("x[0..n]", (Range(number(0), n, span=HERE),), (), False),
        ("x[n,2] >= 0", (n, number(2)), (bound(">=", 0),), False),
        ("x > 0", (), (bound(">", 0),), False),
        ("x in [0.4, n]", (), (Interval(number(0.4), n, span=HERE),), False),
        ("x[n] in simplex", (n,), (Simplex(span=HERE),), False),
        ("x[n,n] symmetric", (n, n), (), True),
        ("x[n,n] in psd", (n, n), (PositiveSemidefinite(None, None, span=HERE),), False),
        (
            "x[n,n] symmetric in psd(1e-3)",
            (n, n),
            (PositiveSemidefinite(number(1e-3), None, span=HERE),),
            True,
        ),
        (
            "x[n,n] in psd(1e-3, 1e3) symmetric",
            (n, n),
            (PositiveSemidefinite(number(1e-3), number(1e3), span=HERE),),
            True,
        ),
    ],
)
def test_variables_have_shape_then_domains(text, shape, domains, symmetric):
    assert only(f"var {text}") == VariableDeclaration(x, shape, domains, symmetric, span=HERE)


def test_a_declaration_of_several_names_gives_one_statement_each():
    statements = parse("param n, x[n] > 0,\n  A = 1; set S = 1..n").statements
    assert [each.name.identifier for each in statements] == ["n", "x", "A", "S"]


def test_let_names_an_expression():
    assert only("let n = x") == LetDeclaration(n, (), x, span=HERE)


def test_let_may_be_indexed():
    generators = (Generator(i, upto_n, span=HERE), Generator(j, S, span=HERE))
    value = Subscript(x, (i, j), span=HERE)
    expected = LetDeclaration(A, generators, value, span=HERE)
    assert only("let A[i in 1..n, j in S] = x[i,j]") == expected


@pytest.mark.parametrize("sense", list(Sense))
def test_objectives(sense):
    assert only(f"{sense.value} x") == Objective(sense, x, span=HERE)


def test_hidden_lists_coordinates():
    assert only("hidden x, A") == Hidden((x, A), span=HERE)


def test_start_gives_a_value():
    value = ListLiteral((number(1), Signed("-", number(2), span=HERE)), span=HERE)
    assert only("start x = [1, -2]") == Start(x, value, span=HERE)
    assert len(parse("start x = 1, A = 2").statements) == 2


@pytest.mark.parametrize("operator", ["<=", ">=", "=="])
def test_constraints_compare(operator):
    comparison = Comparison((x, number(1)), (operator,), span=HERE)
    assert constraint(f"x {operator} 1") == Constraint(None, (), None, comparison, span=HERE)
    assert constraint(f"A: x {operator} 1") == Constraint(A, (), None, comparison, span=HERE)


@pytest.mark.parametrize("operator", ["<=", ">="])
def test_chains_have_three_terms_in_one_direction(operator):
    found = constraint(f"0 {operator} x {operator} 1").comparison
    assert found == Comparison((number(0), x, number(1)), (operator, operator), span=HERE)


def test_families_have_generators_and_a_filter():
    found = constraint("A[i in 1..n, j in S if i != j]: x <= 1")
    assert found.name == A
    assert found.generators == (Generator(i, upto_n, span=HERE), Generator(j, S, span=HERE))
    assert found.condition == Comparison((i, j), ("!=",), span=HERE)


def test_a_constraint_may_begin_with_a_subscript():
    assert constraint("x[i] <= 1").comparison.operands[0] == Subscript(x, (i,), span=HERE)


def test_sections_may_be_empty_or_come_again():
    text = "subject to\n\nvar x\nsubject to\n x <= 1\nlet y = x\nsubject to y <= 2; x >= 0"
    kinds = [type(each) for each in parse(text).statements]
    assert kinds == [VariableDeclaration, Constraint, LetDeclaration, Constraint, Constraint]


def test_filters_join_conditions():
    less, more = (Comparison((i, j), (each,), span=HERE) for each in "<>")
    three = Comparison((number(1), i, j), ("<", "<="), span=HERE)
    found = constraint("A[i in S if i < j and not i > j or (i > j or 1 < i <= j)]: x <= 1")
    left = Logical("and", (less, Not(more, span=HERE)), span=HERE)
    right = Logical("or", (more, three), span=HERE)
    assert found.condition == Logical("or", (left, right), span=HERE)


def test_comprehensions_are_the_only_argument():
    text = "sum(x for i in 1..n, j in i..n if i != j)"
    generators = (Generator(i, upto_n, span=HERE), Generator(j, Range(i, n, span=HERE), span=HERE))
    condition = Comparison((i, j), ("!=",), span=HERE)
    comprehension = Comprehension(x, generators, condition, span=HERE)
    assert expression(text) == Call(name("sum"), (comprehension,), (), span=HERE)


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("i", (i,)),
        ("1..3", (span_to(number(3)),)),
        (":, 1", (Everything(span=HERE), number(1))),
        ("i+1", (Arithmetic((i, number(1)), ("+",), span=HERE),)),
        ("[1, 2]", (ListLiteral((number(1), number(2)), span=HERE),)),
    ],
)
def test_subscripts_take_values_ranges_and_everything(text, index):
    assert expression(f"x[{text}]") == Subscript(x, index, span=HERE)


def test_calls_take_positional_and_named_arguments_and_strings():
    found = expression('norm(x, "fro", axis=1, kind="a b")')
    fro, kind = String("fro", span=HERE), String("a b", span=HERE)
    keywords = (
        Keyword(name("axis"), number(1), span=HERE),
        Keyword(name("kind"), kind, span=HERE),
    )
    assert found == Call(name("norm"), (x, fro), keywords, span=HERE)
    assert expression("f()") == Call(name("f"), (), (), span=HERE)
    assert expression('einsum("ij,jk->ik", A, A)').arguments[0].value == "ij,jk->ik"


def test_matrices_are_lists_of_rows():
    rows = [ListLiteral((number(a), number(a + 1)), span=HERE) for a in (1, 3)]
    assert expression("[[1, 2], [3, 4]]") == ListLiteral(tuple(rows), span=HERE)


def test_transposition_and_subscripts_follow_one_another():
    transposed = Transpose(A, span=HERE)
    assert expression("A.T") == transposed
    assert expression("A.T[1].T") == Transpose(
        Subscript(transposed, (number(1),), span=HERE), span=HERE
    )
    assert expression("(A).T[i]") == Subscript(transposed, (i,), span=HERE)


@pytest.mark.parametrize(
    ("text", "value"),
    [("2", 2), ("0.25", 0.25), ("1e-3", 1e-3), ("2.5E+2", 250), ("007", 7), ("1e300", 1e300)],
)
def test_numbers(text, value):
    assert expression(text) == number(value)


@pytest.mark.parametrize("word", ["simplex", "psd", "symmetric", "input", "e", "to", "λ", "x_1"])
def test_only_keywords_are_reserved(word):
    assert only(f"var {word}").name.identifier == word
    assert expression(word) == name(word)


RESERVED = "set param let var minimize maximize hidden start for in if and or not"


@pytest.mark.parametrize("word", RESERVED.split())
def test_keywords_are_no_names(word):
    with pytest.raises(GrammarError):
        parse(f"let {word} = 1")


def test_words_that_only_begin_like_keywords_are_names():
    names = ["variance", "setting", "letter", "fortune", "inner", "iffy", "notes", "parameter_1"]
    assert [expression(each) for each in names] == [name(each) for each in names]


def test_names_that_differ_in_unicode_composition_only_are_one():
    assert parse("var é").statements == parse("var e\u0301").statements


def test_comments_are_kept_apart():
    model = parse("# first\nvar x # second  \n\n#third")
    assert [each.text for each in model.comments] == ["# first", "# second", "#third"]
    assert [each.span.line for each in model.comments] == [1, 2, 4]
    assert model == parse("var x")


def test_an_empty_text_is_an_empty_model():
    assert parse("").statements == parse("\n # nothing\n;;\n").statements == ()


def test_windows_line_ends_and_a_byte_order_mark_change_nothing():
    text = "var x\nminimize x +\n  1\nsubject to\n  x <= 1\n"
    assert parse("\ufeff" + text.replace("\n", "\r\n")) == parse(text)
    assert parse(text.replace("\n", "\r")) == parse(text)


def test_power_may_be_written_with_stars():
    assert expression("x**2") == expression("x^2") == Power(x, number(2), span=HERE)


TANK = """# tank.hc
var x[2] in [0.4, 3]

minimize x[1]*x[2] + 4/x[1] + 1/x[2]

subject to
    area: x[1]*x[2] <= 1

hidden log(x)
start x = [0.6, 1.6]
"""
LQR = """# lqr.hc
param n, m
param A[n,n], B[n,m], Q[n,n] = eye(n), R[m,m] = eye(m), W[n,n] = eye(n)
var P[n,n] symmetric in psd(1e-3, 1e3)
var K[m,n] in [-50, 50]
let Acl = A + B @ K
minimize trace((Q + K.T @ R @ K) @ P)
subject to
    lyapunov: Acl @ P + P @ Acl.T + W == 0
hidden P, K @ P
"""
POSYNOMIAL = """param K, d
param b[K] > 0, a[K,d]
var x[d] in [0.5, 2]
minimize sum(b[k] * prod(x[i]^a[k,i] for i in 1..d) for k in 1..K)
subject to
    pair[i in 1..d-1]: x[i] * x[i+1] <= 1
"""


@pytest.mark.parametrize(("text", "count"), [(TANK, 5), (LQR, 13), (POSYNOMIAL, 7)])
def test_the_models_of_the_design_parse(text, count):
    assert len(parse(text).statements) == count
