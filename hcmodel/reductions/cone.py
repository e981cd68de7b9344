"""An end of a chain: a proven model as one cone program in its hidden coordinates.

The proof is the recipe. Affine nodes are sparse rows, a sum of log-affine terms is a log-sum-exp, and
what is neither has the cone form that its atom declares (`cone_bounds`). A node without one is the
reason of a refusal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.model import Model
from hcmodel.proof.prove import Proof
from hcmodel.reductions.cone_bounds import NoConeForm, Translation
from hcmodel.reductions.reduction import Duals, Reduction, Refusal
from hcmodel.solvers.qp.cone_program import ConeProgram

FloatArray = NDArray[np.float64]


class Cone(Reduction[Model, ConeProgram]):
    """A cone program over (u, bounds); u are the coordinates of the proof, in the model's order."""

    def __init__(
        self, before: Model, after: ConeProgram, logs: NDArray[np.bool_], places: Sequence[Any]
    ) -> None:
        super().__init__(before, after)
        self.logs = logs
        self._places = tuple(places)

    @staticmethod
    def of(model: Model, proof: Proof) -> Cone | Refusal:
        """The cone program of a model whose rows are in the forms of its proof (`NormalRows`)."""
        translation = Translation(model, proof)
        try:
            places = [translation.constraint(each) for each in model.constraints]
            objective = translation.objective()
        except NoConeForm as stop:
            return Refusal(stop.expression, stop.reason)
        program = translation.rows.program(objective)
        starts = translation.rows.starts()
        found = [(int(starts[block]), sign) for block, sign in places]
        return Cone(model, program, translation.logs, found)

    def point(self, x: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            return np.asarray(np.where(self.logs, np.log(np.where(self.logs, x, 1.0)), x))

    def point_back(self, u: FloatArray) -> FloatArray:
        own = u[: self.before.layout.size]
        with np.errstate(all="ignore"):
            return np.asarray(np.where(self.logs, np.exp(np.where(self.logs, own, 0.0)), own))

    def by_constraint(self, dual: FloatArray) -> Duals:
        """Multipliers of the constraints, in the forms of their rows, from the program's dual."""
        found = []
        for (start, sign), constraint in zip(self._places, self.before.constraints, strict=True):
            own = np.zeros(constraint.shape)
            count = constraint.rows.size
            own.reshape(-1)[constraint.rows] = sign * dual[start : start + count]
            found.append(own)
        return Duals(tuple(found))
