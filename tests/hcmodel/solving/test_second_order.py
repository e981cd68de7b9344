"""What the second-order methods and `auto` promise: few points, right values, and no claim too many.

Optima are known by construction, in closed form, from a published suite, or from CVXPY, Riccati equations
and linear programs. Points are places at which the functions were evaluated. The full runs are in
`tests/benchmarks/robustness.py`.
"""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.linalg

import hcmodel as hc
from examples.paper.models import INCONSISTENT, LEAST_SQUARES, large
from tests.extent import first, pairs
from tests.problems.applications import (
    REGULATORS,
    Plant,
    example,
    published_plant,
    random_plant,
    random_process,
)
from tests.problems.library import GEOMETRIC_PROGRAMS, geometric_program, tank
from tests.problems.random_hidden_convex import (
    KINDS,
    KnownProblem,
    infeasible_problem,
    random_geometric_program,
    random_problem,
    without_slater_point,
)

SOLVED = ("optimal", "locally_optimal")


def solved(problem: hc.Problem, **request: Any) -> hc.Solution:
    problem.solve(**request)
    assert problem.solution is not None
    return problem.solution


def points(problem: hc.Problem) -> int:
    assert problem.solution is not None
    return problem.solution.oracle_calls.points


def assert_honest(known: KnownProblem) -> None:
    """No bound above the optimum, and no `optimal` further from it than was certified."""
    solution = known.problem.solution
    assert solution is not None
    size = max(abs(known.optimum), known.unit)
    certificate = solution.certificate
    if certificate.lower_bound is not None:
        assert certificate.lower_bound <= known.optimum + 1e-9 * size
    if solution.status == "optimal":
        assert solution.value - known.optimum <= certificate.gap + 1e-9 * size
        assert certificate.gap <= 1e-6 * abs(solution.value) + 1e-9
    if solution.status in SOLVED:
        assert known.error() <= 1e-6


# ---- random problems with known optima -----------------------------------------------------------


@pytest.mark.parametrize("seed", first(1, [1, 0, 2]))
@pytest.mark.parametrize("kind", KINDS)
def test_random_hidden_convex_problems(kind: str, seed: int) -> None:
    known = random_problem(kind, seed)
    solution = solved(known.problem)
    assert_honest(known)
    assert (
        solution.status == "optimal" if known.knowledge == "proven" else solution.status in SOLVED
    )


@pytest.mark.parametrize("seed", first(2, range(4)))
def test_random_geometric_programs(seed: int) -> None:
    known = random_geometric_program(seed)
    assert solved(known.problem).status == "optimal"
    assert_honest(known)
    assert points(known.problem) <= 25


@pytest.mark.parametrize("seed", first(1, range(2)))
@pytest.mark.parametrize(
    "kind", ["convex", "logarithms", "mixed", "triangular", "monotone, not told"]
)
def test_infeasible_problems_are_never_called_solved(kind: str, seed: int) -> None:
    problem = infeasible_problem(kind, seed)
    status = solved(problem, max_calls=600).status
    proven = KINDS[kind][1] == "proven"
    assert status == "infeasible" if proven else status.startswith("infeasible")


def test_without_a_slater_point_nothing_is_claimed_beyond_the_residual() -> None:
    problem, x = without_slater_point()
    solution = solved(problem)
    assert solution.status in SOLVED
    assert solution.value == pytest.approx(2, abs=1e-5)
    assert x.value == pytest.approx([1, 1], abs=1e-2)
    assert solution.certificate.violation <= 1e-6


def test_without_a_slater_point_a_proven_model_is_certified() -> None:
    x = hc.Variable(2, name="x", bounds=(0.1, 10), start=np.array([3.0, 0.5]))
    row = (hc.log(x[0]) + hc.log(x[1])) ** 2 <= 0
    solution = solved(hc.Problem(hc.Minimize(x[0] + x[1]), [row]))
    assert solution.status == "optimal"
    assert solution.value == pytest.approx(2, abs=1e-5)
    assert solution.certificate.lower_bound is not None
    assert solution.certificate.lower_bound <= 2 + 1e-9


