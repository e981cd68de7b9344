"""Curvature as two bits, convex and concave, so that what is known of an expression can be joined.

Both bits make affine, none is unknown. The composition rule then is a bitwise and: each argument
lets through what its own curvature and the atom's monotonicity in it allow.
"""

from __future__ import annotations

from collections.abc import Iterable

from hcmodel.atoms.rules import Curvature, Monotonicity, Sign

# Curvatures as sets of two bits: affine is convex and concave.
UNKNOWN, CONVEX, CONCAVE, AFFINE = 0, 1, 2, 3
SWAPPED = (UNKNOWN, CONCAVE, CONVEX, AFFINE)
WORDS = ("unknown", "convex", "concave", "affine")
OF_CURVATURE = {
    Curvature.UNKNOWN: UNKNOWN,
    Curvature.CONVEX: CONVEX,
    Curvature.CONCAVE: CONCAVE,
    Curvature.AFFINE: AFFINE,
}
# What an argument of each curvature lets through, by the monotonicity in it.
PASSING = {
    Monotonicity.INCREASING: (UNKNOWN, CONVEX, CONCAVE, AFFINE),
    Monotonicity.DECREASING: SWAPPED,
    Monotonicity.UNKNOWN: (UNKNOWN, UNKNOWN, UNKNOWN, AFFINE),
    # an argument of unknown curvature may be undefined between two points: 0 · (1/x) is not 0 at 0
    Monotonicity.CONSTANT: (UNKNOWN, AFFINE, AFFINE, AFFINE),
}
Passing = tuple[int, int, int, int]


def composed(curvature: int, passing: Iterable[Passing], arguments: Iterable[int]) -> int:
    """The curvature of f(a, b, …) from that of f and of its arguments."""
    for table, argument in zip(passing, arguments, strict=True):
        curvature &= table[argument]
    return curvature


def magnitude_is_convex(sign: Sign, curvature: int) -> bool:
    """Whether |a| is convex: a is affine, or convex and not negative, or concave and not positive."""
    if curvature == AFFINE:
        return True
    if sign.is_nonnegative:
        return bool(curvature & CONVEX)
    return sign.is_nonpositive and bool(curvature & CONCAVE)


def stronger(first: Sign, second: Sign) -> Sign:
    """What two facts about a sign say together."""
    if first is second or second is Sign.UNKNOWN:
        return first
    if first is Sign.UNKNOWN:
        return second
    strict = first if first.is_strict else second
    if strict.is_strict:
        return strict
    nonnegative = first.is_nonnegative and second.is_nonnegative
    nonpositive = first.is_nonpositive and second.is_nonpositive
    if Sign.ZERO in (first, second) or not (nonnegative or nonpositive):
        return Sign.ZERO
    return first
