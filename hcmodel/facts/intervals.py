"""Enclosures: an interval for every entry of an expression, over the variables' domains.

Ends are rounded outward, so that a sign read off them is proven. Where entries are many, one
interval stands for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.rules import Curvature, Dependence, Domain, Monotonicity, Sign, sign_of

if TYPE_CHECKING:
    from hcmodel.atoms.atom import Atom
    from hcmodel.facts.answers import Answers

FloatArray = NDArray[np.float64]
Interval = tuple[FloatArray, FloatArray]

MAX_ENTRIES = 4096  # beyond, one interval for all entries
ROUNDING = 1e-12
BOUNDED = {"sin": (-1.0, 1.0), "cos": (-1.0, 1.0), "softmax": (0.0, 1.0)}
BILINEAR = ("matmul", "dot", "einsum", "outer", "kron")
LINEAR = ("sum", "mean", "cumsum", "trace")
UNBOUNDED: Interval = (np.array(-np.inf), np.array(np.inf))


def collapsed(interval: Interval) -> Interval:
    """The interval itself, or one that holds all entries where these are many."""
    low, high = interval
    if low.size <= MAX_ENTRIES and high.size <= MAX_ENTRIES:
        return interval
    return np.asarray(low.min()), np.asarray(high.max())


def interval_sign(interval: Interval) -> Sign:
    """The strongest sign that the ends prove."""
    low, high = interval
    if low.size == 0 or high.size == 0:
        return Sign.ZERO
    below, above = float(low.min()), float(high.max())
    if below > 0:
        return Sign.POSITIVE
    if above < 0:
        return Sign.NEGATIVE
    if below == 0:
        return Sign.ZERO if above == 0 else Sign.NONNEGATIVE
    return Sign.NONPOSITIVE if above == 0 else Sign.UNKNOWN


def with_sign(interval: Interval, sign: Sign) -> Interval:
    """The interval cut at 0 where the sign says so."""
    low, high = interval
    if sign.is_nonnegative:
        low = np.maximum(low, 0.0)
        high = np.maximum(high, 0.0)
    if sign.is_nonpositive:
        low = np.minimum(low, 0.0)
        high = np.minimum(high, 0.0)
    return np.asarray(low), np.asarray(high)


def enclosure(
    atom: Atom,
    params: dict[str, Any],
    arguments: Sequence[Interval],
    shapes: Sequence[tuple[int, ...]],
    known: Sequence[bool],
    answers: Answers,
) -> Interval:
    """An interval for each entry of an atom applied to arguments inside the given intervals.

    Arguments that are `known` are numbers: both ends are their value, entry by entry.
    """
    name = atom.name
    if name in ("add", "sub", "neg"):
        return _sum(name, arguments)
    if name == "mul":
        return _outward(_product(*arguments))
    if name == "div":
        return _outward(_product(arguments[0], _reciprocal(arguments[1])))
    if name in BOUNDED:
        low, high = BOUNDED[name]
        return np.array(low), np.array(high)
    whole = [
        _spread(_inside(interval, domain), shape)
        for interval, domain, shape in zip(arguments, answers.domains, shapes, strict=True)
    ]
    if name == "power" and known[1]:
        # an array of exponents has one domain, but whole ones take negative bases as well
        mixed = np.any(arguments[1][0] != np.rint(arguments[1][0])) and np.any(
            arguments[1][0] == np.rint(arguments[1][0])
        )
        if mixed:
            whole[0] = _spread(arguments[0], shapes[0])

    def value(*ends: FloatArray) -> FloatArray:
        return np.asarray(atom.function(np, *ends, **params), dtype=float)

    if answers.dependence is Dependence.MOVEMENT:
        return _ends(value(*(low for low, _ in whole)), value(*(high for _, high in whole)))
    if name in BILINEAR and len(whole) == 2 and any(known):
        return _linear_in_one(value, whole, known.index(True))
    if name in LINEAR:
        return _reduced(value, whole[0])
    if name == "power" and known[1] and np.all(whole[0][0] >= 0):
        corners = value(whole[0][0], whole[1][0]), value(whole[0][1], whole[1][0])
        return _outward(_ends(np.minimum(*corners), np.maximum(*corners)))
    if Monotonicity.UNKNOWN not in answers.moves:
        return _monotone(value, whole, answers.moves)
    if name == "norm":
        largest = np.maximum(np.abs(whole[0][0]), np.abs(whole[0][1]))
        return _outward(_ends(np.zeros(()), value(largest)))
    if answers.dependence is Dependence.ELEMENTWISE and (len(whole) == 1 or all(known[1:])):
        return _bent(value, whole, answers.curvature)
    return UNBOUNDED


def _ends(low: FloatArray, high: FloatArray) -> Interval:
    """Ends with infinities for what could not be computed, or is out of order at a pole."""
    lost = ~(low <= high)
    return np.where(lost, -np.inf, low), np.where(lost, np.inf, high)


def _outward(interval: Interval) -> Interval:
    """The interval widened by the rounding of a function; 0 stays 0, so signs stay."""
    low, high = interval
    with np.errstate(all="ignore"):
        return (
            np.where(np.isfinite(low), low - ROUNDING * np.abs(low), low),
            np.where(np.isfinite(high), high + ROUNDING * np.abs(high), high),
        )


def _spread(interval: Interval, shape: tuple[int, ...]) -> Interval:
    return np.broadcast_to(interval[0], shape), np.broadcast_to(interval[1], shape)


def _inside(interval: Interval, domain: Domain) -> Interval:
    """The part of an interval that lies in the domain's closure."""
    if domain in (Domain.POSITIVE, Domain.NONNEGATIVE):
        return with_sign(interval, Sign.NONNEGATIVE)
    if domain is Domain.ABOVE_MINUS_ONE:
        return np.maximum(interval[0], -1.0), np.maximum(interval[1], -1.0)
    return interval


