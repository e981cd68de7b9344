"""Constraints, kept as written: two sides and the sense between them.

Nothing is moved across the relation here. Reductions may choose a normal form for its rows and leave out
entries that repeat others; a solve writes the multiplier of the constraint as written into `dual_value`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from hcmodel.errors import ModelError
from hcmodel.expressions.foreign_habits import CONSTRAINT, missing_attribute
from hcmodel.expressions.printing import rich
from hcmodel.expressions.shapes import broadcast
from hcmodel.expressions.sparse_data import dense

if TYPE_CHECKING:
    from hcmodel.expressions.node import Expression


# `P >> Q`: P − Q is positive semidefinite; `P << Q`: Q − P is.
MATRIX_SENSES = (">>", "<<")
SENSES = ("<=", ">=", "==", *MATRIX_SENSES)


class Constraint:
    """`lhs sense rhs`: entry by entry with sense `<=`, `>=` or `==`, between matrices with `>>` or `<<`.

    Write `x[0] * x[1] <= 1` or `P >> Q`, which says that P − Q is positive semidefinite; `.named("area")`
    names a constraint for reports and duals. After a solve `dual_value` is the multiplier.
    `form` names the normal form in which methods see its rows (`solvers.row_forms`), and `entries` lists
    the entries, counted in C order, that become rows (None: all). Users leave both alone.
    """

    __slots__ = ("dual_value", "entries", "form", "lhs", "name", "rhs", "sense", "shape")

    def __init__(
        self,
        lhs: Expression,
        sense: str,
        rhs: Expression,
        name: str | None = None,
        *,
        form: str = "difference",
        entries: np.ndarray | None = None,
    ) -> None:
        if not isinstance(sense, str) or sense not in SENSES:
            raise ModelError(f"unknown relation {sense!r}; use <=, >=, ==, >> or <<")
        if not (hasattr(lhs, "variables") and hasattr(rhs, "variables")):
            raise ModelError(
                "a constraint compares expressions; write x <= 1 instead of hc.Constraint"
            )
        self.lhs = lhs
        self.sense = sense
        self.rhs = rhs
        self.name = name
        self.form = form
        self.entries = entries
        shape = lhs._shape
        self.shape = shape if shape == rhs._shape else broadcast(sense, (shape, rhs._shape))
        if sense in MATRIX_SENSES:
            _check_matrices(lhs, sense, rhs)
        self.dual_value: np.ndarray | None = None

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def is_semidefinite(self) -> bool:
        """Whether this is an inequality between symmetric matrices."""
        return self.sense in MATRIX_SENSES

    def named(self, name: str) -> Constraint:
        """The same constraint under a name, which reports and duals then use."""
        if not isinstance(name, str) or not name:
            raise ModelError(f"a constraint's name is a non-empty string, not {name!r}")
        return Constraint(self.lhs, self.sense, self.rhs, name)

    @property
    def rows(self) -> np.ndarray:
        """The entries that become rows, counted in C order."""
        return np.arange(self.size) if self.entries is None else self.entries

    def like(
        self,
        lhs: Expression | None = None,
        rhs: Expression | None = None,
        *,
        sense: str | None = None,
        form: str | None = None,
        entries: np.ndarray | None = None,
    ) -> Constraint:
        """The same constraint with some parts replaced; a reduction's copy, with its own dual."""
        return Constraint(
            self.lhs if lhs is None else lhs,
            sense or self.sense,
            self.rhs if rhs is None else rhs,
            self.name,
            form=form or self.form,
            entries=self.entries if entries is None else entries,
        )

    def violation(self) -> np.ndarray:
        """By how much each entry is violated at the variables' values; 0 where it holds.

        Of a matrix inequality, one number: how far the smallest eigenvalue is below 0.
        """
        left, right = dense(self.lhs.value), dense(self.rhs.value)
        if left is None or right is None:
            raise ModelError(
                f"the constraint {self} has no violation yet: a variable or parameter in it has "
                "no value; solve the problem or set the values first"
            )
        difference: np.ndarray = np.broadcast_to(left - right, self.shape)
        if self.is_semidefinite:
            symmetric = (difference + difference.T) / 2
            turned = symmetric if self.sense == ">>" else -symmetric
            return np.asarray(max(0.0, -float(np.linalg.eigvalsh(turned)[0])))
        if self.sense == "==":
            violation = np.abs(difference)
        else:
            violation = np.maximum(difference if self.sense == "<=" else -difference, 0.0)
        return np.asarray(violation)

    if not TYPE_CHECKING:  # which would take every name for an attribute

        def __getattr__(self, name: str) -> Any:
            raise missing_attribute(CONSTRAINT, name, "Constraint")

    def __and__(self, other: Any) -> NoReturn:
        raise ModelError("constraints are not joined by & or |: list them, [first, second]")

    __rand__ = __or__ = __ror__ = __and__

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

    def _repr_latex_(self) -> str | None:
        return rich("latex", self)

    def _repr_html_(self) -> str | None:
        return rich("html", self)


def _check_matrices(lhs: Expression, sense: str, rhs: Expression) -> None:
    """Raise unless two square matrices of one shape are compared, or one with 0."""
    shapes = [side.shape for side in (lhs, rhs) if not _is_zero(side)]
    if () in shapes and any(shapes):
        raise ModelError(
            f"'{sense}' compares symmetric matrices, or one with 0, and not with another number; "
            "multiply the number by the identity matrix"
        )
    if not shapes or any(len(shape) != 2 or shape[0] != shape[1] for shape in shapes):
        listed = " and ".join(str(side.shape) for side in (lhs, rhs))
        entries = "<= or >=" if sense == "<<" else ">= or <="
        raise ModelError(
            f"'{sense}' compares square symmetric matrices, not shapes {listed}; entry by entry, "
            f"write {entries}"
        )
    if len(set(shapes)) > 1:
        raise ModelError(
            f"'{sense}' compares matrices of one shape, not {shapes[0]} and {shapes[1]}"
        )


def _is_zero(side: Expression) -> bool:
    """Whether a side is the number 0."""
    named = getattr(side, "name", None) is not None  # a variable or a parameter
    return side.shape == () and not side.args and not named and not np.any(side.value)
