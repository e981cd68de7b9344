"""Rows that are bounds count as bounds, and stay rows in everything that the user sees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.expressions.model import Model
from hcmodel.reductions.bounds import Bounds
from hcmodel.reductions.semidefinite import Semidefinite
from hcmodel.testing import check_reduction


def tank(x: hc.Variable) -> hc.Expression:
    return x[0] * x[1] + 4 / x[0] + 1 / x[1]


def reduced(rows: list[hc.Constraint], objective: Any = None) -> Bounds:
    variables = rows[0].lhs.variables() or rows[0].rhs.variables()
    wanted = hc.sum(variables[0]) if objective is None else objective
    return Bounds.of(Model.checked(hc.Minimize(wanted), rows))


def box(reduction: Bounds) -> list[list[float]]:
    (variable,) = reduction.after.variables
    return [np.ravel(variable.lower).tolist(), np.ravel(variable.upper).tolist()]


INF = np.inf


def test_rows_that_are_bounds_are_found_however_they_are_written() -> None:
    x = hc.Variable(3)
    upper = hc.Parameter(2, value=[3.0, 4.0])
    cases: list[tuple[hc.Constraint, list[list[float]]]] = [
        (x >= 0.4, [[0.4] * 3, [INF] * 3]),
        (x <= 3, [[-INF] * 3, [3.0] * 3]),
        (np.array(0.4) <= x, [[0.4] * 3, [INF] * 3]),
        (2 * x <= 3, [[-INF] * 3, [1.5] * 3]),
        (x / -2 <= 3, [[-6.0] * 3, [INF] * 3]),
        (1 - x >= np.array([0.0, 1.0, 2.0]), [[-INF] * 3, [1.0, 0.0, -1.0]]),
        (x[1:3] <= upper, [[-INF] * 3, [INF, 3.0, 4.0]]),
        (x[::-1] >= np.array([1.0, 2.0, 3.0]), [[3.0, 2.0, 1.0], [INF] * 3]),
        (hc.reshape(x, (3, 1)) <= np.array([5.0, 4.0]), [[-INF] * 3, [4.0] * 3]),
        (upper[0] * x[0] <= upper[1], [[-INF] * 3, [4 / 3, INF, INF]]),
    ]
    for constraint, expected in cases:
        found = reduced([constraint])
        assert found.rows == (0,), constraint
        assert box(found) == expected, constraint


def test_other_rows_stay_rows() -> None:
    x, y = hc.Variable(3), hc.Variable(3)
    zero = hc.Parameter(value=0.0)
    for constraint in (
        x <= y,
        x == 1,
        hc.sum(x) <= 1,
        x**2 <= 1,
        x + 2 * x <= 1,
        hc.diag(x) <= 1,
        zero * x <= 1,
        x @ np.ones(3) <= 1,
        hc.hstack([x, y]) <= 1,
    ):
        found = reduced([constraint])
        assert not found.rows, constraint
        assert found.after is found.before


def test_the_sets_imply_rows_of_every_kind() -> None:
    simplex, psd = hc.Variable(3, simplex=True), hc.Variable((2, 2), PSD=(0.0, 2.0))
    positive = hc.Variable(3, pos=True)
    for variable, implied, telling in (
        (simplex, simplex >= 0, simplex >= 0.1),
        (psd, psd <= 2, psd <= 1),
        (positive, positive >= -1, positive == 1),
    ):
        found = reduced([implied, telling], hc.sum(variable))
        assert found.rows == (0,)
        assert found.after.variables[0] is variable


def test_a_row_at_zero_makes_no_variable_positive() -> None:
    x = hc.Variable(2, name="x")
    for row, coordinate in ((x >= 0, "x"), (x >= 1e-3, "log(x)")):
        problem = hc.Problem(
            hc.Minimize(hc.sum((x - 1) ** 2 if coordinate == "x" else tank(x))), [row]
        )
        form = problem.forms().hidden()
        assert form is not None
        assert form.coordinate_names() == [coordinate]
    assert not hc.Problem(hc.Minimize(tank(x)), [x >= 0]).forms().prove().proven


CONSTRAINTS = [
    "area: x[1]*x[2] <= 1\n x >= 0.4\n x <= 3",
    "area: x[1]*x[2] <= 1\n 0.4 <= x <= 3",
    "area: x[1]*x[2] <= 1\n x[1] >= 0.4\n 2*x[2] >= 0.8\n 3 - x >= 0\n x >= 0",
]


@pytest.mark.parametrize("rows", CONSTRAINTS)
@pytest.mark.parametrize("method", ["auto", "hidden-newton"])
def test_a_model_with_bounds_as_rows_is_proven_and_solved(rows: str, method: str) -> None:
    text = f"var x[2]\nminimize x[1]*x[2] + 4/x[1] + 1/x[2]\nsubject to\n {rows}\n"
    problem = hc.parse(text)
    assert problem.solve(method) == pytest.approx(5.0, rel=1e-7)  # x = (2, 1/2), closed form
    assert problem.status == "optimal"
    assert problem.constraints[0].dual_value == pytest.approx(1.0, abs=1e-5)


def test_the_multiplier_of_an_active_bound_belongs_to_the_row_as_written() -> None:
    # with x[0] at 1.5 and x[0] x[1] = 1: the derivative of 1 + 4/t + t by t is 1 − 16/9
    slope = 16 / 9 - 1
    for factor in (1.0, 2.0, -2.0):
        x = hc.Variable(2, bounds=(None, 4))
        row = factor * x <= 1.5 * factor if factor > 0 else factor * x >= 1.5 * factor
        rows = [x[0] * x[1] <= 1, x >= 0.4, row, x <= 2, x[0] <= 1.5]
        problem = hc.Problem(hc.Minimize(tank(x)), rows)
        problem.solve()
        assert problem.status == "optimal"
        duals = [np.ravel(each.dual_value) for each in rows]
        np.testing.assert_allclose(duals[2], [slope / abs(factor), 0.0], atol=1e-6)
        for other in (1, 3, 4):  # the last one is as tight, but comes later
            np.testing.assert_allclose(duals[other], 0.0, atol=1e-6)
        assert problem.solution is not None
        bounds = problem.solution.bound_duals[x.name]
        np.testing.assert_allclose([bounds.lower, bounds.upper], 0.0, atol=1e-6)
        np.testing.assert_allclose(rows[2].violation(), 0.0, atol=1e-6)


def test_kinks_and_maximisation_walk_back_too() -> None:
    x = hc.Variable(2, name="x")
    rows = [x >= 0.1, x[0] >= 0.05, x[1] <= 0.5]
    problem = hc.Problem(hc.Minimize(hc.max(x) + x[0] * x[1] + 1 / x[1]), rows)
    problem.solve()
    assert problem.value == pytest.approx(2.55, rel=1e-6)  # at (0.1, 0.5)
    assert problem.status == "optimal"
    np.testing.assert_allclose(rows[0].dual_value, [0.5, 0.0], atol=1e-5)
    np.testing.assert_allclose(rows[2].dual_value, 4.0 - 1.0 - 0.1, atol=1e-5)
    rows = [x >= 0.1, x[0] + x[1] <= 1, x[0] <= 0.3]
    problem = hc.Problem(hc.Maximize(x[0] * x[1]), rows)
    assert problem.solve() == pytest.approx(0.21, rel=1e-6)
    np.testing.assert_allclose(rows[1].dual_value, 0.3, atol=1e-5)
    np.testing.assert_allclose(rows[2].dual_value, 0.4, atol=1e-5)


def test_a_parameter_as_bound_changes_data_only() -> None:
    x, cap = hc.Variable(2), hc.Parameter(value=1.5)
    rows = [x[0] * x[1] <= 1, (x >= 0.4).named("low"), (x <= cap).named("cap")]
    problem = hc.Problem(hc.Minimize(tank(x)), rows)
    problem.solve()
    compiled = problem.compilations
    for value in (1.2, 1.6):
        cap.value = value
        assert problem.solve() == pytest.approx(1 + 4 / value + value, rel=1e-6)
        assert problem.status == "optimal"
    assert problem.compilations == compiled
    cap.value = 0.3
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution is not None
    assert {name.partition("[")[0] for name in problem.solution.conflict} == {"low", "cap"}
    cap.value = 1.5
    assert problem.solve() == pytest.approx(1 + 4 / 1.5 + 1.5, rel=1e-6)


@pytest.mark.parametrize(
    ("objective", "names"),
    [
        (lambda x: hc.sum(x**2), {"low", "high"}),
        (tank, {"low", "high"}),
        (tank, {"low", "area"}),
    ],
)
def test_rows_that_contradict_each_other_are_named(objective: Any, names: set[str]) -> None:
    x = hc.Variable(2)
    rows = {
        "low": x >= 2,
        "high": x <= 1,
        "area": x[0] * x[1] <= 1,
        "idle": x <= 7,
    }
    wanted = [row.named(name) for name, row in rows.items() if name in names or name == "idle"]
    problem = hc.Problem(hc.Minimize(objective(x)), wanted)
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution is not None
    assert {name.partition("[")[0] for name in problem.solution.conflict} == names


def test_the_reduction_walks_there_and_back() -> None:
    x, y = hc.Variable(3, name="x"), hc.Variable(2, name="y", bounds=(0.5, 4))
    only = hc.Variable(name="only")
    rows = [x >= 0.1, hc.sum(x) * y[0] <= 3, 2 * y <= 5, only >= 1, hc.abs(x) <= 2]
    reduction = Bounds.of(Model.checked(hc.Minimize(hc.sum(1 / x) + y[1]), rows))
    assert reduction.rows == (0, 2, 3)
    check_reduction(reduction)


def test_the_text_and_the_names_of_a_model_stay_as_written() -> None:
    x = hc.Variable(2, name="x")
    problem = hc.Problem(hc.Minimize(tank(x)), [x >= 0.4, x[0] * x[1] <= 1, x <= 3])
    text = problem.to_hc()
    problem.solve()
    assert problem.to_hc() == text
    assert problem.solution is not None
    assert set(problem.solution.duals) == {"c1", "c2", "c3"}
    analysis = problem.analyze(samples=5)
    assert analysis.verdict == "proven"
    assert analysis.coordinates == {"x": "log(x)"}
    assert "c2: left <= right" in str(analysis.derivation)
    assert x.lower.tolist() == [-INF, -INF]


def test_bounds_that_contradict_each_other_need_no_proof_of_the_model() -> None:
    for bounds, rows, names in (
        (None, lambda x: [(x >= 2).named("low"), (x <= 1).named("high")], ("low[0]", "high[0]")),
        ((0, 1), lambda x: [(2 * x[1] >= 3).named("low")], ("low", "x[1] <= 1")),
    ):
        x = hc.Variable(2, name="x", bounds=bounds)
        problem = hc.Problem(hc.Minimize(hc.sin(x[0]) * hc.cos(x[1])), rows(x))
        assert problem.forms().hidden() is None
        problem.solve(max_calls=400)
        assert problem.status == "infeasible"
        assert problem.solution is not None
        assert problem.solution.conflict == names


def matrix_bounds(rows: list[hc.Constraint], objective: Any) -> Bounds:
    """The reduction of a model with matrix inequalities, whose slacks are there already."""
    return Bounds.of(Semidefinite.of(Model.checked(hc.Minimize(objective), rows)).after)


def test_matrix_inequalities_that_bound_eigenvalues_are_sets() -> None:
    X = hc.Variable((2, 2), symmetric=True, name="X")
    Y = hc.Variable((2, 2), PSD=(0.5, 9), name="Y")
    identity = np.eye(2)
    cases: list[tuple[list[hc.Constraint], tuple[float, float]]] = [
        ([X >> 0], (0.0, INF)),
        ([0 << X], (0.0, INF)),
        ([2 * X >> identity], (0.5, INF)),
        ([X - 3 * identity >> 0], (3.0, INF)),
        ([X >> identity, X << 4 * identity], (1.0, 4.0)),
        ([5 * identity - X >> 0, X.T >> 0], (0.0, 5.0)),
        ([Y >> identity], (1.0, 9.0)),
    ]
    for rows, expected in cases:
        found = matrix_bounds(rows, hc.trace(rows[0].lhs + rows[0].rhs))
        assert found.rows == tuple(range(len(rows))), rows
        (variable,) = found.after.variables
        assert variable.set.eigenvalue_bounds == expected, rows
        check_reduction(found)


def test_other_matrix_inequalities_stay_rows() -> None:
    X, Y = (hc.Variable((2, 2), symmetric=True, name=name) for name in "XY")
    identity = np.eye(2)
    for rows in (
        [X >> -identity],
        [X << identity],
        [X >> np.diag([1.0, 2.0])],
        [X >> Y],
        [X >> identity, X << 0.5 * identity],
        [X[::-1] + X[::-1].T >> 0],
    ):
        assert matrix_bounds(rows, hc.trace(X + Y)).rows == (), rows


def test_duals_and_conflicts_of_matrix_inequalities_are_those_of_the_rows() -> None:
    """minimise <C, X> over X >> c I has the dual C, for each value of a parameter."""
    X, least = hc.Variable((2, 2), symmetric=True, name="X"), hc.Parameter(value=1.0)
    weights = np.array([[2.0, 1.0], [1.0, 3.0]])
    row = X >> least * np.eye(2)
    problem = hc.Problem(hc.Minimize(hc.trace(weights @ X)), [row])
    for value in (1.0, 2.0, -1.0):  # the last one is no set of semidefinite matrices
        least.value = value
        assert problem.solve() == pytest.approx(5 * value, rel=1e-6)
        assert problem.status == "optimal"
        assert row.dual_value == pytest.approx(weights, abs=1e-5)
    contradicted = hc.Problem(hc.Minimize(X[0, 0]), [X >> np.eye(2), hc.trace(X) <= 1])
    contradicted.solve()
    assert contradicted.status == "infeasible"
    assert contradicted.solution.conflict == ("c1", "c2")
