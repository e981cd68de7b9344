"""Simplices and symmetric matrices as domains, by optimality conditions and closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from hcmodel.solvers.cones import Simplices, SymmetricMatrices, to_matrix, to_vector
from hcmodel.solvers.domain import Box, Domain, Product
from hcmodel.solvers.qp import QuadraticProgram, make_backend

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
    if np.isfinite(value):
        far = domain.project(1e6 * direction)  # the point farthest in that direction, nearly
        assert direction @ far == pytest.approx(value, abs=1e-3)


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


def test_diameters() -> None:
    assert Simplices(3, 2).diameter() == pytest.approx(np.sqrt(6))
    assert SymmetricMatrices(4, 1.0, 3.0).diameter() == pytest.approx(4)  # between I and 3I
    assert Simplices(2, 1).diameter() == 0.0
