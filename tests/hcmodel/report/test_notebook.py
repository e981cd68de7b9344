"""What notebooks show: formulas of expressions, constraints and problems, tables of results."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

import hcmodel as hc

x = hc.Variable(2, name="x", bounds=(0.4, 3))
P = hc.Variable((2, 2), name="P_next", symmetric=True)
LONG = hc.Variable(5, name="long")
DATA, MATRIX = np.array([1.0, 2.0]), np.array([[1.0, 2.0], [3.0, 4.0]])


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
        (hc.norm(x, 1), r"\left\|x\right\|_{1}", "‖x‖1"),
        (hc.norm(x, "inf"), r"\left\|x\right\|_{\infty}", "‖x‖∞"),
        (1 - x * DATA, r"1 - x \odot C_{2}", "1−x⊙C2"),
        (
            (P * MATRIX) @ x,
            r"\left(\mathit{P\_next} \odot C_{2 \times 2}\right) \, x",
            "(P_next⊙C2×2)x",
        ),
        (
            P * (MATRIX @ P),
            r"\mathit{P\_next} \odot \left(C_{2 \times 2} \, \mathit{P\_next}\right)",
            None,
        ),
        (hc.sum(P, axis=1), r"\sum_{\text{axis } 2}\mathit{P\_next}", "∑axis 2P_next"),
        (hc.sum_largest(x, 1), r"\operatorname{sum\ largest}_{1}\left(x\right)", None),
        (LONG[1:], r"\mathit{long}_{2{:}5}", "long2:5"),
        (
            LONG[::2] + LONG[-1],
            r"\mathit{long}_{(1\,3\,5)} + \mathit{long}_{5}",
            "long(1 3 5)+long5",
        ),
        (P[[0, 1], [0, 1]], r"\mathit{P\_next}_{(1\,2), (1\,2)}", None),
        (P[:, 0][1], r"{\mathit{P\_next}_{:, 1}}_{2}", None),
        (hc.einsum("ij,j->i", P, x), r"\sum_{j}\mathit{P\_next}_{i j} \, x_{j}", None),
        (hc.hstack([x, x[:1]]), r"\left[x, x_{1}\right]", "[x,x1]"),
        (hc.max(x**2), r"\max\left(x^{2}\right)", None),
    ],
)
def test_expressions_are_typeset(expression, latex, text):
    assert expression._repr_latex_() == f"$\\displaystyle {latex}$"
    tree = ElementTree.fromstring(expression._repr_html_())
    assert text is None or "".join(tree.itertext()) == text


@pytest.mark.parametrize(
    ("options", "latex", "text"),
    [
        ({}, r"v \in \mathbb{R}^{3 \times 3}", "v∈ℝ3×3"),
        ({"pos": True}, r"v \in \mathbb{R}_{>0}^{3 \times 3}", "v∈ℝ>03×3"),
        ({"bounds": (None, 2)}, r"v \in \left(-\infty , 2\right]^{3 \times 3}", "v∈(−∞,2]3×3"),
        ({"bounds": (-1, 1e5)}, r"v \in \left[-1, 100000\right]^{3 \times 3}", None),
        ({"simplex": True}, r"v \in \Delta_{3}^{3}", "v∈Δ33"),
        ({"symmetric": True}, r"v \in \mathbb{S}^{3}", "v∈𝕊3"),
        ({"PSD": True}, r"v \in \mathbb{S}^{3}, 0 \preceq v", "v∈𝕊3,0⪯v"),
        ({"PSD": (0.5, 2)}, r"v \in \mathbb{S}^{3}, 0.5 \, I \preceq v \preceq 2 \, I", None),
    ],
)
def test_sets_are_typeset_with_sizes_and_bounds(options, latex, text):
    problem = hc.Problem(hc.Minimize(hc.sum(hc.Variable((3, 3), name="v", **options))))
    assert problem.to_latex().splitlines()[-2] == rf"\text{{where}} \quad & {latex} \\"
    rows = ElementTree.fromstring(problem._repr_html_()).findall(".//{*}mtr")
    assert text is None or "".join(list(rows)[-1].itertext()) == f"where{text}"


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


def test_results_of_studies_and_matrices_are_shown_line_by_line():
    matrix = hc.Variable((2, 2), name="M", bounds=(0.5, 2))
    cap = hc.Parameter(name="cap<1", value=1.0)
    problem = hc.Problem(
        hc.Minimize(hc.sum(1 / matrix)), [(hc.sum(matrix) <= 4 * cap).named("all")]
    )
    assert problem.objective._repr_html_().startswith("minimise <math")
    assert problem.objective._repr_latex_().startswith(r"$\displaystyle \text{minimise} \quad")
    problem.solve()
    assert "<code>[[1, 1],\n [1, 1]]</code>" in problem.solution._repr_html_()
    for shown in (problem.derivative(cap), problem.elasticities(), problem.relax()):
        assert shown._repr_html_().startswith("<pre>")
        assert "cap<" not in shown._repr_html_()


def test_analyses_typeset_the_model_in_logarithms():
    z = hc.Variable(name="z", bounds=(-1, 1))
    problem = hc.Problem(hc.Minimize(4 / x[0] ** 2 + x[1] + z**2), [x[0] * x[1] <= 1])
    table, _, formula = problem.analyze(samples=None)._repr_html_().partition("</table>")
    assert "coordinates" in table
    tree = ElementTree.fromstring(formula[formula.index("<math") :])
    rows = ["".join(row.itertext()) for row in tree.findall(".//{*}mtr")]
    assert rows == [
        "minimise4e2u1+eu2+z2",
        "subject toeu1eu2≤1",
        "whereu=log\u2061x∈[−0.9163,1.099]2",
        "z∈[−1,1]",
    ]
