"""Maps that the user declares with `hidden=`."""

from __future__ import annotations

from collections.abc import Sequence

from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Expression, Variable


def complete(parts: Sequence[Expression], variables: Sequence[Variable]) -> tuple[Expression, ...]:
    """The entries of the map; variables that it does not mention are their own coordinate."""
    mentioned = {id(node) for node in topological_order(parts)}
    return (*parts, *(variable for variable in variables if id(variable) not in mentioned))
