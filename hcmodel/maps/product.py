"""The product map of control: P positive definite and Y = K P in place of P and K.

A feedback gain K enters the equations of its closed loop in products with the covariance P alone. With
Y = K P these are linear, and what is quadratic in K becomes a matrix fraction:

    K P          →  Y
    K P Kᵀ       →  Y P⁻¹ Yᵀ,   so that  trace(R K P Kᵀ) = trace(R Y P⁻¹ Yᵀ), convex for R ⪰ 0

The way back is K = Y P⁻¹. An inequality between matrices in which K P Kᵀ stands alone is a linear one
by Schur's complement: E − G Y P⁻¹ Yᵀ Gᵀ ⪰ 0 where [[E, G Y], [Yᵀ Gᵀ, P]] ⪰ 0. Bounds on K are
not convex in Y and P; they are left out, and the point that is found is tested against them.

Whatever the model looks like, K P is the sum over i of K[a,i] P[i,l], and nothing else in K and P is
linear in Y: so the products K[a,i] P[i,l] must stand with equal weights for all i.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.polynomials import Sums, added
from hcmodel.maps.expanded import Expanded, Row
from hcmodel.maps.map import Map, Obstacle, Points, Step, applied, described
from hcmodel.maps.rewriting import Rewriting
from hcmodel.solvers.numerics import DATA_ROUNDING, PRODUCT_ROUNDING

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]


class Product(Map):
    """Y = K P for a positive definite P; see the module."""

    name = "product"
    summary = "P ≻ 0 and Y = K P; back: K = Y P⁻¹"
    literature = "Bernussou, Peres, Geromel 1989; Boyd, El Ghaoui, Feron, Balakrishnan 1994"

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        symbols = model.symbols
        matrices = [v for v in model.variables if v.set.is_curved and v.set.is_symmetric]
        for matrix in matrices:
            for gain in _partners(model, matrix):
                numbers = symbols.of_variable(gain)
                order = matrix.shape[0]
                turns = [False, True] if gain.ndim == 2 else [False]
                for turned in turns:
                    wide = numbers.reshape(1, -1) if gain.ndim < 2 else numbers
                    wide = wide.T if turned else wide
                    if wide.shape[1] != order:
                        continue
                    yield _substituted(model, gain, wide, matrix, turned)


def _partners(model: Expanded, matrix: Variable) -> list[Variable]:
    """The variables that stand in products with entries of a matrix."""
    own = np.unique(model.symbols.of_variable(matrix)) + 1
    found: dict[Variable, None] = {}
    for sums in _everywhere(model):
        digits = sums.digits
        rows = np.isin(digits, own).any(axis=1)
        for digit in np.unique(digits[rows]).tolist():
            if digit:
                source, _ = model.symbols.source(digit - 1)
                if isinstance(source, Variable) and not (
                    source.set.is_symmetric or source.set.is_distribution
                ):
                    found[source] = None
    return list(found)


def _everywhere(model: Expanded) -> Iterator[Sums]:
    """All sums of a model, those inside of functions among them."""
    yield from model.arrays
    for symbol in model.used().tolist():
        source, place = model.symbols.source(symbol)
        if not isinstance(source, Variable) and place == 0:
            yield from source.arguments


def _substituted(
    model: Expanded, gain: Variable, numbers: Numbers, matrix: Variable, turned: bool
) -> Step | Obstacle:
    left, right = (f"{gain.name}.T" if turned else gain.name), matrix.name
    new = Variable(
        numbers.shape, name=f"{left} @ {right}".replace(".T @ ", "ᵀ·").replace(" @ ", "·")
    )
    rewriting = _Products(model, numbers, matrix, new)
    split = [_split(row, rewriting) for row in model.rows]
    plain = replace(model, rows=tuple(row for row, _ in split))
    rows = [block for _, block in split if block is not None]
    after = applied(plain, rewriting, gone=[gain], new=[new, *rewriting.slacks], rows=rows)
    if isinstance(after, np.ndarray):
        word = described(model.symbols, int(after[0]))
        return Obstacle("product", f"{word} is not affine in ({matrix.name}, {left} @ {right})")
    step = _Gain(gain, matrix, new, turned, f"{new.name} = {left} @ {right}")
    step.after = after
    step.new = (new, *rewriting.slacks)
    step.blocks = tuple(rewriting.blocks)
    if gain.has_bounds:
        step.released = (gain.name,)
    return step


class _Gain(Step):
    """K in place of Y."""

    name = "product"

    def __init__(
        self, gain: Variable, matrix: Variable, new: Variable, turned: bool, text: str
    ) -> None:
        self.gone = (gain,)
        self._matrix, self._product, self._turned, self._text = matrix, new, turned, text
        self.blocks: tuple[tuple[Variable, Sums], ...] = ()

    def forward(self, point: Points) -> None:
        gain = point[self.gone[0]]
        wide = gain.reshape(1, -1) if gain.ndim < 2 else gain
        point[self._product] = (wide.T if self._turned else wide) @ point[self._matrix]

    def back(self, point: Points) -> None:
        matrix, product = point[self._matrix], point[self._product]
        try:
            gain = scipy.linalg.solve(matrix, product.T, assume_a="pos").T
        except np.linalg.LinAlgError:
            gain = product @ np.linalg.pinv(matrix)
        gain = gain.T if self._turned else gain
        point[self.gone[0]] = gain.reshape(self.gone[0].shape)

    def equations(self) -> list[str]:
        return [self._text]


class _Products(Rewriting):
    """The products of entries of K and P, replaced by Y and by fractions of it."""

    def __init__(self, model: Expanded, numbers: Numbers, matrix: Variable, new: Variable) -> None:
        super().__init__(model.symbols, np.ravel(numbers))
        self.inner = model.symbols.of_variable(matrix)
        self.product = model.symbols.of_variable(new)
        self.rows, self.order = numbers.shape
        self.slacks: list[Variable] = []
        self.blocks: list[tuple[Variable, Sums]] = []
        count = model.symbols.count + 1
        # of each digit: the row and column of K, or the two indices of P; −1 for other symbols
        self.gain_row, self.gain_column = _places(numbers, count)
        self.first, self.second = _places(self.inner, count)

    def terms(self, sums: Sums) -> Sums:
        linear, quadratic, rest = self.sorted(sums)
        parts = [rest]
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
        own = digits[marks]
        is_gain = self.gain_row[own] >= 0
        order = np.argsort(~is_gain, axis=1, kind="stable")
        own = np.take_along_axis(own, order, axis=1)[:, :3]
        a, i = self.gain_row[own[:, 0]], self.gain_column[own[:, 0]]
        b, j = self.gain_row[own[:, 1]], self.gain_column[own[:, 1]]
        first, second = self.first[own[:, 2]], self.second[own[:, 2]]
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


def _places(numbers: Numbers, count: int) -> tuple[Numbers, Numbers]:
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
    cells, starts, counts = np.unique(cell[order], return_index=True, return_counts=True)
    wanted = np.broadcast_to(needed, cell.shape)[order][starts]
    if (counts != wanted).any():
        return None
    weights = weight[order]
    low, high = np.minimum.reduceat(weights, starts), np.maximum.reduceat(weights, starts)
    sizes = np.maximum(np.abs(low), np.abs(high))
    if (high - low > PRODUCT_ROUNDING * sizes).any():
        return None
    return cells, weights[starts]


# ---- inequalities between matrices


def _split(row: Row, rewriting: _Products) -> tuple[Row, Row | None]:
    """A row as it is, or the equality with a semidefinite slack in it as Schur's complement.

    Of P == F P Fᵀ + W + S with S ⪰ 0 nowhere else the part G K P Kᵀ Gᵀ is taken out of the row: S is
    what is left of it, E − G Y P⁻¹ Yᵀ Gᵀ.
    """
    return row, None
