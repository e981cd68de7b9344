"""Arrays of polynomials: the one form of an expression that does not depend on how it was written.

A *symbol* is an entry of a variable, or of a function that is no polynomial (a logarithm, the solution of
a linear system). Each entry of an array is a sum of weights times products of symbols. Two expressions
with equal sums are equal, whatever products, transposes, indexed sums or traces they were written with.

A product is a number: the symbols, sorted, are its digits. All operations work on whole arrays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.engines.recognition import combinations, raveled
from hcmodel.engines.terms import left_range, spans
from hcmodel.expressions.shapes import Shape
from hcmodel.records import cached_property, dataclass
from hcmodel.solvers.algebra.marks import all_are_0, all_finite, every, highest, some
from hcmodel.solvers.limits import check_time
from hcmodel.solvers.numerics import DATA_ROUNDING

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]
Keys = NDArray[np.int64]
Digits = NDArray[np.int64]

# The bits of a key that digits may use, and the terms of one array beyond which it is not multiplied out
# (regulators with 50 states and 10 inputs have 2.5 million; decision processes with 10,000 pairs of
# states and actions and 1,000 successors of each have 10 million, and are solved in 3 GB).
KEY_BITS = 62
MOST_TERMS = 12_000_000
ONE: int = 0  # the key of the empty product
# Digits of a product that are sorted by exchanging columns: 2,000 products of two factors take 10 µs
# instead of 180, and six columns of few products longer than by numpy's sort.
FEW_FACTORS = 4


class TooLargeError(Exception):
    """A product has more factors, or an array more terms, than are worth looking at."""


@dataclass(frozen=True)
class Coding:
    """How symbols become digits: symbol s is the digit s + 1, and 0 stands for no factor."""

    bits: int

    @staticmethod
    def of(symbols: int) -> Coding:
        """For so many symbols."""
        return Coding(max(int(symbols + 1).bit_length(), 1))

    @property
    def most(self) -> int:
        """The longest product."""
        return KEY_BITS // self.bits

    def digits(self, keys: Keys) -> Digits:
        """The symbols + 1 of each product in decreasing order, filled up with 0 to the longest.

        Columns are stored one after the other: what is asked of rows takes a tenth of the time.
        """
        longest = max(-(-highest(keys).bit_length() // self.bits), 1)
        shifts = self.bits * np.arange(longest)
        return ((keys >> shifts[:, None]) & ((1 << self.bits) - 1)).T

    def keys(self, digits: Digits) -> Keys:
        """The inverse of `digits`; the order of the factors does not matter."""
        check_time()
        columns = _in_order(digits)
        check_time()
        if any(np.count_nonzero(column) for column in columns[self.most :]):
            raise TooLargeError
        found = np.zeros(len(digits), dtype=np.int64)
        for i, column in enumerate(columns[: self.most]):
            found += column << self.bits * i
        return found

    def times(self, one: Keys, two: Keys) -> Keys:
        """Products of products."""
        if all_are_0(one):
            return two
        if all_are_0(two):
            return one
        return self.keys(np.concatenate([self.digits(one), self.digits(two)], axis=1))


def _in_order(digits: Digits) -> list[Keys]:
    """The columns after each row was sorted, the largest digit first."""
    if digits.shape[1] > FEW_FACTORS:
        return list(-np.sort(-digits, axis=1).T)
    columns = list(digits.T)
    for last in range(len(columns) - 1, 0, -1):
        for i in range(last):
            pair = columns[i], columns[i + 1]
            columns[i], columns[i + 1] = np.maximum(*pair), np.minimum(*pair)
    return columns


def _order(size: int, entry: IndexArray, key: Keys) -> IndexArray | None:
    """The order of terms by entry, of so many, and key; None where they are so and all different."""
    bits = highest(key).bit_length()
    if bits + size.bit_length() > KEY_BITS:
        return np.lexsort((key, entry)) if entry.size else None
    joint = (entry << bits) + key  # one number is sorted in a fifth of the time of two
    return None if every(joint[1:] > joint[:-1]) else joint.argsort(kind="stable")


@dataclass(frozen=True, eq=False)
class Sums:
    """`entry`, `key` and `weight` of each term, sorted by entry and key, no term twice, no weight 0."""

    shape: Shape
    entry: IndexArray
    key: Keys
    weight: FloatArray
    coding: Coding

    @staticmethod
    def constant(value: Any, coding: Coding) -> Sums:
        array = np.asarray(value, dtype=float)
        flat = array.reshape(-1)
        entry = flat.nonzero()[0]
        return Sums(array.shape, entry, np.zeros(entry.size, dtype=np.int64), flat[entry], coding)

    @staticmethod
    def symbols(numbers: NDArray[np.int64], coding: Coding) -> Sums:
        """An array of single symbols."""
        entry = np.arange(numbers.size)
        return Sums(numbers.shape, entry, numbers.reshape(-1) + 1, np.ones(entry.size), coding)

    @staticmethod
    def total(numbers: NDArray[np.int64], coding: Coding) -> Sums:
        """The sum of different symbols, which are sorted."""
        entry = np.zeros(numbers.size, dtype=np.intp)
        return Sums((), entry, numbers + 1, np.ones(entry.size), coding)

    @staticmethod
    def merged(
        shape: Shape, entry: IndexArray, key: Keys, weight: FloatArray, coding: Coding
    ) -> Sums:
        """Equal products of an entry added up; what cancels to rounding is 0."""
        check_time()
        if entry.size > MOST_TERMS:
            raise TooLargeError
        order = _order(math.prod(shape), entry, key)
        check_time()
        if order is not None:
            entry, key, weight = entry[order], key[order], weight[order]
            first = np.empty(entry.size, dtype=bool)
            first[0] = True
            first[1:] = (entry[1:] != entry[:-1]) | (key[1:] != key[:-1])
            starts = first.nonzero()[0]
            if starts.size < entry.size:
                sizes = np.add.reduceat(np.abs(weight), starts)
                weight = np.add.reduceat(weight, starts)
                weight[np.abs(weight) <= DATA_ROUNDING * sizes] = 0.0
                entry, key = entry[starts], key[starts]
        if np.count_nonzero(weight) < weight.size:
            kept = weight != 0
            entry, key, weight = entry[kept], key[kept], weight[kept]
        return Sums(shape, entry, key, weight, coding)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @cached_property
    def counts(self) -> IndexArray:
        """The number of terms of each entry."""
        return np.bincount(self.entry, minlength=self.size)

    @cached_property
    def digits(self) -> Digits:
        return self.coding.digits(self.key)

    @cached_property
    def degrees(self) -> IndexArray:
        """The number of factors of each term."""
        found = np.asarray((self.digits > 0).sum(axis=1))
        found.flags.writeable = False
        return found

    @property
    def is_constant(self) -> bool:
        return all_are_0(self.key)

    @property
    def value(self) -> FloatArray:
        """The part without symbols."""
        check_time()
        if self.entry.size == self.size and self.is_constant:  # numbers none of which is 0
            return self.weight.reshape(self.shape)
        flat = np.zeros(self.size)
        plain = self.key == ONE
        flat[self.entry[plain]] = self.weight[plain]
        return flat.reshape(self.shape)

    def symbols_used(self) -> NDArray[np.int64]:
        """The symbols that occur, sorted."""
        return self._used

    @cached_property
    def _used(self) -> NDArray[np.int64]:
        digits = self.digits
        marks = np.zeros(highest(digits) + 1, dtype=bool)
        marks[digits.reshape(-1)] = True
        return marks[1:].nonzero()[0]

    def holding(self, symbols: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which terms have one of some symbols as a factor."""
        return np.asarray(self.among(np.ravel(symbols) + 1).any(axis=1))

    def among(self, wanted: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of the digits are among some others."""
        digits = self.digits
        marks = np.zeros(max(highest(digits), highest(wanted)) + 1, dtype=bool)
        marks[wanted] = True
        return marks[digits]

    def chosen(self, marks: NDArray[np.bool_]) -> Sums:
        """Some of the terms."""
        return Sums(self.shape, self.entry[marks], self.key[marks], self.weight[marks], self.coding)

    def reshaped(self, shape: Shape) -> Sums:
        if shape == self.shape:
            return self
        return Sums(shape, self.entry, self.key, self.weight, self.coding)

    def taken(self, places: IndexArray, shape: Shape) -> Sums:
        """The entries at `places`, counted in C order; a place of −1 is 0."""
        check_time()
        counts = self.counts
        if some(places < 0):
            counts = np.append(counts, 0)
            places = np.where(places < 0, counts.size - 1, places)
        entry = np.arange(places.size).repeat(counts[places])
        numbers = spans(counts, places)
        check_time()
        return Sums(shape, entry, self.key[numbers], self.weight[numbers], self.coding)

    def broadcast(self, shape: Shape) -> Sums:
        if self.shape == shape:
            return self
        numbers = np.arange(self.size).reshape(self.shape)
        return self.taken(np.broadcast_to(numbers, shape).reshape(-1), shape)

    def grouped(self, groups: IndexArray, shape: Shape) -> Sums:
        """Entries of the same group added up; `groups` has the entry of the result for each entry."""
        return Sums.merged(shape, groups[self.entry], self.key, self.weight, self.coding)

    def scaled(self, factors: Any) -> Sums:
        """Times numbers, entry by entry."""
        check_time()
        if np.shape(factors) != self.shape:
            factors = np.broadcast_to(factors, self.shape)
        weight = _multiplied(self.weight, np.asarray(factors).reshape(-1)[self.entry])
        if every(weight != 0):
            return Sums(self.shape, self.entry, self.key, weight, self.coding)
        kept = weight != 0
        return Sums(self.shape, self.entry[kept], self.key[kept], weight[kept], self.coding)

    def times(self, other: Sums) -> Sums:
        """The product, entry by entry, of two arrays that broadcast."""
        found = self.pairs(other)
        return Sums.merged(found.shape, found.entry, found.key, found.weight, self.coding)

    def multiplied(self, places: IndexArray, shape: Shape) -> Sums:
        """Products of entries of one term each, or none: each row of `places` has those of an entry."""
        check_time()
        keys, weights = np.zeros(self.size, dtype=np.int64), np.zeros(self.size)
        keys[self.entry], weights[self.entry] = self.key, self.weight
        factors = weights[places]
        with np.errstate(all="ignore"):
            weight = np.multiply.reduce(factors, axis=1)
        numbers = ((factors != 0) & np.isfinite(factors)).all(axis=1)
        if np.any(numbers & ((weight == 0) | ~np.isfinite(weight))):
            raise TooLargeError  # terms would be lost
        digits = self.coding.digits(keys[places].reshape(-1)).reshape(len(places), -1)
        used = np.asarray(digits.any(axis=0))  # most entries of a product may be 1
        key = self.coding.keys(digits[:, used]) if some(used) else np.zeros(len(places), np.int64)
        kept = (weight != 0).nonzero()[0]
        return Sums(shape, kept, key[kept], weight[kept], self.coding)

    def pairs(self, other: Sums) -> Sums:
        """The same with a term for each pair of terms; equal ones of an entry are not added up."""
        shape = _common_shape([self, other])
        one, two = self.broadcast(shape), other.broadcast(shape)
        counts = two.counts
        own = counts[one.entry]
        if int(own.sum()) > MOST_TERMS:
            raise TooLargeError
        first = np.arange(own.size).repeat(own)
        second = spans(counts, one.entry)
        check_time()
        key = self.coding.times(one.key[first], two.key[second])
        weight = _multiplied(one.weight[first], two.weight[second])
        return Sums(shape, one.entry[first], key, weight, self.coding)

    def __neg__(self) -> Sums:
        return Sums(self.shape, self.entry, self.key, -self.weight, self.coding)

    def __add__(self, other: Sums) -> Sums:
        return added([self, other])

    def __sub__(self, other: Sums) -> Sums:
        return added([self, -other])

    def __matmul__(self, other: Sums) -> Sums:
        """The product of matrices, vectors among them."""
        left = "ik" if len(self.shape) == 2 else "k"
        right = "kj" if len(other.shape) == 2 else "k"
        shape = (*self.shape[:-1], *other.shape[1:])
        output = left.replace("k", "") + right.replace("k", "")
        return contracted([self, other], f"{left},{right}->{output}", shape)

    @property
    def T(self) -> Sums:  # noqa: N802, as numpy has it
        return self.transposed()

    def transposed(self) -> Sums:
        """The transpose of a matrix."""
        numbers = np.arange(self.size).reshape(self.shape).T
        return self.taken(numbers.reshape(-1), numbers.shape)

    def equals(self, other: Sums) -> bool:
        """Whether all terms agree, to rounding."""
        if self.shape != other.shape:
            return False
        scale = max(np.abs(self.weight).max(initial=0.0), np.abs(other.weight).max(initial=0.0))
        same = np.array_equal(self.entry, other.entry) and np.array_equal(self.key, other.key)
        # the difference of large sums has more terms than sums may have
        apart = self.weight - other.weight if same else (self - other).weight
        return bool((np.abs(apart) <= DATA_ROUNDING * scale).all())

    def multiple_of(self, other: Sums) -> float | None:
        """The number that it is times another array, term by term to rounding; None where it is not."""
        if self.shape != other.shape or not other.key.size:
            return None
        if not (np.array_equal(self.entry, other.entry) and np.array_equal(self.key, other.key)):
            return None
        largest = int(np.abs(other.weight).argmax())
        ratio = float(self.weight[largest] / other.weight[largest])
        apart = np.abs(self.weight - ratio * other.weight)
        return ratio if (apart <= DATA_ROUNDING * np.abs(self.weight)).all() else None

    def entries(self) -> Iterator[Sums]:
        """The entries one by one, as scalars."""
        ends = np.cumsum(self.counts)
        for start, end in zip(ends - self.counts, ends, strict=True):
            part = slice(start, end)
            none = np.zeros(end - start, dtype=np.intp)
            yield Sums((), none, self.key[part], self.weight[part], self.coding)

    def content(self) -> tuple[bytes, ...]:
        """What tells one array of sums from another, for tables."""
        return self._content

    @cached_property
    def _content(self) -> tuple[bytes, ...]:
        return self.entry.tobytes(), self.key.tobytes(), self.weight.tobytes()


def _common_shape(parts: Sequence[Sums]) -> Shape:
    shapes = {part.shape for part in parts}
    return shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)


def _multiplied(one: FloatArray, two: FloatArray) -> FloatArray:
    """Products of weights; an error where one is 0 or infinite and its factors are not."""
    with np.errstate(all="ignore"):
        weight = one * two
    check_time()
    if not (every(weight != 0) and all_finite(weight)) and left_range(weight, one, two).any():
        raise TooLargeError  # terms would be lost
    return weight


def added(parts: Sequence[Sums]) -> Sums:
    """The sum of arrays that broadcast."""
    shape = _common_shape(parts)
    wide = [part.broadcast(shape) for part in parts]
    return Sums.merged(
        shape,
        np.concatenate([part.entry for part in wide]),
        np.concatenate([part.key for part in wide]),
        np.concatenate([part.weight for part in wide]),
        parts[0].coding,
    )


def stacked(parts: Sequence[Sums], coding: Coding) -> Sums:
    """All entries, one part after the other."""
    starts = np.cumsum([0, *(part.size for part in parts)])
    nothing = np.zeros(0, dtype=np.intp)
    return Sums(
        (int(starts[-1]),),
        np.concatenate([nothing, *[p.entry + s for p, s in zip(parts, starts, strict=False)]]),
        np.concatenate([nothing.astype(np.int64), *[part.key for part in parts]]),
        np.concatenate([np.zeros(0), *[part.weight for part in parts]]),
        coding,
    )


def placed(parts: Sequence[tuple[Sums, IndexArray]], shape: Shape, coding: Coding) -> Sums:
    """An array with each part at its places, numbers of entries; parts at the same place are added."""
    return Sums.merged(
        shape,
        np.concatenate([places.reshape(-1)[part.entry] for part, places in parts]),
        np.concatenate([part.key for part, _ in parts]),
        np.concatenate([part.weight for part, _ in parts]),
        coding,
    )


def contracted(factors: Sequence[Sums], subscripts: str, shape: Shape) -> Sums:
    """A sum of products along shared labels; only entries of constants that are not 0 count."""
    inputs, output = subscripts.split("->")
    labels = inputs.split(",")
    values = [each.value if each.is_constant else None for each in factors]
    constant = next((i for i, each in enumerate(values) if each is not None), None)
    filled: tuple[IndexArray, ...] = ()
    if constant is not None and factors[constant].shape:
        filled = np.nonzero(np.asarray(values[constant]))
        check_time()
    index = combinations(labels, [each.shape for each in factors], constant, filled)
    if index is None:
        raise TooLargeError
    count = next(iter(index.values())).size if index else 1
    product: Sums | None = None
    weights = np.ones(count)
    for own, factor, value in zip(labels, factors, values, strict=True):
        check_time()
        places = raveled([index[label] for label in own], factor.shape, count)
        if value is None:
            taken = factor.taken(places, (count,))
            product = taken if product is None else product.pairs(taken)
        else:
            weights = weights * value.reshape(-1)[places]
    groups = raveled([index[label] for label in output], shape, count)
    if product is None:
        return Sums.constant(weights, factors[0].coding).grouped(groups, shape)
    if constant is not None:
        product = product.scaled(weights)
    return product.grouped(groups, shape)
