"""What notebooks show of expressions, constraints, problems and solutions."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from hcmodel.expressions.leaves import Constraint
from hcmodel.report.convergence import shown_gap
from hcmodel.report.latex import constraint_latex, to_latex
from hcmodel.report.mathml import constraint_mathml, model_mathml, to_mathml
from hcmodel.report.show import problem_latex
from hcmodel.report.text import short_array

if TYPE_CHECKING:
    from hcmodel.problem import Problem
    from hcmodel.solving.solution import Solution


def latex(shown: Any) -> str:
    """An expression or a constraint between dollar signs."""
    text = constraint_latex(shown) if isinstance(shown, Constraint) else to_latex(shown)
    return f"$\\displaystyle {text}$"


def html(shown: Any) -> str:
    """An expression or a constraint as MathML, with the name of a constraint in front."""
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
    rows += [(name, short_array(array)) for name, array in solution.point.items()]
    rows += [(f"dual of {name}", short_array(array)) for name, array in solution.duals.items()]
    rows.append(("oracle calls", f"{solution.oracle_calls.total} by {solution.method}"))
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(key)}</th>'
        f'<td style="text-align:left">{escape(text)}</td></tr>'
        for key, text in rows
    )
    return f"<table>{cells}</table>"
