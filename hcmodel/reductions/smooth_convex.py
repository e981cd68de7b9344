"""A proven form as a smooth convex program, for the interior-point method.

The structured stack (`engines.structured`) has the functions as sums of monomials. In coordinates u, the
logarithms of some variables and the others as they are, a monomial of the first is an exponential of an
affine function:

    a row between logarithms    log Σ exp(E u + b) − (e·u + c)      posynomial <= monomial
    a row as it is              C u + c + Σ w exp(E u + b),  w > 0  affine and posynomial

Rows that are neither enter with value, Jacobian and Hessian by u of their functions. A row
posynomial <= monomial that the form has as a difference is compared through logarithms here, where
coefficients of 1e±100 are harmless; its multiplier is divided by the left side (`SmoothConvex.factors`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.engines.structured import StructuredStack
from hcmodel.records import cached_property, dataclass, replace
from hcmodel.reductions.reduction import Refusal
from hcmodel.reductions.smooth import SmoothProgram
from hcmodel.solvers.algebra.hessians import SparseHessian, with_squares
from hcmodel.solvers.oracle import Forward, Stack
from hcmodel.solvers.outer import Outer
from hcmodel.solvers.second_order.interior_point import LogSums, SmoothConvexProgram, Sums

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]
Marks = NDArray[np.bool_]
Sparse: Any = scipy.sparse.csr_array


@dataclass(frozen=True, eq=False)
class SmoothConvex:
    """A smooth convex program whose rows, then equalities, are those of a form, in order.

    The rows `converted` are differences in the form and logarithms in the program; their right sides are
    exp(`exponents` u + `offsets`).
    """

    program: SmoothConvexProgram
    size: int
    converted: IndexArray
    exponents: Any
    offsets: FloatArray

    @staticmethod
    def of(program: SmoothConvexProgram, size: int) -> SmoothConvex:
        """A program all of whose rows are those of the form."""
        none = np.zeros(0, dtype=np.intp)
        return SmoothConvex(program, size, none, Sparse((0, program.dimension)), np.zeros(0))

    def factors(self, u: FloatArray) -> FloatArray:
        """Multipliers of the form's rows over those of the program's, at a point.

        The gradient of log l − log r, r a number, is that of l − r divided by l. Where the row holds with
        equality, l is r; where it has room, its multiplier is 0 whatever the factor is.
        """
        found = np.ones(self.size)
        with np.errstate(all="ignore"):
            right = self.exponents @ u + self.offsets
            excess = np.maximum(self.program.values(u)[1 + self.converted], 0.0)
            found[self.converted] = np.exp(-(right + excess))
        return np.where(np.isfinite(found), found, 0.0)


def smooth_convex(program: SmoothProgram) -> SmoothConvex | Refusal:
    """The convex program of a form that is proven convex."""
    compiled = program.compiled
    if compiled.kinked:
        kinks = "the model has kinks that no linear row expresses, such as a Euclidean norm"
        return Refusal(None, kinks)
    if not isinstance(compiled, StructuredStack):
        return Refusal(None, "the functions were compiled without their structure")
    domain = program.domain.cone_rows()
    if any(cone.kind != "zero" for cone in domain.cones):
        return Refusal(None, "a matrix variable is definite, and the method has only bounds")
    entries = _Entries.of(compiled, program.logs)
    found = _Builder(program, entries)
    bent = found.bent_equalities()
    if bent:
        return Refusal(None, f"{bent} equality constraints are not affine in the coordinates")
    return found.made(domain)


@dataclass(frozen=True, eq=False)
class _Entries:
    """The entries of φ: affine parts in u, and terms weight·exp(E u), each of one entry.

    `known` marks the entries that are nothing else.
    """

    known: Marks
    offset: FloatArray
    affine: Any
    rows: IndexArray
    weights: FloatArray
    exponents: Any

    @staticmethod
    def of(stack: StructuredStack, logs: Marks) -> _Entries:
        data, own = stack.terms
        size, width = stack.size, stack.dimension
        known = np.zeros(size, dtype=bool)
        known[own] = True
        linear, logarithms, powers = data.linear, data.logarithms, data.exponents
        through = logs[linear.columns]  # x = exp(u): a term of its own
        plain = ~logs[powers.columns]
        if plain.any():  # a monomial with a variable that is its own coordinate
            known[own[data.rows[powers.rows[plain]]]] = False
        known[own[logarithms.rows[~logs[logarithms.columns]]]] = False
        straight = ~through
        affine = Sparse(
            (
                np.concatenate([linear.values[straight], logarithms.values]),
                (
                    own[np.concatenate([linear.rows[straight], logarithms.rows])],
                    np.concatenate([linear.columns[straight], logarithms.columns]),
                ),
            ),
            shape=(size, width),
        )
        count, more = data.weights.size, int(through.sum())
        places = np.concatenate([powers.rows, count + np.arange(more)])
        columns = np.concatenate([powers.columns, linear.columns[through]])
        values = np.concatenate([powers.values, np.ones(more)])
        offset = np.zeros(size)
        offset[own] = data.offset
        return _Entries(
            known,
            offset,
            affine,
            own[np.concatenate([data.rows, linear.rows[through]])],
            np.concatenate([data.weights, linear.values[through]]),
            Sparse((values, (places, columns)), shape=(count + more, width)),
        )

    @property
    def counts(self) -> IndexArray:
        return np.bincount(self.rows, minlength=self.known.size)

    @property
    def has_slope(self) -> Marks:
        """Which entries have an affine part that is not a number."""
        return np.asarray(np.diff(self.affine.indptr) > 0)

    def logarithmic(self) -> tuple[Any, FloatArray, IndexArray, Marks, Marks]:
        """Terms with numbers among them: E, logarithms of the weights, entries; and which entries are
        posynomials, and which of these monomials."""
        numbers = np.flatnonzero(self.offset)
        width = self.exponents.shape[1]
        rows = np.concatenate([self.rows, numbers])
        weights = np.concatenate([self.weights, self.offset[numbers]])
        exponents = Sparse(scipy.sparse.vstack([self.exponents, Sparse((numbers.size, width))]))
        counts = np.bincount(rows, minlength=self.known.size)
        good = self.known & ~self.has_slope & (counts > 0)
        good[rows[~(weights > 0)]] = False
        with np.errstate(all="ignore"):
            return exponents, np.log(weights), rows, good, good & (counts == 1)


class _Builder:
    """The rows of a form, the objective first, sorted into logarithms, sums, and the others."""

    def __init__(self, program: SmoothProgram, entries: _Entries) -> None:
        self.source, self.entries = program, entries
        outer = program.outer
        self.outer = outer
        self.split = program.compiled.objective_size
        self.count = outer.inequalities
        self.exponents, self.logs, self.owner, posynomial, monomial = entries.logarithmic()
        # the entries of φ on both sides of every row; the objective has no right side
        self.left = np.concatenate([[0], self.split + outer.left.entries]).astype(np.intp)
        self.right = np.concatenate([[0], self.split + outer.right.entries]).astype(np.intp)
        forms = outer.forms if outer.forms.size else np.zeros(outer.size, dtype=np.intp)
        self.in_logs = np.concatenate([[outer.objective_form != "plain"], forms != 0])
        self.sign = float(outer.objective[0])
        self.log_rows = self.in_logs & posynomial[self.left] & monomial[self.right]
        self.log_rows[0] = self.in_logs[0] and bool(posynomial[0] if self.sign > 0 else monomial[0])
        self.plain_rows = ~self.in_logs & entries.known[self.left] & entries.known[self.right]
        self.monomial = monomial
        within = np.arange(self.left.size) <= self.count
        within[0] = False
        self.converted = within & self.plain_rows & posynomial[self.left] & monomial[self.right]
        self.plain_rows &= ~self.converted
        self.log_rows |= self.converted
        self.weights = self._plain_weights()
        negative = np.unique(self.weights.row[self.weights.data < 0])
        self.plain_rows[negative] = False

    def _plain_weights(self) -> Any:
        """The weights of the terms in rows as they are: rows × terms."""
        terms = self.entries.weights.size
        pick = scipy.sparse.csr_array(
            (np.ones(terms), (self.entries.rows, np.arange(terms))),
            shape=(self.entries.known.size, terms),
        )
        found = self._differences(pick)
        found = scipy.sparse.coo_array(found * self.entries.weights[None, :])
        kept = self.plain_rows[found.row]
        return scipy.sparse.coo_array(
            (found.data[kept], (found.row[kept], found.col[kept])), shape=found.shape
        )

    def _differences(self, by_entry: Any) -> Any:
        """Left minus right side, of something that is given for each entry of φ."""
        left = Sparse(by_entry)[self.left]
        right = Sparse(by_entry)[self.right]
        signs, others = np.ones(self.left.size), -np.ones(self.left.size)
        signs[0], others[0] = self.sign, 0.0
        found = scipy.sparse.diags_array(signs) @ left + scipy.sparse.diags_array(others) @ right
        return Sparse(found)

    def bent_equalities(self) -> int:
        """How many equalities are not affine in u."""
        own = np.arange(self.left.size) > self.count
        has_terms = np.zeros(self.left.size, dtype=bool)
        has_terms[self.weights.row[self.weights.data != 0]] = True
        straight = self.plain_rows & ~has_terms
        straight |= self.in_logs & self.monomial[self.left] & self.monomial[self.right]
        return int((own & ~straight).sum())

    def made(self, domain: Any) -> SmoothConvex:
        rows = np.flatnonzero(self.converted)
        terms = self._first[self.right[rows]]
        return SmoothConvex(
            self._program(domain),
            self.outer.size,
            rows - 1,
            self.exponents[terms],
            self.logs[terms],
        )

    @cached_property
    def _first(self) -> IndexArray:
        """A term of each entry of φ that has one; of monomials the only one."""
        first = np.zeros(self.entries.known.size, dtype=np.intp)
        first[self.owner] = np.arange(self.owner.size)
        return first

    def _program(self, domain: Any) -> SmoothConvexProgram:
        affine, constants = self._affine()
        rows = np.arange(self.left.size) <= self.count
        equalities = np.flatnonzero(~rows)
        left, right = [affine[equalities]], [-constants[equalities]]
        for cone in domain.cones:
            left.append(Sparse(cone.matrix))
            right.append(-np.asarray(cone.offset))
        held: dict[str, Any] = {}
        if sum(each.shape[0] for each in left):
            held["equality"] = Sparse(scipy.sparse.vstack(left))
            held["equality_bound"] = np.concatenate(right)
        kept = np.flatnonzero(rows)
        return SmoothConvexProgram(
            affine[kept],
            constants[kept],
            np.asarray(domain.lower, dtype=float),
            np.asarray(domain.upper, dtype=float),
            self._log_sums(),
            self._sums(),
            self._smooth(),
            logarithms=self.source.logs,
            **held,
        )

    def _affine(self) -> tuple[Any, FloatArray]:
        """C and c: of rows as they are, and of monomials in rows between logarithms."""
        plain = self.plain_rows.astype(float)
        entries = self.entries
        matrix = scipy.sparse.diags_array(plain) @ self._differences(entries.affine)
        constants = plain * (entries.offset[self.left] - entries.offset[self.right])
        constants[0] = plain[0] * self.sign * entries.offset[0]
        # a monomial on the right, and in an equality on the left; or −log of the objective
        logs = self.log_rows.astype(float)
        logs[0] = float(self.log_rows[0] and self.sign < 0)
        for side, weights in (
            (self.right, -logs),
            (self.left, logs * (np.arange(logs.size) > self.count)),
        ):
            used = np.flatnonzero(weights)
            terms = self._first[side[used]]
            place = Sparse(
                (weights[used], (used, np.arange(used.size))), shape=(logs.size, used.size)
            )
            matrix = matrix + place @ self.exponents[terms]
            constants[used] += weights[used] * self.logs[terms]
        return Sparse(matrix), constants

    def _log_sums(self) -> LogSums | None:
        used = self.log_rows & (np.arange(self.left.size) <= self.count)
        used[0] &= self.sign > 0
        rows = np.flatnonzero(used)
        if not rows.size:
            return None
        terms, groups = _members(self.owner, self.left[rows], self.entries.known.size)
        return LogSums(self.exponents[terms], self.logs[terms], groups, rows)

    def _sums(self) -> Sums | None:
        within = (self.weights.row <= self.count) & self.plain_rows[self.weights.row]
        within &= self.weights.data != 0
        terms, columns = np.unique(self.weights.col[within], return_inverse=True)
        if not terms.size:
            return None
        places = (self.weights.row[within], columns)
        weights = Sparse((self.weights.data[within], places), shape=(self.count + 1, terms.size))
        return Sums(self.entries.exponents[terms], np.zeros(terms.size), weights)

    def _smooth(self) -> Sequence[RowFunctions]:
        """The functions of the other rows."""
        outer, passes = self.outer, _Passes(self.source.stack)
        others = np.flatnonzero(~(self.log_rows | self.plain_rows))
        others = others[others <= self.count]
        found = []
        if others.size and others[0] == 0:
            none = outer.left.between(np.zeros(0, dtype=np.intp))
            alone = replace(outer, left=none, right=none, inequalities=0, forms=outer.forms[:0])
            found.append(RowFunctions(passes, alone, np.zeros(1, dtype=np.intp)))
            others = others[1:]
        if others.size:
            own = others - 1
            rows = Outer(
                np.zeros(outer.objective.size),
                outer.left.between(own),
                outer.right.between(own),
                own.size,
                forms=outer.forms[own] if outer.forms.size else outer.forms,
            )
            found.append(RowFunctions(passes, rows, others))
        return tuple(found)


def _members(owner: IndexArray, wanted: IndexArray, size: int) -> tuple[IndexArray, IndexArray]:
    """The terms of each wanted entry, one entry after the other, and whose they are."""
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(size + 1))
    lengths = np.diff(starts)[wanted]
    ends = np.cumsum(lengths)
    first = np.repeat(starts[wanted] - (ends - lengths), lengths)
    return order[first + np.arange(int(lengths.sum()))], np.repeat(np.arange(wanted.size), lengths)


class _Passes:
    """Forward passes of a stack; the last one is kept, since many questions are about the same point."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self._last: tuple[FloatArray, Forward] | None = None

    def at(self, u: FloatArray) -> Forward:
        if self._last is None or not np.array_equal(self._last[0], u):
            self._last = u.copy(), self.stack.evaluate(u, "all")
        return self._last[1]


