"""Rows that no point of the variables' sets satisfies, by the intervals of their two sides.

It needs no convexity: sin(x) >= 1.5 is impossible whatever x is. A side whose interval is not known, or
that depends on too many others for a narrow one, leaves the question open.
"""

from __future__ import annotations

import numpy as np

from hcmodel.expressions.model import Model
from hcmodel.facts.node_facts import Facts
from hcmodel.reductions.reduction import Origin
from hcmodel.solvers.numerics import DATA_ROUNDING


def impossible_row(model: Model) -> Origin | None:
    """The first row whose sides lie apart by more than rounding; None where none does."""
    facts = Facts()
    for position, constraint in enumerate(model.constraints):
        if constraint.is_semidefinite or constraint.entries is not None:
            continue
        left, right = (facts[side].exact_interval for side in (constraint.lhs, constraint.rhs))
        ends = [np.broadcast_to(end, constraint.shape) for end in (*left, *right)]
        low, high, least, most = (np.asarray(end, dtype=float) for end in ends)
        with np.errstate(all="ignore"):
            above = (low - most) > DATA_ROUNDING * (np.abs(low) + np.abs(most))
            below = (least - high) > DATA_ROUNDING * (np.abs(least) + np.abs(high))
        apart = {"<=": above, ">=": below}.get(constraint.sense, above | below)
        if apart.any():
            return Origin(position, tuple(int(i) for i in np.argwhere(apart)[0]))
    return None
