"""Curvature from several steps at once, and the runs that it makes shorter."""

from __future__ import annotations

import autograd.numpy as anp
import numpy as np
import pytest

import hcmodel as hc
from hcmodel.solvers.first_order.joint_secant import joined, surprise

HESSIAN = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 0.8]])
STEPS = np.array([[1.0, 0.2, 0.0], [0.1, -0.5, 0.3], [0.0, 0.4, 1.0]])


def test_as_many_steps_as_unknowns_show_a_quadratic_function() -> None:
    pairs = [(step, HESSIAN @ step) for step in STEPS]
    found = joined(np.eye(3), pairs, np.zeros(3))
    assert found @ HESSIAN == pytest.approx(np.eye(3), abs=1e-3)


def test_the_matrix_so_far_stays_where_no_step_went() -> None:
    pairs = [(step, HESSIAN @ step) for step in np.eye(3)[:2]]
    found = np.linalg.inv(joined(np.eye(3), pairs, np.zeros(2)))
    assert found[:2, :2] == pytest.approx(HESSIAN[:2, :2], abs=1e-3)
    assert found[2, 2] == pytest.approx(1.0, abs=1e-3)


def test_pairs_across_which_slopes_do_not_fit_count_less() -> None:
    """The long steps show twice the curvature, and miss it by as much as they are long."""
    pairs = [(step, HESSIAN @ step) for step in STEPS]
    wrong = [(100 * step, 200 * HESSIAN @ step) for step in STEPS]
    missed = np.array([1e-3] * 3 + [1e-1] * 3)
    found = joined(np.eye(3), pairs + wrong, missed)
    assert found @ HESSIAN == pytest.approx(np.eye(3), abs=1e-2)


def test_the_matrix_stays_definite() -> None:
    pairs = [(step, -step) for step in np.eye(3)]
    found = joined(np.eye(3), pairs, np.zeros(3))
    assert np.linalg.eigvalsh(found) == pytest.approx(np.full(3, 5.0))  # a fifth of the curvature


def test_one_pair_or_a_matrix_that_is_not_definite_changes_nothing() -> None:
    pair = (STEPS[0], HESSIAN @ STEPS[0])
    assert joined(np.eye(3), [pair], np.zeros(1)) == pytest.approx(np.eye(3))
    assert joined(-np.eye(3), [pair, pair], np.zeros(2)) == pytest.approx(-np.eye(3))


def test_a_change_of_the_slope_is_compared_with_what_the_matrix_expects() -> None:
    inverse = np.linalg.inv(HESSIAN)
    assert surprise(inverse, STEPS[0], HESSIAN @ STEPS[0]) == pytest.approx(0.0, abs=1e-12)
    assert surprise(inverse, STEPS[0], 2 * HESSIAN @ STEPS[0]) == pytest.approx(0.5)
    assert surprise(-inverse, STEPS[0], HESSIAN @ STEPS[0]) == np.inf


@pytest.mark.parametrize(("unknowns", "most"), [(5, 16), (8, 24)])
def test_a_quadratic_black_box_takes_no_more_points_than_slsqp(unknowns, most) -> None:
    """SLSQP takes 16 and 24 with a condition of 1000; sequences of BFGS updates took 24 and 41."""
    generator = np.random.default_rng(7516 if unknowns == 5 else 7502)
    turn = np.linalg.qr(generator.normal(size=(unknowns, unknowns)))[0]
    matrix = (turn * np.geomspace(1, 1000, unknowns)) @ turn.T
    target = generator.normal(size=unknowns)
    x = hc.Variable(unknowns, name="x", start=generator.normal(size=unknowns))
    problem = hc.Problem(
        hc.Minimize(
            hc.function(lambda z: anp.dot(z, anp.dot(matrix, z)) / 2 - anp.dot(target, z), x)
        )
    )
    problem.solve()
    optimum = -target @ np.linalg.solve(matrix, target) / 2
    assert problem.status == "locally_optimal"
    assert problem.value == pytest.approx(optimum, abs=1e-6)
    assert problem.solution.function_calls.values <= most
