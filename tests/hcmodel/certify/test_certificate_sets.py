"""The sets that certificates minimise slopes over: never too high, and balls that hold polyhedra."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import hcmodel as hc
from hcmodel.certify.balls import ball
from hcmodel.certify.map_ranges import map_ranges
from hcmodel.solvers.sets.bounded_matrices import BoundedMatrices
from hcmodel.solvers.sets.bounded_simplices import BoundedSimplices
from hcmodel.solvers.sets.box import Box
from hcmodel.solvers.sets.domain import Domain
from hcmodel.solvers.sets.half_spaces import HalfSpaces
from hcmodel.solvers.sets.matrices import SymmetricMatrices
from hcmodel.solvers.sets.product import Product
from hcmodel.solvers.sets.simplices import Simplices

BOX = Box(np.array([-1.0, 0.0]), np.array([2.0, 3.0]))
HALF_OPEN = Box(np.array([-1.0, -np.inf]), np.array([np.inf, 3.0]))
BOUNDED = [
    BOX,
    Simplices(2, 3),
    BoundedSimplices(1, 3, np.full(3, 0.1), np.full(3, 0.7)),
    SymmetricMatrices(3, 0.5, 4.0),
    BoundedMatrices(SymmetricMatrices(2, 0.5, 4.0), Box(np.full(3, -0.5), np.full(3, 3.0))),
    Product([BOX, Simplices(1, 3), SymmetricMatrices(2, 0.5, 4.0)]),
]
OPEN = [
    HALF_OPEN,
    SymmetricMatrices(2, 0.5),
    SymmetricMatrices(2),
    BoundedMatrices(SymmetricMatrices(2, 0.0), Box(np.full(3, -0.5), np.full(3, 3.0))),
    Product([HALF_OPEN, SymmetricMatrices(2, 0.5), Simplices(1, 3)]),
]


@pytest.mark.parametrize("domain", [*BOUNDED, *OPEN])
def test_no_point_within_reach_lies_below_the_least_value(domain: Domain) -> None:
    generator = np.random.default_rng(0)
    for _ in range(20):
        slope, center = generator.normal(size=domain.dimension), domain.sample(generator)
        points = [domain.sample(generator) for _ in range(20)]
        reach = max(float(np.linalg.norm(point - center)) for point in points)
        values = [float(slope @ (point - center)) for point in points]
        assert domain.least(slope, center, reach) <= min(values) + 1e-9


@pytest.mark.parametrize("domain", BOUNDED)
def test_the_least_value_is_that_of_the_support_function(domain: Domain) -> None:
    generator = np.random.default_rng(1)
    for _ in range(5):
        slope, center = generator.normal(size=domain.dimension), domain.sample(generator)
        exact = -domain.support(-slope) - float(slope @ center)
        assert domain.least(slope, center) == pytest.approx(exact, abs=1e-8)


def test_an_open_side_counts_only_where_the_slope_points_there() -> None:
    center = np.zeros(2)
    assert HALF_OPEN.least(np.array([2.0, -1.0]), center) == pytest.approx(-5)
    assert HALF_OPEN.least(np.array([-2.0, 0.0]), center) == -np.inf
    assert HALF_OPEN.least(np.array([-3.0, 4.0]), center, reach=2.0) == pytest.approx(-10)
    assert HALF_OPEN.least(np.array([0.0, -1.0]), center) == pytest.approx(-3)


@pytest.mark.parametrize("domain", [*BOUNDED, *OPEN])
def test_half_spaces_and_entry_bounds_hold_the_domain(domain: Domain) -> None:
    generator = np.random.default_rng(2)
    center = domain.sample(generator)
    lower, upper = domain.entry_bounds()
    halves = domain.half_spaces(center)
    for _ in range(50):
        point = domain.sample(generator)
        assert (point >= lower - 1e-9).all()
        assert (point <= upper + 1e-9).all()
        assert (halves.normals @ (point - center) <= halves.offsets + 1e-9).all()


@pytest.mark.parametrize("seed", range(10))
def test_a_ball_holds_its_polyhedron(seed: int) -> None:
    generator = np.random.default_rng(seed)
    halves = HalfSpaces(generator.normal(size=(12, 3)), generator.uniform(0.1, 2, size=12))
    radius = ball(halves, 1.0)
    for direction in (*np.eye(3), *(-np.eye(3)), *generator.normal(size=(10, 3))):
        unit = direction / np.linalg.norm(direction)
        farthest = linprog(-unit, halves.normals, halves.offsets, bounds=(None, None))
        if radius is None:
            return  # only where it is unbounded, which the next test asks for
        assert farthest.success
        assert -farthest.fun <= radius


def test_a_ball_is_found_exactly_where_the_half_spaces_close() -> None:
    cube = np.vstack([np.eye(3), -np.eye(3)])
    radius = ball(HalfSpaces(cube, np.ones(6)), 1.0)
    assert radius is not None
    assert np.sqrt(3) <= radius <= 20
    assert ball(HalfSpaces(cube[:5], np.ones(5)), 1.0) is None
    plane = np.eye(3)[:, :2]
    assert ball(HalfSpaces(cube[[0, 1, 3, 4]], np.ones(4)), 1.0) is None
    assert ball(HalfSpaces(cube[[0, 1, 3, 4]], np.ones(4)), 1.0, plane) is not None


def test_far_half_spaces_do_not_widen_a_ball() -> None:
    cube = np.vstack([np.eye(2), -np.eye(2)])
    near = ball(HalfSpaces(cube, np.ones(4)), 1.0)
    far = HalfSpaces(np.vstack([cube, cube]), np.concatenate([np.ones(4), np.full(4, 1e8)]))
    assert ball(far, 1.0) == pytest.approx(near)


def test_parts_of_a_map_have_the_ranges_that_are_known() -> None:
    P = hc.Variable((2, 2), name="P", PSD=(0.1, 10))
    K = hc.Variable((1, 2), name="K", bounds=(-5, 5))
    own, product = map_ranges([P, K @ P])
    assert isinstance(own.domain, SymmetricMatrices)
    assert own.selection.shape == (3, 4)
    assert isinstance(product.domain, Box)
    np.testing.assert_allclose(product.domain.upper, [100, 100], rtol=1e-9)
    policy = hc.Variable((2, 2), name="policy", simplex=True)
    visits = hc.solve(2 * np.eye(2) - policy, np.ones(2))
    (occupancy,) = map_ranges([hc.reshape(visits, (2, 1)) * policy])
    assert occupancy.nonnegative is not None
    np.testing.assert_array_equal(occupancy.nonnegative.entry_bounds()[0], np.zeros(4))
    assert np.isinf(occupancy.domain.entry_bounds()[0]).all()
