"""Bounds that rows imply, one row after the other, in rational numbers.

A row Σ w t <= 0 holds each of its terms t between the ends that the other terms leave it: x + y <= 0 with
x, y >= 0 leaves 0 for both. Numbers are fractions, so that an end is 0 only where it is exactly so, and
every end knows the rows and bounds that it follows from. It needs no convexity; products and functions
are terms with a range of their own. An end that is open is not attained: tanh(x) + tanh(y) >= 2 has no
point, though the sum comes arbitrarily near to 2.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from hcmodel.records import dataclass
from hcmodel.solvers.limits import check_time
from hcmodel.solvers.numerics import DATA_ROUNDING

# Finite numbers are fractions, infinite ones floats.
Number = Fraction | float
Parts = frozenset[Hashable]

ZERO = Fraction(0)
NOTHING: Parts = frozenset()
# The smallest number above 0: a variable or a function that is positive is not below it.
SMALLEST = Fraction(math.ulp(0.0))
ROUNDING = Fraction(DATA_ROUNDING)


@dataclass(frozen=True)
class PropagationLimits:
    """When a propagation ends."""

    # Passes over all rows. Chains x1 = x2 = … need one, as rows are read in both directions; rows such as
    # x <= y/2, y <= x tighten for ever. Not tuned.
    passes: int = 8
    # Terms of all rows: a pass takes ten microseconds for each, more where fractions are long.
    terms: int = 3000
    # Terms up to which models are looked at before they are solved: it takes a few milliseconds.
    few: int = 200
    # Binary digits of an end: those of products double with each pass. The smallest number has 1074.
    digits: int = 4000


LIMITS = PropagationLimits()


class ContradictionError(Exception):
    """Some rows and bounds leave no point."""

    def __init__(self, parts: Parts) -> None:
        super().__init__("these rows and bounds contradict each other")
        self.parts = parts


class End(NamedTuple):
    """An end of what a term can be, what it follows from, and the size of the numbers added up for it.

    `is_open`: no point attains it.
    """

    value: Number
    parts: Parts = NOTHING
    size: Number = ZERO
    is_open: bool = False


LOWEST, HIGHEST = End(-math.inf), End(math.inf)


class Row(NamedTuple):
    """Σ weight·term + constant <= 0; below 0 where it is strict; 0 where it is an equality."""

    terms: Sequence[tuple[Hashable, Fraction]]
    constant: Fraction
    parts: Parts
    strict: bool = False
    equality: bool = False

    @property
    def form(self) -> Hashable:
        """The sum without its constant, up to a factor; None for a single term."""
        if len(self.terms) < 2:
            return None
        first = self.terms[0][1]
        return tuple((term, weight / first) for term, weight in self.terms)

    @property
    def negated(self) -> Row:
        terms = [(term, -weight) for term, weight in self.terms]
        return Row(terms, -self.constant, self.parts)


def fraction(value: float) -> Number:
    """A number of a model."""
    return Fraction(value) if math.isfinite(value) else value


def times(one: Number, other: Number) -> Number:
    """A product of ends, in which 0 times an infinite end is 0: numbers themselves are finite."""
    if not one or not other:
        return ZERO
    if isinstance(one, float) or isinstance(other, float):
        return math.inf if (one > 0) == (other > 0) else -math.inf
    return one * other


def scaled(end: End, weight: Fraction) -> End:
    return End(times(end.value, weight), end.parts, times(end.size, abs(weight)), end.is_open)


class Propagation:
    """The ends of all terms as far as rows have been read.

    `factors` says of terms that are products which terms they are the product of, with multiplicities.
    """

    def __init__(
        self,
        ends: Mapping[Hashable, tuple[End, End]],
        factors: Mapping[Hashable, Mapping[Hashable, int]],
    ) -> None:
        self.rows = list[Row]()
        self.ends = dict(ends)
        self.factors = factors
        self.changed = False
        self._products = dict[Hashable, tuple[End, End]]()  # until an end changes

    def enter(self, rows: Iterable[Row]) -> None:
        """Take over rows; the same sum may stand in several of them."""
        for row in rows:
            self.rows += [row, row.negated] if row.equality else [row]
        for row in self.rows:
            if row.form is not None:
                own = End(-row.constant, row.parts, abs(row.constant), row.strict)
                self._hold(row.form, row.terms[0][1], own)

    def read(self) -> None:
        """One pass over the rows; `ContradictionError` where they leave no point."""
        for row in self.rows:
            check_time()
            self.read_row(row)

    def range(self, term: Hashable) -> tuple[End, End]:
        """The ends of a term, of a product by those of its factors too."""
        factors = self.factors.get(term)
        if factors is None:
            return self.ends.get(term, (LOWEST, HIGHEST))
        found = self._products.get(term)
        if found is None:
            low, high = self.ends.get(term, (LOWEST, HIGHEST))
            least, most = self._product(factors)
            found = max(low, least, key=_from_below), min(high, most, key=_from_above)
            self._products[term] = found
        return found

    def total(self, row: Row) -> End:
        """The least value of the left side of a row, by its terms or by other rows with the same sum."""
        found = self._total(row, self._least(row))
        if row.form not in self.ends:
            return found
        weight = row.terms[0][1]
        low, high = self.ends[row.form]
        whole = self._total(row, [scaled(low if weight > 0 else high, weight)])
        return max(found, whole, key=_from_below)

    def set(self, term: Hashable, side: int, end: End) -> None:
        """Take over an end of a term where it is nearer than the one known; `side` 0 is the lower one."""
        pair = self.range(term)
        key = _from_above if side else _from_below
        nearer = key(end) < key(pair[1]) if side else key(end) > key(pair[0])
        if isinstance(end.value, float) or not nearer or _is_long(end.value):
            return
        low, high = (end, pair[1]) if side == 0 else (pair[0], end)
        if _excess(low, high) > 0 or _is_empty(low, high):
            raise ContradictionError(low.parts | high.parts)
        self.changed = True
        self.ends[term] = low, high
        self._products.clear()
        self._into_factors(term)

    def _into_factors(self, term: Hashable) -> None:
        """The factor of an even power that is 0 is 0."""
        high, factors = self.ends[term][1], self.factors.get(term, {})
        if high.value == 0 and len(factors) == 1:
            (factor, power), *_ = factors.items()
            if power % 2 == 0:
                for side in (0, 1):
                    self.set(factor, side, high)

    def _product(self, factors: Mapping[Hashable, int]) -> tuple[End, End]:
        pair = End(Fraction(1)), End(Fraction(1))
        for factor, power in factors.items():
            own = self._power(*self.range(factor), power)
            parts = frozenset().union(*(end.parts for end in (*pair, *own)))
            corners = [_corner(one, other) for one in pair for other in own]
            least, most = min(corners, key=_from_above), max(corners, key=_from_below)
            closed = {each.value for each in corners if not each.is_open}
            pair = (
                _end(least.value, parts, least.value not in closed),
                _end(most.value, parts, most.value not in closed),
            )
        return pair

    @staticmethod
    def _power(low: End, high: End, power: int) -> tuple[End, End]:
        parts = low.parts | high.parts
        ends = [low.value**power, high.value**power]
        closed = {value for value, end in zip(ends, (low, high), strict=True) if not end.is_open}
        least, most = min(ends), _end(max(ends), parts, max(ends) not in closed)
        if power % 2 == 0 and low.value < 0 < high.value:
            least = ZERO
        if power % 2 == 0 and not (low.value > 0 or high.value < 0):
            return End(max(least, ZERO)), most
        return _end(least, parts, least not in closed), most

    def _least(self, row: Row) -> list[End]:
        found = []
        for term, weight in row.terms:
            low, high = self.range(term)
            found.append(scaled(low if weight > 0 else high, weight))
        return found

    @staticmethod
    def _total(row: Row, least: Sequence[End]) -> End:
        parts = row.parts.union(*(end.parts for end in least))
        total: Number = row.constant
        size: Number = abs(row.constant)
        for end in least:
            if isinstance(end.value, float):
                return End(-math.inf, parts)
            total, size = total + end.value, size + max(end.size, abs(end.value))
        return End(total, parts, size, row.strict or any(end.is_open for end in least))

    def check(self, row: Row) -> None:
        """`ContradictionError` where a row misses 0 by more than rounding."""
        total = self.total(row)
        if _excess(total, End(ZERO)) > 0:
            raise ContradictionError(total.parts)

    def read_row(self, row: Row) -> None:
        """Take over what a row says of each of its terms."""
        least = self._least(row)
        infinite = [i for i, end in enumerate(least) if isinstance(end.value, float)]
        total = self.total(row)
        if _excess(total, End(ZERO)) > 0 or _is_empty(total, End(ZERO)):
            raise ContradictionError(total.parts)
        if len(infinite) > 1:
            return
        rest = self._total(row, [end for end in least if isinstance(end.value, Fraction)])
        for i in infinite or range(len(least)):
            own = ZERO if infinite else least[i].value
            others = row.strict or any(end.is_open for end in (*least[:i], *least[i + 1 :]))
            left = rest._replace(value=own - rest.value, is_open=others)
            term, weight = row.terms[i]
            if others and not left.value:
                side = 1 if weight > 0 else 0
                beside = -SMALLEST if side else SMALLEST
                self.set(term, side, left._replace(value=beside, is_open=False))
            else:
                self._hold(term, weight, left)

    def _hold(self, term: Hashable, weight: Fraction, end: End) -> None:
        """Take over that weight·term is not above an end."""
        self.set(term, 1 if weight > 0 else 0, scaled(end, 1 / weight))


def _end(value: Number, parts: Parts, is_open: bool = False) -> End:
    return End(value, parts, max(value, -value), is_open)


def _is_long(value: Fraction) -> bool:
    """Whether a number has more digits than an end is worth."""
    return max(value.numerator.bit_length(), value.denominator.bit_length()) > LIMITS.digits


def _corner(one: End, other: End) -> End:
    """The product of two ends; a product that is 0 is attained where one of its factors is 0 and is."""
    zeros = [end for end in (one, other) if not end.value]
    is_open = all(end.is_open for end in zeros) if zeros else one.is_open or other.is_open
    return End(times(one.value, other.value), is_open=is_open)


def _excess(low: End, high: End) -> Number:
    """By how much one end lies above another beyond rounding."""
    if isinstance(low.value, float) or isinstance(high.value, float):
        return low.value - high.value
    return low.value - high.value - times(ROUNDING, low.size + high.size)


def _is_empty(low: End, high: End) -> bool:
    """Whether no number lies between two ends, one of which is not attained."""
    return (low.is_open or high.is_open) and low.value >= high.value


def _from_below(end: End) -> tuple[Number, bool]:
    """Lower ends in order: one that is not attained is the nearer of two at the same number."""
    return end.value, end.is_open


def _from_above(end: End) -> tuple[Number, bool]:
    """Upper ends in order."""
    return end.value, not end.is_open
