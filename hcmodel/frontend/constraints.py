"""Constraints from their statements: single ones, chains, and families over their index sets."""

from __future__ import annotations

import math

import numpy as np

from hcmodel.expressions.constraint import MATRIX_SENSES
from hcmodel.expressions.leaves import Constraint, as_expression
from hcmodel.frontend import comprehension, subscripts
from hcmodel.frontend.expressions import Evaluator, check_shapes
from hcmodel.frontend.mistakes import Mistake
from hcmodel.frontend.values import (
    Axis,
    Dimension,
    Value,
    aligned,
    check_entries,
    lengths,
    shown,
    spread,
)
from hcmodel.grammar import Span, syntax
from hcmodel.records import dataclass
from hcmodel.reductions.semidefinite import has_symmetric_sides

MAX_ROWS = 2_000_000


@dataclass(frozen=True)
class Family:
    """An indexed constraint: entry `members[r]` of the index ranges stands in row r.

    `members` is None for a whole rectangle of ranges, whose rows are then in C order. A range is
    None where it depends on another index.
    """

    indices: tuple[str, ...]
    ranges: tuple[Dimension | None, ...]
    members: np.ndarray | None


class Rows:
    """The constraints of a model, statement by statement."""

    def __init__(self) -> None:
        self.constraints: list[Constraint] = []
        self.families: dict[str, Family] = {}
        self._names: set[str] = set()
        self._statements = 0
        self._count = 0

    def take(self, evaluator: Evaluator, statement: syntax.Constraint) -> None:
        """Add the constraints of a statement: one, or the two of a chain."""
        self._statements += 1
        name = None if statement.name is None else statement.name.identifier
        opened = comprehension.open_generators(
            evaluator, statement.generators, statement.condition, join_all=True
        )
        comparison = statement.comparison
        sides = [opened.evaluator.evaluate(operand) for operand in comparison.operands]
        chain = len(sides) == 3
        if name is None and (chain or len(self.constraints) + 1 != self._statements):
            name = f"c{self._statements}"  # what reports would number otherwise by position
        for position, operator in enumerate(comparison.operators):
            left, right = sides[position : position + 2]
            span = comparison.operands[position].span.to(comparison.operands[position + 1].span)
            check_shapes(operator, left, right, span)
            if left.is_number and right.is_number:
                raise Mistake("this constraint has no variable", span)
            full = name
            if chain:
                lower_first = operator in ("<=", "<<")
                full = f"{name}.{'lower' if (position == 0) == lower_first else 'upper'}"
            self._add(full, operator, left, right, opened.axes, span)
        if name is not None and statement.generators:
            self.families[name] = _family(evaluator, statement, opened)

    def _add(
        self,
        name: str | None,
        operator: str,
        left: Value,
        right: Value,
        axes: tuple[Axis, ...],
        span: Span,
    ) -> None:
        if name is not None:
            if name in self._names:
                raise Mistake(f"two constraints are named `{name}`", span, "give each its own name")
            self._names.add(name)
        if operator in MATRIX_SENSES:
            _check_matrices(operator, left, right, axes, span)
        own = np.broadcast_shapes(left.shape, right.shape)
        shape = (*lengths(axes), *own)
        check_entries(shape)
        if 0 in shape:
            return
        self._count += math.prod(shape)
        if self._count > MAX_ROWS:
            raise Mistake(f"the model has more than {MAX_ROWS} constraints, the limit", span)
        nodes = [aligned(each, axes, len(own)) for each in (left, right)]
        if np.broadcast_shapes(*(tuple(node.shape) for node in nodes)) != shape:
            whole = spread(Value(left.node, left.axes), axes)
            nodes[0] = aligned(whole, axes, len(own))
        lhs, rhs = (as_expression(node) for node in nodes)
        constraint = Constraint(lhs, operator, rhs, name)
        if constraint.is_semidefinite and not has_symmetric_sides(constraint):
            raise Mistake(
                f"`{operator}` compares symmetric matrices, and the difference of these is not known to "
                "be symmetric",
                span,
                "declare variables as `symmetric`, or write `(A + A.T)/2` in place of `A`",
            )
        self.constraints.append(constraint)


def _check_matrices(
    operator: str, left: Value, right: Value, axes: tuple[Axis, ...], span: Span
) -> None:
    """What can be said of the two sides of a matrix inequality by their shapes."""
    if axes:
        raise Mistake(
            f"`{operator}` cannot stand in a family",
            span,
            "write one constraint for each matrix",
        )
    numbers = [each for each in (left, right) if not each.shape]
    for each in numbers:
        if not each.is_number or np.any(np.asarray(each.node)):
            raise Mistake(
                f"`{operator}` compares symmetric matrices, or one with 0",
                span,
                "write `c * eye(n)` for c times the identity; between numbers write "
                f"`{operator[0]}=`",
            )
    for each in (left, right):
        if each.shape and (len(each.shape) != 2 or each.shape[0] != each.shape[1]):
            raise Mistake(
                f"`{operator}` compares square symmetric matrices, not {shown(each.shape)}",
                span,
                f"entry by entry, write `{operator[0]}=`",
            )


def _family(
    evaluator: Evaluator, statement: syntax.Constraint, opened: comprehension.Opened
) -> Family:
    indices = tuple(each.index.identifier for each in statement.generators)
    ranges: list[Dimension | None] = []
    for generator in statement.generators:
        mentioned = {
            each.identifier
            for each in syntax.walk(generator.index_set)
            if isinstance(each, syntax.Name)
        }
        dependent = bool(mentioned & set(indices))
        ranges.append(
            None
            if dependent
            else subscripts.dimension(evaluator, generator.index_set, is_shape=False)
        )
    members = None
    if opened.tuples is not None:
        columns = [np.asarray(opened.evaluator.scope[index].node) for index in indices]
        members = np.stack(columns, axis=1).astype(int)
    return Family(indices, tuple(ranges), members)
