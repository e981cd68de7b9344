"""Normal forms of rows `left <= right` and `left == right`, and of the objective: what the methods see.

A row form is a function f(l, r) of the two sides, vectorised over rows, with the sign of l − r: f = 0
where l = r, increasing in l, decreasing in r. Its derivatives by the two sides are all that the chain
rule needs. A new form is a class with the five methods of `RowForm` and an entry in `ROW_FORMS`; the
suite in tests/solvers/test_row_forms.py checks every entry.

Multipliers: at l = r the gradient of f is f_l·(∇l − ∇r), since f(l, l) = 0 for all l. So a multiplier
μ of f is the multiplier f_l·μ of the row as it was written, l − r (`Outer.row_factors`). A method leaves
a little of μ where l < r. Its part of ∇L stays little only if neither slope at (l, r) is exceeded: 1/l
alone made a multiplier of 2e-13 one of 2 on a row whose left side was 1e-13 of the right one.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers.numerics import LARGEST_LOG, TINY

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Square:
    """weight·(left·∇l + right·∇r)(…)ᵀ for each row, a part of its Hessian; None stands for 0."""

    weight: float | FloatArray
    left: FloatArray | None
    right: FloatArray | None


class RowForm(Protocol):
    """A normal form of rows; all arguments are arrays with one entry per row."""

    def values(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """f(l, r); not a number where the form is not defined."""

    def magnitudes(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """The size against which a violation f > 0 is measured."""

    def slopes(self, left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(f_l, f_r)."""

    def factors(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """f_l where l = r, and elsewhere no more than |f_l| and |f_r|: μ times it belongs to l − r."""

    def squares(self, left: FloatArray, right: FloatArray) -> tuple[Square, ...]:
        """Σ of these is the second derivative of f by (l, r), applied to (∇l, ∇r)."""


class Difference:
    """l − r. A violation is measured against max(1, |l|, |r|)."""

    def values(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return left - right

    def magnitudes(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return np.maximum(1.0, np.maximum(np.abs(left), np.abs(right)))

    def slopes(self, left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.ones_like(left), np.full_like(right, -1.0)

    def factors(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return np.ones_like(left)

    def squares(self, left: FloatArray, right: FloatArray) -> tuple[Square, ...]:
        return ()


class LogDifference:
    """log l − log r, where both sides are positive: a violation is a relative one as it stands."""

    def values(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return np.log(left) - np.log(right)

    def magnitudes(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return np.ones_like(left)

    def slopes(self, left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        return 1.0 / left, -1.0 / right

    def factors(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return 1.0 / np.maximum(left, right)

    def squares(self, left: FloatArray, right: FloatArray) -> tuple[Square, ...]:
        return Square(-1.0, 1.0 / left, None), Square(1.0, None, 1.0 / right)


# The first is the form of rows for which nothing else is said.
ROW_FORMS: dict[str, RowForm] = {"difference": Difference(), "log": LogDifference()}


class ObjectiveForm(Protocol):
    """An increasing function of the objective that is minimised in its place."""

    def value(self, plain: float) -> float:
        """The number that the methods see."""

    def plain(self, value: float) -> float:
        """The inverse."""

    def slope(self, plain: float) -> float:
        """The derivative, positive."""

    def square(self, plain: float) -> tuple[float, float] | None:
        """(w, p): the second derivative is w·p². None where it is 0."""


class PlainObjective:
    def value(self, plain: float) -> float:
        return plain

    def plain(self, value: float) -> float:
        return value

    def slope(self, plain: float) -> float:
        return 1.0

    def square(self, plain: float) -> tuple[float, float] | None:
        return None


@dataclass(frozen=True)
class LogObjective:
    """sign·log(sign·F): log F for a positive objective, −log(−F) for a negative one.

    The second is how a positive function is maximised: minimise −F through −log F.
    """

    sign: float

    def value(self, plain: float) -> float:
        size = self.sign * plain
        if size > 0:  # nothing to warn about
            return self.sign * float(np.log(size))
        with np.errstate(all="ignore"):
            return self.sign * float(np.log(size))

    def plain(self, value: float) -> float:
        exponent = self.sign * value
        if not LARGEST_LOG <= abs(exponent) < math.inf:  # nothing to warn about
            return self.sign * float(np.exp(exponent))
        with np.errstate(all="ignore"):
            return self.sign * float(np.exp(exponent))

    def slope(self, plain: float) -> float:
        return abs(_inverse(plain))

    def square(self, plain: float) -> tuple[float, float] | None:
        return -self.sign, _inverse(plain)


def _inverse(plain: float) -> float:
    """1/F, infinite where F has become 0."""
    if abs(plain) > TINY:
        return 1.0 / plain
    with np.errstate(all="ignore"):
        return float(np.divide(1.0, plain))


OBJECTIVE_FORMS: dict[str, ObjectiveForm] = {
    "plain": PlainObjective(),
    "log": LogObjective(1.0),
    "negative log": LogObjective(-1.0),
}
