"""gradient-sampling: kinks without structure, with and without rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hcmodel.solvers import Box, Termination, function_oracle, minimize
from hcmodel.solvers.first_order.gradient_sampling import SamplingOptions
from tests.problems.kinks import eigenvalue

FloatArray = NDArray[np.float64]
FREE = Box(np.full(2, -np.inf), np.full(2, np.inf))


def rosenbrock(x: FloatArray) -> tuple[float, FloatArray]:
    """8|x₁² − x₂| + (1 − x₁)² (Lewis and Overton 2013): minimum 0 at (1, 1)."""
    sign = np.sign(x[0] ** 2 - x[1])
    value = 8 * abs(x[0] ** 2 - x[1]) + (1 - x[0]) ** 2
    return float(value), np.array([16 * x[0] * sign - 2 * (1 - x[0]), -8 * sign])


def test_a_valley_of_kinks_is_followed_to_its_end() -> None:
    oracle = function_oracle(2, rosenbrock, smooth=False)
    result = minimize(oracle, FREE, np.array([-1.2, 1.0]), method="gradient-sampling")
    assert result.termination is Termination.HULL_STATIONARY
    assert result.evaluation is not None
    assert result.evaluation.objective <= 1e-6
    shares = [each.objective for each in result.weighted]
    assert sum(shares) == pytest.approx(1.0)
    hull = sum(each.objective * each.evaluation.gradient for each in result.weighted)
    assert np.max(np.abs(hull)) <= 1e-3


def test_rows_enter_by_an_exact_penalty() -> None:
    def rows(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.array([abs(x[0]) + abs(x[1]) - 1]), np.sign(x)[None, :]

    oracle = function_oracle(2, rosenbrock, inequalities=rows, sizes=(1, 0), smooth=False)
    result = minimize(oracle, FREE, np.array([2.0, 2.0]), method="gradient-sampling")
    golden = (np.sqrt(5) - 1) / 2  # x₂ = x₁² and x₁ + x₂ = 1
    assert result.evaluation is not None
    assert result.evaluation.objective == pytest.approx((1 - golden) ** 2, abs=1e-6)
    assert result.evaluation.relative_violation <= 1e-6


def test_a_smooth_function_without_rows_ends_by_its_gradient() -> None:
    def bowl(x: FloatArray) -> tuple[float, FloatArray]:
        return float(np.sum((x - 1) ** 2 + x**4)), 2 * (x - 1) + 4 * x**3

    result = minimize(
        function_oracle(2, bowl), FREE, np.array([3.0, -1.0]), method="gradient-sampling"
    )
    assert result.termination is Termination.CONVERGED
    assert result.calls.points <= 40


@pytest.mark.parametrize(("steepness", "start"), [(5.0, -1.0), (20.0, -1.2), (100.0, -1.2)])
def test_a_smooth_valley_takes_no_models_of_kinks(steepness: float, start: float) -> None:
    def valley(x: FloatArray) -> tuple[float, FloatArray]:
        bend = x[0] ** 2 - x[1]
        slope = 2 * (x - 1) + 2 * steepness * bend * np.array([2 * x[0], -1.0])
        return float(steepness * bend**2 + np.sum((x - 1) ** 2)), slope

    first = np.array([start, 1.0 if start < -1 else -1.0])
    oracle = function_oracle(2, valley, smooth=False)
    result = minimize(oracle, FREE, first, method="gradient-sampling")
    assert result.termination is Termination.CONVERGED
    assert result.evaluation is not None
    assert result.evaluation.objective <= 1e-10
    assert result.calls.points <= 60  # with models of pieces 119 to 186


def test_bfgs_returns_once_its_model_foresees_the_trials() -> None:
    case = eigenvalue(71, 3, 6)  # a kink between the start and a smooth minimum
    problem = case.problem()
    assert problem.solve() == pytest.approx(case.optimum, abs=1e-8)
    assert problem.status == "locally_optimal"
    assert problem.solution is not None
    assert problem.solution.oracle_calls.points <= 11  # 13 with the level method up to the end


def test_a_smooth_method_ends_where_gradients_jump() -> None:
    oracle = function_oracle(2, rosenbrock)  # said to be smooth
    result = minimize(
        oracle,
        FREE,
        np.array([-1.2, 1.0]),
        method="prox-linear",
        options={"curvature": "bfgs"},
        ends_at_kinks=True,
    )
    assert result.termination is Termination.KINKS
    assert result.calls.points <= 200


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(ValueError, match="backend"):
        SamplingOptions(backend="none")
