"""Variables that keep off their bound 0, since a function of theirs is infinitely steep there.

The slope of x log x, √x or log x has no end at 0. Such an entry moves by factors, as one with a positive
lower bound does: a step that ends on the bound would be refused, and one that ends near it changes
the slope beyond what a model of it foresees.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Apply, Expression, Variable
from hcmodel.maps.separable import entry_codes, entry_offsets

# Which arguments of an atom are steep at 0.
STEEP = {"log": (0,), "sqrt": (0,), "entr": (0,), "kl_div": (0, 1), "inv_pos": (0,), "div": (1,)}


def steep_entries(
    roots: Sequence[Expression], variables: Sequence[Variable]
) -> dict[Variable, NDArray[np.bool_]]:
    """Of each variable the entries with a bound at 0 and an infinite slope there."""
    nodes = topological_order(roots)
    arguments = [argument for node in nodes for argument in _steep_arguments(node)]
    steep = entry_codes(arguments, variables)
    return {
        variable: np.isin(1 + start + np.arange(variable.size), steep).reshape(variable.shape)
        & (variable.lower == 0.0)
        for variable, start in entry_offsets(variables).items()
    }


def _steep_arguments(node: Expression) -> list[Expression]:
    if not isinstance(node, Apply):
        return []
    if node.atom.name == "power" and node.args[1].value is not None:
        # A root, or a negative power; of an array of exponents one is enough.
        return [node.args[0]] if np.any(node.args[1].value < 1) else []
    return [node.args[place] for place in STEEP.get(node.atom.name, ())]