# ---- the promised counts -------------------------------------------------------------------------


@pytest.mark.parametrize("start", [None, [0.6, 1.6], [0.5, 2.5]])
def test_the_tank_in_a_few_points(start: list[float] | None) -> None:
    problem, x, area = tank()
    solution = solved(problem, start=None if start is None else {x: start})
    assert solution.status == "optimal"
    assert solution.value == pytest.approx(5, abs=1e-9)
    assert solution.certificate.gap <= 1e-9
    assert points(problem) <= 15
    assert area.dual_value == pytest.approx(1, abs=1e-6)


def test_a_hundred_dimensions_in_a_few_points() -> None:
    problem = large()
    solution = solved(problem)
    assert solution.status == "optimal"
    assert solution.value == pytest.approx(0.0711365067, abs=1e-9)
    assert solution.certificate.gap <= 1e-9
    assert points(problem) <= 30


@pytest.mark.parametrize("declared", [False, True])
def test_the_papers_least_squares_across_its_kink(declared: bool) -> None:
    model = LEAST_SQUARES
    x = hc.Variable(2, name="x", bounds=model.bounds, start=model.start)
    row = model.constraint(x[0], x[1]) <= 0
    hidden = list(model.hidden(x[0], x[1])) if declared else None
    problem = hc.Problem(hc.Minimize(model.objective(x[0], x[1])), [row], hidden=hidden)
    solution = solved(problem)
    assert solution.status in SOLVED
    assert solution.value == pytest.approx(0.15, abs=1e-9)
    assert points(problem) <= 15


@pytest.mark.parametrize("smooth", [False, True])
def test_chebyshev_rosenbrock_with_its_map(smooth: bool) -> None:
    first = np.array([-1.0, *[1.0] * 9])
    x = hc.Variable(10, name="x", start=first)
    steps = x[1:] - 2 * x[:-1] ** 2 + 1
    lead = (x[0] - 1) ** 2 if smooth else hc.abs(x[0] - 1)
    cost = lead / 4 + hc.sum(hc.abs(steps))
    problem = hc.Problem(hc.Minimize(cost), hidden=[x[0], steps])
    solution = solved(problem)
    assert solution.status in SOLVED
    assert solution.value <= 1e-8
    assert points(problem) <= 60


@pytest.fixture(scope="module")
def geometric_runs() -> dict[str, tuple[hc.Solution, float]]:
    runs = {}
    for name in GEOMETRIC_PROGRAMS:
        problem, optimum = geometric_program(name)
        runs[name] = solved(problem), optimum
    return runs


@pytest.mark.parametrize("name", GEOMETRIC_PROGRAMS)
def test_geometric_programs(
    name: str, geometric_runs: dict[str, tuple[hc.Solution, float]]
) -> None:
    solution, optimum = geometric_runs[name]
    assert solution.status == "optimal"
    assert solution.value == pytest.approx(optimum, rel=1e-6)
    assert abs(solution.certificate.gap) <= 1e-6 * abs(optimum)
    assert solution.oracle_calls.points <= 150


def test_geometric_programs_take_few_points_in_the_median(
    geometric_runs: dict[str, tuple[hc.Solution, float]],
) -> None:
    counts = [solution.oracle_calls.points for solution, _ in geometric_runs.values()]
    assert np.median(counts) <= 25


def regulator(plant: Plant, gain: float = 1e3) -> hc.Problem:
    """`examples/lqr.hc` within wider bounds, from K = 0 and P = I."""
    n, m = plant.B.shape
    P = hc.Variable((n, n), name="P", symmetric=True, PSD=(1e-3, 1e5), start=np.eye(n))
    K = hc.Variable((m, n), name="K", bounds=(-gain, gain), start=np.zeros((m, n)))
    closed = plant.A + plant.B @ K
    cost = hc.trace((plant.Q + K.T @ plant.R @ K) @ P)
    lyapunov = closed @ P + P @ closed.T + plant.W == 0
    return hc.Problem(hc.Minimize(cost), [lyapunov], hidden=[P, K @ P])


