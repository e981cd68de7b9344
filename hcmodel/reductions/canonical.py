"""The canonical problem: the model without names.

    minimise  objective·φ(x)   s.t.   left·φ(x) <= right·φ(x)  or  ==,   x in X

`canonicalize` lists the roots of φ, which an engine compiles once, and makes the static outer part, the
domain, and the places of each constraint's rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.layout import Layout
from hcmodel.expressions.leaves import Expression
from hcmodel.expressions.model import Model
from hcmodel.expressions.variable_sets import VariableSet, make_domain
from hcmodel.records import dataclass, replace
from hcmodel.reductions.reduction import Duals, Origin, same_objects
from hcmodel.reductions.sign import signed_objective
from hcmodel.reductions.steepness import entries_at_0
from hcmodel.solvers.algebra.marks import same
from hcmodel.solvers.outer import Outer, Side, form_numbers
from hcmodel.solvers.sets.domain import Domain

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class RowBlock:
    """Where the rows of a constraint stand among all rows; `entries` says which entry each is."""

    constraint: Constraint
    position: int
    rows: slice
    entries: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class CanonicalProblem:
    """`roots[0]` is the objective; the others are the sides of the constraints."""

    layout: Layout
    roots: tuple[Expression, ...]
    outer: Outer
    domain: Domain
    blocks: tuple[RowBlock, ...]
    sets: tuple[VariableSet, ...]
    """The sets of the variables, of which `domain` is made."""

    def fits(self, model: Model) -> bool:
        """Whether the model has the same functions and rows, whatever the forms of its rows are."""
        if not same_objects(self.roots, listed_roots(model)):
            return False
        if not same_objects(self.sets, [variable.set for variable in model.variables]):
            return False
        blocks = sorted(self.blocks, key=lambda block: block.position)
        return all(
            block.constraint.sense == each.sense and same(block.entries, each.rows)
            for block, each in zip(blocks, model.constraints, strict=True)
        )

    def in_forms_of(self, model: Model) -> CanonicalProblem:
        """The same problem with the forms of rows and objective that the model asks for."""
        blocks = tuple(
            replace(block, constraint=model.constraints[block.position]) for block in self.blocks
        )
        outer = replace(self.outer, objective_form=model.objective_form, forms=_forms(blocks))
        return replace(self, outer=outer, blocks=blocks)

    def origin(self, row: int) -> Origin:
        """The constraint and the entry of it that a row stands for."""
        for block in self.blocks:
            if block.rows.start <= row < block.rows.stop:
                place = block.entries[row - block.rows.start]
                entry = np.unravel_index(place, block.constraint.shape)
                return Origin(block.position, tuple(int(i) for i in entry))
        raise IndexError(row)

    def origins(self) -> list[Origin]:
        """The same of all rows."""
        found: list[Origin | None] = [None] * self.outer.size
        for block in self.blocks:
            shape, places = block.constraint.shape, [()] * block.entries.size
            if shape:
                index = np.unravel_index(block.entries, shape)
                places = list(zip(*[each.tolist() for each in index], strict=True))
            pairs = zip(itertools.repeat(block.position), places, strict=False)
            found[block.rows] = [tuple.__new__(Origin, pair) for pair in pairs]  # in half the time
        return [each for each in found if each is not None]

    def duals(self, multipliers: FloatArray) -> Duals:
        """Multipliers by constraint from those of the rows; entries without a row have 0."""
        found: list[FloatArray | None] = [None] * len(self.blocks)
        for block in self.blocks:
            dual = np.zeros(block.constraint.shape)
            dual.reshape(-1)[block.entries] = multipliers[block.rows]
            found[block.position] = dual
        return Duals(tuple(found))

    def multipliers(self, duals: Duals) -> FloatArray:
        """Multipliers of the rows from those by constraint; 0 where these are unknown."""
        result = np.zeros(self.outer.size)
        for block in self.blocks:
            dual = duals.rows[block.position]
            if dual is not None and dual.size == block.constraint.size:
                result[block.rows] = dual.reshape(-1)[block.entries]
        return result


def canonicalize(model: Model) -> CanonicalProblem:
    """The canonical problem of a minimisation; inequality rows come first."""
    constraints = model.constraints
    _, sign = signed_objective(model)
    roots = listed_roots(model)
    sides = roots[1:]
    offsets = list(itertools.accumulate([side.size for side in sides], initial=0))
    lefts: list[NDArray[np.intp]] = []
    rights: list[NDArray[np.intp]] = []
    blocks: list[RowBlock] = []
    start = 0
    for position in sorted(range(len(constraints)), key=lambda i: constraints[i].sense == "=="):
        constraint = constraints[position]
        assert not constraint.is_semidefinite  # `Semidefinite` comes first
        kept = constraint.rows
        left = _entries(constraint.lhs, offsets[2 * position], constraint.shape)[kept]
        right = _entries(constraint.rhs, offsets[2 * position + 1], constraint.shape)[kept]
        if constraint.sense == ">=":
            left, right = right, left
        lefts.append(left)
        rights.append(right)
        blocks.append(RowBlock(constraint, position, slice(start, start + kept.size), kept))
        start += kept.size
    outer = Outer(
        objective=np.array([sign]),
        left=_chosen(lefts, offsets[-1]),
        right=_chosen(rights, offsets[-1]),
        inequalities=sum(c.rows.size for c in constraints if c.sense != "=="),
        objective_form=model.objective_form,
        forms=_forms(blocks),
    )
    bounded, steep = entries_at_0(model)
    domain = make_domain(model.variables, steep, bounded)
    sets = tuple(variable.set for variable in model.variables)
    return CanonicalProblem(model.layout, roots, outer, domain, tuple(blocks), sets)


def listed_roots(model: Model) -> tuple[Expression, ...]:
    """The roots of φ: the objective without a minus sign, then the sides of the constraints."""
    return (signed_objective(model)[0], *model.roots[1:])


def _forms(blocks: Sequence[RowBlock]) -> NDArray[np.intp]:
    numbers = form_numbers([block.constraint.form for block in blocks])
    return numbers.repeat([block.entries.size for block in blocks])


def _entries(side: Expression, offset: int, shape: tuple[int, ...]) -> NDArray[np.intp]:
    """Indices into the constraint part of φ of a side broadcast to the constraint's shape."""
    if not shape:
        return np.array([offset])
    own = np.arange(offset, offset + side.size)
    if side.shape == shape:
        return own
    return np.broadcast_to(own.reshape(side.shape), shape).reshape(-1)


def _chosen(indices: Sequence[NDArray[np.intp]], width: int) -> Side:
    """One entry of φ in each row."""
    return Side(width, np.concatenate(indices) if indices else np.zeros(0, dtype=np.intp))
