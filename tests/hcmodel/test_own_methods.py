"""Methods and functions of one's own: registration, the oracle, and gradients that are checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.solvers import METHODS, Termination, function_oracle, kkt
from hcmodel.solvers.loop import State
from hcmodel.solvers.oracle import OracleFailed


@dataclass(frozen=True)
class GradientOptions:
    step: float = 0.1


class ProjectedGradient:
    def __init__(self, options: GradientOptions) -> None:
        self.options = options

    def init(self, task: Any, start: Any) -> Any:
        return State(current=start, multipliers=np.zeros(0), phase="descent")

    def step(self, task: Any, state: Any) -> Any:
        x = state.current
        moved = task.oracle.at(task.domain.project(x.point - self.options.step * x.gradient))
        residual = kkt.residual(moved, task.domain, state.multipliers)
        return replace(state, current=moved, residual=residual)

    def terminate(self, task: Any, state: Any) -> Any:
        return Termination.CONVERGED if state.residual <= task.tolerance else None


@pytest.fixture
def registered() -> Iterator[str]:
    hc.register_method("projected-gradient", ProjectedGradient, GradientOptions, needs_smooth=True)
    yield "projected-gradient"
    del METHODS["projected-gradient"]


def square() -> tuple[hc.Problem, hc.Variable]:
    x = hc.Variable(2, name="x", bounds=(-2, 2))
    return hc.Problem(hc.Minimize(hc.sum_squares(x - np.array([1.0, 3.0])))), x


def test_a_registered_method_solves(registered: str) -> None:
    problem, x = square()
    assert problem.solve(registered, options={"step": 0.3}) == pytest.approx(1.0)
    assert x.value == pytest.approx([1, 2], abs=1e-5)
    assert problem.solution is not None
    assert registered in problem.solution.method
    with pytest.raises(hc.ModelError, match="has no option 'stepp'; its options are: step"):
        problem.solve(registered, options={"stepp": 0.3})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("cone", ProjectedGradient), "replace=True"),
        (("auto", ProjectedGradient), "other than 'auto'"),
        (("mine", 3), "make is a function of the options"),
        (("mine", ProjectedGradient, {"step": 1}), "options is the dataclass"),
    ],
)
def test_wrong_registrations_are_refused(arguments: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        hc.register_method(*arguments)
    assert "mine" not in METHODS


def test_the_oracle_of_a_problem_counts_its_calls() -> None:
    problem, _ = square()
    oracle = problem.oracle()
    found = oracle.at(np.array([0.0, 1.0]))
    assert found.objective == 5.0
    assert found.gradient.tolist() == [-2.0, -4.0]
    assert oracle.calls.total == 1


@pytest.mark.parametrize(
    ("objective", "rows", "words"),
    [
        (lambda x: x @ x, None, "pair"),
        (lambda x: (x, 2 * x), None, r"value of the objective has shape \(2,\)"),
        (lambda x: (x @ x, np.eye(2)), None, r"derivative of the objective has shape \(2, 2\)"),
        (lambda x: (1j * x[0], 2 * x), None, "not an array of real numbers"),
        (
            lambda x: (x @ x, 2 * x),
            lambda x: (np.zeros(3), np.ones((2, 3))),  # transposed
            r"derivative of the inequalities has shape \(2, 3\), but \(3, 2\) is needed",
        ),
    ],
)
def test_an_oracle_of_functions_checks_what_they_return(
    objective: Any, rows: Any, words: str
) -> None:
    oracle = function_oracle(2, objective, inequalities=rows, sizes=(0 if rows is None else 3, 0))
    with pytest.raises(OracleFailed, match=words) as raised:
        oracle.at(np.array([1.0, 2.0])).values  # noqa: B018
    assert "broadcast" not in str(raised.value)


# ---- hc.function


def total(x: Any) -> Any:
    return np.sum(x**2)


def solve_with(function: Any, **arguments: Any) -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(0.5, 2))
    problem = hc.Problem(hc.Minimize(hc.function(function, x, **arguments)))
    problem.solve()
    return problem


def test_a_wrong_gradient_is_found_once_and_a_right_one_passes() -> None:
    with pytest.raises(
        hc.ModelError, match=r"grad of 'total' is wrong: entry \[0\].*opposite sign"
    ):
        solve_with(total, grad=lambda x: -2 * x, check=True)
    with pytest.raises(hc.ModelError, match=r"entry \[1\] .* is 2, but differences"):
        solve_with(lambda x: x[0] + 3 * x[1], grad=lambda x: np.array([1.0, 2.0]), check=True)
    assert solve_with(total, grad=lambda x: 2 * x, check=True).value == pytest.approx(0.5)
    with pytest.raises(hc.ModelError, match="there is none"):
        solve_with(total, check=True)


@pytest.mark.parametrize(
    ("function", "grad", "words"),
    [
        (lambda x: np.sum(x) + 1j, None, "'<lambda>' returned complex numbers"),
        (lambda x: np.sum(x) + 1j, lambda x: x, "'<lambda>' returned complex numbers"),
        (total, lambda x: 2 * x + 1j, "grad '<lambda>' returned complex numbers"),
        (lambda x: "much", lambda x: x, "returned 'much', which is not an array of numbers"),
        (lambda x: x, lambda x: np.eye(2), r"returned shape \(2,\), but was declared"),
    ],
)
def test_what_is_no_real_array_is_an_error_with_the_functions_name(
    function: Any, grad: Any, words: str
) -> None:
    with pytest.raises(hc.ModelError, match=words):
        solve_with(function, grad=grad)
