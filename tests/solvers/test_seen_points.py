"""A run that is cut short ends with the best point that was evaluated, whatever its method told of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hcmodel as hc


class Simulator:
    """A function with a gradient that fails, or is interrupted, at a call; it remembers its values."""

    def __init__(self, fails_at: int, error: BaseException) -> None:
        self.calls, self.fails_at, self.error = 0, fails_at, error
        self.feasible: list[float] = []

    def value(self, x: Any) -> float:
        self.calls += 1
        if self.calls == self.fails_at:
            raise self.error
        a, b = np.asarray(x, dtype=float)
        found = float(a * b + 4 / a + 1 / b)
        if a * b <= 1 and self.calls < self.fails_at:
            self.feasible.append(found)
        return found

    def gradient(self, x: Any) -> np.ndarray:
        a, b = np.asarray(x, dtype=float)
        return np.array([b - 4 / a**2, a - 1 / b**2])


def problem(simulator: Simulator) -> hc.Problem:
    x = hc.Variable(2, bounds=(0.4, 3), start=[0.5, 0.6], name="x")
    cost = hc.function(simulator.value, x, grad=simulator.gradient)
    return hc.Problem(hc.Minimize(cost), [x[0] * x[1] <= 1], hidden=[hc.log(x)])


@pytest.mark.parametrize("fails_at", [3, 6, 9, 14])
@pytest.mark.parametrize("method", ["sbl-adals", "ippm-acgd", "ippm-swsg", "prox-linear", "auto"])
def test_the_best_point_before_an_exception_is_kept(method: str, fails_at: int) -> None:
    # the first phase of sbl-adals looks at the objective alone: its points had no rows, and were lost
    simulator = Simulator(fails_at, RuntimeError("the licence server is down"))
    model = problem(simulator)
    with pytest.raises(hc.SolverError, match="licence server"):
        model.solve(method=method)
    assert model.value <= min(simulator.feasible) * (1 + 1e-9)


@pytest.mark.parametrize("method", ["sbl-adals", "ippm-acgd"])
def test_the_best_point_before_an_interruption_is_kept(method: str) -> None:
    simulator = Simulator(7, KeyboardInterrupt())
    model = problem(simulator)
    model.solve(method=method)
    assert model.status == "user_limit"
    assert model.value <= min(simulator.feasible) * (1 + 1e-9)


@pytest.mark.parametrize("method", ["sbl-adals", "ippm-acgd", "prox-linear"])
def test_functions_of_the_user_are_hardly_called_after_a_limit(method: str) -> None:
    # the test of declared coordinates called them 306 times after a run with a limit of 5
    simulator = Simulator(0, RuntimeError())
    model = problem(simulator)
    model.solve(method=method, max_calls=5)
    assert model.status == "user_limit"
    assert simulator.calls <= 10
