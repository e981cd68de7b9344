"""Perspectives of powers and exponentials, multiplied out: proven, and solved as CVXPY's cones do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import hcmodel as hc
from hcmodel.maps import bounded
from tests.proven import is_proven

# How near the values come to those of CVXPY with Clarabel, whose tolerance is 1e-8.
CLOSE = 1e-6

Mine = Callable[[Any, Any], Any]
Theirs = Callable[[Any, Any, Any], list[Any]]


def power(p: float, above: Callable[[Any], Any]) -> Theirs:
    """above(y)^p / t^(p − 1) <= z in CVXPY."""

    def rows(y: Any, t: Any, z: Any) -> list[Any]:
        x = cp.Variable()
        return [cp.constraints.PowCone3D(z, t, x, 1 / p), above(y) <= x]

    return rows


def exponential(y: Any, t: Any, z: Any) -> list[Any]:
    return [cp.constraints.ExpCone(y[0], t, z)]


def logarithm(y: Any, t: Any, z: Any) -> list[Any]:
    v = cp.Variable(2)
    cones = [cp.constraints.ExpCone(y[i] - z, t, v[i]) for i in range(2)]
    return [*cones, v[0] + 2 * v[1] <= t]


def soft_plus(y: Any, t: Any, z: Any) -> list[Any]:
    v, above = cp.Variable(2), [0.0, y[0]]
    cones = [cp.constraints.ExpCone(above[i] - z, t, v[i]) for i in range(2)]
    return [*cones, cp.sum(v) <= t]


def huber(y: Any, t: Any, z: Any) -> list[Any]:
    """The sum over i of the least n²/t + |y − n|, M = 0.5."""
    n = cp.Variable(2)
    return [cp.quad_over_lin(n[0], t) + cp.quad_over_lin(n[1], t) + cp.norm(y - n, 1) <= z]


FUNCTIONS: dict[str, tuple[Mine, Theirs]] = {
    "norm(y)^3/t^2": (lambda y, t: hc.norm(y) ** 3 / t**2, power(3, cp.norm)),
    "t*(norm(y)/t)^2.5": (lambda y, t: t * (hc.norm(y) / t) ** 2.5, power(2.5, cp.norm)),
    "roots of sums of squares": (
        lambda y, t: hc.sum(y**2) ** 1.5 / t**2,
        power(3, cp.norm),
    ),
    "abs(y)^3/t^2": (lambda y, t: hc.abs(y[0]) ** 3 / t**2, power(3, lambda y: cp.abs(y[0]))),
    "norm1": (lambda y, t: hc.norm(y, 1) ** 1.5 / t**0.5, power(1.5, lambda y: cp.norm(y, 1))),
    "t*exp(y/t)": (lambda y, t: t * hc.exp(y[0] / t), exponential),
    "exp(log(t) + y/t)": (lambda y, t: hc.exp(hc.log(t) + y[0] / t), exponential),
    "exp of a difference": (
        lambda y, t: np.e * t * hc.exp((y[0] - t) / t),
        exponential,
    ),
    "t*log(sum(exp(y/t)))": (
        lambda y, t: t * hc.log(hc.exp(y[0] / t) + 2 * hc.exp(y[1] / t)),
        logarithm,
    ),
    "t*logsumexp": (
        lambda y, t: t * hc.logsumexp(hc.hstack([y[0] / t, y[1] / t + np.log(2.0)])),
        logarithm,
    ),
    "t*softplus(y/t)": (lambda y, t: t * hc.softplus(y[0] / t), soft_plus),
    "t*huber(y/t)": (lambda y, t: hc.sum(t * hc.huber(y / t, M=0.5)), huber),
    "t*norm(y/t)": (lambda y, t: t * hc.norm(y / t), lambda y, t, z: [cp.norm(y) <= z]),
    "t*max(abs(y/t))": (
        lambda y, t: t * hc.max(hc.abs(y / t)),
        lambda y, t, z: [cp.norm(y, "inf") <= z],
    ),
    "what is above a share": (
        lambda y, t: t * hc.sum(hc.maximum(y / t - 0.5, 0)),
        lambda y, t, z: [cp.sum(cp.pos(y - 0.5 * t)) <= z],
    ),
    "squares of what is above a share": (
        lambda y, t: t * hc.sum(hc.maximum(y / t - 0.5, 0) ** 2),
        lambda y, t, z: [cp.quad_over_lin(cp.pos(y - 0.5 * t), t) <= z],
    ),
    "t*norm(y/t)^3": (lambda y, t: t * hc.norm(y / t) ** 3, power(3, cp.norm)),
    "a norm of ratios and constants": (
        lambda y, t: (t + 1) * hc.norm(hc.hstack([y[0] / (t + 1), 0.1, (y[1] - t) / (t + 1)])),
        lambda y, t, z: [cp.norm(cp.hstack([y[0], (t + 1) / 10, y[1] - t])) <= z],
    ),
}


@pytest.mark.parametrize("both", FUNCTIONS.values(), ids=FUNCTIONS)
def test_in_the_objective_and_in_a_row(both: tuple[Mine, Theirs]) -> None:
    mine, theirs = both
    wanted = np.array([1.0, -0.4])
    for in_row in (False, True):
        y, t = hc.Variable(2, name="y"), hc.Variable(name="t", pos=True)
        distance = hc.sum((y - wanted) ** 2) + (t - 0.7) ** 2
        rows = [mine(y, t) <= 0.8] if in_row else []
        problem = hc.Problem(hc.Minimize(distance if in_row else distance + mine(y, t)), rows)
        assert problem.is_hidden_convex()
        u, s, z = cp.Variable(2), cp.Variable(), cp.Variable()
        away = cp.sum_squares(u - wanted) + cp.square(s - 0.7)
        objective = away if in_row else away + z
        peer = cp.Problem(cp.Minimize(objective), [*theirs(u, s, z), *([z <= 0.8] * in_row)])
        best = peer.solve(solver=cp.CLARABEL)
        assert problem.solve() == pytest.approx(best, rel=CLOSE, abs=CLOSE)
        assert problem.status == "optimal"


def test_affine_denominators_and_numerators() -> None:
    """(t₁ + t₂)·exp((2 y − t₁)/(t₁ + t₂)) and a cube over the same."""
    y, t = hc.Variable(name="y", nonneg=True), hc.Variable(2, name="t", pos=True)
    total = t[0] + t[1]
    rows = [total * hc.exp((2 * y - t[0]) / total) <= 1.5, (y + 1) ** 3 / total**2 <= 9.0]
    problem = hc.Problem(hc.Minimize((y - 1) ** 2 + hc.sum((t - 1) ** 2)), rows)
    u, s, x = cp.Variable(), cp.Variable(2), cp.Variable()
    peer = cp.Problem(
        cp.Minimize(cp.square(u - 1) + cp.sum_squares(s - 1)),
        [
            cp.constraints.ExpCone(2 * u - s[0], s[0] + s[1], cp.Constant(1.5)),
            cp.constraints.PowCone3D(cp.Constant(9.0), s[0] + s[1], x, 1 / 3),
            u + 1 <= x,
            u >= 0,
        ],
    )
    assert problem.solve() == pytest.approx(peer.solve(solver=cp.CLARABEL), rel=CLOSE)
    assert problem.status == "optimal"


def test_a_ratio_of_powers_with_two_denominators() -> None:
    """y^4/(s t) with y >= 0: above a geometric mean of z, s, t and 1."""
    y, s, t = hc.Variable(name="y", nonneg=True), hc.Variable(name="s", pos=True), None
    t = hc.Variable(name="t", pos=True)
    rows = [s + t <= 2.0, y >= 1.5]
    problem = hc.Problem(hc.Minimize(y**4 / (s * t) + (s - 0.5) ** 2), rows)
    assert problem.is_hidden_convex()
    values = np.linspace(0.3, 1.7, 200_001)
    best = float((1.5**4 / (values * (2 - values)) + (values - 0.5) ** 2).min())
    assert problem.solve() == pytest.approx(best, rel=CLOSE)
    assert problem.status == "optimal"


def test_the_language() -> None:
    text = """var y[2] in [-3, 3]
