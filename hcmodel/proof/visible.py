"""Geometric programs are seen to be convex: no proof has to be searched.

Where all functions are sums of terms with positive weights in variables that are positive, and every row
compares one with a monomial, the model is convex in the logarithms of all variables, whatever the
expressions are that it was written with. The caller checks that on the arrays of the form
(`reductions.sum_arrays`); here is what it stands for: coordinates, and rows as they were written, between
logarithms. The steps of a derivation are left to `prove`, which finds the same coordinates and rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.leaves import Variable
from hcmodel.proof.normal_form import NormalRow
from hcmodel.records import dataclass


@dataclass(frozen=True, eq=False)
class VisibleProof:
    """What a `Proof` says, without the facts behind it."""

    coordinates: Mapping[Variable, str]
    rows: tuple[NormalRow, ...]
    objective_form: str = "log"
    proven: bool = True

    @staticmethod
    def of(variables: Sequence[Variable], constraints: Sequence[Constraint]) -> VisibleProof:
        """Logarithms of everything."""
        rows = tuple(_between_logarithms(constraint) for constraint in constraints)
        return VisibleProof(dict.fromkeys(variables, "log"), rows)

    def constants_keep_signs(self) -> bool:
        """Nothing rests on the signs of data but what the arrays show."""
        return True


def _between_logarithms(constraint: Constraint) -> NormalRow:
    left, right = constraint.lhs, constraint.rhs
    if constraint.sense == ">=":
        left, right = right, left
    return NormalRow(left, right, constraint.sense == "==", "log")
