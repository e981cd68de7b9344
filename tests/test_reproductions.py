"""Models and calls that once ended in a wrong word, a lost point or a leaked exception, by their kind.

Each of them failed before it was fixed. Others stand beside the code that they belong to:
`tests/hcmodel/test_faults.py` (exceptions, Ctrl-C, limits, memory), `test_boundary.py` (nasty arguments),
`tests/hcmodel/frontend/test_data.py` (hostile files) and `tests/hcmodel/solving/test_claims.py`.
"""

from __future__ import annotations

import copy
import errno
import os
import pickle
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

import hcmodel as hc
from hcmodel.certify.minorants.norm_minorants import minorant_bound
from hcmodel.cli import main
from hcmodel.facts import expansion, symbols
from hcmodel.solvers.qp import clarabel_
from hcmodel.solvers.result import Termination
from hcmodel.solving import run
from hcmodel.solving.data_checks import undefined_at

EXAMPLES = Path(__file__).parents[1] / "examples"

# ---- wrong or missing words


def line(
    f: Callable[[Any], Any], low: float | None = None, high: float | None = None, **more: Any
) -> Any:
    """The problem of a function of one variable, solved."""
    x = hc.Variable(name="x", bounds=(low, high), start=more.pop("start", None))
    problem = hc.Problem(hc.Minimize(f(x)), [row(x) for row in more.pop("rows", ())], **more)
    problem.solve()
    return problem


def test_a_low_value_is_not_unbounded() -> None:
    problem = line(lambda x: x**2 - 1e12 * x)
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(-2.5e23)


def test_a_start_at_a_maximiser_is_left() -> None:
    problem = line(lambda x: x**4 - 1e9 * x**2, start=0.0)
    assert problem.value == pytest.approx(-2.5e17)  # at x² = 5e8


def test_a_slope_that_vanishes_far_out_is_no_minimum() -> None:
    problem = line(lambda x: hc.exp(x), start=-20.0)
    assert "no point attains the best value" in problem.solution.message


@pytest.mark.parametrize(
    ("f", "low", "place"),
    [
        (lambda x: x + 1 / x - 1e-9 / x**2, 0, "x -> 0"),
        (lambda x: (x - 0.5) ** 2 + 1e-3 * hc.log(x), 0, "x -> 0"),
        (lambda x: x**4 - 1e-9 * x**5, None, "x -> inf"),
    ],
)
def test_a_fall_behind_a_local_minimum_is_unbounded(f: Any, low: float | None, place: str) -> None:
    """The runs end in the local minimum; enclosures of single entries show what lies behind it."""
    problem = line(f, low, start=1.0)
    assert problem.status == "unbounded"
    assert problem.solution.message.endswith(f"along {place}")


def test_rounding_next_to_an_edge_is_not_a_pole() -> None:
    # (exp(x) − 1 − x)/x² approaches 1/2; below 1e-16 the computed value is −1/x
    problem = line(lambda x: (x - 2) ** 2 + (hc.exp(x) - 1 - x) / x**2, 0, 3, start=1.0)
    assert problem.status == "locally_optimal"


def test_a_valley_to_infinity_ends_after_some_hundred_steps_with_the_way() -> None:
    # 26 seconds and 11,000 iterations before
    x, y = hc.Variable(name="x"), hc.Variable(name="y")
    problem = hc.Problem(hc.Minimize(x**2 + (x * y - 1) ** 2))
    problem.solve(start={x: 0.001, y: 999.0})
    assert problem.solution.oracle_calls.points < 1000
    assert problem.status == "optimal_inaccurate"
    assert "no point attains the best value" in problem.solution.message
    assert "x -> 0" in problem.solution.message


