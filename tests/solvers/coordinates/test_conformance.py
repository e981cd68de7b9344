"""Coordinates of every kind against finite differences, and what the check says of wrong ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

import hcmodel as hc
from hcmodel.solvers import Box
from hcmodel.solvers.algebra.hessians import Hessian
from hcmodel.solvers.coordinates.general import MapCoordinates
from hcmodel.solvers.coordinates.plain import PlainCoordinates
from hcmodel.solvers.coordinates.protocol import Coordinates, SecondDerivatives
from hcmodel.testing import check_coordinates

FloatArray = NDArray[np.float64]


def declared(objective: hc.Expression, *hidden: hc.Expression) -> MapCoordinates:
    form = hc.Problem(hc.Minimize(objective), hidden=list(hidden)).forms().as_declared()
    assert form is not None
    assert form.map_geometry is not None
    return form.map_geometry


def domain_of(variable: hc.Variable) -> Coordinates:
    return PlainCoordinates(hc.Problem(hc.Minimize(hc.sum(variable**2))).canonical.domain)


def regulator() -> MapCoordinates:
    """(P, K P) with a symmetric P, whose entries c has twice."""
    P = hc.Variable((2, 2), name="P", PSD=(0.1, 10))
    K = hc.Variable((1, 2), name="K", bounds=(-5, 5))
    return declared(hc.trace(P) + hc.sum((K @ P) ** 2), P, K @ P)


def occupancy() -> MapCoordinates:
    """d(π)·π for a chain of three states and two actions: c(X) is thinner than its space."""
    generator = np.random.default_rng(3)
    transition = generator.dirichlet(np.ones(3), size=(3, 2))
    policy = hc.Variable((3, 2), name="policy", simplex=True)
    step = hc.sum(hc.reshape(policy, (3, 2, 1)) * transition, axis=1)
    visits = hc.solve(np.eye(3) - 0.9 * step.T, np.full(3, 1 / 3))
    return declared(hc.sum(visits**2), hc.reshape(visits, (3, 1)) * policy)


def triangular() -> MapCoordinates:
    """u_k = x_k − 2 x_{k−1}² + 1, the map of Chebyshev and Rosenbrock."""
    x = hc.Variable(4, name="x", bounds=(-1.5, 1.5))
    residual = x[1:] - 2 * x[:-1] ** 2 + 1
    return declared(hc.sum(residual**2) + x[0] ** 2, x[0], residual)


def monotone() -> MapCoordinates:
    x = hc.Variable(3, name="x", bounds=(-2, 2))
    mixed = hc.exp(x[0]) + x[1]
    return declared(mixed**2 + hc.sum(x**2), mixed, x[1] + hc.tanh(x[2]), x[2])


def badly_scaled() -> MapCoordinates:
    """A triangular map between units that are 1e12 and more apart."""
    x = hc.Variable(2, name="x", bounds=([1e-8, 1e5], [1e-7, 1e6]))
    u = hc.hstack([1e-3 * x[0], 1e9 * (x[1] / 1e6 - (1e7 * x[0]) ** 2)])
    return declared(hc.sum(u**2), u)


def curved_slack() -> MapCoordinates:
    """A slack S ⪰ 0 that is no coordinate, as in regulators in discrete time."""
    P = hc.Variable((2, 2), name="P", PSD=(0.5, 5))
    S = hc.Variable((2, 2), name="S", PSD=(0.1, 5))
    return declared(hc.trace(P) + hc.trace(S @ S), P, S + P @ P)


def logarithms(lower: float, upper: float, size: int) -> MapCoordinates:
    """The logarithm of a product and that of a factor, and the other entries as they are."""
    x = hc.Variable(size, name="x", bounds=(lower, upper))
    return declared(hc.sum(x**2), hc.log(x[0]) + hc.log(x[1]), hc.log(x[1]), x[2:])


KINDS = {
    "box": lambda: PlainCoordinates(Box.of(3, -1.0, 2.0)),
    "simplex": lambda: domain_of(hc.Variable((2, 3), simplex=True)),
    "matrices": lambda: domain_of(hc.Variable((3, 3), PSD=(0.1, 10))),
    "logarithms": lambda: logarithms(1e-3, 1e3, size=3),
    "small logarithms": lambda: logarithms(1e-13, 1e-9, size=2),
    "regulator": regulator,
    "occupancy": occupancy,
    "triangular": triangular,
    "monotone": monotone,
    "badly scaled": badly_scaled,
    "curved slack": curved_slack,
}


@pytest.mark.parametrize("kind", KINDS)
def test_coordinates_agree_with_finite_differences(kind: str) -> None:
    coordinates = KINDS[kind]()
    if kind == "curved slack":  # methods take off what the cone holds back; the map itself does not
        coordinates = replace(coordinates, curved=())
    report = check_coordinates(coordinates)
    assert report.points == 3
    assert report.dimensions[1] <= report.dimensions[0]


def test_dimensions_are_those_of_the_tangent_space() -> None:
    assert check_coordinates(regulator()).dimensions == (5, 5, 6)
    assert check_coordinates(occupancy()).dimensions == (6, 3, 6)


@dataclass(frozen=True)
class Wrong(MapCoordinates):
    """Logarithms with one mistake."""

    mistake: str = ""

    def slopes(self, x: FloatArray, gradients: FloatArray) -> FloatArray | None:
        found = super().slopes(x, gradients)
        assert found is not None
        return found / x if self.mistake == "slope" else found

    def hidden_hessian(
        self, x: FloatArray, gradient: FloatArray, second: SecondDerivatives
    ) -> Hessian:
        if self.mistake == "hidden Hessian":
            return second(None)
        return super().hidden_hessian(x, gradient, second)

    def retract(self, x: FloatArray, step: FloatArray) -> FloatArray:
        if self.mistake == "retraction":
            return self.domain.project(x + step)
        return super().retract(x, step)

    def inverse(self, image: FloatArray, start: FloatArray) -> FloatArray | None:
        return start if self.mistake == "inverse" else super().inverse(image, start)

    def image(self, x: FloatArray) -> FloatArray:
        found = super().image(x)
        return 2.0 * found if self.mistake == "derivative of the image" else found


@pytest.mark.parametrize(
    "mistake", ["derivative of the image", "slope", "hidden Hessian", "retraction", "inverse"]
)
def test_a_mistake_is_found_and_named(mistake: str) -> None:
    right = logarithms(0.1, 10.0, size=2)
    check_coordinates(right)
    named = "curvature along|retraction" if mistake == "retraction" else mistake
    with pytest.raises(AssertionError, match=named):
        check_coordinates(Wrong(right.stack, right.domain, right.bending, mistake=mistake))


def test_a_singular_map_is_refused() -> None:
    x = hc.Variable(2, name="x", bounds=(-1, 1))
    u = hc.hstack([x[0] + x[1], (x[0] + x[1]) ** 3])
    with pytest.raises(hc.ModelError, match="do not determine x"):
        check_coordinates(declared(hc.sum(u**2), u))
