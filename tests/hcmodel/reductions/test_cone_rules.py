"""Each rule of the cone form on a small model: certified by its dual, or with a value by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hcmodel as hc

A = np.array([[2.0, 1.0], [1.0, 3.0]])
GRID = np.linspace(0.4, 3.0, 5)
# Convex in x, or in log x, over the box of 0.4 to 3; the last column says why it is there.
MODELS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: hc.exp(x[0]) + hc.exp(-x[0] + x[1]) - x[1], "exponentials of affine functions"),
    (lambda x: -hc.log(x[0] - 0.2 * x[1]) + x[0] + x[1], "the logarithm of a difference"),
    (lambda x: -hc.log(5 - x[0] ** 2 - hc.exp(x[1])) - x[0], "of a number less convex functions"),
    (lambda x: (x[0] + 1 / x[1]) * x[1] ** 0.5 + 1 / x[0], "a sum times a power"),
    (lambda x: (x[0] + x[1]) / x[0] ** 2 + x[0] * x[1] + 1 / x[1], "a sum over a power"),
    (lambda x: hc.sum(np.array([3.0, 0.5]) * x) + 2 / (x[0] * x[1]), "weights above and below 1"),
    (lambda x: -(-2 * x[0] - 3 * x[1]) + 1 / (x[0] * x[1] ** 2), "weights that are all negative"),
    (lambda x: hc.sum(A @ x) + hc.sum(1 / x), "weights of a matrix"),
    (lambda x: x @ A @ x - 7 * x[0], "a quadratic form"),
    (lambda x: hc.quad_form(x - 1, A) + x[1], "a quadratic form off its middle"),
    (lambda x: (x[0] - 2 * x[1]) ** 2 + (x[1] - 1) ** 4, "an even power"),
    (lambda x: x[0] ** 3 - 4 * x[0] + x[1] ** 1.5 - x[1], "powers above 1"),
    (lambda x: x[0] ** -0.5 - x[1] ** 0.3 + x[0] + x[1], "powers below 1"),
    (lambda x: hc.quad_over_lin(x - 2, x[0] + x[1]) + x[0], "a square over an affine function"),
    (lambda x: (x[0] - 1) ** 2 / x[1] + 0.3 * x[1], "the same, written as a quotient"),
    (lambda x: (x[0] - x[1]) ** 2 / (1 + x[1]) - 0.1 * x[1], "over a sum"),
    (lambda x: hc.norm(A @ x - 4) + 0.1 * x[0], "a norm"),
    (lambda x: hc.sqrt(1 + (x[0] - 1) ** 2 + x[1] ** 2) - 0.4 * x[1], "a root of squares"),
    (lambda x: hc.logsumexp(A @ x) - 2 * x[0], "a logarithm of a sum of exponentials"),
    (lambda x: hc.log(1 + hc.exp(x[0])) - 0.6 * x[0] + x[1] ** 2, "softplus written out"),
    (lambda x: x[0] * hc.log(x[0] / x[1]) + x[1] - 0.3 * x[0], "a relative entropy"),
    (lambda x: hc.kl_div(x[0], x[1]) + (x[1] - 2) ** 2, "the same as an atom"),
    (lambda x: -hc.sum(hc.entr(x)) + x[0] - x[1], "an entropy"),
    (lambda x: -hc.geo_mean(x) + 0.5 * x[0] + 0.7 * x[1], "a geometric mean"),
    (lambda x: -hc.sqrt(x[0] * x[1]) + 0.3 * x[0] + x[1], "the same as a root"),
    (lambda x: hc.max(A @ x) - 2 * x[0], "a maximum"),
    (lambda x: hc.huber(x[0] - 2) + hc.abs(x[1] - 1) + 0.1 * x[1], "Huber's function"),
    (lambda x: hc.exp(x[0] ** 2 - 1) - 3 * x[0] + x[1], "an exponential of a square"),
    (lambda x: -hc.exp(-0.5) * hc.log(x[0]) + x[0] - hc.log(x[1]) + x[1], "logarithms"),
    (lambda x: hc.square(hc.exp(x[0]) + x[1]) - 20 * x[0], "a square of a positive sum"),
    (lambda x: 1 / (hc.sqrt(x[0]) + hc.log(1 + x[1])) + 0.1 * hc.sum(x), "over concave functions"),
    (
        lambda x: hc.sum_largest(hc.vstack([x[0], x[1], 2 - x[0]]), 2) + 0.1 * x[1],
        "largest entries",
    ),
]


@pytest.mark.parametrize(("cost", "name"), MODELS, ids=[name for _, name in MODELS])
def test_the_cone_program_has_a_point_and_multipliers_that_certify_it(
    cost: Callable[[Any], Any], name: str
) -> None:
    """`optimal` rests on a fresh evaluation of the model and on a bound from the program's dual."""
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    problem = hc.Problem(hc.Minimize(cost(x)))
    found = problem.solve("cone")
    assert problem.status == "optimal", name
    oracle = problem.forms().written.oracle()
    least = min(oracle.at(np.array([a, b])).objective for a in GRID for b in GRID)
    assert found <= least + 1e-6 * abs(least)


