"""Models with parameters of all kinds, and derivatives of their solutions by central differences.

A model here has a unique solution that moves smoothly with its parameters. `directional` compares along
one random direction of all parameters: four solves, and Richardson's extrapolation of two central
differences, so that its own error is of fourth order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hcmodel as hc
from hcmodel.studies.optimality import find_conditions
from tests.problems.examples import loaded

FloatArray = NDArray[np.float64]


def lasso() -> hc.Problem:
    """Four of eight entries are 0 and stay there."""
    generator = np.random.default_rng(0)
    x = hc.Variable(8, name="x", bounds=(-5, 5))
    data = hc.Parameter((12,), name="data", value=generator.normal(size=12))
    weight = hc.Parameter(name="weight", value=2.0)
    matrix = generator.normal(size=(12, 8))
    fit = hc.sum_squares(matrix @ x - data)
    return hc.Problem(hc.Minimize(fit + weight * hc.norm(x, 1)))


def minimax() -> hc.Problem:
    """The largest of three parabolas; two of them meet at the solution."""
    x = hc.Variable(2, name="x", bounds=(-4, 4))
    p = hc.Parameter((3,), name="p", value=[0.5, -1.0, 0.2])
    pieces = [hc.sum_squares(x - center) + p[i] for i, center in enumerate(np.eye(3)[:, :2] * 2)]
    return hc.Problem(hc.Minimize(hc.maximum(*pieces)))


def largest_eigenvalue() -> hc.Problem:
    """A distance under a bound on an eigenvalue: the matrix inequality is active."""
    x = hc.Variable((3, 3), name="X", symmetric=True)
    top = hc.Parameter(name="top", value=1.5)
    target = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.4]])
    shift = hc.Parameter(name="shift", value=0.3)
    return hc.Problem(
        hc.Minimize(hc.sum_squares(x - target * (1 + shift))),
        [(top * np.eye(3) >> x).named("top")],
    )


def lyapunov_inequality() -> hc.Problem:
    """A regulator by a matrix inequality, which is active everywhere."""
    a, b = np.array([[0.0, 1.0], [0.5, -0.2]]), np.array([[0.0], [1.0]])
    p = hc.Variable((2, 2), name="P", PSD=(1e-3, 1e3))
    k = hc.Variable((1, 2), name="K", bounds=(-20, 20))
    weight = hc.Parameter(name="weight", value=0.7)
    closed = a + b @ k
    cost = hc.trace((np.eye(2) + weight * k.T @ k) @ p)
    return hc.Problem(hc.Minimize(cost), [closed @ p + p @ closed.T + np.eye(2) == 0])


def tank() -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    cap = hc.Parameter(name="cap", value=1.0)
    steel = hc.Parameter(name="steel", value=4.0, pos=True)
    area = (x[0] * x[1] <= cap).named("area")
    return hc.Problem(hc.Minimize(x[0] * x[1] + steel / x[0] + 1 / x[1]), [area])


def exponents() -> hc.Problem:
    """A geometric program with parameters in exponents and a right-hand side that varies."""
    x = hc.Variable(3, name="x", bounds=(0.1, 10))
    a = hc.Parameter(name="a", value=1.5)
    c = hc.Parameter((2,), name="c", value=[2.0, 0.5], pos=True)
    objective = x[0] ** a / x[1] + c[0] * x[2] / x[0] + x[1] * x[2] ** -0.5
    rows = [c[1] * x[0] * x[2] + x[1] <= 4 * x[0] ** 0.5, x[0] * x[1] * x[2] == 2]
    return hc.Problem(hc.Minimize(objective), rows)


def entropy() -> hc.Problem:
    """A distribution of largest entropy with a given mean."""
    x = hc.Variable(5, name="x", simplex=True)
    mean = hc.Parameter(name="mean", value=2.7)
    return hc.Problem(hc.Maximize(hc.sum(hc.entr(x))), [(np.arange(5.0) @ x == mean).named("mean")])


def group_norm() -> hc.Problem:
    """Groups with three norms; the second group vanishes, the third has two largest entries."""
    x = hc.Variable((3, 2), name="x", bounds=(-5, 5))
    data = hc.Parameter((3, 2), name="data", value=[[2.0, 1.0], [0.2, -0.3], [-1.2, 1.5]])
    groups = hc.norm(x[0]) + hc.norm(x[1], 1) + hc.norm(x[2], "inf")
    return hc.Problem(hc.Minimize(0.5 * hc.sum_squares(x - data) + groups))


def portfolio() -> hc.Problem:
    """Least variance for a wanted return, no short positions; the second one is 0."""
    x = hc.Variable(3, name="x", nonneg=True)
    wanted = hc.Parameter(name="wanted", value=0.09)
    covariance = np.array([[0.1, 0.05, 0.0], [0.05, 0.3, 0.02], [0.0, 0.02, 0.2]])
    gain = np.array([0.05, 0.06, 0.12])
    rows = [hc.sum(x) == 1, gain @ x >= wanted]
    return hc.Problem(hc.Minimize(hc.quad_form(x, covariance)), rows)


OWN: dict[str, Callable[[], hc.Problem]] = {
    each.__name__: each
    for each in (
        *(tank, exponents, lasso, minimax, largest_eigenvalue, lyapunov_inequality),
        *(entropy, group_norm, portfolio),
    )
}
EXAMPLES = (
    *("box_volume", "gate_sizing", "power_control", "water_tank", "cmdp", "exploration"),
    *("apprenticeship", "near_expert", "lqr", "lqr_discrete", "lqr_direct", "lqr_energy"),
    *("pricing", "logit", "kelly", "sharpe"),
)
ALL = (*OWN, *EXAMPLES)


def parametric(name: str) -> hc.Problem:
    return OWN[name]() if name in OWN else loaded(name)


@dataclass(frozen=True)
class Comparison:
    """Relative differences between derivatives and central differences."""

    variables: float
    value: float
    adjoint: float

    @property
    def largest(self) -> float:
        return max(self.variables, self.value, self.adjoint)


def directional(problem: hc.Problem, step: float = 2e-3, seed: int = 0) -> Comparison:
    """Derivatives along one random direction of all parameters against differences of solves."""
    generator = np.random.default_rng(seed)
    parameters = problem.model.parameters
    start = [np.array(each.value, dtype=float) for each in parameters]
    moves = [_direction(generator, value) for value in start]
    problem.solve()
    records = [problem.derivative(each) for each in parameters]
    for record in records:
        assert record.reason is None, record.reason
    weights = {each.name: generator.normal(size=each.shape) for each in problem.model.variables}
    pulled = problem.adjoint(weights)
    pairs = list(zip(records, moves, strict=True))
    found = {
        name: sum(_along(record.variables[name], move) for record, move in pairs)
        for name in weights
    }
    slope = float(sum(np.sum(r.value * move) for r, move in zip(records, moves, strict=True)))
    adjoint = float(sum(np.sum(pulled[p.name] * m) for p, m in zip(parameters, moves, strict=True)))
    points = {}
    for multiple in (-2, -1, 1, 2):
        for parameter, value, move in zip(parameters, start, moves, strict=True):
            parameter.value = value + multiple * step * move
        points[multiple] = _accurate(problem)
    for parameter, value in zip(parameters, start, strict=True):
        parameter.value = value

    def difference(of: Callable[[Any], Any]) -> Any:
        near, far = of(points[1]) - of(points[-1]), of(points[2]) - of(points[-2])
        return (8 * near - far) / (12 * step)

    expected = {name: difference(lambda pair, name=name: pair[1][name]) for name in weights}
    size = max(1e-3, *[float(np.abs(each).max()) for each in expected.values()])
    worst = max(float(np.abs(found[name] - expected[name]).max()) for name in weights)
    value = difference(lambda pair: pair[0])
    by_weights = sum(float(np.sum(weights[name] * found[name])) for name in weights)
    return Comparison(
        worst / size,
        abs(slope - value) / max(1e-3, abs(value)),
        abs(adjoint - by_weights) / max(1e-3, abs(by_weights)),
    )


def _direction(generator: np.random.Generator, value: FloatArray) -> FloatArray:
    """A move by a few per cent: zeros stay, symmetry and sums of distributions are kept."""
    move = 0.1 * value * generator.uniform(-1, 1, size=value.shape)
    if value.ndim == 2 and value.shape[0] == value.shape[1] and np.allclose(value, value.T):
        return np.asarray(0.5 * (move + move.T))
    if value.ndim and np.allclose(value.sum(axis=-1), 1):
        move = move - value * move.sum(axis=-1, keepdims=True)
    return move


def _along(derivative: FloatArray, move: FloatArray) -> FloatArray:
    return np.tensordot(derivative, move, axes=move.ndim) if move.ndim else derivative * move


def _accurate(problem: hc.Problem) -> tuple[float, dict[str, FloatArray]]:
    """Value and point of a fresh solve, made accurate to rounding by Newton's steps."""
    from hcmodel.studies.derivatives import _lifted_point

    problem.solve()
    forms = problem.forms()
    forms.refresh()
    assert problem.solution is not None
    found = find_conditions(forms, _lifted_point(forms, problem.solution), [])
    layout = forms.lifted.canonical.layout
    arrays = layout.unpack(np, found.x)
    point = {v.name: np.array(a) for v, a in zip(layout.variables, arrays, strict=True)}
    objective = forms.sign.value_back(float(found.functions.at(found.x)[0]))
    return objective, point