def test_a_method_that_the_time_limit_stopped_is_named_where_the_next_one_stalls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A large PSD variable ended `optimal_inaccurate` at its start: the cone program took the time."""
    real, ends = run.minimize, [Termination.TIME_LIMIT]

    def stopped(*arguments: Any, **more: Any) -> Any:
        result = real(*arguments, **{**more, "max_calls": 2, "certified": None})
        ended = ends.pop() if ends else Termination.STALLED
        return replace(result, termination=ended, evaluation=start)

    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    problem = hc.Problem(hc.Minimize(x[0] * x[1] + 4 / x[0] + 1 / x[1]), [x[0] * x[1] <= 9])
    start = problem.forms().written.oracle().at(np.array([1.0, 1.0]))
    monkeypatch.setattr(run, "minimize", stopped)
    problem.solve(start={x: [1.0, 1.0]}, time_limit=1e6)
    assert not ends
    assert problem.status == "user_limit"
    assert problem.solution.termination is Termination.TIME_LIMIT
    assert problem.solution.message.startswith("the time limit stopped a method")


def test_the_largest_of_several_is_not_enclosed_by_comparisons_of_numpy() -> None:
    # a SystemError left numpy, which had asked an interval whether it is larger than another
    table, v = np.array([[1.0, 0.0], [0.0, 2.0]]), hc.Variable(2, name="v", bounds=(0.3, 2))
    q = hc.Variable(name="q", bounds=(1.5, 4))
    largest = hc.max(table * hc.reshape(v, (2, 1)), axis=0)
    problem = hc.Problem(hc.Maximize(hc.sum(largest) * q))
    problem.solve()
    assert problem.value == pytest.approx(24.0)  # (2 + 4) · 4


def test_rows_in_small_units_are_measured_in_them() -> None:
    problem = line(lambda x: x, 0, 1e-8, rows=[lambda x: x >= 1.5e-8])
    assert problem.status == "infeasible"


def test_a_narrow_well_is_never_proven_away() -> None:
    # exp(−1e6 (x − 0.7)²) was multiplied out to exp(−490,000) · …, which is 0: a proof of another model
    well = lambda x: -5 * hc.exp(-1e6 * (x - 0.7) ** 2) + x**2  # noqa: E731
    free = line(well, -1, 1)
    assert free.status == "locally_optimal"
    assert free.is_hidden_convex() is not True
    x = hc.Variable(name="x", bounds=(-1, 1))
    declared = hc.Problem(hc.Minimize(well(x)), hidden=[x])
    declared.solve()
    assert declared.status == "locally_optimal"
    assert declared.solution is not None
    assert "not convex in the declared coordinates" in declared.solution.message
    assert declared.solution.certificate.lower_bound is None


def test_a_constant_that_is_subtracted_bends_a_root() -> None:
    # √(x² − 1) is concave, and (x² − 1)/y is not convex: both were proven convex, as if 1 were added
    x = hc.Variable(name="x", bounds=(1.4, 3))
    y = hc.Variable(name="y", bounds=(1, 2))
    for expression in (hc.sqrt(x**2 - 1), (x**2 - 1) / y, hc.sqrt(x**2.5 - 2), (hc.exp(x) - 1) / y):
        assert not hc.Problem(hc.Minimize(expression)).forms().prove().proven, str(expression)
    for expression in (hc.sqrt(x**2 + 1), (x**2 + 1) / y):
        assert hc.Problem(hc.Minimize(expression)).forms().prove().proven, str(expression)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: hc.exp(100 * hc.log(x) - 800) + x,
        lambda x: (1e-200 * x) * (1e-200 * x**2) * 1e300,
        lambda x: (1e-200 * x) ** 2 + x,
    ],
)
def test_terms_whose_numbers_leave_the_range_are_kept(f: Any) -> None:
    # products of coefficients under 1e-308 are 0, and the term would be lost from model and proof
    problem = line(f, 0.5, 1e6)
    x = problem.variables[0]
    for value in (0.5, 1e3, 1e6):
        x.value = value
        own = float(problem.objective.expression.value)
        there = problem.forms().written.oracle().at(np.array([value]))
        assert there.objective == pytest.approx(own, rel=1e-12)


@pytest.mark.parametrize("scale", [1e-13, 1e-6])
def test_the_gap_of_a_tiny_optimum_is_small_beside_it(scale: float) -> None:
    problem = line(lambda x: scale * (x + 1 / x), 0.1, 10)
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(2 * scale, rel=1e-5)


@pytest.mark.parametrize(
    "f", [lambda x: 1 / (1 / x), lambda x: 5 / (3 + 1 / x), lambda x: hc.exp(-1 / x)]
)
def test_a_value_through_a_pole_is_not_a_value(f: Any) -> None:
    x = hc.Variable(name="x", bounds=(0, 0))
    problem = hc.Problem(hc.Minimize(f(x)))
    assert problem.solve() == np.inf
    assert problem.status == "infeasible"
    assert set(problem.solution.conflict) == {"x >= 0", "x <= 0"}
    assert "x must be not 0" in problem.solution.message


def test_the_dual_of_a_row_that_is_listed_twice_is_the_sum() -> None:
    x = hc.Variable(name="x", bounds=(0.1, 10))
    row = x >= 2
    hc.Problem(hc.Minimize(x**2), [row, row]).solve()
    assert row.dual_value == pytest.approx(4.0, rel=1e-5)  # the slope of x² at 2


def test_an_infimum_that_is_not_attained_is_said_in_words() -> None:
    x, y = hc.Variable(name="x", pos=True), hc.Variable(name="y", pos=True)
    problem = hc.Problem(hc.Minimize(1 / x + x / y), [x * y >= 1])
    problem.solve()
    assert problem.solution is not None
    assert "give these variables bounds" in problem.solution.message


@pytest.mark.filterwarnings("ignore:sbl-adals is made for smooth rows")
@pytest.mark.parametrize("method", ["sbl-adals", "prox-linear"])
def test_a_stationary_point_of_a_proven_model_is_certified_by_its_cone_program(method: str) -> None:
    # the multipliers at its kinks are not unique, and those of these methods left a gap of 0.15
    problem = hc.load(EXAMPLES / "cnls.hc")
    problem.solve(method)
    assert problem.status == "optimal"
    assert problem.solution is not None
    assert abs(problem.solution.certificate.gap or 1.0) <= 1e-6


def test_constants_of_ones_own_run_or_are_named() -> None:
    x = hc.Variable(name="x", bounds=(0.4, 3))
    problem = hc.Problem(hc.Minimize(x**2), [x <= 2], hidden=[x])
    known = hc.Constants(
        rho=2.0,
        L=6.0,
        G=6.0,
        mu_c=1.0,
        diameter_u=3.0,
        diameter_x=3.0,
        slater_gap=1.0,
        f1_upper=100.0,
    )
    try:
        problem.solve("sbl-adals", rule="theory", tol=0.1, constants=known, max_calls=200)
    except hc.ModelError as error:
        assert any(name in str(error) for name in ("f1_lower", "f2_lower", "multiplier", "mu_h"))  # noqa: PT017
    else:
        assert problem.solution is not None
        assert problem.solution.termination is not hc.Termination.BACKEND_FAILED


def test_numbers_that_overflow_in_a_fit_leave_no_foreign_message() -> None:
    problem = line(lambda x: 1 / hc.exp(1000 * x), 0, 2)
    assert problem.status == "optimal"
    assert problem.value <= 1e-9


def test_a_variable_that_leaves_the_model_with_a_map_has_a_value() -> None:
    # n + sin(q) is one coordinate, after which q is nowhere in the model: the adversary found a KeyError
    v = hc.Variable(2, name="v", bounds=(0.3, 2))
    q, n = hc.Variable(name="q", bounds=(1.5, 4)), hc.Variable(name="n", bounds=(-3, -0.5))
    problem = hc.Problem(hc.Minimize(hc.prod(v)), [hc.sin(q) + n >= -2.5])
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(0.09)  # 0.3 · 0.3
    assert 1.5 <= float(q.value) <= 4
    assert np.sin(q.value) + n.value >= -2.5 - 1e-6


def test_a_plant_that_needs_large_states_is_not_called_infeasible() -> None:
    # it was, "for coordinates up to 1e+03 in size": the covariance of the stabilised plant is 1e11
    A = np.array([[0.672, -11840.743, 92968.093], [0.0, 0.631, 8.423], [0.0, 0.028, 0.342]])
    B = np.array([[-232.0303], [0.088], [0.0018]])
    gain = -B.T @ scipy.linalg.solve_continuous_are(A, B, np.eye(3), np.eye(1))
    assert np.linalg.eigvals(A + B @ gain).real.max() < -0.1
    P, K = hc.Variable((3, 3), PSD=True), hc.Variable((1, 3))
    closed = A + B @ K
    cost = hc.trace((np.eye(3) + K.T @ K) @ P)
    problem = hc.Problem(hc.Minimize(cost), [closed @ P + P @ closed.T + np.eye(3) == 0])
    problem.solve(method="cone")
    assert problem.status != "infeasible"


# ---- sharing, threads, nesting


def shared() -> tuple[hc.Variable, Any, hc.Problem, hc.Problem]:
    x = hc.Variable(name="x", bounds=(0.1, 10))
    row = x >= 2
    return x, row, hc.Problem(hc.Minimize(x**2), [row]), hc.Problem(hc.Minimize(3 * x), [row])


def test_variables_and_rows_of_two_problems_have_the_values_of_the_last_solve() -> None:
    x, row, one, two = shared()
    one.solve()
    assert row.dual_value == pytest.approx(4.0, rel=1e-5)
    two.solve()
    assert row.dual_value == pytest.approx(3.0, rel=1e-5)
    assert x.value == pytest.approx(2.0)
    assert one.solution is not None
    assert one.solution.duals["c1"] == pytest.approx(4.0, rel=1e-5)  # a solution keeps its own


def test_a_solve_inside_a_callback_leaves_the_outer_one_alone() -> None:
    alone = hc.load(EXAMPLES / "tank.hc")
    alone.solve("sbl-adals")
    outer, inner = hc.load(EXAMPLES / "tank.hc"), hc.load(EXAMPLES / "cnls.hc")
    seen = []

    def nested(record: hc.Record) -> bool:
        if not seen:
            inner.solve(time_limit=60)
            seen.append(inner.status)
        return False

    outer.solve("sbl-adals", callback=nested)
    assert seen == ["optimal"]
    assert outer.value == alone.value
    assert outer.solution is not None
    assert alone.solution is not None
    assert outer.solution.oracle_calls == alone.solution.oracle_calls


def test_two_solves_in_threads_find_what_each_finds_alone() -> None:
    names = ("tank.hc", "cnls.hc")
    alone = [hc.load(EXAMPLES / name) for name in names]
    for problem in alone:
        problem.solve()
    both = [hc.load(EXAMPLES / name) for name in names]
    workers = [threading.Thread(target=problem.solve) for problem in both]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [problem.status for problem in both] == ["optimal", "optimal"]
    assert [problem.value for problem in both] == [problem.value for problem in alone]


def test_one_problem_in_two_threads_is_refused_in_words() -> None:
    x = hc.Variable(name="x", bounds=(0.1, 10))
    problem = hc.Problem(hc.Minimize(x + 1 / x))
    errors: list[BaseException] = []

    def again() -> None:
        try:
            problem.solve()
        except hc.HCError as error:
            errors.append(error)

    def during(record: hc.Record) -> bool:
        if not errors:
            worker = threading.Thread(target=again)
            worker.start()
            worker.join()
        return False

    problem.solve("sbl-adals", callback=during)
    assert problem.status == "optimal"
    assert "is being solved" in str(errors[0])
    again()  # afterwards it can be solved again
    assert len(errors) == 1


# ---- files


@pytest.mark.parametrize("operation", ["open", "chmod", "replace"])
def test_a_full_disk_names_the_file_and_leaves_the_old_one(
    operation: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model, output = tmp_path / "m.hc", tmp_path / "out.json"
    model.write_text("var x in [0.4, 3]\nminimize x + 1/x\n")
    output.write_text("{}")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, operation, full)
        assert main(["solve", str(model), "--output", str(output)]) == 1
    assert capsys.readouterr().err == f"{output}: No space left on device\n"
    assert output.read_text() == "{}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.hc", "out.json"]


# ---- starts that are too regular


@pytest.mark.parametrize("bounds", [{"pos": True}, {"bounds": (0.01, 10)}], ids=["pos", "box"])
def test_a_symmetric_start_does_not_end_a_feasible_model(bounds: dict[str, Any]) -> None:
    """r h = 1, r² + h² = 4 is solved by r² = 2 ± √3; every step from (1, 1) keeps r = h."""
    r, h = hc.Variable(name="r", **bounds), hc.Variable(name="h", **bounds)
    problem = hc.Problem(hc.Minimize(r + h), [r * h == 1, r**2 + h**2 == 4])
    problem.solve()
    assert problem.status == "locally_optimal"
    assert sorted([float(r.value), float(h.value)]) == pytest.approx(
        [np.sqrt(2 - np.sqrt(3)), np.sqrt(2 + np.sqrt(3))], rel=1e-6
    )


def test_other_starts_do_not_make_an_infeasible_model_feasible() -> None:
    r, h = hc.Variable(name="r", bounds=(0.1, 9)), hc.Variable(name="h", bounds=(0.1, 9))
    problem = hc.Problem(hc.Minimize(r + h), [r * h == 1, r**2 + h**2 == 1])  # r² + h² >= 2 r h
    problem.solve()
    assert problem.status in ("infeasible", "infeasible_inaccurate")


# ---- far out, and in small units


def test_rounding_next_to_a_far_minimum_is_no_path_to_infinity() -> None:
    """Values differ by their last digit there; it was said that no point attains the best one."""
    x, y = hc.Variable(name="x"), hc.Variable(name="y")
    problem = hc.Problem(hc.Minimize(x**2 + y**2 - 1e20 * (x + y)), [x + y >= 1])
    problem.solve()
    assert (problem.status, problem.value) == ("optimal", pytest.approx(-5e39))
    assert "attains" not in problem.solution.message


def test_a_least_square_in_tiny_units_without_rows() -> None:
    """A cone program without a single row was a ModelError about arrays to concatenate."""
    problem = line(lambda x: 1e-15 * (x - 1) ** 2 + 1e-15)
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(1e-15)


@pytest.mark.parametrize("low", [-2.0, -1.0])
def test_a_pole_at_0_is_one_from_both_sides(low: float) -> None:
    """There is always a number closer to 0: 1/x² ended `optimal_inaccurate` at 1e30."""
    x = hc.Variable(name="x", bounds=(low, 2))
    problem = hc.Problem(hc.Maximize(1 / x**2))
    problem.solve()
    assert problem.status == "unbounded"
    assert "a pole at x = 0" in problem.solution.message


def test_differences_lost_to_rounding_are_no_pole() -> None:
    """(eˣ − 1 − x)/x² is 1/2 at 0, and computed as −1/x next to it."""
    x = hc.Variable(name="x", bounds=(-0.9, 2), start=1e-17)
    problem = hc.Problem(hc.Minimize((hc.exp(x) - 1 - x) / x**2))
    problem.solve()
    assert problem.status != "unbounded"


def test_a_division_by_what_is_0_everywhere_is_said_in_words() -> None:
    """Multiplied out, kl_div(z, z) is 0, and its inverse no number that a map could work with."""
    z, n = hc.Variable(name="z", pos=True), hc.Variable(name="n", bounds=(0, 3))
    problem = hc.Problem(hc.Minimize(n), [n * n * (2 / hc.kl_div(z, z)) >= 0.1])
    problem.solve()
    assert problem.status == "infeasible"
    assert "is not defined anywhere: kl_div(z, z) must be not 0" in problem.solution.message


def test_a_model_of_which_nothing_is_left_in_its_coordinates() -> None:
    s = hc.Variable(3, name="s", bounds=([-1, 0.2, -2], [1, 2, -0.5]))
    problem = hc.Problem(hc.Minimize((s / s) @ np.array([1.0, -1.0, 0.5])))
    assert problem.solve() == 0.5
    assert problem.status == "optimal"


@pytest.mark.parametrize("shape", [(1,), (1, 1)])
def test_an_objective_with_one_entry_in_any_shape(shape: tuple[int, ...]) -> None:
    x = hc.Variable(3, name="x", nonneg=True)
    powers = hc.Problem(hc.Minimize(hc.reshape(x[0] ** 0.5 + (x[1] - x[2]) ** 2, shape)))
    assert powers.solve() == pytest.approx(0.0, abs=1e-8)
    y = hc.Variable(2, name="y", bounds=(0, 5))
    ratio = (y[0] + 2) / (y[0] + y[1] + 1)
    fraction = hc.Problem(hc.Minimize(hc.reshape(ratio, shape)), [hc.sum(y) <= 4])
    assert fraction.solve() == pytest.approx(0.4, rel=1e-6)
    assert fraction.status == "optimal"


@pytest.mark.parametrize("aim", [hc.Minimize, hc.Maximize])
def test_a_power_of_what_is_0_everywhere_is_said_in_words(aim: Any) -> None:
    w = hc.Variable(name="w")
    problem = hc.Problem(aim((w - w) ** (-0.5)))
    problem.solve()
    assert problem.status == "infeasible"
    assert "is not defined anywhere: w - w must be > 0" in problem.solution.message


def test_a_kink_of_what_has_no_value_names_no_variable_of_ours() -> None:
    n = hc.Variable(name="n", bounds=(-2, -0.5))
    problem = hc.Problem(hc.Minimize(hc.abs(hc.sqrt(n)) ** 0.5))
    problem.solve()
    assert problem.status == "infeasible"
    said = "sqrt(n) is not defined where n <= -0.5 holds: n must be >= 0"
    assert said in problem.solution.message


def test_the_price_of_a_row_at_a_kink_is_that_of_the_convex_program() -> None:
    """The least t with |x_i − 1| <= t and a·x <= cap is (Σa − cap)/Σ|a|; most gradients are wrong."""
    a = np.array([0.5, -1.0, 2.0, 0.25])
    x = hc.Variable(4, name="x")
    row = (a @ x <= -3).named("cap")
    problem = hc.Problem(hc.Minimize(hc.abs(hc.norm(x - 1, p="inf"))), [row])
    assert problem.solve() == pytest.approx((a.sum() + 3) / np.abs(a).sum())
    assert row.dual_value == pytest.approx(1 / np.abs(a).sum(), rel=1e-6)
    assert problem.solution.certificate.stationarity is None


def test_prices_of_rows_and_bounds_where_a_norm_is_0() -> None:
    """With y = 0 all of the row is carried by x: half of it by each entry, or 0.2 by one at its bound."""
    x, y = hc.Variable(2, name="x", bounds=(-5, [0.2, 5])), hc.Variable(2, name="y")
    row = (hc.sum(x) + hc.sum(y) >= 1).named("total")
    problem = hc.Problem(hc.Minimize(hc.norm(x) + 3 * hc.norm(y)), [row])
    best = np.array([0.2, 0.8]) / np.hypot(0.2, 0.8)  # the gradient of the norm of x
    assert problem.solve() == pytest.approx(np.hypot(0.2, 0.8))
    assert row.dual_value == pytest.approx(best[1], rel=1e-6)
    held = problem.solution.bound_duals["x"]
    assert held.upper == pytest.approx([best[1] - best[0], 0], abs=1e-6)
    assert held.lower == pytest.approx([0, 0])


def test_a_method_without_a_convex_program_claims_no_prices_at_a_kink() -> None:
    x = hc.Variable(2, name="x")
    row = hc.sum(x) >= 1
    problem = hc.Problem(hc.Minimize(hc.abs(hc.norm(x, p="inf"))), [row])
    problem.solve(method="hidden-bundle")
    assert problem.status == "optimal"
    assert row.dual_value is None


def test_systems_of_one_matrix_with_different_numbers_of_right_hand_sides() -> None:
    """solve(X, v) has one solution and inv(X) two: the map `adjoint` ended in a ValueError."""
    n, q = hc.Variable(name="n", bounds=(-2, -0.5)), hc.Variable(name="q")
    X = hc.Variable((2, 2), name="X", PSD=(0.5, 4))
    left = hc.quad_form(hc.hstack([n, n]), hc.inv(X)) <= 5.7
    below = -(hc.hstack([n, q]) @ hc.solve(X, hc.hstack([n, q])))
    problem = hc.Problem(hc.Minimize(-below), [left])
    assert problem.solve() == pytest.approx(0.25 / 4, rel=1e-5)
    nowhere = hc.Problem(hc.Minimize(hc.log(below)), [left])
    nowhere.solve(time_limit=10)
    assert nowhere.status == "infeasible"
    assert nowhere.solution is not None
    assert "must be > 0" in nowhere.solution.message


@pytest.mark.parametrize("method", ["auto", "cone"])
def test_a_row_of_norms_one_of_which_is_0_at_the_minimum(method: str) -> None:
    """With x = (0, 0, −½) the rest r of the fit has |2 Aᵀr| = (‖(3, 7)‖, 12), so that 12 is the price.

    A Newton step made the residual of one of many gradients at 0 smaller and left the row.
    """
    A = np.array([[-3.0, 2, 3], [1, -2, -3], [-3, -1, 3], [-2, 2, -3]])
    x = hc.Variable(3, name="x")
    row = (hc.norm(x[:2]) + hc.abs(x[2]) <= 0.5).named("budget")
    problem = hc.Problem(hc.Minimize(hc.sum_squares(A @ x - [-3.0, 0, -2, 3])), [row])
    assert problem.solve(method=method) == pytest.approx(7.0, rel=1e-6)
    assert problem.status == "optimal"
    assert x.value == pytest.approx([0, 0, -0.5], abs=1e-6)
    assert row.dual_value == pytest.approx(12.0, rel=1e-6)
    assert problem.solution.oracle_calls.points <= 5


def test_an_interior_point_method_begins_where_logarithms_are_defined() -> None:
    """The middle of the numbers is 0: its residuals were no numbers there, and so none was too large."""
    x = hc.Variable(3, name="x")
    rows = [hc.sum(x) <= 1, x[0] == 2 * x[1]]
    problem = hc.Problem(hc.Maximize(hc.sum(hc.log(x))), rows)
    problem.solve(method="interior-point")
    assert problem.status == "optimal"
    assert x.value == pytest.approx([4 / 9, 2 / 9, 1 / 3], rel=1e-6)
    assert rows[0].dual_value == pytest.approx(3.0, rel=1e-6)


def test_prices_of_a_determinant_are_as_accurate_as_its_value() -> None:
    """X⁻¹ = λ C + η (E₁₂ + E₂₁)/2 with λ = 2 and X₁₂ = 0: so η = −2 λ C₁₂, up to its sign."""
    X, C = hc.Variable((2, 2), name="X", symmetric=True), np.array([[3.0, 0.7], [0.7, 1.0]])
    rows = [hc.trace(C @ X) <= 1, X[0, 1] == 0]
    problem = hc.Problem(hc.Maximize(hc.logdet(X)), rows)
    problem.solve(tol=1e-8)
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(-np.log(12), rel=1e-8)
    assert rows[0].dual_value == pytest.approx(2.0, rel=1e-6)
    assert abs(rows[1].dual_value) == pytest.approx(2 * 2 * 0.7, rel=1e-6)


@pytest.mark.parametrize("method", ["hidden-newton", "interior-point", "prox-linear"])
def test_no_bound_rests_on_the_slope_of_a_geometric_mean_at_0(method: str) -> None:
    """The slope was 0 where the mean is 0, and a tangent with it called the worst point optimal."""
    x = hc.Variable(5, name="x")
    rows = [np.arange(1, 6) @ x <= 3, x[0] >= 0.4]
    problem = hc.Problem(hc.Maximize(hc.geo_mean(x)), rows)
    problem.solve(method=method)
    assert problem.status == "optimal"
    assert x.value == pytest.approx(3 / (5 * np.arange(1, 6)), rel=1e-5)


def test_a_bound_at_a_vanishing_norm_is_one_of_the_objective_and_not_of_what_is_inside() -> None:
    """g + w is at least 1, and −(2/(g + w))^1.5 at least −2^1.5; its bound was said to be 1."""
    g, w = hc.Variable(name="g", nonneg=True), hc.Variable(name="w", bounds=(1, 2))
    row = hc.norm(hc.hstack([g, hc.Variable(name="f")])) <= 1
    problem = hc.Problem(hc.Maximize((2 / (g + w)) ** 1.5), [row])
    form = problem.forms().hidden()
    assert form is not None
    bound = minorant_bound(form, 1e-6, 10.0)
    assert bound is not None
    assert bound.value == pytest.approx(-(2**1.5), rel=1e-6)
    assert bound.value <= -(2**1.5)


def test_a_pole_behind_a_row_with_a_norm_is_unbounded() -> None:
    g, w = hc.Variable(name="g", pos=True), hc.Variable(name="w", bounds=(0, 2))
    f = hc.Variable(name="f")
    row = hc.sqrt(g**2 + hc.square(f)) <= 1
    problem = hc.Problem(hc.Maximize((2 / (g + w)) ** 1.5), [row])
    problem.solve(max_calls=2000)
    assert problem.status == "unbounded"
    assert problem.solution.certificate.lower_bound is None


def test_all_entries_of_an_array_lie_in_the_domain_of_a_function_of_it() -> None:
    """sqrt(x)[1] asks for x[0] >= 0 too, for every method: some looked at the entry that is used only."""
    x = hc.Variable(2, name="x", bounds=(-1, 2))
    problem = hc.Problem(hc.Minimize(hc.sum(x)), [hc.sqrt(x)[1] >= 0.5])
    assert problem.solve() == pytest.approx(0.25, abs=1e-6)
    assert problem.status == "optimal"
    wrong = undefined_at(problem.model, np.array([-1.0, 0.25]))
    assert wrong is not None
    assert "the argument of 'sqrt', x, must be >= 0" in wrong
    assert undefined_at(problem.model, np.array([0.1, 0.25])) is None
    problem.solve(method="hidden-newton")  # which finds (−1, ¼), or stops at the edge
    assert (problem.status, float(np.sum(x.value)) < 0.24) != ("optimal", True)
    alone = hc.Problem(hc.Minimize(hc.sum(x)), [hc.sqrt(x[1]) >= 0.5])
    assert alone.solve(method="hidden-newton") == pytest.approx(-0.75)


def test_a_map_that_takes_the_root_of_a_negative_number_is_left_out() -> None:
    """√(n/n) is 1 for n < 0 too, but not √n / √n: the search ended in "a constant has a NaN"."""
    w, n = hc.Variable(name="w", bounds=(0, 2)), hc.Variable(name="n", bounds=(-3, -0.5))
    problem = hc.Problem(hc.Minimize(-hc.softplus(w) * hc.sqrt(n / n)), [hc.maximum(n, n) <= -1])
    assert problem.solve() == pytest.approx(-np.log(1 + np.exp(2)))
    assert not any("NaN" in each for each in problem.forms().discovery.near_misses)


def test_a_bound_that_a_feasible_point_refutes_is_dropped() -> None:
    """√(−f) at f = −1e100 is beyond what a bound with rounding of that size said."""
    f, n = hc.Variable(name="f"), hc.Variable(name="n", bounds=(-3, -0.5))
    w = hc.Variable(name="w", bounds=(0, 2))
    problem = hc.Problem(hc.Maximize(hc.sqrt(-f)), [n * w <= -0.390043])
    problem.solve(max_calls=2000)
    assert problem.status == "unbounded"
    assert problem.solution.certificate.lower_bound is None


# ---- copies, files and matrices of one entry


def fraction() -> Any:
    """A ratio that the catalogue proves; its minimum is 1/2, at 0."""
    x = hc.Variable(2, name="x", bounds=(0, 1))
    weights = np.array([1.0, 0.5])
    return hc.Problem(hc.Minimize((x @ weights + 1) / (x @ weights[::-1] + 2)))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
@pytest.mark.parametrize("solved", [False, True])
def test_a_copy_of_a_problem_is_solved_like_the_problem(copied: Any, solved: bool) -> None:
    """Lists of nodes were copied beside the expressions that they list: maps of the catalogue ended in a
    `KeyError`, and pickles grew with the square of the model."""
    problem = fraction()
    if solved:
        problem.solve()
    again = copied(problem)
    assert again.solve() == pytest.approx(0.5)
    assert again.status == "optimal"
    assert again["x"] is not problem["x"]


def test_a_pickle_grows_with_the_model() -> None:
    def size(terms: int) -> int:
        x = hc.Variable(name="x", bounds=(0, 1))
        return len(pickle.dumps(hc.Problem(hc.Minimize(sum(hc.exp(x + i) for i in range(terms))))))

    assert size(80) < 3 * size(40)


def test_reductions_to_one_number_are_written_as_formulas(tmp_path: Path) -> None:
    """logsumexp, norms and products of all entries ended in a `TypeError` beside another term."""
    x = hc.Variable(2, name="x", bounds=(-1, 2))
    for part in (hc.logsumexp(x), hc.norm(x), hc.max(x), hc.sum(hc.prod(x + 3))):
        problem = hc.Problem(hc.Minimize(part + hc.sum_squares(x - 0.5)))
        problem.write(tmp_path / "model.mof.json")
        assert hc.read(tmp_path / "model.mof.json").solve() == pytest.approx(problem.solve())


def test_a_matrix_of_one_entry_is_symmetric() -> None:
    """The regulator of one state: `(A + B K) P (A + B K)ᵀ + W << P` was refused as not symmetric."""
    a, b, w = np.array([[1.5]]), np.array([[0.5]]), np.array([[2.0]])
    P, K = hc.Variable((1, 1), name="P", PSD=True), hc.Variable((1, 1), name="K")
    closed = a + b @ K
    cost = hc.trace((np.eye(1) + K.T @ K) @ P)
    problem = hc.Problem(hc.Minimize(cost), [closed @ P @ closed.T + w << P])
    riccati = scipy.linalg.solve_discrete_are(a, b, np.eye(1), np.eye(1))
    assert problem.solve() == pytest.approx(2.0 * riccati[0, 0])
    assert problem.status == "optimal"


def test_a_matrix_of_one_entry_is_symmetric_as_a_block() -> None:
    """H∞ control of one state: the block (A + B K) P + P (A + B K)ᵀ was not known to be symmetric."""
    P, K = hc.Variable((1, 1), name="P", PSD=(1e-4, 1e2)), hc.Variable((1, 1), name="K")
    gain = hc.Variable(name="gain", nonneg=True)
    F, G = (
        (1.0 + np.array([[2.0]]) @ K) @ P,
        np.array([[1.0], [0.0]]) @ P + np.array([[0.0], [1.0]]) @ K @ P,
    )
    one, zero = np.eye(1), np.zeros((1, 2))
    blocks = [[F + F.T, one, G.T], [one, -gain * one, zero], [G, zero.T, -gain * np.eye(2)]]
    problem = hc.Problem(hc.Minimize(gain), [hc.bmat(blocks) << 0])
    problem.solve()
    assert problem.status == "optimal"
    # √(1 + K²) / |1 + 2 K| falls to 1/2 as K goes to −∞, from which the least P keeps a little
    assert problem.value == pytest.approx(0.5, rel=1e-3)


# ---- what is said of a point beside its status


def test_a_vertex_of_a_simplex_is_attained() -> None:
    """The message had it that no point attains the value, along "pol[0, 1] -> inf"; so for boxes."""
    rng = np.random.default_rng([1, 9])
    moves, cost = rng.dirichlet(np.ones(3), size=(2, 2))[:, :, :2], rng.uniform(size=(2, 2))
    policy = hc.Variable((2, 2), name="policy", simplex=True)
    visits = hc.solve(np.eye(2) - hc.einsum("sa,sat->st", policy, moves).T, np.array([1.0, 0.0]))
    total = hc.sum(cost * (visits[:, None] * policy)) + 0.01 * hc.sum(policy[0] * policy[1])
    problem = hc.Problem(hc.Minimize(total))
    problem.solve()
    assert problem.status == "locally_optimal"
    assert "attains" not in problem.solution.message
    positive = hc.Variable(2, name="positive", pos=True)
    valley = hc.Problem(hc.Minimize(positive[0] + (positive[0] * positive[1] - 1) ** 2))
    valley.solve()
    assert "no point attains the best value" in valley.solution.message


def test_a_shortest_path_with_a_state_that_can_be_kept_for_ever_is_proven() -> None:
    """The second action of a state stays there: no policy that ends chooses it, but its column is 0."""
    stay = np.zeros((2, 2, 2))
    stay[0, 0, 1] = (
        0.5  # the first action of state 0 ends half of the time, else goes on to state 1
    )
    stay[1, 0, 0] = 0.25
    stay[0, 1, 0] = stay[1, 1, 1] = 1.0
    policy = hc.Variable((2, 2), name="policy", simplex=True)
    visits = hc.solve(np.eye(2) - hc.einsum("sa,sat->st", policy, stay).T, np.array([1.0, 0.0]))
    problem = hc.Problem(hc.Minimize(hc.sum(visits)))
    assert problem.solve() == pytest.approx(1.5 / (1 - 0.125))  # d = (1, 1/2)/(1 − 1/8)
    assert problem.status == "optimal"


def test_no_bound_lies_above_a_point_of_the_model() -> None:
    """10⁷ (1.56 − x)² has terms of 10⁷ when it is multiplied out: the bound was 7e-9, at a value of 0."""
    x = hc.Variable(2, name="x")
    problem = hc.Problem(
        hc.Minimize(1e7 * (64.3259 * (x[1] - x[0] ** 2) ** 2 + (1.5643525634975974 - x[0]) ** 2))
    )
    for start in ([0.0, 0.0], [1.5643525634975974, 1.5643525634975974**2]):
        problem.solve(start={x: start})
        bound = problem.solution.certificate.lower_bound
        assert bound is not None
        assert bound <= min(problem.value, 0.0)


class PanicException(BaseException):
    """By the name of what a panic of Rust code raises in Python, which is no `Exception`."""


@pytest.mark.parametrize("method", ["auto", "cone", "hidden-newton"])
def test_a_panic_inside_of_clarabel_is_no_end_of_the_program(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A badly scaled regulator ended in "Eigval error: Eigen(1)", with no status and no point."""

    class Panics:
        def __init__(self, *_: Any) -> None: ...

        def solve(self) -> None:
            raise PanicException("Eigval error: Eigen(1)")

    X = hc.Variable((2, 2), name="X", PSD=True)
    weights = np.array([[1.0, 0.5], [0.5, -1.0]])
    problem = hc.Problem(hc.Minimize(hc.trace(weights @ X)), [hc.trace(X) == 1])
    with monkeypatch.context() as patched:
        patched.setattr(clarabel_.clarabel, "DefaultSolver", Panics)
        problem.solve(method=method, max_calls=100)
        assert problem.solution.value is not None
        assert problem.status != "infeasible"
    assert problem.solve(method=method) == pytest.approx(-np.sqrt(1.25))
    assert problem.status == "optimal"


