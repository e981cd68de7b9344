"""Expressions and models as MathML, which browsers typeset without any script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from hcmodel.report.typeset import (
    DIRECTIONS,
    Layout,
    layout,
    logarithm_names,
    logarithm_set,
    logarithmic,
    membership,
)

if TYPE_CHECKING:
    from hcmodel.expressions.leaves import Constraint, Expression
    from hcmodel.expressions.model import Model

LETTERS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η", "theta": "θ",
    "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ",
    "tau": "τ", "phi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω",
}  # fmt: skip
SIGNS = {"-": "−", "·": "⋅"}
FENCES = {both: (both[0], both[1]) for both in ("()", "||", "‖‖", "[]", "[)", "(]")}
SENSES = {"<=": "≤", ">=": "≥", "==": "=", ">>": "⪰", "<<": "⪯"}
BIG = {"sum": "∑", "prod": "∏"}


def to_mathml(expression: Expression) -> str:
    """A `math` element for an expression."""
    return _math(_written(layout(expression)))


def constraint_mathml(constraint: Constraint) -> str:
    """A `math` element for a constraint."""
    return _math(_relation(constraint))


def model_mathml(model: Model, logarithms: Sequence[str] = ()) -> str:
    """A `math` element that states the model: objective, rows, sets of the variables.

    With `logarithms` of variables, by name, the model is stated in these.
    """
    names = logarithm_names(logarithms)

    def written(part: Layout) -> str:
        return _written(logarithmic(part, names) if names else part)

    rows = [(DIRECTIONS[model.objective.word], written(layout(model.objective.expression)), "")]
    for number, constraint in enumerate(model.constraints):
        lead = "subject to" if number == 0 else ""
        left, right = written(layout(constraint.lhs)), written(layout(constraint.rhs))
        sense = f"<mo>{SENSES[constraint.sense]}</mo>"
        rows.append((lead, f"{left}{sense}{right}", constraint.name or ""))
    for number, variable in enumerate(model.variables):
        lead = "where" if number == 0 else ""
        own = names.get(variable.name)
        inside = membership(variable) if own is None else logarithm_set(variable, own)
        rows.append((lead, _written(inside), ""))
    cells = "".join(
        f'<mtr><mtd style="text-align:left; white-space:nowrap">{_text(lead)}</mtd>'
        f'<mtd style="text-align:left"><mstyle displaystyle="true"><mrow>{body}</mrow></mstyle></mtd>'
        f'<mtd style="text-align:left; padding-left:1em">{_text(note)}</mtd></mtr>'
        for lead, body, note in rows
    )
    # browsers would squeeze a wide table, and its cells would overlap
    look = 'columnspacing="1.2em" rowspacing="0.5em" style="width:max-content"'
    return _math(f"<mtable {look}>{cells}</mtable>", block=True)


def _math(inner: str, block: bool = False) -> str:
    display = "block" if block else "inline"
    return (
        f'<math xmlns="http://www.w3.org/1998/Math/MathML" display="{display}" '
        f'displaystyle="true"><mrow>{inner}</mrow></math>'
    )


def _relation(constraint: Constraint) -> str:
    left, right = _written(layout(constraint.lhs)), _written(layout(constraint.rhs))
    return f"{left}<mo>{SENSES[constraint.sense]}</mo>{right}"


def _text(text: str) -> str:
    return f"<mtext>{escape(text)}</mtext>" if text else "<mtext></mtext>"


def _written(part: Layout) -> str:
    inner = [_written(each) for each in part.parts]
    if part.kind == "row":
        return f"<mrow>{''.join(inner)}</mrow>"
    if part.kind in ("sub", "sup"):
        return f"<m{part.kind}>{inner[0]}{inner[1]}</m{part.kind}>"
    if part.kind == "under":
        return f"<munder>{inner[0]}{inner[1]}</munder>"
    if part.kind == "fraction":
        return f"<mfrac>{inner[0]}{inner[1]}</mfrac>"
    if part.kind == "root":
        return f"<msqrt>{inner[0]}</msqrt>"
    if part.kind == "fence":
        left, right = FENCES[part.text]
        return f'<mrow><mo stretchy="true">{left}</mo>{inner[0]}<mo stretchy="true">{right}</mo></mrow>'
    return _leaf(part)


def _leaf(part: Layout) -> str:
    text = escape(part.text)
    if part.kind == "name":
        return f"<mi>{LETTERS.get(part.text, text)}</mi>"
    if part.kind == "number":
        return f"<mn>{text.replace('-', '−')}</mn>"
    if part.kind == "space":
        return '<mspace width="0.2em"></mspace>'
    if part.kind == "big":
        return f"<mo>{BIG[part.text]}</mo>"
    if part.kind in ("function", "operator"):
        return f"<mrow><mi>{text.replace('_', ' ')}</mi><mo>&#x2061;</mo></mrow>"
    if part.kind == "symbol":
        return f'<mi mathvariant="normal">{text}</mi>'
    if len(part.text) > 1:  # several signs, as in an index
        shown = text.replace("..", ":").replace("-∞", "−∞")
        return f"<mtext>{shown}</mtext>"
    return f"<mo>{SIGNS.get(part.text, text)}</mo>"
