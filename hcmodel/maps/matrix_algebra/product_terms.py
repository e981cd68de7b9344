"""Products of the entries of K and P in sums, replaced by those of Y = K P; see `matrix_product`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.polynomials import Sums, added
from hcmodel.maps.algebra.expanded import Expanded, Row
from hcmodel.maps.algebra.rewriting import Rewriting, substituted
from hcmodel.maps.matrix_algebra.growing import grows, row_grows
from hcmodel.solvers.numerics import DATA_ROUNDING, PRODUCT_ROUNDING

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]

# Factors P of a product, and products of Y and P, whose weights are looked for: squares over γ have two,
# and a gain of two inputs and six states has 250 products.
MOST_FACTORS = 2
MOST_NAMES = 1000
# Entries of the linear system for these weights, which takes half a second for as many.
MOST_WEIGHTS = 2_000_000


class Products(Rewriting):
    """The products of entries of K and P, replaced by Y and by fractions of it."""

    def __init__(self, model: Expanded, numbers: Numbers, matrix: Variable, new: Variable) -> None:
        super().__init__(model.symbols, np.ravel(numbers))
        self.matrix = matrix
        self.inner = model.symbols.of_variable(matrix)
        self.product = model.symbols.of_variable(new)
        self.numbers = numbers
        self.rows, self.order = numbers.shape
        count = model.symbols.count + 1
        # of each digit: the row and column of K, or the two indices of P; −1 for other symbols
        self.gain_row, self.gain_column = places_of(numbers, count)
        self.first, self.second = places_of(self.inner, count)

    def terms(self, sums: Sums) -> Sums:
        linear, quadratic, rest = self.sorted(sums)
        parts = [self._higher(rest)]
        if linear is not None:
            parts.append(linear)
        if quadratic is not None:
            parts.append(self._fractions(quadratic, sums.shape))
        return added(parts)

    def sorted(self, sums: Sums) -> tuple[Sums | None, dict[int, FloatArray] | None, Sums]:
        """Terms in Y, weights of K P Kᵀ for each entry, and the rest."""
        digits = sums.digits
        known = digits < self.gain_row.size
        local = np.where(known, digits, 0)
        gains = (self.gain_row[local] >= 0).sum(axis=1)
        inner = (self.first[local] >= 0).sum(axis=1)
        total = (digits > 0).sum(axis=1)
        one = (gains == 1) & (inner == 1) & (total == 2)
        two = (gains == 2) & (inner == 1) & (total == 3)
        linear = self._linear(sums, digits, one) if one.any() else None
        quadratic = self._quadratic(sums, digits, two) if two.any() else None
        kept = np.ones(total.size, dtype=bool)
        kept[one] = linear is None
        kept[two] = quadratic is None
        return linear, quadratic, sums.chosen(kept)

    def closed(self, drift: FloatArray, factor: FloatArray) -> Sums:
        """(A + G K) P (A + G K)ᵀ."""
        inner, gain = (Sums.symbols(each, self.coding) for each in (self.inner, self.numbers))
        loop = Sums.constant(drift, self.coding) + Sums.constant(factor, self.coding) @ gain
        return loop @ inner @ loop.T

    def grows(self, model: Expanded, sums: Sums) -> bool:
        """Whether no entry decreases as P grows at a fixed K."""
        return grows(model.symbols, sums, self.matrix)

    def row_grows(self, model: Expanded, row: Row) -> bool:
        """Whether a row that holds is still satisfied with a smaller P."""
        return row_grows(model, row, self.matrix)

    def forms(self, sums: Sums) -> Iterator[FloatArray | None]:
        """[[Q, Nᵀ], [N, R]] of each entry ⟨Q, P⟩ + 2⟨N, K P⟩ + ⟨R, K P Kᵀ⟩; None for other entries."""
        linear, quadratic, rest = self.sorted(sums)
        rows, order = self.rows, self.order
        for entry in range(sums.size):
            matrix = np.zeros((order + rows, order + rows))
            digits, weights = rest.digits[rest.entry == entry], rest.weight[rest.entry == entry]
            local = np.where(digits < self.first.size, digits, 0)
            inner = (self.first[local] >= 0).sum(axis=1)
            if ((inner > 0) & ((digits > 0).sum(axis=1) > 1)).any():
                yield None
                continue
            for digit, weight in zip(digits[inner > 0, 0], weights[inner > 0], strict=True):
                i, j = self.first[digit], self.second[digit]
                matrix[i, j] += weight / 2
                matrix[j, i] += weight / 2
            if linear is not None:
                own = linear.entry == entry
                for key, weight in zip(linear.key[own], linear.weight[own], strict=True):
                    a, j = np.argwhere(self.product == key - 1)[0]
                    matrix[order + a, j] += weight / 2
                    matrix[j, order + a] += weight / 2
            if quadratic is not None and entry in quadratic:
                matrix[order:, order:] += quadratic[entry]
            yield matrix

    def _linear(self, sums: Sums, digits: Numbers, marks: NDArray[np.bool_]) -> Sums | None:
        """K[a,i] P[i,l] summed over i is Y[a,l]: the weights must agree for all i."""
        own = digits[marks]
        gain = np.where(self.gain_row[own[:, 0]] >= 0, own[:, 0], own[:, 1])
        other = own.sum(axis=1) - gain
        a, i = self.gain_row[gain], self.gain_column[gain]
        first, second = self.first[other], self.second[other]
        last = np.where(first == i, second, first)
        if ((first != i) & (second != i)).any():
            return None
        cell = (sums.entry[marks] * self.rows + a) * self.order + last
        weights = _agreed(cell, sums.weight[marks], self.order)
        if weights is None:
            return None
        cells, values = weights
        places = cells % (self.rows * self.order)
        keys = np.ravel(self.product)[places] + 1
        return Sums.merged(sums.shape, cells // (self.rows * self.order), keys, values, self.coding)

    def _quadratic(
        self, sums: Sums, digits: Numbers, marks: NDArray[np.bool_]
    ) -> dict[int, FloatArray] | None:
        """The weights of K P Kᵀ in each entry: K[a,i] P[i,j] K[b,j] summed over i and j."""
        x, y, z = (digits[marks, place] for place in range(3))
        inner = [self.first[each] >= 0 for each in (x, y)]
        one, two = np.where(inner[0], y, x), np.where(inner[0] | inner[1], z, y)
        other = np.where(inner[0], x, np.where(inner[1], y, z))
        a, i = self.gain_row[one], self.gain_column[one]
        b, j = self.gain_row[two], self.gain_column[two]
        first, second = self.first[other], self.second[other]
        if (np.minimum(i, j) != first).any() or (np.maximum(i, j) != second).any():
            return None
        weight = sums.weight[marks] / np.where((a == b) & (i != j), 2.0, 1.0)
        low, high = np.minimum(a, b), np.maximum(a, b)
        cell = (sums.entry[marks] * self.rows + low) * self.rows + high
        needed = np.where(low == high, self.order * (self.order + 1) // 2, self.order**2)
        weights = _agreed(cell, weight, needed)
        if weights is None:
            return None
        found: dict[int, FloatArray] = {}
        for number, value in zip(*weights, strict=True):
            entry, place = divmod(int(number), self.rows * self.rows)
            row, column = divmod(place, self.rows)
            matrix = found.setdefault(entry, np.zeros((self.rows, self.rows)))
            share = value if row == column else value / 2
            matrix[row, column] = matrix[column, row] = share
        return found

    def _fractions(self, weights: dict[int, FloatArray], shape: tuple[int, ...]) -> Sums:
        """trace(R Y P⁻¹ Yᵀ) for each entry, as matrix fractions for the two signs of R."""
        entry, key, weight = [], [], []
        for place, matrix in weights.items():
            values, vectors = np.linalg.eigh(matrix)
            size = np.abs(values).max()
            for sign in (1.0, -1.0):
                kept = sign * values > DATA_ROUNDING * size
                if kept.any():
                    factor = vectors[:, kept] * np.sqrt(np.abs(values[kept]))
                    entry.append(place)
                    key.append(self._fraction(factor) + 1)
                    weight.append(sign)
        return Sums.merged(
            shape,
            np.array(entry, dtype=np.intp),
            np.array(key, dtype=np.int64),
            np.array(weight),
            self.coding,
        )

    def _fraction(self, factor: FloatArray) -> int:
        """The symbol of trace(Lᵀ Y P⁻¹ Yᵀ L)."""
        above = self.combined(factor.T).transposed()
        inner = Sums.symbols(self.inner, self.coding)
        return int(self.symbols.of_function(ATOMS["matrix_frac"], {}, (above, inner), ()))

    def _higher(self, sums: Sums) -> Sums:
        """Sums with products of several Y and P, times other symbols, in the place of those of K and P.

        Such as Yᵀ Y/γ and Yᵀ C P/γ in (C P + D Y)ᵀ (C P + D Y)/γ. The sums stay as they are where no
        polynomial in Y and P is the same.
        """
        digits = sums.digits
        local = np.where(digits < self.gain_row.size, digits, 0)
        gain, inner = self.gain_row[local] >= 0, self.first[local] >= 0
        several = np.asarray(gain.any(axis=1))
        if not several.any():
            return sums
        kinds = np.stack([gain.sum(axis=1), inner.sum(axis=1)], axis=1)
        parts = [sums.chosen(~several)]
        for kind in np.unique(kinds[several], axis=0).tolist():
            marks = np.asarray((kinds == kind).all(axis=1))
            found = self._matched(sums.chosen(marks), (gain | inner)[marks], *kind)
            if found is None:
                return sums
            parts.append(found)
        return added(parts)

    def _matched(
        self, sums: Sums, inside: NDArray[np.bool_], gains: int, inner: int
    ) -> Sums | None:
        """The same of terms with as many entries of K and of P: weights of products of Y and P."""
        names = self._names(gains, inner)
        if names is None:
            return None
        coding, digits = sums.coding, sums.digits
        inside = inside[:, : digits.shape[1]]  # other terms may have more factors
        own, other = (coding.keys(np.where(each, digits, 0)) for each in (inside, ~inside))
        written = self._written(names)
        keys = np.unique(np.concatenate([own, written.key]))
        if keys.size * names.size > MOST_WEIGHTS:
            return None
        matrix = np.zeros((keys.size, names.size))
        matrix[np.searchsorted(keys, written.key), written.entry] = written.weight
        groups, group = np.unique(
            np.stack([sums.entry, other], axis=1), axis=0, return_inverse=True
        )
        right = np.zeros((keys.size, len(groups)))
        np.add.at(right, (np.searchsorted(keys, own), group.reshape(-1)), sums.weight)
        weights: FloatArray = np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0], dtype=float)
        size = np.abs(right).max()
        if (np.abs(matrix @ weights - right) > PRODUCT_ROUNDING * size).any():
            return None
        place, number = np.nonzero(np.abs(weights) > PRODUCT_ROUNDING * size)
        made = coding.times(names.key[place], groups[number, 1])
        return Sums.merged(
            sums.shape, groups[number, 0].astype(np.intp), made, weights[place, number], coding
        )

    def _names(self, gains: int, inner: int) -> Sums | None:
        """All products of as many Y as there are K, and of the P that are left; None for too many."""
        if not gains <= inner <= MOST_FACTORS:
            return None
        factors = [np.unique(self.product)] * gains + [np.unique(self.inner)] * (inner - gains)
        if np.prod([each.size for each in factors]) > MOST_NAMES:
            return None
        keys = np.zeros(1, dtype=np.int64)
        for each in factors:
            keys = self.coding.times(np.repeat(keys, each.size), np.tile(each + 1, keys.size))
        keys = np.unique(keys)
        return Sums((keys.size,), np.arange(keys.size), keys, np.ones(keys.size), self.coding)

    def _written(self, names: Sums) -> Sums:
        """Products of Y and P with K P in the place of Y."""
        coding = self.coding
        whole = Sums.symbols(self.numbers, coding) @ Sums.symbols(self.inner, coding)
        entries = list(whole.entries())
        changes = {int(y): entries[i] for i, y in enumerate(np.ravel(self.product).tolist())}
        return substituted(names, changes)

    def combined(self, factor: FloatArray) -> Sums:
        """G Y for a constant G."""
        entry, key, weight = [], [], []
        for row, column in zip(*np.nonzero(factor), strict=True):
            entry.append(row * self.order + np.arange(self.order))
            key.append(self.product[column] + 1)
            weight.append(np.full(self.order, factor[row, column]))
        return Sums.merged(
            (factor.shape[0], self.order),
            np.concatenate(entry).astype(np.intp),
            np.concatenate(key).astype(np.int64),
            np.concatenate(weight),
            self.coding,
        )


def places_of(numbers: Numbers, count: int) -> tuple[Numbers, Numbers]:
    """The indices of each symbol in a matrix of symbols, by digit; the first ones where it has two."""
    rows = np.full(count + 1, -1, dtype=np.int64)
    columns = np.full(count + 1, -1, dtype=np.int64)
    first, second = np.indices(numbers.shape)
    digits = np.ravel(numbers)[::-1] + 1  # so that of two places the first one stays
    rows[digits], columns[digits] = np.ravel(first)[::-1], np.ravel(second)[::-1]
    return rows, columns


def _agreed(
    cell: NDArray[np.intp], weight: FloatArray, needed: int | NDArray[np.intp]
) -> tuple[NDArray[np.intp], FloatArray] | None:
    """The one weight of each cell, where all its terms have it and none is missing."""
    order = np.argsort(cell, kind="stable")
    cells = cell[order]
    starts = np.append(True, cells[1:] != cells[:-1]).nonzero()[0]
    cells, counts = cells[starts], np.diff(starts, append=cell.size)
    wanted = np.broadcast_to(needed, cell.shape)[order[starts]]
    if (counts != wanted).any():
        return None
    weights = weight[order]
    low, high = np.minimum.reduceat(weights, starts), np.maximum.reduceat(weights, starts)
    sizes = np.maximum(np.abs(low), np.abs(high))
    if (high - low > PRODUCT_ROUNDING * sizes).any():
        return None
    return cells, weights[starts]
