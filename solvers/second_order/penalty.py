"""The merit function: the exact penalty F1 + Σ weight_i · violation_i, with a weight for each row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.second_order.model import QuadraticModel
from hcmodel.solvers.second_order.options import PenaltyOptions
from hcmodel.solvers.second_order.step import QuadraticStep

FloatArray = NDArray[np.float64]
DEFAULTS = PenaltyOptions()


@dataclass(frozen=True)
class Penalty:
    """Weights of the rows in the merit."""

    weights: FloatArray

    def merit(self, evaluation: Evaluation) -> float:
        return evaluation.objective + float(self.weights @ evaluation.violations)

    def predicted(self, model: QuadraticModel, w: FloatArray) -> float:
        """The decrease of the merit that the model predicts."""
        change, rows = model.change(w)
        now, then = model.evaluation.violations, model.violations(rows)
        return -change + float(self.weights @ (now - then))

    def after(
        self, model: QuadraticModel, step: QuadraticStep, options: PenaltyOptions = DEFAULTS
    ) -> Penalty:
        """Weights above the multipliers, under which the step is one of descent.

        They decrease gradually, so that large multipliers of early steps do not dominate the whole run.
        """
        steepest = float(np.max(np.abs(model.gradient), initial=0.0)) or 1.0
        least = options.least_weight * steepest / model.row_scales
        needed = np.maximum(np.abs(step.multipliers), least)
        kept = np.where(self.weights > options.excess * needed, options.decrease, 1.0)
        weights = np.maximum(options.above * needed, kept * self.weights)
        change, rows = model.change(step.w)
        repaired = model.evaluation.violations - model.violations(rows)
        total = float(np.sum(np.maximum(repaired, 0.0) / model.row_scales))
        gain = float(weights @ repaired)
        if change > 0 and total > 0 and gain < options.descent * change:
            extra = options.descent * change / total / model.row_scales
            weights = weights + np.where(repaired > 0, extra, 0.0)
        return Penalty(weights)
