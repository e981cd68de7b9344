"""Rows that contradict each other beside functions with a domain: no row of a conflict can be left out.

Each conflict was looked at by CVXPY: its rows have no common point, and any others of them have one.
"""

from __future__ import annotations

import numpy as np
import pytest

import hcmodel as hc

THREE = np.array([[-0.8, -0.6], [1.4, 0.6], [0.4, 1.5]])
LIMITS = np.array([0.9, 1.6, 3.6])


def test_a_row_that_gives_ranges_is_no_part_of_a_sum_of_others() -> None:
    x, y = hc.Variable(2, name="x"), hc.Variable(name="y", pos=True)
    cost = -hc.sqrt(np.array([-0.87, -1.63]) @ x + 0.3 - y)
    rows = [hc.norm1(x) + hc.abs(y) <= 50, THREE @ x >= LIMITS]
    problem = hc.Problem(hc.Minimize(cost), rows)
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution.conflict == ("c2[0]", "c2[1]", "c2[2]")


def test_what_a_function_asks_for_takes_the_place_of_rows() -> None:
    """sum(z) == 0.3 and sum(z) + w >= 3 leave no w for log(3.4 − 2w)."""
    z, w = hc.Variable(2, name="z", nonneg=True), hc.Variable(name="w")
    sides = [np.array([-0.42, 1.08]) @ z + 0.7 - 2 * w, np.array([1.63, -0.79]) @ z + 0.7 + w]
    rows = [hc.sum(z) == 0.3, sides[0] == sides[1], hc.sum(z) + w >= 3]
    problem = hc.Problem(hc.Minimize(-hc.log(3.4 - 2 * w)), rows)
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution.conflict == ("c1", "c3")
    assert "log(3.4 - 2 * w) is not defined" in problem.solution.message


@pytest.mark.parametrize("maximize", [False, True])
def test_an_objective_that_is_defined_at_no_start_hides_no_contradiction(maximize: bool) -> None:
    x, y = hc.Variable(2, name="x"), hc.Variable(name="y")
    inner = 3 - hc.sum_largest(-(np.array([[9.0, -9.0], [-9.0, 9.0]]) @ x), k=1)
    cost = hc.power(inner, -1.5) + hc.exp(hc.quad_over_lin(x, 3 - y))
    rows = [THREE @ x >= LIMITS, hc.sum_squares(x) <= 1.5, hc.exp(y) <= 3]
    goal = hc.Maximize(-cost) if maximize else hc.Minimize(cost)
    problem = hc.Problem(goal, rows)
    problem.solve()
    assert problem.status == "infeasible"
    named = problem.solution.conflict
    assert named is not None
    for left in (
        named
    ):  # THREE[0] and THREE[1] are nearly opposite; each pair has a point in the ball or not
        rest = [each for each in named if each != left]
        assert not _contradict(rest)
    assert _contradict(list(named))


def _contradict(names: list[str]) -> bool:
    x, y = hc.Variable(2, name="x"), hc.Variable(name="y")
    known = {f"c1[{i}]": THREE[i] @ x >= LIMITS[i] for i in range(3)}
    known |= {"c2": hc.sum_squares(x) <= 1.5, "c3": hc.exp(y) <= 3}
    problem = hc.Problem(hc.Minimize(hc.sum_squares(x)), [known[name] for name in names])
    problem.solve()
    return problem.status == "infeasible"


def test_what_the_objective_asks_for_may_be_what_contradicts_the_rows() -> None:
    """entr of x0 + 1 and −3 − x0 has no value anywhere, and a row alone keeps x0 from both."""
    x = hc.Variable(2, name="x")
    cost = hc.inv_pos(3 + hc.entr(x[0] + 2) + hc.entr(x[1] + 2))
    problem = hc.Problem(hc.Minimize(cost), [x[0] + x[1] <= -5, hc.norm(x) <= 50])
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution.conflict == ("c1",)
    assert "is not defined where c1 holds" in problem.solution.message


def test_rows_without_a_cone_form_hide_no_contradiction_of_the_others() -> None:
    x = hc.Variable(2, name="x")
    hard = hc.softplus(hc.sum(hc.exp(x))) <= 9.0
    problem = hc.Problem(hc.Minimize(hc.sum(x)), [hard, THREE @ x >= LIMITS, hc.sum(x) >= 0])
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution.conflict == ("c2[0]", "c2[1]", "c2[2]")
