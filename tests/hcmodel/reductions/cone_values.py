"""Values of cone programs, for tests that compare them with values by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import hcmodel as hc
from hcmodel.solvers.qp import ConeProgram, ConeSolution, solve_cone
from hcmodel.solving.problem_data import ProblemData


def program_value(data: ProblemData, solution: ConeSolution) -> float:
    """The model's objective that the value of the program stands for."""
    program, u = data.program, solution.primal
    assert program.constant is not None
    value = 0.5 * u @ (program.quadratic @ u) + program.linear @ u + program.constant
    return float(data._forms.sign.before.sign * data._form.chain.value_back(float(value)))


def solved(
    objective: hc.Minimize | hc.Maximize, rows: Sequence[hc.Constraint] = (), hidden: Any = None
) -> tuple[float, ConeProgram]:
    """The value of the model at the solution of its cone program, and the program.

    Bounds of terms that are too loose or too tight show in the value of the program, which has to be the
    same.
    """
    problem = hc.Problem(objective, list(rows), hidden=hidden)
    data = problem.get_problem_data()
    solution = solve_cone(data.program)
    assert solution.usable
    point = data.point(solution.primal)
    for variable in problem.variables:
        variable.value = point[variable.name]
    value = float(problem.objective.expression.value)
    assert program_value(data, solution) == pytest.approx(value, rel=1e-6, abs=1e-6)
    return value, data.program
