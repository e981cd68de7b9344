"""Interval arithmetic: enclosures of an atom's values over intervals of its arguments.

Ends are rounded outward, so that a sign read off them is proven. An atom may declare an `enclosure`;
for the others it follows from their algebra, their monotonicity or their curvature (`derived`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.rules import Curvature, Dependence, Domain, Monotonicity, sign_of
from hcmodel.expressions.shapes import Shape
from hcmodel.expressions.sparse_data import any_nonzero, positive_part
from hcmodel.records import cached_property, dataclass
from hcmodel.solvers.numerics import DATA_ROUNDING as ROUNDING

if TYPE_CHECKING:
    from hcmodel.atoms.atom import Atom
    from hcmodel.atoms.rules import Contraction

FloatArray = NDArray[np.float64]
Interval = tuple[FloatArray, FloatArray]
UNBOUNDED: Interval = (np.array(-np.inf), np.array(np.inf))


@dataclass(frozen=True, eq=False)
class Ranges:
    """The intervals of an atom's arguments, with the facts of the atom over them.

    Arguments that are `known` are numbers: both ends are their value, entry by entry.
    """

    atom: Atom
    params: dict[str, Any]
    intervals: Sequence[Interval]
    shapes: Sequence[Shape]
    known: Sequence[bool]
    domains: Sequence[Domain]
    moves: Sequence[Monotonicity]
    curvature: Curvature
    dependence: Dependence | Contraction

    def value(self, *ends: FloatArray) -> FloatArray:
        """The atom at given arguments."""
        return np.asarray(self.atom.function(np, *ends, **self.params), dtype=float)

    @cached_property
    def inside(self) -> list[Interval]:
        """The intervals in the shapes of the arguments, cut to the closures of their domains."""
        return [
            spread(_inside(interval, domain), shape)
            for interval, domain, shape in zip(
                self.intervals, self.domains, self.shapes, strict=True
            )
        ]


Enclosure = Callable[[Ranges], Interval]


def derived(ranges: Ranges) -> Interval:
    """An enclosure by the atom's algebra, else by its monotonicity or curvature."""
    atom, count = ranges.atom, len(ranges.intervals)
    if atom.summed:
        return _signed_sum(atom.signs(count), ranges.intervals)
    if atom.moves_entries:
        lows, highs = zip(*ranges.inside, strict=True)
        return ordered(ranges.value(*lows), ranges.value(*highs))
    linear = count == 1 or (count == 2 and any(ranges.known))
    if linear and atom.adds_products(ranges.shapes, ranges.params):
        return _linear(ranges) if count == 1 else _linear_in_one(ranges, ranges.known.index(True))
    return by_shape(ranges, ranges.inside)


def by_shape(ranges: Ranges, inside: Sequence[Interval]) -> Interval:
    """By monotonicity, else by curvature."""
    if Monotonicity.UNKNOWN not in ranges.moves:
        return _monotone(ranges.value, inside, ranges.moves)
    if ranges.dependence is Dependence.ELEMENTWISE and all(ranges.known[1:]):
        return _bent(ranges.value, inside, ranges.curvature)
    return UNBOUNDED


def within(low: float, high: float) -> Enclosure:
    """The enclosure of an atom whose values lie between two numbers."""
    interval = np.array(low), np.array(high)
    return lambda ranges: interval


def product(ranges: Ranges) -> Interval:
    """Of two factors, entry by entry."""
    first, second = ranges.intervals
    return outward(_corners(first, second))


def quotient(ranges: Ranges) -> Interval:
    """Of a numerator and a divisor, entry by entry."""
    numerator, divisor = ranges.intervals
    return outward(_corners(numerator, _reciprocal(divisor)))


# building blocks


def ordered(low: FloatArray, high: FloatArray) -> Interval:
    """Ends with infinities for what could not be computed, or is out of order at a pole."""
    lost = ~(low <= high)
    return np.where(lost, -np.inf, low), np.where(lost, np.inf, high)


def outward(interval: Interval) -> Interval:
    """The interval widened by the rounding of a function; 0 stays 0, so signs stay."""
    low, high = interval
    with np.errstate(all="ignore"):
        return (
            np.where(np.isfinite(low), low - ROUNDING * np.abs(low), low),
            np.where(np.isfinite(high), high + ROUNDING * np.abs(high), high),
        )


def spread(interval: Interval, shape: Shape) -> Interval:
    """The interval for each entry of an array of this shape."""
    low, high = interval
    if low.shape == high.shape == shape:
        return interval  # of a sparse constant too
    return np.broadcast_to(low, shape), np.broadcast_to(high, shape)


def _inside(interval: Interval, domain: Domain) -> Interval:
    """The part of an interval that lies in the domain's closure."""
    if domain in (Domain.POSITIVE, Domain.NONNEGATIVE):
        return np.maximum(interval[0], 0.0), np.maximum(interval[1], 0.0)
    if domain is Domain.ABOVE_MINUS_ONE:
        return np.maximum(interval[0], -1.0), np.maximum(interval[1], -1.0)
    return interval


