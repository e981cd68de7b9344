"""The canonical problem: the model without names.

    minimise  objective·φ(x)   s.t.   left·φ(x) <= right·φ(x)  or  ==,   x in X

`canonicalize` lists the roots of φ, which an engine compiles once, and makes the static outer part, the
domain and the book-keeping that walks rows back to the constraints as written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.layout import Layout
from hcmodel.expressions.leaves import Constraint, Expression, Parameter, Variable
from hcmodel.expressions.variable_sets import make_domain
from hcmodel.reductions.steepness import steep_entries
from hcmodel.reductions.triangle import equates_symmetric, has_symmetric_value, square_parameters
from hcmodel.solvers.outer import Outer
from hcmodel.solvers.sets.domain import Domain

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class RowBlock:
    """Where the entries of a constraint stand among the rows.

    `entries` says which entry, counted in C order, each of the rows is. They are all of them, in order,
    but for an equality between symmetric matrices, which keeps the upper triangle.
    """

    constraint: Constraint
    name: str
    rows: slice
    position: int
    entries: NDArray[np.intp]

    def dual(self, multipliers: FloatArray) -> FloatArray:
        """The multiplier of the constraint as written, from those of all rows.

        A row that stands for two entries leaves half of its multiplier to each, so that the inner
        product with lhs − rhs is the same.
        """
        own = multipliers[self.rows]
        if self.entries.size == self.constraint.size:
            return own.reshape(self.constraint.shape)
        upper = np.zeros(self.constraint.shape)
        upper.reshape(-1)[self.entries] = own
        return np.asarray(0.5 * (upper + upper.T))


@dataclass(frozen=True)
class CanonicalProblem:
    """`roots[0]` is the objective; the others are the sides of the constraints.

    `symmetric` tells of each square parameter in an equality of matrices whether its data were
    symmetric, since rows were left out on the strength of that.
    """

    layout: Layout
    roots: tuple[Expression, ...]
    outer: Outer
    domain: Domain
    blocks: tuple[RowBlock, ...]
    sign: float
    symmetric: tuple[tuple[Parameter, bool], ...] = ()

    def is_current(self) -> bool:
        """Whether the rows still fit the parameters' values; if not, canonicalize again.

        The roots of φ stay the same, so nothing has to be compiled again.
        """
        return all(has_symmetric_value(parameter) == was for parameter, was in self.symmetric)

    def row_block(self, row: int) -> tuple[RowBlock, tuple[int, ...]]:
        """The block that a row belongs to, and the entry of the constraint."""
        for block in self.blocks:
            if block.rows.start <= row < block.rows.stop:
                place = block.entries[row - block.rows.start]
                entry = np.unravel_index(place, block.constraint.shape)
                return block, tuple(int(i) for i in entry)
        raise IndexError(row)

    def row_place(self, row: int) -> tuple[str, tuple[int, ...]]:
        """The name of the constraint that a row belongs to, and the entry of it."""
        block, entry = self.row_block(row)
        return block.name, entry


def canonicalize(
    objective: Expression, sign: float, constraints: Sequence[Constraint]
) -> CanonicalProblem:
    """`sign` is 1 to minimise and −1 to maximise; inequality rows come first."""
    sides = [side for constraint in constraints for side in (constraint.lhs, constraint.rhs)]
    order = topological_order([objective, *sides])
    variables = [node for node in order if isinstance(node, Variable)]
    roots = (objective, *sides)
    offsets = np.cumsum([0, *[side.size for side in sides]])
    entries = int(offsets[-1])
    lefts: list[NDArray[np.intp]] = []
    rights: list[NDArray[np.intp]] = []
    blocks: list[RowBlock] = []
    start = 0
    taken = {constraint.name for constraint in constraints}
    ordered = sorted(range(len(constraints)), key=lambda i: constraints[i].sense == "==")
    for position in ordered:
        constraint = constraints[position]
        kept = _kept_entries(constraint)
        left = _entries(constraint.lhs, int(offsets[2 * position]), constraint.shape)[kept]
        right = _entries(constraint.rhs, int(offsets[2 * position + 1]), constraint.shape)[kept]
        if constraint.sense == ">=":
            left, right = right, left
        lefts.append(left)
        rights.append(right)
        name = constraint.name or _automatic_name(position, taken)
        blocks.append(RowBlock(constraint, name, slice(start, start + kept.size), position, kept))
        start += kept.size
    outer = Outer(
        objective=np.array([sign]),
        left=_selection(lefts, entries),
        right=_selection(rights, entries),
        inequalities=sum(c.size for c in constraints if c.sense != "=="),
    )
    deciding = dict.fromkeys(p for constraint in constraints for p in square_parameters(constraint))
    return CanonicalProblem(
        Layout(variables),
        roots,
        outer,
        make_domain(variables, steep_entries(roots, variables)),
        tuple(blocks),
        sign,
        tuple((parameter, has_symmetric_value(parameter)) for parameter in deciding),
    )


def _automatic_name(position: int, taken: set[str | None]) -> str:
    """c1, c2, … by position, with a stroke where the user has taken that name."""
    name = f"c{position + 1}"
    while name in taken:
        name += "'"
    return name


def _kept_entries(constraint: Constraint) -> NDArray[np.intp]:
    """The entries that become rows: all, or the upper triangle where the lower one repeats it."""
    numbers = np.arange(constraint.size)
    if equates_symmetric(constraint):
        return numbers.reshape(constraint.shape)[np.triu_indices(constraint.shape[0])]
    return numbers


def _entries(side: Expression, offset: int, shape: tuple[int, ...]) -> NDArray[np.intp]:
    """Indices into the constraint part of φ of a side broadcast to the constraint's shape."""
    own = offset + np.arange(side.size).reshape(side.shape)
    return np.broadcast_to(own, shape).reshape(-1)


def _selection(indices: list[NDArray[np.intp]], width: int) -> scipy.sparse.csr_array:
    columns = np.concatenate(indices) if indices else np.zeros(0, dtype=int)
    rows = np.arange(columns.size)
    return scipy.sparse.csr_array(
        (np.ones(columns.size), (rows, columns)), shape=(columns.size, width)
    )
