"""Models that are written in the entries of their declared map are solved in these first."""

from __future__ import annotations

import numpy as np
import pytest

import hcmodel as hc
from tests.hcmodel.reductions.test_map_entries import exponentials, rosenbrock, two_norms

BY_ENTRIES = "auto: cone (proven convex in hstack(x[0] - 1,"


@pytest.mark.parametrize("size", [2, 3, 6])
def test_a_chain_is_solved_in_the_entries_of_its_map(size: int) -> None:
    problem = rosenbrock(size, bounds=(-2, 2))
    assert problem.solve() == pytest.approx(1.0)
    solution = problem.solution
    assert solution is not None
    assert solution.status == "optimal"
    assert solution.method.startswith(BY_ENTRIES)
    assert solution["x"] == pytest.approx(np.ones(size))
    assert solution.certificate.kind == "duality"
    assert solution.gap == pytest.approx(0.0, abs=1e-9)


def test_multipliers_are_those_of_the_model_as_written() -> None:
    problem = two_norms()
    assert problem.solve() == pytest.approx(0.15)
    found = problem.solution
    assert found is not None
    assert found.method.startswith(BY_ENTRIES)
    assert found.duals["near"] == pytest.approx(0.5)
    assert found.certificate.stationarity == pytest.approx(0.0, abs=1e-8)


def test_bounds_that_cut_the_solution_off_lead_to_the_other_methods() -> None:
    """The least value of the cone program is at x = (1, 1)."""
    problem = rosenbrock(2, bounds=(-2, [2, 0.5]))
    problem.solve()
    found = problem.solution
    assert found is not None
    assert found.method.startswith(BY_ENTRIES)
    assert ", then " in found.method
    assert found.violation == 0.0
    assert found["x"][1] == pytest.approx(0.5)
    # 2 (x - 1) - 4 x (0.5 - x²) = 0
    root = max(np.roots([4, 0, 0, -2]).real)
    assert found["x"][0] == pytest.approx(root, abs=1e-5)
    first = found.method
    problem.solve()  # the entries of the map are not tried again
    assert problem.solution is not None
    assert not problem.solution.method.startswith(BY_ENTRIES)
    assert first.endswith(problem.solution.method.removeprefix("auto: "))


def test_rows_that_no_image_satisfies_are_infeasible() -> None:
    """Their least value over the box is -2 - 1 - 1 = -4."""
    x = hc.Variable(2, name="x", bounds=(-1, 1))
    c = hc.hstack([x[0] - 1, x[1:] - hc.square(x[:-1])])
    cost = hc.Minimize(hc.sum(hc.square(c)))
    problem = hc.Problem(cost, [(hc.sum(c) <= -9).named("low")], hidden=[c])
    problem.solve()
    assert problem.solution is not None
    assert problem.solution.status == "infeasible"
    assert problem.solution.conflict == ("low",)
    assert problem.solution.method.startswith(BY_ENTRIES)
    reached = hc.Problem(cost, [hc.sum(c) <= -3.5], hidden=[c])
    reached.solve()
    assert reached.solution is not None
    assert reached.solution.violation == pytest.approx(0.0, abs=1e-6)


def test_a_maximisation_and_a_variable_beside_the_map() -> None:
    problem = exponentials(bounds=(-3, 3))
    negative = hc.Problem(
        hc.Maximize(-problem.objective.expression), problem.constraints, hidden=problem.hidden
    )
    values = [each.solve() for each in (problem, negative)]
    assert values[0] == pytest.approx(0.0, abs=1e-9)
    assert values[1] == pytest.approx(0.0, abs=1e-9)
    for each in (problem, negative):
        assert each.solution is not None
        assert each.solution.status == "optimal"
        assert each.solution["z"] == pytest.approx(2.0)
        assert each.solution["x"] == pytest.approx(np.log(1.05))


def test_a_method_that_is_asked_for_is_the_one_that_runs() -> None:
    problem = rosenbrock(2, bounds=(-2, 2))
    problem.solve("prox-linear")
    assert problem.solution is not None
    assert problem.solution.method == "prox-linear"


def test_what_is_known_of_the_model_is_what_the_catalogue_says() -> None:
    problem = rosenbrock(2, bounds=(-2, 2))
    problem.solve()
    form = problem.forms().hidden()
    assert form is not None
    assert form.coordinate_names() == ["x - φ(x)"]


def test_functions_that_are_written_in_a_map_need_no_test_of_it() -> None:
    """With a bound of x that holds the minimum, the program in the entries is not the model."""
    x = hc.Variable(2, name="x", bounds=(0.5, 2))
    u = [x[0] + 0.3 * hc.sin(x[1]), x[1] + 0.3 * hc.sin(x[0])]
    objective = hc.exp(0.5 * u[0]) + hc.exp(0.5 * u[1]) + (u[0] - 0.3) ** 2 + (u[1] - 0.3) ** 2
    problem = hc.Problem(hc.Minimize(objective), [u[0] + u[1] <= 6], hidden=u)
    problem.solve()
    conditions = problem.solution.certificate.conditions
    assert conditions[0] == "proven convex in the declared coordinates, which it is written in"
    np.testing.assert_allclose(x.value, 0.5, atol=1e-6)
    one_by_one = hc.Problem(hc.Minimize(objective + 0 * x[0] * x[1] + 1e-9 * x[0]), hidden=u)
    one_by_one.solve()
    conditions = one_by_one.solution.certificate.conditions
    assert not any("proven" in each and "not proven" not in each for each in conditions)
