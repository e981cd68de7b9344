"""The vocabulary of the atom table: signs, monotonicity, curvature, kinds, dependence.

A rule is a function of the arguments' facts and the static parameters; `Always(value)` is the rule
that depends on neither. Rules speak about the arguments that are not constant, jointly, entry by
entry of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, IntEnum
from typing import Any, Generic, TypeVar

import numpy as np

from hcmodel.expressions.shapes import Shape
from hcmodel.expressions.sparse_data import Numbers, SparseArray, is_sparse
from hcmodel.records import dataclass

T = TypeVar("T")


class Word(Enum):
    """A word of the vocabulary. Proofs look words up often, so they hash as fast as objects do."""

    __hash__ = object.__hash__


class Sign(Word):
    """What is known of the sign of every entry."""

    POSITIVE = "positive"
    NONNEGATIVE = "nonnegative"
    ZERO = "zero"
    NONPOSITIVE = "nonpositive"
    NEGATIVE = "negative"
    UNKNOWN = "unknown"

    def __init__(self, value: str) -> None:
        # attributes and not properties: they are asked for at every node of a graph
        self.is_nonnegative = value in ("positive", "nonnegative", "zero")
        self.is_nonpositive = value in ("negative", "nonpositive", "zero")
        self.is_strict = value in ("positive", "negative")

    @property
    def negated(self) -> Sign:
        return _NEGATED.get(self, self)


_NEGATED = {
    Sign.POSITIVE: Sign.NEGATIVE,
    Sign.NONNEGATIVE: Sign.NONPOSITIVE,
    Sign.NONPOSITIVE: Sign.NONNEGATIVE,
    Sign.NEGATIVE: Sign.POSITIVE,
}


class Monotonicity(Word):
    """How each entry of the result moves with the entries of one argument."""

    INCREASING = "increasing"
    DECREASING = "decreasing"
    CONSTANT = "constant"
    UNKNOWN = "unknown"

    @property
    def reversed(self) -> Monotonicity:
        return _REVERSED.get(self, self)


_REVERSED = {
    Monotonicity.INCREASING: Monotonicity.DECREASING,
    Monotonicity.DECREASING: Monotonicity.INCREASING,
}


class Curvature(Word):
    """The shape of each entry of the result as a function of the arguments."""

    AFFINE = "affine"
    CONVEX = "convex"
    CONCAVE = "concave"
    UNKNOWN = "unknown"

    @property
    def negated(self) -> Curvature:
        return _FLIPPED.get(self, self)


_FLIPPED = {Curvature.CONVEX: Curvature.CONCAVE, Curvature.CONCAVE: Curvature.CONVEX}


class Kind(Word):
    """Whether an atom has kinks, and whether linear rows can express them."""

    SMOOTH = "smooth"
    POLYHEDRAL = "polyhedral"
    KINKED = "kinked"


class Domain(Word):
    """Where an argument may lie; elsewhere the value is not finite."""

    REALS = "all reals"
    POSITIVE = "> 0"
    NONNEGATIVE = ">= 0"
    NONZERO = "not 0"
    ABOVE_MINUS_ONE = "> -1"
    INVERTIBLE = "invertible"
    POSITIVE_DEFINITE = "positive definite"
    HURWITZ = "eigenvalues with negative real part"
    SCHUR = "eigenvalues inside the unit circle"
    CONTRACTING = "entries >= 0, eigenvalues inside the unit circle"


class Dependence(Word):
    """Which entries of the arguments an entry of the result depends on."""

    ELEMENTWISE = "the broadcast entries"
    MOVEMENT = "the one entry that is moved there"
    REDUCTION = "the entries along an axis"
    DENSE = "all entries"


@dataclass(frozen=True)
class Contraction:
    """The atom is the sum of products along shared labels, in einsum's notation."""

    subscripts: str


class MatrixKind(IntEnum):
    """What is known of a square matrix; each kind is also of the kinds before it."""

    GENERAL = 0
    SYMMETRIC = 1
    SEMIDEFINITE = 2
    DEFINITE = 3


@dataclass(frozen=True, eq=False)
class Argument:
    """The facts about one argument that rules may use.

    `value` is given where the argument is constant and its value is known.
    """

    shape: Shape
    sign: Sign = Sign.UNKNOWN
    constant: bool = False
    value: Numbers | None = None
    matrix: MatrixKind = MatrixKind.GENERAL

    @property
    def definite(self) -> bool:
        """Whether the argument is proven to be a symmetric positive definite matrix."""
        return self.matrix is MatrixKind.DEFINITE

    @classmethod
    def from_value(cls, value: Any) -> Argument:
        """The facts about a constant."""
        array = value if is_sparse(value) else np.asarray(value, dtype=float)
        return cls(array.shape, sign_of(array), True, array)


Arguments = Sequence[Argument]
Params = Mapping[str, Any]
Rule = Callable[[Arguments, Params], T]


@dataclass(frozen=True)
class Always(Generic[T]):
    """The rule with one answer."""

    value: T

    def __call__(self, arguments: Any, params: Params) -> T:
        return self.value


def as_rule(rule: T | Rule[T]) -> Rule[T]:
    """`rule` itself if it is a function, else the rule that always answers with it."""
    return rule if callable(rule) else Always(rule)


def constant_exponents(arguments: Arguments) -> np.ndarray | None:
    """The values of a constant exponent."""
    return arguments[1].value if arguments[1].constant else None


def second_as_exponent(arguments: Arguments, params: Params) -> tuple[float | np.ndarray | None]:
    """Of the base, the second argument."""
    exponents = constant_exponents(arguments)
    if exponents is None or exponents.size == 0 or np.any(exponents != exponents.flat[0]):
        return (exponents,)
    return (float(exponents.flat[0]),)


