"""Variables that keep off their bound 0, since a function of theirs has an infinite slope there.

The slope of x log x, √x or log x has no end at 0. Such an entry moves by factors, as one with a positive
lower bound does: a step that ends on the bound would be refused, and one that ends near it changes
the slope beyond what a model of it foresees.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.rules import Always, Argument
from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Apply, Constant, Expression, Variable
from hcmodel.maps.separable import entry_codes, entry_offsets

NOWHERE: Always[tuple[int, ...]] = Always(())


def steep_entries(
    roots: Sequence[Expression], variables: Sequence[Variable]
) -> dict[Variable, NDArray[np.bool_]]:
    """Of each variable the entries with a bound at 0 and an infinite slope there; {} if there is none."""
    if not any(_may_be_0(variable) for variable in variables):
        return {}
    nodes = topological_order(roots)
    known: dict[Hashable, tuple[int, ...]] = {}
    arguments = [argument for node in nodes for argument in _steep_arguments(node, known)]
    steep = entry_codes(arguments, variables)
    return {
        variable: np.isin(1 + start + np.arange(variable.size), steep).reshape(variable.shape)
        & (variable.lower == 0.0)
        for variable, start in entry_offsets(variables).items()
    }


def _may_be_0(variable: Variable) -> bool:
    """Whether an entry has the bound 0; those of positive variables move by factors anyway."""
    return not variable.set.positive and bool(np.any(variable.lower == 0.0))


def _steep_arguments(
    node: Expression, known: dict[Hashable, tuple[int, ...]]
) -> Iterable[Expression]:
    """The arguments in which the slope is infinite at 0; `known` has the answers so far."""
    if not isinstance(node, Apply) or node.atom.infinite_slope == NOWHERE:
        return ()
    # models written in loops ask the same of many numbers
    numbers = [
        float(argument.value) if isinstance(argument, Constant) and not argument.shape else None
        for argument in node.args
    ]
    key = (node.atom, node.params, tuple(argument.shape for argument in node.args), *numbers)
    places = known.get(key)
    if places is None:
        arguments = [_known(argument) for argument in node.args]
        places = tuple(node.atom.infinite_slope(arguments, dict(node.params)))
        unknown = sum(argument.value is None for argument in arguments)
        if unknown == numbers.count(None):  # else a value is among the facts
            known[key] = places
    return [node.args[place] for place in places]


def _known(argument: Expression) -> Argument:
    value = None if argument.variables() else argument.value
    return Argument(argument.shape) if value is None else Argument.from_value(value)
