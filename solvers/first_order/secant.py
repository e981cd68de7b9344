"""The metric that a bundle of past linearisations gives: damped BFGS on the Lagrangian.

Points x_k with their first derivatives tell how the gradient of the Lagrangian changes,

    s_k = x_k+1 − x_k,     y_k = ∇F1(x_k+1) − ∇F1(x_k) + (∇rows(x_k+1) − ∇rows(x_k))ᵀ λ,

with the multipliers λ of today. From the multiple of the identity that fits the last pair, each pair in
turn makes the matrix satisfy B s = y, damped (Powell 1978) so that B stays definite. Only directions
along the equalities count: across them the rows alone decide where a step goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.solvers.algebra.updates import updated
from hcmodel.solvers.kkt import lagrangian_gradient
from hcmodel.solvers.numerics import DEPENDENT, TINY
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.sets.domain import Domain

FloatArray = NDArray[np.float64]


def secant_matrix(
    bundle: Sequence[Evaluation], current: Evaluation, multipliers: FloatArray, domain: Domain
) -> FloatArray | None:
    """B in the units of the domain's metric at the current point; None where no pair shows curvature.

    No eigenvalue is below the length of the gradient of the Lagrangian. So no step of B is longer than
    a natural one, however flat the model, and near a solution nothing is lost.
    """
    if len(bundle) < 2:
        return None
    metric = domain.metric(current.point)
    normals = _normals(current, metric)

    def tangent(vector: FloatArray) -> FloatArray:
        return np.asarray(vector - normals @ (normals.T @ vector))

    pairs = [
        (
            tangent((new.point - old.point) / metric),
            tangent(metric * _change(old, new, multipliers)),
        )
        for old, new in pairwise(bundle)
    ]
    curvatures = [float(s @ y) / max(float(s @ s), TINY) for s, y in pairs]
    last = next((value for value in reversed(curvatures) if value > 0), None)
    if last is None:
        return None
    matrix = last * np.eye(metric.size)
    for step, change in pairs:
        matrix = updated(matrix, step, change)
    gradient = lagrangian_gradient(current, multipliers)
    downhill = tangent(metric * domain.normal_cone_distance(current.point, -gradient))
    return _at_least(matrix, float(np.linalg.norm(downhill)))


def _change(old: Evaluation, new: Evaluation, multipliers: FloatArray) -> FloatArray:
    return lagrangian_gradient(new, multipliers) - lagrangian_gradient(old, multipliers)


def _normals(current: Evaluation, metric: FloatArray) -> FloatArray:
    """Orthonormal columns that span the slopes of the equalities."""
    rows: Any = current.jacobian[current.inequalities :]
    dense = rows.toarray() if scipy.sparse.issparse(rows) else np.asarray(rows)
    if dense.shape[0] == 0:
        return np.zeros((metric.size, 0))
    left, sizes, _ = np.linalg.svd((dense * metric).T, full_matrices=False)
    return np.asarray(left[:, sizes > DEPENDENT * max(sizes[0], TINY)])


def _at_least(matrix: FloatArray, smallest: float) -> FloatArray:
    values, vectors = np.linalg.eigh(matrix)
    if values[0] >= smallest:
        return matrix
    return np.asarray((vectors * np.maximum(values, smallest)) @ vectors.T)
