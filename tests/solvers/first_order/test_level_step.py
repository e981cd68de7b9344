"""The numbers of one level step, worked out by hand: units, multipliers, weights of the merit, lengths.

The example is F1 = 3 x₁ + ½ x₂ at x = (2, −4), where the metric of a wide box is (2, 4): the gradient in
these units is (6, 2), its scale 6. The row x₁ + 2 x₂ − b has the slopes (2, 8) there and the scale 8.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from hcmodel.solvers import Box, Evaluation, Oracle, function_oracle
from hcmodel.solvers.algebra.symmetric import to_vector
from hcmodel.solvers.first_order import level_step
from hcmodel.solvers.first_order.level_step import (
    LinearModel,
    Penalty,
    backtrack,
    solve_level,
    solve_rows,
    worst,
)
from hcmodel.solvers.first_order.method_rules import LevelRules, SearchRules
from hcmodel.solvers.qp.clarabel_ import ClarabelBackend
from hcmodel.solvers.qp.program import Cone, QPSolution, QPStatus
from hcmodel.solvers.sets.matrices import SymmetricMatrices
from tests.solvers.models import linear_rows

FloatArray = NDArray[np.float64]
RULES, SEARCH = LevelRules(), SearchRules()
SLOPE, ROW = np.array([3.0, 0.5]), np.array([[1.0, 2.0]])
POINT, METRIC = np.array([2.0, -4.0]), np.array([2.0, 4.0])
WIDE = Box.of(2, -100.0, 100.0)


def linear(x: FloatArray) -> tuple[float, FloatArray]:
    return float(SLOPE @ x), SLOPE.copy()


def parabola(x: FloatArray) -> tuple[float, FloatArray]:
    return float(x[0] ** 2 / 2), x.copy()


def oracle_of(
    value: float | None, equal: float | None = None, objective: Callable[..., object] = linear
) -> Oracle:
    """The example with a row of this value at the point, and an equality x₁ − x₂ of that value."""
    rows = None if value is None else linear_rows(ROW, ROW @ POINT - value)
    matrix = np.array([[1.0, -1.0]])
    both = None if equal is None else linear_rows(matrix, matrix @ POINT - equal)
    return function_oracle(
        2,
        objective,
        inequalities=rows,
        equalities=both,
        sizes=(int(value is not None), int(equal is not None)),
    )


def model_of(value: float | None, equal: float | None = None) -> LinearModel:
    return LinearModel.at(oracle_of(value, equal).at(POINT), WIDE)


def test_slopes_are_in_units_of_the_metric_and_rows_in_units_of_their_slope() -> None:
    model = model_of(4.0, 3.0)
    assert model.gradient == pytest.approx([6, 2])
    assert model.gradient_scale == pytest.approx(6)
    assert model.row_scales == pytest.approx([8, 4])  # of x₁ − x₂: (2, −4)
    assert model.jacobian == pytest.approx(np.array([[0.25, 1], [0.5, -1]]))
    assert model.rows == pytest.approx([0.5, 0.75])
    assert not model.curved
    assert model.stiffness == 1


def test_curvature_is_divided_like_the_objective() -> None:
    model = LinearModel.at(oracle_of(None).at(POINT), WIDE, np.diag([12.0, 3.0]))
    assert model.quadratic == pytest.approx(np.diag([2, 0.5]))
    assert model.curved
    assert model.stiffness == pytest.approx(2)
    assert model.program(1.0, None, 1.0).quadratic == pytest.approx(np.diag([1, 0.25]))


def test_a_violated_row_is_shifted_a_slack_one_is_not() -> None:
    # α = ½, unit 1/10: −α·½/0.1 = −2.5 where the row is violated, ½/0.1 where it has room
    violated = model_of(4.0, 3.0).program(0.5, 1.2, 0.1)
    assert violated.inequality_bound == pytest.approx([-2.5, -2])  # and −1.2/6/0.1, the level
    assert violated.equality_bound == pytest.approx([-0.5 * 0.75 / 0.1])
    assert violated.inequality[-1] == pytest.approx([1, 1 / 3])
    assert model_of(-4.0).program(0.5, None, 0.1).inequality_bound == pytest.approx([5])
    # the box: (−100 − 2)/2 and (100 + 4)/4 of these units, ten times as many small ones
    assert violated.domain.lower[0] == pytest.approx(-510)
    assert violated.domain.upper[1] == pytest.approx(260)


def test_the_unit_is_the_larger_of_violation_and_decrease() -> None:
    assert model_of(4.0).unit(0.6) == pytest.approx(0.5)  # 4/8, beside 0.6/6
    assert model_of(0.8).unit(-1.2) == pytest.approx(0.2)  # |−1.2|/6, beside 0.8/8
    assert model_of(-4.0).unit(0.0) == 1e-14
    assert model_of(80.0).unit(0.0) == 1.0


def test_the_predicted_change_is_in_the_units_of_the_user() -> None:
    change, rows = model_of(4.0).change(np.array([-0.5, 0.25]))
    assert change == pytest.approx(6 * -0.5 + 2 * 0.25)
    assert rows == pytest.approx([4 + 1 * -1 + 2 * 1])  # d = metric·s = (−1, 1)


def lagrangian_step(step: level_step.LevelStep, jacobian: FloatArray) -> FloatArray:
    """−weight·∇(F1 + λ·rows), in units of metric and gradient scale: what a step is, M = I."""
    assert step.multipliers is not None
    return -step.weight * METRIC * (SLOPE + step.multipliers @ jacobian) / 6


@pytest.mark.parametrize("decrease", [2.0, 3.0])  # the row alone brings 1.65
def test_a_level_step_is_a_multiple_of_the_lagrangians_gradient(decrease: float) -> None:
    # the level asks for s₁ + s₂/3 = −δ/6, the violated row for s₁/4 + s₂ = −½, both bind
    step = level_step._try_level(model_of(4.0), 1.0, decrease, ClarabelBackend(), RULES)
    assert step is not None
    assert step.s == pytest.approx(
        np.linalg.solve([[1, 1 / 3], [0.25, 1]], [-decrease / 6, -0.5]), abs=1e-7
    )
    assert step.multipliers is not None
    assert step.multipliers[0] > 0
    assert step.s == pytest.approx(lagrangian_step(step, ROW), abs=1e-6)


def test_without_rows_the_weight_is_the_length_over_the_slope() -> None:
    # s = −w·(1, 1/3) with w·(1 + 1/9) = δ/6
    step = level_step._try_level(model_of(None), 1.0, 1.2, ClarabelBackend(), RULES)
    assert step is not None
    assert step.weight == pytest.approx(0.2 / (10 / 9), rel=1e-6)
    assert step.s == pytest.approx(-step.weight * np.array([1, 1 / 3]), rel=1e-6)
    assert (step.shift, step.decrease) == (1.0, 1.2)


def test_a_level_that_does_not_bind_says_nothing_of_multipliers() -> None:
    # s₁/4 + s₂ = −½ alone leads below a level that rises
    step = level_step._try_level(model_of(4.0), 1.0, -5.0, ClarabelBackend(), RULES)
    assert step is not None
    assert step.multipliers is None


@pytest.mark.parametrize("weight", [0.05, 2.0])
def test_a_step_of_given_weight_has_the_multipliers_of_its_rows(weight: float) -> None:
    jacobian = np.vstack([ROW, [[1.0, -1.0]]])
    model = model_of(4.0, 3.0)
    for step in (
        level_step._weighted(model, weight, 0.5, ClarabelBackend()),
        level_step._try_weight(model, weight, ClarabelBackend(), RULES),
    ):
        assert step is not None
        assert step.weight == weight
        assert step.s == pytest.approx(lagrangian_step(step, jacobian), abs=1e-6)
        assert step.decrease == pytest.approx(-float(model.gradient @ step.s))
        after = model.change(step.s)[1]
        assert after[0] <= 1e-6
        assert after[1] == pytest.approx(0, abs=1e-6)
    assert level_step._try_weight(model, 0.0, ClarabelBackend(), RULES) is None


def test_the_largest_shift_that_the_box_admits_is_found() -> None:
    # x <= −5 from 0 in [−1, 1]: a share of at most 1/5 of the way, the first of 1, ½, ¼, ⅛ below it
    oracle = function_oracle(
        1, parabola, inequalities=linear_rows(np.eye(1), np.array([-5.0])), sizes=(1, 0)
    )
    model = LinearModel.at(oracle.at(np.zeros(1)), Box.of(1, -1.0, 1.0))
    found = solve_rows(model, ClarabelBackend(), RULES)
    assert found is not None
    s, shift = found
    assert shift == 0.125
    assert model.metric * s == pytest.approx([-0.625], abs=1e-6)
    # 1/50: from ⅛ on to 1/16, which is below 0.1, and then by quarters
    far = function_oracle(
        1, parabola, inequalities=linear_rows(np.eye(1), np.array([-50.0])), sizes=(1, 0)
    )
    found = solve_rows(
        LinearModel.at(far.at(np.zeros(1)), Box.of(1, -1.0, 1.0)), ClarabelBackend(), RULES
    )
    assert found is not None
    assert found[1] == 2.0**-6


def test_the_usual_weight_is_near_the_last_one() -> None:
    model = model_of(None)
    assert level_step._usual_weight(model, 1.5, 1.0, RULES) == 1.5
    assert level_step._usual_weight(model, 9.0, 1.0, RULES) == 4.0
    assert level_step._usual_weight(model, 0.01, 1.0, RULES) == 0.25
    curved = LinearModel.at(oracle_of(None).at(POINT), WIDE, np.eye(2))
    # w − w²/2 = 3/8 at w = ½; none falls by more than ½, at w = 1
    assert level_step._usual_weight(curved, 0.375, 1.0, RULES) == pytest.approx(0.5)
    assert level_step._usual_weight(curved, 0.75, 2.0, RULES) == pytest.approx(1.0)
    assert level_step._usual_weight(curved, 7.0, 1.0, RULES) == 1.0
    assert level_step._usual_weight(curved, 0.01, 1.0, RULES) == 0.25


def test_a_level_keeps_the_last_weight_within_reach() -> None:
    # w = 0.18 for δ = 1.2 (above); after a weight of 0.01 at most 0.04 is taken
    step = solve_level(model_of(None), 1.2, 0.01, ClarabelBackend(), RULES)
    assert step is not None
    assert step.weight == pytest.approx(0.04)
    free = solve_level(model_of(None), 1.2, 0.0, ClarabelBackend(), RULES)
    assert free is not None
    assert free.weight == pytest.approx(0.18, rel=1e-5)


def test_a_level_out_of_reach_leaves_the_step_onto_the_rows_and_a_share_of_it() -> None:
    # no step inside the box falls by 1e6; the row asks for s₁/4 + s₂ = −½, far from every vertex
    step = solve_level(model_of(4.0), 1e6, 0.0, ClarabelBackend(), RULES)
    assert step is not None
    rows = model_of(4.0).change(step.s)[1]
    assert rows[0] <= 1e-6
    assert step.decrease is not None
    assert step.decrease < 1e6


# ---- the merit function


def test_the_merit_adds_violations_times_weights() -> None:
    evaluation = oracle_of(4.0, -3.0).at(POINT)  # 3·2 − ½·4 = 4
    assert Penalty(np.array([2.0, 5.0])).merit(evaluation) == pytest.approx(4 + 2 * 4 + 5 * 3)


def test_weights_follow_the_multipliers() -> None:
    # below 1.2 |λ|: to 2 |λ|; above 4 |λ|: halved, not below 2 |λ|; else as they are
    penalty = Penalty(np.array([1.1, 1.3, 100.0, 4.5, 3.0]))
    found = penalty.covering(np.array([1.0, 1.0, 1.0, -1.0, -1.0]))
    assert found.weights == pytest.approx([2.0, 1.3, 50.0, 2.25, 3.0])
    assert Penalty(np.array([4.2])).covering(np.array([1.04])).weights == pytest.approx([2.1])


def test_weights_are_compared_with_multipliers_in_their_own_units() -> None:
    # |λ| = 3: below 3.6 to 6, above 12 halved and not below 6, else as they are
    found = Penalty(np.array([3.5, 3.7, 11.0, 13.0])).covering(np.full(4, 3.0))
    assert found.weights == pytest.approx([6.0, 3.7, 11.0, 6.5])


def test_the_promised_decrease_counts_objective_and_rows() -> None:
    # s = (−½, ¼): F1 changes by −2.5, the row from 4 to 5; an equality from −3 to −3 − 2 = −5
    model, s = model_of(4.0, -3.0), np.array([-0.5, 0.25])
    assert Penalty(np.array([0.5, 0.25])).predicted(model, s) == pytest.approx(
        2.5 + 0.5 * (4 - 5) + 0.25 * (3 - 5)
    )


def test_a_step_that_repairs_rows_becomes_a_descent_step() -> None:
    # d = metric·(½, −½) = (1, −2): F1 rises by 2, and the row falls from 4 to 1
    model, s = model_of(4.0), np.array([0.5, -0.5])
    change = 6 * 0.5 - 2 * 0.5
    weak = Penalty(np.array([0.1]))
    strong = weak.enforcing(model, s)
    # repaired 3, over the scale 8: weights grow by 2·change/(3/8)/8
    assert strong.weights == pytest.approx([0.1 + 2 * change / (3 / 8) / 8])
    assert strong.predicted(model, s) >= change
    enough = Penalty(np.array([2 * change / 3 + 1e-9]))
    assert enough.enforcing(model, s) is enough
    half = Penalty(
        np.array([2 / 3])
    )  # 3·⅔ = 2 gains as much as F1 rises by; twice that is asked for
    assert half.enforcing(model, s).weights[0] > 1
    worse = np.array([0.5, 0.5])  # repairs nothing
    assert weak.enforcing(model, worse) is weak


def test_the_reference_is_the_worst_of_the_last_points() -> None:
    oracle = oracle_of(4.0)
    history = [oracle.at(POINT), oracle.at(POINT + 1), oracle.at(POINT - 1)]
    penalty = Penalty(np.array([1.0]))
    assert worst(history, penalty) == max(penalty.merit(each) for each in history)


# ---- the length of a step


def search(start: float, s: float, **more: object) -> level_step.Search | None:
    oracle = function_oracle(1, parabola, sizes=(0, 0))
    domain = Box.of(1, -10.0, 10.0)
    evaluation = oracle.at(np.array([start]))
    model = LinearModel.at(evaluation, domain)
    reference = more.pop("reference", evaluation.objective)
    penalty = Penalty(np.zeros(0))
    return backtrack(oracle, domain, model, np.array([s]), penalty, reference, SEARCH)


def test_the_next_length_is_at_the_bottom_of_the_parabola() -> None:
    # ½x² at 1 along −4: 4.5 at x = −3, so that the curvature is 2·(4.5 − 0.5 + 4) and the length 4/16
    found = search(1.0, -4.0)
    assert found is not None
    assert (found.length, found.ideal) == (0.25, 0.25)
    assert found.evaluation.point == pytest.approx([0])


def test_a_step_that_is_good_is_taken_and_its_ideal_length_told() -> None:
    found = search(1.0, -0.5)  # ½·0.5² at length 1; the bottom is twice as far
    assert found is not None
    assert (found.length, found.ideal) == (1.0, 2.0)


def test_a_length_is_not_cut_by_more_than_ten_nor_by_less_than_two() -> None:
    near = search(1.0, -9.0)  # the bottom is at 1/9
    assert near is not None
    assert near.length == pytest.approx(1 / 9)
    nearer = search(0.5, -9.0)  # the bottom is at 1/18, and a tenth is taken
    assert nearer is not None
    assert nearer.length == pytest.approx(0.1)


def test_a_length_is_one_of_the_step_in_natural_units() -> None:
    # at 4, where the unit is 4: −8, as high as 4 is, so that half of it is next
    found = search(4.0, -2.0)
    assert found is not None
    assert found.length == 0.5
    assert found.evaluation.point == pytest.approx([0])


def test_a_step_uphill_is_not_tried() -> None:
    assert search(1.0, 1.0) is None


def test_rows_that_bend_are_told_from_an_objective_that_does() -> None:
    # repaired where rows make up more than half of the surplus, and that is above half of the promise
    assert level_step._bent(0.6, 1.0, 1.0, SEARCH)
    assert not level_step._bent(0.4, 1.0, 1.0, SEARCH)
    assert not level_step._bent(0.6, 1.0, 3.0, SEARCH)
    assert not level_step._bent(0.6, 2.0, 1.0, SEARCH)


class Told:
    """A merit function that is told its values, and remembers where it was asked."""

    def __init__(self, merit: Callable[[float], float], promised: float) -> None:
        self.told, self.promised, self.asked = merit, promised, list[float]()

    def merit(self, evaluation: Evaluation) -> float:
        self.asked.append(float(evaluation.point[0]))
        return self.told(float(evaluation.point[0]))

    def predicted(self, model: LinearModel, s: FloatArray) -> float:
        return self.promised


def told_search(
    merit: Callable[[float], float], promised: float, reference: float | None = None
) -> tuple[Told, object]:
    """From 0 along s = 1 with the metric 1, so that a length is the point that it leads to."""
    oracle, domain = function_oracle(1, parabola, sizes=(0, 0)), Box.of(1)
    model = LinearModel.at(oracle.at(np.zeros(1)), domain)
    assert model.metric == 1
    told = Told(merit, promised)
    worst = merit(0.0) if reference is None else reference
    return told, backtrack(oracle, domain, model, np.ones(1), told, worst, SEARCH)


@pytest.mark.parametrize(("share", "taken"), [(1.1, True), (0.9, False)])
def test_a_share_of_the_promise_is_asked_for(share: float, taken: bool) -> None:
    # 1e-4 of the promised 3 a unit of length; a merit that falls by less than that never passes
    found = told_search(lambda x: -share * 1e-4 * 3 * x, 3.0)[1]
    assert (found is not None) == taken


def test_the_share_is_one_of_the_promise_at_that_length() -> None:
    # far too high at 1, so that a tenth is next; there 1.1 of what is asked for at this length
    found = told_search(lambda x: 50.0 if x > 0.5 else -1.1e-4 * 3 * x, 3.0)[1]
    assert isinstance(found, level_step.Search)
    assert found.length == pytest.approx(0.1)


def test_a_length_is_a_tenth_of_the_last_one_at_the_least() -> None:
    told, found = told_search(lambda x: 50.0 if x > 0.05 else -x, 3.0)
    assert found is not None
    assert told.asked == pytest.approx([0.0, 1.0, 0.1, 0.01])


def test_a_merit_that_is_equal_but_for_rounding_passes() -> None:
    # 1e-13 of a merit of 1e6 is 1e-7: half of that above the start passes, twice that does not
    for rise, taken in ((0.5e-7, True), (2e-7, False)):
        found = told_search(lambda x, rise=rise: 1e6 + rise * (x > 0), 1e-9)[1]  # type: ignore[misc]
        assert (found is not None) == taken


def test_rounding_is_that_of_the_larger_merit() -> None:
    # from a merit of 1, with a worst of 1e6 among the last points: 1e-7 of rounding again
    found = told_search(lambda x: 1e6 + 0.5e-7 if x else 1.0, 1e-9, reference=1e6)[1]
    assert found is not None


def test_a_length_is_halved_where_the_parabola_has_its_bottom_further_on() -> None:
    # falls by half of the share asked for: 2·(t·p − 0.5e-4·t·p)/t² of curvature asks for a little more
    # than t/2, and no less than half is cut
    told, found = told_search(lambda x: -0.5e-4 * x if x > 0.2 else -x, 1.0)
    assert isinstance(found, level_step.Search)
    assert told.asked == pytest.approx([0.0, 1.0, 0.5, 0.25, 0.125], rel=1e-9)


def bending(row: float, own: float, repair: object, step: float = 1.0) -> object:
    """10 − x + own·x² under row·x² <= 0 with the weight 1, from 0 along a step that promises `step`."""

    def rows(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return row * x**2, 2 * row * x.reshape(1, 1)

    oracle = function_oracle(
        1,
        lambda x: (float(10 - x[0] + own * x[0] ** 2), -1 + 2 * own * x),
        inequalities=rows,
        sizes=(1, 0),
    )
    domain = Box.of(1)
    model = LinearModel.at(oracle.at(np.zeros(1)), domain)
    seen: list[float] = []

    def repairing(trial: Evaluation) -> Evaluation | None:
        seen.append(float(trial.point[0]))
        return oracle.at(np.array([repair])) if isinstance(repair, float) else None

    given = None if repair == "never" else repairing
    found = backtrack(
        oracle, domain, model, np.array([step]), Penalty(np.ones(1)), 10.0, SEARCH, given
    )
    return seen[0] if seen else None, found


def test_a_trial_is_repaired_where_the_rows_bend() -> None:
    # at 1 the merit is 10 − 1 + 0.8: it misses the promise of 1 by 0.8, all of it from the row
    seen, found = bending(0.8, 0.0, 0.5)  # type: ignore[misc]
    assert seen == 1.0
    assert found.evaluation.point == pytest.approx([0.5])  # 10 − ½ + 0.2 is below 9.8
    # its merit of 9.7 is 0.7 above the promise: the bottom of that parabola is at 1/1.4
    assert found.ideal == pytest.approx(1 / 1.4)


def test_a_repair_that_fails_or_is_worse_leaves_the_trial() -> None:
    for repair in (None, 2.0, "never"):  # at 2 the merit is 10 − 2 + 3.2
        _, found = bending(0.8, 0.0, repair)  # type: ignore[misc]
        assert found.evaluation.point == pytest.approx([1.0])


def test_a_trial_is_not_repaired_where_the_objective_bends_or_little_is_missed() -> None:
    # of 0.8 that are missed the row has 0.1 only
    assert bending(0.1, 0.7, 0.5)[0] is None  # type: ignore[index]
    # a promise of 2 is missed by 0.2·4 = 0.8, less than half of it, and by 0.3·4 = 1.2, more than that
    assert bending(0.2, 0.0, 0.5, step=2.0)[0] is None  # type: ignore[index]
    assert bending(0.3, 0.0, 0.5, step=2.0)[0] == 2.0  # type: ignore[index]


# ---- units, and what is tried in which order


def test_sparse_rows_are_scaled_like_dense_ones() -> None:
    evaluation = oracle_of(4.0, 3.0).at(POINT)
    dense = LinearModel.at(evaluation, WIDE)
    sparse = oracle_of(4.0, 3.0).at(POINT)
    sparse._jacobian = scipy.sparse.csr_array(sparse.jacobian)
    found = LinearModel.at(sparse, WIDE)
    assert scipy.sparse.issparse(found.jacobian)
    assert found.jacobian.toarray() == pytest.approx(dense.jacobian)
    assert found.row_scales == pytest.approx(dense.row_scales)


def test_what_has_no_slope_keeps_its_unit() -> None:
    flat = function_oracle(
        1,
        lambda x: (3.0, np.zeros(1)),
        inequalities=lambda x: (np.array([5.0]), np.zeros((1, 1))),
        sizes=(1, 0),
    )
    model = LinearModel.at(flat.at(np.ones(1)), Box.of(1))
    assert (model.gradient_scale, model.row_scales, model.rows) == (1, 1, 5)


def test_a_step_onto_the_rows_is_the_shortest_one() -> None:
    # s₁/4 + s₂ = −½ along (¼, 1), whose square is 17/16
    found = solve_rows(model_of(4.0), ClarabelBackend(), RULES)
    assert found is not None
    assert found[0] == pytest.approx(-0.5 * np.array([0.25, 1.0]) / (17 / 16), abs=1e-7)


def test_the_weight_of_a_level_with_curvature_is_that_of_the_newton_step() -> None:
    # M = diag(2, ½): s = −w·M⁻¹∇F1/6 = −w·(½, 2/3)
    model = LinearModel.at(oracle_of(None).at(POINT), WIDE, np.diag([12.0, 3.0]))
    step = level_step._try_level(model, 1.0, 1.2, ClarabelBackend(), RULES)
    assert step is not None
    assert step.s == pytest.approx(-step.weight * np.array([0.5, 2 / 3]), rel=1e-5)
    assert LinearModel.at(oracle_of(None).at(POINT), WIDE, np.zeros((2, 2))).stiffness == 1


def test_a_first_level_with_curvature_has_no_last_weight() -> None:
    model = LinearModel.at(oracle_of(None).at(POINT), WIDE, np.diag([12.0, 3.0]))
    free = solve_level(model, 1.2, 0.0, ClarabelBackend(), RULES)
    level = level_step._try_level(model, 1.0, 1.2, ClarabelBackend(), RULES)
    assert free is not None
    assert level is not None
    assert free.weight == level.weight


def test_a_level_that_nothing_reaches_leaves_the_step_of_the_last_weight() -> None:
    step = solve_level(model_of(4.0), 1e6, 0.05, ClarabelBackend(), RULES)
    expected = level_step._weighted(model_of(4.0), 0.05, 0.5, ClarabelBackend())
    assert step is not None
    assert expected is not None
    assert step.weight == 0.05
    assert step.shift == expected.shift == 1.0
    assert step.s == pytest.approx(expected.s, abs=1e-6)


@dataclass(frozen=True)
class Answer:
    """A backend with one answer."""

    inequality: FloatArray

    def solve(self, program: object) -> QPSolution:
        empty = np.zeros(0)
        return QPSolution(QPStatus.SOLVED, np.ones(2), self.inequality, empty, empty)


@pytest.mark.parametrize(("share", "binds"), [(2.0, True), (0.5, False)])
def test_a_level_binds_if_its_multiplier_is_not_negligible(share: float, binds: bool) -> None:
    # 1e-4 of the largest multiplier of a row, 300
    answer = Answer(np.array([300.0, share * 1e-4 * 300]))
    step = level_step._try_level(model_of(4.0), 1.0, 1.2, answer, RULES)
    assert step is not None
    assert (step.multipliers is not None) == binds


@pytest.mark.parametrize(
    ("decrease", "step", "largest"),
    [
        (8.0, [0.5, 0.0], 8.0),  # what was wanted
        (1.0, [0.5, 0.0], 3.0),  # what the step onto the rows costs: 6·½
        (0.001, [0.0, 0.0], 1e-3 * 6 * 0.5),  # of the slope 6 along the unit ½, the violation 4/8
    ],
)
def test_shares_of_the_largest_decrease_are_tried_beside_the_step_onto_the_rows(
    decrease: float, step: list[float], largest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[float, float]] = []

    def refuse(
        model: LinearModel, shift: float, decrease: float, backend: object, rules: LevelRules
    ) -> None:
        asked.append((shift, decrease))

    monkeypatch.setattr(level_step, "_try_level", refuse)
    monkeypatch.setattr(level_step, "_try_vertex", lambda *a: None)
    monkeypatch.setattr(level_step, "_try_weight", lambda *a: None)
    monkeypatch.setattr(level_step, "solve_rows", lambda *a: (np.array(step), 0.25))
    found = solve_level(model_of(4.0), decrease, 0.0, ClarabelBackend(), RULES)
    rise = 6 * step[0]
    shares = [largest / 4 / 16**k for k in range(6)]
    assert asked[0] == (1.0, decrease)
    assert asked[1:] == [(0.25, pytest.approx(share - rise)) for share in shares]
    assert found is not None
    assert (found.shift, found.decrease) == (0.25, None)


def test_the_unit_of_a_step_follows_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    # a step of 1e-6 in the unit 1: again in 10 times its length or a thousandth of the unit, the larger,
    # until it is a hundredth of the unit
    asked: list[float] = []
    length = 1e-6

    def weighted(model: object, weight: float, unit: float, backend: object) -> object:
        asked.append(unit)
        return level_step.LevelStep(np.array([0.0, -length]), None, 1.0, 0.0, weight)

    monkeypatch.setattr(level_step, "_weighted", weighted)

    def units(value: float | None, weight: float) -> list[float]:
        asked.clear()
        level_step._try_weight(model_of(value), weight, ClarabelBackend(), RULES)
        return list(asked)

    assert units(None, 7.0) == pytest.approx([1.0, 1e-3, 1e-5])
    # the weight where it is below 1, or the violation, 4/8
    assert units(None, 0.02) == pytest.approx([0.02, 2e-5])
    assert units(4.0, 0.02) == pytest.approx([0.5, 5e-4, 1e-5])
    length = 0.0
    assert units(None, 0.5) == pytest.approx([0.5, 5e-4, 5e-7, 5e-10, 5e-13])

    def once(model: object, weight: float, unit: float, backend: object) -> object:
        return weighted(model, weight, unit, backend) if unit == 1.0 else None

    monkeypatch.setattr(level_step, "_weighted", once)  # then the first answer is the best one
    assert level_step._try_weight(model_of(None), 1.0, ClarabelBackend(), RULES) is not None


def test_a_vertex_is_taken_where_it_is_near_in_every_coordinate() -> None:
    # 3 x₁ + ½ x₂ is lowest at the lower corner: (0.04, 0.02) of the natural units 2 and 4 away
    def vertex(left: float, down: float) -> level_step.LevelStep | None:
        box = Box(POINT - METRIC * [left, down], POINT + 1000.0)
        model = LinearModel.at(oracle_of(None).at(POINT), box)
        assert model.metric == pytest.approx(METRIC)
        return level_step._try_vertex(model, ClarabelBackend(), RULES)

    near = vertex(0.04, 0.02)
    assert near is not None
    assert near.s == pytest.approx([-0.04, -0.02], abs=1e-6)
    assert vertex(0.04, 0.5) is None  # more than 0.05
    assert vertex(0.5, 0.02) is None


def test_the_cone_of_a_matrix_is_in_the_unit_of_the_step() -> None:
    # P ⪰ 0 at diag(2, 3)
    domain = SymmetricMatrices(2, 0.0)
    point = to_vector(np.diag([2.0, 3.0]))
    oracle = function_oracle(3, lambda x: (float(x.sum()), np.ones(3)))
    model = LinearModel.at(oracle.at(point), domain)
    (cone,) = model.program(1.0, None, 0.1).domain.cones
    assert cone.offset == pytest.approx(10 * point)
    # a unit so small that the edge of the cone is out of reach
    assert model.program(1.0, None, 1e-9).domain.cones == ()


@pytest.mark.parametrize(("room", "beyond"), [(1.5, False), (3.0, True)])
def test_a_cone_is_out_of_reach_beyond_the_longest_steps(room: float, beyond: bool) -> None:
    # the longest steps, 1e5 units of ½, in entries of up to 4: 2e5
    offset = to_vector(np.diag([room, 9.0]) * 1e5)
    cone = Cone("psd", scipy.sparse.csr_array(np.diag([4.0, 1.0, 1.0])), offset)
    assert level_step._beyond_reach(cone, 0.5) == beyond
    assert not level_step._beyond_reach(replace(cone, kind="nonnegative"), 0.5)


def test_an_evaluation_is_what_the_model_was_made_at() -> None:
    evaluation = oracle_of(4.0).at(POINT)
    assert isinstance(evaluation, Evaluation)
    assert LinearModel.at(evaluation, WIDE).evaluation is evaluation