def _signed_sum(signs: Sequence[int], arguments: Sequence[Interval]) -> Interval:
    """Sums and differences, exact where the numbers allow it: x - 1 >= 0 for x >= 1."""
    terms = [
        (low, high) if sign > 0 else (-high, -low)
        for sign, (low, high) in zip(signs, arguments, strict=True)
    ]
    total = terms[0]
    for low, high in terms[1:]:
        total = _rounded_sum(total[0], low, -np.inf), _rounded_sum(total[1], high, np.inf)
    return total


def _rounded_sum(a: FloatArray, b: FloatArray, toward: float) -> FloatArray:
    """a + b, moved by one unit where rounding went the wrong way (Knuth's two-sum)."""
    if not (a.ndim or b.ndim):
        return np.asarray(_rounded_numbers(float(a), float(b), toward))
    with np.errstate(all="ignore"):
        total = np.asarray(a + b)
        share = total - a
        error = (a - (total - share)) + (b - share)
        wrong = error < 0 if toward < 0 else error > 0
        moved = np.where(wrong, np.nextafter(total, toward), total)
    return np.where(np.isnan(moved), toward, moved)


def _rounded_numbers(a: float, b: float, toward: float) -> float:
    """The same of two numbers; those of Python are faster than arrays."""
    total = a + b
    share = total - a
    error = (a - (total - share)) + (b - share)
    if error < 0 if toward < 0 else error > 0:
        total = math.nextafter(total, toward)
    return toward if math.isnan(total) else total


def _corners(first: Interval, second: Interval) -> Interval:
    with np.errstate(all="ignore"):
        corners = [np.asarray(a * b) for a in first for b in second]
    # 0 times an end at infinity is 0: the entries themselves are finite
    finite = [np.where(np.isnan(corner), 0.0, corner) for corner in corners]
    return np.asarray(np.minimum.reduce(finite)), np.asarray(np.maximum.reduce(finite))


def _reciprocal(interval: Interval) -> Interval:
    low, high = interval
    with np.errstate(all="ignore"):
        if np.all(low >= 0):
            return outward((1.0 / high, np.where(low > 0, 1.0 / low, np.inf)))
        if np.all(high <= 0):
            return outward((np.where(high < 0, 1.0 / high, -np.inf), 1.0 / low))
    return UNBOUNDED


def _linear_in_one(ranges: Ranges, place: int) -> Interval:
    """A product with a constant: its positive entries take the same end, the others the opposite."""
    factor = ranges.inside[place][0]
    low, high = ranges.inside[1 - place]

    def product(constant: FloatArray, varying: FloatArray) -> FloatArray:
        pair = (constant, varying) if place == 0 else (varying, constant)
        return ranges.value(*pair)

    up, down = positive_part(factor), positive_part(-factor)
    one_sign = not any_nonzero(down)
    with np.errstate(all="ignore"):
        if one_sign:
            below, above = product(up, low), product(up, high)
        else:
            below = product(up, low) - product(down, high)
            above = product(up, high) - product(down, low)
        sizes = product(up + down, np.maximum(np.abs(low), np.abs(high)))
        slack = ROUNDING * np.where(np.isfinite(sizes), sizes, 0.0)
        below_slack = slack
        if one_sign and sign_of(np.asarray(low)).is_nonnegative:
            below_slack = ROUNDING * below  # nothing cancels, and the sign stays
        return ordered(below - below_slack, above + slack)


def _linear(ranges: Ranges) -> Interval:
    """A linear function with weights that are not negative."""
    low, high = ranges.inside[0]
    value = ranges.value
    with np.errstate(all="ignore"):
        below = value(low) - ROUNDING * value(np.abs(low))
        return ordered(below, value(high) + ROUNDING * value(np.abs(high)))


def _monotone(
    value: Callable[..., FloatArray], inside: Sequence[Interval], moves: Sequence[Monotonicity]
) -> Interval:
    """The values at the ends, crosswise where the function falls."""
    falls = [move is Monotonicity.DECREASING for move in moves]
    lows = [high if down else low for (low, high), down in zip(inside, falls, strict=True)]
    highs = [low if down else high for (low, high), down in zip(inside, falls, strict=True)]
    return outward(ordered(value(*lows), value(*highs)))


def _bent(
    value: Callable[..., FloatArray], inside: Sequence[Interval], curvature: Curvature
) -> Interval:
    """A convex function is largest at an end, a concave one smallest."""
    (low, high), rest = inside[0], [interval[0] for interval in inside[1:]]
    corners = value(low, *rest), value(high, *rest)
    if curvature is Curvature.CONVEX:
        largest = np.maximum(*corners)
        return outward(ordered(np.full(np.shape(largest), -np.inf), largest))
    if curvature is Curvature.CONCAVE:
        smallest = np.minimum(*corners)
        return outward(ordered(smallest, np.full(np.shape(smallest), np.inf)))
    return UNBOUNDED
