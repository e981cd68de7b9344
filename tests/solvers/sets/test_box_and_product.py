"""Boxes and products of them, against closed forms and scipy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import Bounds, linprog, minimize

from hcmodel.solvers import Box, Product
from hcmodel.solvers.qp.program import Cone, StepRows
from hcmodel.solvers.sets.box import LARGEST_FALL, LARGEST_RISE

FloatArray = NDArray[np.float64]
INF = np.inf

MIXED = Box(np.array([-1.0, 0.5, -INF, 2.0, -INF]), np.array([1.0, 8.0, 4.0, INF, INF]))


class Triangle(Box):
    """A box that also asks for a cone, as a PSD block will."""

    def step_rows(self, x: FloatArray, metric: FloatArray) -> StepRows:
        plain = super().step_rows(x, metric)
        cone = Cone("psd", sp.csr_array(np.arange(6.0).reshape(3, 2) + 1), np.array([1.0, 2, 3]))
        return StepRows(plain.lower, plain.upper, (cone,))


def test_projection_is_the_nearest_point_by_scipy() -> None:
    generator = np.random.default_rng(1)
    box = Box(np.array([-1.0, 0.5, -INF]), np.array([1.0, 2.0, 0.3]))
    for _ in range(5):
        x = generator.uniform(-4, 4, 3)
        peer = minimize(
            lambda y, x=x: np.sum((y - x) ** 2),
            np.array([0.0, 1.0, 0.0]),
            bounds=Bounds(box.lower, box.upper),
            tol=1e-14,
        )
        np.testing.assert_allclose(box.project(x), peer.x, atol=1e-6)


def test_projection_leaves_inner_points_and_the_argument_alone() -> None:
    x = np.array([0.5, 1.0, -7.0, 3.0, 9.0])
    kept = x.copy()
    np.testing.assert_array_equal(MIXED.project(x), x)
    outside = np.array([5.0, 0.0, 5.0, 0.0, -9.0])
    np.testing.assert_array_equal(MIXED.project(outside), [1.0, 0.5, 4.0, 2.0, -9.0])
    np.testing.assert_array_equal(x, kept)


def test_membership_with_and_without_tolerance() -> None:
    box = Box.of(2, 0.0, 1.0)
    assert box.contains(np.array([0.0, 1.0]))
    assert not box.contains(np.array([-1e-9, 0.5]))
    assert box.contains(np.array([-1e-9, 1 + 1e-9]), tolerance=1e-8)
    assert not box.contains(np.array([np.nan, 0.5]), tolerance=1.0)


def test_normal_cone_distance_is_what_a_projected_step_would_move() -> None:
    # Moreau: direction minus its part in N_X(x) is the limit of (P(x + t·direction) − x)/t.
    generator = np.random.default_rng(2)
    box = Box(np.array([0.0, 0.0, 0.0, 1.0, -INF]), np.array([1.0, 1.0, 1.0, 1.0, INF]))
    x = np.array([0.0, 1.0, 0.5, 1.0, 3.0])
    t = 1e-6
    for _ in range(20):
        direction = generator.standard_normal(5)
        kept = direction.copy()
        moved = (box.project(x + t * direction) - x) / t
        np.testing.assert_allclose(box.normal_cone_distance(x, direction), moved, atol=1e-8)
        np.testing.assert_array_equal(direction, kept)


def test_one_unit_is_the_point_itself_where_positive_and_never_more_than_the_width() -> None:
    box = Box(np.array([1e-6, 0.5, -INF, -INF, 7.0]), np.array([INF, 0.6, INF, INF, 7.0]))
    x = np.array([1e-3, 0.55, 0.1, -50.0, 7.0])
    np.testing.assert_allclose(box.metric(x), [1e-3, 0.1, 1.0, 50.0, 1.0])
    assert (box.metric(box.project(np.zeros(5))) > 0).all()


def test_steps_that_the_rows_allow_stay_inside_and_reach_the_bounds() -> None:
    generator = np.random.default_rng(3)
    x = np.array([0.2, 6.0, 3.0, 2.5, -4.0])
    metric = MIXED.metric(x)
    rows = MIXED.step_rows(x, metric)
    assert (rows.lower <= 0).all()
    assert (rows.upper >= 0).all()
    assert not rows.cones
    low, high = np.maximum(rows.lower, -10.0), np.minimum(rows.upper, 10.0)
    for _ in range(50):
        step = generator.uniform(low, high)
        assert MIXED.contains(x + metric * step, tolerance=1e-12)
    # the first coordinate is no positive one: its bounds are the box's own
    np.testing.assert_allclose(x[0] + metric[0] * np.array([rows.lower[0], rows.upper[0]]), [-1, 1])
    # positive ones move by factors, but no further than the box: 6 − 0.7·6 > 0.5, 6 + 3·6 > 8
    np.testing.assert_allclose(x[1] + metric[1] * rows.lower[1], 6.0 * (1 - LARGEST_FALL))
    np.testing.assert_allclose(x[1] + metric[1] * rows.upper[1], 8.0)
    np.testing.assert_allclose(x[3] + metric[3] * rows.upper[3], 2.5 * (1 + LARGEST_RISE))


def test_a_positive_coordinate_at_zero_can_leave_it() -> None:
    # once wrong: `pos=True` has lower bound 0, and a start at 0, or one projected onto it, has a reach
    # of 0 in both directions: the coordinate is frozen for the whole run.
    box = Box(np.zeros(1), np.array([INF]), positive=np.array([True]))
    x = np.zeros(1)
    rows = box.step_rows(x, box.metric(x))
    assert rows.upper[0] > 0


def test_tangent_basis_spans_the_free_directions() -> None:
    box = Box(np.array([0.0, 2.0, -INF]), np.array([1.0, 2.0, INF]))
    basis = box.tangent_basis().toarray()
    np.testing.assert_array_equal(basis.T @ basis, np.eye(2))
    np.testing.assert_array_equal(basis @ basis.T, np.diag([1.0, 0.0, 1.0]))
    fixed = Box(np.ones(2), np.ones(2))
    assert fixed.tangent_basis().shape == (2, 0)
    both = Product([box, fixed, Box.of(1)]).tangent_basis().toarray()
    np.testing.assert_array_equal(both @ both.T, np.diag([1.0, 0.0, 1.0, 0.0, 0.0, 1.0]))


def test_support_is_the_largest_value_over_the_vertices() -> None:
    generator = np.random.default_rng(4)
    lower, upper = generator.uniform(-3, 0, 4), generator.uniform(0, 3, 4)
    box = Box(lower, upper)
    vertices = np.array(list(itertools.product(*zip(lower, upper, strict=True))))
    for _ in range(10):
        direction = generator.standard_normal(4) * (generator.random(4) > 0.3)
        best = float(np.max(vertices @ direction))
        assert box.support(direction) == pytest.approx(best, abs=1e-12)
        peer = linprog(-direction, bounds=np.column_stack([lower, upper]))
        assert box.support(direction) == pytest.approx(-peer.fun, abs=1e-9)


def test_support_of_unbounded_sets() -> None:
    half = Box(np.array([0.0, -INF]), np.array([INF, 1.0]))
    assert half.support(np.array([1.0, 0.0])) == INF
    assert half.support(np.array([-2.0, 3.0])) == 3.0
    assert half.support(np.array([0.0, -1.0])) == INF
    assert half.support(np.zeros(2)) == 0.0


def test_diameter_is_the_longest_diagonal() -> None:
    box = Box(np.array([0.0, -1.0]), np.array([3.0, 3.0]))
    assert box.diameter() == pytest.approx(5.0)
    assert Product([box, Box.of(1, 0.0, 12.0)]).diameter() == pytest.approx(13.0)
    assert Box.of(2, 0.0).diameter() == INF


def test_samples_lie_inside_differ_and_repeat_with_the_seed() -> None:
    for domain in (MIXED, Product([MIXED, Box.of(2, 1e-12, 1e12), Box(np.ones(1), np.ones(1))])):
        generator = np.random.default_rng(5)
        points = np.array([domain.sample(generator) for _ in range(200)])
        assert np.isfinite(points).all()
        assert all(domain.contains(point) for point in points)
        np.testing.assert_array_equal(domain.sample(np.random.default_rng(5)), points[0])
        spread = points.std(axis=0)
        assert (spread[:5] > 0).all()


def test_samples_of_a_positive_interval_are_uniform_in_the_logarithm() -> None:
    # once wrong: a finite positive lower bound is lifted to a thousandth of the middle, so that
    # nothing of [1e-12, 1e-3] is ever sampled and 80 % of the samples of [1e-12, 1e12] are above 1.
    generator = np.random.default_rng(5)
    points = np.array([Box.of(1, 1e-12, 1e12).sample(generator)[0] for _ in range(400)])
    assert 0.4 < np.mean(points < 1.0) < 0.6


def test_middle_is_geometric_where_positive() -> None:
    box = Box(
        np.array([0.01, -1.0, 0.0, -INF, 3.0, -5.0, -INF, -INF]),
        np.array([100.0, 3.0, 4.0, INF, INF, INF, 10.0, -10.0]),
    )
    middle = box.middle()
    np.testing.assert_allclose(middle[:4], [1.0, 1.0, 2.0, 0.0])
    assert box.contains(middle)
    # half-open: strictly inside, away from the only bound
    assert (middle[4:6] > box.lower[4:6]).all()
    assert (middle[6:] < box.upper[6:]).all()


def test_middle_of_huge_and_tiny_boxes_neither_overflows_nor_vanishes() -> None:
    box = Box(np.array([1e-300, -1e308, 1e200]), np.array([1e300, 1e308, 1e300]))
    np.testing.assert_allclose(box.middle(), [1.0, 0.0, 1e250], rtol=1e-12)


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([0.0, 2.0], [1.0, 1.0], "entry 1"),
        ([np.nan], [1.0], "NaN"),
        ([0.0], [np.nan], "NaN"),
        ([0.0, 0.0], [1.0], "one length"),
        ([[0.0]], [[1.0]], "two vectors"),
    ],
)
def test_impossible_boxes_are_refused(lower: list[float], upper: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Box(np.array(lower), np.array(upper))


@pytest.mark.parametrize("bound", [INF, -INF])
def test_a_box_without_a_finite_point_is_refused(bound: float) -> None:
    # once wrong: [∞, ∞] holds no real number, yet it is accepted and projects onto ∞.
    with pytest.raises(ValueError, match="empty"):
        Box(np.array([bound]), np.array([bound]))


def test_an_empty_box_is_a_normal_case() -> None:
    box = Box.of(0)
    assert box.dimension == 0
    assert box.project(np.zeros(0)).shape == (0,)
    assert box.contains(np.zeros(0))
    assert box.support(np.zeros(0)) == 0.0


def test_a_product_does_to_each_part_what_its_factor_does() -> None:
    generator = np.random.default_rng(6)
    factors = [MIXED, Box.of(2, 0.1, 3.0), Box.of(1)]
    product = Product(factors)
    whole = Box(
        np.concatenate([factor.lower for factor in factors]),
        np.concatenate([factor.upper for factor in factors]),
    )
    assert product.dimension == 8
    np.testing.assert_array_equal(product.middle(), whole.middle())
    assert product.diameter() == whole.diameter()
    for _ in range(10):
        x, direction = 3 * generator.standard_normal(8), generator.standard_normal(8)
        inside = product.project(x)
        np.testing.assert_array_equal(inside, whole.project(x))
        assert product.contains(x) == whole.contains(x)
        np.testing.assert_array_equal(
            product.normal_cone_distance(inside, direction),
            whole.normal_cone_distance(inside, direction),
        )
        metric = product.metric(inside)
        np.testing.assert_array_equal(metric, whole.metric(inside))
        rows, expected = product.step_rows(inside, metric), whole.step_rows(inside, metric)
        np.testing.assert_array_equal(rows.lower, expected.lower)
        np.testing.assert_array_equal(rows.upper, expected.upper)
        assert product.support(direction) == whole.support(direction)


def test_a_product_puts_the_cones_of_its_factors_at_their_columns() -> None:
    product = Product([Box.of(1, -1.0, 1.0), Triangle(np.zeros(2), np.ones(2)), Box.of(1)])
    rows = product.step_rows(np.array([0.0, 0.5, 0.5, 0.0]), np.ones(4))
    (cone,) = rows.cones
    assert cone.kind == "psd"
    np.testing.assert_array_equal(cone.offset, [1.0, 2.0, 3.0])
    wide = np.zeros((3, 4))
    wide[:, 1:3] = np.arange(6.0).reshape(3, 2) + 1
    np.testing.assert_array_equal(cone.matrix.toarray(), wide)


def test_the_middle_that_a_box_keeps_is_not_changed_by_its_users() -> None:
    box = Box(np.array([1.0, -2.0]), np.array([4.0, 6.0]))
    box.middle()[:] = 7.0
    np.testing.assert_allclose(box.middle(), [2.0, 2.0])


@pytest.mark.parametrize("lower", [[-1.0, 2.0], [-1.0, -2.0], [0.5, 2.0]])
def test_samples_fill_a_box_by_ratios_where_it_is_positive(lower: list[float]) -> None:
    box, generator = Box(np.array(lower), np.array([3.0, 8.0])), np.random.default_rng(0)
    found = np.array([box.sample(generator) for _ in range(500)])
    assert all(box.contains(x) for x in found)
    # half of the samples lie below the middle, which is geometric for positive entries
    np.testing.assert_allclose(np.mean(found < box.middle(), axis=0), 0.5, atol=0.08)


def test_a_product_of_nothing_is_a_point() -> None:
    nothing = Product([])
    assert nothing.dimension == 0
    assert nothing.project(np.zeros(0)).shape == (0,)
    assert nothing.diameter() == 0.0
