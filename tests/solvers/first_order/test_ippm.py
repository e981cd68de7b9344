"""The IPPM methods under the adaptive rule, with defaults only: no constant, no option."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from hcmodel.solvers import Box, Oracle, Result, Termination, function_oracle
from hcmodel.solvers.first_order.accelerated_gradient import AcceleratedGradient, sequence
from hcmodel.solvers.first_order.ippm import InnerSolver, Ippm
from hcmodel.solvers.first_order.switching_subgradient import (
    SubgradientMethod,
    SwitchingSubgradient,
    step_length,
)
from hcmodel.solvers.first_order.theory_bundle import TheoryStarBundleLevel
from hcmodel.solvers.first_order.theory_ippm import TheoryIppm
from hcmodel.solvers.loop import Task, run
from hcmodel.solvers.oracle import Budget
from hcmodel.solvers.outer import Outer
from hcmodel.solvers.theory.theorems import Constants, IppmParameters
from tests.extent import first, several
from tests.solvers.models import (
    Model,
    hidden_convex,
    linear_rows,
    quadratic,
    separable_map,
    tank,
    triangular_map,
)

FloatArray = NDArray[np.float64]
Posynomial = Callable[[FloatArray], tuple[float, FloatArray]]
INNER: list[Callable[[], InnerSolver]] = [SwitchingSubgradient, AcceleratedGradient]


def solve(
    model: Model, inner: InnerSolver, calls: int, tolerance: float = 1e-6
) -> tuple[Result, float]:
    """The result, and its error in the value."""
    model.oracle.budget = Budget(max_calls=calls)
    result = run(Ippm(inner), Task(model.oracle, model.domain, tolerance), model.start)
    assert result.evaluation is not None
    assert result.evaluation.relative_violation <= tolerance
    assert result.calls.total <= calls + 1
    return result, result.evaluation.objective - model.value


def least_squares_model() -> Model:
    """Ex-CNLS: c(x) = (x1 − 1, 2|x1| − x2 − 1), F1 = ‖c‖∞, F2 = ‖c − (−0.5, −0.6)‖₁ − 0.8.

    F1* = 0.15 at (0.85, 0.85). No theorem holds for it: c has a kink at x1 = 0 that is concave
    in parts of F1 and F2, which are then not weakly convex, and c(X) is not convex; μ_c = √2 − 1.
    """

    def change(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        sign = 1.0 if x[0] >= 0 else -1.0
        return np.array([x[0] - 1, 2 * abs(x[0]) - x[1] - 1]), np.array([[1, 0], [2 * sign, -1.0]])

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        u, jacobian = change(x)
        entry = int(np.argmax(np.abs(u)))
        return float(abs(u[entry])), np.sign(u[entry]) * jacobian[entry]

    def row(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        u, jacobian = change(x)
        away = u + np.array([0.5, 0.6])
        signs = np.where(away >= 0, 1.0, -1.0)
        return np.array([np.abs(away).sum() - 0.8]), (signs @ jacobian).reshape(1, -1)

    oracle = function_oracle(2, objective, inequalities=row, sizes=(1, 0), smooth=False)
    return Model(oracle, Box.of(2, -1.0, 2.5), np.array([-0.3, 0.20005]), 0.15)


def posynomial(data: dict[str, Any]) -> Posynomial:
    coefficients, exponents = np.array(data["coefficients"]), np.array(data["exponents"])

    def function(x: FloatArray) -> tuple[float, FloatArray]:
        terms = coefficients * np.exp(exponents @ np.log(x))
        return float(terms.sum()), (exponents.T @ terms) / x

    return function


PROGRAMS = json.loads(
    (Path(__file__).parents[2] / "problems" / "geometric_programs.json").read_text()
)


def geometric_program(name: str) -> Model:
    """A program of the development set: posynomials <= 1, monomials == 1, its optimal value stored."""
    (data,) = [program for program in PROGRAMS if program["name"] == name]
    monomials = [
        {"coefficients": [row["coefficient"]], "exponents": [row["exponents"]]}
        for row in data["equalities"]
    ]

    def stack(parts: list[dict[str, Any]]) -> Callable[[FloatArray], Any]:
        functions = [posynomial(part) for part in parts]

        def rows(x: FloatArray) -> tuple[FloatArray, FloatArray]:
            pairs = [function(x) for function in functions]
            return np.array([v - 1.0 for v, _ in pairs]), np.array([g for _, g in pairs])

        return rows

    oracle = function_oracle(
        len(data["start"]),
        posynomial(data["objective"]),
        inequalities=stack(data["inequalities"]) if data["inequalities"] else None,
        equalities=stack(monomials) if monomials else None,
        sizes=(len(data["inequalities"]), len(monomials)),
    )
    lower = np.array([1e-12 if bound is None else max(bound, 1e-12) for bound in data["lower"]])
    upper = np.array([np.inf if bound is None else bound for bound in data["upper"]])
    return Model(oracle, Box(lower, upper), np.array(data["start"]), data["optimal_value"])


@pytest.mark.parametrize("start", [(0.6, 1.6), (2.9, 2.9), (0.4, 0.4)])
def test_acgd_on_the_papers_smooth_example(start: tuple[float, float]) -> None:
    result, error = solve(tank(start), AcceleratedGradient(), 5000)
    print(f"ippm-acgd Ex-CGP from {start}: error {error:.1e} in {result.calls.total} calls")
    assert result.termination is Termination.CONVERGED
    assert abs(error) <= 1e-7
    assert result.calls.total <= 300
    assert result.multipliers == pytest.approx([1.0], abs=1e-4)


def test_switching_subgradients_on_the_papers_smooth_example() -> None:
    _, error = solve(tank(), SwitchingSubgradient(), 2000)
    assert error <= 1e-3


def test_switching_subgradients_cross_the_kink_of_the_papers_example() -> None:
    result, error = solve(least_squares_model(), SwitchingSubgradient(), 3000)
    met = [record.calls for record in result.trace if record.objective <= 0.15 + 1e-2]
    print(f"ippm-swsg Ex-CNLS: error 1e-2 in {met[0]}, {error:.1e} in 3000 calls")
    assert met[0] <= 3000
    assert error <= 1e-3
    assert {record.phase for record in result.trace} == {"feasibility", "descent"}


def test_a_kinked_problem_never_counts_as_converged() -> None:
    """−|x| has, by convention, the derivative 0 at its maximum, which proves nothing."""
    oracle = function_oracle(1, lambda x: (-abs(float(x[0])), -np.sign(x)), smooth=False)
    task = Task(oracle, Box.of(1, -1.0, 1.0), 1e-6)
    oracle.budget = Budget(max_calls=several(500, 3000))
    result = run(Ippm(SubgradientMethod()), task, np.zeros(1))
    assert result.termination is Termination.STALLED


LARGE = "fatkhullin_cgp100"


SMALL = [program["name"] for program in PROGRAMS if program["name"] != LARGE]


def test_acgd_on_the_large_posynomial_within_the_papers_calls() -> None:
    result, error = solve(geometric_program(LARGE), AcceleratedGradient(), 1210)
    print(f"ippm-acgd d = 100: error {error:.1e} in {result.calls.total} calls")
    assert result.termination is Termination.CONVERGED
    assert abs(error) <= 5e-8  # of 0.07


@pytest.mark.parametrize("name", first(9, SMALL))
def test_acgd_solves_geometric_programs(name: str) -> None:
    model = geometric_program(name)
    result, error = solve(model, AcceleratedGradient(), 1210)
    assert abs(error) <= 1e-6 * abs(model.value)
    assert result.termination in (Termination.CONVERGED, Termination.STALLED)


def test_switching_subgradients_stay_feasible_and_fall_on_the_large_posynomial() -> None:
    result, error = solve(geometric_program(LARGE), SwitchingSubgradient(), 1210)
    print(f"ippm-swsg d = 100: error {error:.1e} in {result.calls.total} calls")
    values = [record.objective for record in result.trace]
    assert all(after <= before for before, after in pairwise(values))
    assert all(record.violation <= 1e-6 for record in result.trace)
    assert error <= 2e-2


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("make_map", "equalities"), [(separable_map, 0), (triangular_map, 2)])
def test_acgd_on_random_hidden_convex_problems(
    seed: int, make_map: Callable[..., Any], equalities: int
) -> None:
    model = hidden_convex(seed, 5, make_map, equalities)
    result, error = solve(model, AcceleratedGradient(), 2000)
    assert result.termination is Termination.CONVERGED
    assert abs(error) <= 1e-6 * max(1.0, abs(model.value))


@pytest.mark.parametrize("seed", first(1, range(2)))
def test_switching_subgradients_with_equalities(seed: int) -> None:
    model = hidden_convex(seed, 5, triangular_map, 2)
    _, error = solve(model, SwitchingSubgradient(), several(3000, 8000))
    assert abs(error) <= 1e-2 * max(1.0, abs(model.value))


@pytest.mark.parametrize("make_inner", [*INNER, SubgradientMethod])
def test_no_rows(make_inner: Callable[[], InnerSolver]) -> None:
    """1 − cos πx is hidden convex; un-shifted bundle steps cycle on it from 0.891 (Fig. 3)."""
    oracle = function_oracle(
        1, lambda x: (1.0 - np.cos(np.pi * float(x[0])), np.pi * np.sin(np.pi * x))
    )
    model = Model(oracle, Box.of(1, -0.95, 0.95), np.array([0.891]), 0.0)
    _, error = solve(model, make_inner(), 2000)
    assert error <= 1e-6


def test_the_subgradient_method_refuses_rows() -> None:
    model = tank()
    with pytest.raises(ValueError, match="ippm-swsg"):
        run(Ippm(SubgradientMethod()), Task(model.oracle, model.domain, 1e-6), model.start)


@pytest.mark.parametrize("make_inner", INNER)
def test_an_infeasible_start_shows_its_phase(make_inner: Callable[[], InnerSolver]) -> None:
    result, error = solve(tank((2.5, 2.5)), make_inner(), 2000)
    phases = [record.phase for record in result.trace]
    assert phases[0] == "feasibility"
    assert phases[-1] == "descent"
    assert error <= 1e-3
    # The phase looks at the rows alone.
    descent = phases.index("descent")
    assert result.trace[descent].calls < 2 * result.trace[descent].points + 2


@pytest.mark.parametrize("make_inner", INNER)
def test_rows_that_conflict_are_reported(make_inner: Callable[[], InnerSolver]) -> None:
    rows = linear_rows(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([-1.0, -1.0]))
    oracle = function_oracle(2, quadratic(np.zeros(2)), inequalities=rows, sizes=(2, 0))
    oracle.budget = Budget(max_calls=2000)
    task = Task(oracle, Box.of(2, -5.0, 5.0), 1e-6)
    result = run(Ippm(make_inner()), task, np.array([0.3, 0.0]))
    assert result.termination is Termination.INFEASIBLE_STATIONARY
    assert result.conflict is not None


@pytest.mark.parametrize("scale", [1e-4, 1e4])
@pytest.mark.parametrize("make_inner", INNER)
def test_units_do_not_matter(make_inner: Callable[[], InnerSolver], scale: float) -> None:
    """The same calls to the same relative error, whatever the units of objective and row."""
    plain, _ = solve(tank(), make_inner(), 600, 1e-8)
    scaled, error = solve(tank(scale=scale, row=scale), make_inner(), 600, 1e-8)
    assert abs(error) <= 5e-3 * scale
    first = [record.objective for record in plain.trace[:6]]
    other = [record.objective / scale for record in scaled.trace[:6]]
    assert other == pytest.approx(first, rel=1e-3)


class SparseStack:
    """Many rows x_i + x_{i+1} <= 1 with a sparse Jacobian, and ½‖x − 1‖² as objective."""

    kinked = False
    objective_size = 1

    def __init__(self, size: int) -> None:
        self.dimension = size
        self.size = size
        self.rows = scipy.sparse.csr_array(
            scipy.sparse.diags_array(
                [np.ones(size - 1), np.ones(size - 1)], offsets=[0, 1], shape=(size - 1, size)
            )
        )

    def evaluate(self, x: FloatArray, part: str) -> Any:
        rows, values, jacobians = self.rows, [], []
        if part in ("objective", "all"):
            values.append(np.array([0.5 * np.sum((x - 1.0) ** 2)]))
            jacobians.append(scipy.sparse.csr_array((x - 1.0).reshape(1, -1)))
        if part in ("constraints", "all"):
            values.append(rows @ x - 1.0)
            jacobians.append(rows)

        class Forward:
            def __init__(self) -> None:
                self.values = np.concatenate(values)

            def jacobian(self) -> Any:
                return scipy.sparse.csr_array(scipy.sparse.vstack(jacobians))

        return Forward()

    def hessian(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        raise NotImplementedError


def test_sparse_jacobians() -> None:
    """x = ½: then λ = (½, 0, ½, …, ½) solves x − 1 + Aᵀλ = 0, an even size given, and F1* = n·½·¼."""
    size = 6
    oracle = Oracle(SparseStack(size), Outer.of_rows(size - 1, 0))
    model = Model(oracle, Box.of(size, -2.0, 2.0), np.zeros(size), size / 8)
    result, error = solve(model, AcceleratedGradient(), 2000)
    assert result.termination is Termination.CONVERGED
    assert abs(error) <= 1e-6
    oracle = Oracle(SparseStack(size), Outer.of_rows(size - 1, 0))
    _, error = solve(
        Model(oracle, model.domain, model.start, size / 8), SwitchingSubgradient(), 1000
    )
    assert error <= 0.05


def test_the_theory_rule_on_sparse_jacobians_is_that_on_dense_ones() -> None:
    stack = SparseStack(6)
    dense = linear_rows(stack.rows.toarray(), np.ones(5))
    oracles = [
        Oracle(stack, Outer.of_rows(5, 0)),
        function_oracle(6, quadratic(np.ones(6)), inequalities=dense, sizes=(5, 0)),
    ]
    # A convex problem: the identity is its map, and a small ρ stands in for 0.
    constants = Constants(rho=1e-3, L=1.0, mu_c=1.0, diameter_u=2 * np.sqrt(6))
    rule = IppmParameters(0.1, 0.01, 1, 0.5, 1.0, 0.1, 0.01, inner_steps=20, smoothness=20.0)
    points = []
    for oracle in oracles:
        task = Task(oracle, Box.of(6, -0.5, 1.5), 0.2, optimal_value=0.75)
        result = run(TheoryStarBundleLevel(constants), task, np.zeros(6))
        assert result.termination is Termination.LEVEL_REACHED
        centre = oracle.at(np.zeros(6))
        found = AcceleratedGradient().exact(task, centre, rule).evaluation
        assert found is not None
        points.append(np.concatenate([result.point, found.point]))
    assert points[0] == pytest.approx(points[1], abs=1e-6)


@pytest.mark.parametrize("make_inner", INNER)
def test_the_start_is_left_alone_and_runs_repeat(make_inner: Callable[[], InnerSolver]) -> None:
    model = tank()
    kept = model.start.copy()
    first, _ = solve(model, make_inner(), 400)
    again, _ = solve(tank(), make_inner(), 400)
    assert (model.start == kept).all()
    assert first.trace == again.trace


def test_step_sizes_of_algorithm_2() -> None:
    # ρ = 1, ρ̂ = 2: 2/(1·(t+2) + 144/(t+1)), so 2/146 at t = 0 and 2/(7 + 24) at t = 5
    rule = IppmParameters(0.1, 0.1, 1, 1.0, 2.0, 0.1, 0.0)
    assert step_length(rule, 0) == pytest.approx(2 / 146)
    assert step_length(rule, 5) == pytest.approx(2 / 31)


def test_weights_of_algorithm_3() -> None:
    # τ = 0, ½, 1, 3/2, 3/2, … with √κ = 3/2; θ_t = τ_t/(1+τ_{t−1}): 0, ½, 2/3, 3/4, 3/5
    terms = sequence(2.25)
    taus, thetas, following = zip(*[next(terms) for _ in range(5)], strict=True)
    assert taus == (0.0, 0.5, 1.0, 1.5, 1.5)
    assert thetas == pytest.approx((0.0, 0.5, 2 / 3, 0.75, 0.6))
    assert following == (0.5, 1.0, 1.5, 1.5, 1.5)


def test_switching_says_so_when_no_iterate_was_feasible() -> None:
    """A tightening beyond what the row admits leaves the average without a term."""
    model = tank()
    rule = IppmParameters(0.5, 0.0, 1, 1.0, 2.0, 0.1, 50.0, inner_steps=5)
    centre = model.oracle.at(model.start)
    task = Task(model.oracle, model.domain, 0.1)
    found = SwitchingSubgradient().exact(task, centre, rule)
    assert found.evaluation is None


def test_switching_ends_early_where_x_holds_the_iterate() -> None:
    """minimise x over [0, 1] from 0: the iterate stays, at a single call, and so does the mean."""
    oracle = function_oracle(1, lambda x: (float(x[0]), np.ones(1)))
    rule = IppmParameters(0.5, 0.1, 1, 1.0, 2.0, 0.1, 0.0, inner_steps=10**12)
    task = Task(oracle, Box.of(1, 0.0, 1.0), 0.1)
    found = SwitchingSubgradient().exact(task, oracle.at(np.zeros(1)), rule)
    assert found.evaluation is not None
    assert found.evaluation.point == pytest.approx([0.0])
    assert oracle.calls.total == 1


def test_the_theory_rule_names_what_is_missing() -> None:
    model = tank()
    method = TheoryIppm(AcceleratedGradient(), Constants(rho=1.0))
    with pytest.raises(ValueError, match="f1_lower"):
        run(method, Task(model.oracle, model.domain, 0.1), model.start)
