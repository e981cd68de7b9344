"""The metric that a bundle of past linearisations gives: damped BFGS on the Lagrangian.

Points x_k with their first derivatives tell how the gradient of the Lagrangian changes,

    s_k = x_k+1 − x_k,     y_k = ∇F1(x_k+1) − ∇F1(x_k) + (∇rows(x_k+1) − ∇rows(x_k))ᵀ λ,

with the multipliers λ of today. From the multiple of the identity that fits the last pair, each pair in
turn makes the matrix satisfy B s = y, damped (Powell 1978) so that B stays definite. Only directions
along the equalities count: across them the rows alone decide where a step goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf

from hcmodel.solvers.algebra.updates import update
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

    def tangent(vectors: FloatArray) -> FloatArray:
        return vectors - (vectors @ normals) @ normals.T if normals.size else vectors

    points = np.array([evaluation.point for evaluation in bundle])
    steps = tangent(np.diff(points, axis=0) / metric)
    changes = tangent(np.diff(_gradients(bundle, multipliers), axis=0) * metric)
    curvatures = np.sum(steps * changes, axis=1) / np.maximum(np.sum(steps**2, axis=1), TINY)
    rising = curvatures[curvatures > 0]
    if not rising.size:
        return None
    last = float(rising[-1])
    gradient = lagrangian_gradient(current, multipliers)
    downhill = tangent(metric * domain.normal_cone_distance(current.point, -gradient))
    return _joined(steps, changes, last, float(np.linalg.norm(downhill)))


def _joined(steps: FloatArray, changes: FloatArray, first: float, smallest: float) -> FloatArray:
    """The matrix of all pairs, begun as `first` times the identity; no eigenvalue is below `smallest`.

    Few pairs leave a multiple of the identity across the space that they span, and are joined inside it.
    """
    count, size = steps.shape
    if 4 * count > size:
        return _at_least(_updates(steps, changes, first), smallest)
    basis = np.linalg.qr(np.vstack([steps, changes]).T)[0]
    inside = _at_least(_updates(steps @ basis, changes @ basis, first), smallest)
    across = max(first, smallest)
    found = basis @ (inside - across * np.eye(inside.shape[0])) @ basis.T
    found[np.diag_indices(size)] += across
    return np.asarray(0.5 * (found + found.T))


def _updates(steps: FloatArray, changes: FloatArray, first: float) -> FloatArray:
    matrix = np.asfortranarray(first * np.eye(steps.shape[1]))
    known = np.isfinite(changes).all(axis=1)
    for step, change in zip(steps[known], changes[known], strict=True):
        update(matrix, step, change)
    return matrix


def _gradients(bundle: Sequence[Evaluation], multipliers: FloatArray) -> FloatArray:
    """The gradients of the Lagrangian at the points, one in each row."""
    slopes = np.array([evaluation.gradient for evaluation in bundle])
    if not multipliers.size:
        return slopes
    rows = [evaluation.jacobian for evaluation in bundle]
    if not all(type(each) is np.ndarray for each in rows):
        return np.array([lagrangian_gradient(each, multipliers) for each in bundle])
    return np.asarray(slopes + multipliers @ np.array(rows))


def _normals(current: Evaluation, metric: FloatArray) -> FloatArray:
    """Orthonormal columns that span the slopes of the equalities."""
    rows: Any = current.jacobian[current.inequalities :]
    dense = rows.toarray() if scipy.sparse.issparse(rows) else np.asarray(rows)
    if dense.shape[0] == 0:
        return np.zeros((metric.size, 0))
    left, sizes, _ = np.linalg.svd((dense * metric).T, full_matrices=False)
    return np.asarray(left[:, sizes > DEPENDENT * max(sizes[0], TINY)])


def _at_least(matrix: FloatArray, smallest: float) -> FloatArray:
    shifted = matrix - smallest * np.eye(matrix.shape[0])
    if dpotrf(shifted, lower=1, clean=0, overwrite_a=1)[1] == 0:
        return matrix  # no eigenvalue is below it, and a factorisation is faster than eigenvalues
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, smallest)) @ vectors.T)
