"""KKT points that are shown to be such, for models without a map.

In a hidden-convex problem every KKT point is a global minimum, whatever the map. So a KKT point with a
better feasible point elsewhere refutes. A small residual is not enough: saturated functions have small
slopes far from any KKT point. A point counts only if it is not degenerate: Newton's method on the KKT
system has converged, the system is well conditioned against the size of the objective, it is almost
linear around the point (so that an exact solution is near), and the multipliers of all that is
active are clearly positive.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.analysis.analysis_options import STATIONARY
from hcmodel.analysis.hidden_map import OBJECTIVE, HiddenMap, MapPoint
from hcmodel.analysis.segments import inside
from hcmodel.records import dataclass
from hcmodel.solvers.algebra.hessians import as_dense
from hcmodel.solvers.numerics import TINY

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Stationary:
    """A KKT point, or a sharp minimum, with multipliers of its rows and the rows that hold it."""

    point: MapPoint
    multipliers: FloatArray
    active: NDArray[np.intp]
    residual: float | None
    sharp: bool = False


@dataclass(frozen=True)
class _System:
    """The KKT system on one face of X with one set of active rows."""

    model: HiddenMap
    face: FloatArray
    active: NDArray[np.intp]

    def slopes(self, point: MapPoint) -> FloatArray:
        return np.asarray(point.row_jacobian[self.active] @ self.face)

    def residual(self, point: MapPoint, multipliers: FloatArray) -> FloatArray:
        gradient = self.face.T @ point.gradient(OBJECTIVE)
        lagrangian = gradient + self.slopes(point).T @ multipliers
        return np.concatenate([lagrangian, point.rows[self.active]])

    def matrix(self, point: MapPoint, multipliers: FloatArray) -> FloatArray:
        rows = np.zeros(self.model.rows)
        rows[self.active] = multipliers
        weights = self.model.lagrangian_weights(1.0, rows)
        hessian = self.face.T @ as_dense(self.model.stack.hessian(point.point, weights)) @ self.face
        slopes = self.slopes(point)
        corner = np.zeros((self.active.size, self.active.size))
        return np.block([[hessian, slopes.T], [slopes, corner]])


def polish(model: HiddenMap, start: FloatArray, multipliers: FloatArray) -> Stationary | None:
    """The KKT point that Newton's method reaches from `start`, if it passes the first tests.

    `multipliers` say which inequalities are active. The tests that need to know how much the
    objective varies are in `is_clear`.
    """
    x = model.domain.snapped(model.domain.project(start), STATIONARY.near)
    face = model.domain.flat_face(x, STATIONARY.on_face)
    if face is None:
        return None
    point = model.at(x)
    system = _independent(model, point, face, multipliers)
    if system is None:
        return None
    weights = np.asarray(multipliers[system.active], dtype=float)
    step = np.full(face.shape[1], np.inf)
    for _ in range(STATIONARY.newton_steps):
        solution = _solve(system, point, weights)
        if solution is None:
            return None
        step, change = solution[: face.shape[1]], solution[face.shape[1] :]
        largest = float(np.max(np.abs(step), initial=0.0))
        share = min(1.0, STATIONARY.longest_step / max(largest, TINY))
        weights = weights + change
        point = model.at(point.point + face @ (share * step))
        if not point.finite:
            return None
        if largest <= STATIONARY.last_step:
            break
    if float(np.max(np.abs(step), initial=0.0)) > STATIONARY.converged:
        return None
    found = np.zeros(model.rows)
    found[system.active] = weights
    gradient = point.gradient(OBJECTIVE) + point.row_jacobian.T @ found
    downhill = model.domain.normal_cone_distance(point.point, -gradient)
    residual = float(np.max(np.abs(downhill), initial=0.0))
    if not (inside(model, point.point) and point.violation <= STATIONARY.feasible):
        return None
    return Stationary(point, found, system.active, residual)


def is_clear(
    model: HiddenMap, found: Stationary, variation: float, generator: np.random.Generator
) -> bool:
    """Whether the point is a KKT point beyond doubt; `variation` is the size of the objective."""
    x = found.point.point
    metric = np.asarray(model.domain.metric(x))
    face = model.domain.flat_face(x, STATIONARY.on_face)
    if face is None or found.residual is None:
        return False
    if found.residual * float(np.max(metric)) > STATIONARY.residual * variation:
        return False
    active = found.active
    system = _System(model, face, active)
    slopes = np.linalg.norm(system.slopes(found.point), axis=1)
    strength = found.multipliers[active] * slopes
    if (strength[active < model.inequalities] < STATIONARY.clear * variation).any():
        return False
    if not _bounds_hold_clearly(model, found, STATIONARY.clear * variation):
        return False
    return _is_regular(system, found, slopes, variation, generator)


def _is_regular(
    system: _System,
    found: Stationary,
    slopes: FloatArray,
    variation: float,
    generator: np.random.Generator,
) -> bool:
    """Well conditioned in natural units, and nearly linear around the point."""
    weights = found.multipliers[system.active]
    matrix = system.matrix(found.point, weights)
    if matrix.shape[0] == 0:
        return True  # a corner of X, held by its bounds alone
    size = system.face.shape[1]
    root = np.sqrt(variation)
    units = np.concatenate([np.full(size, 1 / root), root / np.maximum(slopes, TINY)])
    scaled = matrix * units[:, None] * units[None, :]
    if not np.isfinite(scaled).all():
        return False
    if float(np.linalg.svd(scaled, compute_uv=False)[-1]) < STATIONARY.condition:
        return False
    here = system.residual(found.point, weights)
    for radius in STATIONARY.radii:
        for _ in range(STATIONARY.comparisons):
            step = generator.normal(size=size)
            step *= radius / max(float(np.linalg.norm(step)), TINY)
            moved = system.model.at(found.point.point + system.face @ step)
            if not moved.finite:
                return False
            reached = np.linalg.solve(matrix, system.residual(moved, weights) - here)
            error = np.concatenate([reached[:size] - step, reached[size:]]) / (units * root)
            if not float(np.linalg.norm(error)) <= STATIONARY.nonlinear * radius:
                return False
    return True


def _bounds_hold_clearly(model: HiddenMap, found: Stationary, least: float) -> bool:
    """Whether every bound that holds the point is pushed against by more than `least`."""
    gradient = found.point.gradient(OBJECTIVE) + found.point.row_jacobian.T @ found.multipliers
    return not model.domain.weakest_bound(found.point.point, gradient) < least


def _solve(system: _System, point: MapPoint, weights: FloatArray) -> FloatArray | None:
    matrix, residual = system.matrix(point, weights), system.residual(point, weights)
    if not (np.isfinite(matrix).all() and np.isfinite(residual).all()):
        return None
    try:
        return np.asarray(np.linalg.solve(matrix, -residual))
    except np.linalg.LinAlgError:
        return None


def _independent(
    model: HiddenMap, point: MapPoint, face: FloatArray, multipliers: FloatArray
) -> _System | None:
    """The system with the equalities and the active inequalities, dependent rows left out."""
    if not point.finite or not np.isfinite(point.row_jacobian).all():
        return None
    count = model.inequalities
    wanted = np.flatnonzero((multipliers > 0) | (np.arange(model.rows) >= count))
    slopes = point.row_jacobian[wanted] @ face
    if wanted.size:
        upper, order = scipy.linalg.qr(slopes.T, mode="r", pivoting=True)
        sizes = np.abs(np.diag(upper))
        rank = int(np.sum(sizes > STATIONARY.dependent * max(sizes[0], TINY))) if sizes.size else 0
        wanted = np.sort(wanted[order[:rank]])
    return _System(model, face, wanted)
