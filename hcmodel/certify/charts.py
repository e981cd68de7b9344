"""The coordinates u of a form as certificates see them: images, slopes by u, and the set V.

In a separable form u is the form's own vector and V its domain. Under a declared map u = c(x), the slope
of a function is the s with Jᵀs = ∇F on the tangent space of X, and V is made of what is known of each
entry of the map: the domain of a variable that is its own coordinate, an interval, or nonnegativity
where an entry is a probability times a weight. U may be thinner than the space of u (occupancies): then
s is known up to the normals N of the affine hull of U, and the best of them is found by a linear program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.certify.map_ranges import Range, map_ranges
from hcmodel.reductions.forms import Form
from hcmodel.reductions.smooth import curved_variables
from hcmodel.solvers.algebra.hessians import as_dense
from hcmodel.solvers.coordinates.general import SINGULAR, MapGeometry
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.sets.domain import Domain
from hcmodel.solvers.sets.product import Product

FloatArray = NDArray[np.float64]

# How far, relatively, images of samples may lie from the affine hull found at a point.
HULL_ACCURACY = 1e-7
SAMPLES = 4

Frame = tuple[FloatArray, FloatArray, FloatArray]


class Chart(Protocol):
    """Coordinates in which the functions are convex. `hull` spans U's directions, None for all."""

    @property
    def bounds(self) -> Domain: ...
    @property
    def hull(self) -> FloatArray | None: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    def image(self, evaluation: Evaluation) -> FloatArray:
        """u at the point."""

    def slopes(self, evaluation: Evaluation, gradients: FloatArray) -> FloatArray | None:
        """Derivatives by u from rows of derivatives by the form's vector; None where there are none."""

    def without_curved(
        self, evaluation: Evaluation, gradient: FloatArray
    ) -> tuple[FloatArray, float]:
        """The gradient without the part that bounds which bend in u hold back, and what that costs.

        For x in X, L(x) >= [L(x) − g·(x − x̃)] + min over X of g·(x − x̃), g that part of ∇L.
        """

    def curvature_of_bounds(
        self, evaluation: Evaluation, gradient: FloatArray
    ) -> tuple[FloatArray, ...]:
        """Hidden Hessians of −g·x, at the point and elsewhere, which have to be semidefinite."""

    def equals(self, slope: FloatArray, center: FloatArray) -> tuple[FloatArray, ...]:
        """Slopes that say the same of U, and of which one may say more of V."""


@dataclass(frozen=True)
class PlainChart:
    """The form's own vector."""

    bounds: Domain
    hull: FloatArray | None = None
    notes: tuple[str, ...] = ()

    def image(self, evaluation: Evaluation) -> FloatArray:
        return evaluation.point

    def slopes(self, evaluation: Evaluation, gradients: FloatArray) -> FloatArray | None:
        return gradients

    def without_curved(
        self, evaluation: Evaluation, gradient: FloatArray
    ) -> tuple[FloatArray, float]:
        return gradient, 0.0

    def curvature_of_bounds(
        self, evaluation: Evaluation, gradient: FloatArray
    ) -> tuple[FloatArray, ...]:
        return ()

    def equals(self, slope: FloatArray, center: FloatArray) -> tuple[FloatArray, ...]:
        return (slope,)


