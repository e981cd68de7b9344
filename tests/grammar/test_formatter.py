"""The formatter: one layout, no other change."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hcmodel.grammar import format_model, parse
from tests.extent import several

UNTIDY = """# lqr


param   n,m   # sizes
param A[n ,n], B[n,m], Q[n,n] = eye(n)
var P[n,n]  symmetric   in psd(1e-3,1e3) # the matrix
var K[m,n] in [ -50,50 ]   # gain
var total>=0
let Acl=A+B@K;let z = 3
let M = [[1,2],
  [3,4]]
let N = [
 1,2, # one
 # inner
 3
 ]
let y[i in 1 .. n-1, j in S]= x[2*i + 1, j]**-2 * 3 - -4
minimize trace((Q + K.T@R @K) @ P)+ sum(b[k]*x[k] for k in 1..K if k!=2) +
   3 * norm(x,"fro",axis = 1)

subject   to a: x<=1; -y <= 2*(3+
  4); z <= 3
      # about
  lyapunov: Acl @ P + W == 0



  pair[i in 1..d-1 if i != 3 and (i < 2 or not i > 4)]: x[i] * x[i+1] <= 1
  s: x[ : , 1 ] == 4*x/y - 1 #last
# tail
hidden P, K @ P"""
TIDY = """# lqr

param n, m  # sizes
param A[n,n], B[n,m], Q[n,n] = eye(n)
var P[n,n] symmetric in psd(1e-3, 1e3)  # the matrix
var K[m,n] in [-50, 50]                 # gain
var total  >= 0
let Acl = A + B @ K
let z   = 3
let M = [[1, 2],
         [3, 4]]
let N = [
    1, 2,  # one
    # inner
    3
]
let y[i in 1..n-1, j in S] = x[2*i+1,j]^-2*3 - -4
minimize trace((Q + K.T @ R @ K) @ P) + sum(b[k] * x[k] for k in 1..K if k != 2) +
    3*norm(x, "fro", axis=1)

subject to
    a: x <= 1; -y <= 2 * (3 +
                          4)
    z <= 3
    # about
    lyapunov: Acl @ P + W == 0

    pair[i in 1..d-1 if i != 3 and (i < 2 or not i > 4)]: x[i] * x[i+1] <= 1
    s: x[:,1] == 4*x/y - 1  #last
