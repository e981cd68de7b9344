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
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.polynomials import Sums, added
from hcmodel.maps.expanded import Evaluation, Expanded, Row
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
    for sums in model.everywhere():
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


def _substituted(
    model: Expanded, gain: Variable, numbers: Numbers, matrix: Variable, turned: bool
) -> Step | Obstacle:
    left, right = (f"{gain.name}.T" if turned else gain.name), matrix.name
    new = Variable(numbers.shape, name=f"{left} @ {right}")
    rewriting = _Products(model, numbers, matrix, new)
    rows, inequalities = list[Row](), list[Inequality]()
    for row in model.rows:
        found = _inequality(model, row, rewriting)
        if found is None:
            rows.append(row)
        elif isinstance(found, Obstacle):
            return found
        else:
            inequalities.append(found)
    plain = replace(model, rows=tuple(rows))
    gone = [gain, *(each.slack for each in inequalities if each.slack is not None)]
    blocks = [each.block for each in inequalities]
    more = [Row(each.sums, "==", None, entries=each.entries) for each in inequalities]
    after = applied(plain, rewriting, gone=gone, new=[new, *blocks], rows=more)
    if isinstance(after, np.ndarray):
        word = described(model.symbols, int(after[0]))
        return Obstacle("product", f"{word} is not affine in ({matrix.name}, {left} @ {right})")
    return _Gain(gain, matrix, new, turned, tuple(inequalities), after)


class _Gain(Step):
    """K in place of Y, and slacks in place of the blocks of matrix inequalities."""

    name = "product"

    def __init__(
        self,
        gain: Variable,
        matrix: Variable,
        new: Variable,
        turned: bool,
        inequalities: tuple[Inequality, ...],
        after: Expanded,
    ) -> None:
        slacks = [each.slack for each in inequalities if each.slack is not None]
        self.gone = (gain, *slacks)
        self.new = (new, *(each.block for each in inequalities))
        self.after = after
        self.released = (gain.name,) if gain.has_bounds else ()
        self._matrix, self._turned, self._inequalities = matrix, turned, inequalities

    def forward(self, point: Points) -> None:
        gain = point[self.gone[0]]
        wide = gain.reshape(1, -1) if gain.ndim < 2 else gain
        point[self.new[0]] = (wide.T if self._turned else wide) @ point[self._matrix]
        for each in self._inequalities:
            point[each.block] = Evaluation(self.after.symbols, point).of(each.whole)

    def back(self, point: Points) -> None:
        matrix, product = point[self._matrix], point[self.new[0]]
        try:
            gain = scipy.linalg.solve(matrix, product.T, assume_a="pos").T
        except np.linalg.LinAlgError:
            gain = product @ np.linalg.pinv(matrix)
        gain = gain.T if self._turned else gain
        point[self.gone[0]] = gain.reshape(self.gone[0].shape)
        for each in self._inequalities:
            if each.closed is not None:
                wide = gain.reshape(1, -1) if gain.ndim < 2 else gain
                point[self._matrix] = each.closed.covariance(wide.T if self._turned else wide)
            if each.slack is not None:
                left = Evaluation(self.after.symbols, point).of(each.rest)
                point[each.slack] = (left + left.T) / 2

    def equations(self) -> list[str]:
        return [self.new[0].name]


class _Products(Rewriting):
    """The products of entries of K and P, replaced by Y and by fractions of it."""

    def __init__(self, model: Expanded, numbers: Numbers, matrix: Variable, new: Variable) -> None:
        super().__init__(model.symbols, np.ravel(numbers))
        self.inner = model.symbols.of_variable(matrix)
        self.product = model.symbols.of_variable(new)
        self.numbers = numbers
        self.rows, self.order = numbers.shape
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


@dataclass(frozen=True, eq=False)
class Inequality:
    """E − G Y P⁻¹ Yᵀ Gᵀ ⪰ 0 as a block matrix that is a variable, with the rows that define it.

    `whole` is the block in the new symbols, `sums` are the rows, block minus its definition. `slack` is
    the variable S that the inequality had, and `rest` what S is, in the old symbols.
    """

    block: Variable
    whole: Sums
    sums: Sums
    entries: NDArray[np.intp]
    slack: Variable | None
    rest: Sums
    closed: ClosedLoop | None = None
    """The closed loop of an equality without a slack, which is replaced by the inequality."""


