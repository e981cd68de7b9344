"""Models with hundreds to thousands of unknowns: sparse second derivatives, and limited memory."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

import hcmodel as hc
from hcmodel.engines import autograd_stack, forward
from hcmodel.facts import polynomials
from hcmodel.facts.symbols import Symbols
from hcmodel.records import replace
from hcmodel.reductions import smooth
from hcmodel.solvers.second_order.interior_point import normal_equations
from hcmodel.solvers.second_order.interior_point.dense_equations import DenseEquations
from hcmodel.solving import strategy
from tests.problems.large import chained_program, sparse_process
from tests.proven import is_proven


def test_sparse_and_dense_solves_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, x = chained_program(80)
    problem.solve("hidden-newton")
    value, point, calls = problem.value, x.value, problem.solution.oracle_calls.points
    assert problem.status == "optimal"
    for module in (autograd_stack, forward):
        monkeypatch.setattr(module, "SPARSE_ROWS", 10**9)
    dense, y = chained_program(80)
    dense.solve("hidden-newton")
    assert dense.status == "optimal"
    assert value == pytest.approx(dense.value, rel=1e-9)
    np.testing.assert_allclose(point, y.value, rtol=1e-5)
    assert abs(calls - dense.solution.oracle_calls.points) <= 1


def test_thousands_of_unknowns_are_solved_by_newtons_method_where_they_meet_in_few_pairs() -> None:
    problem, _ = chained_program(2500)
    problem.solve("hidden-newton")
    solution = problem.solution
    assert solution.status == "optimal"
    assert solution.oracle_calls.points <= 15
    assert solution.certificate.gap <= 1e-5 * problem.value


def test_a_process_with_few_successors_is_a_sparse_cone_program() -> None:
    problem, program = sparse_process(120)
    problem.solve()
    assert problem.status == "optimal"
    assert problem.solution.method.startswith("auto: cone")
    assert problem.value == pytest.approx(scipy.optimize.linprog(**program).fun, rel=1e-7)


def test_a_process_with_all_successors_takes_arrays_of_the_order_of_its_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """500 states × 20 actions have too many unknowns for arrays of their order: 18 s, by cones 54."""
    monkeypatch.setattr(strategy, "LIMITS", replace(strategy.LIMITS, large_array=20, numbers=20))
    monkeypatch.setattr(normal_equations, "LARGEST_ORDER", 20)
    monkeypatch.delattr(DenseEquations, "factorise")
    problem, program = sparse_process(12, successors=12)
    problem.solve()
    assert problem.status == "optimal"
    assert problem.solution.method.startswith("auto: interior-point")
    assert problem.value == pytest.approx(scipy.optimize.linprog(**program).fun, rel=1e-7)


@pytest.mark.parametrize(
    ("bounds", "rows", "method"),
    [((0, 1), 15, "interior-point"), ((0, 1), 25, "cone"), (None, 15, "cone")],
)
def test_many_rows_or_unknowns_without_bounds_take_arrays_of_the_order_of_the_unknowns(
    bounds: tuple[float, float] | None, rows: int, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strategy, "LIMITS", replace(strategy.LIMITS, large_array=20, numbers=20))
    rng = np.random.default_rng(2)
    x = hc.Variable(60, name="x", bounds=bounds)
    A = rng.uniform(0.5, 1, size=(rows, 60))
    problem = hc.Problem(hc.Maximize(hc.sum(A @ x)), [A @ x <= 10])
    problem.solve()
    assert problem.status == "optimal"
    assert problem.solution.method.startswith(f"auto: {method}")


@pytest.mark.parametrize(("rows", "method"), [(30, "cone"), (31, "interior-point")])
def test_dense_linear_models_with_few_numbers_are_cone_programs(rows: int, method: str) -> None:
    """Above them arrays of the interior-point method take less time than Clarabel's sparse ones."""
    A = np.random.default_rng(2).uniform(0.5, 1, size=(rows, 100))
    x = hc.Variable(100, name="x", bounds=(0, 1))
    problem = hc.Problem(hc.Maximize(hc.sum(A @ x)), [A @ x <= 10])
    problem.solve()
    assert problem.status == "optimal"
    assert problem.solution.method.startswith(f"auto: {method}")


