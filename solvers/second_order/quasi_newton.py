"""Curvature from gradients: damped BFGS, as a matrix or from the last few steps.

    B ← B − (B s)(B s)ᵀ / sᵀB s + y yᵀ / sᵀy,   s the step, y the change of ∇L along it,

y moved towards B s where sᵀy < 0.2 sᵀB s, so that B stays definite (Powell 1978). With memory m,

    B = σ I − W M⁻¹ Wᵀ,   W = [σ S, Y],   M = [[σ SᵀS, L], [Lᵀ, −D]],

S and Y the steps and changes kept, L + D + U = SᵀY (Byrd, Nocedal, Schnabel 1994), in natural units. The
eigenvalues of its low-rank part split B into σ I + V Vᵀ − R Rᵀ, the form that quadratic programs take.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers.algebra.hessians import Hessian, SparseHessian
from hcmodel.solvers.algebra.updates import damped, updated
from hcmodel.solvers.coordinates.protocol import Coordinates
from hcmodel.solvers.loop import Task
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.second_order.curvature import Curvature

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class QuasiNewtonOptions:
    """How the curvature is approximated from gradients."""

    # Unknowns up to which "bfgs" keeps a matrix.
    largest_matrix: int = (
        500  # a dense matrix of 2 MB; beyond, its updates cost more than the programs
    )
    # The steps that the limited memory keeps.
    memory: int = 10  # Byrd, Nocedal and Schnabel 1994 use 3 to 20
    # The first B in natural units, relative to the slope.
    first: float = 0.1  # a step of ten natural units at full slope


DEFAULTS = QuasiNewtonOptions()


class BfgsCurvature:
    """B as a matrix."""

    def __init__(self, options: QuasiNewtonOptions = DEFAULTS) -> None:
        self._options = options
        self._matrix: FloatArray | None = None

    def at(
        self, task: Task, geometry: Coordinates, evaluation: Evaluation, multipliers: FloatArray
    ) -> Hessian:
        if self._matrix is None:
            metric = task.domain.metric(evaluation.point)
            slope = _slope(evaluation, multipliers, metric)
            self._matrix = np.diag(self._options.first * slope / metric**2)
        return self._matrix

    def moved(self, old: Evaluation, new: Evaluation, multipliers: FloatArray) -> None:
        if self._matrix is None:
            return
        step, change = _difference(old, new, multipliers)
        self._matrix = updated(self._matrix, step, change)


class LimitedMemoryCurvature:
    """B from the last few steps; nothing of the size of a matrix is ever formed."""

    def __init__(self, options: QuasiNewtonOptions = DEFAULTS) -> None:
        self._options = options
        self._pairs: list[tuple[FloatArray, FloatArray]] = []
        self._metric: FloatArray | None = None
        self._scale = 1.0
        self._model: SparseHessian | None = None  # in natural units

    def at(
        self, task: Task, geometry: Coordinates, evaluation: Evaluation, multipliers: FloatArray
    ) -> Hessian:
        if self._metric is None or self._model is None:
            self._metric = np.asarray(task.domain.metric(evaluation.point))
            self._scale = self._options.first * _slope(evaluation, multipliers, self._metric)
            self._model = _low_rank(self._scale, [], self._metric.size)
        return self._model.scaled(1.0 / self._metric)

    def moved(self, old: Evaluation, new: Evaluation, multipliers: FloatArray) -> None:
        if self._metric is None or self._model is None:
            return
        step, change = _difference(old, new, multipliers)
        step, change = step / self._metric, change * self._metric
        product = self._model @ step
        if float(step @ product) <= 0 or not np.isfinite(change).all():
            return
        change = damped(step, change, product)
        self._pairs = [*self._pairs, (step, change)][-self._options.memory :]
        self._scale = float(change @ change) / float(step @ change)
        try:
            self._model = _low_rank(self._scale, self._pairs, step.size)
        except np.linalg.LinAlgError:  # steps that depend on each other: begin with the last one
            self._pairs = self._pairs[-1:]
            self._model = _low_rank(self._scale, self._pairs, step.size)


class FromGradients:
    """Damped BFGS as a matrix, or with limited memory where that would be large."""

    def __init__(self, options: QuasiNewtonOptions = DEFAULTS) -> None:
        self._options = options
        self._inner: Curvature | None = None

    def at(
        self, task: Task, geometry: Coordinates, evaluation: Evaluation, multipliers: FloatArray
    ) -> Hessian:
        if self._inner is None:
            small = evaluation.point.size <= self._options.largest_matrix
            self._inner = (BfgsCurvature if small else LimitedMemoryCurvature)(self._options)
        return self._inner.at(task, geometry, evaluation, multipliers)

    def moved(self, old: Evaluation, new: Evaluation, multipliers: FloatArray) -> None:
        if self._inner is not None:
            self._inner.moved(old, new, multipliers)


def _slope(evaluation: Evaluation, multipliers: FloatArray, metric: FloatArray) -> float:
    gradient = evaluation.gradient + evaluation.jacobian.T @ multipliers
    return float(np.max(np.abs(gradient * metric), initial=0.0)) or 1.0


def _difference(
    old: Evaluation, new: Evaluation, multipliers: FloatArray
) -> tuple[FloatArray, FloatArray]:
    change = new.gradient - old.gradient + (new.jacobian - old.jacobian).T @ multipliers
    return new.point - old.point, np.asarray(change)


def _low_rank(scale: float, pairs: list[tuple[FloatArray, FloatArray]], size: int) -> SparseHessian:
    """σ I + V Vᵀ − R Rᵀ, from the compact form."""
    identity = scipy.sparse.csr_array(scipy.sparse.diags_array(np.full(size, scale)))
    if not pairs:
        return SparseHessian(identity, convex=True)
    steps, changes = (np.array(each).T for each in zip(*pairs, strict=True))
    inner = steps.T @ changes
    lower, diagonal = np.tril(inner, -1), np.diag(np.diag(inner))
    middle = np.block([[scale * steps.T @ steps, lower], [lower.T, -diagonal]])
    basis, triangle = np.linalg.qr(np.hstack([scale * steps, changes]))
    core = -triangle @ np.linalg.solve(middle, triangle.T)
    values, vectors = np.linalg.eigh((core + core.T) / 2)
    values = np.maximum(values, -scale)  # B is definite, but for rounding
    columns = (basis @ vectors) * np.sqrt(np.abs(values))
    return SparseHessian(identity, columns[:, values > 0], columns[:, values < 0], convex=True)
