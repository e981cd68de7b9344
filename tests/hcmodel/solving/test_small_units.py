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


@pytest.mark.parametrize("size", [1e-3, 1e-4, 1e-6, 1e-9])
def test_the_multiplier_of_a_ratio_in_small_units(size):
    """At x = 3/2 the slope of (2x + 1)/(x + 5) is 9/6.5², and that of the row 2."""
    x = hc.Variable(name="x", bounds=(1, 3))
    row = 2 * x >= 3
    problem = hc.Problem(hc.Minimize(size * (2 * x + 1) / (x + 5)), [row])
    problem.solve()
    assert problem.status == "optimal"
    assert row.dual_value / size == pytest.approx(4.5 / 6.5**2, rel=1e-6)


def test_the_multiplier_of_a_ratio_with_a_large_denominator():
    """At x = 4.58 the slope of (0.24 x + 2.29)/(1100 x + 29.6) is (0.24·29.6 − 2.29·1100)/5067.6²."""
    x = hc.Variable(1, name="x")
    rows = [1.52 * x[0] + 1.32 >= 5.3263, 820 * x[0] + 2.69 >= 2677.7447, x >= 0.58, x <= 4.58]
    problem = hc.Problem(hc.Maximize((-0.24 * x[0] - 2.29) / (1100 * x[0] + 29.6)), rows)
    problem.solve()
    assert problem.status == "optimal"
    slope = (2.29 * 1100 - 0.24 * 29.6) / (1100 * 4.58 + 29.6) ** 2
    assert rows[3].dual_value == pytest.approx([slope], rel=1e-6)
    assert all(np.all(row.dual_value == 0) for row in rows[:3])