@dataclass(frozen=True)
class MapChart:
    """u = c(x), symmetric variables stored once."""

    geometry: MapGeometry
    selection: scipy.sparse.csr_array
    bounds: Domain
    hull: FloatArray | None
    normals: FloatArray
    notes: tuple[str, ...]
    tangent: FloatArray = field(repr=False)
    curved: tuple[tuple[slice, Domain], ...] = ()
    elsewhere: tuple[FloatArray, ...] = field(default=(), repr=False)
    known: dict[bytes, Frame | None] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(form: Form, evaluation: Evaluation) -> MapChart | None:
        """None where the map is singular at the point, or its image is no part of a plane."""
        geometry = form.map_geometry
        ranges = map_ranges(form.entries)
        if geometry is None or not ranges:
            return None
        selection = _selection(ranges)
        tangent = _natural_tangent(form.domain, evaluation.point)
        start, jacobian = _mapped(geometry, evaluation.point, selection, tangent)
        frame = _frame(jacobian)
        if frame is None:
            return None
        hull, normals = frame[0], np.zeros((start.size, 0))
        elsewhere = _samples(form)
        images = [form.stack.evaluate(x, "map").values for x in elsewhere]
        samples = [start, *(np.asarray(selection @ image) for image in images)]
        if hull.shape[0] > hull.shape[1]:
            normals = scipy.linalg.null_space(hull.T)
            if not all(_on_plane(normals, start, sample) for sample in samples):
                return None
        bounds, notes = _bounds(ranges, samples)
        curved, named = _curved(form)
        if curved:
            notes += (f"bounds of {named} counted as convex rows, as at every point looked at",)
        return MapChart(
            geometry=geometry,
            selection=selection,
            bounds=bounds,
            hull=hull if normals.size else None,
            normals=normals,
            notes=notes,
            tangent=tangent,
            curved=curved,
            elsewhere=tuple(elsewhere),
        )

    def image(self, evaluation: Evaluation) -> FloatArray:
        return np.asarray(
            self.selection @ self.geometry.stack.evaluate(evaluation.point, "map").values
        )

    def slopes(self, evaluation: Evaluation, gradients: FloatArray) -> FloatArray | None:
        frame = self._frame_at(evaluation.point)
        if frame is None:
            return None
        left, sizes, right = frame
        return np.asarray(((gradients @ self.tangent) @ right.T / sizes) @ left.T)

    def equals(self, slope: FloatArray, center: FloatArray) -> tuple[FloatArray, ...]:
        if not self.normals.size:
            return (slope,)
        tilted = _tilted(slope, self.normals, center, self.bounds.entry_bounds())
        return (slope,) if tilted is None else (slope, tilted)

    def without_curved(
        self, evaluation: Evaluation, gradient: FloatArray
    ) -> tuple[FloatArray, float]:
        rest, cost = gradient.copy(), 0.0
        for own, domain in self.curved:
            cost += domain.least(gradient[own], evaluation.point[own])
            rest[own] = 0.0
        return (rest, cost) if np.isfinite(cost) else (gradient, 0.0)

    def curvature_of_bounds(
        self, evaluation: Evaluation, gradient: FloatArray
    ) -> tuple[FloatArray, ...]:
        if not self.curved:
            return ()
        held = self.without_curved(evaluation, gradient)[0] - gradient
        basis = np.asarray(self.geometry.domain.tangent_basis().toarray())
        found = []
        for x in (evaluation.point, *self.elsewhere):
            frame = self._frame_at(x)
            if frame is None:
                continue
            left, sizes, right = frame
            slope = left @ (right @ (self.tangent.T @ held) / sizes)
            stack = self.geometry.stack
            weights = np.concatenate([np.zeros(stack.size), -(self.selection.T @ slope)])
            hessian = as_dense(stack.hessian(x, weights))
            found.append(basis @ (basis.T @ hessian @ basis) @ basis.T)
        return tuple(found)

    def _frame_at(self, x: FloatArray) -> Frame | None:
        """The decomposed Jacobian, kept for the points of one search."""
        key = x.tobytes()
        if key not in self.known:
            jacobian = _mapped(self.geometry, x, self.selection, self.tangent)[1]
            self.known[key] = _frame(jacobian)
        return self.known[key]


