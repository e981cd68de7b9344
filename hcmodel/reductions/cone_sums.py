"""The cone program of a proven form whose functions are affine or sums of exponentials, from its arrays.

The structured stack (`engines.structured`) has the functions of such a form as matrices, so that the
program is put together from them, and the proof's nodes are not asked (`cone_bounds` does that for all
other models). It says the same:

    a row between logarithms    Σ z_k <= 1,  (E_k u + b_k − (e·u + c), 1, z_k) in K_exp
    ... with one term           e·u + c − (E u + b) >= 0, or == 0
    a row as it is              right − left >= 0, or == 0, both affine

The blocks of the program: rows that are 0, rows that are not negative, exponential cones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.engines.structured import StructuredStack
from hcmodel.reductions.rows import Rows
from hcmodel.reductions.smooth import SmoothProgram
from hcmodel.solvers.coordinates.logarithmic import LogStack
from hcmodel.solvers.qp.cone_program import ConeBlock, ConeKind, ConeProgram

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]
Marks = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SumsCone:
    """The program, the row of it that stands for each row of the form, and the rows that are bounds.

    `bounds` has these rows, the entries of u that they bound, and the bounds.
    """

    program: ConeProgram
    rows: IndexArray
    bounds: tuple[IndexArray, IndexArray, FloatArray]


def cone_of_sums(program: SmoothProgram) -> SumsCone | None:
    """The cone program of a proven form; None where a function is neither affine nor such a sum."""
    compiled = program.compiled
    if not isinstance(compiled, StructuredStack) or compiled.kinked:
        return None
    if not all(compiled.structured[: compiled.program.stop]):
        return None
    domain = program.domain.cone_rows()
    if domain.cones:
        return None
    entries = _Entries.of(compiled, program)
    if entries is None:
        return None
    places = _Places.of(program, entries)
    if places is None:
        return None
    return _Assembly(entries, places, domain.lower, domain.upper).made()


class _Entries:
    """The entries of φ by u: affine parts, and terms weight·exp(E u), the numbers among them."""

    def __init__(
        self,
        affine: Rows,
        offset: FloatArray,
        exponents: Rows,
        weights: FloatArray,
        owner: IndexArray,
    ) -> None:
        self.affine, self.offset, self.exponents = affine, offset, exponents
        size = offset.size
        order = np.argsort(owner, kind="stable")
        self.terms = Rows(np.ones(owner.size), order, _starts(owner[order], size), owner.size)
        self.counts = np.diff(self.terms.indptr)
        numbers = np.diff(exponents.indptr) == 0
        self.is_affine = np.bincount(owner[~numbers], minlength=size) == 0
        negative = np.bincount(owner[weights <= 0], minlength=size) > 0
        flat = np.diff(affine.indptr) == 0
        self.is_posynomial = flat & (self.counts > 0) & ~negative
        self.is_monomial = self.is_posynomial & (self.counts == 1)
        with np.errstate(all="ignore"):
            self.logs = np.log(weights)

    @staticmethod
    def of(stack: StructuredStack, program: SmoothProgram) -> _Entries | None:
        """None where a power or a logarithm is of a variable that is its own coordinate."""
        data, _ = stack.terms
        inner = program.stack
        logs = inner.logs if isinstance(inner, LogStack) else np.zeros(stack.dimension, dtype=bool)
        linear, logarithms, powers = data.linear, data.logarithms, data.exponents
        if not (logs[powers.columns].all() and logs[logarithms.columns].all()):
            return None
        through = logs[linear.columns]  # x = exp(u): a term of its own
        straight = ~through
        affine = Rows.of_entries(
            np.concatenate([linear.values[straight], logarithms.values]),
            np.concatenate([linear.rows[straight], logarithms.rows]),
            np.concatenate([linear.columns[straight], logarithms.columns]),
            (data.size, stack.dimension),
        )
        numbers = np.flatnonzero(data.offset)
        count, more = data.weights.size, int(through.sum())
        exponents = Rows.of_entries(
            np.concatenate([powers.values, np.ones(more)]),
            np.concatenate([powers.rows, count + np.arange(more)]),
            np.concatenate([powers.columns, linear.columns[through]]),
            (count + more + numbers.size, stack.dimension),
        )
        weights = np.concatenate([data.weights, linear.values[through], data.offset[numbers]])
        owner = np.concatenate([data.rows, linear.rows[through], numbers])
        if not weights.all():  # a coefficient of 0
            kept = np.flatnonzero(weights)
            exponents, weights, owner = exponents[kept], weights[kept], owner[kept]
        return _Entries(affine, data.offset, exponents, weights, owner)


@dataclass(frozen=True, eq=False)
class _Places:
    """The entries of φ on both sides of the rows, and the kinds of the rows; and of the objective.

    `sums` are rows with several terms on the left, `single` those with one term on each side, and
    `plain` those that are compared as they are.
    """

    left: IndexArray
    right: IndexArray
    equality: Marks
    plain: Marks
    single: Marks
    sums: Marks
    sign: float
    in_logs: bool

    @staticmethod
    def of(program: SmoothProgram, entries: _Entries) -> _Places | None:
        """None where a row or the objective has no such form."""
        outer, split = program.outer, program.compiled.objective_size
        left, right = split + outer.left.indices, split + outer.right.indices
        equality = np.arange(outer.size) >= outer.inequalities
        logs = outer.forms != 0 if outer.forms.size else np.zeros(outer.size, dtype=bool)
        plain = ~logs & entries.is_affine[left] & entries.is_affine[right]
        logs &= entries.is_monomial[right]
        single = logs & entries.is_monomial[left]
        sums = logs & entries.is_posynomial[left] & ~single & ~equality
        if not (plain | single | sums).all():
            return None
        sign = float(outer.objective[0])
        if outer.objective_form == "plain":
            fits = entries.is_affine[0]
        else:
            fits = (entries.is_posynomial if sign > 0 else entries.is_monomial)[0]
        if not fits:
            return None
        in_logs = outer.objective_form != "plain"
        return _Places(left, right, equality, plain, single, sums, sign, in_logs)


class _Assembly:
    """A and b, part by part: bounds, rows with one term or none, sums of exponentials, the objective.

    The unknowns are u, t where the objective is a sum, and z, one for each term of a sum.
    """

    def __init__(
        self, entries: _Entries, places: _Places, lower: FloatArray, upper: FloatArray
    ) -> None:
        self.entries, self.places = entries, places
        self.size = entries.affine.shape[1]
        self.has_t = int(places.in_logs and entries.counts[0] > 1)
        self.fixed = np.flatnonzero(lower == upper)
        self.low = np.flatnonzero(np.isfinite(lower) & (lower < upper))
        self.high = np.flatnonzero(np.isfinite(upper) & (lower < upper))
        count, equalities = places.left.size, int(places.equality.sum())  # these come last
        self.zeros = self.fixed.size + equalities
        self.bounded = self.low.size + self.high.size
        self.signed = self.bounded + count - equalities + self.has_t
        self.rows = np.arange(count) + (self.zeros + self.bounded)
        self.rows[count - equalities :] = self.fixed.size + np.arange(equalities)
        self.sums = np.flatnonzero(places.sums)
        groups = np.append(places.left[self.sums], 0) if self.has_t else places.left[self.sums]
        own = entries.terms[groups]
        self.terms, self.owner = own.indices, np.repeat(np.arange(groups.size), np.diff(own.indptr))
        self.first = self.zeros + self.signed  # of the exponential cones
        self.width = self.size + self.has_t + self.terms.size
        self.offset = np.zeros(self.first + 3 * self.terms.size)
        self._parts: list[tuple[IndexArray, IndexArray, FloatArray]] = []
        self.bounds = self._add_bounds(lower, upper)
        for own_rows, parts, numbers in (
            (places.plain, entries.affine, entries.offset),
            (places.single, entries.exponents, entries.logs),
        ):
            if own_rows.any():
                self._add_rows(np.flatnonzero(own_rows), parts, numbers)
        if self.terms.size:
            self._add_sums()

    def _add_part(self, at: IndexArray, rows: Rows, factor: float) -> None:
        """Whole rows times a number, to the rows `at` of A."""
        lengths = np.diff(rows.indptr)
        self._parts.append((np.repeat(at, lengths), rows.indices, factor * rows.data))

    def _add_bounds(
        self, lower: FloatArray, upper: FloatArray
    ) -> tuple[IndexArray, IndexArray, FloatArray]:
        if self.fixed.size:
            at = np.arange(self.fixed.size)
            self._parts.append((at, self.fixed, np.ones(at.size)))
            self.offset[at] = lower[self.fixed]
        at, entries = self.zeros + np.arange(self.bounded), np.concatenate([self.low, self.high])
        signs = np.repeat([-1.0, 1.0], [self.low.size, self.high.size])
        values = np.concatenate([lower[self.low], upper[self.high]])
        self._parts.append((at, entries, signs))
        self.offset[at] = signs * values
        return at, entries, values

    def _add_rows(self, own: IndexArray, parts: Rows, numbers: FloatArray) -> None:
        """right − left, of affine entries or of the exponents of single terms."""
        at = self.rows[own]
        for side, factor in ((self.places.left[own], 1.0), (self.places.right[own], -1.0)):
            which = side if parts is self.entries.affine else self.entries.terms[side].indices
            self._add_part(at, parts[which], factor)
            self.offset[at] -= factor * numbers[which]

    def _add_sums(self) -> None:
        """1 − Σ z >= 0, and (E u + b − right, 1, z) in K_exp; t is the right side of the objective."""
        entries, count = self.entries, self.terms.size
        cones, z = self.first + 3 * np.arange(count), self.width - count + np.arange(count)
        totals = self.rows[self.sums]
        totals = np.append(totals, self.first - 1) if self.has_t else totals
        self._parts.append((totals[self.owner], z, np.ones(count)))
        self.offset[totals] = 1.0
        self._add_part(cones, entries.exponents[self.terms], -1.0)
        self.offset[cones] = entries.logs[self.terms]
        self.offset[cones + 1] = 1.0
        self._parts.append((cones + 2, z, -np.ones(count)))
        inner = int(np.searchsorted(self.owner, self.sums.size))  # terms of rows come first
        if inner:
            right = entries.terms[self.places.right[self.sums]].indices[self.owner[:inner]]
            self._add_part(cones[:inner], entries.exponents[right], 1.0)
            self.offset[cones[:inner]] -= entries.logs[right]
        if self.has_t:
            own = cones[inner:]
            self._parts.append((own, np.full(own.size, self.size), np.ones(own.size)))

    def _linear(self) -> FloatArray:
        linear = np.zeros(self.width)
        if self.has_t:
            linear[self.size] = 1.0
            return linear
        first = np.zeros(1, dtype=np.intp)
        if self.places.in_logs:
            row = self.entries.exponents[self.entries.terms[first].indices]
        else:
            row = self.entries.affine[first]
        np.add.at(linear, row.indices, self.places.sign * row.data)
        return linear

    def made(self) -> SumsCone:
        rows, columns, values = (np.concatenate(each) for each in zip(*self._parts, strict=True))
        height = self.offset.size
        keys, place = np.unique(columns * height + rows, return_inverse=True)
        columns, rows = np.divmod(keys, height)
        data = np.bincount(place, weights=values, minlength=keys.size)
        parts = (data, rows, _starts(columns, self.width))
        blocks = (
            (ConeKind.ZERO, self.zeros),
            (ConeKind.NONNEGATIVE, self.signed),
            (ConeKind.EXPONENTIAL, 3 * self.terms.size),
        )
        program = ConeProgram(
            scipy.sparse.csc_matrix((self.width, self.width)),
            self._linear(),
            scipy.sparse.csc_matrix(parts, shape=(height, self.width)),
            self.offset,
            tuple(ConeBlock(kind, length) for kind, length in blocks if length),
        )
        return SumsCone(program, self.rows, self.bounds)


def _starts(numbers: IndexArray, count: int) -> IndexArray:
    """Where each number begins in a sorted list."""
    return np.searchsorted(numbers, np.arange(count + 1))
