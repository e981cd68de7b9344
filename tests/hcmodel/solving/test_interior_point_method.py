"""`method="interior-point"`: proven models as one smooth convex program, judged by their functions."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.reductions.reduction import Refusal
from hcmodel.solvers.second_order import interior_point_method
from hcmodel.solvers.second_order.interior_point import SmoothConvexProgram
from tests.problems.examples import loaded
from tests.problems.library import GEOMETRIC_PROGRAMS, geometric_program
from tests.problems.smooth_programs import CBLIB, HERE

PROVEN = (
    *("box_volume", "cantilever", "gate_sizing", "hyperbola", "kelly", "mixed"),
    *("posynomial", "power_control", "tank", "transformer", "water_tank"),
)


def convex(problem: hc.Problem) -> SmoothConvexProgram:
    form = problem.forms().hidden()
    assert form is not None
    found = form.convex
    assert not isinstance(found, Refusal), found
    return found.program


def tank() -> tuple[hc.Problem, hc.Variable]:
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    area = (x[0] * x[1] <= 1).named("area")
    return hc.Problem(hc.Minimize(x[0] * x[1] + 4 / x[0] + 1 / x[1]), [area]), x


@pytest.mark.parametrize("name", GEOMETRIC_PROGRAMS)
def test_geometric_programs_are_certified_at_two_points(name: str) -> None:
    problem, optimum = geometric_program(name)
    problem.solve("interior-point", tol=1e-8)
    solution = problem.solution
    assert solution.status == "optimal"
    assert problem.value == pytest.approx(optimum, rel=1e-7)
    assert solution.certificate.gap <= 1e-8 * abs(problem.value) + 1e-11
    assert solution.oracle_calls.points <= 2
    assert not convex(problem).smooth  # all of it is posynomials


@pytest.mark.parametrize("name", PROVEN)
def test_values_and_duals_are_those_of_cone(name: str) -> None:
    problem = loaded(name)
    problem.solve("interior-point", tol=1e-8)
    assert problem.status == "optimal"
    value, duals = problem.value, dict(problem.solution.duals)
    problem.solve("cone", tol=1e-8)
    assert value == pytest.approx(problem.value, rel=1e-7)
    scale = max((float(np.nanmax(np.abs(each), initial=0)) for each in duals.values()), default=1)
    for key, dual in problem.solution.duals.items():
        np.testing.assert_allclose(duals[key], dual, atol=1e-5 * max(scale, 1.0))


def cblib(name: str) -> hc.Problem:
    """A problem of CBLIB in arrays: minimise a monomial, posynomials <= 1."""
    data = json.loads(gzip.decompress((HERE / "cblib" / f"{name}.json.gz").read_bytes()))
    size, count = data["variables"], len(data["offset"])
    exponents, sums, powers = (
        np.zeros((count, size)),
        np.zeros((data["rows"], count)),
        np.zeros(size),
    )
    terms = np.repeat(np.arange(count), np.diff(data["start"]))
    np.add.at(exponents, (terms, data["variable"]), data["exponent"])
    sums[data["row"], np.arange(count)] = 1.0
    for variable, power in data["objective"].items():
        powers[int(variable)] = power
    x = hc.Variable(size, name="x", pos=True)
    rows = sums @ hc.exp(exponents @ hc.log(x) + np.array(data["offset"])) <= 1
    objective = np.exp(data["constant"]) * hc.exp(powers @ hc.log(x))
    return hc.Problem(hc.Minimize(objective), [rows.named("rows")])


# Without the largest three, for time, and the infeasible one.
SOLVED = sorted(set(CBLIB) - {"isil01", "cx02-100", "gp_dave_2", "mra01"})
# What is said of logarithms without bounds where a proof needs it.
DOUBLES = "variables without bounds are between e^-700 and e^700"


@pytest.mark.parametrize("method", ["cone", "interior-point"])
@pytest.mark.parametrize("name", SOLVED)
def test_cblib(name: str, method: str) -> None:
    """Clarabel's point of varun has logarithms above 300, where powers are no numbers."""
    problem = cblib(name)
    problem.solve(method, tol=1e-8)
    assert problem.status == "optimal"
    assert np.log(problem.value) == pytest.approx(CBLIB[name], abs=1e-7)


