"""KKT residuals and multipliers at points whose KKT system is solved by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from hcmodel.solvers import Box, Evaluation, function_oracle, kkt
from hcmodel.solvers.sets.domain import roomy_metric
from hcmodel.solvers.sets.simplices import Simplices
from tests.solvers.models import linear_rows, quadratic, tank

FloatArray = NDArray[np.float64]


def at_solution() -> Evaluation:
    return tank().oracle.at(np.array([2.0, 0.5]))


def test_the_residual_vanishes_at_the_solution_with_its_multiplier() -> None:
    # Ex-CGP: x* = (2, ½), λ* = 1
    evaluation, box = at_solution(), tank().domain
    assert kkt.residual(evaluation, box, np.array([1.0])) < 1e-14
    assert kkt.scaled_residual(evaluation, box, np.array([1.0])) < 1e-14
    np.testing.assert_allclose(
        kkt.lagrangian_gradient(evaluation, np.array([1.0])), np.zeros(2), atol=1e-14
    )


@pytest.mark.parametrize("multiplier", [0.0, 0.9, 1.1, 5.0])
def test_a_wrong_multiplier_shows(multiplier: float) -> None:
    residual = kkt.residual(at_solution(), tank().domain, np.array([multiplier]))
    assert residual > 0.02


def test_the_residual_is_the_projected_step_over_the_gradient() -> None:
    # ½‖x − (5, −5, 0.2)‖² over [0, 1]³ at (1, 0.5, 0.5): ∇F1 = (−4, 5.5, 0.3), the first held by its
    # bound; divided by 5.5 the step goes (0, −0.5, −0.3/5.5), cut at the bound 0
    oracle = function_oracle(3, quadratic(np.array([5.0, -5.0, 0.2])))
    evaluation = oracle.at(np.array([1.0, 0.5, 0.5]))
    expected = 0.5
    assert kkt.residual(evaluation, Box.of(3, 0.0, 1.0), np.zeros(0)) == pytest.approx(expected)


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e12])
def test_a_steep_point_inside_a_box_is_not_stationary(scale: float) -> None:
    # ½ scale (x − 1)² at 3 in [−10, 10]: a projected step cut at the bound and then divided by the slope
    # would look stationary.
    oracle = function_oracle(1, quadratic(np.ones(1), np.array([scale])))
    evaluation = oracle.at(np.array([3.0]))
    assert kkt.residual(evaluation, Box.of(1, -10.0, 10.0), np.zeros(0)) > 1e-3


def test_a_multiplier_on_a_slack_row_counts_as_residual() -> None:
    # F1 = x, row −x − 10 <= 0, at x = 0
    oracle = function_oracle(
        1,
        lambda x: (float(x[0]), np.ones(1)),
        inequalities=lambda x: (-x - 10.0, -np.ones((1, 1))),
        sizes=(1, 0),
    )
    evaluation = oracle.at(np.zeros(1))
    # λ = 1 makes the Lagrangian stationary, but the row is slack by 10 and |F1| = 0
    assert kkt.residual(evaluation, Box.of(1), np.ones(1)) == pytest.approx(10.0)
    assert kkt.residual(evaluation, Box.of(1), np.zeros(1)) == pytest.approx(1.0)


def test_the_worst_of_several_rows_counts() -> None:
    """F1 = 0 beside rows −1 and −7 without slopes: the largest product, the most negative multiplier."""
    oracle = function_oracle(
        1,
        lambda x: (0.0, np.zeros(1)),
        inequalities=lambda x: (np.array([-1.0, -7.0]), np.zeros((2, 1))),
        sizes=(2, 0),
    )
    evaluation = oracle.at(np.zeros(1))
    for multipliers, expected in (((1.0, 2.0), 14.0), ((2.0, 1.0), 7.0), ((3.0, 0.25), 3.0)):
        assert kkt.residual(evaluation, Box.of(1), np.array(multipliers)) == expected
    active = function_oracle(  # so that no product counts
        1,
        lambda x: (0.0, np.zeros(1)),
        inequalities=lambda x: (np.zeros(2), np.zeros((2, 1))),
        sizes=(2, 0),
    )
    there = active.at(np.zeros(1))
    assert kkt.residual(there, Box.of(1), np.array([-3.0, 5.0])) == 3.0


def test_an_inequality_multiplier_of_the_wrong_sign_is_no_proof() -> None:
    # once wrong: F1 = ½x², row x − 1 <= 0: at x = 1 only λ = −1 makes the Lagrangian stationary, so
    # x = 1 is no KKT point. `residual` does not look at the sign; callers happen to hand in λ >= 0.
    oracle = function_oracle(
        1,
        quadratic(np.zeros(1)),
        inequalities=linear_rows(np.ones((1, 1)), np.ones(1)),
        sizes=(1, 0),
    )
    evaluation = oracle.at(np.ones(1))
    assert kkt.residual(evaluation, Box.of(1), np.array([-1.0])) > 0.1


def test_non_finite_derivatives_are_never_stationary() -> None:
    oracle = function_oracle(1, lambda x: (0.0, np.array([np.nan])))
    assert kkt.residual(oracle.at(np.zeros(1)), Box.of(1), np.zeros(0)) == np.inf


def test_least_squares_finds_the_multipliers_of_a_convex_program() -> None:
    # closed form: the point nearest to a centre under linear rows is x = c − Aᵀy over the active rows A,
    # with A Aᵀ y = A c − b; the right active set is the one with y >= 0 and no other row violated
    generator = np.random.default_rng(3)
    matrix = generator.standard_normal((3, 5))
    centre = 3 * matrix[0] + 2 * matrix[1] - 4 * matrix[2]  # beyond the first two rows
    equal = generator.standard_normal((1, 5))
    rows, sides = np.vstack([matrix, equal]), np.array([0.1, 0.1, 0.1, 0.3])
    solved = []
    for chosen in itertools.product([False, True], repeat=3):
        active = np.array([*chosen, True])
        multipliers = np.zeros(4)
        multipliers[active] = np.linalg.solve(
            rows[active] @ rows[active].T, rows[active] @ centre - sides[active]
        )
        point = centre - rows.T @ multipliers
        if (multipliers[:3] >= 0).all() and (matrix @ point <= 0.1 + 1e-12).all():
            solved.append((point, multipliers))
    ((point, multipliers),) = solved
    assert (multipliers[:3] > 0).any()
    oracle = function_oracle(
        5,
        quadratic(centre),
        inequalities=linear_rows(matrix, np.full(3, 0.1)),
        equalities=linear_rows(equal, np.array([0.3])),
        sizes=(3, 1),
    )
    evaluation = oracle.at(point)
    fitted = kkt.least_squares_multipliers(evaluation, Box.of(5), 1e-6)
    assert fitted is not None
    np.testing.assert_allclose(fitted, multipliers, atol=1e-9)
    assert kkt.residual(evaluation, Box.of(5), fitted) < 1e-9


def test_equality_multipliers_may_be_negative() -> None:
    # min ½(x − 3)² s.t. x == 1: x − 3 + ν = 0, ν = 2; from the other side, ½(x + 3)²: ν = −4
    for centre, expected in ((3.0, 2.0), (-3.0, -4.0)):
        oracle = function_oracle(
            1,
            quadratic(np.array([centre])),
            equalities=linear_rows(np.ones((1, 1)), np.ones(1)),
            sizes=(0, 1),
        )
        fitted = kkt.least_squares_multipliers(oracle.at(np.ones(1)), Box.of(1), 1e-6)
        np.testing.assert_allclose(fitted, [expected])


def test_coordinates_held_by_a_bound_are_left_to_the_bound() -> None:
    # min ½‖x − (2, 5)‖² s.t. x0 + x1 <= 1, x1 <= 0: x = (1, 0), λ = 1 from x0 alone; the bound has 4
    oracle = function_oracle(
        2,
        quadratic(np.array([2.0, 5.0])),
        inequalities=linear_rows(np.ones((1, 2)), np.ones(1)),
        sizes=(1, 0),
    )
    box = Box(np.full(2, -np.inf), np.array([np.inf, 0.0]))
    evaluation = oracle.at(np.array([1.0, 0.0]))
    fitted = kkt.least_squares_multipliers(evaluation, box, 1e-6)
    np.testing.assert_allclose(fitted, [1.0])
    assert kkt.residual(evaluation, box, np.array([1.0])) < 1e-14


def test_no_active_row_means_zero_multipliers() -> None:
    oracle = function_oracle(
        1,
        quadratic(np.zeros(1)),
        inequalities=linear_rows(np.ones((1, 1)), np.ones(1)),
        sizes=(1, 0),
    )
    fitted = kkt.least_squares_multipliers(oracle.at(np.zeros(1)), Box.of(1), 1e-6)
    np.testing.assert_array_equal(fitted, [0.0])


def test_the_best_of_several_multipliers_is_chosen() -> None:
    evaluation, box = at_solution(), tank().domain
    multipliers, value = kkt.best_multipliers(
        evaluation, box, [np.array([0.3]), np.array([7.0])], 1e-6
    )
    np.testing.assert_allclose(multipliers, [1.0], atol=1e-12)
    assert value < 1e-12


def test_sparse_and_dense_jacobians_give_the_same_multipliers() -> None:
    dense, sparse = at_solution(), at_solution()
    sparse._jacobian = sp.csr_array(sparse.jacobian)
    box = tank().domain
    np.testing.assert_allclose(
        kkt.least_squares_multipliers(sparse, box, 1e-6),
        kkt.least_squares_multipliers(dense, box, 1e-6),
    )
    assert kkt.residual(sparse, box, np.ones(1)) == kkt.residual(dense, box, np.ones(1))


# down to the size under which an objective counts as vanishing, kkt.SMALLEST_SCALE
@pytest.mark.parametrize("scale", [1e-5, 1.0, 1e8])
def test_the_scaled_residual_does_not_depend_on_the_unit_of_the_objective(scale: float) -> None:
    reference = tank().oracle.at(np.array([1.5, 0.6]))
    scaled = tank(scale=scale).oracle.at(np.array([1.5, 0.6]))
    box = tank().domain
    expected = kkt.scaled_residual(reference, box, np.array([0.7]))
    assert expected > 0.1
    assert kkt.scaled_residual(scaled, box, np.array([0.7 * scale])) == pytest.approx(expected)


@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_the_scaled_residual_is_in_units_of_the_metric_and_of_the_value(offset: float) -> None:
    # c + x² at 3 without bounds: the slope 6 in natural units m is 6 m, beside max(|value|, 6 m)
    oracle = function_oracle(1, lambda x: (offset + float(x[0] ** 2), 2 * x))
    evaluation, box = oracle.at(np.array([3.0])), Box.of(1)
    unit = float(roomy_metric(box, evaluation.point)[0])
    expected = 6 * unit / max(offset + 9.0, 6 * unit)
    assert kkt.scaled_residual(evaluation, box, np.zeros(0)) == pytest.approx(expected)


def test_a_residual_that_is_enough_needs_no_fit_and_others_do() -> None:
    # λ* = 1; 1.1 is taken where its residual is enough, and replaced by the fit where it is not
    evaluation, box, near = at_solution(), tank().domain, np.array([1.1])
    kept, value = kkt.best_multipliers(evaluation, box, [near], 1e-6, enough=1.0)
    assert kept is near
    assert value > 0.02
    fitted, value = kkt.best_multipliers(evaluation, box, [near], 1e-6, enough=1e-3)
    assert fitted == pytest.approx([1.0], abs=1e-6)
    assert value <= 1e-3


@pytest.mark.parametrize(("magnitude", "expected"), [(100.0, 1.0), (1.0, 0.0)])
def test_a_row_is_active_within_the_tolerance_of_its_sides(
    magnitude: float, expected: float
) -> None:
    # x with −x − 5e-5 <= 0 at 0: slack by 5e-5, within 1e-6 of sides of 100 and not of sides of 1
    oracle = function_oracle(
        1,
        lambda x: (float(x[0]), np.ones(1)),
        inequalities=lambda x: (-x - 5e-5, -np.ones((1, 1))),
        sizes=(1, 0),
    )
    evaluation = oracle.at(np.zeros(1))
    evaluation.magnitudes = np.array([magnitude])
    fitted = kkt.least_squares_multipliers(evaluation, Box.of(1), 1e-6)
    assert fitted == pytest.approx([expected])


def test_a_tall_fit_finds_the_same_multipliers() -> None:
    # ∇F = −Aᵀλ over 1,200 unknowns, which is more than the fit is made of directly
    rng, size = np.random.default_rng(3), kkt.RULES.tall + 200
    matrix, multipliers = rng.normal(size=(3, size)), np.array([0.5, 2.0, -1.0])
    oracle = function_oracle(
        size,
        lambda x: (float(-(matrix.T @ multipliers) @ x), -(matrix.T @ multipliers)),
        inequalities=lambda x: (matrix[:2] @ x, matrix[:2].copy()),
        equalities=lambda x: (matrix[2:] @ x, matrix[2:].copy()),
        sizes=(2, 1),
    )
    domain = Box.of(size, -1.0, 1.0)
    found = kkt.least_squares_multipliers(oracle.at(np.zeros(size)), domain, 1e-6)
    assert found == pytest.approx(multipliers, abs=1e-9)


# ---- the numbers of the residual, each worked out by hand


def straight(
    slope: FloatArray, value: float, rows: FloatArray, at: FloatArray, offsets: FloatArray
) -> Evaluation:
    """A linear objective of this value, and inequalities of these slopes and values, at a point."""
    oracle = function_oracle(
        at.size,
        lambda x: (value, slope.copy()),
        inequalities=(lambda x: (offsets.copy(), rows.copy())) if offsets.size else None,
        sizes=(offsets.size, 0),
    )
    return oracle.at(at)


def test_a_step_is_divided_by_the_terms_that_cancel() -> None:
    # ∇F1 = 3 and λ∇g = −2 leave 1 of 3 + 2; complementarity, 0.2·1/|F1|, is below that
    evaluation = straight(np.array([3.0]), 10.0, -np.ones((1, 1)), np.zeros(1), np.zeros(1))
    assert kkt.residual(evaluation, Box.of(1), np.array([2.0])) == pytest.approx(0.2)


def test_terms_of_dependent_rows_count_by_their_rounding() -> None:
    # x and −x with λ = 1e9 each cancel; of 2e9 the share 1e-8 counts: 1 + 20 beside the slope 1
    rows = np.array([[1.0], [-1.0]])
    evaluation = straight(np.ones(1), 10.0, rows, np.zeros(1), np.zeros(2))
    assert kkt.residual(evaluation, Box.of(1), np.full(2, 1e9)) == pytest.approx(1 / 21)


def test_a_bound_that_does_not_hold_a_point_back_counts_by_its_slope() -> None:
    # −3x at the lower bound of [0, 1]: the step goes to 1, and 3·1 over max(1, |F1|) = 1 is the gap
    evaluation = straight(np.array([-3.0]), 0.0, np.zeros((0, 1)), np.zeros(1), np.zeros(0))
    assert kkt.residual(evaluation, Box.of(1, 0.0, 1.0), np.zeros(0)) == pytest.approx(3.0)
    uphill = straight(np.array([3.0]), 0.0, np.zeros((0, 1)), np.zeros(1), np.zeros(0))
    assert kkt.residual(uphill, Box.of(1, 0.0, 1.0), np.zeros(0)) == 0
    assert kkt.scaled_residual(uphill, Box.of(1, 0.0, 1.0), np.zeros(0)) == 0


@pytest.mark.parametrize(("large", "expected"), [(0.0, 0.2), (1e8, 0.1)])
def test_entries_of_a_distribution_have_one_size(large: float, expected: float) -> None:
    # at the middle of a simplex ∇F1 = (3, 0, 0) and λ∇g = (−2.4, 0, 0) are (2, −1, −1) and −(1.6, …)
    # along it: the size is 2, and 0.6/2 of the first entry moves (−0.2, 0.1, 0.1). Two rows of 1e8 that
    # cancel add 2 to the size.
    middle, rows = np.full(3, 1 / 3), np.array([[1.0, 0, 0], [-1.0, 0, 0]])
    evaluation = straight(np.array([3.0, 0, 0]), 10.0, rows, middle, np.zeros(2))
    found = kkt.residual(evaluation, Simplices(1, 3), np.array([large, large + 2.4]))
    assert found == pytest.approx(expected, rel=1e-6)


def test_what_a_simplex_holds_back_has_no_size() -> None:
    # at (½, ½, 0) the slope 3 of the last entry is held back, and λ∇g = (0.2, 0, 0) moves (−0.1, 0.1, 0):
    # divided by 1, the least size. The slope's own size would be 2.
    at, rows = np.array([0.5, 0.5, 0.0]), np.array([[0.2, 0.0, 0.0]])
    evaluation = straight(np.array([0.0, 0, 3]), 10.0, rows, at, np.zeros(1))
    assert kkt.residual(evaluation, Simplices(1, 3), np.ones(1)) == pytest.approx(0.1)


def test_the_natural_unit_of_a_distribution_is_that_of_its_largest_entry() -> None:
    at, slope = np.array([0.9, 0.05, 0.05]), np.array([0.001, 0.0, 0.0])
    domain = Simplices(1, 3)
    units = roomy_metric(domain, at)
    assert units.min() < units.max()
    # along the simplex the slope is 1e-3·(2, −1, −1)/3: over F1 = 1, in units u, a step of u²·1e-3
    evaluation = straight(slope, 1.0, np.zeros((0, 3)), at, np.zeros(0))
    expected = units.max() * 1e-3 * 2 / 3
    assert kkt.scaled_residual(evaluation, domain, np.zeros(0)) == pytest.approx(expected)


def test_complementarity_joins_the_scaled_residual_by_its_root() -> None:
    # λ|g| = 0.04 beside |F1| = 1, and no slope at all
    evaluation = straight(np.zeros(1), 1.0, np.zeros((1, 1)), np.zeros(1), np.array([-0.04]))
    assert kkt.scaled_residual(evaluation, Box.of(1), np.ones(1)) == pytest.approx(0.2)


def test_an_objective_that_vanishes_is_taken_to_have_a_small_size() -> None:
    # the slope is worth half of 1e-5 in natural units
    unit = float(roomy_metric(Box.of(1), np.zeros(1))[0])
    slope = np.array([5e-6 / unit])
    evaluation = straight(slope, 0.0, np.zeros((0, 1)), np.zeros(1), np.zeros(0))
    assert kkt.scaled_residual(evaluation, Box.of(1), np.zeros(0)) == pytest.approx(0.5)


@pytest.mark.parametrize(("share", "expected"), [(0.8, True), (1.5, False)])
def test_stationary_asks_for_a_tenth_of_the_root_in_natural_units(
    share: float, expected: bool
) -> None:
    # tolerance 1e-4: at most 1e-3 of F1 = 1 in natural units, however small the slope is in the user's
    at = np.array([1e3])
    unit = float(roomy_metric(Box.of(1), at)[0])
    slope = np.array([share * 1e-3 / unit])
    evaluation = straight(slope, 1.0, np.zeros((0, 1)), at, np.zeros(0))
    assert kkt.residual(evaluation, Box.of(1), np.zeros(0)) < 1e-5
    assert kkt.is_stationary(evaluation, Box.of(1), np.zeros(0), 1e-4) == expected
    # a residual that is known is not computed again
    assert not kkt.is_stationary(evaluation, Box.of(1), np.zeros(0), 1e-4, known=1e-3)


def test_a_residual_above_the_tolerance_is_not_stationary() -> None:
    evaluation = straight(np.array([2e-4]), 1e9, np.zeros((0, 1)), np.zeros(1), np.zeros(0))
    assert not kkt.is_stationary(evaluation, Box.of(1), np.zeros(0), 1e-4)
    assert kkt.is_stationary(evaluation, Box.of(1), np.zeros(0), 1e-3)


def test_where_nothing_is_stationary_the_smallest_residual_is_taken() -> None:
    # ∇F1 = 3 with the slack row −x − 1: λ = 2 has 2·1 of complementarity, λ = 0 and the fit a slope of 1
    evaluation = straight(np.array([3.0]), 0.0, -np.ones((1, 1)), np.zeros(1), -np.ones(1))
    multipliers, value = kkt.best_multipliers(
        evaluation, Box.of(1, -1e3, 1e3), [np.array([5.0]), np.array([0.6])], 1e-6
    )
    expected = {
        each: kkt.residual(evaluation, Box.of(1, -1e3, 1e3), np.array([each]))
        for each in (5.0, 0.6, 0.0)
    }
    assert value == min(expected.values())
    assert expected[multipliers[0]] == value


@pytest.mark.parametrize(("share", "kept"), [(0.005, True), (0.015, False)])
def test_multipliers_a_hundred_times_better_than_asked_for_are_kept(
    share: float, kept: bool
) -> None:
    # ∇F1 + λ∇g = 1 − λ over 1 + λ: half of the distance to λ* = 1
    evaluation = straight(np.ones(1), 10.0, -np.ones((1, 1)), np.zeros(1), np.zeros(1))
    candidate = np.array([1.0 + 2 * share * 1e-4])
    found, _ = kkt.best_multipliers(evaluation, Box.of(1), [candidate], 1e-4)
    assert (found is candidate) == kept


def test_rows_too_many_for_a_fit_leave_the_candidates() -> None:
    count = kkt.RULES.largest_fit + 1
    evaluation = straight(np.ones(1), 10.0, -np.ones((count, 1)), np.zeros(1), np.zeros(count))
    assert kkt.least_squares_multipliers(evaluation, Box.of(1), 1e-6) is None
    candidate = np.zeros(count)
    assert kkt.best_multipliers(evaluation, Box.of(1), [candidate], 1e-6)[0] is candidate


@pytest.mark.parametrize("of_rows", [True, False])
def test_there_is_no_fit_where_a_derivative_is_not_a_number(of_rows: bool) -> None:
    slope, rows = np.ones(1), np.ones((1, 1))
    (rows if of_rows else slope)[0] = np.nan
    evaluation = straight(slope, 0.0, rows, np.zeros(1), np.zeros(1))
    assert kkt.least_squares_multipliers(evaluation, Box.of(1), 1e-6) is None


def test_the_fit_does_not_depend_on_the_units_of_the_rows() -> None:
    # −1e-12 x₁ and −1e9 x₂ against the slopes 1 and 2: λ = 1e12 and 2e-9
    rows = np.array([[-1e-12, 0.0], [0.0, -1e9]])
    evaluation = straight(np.array([1.0, 2.0]), 0.0, rows, np.zeros(2), np.zeros(2))
    found = kkt.least_squares_multipliers(evaluation, Box.of(2), 1e-6)
    assert found == pytest.approx([1e12, 2e-9])


@pytest.mark.parametrize("size", [1.0, 1e-5, 1e-8])
def test_a_residual_is_enough_relative_to_the_slopes_of_the_objective(size: float) -> None:
    # size·x with −x <= 0: λ = size; the residual of 0, which is size, says nothing where size is small
    evaluation = straight(np.array([size]), 0.0, -np.ones((1, 1)), np.zeros(1), np.zeros(1))
    found, _ = kkt.best_multipliers(evaluation, Box.of(1), [np.zeros(1)], 1e-6, enough=1e-4)
    assert found / size == pytest.approx([1.0])


@pytest.mark.parametrize("seed", range(20))
def test_a_fit_leaves_bounds_no_multipliers_of_the_wrong_sign(seed: int) -> None:
    # a vertex of more rows and bounds than unknowns, whose multipliers exist: ∇F1 = z − Jᵀλ with
    # z >= 0 at lower bounds, z <= 0 at upper ones
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(6, 5))
    weights = np.maximum(generator.normal(size=6), 0.0)
    sides = np.array([1.0, 1.0, -1.0, -1.0, 0.0])
    pushes = sides * np.maximum(generator.normal(size=5), 0.0)
    box = Box(np.array([0.0, 0, -1, -1, -1]), np.array([1.0, 1, 0, 0, 1]))
    evaluation = straight(pushes - rows.T @ weights, 0.0, rows, np.zeros(5), np.zeros(6))
    found = kkt.least_squares_multipliers(evaluation, box, 1e-6)
    assert found is not None
    assert kkt.residual(evaluation, box, found) < 1e-9
