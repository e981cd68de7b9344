"""Simplices and symmetric matrices as domains, by optimality conditions and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from hcmodel.solvers.algebra.symmetric import clip_slope, rotated_basis, to_matrix, to_vector
from hcmodel.solvers.qp import QuadraticProgram, make_backend
from hcmodel.solvers.sets.bounded_matrices import BoundedMatrices
from hcmodel.solvers.sets.bounded_simplices import BoundedSimplices
from hcmodel.solvers.sets.box import Box
from hcmodel.solvers.sets.domain import Domain
from hcmodel.solvers.sets.matrices import SymmetricMatrices, eigenvalue_multipliers
from hcmodel.solvers.sets.product import Product
from hcmodel.solvers.sets.simplices import Simplices, clipped_to_sum, shift_above

DOMAINS: list[Domain] = [
    Simplices(1, 4),
    Simplices(3, 2),
    Simplices(2, 1),
    SymmetricMatrices(3, 0.0),
    SymmetricMatrices(3, 0.1, 2.0),
    SymmetricMatrices(2),
    Product([Box.of(2, -1.0, 1.0), Simplices(2, 3), SymmetricMatrices(2, 0.5)]),
]


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_projection_is_the_nearest_point(domain: Domain) -> None:
    # p is the projection of z if and only if (z − p)·(y − p) <= 0 for all y in the set
    generator = np.random.default_rng(0)
    for _ in range(20):
        z = 3 * generator.normal(size=domain.dimension)
        p = domain.project(z)
        assert domain.contains(p, 1e-10)
        for _ in range(20):
            y = domain.sample(generator)
            assert domain.contains(y, 1e-9)
            assert (z - p) @ (y - p) <= 1e-9 * (1 + np.linalg.norm(z) * np.linalg.norm(y - p))


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_projection_leaves_points_of_the_set_alone(domain: Domain) -> None:
    y = domain.sample(np.random.default_rng(1))
    assert domain.project(y) == pytest.approx(y, abs=1e-12)
    assert domain.contains(domain.middle(), 1e-12)


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_qp_over_the_steps_gives_the_projection(domain: Domain) -> None:
    # minimise ‖x + metric·s − z‖² over the domain's own rows, against `project`
    generator = np.random.default_rng(2)
    x = domain.sample(generator)
    z = x + 0.3 * generator.normal(size=domain.dimension)
    metric = domain.metric(x)
    program = QuadraticProgram(
        quadratic=metric**2,
        linear=metric * (x - z),
        inequality=np.zeros((0, domain.dimension)),
        inequality_bound=np.zeros(0),
        equality=np.zeros((0, domain.dimension)),
        equality_bound=np.zeros(0),
        domain=domain.step_rows(x, metric),
    )
    solution = make_backend("clarabel").solve(program)
    assert solution.usable
    assert x + metric * solution.step == pytest.approx(domain.project(z), abs=1e-6)


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_tangent_projection_is_the_derivative_of_the_projection(domain: Domain) -> None:
    generator = np.random.default_rng(3)
    x = domain.project(2 * generator.normal(size=domain.dimension))  # often on the boundary
    direction = generator.normal(size=domain.dimension)
    step = 1e-6
    expected = (domain.project(x + step * direction) - x) / step
    assert domain.normal_cone_distance(x, direction) == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_support_function_is_attained_and_never_passed(domain: Domain) -> None:
    generator = np.random.default_rng(4)
    direction = generator.normal(size=domain.dimension)
    value = domain.support(direction)
    samples = [direction @ domain.sample(generator) for _ in range(200)]
    assert max(samples) <= value + 1e-9
    far = domain.project(1e6 * direction)  # the point farthest in that direction, nearly
    if np.isfinite(value):
        assert direction @ far == pytest.approx(value, abs=1e-3)
    else:
        assert direction @ far > 1e4  # the set goes on in that direction


@pytest.mark.parametrize("domain", DOMAINS)
def test_tangent_and_face_directions_stay_in_the_set(domain: Domain) -> None:
    generator = np.random.default_rng(5)
    x = domain.project(2 * generator.normal(size=domain.dimension))
    basis = domain.tangent_basis().toarray()
    assert basis.T @ basis == pytest.approx(np.eye(basis.shape[1]), abs=1e-12)
    for column in domain.face_basis(x, 1e-9).toarray().T:
        moved = 1e-7 * column / np.linalg.norm(column)
        for sign in (1.0, -1.0):
            y = x + sign * moved
            # along a face the set is left only to second order
            assert np.linalg.norm(domain.project(y) - y) <= 1e-10


def test_a_face_has_the_dimension_that_its_support_gives() -> None:
    # (½, ½, 0): one contrast; diag(0, 1, 2) ⪰ 0: all of 6 but the held 1×1 block
    assert Simplices(1, 3).face_basis(np.array([0.5, 0.5, 0.0]), 1e-6).shape[1] == 1
    held = to_vector(np.diag([0.0, 1.0, 2.0]))
    assert SymmetricMatrices(3, 0.0).face_basis(held, 1e-6).shape[1] == 5


def test_storage_keeps_inner_products() -> None:
    generator = np.random.default_rng(6)
    a, b = (m + m.T for m in generator.normal(size=(2, 4, 4)))
    assert to_vector(a) @ to_vector(b) == pytest.approx(np.trace(a @ b))
    assert to_matrix(to_vector(a)) == pytest.approx(a)


def test_a_rotated_basis_is_orthonormal_and_made_of_products_of_eigenvectors() -> None:
    frame, _ = np.linalg.qr(np.random.default_rng(8).normal(size=(4, 4)))
    basis = rotated_basis(frame)
    assert basis.T @ basis == pytest.approx(np.eye(10), abs=1e-12)
    square, mixed = np.outer(frame[:, 0], frame[:, 0]), np.outer(frame[:, 0], frame[:, 1])
    assert basis[:, 0] == pytest.approx(to_vector(square))
    assert basis[:, 1] == pytest.approx(to_vector(mixed + mixed.T) / np.sqrt(2))


def test_the_slope_of_clipped_eigenvalues_is_their_derivative() -> None:
    generator = np.random.default_rng(9)
    matrix = generator.normal(size=(4, 4))
    x, direction = to_vector(matrix + matrix.T), generator.normal(size=10)
    clipped = SymmetricMatrices(4, 0.2, 1.5).project
    expected = (clipped(x + 1e-6 * direction) - clipped(x - 1e-6 * direction)) / 2e-6
    slope = clip_slope(to_matrix(x), 0.2, 1.5)
    assert slope @ direction == pytest.approx(expected, abs=1e-7)


def test_rows_are_shifted_to_their_sum_whatever_bounds_are_missing() -> None:
    generator = np.random.default_rng(10)
    for _ in range(200):
        values = generator.normal(size=(3, 5))
        inside = generator.normal(size=(3, 5))
        low = np.where(generator.random((3, 5)) < 0.4, -np.inf, inside - generator.random((3, 5)))
        high = np.where(generator.random((3, 5)) < 0.4, np.inf, inside + generator.random((3, 5)))
        total = 0.3
        inside += (total - inside.sum(axis=1, keepdims=True)) / 5
        low, high = np.minimum(low, inside), np.maximum(high, inside)
        clipped = clipped_to_sum(values, low, high, total)
        assert clipped.sum(axis=1) == pytest.approx(np.full(3, total), abs=1e-12)
        # what is off its bounds was shifted by one number, what is on them by less or more
        shift = values - clipped
        free = (clipped > low) & (clipped < high)
        for row in np.flatnonzero(free.any(axis=1)):
            number = shift[row][free[row]]
            assert number == pytest.approx(np.full(number.size, number[0]), abs=1e-12)
            assert (shift[row][clipped[row] <= low[row]] <= number[0] + 1e-12).all()
            assert (shift[row][clipped[row] >= high[row]] >= number[0] - 1e-12).all()


def test_without_upper_bounds_rows_are_shifted_to_their_sum_at_once() -> None:
    generator = np.random.default_rng(11)
    for number in range(200):
        values = np.round(generator.normal(size=(3, 5)), 0 if number % 3 == 0 else 8)  # with ties
        low = np.where(generator.random((3, 5)) < 0.5, -np.inf, 0.0)
        low[0] = 0.0  # all held: the sum leaves no other point
        shifted = np.maximum(values - shift_above(values, low)[:, None], low)
        expected = clipped_to_sum(values, low, np.full((3, 5), np.inf), 0.0)
        assert shifted == pytest.approx(expected, abs=1e-12)


def test_multipliers_of_bounds_make_up_the_normal_direction() -> None:
    # simplex: direction = one number per row + multipliers; they vanish off the bounds
    x = np.array([0.0, 0.5, 0.5, 0.1, 0.3, 0.6])
    direction = np.array([-2.0, 1.0, 1.0, 0.5, 0.5, 3.0])
    plain = Simplices(1, 3).bound_multipliers(x[:3], direction[:3], 1e-9)
    assert plain == pytest.approx([-3.0, 0.0, 0.0])
    bounded = BoundedSimplices(1, 3, np.full(3, 0.1), np.full(3, 0.6))
    held = bounded.bound_multipliers(x[3:], direction[3:], 1e-9)
    assert held == pytest.approx([0.0, 0.0, 2.5])
    box = Box(np.zeros(3), np.ones(3))
    held = box.bound_multipliers(np.array([0.0, 1.0, 0.5]), np.array([-1.0, 2.0, 3.0]), 1e-9)
    assert held == pytest.approx([-1.0, 2.0, 0.0])
    assert not SymmetricMatrices(2, 0.0).bound_multipliers(np.zeros(3), -np.ones(3), 1e-9).any()
    both = Product([Simplices(1, 3), bounded])
    assert both.bound_multipliers(x, direction, 1e-9) == pytest.approx([-3, 0, 0, 0, 0, 2.5])


def test_a_distribution_that_its_bounds_leave_no_choice() -> None:
    fixed = BoundedSimplices(2, 2, np.array([0.3, 0.7, 0.0, 0.2]), np.array([1, 1, 1, 0.2]))
    point = np.array([0.3, 0.7, 0.8, 0.2])
    assert fixed.tangent_basis().shape == (4, 0)
    assert fixed.diameter() == 0.0
    for x in (fixed.middle(), fixed.project(np.zeros(4)), fixed.sample(np.random.default_rng(0))):
        assert x == pytest.approx(point, abs=1e-14)
    with pytest.raises(ValueError, match="row 1 cannot sum to 1"):
        BoundedSimplices(2, 2, np.array([0, 0, 0.6, 0.6]), np.ones(4))


def test_a_matrix_between_equal_bounds_is_fixed() -> None:
    only = SymmetricMatrices(2, 2.0, 2.0)
    assert only.tangent_basis().shape == (3, 0)
    assert only.project(np.zeros(3)) == pytest.approx(to_vector(2 * np.eye(2)))
    assert (only.metric(only.middle()) > 0).all()


@pytest.mark.parametrize(
    ("entry", "reason"),
    [(-1.0, "a diagonal of −1"), (0.0, "a diagonal below the least eigenvalue")],
)
def test_entries_without_a_matrix_are_refused(entry: float, reason: str) -> None:
    with pytest.raises(ValueError, match="empty set"):
        BoundedMatrices(SymmetricMatrices(2, 0.5), Box.of(3, -1.0, entry))


def test_a_bounded_set_without_room_is_still_a_set() -> None:
    # P11 = 0 and P ⪰ 0 leave P = diag(0, p): the eigenvalue's bound is met everywhere
    low, high = np.array([0.0, -1.0, -1.0]), np.array([0.0, 1.0, 1.0])
    flat = BoundedMatrices(SymmetricMatrices(2, 0.0), Box(low, high))
    projected = flat.project(to_vector(np.array([[1.0, 0.3], [0.3, 0.5]])))
    assert to_matrix(projected) == pytest.approx(np.diag([0.0, 0.5]), abs=1e-4)


def test_diameters() -> None:
    assert Simplices(3, 2).diameter() == pytest.approx(np.sqrt(6))
    assert SymmetricMatrices(4, 1.0, 3.0).diameter() == pytest.approx(4)  # between I and 3I
    assert Simplices(2, 1).diameter() == 0.0


def test_definite_matrices_are_measured_by_factors() -> None:
    matrices = SymmetricMatrices(3, 0.0)
    generator = np.random.default_rng(3)
    root = generator.normal(size=(3, 3))
    P = root @ root.T + 0.1 * np.eye(3)
    x = to_vector(P)
    D = generator.normal(size=(3, 3))
    D = D + D.T
    step = to_vector(D) / matrices.metric(x)
    length = step @ matrices.norm(x) @ step
    half = scipy.linalg.fractional_matrix_power(P, -0.5)
    assert length == pytest.approx(np.linalg.norm(half @ D @ half) ** 2)
    assert (SymmetricMatrices(3).norm(x) == 1).all()


@pytest.mark.parametrize("domain", DOMAINS)
def test_what_moves_together_is_what_the_cones_tie(domain: Domain) -> None:
    by_rows = Domain.moving_together.func(domain)  # type: ignore[attr-defined]
    own, expected = (
        [group.tolist() for group in each] for each in (domain.moving_together, by_rows)
    )
    assert own == expected


def test_multipliers_of_eigenvalues_are_on_the_eigenspaces_of_the_limits() -> None:
    # eigenvalues 1, 2, 4 within [1, 4]: of each eigenspace the part of the direction that leads outside
    frame, _ = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))
    matrix = (frame * np.array([1.0, 2.0, 4.0])) @ frame.T
    direction = frame @ np.array([[-3.0, 1, 7], [1, 5, 2], [7, 2, 6]]) @ frame.T
    lower, upper = eigenvalue_multipliers(matrix, direction, (1.0, 4.0), 1e-9)
    assert lower == pytest.approx(3.0 * np.outer(frame[:, 0], frame[:, 0]))
    assert upper == pytest.approx(6.0 * np.outer(frame[:, 2], frame[:, 2]))
    lower, upper = eigenvalue_multipliers(matrix, -direction, (1.0, np.inf), 1e-9)
    assert not lower.any()
    assert not upper.any()


def test_multipliers_of_a_limit_are_semidefinite_where_it_holds_several_eigenvalues() -> None:
    # at 0, diag(−2, 3) leads outside along the first axis only
    lower, upper = eigenvalue_multipliers(
        np.zeros((2, 2)), np.diag([-2.0, 3.0]), (0.0, np.inf), 1e-9
    )
    assert lower == pytest.approx(np.diag([2.0, 0.0]))
    assert not upper.any()
