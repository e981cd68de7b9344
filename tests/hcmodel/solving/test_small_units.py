"""Models in small units: backends stop at absolute errors, results are right relatively."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import hcmodel as hc

A, B = np.array([[0.0, 1.0], [2.0, -0.1]]), np.array([[0.0], [1.0]])


def regulator(cost: float = 1.0, noise: float = 1.0, cap: float | None = None) -> hc.Problem:
    P, K = hc.Variable((2, 2), name="P", PSD=True), hc.Variable((1, 2), name="K")
    F = A + B @ K
    energy = hc.trace(K @ P @ K.T)
    rows = [F @ P + P @ F.T + noise * np.eye(2) == 0]
    if cap is None:
        return hc.Problem(hc.Minimize(cost * (hc.trace(P) + energy)), rows)
    return hc.Problem(hc.Minimize(hc.trace(P)), [*rows, (energy <= cap).named("cap")])


@pytest.mark.parametrize("cost", [1e-6, 1e-8, 1e-10])
def test_a_cost_in_small_units_has_the_same_minimum(cost):
    problem = regulator(cost=cost)
    problem.solve()
    expected = np.trace(scipy.linalg.solve_continuous_are(A, B, np.eye(2), np.eye(1)))
    assert problem.status == "optimal"
    assert problem.value / cost == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("noise", [1e-3, 1e-6, 1e-9])
def test_a_limit_in_small_units_is_kept(noise):
    problem, known = regulator(noise=noise, cap=12 * noise), regulator(cap=12.0)
    problem.solve()
    known.solve()
    assert problem.status == known.status == "optimal"
    assert problem.value / noise == pytest.approx(known.value, rel=1e-7)
    P, K = (variable.value for variable in problem.variables)
    assert np.trace(K @ P @ K.T) / noise <= 12.0 * (1 + 1e-7)


@pytest.mark.parametrize("size", [1e-6, 1e-9, 1e-11])
def test_least_squares_in_small_units(size):
    rng = np.random.default_rng(25)
    matrix, target = rng.normal(size=(5, 3)), rng.normal(size=5)
    x = hc.Variable(3, name="x")
    problem = hc.Problem(
        hc.Minimize(size * hc.sum_squares(matrix @ x - target)), [hc.norm(x) <= 0.1]
    )
    plain = hc.Problem(hc.Minimize(hc.sum_squares(matrix @ x - target)), [hc.norm(x) <= 0.1])
    plain.solve()
    problem.solve()
    assert problem.value / size == pytest.approx(plain.value, rel=1e-6)
