"""Values and derivatives of sums of terms in closed form,

    φ(x) = c + C x + L log x + W t(x),   t_k = Π_i x_i^(A_ki) = exp(A log x),

    ∂φ/∂x = C + (L + W diag(t) A) diag(1/x),
    ∇²(w·φ) = diag(1/x) [Aᵀ diag(v) A − diag(Aᵀv + Lᵀw)] diag(1/x),   v = (Wᵀw)·t.

Every term belongs to one row. There are two implementations: dense matrices for small or dense sums,
lists of entries with a fixed pattern for the others.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.engines.forward import SPARSE_DENSITY, SPARSE_ROWS
from hcmodel.engines.terms import LOGARITHM, Terms, spans
from hcmodel.records import cached_property, dataclass
from hcmodel.solvers.algebra.keys import distinct
from hcmodel.solvers.algebra.marks import all_are_0, every, none_is_0
from hcmodel.solvers.limits import check_time

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]
Matrix = Any  # a dense array or scipy.sparse.csr_array, which has no types

# Numbers in the dense matrices of a part up to which these are used whatever their zeros. Values and
# Jacobian of chains (best of 7 runs) take 77 µs with them and 126 with lists of entries where they have
# 18,000 numbers, 130 and 121 where they have 32,000.
DENSE_SIZE = 20_000
# Unknowns up to which the Hessian is dense whatever its zeros. A Newton step (polishing.py, best of 7
# runs) takes 7.4 ms with sparse matrices and 1.5 without on mra01 of CBLIB (61 unknowns), 9.5 and 1.8 on
# a chain of 100 unknowns, 7.7 and 10.1 on one of 200.
DENSE_HESSIAN = 150
# Pairs of unknowns of terms, counted for each term, beyond which the Hessian is taken to be dense.
MOST_PAIRS = 30_000_000


@dataclass(frozen=True, eq=False)
class Entries:
    """A matrix as a list of entries, in the order of the rows."""

    rows: IndexArray
    columns: IndexArray
    values: FloatArray
    shape: tuple[int, int]

    def between(self, start: int, stop: int) -> Entries:
        """Some of the rows."""
        first, last = self.rows.searchsorted((start, stop))
        own = slice(first, last)
        shape = (stop - start, self.shape[1])
        return Entries(self.rows[own] - start, self.columns[own], self.values[own], shape)

    def dense(self) -> FloatArray:
        """The matrix; entries at the same place add up."""
        matrix = np.zeros(self.shape)
        np.add.at(matrix, (self.rows, self.columns), self.values)
        return matrix


@dataclass(frozen=True, eq=False)
class SumData:
    """c, C, L, the weights of the terms with their rows, and A."""

    offset: FloatArray
    linear: Entries
    logarithms: Entries
    weights: FloatArray
    rows: IndexArray
    exponents: Entries

    @staticmethod
    def of(whole: Terms, dimension: int) -> SumData:
        """Of an array of terms, no entry of which is unknown."""
        check_time()
        owner, columns, powers = _settled(whole, dimension)
        lengths = np.bincount(owner, minlength=whole.target.size)
        size = whole.size
        number = (lengths == 0) & (whole.kind != LOGARITHM)
        logs = whole.kind == LOGARITHM
        first = lengths.cumsum() - lengths
        straight = (lengths == 1) & ~logs
        straight[straight] = powers[first[straight]] == 1
        check_time()
        offset = np.bincount(
            whole.target[number], weights=whole.weight[number], minlength=size
        ).astype(float)
        listed = ~(number | logs | straight)
        renumbered = listed.cumsum() - 1
        inner = listed[owner] if owner.size else np.zeros(0, dtype=bool)
        count = int(listed.sum())
        return SumData(
            offset,
            _entries(whole, straight, columns, first, dimension),
            _entries(whole, logs, columns, first, dimension),
            whole.weight[listed],
            whole.target[listed],
            Entries(renumbered[owner[inner]], columns[inner], powers[inner], (count, dimension)),
        )

    @property
    def size(self) -> int:
        return self.offset.size

    @property
    def dimension(self) -> int:
        return self.linear.shape[1]

    @cached_property
    def positive(self) -> IndexArray:
        """The unknowns whose logarithms are used."""
        used = np.zeros(self.dimension, dtype=bool)
        used[self.exponents.columns] = used[self.logarithms.columns] = True
        return used.nonzero()[0]

    def between(self, start: int, stop: int) -> SumData:
        """Some of the rows, with their terms."""
        if (start, stop) == (0, self.size):
            return self
        first, last = self.rows.searchsorted((start, stop))
        return SumData(
            self.offset[start:stop],
            self.linear.between(start, stop),
            self.logarithms.between(start, stop),
            self.weights[first:last],
            self.rows[first:last] - start,
            self.exponents.between(first, last),
        )

    @property
    def is_dense(self) -> bool:
        """Whether dense matrices are the better choice."""
        terms = self.weights.size
        most = (self.size + terms) * self.dimension + self.size * terms
        filled = self.exponents.values.size + self.linear.values.size
        return most <= DENSE_SIZE or filled > SPARSE_DENSITY * most

    @cached_property
    def hessian_pattern(self) -> tuple[IndexArray, IndexArray] | None:
        """Row pointers and columns of the Hessian of all rows; None where it is small or dense."""
        if self.dimension <= DENSE_HESSIAN:
            return None
        pairs = self.pairs
        if pairs is None:
            return None
        keys = np.sort(
            np.concatenate([pairs.keys, self._diagonal])
        )  # np.unique takes ten times as long
        keys = keys[np.append(True, keys[1:] != keys[:-1])]
        if keys.size > SPARSE_DENSITY * self.dimension**2:
            return None
        rows, columns = np.divmod(keys, self.dimension)
        return rows.searchsorted(np.arange(self.dimension + 1)), columns

    @property
    def _diagonal(self) -> IndexArray:
        return np.arange(self.dimension) * (self.dimension + 1)

    @cached_property
    def pairs(self) -> Pairs | None:
        """The pairs of powers in each term; None where these are too many."""
        lengths = np.bincount(self.exponents.rows, minlength=self.weights.size)
        if int(np.sum(lengths.astype(float) ** 2)) > MOST_PAIRS:
            return None
        one = np.arange(self.exponents.rows.size).repeat(lengths[self.exponents.rows])
        two = spans(lengths, self.exponents.rows)
        columns = self.exponents.columns
        return Pairs(one, two, columns[one] * self.dimension + columns[two])


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of entries of A in one term, and their places in the Hessian, counted in C order."""

    one: IndexArray
    two: IndexArray
    keys: IndexArray


