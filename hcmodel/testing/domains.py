"""`check_domain`: every method of a domain against its definition, and against the base class's default.

The five required members are compared with each other: the projection with a quadratic program over the
cone rows, the tangent basis with samples and with moves from the middle. Everything else is compared with
what it is defined as, at inner points and on the boundary, and with the default of `Domain` that follows
from the required members alone. At the end small problems over the domain are solved, with and without
constraint rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers.algebra.symmetric import to_matrix
from hcmodel.solvers.methods import minimize
from hcmodel.solvers.oracle import FunctionStack, Oracle
from hcmodel.solvers.outer import Outer
from hcmodel.solvers.qp import QuadraticProgram, make_backend
from hcmodel.solvers.qp.program import Cone, StepRows
from hcmodel.solvers.sets.cone_programs import solve_over, tangent_rows
from hcmodel.solvers.sets.domain import Domain

FloatArray = NDArray[np.float64]

# The error allowed to a closed form, and to a comparison with a cone program, whose points have half as
# many digits as its value; both relative to max(1, |x|).
EXACT, ROUGH = 1e-9, 1e-5
# How near to a bound a point has to be to lie on a face.
ON_FACE = 1e-9
# Points inside, points on the boundary, and directions.
INNER, OUTER, DIRECTIONS = 6, 6, 4


def check_domain(
    domain: Domain, *, seed: int = 0, methods: Sequence[str] = ("sbl-adals", "prox-linear")
) -> None:
    """Check a domain; `methods` solve the small problems at the end, none of them if it is empty.

    Raises `AssertionError` with the name of the property that failed. The set must have an inner point
    relative to its affine hull.
    """
    assert isinstance(domain, Domain), "a domain is a subclass of Domain"
    cases = _Cases.of(domain, seed)
    for check in CHECKS:
        name = check.__name__.strip("_").replace("_", " ")
        try:
            check(cases)
        except AssertionError as error:
            raise AssertionError(f"{type(domain).__name__}: {name}: {error}") from error
    for method in methods:
        for rows in (False, True):
            _check_solve(cases, method, rows)


@dataclass(frozen=True)
class _Cases:
    """A domain with points to look at: targets outside, their projections, and samples."""

    domain: Domain
    generator: np.random.Generator
    targets: list[FloatArray]
    projected: list[FloatArray]
    samples: list[FloatArray]

    @staticmethod
    def of(domain: Domain, seed: int) -> _Cases:
        generator = np.random.default_rng(seed)
        middle = np.asarray(domain.middle(), dtype=float)
        unit = np.asarray(domain.metric(middle))
        targets = [middle + 3 * unit * _normal(generator, middle.size) for _ in range(OUTER)]
        return _Cases(
            domain=domain,
            generator=generator,
            targets=targets,
            projected=[np.asarray(domain.project(target.copy())) for target in targets],
            samples=[np.asarray(domain.sample(generator)) for _ in range(INNER)],
        )

    @property
    def middle(self) -> FloatArray:
        return self.domain.middle()

    @property
    def points(self) -> list[FloatArray]:
        return [self.middle, *self.samples, *self.projected]

    @property
    def size(self) -> int:
        return self.domain.dimension

    def directions(self, x: FloatArray) -> list[FloatArray]:
        return [_normal(self.generator, x.size) for _ in range(DIRECTIONS)]

    def normals(self) -> list[tuple[FloatArray, FloatArray]]:
        """Points on the boundary with a direction that is normal there."""
        pairs = zip(self.targets, self.projected, strict=True)
        return [(p, z - p) for z, p in pairs if np.linalg.norm(z - p) > ROUGH * _scale(z)]


def _normal(generator: np.random.Generator, size: int) -> FloatArray:
    return np.asarray(generator.normal(size=size))


def _scale(*arrays: FloatArray) -> float:
    return max([1.0, *(float(np.max(np.abs(array), initial=0.0)) for array in arrays)])


def _close(found: FloatArray, expected: FloatArray, tolerance: float, what: str) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, f"{what}: shape {found.shape}, not {expected.shape}"
    worst = float(np.max(np.abs(found - expected), initial=0.0))
    assert worst <= tolerance * _scale(expected), f"{what}: off by {worst:.2e}"


def _violation(rows: StepRows, s: FloatArray) -> float:
    """By how much s misses bounds and cones."""
    misses = [rows.lower - s, s - rows.upper, np.zeros(1)]
    for cone in rows.cones:
        misses.append(_cone_violation(cone, cone.offset + cone.matrix @ s))
    return float(np.max(np.concatenate(misses)))


def _cone_violation(cone: Cone, value: FloatArray) -> FloatArray:
    if cone.kind == "zero":
        return np.abs(value)
    assert cone.kind == "psd", f"unknown cone {cone.kind!r}"
    return np.asarray(-np.linalg.eigvalsh(to_matrix(value)))


# ---- the required members


def _the_dimension_is_that_of_its_points(cases: _Cases) -> None:
    assert cases.size == int(cases.size) >= 0, f"dimension {cases.size!r}"
    for point in cases.points:
        assert point.shape == (cases.size,), f"a point of shape {point.shape}"
        assert np.isfinite(point).all(), "a point is not finite"


def _the_middle_and_projections_satisfy_the_cone_rows(cases: _Cases) -> None:
    rows = cases.domain.cone_rows()
    assert rows.lower.shape == rows.upper.shape == (cases.size,), "bounds of the wrong shape"
    for name, points in (("the middle", [cases.middle]), ("a projection", cases.projected)):
        for point in points:
            missed = _violation(rows, point)
            assert missed <= EXACT * _scale(point), f"{name} misses the rows by {missed:.2e}"


def _the_projection_is_the_nearest_point_of_the_cone_rows(cases: _Cases) -> None:
    rows, unit = cases.domain.cone_rows(), np.ones(cases.size)
    for target, projected in zip(cases.targets, cases.projected, strict=True):
        solution = solve_over(rows, unit, -target)
        assert solution.usable, "the program over the cone rows has no solution"
        found, expected = (np.linalg.norm(p - target) for p in (projected, solution.step))
        assert found <= expected + ROUGH * _scale(target), (
            f"a point at distance {found:.6g}, where the rows have one at {expected:.6g}"
        )
        _close(projected, solution.step, 1e2 * ROUGH, "not the point of the quadratic program")


def _the_projection_leaves_its_argument_and_points_of_the_set_alone(cases: _Cases) -> None:
    for target in cases.targets:
        kept = target.copy()
        cases.domain.project(target)
        assert np.array_equal(kept, target), "project changed its argument"
    for point in cases.points:
        _close(cases.domain.project(point), point, EXACT, "a point of the set was moved")


def _the_tangent_basis_spans_the_set(cases: _Cases) -> None:
    basis = cases.domain.tangent_basis().toarray()
    assert basis.shape[0] == cases.size, f"a basis of shape {basis.shape}"
    _close(basis.T @ basis, np.eye(basis.shape[1]), EXACT, "columns are not orthonormal")
    for point in cases.points:
        away = point - cases.middle
        _close(basis @ (basis.T @ away), away, EXACT, "the set leaves the span")
    unit = cases.domain.metric(cases.middle)
    for column in basis.T:
        length = 1e-6 * float(np.min(unit[column != 0]))
        for sign in (1.0, -1.0):
            moved = cases.middle + sign * length * column
            missed = np.linalg.norm(cases.domain.project(moved) - moved)
            assert missed <= 1e-3 * length, "the set does not extend along a column at its middle"


# ---- a point, and the set seen from there


def _membership(cases: _Cases) -> None:
    domain = cases.domain
    for point in cases.points:
        assert domain.contains(point, EXACT * _scale(point)), "a point of the set is not contained"
    for point, normal in cases.normals():
        outside = point + normal
        length = float(np.max(np.abs(normal)))
        assert not domain.contains(outside, 1e-3 * length / cases.size), "a point outside is"
        assert domain.contains(outside, 2 * cases.size * length), "the tolerance has no effect"
    assert not cases.size or not domain.contains(np.full(cases.size, np.nan), 1.0), "NaN is"


def _a_direction_is_split_by_the_normal_cone(cases: _Cases) -> None:
    domain = cases.domain
    for x in cases.points:
        for direction in cases.directions(x):
            kept = direction.copy()
            inward = domain.normal_cone_distance(x, direction)
            assert np.array_equal(kept, direction), "the direction was changed"
            # Moreau: the two parts are orthogonal
            cosine = float(inward @ (direction - inward))
            assert abs(cosine) <= ROUGH * float(direction @ direction), "parts not orthogonal"
            default = Domain.normal_cone_distance(domain, x, direction)
            _close(inward, default, ROUGH, "not the default")
    for x, normal in cases.normals():
        left = domain.normal_cone_distance(x, normal)
        assert np.linalg.norm(left) <= ROUGH * np.linalg.norm(normal), "a normal is not recognised"


def _multipliers_of_bounds(cases: _Cases) -> None:
    domain, rows = cases.domain, cases.domain.cone_rows()
    endless = np.full(cases.size, np.inf)
    cones = StepRows(-endless, endless, rows.cones)
    for x, normal in cases.normals():
        held = domain.bound_multipliers(x, normal, ON_FACE)
        size = ROUGH * _scale(normal)
        reach = 2 * ON_FACE * _scale(x)
        assert (held[x < rows.upper - reach] <= size).all(), "positive off the upper bounds"
        assert (held[x > rows.lower + reach] >= -size).all(), "negative off the lower bounds"
        # what the bounds do not balance is normal to the cones alone
        rest = normal - held
        if float(np.max(np.abs(rest), initial=0.0)) > size:
            left = solve_over(tangent_rows(cones, x, ON_FACE), np.ones(x.size), -rest).step
            assert np.max(np.abs(left)) <= 1e2 * size, "the rest is not normal to the cones"


def _faces(cases: _Cases) -> None:
    domain = cases.domain
    for x in cases.points:
        face = domain.face_basis(x, ON_FACE).toarray()
        default = Domain.face_basis(domain, x, ON_FACE).toarray()
        assert face.shape == default.shape, f"{face.shape[1]} directions, not {default.shape[1]}"
        unit = domain.metric(x)[:, None]
        both = np.hstack([face, default]) / unit
        lengths = np.linalg.norm(both, axis=0)
        assert (lengths > 0).all(), "a direction of length 0"
        rank = int(np.linalg.matrix_rank(both / lengths, tol=ROUGH)) if both.size else 0
        assert rank == face.shape[1], "the span is not the default's"
        columns = np.cos(np.arange(3 * x.size)).reshape(x.size, 3)
        along, wanted = domain.along_face(x, ON_FACE, columns), face.T @ columns
        size = ROUGH * (1 + float(np.max(np.abs(wanted), initial=0.0)))
        same = along.shape == wanted.shape and (np.abs(along - wanted) <= size).all()
        assert same, "along the face: not the basis times the columns"
        flat = domain.flat_face(x, ON_FACE)
        assert flat is None or flat.shape == face.shape, "flat_face is not the face"
        for column in face.T:
            length = 1e-6 * float(np.min(domain.metric(x)[column != 0]))
            for sign in (1.0, -1.0):
                moved = x + sign * length * column / np.linalg.norm(column)
                missed = float(np.linalg.norm(domain.project(moved) - moved))
                # a curved face is left to second order only
                allowed = 1e-3 * length if flat is None else EXACT * length + 1e-14 * _scale(x)
                assert missed <= allowed, "the set is left along a face"


def _rows_of_steps(cases: _Cases) -> None:
    domain = cases.domain
    for x in cases.points:
        metric = domain.metric(x)
        rows = domain.step_rows(x, metric)
        assert _violation(rows, np.zeros(x.size)) <= EXACT * _scale(x), (
            "no step at all is not allowed"
        )
        for y in cases.samples:
            step = (y - x) / metric
            step *= min(1.0, 0.5 / _scale(step))
            missed = _violation(rows, step)
            assert missed <= EXACT * _scale(x / metric), f"a step inside is missed by {missed:.2e}"
        wanted = 2 * _normal(cases.generator, x.size)
        solution = solve_over(rows, np.ones(x.size), -wanted)
        assert solution.usable, "a program over the steps has no solution"
        reached = x + metric * solution.step
        missed = float(np.max(np.abs(domain.project(reached) - reached), initial=0.0))
        assert missed <= ROUGH * _scale(reached), f"a step leads {missed:.2e} outside"


# ---- units and size


def _units(cases: _Cases) -> None:
    domain, width = cases.domain, cases.domain.width()
    points = np.array(cases.points)
    assert width.shape == (cases.size,), "widths of the wrong shape"
    assert (width >= 0).all(), "a width is negative"
    assert (np.ptp(points, axis=0)[width == 0] == 0).all(), "an entry without width moves"
    for x in cases.points:
        metric, norm = domain.metric(x), domain.norm(x)
        assert metric.shape == (cases.size,), "a metric of the wrong shape"
        assert np.isfinite(metric).all(), "a length is not finite"
        assert (metric > 0).all(), "a length is not positive"
        assert norm.shape in ((cases.size,), (cases.size, cases.size)), "a norm of the wrong shape"
        least = norm.min(initial=1.0) if norm.ndim == 1 else np.linalg.eigvalsh(norm)[0]
        assert least > 0, "the norm is not positive definite"


def _bounds_of_entries(cases: _Cases) -> None:
    domain = cases.domain
    lower, upper = domain.entry_bounds()
    for point in cases.points:
        slack = EXACT * _scale(point)
        assert (point >= lower - slack).all(), "a point lies below the bounds of entries"
        assert (point <= upper + slack).all(), "a point lies above the bounds of entries"
        halves = domain.half_spaces(cases.middle)
        excess = halves.normals @ (point - cases.middle) - halves.offsets
        assert (excess <= EXACT * _scale(point, halves.offsets)).all(), "outside a half-space"
    for entry in cases.generator.permutation(cases.size)[:DIRECTIONS]:
        unit = np.zeros(cases.size)
        unit[entry] = 1.0
        for bound, sign in ((upper, 1.0), (lower, -1.0)):
            largest = Domain.support(domain, sign * unit)
            if np.isfinite(bound[entry]):
                assert sign * bound[entry] >= largest - ROUGH * max(1.0, abs(largest)), (
                    f"entry {entry} reaches {sign * largest:g}, its bound is {bound[entry]:g}"
                )
    if domain.is_box:
        low = np.maximum(lower, cases.middle - 10.0)
        corner = cases.generator.uniform(low, np.minimum(upper, cases.middle + 10.0))
        _close(domain.project(corner), corner, EXACT, "not all of the box belongs to it")


def _the_support_function(cases: _Cases) -> None:
    domain = cases.domain
    normals = cases.normals()
    # Sums of normals at several points lie inside the cone of directions with a finite maximum.
    wanted = [np.sum([normal for _, normal in normals], axis=0)] if normals else []
    for direction in [*wanted, *cases.directions(cases.middle)]:
        value = domain.support(direction)
        reached = max(float(direction @ point) for point in cases.points)
        assert reached <= value + EXACT * max(1.0, abs(reached)), "a point goes farther"
        default = Domain.support(domain, direction)
        same = value == default or abs(value - default) <= ROUGH * max(1.0, abs(default))
        assert same, f"{value:.9g}, the default is {default:.9g}"
    assert domain.support(np.zeros(cases.size)) == 0.0, "not 0 along no direction"
    if np.isfinite(domain.diameter()):
        for point, normal in normals:
            value, reached = domain.support(normal), float(normal @ point)
            size = max(1.0, abs(reached), float(np.linalg.norm(normal)))
            assert abs(value - reached) <= ROUGH * size, (
                "not attained where the direction is normal"
            )


def _the_diameter(cases: _Cases) -> None:
    diameter, points = cases.domain.diameter(), cases.points
    farthest = max(float(np.linalg.norm(x - y)) for x in points for y in points)
    assert farthest <= diameter * (1 + EXACT) + EXACT, (
        f"points {farthest:g} apart, not {diameter:g}"
    )


def _samples(cases: _Cases) -> None:
    domain = cases.domain
    first, second = (domain.sample(np.random.default_rng(1)) for _ in range(2))
    assert np.array_equal(first, second), "samples do not repeat with the seed"
    for point in cases.samples:
        _close(domain.project(point), point, EXACT, "a sample lies outside")
    if domain.tangent_basis().shape[1]:
        assert np.linalg.norm(np.std(cases.samples, axis=0)) > 0, "samples do not differ"


def _the_least_value_of_a_slope(cases: _Cases) -> None:
    domain = cases.domain
    for slope in cases.directions(cases.middle):
        for center in (cases.middle, cases.projected[0]):
            exact = -domain.support(-slope) - float(slope @ center)
            least = domain.least(slope, center)
            assert least <= exact + EXACT * max(1.0, abs(exact)) or exact == -np.inf, "too high"
            for point in cases.points:
                reach = float(np.linalg.norm(point - center))
                value = float(slope @ (point - center))
                least = domain.least(slope, center, reach)
                assert np.isfinite(least), "infinite within a reach"
                assert least <= value + EXACT * max(1.0, abs(value)), "too high within a reach"


# ---- KKT points, other terms


def _points_that_are_almost_on_a_bound(cases: _Cases) -> None:
    domain = cases.domain
    for point in cases.points:
        share = 1e-6
        moved = domain.snapped(point, share)
        length = float(np.linalg.norm((moved - point) / domain.metric(point)))
        assert length <= 10 * share * np.sqrt(cases.size), "a point was moved far"
        _close(domain.project(moved), moved, EXACT, "a point was moved out of the set")
    for point, normal in cases.normals():
        weakest = domain.weakest_bound(point, -normal)
        assert weakest >= -ROUGH * _scale(normal), "a normal direction pushes no bound outwards"


def _the_set_in_other_terms(cases: _Cases) -> None:
    domain, nothing = cases.domain, np.zeros(cases.size, dtype=bool)
    for twin in (domain.in_logarithms(nothing), domain.without_bounds(nothing)):
        for target, projected in zip(cases.targets, cases.projected, strict=True):
            assert np.array_equal(twin.project(target), projected), "the set has changed"
    wider = domain.without_bounds(~nothing)
    for point in cases.points:
        _close(wider.project(point), point, EXACT, "without its bounds the set became smaller")
    positive = np.all([point > 0 for point in cases.samples], axis=0)
    positive &= (domain.entry_bounds()[0] >= 0) & (cases.middle > 0)
    if not positive.any():
        return
    try:
        logs = domain.in_logarithms(positive)
    except ValueError:
        return  # only some sets stay convex in logarithms
    for point in (cases.middle, *cases.samples):
        u = point.copy()
        u[positive] = np.log(point[positive])
        _close(logs.project(u), u, EXACT, "the logarithm of a point was moved")


CHECKS: tuple[Callable[[_Cases], None], ...] = (
    _the_dimension_is_that_of_its_points,
    _units,
    _the_middle_and_projections_satisfy_the_cone_rows,
    _the_projection_is_the_nearest_point_of_the_cone_rows,
    _samples,
    _the_projection_leaves_its_argument_and_points_of_the_set_alone,
    _the_tangent_basis_spans_the_set,
    _membership,
    _a_direction_is_split_by_the_normal_cone,
    _multipliers_of_bounds,
    _faces,
    _rows_of_steps,
    _bounds_of_entries,
    _the_support_function,
    _the_diameter,
    _the_least_value_of_a_slope,
    _points_that_are_almost_on_a_bound,
    _the_set_in_other_terms,
)


# ---- problems over the set


@dataclass(frozen=True)
class _NearestPoint(FunctionStack):
    """Σ wᵢ (xᵢ − zᵢ)² with linear rows, and its second derivatives."""

    weights: FloatArray = field(default_factory=lambda: np.zeros(0))

    @staticmethod
    def of(
        target: FloatArray, weights: FloatArray, matrix: FloatArray, bounds: FloatArray
    ) -> _NearestPoint:
        def objective(x: FloatArray) -> tuple[float, FloatArray]:
            away = x - target
            return float(away @ (weights * away)), 2 * weights * away

        return _NearestPoint(
            target.size,
            objective,
            (lambda x: (matrix @ x - bounds, matrix)) if bounds.size else None,
            bounds.size,
            weights=weights,
        )

    def hessian(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        return np.diag(2 * weights[0] * self.weights)


def _check_solve(cases: _Cases, method: str, with_rows: bool) -> None:
    """The nearest point to a target, in natural units; with rows, also on one side of a plane and in one.

    The expected value is that of a quadratic program over the cone rows.
    """
    domain, size = cases.domain, cases.size
    weights = 1.0 / domain.metric(cases.middle) ** 2
    target = cases.targets[0]
    basis = domain.tangent_basis().toarray()
    matrix, bounds = np.zeros((0, size)), np.zeros(0)
    if with_rows and basis.shape[1] > 2:
        inner = 0.5 * (cases.middle + cases.samples[0])
        matrix = (basis @ _normal(cases.generator, 2 * basis.shape[1]).reshape(-1, 2)).T
        matrix = matrix * np.sqrt(weights)
        # the first row cuts the nearest point off, the second is an equality
        matrix[0] *= np.sign(matrix[0] @ (cases.projected[0] - inner)) or 1.0
        bounds = matrix @ inner

    stack = _NearestPoint.of(target, weights, matrix, bounds)
    oracle = Oracle(stack, Outer.of_rows(bounds.size and 1, bounds.size and 1))
    result = minimize(oracle, domain, cases.middle, method=method)
    program = QuadraticProgram(
        2 * weights,
        -2 * weights * target,
        matrix[:1],
        bounds[:1],
        matrix[1:],
        bounds[1:],
        domain.cone_rows(),
    )
    expected = make_backend().solve(program)
    name = f"{type(domain).__name__}: {method} {'with' if with_rows else 'without'} rows"
    assert expected.usable, f"{name}: the quadratic program has no solution"
    assert domain.contains(result.point, ROUGH * _scale(result.point)), f"{name}: ends outside"
    best, found = stack.objective(expected.step)[0], stack.objective(result.point)[0]
    assert abs(found - best) <= 1e-4 * max(1.0, best), f"{name}: {found:.7g} instead of {best:.7g}"
    missed = float(np.max(np.abs(matrix[1:] @ result.point - bounds[1:]), initial=0.0))
    excess = float(np.max(matrix[:1] @ result.point - bounds[:1], initial=0.0))
    assert max(missed, excess) <= ROUGH * _scale(bounds), f"{name}: rows are not satisfied"
