"""Which bound of a value is wanted, and the signal that there is none."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from hcmodel.expressions.leaves import Expression
from hcmodel.facts.bits import AFFINE, CONCAVE, CONVEX


class Side(IntEnum):
    """Which bound of a value is wanted: one from above, one from below, or the value itself."""

    ABOVE = 1
    BELOW = -1
    EXACT = 0

    def times(self, sign: float) -> Side:
        return Side(int(np.sign(sign)) * int(self))

    @property
    def curvature(self) -> int:
        """What an expression has to be to have such a bound."""
        return {Side.ABOVE: CONVEX, Side.BELOW: CONCAVE, Side.EXACT: AFFINE}[self]


class NoConeForm(Exception):  # noqa: N818  (a signal within the reduction to a cone program)
    def __init__(self, expression: Expression, reason: str) -> None:
        super().__init__(reason)
        self.expression, self.reason = expression, reason
