"""Small problems with known optima, as plain numpy oracles: no modelling layer is involved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hcmodel.solvers import Box, Oracle, function_oracle

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Model:
    """An oracle over a domain, with its optimal value where that is known."""

    oracle: Oracle
    domain: Box
    start: FloatArray
    value: float


def tank(start: tuple[float, float] = (0.6, 1.6), scale: float = 1.0, row: float = 1.0) -> Model:
    """Ex-CGP of the paper: x* = (2, 1/2), F1* = 5, multiplier 1, in closed form."""

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        a, b = x
        value = a * b + 4 / a + 1 / b
        return scale * value, scale * np.array([b - 4 / a**2, a - 1 / b**2])

    def area(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return row * np.array([x[0] * x[1] - 1.0]), row * np.array([[x[1], x[0]]])

    oracle = function_oracle(2, objective, inequalities=area, sizes=(1, 0))
    return Model(oracle, Box.of(2, 0.4, 3.0), np.array(start), 5.0 * scale)


def quadratic(
    centre: FloatArray, weights: FloatArray | None = None
) -> Callable[[FloatArray], tuple[float, FloatArray]]:
    """½ Σ w (x − centre)², whose gradient is w (x − centre)."""
    w = np.ones(centre.size) if weights is None else weights

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        return float(0.5 * np.sum(w * (x - centre) ** 2)), w * (x - centre)

    return objective


def linear_rows(
    matrix: FloatArray, bound: FloatArray
) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
    """matrix @ x − bound."""
    return lambda x: (matrix @ x - bound, matrix.copy())


@dataclass(frozen=True)
class Map:
    """u = c(x), with the Jacobian of c and its inverse."""

    forward: Callable[[FloatArray], FloatArray]
    jacobian: Callable[[FloatArray], FloatArray]
    inverse: Callable[[FloatArray], FloatArray]


def separable_map(generator: np.random.Generator, size: int) -> Map:
    """u_i = a_i x_i + b_i tanh(x_i), increasing in each coordinate; the inverse by bisection."""
    a, b = generator.uniform(0.5, 1.5, size), generator.uniform(0.2, 2.0, size)

    def forward(x: FloatArray) -> FloatArray:
        return a * x + b * np.tanh(x)

    def inverse(u: FloatArray) -> FloatArray:
        low, high = np.full(size, -50.0), np.full(size, 50.0)
        for _ in range(80):
            middle = (low + high) / 2
            below = forward(middle) < u
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return (low + high) / 2

    return Map(forward, lambda x: np.diag(a + b / np.cosh(x) ** 2), inverse)


def triangular_map(generator: np.random.Generator, size: int) -> Map:
    """u_i = x_i + k_i sin(x_{i−1}): unit triangular, so invertible by forward substitution."""
    k = generator.uniform(-1.0, 1.0, size)
    k[0] = 0.0

    def before(x: FloatArray) -> FloatArray:
        return np.concatenate([[0.0], x[:-1]])

    def jacobian(x: FloatArray) -> FloatArray:
        return np.eye(size) + np.diag((k * np.cos(before(x)))[1:], -1)

    def inverse(u: FloatArray) -> FloatArray:
        x = np.zeros(size)
        for i in range(size):
            x[i] = u[i] - (k[i] * np.sin(x[i - 1]) if i else 0.0)
        return x

    return Map(lambda x: x + k * np.sin(before(x)), jacobian, inverse)


def hidden_convex(seed: int, size: int, make_map: Callable[..., Map], equalities: int = 0) -> Model:
    """A random convex program in u = c(x), over all of R^n, whose KKT point is chosen first.

    H(u) = ½‖M(u − u*)‖² + p·u with p = −Aᵀλ − Eᵀν, rows A u <= A u* (λ > 0 on them, so all active)
    and E u == E u*: by KKT u* is the minimiser, with value p·u*.
    """
    generator = np.random.default_rng(seed)
    change = make_map(generator, size)
    best = generator.uniform(-1.0, 1.0, size)
    root = np.eye(size) + 0.3 * generator.standard_normal((size, size))
    hessian = root.T @ root
    inequality = generator.standard_normal((2, size))
    equality = generator.standard_normal((equalities, size))
    slope = -inequality.T @ generator.uniform(0.5, 2.0, 2)
    slope = slope - equality.T @ generator.uniform(-2.0, 2.0, equalities)

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        u = change.forward(x)
        gradient = hessian @ (u - best) + slope
        value = 0.5 * (u - best) @ hessian @ (u - best) + slope @ u
        return float(value), change.jacobian(x).T @ gradient

    def rows(matrix: FloatArray) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
        return lambda x: (matrix @ (change.forward(x) - best), matrix @ change.jacobian(x))

    oracle = function_oracle(
        size,
        objective,
        inequalities=rows(inequality),
        equalities=rows(equality) if equalities else None,
        sizes=(2, equalities),
    )
    start = change.inverse(best + generator.uniform(-2.0, 2.0, size))
    return Model(oracle, Box.of(size), start, float(slope @ best))