@dataclass(frozen=True, eq=False)
class RowFunctions:
    """Rows, or the objective where the outer part has none, as functions of u with derivatives."""

    passes: _Passes
    outer: Outer
    rows: IndexArray

    @property
    def stack(self) -> Stack:
        return self.passes.stack

    def _parts(self, values: Any) -> tuple[Any, Any]:
        split = self.stack.objective_size
        return values[:split], values[split:]

    def values(self, u: FloatArray) -> FloatArray:
        top, below = self._parts(self.passes.at(u).values)
        if not self.outer.size:
            return np.array([self.outer.objective_value(top)])
        return self.outer.row_values(below)[0]

    def jacobian(self, u: FloatArray) -> Any:
        forward = self.passes.at(u)
        top, below = self._parts(forward.values)
        slopes = self._parts(forward.jacobian())
        if not self.outer.size:
            return self.outer.objective_gradient(top, slopes[0])[None, :]
        return self.outer.row_jacobian(below, slopes[1])

    def hessian(self, u: FloatArray, weights: FloatArray) -> Any:
        forward = self.passes.at(u)
        top, below = self._parts(forward.values)
        slopes = self._parts(forward.jacobian())
        multipliers = weights if self.outer.size else np.zeros(0)
        scale = 1.0 if self.outer.size else float(weights[0])
        inner = scale * self.outer.lagrangian_weights(top, below, multipliers)
        squares = self.outer.lagrangian_squares(top, below, slopes, multipliers)
        squares = [(scale * weight, rows) for weight, rows in squares]
        found = with_squares(self.stack.hessian(u, inner), squares)
        if not isinstance(found, SparseHessian):
            return found
        if found.plus.size or found.minus.size:
            return found.toarray()
        return found.sparse