PLANTS = [*REGULATORS, *first(3, [(2, 1), (3, 1), (4, 2), (6, 1), (8, 1)])]


@pytest.mark.parametrize("which", PLANTS, ids=str)
def test_regulators_from_zero_gain(which: Any) -> None:
    plant = published_plant(which) if isinstance(which, str) else random_plant(*which, 0)
    problem = regulator(plant)
    solution = solved(problem)
    assert solution.status in SOLVED
    assert solution.value == pytest.approx(plant.optimum(), rel=1e-8)
    assert points(problem) <= 60
    assert plant.abscissa(solution.point["K"]) < 0


@pytest.mark.parametrize(("order", "inputs", "seed"), first(1, [(8, 1, 1), (7, 2, 3)]))
def test_bounds_that_bend_do_not_stand_in_the_way(order: int, inputs: int, seed: int) -> None:
    # on the way from K = 0 the gains of these plants leave the bounds that the best gain keeps
    plant = random_plant(order, inputs, seed)
    largest = 1.02 * float(np.abs(plant.gain()).max())
    problem = regulator(plant, largest)
    solution = solved(problem)
    assert solution.status in SOLVED
    assert solution.value == pytest.approx(plant.optimum(), rel=1e-8)
    assert np.abs(solution.point["K"]).max() <= largest
    assert points(problem) <= 60


def test_a_bound_that_bends_and_holds_the_minimiser_is_kept() -> None:
    # ẋ = x + u: the best gain is −1 − √2, and −2 with P = ½ the best that the bound leaves
    P = hc.Variable((1, 1), name="P", PSD=(1e-6, 1e6))
    K = hc.Variable((1, 1), name="K", bounds=(-2, 2), start=np.zeros((1, 1)))
    cost, closed = hc.trace((1 + K.T @ K) @ P), 1 + K
    problem = hc.Problem(hc.Minimize(cost), [closed @ P + P @ closed.T + 1 == 0], hidden=[P, K @ P])
    solution = solved(problem)
    assert solution.value == pytest.approx(2.5, rel=1e-6)
    assert solution.status == "locally_optimal"
    assert solution.point["K"] == pytest.approx(-2.0)


