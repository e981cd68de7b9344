"""Every kind of domain, and products of them, against CVXPY on random inputs.

The set is written a second time, in CVXPY's terms, and solved with Clarabel at tight tolerances.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from numpy.typing import NDArray

from hcmodel.solvers.algebra.symmetric import ROOT_TWO, to_vector, triangle
from hcmodel.solvers.qp import QuadraticProgram, make_backend
from hcmodel.solvers.sets.bounded_matrices import BoundedMatrices
from hcmodel.solvers.sets.bounded_simplices import BoundedSimplices
from hcmodel.solvers.sets.box import Box
from hcmodel.solvers.sets.domain import Domain
from hcmodel.solvers.sets.matrices import SymmetricMatrices
from hcmodel.solvers.sets.product import Product
from hcmodel.solvers.sets.simplices import Simplices
from tests.extent import ALL, first

FloatArray = NDArray[np.float64]
INF = np.inf

# The stored vector of a point and the constraints on it, as CVXPY expressions.
Written = tuple[Any, list[Any]]


@dataclass(frozen=True)
class Case:
    name: str
    domain: Domain
    write: Callable[[], Written]
    recession: FloatArray | None = None
    """A direction in the inner part of those in which the set never ends, where it has such."""

    def normal(self, target: FloatArray, turned: float = 1e-9) -> FloatArray:
        """target − project(target), turned away from the set's endless directions."""
        rest = target - self.domain.project(target)
        return rest if self.recession is None else rest - turned * self.recession


def box(lower: list[float], upper: list[float]) -> Case:
    low, high = np.array(lower), np.array(upper)

    def write() -> Written:
        x = cp.Variable(low.size)
        return x, _within(x, low, high)

    return Case("box", Box(low, high), write)


def simplices(lower: Any = None, upper: Any = None) -> Case:
    low = np.zeros((2, 4)) if lower is None else np.broadcast_to(lower, (2, 4)).astype(float)
    high = np.ones((2, 4)) if upper is None else np.broadcast_to(upper, (2, 4)).astype(float)

    def write() -> Written:
        x = cp.Variable((2, 4))
        rows = [cp.sum(x, axis=1) == 1, x >= low, x <= high]
        return cp.reshape(x, (8,), order="C"), rows

    if lower is None and upper is None:
        return Case("simplex", Simplices(2, 4), write)
    return Case("bounded simplex", BoundedSimplices(2, 4, low.ravel(), high.ravel()), write)


def matrices(
    order: int, smallest: float, largest: float, lower: Any = None, upper: Any = None
) -> Case:
    low = np.broadcast_to(-INF if lower is None else lower, (order, order))
    high = np.broadcast_to(INF if upper is None else upper, (order, order))
    rows, columns = triangle(order)
    factors = np.where(rows == columns, 1.0, ROOT_TWO)
    plain = SymmetricMatrices(order, smallest, largest)

    def write() -> Written:
        P = cp.Variable((order, order), symmetric=True)
        constraints = _within(P[rows, columns], low[rows, columns], high[rows, columns])
        if np.isfinite(smallest):
            constraints.append(P >> smallest * np.eye(order))
        if np.isfinite(largest):
            constraints.append(P << largest * np.eye(order))
        return cp.multiply(P[rows, columns], factors), constraints

    endless = np.isinf(largest) and np.isinf(np.diag(high)).all()
    recession = to_vector(np.eye(order)) if endless else None
    name = f"psd({smallest:g}, {largest:g})"
    if lower is None and upper is None:
        return Case(name, plain, write, recession)
    entries = Box(low[rows, columns] * factors, high[rows, columns] * factors)
    return Case(f"bounded {name}", BoundedMatrices(plain, entries), write, recession)


def product(*cases: Case) -> Case:
    def write() -> Written:
        parts = [case.write() for case in cases]
        constraints = [constraint for _, own in parts for constraint in own]
        return cp.hstack([vector for vector, _ in parts]), constraints

    name = " × ".join(case.name for case in cases)
    parts = [
        np.zeros(case.domain.dimension) if case.recession is None else case.recession
        for case in cases
    ]
    return Case(name, Product([case.domain for case in cases]), write, np.concatenate(parts))


def _within(x: Any, lower: FloatArray, upper: FloatArray) -> list[Any]:
    finite_low, finite_high = np.flatnonzero(lower > -INF), np.flatnonzero(upper < INF)
    rows = []
    if finite_low.size:
        rows.append(x[finite_low] >= lower[finite_low])
    if finite_high.size:
        rows.append(x[finite_high] <= upper[finite_high])
    return rows