var t in [0.1, 5]
minimize t + norm(y)^3/t^2 + t*exp(y[1]/t)
subject to
    sum: y[1] + y[2] >= 1
"""
    problem = hc.parse(text)
    u, s, x, z = cp.Variable(2), cp.Variable(), cp.Variable(), cp.Variable(2)
    rows = [cp.constraints.PowCone3D(z[0], s, x, 1 / 3), cp.norm(u) <= x, cp.sum(u) >= 1]
    rows += [cp.constraints.ExpCone(u[0], s, z[1]), s >= 0.1, s <= 5, cp.abs(u) <= 3]
    peer = cp.Problem(cp.Minimize(s + cp.sum(z)), rows)
    assert problem.solve() == pytest.approx(peer.solve(solver=cp.CLARABEL), rel=CLOSE)
    assert problem.status == "optimal"


def test_multipliers_are_those_of_the_rows_as_they_are_written() -> None:
    step = 1e-3

    def solved(most: float) -> tuple[float, Any]:
        y, t = hc.Variable(name="y"), hc.Variable(name="t", pos=True)
        row = t * hc.exp(y / t) <= most
        return hc.Problem(hc.Minimize((y - 1) ** 2 + (t - 1) ** 2), [row]).solve(), row

    slope = (solved(1.5 + step)[0] - solved(1.5 - step)[0]) / (2 * step)
    assert float(solved(1.5)[1].dual_value) == pytest.approx(-slope, rel=1e-4)


WRONG: dict[str, Mine] = {
    "a weight below 0": lambda y, t: y[0] ** 2 - hc.norm(y) ** 3 / t**2,
    "a base without a sign": lambda y, t: y[0] ** 3 / t**2,
    "a power that is too small": lambda y, t: hc.norm(y) ** 1.5 / t**1.5,
    "another factor": lambda y, t: t**2 * hc.exp(y[0] / t),
    "another denominator": lambda y, t: t * hc.exp(y[0] / t**2),
    "exp(-y/t) less a perspective": lambda y, t: -t * hc.exp(-y[0] / t),
    "a logarithm with another factor": lambda y, t: t**2 * hc.log(1 + hc.exp(y[0] / t)),
    "softplus of a ratio alone": lambda y, t: 3 * hc.softplus(5 * y[0] / t),
    "softplus with a weight below 0": lambda y, t: -3 * t * hc.softplus(5 * y[0] / t),
    "softplus with another factor": lambda y, t: t**2 * hc.softplus(y[0] / t),
    "huber of a ratio alone": lambda y, t: 3 * hc.huber(y[0] / t),
    "huber with a weight below 0": lambda y, t: -3 * t * hc.huber(y[0] / t),
    "a norm with a weight below 0": lambda y, t: -5 * t * hc.norm(y / t),
    "a norm with another factor": lambda y, t: t**3 * hc.norm(y / t),
    "squares with a weight below 0": lambda y, t: -3 * t * hc.maximum(y[0] / t - 1, 0) ** 2,
    "squares of what may be negative": lambda y, t: t * hc.max(y / t) ** 2,
    "maxima of different ratios": lambda y, t: t * hc.maximum(y[0] / t, y[1] / t**2),
    "a product with an entry": lambda y, t: y[1] * hc.norm(y) ** 3 / t**2,
}


@pytest.mark.parametrize("mine", WRONG.values(), ids=WRONG)
def test_what_is_no_convex_perspective_is_not_claimed(mine: Mine) -> None:
    y, t = hc.Variable(2, name="y", bounds=(-2, 2)), hc.Variable(name="t", bounds=(0.1, 3))
    distance = hc.sum((y - 1) ** 2) + (t - 1) ** 2
    assert not is_proven(hc.Problem(hc.Minimize(distance + mine(y, t))))


def test_an_equality_with_a_perspective_is_not_claimed() -> None:
    y, t = hc.Variable(name="y"), hc.Variable(name="t", pos=True)
    problem = hc.Problem(hc.Minimize((y - 1) ** 2 + t**2), [t * hc.exp(y / t) == 1.5])
    assert not is_proven(problem)


def test_a_factor_that_may_be_negative_is_not_claimed() -> None:
    """t·norm(y/t) is −norm(y) where t < 0."""
    y, t = hc.Variable(2, name="y", bounds=(-2, 2)), hc.Variable(name="t", bounds=(-1, 3))
    problem = hc.Problem(hc.Minimize(hc.sum((y - 1) ** 2) + (t - 1) ** 2 + t * hc.norm(y / t)))
    assert not is_proven(problem)


def test_an_equality_with_a_homogeneous_function_is_not_claimed() -> None:
    """t·max(y/t) is max(y), which is not affine."""
    y, t = hc.Variable(2, name="y"), hc.Variable(name="t", pos=True)
    rows = [t * hc.max(y / t) + t == 1.5]
    assert not is_proven(hc.Problem(hc.Minimize(hc.sum((y - 1) ** 2) + t**2), rows))


@pytest.mark.parametrize("seed", range(4))
def test_bounds_of_random_members_are_below_all_points(seed: int) -> None:
    """The certified bound is not above the objective at random points, nor at those near the best one."""
    generator = np.random.default_rng(seed)
    y, t = hc.Variable(3, name="y", bounds=(-2, 2)), hc.Variable(name="t", bounds=(0.2, 3))
    matrix, wanted = generator.normal(size=(2, 3)), generator.normal(size=3)
    p, k = float(generator.uniform(1.2, 4.0)), generator.uniform(0.1, 2.0, 3)

    def value(xp: Any, y: Any, t: Any) -> Any:
        norm = xp.sqrt(xp.sum((matrix @ y) ** 2)) if xp is np else hc.norm(matrix @ y)
        mixed = t * xp.log(1 + k[2] * xp.exp(y[1] / t))
        away = xp.sum((y - wanted) ** 2)
        return k[0] * norm**p / t ** (p - 1) + k[1] * t * xp.exp(y[0] / t) + mixed + away

    problem = hc.Problem(hc.Minimize(value(hc, y, t)))
    best = problem.solve()
    assert problem.status == "optimal"
    bound = problem.solution.certificate.lower_bound
    for scale in (2.0, 0.1, 1e-3):
        for _ in range(300):
            points = np.clip(y.value + scale * generator.normal(size=3), -2, 2)
            time = float(np.clip(float(t.value) + scale * generator.normal(), 0.2, 3))
            assert value(np, points, time) >= bound - 1e-9 * abs(best)


@pytest.mark.parametrize("rule", ["_entropy", "_multiples"])
def test_a_wrong_rule_is_caught(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that do not hold, and weights of z that are others, are seen at a point of the model."""
    right = getattr(bounded, rule)
    monkeypatch.setattr(bounded, rule, lambda *given: right(*given).scaled(0.5))
    y, t = hc.Variable(name="y"), hc.Variable(name="t", pos=True)
    problem = hc.Problem(hc.Minimize(t * hc.exp(y / t) + (y - 1) ** 2 + (t - 1) ** 2))
    assert not is_proven(problem)
