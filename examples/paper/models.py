"""The paper's problems, written with hcmodel expressions, and their hidden maps for the pictures.

Fatkhullin, He, Lan, Wolf, "Global Solutions to Non-Convex Functional Constrained Problems with Hidden
Convexity" (2025). Functions of two variables are written on two expressions, so that the same lines
make the model and the grids of the level sets. No method sees the maps: they only draw the right-hand
pictures.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hcmodel as hc

FloatArray = NDArray[np.float64]
Pair = tuple[Any, Any]

INSTANCE = Path(__file__).parents[1] / "posynomial.json"


@dataclass(frozen=True)
class Plane:
    """A model of two variables: F1 and F2 (feasible: F2 <= 0), the map c and its inverse."""

    name: str
    objective: Callable[[Any, Any], hc.Expression]
    constraint: Callable[[Any, Any], hc.Expression]
    hidden: Callable[[Any, Any], Pair]
    inverse: Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
    bounds: tuple[float, float]
    start: tuple[float, float]

    def problem(self, *, constrained: bool = True) -> hc.Problem:
        x = hc.Variable(2, name="x", bounds=self.bounds, start=self.start)
        rows = [(self.constraint(x[0], x[1]) <= 0).named("F2")] if constrained else []
        return hc.Problem(hc.Minimize(self.objective(x[0], x[1])), rows)

    def values(self, x1: FloatArray, x2: FloatArray) -> tuple[FloatArray, FloatArray]:
        """F1 and F2 on arrays of points."""
        first, second = hc.Constant(x1), hc.Constant(x2)
        return (
            np.asarray(self.objective(first, second).value),
            np.asarray(self.constraint(first, second).value),
        )

    def image(self, points: Any) -> FloatArray:
        """c(x) for points one under the other."""
        columns = np.atleast_2d(np.asarray(points, dtype=float)).T
        parts = self.hidden(hc.Constant(columns[0]), hc.Constant(columns[1]))
        return np.column_stack([np.asarray(part.value) for part in parts])


def folded(x1: Any, x2: Any) -> Pair:
    """c(x) = (x1 − 1, 2|x1| − x2 − 1)."""
    return x1 - 1, 2 * hc.abs(x1) - x2 - 1


def unfolded(u1: FloatArray, u2: FloatArray) -> tuple[FloatArray, FloatArray]:
    return u1 + 1, 2 * np.abs(u1 + 1) - u2 - 1


def diamond(x1: Any, x2: Any) -> hc.Expression:
    """‖c(x) − (−0.5, −0.6)‖₁ − 0.8."""
    c1, c2 = folded(x1, x2)
    return hc.abs(c1 + 0.5) + hc.abs(c2 + 0.6) - 0.8


def largest(x1: Any, x2: Any) -> hc.Expression:
    """‖c(x)‖∞."""
    c1, c2 = folded(x1, x2)
    return hc.maximum(hc.abs(c1), hc.abs(c2))


LEAST_SQUARES = Plane(
    name="Ex-CNLS",
    objective=largest,
    constraint=diamond,
    hidden=folded,
    inverse=unfolded,
    bounds=(-1.0, 2.5),
    start=(-0.3, 0.20005),
)

GEOMETRIC = Plane(
    name="Ex-CGP",
    objective=lambda x1, x2: x1 * x2 + 4 / x1 + 1 / x2,
    constraint=lambda x1, x2: x1 * x2 - 1,
    hidden=lambda x1, x2: (hc.log(x1), hc.log(x2)),
    inverse=lambda u1, u2: (np.exp(u1), np.exp(u2)),
    bounds=(0.4, 3.0),
    start=(0.6, 1.6),
)

# The map suits the constraint of Ex-CNLS, not this objective: there is no common one.
INCONSISTENT = Plane(
    name="inconsistent maps",
    objective=lambda x1, x2: hc.sqrt(x1**2 + (x2 - 2) ** 2),
    constraint=diamond,
    hidden=folded,
    inverse=unfolded,
    bounds=(-1.0, 2.5),
    start=(0.5, 0.5),
)


def cosine(start: float = 0.891) -> hc.Problem:
    """1 − cos πx over [−0.95, 0.95], hidden convex by sin(πx/2); the optimal value is 0."""
    x = hc.Variable(name="x", bounds=(-0.95, 0.95), start=start)
    return hc.Problem(hc.Minimize(1 - hc.cos(np.pi * x)))


@cache
def _instance() -> Mapping[str, FloatArray]:
    return {name: np.array(entry) for name, entry in json.loads(INSTANCE.read_text()).items()}


def large() -> hc.Problem:
    """The posynomial program of d = 100 variables, K1 = 10 and K2 = 8 terms, from x = 1."""
    data = _instance()
    x = hc.Variable(data["a"].shape[1], name="x", bounds=(0.5, 2), start=1.0)
    cost = hc.sum(data["b"] * hc.prod(x ** data["a"], axis=1))
    used = hc.sum(data["q"] * hc.prod(x ** data["r"], axis=1))
    return hc.Problem(hc.Minimize(cost), [(used <= 1).named("budget")])
