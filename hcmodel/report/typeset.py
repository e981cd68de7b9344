"""Expressions as layouts, from which LaTeX and MathML are written: one walk, two notations.

A layout is a small tree of names, numbers, signs, fractions, powers and brackets, cut where the
expression is deep. Indices are shown from 1, as in the language.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hcmodel.records import dataclass

if TYPE_CHECKING:
    from hcmodel.expressions.leaves import Expression, Variable

MAX_DEPTH = 40
SUM, ENTRYWISE, PRODUCT, UNARY, POWER, ATOMIC = 1, 2, 3, 4, 5, 6
FUNCTIONS = {"exp", "log", "sin", "cos", "tanh", "det", "max", "min"}
BIG = {"sum", "prod"}
# What formulas call the directions.
DIRECTIONS = {"minimize": "minimise", "maximize": "maximise"}
# Parameters of atoms that change what is computed; they stand as an index.
NORMS = {1.0: "1", 2.0: "2", np.inf: "∞", "fro": "F"}
# Indices of sums over products of arrays.
LETTERS = "ijklmnpqrstuvw"
# The text of layouts that are powers of e.
EXPONENTIAL = "exp"
# Entries of an index array that are written out.
MOST_ENTRIES = 4


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


def membership(variable: Variable) -> Layout:
    """In which set a variable lies, with its size."""
    name, domain = _write(variable, MAX_DEPTH), variable.set
    lower, upper = domain.ends()
    box = _within(lower, upper, domain.positive, variable.shape)
    if domain.is_distribution:
        simplex = Layout("sub", parts=(symbol("Δ"), sign(str(variable.shape[-1]))))
        parts = [name, sign("∈"), _shaped(simplex, variable.shape[:-1])]
        inside = lower in ("0", "-∞") and upper in ("1", "∞")
        return _row(*parts, *(() if inside else (sign("∩"), box)), strength=SUM)
    if not domain.is_symmetric:
        return _row(name, sign("∈"), box, strength=SUM)
    matrices = _shaped(symbol("𝕊"), variable.shape[:1])
    parts = [name, sign("∈"), matrices]
    if domain.has_bounds:
        parts += [sign("∩"), box]
    if domain.eigenvalue_bounds is not None:
        parts += [sign(","), *_between(name, *domain.eigenvalue_bounds)]
    return _row(*parts, strength=SUM)


def logarithmic(part: Layout, logarithms: Mapping[str, Layout]) -> Layout:
    """A layout with exp(u) in place of the variables whose logarithms u are given by name."""
    if part.kind == "name" and part.text in logarithms:
        return _exponential(logarithms[part.text])
    if part.kind == "sub" and part.parts[0].kind == "name" and part.parts[0].text in logarithms:
        inner = logarithms[part.parts[0].text]
        return _exponential(Layout("sub", parts=(inner, part.parts[1])))
    parts = tuple(logarithmic(each, logarithms) for each in part.parts)
    if part.kind == "sup" and parts[0] is not part.parts[0] and parts[0].text == EXPONENTIAL:
        if parts[1].kind != "number":
            return _raised(Layout("fence", "()", (parts[0],)), parts[1])
        return _exponential(_row(parts[1], Layout("space"), parts[0].parts[1], strength=PRODUCT))
    return Layout(part.kind, part.text, parts, part.strength)


def logarithm_names(names: Sequence[str]) -> dict[str, Layout]:
    """What the logarithms of variables are called: u, or u with the name as its index."""
    plain = Layout("name", "u")
    if len(names) == 1 and names[0] != "u":
        return {names[0]: plain}
    return {name: Layout("sub", parts=(plain, Layout("name", name))) for name in names}


def logarithm_set(variable: Variable, name: Layout) -> Layout:
    """u = log x and its bounds."""
    with np.errstate(divide="ignore"):
        ends = [np.log(each) for each in (variable.set.lower, variable.set.upper)]
    texts = [f"{np.min(ends[0]):.4g}", f"{np.max(ends[1]):.4g}"]
    lower, upper = (each.replace("inf", "∞") for each in texts)
    head = _row(Layout("function", "log"), _write(variable, MAX_DEPTH), strength=ATOMIC)
    inside = _within(lower, upper, False, variable.shape)
    return _row(name, sign("="), head, sign("∈"), inside, strength=SUM)


def _exponential(exponent: Layout) -> Layout:
    return Layout("sup", EXPONENTIAL, (symbol("e"), exponent), POWER)


def _within(lower: str, upper: str, positive: bool, shape: tuple[int, ...]) -> Layout:
    """The set of arrays with entries between two ends."""
    if upper == "∞" and lower in ("-∞", "0"):
        reals: Layout = symbol("ℝ")
        if lower == "0":
            reals = Layout("sub", parts=(reals, sign(">0" if positive else "≥0")))
        return _shaped(reals, shape)
    left = "(" if lower == "-∞" or (positive and lower == "0") else "["
    right = ")" if upper == "∞" else "]"
    ends = _row(_end(lower), sign(","), _end(upper), strength=SUM)
    return _shaped(Layout("fence", left + right, (ends,)), shape)


def _between(name: Layout, low: float, high: float) -> list[Layout]:
    """l I ⪯ P ⪯ u I."""
    parts = [_identity(low), sign("⪯"), name]
    return parts if np.isinf(high) else [*parts, sign("⪯"), _identity(high)]


def _identity(factor: float) -> Layout:
    number = _number(np.asarray(factor))
    return number if factor == 0 else _product([number, Layout("name", "I")])


def _end(text: str) -> Layout:
    return sign(text) if "∞" in text or "…" in text else _number(np.asarray(float(text)))


def _shaped(part: Layout, shape: tuple[int, ...]) -> Layout:
    """A set of numbers as a set of arrays."""
    if not shape:
        return part
    return Layout("sup", parts=(part, sign("×".join(map(str, shape)))))


def symbol(text: str) -> Layout:
    """A letter that is not slanted."""
    return Layout("symbol", text)


def _write(expression: Any, depth: int) -> Layout:
    name = getattr(expression, "name", None)
    if name is not None:
        return Layout("name", name)
    if not expression.args:
        return _number(expression.value)
    if depth == 0:
        return sign("…")
    atom, params = expression.atom.name, dict(expression.params)
    shapes = [argument.shape for argument in expression.args]
    parts = [_write(argument, depth - 1) for argument in expression.args]
    if atom in WITH_PARAMETERS:
        return WITH_PARAMETERS[atom](parts, params, shapes)
    if atom in OPERATORS:
        return OPERATORS[atom](parts)
    head = Layout("function" if atom in FUNCTIONS else "operator", atom)
    marks = [
        _parameter(key, each)
        for key, each in params.items()
        if each is not None and not callable(each)
    ]
    if marks:
        head = Layout("sub", parts=(head, sign(", ".join(marks))))
    return _row(head, Layout("fence", "()", (_joined(parts, ","),)), strength=ATOMIC)


def _parameter(key: str, value: Any) -> str:
    """A parameter of an atom as an index: axes are counted from 1, as indices are."""
    if key == "axis":
        axes = value if isinstance(value, tuple) else (value,)
        return "axis " + ", ".join(str(axis + 1 if axis >= 0 else axis) for axis in axes)
    if isinstance(value, tuple):
        return "×".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _indexed(parts: list[Layout], params: dict[str, Any], shapes: Any) -> Layout:
    return Layout("sub", parts=(_enclosed(parts[0], ATOMIC), _index(params["key"], shapes[0])))


def _entrywise(parts: list[Layout], _: Any, shapes: Any) -> Layout:
    """A product entry by entry has its own sign, where it could be taken for one of matrices."""
    arrays = [part for part, shape in zip(parts, shapes, strict=True) if shape and not _plain(part)]
    if len(arrays) < 2:
        return _product(parts)
    return _row(*_joined([_factor(part) for part in parts], "⊙").parts, strength=ENTRYWISE)


def _factor(part: Layout) -> Layout:
    """A factor of a product entry by entry; products of matrices inside of it get brackets."""
    if part.strength == PRODUCT and not _begins_with_number(part):
        return _enclosed(part, UNARY)
    return _enclosed(part, POWER) if part.strength == UNARY else _enclosed(part, ENTRYWISE)


def _plain(part: Layout) -> bool:
    return part.kind == "number"


def _matrix_product(parts: list[Layout], _: Any, shapes: Any) -> Layout:
    if len(shapes[0]) == 1:
        parts = [_transposed(parts[0]), *parts[1:]]
    return _product(parts)


def _axes_moved(parts: list[Layout], params: dict[str, Any], _: Any) -> Layout:
    axes = params.get("axes")
    order = "" if axes is None else "(" + " ".join(str(axis + 1) for axis in axes) + ")"
    return _transposed(parts[0], order)


def _norm(parts: list[Layout], params: dict[str, Any], _: Any) -> Layout:
    order = params.get("p", 2.0)
    marks = [NORMS.get(order, _parameter("p", order))]
    if params.get("axis") is not None:
        marks.append(_parameter("axis", params["axis"]))
    bars = Layout("fence", "‖‖", (parts[0],))
    return Layout("sub", parts=(bars, sign(", ".join(marks))))


def _aggregate(atom: str) -> Callable[[list[Layout], dict[str, Any], Any], Layout]:
    def written(parts: list[Layout], params: dict[str, Any], _: Any) -> Layout:
        head, axis = Layout("big", atom), params.get("axis")
        if axis is not None:
            head = Layout("under", parts=(head, sign(_parameter("axis", axis))))
        return _row(head, _enclosed(parts[0], PRODUCT), strength=PRODUCT)

    return written


def _summed(parts: list[Layout], params: dict[str, Any], _: Any) -> Layout:
    """`einsum` as a sum of products of entries."""
    inputs, _, output = str(params["subscripts"]).partition("->")
    names = list(dict.fromkeys(each for each in inputs + output if each.isalpha()))
    letters = dict(zip(names, LETTERS, strict=False))
    factors = [
        Layout("sub", parts=(_enclosed(part, ATOMIC), sign(_spelled(axes, letters))))
        for part, axes in zip(parts, inputs.split(","), strict=True)
    ]
    product = _product(factors)
    bound = [name for name in names if name not in output]
    if not bound:
        return product
    head = Layout("under", parts=(Layout("big", "sum"), sign(_spelled("".join(bound), letters))))
    return _row(head, product, strength=PRODUCT)


def _spelled(axes: str, letters: dict[str, str]) -> str:
    return " ".join(letters.get(each, each) for each in axes)


def _transposed(part: Layout, order: str = "") -> Layout:
    return Layout("sup", parts=(_enclosed(part, ATOMIC), sign("⊤" + order)), strength=POWER)


def _joined(parts: list[Layout], text: str) -> Layout:
    together: list[Layout] = []
    for part in parts:
        together += [sign(text), part] if together else [part]
    return _row(*together, strength=SUM)


def _add(parts: list[Layout]) -> Layout:
    return _row(*_joined([_enclosed(part, SUM) for part in parts], "+").parts, strength=SUM)


def _sub(parts: list[Layout]) -> Layout:
    return _row(_enclosed(parts[0], SUM), sign("-"), _later(parts[1], ENTRYWISE), strength=SUM)


def _product(parts: list[Layout]) -> Layout:
    inner = [_enclosed(parts[0], PRODUCT), *map(_later, parts[1:])]
    together: list[Layout] = []
    for part in inner:
        if together:  # numbers side by side would read as one number
            digits = _begins_with_number(part)
            together.append(sign("·") if digits else Layout("space"))
        together.append(part)
    return _row(*together, strength=PRODUCT)


def _later(part: Layout, needed: int = PRODUCT) -> Layout:
    """A factor or a term after a sign: in brackets where it is a sum or has a sign itself."""
    return _enclosed(part, POWER if part.strength == UNARY else needed)


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
    "div": _quotient,
    "power": lambda parts: _raised(parts[0], parts[1]),
    "neg": _negative,
    "square": lambda parts: _raised(parts[0], Layout("number", "2")),
    "sqrt": lambda parts: Layout("root", parts=(parts[0],)),
    "abs": lambda parts: Layout("fence", "||", (parts[0],)),
    "hstack": lambda parts: Layout("fence", "[]", (_joined(parts, ","),)),
    "vstack": lambda parts: Layout("fence", "[]", (_joined(parts, ";"),)),
    "inv": lambda parts: _raised(parts[0], Layout("number", "-1")),
}

WITH_PARAMETERS: dict[str, Callable[[list[Layout], dict[str, Any], Any], Layout]] = {
    "index": _indexed,
    "mul": _entrywise,
    "matmul": _matrix_product,
    "transpose": _axes_moved,
    "norm": _norm,
    "einsum": _summed,
    **{atom: _aggregate(atom) for atom in BIG},
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


def _index(key: Any, shape: tuple[int, ...]) -> Layout:
    """Numbers and ranges from 1, both ends included, as in the language."""
    places = [entry for entry in key.entries if entry is not None]
    if any(entry is Ellipsis for entry in places):
        return sign(", ".join("…" if entry is Ellipsis else ":" for entry in places))
    lists = sum(hasattr(entry, "array") for entry in places)  # several are taken together
    return sign(", ".join(_place(*each, lists > 1) for each in zip(places, shape, strict=False)))


def _place(entry: Any, length: int, paired: bool) -> str:
    if isinstance(entry, int):
        return str(entry % length + 1)
    array = getattr(entry, "array", None)
    if array is None:
        places = np.arange(length)[slice(entry.start, entry.stop, entry.step)]
        if places.size == length and (entry.step or 1) > 0:
            return ":"
    else:
        places = np.ravel(array)
        places = np.flatnonzero(places) if places.dtype == bool else places
    numbers = [int(each) % length + 1 for each in places]
    if len(numbers) > 1 and not paired and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]}..{numbers[-1]}"
    if len(numbers) > MOST_ENTRIES:
        return f"({numbers[0]} {numbers[1]} … {numbers[-1]})"
    return "(" + " ".join(map(str, numbers)) + ")" if len(numbers) != 1 else str(numbers[0])
