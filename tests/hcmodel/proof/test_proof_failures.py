"""What a failed proof says: the sub-expression that breaks it, the reason, the place in the text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.proof.prove import prove

x, y = hc.Variable(name="x", bounds=(0.1, 10)), hc.Variable(name="y", bounds=(0.1, 10))
z, t = hc.Variable(name="z", bounds=(-1, 1)), hc.Variable(name="t", bounds=(-1, 1))
w = hc.Variable(name="w", bounds=(0, 5))
K = hc.Variable((2, 2), name="K", bounds=(-1, 1))
X = hc.Variable((2, 2), name="X", PSD=0.1)
NEGATIVE = hc.Parameter(name="k", value=-1.0)


def black_box(a: Any) -> Any:
    return a


PRODUCT = "a product of varying terms, convex only through logarithms, but"
QUOTIENT = "a quotient of varying terms, convex only through logarithms, but"

TABLE: list[tuple[Any, list[Any], str, str]] = [
    (hc.Minimize(z * t), [], "z * t", f"z * t is {PRODUCT} z may be 0 or change its sign"),
    (
        hc.Minimize(x * y + (x - y) ** 2),
        [],
        "x * y",
        f"x * y is {PRODUCT} with x in logarithms x - y breaks the proof",
    ),
    (
        hc.Minimize(x * y * z),
        [],
        "x * y * z",
        f"x * y * z is {PRODUCT} z may be 0 or change its sign",
    ),
    (
        hc.Minimize(hc.exp(z) / (1 + hc.exp(z))),
        [],
        "exp(z) / (1 + exp(z))",
        f"exp(z) / (1 + exp(z)) is {QUOTIENT} 1 + exp(z) is not log-concave",
    ),
    (
        hc.Minimize(hc.trace(K**-1)),
        [],
        "K**(-1)",
        "K**(-1) needs K to be of one sign and never 0, which is not proven; ** works entry by entry, "
        "and the inverse of a matrix is hc.inv(K)",
    ),
    (
        hc.Minimize(hc.sum(1 / K)),
        [],
        "1 / K",
        "1 / K needs K to be of one sign and never 0, which is not proven",
    ),
    (hc.Minimize(hc.log(w)), [], "log(w)", "log(w) is concave, where a convex term is needed"),
    (hc.Minimize(t - z**2), [], "z**2", "z**2 is convex, where a concave term is needed"),
    (hc.Maximize(z**2 + t), [], "z**2", "z**2 is convex, where a concave term is needed"),
    (hc.Minimize(z), [z**2 + t == 1], "z**2", "z**2 is convex, where an affine term is needed"),
    (
        hc.Minimize(x * y),
        [x + 1 / y + x * y >= 3],
        "x",
        "x is convex in the coordinate log(x), where a concave term is needed",
    ),
    (
        hc.Minimize(x * y + 1 / x - 3 * y),
        [],
        "3 * y",
        "3 * y is convex, where a concave term is needed",
    ),
    (
        hc.Minimize(hc.exp(z) + hc.sin(z)),
        [],
        "sin(z)",
        "sin(z): the curvature of `sin` is not known for such arguments",
    ),
    (
        hc.Minimize(hc.function(black_box, z)),
        [],
        "black_box(z)",
        "black_box(z) is a program: nothing is known about its curvature",
    ),
    (
        hc.Minimize(t + z**3),
        [],
        "z**3",
        "z**3: the curvature of `power` is not known for such arguments",
    ),
    (
        hc.Minimize(x / z),
        [],
        "x / z",
        "x / z needs z to be of one sign and never 0, which is not proven",
    ),
    (
        hc.Minimize((z**2 - t) ** 1.5),
        [],
        "(z**2 - t)**1.5",
        "(z**2 - t)**1.5 needs z**2 - t to be >= 0, which is not proven",
    ),
    (
        hc.Minimize(hc.exp(hc.abs(hc.exp(z) - 1))),
        [],
        "abs(exp(z) - 1)",
        "abs(exp(z) - 1) is convex in its argument, which must be affine, but exp(z) - 1 is convex",
    ),
    (
        hc.Minimize(hc.exp(hc.exp(z) - hc.exp(t))),
        [],
        "exp(z) - exp(t)",
        "exp(z) - exp(t) adds exp(z), which is convex, and -exp(t), which is concave",
    ),
    (
        hc.Maximize(w * hc.exp(-w) + hc.exp(-w)),
        [],
        "w * exp(-w)",
        "w * exp(-w) is a product of varying terms, where a concave term is needed",
    ),
    (
        hc.Maximize((1 + w) * hc.exp(-w) + w),
        [],
        "(1 + w) * exp(-w)",
        "(1 + w) * exp(-w) is only log-concave, where a concave term is needed",
    ),
    (
        hc.Minimize(hc.trace(K.T @ K @ X)),
        [],
        "K.T @ K",
        f"K.T @ K is {PRODUCT} K.T may be 0 or change its sign",
    ),
    (
        hc.Minimize(z + hc.trace(hc.lyap(K, np.eye(2)))),
        [],
        "lyap(K, [[1., 0.], [0., 1.]])",
        "lyap(K, [[1., 0.], [0., 1.]]) needs K to be constant, which is not proven",
    ),
    (hc.Minimize(z), [t <= hc.log(NEGATIVE)], "log(k)", "log(k) is not a number"),
    (hc.Minimize(z + hc.log(NEGATIVE)), [], "z + log(k)", "log(k) is not a number"),
    (
        hc.Minimize(z),
        [hc.norm(hc.hstack([z, t])) >= 1],
        "norm(hstack(z, t), p=2.0)",
        "norm(hstack(z, t), p=2.0) is convex, where a concave term is needed",
    ),
]


@pytest.mark.parametrize(("objective", "constraints", "expression", "reason"), TABLE, ids=str)
def test_a_failure_names_the_smallest_expression_and_the_reason(
    objective: Any, constraints: list[Any], expression: str, reason: str
) -> None:
    proof = prove(objective.expression, objective.sign, constraints)
    assert not proof.proven
    assert proof.failure is not None
    assert str(proof.failure.expression) == expression
    assert proof.failure.reason == reason
    assert proof.failure.function == ("c1" if constraints else "objective")
    assert proof.failure.constraint == (0 if constraints else None)


def failure_in(text: str) -> Any:
    problem = hc.parse(text)
    objective = problem.objective
    proof = prove(objective.expression, objective.sign, problem.constraints, source=problem.source)
    return proof.failure


def test_a_failure_in_a_text_has_its_place() -> None:
    declarations = "var x in [-1, 1], y in [-1, 1]\n"
    objective = failure_in(declarations + "minimize x*y + 2\n")
    assert (objective.span.line, objective.span.column) == (2, 10)
    rows = "minimize x\nsubject to\n    y <= 1\n    near: 0 <= x*y <= 1\n"
    chain = failure_in(declarations + rows)
    assert chain.function == "near.lower"
    assert chain.span.line == 5
    second = failure_in(declarations + "minimize x\nsubject to\n    y <= 1\n    x*y <= 1\n")
    assert second.function == "c2"
    assert second.span.line == 5


def test_a_failure_in_a_text_uses_its_words_and_points_into_it() -> None:
    text = (
        "var x[3] in [-1, 1], y in [-1, 1]\n"
        "let bend[i in 1..3] = y - 2*x[i]^2\n"
        "minimize y\n"
        "subject to\n"
        "    row[i in 1..3]: bend[i] + 1 >= 0\n"
        "    product: exp(y) + x[1] * y <= 3\n"
        "    valley[i in 1..3]: bend[i] <= 0\n"
    )
    product = failure_in(text)
    assert product.function == "product"
    assert product.reason.startswith("x[1] * y is a product of varying terms")
    assert (product.span.line, product.span.column, product.span.end_column) == (6, 23, 31)
    valley = failure_in(text.replace("x[1] * y", "x[1]"))
    assert valley.reason == "x[i]^2 is convex, where a concave term is needed"
    assert (valley.span.line, valley.span.column, valley.span.end_column) == (2, 29, 35)
