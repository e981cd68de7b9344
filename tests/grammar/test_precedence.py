"""Which operator binds tighter: each expression equals the same one with all brackets written."""

import pytest

from hcmodel.grammar import parse
from hcmodel.grammar.syntax import Arithmetic


def expression(text):
    return parse(f"minimize {text}").statements[0].expression


@pytest.mark.parametrize(
    ("text", "bracketed"),
    [
        ("-x^2", "-(x^2)"),
        ("2^-x", "2^(-x)"),
        ("2^-x^2", "2^(-(x^2))"),
        ("a^b^c", "a^(b^c)"),
        ("a**b^c", "a^(b^c)"),
        ("-a*b", "(-a)*b"),
        ("a*-b", "a*(-b)"),
        ("a - -b", "a - (-b)"),
        ("a + b*c", "a + (b*c)"),
        ("a*b + c", "(a*b) + c"),
        ("a*b^c", "a*(b^c)"),
        ("a @ b + c", "(a @ b) + c"),
        ("-a + b", "(-a) + b"),
        ("--a", "-(-a)"),
        ("a.T^2", "(a.T)^2"),
        ("-a.T", "-(a.T)"),
        ("a[1]^b[2]", "(a[1])^(b[2])"),
    ],
)
def test_precedence(text, bracketed):
    assert expression(text) == expression(bracketed)


@pytest.mark.parametrize(
    ("text", "other"),
    [("(a^b)^c", "a^b^c"), ("(-x)^2", "-x^2"), ("a - (b - c)", "a - b - c"), ("(a+b)*c", "a+b*c")],
)
def test_brackets_matter(text, other):
    assert expression(text) != expression(other)


@pytest.mark.parametrize("operators", [("-", "+", "-"), ("*", "/", "@"), ("/", "/", "*")])
def test_one_precedence_is_one_run_from_the_left(operators):
    found = expression("a {} b {} c {} d".format(*operators))
    assert isinstance(found, Arithmetic)
    assert found.operators == operators
    assert [each.identifier for each in found.operands] == list("abcd")


def test_ranges_bind_looser_than_sums():
    found = parse("set S = 1+2..n-1").statements[0].value
    assert found == parse("set S = (1+2)..(n-1)").statements[0].value


def test_and_binds_tighter_than_or_and_not_tighter_than_both():
    def condition(text):
        return parse(f"subject to\n c[i in S if {text}]: x <= 1").statements[0].condition

    assert condition("not i < 1 and i > 2 or i == 3") == condition(
        "((not (i < 1)) and i > 2) or i == 3"
    )
    assert condition("i < 1 or i > 2 and i == 3") == condition("i < 1 or (i > 2 and i == 3)")
