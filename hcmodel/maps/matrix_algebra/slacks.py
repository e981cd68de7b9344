"""The semidefinite slacks of inequalities between matrices, which stand in one equality alone."""

from __future__ import annotations

from collections.abc import Iterator

from hcmodel.expressions.leaves import Variable
from hcmodel.maps.algebra.expanded import Expanded, Row


def slack_of(model: Expanded, row: Row) -> Variable | None:
    """The first semidefinite variable that stands in this row alone, as it is or times a number."""
    return next(slacks_of(model, row), None)


def slacks_of(model: Expanded, row: Row) -> Iterator[Variable]:
    """All of them."""
    for variable in model.variables:
        if not (variable.set.is_curved and variable.shape == row.sums.shape):
            continue
        numbers = model.symbols.of_variable(variable)
        own = row.sums.chosen(row.sums.holding(numbers))
        same = own.key.size == own.size and (own.key == numbers.reshape(-1) + 1).all()
        if not same or (own.weight != own.weight[0]).any():
            continue
        others = (each for each in model.everywhere() if each is not row.sums)
        if not any(each.holding(numbers).any() for each in others):
            yield variable
