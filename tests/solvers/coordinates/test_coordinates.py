"""Hidden coordinates: the chain rule of logarithms, boxes in u, frames, hidden Hessians, retractions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import hcmodel as hc
from hcmodel.solvers import Box
from hcmodel.solvers.coordinates.general import MapCoordinates
from hcmodel.solvers.coordinates.logarithmic import LogStack
from hcmodel.solvers.oracle import Oracle
from hcmodel.solvers.sets.box import LogBox
from hcmodel.solvers.sets.product import Product

FloatArray = NDArray[np.float64]


def stack_of(problem: hc.Problem) -> tuple[hc.Problem, LogStack]:
    compiled = problem.compile()
    compiled.refresh()
    return problem, LogStack(compiled, np.array([True, True, False]))


def mixed() -> tuple[hc.Problem, LogStack]:
    x = hc.Variable(2, name="x", bounds=(0.1, 10))
    z = hc.Variable(name="z", bounds=(-2, 2))
    objective = x[0] * x[1] + hc.exp(z) / x[0] + (z - 1) ** 2
    return stack_of(hc.Problem(hc.Minimize(objective), [x[0] * x[1] ** 2 + z**2 <= 4]))


def test_derivatives_by_u_are_those_of_the_composition() -> None:
    _, stack = mixed()
    u, step = np.array([0.3, -0.5, 0.7]), 1e-6
    forward = stack.evaluate(u, "all")
    jacobian, weights = np.asarray(forward.jacobian()), np.array([1.0, 0.3, -0.2])
    hessian = stack.hessian(u, weights)
    for place, direction in enumerate(np.eye(3)):
        ahead = stack.evaluate(u + step * direction, "all")
        behind = stack.evaluate(u - step * direction, "all")
        slope = (ahead.values - behind.values) / (2 * step)
        np.testing.assert_allclose(jacobian[:, place], slope, rtol=1e-6, atol=1e-8)
        change = (ahead.jacobian() - behind.jacobian()).T @ weights / (2 * step)
        np.testing.assert_allclose(hessian[:, place], change, rtol=1e-6, atol=1e-7)


def test_points_go_there_and_back() -> None:
    _, stack = mixed()
    x = np.array([1e-13, 1e17, -3.0])
    np.testing.assert_allclose(stack.point(stack.coordinates(x)), x, rtol=1e-13)


def test_boxes_stay_boxes_and_a_factor_e_is_the_unit() -> None:
    logs = np.array([True, False, True])
    box = Box(np.array([1e-3, -1.0, 0.0]), np.array([1e3, 1.0, np.inf])).in_logarithms(logs)
    assert isinstance(box, LogBox)
    np.testing.assert_allclose(box.lower, [np.log(1e-3), -1.0, -np.inf])
    np.testing.assert_allclose(box.upper, [np.log(1e3), 1.0, np.inf])
    np.testing.assert_allclose(box.metric(np.array([5.0, 0.3, 30.0]))[[0, 2]], 1.0)
    product = Product([Box.of(1, 0.5, 2.0), Box.of(1)]).in_logarithms(np.array([True, False]))
    np.testing.assert_allclose(product.project(np.array([9.0, 9.0])), [np.log(2.0), 9.0])


def curved() -> tuple[hc.Problem, MapCoordinates, Oracle]:
    """H(u) = u1² + (u2 − 1)⁴ + u1 u2 in u = (x1, x2 − 2 x1²)."""
    x = hc.Variable(2, name="x", bounds=(-3, 3))
    u = hc.hstack([x[0], x[1] - 2 * x[0] ** 2])
    objective = u[0] ** 2 + (u[1] - 1) ** 4 + u[0] * u[1]
    problem = hc.Problem(hc.Minimize(objective), [u[0] + u[1] <= 3], hidden=[u])
    form = problem.forms().hidden()
    assert form is not None
    assert form.map_geometry is not None
    return problem, form.map_geometry, form.oracle()


def test_the_hidden_hessian_is_that_of_the_hidden_function() -> None:
    _, geometry, oracle = curved()
    point = np.array([0.4, -1.2])
    evaluation = oracle.at(point)
    hidden = geometry.hessian(oracle, evaluation, np.array([0.5]))
    u2 = point[1] - 2 * point[0] ** 2
    inner = np.array([[2.0, 1.0], [1.0, 12.0 * (u2 - 1) ** 2]])
    jacobian = np.array([[1.0, 0.0], [-4 * point[0], 1.0]])
    np.testing.assert_allclose(hidden, jacobian.T @ inner @ jacobian, rtol=1e-10, atol=1e-10)


def test_a_frame_moves_u_by_unit_steps() -> None:
    _, geometry, oracle = curved()
    evaluation = oracle.at(np.array([0.4, -1.2]))
    frame = geometry.frame(evaluation)
    jacobian = np.array([[1.0, 0.0], [-1.6, 1.0]])
    moved = np.column_stack([jacobian @ frame.step(w) for w in np.eye(2)])
    np.testing.assert_allclose(moved.T @ moved, np.eye(2), atol=1e-12)


def test_a_retraction_walks_along_the_hidden_line() -> None:
    _, geometry, _ = curved()
    point, step = np.array([0.4, -1.2]), np.array([0.5, 0.2])
    landed = geometry.retract(point, step)
    jacobian = np.array([[1.0, 0.0], [-1.6, 1.0]])
    goal = np.array([0.4, -1.2 - 0.32]) + jacobian @ step
    np.testing.assert_allclose([landed[0], landed[1] - 2 * landed[0] ** 2], goal, atol=1e-10)


def test_steps_into_a_bound_that_bends_stay_inside() -> None:
    problem, geometry, _ = curved()
    landed = geometry.retract(np.array([0.4, -1.2]), np.array([2.0, 50.0]))
    assert problem.canonical.domain.contains(landed)


def test_logarithms_are_for_boxes_alone() -> None:
    P = hc.Variable((2, 2), PSD=True)
    problem = hc.Problem(hc.Minimize(hc.trace(P)), [P[0, 0] >= 1])
    with pytest.raises(ValueError, match="boxes"):
        problem.canonical.domain.in_logarithms(np.ones(3, dtype=bool))
