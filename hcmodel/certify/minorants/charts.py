"""The coordinates u of a form as certificates see them: images, slopes by u, and the set V.

In a separable form u is the form's own vector and V its domain. Under a declared map u = c(x), the slope
of a function is the s with Jᵀs = ∇F on the tangent space of X, and V is made of what is known of each
entry of the map: the domain of a variable that is its own coordinate, an interval, or nonnegativity
where an entry is a probability times a weight. U may be thinner than the space of u (occupancies): then
s is known up to the normals N of the affine hull of U, and the best of them is found by a linear program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import CHART
from hcmodel.certify.minorants.map_ranges import Range, map_ranges
from hcmodel.records import dataclass, replace
from hcmodel.reductions.form import Form
from hcmodel.reductions.smooth import curved_variables
from hcmodel.solvers.algebra.hessians import Hessian, as_dense
from hcmodel.solvers.coordinates.plain import PlainCoordinates
from hcmodel.solvers.coordinates.protocol import Coordinates, SecondDerivatives
from hcmodel.solvers.numerics import DATA_ROUNDING, TINY
from hcmodel.solvers.oracle import Evaluation, Stack
from hcmodel.solvers.sets.domain import Domain
from hcmodel.solvers.sets.product import Product

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Chart:
    """Coordinates in which the functions are convex, and what is known of their values.

    `bounds` is V and `notes` are what it rests on. `hull` spans the directions of U and `normals` the
    others; None and no normals where U extends in all of them. `curved` are the sets of variables that
    are curved in u, and `elsewhere` points of X at which they are looked at.
    """

    coordinates: Coordinates
    bounds: Domain
    hull: FloatArray | None = None
    normals: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    notes: tuple[str, ...] = ()
    curved: tuple[tuple[slice, Domain], ...] = ()
    stack: Stack | None = field(default=None, repr=False)
    elsewhere: tuple[FloatArray, ...] = field(default=(), repr=False)

    def image(self, evaluation: Evaluation) -> FloatArray:
        """u at the point."""
        return self.coordinates.image(evaluation.point)

    def slopes(self, evaluation: Evaluation, gradients: FloatArray) -> FloatArray | None:
        """Derivatives by u from rows of derivatives by the form's vector; None where there are none."""
        return self.coordinates.slopes(evaluation.point, gradients)

    def equals(self, slope: FloatArray, center: FloatArray) -> tuple[FloatArray, ...]:
        """Slopes that say the same of U, and of which one may say more of V."""
        if not self.normals.size:
            return (slope,)
        tilted = _tilted(slope, self.normals, center, self.bounds.entry_bounds())
        return (slope,) if tilted is None else (slope, tilted)

    def without_curved(
        self, evaluation: Evaluation, gradient: FloatArray
    ) -> tuple[FloatArray, float]:
        """The gradient without the part that bounds which are curved in u balance, and its cost.

        For x in X, L(x) >= [L(x) − g·(x − x̃)] + min over X of g·(x − x̃), g that part of ∇L.
        """
        rest, cost = gradient.copy(), 0.0
        for own, domain in self.curved:
            cost += domain.least(gradient[own], evaluation.point[own])
            rest[own] = 0.0
        return (rest, cost) if np.isfinite(cost) else (gradient, 0.0)

    def curvature_of_bounds(
        self, evaluation: Evaluation, gradient: FloatArray
    ) -> tuple[Hessian, ...]:
        """Hidden Hessians of −g·x, at the point and elsewhere, which have to be semidefinite."""
        stack = self.stack
        if not self.curved or stack is None:
            return ()
        held = self.without_curved(evaluation, gradient)[0] - gradient
        found = []
        for x in (evaluation.point, *self.elsewhere):
            if not self.coordinates.tangent(x).full_rank:
                continue
            found.append(self.coordinates.hidden_hessian(x, held, _linear(stack, x)))
        return tuple(found)


def _linear(stack: Stack, x: FloatArray) -> SecondDerivatives:
    """The second derivatives of a linear function plus w·c."""
    return lambda w: as_dense(
        stack.hessian(x, np.concatenate([np.zeros(stack.size), np.zeros(0) if w is None else w]))
    )


def chart_of(form: Form, evaluation: Evaluation) -> Chart | None:
    """The hidden coordinates of a form; None where it has none, or where they are singular."""
    if not form.hidden:
        return None
    return plain_chart(form.domain) if form.map_geometry is None else map_chart(form, evaluation)


def plain_chart(domain: Domain) -> Chart:
    """The form's own vector."""
    return Chart(PlainCoordinates(domain), domain)


def map_chart(form: Form, evaluation: Evaluation) -> Chart | None:
    """u = c(x), symmetric variables stored once.

    None where the map is singular at the point, or its image is not part of a plane.
    """
    ranges = map_ranges(form.entries)
    if form.map_geometry is None or not ranges:
        return None
    coordinates = replace(form.map_geometry, selection=_selection(ranges))
    tangent = coordinates.tangent(evaluation.point)
    if not tangent.full_rank:
        return None
    start, normals = coordinates.image(evaluation.point), np.zeros((0, 0))
    elsewhere = _samples(form)
    samples = [start, *(coordinates.image(x) for x in elsewhere)]
    if not tangent.square:
        normals = scipy.linalg.null_space(tangent.hull.T)
        if not all(_on_plane(normals, start, sample) for sample in samples):
            return None
    bounds, notes = _bounds(ranges, samples)
    curved, named = _curved(form)
    if curved:
        notes += (f"bounds of {named} counted as convex rows, as at every point looked at",)
    return Chart(
        coordinates=coordinates,
        bounds=bounds,
        hull=tangent.hull if normals.size else None,
        normals=normals,
        notes=notes,
        curved=curved,
        stack=form.stack,
        elsewhere=tuple(elsewhere),
    )


def _selection(ranges: Sequence[Range]) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array(
        scipy.sparse.block_diag([each.selection for each in ranges], format="csr")
    )


def _samples(form: Form) -> list[FloatArray]:
    """A few points of X at which the map is defined."""
    generator = np.random.default_rng(0)
    points = [form.domain.sample(generator) for _ in range(CHART.samples)]
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
    return float(np.max(np.abs(away @ normals), initial=0.0)) <= CHART.hull * size


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
            (sample[own] >= -DATA_ROUNDING * np.max(np.abs(sample[own]))).all()
            for sample in samples
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
    scale = max(float(np.max(np.abs(slope))), TINY)
    solution = scipy.optimize.linprog(
        np.maximum(cost, 0.0),
        A_eq=scipy.sparse.hstack([scipy.sparse.csr_array(normals), identity, -identity]),
        b_eq=slope / scale,
        bounds=limits,
        method="highs",
    )
    return slope - scale * (normals @ solution.x[:size]) if solution.success else None