def test_the_search_for_coordinates_takes_no_pass_over_all_terms_for_each_unknown() -> None:
    """A Sharpe ratio of 800 assets, with 320,000 terms, took 13 s at a time limit of 2 s."""

    def passes(assets: int) -> int:
        weights = hc.Variable(assets, name="weights", simplex=True)
        spread = np.add.outer(np.arange(assets), np.arange(assets)) % 7 + 9.0 * assets * np.eye(
            assets
        )
        ratio = weights @ np.arange(1.0, assets + 1) / hc.sqrt(hc.quad_form(weights, spread))
        forms, sums = hc.Problem(hc.Maximize(ratio)).forms(), 0

        def counted(frame: Any, event: str, called: Any) -> None:
            nonlocal sums
            sums += event == "c_call" and called.__name__ == "reduce"

        sys.setprofile(counted)
        try:
            assert forms.discovery.proof is not None
        finally:
            sys.setprofile(None)
        return sums

    passes(10)  # what is imported and made once
    counts = passes(60), passes(20)
    assert counts[0] - counts[1] < 40, counts


def test_time_is_looked_at_between_the_functions_of_an_array(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """14,400 ratios w_i / (w_i + w_j) took 1.6 s before the deadline was asked for again."""
    w = hc.Variable(20, name="w", bounds=(0, 1))
    ratios = w[:, None] / (w[:, None] + w[None, :])
    looks: list[None] = []
    monkeypatch.setattr(symbols, "check_time", lambda: looks.append(None))
    expansion.expand([hc.sum(ratios)])
    assert len(looks) >= 20 * 21 / 2  # one for each sum w_i + w_j


def test_a_product_is_not_taken_for_a_logarithm():
    """The key of a product was looked up as a symbol, and gave a variable of another map."""
    f, g, n = (hc.Variable(name=name) for name in "fgn")
    s = hc.Variable(2, name="s")
    rows = [hc.logsumexp(s) * hc.sin(g) <= -0.110182, g * n <= -1.37269]
    problem = hc.Problem(hc.Minimize(hc.sqrt(f - g)), rows)
    assert [each.map for each in problem.forms().discovery.obstacles] == []
    problem.solve(max_calls=200)
    assert problem.status == "user_limit"


def _conflict(bounds: Any, rows: Callable[[Any], list[Any]]) -> tuple[str, ...]:
    x = hc.Variable(2, name="x", bounds=bounds)
    problem = hc.Problem(hc.Minimize(hc.sum(x)), rows(x))
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution is not None
    return problem.solution.conflict


@pytest.mark.parametrize(
    ("bounds", "rows", "expected"),
    [
        ((0, None), lambda x: [x[1] <= 0, x[0] + x[1] <= -1], ("c2", "x[0] >= 0", "x[1] >= 0")),
        ((1, 10), lambda x: [x[1] <= 1, x[0] * x[1] <= 0.5], ("c2", "x[0] >= 1", "x[1] >= 1")),
        (
            (None, None),
            lambda x: [x[1] <= 0, x[1] >= 0, x[0] >= 0, x[0] + x[1] <= -1],
            ("c2", "c3", "c4"),
        ),
    ],
)
def test_of_equal_bounds_a_conflict_names_the_one_that_counts(
    bounds: Any, rows: Any, expected: tuple[str, ...]
) -> None:
    """A row and a bound that fix an entry together were one part, named by the first of the two."""
    assert _conflict(bounds, rows) == expected


@pytest.mark.parametrize("unit", [1e-7, 1e5, 1e7])
def test_conflicts_do_not_depend_on_units(unit: float) -> None:
    found = _conflict((unit, 100 * unit), lambda x: [hc.sum(x) <= 1.5 * unit])
    assert [name.split(" ")[:2] for name in found] == [["c1"], ["x[0]", ">="], ["x[1]", ">="]]


def test_a_denominator_between_two_equal_numbers() -> None:
    """1/D had a lower bound above the upper one by rounding, which ended as an error of a variable t."""
    a, c = np.array([1.437192961606916, 1.6600958679498137]), 2.950936471753843
    x = hc.Variable(2, name="x", nonneg=True)
    problem = hc.Problem(hc.Minimize((x[0] + 1) / (a @ x)), [a @ x <= c, a @ x >= c])
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(1 / c, rel=1e-7)


def test_a_denominator_that_cancels_to_a_number() -> None:
    """The search for what rows imply had a linear program without unknowns."""
    x, y = hc.Variable(name="x", bounds=(1, 6)), hc.Variable(name="y", bounds=(0, 4))
    problem = hc.Problem(hc.Minimize(x**2 / (x - x + 1) + hc.sigmoid(x + 3 * y)))
    problem.solve()
    assert problem.value == pytest.approx(1 + 1 / (1 + np.exp(-1)))


def test_a_sparse_row_without_entries_beside_others() -> None:
    x = hc.Variable(3, name="x", bounds=(-1, 2))
    none = scipy.sparse.csr_array((0, 3)) @ x <= np.zeros(0)
    problem = hc.Problem(hc.Minimize(hc.sum(x)), [none, x[0] >= 0])
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(-2)


def test_fractions_beyond_all_numbers_end_no_solve() -> None:
    text = """
var x[3] > 0
minimize 1 * (x[3] / 1e+71)^(-0.5) / (0.5 * (x[1] / 1e+95)^1.3 * (x[3] / 1e+71)^(-1))
subject to
    0.1 * (x[3] / 1e+71)^0.5 * (x[2] / 1e+97)^(-2) <= 0.5 * (x[1] / 1e+95)^1
    3 * (x[3] / 1e+71)^1 <= 10
    1 * (x[3] / 1e+71)^1.3 * (x[2] / 1e+97)^1 * (x[1] / 1e+95)^1.3 == 2
"""
    problem = hc.parse(text)
    problem.solve()  # it ended in an OverflowError
    assert problem.status not in ("infeasible", "unbounded")


@pytest.mark.parametrize("base", [2.0, 0.5])
def test_a_power_of_a_number_is_no_power_of_a_variable(base: float) -> None:
    """k^z was read as a number to the power 0, that is 1: the row seemed to ask for 1 + … <= 0.78."""
    f, z = hc.Variable(name="f"), hc.Variable(name="z")
    size = hc.sqrt(hc.square(base**z) + hc.square(hc.log1p(f)))
    problem = hc.Problem(hc.Minimize((f - 1) ** 2 + (z - 1) ** 2), [size <= 0.883393])
    problem.solve()
    assert problem.status in ("optimal", "locally_optimal")
    assert problem.solution is not None
    assert problem.solution.certificate.violation <= 1e-6
    found, known = expansion.expand([base**z, z**3], 4)
    (one,) = found[0].symbols_used().tolist()
    assert known.power(one)[1] == 1.0
    assert known.power(one)[0].equals(found[0])
