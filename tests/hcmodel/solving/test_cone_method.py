"""`method="cone"`: proven models as one cone program, judged by their own functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.solvers.qp import ConeSolution, ConeStatus, table
from hcmodel.solvers.result import Termination
from tests.problems.examples import loaded
from tests.problems.library import GEOMETRIC_PROGRAMS, geometric_program

PROVEN = (
    *("box_volume", "cantilever", "gate_sizing", "hyperbola", "kelly", "mixed"),
    *("posynomial", "power_control", "tank", "transformer", "water_tank"),
)


@pytest.mark.parametrize("name", GEOMETRIC_PROGRAMS)
def test_geometric_programs_are_certified_at_two_points(name: str) -> None:
    problem, optimum = geometric_program(name)
    problem.solve("cone", tol=1e-8)
    solution = problem.solution
    assert solution.status == "optimal"
    assert problem.value == pytest.approx(optimum, rel=1e-7)
    assert solution.certificate.gap <= 1e-8 * abs(problem.value) + 1e-11
    assert solution.oracle_calls.points <= 2


@pytest.mark.parametrize("name", PROVEN)
def test_auto_solves_proven_examples_as_cone_programs(name: str) -> None:
    problem = loaded(name)
    problem.solve()
    assert problem.status == "optimal"
    first = "interior-point" if name == "posynomial" else "cone"  # many unknowns, or few
    assert problem.solution.method.startswith(f"auto: {first} (proven convex in ")
    assert "then" not in problem.solution.method
    value, duals = problem.value, dict(problem.solution.duals)
    problem.solve("hidden-newton", tol=1e-8)
    assert value == pytest.approx(problem.value, rel=1e-7)
    scale = max((float(np.nanmax(np.abs(each), initial=0)) for each in duals.values()), default=1)
    for key, dual in problem.solution.duals.items():
        np.testing.assert_allclose(duals[key], dual, atol=1e-5 * max(scale, 1.0))


def tank() -> tuple[hc.Problem, hc.Variable]:
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    area = (x[0] * x[1] <= 1).named("area")
    return hc.Problem(hc.Minimize(x[0] * x[1] + 4 / x[0] + 1 / x[1]), [area]), x


def test_maximisations_and_kinks() -> None:
    x = hc.Variable(2, name="x", bounds=(0.1, 10))
    cap = (hc.max(x) * hc.sum(x) <= 2).named("cap")
    problem = hc.Problem(hc.Maximize(hc.prod(x)), [cap])
    assert problem.solve("cone") == pytest.approx(1, abs=1e-8)  # both 1
    assert problem.status == "optimal"
    # the product is c/2 for a cap of c, and duals are those of minimising the negated objective
    assert float(problem.solution.duals["cap"]) == pytest.approx(0.5, abs=1e-6)


def test_the_start_plays_no_part_and_the_callback_sees_one_record() -> None:
    problem, x = tank()
    seen: list[hc.Record] = []
    first = problem.solve("cone", start={x: [2.9, 0.41]}, callback=seen.append)
    assert first == problem.solve("cone")
    assert len(seen) == 1
    assert seen[0].phase == "convex program"


def test_a_limit_on_calls_leaves_the_newton_step_out() -> None:
    problem, _ = tank()
    problem.solve("cone", max_calls=2)
    assert problem.solution.oracle_calls.total == 2
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(5, abs=1e-8)


class Stopped:
    """A backend that is out of time, or has failed."""

    status = ConeStatus.TIME_LIMIT

    def fits(self, program: object) -> bool:
        return True

    def solve(self, program: object, options: object) -> ConeSolution:
        nothing = np.zeros(0)
        return ConeSolution(self.status, nothing, nothing, nothing)


def test_out_of_time_the_start_is_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(table.CONE_BACKENDS, "clarabel", Stopped)
    problem, x = tank()
    problem.solve("cone", start={x: [2.0, 1.0]}, time_limit=1e3)
    assert problem.status == "user_limit"
    np.testing.assert_allclose(x.value, [2.0, 1.0])


def test_the_start_is_left_though_the_backend_has_used_up_the_time(
    monkeypatch: pytest.MonkeyPatch, clock: Any
) -> None:
    class Slow(Stopped):
        def solve(self, program: object, options: object) -> ConeSolution:
            clock.now += 100.0
            return super().solve(program, options)

    monkeypatch.setitem(table.CONE_BACKENDS, "clarabel", Slow)
    problem, x = tank()
    problem.solve("cone", start={x: [2.0, 1.0]}, time_limit=50.0)
    assert problem.status == "user_limit"
    np.testing.assert_allclose(x.value, [2.0, 1.0])


def test_auto_goes_on_where_the_backend_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stopped, "status", ConeStatus.FAILED)
    monkeypatch.setitem(table.CONE_BACKENDS, "clarabel", Stopped)
    problem, _ = tank()
    assert problem.solve() == pytest.approx(5, abs=1e-8)
    assert problem.status == "optimal"
    assert ", then interior-point" in problem.solution.method


def test_auto_goes_on_after_an_answer_of_reduced_accuracy(monkeypatch: pytest.MonkeyPatch) -> None:
    class Rough:
        """Clarabel, with a point that is off by a percent."""

        def __init__(self) -> None:
            self.inner = clarabel()

        def fits(self, program: object) -> bool:
            return True

        def solve(self, program: object, options: object) -> ConeSolution:
            found = self.inner.solve(program, options)
            status = ConeStatus.ALMOST_SOLVED
            return ConeSolution(status, found.primal + 0.01, found.slack, 0.9 * found.dual)

    clarabel = table.CONE_BACKENDS["clarabel"]
    monkeypatch.setitem(table.CONE_BACKENDS, "clarabel", Rough)
    problem, _ = tank()
    assert problem.solve(tol=1e-8) == pytest.approx(5, abs=1e-9)
    assert problem.status == "optimal"
    assert ", then interior-point" in problem.solution.method


def test_a_linear_program_may_go_to_highs() -> None:
    x = hc.Variable(3, name="x", bounds=(0, 4))
    A = np.array([[1.0, 2.0, 1.0], [3.0, 1.0, 0.0]])
    rows = (A @ x <= [4.0, 6.0]).named("rows")
    problem = hc.Problem(hc.Maximize(hc.sum(np.array([2.0, 3.0, 1.0]) * x)), [rows])
    value = problem.solve("cone")
    dual = problem.solution.duals["rows"]
    assert problem.solve("cone", options={"backend": "highs"}) == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(problem.solution.duals["rows"], dual, atol=1e-6)
    problem, _ = tank()
    with pytest.raises(hc.ModelError, match="HiGHS solves linear programs"):
        problem.solve("cone", options={"backend": "highs"})
    with pytest.raises(hc.ModelError, match="unknown cone backend 'gurobi'; there are: clarabel"):
        problem.solve("cone", options={"backend": "gurobi"})


def test_rows_that_contradict_each_other_are_named() -> None:
    x = hc.Variable(3, name="x", bounds=(1e-3, 1e3))
    product = (hc.prod(x) >= 1000).named("product")
    total = (hc.sum(x) <= 20).named("total")
    harmless = (x[0] <= 500).named("harmless")
    problem = hc.Problem(hc.Minimize(x[0] / x[1]), [product, total, harmless])
    for method in ("cone", "auto"):
        problem.solve(method)
        assert problem.status == "infeasible"
        assert set(problem.solution.conflict) == {"product", "total"}
        assert problem.solution.termination is Termination.INFEASIBLE
        assert problem.value == np.inf


def test_equalities_that_contradict_each_other_are_named() -> None:
    x = hc.Variable(2, name="x", bounds=(-5, 5))
    one, two = (hc.sum(x) == 1).named("one"), (x[0] + x[1] == 1.001).named("two")
    problem = hc.Problem(hc.Minimize(hc.norm(x)), [one, two])
    problem.solve("cone")
    assert problem.status == "infeasible"
    assert set(problem.solution.conflict) == {"one", "two"}


def test_models_without_a_proof_and_functions_without_a_cone_form_are_refused() -> None:
    y = hc.Variable(name="y", bounds=(-2, 2))
    with pytest.raises(hc.NotHiddenConvexError, match=r"none are known.*method='auto'"):
        hc.Problem(hc.Minimize(hc.sin(3 * y) + y**2)).solve("cone")
    c = hc.Variable(name="c", bounds=(-0.9, 0.9))
    wave = hc.Problem(hc.Minimize(1 - hc.cos(np.pi * c)), hidden=[hc.sin(np.pi * c / 2)])
    with pytest.raises(hc.NotHiddenConvexError, match="those declared are not proven"):
        wave.solve("cone")
    z = hc.Variable(name="z", bounds=(-2, -1))
    bent = hc.Problem(hc.Minimize(hc.tanh(z)))
    with pytest.raises(hc.ModelError, match=r"no cone program of this model: tanh\(z\) has no"):
        bent.solve("cone")
    assert bent.solve() == pytest.approx(np.tanh(-2.0))
    assert bent.solution.method.startswith("auto: interior-point")


def test_new_data_are_new_numbers() -> None:
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    cap = hc.Parameter(name="cap", value=1.0, pos=True)
    problem = hc.Problem(hc.Minimize(x[0] * x[1] + 4 / x[0] + 1 / x[1]), [x[0] * x[1] <= cap])
    for value in (1.0, 0.5, 2.0):
        cap.value = value
        found = problem.solve("cone")
        assert problem.status == "optimal"
        assert found == pytest.approx(problem.solve("hidden-newton"), rel=1e-8)
    assert problem.compilations == 1


@pytest.mark.parametrize("seed", [1, 2, 7, 43])
@pytest.mark.parametrize("method", ["cone", "interior-point"])
def test_linear_programs_in_tiny_units_end_at_their_vertices(method: str, seed: int) -> None:
    """Costs of 1e-6 leave points 1e-5 beside their bounds where the gap of a method is absolute."""
    rng = np.random.default_rng(seed)
    size, count = rng.integers(2, 8), rng.integers(1, 6)
    matrix = rng.normal(size=(count, size))
    limits = matrix @ rng.uniform(0.2, 0.8, size) + rng.uniform(0, 0.5, count)
    costs = rng.normal(size=size) * 1e-6
    x = hc.Variable(size, name="x", bounds=(0, 1))
    row = matrix @ x <= limits
    problem = hc.Problem(hc.Minimize(costs @ x), [row])
    problem.solve(method=method)
    assert problem.status == "optimal"
    held = problem.solution.bound_duals["x"]
    slope = costs + matrix.T @ row.dual_value - held.lower + held.upper
    assert np.abs(slope).max() <= 1e-6 * np.abs(costs).max()
