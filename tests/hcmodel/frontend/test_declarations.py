"""Names, ranges, parameters, variables, starts: what declarations mean."""

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.expressions.variable_sets import SemidefiniteSet, SimplexSet, SymmetricSet
from hcmodel.problem import parse


def objective_value(text, data=None, **values):
    problem = parse(text, data)
    for variable in problem.variables:
        variable.value = values[variable.name]
    return float(np.squeeze(problem.objective.expression.value))


def variable(problem, name):
    return next(each for each in problem.variables if each.name == name)


def test_the_first_index_is_one_unless_the_declaration_says_otherwise():
    text = "var x[3]\nvar v[0..3]\nset S = [2, 5]\nvar y[S]\nminimize x[1] + 10*v[0] + 100*y[5]"
    found = objective_value(text, x=[1, 2, 3], v=[4, 5, 6, 7], y=[8, 9])
    assert found == 1 + 40 + 900


def test_slices_include_both_ends():
    assert objective_value("var x[4]\nminimize sum(x[2..3])", x=[1, 2, 4, 8]) == 6


def test_lists_as_indices_keep_their_axes():
    text = "var A[3,3]\nminimize sum(A[[1, 3], [3, 1]] * [[1, 10], [100, 1000]])"
    matrix = np.arange(9.0).reshape(3, 3)
    assert objective_value(text, A=matrix) == np.sum(
        matrix[[0, 2]][:, [2, 0]] * [[1, 10], [100, 1000]]
    )


def test_axes_are_counted_from_one():
    text = "var A[2,3]\nminimize max(sum(A, axis=1))"
    assert objective_value(text, A=[[1, 2, 3], [4, 5, 6]]) == 9


def test_one_argument_reduces_and_several_go_entry_by_entry():
    text = "var x[2]\nminimize max(x) + sum(max(x, 2)) + sum(min(x, 2, 1))"
    assert objective_value(text, x=[0, 3]) == 3 + 5 + 1


def test_power_binds_tighter_than_minus_and_to_the_right():
    assert objective_value("var x\nminimize -x^2", x=3) == -9
    assert objective_value("var x\nminimize x^2^3", x=2) == 256


def test_constants_may_be_shadowed():
    assert objective_value("let pi = 3\nvar x\nminimize pi*x + e", x=1) == pytest.approx(3 + np.e)


def test_bounds_become_the_box():
    problem = parse(
        "param top[2] = [5, 6]\nvar x[2] in [1, top]\nvar y >= 2 <= 3\nvar z > 0\n"
        "minimize sum(x) + y + z"
    )
    assert variable(problem, "x").lower.tolist() == [1, 1]
    assert variable(problem, "x").upper.tolist() == [5, 6]
    assert (variable(problem, "y").lower, variable(problem, "y").upper) == (2, 3)
    assert variable(problem, "z").pos
    assert not variable(problem, "y").pos


def test_other_domains_are_kept_on_the_variable():
    problem = parse(
        "var P[2,2] symmetric in psd(0.1, 9)\nvar Q[2,2] symmetric\nvar s[3,2] in simplex\n"
        "minimize trace(P) + trace(Q) + sum(s)"
    )
    kinds = {each.name: each for each in problem.variables}
    assert isinstance(kinds["P"].set, SemidefiniteSet)
    assert kinds["P"].eigenvalue_bounds == (0.1, 9)
    assert type(kinds["Q"].set) is SymmetricSet
    assert isinstance(kinds["s"].set, SimplexSet)


def test_starts_are_spread_over_the_shape():
    problem = parse("param r = 2\nvar x[3], y\nminimize sum(x) + y\nstart x = r, y = 2*r")
    assert variable(problem, "x").start.tolist() == [2, 2, 2]
    assert variable(problem, "y").start == 4


def test_chains_are_two_constraints():
    problem = parse("var x[2]\nminimize sum(x)\nsubject to\n    box: 0 <= x <= [1, 2]")
    assert [each.name for each in problem.constraints] == ["box.lower", "box.upper"]
    assert [each.sense for each in problem.constraints] == ["<=", "<="]


def test_maximize_and_hidden_reach_the_problem():
    problem = parse("var x in [1, 2], y in [1, 2]\nmaximize x*y\nhidden log(x), y")
    assert isinstance(problem.objective, hc.Maximize)
    assert [str(each) for each in problem.hidden] == ["log(x)", "y"]


def test_a_variable_without_use_is_left_out_with_a_warning():
    with pytest.warns(hc.HCWarning, match="`y`: declared, but used by neither"):
        problem = parse("var x, y\nminimize x")
    assert [each.name for each in problem.variables] == ["x"]


def test_a_new_value_needs_no_compilation():
    problem = parse("param a > 0 = 4\nvar x in [0.1, 10]\nminimize x + a/x")
    assert problem.solve() == pytest.approx(4, rel=1e-5)
    (parameter,) = problem.parameters
    parameter.value = 9
    assert problem.solve() == pytest.approx(6, rel=1e-5)
    assert problem.compilations == 1


def test_parameters_that_fix_the_structure_are_numbers():
    problem = parse(
        "param n = 2, k = 1, low = 0.5, c = 3\nvar x[n] in [low, 9]\n"
        "minimize c*sum(x[i]*n for i in 1..n if i > k)"
    )
    assert [each.name for each in problem.parameters] == ["c"]


def test_parameter_bounds_become_signs():
    problem = parse(
        "param a > 0 = 1, b >= 0 = 1, c in [0, 2] = 1, d = 1\nvar x\nminimize (a + b + c + d)*x"
    )
    signs = {each.name: (each.pos, each.nonneg) for each in problem.parameters}
    assert signs == {
        "a": (True, True),
        "b": (False, True),
        "c": (False, True),
        "d": (False, False),
    }


def test_empty_ranges_are_no_mistake():
    text = "param n = 0\nvar x\nminimize x + sum(2 for i in 1..n) + prod(3 for i in 1..n)"
    assert objective_value(text, x=5) == 6
    assert (
        parse("param n = 1\nvar x\nminimize x\nsubject to\n    c[i in 2..n]: x >= i").constraints
        == ()
    )


def test_a_warning_about_unused_variables_lists_five():
    names = ", ".join(f"y{i}" for i in range(3000))
    with pytest.warns(hc.HCWarning) as caught:
        parse(f"var x in [0, 1], {names}\nminimize x")
    listed = "`y0`, `y1`, `y2`, `y3`, `y4` and 2995 more"
    unused = "declared, but used by neither objective nor constraints; left out"
    assert [str(each.message) for each in caught] == [f"{listed}: {unused}"]


def test_a_filter_may_leave_out_what_would_divide_by_zero():
    text = "var x[3]\nminimize sum(x[i]/(i - 2) for i in 1..3 if i != 2)"
    assert objective_value(text, x=[1, 5, 3]) == 2
