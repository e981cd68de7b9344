"""Models that are written in the entries of their declared map become models in these."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import hcmodel as hc
from hcmodel.facts.node_facts import Facts
from hcmodel.reductions.map_entries import MapEntries
from hcmodel.testing import check_reduction


def rosenbrock(size: int, **bounds: Any) -> hc.Problem:
    x = hc.Variable(size, name="x", **bounds)
    c = hc.hstack([x[0] - 1, x[1:] - hc.square(x[:-1])])
    return hc.Problem(hc.Minimize(1 + hc.sum(hc.square(c))), hidden=[c])


def two_norms() -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(0.1, 2.5))
    c = hc.hstack([x[0] - 1, 2 * hc.abs(x[0]) - x[1] - 1])
    near = hc.norm(c - np.array([-0.5, -0.6]), 1) <= 0.8
    return hc.Problem(hc.Minimize(hc.norm(c, np.inf)), [near.named("near")], hidden=[c])


def exponentials(**bounds: Any) -> hc.Problem:
    """A map that is not triangular, and a variable beside it that is its own coordinate."""
    x, y = (hc.Variable(name=name, bounds=(-1, 1)) for name in "xy")
    z = hc.Variable(name="z", **bounds)
    both, apart = hc.exp(x) + hc.exp(y) - 2, hc.exp(x) - hc.exp(y)
    cost = hc.square(both) + hc.square(apart - 0.1) + hc.square(z - 2)
    return hc.Problem(hc.Minimize(cost), [both + z <= 3], hidden=[both, apart])


def entries(problem: hc.Problem) -> MapEntries | None:
    return MapEntries.of(problem.model, Facts())


@pytest.mark.parametrize(
    "problem",
    [rosenbrock(1), rosenbrock(4, bounds=(-2, 2)), two_norms(), exponentials(bounds=(-3, 3))],
    ids=["square", "chain", "norms", "exponentials"],
)
def test_both_sides_agree(problem: hc.Problem) -> None:
    reduction = entries(problem)
    assert reduction is not None
    check_reduction(reduction, samples=4)


def test_new_variables_have_the_intervals_that_bounds_imply() -> None:
    reduction = entries(rosenbrock(2, bounds=(-2, 2)))
    assert reduction is not None
    (u,) = reduction.after.variables
    assert u.lower == pytest.approx([-3, -6])
    assert u.upper == pytest.approx([1, 2])
    assert reduction.texts == {u: "hstack(x[0] - 1, x[1:] - square(x[:-1]))"}


def test_a_variable_that_is_a_coordinate_itself_stays() -> None:
    problem = exponentials(bounds=(-3, 3))
    reduction = entries(problem)
    assert reduction is not None
    left = set(reduction.after.variables)
    assert set(problem.variables) & left == {problem["z"]}


def test_names_of_the_user_are_not_taken() -> None:
    x, y = hc.Variable(name="u"), hc.Variable(name="u2")
    c = y - hc.square(x)
    reduction = entries(hc.Problem(hc.Minimize(hc.square(c) + hc.square(x)), hidden=[c, x]))
    assert reduction is not None
    assert sorted(each.name for each in reduction.after.variables) == ["u", "u3"]


def test_a_model_with_something_beside_its_map_is_refused() -> None:
    x = hc.Variable(2, name="x")
    c = hc.hstack([x[0] - 1, x[1] - hc.square(x[0])])
    cost = hc.Minimize(hc.sum(hc.square(c)))
    assert entries(hc.Problem(cost, [hc.sum(x) >= 1], hidden=[c])) is None
    assert entries(hc.Problem(cost, hidden=[c[0]])) is None
    assert entries(hc.Problem(cost, hidden=[c, x[0]])) is None


def test_large_models_and_sparse_data_are_left_to_the_catalogue() -> None:
    assert entries(rosenbrock(100)) is not None
    assert entries(rosenbrock(101)) is None
    x = hc.Variable(3, name="x")
    c = sp.eye_array(3, format="csr") @ x - hc.square(x[0])
    assert entries(hc.Problem(hc.Minimize(hc.sum(hc.square(c))), hidden=[c])) is None


def test_a_system_without_a_solution_has_no_image() -> None:
    x = hc.Variable(2, name="x", bounds=(-1, 1))
    c = hc.solve(hc.diag(x), np.ones(2))
    reduction = entries(hc.Problem(hc.Minimize(hc.sum(hc.square(c))), hidden=[c]))
    assert reduction is not None
    assert reduction.point(np.array([0.5, 1.0])) == pytest.approx([2.0, 1.0])
    assert np.isnan(reduction.point(np.zeros(2))).all()


def test_a_map_that_is_defined_nowhere_is_refused() -> None:
    x = hc.Variable(name="x", bounds=(1, 2))
    c = hc.log(-x)
    assert entries(hc.Problem(hc.Minimize(hc.square(c)), hidden=[c])) is None


def test_an_image_that_is_not_reached_goes_to_the_middle() -> None:
    x = hc.Variable(name="x", bounds=(1, 3))
    c = hc.square(x)
    reduction = entries(hc.Problem(hc.Minimize(hc.square(c + 1)), hidden=[c]))
    assert reduction is not None
    assert reduction.point_back(np.array([-1.0])) == pytest.approx([np.sqrt(3)])
    assert reduction.point_back(np.array([6.25])) == pytest.approx([2.5])
