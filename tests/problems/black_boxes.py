"""Black boxes with kinks: functions that are code, a map that makes them convex, and known optima.

Nothing of their structure is visible to hcmodel: every function goes through `hc.function`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import autograd.numpy as anp
import numpy as np
from numpy.typing import NDArray

import hcmodel as hc
from tests.problems.library import GEOMETRIC_PROGRAMS

FloatArray = NDArray[np.float64]
Code = Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class Posynomial:
    """Σ_k c_k Π_i x_i^a_ki, as code."""

    coefficients: FloatArray
    exponents: FloatArray

    def __call__(self, x: Any) -> Any:
        return anp.sum(self.coefficients * anp.exp(anp.dot(self.exponents, anp.log(x))))


@dataclass(frozen=True, eq=False)
class GeometricBox:
    """A member of the family: an outer function of posynomials, with posynomial rows `<= 1`."""

    kind: str
    parts: tuple[Posynomial, ...]
    rows: tuple[Posynomial, ...]
    start: FloatArray

    def objective(self, x: Any) -> Any:
        values = [part(x) for part in self.parts]
        if self.kind == "max":
            return anp.max(anp.array(values))
        if self.kind == "norm":
            return anp.sqrt(sum(value**2 for value in values))
        # how far monomials are from 1, as factors, beside a posynomial
        return values[0] + sum(anp.exp(anp.abs(anp.log(value))) for value in values[1:])

    def problem(self, mapped: bool = True) -> hc.Problem:
        x = hc.Variable(self.start.size, name="x", bounds=BOX, start=self.start)
        rows = [hc.function(row, x) <= 1 for row in self.rows]
        hidden = [hc.log(x)] if mapped else None
        return hc.Problem(hc.Minimize(hc.function(self.objective, x)), rows, hidden=hidden)


BOX = (0.1, 10.0)
KINDS = ("max", "norm", "abs")
EXPONENTS = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])


def geometric_box(seed: int) -> GeometricBox:
    """5 to 15 variables, 3 to 6 parts, 1 to 3 rows; odd seeds start anywhere, often infeasible."""
    generator = np.random.default_rng(seed)
    size = int(generator.integers(5, 16))
    kind = KINDS[seed % 3]
    count = int(generator.integers(3, 7))
    parts = [_posynomial(generator, size, int(generator.integers(2, 5))) for _ in range(count)]
    if kind == "abs":
        parts[1:] = [_posynomial(generator, size, 1) for _ in parts[1:]]
        # every variable has its price both ways, so that the optimum is inside
        both = np.vstack([np.eye(size), -np.eye(size)])
        parts[0] = Posynomial(np.exp(generator.normal(0, 0.5, 2 * size)), both)
    inner = np.exp(generator.normal(0, 0.3, size))
    rows = []
    for _ in range(int(generator.integers(1, 4))):
        row = _posynomial(generator, size, int(generator.integers(2, 4)))
        scale = 1.05 * float(row(inner))
        rows.append(Posynomial(row.coefficients / scale, row.exponents))
    start = np.exp(np.clip(generator.normal(0, 0.8, size), -2, 2)) if seed % 2 else np.ones(size)
    return GeometricBox(kind, tuple(parts), tuple(rows), start)


def _posynomial(generator: np.random.Generator, size: int, terms: int) -> Posynomial:
    exponents = np.zeros((terms, size))
    for term in range(terms):
        chosen = generator.choice(size, size=int(generator.integers(2, 5)), replace=False)
        exponents[term, chosen] = generator.choice(EXPONENTS, size=chosen.size)
    return Posynomial(np.exp(generator.normal(0, 0.7, terms)), exponents)


def least_squares_box(mapped: bool = True) -> hc.Problem:
    """Ex-CNLS of Fatkhullin et al. (2025) from the paper's start: optimum 0.15 at (0.85, 0.85)."""
    x = hc.Variable(2, name="x", bounds=(-1, 2.5), start=[-0.3, 0.20005])

    def residuals(x: Any) -> Any:
        return anp.array([x[0] - 1, 2 * anp.abs(x[0]) - x[1] - 1])

    def objective(x: Any) -> Any:
        return anp.max(anp.abs(residuals(x)))

    def near(x: Any) -> Any:
        return anp.sum(anp.abs(residuals(x) - anp.array([-0.5, -0.6]))) - 0.8

    hidden = [x[0] - 1, 2 * hc.abs(x[0]) - x[1] - 1] if mapped else None
    return hc.Problem(
        hc.Minimize(hc.function(objective, x)), [hc.function(near, x) <= 0], hidden=hidden
    )


