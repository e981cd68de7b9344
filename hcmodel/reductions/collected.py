"""Geometric programs that are written term by term, as sums over arrays.

Proofs, compilers and certificates look at every node and every row of a model several times, which takes
a hundred times as long as to build it in a loop. The terms that `expressions.posynomials` finds go into
arrays,

    y = exp(E log x + log c),     sides of the rows: S y,

with sparse E and S, and rows that compare a sum with a number become one row for each sense. So the model
has a handful of nodes and rows. Variables keep their order; multipliers and origins walk back.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.leaves import Apply, Expression
from hcmodel.expressions.model import Minimize, Model
from hcmodel.expressions.node import Constant
from hcmodel.expressions.posynomials import Monomial
from hcmodel.expressions.table import ATOMS
from hcmodel.records import replace
from hcmodel.reductions.reduction import Duals, ModelReduction, Origin

FloatArray = NDArray[np.float64]


class Collected(ModelReduction):
    """A geometric program with its terms in arrays; any other model, and a small one, as it is."""

    def __init__(self, before: Model, after: Model, members: tuple[list[int], ...] = ()) -> None:
        super().__init__(before, after)
        self._members = members
        """The positions before of the entries of each row after; a row that stays alone has one."""

    @staticmethod
    def of(model: Model) -> Collected:
        if model.posynomials is None:
            return Collected(model, model)
        return Collected(model, *_rewritten(model))

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


def _rewritten(model: Model) -> tuple[Model, tuple[list[int], ...]]:
    """The model with all sides that are no leaves in arrays of sums, and the members of its rows."""
    assert model.posynomials is not None
    pairs = zip(model.roots, model.posynomials.terms, strict=True)
    terms = {id(side): own for side, own in pairs if isinstance(side, Apply)}
    groups: dict[tuple[str, bool] | int, list[int]] = {}
    for position, row in enumerate(model.constraints):
        groups.setdefault(_kind(row, position), []).append(position)
    alone = [model.constraints[each[0]] for each in groups.values() if len(each) == 1]
    sides = [model.objective.expression, *[side for row in alone for side in (row.lhs, row.rhs)]]
    single = {id(side): terms[id(side)] for side in sides if id(side) in terms}
    logs, new = _logarithms(model), dict[int, Expression]()
    for monomials in (False, True):  # in arrays of their own: what one term is must be seen
        own = {side: each for side, each in single.items() if (len(each) == 1) == monomials}
        if own:
            sums = _sums(logs, list(own.values()))
            new.update({side: sums[place] for place, side in enumerate(own)})

    def side_of(rows: list[Constraint], side: str) -> Expression:
        own = [getattr(row, side) for row in rows]
        if isinstance(own[0], Constant):
            return Constant(np.array([each.number for each in own]))
        return _sums(logs, [terms[id(each)] for each in own])

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
    return after, tuple(groups.values())


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


def _sums(logs: Expression, sides: Sequence[list[Monomial]]) -> Expression:
    """S exp(E log x + log c), an entry for each of `sides`; without S where all have one term."""
    terms = [term for side in sides for term in side]
    exponents = _compressed(
        np.array([power for term in terms for power in term[2]], dtype=float),
        np.array([column for term in terms for column in term[1]], dtype=np.intp),
        [len(term[1]) for term in terms],
        logs.size,
    )
    y = ATOMS["exp"](exponents @ logs + np.log([term[0] for term in terms]))
    count = len(terms)
    if count == len(sides):
        return y
    sums = _compressed(np.ones(count), np.arange(count), [len(each) for each in sides], count)
    return ATOMS["matmul"](sums, y)


def _compressed(
    data: np.ndarray, columns: np.ndarray, lengths: Sequence[int], width: int
) -> scipy.sparse.csr_array:
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return scipy.sparse.csr_array((data, columns, starts), shape=(len(lengths), width))
