"""The paper's methods on models: figures that issue from the paper's own examples, and odd requests."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.solvers.qp.clarabel_ import ClarabelBackend
from hcmodel.solvers.qp.program import QPSolution, QuadraticProgram
from tests.problems.library import geometric_program, tank

CONSTANTS = hc.Constants(rho=1, L=126, mu_c=1 / 3, diameter_u=np.sqrt(2) * np.log(7.5))


def least_squares() -> tuple[hc.Problem, hc.Variable]:
    """Ex-CNLS of Fatkhullin et al. (2025): kinks everywhere; 0.15 at (0.85, 0.85)."""
    x = hc.Variable(2, name="x", bounds=(-1, 2.5), start=[-0.3, 0.20005])
    c = hc.hstack([x[0] - 1, 2 * hc.abs(x[0]) - x[1] - 1])
    near = hc.norm(c - np.array([-0.5, -0.6]), 1) <= 0.8
    return hc.Problem(hc.Minimize(hc.norm(c, "inf")), [near.named("near")]), x


def calls(problem: hc.Problem) -> int:
    assert problem.solution is not None
    return problem.solution.oracle_calls.total


def test_accelerated_gradients_solve_the_tank() -> None:
    problem, _, area = tank(start=[0.6, 1.6])
    assert problem.solve("ippm-acgd", max_calls=5000) == pytest.approx(5, abs=1e-6)
    assert problem.status == "optimal"
    assert area.dual_value == pytest.approx(1, abs=1e-4)
    assert calls(problem) <= 400  # 5,000 are allowed for 1e-4; the paper's code takes 360,000


def test_switching_subgradients_cross_the_kink() -> None:
    # the paper's code reaches 5e-3 in a million calls
    problem, x = least_squares()
    problem.solve("ippm-swsg", max_calls=2000)
    assert problem.value == pytest.approx(0.15, abs=1e-3)
    assert x.value == pytest.approx([0.85, 0.85], abs=2e-2)
    assert problem.solution is not None
    assert problem.solution.certificate.violation <= 1e-6


def test_accelerated_gradients_solve_a_hundred_dimensions() -> None:
    problem, optimum = geometric_program("fatkhullin_cgp100")
    assert problem.solve("ippm-acgd", max_calls=1210) == pytest.approx(optimum, abs=1e-3)


def test_switching_subgradients_stay_feasible_and_fall_in_a_hundred_dimensions() -> None:
    problem, _ = geometric_program("fatkhullin_cgp100")
    problem.solve("ippm-swsg", max_calls=1210)
    assert problem.solution is not None
    records = [r for r in problem.solution.trace if r.phase == "descent"]
    objectives = [record.objective for record in records]
    assert len(objectives) > 5
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(objectives))
    assert max(record.violation for record in records) <= 1e-6


def test_the_theory_rule_keeps_its_promise_on_the_tank() -> None:
    problem, x, _ = tank(start=[0.6, 1.6])
    promised = problem.budget("sbl-star", 2.75, CONSTANTS, optimal_value=5)
    problem.solve("sbl-star", rule="theory", constants=CONSTANTS, tol=2.75, optimal_value=5)
    assert problem.value is not None
    assert problem.value - 5 <= 2.75
    assert x.value is not None
    assert x.value[0] * x.value[1] - 1 <= 2.75
    assert calls(problem) <= promised


def test_a_budget_shows_what_a_run_would_take() -> None:
    # Theorem 2 at ε = 0.1 from (0.6, 1.6): (ρ + L) D²/(μ² ε)·log(2v/ε) steps of two calls, v = F1 − 5
    problem, _, _ = tank(start=[0.6, 1.6])
    gap = 0.6 * 1.6 + 4 / 0.6 + 1 / 1.6 - 5
    steps = 127 * 2 * np.log(7.5) ** 2 * 9 / 0.1 * np.log(2 * gap / 0.1)
    promised = problem.budget("sbl-star", 0.1, CONSTANTS, optimal_value=5)
    assert promised == pytest.approx(2 * steps, rel=1e-3)


def test_missing_constants_are_named() -> None:
    problem, _, _ = tank()
    with pytest.raises(hc.ModelError, match="f1_lower"):
        problem.solve("ippm-acgd", rule="theory", constants=CONSTANTS)
    with pytest.raises(hc.ModelError, match="multiplier"):
        problem.budget("sbl-adals", 0.1, CONSTANTS)
    with pytest.raises(hc.ModelError, match="adaptive, theory"):
        problem.solve(rule="practice")


@pytest.mark.parametrize("method", ["sbl-adals", "ippm-acgd", "ippm-swsg", "ippm-sm"])
def test_every_method_takes_a_model_without_constraints(method: str) -> None:
    x = hc.Variable(2, name="x", bounds=(0.1, 10), start=[5, 0.2])
    problem = hc.Problem(hc.Minimize(x[0] * x[1] + 1 / x[0] + 1 / x[1]))
    assert problem.solve(method, max_calls=5000) == pytest.approx(3, abs=1e-3)


def test_the_method_without_constraints_refuses_them() -> None:
    problem, _, _ = tank()
    with pytest.raises(hc.ModelError, match="takes no constraints"):
        problem.solve("ippm-sm")


def test_an_optimal_value_too_low_does_no_harm() -> None:
    problem, _, _ = tank()
    problem.solve("sbl-star", optimal_value=4.5)
    assert problem.value == pytest.approx(5, abs=1e-4)
    assert problem.solution is not None
    assert problem.solution.termination is not hc.Termination.LEVEL_REACHED


def test_an_optimal_value_too_high_is_detected() -> None:
    problem, _, _ = tank()
    problem.solve("sbl-star", optimal_value=5.5, start={"x": [2.0, 0.45]})  # a value of 5.12
    assert problem.solution is not None
    assert problem.solution.termination is hc.Termination.LEVEL_PASSED
    assert problem.status == "optimal_inaccurate"


def test_dense_programs_of_a_posynomial_settle_without_an_interior_point_method(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """100 unknowns: a program with a dense matrix takes Clarabel as long as two iterations."""
    sent = []
    solve = ClarabelBackend.solve

    def counted(self: ClarabelBackend, program: QuadraticProgram) -> QPSolution:
        sent.append(program.quadratic.ndim)
        return solve(self, program)

    monkeypatch.setattr(ClarabelBackend, "solve", counted)
    problem, _ = geometric_program("fatkhullin_cgp100")
    problem.solve("sbl-adals")
    assert problem.status == "optimal"
    assert 2 not in sent
    assert len(sent) <= 5