@pytest.mark.parametrize(
    ("order", "radius", "most"), first(2, [(1, 2.0, 15), (3, 1.3, 60), (4, 1.5, 60)])
)
def test_regulators_in_discrete_time(order: int, radius: float, most: int) -> None:
    generator = np.random.default_rng(order)
    A = generator.normal(size=(order, order))
    A *= radius / np.abs(np.linalg.eigvals(A)).max()
    B = generator.normal(size=(order, max(1, order // 2)))
    riccati = scipy.linalg.solve_discrete_are(A, B, np.eye(order), np.eye(B.shape[1]))
    problem = example("lqr_discrete", A=A, B=B)
    solution = solved(problem)
    assert solution.status == "optimal"
    assert solution.value == pytest.approx(np.trace(riccati), rel=1e-7)
    assert points(problem) <= most


@pytest.mark.parametrize("seed", first(1, range(2)))
def test_constrained_decision_processes(seed: int) -> None:
    process = random_process(seed, states=8, actions=3, costs=1)
    solution = solved(example("cmdp", **process.data))
    assert solution.status in SOLVED
    assert solution.value == pytest.approx(process.optimum(), rel=1e-6)


# ---- not hidden convex ---------------------------------------------------------------------------


def test_inconsistent_maps_are_solved_locally_and_warned_about_once() -> None:
    problem = INCONSISTENT.problem()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert solved(problem).status == "locally_optimal"
    assert problem.analyze(samples=20).verdict == "refuted"
    with pytest.warns(hc.HCWarning, match="not to be hidden convex"):
        solution = solved(problem)
    assert solution.status == "locally_optimal"
    assert solution.certificate.lower_bound is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert solved(problem).status == "locally_optimal"


@pytest.mark.parametrize("start", [[-0.9, 0.9], [2.0, 2.0], [0.0, -1.0], [-0.3, 0.2]])
def test_inconsistent_maps_give_a_stationary_point_from_everywhere(start: list[float]) -> None:
    problem = INCONSISTENT.problem()
    solution = solved(problem, start={"x": start})
    assert solution.status == "locally_optimal"
    assert solution.certificate.stationarity <= 1e-6
    assert solution.value >= 0.77782 - 1e-5


# ---- units ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-13, 1e-6, 1e6, 1e17])
@pytest.mark.parametrize("spread", [False, True])
def test_the_tank_in_other_units(unit: float, spread: bool) -> None:
    units = np.array([unit, 1 / unit]) if spread else np.array([unit, unit])
    x = hc.Variable(2, name="x", bounds=(0.4 * units, 3 * units))
    y = x / units
    row = y[0] * y[1] <= 1
    problem = hc.Problem(hc.Minimize(y[0] * y[1] + 4 / y[0] + 1 / y[1]), [row])
    solution = solved(problem)
    assert solution.status == "optimal"
    assert solution.value == pytest.approx(5, rel=1e-8)
    assert points(problem) <= 15
    assert row.dual_value == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(("unit", "kind"), pairs([1e-13, 1e17], ["map", "identity", "nothing"]))
def test_bent_coordinates_in_other_units(unit: float, kind: str) -> None:
    units = np.array([unit, 1.0])
    x = hc.Variable(
        2, name="x", bounds=(-10 * units, 10 * units), start=np.array([2.0, -1]) * units
    )
    y = x / units
    bent = y[1] if kind == "identity" else y[1] + y[0] ** 2
    cost = (y[0] - 1) ** 2 + (bent - 2) ** 2
    hidden = [y[0], bent] if kind == "map" else None
    row = y[0] + bent <= 1
    problem = hc.Problem(hc.Minimize(cost), [row], hidden=hidden)
    solution = solved(problem)
    assert solution.status in SOLVED
    assert solution.value == pytest.approx(2, rel=1e-6)
    assert points(problem) <= 25


@pytest.mark.parametrize("weight", [1e-13, 1e-8, 1e8, 1e17])
def test_the_objective_in_other_units(weight: float) -> None:
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    row = x[0] * x[1] <= 1
    problem = hc.Problem(hc.Minimize(weight * (x[0] * x[1] + 4 / x[0] + 1 / x[1])), [row])
    solution = solved(problem)
    assert solution.status == "optimal"
    assert solution.value == pytest.approx(5 * weight, rel=1e-6)


# ---- requests ------------------------------------------------------------------------------------


def bumpy() -> hc.Problem:
    """No coordinates are known for it."""
    x = hc.Variable(2, name="x", bounds=(-2, 2), start=np.array([0.3, 0.4]))
    return hc.Problem(hc.Minimize(hc.sin(x[0]) * x[1] + x[0] ** 2 + x[1] ** 2))


def test_hidden_newton_needs_coordinates() -> None:
    with pytest.raises(hc.NotHiddenConvexError, match="prox-linear"):
        bumpy().solve("hidden-newton")


@pytest.mark.parametrize("method", ["sbl-adals", "ippm-acgd"])
def test_polish_brings_a_first_order_point_to_the_optimum(method: str) -> None:
    problem = tank()[0]
    solution = solved(problem, method=method, polish=True)
    assert solution.method == f"{method}, then hidden-newton"
    assert solution.status == "optimal"
    assert solution.value == pytest.approx(5, abs=1e-9)


def test_polish_without_coordinates_uses_prox_linear() -> None:
    solution = solved(bumpy(), method="sbl-adals", polish=True, tol=1e-4)
    assert solution.method == "sbl-adals, then prox-linear"
    assert solution.value == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    "request_", [{"method": "hidden-newton"}, {"method": "sbl-adals", "polish": True}]
)
@pytest.mark.parametrize("limit", [2, 4, 6])
def test_a_limit_on_calls_is_kept_and_keeps_the_best_point(
    request_: dict[str, Any], limit: int
) -> None:
    problem, x, _ = tank()
    solution = solved(problem, max_calls=limit, **request_)
    assert solution.status == "user_limit"
    assert solution.oracle_calls.total <= limit + 1
    assert solution.value is not None
    assert x.value is not None


def test_a_limit_on_time_keeps_the_best_point(clock: Any) -> None:
    problem, _ = geometric_program("cvx_cantilever")
    solved(problem, method="hidden-newton")  # proof and compilation look at the clock as well
    clock.tick = 1e-3
    # a few looks at the clock, hence a few steps
    solution = solved(problem, method="hidden-newton", time_limit=6e-3)
    assert solution.status == "user_limit"
    assert solution.value is not None


def test_the_trace_is_in_the_users_units() -> None:
    seen: list[float] = []
    problem = tank()[0]
    solution = solved(problem, callback=lambda record: bool(seen.append(record.objective)))
    assert len(seen) == len(solution.trace)
    assert seen[-1] == pytest.approx(5, abs=1e-6)
    assert solution.trace[-1].objective == pytest.approx(5, abs=1e-6)


def test_a_callback_stops_and_ctrl_c_interrupts() -> None:
    def interrupt(record: hc.Record) -> None:
        if record.iteration == 1:
            raise KeyboardInterrupt

    newton = "hidden-newton"
    stopped = solved(tank()[0], method=newton, callback=lambda record: record.iteration >= 1)
    interrupted = solved(tank()[0], method=newton, callback=interrupt)
    for solution in (stopped, interrupted):
        assert solution.status == "user_limit"
        assert solution.iterations == 1
        assert solution.value < 5.1


def test_a_warm_start_begins_where_the_last_solve_ended() -> None:
    problem = tank()[0]
    first = solved(problem, method="hidden-newton").oracle_calls.points
    warm = solved(problem, method="hidden-newton", warm_start=True)
    assert warm.oracle_calls.points == 1
    assert solved(problem, method="hidden-newton").oracle_calls.points == first


def test_a_wrong_optimal_value_does_not_mislead_auto() -> None:
    assert solved(tank()[0], optimal_value=3.0).value == pytest.approx(5, abs=1e-8)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"options": {"radius": 1.0}}, "options belong to a method"),
        ({"method": "hidden-newton", "options": {"radios": 1}}, "radius"),
        ({"method": "prox-linear", "options": {"curvature": "round"}}, "exact"),
        ({"method": "hidden-newton", "rule": "theory"}, "no theorem"),
        ({"method": "prox-linear", "rule": "theory"}, "no theorem"),
        ({"rule": "theory"}, "sbl-star"),
        ({"constants": "estimate"}, "theory"),
        ({"max_calls": 0}, "positive"),
        ({"time_limit": -1.0}, "positive"),
    ],
)
def test_requests_that_make_no_sense_say_what_to_do(request_: dict[str, Any], message: str) -> None:
    with pytest.raises(hc.ModelError, match=message):
        tank()[0].solve(**request_)


