"""The map at a point: tangent coordinates, hidden Hessian, inverse, and maps that are separable."""

from __future__ import annotations

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.analysis.hidden_map import OBJECTIVE, HiddenMap
from hcmodel.maps.declared import complete
from hcmodel.maps.separable import declared_coordinates


def hidden_map(problem: hc.Problem) -> HiddenMap:
    assert problem.hidden is not None
    return HiddenMap(problem.forms(), complete(problem.hidden, problem.variables))


def test_the_hidden_hessian_of_a_posynomial_is_that_of_its_exponential_form():
    # with x = exp(u), x1 x2 + 4/x1 + 1/x2 has the Hessian Σ a aᵀ exp(a·u), and B = J ∇²H J, J = 1/x
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    objective = x[0] * x[1] + 4 / x[0] + 1 / x[1]
    point = np.array([1.3, 0.7])
    here = hidden_map(hc.Problem(hc.Minimize(objective), hidden=[hc.log(x)])).at(point)
    exponents = np.array([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    sizes = np.array([1.0, 4.0, 1.0]) * np.exp(exponents @ np.log(point))
    in_u = (exponents.T * sizes) @ exponents
    expected = in_u / np.outer(point, point)
    assert here.hidden_hessian(OBJECTIVE) == pytest.approx(expected, rel=1e-10)
    assert here.slope(OBJECTIVE) == pytest.approx(exponents.T @ sizes, rel=1e-10)


def test_variables_that_the_map_leaves_out_are_their_own_coordinate():
    x, y = hc.Variable(name="x", pos=True), hc.Variable(name="y")
    parts = complete([hc.log(x)], [x, y])
    assert parts[1] is y
    assert len(parts) == 2


@pytest.mark.parametrize(
    ("variable", "dimension"),
    [
        (hc.Variable((3, 3), name="P", PSD=(0.1, 10)), 6),
        (hc.Variable((2, 3), name="p", simplex=True), 4),
        (hc.Variable(3, name="x", bounds=([0, 0, 1], [1, 1, 1])), 2),
    ],
)
def test_directions_are_counted_on_the_tangent_space(variable, dimension):
    problem = hc.Problem(hc.Minimize(hc.sum(variable**2)), hidden=[variable])
    hidden = hidden_map(problem)
    point = hidden.sample(1, np.random.default_rng(0))[0]
    assert hidden.dimension == dimension
    assert np.linalg.matrix_rank(point.map_jacobian) == dimension


def test_the_inverse_finds_the_gain_of_a_product():
    P = hc.Variable((2, 2), name="P", PSD=(0.01, 100))
    K = hc.Variable((1, 2), name="K", bounds=(-5, 5))
    hidden = hidden_map(hc.Problem(hc.Minimize(hc.trace(P) + hc.sum(K**2)), hidden=[P, K @ P]))
    start, goal = hidden.sample(2, np.random.default_rng(1))
    found = hidden.inverse(goal.image, start)
    assert found is not None
    assert found.point == pytest.approx(goal.point, abs=1e-8)


def test_no_point_is_found_for_an_image_that_nothing_has():
    x = hc.Variable(name="x", bounds=(-1, 1))
    hidden = hidden_map(hc.Problem(hc.Minimize(x**2), hidden=[hc.exp(x)]))
    start = hidden.at(np.array([0.3]))
    assert hidden.inverse(np.array([-0.5]), start) is None


def test_separable_maps_are_recognised_in_any_order_and_scale():
    x = hc.Variable(2, name="x", bounds=(0.1, 2))
    y = hc.Variable(name="y", bounds=(0.1, 2))
    z = hc.Variable(name="z")
    variables = (x, y, z)
    maps = [
        [hc.log(x), hc.log(y), z],
        [hc.log(x), hc.log(y)],
        [hc.log(hc.hstack([y, x[1], x[0]]))],
        [2 * hc.log(3 * x) + 1, -hc.log(y / 2), 5 - z],
    ]
    for parts in maps:
        assert declared_coordinates(parts, variables) == {x: "log", y: "log", z: "identity"}


@pytest.mark.parametrize(
    "entries",
    [
        lambda x, y: [hc.log(x) + y],
        lambda x, y: [x[0], x[0], y],
        lambda x, y: [x[0], y],
        lambda x, y: [x * y],
        lambda x, y: [x * np.array([1.0, 0.0])],
        lambda x, y: [hc.log(x[0]), x[1]],
        lambda x, y: [hc.log(y), x],
    ],
)
def test_other_maps_are_not_taken_for_separable(entries):
    x, y = hc.Variable(2, name="x", bounds=(0.1, 2)), hc.Variable(name="y", bounds=(-1, 1))
    assert declared_coordinates(entries(x, y), (x, y)) is None
