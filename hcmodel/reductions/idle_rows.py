"""Rows that hold at every point of the variables' sets: `x * y >= 0` or `sum(x) >= -3` for positive x.

They say nothing, and may stand in the way of a proof: x·y >= 0 is convex in no coordinates. Intervals
of the two sides show them. A row that keeps its functions defined, as sqrt(y) >= 0 does, is not idle.
"""

from __future__ import annotations

import numpy as np

from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Apply, Expression
from hcmodel.expressions.model import Model
from hcmodel.facts.local_rules import is_inside
from hcmodel.facts.node_facts import Facts


def idle_rows(model: Model, facts: Facts) -> tuple[int, ...]:
    """The positions of the constraints that the sets imply."""
    rows = enumerate(model.constraints)
    return tuple(position for position, row in rows if is_idle(row, facts))


def is_idle(row: Constraint, facts: Facts) -> bool:
    """Whether a constraint holds, and its functions are defined, wherever the variables may be."""
    if row.sense not in ("<=", ">=") or row.entries is not None:
        return False
    small, large = (row.lhs, row.rhs) if row.sense == "<=" else (row.rhs, row.lhs)
    most, least = facts[small].exact_interval[1], facts[large].exact_interval[0]
    holds = np.all(np.asarray(most, dtype=float) <= np.asarray(least, dtype=float))
    return bool(holds) and all(_is_defined(each, facts) for each in (small, large))


def _is_defined(expression: Expression, facts: Facts) -> bool:
    """Whether all functions in it are defined at every point of the sets."""
    for node in topological_order([expression]):
        if isinstance(node, Apply) and not node.atom.is_defined_everywhere:
            inside = [facts[each] for each in node.args]
            domains = node.atom.domains([each.argument for each in inside], dict(node.params))
            if not all(is_inside(*each) for each in zip(inside, domains, strict=True)):
                return False
    return True
