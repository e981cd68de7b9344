"""Geometric programs that are written term by term, as sums over arrays.

Proofs, compilers and certificates look at every node and every row of a model several times, which takes
a hundred times as long as to build it in a loop. The terms that `expressions.posynomials` finds go into
arrays,

    y = exp(E log x + log c),     sides of the rows: S y,

with sparse E and S, and rows that compare a sum with a number become one row for each sense. So the model
has a handful of nodes and rows. Variables keep their order; multipliers and origins walk back.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.engines.graph_program import KnownTerms
from hcmodel.engines.terms import MONOMIAL, NUMBER, Terms
from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.layout import Layout
from hcmodel.expressions.leaves import Apply, Expression, Variable
from hcmodel.expressions.model import Minimize, Model
from hcmodel.expressions.node import Constant
from hcmodel.expressions.posynomials import Monomial, Posynomials
from hcmodel.expressions.shapes import Shape
from hcmodel.expressions.table import ATOMS
from hcmodel.records import dataclass, replace
from hcmodel.reductions.reduction import Duals, ModelReduction, Origin, same_objects
from hcmodel.solvers.algebra.marks import largest, none_is_0
from hcmodel.solvers.numerics import LARGEST_LOG

if TYPE_CHECKING:
    from hcmodel.reductions.sums.known_sums import KnownFunctions

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]

# Entries of a matrix up to which it is dense: a sparse one takes 30 µs to make and to look at.
FEW_ENTRIES = 1000


@dataclass(frozen=True, eq=False)
class Sides:
    """Sums of monomials in arrays: the terms of one side after the other, and their unknowns."""

    counts: list[int]
    """The number of terms of each side."""
    coefficients: FloatArray
    lengths: IndexArray
    """The number of factors of each term, whose places and exponents follow each other."""
    columns: IndexArray
    powers: FloatArray

    @staticmethod
    def of(sides: Sequence[list[Monomial]]) -> Sides:
        terms = [term for side in sides for term in side]
        counts, coefficients = [len(side) for side in sides], np.array([term[0] for term in terms])
        lengths = np.array([len(term[1]) for term in terms], dtype=np.intp)
        columns = np.array([column for term in terms for column in term[1]], dtype=np.intp)
        powers = np.array([power for term in terms for power in term[2]], dtype=float)
        if not none_is_0(powers):  # as in x^0
            kept = powers != 0
            owner = np.arange(lengths.size).repeat(lengths)[kept]
            lengths = np.bincount(owner, minlength=lengths.size)
            columns, powers = columns[kept], powers[kept]
        return Sides(counts, coefficients, lengths, columns, powers)

    @property
    def is_far(self) -> bool:
        """Whether a coefficient is too far from 1 to be told from its logarithm."""
        return largest(np.abs(np.log(self.coefficients))) > LARGEST_LOG

    def expression(self, logs: Expression) -> Expression:
        """S exp(E log x + log c), an entry for each side; without S where all have one term."""
        exponents = _matrix(self.powers, self.columns, self.lengths, logs.size)
        y = ATOMS["exp"](exponents @ logs + np.log(self.coefficients))
        count = self.coefficients.size
        if count == len(self.counts):
            return y
        counts = np.array(self.counts)
        return ATOMS["matmul"](_matrix(np.ones(count), np.arange(count), counts, count), y)

    def terms(self, shape: Shape) -> Terms:
        """The same as the terms of a compiled stack."""
        return Terms(
            shape,
            np.arange(len(self.counts)).repeat(self.counts),
            self.coefficients,
            np.where(self.lengths > 0, MONOMIAL, NUMBER).astype(np.int8),
            self.lengths,
            self.columns,
            self.powers,
            np.zeros(len(self.counts), dtype=bool),
        )


@dataclass(frozen=True, eq=False)
class KnownSides:
    """The terms of expressions that were made of them: nothing has to be recognised in these.

    `sides` has them by the `id` of the expression, which it keeps alive.
    """

    variables: tuple[Variable, ...]
    sides: dict[int, tuple[Expression, Sides]]

    def terms(self, roots: Sequence[Expression], layout: Layout) -> list[KnownTerms]:
        """What makes the terms of each root; None of those that are others."""
        if not same_objects(layout.variables, self.variables):
            return [None] * len(roots)
        return [self._maker(root) for root in roots]

    def _maker(self, root: Expression) -> KnownTerms:
        if isinstance(root, Constant):
            return functools.partial(Terms.constant, root.value)
        sides = self.sides.get(id(root), (root, None))[1]
        if sides is None or sides.is_far:
            return None
        return functools.partial(sides.terms, root.shape)


class Collected(ModelReduction):
    """A geometric program with its terms in arrays; any other model, and a small one, as it is."""

    def __init__(
        self,
        before: Model,
        after: Model,
        members: tuple[list[int], ...] = (),
        known: KnownSides | None = None,
    ) -> None:
        super().__init__(before, after)
        self._members = members
        """The positions before of the entries of each row after; a row that stays alone has one."""
        self._known = known

    @staticmethod
    def of(model: Model) -> Collected:
        found = model.posynomials
        if found is None:
            return Collected(model, model)
        if not found.is_large:
            return Collected(model, model, known=_as_written(model, found))
        return Collected(model, *_rewritten(model, found))

    @property
    def known(self) -> KnownFunctions | None:
        return self._known

    def duals(self, x: FloatArray, duals: Duals) -> Duals:
        if self.after is self.before:
            return duals
        rows = [[duals.rows[member] for member in each] for each in self._members]
        return replace(duals, rows=tuple(map(_joined, rows, self.after.constraints)))

    def duals_back(self, u: FloatArray, duals: Duals) -> Duals:
        if self.after is self.before:
            return duals
        found: list[FloatArray | None] = [None] * len(self.before.constraints)
        for members, dual in zip(self._members, duals.rows, strict=True):
            if dual is not None:
                for member, own in zip(members, dual.reshape(-1), strict=True):
                    found[member] = np.asarray(own)
        return replace(duals, rows=tuple(found))

    def origin(self, origin: Origin) -> Origin | None:
        if self.after is self.before:
            return origin
        return Origin(self._members[origin.position][origin.entry[0] if origin.entry else 0])


def _joined(duals: Sequence[FloatArray | None], row: Constraint) -> FloatArray | None:
    known = [float(dual) for dual in duals if dual is not None]
    return np.array(known).reshape(row.shape) if len(known) == len(duals) else None


def _as_written(model: Model, found: Posynomials) -> KnownSides:
    """The terms of the sides of a model that stays as it is."""
    pairs = zip(model.roots, found.terms, strict=True)
    sides = {id(side): (side, Sides.of([own])) for side, own in pairs if type(side) is not Constant}
    return KnownSides(model.variables, sides)


def _rewritten(model: Model, found: Posynomials) -> tuple[Model, tuple[list[int], ...], KnownSides]:
    """The model with all sides that are no leaves in arrays of sums, and the members of its rows."""
    pairs = list(zip(model.roots, found.terms, strict=True))
    terms = {id(side): own for side, own in pairs if isinstance(side, Apply)}
    groups: dict[tuple[str, bool] | int, list[int]] = {}
    for position, row in enumerate(model.constraints):
        groups.setdefault(_kind(row, position), []).append(position)
    alone = [model.constraints[each[0]] for each in groups.values() if len(each) == 1]
    sides = [model.objective.expression, *[side for row in alone for side in (row.lhs, row.rhs)]]
    single = {id(side): terms[id(side)] for side in sides if id(side) in terms}
    logs, new = _logarithms(model), dict[int, Expression]()
    known: dict[int, tuple[Expression, Sides]] = {
        id(side): (side, Sides.of([own])) for side, own in pairs if isinstance(side, Variable)
    }

    def noted(side: Expression, sides: Sides) -> Expression:
        known[id(side)] = side, sides
        return side

    for monomials in (False, True):  # in arrays of their own: what one term is must be seen
        own = {side: each for side, each in single.items() if (len(each) == 1) == monomials}
        if own:
            sums = Sides.of(list(own.values())).expression(logs)
            for place, (side, each) in enumerate(own.items()):
                new[side] = noted(sums[place], Sides.of([each]))

    def side_of(rows: list[Constraint], side: str) -> Expression:
        own = [getattr(row, side) for row in rows]
        if isinstance(own[0], Constant):
            return Constant(np.array([each.number for each in own]))
        sides = Sides.of([terms[id(each)] for each in own])
        return noted(sides.expression(logs), sides)

    def row_of(members: list[int]) -> Constraint:
        rows = [model.constraints[member] for member in members]
        first, last = (rows[i].name or f"c{members[i] + 1}" for i in (0, -1))
        if len(rows) == 1:
            row = rows[0].like(new.get(id(rows[0].lhs)), new.get(id(rows[0].rhs)))
            row.name = first  # as it is called before
            return row
        name = f"{first} … {last} ({len(rows)} rows)"
        return Constraint(side_of(rows, "lhs"), rows[0].sense, side_of(rows, "rhs"), name)

    objective = model.objective.expression
    after = replace(
        model,
        objective=Minimize(new.get(id(objective), objective)),
        constraints=tuple([row_of(each) for each in groups.values()]),
    )
    return after, tuple(groups.values()), KnownSides(model.variables, known)


def _kind(row: Constraint, position: int) -> tuple[str, bool] | int:
    """The sense of a row between a sum and a number, and which side is which; the position of others."""
    left, right = row.lhs, row.rhs
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Apply) and isinstance(other, Constant):
            return row.sense, one is left
    return position


def _logarithms(model: Model) -> Expression:
    """log x, all unknowns in one vector."""
    log, reshape, stack = (ATOMS[name] for name in ("log", "reshape", "hstack"))
    logs = [log(each if each.ndim < 2 else reshape(each, (each.size,))) for each in model.variables]
    return logs[0] if len(logs) == 1 and logs[0].ndim == 1 else stack(logs)


def _matrix(
    values: FloatArray, columns: IndexArray, lengths: IndexArray, width: int
) -> FloatArray | scipy.sparse.csr_array:
    """A matrix whose rows have so many values each; those that stand in one place are added."""
    count = lengths.size
    if count * width <= FEW_ENTRIES:
        places = np.arange(count).repeat(lengths) * width + columns
        found = np.bincount(places, weights=values, minlength=count * width)
        return found.reshape(count, width)
    starts = np.zeros(count + 1, dtype=np.intp)
    lengths.cumsum(out=starts[1:])
    return scipy.sparse.csr_array((values, columns, starts), shape=(count, width))