def test_constants_that_the_user_vouches_for_do_no_harm() -> None:
    constants = hc.Constants(mu_c=0.3, diameter_u=3.0)
    assert solved(bumpy(), constants=constants).value == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("curvature", ["exact", "bfgs", "none"])
def test_each_curvature_of_prox_linear_reaches_the_tank(curvature: str) -> None:
    solution = solved(tank()[0], method="prox-linear", options={"curvature": curvature})
    assert solution.status == "optimal"
    assert solution.value == pytest.approx(5, abs=1e-8)


def test_problems_and_solutions_pickle() -> None:
    problem = tank()[0]
    solution = solved(problem)
    again = pickle.loads(pickle.dumps(problem))
    assert again.solve() == pytest.approx(5, abs=1e-9)
    assert pickle.loads(pickle.dumps(solution)).value == solution.value


def test_new_parameter_values_give_the_solution_of_a_fresh_problem() -> None:
    x = hc.Variable(2, name="x", bounds=(0.1, 10))
    cap, goal = hc.Parameter(name="cap", value=1.0), hc.Parameter(name="goal", value=1.0)
    cost = x[0] * x[1] + 4 / x[0] + 1 / x[1] + hc.abs(hc.log(x[0]) - goal)
    problem = hc.Problem(hc.Minimize(cost), [x[0] * x[1] <= cap])
    for cap.value, goal.value in ((1.0, 1.0), (0.5, -1.0), (2.0, 0.0), (1.0, 1.0)):
        fresh_x = hc.Variable(2, name="x", bounds=(0.1, 10))
        fresh_cost = (
            fresh_x[0] * fresh_x[1]
            + 4 / fresh_x[0]
            + 1 / fresh_x[1]
            + hc.abs(hc.log(fresh_x[0]) - float(goal.value))
        )
        row = fresh_x[0] * fresh_x[1] <= float(cap.value)
        fresh = solved(hc.Problem(hc.Minimize(fresh_cost), [row]))
        assert solved(problem).status == "optimal"
        assert problem.value == pytest.approx(fresh.value, rel=1e-7)


