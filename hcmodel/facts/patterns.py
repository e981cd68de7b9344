"""Rules that look at several nodes at once: squares over concave functions, matrix fractions.

The third channel, `root`, says that f >= 0 and that the square root of f is convex. Squares of
affine functions and log-convex functions have it, sums and maxima keep it, it implies convexity, and
f / b is convex for such f and concave b > 0, since h²/b is convex and rising in h >= 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

import numpy as np

from hcmodel.atoms.rules import MatrixKind, Sign
from hcmodel.facts.bits import (
    AFFINE,
    CONCAVE,
    CONVEX,
    UNKNOWN,
    magnitude_is_convex,
)
from hcmodel.facts.local_rules import MOVEMENT

if TYPE_CHECKING:
    from hcmodel.facts.curvature import Channels
    from hcmodel.facts.node_facts import Node

KEEPS_ROOT = {*MOVEMENT, "add", "sum", "mean", "cumsum", "trace", "maximum", "max"}
PRODUCTS = {"mul", "matmul", "dot", "einsum", "outer", "kron"}


class Kind(Enum):
    """What was recognised."""

    SQUARE = auto()  # |a|^p with p >= 2: the root is convex where |a| is
    QUADRATIC = auto()  # a'Pa with a constant P >= 0: the root is convex in affine a
    KEEPS_ROOT = auto()  # the root is convex where that of all arguments is
    POWER_OF_ROOT = auto()  # f^p with p >= 1, which keeps it
    ROOT = auto()  # f^p with 1/2 <= p < 1, which is convex
    OVER = auto()  # f / b
    FRACTION = auto()  # x' inv(X) x, with x constant or affine
    TRACE_INVERSE = auto()  # trace(C inv(X)) with a constant C >= 0


@dataclass(frozen=True, slots=True)
class Pattern:
    """A recognised form and the nodes it is made of."""

    kind: Kind
    nodes: tuple[int, ...]
    positive: bool = False  # the form is known to be > 0


def find(
    name: str, params: dict[str, Any], arguments: Sequence[Node], nodes: Sequence[Node]
) -> Pattern | None:
    """The form that an atom makes with its arguments, if it is one of those above."""
    if name in ("square", "power", "sqrt"):
        return _power(name, arguments)
    if name == "trace":
        found = _trace_of_inverse(arguments[0], nodes)
        if found is not None:
            return found
    if name in PRODUCTS or name == "quad_form":
        found = _quadratic(name, params, arguments, nodes)
        if found is not None:
            return found
    if name in KEEPS_ROOT:
        return _keeping(arguments)
    if name in PRODUCTS:
        constants = [node for node in arguments if node.constant]
        if len(constants) == len(arguments) - 1 and all(c.sign.is_nonnegative for c in constants):
            return _keeping(arguments)
        return _over_reciprocal(arguments, nodes) if name == "mul" else None
    if name == "div":
        numerator, divisor = arguments
        if divisor.constant:
            return _keeping([numerator]) if divisor.sign is Sign.POSITIVE else None
        return Pattern(Kind.OVER, (numerator.number, divisor.number))
    return None


def sign(pattern: Pattern | None) -> Sign:
    """What the form alone says about the sign."""
    if pattern is None:
        return Sign.UNKNOWN
    if pattern.positive:
        return Sign.POSITIVE
    if pattern.kind in (Kind.SQUARE, Kind.QUADRATIC, Kind.FRACTION, Kind.TRACE_INVERSE):
        return Sign.NONNEGATIVE
    return Sign.UNKNOWN


def _keeping(arguments: Sequence[Node]) -> Pattern:
    return Pattern(Kind.KEEPS_ROOT, tuple(node.number for node in arguments))


def _power(name: str, arguments: Sequence[Node]) -> Pattern | None:
    base = arguments[0]
    if name == "square":
        return Pattern(Kind.SQUARE, (base.number,))
    if name == "sqrt":
        return Pattern(Kind.ROOT, (base.number,))
    exponents = arguments[1].value
    if exponents is None or exponents.size == 0 or base.constant:
        return None
    if np.all(exponents >= 2):
        even = bool(np.all(exponents % 2 == 0))
        fractional = bool(np.all(exponents != np.rint(exponents)))
        if even or fractional or base.sign.is_nonnegative:
            return Pattern(Kind.SQUARE, (base.number,))
        return None
    if np.all(exponents >= 1):
        return Pattern(Kind.POWER_OF_ROOT, (base.number,))
    return Pattern(Kind.ROOT, (base.number,)) if np.all(exponents >= 0.5) else None


def _over_reciprocal(arguments: Sequence[Node], nodes: Sequence[Node]) -> Pattern | None:
    """f * b**-1, f * inv_pos(b), f * (k / b) with a constant k > 0."""
    for numerator, factor in (tuple(arguments), tuple(reversed(arguments))):
        inner = [nodes[i] for i in factor.arguments]
        name = factor.atom.name if factor.atom is not None else None
        if name == "inv_pos":
            return Pattern(Kind.OVER, (numerator.number, inner[0].number))
        if name == "power" and inner[1].value is not None and np.all(inner[1].value == -1):
            return Pattern(Kind.OVER, (numerator.number, inner[0].number))
        if name == "div" and inner[0].constant and inner[0].sign is Sign.POSITIVE:
            return Pattern(Kind.OVER, (numerator.number, inner[1].number))
    return None


# quadratic forms and matrix fractions


def _quadratic(
    name: str, params: dict[str, Any], arguments: Sequence[Node], nodes: Sequence[Node]
) -> Pattern | None:
    """a*a, a @ a, x @ P @ x and quad_form, with P constant or an inverse."""
    if name == "quad_form":
        return _form(arguments[0], arguments[1], nodes)
    if len(arguments) != 2:
        return None
    first, second = arguments
    if first.number == second.number and _is_square(name, params, first):
        return Pattern(Kind.SQUARE, (first.number,))
    if name not in ("matmul", "dot") or len(first.shape) != 1 or len(second.shape) != 1:
        return None
    for vector, other in ((first, second), (second, first)):
        inner = [nodes[i] for i in other.arguments]
        inner_name = other.atom.name if other.atom is not None else None
        if inner_name in ("matmul", "dot"):
            for matrix, repeated in ((inner[0], inner[1]), (inner[1], inner[0])):
                if repeated.number == vector.number and len(matrix.shape) == 2:
                    return _form(vector, matrix, nodes)
        if inner_name == "solve" and inner[1].number == vector.number:
            return _fraction(vector, inner[0])
    return None


def _is_square(name: str, params: dict[str, Any], factor: Node) -> bool:
    """Whether a product of a factor with itself is made of squares of its entries."""
    if name == "einsum":
        first, second = params["subscripts"].split("->")[0].split(",")
        return bool(first == second)
    return name == "mul" or (name in ("matmul", "dot") and len(factor.shape) <= 1)


def _form(vector: Node, matrix: Node, nodes: Sequence[Node]) -> Pattern | None:
    if matrix.definiteness >= MatrixKind.SEMIDEFINITE and matrix.constant:
        return Pattern(Kind.QUADRATIC, (vector.number, matrix.number))
    if matrix.atom is not None and matrix.atom.name == "inv":
        return _fraction(vector, nodes[matrix.arguments[0]])
    return None


def _fraction(vector: Node, matrix: Node) -> Pattern | None:
    if matrix.definiteness < MatrixKind.SEMIDEFINITE:
        return None
    positive = vector.sign.is_strict or (vector.value is not None and bool(np.any(vector.value)))
    return Pattern(Kind.FRACTION, (vector.number, matrix.number), positive)


def _trace_of_inverse(argument: Node, nodes: Sequence[Node]) -> Pattern | None:
    name = argument.atom.name if argument.atom is not None else None
    inner = [nodes[i] for i in argument.arguments]
    if name == "inv" and inner[0].definiteness >= MatrixKind.SEMIDEFINITE:
        return Pattern(Kind.TRACE_INVERSE, (inner[0].number,), positive=True)
    weight, matrix = None, None
    if name == "solve":
        matrix, weight = inner
    if name == "matmul":
        for first, second in ((inner[0], inner[1]), (inner[1], inner[0])):
            if second.atom is not None and second.atom.name == "inv":
                weight, matrix = first, nodes[second.arguments[0]]
    if weight is None or matrix is None or weight.value is None or matrix.constant:
        return None
    if (
        weight.definiteness < MatrixKind.SEMIDEFINITE
        or matrix.definiteness < MatrixKind.SEMIDEFINITE
    ):
        return None
    return Pattern(Kind.TRACE_INVERSE, (matrix.number,), bool(np.any(weight.value)))


# what the forms give


def apply(
    pattern: Pattern, sign: Sign, nodes: Sequence[Node], known: Sequence[Channels]
) -> Channels:
    """Plain curvature, log-curvature and root of the form, from the channels of its parts."""
    first = pattern.nodes[0]
    kind = pattern.kind
    if kind is Kind.SQUARE:
        root = magnitude_is_convex(nodes[first].sign, known[first][0])
    elif kind is Kind.QUADRATIC:
        vector, matrix = (nodes[i] for i in pattern.nodes)
        rising = vector.sign.is_nonnegative and matrix.sign.is_nonnegative
        root = known[first][0] == AFFINE or (rising and bool(known[first][0] & CONVEX))
    elif kind in (Kind.KEEPS_ROOT, Kind.POWER_OF_ROOT):
        root = all(known[i][2] for i in pattern.nodes)
    elif kind is Kind.ROOT:
        return (CONVEX if known[first][2] else UNKNOWN), UNKNOWN, False
    elif kind is Kind.OVER:
        return _over(pattern, nodes, known), UNKNOWN, False
    else:
        affine = all(known[i][0] == AFFINE for i in pattern.nodes)
        logarithmic = affine and pattern.positive and nodes[first].constant
        if kind is Kind.TRACE_INVERSE:
            logarithmic = affine and pattern.positive
        return (CONVEX if affine else UNKNOWN), (CONVEX if logarithmic else UNKNOWN), False
    return (CONVEX if root else UNKNOWN), UNKNOWN, root


def _over(pattern: Pattern, nodes: Sequence[Node], known: Sequence[Channels]) -> int:
    numerator, divisor = pattern.nodes
    if not known[numerator][2]:
        return UNKNOWN
    sign = nodes[divisor].sign
    if sign.is_nonnegative and known[divisor][0] & CONCAVE:
        return CONVEX
    return CONCAVE if sign.is_nonpositive and known[divisor][0] & CONVEX else UNKNOWN
