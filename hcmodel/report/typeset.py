"""Expressions as layouts, from which LaTeX and MathML are written: one walk, two notations.

A layout is a small tree of names, numbers, signs, fractions, powers and brackets, cut where the
expression is deep. Indices are shown from 1, as in the language.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hcmodel.records import dataclass

if TYPE_CHECKING:
    from hcmodel.expressions.leaves import Expression

MAX_DEPTH = 40
SUM, PRODUCT, UNARY, POWER, ATOMIC = 1, 2, 3, 4, 5
FUNCTIONS = {"exp", "log", "sin", "cos", "tanh", "det", "max", "min"}
BIG = {"sum", "prod"}


@dataclass(frozen=True)
class Layout:
    """A piece of a formula; `strength` says how strongly it binds, for brackets."""

    kind: str
    text: str = ""
    parts: tuple[Layout, ...] = ()
    strength: int = ATOMIC


def layout(expression: Expression) -> Layout:
    """The layout of an expression."""
    return _write(expression, MAX_DEPTH)


def sign(text: str) -> Layout:
    return Layout("sign", text)


def _row(*parts: Layout, strength: int) -> Layout:
    return Layout("row", parts=parts, strength=strength)


def _write(expression: Any, depth: int) -> Layout:
    name = getattr(expression, "name", None)
    if name is not None:
        return Layout("name", name)
    if not expression.args:
        return _number(expression.value)
    if depth == 0:
        return sign("…")
    atom, params = expression.atom.name, dict(expression.params)
    parts = [_write(argument, depth - 1) for argument in expression.args]
    if atom == "index":
        return Layout("sub", parts=(_enclosed(parts[0], ATOMIC), _index(params["key"])))
    if atom == "matmul" and all(len(argument.shape) == 1 for argument in expression.args):
        parts[0] = _transposed(parts[0])
    if atom in OPERATORS:
        return OPERATORS[atom](parts)
    if atom == "transpose" and params.get("axes") is None:
        return _transposed(parts[0])
    if atom in BIG:
        return _row(Layout("big", atom), _enclosed(parts[0], PRODUCT), strength=PRODUCT)
    head = Layout("function" if atom in FUNCTIONS else "operator", atom)
    inner = _joined(parts, ",")
    return _row(head, Layout("fence", "()", (inner,)), strength=ATOMIC)


def _transposed(part: Layout) -> Layout:
    return Layout("sup", parts=(_enclosed(part, ATOMIC), sign("⊤")), strength=POWER)


def _joined(parts: list[Layout], text: str) -> Layout:
    together: list[Layout] = []
    for part in parts:
        together += [sign(text), part] if together else [part]
    return _row(*together, strength=SUM)


def _add(parts: list[Layout]) -> Layout:
    return _row(*_joined([_enclosed(part, SUM) for part in parts], "+").parts, strength=SUM)


def _sub(parts: list[Layout]) -> Layout:
    return _row(_enclosed(parts[0], SUM), sign("-"), _later(parts[1]), strength=SUM)


def _product(parts: list[Layout]) -> Layout:
    inner = [_enclosed(parts[0], PRODUCT), *map(_later, parts[1:])]
    together: list[Layout] = []
    for part in inner:
        if together:  # numbers side by side would read as one number
            digits = _begins_with_number(part)
            together.append(sign("·") if digits else Layout("space"))
        together.append(part)
    return _row(*together, strength=PRODUCT)


def _later(part: Layout) -> Layout:
    """A factor or a term after a sign: in brackets where it is a sum or has a sign itself."""
    return _enclosed(part, POWER) if part.strength == UNARY else _enclosed(part, PRODUCT)


def _begins_with_number(part: Layout) -> bool:
    if part.kind == "number":
        return True
    return part.kind in ("row", "sup") and bool(part.parts) and _begins_with_number(part.parts[0])


def _quotient(parts: list[Layout]) -> Layout:
    return Layout("fraction", parts=(parts[0], parts[1]))


def _raised(base: Layout, exponent: Layout) -> Layout:
    return Layout("sup", parts=(_enclosed(base, ATOMIC), exponent), strength=POWER)


def _negative(parts: list[Layout]) -> Layout:
    return _row(sign("-"), _enclosed(parts[0], PRODUCT), strength=UNARY)


OPERATORS: dict[str, Callable[[list[Layout]], Layout]] = {
    "add": _add,
    "sub": _sub,
    "mul": _product,
    "matmul": _product,
    "div": _quotient,
    "power": lambda parts: _raised(parts[0], parts[1]),
    "neg": _negative,
    "square": lambda parts: _raised(parts[0], Layout("number", "2")),
    "sqrt": lambda parts: Layout("root", parts=(parts[0],)),
    "abs": lambda parts: Layout("fence", "||", (parts[0],)),
    "norm": lambda parts: Layout("fence", "‖‖", (parts[0],)),
    "inv": lambda parts: _raised(parts[0], Layout("number", "-1")),
}


def _enclosed(part: Layout, needed: int) -> Layout:
    return part if part.strength >= needed else Layout("fence", "()", (part,))


def _number(value: Any) -> Layout:
    if value.ndim:
        shape = "×".join(str(length) for length in value.shape)
        entries = np.asarray(value.toarray() if hasattr(value, "toarray") else value)
        if entries.size and (entries == entries.flat[0]).all():
            return Layout("number", f"{float(entries.flat[0]):.6g}")
        if _is_identity(entries):
            return Layout("name", "I")
        return Layout("sub", parts=(Layout("name", "C"), sign(shape)))
    mantissa, _, exponent = f"{float(value):.6g}".partition("e")
    strength = UNARY if mantissa.startswith("-") else ATOMIC
    if not exponent:
        return Layout("number", mantissa, strength=strength)
    power = Layout("sup", parts=(Layout("number", "10"), Layout("number", str(int(exponent)))))
    if mantissa == "1":
        return power
    return _row(Layout("number", mantissa), sign("·"), power, strength=min(strength, PRODUCT))


def _is_identity(entries: Any) -> bool:
    square = entries.ndim == 2 and entries.shape[0] == entries.shape[1]
    return square and bool((entries == np.eye(entries.shape[0])).all())


def _index(key: Any) -> Layout:
    """Whole numbers from 1; slices and arrays as a colon, since their base would only confuse."""
    shown = [str(entry + 1) if isinstance(entry, int) else ":" for entry in key.entries]
    return sign(", ".join(shown))