def test_a_process_is_proven_up_to_a_number_of_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each state, action and successor is a term: 5 million for 500 states × 20 actions.

    Beyond the limit no coordinates are found, and the answer is not certified.
    """
    terms, own, all_terms = 8 * 5 * 8, 8 * 5 + 8, polynomials.MOST_TERMS
    for limit, proven in ((terms + own, True), (terms - 1, False)):
        monkeypatch.setattr(polynomials, "MOST_TERMS", limit)
        assert is_proven(sparse_process(8, successors=8)[0]) is proven
    assert all_terms >= 500 * 20 * 500 + 500 * 20 + 500


def test_second_derivatives_of_the_model_as_written_are_not_looked_for_without_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pattern of a solution of equations has as many entries as pairs of its unknowns."""

    def pattern(_: object) -> None:
        raise AssertionError("the Hessian of the model as written is not needed")

    problem, _ = sparse_process(30)
    monkeypatch.setattr(smooth, "DENSE_LIMIT", 10)
    monkeypatch.setattr(autograd_stack.AutogradStack, "hessian_plan", property(pattern))
    problem.solve()
    assert problem.status == "optimal"


def test_the_map_of_a_process_takes_time_in_proportion_to_its_states(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = 0
    source = Symbols.source

    def counted(self: Symbols, symbol: int) -> object:
        nonlocal calls
        calls += 1
        return source(self, symbol)

    monkeypatch.setattr(Symbols, "source", counted)
    counts = []
    for states in (15, 60):
        calls = 0
        sparse_process(states)[0].is_hidden_convex()
        counts.append(calls)
    assert counts[1] <= 5 * counts[0]


def crowded_problem(size: int, rows: str) -> tuple[hc.Problem, hc.Variable]:
    """Every pair of unknowns meets; the minimum is known where there are no rows."""
    rng = np.random.default_rng(1)
    x = hc.Variable(size, name="x", bounds=(-3, 3), start=np.full(size, 0.5))
    target = rng.uniform(-1, 1, size)
    cost = hc.sum(hc.softplus(3 * (x - target))) - 1.5 * hc.sum(x - target)
    coupled = hc.square(hc.sum(x - target)) / size
    constraints = {
        "none": [],
        "inequality": [hc.sum((x - 1) ** 2) <= 0.5 * size],
        "equality": [hc.sum(x[:50]) == 10.0],
    }[rows]
    return hc.Problem(hc.Minimize(cost + coupled), constraints), x


@pytest.mark.parametrize("rows", ["none", "inequality", "equality"])
def test_limited_memory_finds_what_second_derivatives_find(rows: str) -> None:
    problem, x = crowded_problem(120, rows)
    problem.solve("prox-linear")
    value, point = problem.value, x.value
    problem.solve("prox-linear", options={"curvature": "lbfgs"})
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(x.value, point, atol=1e-4)
    assert problem.solution.oracle_calls.points <= 40
    assert problem.solution.oracle_calls.hessians == 0


def test_auto_takes_limited_memory_where_second_derivatives_are_dense_and_many() -> None:
    problem, x = crowded_problem(1201, "none")
    # tanh has no cone form, and its curvature makes the model one without coordinates
    bent = hc.Problem(hc.Minimize(problem.objective.expression + 0.1 * hc.tanh(x[0] - x[1]) ** 2))
    bent.solve()
    assert bent.status == "locally_optimal"
    assert "prox-linear" in bent.solution.method
    assert "limited memory, as 1,201 unknowns" in bent.solution.method
    assert bent.solution.oracle_calls.hessians == 0


def test_limited_memory_on_simplices_and_definite_matrices() -> None:
    p = hc.Variable((6, 4), simplex=True, name="p")
    cost = np.random.default_rng(2).uniform(size=(6, 4))
    entropy = hc.Problem(hc.Minimize(hc.sum(cost * p) - hc.sum(hc.entr(p))))
    entropy.solve("prox-linear", options={"curvature": "lbfgs"})
    # by hand: p is proportional to exp(-cost) in each row
    known = -np.sum(np.log(np.sum(np.exp(-cost), axis=1)))
    assert entropy.value == pytest.approx(known, abs=1e-6)
    X = hc.Variable((3, 3), PSD=True, name="X")
    A = np.diag([1.0, 2.0, 4.0])
    fit = hc.Problem(hc.Minimize(hc.trace(A @ X) - hc.logdet(X)))
    fit.solve("prox-linear", options={"curvature": "lbfgs"})
    np.testing.assert_allclose(X.value, np.linalg.inv(A), atol=1e-4)


def test_a_dense_map_of_many_unknowns_leaves_newtons_method(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(smooth, "DENSE_LIMIT", 1)
    c = hc.Variable(2, name="c", bounds=(-0.9, 0.9))
    wave = hc.Minimize(hc.sum(1 - hc.cos(np.pi * c)))
    problem = hc.Problem(wave, hidden=[hc.sin(np.pi * c / 2)])
    problem.solve()
    assert problem.solution.method.startswith(
        "auto: prox-linear (too many unknowns for the map; limited memory"
    )
