"""Expressions as readable infix text, cut where they are deep or long.

Only the top of a deep expression is walked, so printing costs the same for a sum of three terms and
of fifty thousand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hcmodel.expressions.sparse_data import Numbers, is_sparse

if TYPE_CHECKING:
    from hcmodel.expressions.node import Expression

MAX_DEPTH = 12
MAX_LENGTH = 400
ELLIPSIS = "…"

# symbol, binding strength, and the strength that each side needs to go without parentheses
INFIX = {
    "add": (" + ", 1, 1, 1),
    "sub": (" - ", 1, 1, 2),
    "mul": (" * ", 2, 2, 3),
    "div": (" / ", 2, 2, 3),
    "matmul": (" @ ", 2, 2, 3),
    "power": ("**", 4, 5, 4),
}
NEGATION, POSTFIX, ATOMIC = 3, 5, 6


# How notebooks show expressions and constraints, by kind: "latex" and "html". Typesetting stands above
# this package, so `hcmodel` itself fills the table.
RICH: dict[str, Callable[[Any], str]] = {}


def rich(kind: str, shown: Any) -> str | None:
    """An expression or a constraint for a notebook; None where nothing typesets it."""
    return RICH[kind](shown) if kind in RICH else None


def infix(expression: Expression, first: int = 0) -> str:
    """The text of `expression`, as one would write it in Python.

    With `first=1`, indices and ranges are those of the language, and labels where an axis has them.
    """
    text = _write(expression, MAX_DEPTH, first)[0]
    return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 1] + ELLIPSIS


def attribute(expression: Expression, name: str) -> str:
    """How one writes an attribute of an expression: `x[0].value`, `(x + y).value`."""
    return f"{_enclosed(_write(expression, MAX_DEPTH, 0), POSTFIX)}.{name}"


def _write(expression: Expression, depth: int, first: int) -> tuple[str, int]:
    """Text and binding strength."""
    name = getattr(expression, "name", None)
    if name is not None:
        return name, ATOMIC
    if not expression.args:
        return _number(expression.value)
    if depth == 0:
        return ELLIPSIS, ATOMIC
    atom = expression.atom.name  # type: ignore[attr-defined]
    arguments = [_write(argument, depth - 1, first) for argument in expression.args]
    if atom in INFIX:
        symbol, strength, left, right = INFIX[atom]
        sides = [_enclosed(arguments[0], left), *(_enclosed(a, right) for a in arguments[1:])]
        return symbol.join(sides), strength
    if atom == "neg":
        return "-" + _enclosed(arguments[0], NEGATION), NEGATION
    params = dict(expression.params)  # type: ignore[attr-defined]
    if atom == "index":
        key, labels = params["key"], getattr(expression.args[0], "labels", None)
        inside = key.counted(first, labels) if first else str(key)
        return f"{_enclosed(arguments[0], POSTFIX)}[{inside}]", POSTFIX
    if atom == "transpose" and params["axes"] is None:
        return _enclosed(arguments[0], POSTFIX) + ".T", POSTFIX
    words = [text for text, _ in arguments]
    if atom == "function":
        atom = getattr(params["callable"], "__name__", "function")
    else:
        words += [f"{key}={value!r}" for key, value in params.items() if value is not None]
    return f"{atom}({', '.join(words)})", ATOMIC


def _enclosed(written: tuple[str, int], needed: int) -> str:
    text, strength = written
    return text if strength >= needed else f"({text})"


def _number(value: Numbers) -> tuple[str, int]:
    if is_sparse(value):
        shape = "×".join(str(length) for length in value.shape)
        return f"[{shape} sparse, {value.nnz} numbers]", ATOMIC
    if value.ndim == 0:
        text = f"{float(value):.6g}"
        return text, NEGATION if text.startswith("-") else ATOMIC
    if value.size <= 6:
        return np.array2string(value, precision=6, separator=", ").replace("\n", ""), ATOMIC
    return f"[{'×'.join(str(length) for length in value.shape)} numbers]", ATOMIC