def _sum(name: str, arguments: Sequence[Interval]) -> Interval:
    """Sums and differences, exact where the numbers allow it: x - 1 >= 0 for x >= 1."""
    if name == "neg":
        low, high = arguments[0]
        return -high, -low
    total = arguments[0]
    for low, high in arguments[1:]:
        if name == "sub":
            low, high = -high, -low
        total = _rounded_sum(total[0], low, -np.inf), _rounded_sum(total[1], high, np.inf)
    return total


def _rounded_sum(a: FloatArray, b: FloatArray, toward: float) -> FloatArray:
    """a + b, moved by one unit where rounding went the wrong way (Knuth's two-sum)."""
    with np.errstate(all="ignore"):
        total = np.asarray(a + b)
        share = total - a
        error = (a - (total - share)) + (b - share)
        wrong = error < 0 if toward < 0 else error > 0
        moved = np.where(wrong, np.nextafter(total, toward), total)
    return np.where(np.isnan(moved), toward, moved)


def _product(first: Interval, second: Interval) -> Interval:
    with np.errstate(all="ignore"):
        corners = [np.asarray(a * b) for a in first for b in second]
    # 0 times an end at infinity is 0: the entries themselves are finite
    finite = [np.where(np.isnan(corner), 0.0, corner) for corner in corners]
    return np.asarray(np.minimum.reduce(finite)), np.asarray(np.maximum.reduce(finite))


def _reciprocal(interval: Interval) -> Interval:
    low, high = interval
    with np.errstate(all="ignore"):
        if np.all(low >= 0):
            return _outward((1.0 / high, np.where(low > 0, 1.0 / low, np.inf)))
        if np.all(high <= 0):
            return _outward((np.where(high < 0, 1.0 / high, -np.inf), 1.0 / low))
    return UNBOUNDED


def _linear_in_one(
    value: Callable[..., FloatArray], whole: Sequence[Interval], place: int
) -> Interval:
    """A product with a constant: its positive entries take the same end, the others the opposite."""
    factor = whole[place][0]
    low, high = whole[1 - place]

    def product(constant: FloatArray, varying: FloatArray) -> FloatArray:
        pair = (constant, varying) if place == 0 else (varying, constant)
        return value(*pair)

    up, down = np.maximum(factor, 0.0), np.maximum(-factor, 0.0)
    with np.errstate(all="ignore"):
        if not down.any():
            below, above = product(up, low), product(up, high)
        else:
            below = product(up, low) - product(down, high)
            above = product(up, high) - product(down, low)
        sizes = product(up + down, np.maximum(np.abs(low), np.abs(high)))
        slack = ROUNDING * np.where(np.isfinite(sizes), sizes, 0.0)
        if not down.any() and sign_of(np.asarray(low)).is_nonnegative:
            slack = ROUNDING * below  # nothing cancels, and the sign stays
        return _ends(below - slack, above + ROUNDING * np.where(np.isfinite(sizes), sizes, 0.0))


def _reduced(value: Callable[..., FloatArray], interval: Interval) -> Interval:
    low, high = interval
    with np.errstate(all="ignore"):
        below, above = value(low), value(high)
        return _ends(below - ROUNDING * value(np.abs(low)), above + ROUNDING * value(np.abs(high)))


def _monotone(
    value: Callable[..., FloatArray], whole: Sequence[Interval], moves: Sequence[Monotonicity]
) -> Interval:
    """The values at the ends, crosswise where the function falls."""
    falls = [move is Monotonicity.DECREASING for move in moves]
    lows = [high if down else low for (low, high), down in zip(whole, falls, strict=True)]
    highs = [low if down else high for (low, high), down in zip(whole, falls, strict=True)]
    return _outward(_ends(value(*lows), value(*highs)))


def _bent(
    value: Callable[..., FloatArray], whole: Sequence[Interval], curvature: Curvature
) -> Interval:
    """A convex function is largest at an end, a concave one smallest."""
    (low, high), rest = whole[0], [interval[0] for interval in whole[1:]]
    corners = value(low, *rest), value(high, *rest)
    if curvature is Curvature.CONVEX:
        largest = np.maximum(*corners)
        return _outward(_ends(np.full(np.shape(largest), -np.inf), largest))
    if curvature is Curvature.CONCAVE:
        smallest = np.minimum(*corners)
        return _outward(_ends(smallest, np.full(np.shape(smallest), np.inf)))
    return UNBOUNDED
