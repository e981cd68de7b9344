"""Counting, memory, budgets and laziness of the oracle."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

from hcmodel.solvers import Box, Oracle, OracleCalls, function_oracle, minimize
from hcmodel.solvers.limits import TimeExhausted, beyond, check_time, seconds_left, until
from hcmodel.solvers.oracle import Budget, CallsExhausted
from hcmodel.solvers.outer import Outer, Side
from tests.solvers.models import tank

FloatArray = NDArray[np.float64]


class Watched:
    """A stack of x ↦ (‖x‖², x0 − 1, x1 − 2) that writes down what is asked of it."""

    dimension, size, objective_size, kinked = 2, 3, 1, False

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def evaluate(self, x: FloatArray, part: str) -> WatchedPass:
        self.asked[part] += 1
        with np.errstate(invalid="ignore", divide="ignore"):
            values = np.array([x @ x + np.log(x[0]), x[0] - 1, x[1] - 2])
        jacobian = np.array([[2 * x[0] + 1 / x[0], 2 * x[1]], [1.0, 0.0], [0.0, 1.0]])
        chosen = {"objective": slice(0, 1), "constraints": slice(1, 3), "all": slice(0, 3)}[part]
        return WatchedPass(values[chosen], jacobian[chosen], self.asked)

    def hessian(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        return weights[0] * (2 * np.eye(2) - np.diag([1 / x[0] ** 2, 0.0]))


class WatchedPass:
    def __init__(self, values: FloatArray, jacobian: FloatArray, asked: Counter[str]) -> None:
        self.values, self._jacobian, self._asked = values, jacobian, asked

    def jacobian(self) -> FloatArray:
        self._asked["jacobian"] += 1
        return self._jacobian


def watched() -> tuple[Oracle, Watched]:
    stack = Watched()
    return Oracle(stack, Outer.of_rows(1, 1)), stack


def counts(oracle: Oracle) -> tuple[int, int, int, int]:
    calls = oracle.calls
    return calls.objective, calls.constraints, calls.total, calls.points


A, B = np.array([1.0, 2.0]), np.array([3.0, 4.0])


def test_a_point_costs_one_objective_and_one_constraint_call() -> None:
    oracle, stack = watched()
    oracle.at(A)
    assert counts(oracle) == (1, 1, 2, 1)
    oracle.at(B)
    assert counts(oracle) == (2, 2, 4, 2)
    assert stack.asked == {"all": 2}


def test_all_rows_together_are_one_call_however_many() -> None:
    oracle = function_oracle(
        2,
        lambda x: (0.0, np.zeros(2)),
        inequalities=lambda x: (np.zeros(7), np.zeros((7, 2))),
        sizes=(7, 0),
    )
    oracle.at(A)
    assert counts(oracle) == (1, 1, 2, 1)


def test_without_rows_only_the_objective_is_counted() -> None:
    oracle = function_oracle(2, lambda x: (0.0, np.zeros(2)))
    evaluation = oracle.at(A)
    assert counts(oracle) == (1, 0, 1, 1)
    assert evaluation.has_rows
    assert evaluation.relative_violation == 0.0
    assert evaluation.jacobian.shape == (0, 2)


def test_the_last_point_is_remembered_and_counts_nothing() -> None:
    oracle, stack = watched()
    first = oracle.at(A)
    again = oracle.at(A.copy())
    assert counts(oracle) == (1, 1, 2, 1)
    assert stack.asked["all"] == 1
    assert again.objective == first.objective
    oracle.at(B)
    oracle.at(A)  # only the last point is kept
    assert counts(oracle) == (3, 3, 6, 3)


def test_views_share_counts_and_memory_and_complete_each_other() -> None:
    oracle, stack = watched()
    rows_only = oracle.restricted(objective=False)
    objective_only = oracle.restricted(rows=False)
    rows_only.at(A)
    assert counts(oracle) == (0, 1, 1, 1)
    objective_only.at(A)
    assert counts(oracle) == (1, 1, 2, 1)
    evaluation = oracle.at(A)
    assert counts(oracle) == (1, 1, 2, 1)
    assert stack.asked == {"constraints": 1, "objective": 1}
    assert rows_only.calls is oracle.calls
    np.testing.assert_allclose(evaluation.rows, [0.0, 0.0])
    np.testing.assert_allclose(evaluation.gradient, [3.0, 4.0])
    np.testing.assert_allclose(evaluation.jacobian, np.eye(2))


def test_a_view_shows_only_its_part() -> None:
    oracle, _ = watched()
    rows = oracle.restricted(objective=False).at(B)
    assert not rows.has_objective
    np.testing.assert_array_equal(rows.gradient, np.zeros(2))
    np.testing.assert_allclose(rows.violations, [2.0, 2.0])
    alone = oracle.restricted(rows=False).at(B)
    assert not alone.has_rows
    assert alone.rows.size == 0
    assert alone.jacobian.shape == (0, 2)
    assert oracle.restricted(rows=False).size == 0
    assert oracle.restricted(rows=False).inequalities == 0


def test_a_value_that_was_not_evaluated_is_not_a_number() -> None:
    # once wrong: it reads 0.0, which an infeasible `Result.evaluation.objective` then shows to users.
    oracle, _ = watched()
    assert np.isnan(oracle.restricted(objective=False).at(B).objective)


def test_a_view_of_a_view_leaves_out_what_either_leaves_out() -> None:
    # once wrong: the rows come back. `advance` makes such a view in the phase on the objective alone.
    oracle, _ = watched()
    neither = oracle.restricted(rows=False).restricted(objective=False)
    assert neither.size == 0


def test_points_where_a_function_is_undefined_are_counted_as_outside() -> None:
    oracle, _ = watched()
    outside = oracle.at(np.array([-1.0, 2.0]))
    assert not outside.finite
    assert oracle.calls.outside == 1
    oracle.at(np.array([-1.0, 2.0]))
    assert oracle.calls.outside == 1
    assert oracle.at(A).finite
    assert oracle.calls.outside == 1
    assert counts(oracle) == (2, 2, 4, 2)


def test_a_finite_value_with_an_infinite_slope_is_not_differentiable() -> None:
    with np.errstate(divide="ignore"):
        oracle = function_oracle(1, lambda x: (float(np.sqrt(x[0])), 0.5 / np.sqrt(x)))
        edge = oracle.at(np.zeros(1))
    assert edge.finite
    assert not edge.differentiable
    assert oracle.at(np.ones(1)).differentiable


def test_hessians_stand_apart() -> None:
    oracle, _ = watched()
    evaluation = oracle.at(A)
    before = counts(oracle)
    hessian = oracle.lagrangian_hessian(evaluation, np.array([5.0, 6.0]))
    np.testing.assert_allclose(hessian, [[1.0, 0.0], [0.0, 2.0]])
    assert oracle.calls.hessians == 1
    assert counts(oracle) == before


def test_derivatives_are_computed_when_asked_for_and_once() -> None:
    oracle, stack = watched()
    evaluation = oracle.at(A)
    assert stack.asked["jacobian"] == 0
    first = evaluation.gradient
    assert stack.asked["jacobian"] == 1
    assert evaluation.gradient is first
    assert stack.asked["jacobian"] == 1
    assert counts(oracle) == (1, 1, 2, 1)


def test_violation_is_relative_to_the_sides() -> None:
    stack = Watched()
    left = Outer.of_rows(1, 1).left.matrix
    oracle = Oracle(stack, Outer(np.ones(1), Side.of(100 * left), Side.of(0 * left), 1))
    evaluation = oracle.at(np.array([3.0, 1.0]))
    np.testing.assert_allclose(evaluation.rows, [200.0, -100.0])
    np.testing.assert_allclose(evaluation.violations, [200.0, 100.0])
    assert evaluation.relative_violation == pytest.approx(1.0)  # 200 / max(1, |200|, 0)
    assert oracle.at(np.array([0.5, 2.0])).relative_violation == 0.0


def test_the_point_is_kept_and_neither_side_can_change_the_other() -> None:
    oracle, _ = watched()
    x = A.copy()
    evaluation = oracle.at(x)
    x[0] = 99.0
    np.testing.assert_array_equal(evaluation.point, A)
    with pytest.raises(ValueError, match="read-only"):
        evaluation.point[0] = 1.0
    oracle.at(x)
    assert oracle.calls.points == 2  # the changed array is another point


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
def test_a_budget_of_calls_is_never_exceeded(limit: int) -> None:
    # a point with objective and rows costs two calls: an odd limit leaves one unused
    oracle, _ = watched()
    oracle.budget = Budget(max_calls=limit)
    with pytest.raises(CallsExhausted):
        _ = [oracle.at(A + i) for i in range(20)]
    assert limit - 1 <= oracle.calls.total <= limit


def test_a_budget_holds_for_views_and_lets_the_memo_through() -> None:
    oracle, _ = watched()
    oracle.budget = Budget(max_calls=2)
    kept = oracle.at(A)
    assert oracle.at(A).objective == kept.objective
    with pytest.raises(CallsExhausted):
        oracle.restricted(rows=False).at(B)
    assert counts(oracle) == (1, 1, 2, 1)


def test_no_evaluation_starts_after_the_deadline() -> None:
    oracle, stack = watched()
    with until(-np.inf), pytest.raises(TimeExhausted):
        oracle.at(A)
    assert not stack.asked
    with until(np.inf):
        oracle.at(A)


def test_an_earlier_deadline_stays_and_a_passed_one_can_be_replaced() -> None:
    with until(-np.inf):
        with until(np.inf), pytest.raises(TimeExhausted):
            check_time()
        assert seconds_left() == 0.0
        with beyond():
            check_time()
        with beyond(None), pytest.raises(TimeExhausted):  # nothing to replace it with
            check_time()
    check_time()
    assert seconds_left() == np.inf


def test_counts_as_a_dict_have_the_documented_names() -> None:
    calls = OracleCalls(objective=3, constraints=4, points=5, hessians=6, outside=7)
    assert calls.as_dict() == {
        "objective": 3,
        "constraints": 4,
        "total": 7,
        "points": 5,
        "hessians": 6,
        "outside": 7,
    }


def test_counts_of_two_runs_are_added() -> None:
    one = OracleCalls(objective=3, constraints=4, points=5, hessians=6, outside=7)
    other = OracleCalls(objective=10, constraints=20, points=30, hessians=40, outside=50)
    both = OracleCalls(objective=13, constraints=24, points=35, hessians=46, outside=57)
    assert one.plus(other) == both
    assert one.plus(OracleCalls()) == one


def test_function_oracle_puts_inequalities_before_equalities() -> None:
    oracle = function_oracle(
        2,
        lambda x: (x[0], np.array([1.0, 0.0])),
        inequalities=lambda x: (x[0] - 1, np.array([1.0, 0.0])),
        equalities=lambda x: (x[1] - 2, np.array([0.0, 1.0])),
        sizes=(1, 1),
        smooth=False,
    )
    evaluation = oracle.at(np.array([-4.0, -4.0]))
    assert (oracle.size, oracle.inequalities, oracle.smooth) == (2, 1, False)
    np.testing.assert_allclose(evaluation.rows, [-5.0, -6.0])
    np.testing.assert_allclose(evaluation.violations, [0.0, 6.0])
    np.testing.assert_allclose(evaluation.jacobian, np.eye(2))


def test_function_oracle_never_drops_rows_in_silence() -> None:
    # once wrong: without `sizes` the constraints are ignored, and the answer is that of another problem.
    with pytest.raises(ValueError, match="must count the rows"):
        function_oracle(
            1, lambda x: (x[0], np.ones(1)), inequalities=lambda x: (1 - x, -np.ones((1, 1)))
        )


def test_a_function_oracle_is_evaluated_once_a_point() -> None:
    seen: list[FloatArray] = []

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        seen.append(x)
        return float(x @ x), 2 * x

    oracle = function_oracle(2, objective)
    evaluation = oracle.at(A)
    assert evaluation.gradient.tolist() == [2.0, 4.0]
    assert evaluation.differentiable
    oracle.at(A)
    assert len(seen) == 1


def test_a_second_run_on_an_oracle_starts_its_counts_and_budget_anew() -> None:
    # once wrong: the result holds the oracle's own live counter. The first result changes under the
    # user's hands, and `max_calls` of the second run is spent by the first.
    model = tank()
    first = minimize(model.oracle, model.domain, model.start)
    spent = first.calls.total
    second = minimize(model.oracle, model.domain, model.start, max_calls=spent)
    assert first.calls.total == spent
    assert second.termination is first.termination


def test_minimize_refuses_a_domain_of_another_dimension() -> None:
    with pytest.raises(ValueError, match="dimension 2"):
        minimize(tank().oracle, Box.of(3))