# tail
hidden P, K @ P
"""


def test_an_untidy_model_becomes_tidy():
    assert format_model(UNTIDY) == TIDY


def test_a_tidy_model_stays():
    assert format_model(TIDY) == TIDY


@pytest.mark.parametrize(
    ("text", "formatted"),
    [
        ("", ""),
        ("\n\n", ""),
        ("\n\n# only a comment  \n\n\n", "# only a comment\n"),
        ("var x;var yy in [0,1]", "var x\nvar yy in [0, 1]\n"),
        ("var x>0;var long in [0,1]", "var x    > 0\nvar long in [0, 1]\n"),
        ("var x>0\n\nvar long in [0,1]", "var x > 0\n\nvar long in [0, 1]\n"),
        ("param a=1,b=2\nparam long=3", "param a = 1, b = 2\nparam long = 3\n"),
        ("minimize\n-x", "minimize\n    -x\n"),
        ("minimize x ** 2*y", "minimize x^2 * y\n"),
        ("minimize x ** 2*y-1", "minimize x^2*y - 1\n"),
        ("minimize x*y@z+1", "minimize x * y @ z + 1\n"),
        ("subject to -x<=1", "subject to\n    -x <= 1\n"),
        ("subject to\n#a\nx<=1\n#b", "subject to\n    #a\n    x <= 1\n#b\n"),
        ("subject to # why\nx<=1", "subject to  # why\n    x <= 1\n"),
        ("let f=g(\nx,\ny)", "let f = g(\n    x,\n    y)\n"),
        ("let f = g( h(x ,\ny))", "let f = g(h(x,\n            y))\n"),
        ("var x\r\nvar y\r\n", "var x\nvar y\n"),
    ],
)
def test_layout_rules(text, formatted):
    assert format_model(text) == formatted
    assert format_model(formatted) == formatted
    assert parse(formatted) == parse(text)


# ---- random models ------------------------------------------------------------------------------

WORD = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_λ"
GOES_ON = {"+", "-", "*", "/", "@", "^", "**", "<=", ">=", "==", "!=", "<", ">", "..", ",", "="}


class Writer:
    """Writes random models as lists of words and signs, then joins them in a random layout."""

    def __init__(self, chance):
        self.chance = chance

    def pick(self, *options):
        return self.chance.choice(options)

    def several(self, make, most=3):
        words = make()
        for _ in range(self.chance.randrange(most)):
            words = [*words, ",", *make()]
        return words

    def name(self):
        return [self.pick("x", "y", "A", "λ", "total", "i", "psd", "e")]

    def number(self):
        return [self.pick("1", "2", "0.5", "1e-3", "30")]

    def expression(self, depth=3):
        if depth == 0:
            return self.pick(self.name, self.number)()
        deeper = depth - 1
        kind = self.chance.randrange(11)
        if kind < 3:
            sign = self.pick("+", "-", "*", "/", "@")
            return [*self.operand(deeper), sign, *self.operand(deeper)]
        if kind == 3:
            return [*self.base(deeper), self.pick("^", "**"), *self.operand(deeper)]
        if kind == 4:
            return [self.pick("-", "+"), *self.operand(deeper)]
        if kind == 5:
            return ["[", *self.several(lambda: self.expression(deeper)), "]"]
        if kind == 6:
            head = [self.pick("sum", "prod", "max"), "(", *self.expression(deeper), "for"]
            return [*head, *self.several(self.generator), *self.filter(), ")"]
        if kind == 7:
            tail = self.pick([], [",", "axis", "=", "1"], [",", '"fro"'])
            return ["f", "(", *self.several(lambda: self.expression(deeper)), *tail, ")"]
        return self.base(depth)

    def operand(self, depth):
        words = self.expression(depth)
        return words if self.pick(True, False) else ["(", *words, ")"]

    def base(self, depth):
        kind = self.chance.randrange(4)
        if kind == 0:
            return ["(", *self.expression(depth - 1 if depth else 0), ")"]
        if kind == 1:
            return [*self.name(), ".T"]
        if kind == 2:
            return [*self.name(), "[", *self.several(self.index), "]"]
        return self.pick(self.name, self.number)()

    def index(self):
        return self.pick([":"], self.number(), self.expression(1), self.range())

    def range(self):
        return [*self.number(), "..", *self.expression(1)]

    def generator(self):
        return [*self.name(), "in", *self.pick(self.range(), self.name(), ["[", "1", "]"])]

    def condition(self):
        compare = [*self.expression(1), self.pick("<", "<=", "!=", "=="), *self.expression(1)]
        kind = self.chance.randrange(5)
        if kind == 0:
            return ["not", *compare]
        if kind == 1:
            return [*compare, self.pick("and", "or"), "(", *self.condition(), ")"]
        return compare

    def filter(self):
        return self.pick([], ["if", *self.condition()])

    def shape(self):
        return self.pick([], ["[", *self.several(lambda: self.pick(self.name, self.range)()), "]"])

    def domain(self):
        return self.pick(
            [],
            [">=", "0"],
            ["in", "[", "0", ",", *self.expression(1), "]"],
            ["in", "simplex"],
            ["symmetric", "in", "psd", "(", "1e-3", ")"],
        )

    def statement(self):
        kind = self.chance.randrange(7)
        if kind == 0:
            return ["set", "S", "=", *self.pick(self.range(), ["[", "1", ",", "2", "]"])]
        if kind == 1:
            bound = self.pick([], [">", "0"], ["=", *self.expression(1)])
            return ["param", *self.several(lambda: [*self.name(), *self.shape(), *bound])]
        if kind == 2:
            family = self.pick([], ["[", *self.several(self.generator), "]"])
            return ["let", *self.name(), *family, "=", *self.expression()]
        if kind == 3:
            return ["var", *self.several(lambda: [*self.name(), *self.shape(), *self.domain()])]
        if kind == 4:
            return ["hidden", *self.several(self.expression)]
        if kind == 5:
            return ["start", *self.name(), "=", *self.expression()]
        return ["let", *self.name(), "=", *self.expression(3)]

    def constraint(self):
        family = self.pick([], ["[", *self.several(self.generator), *self.filter(), "]"])
        words = [*self.expression(2), self.pick("<=", ">=", "=="), *self.expression(2)]
        if self.pick(True, False):
            return [*self.name(), *family, ":", *words]
        return words

    def model(self):
        parts = [self.statement() for _ in range(self.chance.randrange(4))]
        parts.append([self.pick("minimize", "maximize"), *self.expression(3)])
        constraints = [self.constraint() for _ in range(self.chance.randrange(4))]
        parts += [["subject to"], *constraints]
        parts += self.pick([], [["hidden", *self.expression(1)]])
        ends = ["\n", "\n\n\n", ";\n", " # end\n", "\n  # own line\n", "\n\t"]
        text = self.pick("", "# head\n", "\n")
        for part, following in zip(parts, [*parts[1:], [""]], strict=True):
            text += self.joined(part)
            if part == ["subject to"]:
                text += self.pick(" ", "\n", " # section\n\n")
            elif following[0] in ("+", "-"):  # a line could not begin with it
                text += "; "
            else:
                text += self.pick(*ends)
        return text

    def joined(self, words):
        text, depth = "", 0
        for word, following in zip(words, [*words[1:], ""], strict=True):
            text += word
            depth += (word in "([") - (word in ")]")
            gaps = [" ", " ", "  ", "\t"]
            if not (word[-1] in WORD and following[:1] in WORD):
                gaps += ["", ""]
            if following and (depth or word in GOES_ON):
                gaps += ["\n", "  # aside\n  ", "\n# between\n"]
            text += self.chance.choice(gaps)
        return text


@settings(
    max_examples=several(50, 500),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
@given(st.integers(0, 2**32).map(random.Random))
def test_random_models_keep_tree_and_comments_and_are_formatted_once(chance):
    text = Writer(chance).model()
    formatted = format_model(text)
    before, after = parse(text), parse(formatted)
    assert after == before
    assert [each.text for each in after.comments] == [each.text for each in before.comments]
    assert format_model(formatted) == formatted
    assert all(line == line.rstrip() for line in formatted.split("\n"))
