"""A general map u = c(x) of hidden coordinates: steps are taken in x, but measured in u.

The map is the one of a compiled stack. Its inverse is found by Newton's method (`newton`); units and
ranks are decided in `tangent`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import cached_property, dataclass
from hcmodel.solvers.algebra.hessians import Hessian, as_dense
from hcmodel.solvers.algebra.storage import as_array
from hcmodel.solvers.algebra.symmetric import to_matrix, to_vector
from hcmodel.solvers.coordinates.frame import Frame
from hcmodel.solvers.coordinates.newton import (
    ATTEMPT,
    RETRACTION,
    SEARCH,
    WAYPOINTS,
    Target,
    newton,
)
from hcmodel.solvers.coordinates.plain import PlainCoordinates
from hcmodel.solvers.coordinates.protocol import Coordinates, SecondDerivatives
from hcmodel.solvers.coordinates.tangent import Tangent, tangent_directions
from hcmodel.solvers.numerics import BACKEND_ROUNDING, DATA_ROUNDING, TINY
from hcmodel.solvers.oracle import Evaluation, Oracle, Stack
from hcmodel.solvers.sets.cone_units import natural_directions
from hcmodel.solvers.sets.domain import Domain

FloatArray = NDArray[np.float64]

# Added to the metric within cones, relative to its largest entry outside them, so that it is definite:
# ten times the accuracy of the backend.
LEAST_CURVATURE = 10 * BACKEND_ROUNDING
# Points whose derivatives are kept: the current one, a trial, and the two that a certificate compares.
KEPT = 4


class _Memo:
    """The entries asked for last."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept: OrderedDict[bytes, Any] = OrderedDict()

    def get(self, key: bytes) -> Any:
        """The entry, or None."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def keep(self, key: bytes, entry: Any) -> None:
        self._kept[key] = entry
        if len(self._kept) > self._size:
            self._kept.popitem(last=False)

    def clear(self) -> None:
        self._kept.clear()


@dataclass(frozen=True)
class MapCoordinates:
    """Coordinates u = c(x), c being the map of the stack, or `selection` @ c where that is given.

    `bending` marks entries of x whose bounds are curved in u: they do not enter the model, and a step
    that crosses them is cut short by the search. `curved` are matrices whose cone is: what the cone takes
    up of ∇L is its multiplier Λ, and B is that of L − Λ·P(u). `explicit` is the inverse, where known.
    """

    stack: Stack
    domain: Domain
    bending: NDArray[np.bool_]
    curved: tuple[slice, ...] = ()
    selection: scipy.sparse.csr_array | None = None
    explicit: Callable[[FloatArray], FloatArray] | None = field(default=None, repr=False)
    _memo: _Memo = field(default_factory=lambda: _Memo(KEPT), compare=False, repr=False)
    _tangents: _Memo = field(
        default_factory=lambda: _Memo(KEPT), init=False, compare=False, repr=False
    )

    def forget(self) -> None:
        """To be called when the map itself has changed, by new data; holds for copies too."""
        self._memo.clear()

    # ---- the map and its derivatives

    def image(self, x: FloatArray) -> FloatArray:
        known = self._memo.get(x.tobytes())
        return self.selected(self.stack.evaluate(x, "map").values if known is None else known[0])

    def tangent(self, x: FloatArray) -> Tangent:
        key, linear = x.tobytes(), self._linear(x)
        known = self._tangents.get(key)
        if known is not None and known[0] is linear:
            tangent: Tangent = known[1]
            return tangent
        directions = tangent_directions(self.domain, self._basis, x)
        tangent = Tangent(directions, self.selected(linear[1]) @ directions)
        self._tangents.keep(key, (linear, tangent))
        return tangent

    def _linear(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """c(x) and J, without the selection; those of the last points from memory."""
        key = x.tobytes()
        known = self._memo.get(key)
        if known is None:
            known = self._linearised(x)
            self._memo.keep(key, known)
        linear: tuple[FloatArray, FloatArray] = known
        return linear

    def _linearised(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        forward = self.stack.evaluate(x, "map")
        return forward.values, as_array(forward.jacobian())

    def selected(self, rows: FloatArray) -> FloatArray:
        """The entries of the map that count, from all of them."""
        return rows if self.selection is None else np.asarray(self.selection @ rows)

    @cached_property
    def _basis(self) -> FloatArray:
        return np.asarray(self.domain.tangent_basis().toarray())

    def slopes(self, x: FloatArray, gradients: FloatArray) -> FloatArray | None:
        tangent = self.tangent(x)
        return tangent.slopes(gradients) if tangent.full_rank else None

    def hidden_hessian(
        self, x: FloatArray, gradient: FloatArray, second: SecondDerivatives
    ) -> Hessian:
        """B on the tangent space of X; ∇²F where the map has no derivatives.

        Where the map is singular, slopes are the least that fit.
        """
        tangent = self.tangent(x)
        if not tangent.defined:
            return second(None)
        slope = tangent.slopes(gradient[None, :])[0]
        if self.selection is not None:
            slope = self.selection.T @ slope
        basis, hessian = self._basis, as_dense(second(-slope))
        return np.asarray(basis @ (basis.T @ hessian @ basis) @ basis.T)

    def inverse(
        self, image: FloatArray, start: FloatArray, *, thorough: bool = True
    ) -> FloatArray | None:
        """By an inverse that is known, or by Newton's method, also along the way from the start."""
        if self.explicit is not None and image.size == start.size:
            with np.errstate(all="ignore"):
                known = self.explicit(image)
            return known if np.isfinite(known).all() else None
        found = newton(self._target(image, start), start, SEARCH if thorough else ATTEMPT)
        if found is not None or not thorough:
            return found
        first, current = self.image(start), start
        for share in np.linspace(0.0, 1.0, WAYPOINTS + 1)[1:]:
            target = self._target(first + share * (image - first), current)
            found = newton(target, current, SEARCH)
            if found is None:
                return None
            current = found
        return current

    def _target(self, goal: FloatArray, x: FloatArray) -> Target:
        directions = tangent_directions(self.domain, self._basis, x)

        def linearised(point: FloatArray) -> tuple[FloatArray, FloatArray]:
            values, jacobian = self._memo.get(point.tobytes()) or self._linearised(point)
            return self.selected(values), self.selected(jacobian)

        return Target(self.image, linearised, directions, goal)

    # ---- steps

    def frame(self, evaluation: Evaluation, curvature: Hessian | None = None) -> Frame:
        """Directions of u in natural units, as steps in x: orthonormal ones where X is not a cone."""
        plain = Frame(self.domain.metric(evaluation.point))
        tangent = self.tangent(evaluation.point)
        if not tangent.defined:
            return plain
        inside = self._inside_cones(evaluation, tangent.directions, curvature)
        columns = tangent.orthonormal() if inside is None else inside
        return plain if columns is None else Frame(plain.scale, columns, self.bending)

    def _inside_cones(
        self, evaluation: Evaluation, directions: FloatArray, curvature: Hessian | None
    ) -> FloatArray | None:
        """Directions of length 1 by B/|F1| + N, N the natural metric of matrix cones.

        This is the metric of a barrier method, and like that it does not depend on the units of u: with
        c = (P, K P) a unit of K P is what costs as much as the regulator does. None without cones.
        """
        point = evaluation.point
        steps = self.domain.step_rows(point, np.ones(point.size))
        natural, inside = natural_directions(steps, directions)
        if curvature is None or not inside.any():
            return None
        hessian = as_dense(curvature) / max(abs(evaluation.objective), TINY)
        if not np.isfinite(hessian).all():
            return None
        metric = natural.T @ hessian @ natural + np.diag(inside.astype(float))
        least = LEAST_CURVATURE * float(np.max(np.diag(metric)[~inside], initial=0.0))
        metric[np.diag_indices_from(metric)] += max(least, TINY)
        try:
            root = np.linalg.cholesky(metric)
        except np.linalg.LinAlgError:
            return None
        return np.asarray(np.linalg.solve(root, natural.T).T)

    def hessian(self, oracle: Oracle, evaluation: Evaluation, multipliers: FloatArray) -> Hessian:
        gradient = np.array(evaluation.gradient + evaluation.jacobian.T @ multipliers)
        for own in self.curved:
            gradient[own] = -to_vector(_positive_part(-to_matrix(gradient[own])))
        return self.hidden_hessian(
            evaluation.point,
            gradient,
            lambda weights: oracle.lagrangian_hessian(evaluation, multipliers, weights),
        )

    def retract(self, x: FloatArray, step: FloatArray) -> FloatArray:
        """c⁻¹(c(x) + J d) by Newton's method on c from x + d; the plain step where that fails."""
        values, jacobian = self._linear(x)
        goal = self.selected(values + jacobian @ step)
        if np.isfinite(goal).all():
            target = self._target(goal, x)
            found = newton(target, x + step, RETRACTION)
            if found is None and not self.tangent(x).full_rank:
                # From x the first step is the least one with the image J d, which is not d here.
                found = newton(target, x, RETRACTION)
            if found is not None:
                return self.domain.project(found)
        return self.domain.project(x + step)

    def bends(self, x: FloatArray) -> bool:
        room = self.domain.step_rows(x, np.ones(x.size))
        least = DATA_ROUNDING * np.maximum(1.0, np.abs(x))
        return bool((self.bending & ((room.upper <= least) | (-room.lower <= least))).any())

    def plain(self) -> Coordinates:
        return PlainCoordinates(self.domain)


def _positive_part(matrix: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