# signs


def sign_of(array: Numbers) -> Sign:
    """The strongest sign that all entries share."""
    if is_sparse(array):
        return _sign_of_sparse(array)
    if array.size == 0:
        return Sign.ZERO
    low, high = float(array.min()), float(array.max())  # not a number where an entry is none
    if low > 0:
        return Sign.POSITIVE
    if low >= 0:
        return Sign.NONNEGATIVE if high > 0 else Sign.ZERO
    if high < 0:
        return Sign.NEGATIVE
    return Sign.NONPOSITIVE if high <= 0 else Sign.UNKNOWN


def _sign_of_sparse(matrix: SparseArray) -> Sign:
    """Of the entries that are stored, and of the zeros between them."""
    found = sign_of(matrix.data)
    if not found.is_strict or matrix.nnz == np.prod(matrix.shape, dtype=object):
        return found
    return Sign.NONNEGATIVE if found.is_nonnegative else Sign.NONPOSITIVE


def sum_sign(signs: Sequence[Sign]) -> Sign:
    """The sign of a sum with one term at least."""
    if all(sign is Sign.ZERO for sign in signs):
        return Sign.ZERO
    if all(sign.is_nonnegative for sign in signs):
        return Sign.POSITIVE if Sign.POSITIVE in signs else Sign.NONNEGATIVE
    if all(sign.is_nonpositive for sign in signs):
        return Sign.NEGATIVE if Sign.NEGATIVE in signs else Sign.NONPOSITIVE
    return Sign.UNKNOWN


def product_sign(signs: Sequence[Sign]) -> Sign:
    """The sign of a product."""
    if Sign.ZERO in signs:
        return Sign.ZERO
    if Sign.UNKNOWN in signs:
        return Sign.UNKNOWN
    negative = sum(sign.is_nonpositive for sign in signs) % 2 == 1
    strict = all(sign.is_strict for sign in signs)
    result = Sign.POSITIVE if strict else Sign.NONNEGATIVE
    return result.negated if negative else result


def same_sign(arguments: Arguments, params: Params) -> Sign:
    """The sign of the argument."""
    return arguments[0].sign


def signs_product(arguments: Arguments, params: Params) -> Sign:
    """The product of the arguments' signs."""
    return product_sign([argument.sign for argument in arguments])


def signs_sum(arguments: Arguments, params: Params) -> Sign:
    """The sum of the arguments' signs."""
    return sum_sign([argument.sign for argument in arguments])


def common_sign(arguments: Arguments, params: Params) -> Sign:
    """The sign that all arguments share, for atoms that put them side by side."""
    signs = {argument.sign for argument in arguments}
    if len(signs) == 1:
        return signs.pop()
    if all(sign.is_nonnegative for sign in signs):
        return Sign.NONNEGATIVE
    return Sign.NONPOSITIVE if all(sign.is_nonpositive for sign in signs) else Sign.UNKNOWN


def magnitude_sign(arguments: Arguments, params: Params) -> Sign:
    """Positive where the argument is never 0, else not negative."""
    if arguments[0].sign is Sign.ZERO:
        return Sign.ZERO
    return Sign.POSITIVE if arguments[0].sign.is_strict else Sign.NONNEGATIVE


def all_nonnegative(arguments: Arguments, params: Params) -> bool:
    """Whether no argument is negative."""
    return all(argument.sign.is_nonnegative for argument in arguments)


# monotonicity


def from_sign(sign: Sign) -> Monotonicity:
    """The monotonicity of a derivative with this sign."""
    if sign is Sign.ZERO:
        return Monotonicity.CONSTANT
    if sign.is_nonnegative:
        return Monotonicity.INCREASING
    return Monotonicity.DECREASING if sign.is_nonpositive else Monotonicity.UNKNOWN


def as_argument_sign(arguments: Arguments, params: Params) -> tuple[Monotonicity, ...]:
    """Rising for arguments >= 0, falling for arguments <= 0."""
    return (from_sign(arguments[0].sign),)


def as_other_factors(arguments: Arguments, params: Params) -> tuple[Monotonicity, ...]:
    """Of a product: each argument as the sign of the other factors says."""
    return tuple(
        from_sign(product_sign([a.sign for j, a in enumerate(arguments) if j != i]))
        for i in range(len(arguments))
    )


# curvature


def multilinear(arguments: Arguments, params: Params) -> Curvature:
    """Affine where at most one argument is not constant."""
    varying = sum(not argument.constant for argument in arguments)
    return Curvature.AFFINE if varying <= 1 else Curvature.UNKNOWN


def affine_if_constants_nonnegative(arguments: Arguments, params: Params) -> Curvature:
    """Affine between logarithms, unless a constant factor is negative."""
    return Curvature.AFFINE if constants_nonnegative(arguments) else Curvature.UNKNOWN


def convex_if_constants_nonnegative(arguments: Arguments, params: Params) -> Curvature:
    """A log-sum-exp between logarithms, unless a constant is negative."""
    return Curvature.CONVEX if constants_nonnegative(arguments) else Curvature.UNKNOWN


def constants_nonnegative(arguments: Arguments) -> bool:
    return all(a.sign.is_nonnegative for a in arguments if a.constant)


def bends_at_zero(arguments: Arguments, params: Params) -> Curvature:
    """Of an odd S-shaped curve: convex left of 0, concave right of it."""
    if arguments[0].sign.is_nonpositive:
        return Curvature.CONVEX
    return Curvature.CONCAVE if arguments[0].sign.is_nonnegative else Curvature.UNKNOWN