def _inequality(model: Expanded, row: Row, rewriting: _Products) -> Inequality | Obstacle | None:
    """An equality with a semidefinite slack and K P Kᵀ in it, as an inequality; None for other rows."""
    shape = row.sums.shape
    if row.sense != "==" or row.entries is None or len(shape) != 2:
        return None
    _, quadratic, _ = rewriting.sorted(row.sums)
    if not quadratic:
        return None
    slack = _slack(model, row)
    if slack is None:
        largest = max((each for each in quadratic.values()), key=lambda each: np.abs(each).max())
        scale = -1.0 if np.trace(largest) > 0 else 1.0
        rest = row.sums.scaled(scale)
    else:
        own = np.isin(row.sums.digits, model.symbols.of_variable(slack) + 1).any(axis=1)
        scale = -1.0 / row.sums.weight[own][0]
        rest = row.sums.chosen(~own).scaled(scale)
    factor = _congruence({place: -scale * each for place, each in quadratic.items()}, shape[0])
    if factor is None:
        return Obstacle("product", f"{_name(model, row)} is not a square in the gain")
    closed = None
    if slack is None:
        closed = relaxed(model, row, rest, factor, rewriting)
        if closed is None:
            return Obstacle("product", f"the equality {_name(model, row)} is quadratic in the gain")
    return _block(model, row, rest, factor, slack, rewriting, closed)


def _block(
    model: Expanded,
    row: Row,
    rest: Sums,
    factor: FloatArray,
    slack: Variable | None,
    rewriting: _Products,
    closed: ClosedLoop | None,
) -> Inequality:
    """[[E, G Y], [Yᵀ Gᵀ, P]] as a semidefinite variable."""
    linear, _, plain = rewriting.sorted(rest)
    above = plain if linear is None else added([plain, linear])
    if slack is not None and slack.eigenvalue_bounds is not None:
        least = slack.eigenvalue_bounds[0]
        above = above - Sums.constant(least * np.eye(rest.shape[0]), rest.coding)
    size, order = rest.shape[0], rewriting.order
    corner = rewriting.combined(factor)
    inner = Sums.symbols(rewriting.inner, rest.coding)
    numbers = np.arange((size + order) ** 2).reshape(size + order, size + order)
    parts = [
        (above, numbers[:size, :size]),
        (corner, numbers[:size, size:]),
        (corner.transposed(), numbers[size:, :size]),
        (inner, numbers[size:, size:]),
    ]
    whole = Sums.merged(
        numbers.shape,
        np.concatenate([places.reshape(-1)[part.entry] for part, places in parts]),
        np.concatenate([part.key for part, _ in parts]),
        np.concatenate([part.weight for part, _ in parts]),
        rest.coding,
    )
    name = f"block·{_name(model, row)}"
    block = Variable(numbers.shape, name=name, PSD=True)
    own = Sums.symbols(model.symbols.of_variable(block), rest.coding)
    entries = numbers[np.triu_indices(size + order)]
    return Inequality(block, whole, whole - own, entries, slack, rest, closed)


def _name(model: Expanded, row: Row) -> str:
    return f"c{len(model.rows) if row.position is None else row.position + 1}"


def _slack(model: Expanded, row: Row) -> Variable | None:
    """A semidefinite variable that stands in this row alone, as it is or times a number."""
    for variable in model.variables:
        if not (variable.set.is_curved and variable.shape == row.sums.shape):
            continue
        digits = np.unique(model.symbols.of_variable(variable)) + 1
        holding = [each for each in model.arrays if np.isin(each.digits, digits).any()]
        if len(holding) != 1 or holding[0] is not row.sums:
            continue
        own = row.sums.chosen(np.isin(row.sums.digits, digits).any(axis=1))
        numbers = model.symbols.of_variable(variable)
        same = own.key.size == own.size and (own.key == numbers.reshape(-1) + 1).all()
        if same and (own.weight == own.weight[0]).all():
            return variable
    return None


