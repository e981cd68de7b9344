"""Rules that look at several nodes at once: squares over concave functions, matrix fractions.

The third channel, `root`, says that f >= 0 and that the square root of f is convex. Squares of
affine functions and log-convex functions have it, sums and maxima keep it, it implies convexity, and
f / b is convex for such f and concave b > 0, since h²/b is convex and rising in h >= 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING

import numpy as np

from hcmodel.atoms.algebra import Exponent, Exponents
from hcmodel.atoms.rules import (
    Contraction,
    Curvature,
    Dependence,
    MatrixKind,
    Monotonicity,
    Sign,
)
from hcmodel.expressions.sparse_data import any_nonzero, dense
from hcmodel.facts.bits import (
    AFFINE,
    CONCAVE,
    CONVEX,
    UNKNOWN,
    magnitude_is_convex,
)
from hcmodel.facts.matrix_words import Word, word
from hcmodel.records import dataclass

if TYPE_CHECKING:
    from hcmodel.atoms.atom import Atom
    from hcmodel.facts.answers import Answers
    from hcmodel.facts.curvature import Channels
    from hcmodel.facts.node_facts import Node

TRACE = Contraction("ii->")


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
    SERIES = (
        auto()
    )  # inv(I - X) = I + X + X² + … with entries > 0 whose sums along rows are below 1


@dataclass(frozen=True, slots=True)
class Pattern:
    """A recognised form and the nodes it is made of."""

    kind: Kind
    nodes: tuple[int, ...]
    positive: bool = False  # the form is known to be > 0

    @property
    def is_defined(self) -> bool:
        """Whether the form is known to be defined everywhere, whatever the domain of its atom asks."""
        return self.kind is Kind.SERIES


def find(
    atom: Atom, answers: Answers, arguments: Sequence[Node], nodes: Sequence[Node], word: Word
) -> Pattern | None:
    """The form that an atom makes with its arguments, if it is one of those above.

    `word` has the letters of the atom where it is a product of matrices.
    """
    exponents = answers.exponents
    if exponents is not None and len(exponents) == 1:
        return _power(exponents[0], arguments[0])
    if len(answers.factors) == 1 and answers.factors[0].inverted:
        return _series(arguments[0], nodes)
    found = _square(atom, answers, arguments)
    if found is None and word:
        found = _quadratic(word, nodes)
    if len(arguments) == 1 and answers.dependence == TRACE:
        found = _trace_of_inverse(arguments[0], nodes)
    if found is not None:
        return found
    kept = _keeping_root(atom, answers, arguments)
    if kept:
        return Pattern(Kind.KEEPS_ROOT, tuple(node.number for node in kept))
    return _over(exponents, arguments, nodes)


def sign(pattern: Pattern | None) -> Sign:
    """What the form alone says about the sign."""
    if pattern is None:
        return Sign.UNKNOWN
    if pattern.positive:
        return Sign.POSITIVE
    nonnegative = (Kind.SQUARE, Kind.QUADRATIC, Kind.FRACTION, Kind.TRACE_INVERSE, Kind.SERIES)
    if pattern.kind in nonnegative:
        return Sign.NONNEGATIVE
    return Sign.UNKNOWN


def _keeping_root(atom: Atom, answers: Answers, arguments: Sequence[Node]) -> Sequence[Node]:
    """The arguments whose convex roots make the root of the form convex; none where they do not.

    They do where f is homogeneous, convex and rising: f then is the largest of sums with weights that
    are not negative, and √(Σ w h²) is a norm. It has to rise in constants too: √(h² − 1) is not convex.
    """
    varying = list[int]()
    for i, node in enumerate(arguments):
        if not node.constant:
            if answers.moves[i] is not Monotonicity.INCREASING:
                return ()
            varying.append(i)
    if len(varying) == 1 and varying[0] in atom.linear_in:
        return [arguments[varying[0]]]
    convex = answers.curvature in (Curvature.CONVEX, Curvature.AFFINE)
    if not (atom.is_homogeneous and convex):
        return ()
    rising = all(move is Monotonicity.INCREASING for move in answers.moves)
    return arguments if rising else ()


def _power(exponents: Exponent, base: Node) -> Pattern | None:
    if exponents is None or base.constant:
        return None
    least = exponents if isinstance(exponents, float) else np.min(exponents, initial=np.inf)
    if least >= 2:
        even = bool(np.all(np.mod(exponents, 2) == 0))
        fractional = bool(np.all(exponents != np.rint(exponents)))
        if even or fractional or base.sign.is_nonnegative:
            return Pattern(Kind.SQUARE, (base.number,))
        return None
    if least >= 1:
        return Pattern(Kind.POWER_OF_ROOT, (base.number,))
    return Pattern(Kind.ROOT, (base.number,)) if least >= 0.5 else None


def _over(
    exponents: Exponents | None, arguments: Sequence[Node], nodes: Sequence[Node]
) -> Pattern | None:
    """f / b, and f * g with a g that is k / b for a constant k > 0, b**-1 among them."""
    if exponents is None or len(exponents) != 2:
        return None
    for numerator, other in ((0, 1), (1, 0)):
        above, below = exponents[numerator], exponents[other]
        if not isinstance(above, float) or not isinstance(below, float) or above != 1:
            continue
        if below == -1 and not arguments[other].constant:
            return Pattern(Kind.OVER, (arguments[numerator].number, arguments[other].number))
        divisor = _divisor(arguments[other], nodes) if below == 1 else None
        if divisor is not None:
            return Pattern(Kind.OVER, (arguments[numerator].number, divisor))
    return None


def _divisor(node: Node, nodes: Sequence[Node]) -> int | None:
    """The number of b in a node that is k / b, with a constant k > 0."""
    if node.exponents is None:
        return None
    below = [i for i, each in enumerate(node.exponents) if isinstance(each, float) and each == -1]
    if len(below) != 1:
        return None
    for i in range(len(node.exponents)):
        factor = nodes[node.arguments[i]]
        if i not in below and not (factor.constant and factor.sign is Sign.POSITIVE):
            return None
    return node.arguments[below[0]]


# quadratic forms and matrix fractions


def _square(atom: Atom, answers: Answers, arguments: Sequence[Node]) -> Pattern | None:
    """A product of an argument with itself that is made of squares of its entries."""
    if len(arguments) != 2 or arguments[0].number != arguments[1].number:
        return None
    dependence = answers.dependence
    if isinstance(dependence, Contraction):
        first, second = dependence.subscripts.split("->")[0].split(",")
        squares = first == second
    else:
        squares = dependence is Dependence.ELEMENTWISE and atom.is_multilinear
    return Pattern(Kind.SQUARE, (arguments[0].number,)) if squares else None


def _quadratic(word: Word, nodes: Sequence[Node]) -> Pattern | None:
    """x' P x with a constant P, and x' inv(X) x."""
    if len(word) != 3 or word[0].number != word[2].number:
        return None
    vector, matrix = nodes[word[0].number], nodes[word[1].number]
    if len(vector.shape) != 1 or not word[0].transposed or word[2].transposed:
        return None
    if word[1].inverted:
        return _fraction(vector, matrix)
    if matrix.constant and matrix.definiteness >= MatrixKind.SEMIDEFINITE:
        return Pattern(Kind.QUADRATIC, (vector.number, matrix.number))
    return None


def _fraction(vector: Node, matrix: Node) -> Pattern | None:
    if matrix.definiteness < MatrixKind.SEMIDEFINITE:
        return None
    positive = vector.sign.is_strict or (vector.value is not None and any_nonzero(vector.value))
    return Pattern(Kind.FRACTION, (vector.number, matrix.number), positive)


def _trace_of_inverse(argument: Node, nodes: Sequence[Node]) -> Pattern | None:
    """trace(inv(X)), trace(C @ inv(X)) and trace(inv(X) @ C) with a constant C >= 0."""
    inner = [nodes[i] for i in argument.arguments]
    letters = word(argument.factors, inner, nodes)
    inverses = [nodes[letter.number] for letter in letters if letter.inverted]
    weights = [nodes[letter.number] for letter in letters if not letter.inverted]
    if len(inverses) != 1 or len(weights) > 1:
        return None
    if any(each.definiteness < MatrixKind.SEMIDEFINITE for each in (*inverses, *weights)):
        return None
    positive = True
    for weight in weights:
        if weight.value is None or inverses[0].constant:
            return None
        positive = any_nonzero(weight.value)
    return Pattern(
        Kind.TRACE_INVERSE, tuple(each.number for each in (*inverses, *weights)), positive
    )


def _series(argument: Node, nodes: Sequence[Node]) -> Pattern | None:
    """I - X with positive entries of X, the sums along rows or along columns of which stay below 1.

    Then the spectral radius is below 1 wherever X may be, and the inverse is the series.
    """
    if argument.atom is None or argument.atom.signs(2) != (1, -1) or len(argument.arguments) != 2:
        return None
    identity, matrix = (nodes[i] for i in argument.arguments)
    if identity.value is None or matrix.sign is not Sign.POSITIVE:
        return None
    shape = argument.shape
    if identity.shape != shape or matrix.shape != shape:
        return None
    if not np.array_equal(dense(identity.value), np.eye(shape[0])):
        return None
    largest = np.broadcast_to(matrix.interval[1], shape)
    if min(np.max(largest.sum(axis=0)), np.max(largest.sum(axis=1))) >= 1:
        return None
    return Pattern(Kind.SERIES, (matrix.number,), positive=True)


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
    elif kind is Kind.SERIES:
        return UNKNOWN, (CONVEX if known[first][1] & CONVEX else UNKNOWN), False
    elif kind is Kind.ROOT:
        return (CONVEX if known[first][2] else UNKNOWN), UNKNOWN, False
    elif kind is Kind.OVER:
        return _quotient(pattern, nodes, known), UNKNOWN, False
    else:
        affine = all(known[i][0] == AFFINE for i in pattern.nodes)
        logarithmic = affine and pattern.positive and nodes[first].constant
        if kind is Kind.TRACE_INVERSE:
            logarithmic = affine and pattern.positive
        return (CONVEX if affine else UNKNOWN), (CONVEX if logarithmic else UNKNOWN), False
    return (CONVEX if root else UNKNOWN), UNKNOWN, root


def _quotient(pattern: Pattern, nodes: Sequence[Node], known: Sequence[Channels]) -> int:
    numerator, divisor = pattern.nodes
    if not known[numerator][2]:
        return UNKNOWN
    sign = nodes[divisor].sign
    if sign.is_nonnegative and known[divisor][0] & CONCAVE:
        return CONVEX
    return CONCAVE if sign.is_nonpositive and known[divisor][0] & CONVEX else UNKNOWN
