"""Matrix inequalities as equalities with a positive semidefinite slack.

    P >> Q    becomes    P == Q + S,   or P − Q == S where Q is constant,   S positive semidefinite

S is a variable, so that methods see a smooth equality and a set that they know. The multiplier of
`P >> Q` is the semidefinite matrix Z with the Lagrangian F − ⟨Z, P − Q⟩; that of the equality is −Z.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.errors import ModelError
from hcmodel.expressions.constraint import MATRIX_SENSES, Constraint
from hcmodel.expressions.graph import topological_order, values_at
from hcmodel.expressions.leaves import Constant, Expression, Parameter, Variable
from hcmodel.expressions.model import Model
from hcmodel.expressions.sparse_data import any_nonzero
from hcmodel.records import replace
from hcmodel.reductions.reduction import Duals, ModelReduction, Origin

FloatArray = NDArray[np.float64]


def check_symmetric(constraints: tuple[Constraint, ...]) -> None:
    """Raise where a matrix inequality has a side that is not known to be symmetric."""
    for constraint in constraints:
        if constraint.sense in MATRIX_SENSES and not has_symmetric_sides(constraint):
            raise ModelError(
                f"the matrix inequality {constraint} needs symmetric matrices on both sides, and their "
                "difference is not known to be symmetric: declare the variables with symmetric=True "
                "or PSD=True, or write (A + A.T) / 2 in place of A"
            )


def has_symmetric_sides(constraint: Constraint) -> bool:
    """Whether the difference is symmetric; parameters without a value are taken to be so."""
    nodes = topological_order((constraint.lhs, constraint.rhs))
    if any(isinstance(node, Parameter) and node.value is None for node in nodes):
        return True
    from hcmodel.facts.noncommutative import difference_is_symmetric

    return difference_is_symmetric(constraint.lhs, constraint.rhs, constraint.shape)


class Semidefinite(ModelReduction):
    """Matrix inequalities with slacks. Points get the semidefinite part of the difference as slack."""

    def __init__(self, before: Model, after: Model, slacks: dict[int, Variable]) -> None:
        super().__init__(before, after)
        self._slacks = slacks

    @staticmethod
    def of(model: Model) -> Semidefinite:
        slacks: dict[int, Variable] = {}
        constraints = list(model.constraints)
        for position, constraint in enumerate(constraints):
            if not constraint.is_semidefinite:
                continue
            name = constraint.name or f"c{position + 1}"
            slack = Variable(constraint.shape, name=f"slack·{name}", PSD=True)
            slacks[position] = slack
            constraints[position] = constraint.like(*_equation(constraint, slack), sense="==")
        if not slacks:
            return Semidefinite(model, model, slacks)
        check_symmetric(model.constraints)
        hidden = None if model.hidden is None else (*model.hidden, *slacks.values())
        after = replace(model, constraints=tuple(constraints), hidden=hidden)
        return Semidefinite(model, after, slacks)

    @property
    def slacks(self) -> frozenset[Variable]:
        return frozenset(self._slacks.values())

    def refresh(self) -> bool:
        """Symmetry rests on data; an error where they are not symmetric."""
        check_symmetric(self.before.constraints)
        return True

    def point(self, x: FloatArray) -> FloatArray:
        u = super().point(x)
        if self._slacks:
            layout = self.after.layout
            sides = [difference(self.before.constraints[position]) for position in self._slacks]
            values = values_at(self.before.layout, x, sides)
            for slack, value in zip(self._slacks.values(), values, strict=True):
                if np.isfinite(value).all():
                    stored = slack.set.store((value + value.T) / 2)
                    u[layout.slice(slack)] = slack.set.domain().project(stored)
        return u

    def duals(self, x: FloatArray, duals: Duals) -> Duals:
        return self._negated(duals)

    def duals_back(self, u: FloatArray, duals: Duals) -> Duals:
        return self._negated(duals)

    def _negated(self, duals: Duals) -> Duals:
        if not self._slacks:
            return duals
        rows = tuple(
            -dual if dual is not None and position in self._slacks else dual
            for position, dual in enumerate(duals.rows)
        )
        return replace(duals, rows=rows)

    def origin(self, origin: Origin) -> Origin | None:
        """A row of an entry comes from the matrix inequality as a whole."""
        return Origin(origin.position) if origin.position in self._slacks else origin


def difference(constraint: Constraint) -> Expression:
    """What has to be semidefinite."""
    larger, smaller = _sides(constraint)
    if isinstance(smaller, Constant) and not any_nonzero(smaller.value):
        return larger
    if isinstance(larger, Constant) and not any_nonzero(larger.value):
        return -smaller
    return larger - smaller


def _equation(constraint: Constraint, slack: Variable) -> tuple[Expression, Expression]:
    """The sides of the equation that stands for the inequality.

    Where both sides have variables, both stay: a violation is measured by their size, and at a solution
    their difference is often next to 0. What is compared with numbers may be a bound of eigenvalues.
    """
    larger, smaller = _sides(constraint)
    if larger.variables() and smaller.variables():
        return larger, smaller + slack
    return difference(constraint), slack


def _sides(constraint: Constraint) -> tuple[Expression, Expression]:
    """The larger and the smaller side."""
    sides = constraint.lhs, constraint.rhs
    return sides[::-1] if constraint.sense == "<<" else sides
