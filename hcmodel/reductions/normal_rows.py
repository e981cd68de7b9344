"""Rows in the form in which a proof found them convex: terms moved across, logarithms taken.

`x*y - z <= 0` becomes x*y <= z, compared through logarithms; a positive objective may be seen through
its logarithm too. The feasible set and the minimisers stay the same. Where a row between logarithms
holds with equality, `left` times its gradient is that of the difference, which is how multipliers walk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.graph import values_at
from hcmodel.expressions.model import Model
from hcmodel.proof.prove import NormalRow, Proof
from hcmodel.proof.visible import VisibleProof
from hcmodel.records import replace
from hcmodel.reductions.reduction import Duals, ModelReduction
from hcmodel.reductions.sign import signed_objective
from hcmodel.solvers.row_forms import OBJECTIVE_FORMS, ROW_FORMS, ObjectiveForm

FloatArray = NDArray[np.float64]


class NormalRows(ModelReduction):
    """The model with rows as a proof arranged them; with `forms`, also in the forms that it chose."""

    @staticmethod
    def of(model: Model, proof: Proof | VisibleProof, *, forms: bool = True) -> NormalRows:
        constraints = tuple(
            _arranged(constraint, row, forms)
            for constraint, row in zip(model.constraints, proof.rows, strict=True)
        )
        objective_form = "plain"
        if forms and proof.objective_form == "log":
            objective_form = "log" if signed_objective(model)[1] > 0 else "negative log"
        return NormalRows(model, model.with_rows(constraints, objective_form))

    @property
    def _objective(self) -> ObjectiveForm:
        return OBJECTIVE_FORMS[self.after.objective_form]

    def value(self, value: float) -> float:
        return self._objective.value(value)

    def value_back(self, value: float) -> float:
        return self._objective.plain(value)

    def duals(self, x: FloatArray, duals: Duals) -> Duals:
        return self._scaled(self.point(x), duals, np.divide)

    def duals_back(self, u: FloatArray, duals: Duals) -> Duals:
        return self._scaled(u, duals, np.multiply)

    def plain_duals_back(self, u: FloatArray, duals: Duals) -> Duals:
        return duals

    def set_duals_back(self, u: FloatArray, sets: FloatArray) -> FloatArray:
        value = values_at(self.after.layout, u, self.after.roots[:1])[0]
        with np.errstate(all="ignore"):
            plain = sets / self._objective.slope(float(np.sum(value)))
        return super().set_duals_back(u, plain)

    def _scaled(self, u: FloatArray, duals: Duals, operation: np.ufunc) -> Duals:
        """Multipliers times, or divided by, what turns those of the form into those of left − right."""
        plain = self.after.objective_form == "plain"
        if plain and all(each.form == "difference" for each in self.after.constraints):
            return duals
        with np.errstate(all="ignore"):
            value, *sides = self.after.values_at(u)
            slope = self._objective.slope(float(np.sum(value)))
            rows = [
                None if dual is None else operation(dual, factor / slope)
                for dual, factor in zip(duals.rows, self._factors(sides), strict=True)
            ]
        return replace(duals, rows=tuple(rows))

    def _factors(self, sides: Sequence[FloatArray]) -> Iterator[FloatArray]:
        """What makes a multiplier of each constraint's form one of left − right."""
        pairs = zip(sides[::2], sides[1::2], strict=True)
        for constraint, (left, right) in zip(self.after.constraints, pairs, strict=True):
            both = np.broadcast_arrays(left, right)
            yield ROW_FORMS[constraint.form].factors(*both)


def _arranged(constraint: Constraint, row: NormalRow, forms: bool) -> Constraint:
    sense = "==" if row.equality else "<="
    return constraint.like(
        row.left, row.right, sense=sense, form=row.form if forms else "difference"
    )
