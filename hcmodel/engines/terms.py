"""Arrays whose entries are sums of terms, with the algebra that keeps them so.

A term is a number, a number times a product of powers of positive unknowns, a number times one unknown of
any sign, or a number times the logarithm of a positive unknown. All operations work on whole arrays of
terms: nothing here loops over entries. An entry that is no such sum is marked as unknown, and so is
everything that is computed from it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.shapes import Shape
from hcmodel.records import cached_property, dataclass, replace
from hcmodel.solvers.algebra.marks import all_finite, every, none_is_0, some
from hcmodel.solvers.limits import check_time
from hcmodel.solvers.numerics import LARGEST_LOG

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]
Marks = NDArray[np.bool_]

# The kinds of terms, in the order in which a product with a number keeps the larger one.
NUMBER, MONOMIAL, LINEAR, LOGARITHM = range(4)


@dataclass(frozen=True, eq=False)
class Terms:
    """Terms in the order of the entries, in C order, that they belong to.

    `target` has the entry of each term, `lengths` the number of its powers; `columns` and `powers` have
    the unknowns and exponents of all terms, one term after the other. An unknown may stand in a term
    more than once: its exponents add up. A linear term and a logarithm have one unknown with exponent 1.
    """

    shape: Shape
    target: IndexArray
    weight: FloatArray
    kind: NDArray[np.int8]
    lengths: IndexArray
    columns: IndexArray
    powers: FloatArray
    unknown: Marks

    @staticmethod
    def constant(value: FloatArray) -> Terms:
        """Numbers; those that are 0 have no term."""
        array = np.asarray(value, dtype=float)
        flat = array.reshape(-1)
        target = flat.nonzero()[0]
        return Terms(
            array.shape,
            target,
            flat[target],
            np.zeros(target.size, dtype=np.int8),
            np.zeros(target.size, dtype=np.intp),
            NO_PLACES,
            NO_NUMBERS,
            np.zeros(flat.size, dtype=bool),
        )

    @staticmethod
    def of_unknowns(shape: Shape, places: IndexArray, weight: FloatArray, positive: bool) -> Terms:
        """Unknowns, entry by entry, times weights."""
        kind = MONOMIAL if positive else LINEAR
        count = places.size
        return Terms(
            shape,
            np.arange(count),
            weight,
            np.full(count, kind, dtype=np.int8),
            np.ones(count, dtype=np.intp),
            places,
            np.ones(count),
            np.zeros(count, dtype=bool),
        )

    @staticmethod
    def nothing(shape: Shape) -> Terms:
        """An array of which nothing is known."""
        empty = Terms.constant(np.zeros(shape))
        return replace(empty, unknown=np.ones(empty.size, dtype=bool))

    @property
    def size(self) -> int:
        return self.unknown.size

    @cached_property
    def counts(self) -> IndexArray:
        """The number of terms of each entry."""
        return np.bincount(self.target, minlength=self.size)

    @property
    def multiplied_by_numbers_only(self) -> Marks:
        """The entries that have a linear term or a logarithm, or are unknown."""
        return self.unknown | self._has((LINEAR, LOGARITHM))

    # ---- what `scalar_terms` looks up entry by entry

    @cached_property
    def numbers(self) -> IndexArray:
        """The numbers of the entries, beginning with 1."""
        return np.arange(1, self.size + 1).reshape(self.shape)

    @cached_property
    def listed(self) -> tuple[list[float], list[int], list[int], list[float]]:
        """Weights, kinds, unknowns and exponents as lists."""
        arrays = (self.weight, self.kind, self.columns, self.powers)
        weights, kinds, columns, powers = (array.tolist() for array in arrays)
        return weights, kinds, columns, powers

    @cached_property
    def starts(self) -> tuple[list[int], list[int]]:
        """Where the terms of each entry begin, and where the powers of each term begin."""
        first = np.concatenate([[0], self.counts.cumsum()]).tolist()
        inner = np.concatenate([[0], self.lengths.cumsum()]).tolist()
        return first, inner

    # ---- choosing and joining

    def reshaped(self, shape: Shape) -> Terms:
        return self if shape == self.shape else replace(self, shape=shape)

    def chosen(
        self, numbers: IndexArray, target: IndexArray, shape: Shape, unknown: Marks
    ) -> Terms:
        """Some of the terms, in an order in which their new targets do not decrease."""
        inner = spans(self.lengths, numbers)
        check_time()
        return Terms(
            shape,
            target,
            self.weight[numbers],
            self.kind[numbers],
            self.lengths[numbers],
            self.columns[inner],
            self.powers[inner],
            unknown,
        )

    def taken(self, places: IndexArray, shape: Shape) -> Terms:
        """The entries at `places`, counted in C order, as an array of `shape`."""
        check_time()
        numbers = spans(self.counts, places)
        target = np.arange(places.size).repeat(self.counts[places])
        return self.chosen(numbers, target, shape, self.unknown[places])

    def broadcast(self, shape: Shape) -> Terms:
        if self.shape == shape:
            return self
        numbers = np.arange(self.size).reshape(self.shape)
        return self.taken(np.broadcast_to(numbers, shape).reshape(-1), shape)

    def grouped(self, groups: IndexArray, shape: Shape) -> Terms:
        """Entries of the same group added up; `groups` has the entry of the result for each entry."""
        check_time()
        size = math.prod(shape)
        unknown = np.zeros(size, dtype=bool)
        unknown[groups[self.unknown]] = True
        target = groups[self.target]
        if every(target[1:] >= target[:-1]):
            return replace(self, shape=shape, target=target, unknown=unknown)
        order = target.argsort(kind="stable")
        return self.chosen(order, target[order], shape, unknown)

    def marked(self, unknown: Marks) -> Terms:
        """The same with more entries marked as unknown; their terms are left out."""
        if not some(unknown):
            return self
        kept = (~unknown[self.target]).nonzero()[0]
        return self.chosen(kept, self.target[kept], self.shape, self.unknown | unknown)

    # ---- algebra

    def scaled(self, factors: FloatArray) -> Terms:
        """Entry by entry times numbers of the same shape; terms times 0 are left out."""
        check_time()
        flat = np.asarray(factors, dtype=float).reshape(-1)
        own = flat[self.target]
        check_time()
        weight = self.weight * own
        if np.count_nonzero(weight) == weight.size and all_finite(weight):
            return replace(self, weight=weight)
        lost = left_range(weight, self.weight, own)
        if lost.any():
            return self.marked(_at(self.target[lost], self.size)).scaled(factors)
        kept = weight.nonzero()[0]
        found = self.chosen(kept, self.target[kept], self.shape, self.unknown)
        return replace(found, weight=weight[kept])

    def combined(
        self, places: IndexArray, factors: FloatArray, groups: IndexArray, shape: Shape
    ) -> Terms:
        """Entries at `places` times numbers, added up; `groups`, in order, has the entry of the result.

        This is `taken`, `scaled` and `grouped` at once.
        """
        check_time()
        own = self.counts[places]
        numbers = spans(self.counts, places)
        weight = self.weight[numbers] * factors.repeat(own)
        if not (none_is_0(weight) and all_finite(weight)):
            taken = self.taken(places, (places.size,))
            return taken.scaled(factors).grouped(groups, shape)
        unknown = np.zeros(math.prod(shape), dtype=bool)
        unknown[groups[self.unknown[places]]] = True
        inner = spans(self.lengths, numbers)
        return Terms(
            shape,
            groups.repeat(own),
            weight,
            self.kind[numbers],
            self.lengths[numbers],
            self.columns[inner],
            self.powers[inner],
            unknown,
        )

    def times(self, other: Terms) -> Terms:
        """The product of two arrays of one shape, known where one factor has one term at most."""
        unknown = self.unknown | other.unknown | ((self.counts > 1) & (other.counts > 1))
        one, two = self.marked(unknown), other.marked(unknown)
        first = np.arange(one.target.size).repeat(two.counts[one.target])
        second = spans(two.counts, one.target)
        kinds = one.kind[first], two.kind[second]
        mixed = (kinds[0] != NUMBER) & (kinds[1] != NUMBER)
        mixed &= (kinds[0] != MONOMIAL) | (kinds[1] != MONOMIAL)
        weight = one.weight[first] * two.weight[second]
        mixed |= left_range(weight, one.weight[first], two.weight[second])
        target = one.target[first]
        lengths = one.lengths[first] + two.lengths[second]
        columns, powers = _side_by_side(one, first, two, second, lengths)
        product = Terms(
            self.shape,
            target,
            weight,
            np.maximum(*kinds),
            lengths,
            columns,
            powers,
            unknown,
        )
        return product.marked(_at(target[mixed], self.size)) if mixed.any() else product

    def power(self, exponents: FloatArray) -> Terms:
        """Entry by entry to a power, known for one positive term (any entry where the power is 1)."""
        flat = np.asarray(exponents, dtype=float).reshape(-1)
        if every(flat == 1):
            return self
        single = (self.counts == 1) & ~self._has((LINEAR, LOGARITHM), self.weight <= 0)
        base = self.marked(~single & (flat != 1))
        own = flat[base.target]
        weight = np.where(own == 1, base.weight, np.power(np.abs(base.weight), own))
        lost = left_range(weight, base.weight)
        if lost.any():
            return base.marked(_at(base.target[lost], self.size)).power(exponents)
        raised = base.powers * own.repeat(base.lengths)
        return replace(base, weight=weight, powers=raised)._without_zeros()

    def product(self, groups: IndexArray, shape: Shape) -> Terms:
        """Entries of the same group multiplied, known where each has one term."""
        size = math.prod(shape)
        single = (self.counts == 1) & ~self._has((LINEAR, LOGARITHM))
        unknown = _at(groups[~single], size)
        order = groups.argsort(kind="stable")
        order = order[~unknown[groups[order]]]
        factors = self.taken(order, (order.size,))
        own, starts = np.unique(groups[order], return_index=True)
        weight = np.ones(size)  # groups without entries are empty products
        lengths = np.zeros(size, dtype=np.intp)
        kind = np.zeros(size, dtype=np.int8)
        if starts.size:
            weight[own] = np.multiply.reduceat(factors.weight, starts)
            lengths[own] = np.add.reduceat(factors.lengths, starts)
            kind[own] = np.maximum.reduceat(factors.kind, starts)
        kept = (~unknown).nonzero()[0]
        return Terms(
            shape,
            kept,
            weight[kept],
            kind[kept],
            lengths[kept],
            factors.columns,
            factors.powers,
            unknown,
        )

    def exponential(self) -> Terms:
        """Known where the terms are numbers and logarithms: one monomial then."""
        wrong = self._has((MONOMIAL, LINEAR)) | self.unknown
        inner = self.marked(wrong)
        logs = inner.kind == LOGARITHM
        numbers = np.bincount(inner.target[~logs], weights=inner.weight[~logs], minlength=self.size)
        far = np.abs(numbers) > LARGEST_LOG
        if some(far):  # exp(c) · x^p is not exp(c + p log x) where exp(c) is 0 or infinite
            return self.marked(far).exponential()
        lengths = np.bincount(inner.target[logs], minlength=self.size)
        kept = (~wrong).nonzero()[0]
        weight = np.exp(numbers[kept])
        return Terms(
            self.shape,
            kept,
            weight,
            np.where(lengths[kept] > 0, MONOMIAL, NUMBER).astype(np.int8),
            lengths[kept],
            inner.columns,  # only logarithms have any, one each
            inner.weight[logs],
            wrong,
        )

    def logarithm(self) -> Terms:
        """Known where there is one positive term: a number and logarithms then."""
        single = (self.counts == 1) & ~self._has((LINEAR, LOGARITHM), self.weight <= 0)
        inner = self.marked(~single)
        numbers = np.log(inner.weight)
        constant = numbers.nonzero()[0]
        owner = inner.target.repeat(inner.lengths)
        target = np.concatenate([owner, inner.target[constant]])
        order = target.argsort(kind="stable")
        count, more = owner.size, constant.size
        own = np.arange(count + more) < count  # logarithms come first
        found = Terms(
            self.shape,
            target,
            np.concatenate([inner.powers, numbers[constant]]),
            np.where(own, LOGARITHM, NUMBER).astype(np.int8),
            own.astype(np.intp),
            inner.columns,
            np.ones(count),
            inner.unknown,
        )
        return found.chosen(order, target[order], self.shape, inner.unknown)

    def _has(self, kinds: Sequence[int], terms: Marks | None = None) -> Marks:
        """Which entries have a term of these kinds, or one that is marked."""
        wanted = np.zeros(self.kind.size, dtype=bool) if terms is None else terms
        for kind in kinds:
            wanted = wanted | (self.kind == kind)
        return _at(self.target[wanted], self.size)

    def _without_zeros(self) -> Terms:
        """Exponents that are 0 left out."""
        if self.powers.all():
            return self
        kept = self.powers != 0
        owner = np.arange(self.target.size).repeat(self.lengths)[kept]
        lengths = np.bincount(owner, minlength=self.target.size)
        kind = np.where(lengths == 0, NUMBER, self.kind).astype(np.int8)
        return replace(
            self, kind=kind, lengths=lengths, columns=self.columns[kept], powers=self.powers[kept]
        )


NO_PLACES: IndexArray = np.zeros(0, dtype=np.intp)
NO_NUMBERS: FloatArray = np.zeros(0)


def spans(lengths: IndexArray, numbers: IndexArray) -> IndexArray:
    """Where the members of some groups are, which lie one group after the other."""
    if numbers.size == 0:
        return NO_PLACES
    if every(lengths == 1):
        return numbers
    check_time()
    own = lengths[numbers]
    ends: IndexArray = own.cumsum()
    first: IndexArray = (lengths.cumsum() - lengths)[numbers]
    return (first - (ends - own)).repeat(own) + np.arange(int(ends[-1]))


def joined(parts: Sequence[Terms]) -> Terms:
    """All entries, one part after the other."""
    check_time()
    starts = list(itertools.accumulate([part.size for part in parts], initial=0))
    return Terms(
        (starts[-1],),
        np.concatenate([part.target + start for part, start in zip(parts, starts, strict=False)]),
        np.concatenate([part.weight for part in parts]),
        np.concatenate([part.kind for part in parts]),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([part.columns for part in parts]),
        np.concatenate([part.powers for part in parts]),
        np.concatenate([part.unknown for part in parts]),
    )


def total(parts: Sequence[Terms], shape: Shape) -> Terms:
    """The sum, entry by entry."""
    wide = [part.broadcast(shape) for part in parts]
    size = wide[0].size
    return joined(wide).grouped(np.concatenate([np.arange(size)] * len(wide)), shape)


def _side_by_side(
    one: Terms, first: IndexArray, two: Terms, second: IndexArray, lengths: IndexArray
) -> tuple[IndexArray, FloatArray]:
    """The powers of pairs of terms: those of the first one, then those of the second."""
    if two.columns.size == 0 or one.columns.size == 0:
        only, numbers = (one, first) if two.columns.size == 0 else (two, second)
        inner = spans(only.lengths, numbers)
        return only.columns[inner], only.powers[inner]
    columns = np.empty(int(lengths.sum()), dtype=np.intp)
    powers = np.empty(columns.size)
    ends = lengths.cumsum()
    for part, numbers, start in (
        (one, first, ends - lengths),
        (two, second, ends - two.lengths[second]),
    ):
        own = part.lengths[numbers]
        done = own.cumsum()
        places = (start - (done - own)).repeat(own) + np.arange(int(own.sum()))
        inner = spans(part.lengths, numbers)
        columns[places], powers[places] = part.columns[inner], part.powers[inner]
    return columns, powers


def _at(places: IndexArray, size: int) -> Marks:
    found = np.zeros(size, dtype=bool)
    found[places] = True
    return found


def left_range(product: FloatArray, *factors: FloatArray) -> Marks:
    """Where a product of numbers is 0 or infinite and its factors are not: the term would be lost."""
    check_time()
    usable = np.ones(np.shape(product), dtype=bool)
    for factor in factors:
        usable &= np.isfinite(factor) & (factor != 0)
    return np.asarray(usable & ~(np.isfinite(product) & (product != 0)))