def chebyshev_rosenbrock(size: int, mapped: bool = True) -> hc.Problem:
    """Nesterov's non-smooth Chebyshev-Rosenbrock function from (−1, 1, …, 1): optimum 0 at 1."""
    x = hc.Variable(size, name="x", bounds=(-2, 2), start=[-1.0] + [1.0] * (size - 1))

    def objective(x: Any) -> Any:
        return anp.abs(x[0] - 1) / 4 + anp.sum(anp.abs(x[1:] - 2 * x[:-1] ** 2 + 1))

    hidden = [x[0], x[1:] - 2 * x[:-1] ** 2 + 1] if mapped else None
    return hc.Problem(hc.Minimize(hc.function(objective, x)), hidden=hidden)


def geometric_program_box(name: str, mapped: bool = True) -> tuple[hc.Problem, float]:
    """One of the geometric programs of other people's suites, each function a black box."""
    data = GEOMETRIC_PROGRAMS[name]
    x = hc.Variable(
        len(data["lower"]), name="x", bounds=(data["lower"], data["upper"]), start=data["start"]
    )

    def code(coefficients: Any, exponents: Any) -> Posynomial:
        return Posynomial(np.array(coefficients, float), np.array(exponents, float))

    rows = [hc.function(code(**row), x) <= 1 for row in data["inequalities"]]
    rows += [  # a product is affine in logarithms after its own logarithm is taken
        hc.log(hc.function(code([row["coefficient"]], [row["exponents"]]), x)) == 0
        for row in data["equalities"]
    ]
    objective = hc.function(code(**data["objective"]), x)
    hidden = [hc.log(x)] if mapped else None
    return hc.Problem(hc.Minimize(objective), rows, hidden=hidden), float(data["optimal_value"])


def random_box(seed: int) -> tuple[hc.Problem, float]:
    """A non-smooth black box that is convex in u = c(x), with the optimum known by construction.

    At u* the slopes of the active pieces and of the active row, weighted, add up to 0. The map is a
    logarithm, a triangular polynomial or a rotation after one.
    """
    generator = np.random.default_rng(seed)
    size, pieces = int(generator.integers(2, 5)), int(generator.integers(3, 7))
    optimum = generator.uniform(-0.5, 0.5, size)
    slopes = generator.normal(size=(pieces, size))
    weights = generator.dirichlet(np.ones(pieces))
    normal = generator.normal(size=size)
    price = float(generator.choice([0.0, generator.uniform(0.1, 2)]))
    slopes -= weights @ slopes + price * normal  # Σ w a + λ b = 0
    bends = generator.choice([0.0, 1.0], size=pieces) * generator.uniform(0, 2, pieces)
    value = float(generator.normal())
    kind = seed % 3
    turn = np.linalg.qr(generator.normal(size=(size, size)))[0] if kind == 2 else np.eye(size)
    low, high = (0.2, 5.0) if kind == 0 else (-2.0, 2.0)
    x = hc.Variable(size, name="x", bounds=(low, high))

    def code(x: Any) -> Any:
        if kind == 0:
            return anp.log(x)
        bent = anp.concatenate([x[:1], x[1:] + x[:-1] ** 2 / 2])
        return anp.dot(turn, bent)

    if kind == 0:
        hidden = [hc.log(x)]
    else:
        bent = hc.concatenate([x[:1], x[1:] + x[:-1] ** 2 / 2])
        hidden = [turn @ bent]
    solution = np.exp(optimum) if kind == 0 else _inverse(turn.T @ optimum)
    shift = code(solution)  # the optimum's image to the last digit

    def objective(x: Any) -> Any:
        away = code(x) - shift
        curved = anp.dot(slopes, away) + bends * anp.sum(away**2) / 2
        return value + anp.max(curved)

    def row(x: Any) -> Any:
        away = code(x) - shift
        return anp.dot(normal, away)

    rows = [hc.function(row, x) <= 0] if price else []
    start = np.clip(generator.uniform(low, high, size), low, high)
    problem = hc.Problem(hc.Minimize(hc.function(objective, x)), rows, hidden=hidden)
    x.value = start if kind else np.exp(generator.uniform(-1, 1, size))
    return problem, value


def _inverse(u: FloatArray) -> FloatArray:
    x = np.array(u)
    for i in range(1, u.size):
        x[i] = u[i] - x[i - 1] ** 2 / 2
    return x