def _mapped(
    geometry: MapGeometry, x: FloatArray, selection: scipy.sparse.csr_array, tangent: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Image and derivatives along the tangent space of X."""
    forward = geometry.stack.evaluate(x, "map")
    return np.asarray(selection @ forward.values), np.asarray(
        selection @ (forward.jacobian() @ tangent)
    )


def _natural_tangent(domain: Domain, x: FloatArray) -> FloatArray:
    """Directions along which X extends, of natural length, so that units make nothing singular."""
    basis = np.asarray(domain.tangent_basis().toarray())
    return basis * np.sqrt((basis**2).T @ domain.metric(x) ** 2)


def _frame(jacobian: FloatArray) -> Frame | None:
    """The singular value decomposition of J Z, where it has full column rank."""
    if jacobian.shape[0] < jacobian.shape[1] or not np.isfinite(jacobian).all():
        return None
    left, sizes, right = np.linalg.svd(jacobian, full_matrices=False)
    if sizes.size and sizes[-1] <= SINGULAR * sizes[0]:
        return None
    return left, sizes, right


def _selection(ranges: Sequence[Range]) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array(
        scipy.sparse.block_diag([each.selection for each in ranges], format="csr")
    )


def _samples(form: Form) -> list[FloatArray]:
    """A few points of X at which the map is defined."""
    generator = np.random.default_rng(0)
    points = [form.domain.sample(generator) for _ in range(SAMPLES)]
    return [x for x in points if np.isfinite(form.stack.evaluate(x, "map").values).all()]


def _curved(form: Form) -> tuple[tuple[tuple[slice, Domain], ...], str]:
    """The sets of matrix variables that are no coordinates themselves."""
    layout = form.canonical.layout
    found = curved_variables(form.entries, layout.variables)
    return (
        tuple((layout.slice(variable), variable.set.domain()) for variable in found),
        ", ".join(variable.name for variable in found),
    )


def _on_plane(normals: FloatArray, center: FloatArray, image: FloatArray) -> bool:
    away = image - center
    size = max(1.0, float(np.max(np.abs(image))), float(np.max(np.abs(center))))
    return float(np.max(np.abs(away @ normals), initial=0.0)) <= HULL_ACCURACY * size


def _bounds(
    ranges: Sequence[Range], samples: Sequence[FloatArray]
) -> tuple[Domain, tuple[str, ...]]:
    """V, and what it rests on that was not shown."""
    factors: list[Domain] = []
    notes: list[str] = []
    start = 0
    for each in ranges:
        own = slice(start, start + each.domain.dimension)
        nonnegative = each.nonnegative
        if nonnegative is not None and all(
            (sample[own] >= -1e-12 * np.max(np.abs(sample[own]))).all() for sample in samples
        ):
            factors.append(nonnegative)
            notes.append(
                "entries of the map that are a probability times a weight are taken to be "
                "nonnegative, as at every point looked at"
            )
        else:
            factors.append(each.domain)
        start = own.stop
    return Product(factors), tuple(dict.fromkeys(notes))


def _tilted(
    slope: FloatArray,
    normals: FloatArray,
    center: FloatArray,
    bounds: tuple[FloatArray, FloatArray],
) -> FloatArray | None:
    """slope − N y for the y that makes the least value over the bounds largest.

    A linear program over (y, p, q): p − q = slope − N y, p >= 0 pays at lower bounds, q at upper ones.
    """
    lower, upper = bounds
    below, above = center - lower, upper - center
    open_below, open_above = np.isinf(below), np.isinf(above)
    count, size = slope.size, normals.shape[1]
    identity = scipy.sparse.eye_array(count)
    cost = np.concatenate(
        [np.zeros(size), np.where(open_below, 0.0, below), np.where(open_above, 0.0, above)]
    )
    limits: list[tuple[float | None, float | None]] = [(None, None)] * size
    limits += [(0.0, 0.0 if endless else None) for endless in open_below]
    limits += [(0.0, 0.0 if endless else None) for endless in open_above]
    scale = max(float(np.max(np.abs(slope))), 1e-300)
    solution = scipy.optimize.linprog(
        np.maximum(cost, 0.0),
        A_eq=scipy.sparse.hstack([scipy.sparse.csr_array(normals), identity, -identity]),
        b_eq=slope / scale,
        bounds=limits,
        method="highs",
    )
    return slope - scale * (normals @ solution.x[:size]) if solution.success else None
