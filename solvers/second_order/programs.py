"""The quadratic programs of a model: its minimiser inside a trust region, and the least relaxation.

minimise ∇F1·d + ½ dᵀB d   s.t.   g + ∇g·d <= e,   h + ∇h·d = e,   x + d in X,   ‖w‖∞ <= Δ
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import replace
from hcmodel.solvers.algebra.hessians import Hessian, SparseHessian, largest_entry
from hcmodel.solvers.numerics import TINY
from hcmodel.solvers.qp import QuadraticProgram
from hcmodel.solvers.qp.program import StepRows
from hcmodel.solvers.second_order.model import QuadraticModel
from hcmodel.solvers.second_order.options import StepOptions

FloatArray = NDArray[np.float64]


def step_program(
    model: QuadraticModel,
    radius: float,
    unit: float,
    rows: FloatArray,
    slack: FloatArray,
    options: StepOptions,
) -> tuple[QuadraticProgram, float]:
    """The QP with w measured in `unit`s, and the factor that the objective was divided by."""
    count = model.inequalities
    size = max(
        float(np.max(np.abs(model.slope), initial=0.0)),
        unit * largest_entry(model.hessian),
        TINY,
    )
    matrix, limits = model.bound_rows
    inequality = model.jacobian[:count]
    # Rows are divided by their largest entries, so within the trust region none changes by more than
    # dimension · radius. A bound beyond that never holds a step, and large numbers in it would make the
    # program badly scaled.
    farthest = 2.0 * model.dimension * min(radius, options.unlimited)
    bound = np.minimum(slack[:count] - rows[:count], farthest)
    if limits.size:
        stack = scipy.sparse.vstack if scipy.sparse.issparse(inequality) else np.vstack
        inequality = stack([inequality, matrix])
        bound = np.concatenate([bound, limits])
    return (
        QuadraticProgram(
            quadratic=_strictly_convex(model.hessian * (unit / size), options.proximal),
            linear=model.slope / size,
            inequality=inequality,
            inequality_bound=bound / unit,
            equality=model.jacobian[count:],
            equality_bound=(slack[count:] - rows[count:]) / unit,
            domain=_within(model, radius, unit, options),
        ),
        size,
    )


def relaxation_program(
    model: QuadraticModel, radius: float, rows: FloatArray, options: StepOptions
) -> QuadraticProgram:
    """Over (w, e): the least sum of relaxations e of the scaled rows."""
    count, total, dimension = model.inequalities, rows.size, model.dimension
    equal = total - count
    matrix, limits = model.bound_rows
    wide = total + equal
    above = np.arange(count)
    level = np.arange(equal)
    signs = scipy.sparse.csr_array(
        (
            np.concatenate([-np.ones(total), np.ones(equal)]),
            (
                np.concatenate([above, count + level, count + level]),
                np.concatenate([above, count + level, total + level]),
            ),
        ),
        shape=(total, wide),
    )
    relaxed = _beside(model.jacobian, signs)
    bounds = _beside(matrix, scipy.sparse.csr_array((limits.size, wide)))
    stack = scipy.sparse.vstack if scipy.sparse.issparse(relaxed) else np.vstack
    steps = _within(model, radius, 1.0, options)
    padding = [scipy.sparse.csr_array((cone.matrix.shape[0], wide)) for cone in steps.cones]
    cones = tuple(
        replace(cone, matrix=scipy.sparse.csr_array(scipy.sparse.hstack([cone.matrix, pad])))
        for cone, pad in zip(steps.cones, padding, strict=True)
    )
    return QuadraticProgram(
        quadratic=np.concatenate([np.full(dimension, options.relaxation_proximal), np.zeros(wide)]),
        linear=np.concatenate([np.zeros(dimension), np.ones(wide)]),
        inequality=stack([relaxed[:count], bounds]) if limits.size else relaxed[:count],
        inequality_bound=np.concatenate([-rows[:count], limits]),
        equality=relaxed[count:],
        equality_bound=-rows[count:],
        domain=StepRows(
            np.concatenate([steps.lower, np.zeros(wide)]),
            np.concatenate([steps.upper, np.full(wide, np.inf)]),
            cones,
        ),
    )


def _strictly_convex(quadratic: Hessian, proximal: float) -> Hessian:
    """With a small multiple of the identity added, relative to the diagonal. Changes its argument."""
    if isinstance(quadratic, SparseHessian):
        return quadratic.shifted(proximal * max(1.0, float(np.max(quadratic.diagonal()))))
    diagonal = np.diag_indices_from(quadratic)
    largest = float(np.max(quadratic[diagonal], initial=0.0))
    quadratic[diagonal] += proximal * max(1.0, largest)
    return quadratic


def _within(model: QuadraticModel, radius: float, unit: float, options: StepOptions) -> StepRows:
    radius = radius if radius < options.unlimited else np.inf
    return StepRows(
        np.maximum(model.steps.lower, -radius) / unit,
        np.minimum(model.steps.upper, radius) / unit,
        tuple(replace(cone, offset=cone.offset / unit) for cone in model.steps.cones),
    )


def _beside(left: Any, right: scipy.sparse.csr_array) -> Any:
    """Two matrices side by side, sparse where the left one is."""
    if scipy.sparse.issparse(left):
        return scipy.sparse.csr_array(scipy.sparse.hstack([left, right]))
    return np.hstack([left, right.toarray()])
