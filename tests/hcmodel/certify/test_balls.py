"""Balls that hold the polyhedra in which a certificate looks for the least value of a slope."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from hcmodel.certify.certificate_options import ENCLOSURE
from hcmodel.certify.minorants import balls
from hcmodel.certify.minorants.balls import ball, least_over
from hcmodel.certify.minorants.level_sets import Ball, level_above
from hcmodel.solvers import function_oracle
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


def test_a_ball_does_not_depend_on_the_lengths_of_the_normals() -> None:
    cube, lengths = np.vstack([np.eye(2), -np.eye(2)]), np.array([2.0, 0.1, 5.0, 30.0])
    offsets = np.array([1.0, 2.0, 1.5, 0.5])
    radius = ball(HalfSpaces(cube, offsets), 1.0)
    scaled = HalfSpaces(cube * lengths[:, None], offsets * lengths)
    assert ball(scaled, 1.0) == pytest.approx(radius)
    assert least_over(scaled, np.array([3.0, -1.0]), 10.0) == pytest.approx(-3 * 1.5 - 2)


def test_the_radius_of_an_interval_is_its_farther_end() -> None:
    # v <= 2 and −v <= 1: the slacks add up to 3, so that each normal's product is at least b − 3
    halves = HalfSpaces(np.array([[1.0], [-1.0]]), np.array([2.0, 1.0]))
    radius = ball(halves, 1.0)
    assert radius == pytest.approx(2.0)
    assert radius >= 2.0
    # 3v is at least −3 there, and what rounding leaves is taken off
    assert least_over(halves, np.array([3.0]), 2.0) == pytest.approx(-3.0)
    assert least_over(halves, np.array([3.0]), 2.0) < -3.0


def test_weights_that_do_not_close_widen_the_ball(monkeypatch: pytest.MonkeyPatch) -> None:
    # 1·(1) + 1.1·(−1) leaves 0.1, which adds 0.1|v| to the sum of the slacks, 2 + 1.1·1 = 3.1; each of
    # them takes that over its weight, and the share of |v| in it goes to the other side
    weights = np.array([1.0, 1.1])
    monkeypatch.setattr(balls, "_closing_weights", lambda *a: weights)
    extent = np.hypot(2.0, max(1.0, abs(1.0 - 3.1 / 1.1)))
    share = np.hypot(1.0, 1 / 1.1) * 0.1 / np.sqrt(2)
    radius = ball(HalfSpaces(np.array([[1.0], [-1.0]]), np.array([2.0, 1.0])), 1.0)
    assert radius == pytest.approx(extent / np.sqrt(2) / (1 - share))
    # a share above one half is not divided by
    weights = np.array([1.0, 2.0])
    assert ball(HalfSpaces(np.array([[1.0], [-1.0]]), np.array([2.0, 1.0])), 1.0) is None


def test_rounding_is_counted_wherever_a_ball_rests_on_products(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # the same with a rounding of 0.01, so that it shows: of Σ y_i a_i, of the least singular value √2 of
    # two normals, and of y·b
    monkeypatch.setattr(balls, "PRODUCT_ROUNDING", 0.01)
    weights = np.array([0.8, 0.88])
    monkeypatch.setattr(balls, "_closing_weights", lambda *a: weights)
    halves = HalfSpaces(np.array([[1.0], [-1.0]]), np.array([2.0, 1.0]))
    left, smallest = 0.08 + 0.01 * 1.68, np.sqrt(2) * (1 - 0.01)
    total = 2.48 * 1.01
    extent = np.hypot(2.0, abs(1.0 - total / 0.88))
    share = np.hypot(1 / 0.8, 1 / 0.88) * left / smallest
    assert ball(halves, 1.0) == pytest.approx(extent / smallest / (1 - share))
    # 3v >= −3 over v >= −1 with the weight 3: |3| + 3 times 0.01, times the radius
    assert least_over(halves, np.array([3.0]), 2.0) == pytest.approx(-3 - 0.06 * 2)


@pytest.mark.parametrize("least", [0.3, 1e-9, 0.0])
def test_singular_values_and_fits_of_many_columns(least: float) -> None:
    """By squares where these are accurate, and else by singular values: never too large a bound."""
    generator, size = np.random.default_rng(4), ENCLOSURE.few + 10
    left = np.linalg.qr(generator.normal(size=(3 * size, size)))[0]
    right = np.linalg.qr(generator.normal(size=(size, size)))[0]
    values = np.append(np.linspace(2.0, 1.0, size - 1), least)
    matrix = left * values @ right
    found = balls.least_singular_value(matrix)
    assert found <= least
    assert found == pytest.approx(least, rel=1e-3, abs=1e-11)
    weights = generator.normal(size=3 * size)
    target = matrix.T @ weights
    fitted = balls._least_squares(matrix, target)
    assert matrix.T @ fitted == pytest.approx(target, abs=1e-8)
    kept = left[:, : size if least > balls.DATA_ROUNDING else size - 1]
    assert fitted == pytest.approx(kept @ (kept.T @ weights), abs=1e-4)  # the shortest one


def test_half_spaces_without_an_end_need_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    wedge = HalfSpaces(np.array([[1.0, 0.2], [-1.0, 0.2], [0.0, 1.0]]), np.ones(3))
    strip = HalfSpaces(np.array([[1.0, 0.0], [-1.0, 0.0], [-2.0, 0.0]]), np.ones(3))
    closed = HalfSpaces(np.array([[1.0, 0.2], [-1.0, 0.2], [0.0, -1.0]]), np.ones(3))
    for halves, endless in ((wedge, True), (strip, False), (closed, False)):
        assert balls._are_endless(halves.normals) == endless  # a strip is left to the program
    assert ball(strip, 1.0) is None
    assert ball(closed, 1.0) is not None
    asked = []
    monkeypatch.setattr(balls, "_closing_weights", lambda *a: asked.append(1))
    assert ball(wedge, 1.0) is None
    assert not asked


def test_a_ball_bounds_distances_and_slopes_from_any_point() -> None:
    # around (1, 0) with radius 2: from (1, 3) at most 5, and the slope (3, 4) falls by 5·5 at most
    around = Ball(7.0, np.array([1.0, 0.0]), 2.0, None, None)
    assert around.reach(np.array([1.0, 3.0])) == 5.0
    assert around.least(np.array([3.0, 4.0]), np.array([1.0, 3.0])) == -25.0
    # with v₁ − 1 in [−1, 2]: 3·(v₁ − 1) is at least −3, and the center is 3·(1 − 5) from the point
    halves = HalfSpaces(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([2.0, 1.0]))
    sharper = Ball(7.0, np.array([1.0, 0.0]), 2.0, halves, None)
    assert sharper.least(np.array([3.0, 0.0]), np.array([5.0, 0.0])) == pytest.approx(-3 - 12)


@pytest.mark.parametrize("value", [10.0, -10.0])
def test_the_level_is_a_little_above_the_value(value: float) -> None:
    evaluation = function_oracle(1, lambda x: (value, np.ones(1))).at(np.zeros(1))
    assert level_above(evaluation) == pytest.approx(value + ENCLOSURE.margin * 10)
    zero = function_oracle(1, lambda x: (0.0, np.ones(1))).at(np.zeros(1))
    assert level_above(zero) == pytest.approx(ENCLOSURE.margin * ENCLOSURE.smallest_value)


@pytest.mark.parametrize("shape", [(0, 3), (4, 1), (7, 5)])
def test_normals_stand_twice_in_the_columns_of_the_program(shape: tuple[int, int]) -> None:
    normals = np.random.default_rng(0).integers(-1, 2, size=shape).astype(float)
    for array in (normals, np.asfortranarray(normals)):
        found = balls._twice_by_columns(array)
        np.testing.assert_array_equal(found.toarray(), np.hstack([normals.T, normals.T]))
        assert found.nnz == 2 * np.count_nonzero(normals)