def _settled(terms: Terms, dimension: int) -> tuple[IndexArray, IndexArray, FloatArray]:
    """The powers of terms with every unknown once, none of them 0: term, unknown, exponent."""
    owner = np.arange(terms.target.size).repeat(terms.lengths)
    columns, powers = terms.columns, terms.powers
    keys = owner * dimension + columns
    if not every(keys[1:] > keys[:-1]):
        keys, inverse = np.unique(keys, return_inverse=True)
        powers = _summed(inverse, powers, keys.size)
        owner, columns = np.divmod(keys, dimension)
    if not none_is_0(powers):
        kept = powers != 0
        owner, columns, powers = owner[kept], columns[kept], powers[kept]
    return owner, columns, powers


def _entries(
    terms: Terms, marks: NDArray[np.bool_], columns: IndexArray, first: IndexArray, dimension: int
) -> Entries:
    """The matrix of terms with one unknown each."""
    check_time()
    own = marks.nonzero()[0]
    return Entries(
        terms.target[own], columns[first[own]], terms.weight[own], (terms.size, dimension)
    )


class Sums(Protocol):
    """The sums of one part; `t` are the values of the terms, `logs` the logarithms of `positive`."""

    data: SumData

    def values(self, x: FloatArray, logs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """φ and t."""

    def jacobian(self, x: FloatArray, t: FloatArray) -> Matrix: ...
    def pullback(self, x: FloatArray, t: FloatArray, weights: FloatArray) -> FloatArray: ...
    def hessian(self, x: FloatArray, t: FloatArray, weights: FloatArray) -> Matrix: ...


def sums_of(data: SumData) -> Sums:
    return DenseSums(data) if data.is_dense else SparseSums(data)


class DenseSums:
    """Everything in dense arrays; matrices that are 0 are left out."""

    def __init__(self, data: SumData) -> None:
        self.data = data
        self._linear = data.linear.dense() if data.linear.values.size else None
        self._logs = data.logarithms.dense() if data.logarithms.values.size else None
        self._terms = data.weights.size
        if self._terms:
            self._exponents = data.exponents.dense()
            self._weights = np.zeros((data.size, self._terms))
            self._weights[data.rows, np.arange(self._terms)] = data.weights
        self._offset = None if all_are_0(data.offset) else data.offset

    def values(self, x: FloatArray, logs: FloatArray) -> tuple[FloatArray, FloatArray]:
        t = _NO_TERMS
        if self._terms:
            t = np.exp(self._exponents @ logs)
            found = self._weights @ t
        else:
            found = np.zeros(self.data.size)
        if self._linear is not None:
            found += self._linear @ x
        if self._logs is not None:
            found += self._logs @ logs
        if self._offset is not None:
            found += self._offset
        return found, t

    def jacobian(self, x: FloatArray, t: FloatArray) -> Matrix:
        found = self._scaled_jacobian(t)
        if found is None:
            if self._linear is None:
                return np.zeros((self.data.size, self.data.dimension))
            return self._linear.copy()
        found = found / _divisor(self.data, x)
        return found if self._linear is None else found + self._linear

    def _scaled_jacobian(self, t: FloatArray) -> FloatArray | None:
        """The derivatives by the logarithms of x, without those of the linear part."""
        if not self._terms:
            return self._logs
        found = np.asarray((self._weights * t) @ self._exponents)
        return found if self._logs is None else found + self._logs

    def pullback(self, x: FloatArray, t: FloatArray, weights: FloatArray) -> FloatArray:
        found = self._scaled_gradient(t, weights)
        found = np.zeros(self.data.dimension) if found is None else found / _divisor(self.data, x)
        return found if self._linear is None else found + weights @ self._linear

    def _scaled_gradient(self, t: FloatArray, weights: FloatArray) -> FloatArray | None:
        if not self._terms:
            return None if self._logs is None else np.asarray(weights @ self._logs)
        found = np.asarray(((weights @ self._weights) * t) @ self._exponents)
        return found if self._logs is None else found + weights @ self._logs

    def hessian(self, x: FloatArray, t: FloatArray, weights: FloatArray) -> Matrix:
        gradient = self._scaled_gradient(t, weights)
        size = self.data.dimension
        if gradient is None:
            return np.zeros((size, size))
        found = np.zeros((size, size))
        if self._terms:
            v = (weights @ self._weights) * t
            found = np.asarray((self._exponents.T * v) @ self._exponents)
        found.reshape(-1)[:: size + 1] -= gradient  # the diagonal
        divisor = _divisor(self.data, x)
        found /= divisor
        found /= divisor[:, None]
        return found


class SparseSums:
    """Entries in lists, added up at fixed places of the results."""

    def __init__(self, data: SumData) -> None:
        self.data = data
        parts = (data.exponents, data.linear, data.logarithms)
        rows = (data.rows[data.exponents.rows], data.linear.rows, data.logarithms.rows)
        keys = np.concatenate(
            [own * data.dimension + part.columns for own, part in zip(rows, parts, strict=True)]
        )
        filled, self._place = distinct(keys, data.size * data.dimension)
        places, self._columns = np.divmod(filled, max(data.dimension, 1))
        self._pointers = places.searchsorted(np.arange(data.size + 1))
        self._weight_of_power = data.weights[data.exponents.rows] * data.exponents.values
        self._exponents = scipy.sparse.csr_array(
            (
                data.exponents.values,
                data.exponents.columns,
                data.exponents.rows.searchsorted(np.arange(data.weights.size + 1)),
            ),
            shape=data.exponents.shape,
        )

    def values(self, x: FloatArray, logs: FloatArray) -> tuple[FloatArray, FloatArray]:
        data, t = self.data, _NO_TERMS
        found = data.offset.copy()
        if data.weights.size:
            t = np.exp(self._exponents @ logs)
            found += np.bincount(data.rows, weights=data.weights * t, minlength=data.size)
        for part, by in ((data.linear, x), (data.logarithms, logs)):
            if part.values.size:
                found += np.bincount(
                    part.rows, weights=part.values * by[part.columns], minlength=data.size
                )
        return found, t

    def jacobian(self, x: FloatArray, t: FloatArray) -> Matrix:
        data = self.data
        inverse = 1.0 / _divisor(data, x)
        entries = np.concatenate(
            [
                self._weight_of_power * t[data.exponents.rows] * inverse[data.exponents.columns],
                data.linear.values,
                data.logarithms.values * inverse[data.logarithms.columns],
            ]
        )
        summed = np.bincount(self._place, weights=entries, minlength=self._columns.size)
        shape = (data.size, data.dimension)
        if data.size >= SPARSE_ROWS and summed.size <= SPARSE_DENSITY * data.size * data.dimension:
            return scipy.sparse.csr_array(
                (summed, self._columns.copy(), self._pointers.copy()), shape=shape
            )
        dense = np.zeros(shape)
        dense[np.arange(data.size).repeat(np.diff(self._pointers)), self._columns] = summed
        return dense

    def pullback(self, x: FloatArray, t: FloatArray, weights: FloatArray) -> FloatArray:
        data = self.data
        found = self._scaled_gradient(t, weights) / _divisor(data, x)
        linear = data.linear
        return found + np.bincount(
            linear.columns, weights=linear.values * weights[linear.rows], minlength=found.size
        )

    def _scaled_gradient(self, t: FloatArray, weights: FloatArray) -> FloatArray:
        data = self.data
        found = (data.weights * t * weights[data.rows]) @ self._exponents
        logs = data.logarithms
        if logs.values.size:
            found = found + np.bincount(
                logs.columns, weights=logs.values * weights[logs.rows], minlength=found.size
            )
        return np.asarray(found)

    def hessian(self, x: FloatArray, t: FloatArray, weights: FloatArray) -> Matrix:
        """Compressed rows where `SumData.hessian_pattern` says so."""
        data = self.data
        v = data.weights * t * weights[data.rows]
        inverse = 1.0 / _divisor(data, x)
        diagonal = -self._scaled_gradient(t, weights) * inverse**2
        pattern, pairs = data.hessian_pattern, data.pairs
        if pattern is None or pairs is None:
            return self._dense_hessian(v, inverse, diagonal)
        scaled = data.exponents.values * inverse[data.exponents.columns]
        entries = v[data.exponents.rows[pairs.one]] * scaled[pairs.one] * scaled[pairs.two]
        place, on_diagonal = self._hessian_places
        summed = _summed(place, entries, pattern[1].size)
        summed[on_diagonal] += diagonal
        return scipy.sparse.csr_array(
            (summed, pattern[1].copy(), pattern[0].copy()), shape=(x.size, x.size)
        )

    @cached_property
    def _hessian_places(self) -> tuple[IndexArray, IndexArray]:
        """Where the pairs, and where the diagonal, stand in the pattern."""
        data = self.data
        assert data.hessian_pattern is not None
        assert data.pairs is not None
        pointers, columns = data.hessian_pattern
        rows = np.arange(data.dimension).repeat(np.diff(pointers))
        keys = rows * data.dimension + columns
        diagonal = np.arange(data.dimension) * (data.dimension + 1)
        return keys.searchsorted(data.pairs.keys), keys.searchsorted(diagonal)

    def _dense_hessian(
        self, v: FloatArray, inverse: FloatArray, diagonal: FloatArray
    ) -> FloatArray:
        """From the pairs, or where these are too many by products of dense matrices."""
        data, size = self.data, self.data.dimension
        pairs = data.pairs
        if pairs is not None:
            powers = data.exponents.values
            entries = v[data.exponents.rows[pairs.one]] * powers[pairs.one] * powers[pairs.two]
            flat = _summed(pairs.keys, entries, size * size)
            found = flat.reshape(size, size)
        else:
            found = np.zeros((size, size))
            step = max(1, MOST_PAIRS // max(size, 1))
            for start in range(0, v.size, step):
                own = slice(start, start + step)
                part = self._exponents[own].toarray()
                found += (part.T * v[own]) @ part
        found *= inverse
        found *= inverse[:, None]
        found[np.diag_indices(size)] += diagonal
        return found


def _summed(places: IndexArray, entries: FloatArray, size: int) -> FloatArray:
    """Entries at the same place added up."""
    return np.asarray(np.bincount(places, weights=entries, minlength=size), dtype=float)


_NO_TERMS: FloatArray = np.zeros(0)


def _divisor(data: SumData, x: FloatArray) -> FloatArray:
    """x where logarithms are used, 1 elsewhere."""
    if data.positive.size == x.size:
        return x
    found = np.ones(x.size)
    found[data.positive] = x[data.positive]
    return found


def logarithms(data: SumData, x: FloatArray) -> FloatArray:
    """log x where logarithms are used, not a number where x <= 0 there; 0 elsewhere."""
    own = data.positive
    if not own.size:
        return _NO_TERMS
    if own.size == x.size:
        # faster than a mask; a NaN counts as the least
        return np.log(x if x[x.argmin()] > 0 else np.where(x > 0, x, np.nan))
    found = np.zeros(x.size)
    used = x[own]
    found[own] = np.log(np.where(used > 0, used, np.nan))
    return found
