"""A general map u = c(x) of hidden coordinates: steps are taken in x, but measured in u.

The hidden Hessian is

    B = ∇²[L − s·c],   Jᵀs = ∇L on the tangent space of X   (s held fixed),

which is Jᵀ∇²H J for the convex H with L = H∘c; steps are walked along the hidden straight line
x ← c⁻¹(c(x) + J d).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.solvers.algebra.hessians import Hessian, as_dense
from hcmodel.solvers.algebra.symmetric import to_matrix, to_vector
from hcmodel.solvers.coordinates.geometry import Frame, Geometry, PlainGeometry
from hcmodel.solvers.oracle import Evaluation, Oracle, Stack
from hcmodel.solvers.sets.cone_units import natural_directions
from hcmodel.solvers.sets.domain import Domain

FloatArray = NDArray[np.float64]

# Newton's method on c: iterations, the accuracy of c(x') relative to the terms in c that makes an end,
# and that which is accepted where rounding allows no better.
RETRACTIONS = 40
RETRACTION_ACCURACY = 1e-13
ROUGH_ACCURACY = 1e-10
# The factor by which the miss must fall from one iteration to the next for old derivatives to be kept.
FAST = 0.1
# Entries of c whose terms are smaller than this share of the largest are measured by that.
LEAST_SCALE = 1e-4
# Coordinates that move by less than this factor, or its inverse, are measured in their own units.
MODERATE = 1e6
# Added to the metric within cones, relative to its largest entry outside them, so that it is definite.
LEAST_CURVATURE = 1e-9
# One whose balanced Jacobian has singular values this far apart has no inverse there.
DEPENDENT = 1e-13
# A map whose Jacobian has singular values this far apart is not used as a frame at that point.
SINGULAR = 1e-10


@dataclass(frozen=True)
class MapGeometry:
    """Coordinates u = c(x), c being the map of the stack.

    `bending` marks entries of x whose bounds are curved in u: they do not enter the model, and a step
    that crosses them is cut short by the search. `curved` are matrices whose cone is: what of ∇L the
    cone takes up is its multiplier Λ, and B is that of L − Λ·P(u).
    """

    stack: Stack
    domain: Domain
    bending: NDArray[np.bool_]
    curved: tuple[slice, ...] = ()
    _memo: list[FloatArray] = field(default_factory=list, compare=False, repr=False)

    def forget(self) -> None:
        """To be called when the map itself has changed, by new data."""
        self._memo.clear()

    def _tangent(self, x: FloatArray) -> FloatArray:
        """Directions along which X extends, of natural length where that is far from 1."""
        basis = np.asarray(self.domain.tangent_basis().toarray())
        return basis * _unusual(np.sqrt((basis**2).T @ self.domain.metric(x) ** 2))

    def _jacobian(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """c and its derivatives, those of the last point from memory."""
        if self._memo and np.array_equal(self._memo[0], x):
            return self._memo[1], self._memo[2]
        forward = self.stack.evaluate(x, "map")
        jacobian: Any = forward.jacobian()
        dense = jacobian.toarray() if scipy.sparse.issparse(jacobian) else np.asarray(jacobian)
        self._memo[:] = [x.copy(), forward.values, dense]
        return forward.values, dense

    def _local(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Tangent directions T, the map's derivative along them in units of u, and those units."""
        tangent = self._tangent(x)
        along = self._jacobian(x)[1] @ tangent
        sizes = _unusual(np.max(np.abs(along), axis=1, initial=0.0))
        return tangent, along / sizes[:, None], sizes

    def frame(self, evaluation: Evaluation, curvature: Hessian | None = None) -> Frame:
        """Directions of u in natural units, walked back to x: orthonormal ones where X is no cone."""
        plain = Frame(self.domain.metric(evaluation.point))
        tangent, along, _ = self._local(evaluation.point)
        if not np.isfinite(along).all():
            return plain
        inside = self._inside_cones(evaluation, tangent, curvature)
        if inside is not None:
            return Frame(plain.scale, inside, self.bending)
        _, sizes, right = np.linalg.svd(along, full_matrices=False)
        if sizes.size < tangent.shape[1] or sizes[-1] <= SINGULAR * sizes[0]:
            return plain
        return Frame(plain.scale, tangent @ (right.T / sizes), self.bending)

    def _inside_cones(
        self, evaluation: Evaluation, tangent: FloatArray, curvature: Hessian | None
    ) -> FloatArray | None:
        """Directions of length 1 by B/|F1| + N, N the natural metric of matrix cones.

        This is the metric of a barrier method, and as indifferent as that to the units of u: with
        c = (P, K P) a unit of K P is what costs as much as the regulator does. None without cones.
        """
        point = evaluation.point
        steps = self.domain.step_rows(point, np.ones(point.size))
        natural, inside = natural_directions(steps, tangent)
        if curvature is None or not inside.any():
            return None
        hessian = as_dense(curvature) / max(abs(evaluation.objective), 1e-300)
        if not np.isfinite(hessian).all():
            return None
        metric = natural.T @ hessian @ natural + np.diag(inside.astype(float))
        least = LEAST_CURVATURE * float(np.max(np.diag(metric)[~inside], initial=0.0))
        metric[np.diag_indices_from(metric)] += max(least, 1e-300)
        try:
            root = np.linalg.cholesky(metric)
        except np.linalg.LinAlgError:
            return None
        return np.asarray(np.linalg.solve(root, natural.T).T)

    def hessian(self, oracle: Oracle, evaluation: Evaluation, multipliers: FloatArray) -> Hessian:
        tangent, along, sizes = self._local(evaluation.point)
        if not np.isfinite(along).all():
            return oracle.lagrangian_hessian(evaluation, multipliers)
        gradient = evaluation.gradient + evaluation.jacobian.T @ multipliers
        for own in self.curved:
            gradient[own] = -to_vector(_positive_part(-to_matrix(gradient[own])))
        slope = np.linalg.lstsq(along.T, tangent.T @ gradient, rcond=1e-14)[0] / sizes
        hessian = as_dense(oracle.lagrangian_hessian(evaluation, multipliers, -slope))
        basis = np.asarray(self.domain.tangent_basis().toarray())
        return np.asarray(basis @ (basis.T @ hessian @ basis) @ basis.T)

    def retract(self, x: FloatArray, step: FloatArray) -> FloatArray:
        """c⁻¹(c(x) + J d) by Newton's method on c from x + d; the plain step where that fails."""
        plain = self.domain.project(x + step)
        tangent = self._tangent(x)
        start, jacobian = self._jacobian(x)
        goal = start + jacobian @ step
        if not np.isfinite(goal).all():
            return plain
        for first in (x + step, x):
            found = self._invert(goal, first, tangent)
            if found is not None:
                return self.domain.project(found)
        return plain

    def _invert(
        self, goal: FloatArray, first: FloatArray, tangent: FloatArray
    ) -> FloatArray | None:
        """Newton's method until the miss is rounding, or small and falling no more."""
        point, last = first, np.inf
        jacobian = along = np.zeros((0, 0))
        falling = False
        with np.errstate(all="ignore"):
            for _ in range(RETRACTIONS):
                if falling:  # fast enough with the derivatives of an earlier point
                    values = self.stack.evaluate(point, "map").values
                else:
                    values, jacobian = self._jacobian(point)
                    along = jacobian @ tangent
                miss = goal - values
                if not (np.isfinite(miss).all() and np.isfinite(along).all()):
                    return None
                correction = _solved(along, miss)
                # Of the miss only what lies in the range of J can be mended; sizes are those of the
                # terms that cancel in c.
                scale = np.abs(goal) + np.abs(jacobian) @ np.abs(point)
                scale = np.maximum(scale, LEAST_SCALE * max(float(np.max(scale)), 1e-300))
                worst = float(np.max(np.abs(along @ correction) / scale))
                if not np.isfinite(worst):
                    return None
                if worst <= RETRACTION_ACCURACY or (worst >= last and last <= ROUGH_ACCURACY):
                    return point
                falling = worst <= FAST * last and np.isfinite(last)
                point, last = point + tangent @ correction, worst
        return None

    def orientation(self, x: FloatArray) -> bool | None:
        """Whether J keeps the orientation, where it is square; None where it is singular or undefined."""
        tangent, along, _ = self._local(x)
        if not np.isfinite(along).all():
            return None
        along = _balanced(along)
        sizes = np.linalg.svd(along, compute_uv=False)
        if sizes.size < tangent.shape[1] or sizes[-1] <= DEPENDENT * sizes[0]:
            return None
        square = along.shape[0] == along.shape[1]
        return bool(np.linalg.slogdet(along)[0] > 0) if square else True

    def bends(self, x: FloatArray) -> bool:
        room = self.domain.step_rows(x, np.ones(x.size))
        least = 1e-12 * np.maximum(1.0, np.abs(x))
        return bool((self.bending & ((room.upper <= least) | (-room.lower <= least))).any())

    def plain(self) -> Geometry:
        return PlainGeometry(self.domain)


def _positive_part(matrix: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _balanced(matrix: FloatArray) -> FloatArray:
    """Rows and columns divided by their sizes in turn, so that units alone make nothing singular."""
    for axis in (1, 0) * 3:
        sizes = np.sqrt(np.max(np.abs(matrix), axis=axis, keepdims=True, initial=0.0))
        matrix = matrix / np.where(sizes > 0, sizes, 1.0)
    return matrix


def _unusual(sizes: FloatArray) -> FloatArray:
    """Sizes where they are very large or small, 1 elsewhere."""
    moderate = (sizes > 1 / MODERATE) & (sizes < MODERATE)
    return np.asarray(np.where(moderate | (sizes == 0), 1.0, sizes))


def _solved(matrix: FloatArray, target: FloatArray) -> FloatArray:
    """matrix⁻¹ target: exact elimination where the matrix is square, for triangular maps are steep."""
    if matrix.shape[0] == matrix.shape[1]:
        try:
            return np.asarray(np.linalg.solve(matrix, target))
        except np.linalg.LinAlgError:
            pass
    return np.asarray(np.linalg.lstsq(matrix, target, rcond=None)[0])
