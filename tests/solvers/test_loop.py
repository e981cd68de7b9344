"""The loop: trace, limits, interruption, the best point so far, and starts outside the domain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hcmodel.solvers import Box, Evaluation, Oracle, Record, Termination, function_oracle, minimize
from hcmodel.solvers.loop import RULES, State, Task, run
from tests.extent import several
from tests.solvers.models import Model, linear_rows, quadratic, tank

FloatArray = NDArray[np.float64]


class Walk:
    """A method that visits given points one after the other, then ends."""

    def __init__(self, points: list[Any], multipliers: list[float] | None = None) -> None:
        self.points = [np.atleast_1d(np.asarray(point, dtype=float)) for point in points]
        self.multipliers = multipliers or [0.0] * len(points)

    def init(self, task: Task, start: Evaluation) -> State:
        return State(current=start, multipliers=np.zeros(start.rows.size), phase="0")

    def step(self, task: Task, state: State) -> State:
        number = int(state.phase)
        evaluation = task.oracle.at(self.points[number])
        weights = np.full(evaluation.rows.size, self.multipliers[number])
        return replace(state, current=evaluation, multipliers=weights, phase=str(number + 1))

    def terminate(self, task: Task, state: State) -> Termination | None:
        return Termination.STALLED if int(state.phase) == len(self.points) else None


class Idle:
    """A method that never looks at a new point."""

    def init(self, task: Task, start: Evaluation) -> State:
        return State(current=start, multipliers=np.zeros(start.rows.size))

    def step(self, task: Task, state: State) -> State:
        return state

    def terminate(self, task: Task, state: State) -> Termination | None:
        return None


def one_row() -> Oracle:
    """min x s.t. x >= 1."""
    return function_oracle(
        1,
        lambda x: (float(x[0]), np.ones(1)),
        inequalities=lambda x: (1 - x, -np.ones((1, 1))),
        sizes=(1, 0),
    )


def walked(points: list[Any], multipliers: list[float] | None = None) -> float:
    """Where the loop ends after a walk from 9 over the given points."""
    task = Task(one_row(), Box.of(1), 1e-6)
    return float(run(Walk(points, multipliers), task, np.array([9.0])).point[0])


def solve(model: Model, **settings: Any) -> Any:
    return minimize(model.oracle, model.domain, model.start, **settings)


def test_the_trace_has_a_record_for_the_start_and_each_iteration() -> None:
    result = solve(tank())
    assert [record.iteration for record in result.trace] == list(range(result.iterations + 1))
    calls = [record.calls for record in result.trace]
    assert calls == sorted(calls)
    assert calls[-1] == result.calls.total
    assert result.trace[-1].points == result.calls.points
    last = result.trace[-1]
    assert last.objective == result.evaluation.objective
    assert last.violation == float(np.max(result.evaluation.violations))
    assert last.residual <= 1e-6


def test_the_callback_sees_each_record_once_and_in_order() -> None:
    seen: list[Record] = []
    result = solve(tank(), callback=seen.append)
    assert tuple(seen) == result.trace


def test_a_callback_that_returns_true_stops_the_run() -> None:
    result = solve(tank(), callback=lambda record: record.iteration >= 3)
    assert result.termination is Termination.CALLBACK
    assert result.iterations == 3
    assert result.point is not None


def test_a_callback_may_answer_with_a_numpy_bool() -> None:
    # once wrong: `is True` is not so for np.True_, which any comparison of arrays gives.
    result = solve(tank(), callback=lambda record: np.float64(record.iteration) >= 3)
    assert result.termination is Termination.CALLBACK


def test_a_callback_that_returns_something_else_does_not_stop_it() -> None:
    result = solve(tank(), callback=lambda record: None)
    assert result.termination is Termination.CONVERGED


def test_an_error_in_the_callback_ends_the_run_and_is_its_cause() -> None:
    def broken(record: Record) -> bool:
        raise RuntimeError("mine")

    result = solve(tank(), callback=broken)
    assert result.termination is Termination.FAILED
    assert isinstance(result.cause, RuntimeError)
    assert result.evaluation is not None


@pytest.mark.parametrize("after", [0, 1, 5, 12, 25])
def test_ctrl_c_returns_the_best_point(after: int) -> None:
    model = tank((0.5, 2.5))
    plain, asked = model.oracle.stack.objective, 0

    def interrupted(x: FloatArray) -> tuple[float, FloatArray]:
        nonlocal asked
        asked += 1
        if asked > after:
            raise KeyboardInterrupt
        return plain(x)

    object.__setattr__(model.oracle.stack, "objective", interrupted)
    result = solve(model)
    assert result.termination is Termination.INTERRUPTED
    if after == 0:
        assert result.evaluation is None
        with pytest.raises(ValueError, match="interrupted"):
            _ = result.point
    else:
        assert model.domain.contains(result.point)


def test_ctrl_c_in_the_callback_counts_too() -> None:
    def callback(record: Record) -> None:
        if record.iteration == 4:
            raise KeyboardInterrupt

    result = solve(tank(), callback=callback)
    assert result.termination is Termination.INTERRUPTED
    assert len(result.trace) == 5


def test_a_time_limit_ends_a_slow_run_soon_after(clock: Any) -> None:
    model = tank()
    plain = model.oracle.stack.objective

    def slow(x: FloatArray) -> tuple[float, FloatArray]:
        clock.now += 100.0  # so long that the backend's own clock never meets the limit
        return plain(x)

    object.__setattr__(model.oracle.stack, "objective", slow)
    result = solve(model, time_limit=950.0)
    assert result.termination is Termination.TIME_LIMIT
    assert result.calls.objective == 10  # the tenth begins after 900 seconds, and is not cut off
    assert model.domain.contains(result.point)


def test_a_limit_on_calls_returns_a_point_as_good_as_any_that_was_evaluated() -> None:
    # once wrong: a point that the phase on the rows has just made feasible is thrown away when the
    # budget ends before its objective is known; an infeasible one is returned instead.
    for limit in range(2, several(32, 60)):
        model = tank((2.5, 2.5))
        violations: list[float] = []
        plain = model.oracle.stack.rows

        def seen(x: FloatArray, plain: Any = plain, violations: list[float] = violations) -> Any:
            values, jacobian = plain(x)
            violations.append(max(float(values[0]), 0.0))
            return values, jacobian

        object.__setattr__(model.oracle.stack, "rows", seen)
        result = solve(model, max_calls=limit, options={"objective_steps": 0})
        found = float(np.max(result.evaluation.violations))
        if min(violations) <= 1e-6:
            assert found <= 1e-6, limit
        else:
            assert found == min(violations), limit


def test_the_least_violation_is_kept_until_a_point_is_feasible() -> None:
    assert walked([0.0, 0.7, 0.3]) == 9.0  # the start was feasible
    task = Task(one_row(), Box.of(1), 1e-6)
    assert run(Walk([0.7, 0.3]), task, np.array([0.0])).point[0] == 0.7
    task = Task(one_row(), Box.of(1), 1e-6)
    assert run(Walk([0.7, 5.0, 0.9999]), task, np.array([0.0])).point[0] == 5.0


def test_the_lowest_feasible_point_is_kept() -> None:
    assert walked([4.0, 2.0, 3.0]) == 2.0
    assert walked([4.0, 1.0 - 1e-3, 3.0]) == 3.0


def test_a_point_is_not_better_for_using_up_the_tolerance() -> None:
    # with multiplier 1 of the row, 1 − 5e-7 and 1 are equally good: F1 + λ[F2]₊ = 1; the later wins
    assert walked([1.0 - 5e-7, 1.0], [1.0, 1.0]) == 1.0
    # without multipliers the lower objective wins
    assert walked([1.0 - 5e-7, 1.0]) == 1.0 - 5e-7


def test_exploding_multipliers_do_not_displace_a_far_better_feasible_point() -> None:
    # once wrong: both points are feasible to the tolerance; multipliers of 1e12, as they come up where
    # no Slater point exists, make 1 − 1e-9 look worse than 8.
    assert walked([1.0 - 1e-9, 8.0], [1.0, 1e12]) == 1.0 - 1e-9


def test_a_method_that_looks_at_nothing_new_is_stopped() -> None:
    task = Task(one_row(), Box.of(1), 1e-6)
    result = run(Idle(), task, np.array([2.0]))
    assert result.termination is Termination.STALLED
    assert result.iterations == RULES.idle_iterations
    assert result.calls.points == 1


def test_the_number_of_iterations_can_be_limited() -> None:
    points = list(np.linspace(2.0, 3.0, 30))
    result = run(Walk(points), Task(one_row(), Box.of(1), 1e-6), np.array([9.0]), max_iterations=7)
    assert result.iterations == 7
    assert result.termination is Termination.ITERATION_LIMIT


def test_the_start_is_neither_changed_nor_kept() -> None:
    model = tank()
    start = np.array([0.6, 1.6])
    result = minimize(model.oracle, model.domain, start)
    np.testing.assert_array_equal(start, [0.6, 1.6])
    assert not np.shares_memory(result.point, start)
    start.flags.writeable = False
    minimize(tank().oracle, model.domain, start)


def test_a_start_outside_the_box_is_projected() -> None:
    result = solve(tank((-7.0, 99.0)), max_calls=2)
    np.testing.assert_array_equal(result.point, [0.4, 3.0])


def log_model(lower: float, upper: float) -> tuple[Oracle, Box]:
    """−log(x − 1) + x, with its minimum 2 at x = 2, undefined up to 1."""

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        with np.errstate(all="ignore"):
            return float(-np.log(x[0] - 1) + x[0]), 1 - 1 / (x - 1)

    return function_oracle(1, objective), Box.of(1, lower, upper)


def test_a_start_where_a_function_is_undefined_is_replaced() -> None:
    oracle, box = log_model(-5.0, 5.0)
    result = minimize(oracle, box, np.array([0.5]))
    assert result.termination is Termination.CONVERGED
    assert result.point[0] == pytest.approx(2.0, abs=1e-5)
    assert result.calls.outside >= 2  # the start, and the middle 0 of the box
    assert result.calls.outside < result.calls.points


def test_a_start_that_is_not_a_number_is_replaced() -> None:
    oracle, box = log_model(1.5, 5.0)
    result = minimize(oracle, box, np.array([np.nan]))
    assert result.point[0] == pytest.approx(2.0, abs=1e-5)


def test_no_start_in_the_domain_of_the_functions_is_said() -> None:
    oracle, box = log_model(-5.0, 1.0)
    result = minimize(oracle, box, np.array([0.5]))
    assert result.termination is Termination.OUTSIDE_DOMAIN
    assert result.evaluation is None
    assert result.trace == ()
    with pytest.raises(ValueError, match="no start was found"):
        _ = result.point


def test_accepted_points_lie_inside_the_domain_and_in_that_of_the_functions() -> None:
    oracle, box = log_model(-5.0, 5.0)
    records: list[Record] = []
    result = minimize(oracle, box, np.array([1.0001]), callback=records.append)
    assert all(np.isfinite(record.objective) for record in records)
    assert box.contains(result.point)


def test_a_run_is_deterministic() -> None:
    one, other = solve(tank()), solve(tank())
    np.testing.assert_array_equal(one.point, other.point)
    for a, b in zip(one.trace, other.trace, strict=True):
        np.testing.assert_equal(vars(a), vars(b))


def test_a_result_is_never_worse_than_a_feasible_record_of_its_trace() -> None:
    generator = np.random.default_rng(8)
    for _ in range(6):
        matrix = generator.standard_normal((3, 4))
        oracle = function_oracle(
            4,
            quadratic(3 * generator.standard_normal(4)),
            inequalities=linear_rows(matrix, np.ones(3)),
            sizes=(3, 0),
        )
        # Without the phase on the objective alone, in which a run may end before it looks at the rows.
        options = {"objective_steps": 0}
        result = minimize(oracle, Box.of(4, -2.0, 2.0), max_calls=25, options=options)
        feasible = [r.objective for r in result.trace if r.violation == 0.0]
        assert result.evaluation is not None
        assert result.evaluation.objective <= min(feasible) + 1e-9