def test_new_data_of_a_kinked_model_compile_again_only_where_bounds_of_the_kink_change() -> None:
    x = hc.Variable(2, name="x", bounds=(0.1, 10))
    cap, goal = hc.Parameter(name="cap", value=1.0), hc.Parameter(name="goal", value=1.0)
    kink = hc.abs(hc.log(x[0]) - goal)
    problem = hc.Problem(hc.Minimize(x[0] * x[1] + 4 / x[0] + kink), [x[0] * x[1] <= cap])
    problem.solve()
    compiled = problem.compilations
    assert compiled == 3  # as written, lifted, and lifted in hidden coordinates
    for cap.value in (0.5, 2.0):
        problem.solve()
        assert problem.compilations == compiled
    goal.value = -1.0  # the interval of the kink moves
    problem.solve()
    assert problem.compilations > compiled


def test_new_parameter_values_of_a_smooth_model_compile_nothing() -> None:
    x = hc.Variable(2, name="x", bounds=(0.1, 10))
    cap = hc.Parameter(name="cap", value=1.0)
    problem = hc.Problem(hc.Minimize(x[0] * x[1] + 4 / x[0] + 1 / x[1]), [x[0] * x[1] <= cap])
    for cap.value in (1.0, 0.5, 2.0):
        assert solved(problem).status == "optimal"
        assert problem.compilations == 1


# ---- small and odd models ------------------------------------------------------------------------


def test_maximisation_is_bounded_from_above() -> None:
    x = hc.Variable(3, name="x", pos=True, start=np.array([0.5, 1.5, 0.2]))
    area = x[0] * x[1] + x[1] * x[2] + x[0] * x[2] <= 3
    solution = solved(hc.Problem(hc.Maximize(hc.prod(x)), [area]))
    assert solution.value == pytest.approx(1, rel=1e-8)
    assert area.dual_value == pytest.approx(0.5, abs=1e-6)
    assert solution.status == "optimal"
    assert solution.certificate.lower_bound is not None
    assert solution.certificate.lower_bound >= 1 - 1e-9


def test_models_without_constraints() -> None:
    x = hc.Variable(3, name="x")
    solution = solved(hc.Problem(hc.Minimize(hc.sum(hc.exp(x) - 2 * x))))
    assert solution.status == "optimal"
    assert solution.value == pytest.approx(6 * (1 - np.log(2)), rel=1e-9)


def test_fixed_variables_and_one_point_domains() -> None:
    x = hc.Variable(2, name="x", bounds=([2, 0.1], [2, 5]))
    cost = x[0] * x[1] + 1 / x[0] + 1 / x[1]
    assert solved(hc.Problem(hc.Minimize(cost))).value == pytest.approx(0.5 + 2 * np.sqrt(2))
    y = hc.Variable(2, name="y", bounds=([2, 1], [2, 1]))
    held = solved(hc.Problem(hc.Minimize(y[0] * y[1]), [y[0] * y[1] <= 2]))
    assert (held.status, held.value) == ("optimal", pytest.approx(2))
    assert solved(hc.Problem(hc.Minimize(y[0]), [y[0] * y[1] <= 1])).status == "infeasible"


