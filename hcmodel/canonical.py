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

from hcmodel.errors import ModelError
from hcmodel.expression import Constraint, Expression, Variable
from hcmodel.graph import topological_order
from hcmodel.layout import Layout
from hcmodel.solvers.cones import Simplices, SymmetricMatrices
from hcmodel.solvers.domain import Box, Domain, Product
from hcmodel.solvers.outer import Outer

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class RowBlock:
    """Where the entries of a constraint, in C order, stand among the rows."""

    constraint: Constraint
    name: str
    rows: slice
    position: int


@dataclass(frozen=True)
class CanonicalProblem:
    """`roots[0]` is the objective; the others are the sides of the constraints."""

    layout: Layout
    roots: tuple[Expression, ...]
    outer: Outer
    domain: Domain
    blocks: tuple[RowBlock, ...]
    sign: float

    def row_place(self, row: int) -> tuple[str, tuple[int, ...]]:
        """The name of the constraint that a row belongs to, and the entry of it."""
        for block in self.blocks:
            if block.rows.start <= row < block.rows.stop:
                entry = np.unravel_index(row - block.rows.start, block.constraint.shape)
                return block.name, tuple(int(i) for i in entry)
        raise IndexError(row)


def canonicalize(
    objective: Expression, sign: float, constraints: Sequence[Constraint]
) -> CanonicalProblem:
    """`sign` is 1 to minimise and −1 to maximise; inequality rows come first."""
    sides = [side for constraint in constraints for side in (constraint.lhs, constraint.rhs)]
    order = topological_order([objective, *sides])
    variables = [node for node in order if isinstance(node, Variable)]
    _check_names(variables, constraints)
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
        left = _entries(constraint.lhs, int(offsets[2 * position]), constraint.shape)
        right = _entries(constraint.rhs, int(offsets[2 * position + 1]), constraint.shape)
        if constraint.sense == ">=":
            left, right = right, left
        lefts.append(left)
        rights.append(right)
        name = constraint.name or _automatic_name(position, taken)
        blocks.append(RowBlock(constraint, name, slice(start, start + left.size), position))
        start += left.size
    outer = Outer(
        objective=np.array([sign]),
        left=_selection(lefts, entries),
        right=_selection(rights, entries),
        inequalities=sum(c.size for c in constraints if c.sense != "=="),
    )
    layout = Layout(variables)
    return CanonicalProblem(layout, roots, outer, _domain(variables), tuple(blocks), sign)


def _automatic_name(position: int, taken: set[str | None]) -> str:
    """c1, c2, … by position, with a stroke where the user has taken that name."""
    name = f"c{position + 1}"
    while name in taken:
        name += "'"
    return name


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


def _domain(variables: Sequence[Variable]) -> Domain:
    """The product of the variables' domains; neighbouring boxes are one box."""
    factors: list[Domain] = []
    for variable in variables:
        factor = _factor(variable)
        last = factors[-1] if factors else None
        if isinstance(factor, Box) and isinstance(last, Box):
            factors[-1] = Box(
                np.concatenate([last.lower, factor.lower]),
                np.concatenate([last.upper, factor.upper]),
                np.concatenate([last.positive, factor.positive]),
            )
        else:
            factors.append(factor)
    return factors[0] if len(factors) == 1 else Product(factors)


def _factor(variable: Variable) -> Domain:
    low, high = np.ravel(variable.lower), np.ravel(variable.upper)
    kind = variable.domain_kind
    if kind == "box":
        return Box(low, high, (low > 0) | variable.pos)
    if kind == "simplex":
        # The simplex itself bounds its entries by 0 and 1; tighter bounds would need rows of their own.
        if (low > 0).any() or (high < 1).any():
            raise ModelError(
                f"variable '{variable.name}' is a simplex and has bounds of its own; write them as "
                "constraints"
            )
        length = variable.shape[-1]
        return Simplices(variable.size // length, length)
    if np.isfinite(low).any() or np.isfinite(high).any():
        raise ModelError(
            f"variable '{variable.name}' is {kind} and has bounds on its entries; write them as "
            "constraints"
        )
    smallest, largest = variable.eigenvalue_bounds or (-np.inf, np.inf)
    return SymmetricMatrices(variable.shape[0], smallest, largest)


def _check_names(variables: Sequence[Variable], constraints: Sequence[Constraint]) -> None:
    if not variables:
        raise ModelError("the problem has no variables; nothing is left to choose")
    for kind, names in (
        ("variables", [variable.name for variable in variables]),
        ("constraints", [c.name for c in constraints if c.name is not None]),
    ):
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise ModelError(f"two {kind} are named '{name}'; give each its own name")
            seen.add(name)