def test_bounds_that_hold_for_doubles_only_say_so() -> None:
    """The slope of varun's Lagrangian is 0 but for rounding, which proves nothing of all x > 0."""
    problem = cblib("varun")
    problem.solve("interior-point", tol=1e-8)
    assert DOUBLES in problem.solution.certificate.conditions
    # 1e-8 of its value of 6e-11 is less than the status asks for; the bound is good to 1e-6 at least
    assert problem.solution.certificate.gap <= 1e-6 * problem.value
    bounded, _ = tank()
    bounded.solve("interior-point")
    assert DOUBLES not in bounded.solution.certificate.conditions


def test_the_infeasible_problem_of_cblib() -> None:
    problem = cblib("isil01")
    problem.solve("interior-point", tol=1e-8)
    assert problem.status == "infeasible"
    assert problem.solution.conflict
    assert problem.solution.certificate.conditions == ("proven convex in log(x)",)


def test_rows_between_posynomials_and_monomials_are_logarithms() -> None:
    """demb761 has coefficients of 1e±70; as plain sums its rows take three times the iterations."""
    problem = cblib("demb761")
    program = convex(problem)
    assert program.log_sums is not None
    assert program.sums is None
    problem.solve("interior-point", tol=1e-8)
    assert problem.solution.iterations <= 25


def test_multipliers_are_those_of_the_rows_as_written() -> None:
    """x y + 4/x + 1/y with 3 x y <= 3 c: dF/dc is the multiplier times 3, of either side's scale."""
    x = hc.Variable(2, name="x", bounds=(0.1, 10))
    cap = hc.Parameter(name="cap", value=1.0, pos=True)
    row = (3 * x[0] * x[1] <= 3 * cap).named("row")
    problem = hc.Problem(hc.Minimize(x[0] * x[1] + 4 / x[0] + 1 / x[1]), [row])
    problem.solve("interior-point", tol=1e-8)
    dual = float(problem.solution.duals["row"])
    step = 1e-4
    values = []
    for value in (1 - step, 1 + step):
        cap.value = value
        values.append(problem.solve("interior-point", tol=1e-8))
    assert problem.compilations == 1
    assert 3 * dual == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-5)


def test_functions_that_are_no_posynomials_enter_with_their_derivatives() -> None:
    """Variables with and without logarithms; exp, entropy and a sum of both kinds."""
    x = hc.Variable(2, name="x", bounds=(0.1, 10))
    y = hc.Variable(2, name="y", bounds=(0.1, 3))
    objective = hc.sum(1 / x) + hc.sum(hc.exp(-y)) - hc.sum(hc.entr(y))
    rows = [(x[0] * x[1] + 0.1 * x[0] <= 2).named("product"), (hc.sum(y) == 2).named("total")]
    problem = hc.Problem(hc.Minimize(objective), rows)
    problem.solve("interior-point", tol=1e-8)
    assert problem.status == "optimal"
    assert convex(problem).smooth
    value, duals = problem.value, dict(problem.solution.duals)
    problem.solve("hidden-newton", tol=1e-8)
    assert value == pytest.approx(problem.value, rel=1e-8)
    for name, dual in problem.solution.duals.items():
        np.testing.assert_allclose(duals[name], dual, atol=1e-5)


def test_a_smooth_row_and_a_maximised_monomial() -> None:
    x = hc.Variable(2, name="x", bounds=(0.1, 10))
    problem = hc.Problem(hc.Maximize(x[0] * x[1] ** 2), [hc.sum(hc.exp(x)) <= 12])
    problem.solve("interior-point", tol=1e-8)
    assert problem.status == "optimal"
    value = problem.value
    assert value == pytest.approx(problem.solve("cone", tol=1e-8), rel=1e-7)