@pytest.mark.parametrize("constant", [0.0, 7.5])
def test_a_constant_objective_asks_for_any_feasible_point(constant: float) -> None:
    x = hc.Variable(2, name="x", bounds=(0.1, 9), start=8.0)
    problem = hc.Problem(hc.Minimize(constant), [x[0] * x[1] <= 1, x[0] == 2 * x[1]])
    solution = solved(problem)
    assert (solution.status, solution.value) == ("optimal", constant)
    assert solution.certificate.violation <= 1e-6


def test_an_infimum_that_no_point_attains_raises_no_alarm() -> None:
    x = hc.Variable(2, name="x", pos=True)
    problem = hc.Problem(hc.Minimize(x[0] / x[1]))
    assert solved(problem).value <= 1e-6


# ---- duals against CVXPY -------------------------------------------------------------------------


def test_duals_of_a_convex_model_with_kinks() -> None:
    matrix = np.random.default_rng(3).normal(size=(4, 3))
    goal = np.array([1.0, -2.0, 0.5, 1.5])
    x, y = hc.Variable(3, name="x", bounds=(-3, 3)), cp.Variable(3)
    cost = hc.norm(matrix @ x - goal, 1) + hc.sum(x**2)
    rows = [hc.max(x) <= 0.3, hc.sum(hc.abs(x)) <= 0.8, hc.sum(x) == 0.1]
    problem = hc.Problem(hc.Minimize(cost), rows)
    theirs = [cp.max(y) <= 0.3, cp.norm1(y) <= 0.8, cp.sum(y) == 0.1]
    other = cp.Problem(cp.Minimize(cp.norm1(matrix @ y - goal) + cp.sum_squares(y)), theirs)
    other.solve(solver="CLARABEL")
    assert solved(problem).status == "optimal"
    assert problem.value == pytest.approx(other.value, rel=1e-6)
    for ours, their in zip(rows, theirs, strict=True):
        assert ours.dual_value == pytest.approx(float(their.dual_value), abs=1e-4)


def test_multipliers_of_a_geometric_program_with_kinks() -> None:
    """CVXPY's are those of the logarithms: as written, they are F times larger, over the right side."""
    x, y = hc.Variable(3, name="x", bounds=(0.1, 10)), cp.Variable(3, pos=True)
    cost = hc.maximum(x[0] / x[1], x[1] * x[2]) + 1 / x[2]
    rows = [hc.max(x) <= 2, x[0] * x[1] * x[2] == 3, x[0] + x[2] <= 2.5]
    problem = hc.Problem(hc.Minimize(cost), rows)
    theirs = [cp.max(y) <= 2, cp.prod(y) == 3, y[0] + y[2] <= 2.5, y >= 0.1, y <= 10]
    goal = cp.maximum(y[0] / y[1], y[1] * y[2]) + 1 / y[2]
    other = cp.Problem(cp.Minimize(goal), theirs)
    other.solve(gp=True, solver="CLARABEL")
    assert solved(problem).status == "optimal"
    assert problem.value == pytest.approx(other.value, rel=1e-6)
    for ours, their, right in zip(rows, theirs[:3], (2, 3, 2.5), strict=True):
        expected = other.value * float(their.dual_value) / right
        assert ours.dual_value == pytest.approx(expected, abs=1e-4)


def test_a_penalty_that_rises_and_falls_does_not_lead_in_circles() -> None:
    """Two points, each better than the other by the penalty that it has: the run ends between them."""
    x = hc.Variable(name="x", bounds=(-1, 1), start=0.5)
    problem = hc.Problem(hc.Minimize(x), [hc.sin(x) ** 2 - x**4 >= 0.5])
    problem.solve("prox-linear")
    assert problem.status in ("infeasible_inaccurate", "solver_error")
    assert problem.solution is not None
    assert problem.solution.iterations < 200
