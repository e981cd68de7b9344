"""What notebooks show of expressions, constraints, problems and solutions."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from hcmodel.expressions.leaves import Constraint
from hcmodel.expressions.model import Objective
from hcmodel.report.convergence import shown_gap
from hcmodel.report.latex import constraint_latex, to_latex
from hcmodel.report.mathml import constraint_mathml, model_mathml, to_mathml
from hcmodel.report.show import problem_latex
from hcmodel.report.text import shown_array, without_rounding
from hcmodel.report.typeset import DIRECTIONS

if TYPE_CHECKING:
    from hcmodel.problem import Problem
    from hcmodel.solving.solution import Solution


def latex(shown: Any) -> str:
    """An expression, a constraint or an objective between dollar signs."""
    if isinstance(shown, Objective):
        return (
            rf"$\displaystyle \text{{{DIRECTIONS[shown.word]}}} \quad {to_latex(shown.expression)}$"
        )
    text = constraint_latex(shown) if isinstance(shown, Constraint) else to_latex(shown)
    return f"$\\displaystyle {text}$"


def html(shown: Any) -> str:
    """An expression, a constraint or an objective as MathML, with the constraint's name in front."""
    if isinstance(shown, Objective):
        return f"{DIRECTIONS[shown.word]} {to_mathml(shown.expression)}"
    if not isinstance(shown, Constraint):
        return to_mathml(shown)
    name = f"{escape(shown.name)}: " if shown.name else ""
    return f"{name}{constraint_mathml(shown)}"


def problem_html(problem: Problem) -> str:
    """A problem typeset, and what its last solve found."""
    solution = problem.solution
    below = "" if solution is None else f"<p>{escape(_outcome(solution))}</p>"
    return f"<div>{model_mathml(problem.model)}{below}</div>"


def problem_latex_block(problem: Problem) -> str:
    """A problem as a displayed formula."""
    return f"$${problem_latex(problem)}$$"


def _outcome(solution: Solution) -> str:
    value = "" if solution.value is None else f", value {solution.value:.8g}"
    gap = solution.certificate.gap
    return f"{solution.status.value}{value}" + ("" if gap is None else f", gap {gap:.1e}")


def solution_html(solution: Solution) -> str:
    """A solution as a small table."""
    certificate = solution.certificate
    rows = [("status", solution.status.value), ("why", solution.message)]
    if solution.value is not None:
        rows.append(("value", f"{solution.value:.10g}"))
    if certificate.gap is not None:
        rows.append(("gap", f"{shown_gap(solution):.2e} ({certificate.kind})"))
    if certificate.violation is not None:
        rows.append(("violation", f"{certificate.violation:.2e}"))
    if certificate.stationarity is not None:
        rows.append(("KKT residual", f"{certificate.stationarity:.2e}"))
    if solution.conflict:
        rows.append(("conflict", ", ".join(solution.conflict)))
    rows += [(name, _array(array)) for name, array in solution.point.items()]
    duals = without_rounding(solution.duals)
    rows += [(f"dual of {name}", _array(array)) for name, array in duals.items()]
    rows.append(("oracle calls", f"{solution.oracle_calls.total} by {solution.method}"))
    cells = "".join(
        f'<tr><th style="text-align:left; vertical-align:top; padding-right:1em">{escape(key)}</th>'
        f'<td style="text-align:left; white-space:pre-wrap">{_cell(text)}</td></tr>'
        for key, text in rows
    )
    return f"<table>{cells}</table>"


def _array(array: Any) -> str:
    """Matrices as matrices, other arrays on one line."""
    return "\n".join(shown_array("", array))


def _cell(text: str) -> str:
    """Lines that stand below each other have letters of one width."""
    return f"<code>{escape(text)}</code>" if "\n" in text else escape(text)


def text_html(shown: Any) -> str:
    """What `print` shows."""
    return f"<pre>{escape(str(shown))}</pre>"