def test_simplices_are_equalities_and_bounds() -> None:
    p = hc.Variable((2, 3), name="p", simplex=True)
    cost = np.array([[1.0, 2.0, 4.0], [3.0, 1.0, 2.0]])
    problem = hc.Problem(hc.Minimize(hc.sum(cost * p) - hc.sum(hc.entr(p))))
    problem.solve("interior-point", tol=1e-8)
    # p is proportional to exp(−cost) in each row
    expected = -np.log(np.exp(-cost).sum(axis=1)).sum()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(expected, rel=1e-8)


def test_rows_that_contradict_each_other_are_named() -> None:
    x = hc.Variable(3, name="x", bounds=(1e-3, 1e3))
    rows = [
        (hc.prod(x) >= 1000).named("product"),
        (hc.sum(x) <= 20).named("total"),
        (x[0] * x[1] <= 1e5).named("harmless"),
    ]
    problem = hc.Problem(hc.Minimize(x[0] / x[1]), rows)
    problem.solve("interior-point")
    assert problem.status == "infeasible"
    assert set(problem.solution.conflict) == {"product", "total"}


def test_variables_without_bounds_that_are_no_logarithms_may_be_large() -> None:
    """x[1] has to be at least 1e50, and is its own coordinate: |u| <= 700 would exclude that."""
    x = hc.Variable(2, name="x", pos=True)
    problem = hc.Problem(hc.Minimize(x[0]), [x[0] * x[1] >= 1, x[0] <= 1e-50])
    problem.solve("interior-point")
    assert not problem.status.startswith("infeasible")
    y = hc.Variable(name="y")
    far = hc.Problem(hc.Minimize(hc.exp(y / 1000)), [y >= 1000])
    far.solve("interior-point", tol=1e-8)
    assert far.status == "optimal"
    assert far.value == pytest.approx(np.e, rel=1e-8)


def test_out_of_time_the_point_is_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def stopped(program: object, options: object, deadline: object) -> object:
        asked.append(deadline())  # type: ignore[operator]
        return original(program, options, lambda: -1.0)

    original = interior_point_method.solve
    monkeypatch.setattr(interior_point_method, "solve", stopped)
    problem, _ = tank()
    problem.solve("interior-point", time_limit=1e3)
    assert 0 < asked[0] <= 1e3
    assert problem.status == "user_limit"


def test_models_that_do_not_fit_are_refused_with_the_reason() -> None:
    y = hc.Variable(name="y", bounds=(-2, 2))
    with pytest.raises(hc.NotHiddenConvexError, match=r"none are known.*method='auto'"):
        hc.Problem(hc.Minimize(hc.sin(3 * y) + y**2)).solve("interior-point")
    P = hc.Variable((2, 2), name="P", PSD=True)
    with pytest.raises(hc.ModelError, match="matrix variable is definite"):
        hc.Problem(hc.Minimize(hc.trace(P) - hc.logdet(P))).solve("interior-point")
    x = hc.Variable(2, name="x", bounds=(-2, 2))
    with pytest.raises(hc.ModelError, match=r"kinks that no linear row expresses.*'auto'"):
        hc.Problem(hc.Minimize(hc.norm(x - 1) + hc.sum(x))).solve("interior-point")
    problem, _ = tank()
    with pytest.raises(hc.ModelError, match="has no option 'backend'"):
        problem.solve("interior-point", options={"backend": "clarabel"})


def test_the_gap_of_many_rows_does_not_halve_to_its_end() -> None:
    """A chain with 12,000 rows and bounds: 11 iterations, and 13 where each product is aimed at alone."""
    size = 4000
    weights = np.exp(0.3 * np.random.default_rng(size).normal(size=size))
    x = hc.Variable(size, bounds=(0.1, 10))
    rows = [x[1:] * x[:-1] + 0.1 * x[1:] <= 1]
    problem = hc.Problem(hc.Minimize(hc.sum(weights / x)), rows)
    problem.solve("interior-point")
    assert problem.status == "optimal"
    found = problem.solution.iterations
    assert found <= 11
    problem.solve("interior-point", options={"least_sum": np.inf})
    assert problem.solution.iterations > found
