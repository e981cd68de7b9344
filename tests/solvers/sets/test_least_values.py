"""The least value of a slope over a set, bounds of entries and half-spaces: never too narrow."""

from __future__ import annotations

import numpy as np
import pytest

from hcmodel.solvers.sets.bounded_matrices import BoundedMatrices
from hcmodel.solvers.sets.bounded_simplices import BoundedSimplices
from hcmodel.solvers.sets.box import Box
from hcmodel.solvers.sets.domain import Domain
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