ROWS: list[tuple[Callable[[Any], Any], Callable[[Any], Any], float, str]] = [
    # cost, row, the least value by hand, why
    (lambda x: x[0] + x[1], lambda x: x[0] * x[1] >= 1, 2.0, "a product from below"),
    (lambda x: x[0] + x[1], lambda x: hc.sqrt(x[0]) + hc.sqrt(x[1]) >= 2, 2.0, "roots from below"),
    (lambda x: -x[0], lambda x: hc.exp(x[0]) <= 2 * x[1], -np.log(6), "an exponential"),
    (lambda x: x[1], lambda x: hc.log(x[1]) >= x[0] - 0.4, 1.0, "a logarithm from below"),
    (lambda x: -hc.sum(x), lambda x: hc.norm(x) <= 2, -2 * np.sqrt(2), "a norm"),
    (lambda x: -x[0], lambda x: x[0] ** 2 / x[1] <= 1, -np.sqrt(3.0), "a square over a variable"),
    (lambda x: x[0], lambda x: 2 / x[1] <= x[0] + 0 * x[1], 2 / 3, "a reciprocal"),
    (lambda x: x[0] + 2 * x[1], lambda x: hc.log(x[0]) + hc.log(x[1]) >= 0, 2 * np.sqrt(2), "logs"),
    (lambda x: x[1], lambda x: hc.kl_div(2, x[1]) <= 0 * x[0] + 1e-9, 2.0, "a divergence"),
]


@pytest.mark.parametrize(("cost", "row", "value", "name"), ROWS, ids=[each[-1] for each in ROWS])
def test_rows_of_the_cone_program(
    cost: Callable[[Any], Any], row: Callable[[Any], Any], value: float, name: str
) -> None:
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    problem = hc.Problem(hc.Minimize(cost(x)), [row(x)])
    assert problem.solve("cone") == pytest.approx(value, rel=1e-4), name
    assert problem.status == "optimal"


def test_matrices_of_the_cone_program() -> None:
    """Over P between ½ I and 4 I, with C of eigenvalues near 1: closed forms in C."""
    c = np.array([[1.2, 0.3], [0.3, 0.8]])
    p = hc.Variable((2, 2), PSD=(0.5, 4.0), symmetric=True, name="P")
    linear = hc.trace(c @ p)

    def least(cost: Any, *rows: Any) -> float:
        return float(hc.Problem(hc.Minimize(cost), rows).solve("cone"))

    # at P = C⁻¹, C^−½; along v the eigenvalue |v| = √2 and ½ across it
    assert least(linear - hc.logdet(p)) == pytest.approx(2 + np.log(np.linalg.det(c)), rel=1e-5)
    roots = np.sqrt(np.linalg.eigvalsh(c)).sum()
    assert least(linear + hc.trace(hc.inv(p))) == pytest.approx(2 * roots, rel=1e-5)
    v = np.array([1.0, -1.0])
    value = 2 * np.sqrt(2) + 0.5
    assert least(hc.matrix_frac(v, p) + hc.trace(p)) == pytest.approx(value, rel=1e-5)
    assert least(hc.lambda_max(p - 3 * c)) == pytest.approx(
        0.5 - 3 * np.linalg.eigvalsh(c)[0], rel=1e-5
    )
    # the least trace above 2 C is that of 2 C, where it is above ½ I
    assert least(hc.trace(p), p >> 2 * c) == pytest.approx(2 * np.trace(c), rel=1e-5)
    assert least(-hc.trace(p), p << 2 * c) == pytest.approx(-2 * np.trace(c), rel=1e-5)
