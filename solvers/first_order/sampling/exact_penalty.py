"""The function without rows that `gradient-sampling` minimises, in natural units.

P(y) = F(x) + Σ ρ_i [g_i(x)]₊ + Σ ρ_j |h_j(x)| + σ|y − x|,   x = Π_X(y)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.solvers.algebra.storage import as_array
from hcmodel.solvers.first_order.sampling.sampling_rules import SamplingRules
from hcmodel.solvers.first_order.sampling.trials import Trial
from hcmodel.solvers.loop import Task
from hcmodel.solvers.numerics import SUM_ROUNDING, TINY
from hcmodel.solvers.oracle import Evaluation

FloatArray = NDArray[np.float64]


class ExactPenalty:
    """P of a task, in the units that the variables have at the start of a run."""

    def __init__(self, task: Task, start: Evaluation, rules: SamplingRules) -> None:
        unit = task.domain.metric(start.point)
        if not task.domain.is_box:  # entries that move together have one unit
            unit = np.full(unit.size, float(np.max(unit, initial=TINY)))
        self.task, self.unit, self.rules = task, unit, rules
        self.first = start.point / unit

    def first_weights(self, start: Evaluation) -> FloatArray:
        slopes = np.abs(as_array(start.jacobian) * self.unit).max(axis=1, initial=0.0)
        top = float(np.max(np.abs(start.gradient * self.unit), initial=0.0))
        sizes = np.where(slopes > 0, slopes, 1.0)
        return np.asarray(self.rules.penalty * max(top, TINY) / sizes)

    def at(self, y: FloatArray, weights: FloatArray) -> Trial | None:
        """P and a gradient; None where a function is not defined."""
        inner = self.task.domain.project(y * self.unit)
        evaluation = self.task.oracle.at(inner)
        if not (evaluation.finite and evaluation.differentiable):
            return None
        return self.charged(y, evaluation, weights)

    def charged(self, y: FloatArray, evaluation: Evaluation, weights: FloatArray) -> Trial:
        """P at a point that was evaluated, with these weights."""
        inner = evaluation.point
        away = y - inner / self.unit
        away = np.where(np.abs(away) > SUM_ROUNDING * np.abs(y), away, 0.0)
        paid = prices(evaluation, weights)
        gradient = evaluation.gradient + as_array(evaluation.jacobian).T @ paid
        size = max(float(np.max(np.abs(gradient * self.unit), initial=0.0)), 1.0)
        distance = float(np.linalg.norm(away))
        slope = gradient * self.unit
        if not self.task.domain.is_box:
            slope = self._along(inner, gradient) * self.unit
        if distance > 0:
            slope = self._along(inner, gradient) * self.unit + size * away / distance
        value = evaluation.objective + float(paid @ evaluation.rows) + size * distance
        return Trial(y, evaluation, value, slope)

    def limits(self) -> tuple[FloatArray, FloatArray]:
        """Bounds of steps; other sets than boxes hold a point by the price of leaving them."""
        if not self.task.domain.is_box:
            return np.full(self.unit.size, -np.inf), np.full(self.unit.size, np.inf)
        rows = self.task.domain.cone_rows()
        return rows.lower / self.unit, rows.upper / self.unit

    def _along(self, x: FloatArray, gradient: FloatArray) -> FloatArray:
        """The part of a gradient that X does not balance at x, in place of that of F∘Π_X."""
        return -self.task.domain.normal_cone_distance(x, -gradient)


def prices(evaluation: Evaluation, weights: FloatArray) -> FloatArray:
    """The derivative of the penalty by the rows."""
    count = evaluation.inequalities
    violated = np.where(evaluation.rows[:count] > 0, weights[:count], 0.0)
    return np.concatenate([violated, weights[count:] * np.sign(evaluation.rows[count:])])
