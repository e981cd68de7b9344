"""Expressions as LaTeX, cut where they are deep."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from hcmodel.expressions.leaves import Expression

MAX_DEPTH = 40
SUM, PRODUCT, UNARY, POWER, ATOMIC = 1, 2, 3, 4, 5

GREEK = {
    "alpha", "beta", "gamma", "delta", "epsilon", "eta", "theta", "kappa", "lambda", "mu", "nu", "xi",
    "pi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega",
}  # fmt: skip
FUNCTIONS = {"exp", "log", "sin", "cos", "tanh", "det", "max", "min"}
BIG = {"sum": r"\sum", "prod": r"\prod"}


def to_latex(expression: Expression) -> str:
    """LaTeX for an expression; indices are shown from 1, as in the language."""
    return _write(expression, MAX_DEPTH)[0]


def _write(expression: Any, depth: int) -> tuple[str, int]:
    name = getattr(expression, "name", None)
    if name is not None:
        return _name(name), ATOMIC
    if not expression.args:
        return _number(expression.value)
    if depth == 0:
        return r"\ldots", ATOMIC
    atom, params = expression.atom.name, dict(expression.params)
    parts = [_write(argument, depth - 1) for argument in expression.args]
    if atom == "index":
        return f"{_enclosed(parts[0], ATOMIC)}_{{{_index(params['key'])}}}", ATOMIC
    if atom in OPERATORS:
        return OPERATORS[atom](parts)
    if atom == "transpose" and params.get("axes") is None:
        return f"{_enclosed(parts[0], ATOMIC)}^\\top", ATOMIC
    inner = ", ".join(text for text, _ in parts)
    if atom in BIG:
        return f"{BIG[atom]} {_enclosed(parts[0], PRODUCT)}", PRODUCT
    head = f"\\{atom}" if atom in FUNCTIONS else rf"\operatorname{{{atom.replace('_', ' ')}}}"
    return rf"{head}\left({inner}\right)", ATOMIC


def _add(parts: list[tuple[str, int]]) -> tuple[str, int]:
    return " + ".join(_enclosed(part, SUM) for part in parts), SUM


def _sub(parts: list[tuple[str, int]]) -> tuple[str, int]:
    return f"{_enclosed(parts[0], SUM)} - {_enclosed(parts[1], PRODUCT)}", SUM


def _product(parts: list[tuple[str, int]]) -> tuple[str, int]:
    return r" \, ".join(_enclosed(part, PRODUCT) for part in parts), PRODUCT


def _quotient(parts: list[tuple[str, int]]) -> tuple[str, int]:
    return rf"\frac{{{parts[0][0]}}}{{{parts[1][0]}}}", ATOMIC


def _power(parts: list[tuple[str, int]]) -> tuple[str, int]:
    return f"{_enclosed(parts[0], ATOMIC)}^{{{parts[1][0]}}}", POWER


def _negative(parts: list[tuple[str, int]]) -> tuple[str, int]:
    return f"-{_enclosed(parts[0], PRODUCT)}", UNARY


Part = tuple[str, int]

OPERATORS: dict[str, Callable[[list[Part]], Part]] = {
    "add": _add,
    "sub": _sub,
    "mul": _product,
    "matmul": _product,
    "div": _quotient,
    "power": _power,
    "neg": _negative,
    "square": lambda parts: (f"{_enclosed(parts[0], ATOMIC)}^{{2}}", POWER),
    "sqrt": lambda parts: (rf"\sqrt{{{parts[0][0]}}}", ATOMIC),
    "abs": lambda parts: (rf"\left|{parts[0][0]}\right|", ATOMIC),
    "norm": lambda parts: (rf"\left\|{parts[0][0]}\right\|", ATOMIC),
    "inv": lambda parts: (f"{_enclosed(parts[0], ATOMIC)}^{{-1}}", POWER),
}


def _enclosed(part: tuple[str, int], needed: int) -> str:
    text, strength = part
    return text if strength >= needed else rf"\left({text}\right)"


def _name(name: str) -> str:
    if name in GREEK:
        return f"\\{name}"
    escaped = name.replace("_", r"\_")
    return name if len(name) == 1 else rf"\mathit{{{escaped}}}"


def _number(value: np.ndarray) -> tuple[str, int]:
    if value.ndim:
        shape = r" \times ".join(str(length) for length in value.shape)
        return f"C_{{{shape}}}", ATOMIC
    mantissa, _, exponent = f"{float(value):.6g}".partition("e")
    text = rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa
    return text, UNARY if text.startswith("-") else ATOMIC


def _index(key: Any) -> str:
    """Whole numbers from 1; slices and arrays as a colon, since their base would only confuse."""
    shown = [str(entry + 1) if isinstance(entry, int) else ":" for entry in key.entries]
    return ", ".join(shown)
