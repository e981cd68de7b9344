"""Expressions as LaTeX."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hcmodel.report.typeset import Layout, layout, membership

if TYPE_CHECKING:
    from hcmodel.expressions.leaves import Constraint, Expression, Variable

GREEK = {
    "alpha", "beta", "gamma", "delta", "epsilon", "eta", "theta", "kappa", "lambda", "mu", "nu", "xi",
    "pi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega",
}  # fmt: skip
SIGNS = {
    "⊤": r"\top ", "…": r"\ldots ", "·": r"\cdot", "×": r" \times ", "⊙": r"\odot", "∈": r"\in",
    "∩": r"\cap", "⪯": r"\preceq", "∞": r"\infty ", "≥": r"\ge ", "..": r"{:}",
}  # fmt: skip
SYMBOLS = {"e": r"\mathrm{e}", "ℝ": r"\mathbb{R}", "𝕊": r"\mathbb{S}", "Δ": r"\Delta"}
FENCES = {
    "‖‖": (r"\|", r"\|"),
    **{both: (both[0], both[1]) for both in ("()", "||", "[]", "[)", "(]")},
}
# What LaTeX reads as commands, and how it is written as text.
SPECIAL = {
    "\\": r"\backslash ", "~": r"\sim ", "^": r"\wedge ", "<": "<", ">": ">",
    **{each: rf"\{each}" for each in "&%$#_{} "},
}  # fmt: skip
TEXT_SIGNS = {
    "\\": r"\textbackslash ", "~": r"\textasciitilde ", "^": r"\textasciicircum ",
    **{each: rf"\{each}" for each in "&%$#_{}"},
}  # fmt: skip
SENSES = {"<=": r"\le", ">=": r"\ge", "==": "=", ">>": r"\succeq", "<<": r"\preceq"}


def to_latex(expression: Expression) -> str:
    """LaTeX for an expression; indices are shown from 1, as in the language."""
    return _written(layout(expression))


def constraint_latex(constraint: Constraint) -> str:
    """LaTeX for a constraint."""
    left, right = to_latex(constraint.lhs), to_latex(constraint.rhs)
    return f"{left} {SENSES[constraint.sense]} {right}"


def set_latex(variable: Variable) -> str:
    """LaTeX for the set of a variable."""
    return _written(membership(variable))


def _written(part: Layout) -> str:
    inner = [_written(each) for each in part.parts]
    if part.kind == "row":
        return _row(part, inner)
    if part.kind in ("sub", "sup", "under"):
        mark = "^" if part.kind == "sup" else "_"
        base = f"{{{inner[0]}}}" if part.parts[0].kind == part.kind else inner[0]
        return f"{base}{mark}{{{inner[1].strip()}}}"
    if part.kind == "fraction":
        return rf"\frac{{{inner[0]}}}{{{inner[1]}}}"
    if part.kind == "root":
        return rf"\sqrt{{{inner[0]}}}"
    if part.kind == "fence":
        left, right = FENCES[part.text]
        return rf"\left{left}{inner[0]}\right{right}"
    return _leaf(part)


def _leaf(part: Layout) -> str:
    if part.kind == "name":
        return latex_name(part.text)
    if part.kind == "number":
        return part.text
    if part.kind == "space":
        return r"\,"
    if part.kind in ("big", "function"):
        return f"\\{part.text}"
    if part.kind == "operator":
        words = part.text.replace("_", r"\ ")
        return rf"\operatorname{{{words}}}"
    if part.kind == "symbol":
        return SYMBOLS[part.text]
    text = re.sub(r"(?<=[\d…]) (?=[\d…])", r"\\,", part.text)
    text = re.sub(r"[a-z]{3,}", lambda found: rf"\text{{{found[0]} }}", text)
    return re.sub(r"\.\.|[⊤…·×⊙∈∩⪯∞≥]", lambda found: SIGNS[found[0]], text)


def _row(part: Layout, inner: list[str]) -> str:
    """Signs with room around them; a comma has none before it, a minus at the start none after it."""
    text = ""
    for number, (each, written) in enumerate(zip(part.parts, inner, strict=True)):
        if each.kind == "sign" and each.text == ",":
            text += ", "
        elif (each.kind == "sign" and number > 0) or each.kind in ("space", "big"):
            text += f" {written} " if text else f"{written} "
        else:
            text += written
    return text


def latex_name(name: str) -> str:
    """The name of a variable, parameter or constraint."""
    if name in GREEK:
        return f"\\{name}"
    escaped = "".join(SPECIAL.get(letter, letter) for letter in name)
    return escaped if len(name) == 1 else rf"\mathit{{{escaped}}}"


def latex_text(text: str) -> str:
    """Text for `\\text{…}`: signs with a meaning in LaTeX are written out."""
    return "".join(TEXT_SIGNS.get(letter, letter) for letter in text)
