"""What notebooks show: formulas of expressions, constraints and problems, tables of results."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

import hcmodel as hc

x = hc.Variable(2, name="x", bounds=(0.4, 3))
P = hc.Variable((2, 2), name="P_next", symmetric=True)


@pytest.mark.parametrize(
    ("expression", "latex", "text"),
    [
        (4 / x[0] + x[1] ** 2, r"\frac{4}{x_{1}} + x_{2}^{2}", "4x1+x22"),
        ((x[0] + 1) * x[1], r"\left(x_{1} + 1\right) \, x_{2}", "(x1+1)x2"),
        (x @ np.array([1.0, 2.0]), r"x^{\top} \, C_{2}", "x⊤C2"),
        (hc.log(x[0]), r"\log\left(x_{1}\right)", "log\u2061(x1)"),
        (hc.trace(P), r"\operatorname{trace}\left(\mathit{P\_next}\right)", "trace\u2061(P_next)"),
        (hc.abs(x[0]) - 2 * hc.sqrt(x[1]), r"\left|x_{1}\right| - 2 \, \sqrt{x_{2}}", "|x1|−2x2"),
        (P @ np.eye(2), r"\mathit{P\_next} \, I", "P_nextI"),
        (-x[0] * 3, r"-x_{1} \cdot 3", "−x1⋅3"),
        (x[0] - (-x[1]), r"x_{1} - \left(-x_{2}\right)", "x1−(−x2)"),
    ],
)
def test_expressions_are_typeset(expression, latex, text):
    assert expression._repr_latex_() == f"$\\displaystyle {latex}$"
    tree = ElementTree.fromstring(expression._repr_html_())
    assert "".join(tree.itertext()) == text


def test_constraints_show_their_names():
    row = (x[0] * x[1] <= 1).named("a<b")
    assert row._repr_latex_() == r"$\displaystyle x_{1} \, x_{2} \le 1$"
    assert row._repr_html_().startswith("a&lt;b: <math")
    assert "⪰" in (P >> 0)._repr_html_()


def test_problems_read_as_minimise_subject_to():
    row = (x[0] * x[1] <= 1).named("area")
    problem = hc.Problem(hc.Minimize(4 / x[0] + x[1]), [row])
    assert r"\text{subject to}" in problem.to_latex()
    assert problem._repr_latex_() == f"$${problem.to_latex()}$$"
    words = list(ElementTree.fromstring(problem._repr_html_()).itertext())
    assert [each for each in words if each in ("minimise", "subject to", "where", "area")] == [
        "minimise",
        "subject to",
        "area",
        "where",
    ]
    problem.solve()
    assert "optimal, value" in problem._repr_html_()
    assert "<th" in problem.solution._repr_html_()
    assert ">gap<" in problem.solution._repr_html_()
