"""Certificates at points where Euclidean norms vanish."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.certify.minorants.norm_minorants import minorant_bound
from tests.extent import first

rng = np.random.default_rng(0)
A = rng.normal(size=(20, 6))
B = A[:, :2] @ [1.0, -1.0] + 0.1 * rng.normal(size=20)


def group_lasso(weight: float, **kind: object) -> tuple[hc.Problem, hc.Variable]:
    x = hc.Variable((3, 2), name="x", **kind)
    fit = hc.sum_squares(A @ hc.reshape(x, (6,)) - B)
    return hc.Problem(hc.Minimize(fit + weight * hc.sum(hc.norm(x, 2, axis=1)))), x


@pytest.mark.parametrize("kind", [{"bounds": (-5, 5)}, {}])
def test_groups_that_vanish_are_certified(kind: dict[str, object]) -> None:
    problem, x = group_lasso(8.0, **kind)
    problem.solve()
    assert problem.status == "optimal"
    assert problem.solution.method == "auto: cone (proven convex in x)"
    np.testing.assert_allclose(x.value[1:], 0, atol=1e-6)
    # the first group alone: its optimality condition, 2 A'(A x − b) = −8 x/‖x‖
    first = x.value[0]
    slope = 2 * A[:, :2].T @ (A[:, :2] @ first - B)
    np.testing.assert_allclose(slope, -8 * first / np.linalg.norm(first), atol=1e-4)


def test_all_groups_vanish_and_none_does() -> None:
    problem, x = group_lasso(1e4, bounds=(-5, 5))
    assert problem.solve() == pytest.approx(B @ B, rel=1e-6)
    assert problem.status == "optimal"
    np.testing.assert_allclose(x.value, 0, atol=1e-6)
    problem, x = group_lasso(1e-3)
    problem.solve()
    assert problem.status == "optimal"
    assert np.linalg.norm(x.value, axis=1).min() > 1e-3


def test_a_geometric_median_at_one_of_its_points() -> None:
    points = np.array([[0, 0], [1, 0.1], [-1, 0.2], [0.1, 1], [0.1, -1.0]])
    y = hc.Variable(2, name="y")
    problem = hc.Problem(hc.Minimize(hc.sum(hc.norm(points - y, 2, axis=1))))
    # the unit vectors to the four others add up to less than 1: the first point is the median
    assert problem.solve() == pytest.approx(np.linalg.norm(points, axis=1).sum(), rel=1e-9)
    assert problem.status == "optimal"
    np.testing.assert_allclose(y.value, 0, atol=1e-6)


def test_a_bound_at_a_vanishing_norm_needs_a_proof() -> None:
    """2‖x‖ + ‖x − (1, 0)‖ + ‖x − (0, 1)‖ is least at 0: the others have a slope of √2 there, below 2."""
    x = hc.Variable(2, name="x", bounds=(-5, 5))
    norms = 2 * hc.norm(x) + hc.norm(x - np.array([1.0, 0.0])) + hc.norm(x - np.array([0.0, 1.0]))
    form = hc.Problem(hc.Minimize(norms)).forms().hidden()
    assert form is not None
    assert form.proof is not None
    found = minorant_bound(form, 1e-6, np.inf)
    assert found is not None
    assert found.value == pytest.approx(2.0, abs=1e-5)
    assert minorant_bound(replace(form, proof=None), 1e-6, np.inf) is None


def test_norms_in_rows_and_in_maximisations() -> None:
    x = hc.Variable(3, name="x", bounds=(-2, 2))
    row = (hc.norm(x - 1) + hc.sum(x) <= 3).named("row")
    problem = hc.Problem(hc.Maximize(hc.sum(x) - 0.5 * hc.norm(x - 1)), [row])
    assert problem.solve() == pytest.approx(3, abs=1e-5)  # x = 1, where both norms vanish
    assert problem.status == "optimal"


@pytest.mark.parametrize("seed", first(3, [2, 7, 0, 1, 3, 4, 5, 6]))
def test_there_is_a_bound_where_a_norm_vanishes_and_it_is_never_above_a_value(seed: int) -> None:
    generator = np.random.default_rng(seed)
    C, c = generator.normal(size=(4, 2, 3)), generator.normal(size=(4, 2))
    x = hc.Variable(3, name="x", bounds=(-1, 1))
    norms = [hc.norm(C[i] @ x - (i > 1) * c[i]) for i in range(4)]
    length = hc.norm(x)
    cost = sum(norms) + hc.exp(length + 0.1 * hc.sum(x)) + hc.sum(generator.normal(size=3) * x)
    problem = hc.Problem(hc.Minimize(cost))
    form = problem.forms().hidden()
    assert form is not None
    bound = minorant_bound(form, 1e-9, np.inf)
    problem.solve("cone")
    if min(float(each.value) for each in (*norms, length)) > 1e-6:
        assert bound is None  # nothing is at a kink, and the smooth form has a bound of its own
        return
    assert bound is not None
    oracle = problem.forms().written.oracle()
    for _ in range(100):
        value = oracle.at(generator.uniform(-1, 1, 3) * generator.uniform()).objective
        assert bound.value <= value + 1e-9
    assert bound.value <= problem.value + 1e-9 * abs(problem.value)
    assert bound.value >= problem.value - 1e-5 * abs(problem.value)


def test_functions_that_do_not_increase_with_the_norm_have_no_minorant() -> None:
    """(y·x)² is no lower bound that a proof by increasing functions could show, though it is one."""
    x = hc.Variable(2, name="x", bounds=(-2, 2))
    length = hc.norm(x)
    problem = hc.Problem(hc.Minimize(hc.square(length) + length + x[0] * 0.1))
    form = problem.forms().hidden()
    assert form is not None
    assert minorant_bound(form, 1e-9, np.inf) is None


def test_without_a_kink_there_is_nothing_to_replace() -> None:
    x = hc.Variable(2, name="x", bounds=(1, 2))
    form = hc.Problem(hc.Minimize(hc.norm(x) + hc.square(x[0]))).forms().hidden()
    assert form is not None
    assert minorant_bound(form, 1e-9, np.inf) is None


def test_the_median_of_points_that_coincide() -> None:
    # four of seven points lie at one place, which outweighs the others
    place = np.array([1.0, 2.0])
    others = np.array([[0.0, 0.0], [4.0, 1.0], [2.0, 5.0]])
    x = hc.Variable(2, name="x")
    points = [place, place, *others, place, place]
    problem = hc.Problem(hc.Minimize(sum(hc.norm(x - point) for point in points)))
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(np.linalg.norm(others - place, axis=1).sum(), rel=1e-6)
