"""Derivatives of solutions: against central differences and closed forms, and honest without them."""

from __future__ import annotations

import numpy as np
import pytest

import hcmodel as hc
from tests.problems.parametric import directional, parametric, tank

# The whole list runs in tests/benchmarks/derivatives.py.
SMALL = ("exponents", "largest_eigenvalue", "group_norm")
EXAMPLES = ("cmdp", "lqr_discrete", "pricing")


@pytest.mark.parametrize("name", [*SMALL, *EXAMPLES])
def test_derivatives_agree_with_central_differences(name: str) -> None:
    assert directional(parametric(name)).largest <= 1e-6


def test_the_tank_has_its_closed_form() -> None:
    # with x y = cap: minimise cap + 4/x + x/cap, so x = 2√cap, y = √cap/2, V = cap + 4/√cap
    problem = tank()
    problem.solve()
    found = problem.derivative("cap")
    assert found.exists
    assert found.value == pytest.approx(-1)
    assert found["x"] == pytest.approx([1, 0.25])
    assert found.elasticity == pytest.approx(-0.2)
    assert found.elasticity_of("x") == pytest.approx([0.5, 0.5])
    assert problem.adjoint({"x": [1, 2]})["cap"] == pytest.approx(1.5)
    assert "d value / d cap = -1" in str(found)


def test_the_table_has_parameters_and_right_hand_sides() -> None:
    problem = tank()
    problem.solve()
    table = problem.elasticities()
    assert [row.name for row in table] == ["steel", "cap", "area"]
    assert table["area"].derivative == pytest.approx(-1)
    assert table["steel"].elasticity == pytest.approx(2 / 5)  # steel/x = 2 of the value 5
    assert "right-hand side" in str(table)
    with pytest.raises(KeyError, match="steel, cap, area"):
        table["volume"]


def test_a_maximisation_has_derivatives_in_the_users_sign() -> None:
    x, p = hc.Variable(name="x"), hc.Parameter(name="p", value=2.0)
    problem = hc.Problem(hc.Maximize(3 * x - x**2 / 2), [(x <= p).named("top"), x >= -9])
    problem.solve()
    assert problem.derivative(p).value == pytest.approx(1)
    assert problem.elasticities()["top"].derivative == pytest.approx(1)


def test_a_kink_has_one_derivative_on_each_side() -> None:
    x, p = hc.Variable(name="x"), hc.Parameter(name="p", value=1.0)
    problem = hc.Problem(hc.Minimize(x), [(x >= p).named("first"), (x >= 1).named("second")])
    problem.solve()
    found = problem.derivative(p)
    assert not found.exists
    assert "one side only" in str(found)
    assert np.isnan(found.value)
    assert (found.value_left, found.value_right) == (pytest.approx(0), pytest.approx(1))
    with pytest.raises(hc.SolverError, match="no derivative"):
        problem.adjoint({x: 1})


def test_the_value_has_a_derivative_where_the_solution_is_not_unique() -> None:
    x, p = hc.Variable(2, name="x", bounds=(0, 5)), hc.Parameter(name="p", value=3.0)
    problem = hc.Problem(hc.Minimize(hc.sum(x)), [hc.sum(x) >= p])
    problem.solve()
    found = problem.derivative(p)
    assert found.value == pytest.approx(1)
    assert found.reason is not None
    assert "not unique" in found.reason
    assert np.isnan(found["x"]).all()


def test_the_value_has_none_where_equally_good_solutions_differ_in_it() -> None:
    # V(p) = min x₁ + x₂ + p·x₁ over x₁ + x₂ >= 3 falls for p < 0 and stays for p > 0
    x, p = hc.Variable(2, name="x", bounds=(0, 5)), hc.Parameter(name="p", value=0.0)
    problem = hc.Problem(hc.Minimize(hc.sum(x) + p * x[0]), [hc.sum(x) >= 3])
    problem.solve()
    found = problem.derivative(p)
    assert np.isnan(found.value)
    assert found.reason is not None


def test_a_norm_at_its_tip_has_no_derivative_here() -> None:
    x, p = hc.Variable(2, name="x"), hc.Parameter((2,), name="p", value=[0.1, 0.2])
    problem = hc.Problem(hc.Minimize(hc.norm(x) + hc.sum_squares(x - p) / 2))
    problem.solve()
    assert problem.derivative(p).reason is not None


def test_a_black_box_is_said_to_have_no_second_derivatives() -> None:
    x, p = hc.Variable(name="x", bounds=(-1, 1)), hc.Parameter(name="p", value=0.3)
    problem = hc.Problem(hc.Minimize(hc.function(lambda t: t * t, x) - p * x))
    problem.solve()
    assert "hc.function" in str(problem.derivative(p).reason)


def test_mistakes_are_answered_in_words() -> None:
    problem = tank()
    with pytest.raises(hc.ModelError, match=r"call problem\.solve\(\) first"):
        problem.derivative("cap")
    problem.solve()
    with pytest.raises(hc.ModelError, match="which has: steel, cap"):
        problem.derivative("kap")
    with pytest.raises(hc.ModelError, match="not a variable"):
        problem.adjoint({"y": 1})
    with pytest.raises(hc.ModelError, match=r"shape \(3,\), but \(2,\) is needed"):
        problem.adjoint({"x": [1, 2, 3]})
    with pytest.raises(hc.ModelError, match="dict"):
        problem.adjoint([1, 2])
    with pytest.raises(hc.ModelError, match="array of numbers"):
        problem.adjoint({"x": "one"})
    with pytest.raises(hc.ModelError, match="not a variable"):
        problem.adjoint({hc.Variable(2, name="x"): 1})
    with pytest.raises(hc.ModelError, match="not a parameter"):
        problem.derivative(hc.Parameter(name="cap", value=1.0))
    before = float(problem.derivative("cap").value)
    problem.sweep({"cap": [0.9]}, progress=False)  # leaves the problem as it was
    assert float(problem.derivative("cap").value) == pytest.approx(before)
    problem.parameters["cap"].value = 2.0
    problem.sweep({"cap": [0.9]}, progress=False)
    with pytest.raises(hc.ModelError, match="new value after the last solve"):
        problem.derivative("cap")
    x = hc.Variable(name="x", bounds=(0, 1))
    infeasible = hc.Problem(hc.Minimize(x), [x >= hc.Parameter(name="p", value=2.0)])
    infeasible.solve()
    with pytest.raises(hc.ModelError, match="'infeasible'"):
        infeasible.derivative("p")
