"""Constraints, kept as written: two sides and the sense between them.

Nothing is moved across the relation here; the canonical form chooses a normal form for each row and
writes the multiplier of the constraint as written back into `dual_value`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np

from hcmodel.errors import ModelError
from hcmodel.expressions.shapes import broadcast

if TYPE_CHECKING:
    from hcmodel.expressions.node import Expression


class Constraint:
    """`lhs sense rhs`, entry by entry, with sense `<=`, `>=` or `==`."""

    __slots__ = ("dual_value", "lhs", "name", "rhs", "sense", "shape")

    def __init__(
        self, lhs: Expression, sense: str, rhs: Expression, name: str | None = None
    ) -> None:
        if sense not in ("<=", ">=", "=="):
            raise ModelError(f"unknown relation {sense!r}; use <=, >= or ==")
        self.lhs = lhs
        self.sense = sense
        self.rhs = rhs
        self.name = name
        self.shape = broadcast(sense, (lhs.shape, rhs.shape))
        self.dual_value: np.ndarray | None = None

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=int))

    def named(self, name: str) -> Constraint:
        """The same constraint under a name, which reports and duals then use."""
        if not isinstance(name, str) or not name:
            raise ModelError(f"a constraint's name is a non-empty string, not {name!r}")
        return Constraint(self.lhs, self.sense, self.rhs, name)

    def violation(self) -> np.ndarray:
        """By how much each entry is violated at the variables' values; 0 where it holds."""
        left, right = self.lhs.value, self.rhs.value
        if left is None or right is None:
            raise ModelError(
                f"the constraint {self} has no violation yet: a variable or parameter in it has "
                "no value; solve the problem or set the values first"
            )
        difference: np.ndarray = np.broadcast_to(left - right, self.shape)
        if self.sense == "==":
            violation = np.abs(difference)
        else:
            violation = np.maximum(difference if self.sense == "<=" else -difference, 0.0)
        return np.asarray(violation)

    def __bool__(self) -> NoReturn:
        raise ModelError(
            "a constraint is neither true nor false: write a chain such as 0 <= x <= 1 as the two "
            "constraints 0 <= x and x <= 1 (or as bounds of the variable), and compare "
            "expressions with `is`"
        )

    def __str__(self) -> str:
        return f"{self.lhs} {self.sense} {self.rhs}"

    def __repr__(self) -> str:
        return f"{self.name}: {self}" if self.name else str(self)
