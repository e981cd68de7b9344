"""Balls that hold the polyhedra in which a certificate looks for the least value of a slope."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from hcmodel.certify.balls import ball
from hcmodel.solvers.sets.half_spaces import HalfSpaces


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
