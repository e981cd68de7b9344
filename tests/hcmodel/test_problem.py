"""Problem.solve from model to judged solution: values, duals, statuses, starts, limits, errors."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from tests.extent import first
from tests.problems.library import geometric_program, tank

# ten and more of the development set; `fatkhullin_cgp100` has a test of its own
GEOMETRIC = [
    "gpkit_trivial",
    "gpkit_simple_box",
    "gpkit_water_tank",
    "gpkit_simpleflight",
    "gpkit_performance_modeling",
    "cvxpy_basic_gp",
    "cvxpy_max_volume_box",
    "cvx_power_control",
    "cvx_elmore_wire",
    "cvx_inverter_chain",
    "cvx_cantilever",
    "hs064",
    "hs072",
    "hs093",
    "hs101",
    "hs071_le",
    "fatkhullin_smooth",
]


def calls(problem: hc.Problem) -> int:
    assert problem.solution is not None
    return problem.solution.oracle_calls.total


@pytest.mark.parametrize("start", [[0.6, 1.6], [0.5, 2.5]])
def test_adals_solves_the_tank_from_the_papers_starts(start: list[float]) -> None:
    problem, x, area = tank()
    value = problem.solve(method="sbl-adals", start={x: start})
    assert value == pytest.approx(5, abs=1e-6)
    assert problem.solution is not None
    assert problem.solution.certificate.violation <= 1e-6
    assert x.value == pytest.approx([2, 0.5], abs=1e-4)
    assert area.dual_value == pytest.approx(1, abs=1e-4)
    assert problem.status == "optimal"
    assert problem.solution.certificate.gap <= 1e-6
    assert calls(problem) <= 400


@pytest.mark.parametrize("start", [[0.6, 1.6], [0.5, 2.5]])
def test_star_solves_the_tank_in_few_calls(start: list[float]) -> None:
    problem, x, _ = tank()
    assert problem.solve("sbl-star", optimal_value=5, start={x: start}) == pytest.approx(
        5, abs=1e-7
    )
    assert calls(problem) <= 60


@pytest.mark.parametrize(
    ("method", "error", "budget"), [("sbl-adals", 1e-5, 1500), ("sbl-star", 1e-6, 1000)]
)
def test_both_methods_solve_the_papers_hundred_dimensions(
    method: str, error: float, budget: int
) -> None:
    problem, optimum = geometric_program("fatkhullin_cgp100")
    known = optimum if method == "sbl-star" else None
    assert problem.solve(method, optimal_value=known) == pytest.approx(0.0711365067, abs=error)
    assert problem.solution is not None
    assert problem.solution.certificate.violation <= 1e-6
    assert calls(problem) <= budget


@pytest.mark.parametrize("name", first(9, GEOMETRIC))
def test_adals_solves_geometric_programs_with_default_options(name: str) -> None:
    problem, optimum = geometric_program(name)
    assert problem.solve("sbl-adals") == pytest.approx(optimum, rel=1e-6)
    assert problem.solution is not None
    assert problem.solution.certificate.violation <= 1e-6
    assert problem.status == "optimal"


def test_a_new_parameter_value_compiles_nothing_and_gives_the_new_optimum() -> None:
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    cap = hc.Parameter(name="cap", value=1.0)
    problem = hc.Problem(
        hc.Minimize(x[0] * x[1] + 4 / x[0] + 1 / x[1]), [(x[0] * x[1] <= cap).named("area")]
    )
    assert problem.solve() == pytest.approx(5, abs=1e-6)
    cap.value = 0.25  # both dimensions small: x2 at its bound 0.4, x1 = 0.625
    assert problem.solve() == pytest.approx(0.25 + 4 / 0.625 + 1 / 0.4, abs=1e-5)
    assert problem.compilations == 1


@pytest.mark.parametrize("start", [None, {"x": [2.9, 2.9]}, {"x": [100.0, -7.0]}, {"x": 1.0}])
def test_missing_infeasible_and_outside_starts_all_work(start: dict[str, object] | None) -> None:
    problem, _, _ = tank()
    assert problem.solve(start=start) == pytest.approx(5, abs=1e-6)


def test_a_users_value_is_a_start_and_a_solves_value_is_not() -> None:
    problem, x, _ = tank()
    x.value = [0.6, 1.6]
    problem.solve("hidden-newton")
    from_user = calls(problem)
    problem.solve("hidden-newton")  # x.value is now the solution, written by the solve: not a start
    from_middle = calls(problem)
    problem.solve("hidden-newton", warm_start=True)
    assert calls(problem) < min(from_user, from_middle)


def test_maximize_gives_value_and_duals_of_the_negated_minimum() -> None:
    x = hc.Variable(2, name="x", bounds=(0.1, 10))
    wall = (2 * (x[0] + x[1]) <= 8).named("wall")
    problem = hc.Problem(hc.Maximize(x[0] * x[1]), [wall])
    assert problem.solve() == pytest.approx(4, abs=1e-5)
    # L = −x1 x2 + λ(2(x1 + x2) − 8) is stationary at (2, 2) for λ = 1
    assert wall.dual_value == pytest.approx(1, abs=1e-3)
    assert problem.solution is not None
    feasible = [record for record in problem.solution.trace if record.violation == 0]
    assert max(record.objective for record in feasible) <= 4 + 1e-6


def test_duals_belong_to_the_constraint_as_written() -> None:
    x = hc.Variable(2, name="x", bounds=(0.1, 10))
    at_least = (x[0] * x[1] >= 4).named("at_least")
    equal = (x[0] == 2 * x[1]).named("equal")
    problem = hc.Problem(hc.Minimize(x[0] + x[1]), [equal, at_least])
    problem.solve()
    x1, x2 = np.sqrt(8), np.sqrt(2)
    assert x.value == pytest.approx([x1, x2], abs=1e-5)
    # ∇: (1, 1) − λ (x2, x1) + ν (1, −2) = 0
    multiplier, nu = np.linalg.solve([[x2, -1], [x1, 2]], [1, 1])
    assert at_least.dual_value == pytest.approx(multiplier, abs=1e-4)
    assert equal.dual_value == pytest.approx(nu, abs=1e-4)
    assert problem.solution is not None
    assert list(problem.solution.duals) == ["equal", "at_least"]


def test_automatic_names_give_way_to_the_users() -> None:
    y = hc.Variable(name="y")
    first = y >= 1
    problem = hc.Problem(hc.Minimize(y**2), [first, (y <= 5).named("c1")])
    problem.solve()
    assert first.dual_value == pytest.approx(2, abs=1e-5)
    assert problem.solution is not None
    assert len(problem.solution.duals) == 2


def test_constraints_may_come_from_a_generator() -> None:
    x = hc.Variable(3, name="x", pos=True)
    problem = hc.Problem(hc.Minimize(hc.sum(x)), (c for c in [hc.prod(x) >= 8]))
    assert problem.solve() == pytest.approx(6, abs=1e-5)


def test_an_optimum_of_zero_is_recognised() -> None:
    x = hc.Variable(2, name="x", start=[-1.2, 1.0])
    rosenbrock = 4 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
    problem = hc.Problem(hc.Minimize(rosenbrock))
    problem.solve(max_calls=2_000)
    assert problem.status == "optimal"
    assert x.value == pytest.approx([1, 1], abs=1e-4)


def test_a_maximum_at_infinity_is_unbounded() -> None:
    z = hc.Variable(name="z", pos=True)
    problem = hc.Problem(hc.Maximize(hc.log(z)))
    assert problem.solve() == np.inf
    assert problem.status == "unbounded"
    assert problem.solution is not None
    assert problem.solution.certificate.stationarity is None


def test_bounds_have_duals() -> None:
    x = hc.Variable(2, name="x", bounds=(1, 5))
    problem = hc.Problem(hc.Minimize(3 * x[0] - 2 * x[1]))
    assert problem.solve() == pytest.approx(-7)
    assert problem.solution is not None
    duals = problem.solution.bound_duals["x"]
    assert duals.lower == pytest.approx([3, 0], abs=1e-6)
    assert duals.upper == pytest.approx([0, 2], abs=1e-6)


def test_an_unconstrained_model_is_a_normal_case() -> None:
    x = hc.Variable(3, name="x")
    problem = hc.Problem(hc.Minimize(hc.sum((x - np.array([1.0, -2.0, 3.0])) ** 2) + 4))
    assert problem.solve() == pytest.approx(4, abs=1e-9)
    assert problem.status == "optimal"
    assert problem.solution is not None
    assert problem.solution.oracle_calls.constraints == 0


def test_an_infeasible_model_names_the_constraints_that_conflict() -> None:
    x = hc.Variable(2, name="x", bounds=(0.1, 10))
    problem = hc.Problem(
        hc.Minimize(x[0] + x[1]),
        [
            (x[0] * x[1] >= 9).named("large"),
            (x[0] * x[1] <= 4).named("small"),
            (x[0] <= 8).named("innocent"),
        ],
    )
    assert problem.solve("sbl-adals") == np.inf
    assert problem.status == "infeasible"
    assert problem.solution is not None
    assert set(problem.solution.conflict) == {"large", "small"}
    # the best compromise between 9 and 4 is 6.5
    assert problem.solution.certificate.violation == pytest.approx(2.5, rel=1e-3)
    assert "large" in str(problem.solution)
    assert problem.solve() == np.inf
    assert problem.status == "infeasible"
    assert problem.solution.certificate.kind == "duality"
    assert set(problem.solution.conflict) == {"large", "small"}


def test_a_step_that_leaves_the_domain_of_log_is_rejected() -> None:
    x = hc.Variable(name="x", bounds=(-5, 5), start=4.0)
    problem = hc.Problem(hc.Minimize(x - hc.log(x + 1)))
    assert problem.solve() == pytest.approx(0, abs=1e-9)
    assert x.value == pytest.approx(0, abs=1e-4)


def test_no_point_of_definition_is_infeasible() -> None:
    x = hc.Variable(name="x", bounds=(-5, -1))
    problem = hc.Problem(hc.Minimize(hc.log(x)))
    assert problem.solve() == np.inf
    assert problem.status == "infeasible"
    assert problem.solution.conflict == ("x <= -1",)


def test_a_start_without_a_value_is_a_solver_error() -> None:
    x = hc.Variable(name="x", bounds=(-5, -1))
    with pytest.raises(hc.SolverError, match="give a start"):
        hc.Problem(hc.Minimize(hc.log(hc.sin(x) - 2))).solve()


def test_an_objective_without_a_lower_bound_is_unbounded() -> None:
    x = hc.Variable(name="x")
    problem = hc.Problem(hc.Minimize(-hc.exp(x) - x))
    problem.solve()
    assert problem.status == "unbounded"
    assert problem.value == -np.inf


def test_limits_return_the_best_point_so_far(clock: Any) -> None:
    problem, x, _ = tank()
    problem.solve("sbl-adals", max_calls=30)
    assert problem.status == "user_limit"
    assert problem.solution is not None
    assert problem.solution.termination is hc.Termination.CALL_LIMIT
    assert calls(problem) <= 30
    assert problem.solution.certificate.violation <= 1e-6
    assert x.value is not None
    clock.tick = 1.0
    problem.solve(time_limit=1e-9)  # over before the first evaluation: the start is what is left
    assert problem.solution.termination is hc.Termination.TIME_LIMIT
    assert problem.value is not None
    assert problem.status == "user_limit"
    assert x.value is not None


def test_interruption_returns_the_best_point_so_far() -> None:
    problem, _, _ = tank()

    def interrupt(record: hc.Record) -> None:
        if record.iteration == 20:
            raise KeyboardInterrupt

    problem.solve("sbl-adals", callback=interrupt)
    assert problem.status == "user_limit"
    assert problem.solution is not None
    assert problem.solution.termination is hc.Termination.INTERRUPTED
    assert np.isfinite(problem.value)


def test_a_callback_stops_by_returning_true() -> None:
    problem, _, _ = tank()
    problem.solve("hidden-newton", callback=lambda record: record.iteration >= 3)
    assert problem.solution is not None
    assert problem.solution.termination is hc.Termination.CALLBACK
    assert problem.solution.iterations == 3


def test_a_kinked_model_warns_with_a_method_for_smooth_rows() -> None:
    x = hc.Variable(2, name="x", bounds=(-1, 2))
    problem = hc.Problem(hc.Minimize(hc.norm(x - 1, 2)))
    with pytest.warns(hc.HCWarning, match="smooth rows"):
        problem.solve("sbl-adals", max_calls=200)


def test_kinks_that_rows_can_express_are_no_reason_to_warn() -> None:
    x = hc.Variable(2, name="x", bounds=(-1, 2))
    problem = hc.Problem(hc.Minimize(hc.norm(x - 1, 1)))
    assert problem.solve("sbl-adals") == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"method": "newton"}, "unknown method 'newton'"),
        ({"options": {"memry": 3}}, "options belong to a method"),
        ({"method": "sbl-adals", "options": {"memry": 3}}, "its options are: backend"),
        ({"method": "hidden-newton", "options": {"radius": "a"}}, "radius must be a positive"),
        ({"rule": "theory"}, "needs a method of the paper"),
        ({"constants": 3}, "constants is hc.Constants"),
        ({"constants": "estimate"}, "goes with rule='theory'"),
        ({"method": "sbl-star"}, "needs optimal_value"),
        ({"tol": 0.0}, "tol must be a positive number"),
        ({"max_calls": 0}, "max_calls must be a positive number"),
        ({"time_limit": -1}, "time_limit must be a positive number"),
        ({"engine": "jax"}, "unknown engine 'jax'"),
        ({"start": {"y": 1.0}}, "not a variable of the problem; there are: x"),
        ({"tol": "a"}, "tol must be a positive number"),
        ({"callback": 3}, "callback is a function"),
        ({"method": "sbl-adals", "options": {"memory": 0}}, "memory must be at least 1"),
        ({"method": "sbl-adals", "options": {"patience": "a"}}, "patience"),
        ({"method": "sbl-adals", "options": {"backend": "osqp"}}, "unknown QP backend"),
        ({"start": [1.0, 2.0]}, "start is a dict"),
        ({"optimal_value": np.nan}, "optimal_value must be a finite number"),
    ],
)
def test_wrong_requests_say_what_is_wrong(arguments: dict[str, object], words: str) -> None:
    problem, _, _ = tank()
    with pytest.raises(hc.ModelError, match=words):
        problem.solve(**arguments)  # type: ignore[arg-type]


def test_unknown_arguments_are_answered_by_close_ones_and_habits() -> None:
    x = hc.Variable(name="x", pos=True)
    objective = hc.Minimize(x + 1 / x)
    problem = hc.Problem(objective)
    for kind in (hc.ModelError, TypeError):
        with pytest.raises(kind, match=r"solve has no argument 'vebose'; did you mean `verbose`\?"):
            problem.solve(vebose=True)
    with pytest.raises(hc.ModelError, match=r"of hc\.Problem is the second argument, a list"):
        hc.Problem(objective, st=[x >= 2])
    with pytest.raises(hc.ModelError, match=r"its arguments are objective, constraints, hidden$"):
        hc.Problem(objective, colour=2)
    with pytest.raises(
        hc.ModelError, match=r"sweep has no argument 'exekutor'; did you mean `executor`\?"
    ):
        problem.sweep(starts=2, exekutor=2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'rule'"):
        problem.budget("sbl-star", 0.1, hc.Constants(), rule="theory")


def test_a_tolerance_below_rounding_is_refused() -> None:
    problem, _, _ = tank()
    with pytest.raises(hc.ModelError, match=r"below rounding.*take a tol of at least 1e-14"):
        problem.solve(tol=1e-15)
    with pytest.raises(hc.ModelError, match="below rounding"):
        problem.sweep(starts=2, tol=1e-15)
    problem.solve(tol=1e-14)
    assert problem.value == pytest.approx(5, abs=1e-9)


def test_wrong_data_say_what_is_wrong() -> None:
    problem, _, _ = tank()
    with pytest.raises(hc.DataError, match=r"shape \(3,\), but \(2,\) is needed"):
        problem.solve(start={"x": [1.0, 2.0, 3.0]})
    with pytest.raises(hc.DataError, match="not an array of numbers"):
        problem.solve(start={"x": "abc"})
    with pytest.raises(hc.DataError, match="not finite"):
        problem.solve(start={"x": [1.0, np.nan]})
    with pytest.raises(hc.DataError):
        hc.Parameter(name="p", value=np.nan)
    missing = hc.Parameter(name="missing")
    x = hc.Variable(name="x")
    with pytest.raises(hc.DataError, match="missing"):
        hc.Problem(hc.Minimize((x - missing) ** 2)).solve()


def test_wrong_models_say_what_is_wrong() -> None:
    x = hc.Variable(2, name="x", bounds=(0, 1))
    with pytest.raises(hc.ModelError, match=r"take hc\.sum"):
        hc.Minimize(x)
    with pytest.raises(hc.ModelError, match=r"hc\.Minimize"):
        hc.Problem(hc.sum(x))  # type: ignore[arg-type]
    with pytest.raises(hc.ModelError, match="not a constraint"):
        hc.Problem(hc.Minimize(hc.sum(x)), [True])  # type: ignore[list-item]
    with pytest.raises(hc.ModelError, match="no variables"):
        hc.Problem(hc.Minimize(3))
    with pytest.raises(hc.ModelError, match="two variables are named 'x'"):
        hc.Problem(hc.Minimize(hc.sum(x) + hc.sum(hc.Variable(2, name="x"))))
    with pytest.raises(hc.ModelError, match="two constraints are named 'a'"):
        hc.Problem(hc.Minimize(hc.sum(x)), [(x[0] >= 0).named("a"), (x[1] >= 0).named("a")])
    with pytest.raises(hc.ModelError, match="strict"):
        _ = x[0] < 1
    with pytest.raises(hc.ModelError, match="empty box"):
        hc.Variable(name="y", bounds=(2, 1))
    with pytest.raises(hc.ModelError, match="the model lacks"):
        hc.Problem(hc.Minimize(hc.sum(x)), hidden=[hc.Variable(name="z")])


def test_problems_and_solutions_pickle() -> None:
    problem, _, _ = tank()
    problem.solve()
    again = pickle.loads(pickle.dumps(problem))
    assert again.solution.value == problem.value
    assert again.solve() == pytest.approx(5, abs=1e-6)


def test_two_solves_are_the_same_to_the_last_bit() -> None:
    problem, _, _ = tank()
    first = problem.solve()
    trace = problem.solution.trace if problem.solution else ()
    assert problem.solve() == first
    assert problem.solution is not None
    assert [record.objective for record in problem.solution.trace][-5:] == [
        record.objective for record in trace
    ][-5:]


def test_a_solution_shows_itself(capsys: pytest.CaptureFixture[str]) -> None:
    problem, _, _ = tank()
    problem.solve(verbose=True)
    assert "method       auto: cone (proven convex in log(x))" in capsys.readouterr().out
    problem.solve("sbl-adals", verbose=True)
    printed = capsys.readouterr().out
    assert "method       sbl-adals\n" in printed
    assert "2 unknowns" in printed
    assert printed.count("descent") > 3
    assert problem.solution is not None
    assert "<table>" in problem.solution._repr_html_()
    data = problem.solution.to_json("tank")
    assert data["model"] == "tank"
    assert data["value"] == pytest.approx(5, abs=1e-6)
    assert data["variables"]["x"] == pytest.approx([2, 0.5], abs=1e-4)
    assert data["gap"] <= 1e-6
    assert data["oracle_calls"]["total"] == calls(problem)


def test_plot_writes_a_picture(tmp_path: object) -> None:
    pytest.importorskip("matplotlib")
    problem, _, _ = tank()
    problem.solve()
    assert problem.solution is not None
    path = f"{tmp_path}/trace.png"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # matplotlib's own
        problem.solution.plot(path)
    with open(path, "rb") as file:
        assert file.read(4) == b"\x89PNG"


def test_a_callable_that_cannot_be_traced_asks_for_its_gradient() -> None:
    x = hc.Variable(2, name="x", bounds=(-1, 2))
    plain = hc.function(lambda a: float(np.sum((a - 1) ** 2)), x)
    with pytest.raises(hc.ModelError, match="give its gradient as grad="):
        hc.Problem(hc.Minimize(plain)).solve()
    given = hc.function(lambda a: float(np.sum((a - 1) ** 2)), x, grad=lambda a: 2 * (a - 1))
    assert hc.Problem(hc.Minimize(given)).solve() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("write", "hint"),
    [
        (lambda: hc.Variable(4) * hc.Variable((4, 2)), r"each row needs the shape \(4, 1\)"),
        (lambda: hc.Variable((4, 2)) - hc.Variable(3), "or be 1$"),
        (lambda: np.ones(2) @ hc.Variable((1, 2)), r"as a column the vector needs .* \(2, 1\)"),
    ],
)
def test_shapes_that_do_not_fit_come_with_a_hint(write: Any, hint: str) -> None:
    with pytest.raises(hc.ModelError, match=hint):
        write()


def test_a_list_in_the_list_of_constraints_is_answered() -> None:
    x = hc.Variable(name="x")
    with pytest.raises(hc.ModelError, match=r"\[\*rows, another\]"):
        hc.Problem(hc.Minimize(x), [[x >= 1], x <= 2])


def test_declared_coordinates_without_a_value_inside_of_the_bounds_are_a_warning() -> None:
    x = hc.Variable(2, name="x", bounds=(-3, 3))
    problem = hc.Problem(hc.Minimize(hc.sum(x**2)), hidden=[hc.log(x)])
    with pytest.warns(hc.HCWarning, match=r"log\(x\) is not defined .* not at x = -2\.94"):
        problem.solve()
    y = hc.Variable(2, name="y", nonneg=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hc.Problem(hc.Minimize(hc.sum(y) + 1 / y[0]), hidden=[hc.log(y)]).solve()
