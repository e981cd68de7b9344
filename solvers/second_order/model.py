"""The quadratic model of a problem at a point.

    F1 + ∇F1·d + ½ dᵀB d,   rows g + ∇g·d and h + ∇h·d,   x + d in X,   d = frame · w

The rows are divided by their slopes in the units of the frame, so that one number serves all of them.
`programs` writes the model as a quadratic program, `step` finds its minimiser.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers.algebra.hessians import Hessian, SparseHessian, convexified
from hcmodel.solvers.coordinates.frame import Frame
from hcmodel.solvers.numerics import DATA_ROUNDING
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.qp.program import Cone, StepRows, nearer
from hcmodel.solvers.sets.cone_units import centred
from hcmodel.solvers.sets.domain import Domain

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class QuadraticModel:
    """Objective and rows at a point, in the units of a frame.

    `slope` is the gradient plus what the `guess` of the equalities' multipliers adds to it, and
    `bound_rows` are the bounds of X as a matrix and its limits, where the frame is a matrix too.
    """

    evaluation: Evaluation
    frame: Frame
    gradient: FloatArray
    slope: FloatArray
    guess: FloatArray
    hessian: Hessian
    jacobian: Any
    rows: FloatArray
    row_scales: FloatArray
    steps: StepRows
    bound_rows: tuple[FloatArray, FloatArray]

    @staticmethod
    def at(
        evaluation: Evaluation,
        domain: Domain,
        frame: Frame,
        hessian: Hessian,
        reach: float = 1.0,
        multipliers: FloatArray | None = None,
    ) -> QuadraticModel:
        """`hessian` is a matrix over x; it is made positive semidefinite in the frame.

        The program is solved for what is to be added to the equalities' `multipliers`. Otherwise slopes
        that the equalities balance could be so large that the others are lost to the backend's tolerance.
        """
        jacobian, scales = _unit_rows(frame.matrix(evaluation.jacobian))
        count = evaluation.inequalities
        guess = np.zeros(scales.size - count)
        if multipliers is not None:
            guess = multipliers[count:] * scales[count:]
        gradient = frame.gradient(evaluation.gradient)
        steps, bound_rows = _step_rows(domain, evaluation.point, frame, reach)
        return QuadraticModel(
            evaluation=evaluation,
            frame=frame,
            gradient=gradient,
            slope=gradient + np.asarray(jacobian[count:].T @ guess).reshape(-1),
            guess=guess,
            hessian=convexified(frame.hessian(hessian)),
            jacobian=jacobian,
            rows=evaluation.rows / scales,
            row_scales=scales,
            steps=steps,
            bound_rows=bound_rows,
        )

    @property
    def inequalities(self) -> int:
        return self.evaluation.inequalities

    @property
    def dimension(self) -> int:
        return self.gradient.size

    def curvature(self, w: FloatArray) -> float:
        if isinstance(self.hessian, SparseHessian):
            return float(w @ (self.hessian @ w))
        return float(w @ self.hessian @ w)

    def change(self, w: FloatArray) -> tuple[float, FloatArray]:
        """The predicted change of the objective, and the predicted rows."""
        return (
            float(self.gradient @ w) + 0.5 * self.curvature(w),
            (self.rows + self.jacobian @ w) * self.row_scales,
        )

    def violations(self, rows: FloatArray) -> FloatArray:
        count = self.inequalities
        return np.concatenate([np.maximum(rows[:count], 0.0), np.abs(rows[count:])])


def _unit_rows(jacobian: Any) -> tuple[Any, FloatArray]:
    """The rows divided by their largest entries, and these."""
    if scipy.sparse.issparse(jacobian):
        largest = np.asarray(abs(jacobian).max(axis=1).todense()).reshape(-1)
        scales = np.where(largest > 0, largest, 1.0)
        divided = scipy.sparse.csr_array(scipy.sparse.diags_array(1 / scales) @ jacobian)
        return divided, scales
    largest = np.max(np.abs(jacobian), axis=1, initial=0.0)
    scales = np.where(largest > 0, largest, 1.0)
    return jacobian / scales[:, None], scales


def _step_rows(
    domain: Domain, x: FloatArray, frame: Frame, reach: float
) -> tuple[StepRows, tuple[FloatArray, FloatArray]]:
    """X as bounds on w and cones; under a matrix frame, bounds become rows of their own."""
    if frame.columns is None:
        steps = nearer(domain.step_rows(x, frame.scale), reach)
        return steps, (np.zeros((0, x.size)), np.zeros(0))
    steps = nearer(domain.step_rows(x, np.ones(x.size)), reach)
    width = frame.columns.shape[1]
    kept = np.ones(x.size, dtype=bool) if frame.free is None else ~frame.free
    above = np.flatnonzero(kept & np.isfinite(steps.upper))
    below = np.flatnonzero(kept & np.isfinite(steps.lower))
    matrix = np.vstack([frame.columns[above], -frame.columns[below]])
    limits = np.concatenate([steps.upper[above], -steps.lower[below]])
    cones = []
    for cone in steps.cones:
        rows = np.asarray(cone.matrix @ frame.columns)
        if cone.kind == "zero" and np.max(np.abs(rows), initial=0.0) < DATA_ROUNDING:
            continue  # the frame spans the tangent space already
        cones.append(centred(Cone(cone.kind, scipy.sparse.csr_array(rows), cone.offset)))
    free = np.full(width, np.inf)
    return StepRows(-free, free, tuple(cones)), (matrix, limits)
