"""Variables, parameters, constraints, values and duals by their names."""

from __future__ import annotations

import pickle

import pytest

import hcmodel as hc


@pytest.fixture(scope="module")
def problem() -> hc.Problem:
    found = hc.parse(
        "param cap = 1\nvar D > 0\nvar L in [1, 2]\nminimize D + L/D\nsubject to total: D*L <= cap"
    )
    found.solve()
    return found


def test_everything_is_found_by_name(problem: hc.Problem) -> None:
    assert problem["D"] is problem.variables["D"]
    assert problem["cap"] is problem.parameters["cap"]
    assert problem["total"] is problem.constraints[0]
    assert problem.solution is not None
    assert problem.solution["D"] == problem.variables["D"].value
    assert problem.solution.duals["total"] == problem["total"].dual_value


def test_python_has_the_words_of_the_json_object(problem: hc.Problem) -> None:
    solution = problem.solution
    assert solution is not None
    written = solution.to_json()
    for word in ("value", "violation", "lower_bound", "gap", "method", "engine", "iterations"):
        assert getattr(solution, word) == written[word]
    assert solution.variables["D"] == written["variables"]["D"]
    for word in ("status", "termination", "duals", "bound_duals", "oracle_calls", "conflict"):
        assert word in written
        assert getattr(solution, word) is not None


def test_a_new_value_by_name_changes_the_next_solve(problem: hc.Problem) -> None:
    other = pickle.loads(pickle.dumps(problem))
    other.parameters["cap"].value = 0.25
    # D <= cap/L with L = 1: D = 1/4 and 1/4 + 4
    assert other.solve() == pytest.approx(4.25)


def test_variables_and_parameters_answer_to_a_call_as_in_cvxpy(problem: hc.Problem) -> None:
    assert [each.name for each in problem.variables()] == ["D", "L"]
    assert [each.name for each in problem.parameters()] == ["cap"]
    assert "D" in problem.variables
    assert problem["D"] in problem.variables
    assert "cap" not in problem.variables
    assert problem.variables.keys() == ("D", "L")
    assert problem.variables[0] is problem["D"]
    assert pickle.loads(pickle.dumps(problem.variables)).names == ("D", "L")


def test_unnamed_constraints_have_the_names_of_the_results() -> None:
    x = hc.Variable(name="x", bounds=(1, 2))
    row = x**2 >= 2
    problem = hc.Problem(hc.Minimize(x), [row])
    assert problem["c1"] is row


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (lambda p: p["d"], "no variable, parameter or constraint named 'd'"),
        (lambda p: p["totall"], "did you mean 'total'"),
        (lambda p: p.parameters["cup"], "did you mean 'cap'"),
        (lambda p: p.variables["y"], "there are: D, L"),
        (lambda p: p.solution["DD"], "there is no variable named 'DD'"),
        (lambda p: p.solution["total"], r"solution.duals\['total'\]"),
        (lambda p: p[3], "by its name, a string"),
    ],
)
def test_an_unknown_name_is_an_error_in_words(problem: hc.Problem, asked, words: str) -> None:
    with pytest.raises(KeyError, match=words):
        asked(problem)
    with pytest.raises(hc.ModelError, match=words):
        asked(problem)


def test_a_name_of_two_things_is_an_error() -> None:
    x = hc.Variable(name="x", bounds=(1, 2))
    problem = hc.Problem(hc.Minimize(hc.Parameter(name="x", value=2) * x))
    with pytest.raises(hc.ModelError, match="names 2 things"):
        problem["x"]
    assert problem.parameters["x"].value == 2
