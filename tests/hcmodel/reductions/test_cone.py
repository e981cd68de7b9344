"""A proven model as one cone program: the same values and duals as by Newton's method, or a refusal."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import hcmodel as hc
from hcmodel.reductions.cone.affine import Affine, joined
from hcmodel.reductions.cone.compressed_rows import Rows
from hcmodel.solvers.qp import ConeStatus, solve_cone
from tests.problems.examples import loaded
from tests.problems.library import GEOMETRIC_PROGRAMS, geometric_program

PROVEN = (
    *("box_volume", "cantilever", "gate_sizing", "hyperbola", "kelly", "mixed"),
    *("posynomial", "power_control", "tank", "transformer", "water_tank"),
)


def value_at(problem: hc.Problem, point: dict[str, np.ndarray]) -> float:
    for variable in problem.variables:
        variable.value = point[variable.name]
    value = problem.objective.expression.value
    assert value is not None
    return float(np.sum(value))


def solved(problem: hc.Problem) -> tuple[float, dict[str, np.ndarray]]:
    """Value and duals by the cone program."""
    data = problem.get_problem_data()
    solution = solve_cone(data.program)
    assert solution.status is ConeStatus.SOLVED
    point = data.point(solution.primal)
    return value_at(problem, point), data.duals(solution.primal, solution.dual)


@pytest.mark.parametrize("name", GEOMETRIC_PROGRAMS)
def test_geometric_programs_have_their_published_optimum(name: str) -> None:
    problem, optimum = geometric_program(name)
    value, _ = solved(problem)
    assert value == pytest.approx(optimum, rel=1e-7)


@pytest.mark.parametrize("name", PROVEN)
def test_proven_examples_have_the_values_and_duals_of_newtons_method(name: str) -> None:
    problem = loaded(name)
    problem.solve("hidden-newton", tol=1e-8)
    assert problem.status == "optimal"
    expected, duals = problem.value, dict(problem.solution.duals)
    value, found = solved(problem)
    assert value == pytest.approx(expected, rel=1e-7)
    assert found.keys() == duals.keys()
    scale = max((float(np.nanmax(np.abs(each), initial=0.0)) for each in duals.values()), default=0)
    for key, dual in duals.items():
        np.testing.assert_allclose(found[key], dual, atol=1e-5 * max(1.0, scale))


def random_rows(seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.normal(size=(6, 3)), generator.normal(size=6)


X = {"bounds": (-2, 2)}


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda x, A, b: hc.sum(hc.square(A @ x - b)), id="least squares"),
        pytest.param(lambda x, A, b: hc.norm(A @ x - b), id="a norm"),
        pytest.param(lambda x, A, b: hc.norm(A @ x - b, 1), id="lifted sizes"),
        pytest.param(lambda x, A, b: hc.max(A @ x - b) + hc.sum(x**2), id="a lifted maximum"),
        pytest.param(lambda x, A, b: hc.logsumexp(A @ x - b), id="log-sum-exp"),
        pytest.param(lambda x, A, b: hc.sum(hc.softplus(A @ x - b)), id="softplus"),
        pytest.param(lambda x, A, b: hc.sum(hc.exp(A @ x)) - hc.sum(b * (A @ x)), id="exp"),
        pytest.param(lambda x, A, b: hc.sum(hc.exp(hc.square(x - 0.3))), id="a composition"),
        pytest.param(lambda x, A, b: -hc.sum(hc.log(3 - x)) + hc.sum(x), id="logarithms"),
        pytest.param(lambda x, A, b: -hc.sum(hc.entr(x + 3)) + hc.sum(x), id="entropies"),
        pytest.param(lambda x, A, b: hc.sum(hc.kl_div(x + 3, x[::-1] + 4)), id="divergences"),
        pytest.param(lambda x, A, b: hc.sum((x + 3) ** 1.5) - 2 * hc.sum(x), id="powers"),
        pytest.param(lambda x, A, b: hc.sum(hc.inv_pos(x + 3)) + hc.sum(x), id="inverses"),
        pytest.param(lambda x, A, b: hc.sum(x) - hc.sum(hc.sqrt(x + 3)), id="roots"),
    ],
)
def test_convex_functions_have_cone_forms(make) -> None:
    A, b = random_rows(0)
    x = hc.Variable(3, name="x", **X)
    problem = hc.Problem(hc.Minimize(make(x, A, b)), [(hc.sum(x) <= 0.5).named("cap")])
    problem.solve("hidden-newton", tol=1e-8)
    expected, dual = problem.value, float(problem.solution.duals["cap"])
    value, duals = solved(problem)
    assert value == pytest.approx(expected, rel=1e-6, abs=1e-8)
    assert float(duals["cap"]) == pytest.approx(dual, abs=1e-4)


def test_new_data_give_a_new_program() -> None:
    x = hc.Variable(2, name="x", bounds=(0.1, 10))
    cap = hc.Parameter(name="cap", value=1.0, pos=True)
    cost = x[0] * x[1] + 4 / x[0] + 1 / x[1] + hc.abs(hc.log(x[0]) - cap)
    problem = hc.Problem(hc.Minimize(cost), [x[0] * x[1] <= cap])
    for cap.value in (1.0, 0.5, 2.0):
        expected = problem.solve("hidden-newton", tol=1e-8)
        assert solved(problem)[0] == pytest.approx(expected, rel=1e-6)


def test_a_model_without_a_proof_has_no_cone_program() -> None:
    x = hc.Variable(name="x", bounds=(-1, 2))
    with pytest.raises(hc.NotHiddenConvexError, match="not proven"):
        hc.Problem(hc.Minimize(hc.sin(3 * x))).get_problem_data()


@pytest.mark.parametrize("solver", [None, "CLARABEL", "HIGHS", "clarabel", cp.CLARABEL, cp.HIGHS])
def test_solvers_that_cvxpy_names_get_the_same_data(solver: Any) -> None:
    problem = hc.Problem(hc.Minimize(hc.Variable(name="x", bounds=(-1, 2))))
    assert problem.get_problem_data(solver).program.linear.size == 1


@pytest.mark.parametrize("solver", ["NOTASOLVER", "", "MOSEK", 3, ["CLARABEL"]])
def test_a_solver_that_is_not_known_is_refused(solver: Any) -> None:
    problem = hc.Problem(hc.Minimize(hc.Variable(name="x", bounds=(-1, 2))))
    with pytest.raises(hc.ModelError, match=r"unknown solver .*known are 'CLARABEL', 'HIGHS'"):
        problem.get_problem_data(solver)


def test_a_function_without_a_cone_form_is_named() -> None:
    x = hc.Variable(name="x", bounds=(-2, -1))
    with pytest.raises(hc.ModelError, match=r"tanh.*has no cone form"):
        hc.Problem(hc.Minimize(hc.tanh(x))).get_problem_data()


def test_infeasible_models_end_with_a_certificate() -> None:
    x = hc.Variable(2, name="x", bounds=(1, 2))
    data = hc.Problem(hc.Minimize(x[0] * x[1]), [x[0] * x[1] <= 0.5]).get_problem_data()
    assert solve_cone(data.program).status is ConeStatus.INFEASIBLE


def test_affine_arrays_follow_numpy() -> None:
    generator = np.random.default_rng(0)
    unknowns = generator.normal(size=4)
    a = Affine((2, 1), np.array([1.0, 2.0]), Rows.of(generator.normal(size=(2, 4))))
    b = Affine((3,), np.arange(3.0), Rows.of(generator.normal(size=(3, 2))))

    def at(array: Affine) -> np.ndarray:
        return (array.offset + array.rows(4) @ unknowns).reshape(array.shape)

    np.testing.assert_allclose(at(a + b), at(a) + at(b))
    np.testing.assert_allclose(at(a - b), at(a) - at(b))
    np.testing.assert_allclose(at(b.scaled(np.array([[2.0], [3.0]]))), at(b) * [[2.0], [3.0]])
    np.testing.assert_allclose(at(joined([a, b])), np.concatenate([at(a).ravel(), at(b)]))
    np.testing.assert_allclose(at(b.taken(np.array([2, 0]), (2,))), at(b)[[2, 0]])
