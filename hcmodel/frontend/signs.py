"""What is proven of expressions at load time: signs, by the rules of the atom table from the bounds
of variables, and that they are polynomials, which have a value everywhere.
"""

from __future__ import annotations

import numpy as np

from hcmodel.atoms.rules import Argument, Sign, sign_of
from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Apply, Constant, Expression, Parameter, Variable

MAX_NODES = 2000  # beyond, a proof costs more than it saves


def is_positive(expression: Expression | np.ndarray) -> bool:
    """Whether every entry is proven to be positive, whatever the parameters' values."""
    if isinstance(expression, np.ndarray):
        return bool(np.all(expression > 0))
    order = topological_order([expression])
    if len(order) > MAX_NODES:
        return False
    facts: dict[int, Argument] = {}
    for node in order:
        facts[id(node)] = _facts(node, facts)
    return facts[id(expression)].sign is Sign.POSITIVE


def is_polynomial(expression: Expression | np.ndarray) -> bool:
    """Whether the expression is proven to be a polynomial of its variables and parameters."""
    if isinstance(expression, np.ndarray):
        return bool(np.isfinite(expression).all())
    order = topological_order([expression])
    return len(order) <= MAX_NODES and all(
        _is_polynomial_step(node) for node in order if isinstance(node, Apply)
    )


def _is_polynomial_step(node: Apply) -> bool:
    facts = [
        Argument.from_value(argument.value)
        if isinstance(argument, Constant)
        else Argument(argument.shape)
        for argument in node.args
    ]
    return node.atom.degree(facts, dict(node.params)) is not None


def has_variables(expression: Expression | np.ndarray) -> bool:
    return isinstance(expression, Expression) and bool(expression.variables())


def _facts(node: Expression, known: dict[int, Argument]) -> Argument:
    if isinstance(node, Constant):
        return Argument.from_value(node.value)
    if isinstance(node, Apply):
        arguments = [known[id(argument)] for argument in node.args]
        return Argument(node.shape, node.atom.sign(arguments, dict(node.params)))
    return Argument(node.shape, _leaf_sign(node))


def _leaf_sign(leaf: Expression) -> Sign:
    if isinstance(leaf, Variable):
        lower = leaf.set.interval[0]
        if leaf.set.positive or sign_of(lower) is Sign.POSITIVE:
            return Sign.POSITIVE
        return Sign.NONNEGATIVE if np.all(lower >= 0) else Sign.UNKNOWN
    if isinstance(leaf, Parameter):
        if leaf.pos:
            return Sign.POSITIVE
        return Sign.NONNEGATIVE if leaf.nonneg else Sign.UNKNOWN
    return Sign.UNKNOWN
