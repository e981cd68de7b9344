"""Rows with kinks as several rows, one for each piece, without new variables.

    abs(p₁ − p₂) <= c    becomes    p₁ − p₂ <= c,   p₂ − p₁ <= c

A variable that bounds the kink (`lift`) would do as well where all is linear. Maps look at each row by
itself: a row between two prices is one between two demands, and one between prices and a bound is not.
A kink is split where only larger values of it make the row worse (of min and minimum: smaller ones), so
that the row holds just where it holds for each piece. The multiplier of the row is the sum of those of
its pieces.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.algebra import Pieces
from hcmodel.atoms.rules import Dependence
from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.exchanged import follow
from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Apply, Expression, Variable
from hcmodel.expressions.model import Model
from hcmodel.facts.node_facts import Facts
from hcmodel.records import replace
from hcmodel.reductions.lift import SIDES, directions, is_lifted, pieces_of
from hcmodel.reductions.reduction import Duals, ModelReduction, Origin

FloatArray = NDArray[np.float64]

# Rows that one row may become. Kinks of two pieces up to four, or the spread of five prices.
MOST_ROWS = 20


class Split(ModelReduction):
    """The model with rows that have kinks split into their pieces; multipliers add up."""

    def __init__(self, before: Model, after: Model, positions: tuple[int, ...]) -> None:
        super().__init__(before, after)
        self._positions = positions
        """For each row after, the position of the one before that it is a piece of."""

    @staticmethod
    def of(model: Model) -> Split:
        facts, rows, positions = Facts(), list[Constraint](), list[int]()
        for position, constraint in enumerate(model.constraints):
            pieces = _split(constraint, facts)
            for each in pieces:
                if len(pieces) > 1:
                    each.name = constraint.name or f"c{position + 1}"  # as it is called before
                rows.append(each)
                positions.append(position)
        if len(rows) == len(model.constraints):
            return Split(model, model, tuple(positions))
        return Split(model, replace(model, constraints=tuple(rows)), tuple(positions))

    def refresh(self) -> bool:
        """Which kinks are split rests on signs, hence on data."""
        return Split.of(self.before)._positions == self._positions

    def duals(self, x: FloatArray, duals: Duals) -> Duals:
        """How a multiplier is shared among pieces is not known."""
        rows = [
            duals.rows[position] if self._positions.count(position) == 1 else None
            for position in self._positions
        ]
        return replace(duals, rows=tuple(rows))

    def duals_back(self, u: FloatArray, duals: Duals) -> Duals:
        found: list[FloatArray | None] = [None] * len(self.before.constraints)
        for position, dual in zip(self._positions, duals.rows, strict=True):
            if dual is not None:
                before = found[position]
                found[position] = dual if before is None else before + dual
        return replace(duals, rows=tuple(found))

    def origin(self, origin: Origin) -> Origin | None:
        return origin._replace(position=self._positions[origin.position])


def _split(constraint: Constraint, facts: Facts) -> list[Constraint]:
    """The pieces of a row; the row itself where it has no kink that can be split, or too many."""
    if constraint.is_semidefinite or constraint.entries is not None or constraint.sense == "==":
        return [constraint]
    sides = (constraint.lhs, constraint.rhs)
    order = topological_order(sides)
    known = {id(node): found for node in order if (found := pieces_of(node)) is not None}
    if not known:
        return [constraint]
    for side in sides:
        facts.add(side)
    bits = directions(order, list(zip(sides, SIDES[constraint.sense], strict=True)), facts, known)
    kinks: dict[int, list[Expression]] = {}
    for node in order:
        if id(node) in known and is_lifted(node, known[id(node)], bits[id(node)]):
            alternatives = _alternatives(node, known[id(node)])
            if not alternatives or not _is_entrywise(node, order, constraint):
                return [constraint]
            kinks[id(node)] = alternatives
    if not kinks or math.prod(len(each) for each in kinks.values()) > MOST_ROWS:
        return [constraint]
    return [
        _chosen(constraint, order, dict(zip(kinks, choice, strict=True)))
        for choice in itertools.product(*kinks.values())
    ]


def _alternatives(node: Expression, pieces: Pieces) -> list[Expression]:
    """Expressions the largest of which, or the smallest, is a kink; none where it is a sum of kinks."""
    if pieces.semidefinite is not None or pieces.bounded is not None or pieces.value is not None:
        return []
    assert isinstance(node, Apply)
    t = Variable(node.shape, name="t")
    found = list[Expression]()
    for smaller, larger in pieces.rows(node.args, t):
        other, bound = (smaller, larger) if pieces.above else (larger, smaller)
        if _holds(other, t) or not _holds(bound, t):
            return []
        if other.shape == node.shape:
            found.append(other)
        elif node.shape == ():
            found += [other[place] for place in np.ndindex(other.shape)]
        else:
            return []
    return found


def _holds(expression: Expression, variable: Variable) -> bool:
    return any(each is variable for each in expression.variables())


def _is_entrywise(node: Expression, order: Sequence[Expression], row: Constraint) -> bool:
    """Whether each entry of a row has one entry of a kink: of a sum of kinks each has its own pieces."""
    if node.shape == ():
        return True
    above = {id(node)}
    for each in order:
        if isinstance(each, Apply) and any(id(argument) in above for argument in each.args):
            shapes = [argument.shape for argument in each.args]
            alike = each.atom.summed or (
                each.atom.dependence(shapes, dict(each.params)) is Dependence.ELEMENTWISE
            )
            if not alike or each.shape != node.shape:
                return False
            above.add(id(each))
    return row.shape == node.shape


def _chosen(
    constraint: Constraint, order: Sequence[Expression], choice: dict[int, Expression]
) -> Constraint:
    """The row with an alternative in the place of each kink; one may stand inside of another."""
    new = dict[int, Expression]()
    for node in order:
        if id(node) in choice:
            inside = topological_order([choice[id(node)]])
            follow(inside, new)
            new[id(node)] = new.get(id(choice[id(node)]), choice[id(node)])
        else:
            follow([node], new)
    sides = (constraint.lhs, constraint.rhs)
    left, right = (new.get(id(side), side) for side in sides)
    return constraint.like(left, right)