BOX = box([-1.0, 0.2, -INF, 2.0, -INF], [1.0, 3.0, 0.5, INF, INF])
SIMPLEX = simplices()
NARROW_SIMPLEX = simplices([0.1, 0.0, 0.2, 0.0], [0.6, 0.3, 0.2, 1.0])  # the third is fixed
PSD = matrices(3, 0.1, INF)
PSD_BETWEEN = matrices(3, 0.5, 2.0)
BOUNDED_PSD = matrices(3, 0.0, INF, -0.4, [[1.0, 0.2, 0.2], [0.2, 1.5, 0.1], [0.2, 0.1, 2.0]])
BOUNDED_BETWEEN = matrices(4, 0.2, 3.0, np.where(np.eye(4), -INF, -0.3), 1.5)
FIXED_ENTRIES = matrices(3, 1e-3, 4.0, np.where(np.eye(3), 1.0, -1.0), 1.0)  # correlations
OPEN_DIAGONAL = matrices(
    3, 0.1, INF, np.where(np.eye(3), -INF, -0.2), np.where(np.eye(3), INF, 0.2)
)
BOUNDED_SYMMETRIC = matrices(2, -INF, INF, -1.0, 0.5)
CASES = [
    BOX,
    SIMPLEX,
    NARROW_SIMPLEX,
    PSD,
    PSD_BETWEEN,
    BOUNDED_PSD,
    BOUNDED_BETWEEN,
    FIXED_ENTRIES,
    OPEN_DIAGONAL,
    BOUNDED_SYMMETRIC,
    product(BOX, SIMPLEX, PSD_BETWEEN),
    product(BOUNDED_PSD, NARROW_SIMPLEX, BOX, FIXED_ENTRIES),
]
# By default, those in which the others are contained as a part or as a special case.
FEWER = [BOX, SIMPLEX, PSD_BETWEEN, BOUNDED_BETWEEN, OPEN_DIAGONAL, BOUNDED_SYMMETRIC, CASES[-1]]
every_case = pytest.mark.parametrize("case", CASES if ALL else FEWER, ids=lambda case: case.name)


def solved(problem: Any) -> float:
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    assert problem.status in ("optimal", "unbounded")
    return float(problem.value)


def nearest_by_cvxpy(case: Case, target: FloatArray) -> FloatArray:
    vector, constraints = case.write()
    solved(cp.Problem(cp.Minimize(cp.sum_squares(vector - target)), constraints))
    return np.asarray(vector.value)


def points(case: Case, seed: int, count: int, size: float = 2.0) -> FloatArray:
    return size * np.random.default_rng(seed).normal(size=(count, case.domain.dimension))


@every_case
def test_the_projection_is_cvxpys(case: Case) -> None:
    for target in points(case, 0, 6):
        projected = case.domain.project(target)
        expected = nearest_by_cvxpy(case, target)
        assert projected == pytest.approx(expected, abs=2e-5)
        # CVXPY's point is good to the root of its gap; ours is no farther away and inside
        assert np.linalg.norm(projected - target) <= np.linalg.norm(expected - target) + 1e-8
        assert case.domain.contains(projected, 1e-11)


@every_case
def test_the_projection_satisfies_its_optimality_condition_to_ten_digits(case: Case) -> None:
    # p nearest to z: (z − p)·(y − p) <= 0 for all y, and the support function is the worst y
    for target in points(case, 1, 6):
        projected = case.domain.project(target)
        normal = case.normal(target)
        size = max(1.0, float(np.linalg.norm(normal)) * float(np.linalg.norm(projected)))
        assert case.domain.support(normal) - normal @ projected <= 1e-7 * size


@every_case
def test_a_qp_over_the_steps_finds_cvxpys_nearest_point(case: Case) -> None:
    generator = np.random.default_rng(2)
    size = case.domain.dimension
    for _ in range(4):
        x = case.domain.sample(generator)
        target = x + 0.2 * generator.normal(size=size)
        metric = case.domain.metric(x)
        program = QuadraticProgram(
            quadratic=metric**2,
            linear=metric * (x - target),
            inequality=np.zeros((0, size)),
            inequality_bound=np.zeros(0),
            equality=np.zeros((0, size)),
            equality_bound=np.zeros(0),
            domain=case.domain.step_rows(x, metric),
        )
        solution = make_backend("clarabel").solve(program)
        assert solution.usable
        reached = x + metric * solution.step
        assert reached == pytest.approx(nearest_by_cvxpy(case, target), abs=2e-5)


