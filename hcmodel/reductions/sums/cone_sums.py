"""The cone program of a form whose functions are affine or sums of exponentials, from its arrays.

`cone_bounds` makes the programs of all other models from the nodes of their proofs. This one says the
same:

    a row between logarithms    Σ z_k <= 1,  (E_k u + b_k − (e·u + c), 1, z_k) in K_exp
    ... with one term           e·u + c − (E u + b) >= 0, or == 0
    a row as it is              right − left >= 0, or == 0, both affine

The blocks of the program: rows that are 0, rows that are not negative, exponential cones. In the program
of the least relaxation rows between logarithms give by a factor e^t, the others by t times their largest
number, and equalities are two rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.reductions.cone.compressed_rows import Rows, small_units
from hcmodel.reductions.sums.sum_arrays import FIRST, SumArrays, starts_of
from hcmodel.solvers.algebra.marks import some
from hcmodel.solvers.numerics import TINY
from hcmodel.solvers.qp.columns import Columns
from hcmodel.solvers.qp.cone_program import ConeBlock, ConeKind, ConeProgram, no_quadratic

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class SumsCone:
    """The program, the row of it that stands for each row of the form, and the rows that are bounds.

    `bounds` has these rows, the entries of u that they bound, and the bounds; `fixed` the entries that
    the first rows fix. In a relaxed program `others` has the second row of each equality, and −1.
    """

    program: ConeProgram
    rows: IndexArray
    bounds: tuple[IndexArray, IndexArray, FloatArray]
    fixed: IndexArray
    others: IndexArray


def cone_of_sums(arrays: SumArrays, *, relaxed: bool = False) -> SumsCone:
    """The cone program of a form with these arrays; or that of its least relaxation t, next to u."""
    return _Assembly(arrays, relaxed).made()


class _Assembly:
    """A and b, part by part: bounds, rows with one term or none, sums of exponentials, the objective.

    The unknowns are u, t where the objective is a sum or the rows are relaxed, and z, one for each term
    of a sum. A relaxed program has no objective but t.
    """

    def __init__(self, arrays: SumArrays, relaxed: bool) -> None:
        entries, places = arrays.entries, arrays.places
        lower, upper = arrays.lower, arrays.upper
        self.entries, self.places, self.relaxed = entries, places, relaxed
        self.size, self.units = entries.affine.shape[1], small_units(lower, upper)
        has_sum = not relaxed and places.in_logs and entries.counts[0] > 1
        self.has_t = int(relaxed or has_sum)
        wide = (lower < upper) | relaxed  # of a conflict equal bounds are two parts
        self.fixed = (~wide).nonzero()[0]
        self.low = (np.isfinite(lower) & wide).nonzero()[0]
        self.high = (np.isfinite(upper) & wide).nonzero()[0]
        count, equalities = places.left.size, int(places.equality.sum())  # these come last
        self.zeros = self.fixed.size + (0 if relaxed else equalities)
        self.bounded = self.low.size + self.high.size
        self.signed = self.bounded + count + (equalities if relaxed else -equalities) + self.has_t
        self.rows = np.arange(count) + (self.zeros + self.bounded)
        self.others = np.full(count, -1)
        if relaxed:
            self.others[count - equalities :] = self.rows[count - equalities :] + equalities
        else:
            self.rows[count - equalities :] = self.fixed.size + np.arange(equalities)
        self.sums = places.sums.nonzero()[0]
        groups = places.left[self.sums]
        groups = np.concatenate([groups, FIRST]) if has_sum else groups
        own = entries.terms[groups]
        self.terms, self.owner = own.indices, np.arange(groups.size).repeat(own.lengths)
        self.first = self.zeros + self.signed  # of the exponential cones
        self.width = self.size + self.has_t + self.terms.size
        self.offset = np.zeros(self.first + 3 * self.terms.size)
        self._parts: list[tuple[IndexArray, IndexArray, FloatArray]] = []
        self.bounds = self._add_bounds(lower, upper)
        for own_rows, parts, numbers in (
            (places.plain, entries.affine, entries.offset),
            (places.single, entries.exponents, entries.logs),
        ):
            if some(own_rows):
                self._add_rows(own_rows.nonzero()[0], parts, numbers)
        if self.terms.size:
            self._add_sums()
        if relaxed:
            last = np.array([self.first - 1])
            self._parts.append((last, np.array([self.size]), -np.ones(1)))

    def _add_part(self, at: IndexArray, rows: Rows, factor: float) -> None:
        """Whole rows times a number, to the rows `at` of A."""
        self._parts.append((at.repeat(rows.lengths), rows.indices, factor * rows.data))

    def _add_bounds(
        self, lower: FloatArray, upper: FloatArray
    ) -> tuple[IndexArray, IndexArray, FloatArray]:
        if self.fixed.size:
            at = np.arange(self.fixed.size)
            self._parts.append((at, self.fixed, np.ones(at.size)))
            self.offset[at] = lower[self.fixed]
        at, entries = self.zeros + np.arange(self.bounded), np.concatenate([self.low, self.high])
        signs = np.where(np.arange(self.bounded) < self.low.size, -1.0, 1.0)
        values = np.concatenate([lower[self.low], upper[self.high]])
        self._parts.append((at, entries, signs))
        self.offset[at] = signs * values
        return at, entries, values

    def _add_rows(self, own: IndexArray, parts: Rows, numbers: FloatArray) -> None:
        """right − left, of affine entries or of the exponents of single terms."""
        at = self.rows[own]
        for side, factor in ((self.places.left[own], 1.0), (self.places.right[own], -1.0)):
            which = side if parts is self.entries.affine else self.entries.only(side)
            self._add_part(at, parts[which], factor)
            self.offset[at] -= factor * numbers[which]
        if self.relaxed:
            self._relax(own, parts)

    def _relax(self, own: IndexArray, parts: Rows) -> None:
        """Rows that give by t times their largest number; equalities have a row for each side."""
        at, others = self.rows[own], self.others[own]
        left, right = (
            parts[side if parts is self.entries.affine else self.entries.only(side)]
            for side in (self.places.left[own], self.places.right[own])
        )
        sizes = np.maximum(np.abs(self.offset[at]), (left + (-right)).largest(self.units))
        sizes = np.maximum(sizes, TINY)
        second = (others >= 0).nonzero()[0]
        at_second = others[second]
        self._add_part(at_second, left[second], -1.0)
        self._add_part(at_second, right[second], 1.0)
        self.offset[at_second] = -self.offset[at[second]]
        for places, amounts in ((at, sizes), (at_second, sizes[second])):
            self._parts.append((places, np.full(places.size, self.size), -amounts))

    def _add_sums(self) -> None:
        """1 − Σ z >= 0, and (E u + b − right, 1, z) in K_exp; t is the right side of the objective."""
        entries, count = self.entries, self.terms.size
        cones, z = self.first + 3 * np.arange(count), self.width - count + np.arange(count)
        totals = self.rows[self.sums]
        if self.has_t and not self.relaxed:
            totals = np.concatenate([totals, [self.first - 1]])
        self._parts.append((totals[self.owner], z, np.ones(count)))
        self.offset[totals] = 1.0
        self._add_part(cones, entries.exponents[self.terms], -1.0)
        self.offset[cones] = entries.logs[self.terms]
        self.offset[cones + 1] = 1.0
        self._parts.append((cones + 2, z, -np.ones(count)))
        inner = int(self.owner.searchsorted(self.sums.size))  # terms of rows come first
        if inner:
            right = entries.only(self.places.right[self.sums])[self.owner[:inner]]
            self._add_part(cones[:inner], entries.exponents[right], 1.0)
            self.offset[cones[:inner]] -= entries.logs[right]
        if self.has_t:
            own = cones if self.relaxed else cones[inner:]
            self._parts.append((own, np.full(own.size, self.size), np.ones(own.size)))

    def _objective(self) -> tuple[FloatArray, float]:
        """The weights of the unknowns, and the constant."""
        linear = np.zeros(self.width)
        if self.has_t:
            linear[self.size] = 1.0
            return linear, 0.0
        first = np.zeros(1, dtype=np.intp)
        if self.places.in_logs:
            only = self.entries.only(first)
            row, number = self.entries.exponents[only], self.entries.logs[only]
        else:
            row, number = self.entries.affine[first], self.entries.offset[first]
        np.add.at(linear, row.indices, self.places.sign * row.data)
        return linear, self.places.sign * float(number[0])

    def made(self) -> SumsCone:
        rows, columns, values = (np.concatenate(each) for each in zip(*self._parts, strict=True))
        height = self.offset.size
        keys = columns * height + rows
        order = keys.argsort(kind="stable")
        keys = keys[order]
        new = np.ones(keys.size, dtype=bool)
        np.not_equal(keys[1:], keys[:-1], out=new[1:])
        first = new.nonzero()[0]
        columns, rows = np.divmod(keys[first], height)
        data = np.add.reduceat(values[order], first) if first.size else values
        parts = (data, rows, starts_of(columns, self.width))
        blocks = (
            (ConeKind.ZERO, self.zeros),
            (ConeKind.NONNEGATIVE, self.signed),
            (ConeKind.EXPONENTIAL, 3 * self.terms.size),
        )
        linear, constant = self._objective()
        program = ConeProgram(
            no_quadratic(self.width),
            linear,
            Columns(*parts, (height, self.width)),
            self.offset,
            tuple(ConeBlock(kind, length) for kind, length in blocks if length),
            constant,
        )
        return SumsCone(program, self.rows, self.bounds, self.fixed, self.others)
