"""What `hcmodel show` and `hcmodel methods` print: a model's sizes and form, and the method table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hcmodel.expressions.printing import infix
from hcmodel.report.latex import constraint_latex, latex_text, set_latex, to_latex
from hcmodel.report.text import counted
from hcmodel.report.typeset import DIRECTIONS
from hcmodel.solvers.methods import METHODS

if TYPE_CHECKING:
    from hcmodel.expressions.leaves import Constraint, Variable
    from hcmodel.expressions.model import Model
    from hcmodel.problem import Problem

MOST_LINES = 40
INEQUALITIES = ("<=", ">=")
# The default is a choice among the methods of the table rather than one of them.
AUTO = (
    "auto",
    "one convex program where the model is proven, else hidden-newton, prox-linear, sbl-adals",
    "nothing",
    "those of the methods it runs",
)


def problem_text(problem: Problem, names: Sequence[str]) -> str:
    """Sizes first, then the model in canonical order: objective, inequalities, equalities, domain."""
    canonical = problem.canonical
    outer = canonical.outer
    first = 0 if problem.source is None else 1
    lines = [
        f"unknowns       {canonical.layout.size} in {counted(len(problem.variables), 'variable')}",
        f"parameters     {len(problem.parameters)}",
        f"inequalities   {outer.inequalities}",
        f"equalities     {outer.size - outer.inequalities}",
        f"functions      {sum(root.size for root in canonical.roots)} (entries of φ)",
        "",
        f"{problem.objective.word} {infix(problem.objective.expression, first)}",
    ]
    rows = sorted(
        zip(names, problem.constraints, strict=True),
        key=lambda each: each[1].sense not in INEQUALITIES,
    )
    if rows:
        lines.append("subject to")
    for name, constraint in rows[:MOST_LINES]:
        left, right = infix(constraint.lhs, first), infix(constraint.rhs, first)
        lines.append(f"    {name}: {left} {constraint.sense} {right}{_size(constraint)}")
    if len(rows) > MOST_LINES:
        lines.append(f"    … and {len(rows) - MOST_LINES} more")
    lines += [f"    {_domain(variable)}" for variable in problem.variables]
    if problem.hidden is not None:
        lines.append("hidden " + ", ".join(infix(part, first) for part in problem.hidden))
    return "\n".join(lines)


def problem_latex(problem: Problem | Model) -> str:
    """The model as a LaTeX `aligned` environment."""
    word = DIRECTIONS[problem.objective.word]
    lines = [rf"\text{{{word}}} \quad & {to_latex(problem.objective.expression)} \\"]
    for number, constraint in enumerate(problem.constraints):
        lead = r"\text{subject to} \quad" if number == 0 else ""
        name = "" if not constraint.name else rf" && \text{{{latex_text(constraint.name)}}}"
        lines.append(rf"{lead} & {constraint_latex(constraint)}{name} \\")
    for number, variable in enumerate(problem.variables):
        lead = r"\text{where} \quad" if number == 0 else ""
        lines.append(rf"{lead} & {set_latex(variable)} \\")
    return "\n".join([r"\begin{aligned}", *lines, r"\end{aligned}"])


def methods_text() -> str:
    """The default and the table of methods."""
    titles = ("method", "what it is", "assumes", "calls")
    rows = [AUTO]
    rows += [
        (entry.name, entry.summary, entry.assumptions, entry.complexity)
        for entry in METHODS.values()
    ]
    widths = [max(len(row[i]) for row in [titles, *rows]) for i in range(len(titles))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [titles, *rows]
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def _size(constraint: Constraint) -> str:
    return "" if not constraint.shape else f"   ({counted(constraint.size, 'row')})"


def _domain(variable: Variable) -> str:
    size = "" if not variable.shape else f" of shape {variable.shape}"
    return f"{variable.name}{size} in {variable.set.summary()}"
