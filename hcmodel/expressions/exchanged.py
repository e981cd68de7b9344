"""A model with other expressions in the place of some, as several reductions make it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from hcmodel.expressions.leaves import Apply, Expression
from hcmodel.expressions.model import Model
from hcmodel.records import replace


def follow(nodes: Iterable[Expression], new: dict[int, Expression]) -> list[Apply]:
    """Put all functions of expressions that change, arguments first, into `new`, and list them."""
    made = []
    for node in nodes:
        if not isinstance(node, Apply) or id(node) in new:
            continue
        if any(id(argument) in new for argument in node.args):
            arguments = tuple(new.get(id(argument), argument) for argument in node.args)
            made.append(Apply(node.atom, arguments, node.params, node.shape))
            new[id(node)] = made[-1]
    return made


def exchanged(
    model: Model, new: dict[int, Expression], without: Collection[int] = (), **changes: Any
) -> Model:
    """The model with the expressions of `new`, without the rows at some positions, and other changes."""
    constraints = []
    for position, constraint in enumerate(model.constraints):
        if position not in without:
            sides = (constraint.lhs, constraint.rhs)
            copy = constraint.like(*(new.get(id(side), side) for side in sides))
            copy.name = constraint.name or f"c{position + 1}"  # as it is called before
            constraints.append(copy)
    objective = model.objective.expression
    return replace(
        model,
        objective=type(model.objective)(new.get(id(objective), objective)),
        constraints=tuple(constraints),
        **changes,
    )
