"""Ranges of the unknowns of a cone program at all points that are feasible and no worse than a level.

    minimise  ½ xᵀP x + qᵀx + c   s.t.   A x + s = b,   s in K

Ranges of x give ranges of s = b − A x, the cones make those narrower, and every row gives ranges of its
unknowns in turn, as the presolve of a linear program does (Andersen and Andersen 1995). The row
qᵀx <= level − c is one of them. A semidefinite block has |S_ij| <= √(S_ii S_jj), and a bound of its trace
where the objective weighs it by a positive definite matrix. Ends are widened by their rounding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import CONE_DUALITY
from hcmodel.certify.duals.square_ranges import by_equations, by_matrices, by_squares
from hcmodel.records import cached_property, dataclass
from hcmodel.solvers.algebra.marks import all_finite
from hcmodel.solvers.algebra.symmetric import ROOT_TWO, to_matrix, triangle
from hcmodel.solvers.numerics import DATA_ROUNDING
from hcmodel.solvers.qp.cone_program import ConeKind, ConeProgram

FloatArray = NDArray[np.float64]
Places = NDArray[np.intp]

NUMBERS = {kind: number for number, kind in enumerate(ConeKind)}


@dataclass(frozen=True)
class Range:
    """Least and largest values of a vector; infinite where nothing is known."""

    lower: FloatArray
    upper: FloatArray

    @staticmethod
    def unknown(size: int) -> Range:
        return Range(np.full(size, -np.inf), np.full(size, np.inf))

    def cut(self, lower: FloatArray, upper: FloatArray) -> Range:
        return Range(np.fmax(self.lower, lower), np.fmin(self.upper, upper))


@dataclass(frozen=True)
class ConePlaces:
    """Which row of a program is which entry of a cone, for all cones of a kind together.

    `members` are the entries of second-order cones but the first ones, and `tops` their first ones.
    `crossed` are the off-diagonal entries of semidefinite blocks, `rows` and `columns` the diagonal
    entries of their row and their column; `blocks` has the order and the first row of each block.
    """

    zero: Places
    nonnegative: Places
    members: Places
    tops: Places
    exponential: Places
    power: Places
    exponents: FloatArray
    diagonal: Places
    crossed: Places
    rows: Places
    columns: Places
    blocks: tuple[tuple[int, int], ...]

    @staticmethod
    def of(program: ConeProgram) -> ConePlaces:
        cones = program.cones
        sizes = np.array([cone.size for cone in cones], dtype=np.intp)
        firsts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)[: sizes.size]
        kinds = np.array([NUMBERS[cone.kind] for cone in cones], dtype=np.intp)
        by_row = kinds.repeat(sizes)

        def entries(kind: ConeKind) -> Places:
            return np.asarray((by_row == NUMBERS[kind]).nonzero()[0])

        second = kinds == NUMBERS[ConeKind.SECOND_ORDER]
        owners = firsts[second].repeat(sizes[second])
        inside = entries(ConeKind.SECOND_ORDER)
        exponents = [
            np.full(cone.size // 3, cone.exponent) for cone in cones if cone.exponent is not None
        ]
        blocks = tuple(
            (cone.order, int(first))
            for cone, first in zip(cones, firsts, strict=True)
            if cone.kind is ConeKind.PSD_TRIANGLE
        )
        diagonal, crossed, rows, columns = _triangles(blocks)
        return ConePlaces(
            zero=entries(ConeKind.ZERO),
            nonnegative=entries(ConeKind.NONNEGATIVE),
            members=inside[inside != owners],
            tops=owners[inside != owners],
            exponential=entries(ConeKind.EXPONENTIAL),
            power=entries(ConeKind.POWER),
            exponents=np.concatenate([np.zeros(0), *exponents]),
            diagonal=diagonal,
            crossed=crossed,
            rows=rows,
            columns=columns,
            blocks=blocks,
        )

    @cached_property
    def first_tops(self) -> Places:
        return np.unique(self.tops)


def _triangles(blocks: tuple[tuple[int, int], ...]) -> tuple[Places, Places, Places, Places]:
    """The diagonal entries of all blocks; the others, and the diagonal entries beside them."""
    none = np.zeros(0, dtype=np.intp)
    found: list[tuple[Places, Places, Places, Places]] = [(none, none, none, none)]
    for order, first in blocks:
        row, column = triangle(order)
        on = row == column
        diagonal = first + np.flatnonzero(on)
        off = np.flatnonzero(~on)
        found.append((diagonal, first + off, diagonal[row[off]], diagonal[column[off]]))
    parts = [np.concatenate(each).astype(np.intp) for each in zip(*found, strict=True)]
    return parts[0], parts[1], parts[2], parts[3]


class _Sweep:
    """The rows of the program and of its objective, and one pass of narrowing after the other."""

    def __init__(self, program: ConeProgram, places: ConePlaces, level: float) -> None:
        self.program, self.places, self.level = program, places, level
        size = program.linear.size
        self.count = program.offset.size + 1
        weighed, filled = program.linear.nonzero()[0], program.matrix.data.nonzero()[0]
        self.values = np.concatenate([program.matrix.data[filled], program.linear[weighed]])
        self.columns = np.concatenate([program.columns[filled], weighed])
        objective = np.full(weighed.size, self.count - 1)
        self.owner = np.concatenate([program.matrix.indices[filled], objective])
        assert program.constant is not None
        self.offset = np.concatenate([program.offset, [level - program.constant]])
        self.x = Range.unknown(size)
        self.s = self._inside()
        self.single = np.bincount(self.owner, minlength=self.count)[self.owner] == 1

    def _inside(self) -> Range:
        """What the cones say of single entries of s; the row of the objective has s >= 0."""
        places, s = self.places, Range.unknown(self.count)
        s.lower[places.zero] = s.upper[places.zero] = 0.0
        for own in (places.nonnegative, places.first_tops, places.diagonal):
            s.lower[own] = 0.0
        s.lower[places.exponential.reshape(-1, 3)[:, 1:]] = 0.0
        s.lower[places.power.reshape(-1, 3)[:, :2]] = 0.0
        s.lower[-1] = 0.0
        return s

    @property
    def finite(self) -> bool:
        return all_finite(self.x.lower) and all_finite(self.x.upper)

    def run(self, narrow: bool) -> None:
        """Passes until nothing changes, or, unless they are to be narrow, all ranges are finite."""
        for _ in range(CONE_DUALITY.sweeps):
            if not self.narrow() or (self.finite and not narrow):
                break

    def narrow(self) -> bool:
        """One pass; whether an end became finite or a range much shorter."""
        before = self.x
        one, two = (end[self.columns] * self.values for end in (before.lower, before.upper))
        low, high = np.fmin(one, two), np.fmax(one, two)
        least, none_least = self._summed(low)
        most, none_most = self._summed(high)
        sizes = np.abs(self.offset) + self._sizes(low) + self._sizes(high)
        wide = DATA_ROUNDING * sizes
        at_most = np.where(none_least == 0, self.offset - least + wide, np.inf)
        at_least = np.where(none_most == 0, self.offset - most - wide, -np.inf)
        self.s = self._by_cones(self.s.cut(at_least, at_most))
        # a x_j = b − s − the other terms of the row
        owner = self.owner
        bound = np.where(np.isfinite(self.s.lower), np.abs(self.s.lower), 0.0)
        wide = wide + DATA_ROUNDING * bound
        others = none_least[owner] - ~np.isfinite(low)
        rest = np.where(np.isfinite(low), least[owner] - low, least[owner])
        upper = np.where(
            others == 0, self.offset[owner] - self.s.lower[owner] - rest + wide[owner], np.inf
        )
        others = none_most[owner] - ~np.isfinite(high)
        rest = np.where(np.isfinite(high), most[owner] - high, most[owner])
        bound = np.where(np.isfinite(self.s.upper), np.abs(self.s.upper), 0.0)
        wide = wide + DATA_ROUNDING * bound
        lower = np.where(
            others == 0, self.offset[owner] - self.s.upper[owner] - rest - wide[owner], -np.inf
        )
        found = Range.unknown(before.lower.size)
        one, two = lower / self.values, upper / self.values
        np.maximum.at(found.lower, self.columns, np.fmin(one, two))
        np.minimum.at(found.upper, self.columns, np.fmax(one, two))
        self.x = before.cut(found.lower, found.upper)
        return self._narrower(before)

    def _summed(self, terms: FloatArray) -> tuple[FloatArray, NDArray[np.intp]]:
        """The sum of the finite terms of each row, and how many are not finite."""
        finite = np.isfinite(terms)
        total = np.bincount(self.owner, np.where(finite, terms, 0.0), minlength=self.count)
        missing = np.bincount(self.owner, ~finite, minlength=self.count)
        return total.astype(float), missing.astype(np.intp)

    def _sizes(self, terms: FloatArray) -> FloatArray:
        sizes = np.where(np.isfinite(terms), np.abs(terms), 0.0)
        return np.bincount(self.owner, sizes, minlength=self.count).astype(float)

    def _narrower(self, before: Range) -> bool:
        gained = np.isfinite(self.x.lower) & ~np.isfinite(before.lower)
        gained |= np.isfinite(self.x.upper) & ~np.isfinite(before.upper)
        length = self.x.upper - self.x.lower
        with np.errstate(invalid="ignore"):
            shorter = length < CONE_DUALITY.shorter * (before.upper - before.lower)
        return bool((gained | (shorter & np.isfinite(length))).any())

    def _by_cones(self, s: Range) -> Range:
        """What the ranges of some entries of a cone say of the others."""
        places, lower, upper = self.places, s.lower.copy(), s.upper.copy()
        more = 1.0 + DATA_ROUNDING

        def within(own: Places, reach: FloatArray) -> None:
            lower[own] = np.maximum(lower[own], -reach)
            upper[own] = np.minimum(upper[own], reach)

        within(places.members, upper[places.tops] * more)
        x, y, z = places.exponential.reshape(-1, 3).T
        if x.size:  # x <= y·log(z/y), which is largest at y = z/e
            best = np.clip(upper[z] / np.e, lower[y], upper[y])
            top = np.where(best > 0, best * np.log(upper[z] / best), 0.0)
            top = top + DATA_ROUNDING * (np.abs(top) + best)
            upper[x] = np.fmin(upper[x], np.where(np.isfinite(best), top, np.inf))
        x, y, z = places.power.reshape(-1, 3).T
        share = places.exponents
        within(z, _product(upper[x], upper[y], share) * more)
        if places.diagonal.size and not np.isfinite(upper[places.diagonal]).all():
            self._by_traces(upper)
        first, second = upper[places.rows], upper[places.columns]
        within(places.crossed, ROOT_TWO * _product(first, second, 0.5) * more)
        return Range(lower, upper)

    def _by_traces(self, upper: FloatArray) -> None:
        """Bounds of the traces of semidefinite blocks that the objective weighs.

        Where each entry of a block S that depends on an unknown of the objective is b − a x_j, the
        objective is a constant plus <C, S> plus the other terms; <C, S> >= λ tr S.
        """
        linear, x = self.program.linear, self.x
        alone = self.single
        rows, columns, values = self.owner[alone], self.columns[alone], self.values[alone]
        for order, first in self.places.blocks:
            size = order * (order + 1) // 2
            own = (rows >= first) & (rows < first + size) & (linear[columns] != 0)
            weights, held = np.zeros(size), np.zeros(linear.size, dtype=bool)
            if np.unique(columns[own]).size < np.count_nonzero(own):
                continue
            weights[rows[own] - first] = -linear[columns[own]] / values[own]
            held[columns[own]] = True
            rest = np.where(linear > 0, x.lower, x.upper)[~held & (linear != 0)]
            others = linear[~held & (linear != 0)] * rest
            fixed = linear[columns[own]] * self.offset[rows[own]] / values[own]
            if not np.isfinite(others).all():
                continue
            matrix = to_matrix(weights)
            used = np.flatnonzero(matrix.any(axis=0))
            if not used.size:
                continue
            eigenvalues = np.linalg.eigvalsh(matrix[np.ix_(used, used)])
            least = eigenvalues[0] - DATA_ROUNDING * used.size * np.abs(eigenvalues).max()
            if least <= 0:
                continue
            terms = np.abs(others).sum() + np.abs(fixed).sum() + abs(self.offset[-1])
            left = self.offset[-1] - others.sum() - fixed.sum() + DATA_ROUNDING * terms
            row, column = triangle(order)
            diagonal = first + np.flatnonzero(row == column)[used]
            upper[diagonal] = np.minimum(upper[diagonal], max(left, 0.0) / least)


def _product(one: FloatArray, other: FloatArray, share: FloatArray | float) -> FloatArray:
    """one^share · other^(1−share), where 0 times infinity says nothing."""
    product = np.maximum(one, 0.0) ** share * np.maximum(other, 0.0) ** (1.0 - share)
    return np.asarray(np.where(np.isnan(product), np.inf, product))


def ranges(
    program: ConeProgram,
    places: ConePlaces,
    level: float,
    first: Range | None = None,
    *,
    narrow: bool = True,
) -> Range:
    """Ranges that hold x wherever it is feasible and its objective at most the level.

    `first` are ranges of the first unknowns that are known already. They are not made any shorter once
    all of them are finite, unless they are to be `narrow`.
    """
    with np.errstate(all="ignore"):
        sweep = _Sweep(program, places, level)
        if first is not None:
            count = first.lower.size
            sweep.x.lower[:count], sweep.x.upper[:count] = first.lower, first.upper
        sweep.run(narrow)
        if not sweep.finite and program.quadratic.nnz:
            sweep.x = by_squares(program, level, sweep.x)
            sweep.run(narrow)
        if not sweep.finite:
            sweep.x = by_equations(program, sweep.s, sweep.x)
        if not sweep.finite and places.blocks:
            sweep.x = by_matrices(program, places, sweep.s, sweep.x)
            sweep.run(narrow)
        if not sweep.finite and np.prod(program.matrix.shape) <= CONE_DUALITY.largest_inner:
            limit_by_inner_dual(sweep)
            sweep.run(narrow)
        return sweep.x


def limit_by_inner_dual(sweep: _Sweep) -> None:
    """Limits of s from a vector d inside the dual cone with Aᵀd + θ q = 0, θ >= 0, where there is one.

    Then <d, s> = bᵀd + θ qᵀx for every feasible x, which the level bounds, and each entry that a cone
    makes nonnegative, and each trace, is at most <d, s> over what d weighs it with. The d nearest to the
    middle of the cone is taken. What rounding leaves of Aᵀd + θ q counts with |x|, which the entries of
    s that are b − a x_j bound in turn.
    """
    program, places = sweep.program, sweep.places
    matrix = np.vstack([program.sparse.toarray(), program.linear])
    middle = np.zeros(sweep.count)
    for own in (places.nonnegative, places.first_tops, places.diagonal, [sweep.count - 1]):
        middle[own] = 1.0
    d = middle - matrix @ np.linalg.lstsq(matrix, middle, rcond=None)[0]
    weights = _least_weights(places, d)
    if not d[-1] >= 0 or not weights.size:
        return
    rest = np.abs(matrix.T @ d) + DATA_ROUNDING * (np.abs(matrix).T @ np.abs(d))
    size = float(np.abs(sweep.offset) @ np.abs(d))
    total = max(float(sweep.offset @ d), 0.0) + DATA_ROUNDING * size
    # |x_j| <= reach + slope · <d, s>, by a row of its own or by its range
    reach = np.maximum(np.abs(sweep.x.lower), np.abs(sweep.x.upper))
    slope = np.where(np.isfinite(reach), 0.0, np.inf)
    own = np.flatnonzero(sweep.single & (weights[sweep.owner] > 0))
    rows, columns, values = sweep.owner[own], sweep.columns[own], np.abs(sweep.values[own])
    steep = 1.0 / (weights[rows] * values)
    for place, j in enumerate(columns):
        if steep[place] < slope[j]:
            slope[j] = steep[place]
            reach[j] = np.abs(program.offset[rows[place]]) / values[place]
    share = float(np.where(rest > 0, rest * slope, 0.0).sum())
    if not share <= CONE_DUALITY.largest_share:
        return
    total = (total + float((rest * np.where(np.isfinite(reach), reach, 0.0)).sum())) / (1.0 - share)
    limits = np.where(weights > 0, total * (1.0 + DATA_ROUNDING) / weights, np.inf)
    sweep.s = sweep.s.cut(np.full(sweep.count, -np.inf), limits)


def _least_weights(places: ConePlaces, d: FloatArray) -> FloatArray:
    """How much of <d, s> an entry that a cone makes nonnegative has at least; 0: nothing is known.

    Empty where d is not in the dual cone.
    """
    weights, outside = np.zeros(d.size), np.zeros(0)
    weights[places.nonnegative] = d[places.nonnegative]
    squares = np.bincount(places.tops, d[places.members] ** 2, minlength=d.size)
    weights[places.first_tops] = (d - np.sqrt(squares))[places.first_tops]
    for order, first in places.blocks:
        eigenvalues = np.linalg.eigvalsh(to_matrix(d[first : first + order * (order + 1) // 2]))
        row, column = triangle(order)
        diagonal = first + np.flatnonzero(row == column)
        weights[diagonal] = eigenvalues[0] - DATA_ROUNDING * order * np.abs(eigenvalues).max()
    curved = np.concatenate([places.exponential, places.power])
    if (weights < 0).any() or np.any(d[curved]):
        return outside
    return np.maximum(weights * (1.0 - DATA_ROUNDING), 0.0)