@every_case
def test_the_support_function_is_cvxpys(case: Case) -> None:
    for direction in points(case, 3, 5, size=1.0):
        vector, constraints = case.write()
        expected = solved(cp.Problem(cp.Maximize(direction @ vector), constraints))
        value = case.domain.support(direction)
        assert value == pytest.approx(expected, rel=1e-7, abs=1e-7)


@every_case
def test_a_finite_support_value_of_an_unbounded_set_is_cvxpys(case: Case) -> None:
    # from −N_X at a point: directions in which the maximum is attained, also where X is unbounded
    for target in points(case, 4, 4):
        direction = case.normal(target, turned=0.01)
        vector, constraints = case.write()
        expected = solved(cp.Problem(cp.Maximize(direction @ vector), constraints))
        assert np.isfinite(expected)
        assert case.domain.support(direction) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@every_case
def test_the_part_of_a_direction_outside_the_normal_cone_is_cvxpys(case: Case) -> None:
    # Moreau: it is the limit of (P(x + t·d) − x)/t, with the projections by CVXPY
    step = 1e-3
    for number, target in enumerate(points(case, 5, 4)):
        x = case.domain.project(target)
        direction = points(case, 10 + number, 1, size=1.0)[0]
        inward = case.domain.normal_cone_distance(x, direction)
        expected = (nearest_by_cvxpy(case, x + step * direction) - x) / step
        assert inward == pytest.approx(expected, abs=2e-2)
        # Moreau again: the two parts of the direction are orthogonal
        assert abs((direction - inward) @ inward) <= 1e-7 * (direction @ direction)


@every_case
def test_the_residual_of_a_normal_direction_is_zero(case: Case) -> None:
    for target in points(case, 6, 5):
        x = case.domain.project(target)
        normal = target - x
        left = case.domain.normal_cone_distance(x, normal)
        assert np.linalg.norm(left) <= 1e-7 * max(1.0, float(np.linalg.norm(normal)))


@every_case
def test_samples_middle_and_diameter_fit_the_set(case: Case) -> None:
    generator = np.random.default_rng(7)
    drawn = [case.domain.sample(generator) for _ in range(20)]
    found = [case.domain.middle(), *drawn]
    assert all(case.domain.contains(point, 1e-11) for point in found)
    for point in first(4, found):
        assert np.linalg.norm(nearest_by_cvxpy(case, point) - point) <= 1e-4
    assert np.linalg.norm(np.std(drawn, axis=0)) > 0
    farthest = max(np.linalg.norm(a - b) for a in drawn for b in drawn)
    assert farthest <= case.domain.diameter() + 1e-12


@every_case
def test_tangent_and_face_directions_lie_in_the_set(case: Case) -> None:
    basis = case.domain.tangent_basis().toarray()
    assert basis.T @ basis == pytest.approx(np.eye(basis.shape[1]), abs=1e-12)
    middle = case.domain.middle()
    for column in basis.T:
        moved = middle + 1e-6 * column
        assert np.linalg.norm(case.domain.project(moved) - moved) <= 1e-12
    for target in points(case, 8, 3):
        x = case.domain.project(target)
        for column in case.domain.face_basis(x, 1e-9).toarray().T:
            moved = x + 1e-5 * column / np.linalg.norm(column)
            # a face is left to second order only
            assert np.linalg.norm(case.domain.project(moved) - moved) <= 1e-8


def test_a_matrix_of_correlations_is_highams() -> None:
    # Higham (2002), IMA J. Numer. Anal. 22. It is singular with a beside the diagonal and b in the
    # corner, so b = 2a² − 1, and 4(a − 1)² + 2b² is least where 4a³ − a − 1 = 0.
    A = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    unit = np.eye(3, dtype=bool)
    rows, columns = triangle(3)
    low, high = (np.where(unit, 1.0, free)[rows, columns] for free in (-INF, INF))
    nearest = BoundedMatrices(SymmetricMatrices(3, 0.0), Box(low, high)).project(to_vector(A))
    a = max(np.roots([4.0, 0.0, -1.0, -1.0]).real)
    b = 2 * a**2 - 1
    expected = np.array([[1.0, a, b], [a, 1.0, a], [b, a, 1.0]])
    assert nearest == pytest.approx(to_vector(expected), abs=1e-11)