def _congruence(weights: dict[int, FloatArray], size: int) -> FloatArray | None:
    """G with G X Gᵀ = the matrix whose entries are ⟨weights, X⟩ for symmetric X; None where there is none.

    With an entry G[i,a] that is not 0 all others follow: from the products of G[i,a] with its row and its
    column, and then from the sums of products with the rest.
    """
    columns = next(iter(weights.values())).shape[0]
    tensor = np.zeros((size, size, columns, columns))
    for place, matrix in weights.items():
        tensor[place // size, place % size] = matrix
    squares = np.einsum("iiaa->ia", tensor)
    i, a = np.unravel_index(int(squares.argmax()), squares.shape)
    if squares[i, a] <= 0:
        return None
    pivot = np.sqrt(squares[i, a])
    factor = np.zeros((size, columns))
    line, column = tensor[i, i, a] / pivot, tensor[i, :, a, a] / pivot
    factor = (2 * tensor[i, :, a, :] - np.outer(column, line)) / pivot
    factor[i], factor[:, a] = line, column
    again = np.einsum("ia,jb->ijab", factor, factor)
    again = (again + again.transpose(0, 1, 3, 2)) / 2
    fits = np.abs(again - tensor).max() <= PRODUCT_ROUNDING * np.abs(tensor).max()
    return factor if fits else None


# ---- equalities that may be inequalities


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """P == F P Fᵀ + W with F = A + G K, of which P is the solution where F is stable."""

    drift: FloatArray
    factor: FloatArray
    noise: FloatArray

    def covariance(self, gain: FloatArray) -> FloatArray:
        """P for a gain."""
        closed = self.drift + self.factor @ gain
        with np.errstate(all="ignore"):
            found = scipy.linalg.solve_discrete_lyapunov(closed, self.noise)
        return np.asarray((found + found.T) / 2)


def relaxed(
    model: Expanded, row: Row, rest: Sums, factor: FloatArray, rewriting: _Products
) -> ClosedLoop | None:
    """The closed loop of an equality that may be an inequality; None where that could lower the optimum.

    Of P ⪰ F P Fᵀ + W with W ⪰ 0 the solution of the equality is the least P. So nothing is lost where
    objective and rows do not decrease as P grows at a fixed gain, and where the least P lies in the set
    of P: it is at least W.
    """
    closed = _closed_loop(rest, factor, rewriting)
    if closed is None:
        return None
    least = np.linalg.eigvalsh(closed.noise).min()
    variable = model.symbols.source(int(rewriting.inner[0, 0]))[0]
    assert isinstance(variable, Variable)
    lowest = 0.0 if variable.eigenvalue_bounds is None else variable.eigenvalue_bounds[0]
    if least < lowest or least <= 0 or variable.has_bounds:
        return None
    touched = np.unique(rewriting.inner) + 1
    for each in (*model.rows, None):
        if each is row:
            continue
        sums = model.objective if each is None else each.sums
        if not np.isin(sums.digits, touched).any():
            continue
        if (each is not None and each.sense == "==") or not _grows(sums, rewriting):
            return None
    return closed


def _closed_loop(rest: Sums, factor: FloatArray, rewriting: _Products) -> ClosedLoop | None:
    """A, G and W with rest = P − (A + G K) P (A + G K)ᵀ − W, where there are such."""
    order, coding = rewriting.order, rest.coding
    if rest.shape != (order, order):
        return None
    digits = rest.digits
    local = np.where(digits < rewriting.first.size, digits, 0)
    alone = (rewriting.first[local] >= 0).any(axis=1) & ((digits > 0).sum(axis=1) == 1)
    weights: dict[int, FloatArray] = {}
    for entry, digit, weight in zip(
        rest.entry[alone], digits[alone, 0], rest.weight[alone], strict=True
    ):
        matrix = weights.setdefault(int(entry), np.zeros((order, order)))
        i, j = rewriting.first[digit], rewriting.second[digit]
        matrix[i, j] -= weight if i == j else weight / 2
        if i != j:
            matrix[j, i] -= weight / 2
    for entry in range(order * order):  # P itself taken off
        matrix = weights.setdefault(entry, np.zeros((order, order)))
        i, j = divmod(entry, order)
        matrix[i, j] += 0.5
        matrix[j, i] += 0.5
    drift = _congruence(weights, order)
    if drift is None:
        drift = np.zeros((order, order))
    noise = -rest.value
    inner = Sums.symbols(rewriting.inner, coding)
    gain = Sums.symbols(rewriting.numbers, coding)
    for sign in (1.0, -1.0):
        closed = Sums.constant(drift, coding) + Sums.constant(sign * factor, coding) @ gain
        again = inner - closed @ inner @ closed.T - Sums.constant(noise, coding)
        if again.equals(rest):
            return ClosedLoop(drift, sign * factor, noise)
    return None


def _grows(sums: Sums, rewriting: _Products) -> bool:
    """Whether no entry decreases as P grows at a fixed K: [[Q, Nᵀ], [N, R]] ⪰ 0 for each of them."""
    linear, quadratic, rest = rewriting.sorted(sums)
    rows, order = rewriting.rows, rewriting.order
    for entry in range(sums.size):
        matrix = np.zeros((order + rows, order + rows))
        digits, weights = rest.digits[rest.entry == entry], rest.weight[rest.entry == entry]
        local = np.where(digits < rewriting.first.size, digits, 0)
        inner = (rewriting.first[local] >= 0).sum(axis=1)
        if ((inner > 0) & ((digits > 0).sum(axis=1) > 1)).any():
            return False
        for digit, weight in zip(digits[inner > 0, 0], weights[inner > 0], strict=True):
            i, j = rewriting.first[digit], rewriting.second[digit]
            matrix[i, j] += weight / 2
            matrix[j, i] += weight / 2
        if linear is not None:
            own = linear.entry == entry
            for key, weight in zip(linear.key[own], linear.weight[own], strict=True):
                a, j = np.argwhere(rewriting.product == key - 1)[0]
                matrix[order + a, j] += weight / 2
                matrix[j, order + a] += weight / 2
        if quadratic is not None and entry in quadratic:
            matrix[order:, order:] += quadratic[entry]
        values = np.linalg.eigvalsh(matrix)
        if values.min() < -DATA_ROUNDING * np.abs(values).max():
            return False
    return True
