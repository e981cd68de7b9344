"""The development set: every problem with a known optimum, as the benchmarks run it.

Geometric programs of other people's suites, regulators from K = 0, decision processes, the paper's two
examples, one with mixed coordinates, and Nesterov's Chebyshev–Rosenbrock function.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.optimize

import hcmodel as hc
from tests.problems.applications import (
    DECISION_PROCESSES,
    EXAMPLES,
    REGULATORS,
    Process,
    example,
    published_plant,
    random_process,
)
from tests.problems.library import GEOMETRIC_PROGRAMS, geometric_program


@dataclass(frozen=True)
class Case:
    """A problem, made anew for each run, and its optimal value."""

    kind: str
    name: str
    make: Callable[[], hc.Problem]
    optimum: float

    def error(self, value: float | None) -> float:
        """Relative to the optimum; absolute where that is 0."""
        if value is None or not np.isfinite(value):
            return np.inf
        return abs(value - self.optimum) / (abs(self.optimum) or 1.0)


def development_set() -> Iterator[Case]:
    for name in GEOMETRIC_PROGRAMS:
        optimum = geometric_program(name)[1]
        yield Case("geometric", name, partial(_program, name), optimum)
    for name in REGULATORS:
        plant = published_plant(name)
        yield Case("regulator", name, partial(example, "lqr", **plant.data), plant.optimum())
    yield from _decision_processes()
    yield Case("paper", "Ex-CGP", partial(example, "tank"), 5.0)
    yield Case("paper", "Ex-CNLS", partial(example, "cnls"), 0.15)
    yield Case("paper", "Ex-CNLS, no map", least_squares, 0.15)
    yield Case("mixed", "mixed.hc", partial(example, "mixed"), mixed_optimum())
    for n, mapped in ((3, False), (4, False), (10, True)):
        label = f"Rosenbrock n = {n}{', map' if mapped else ''}"
        yield Case("Rosenbrock", label, partial(rosenbrock, n, mapped), 0.0)


def _program(name: str) -> hc.Problem:
    return geometric_program(name)[0]


def _decision_processes() -> Iterator[Case]:
    forest = DECISION_PROCESSES["mdp_forest"]
    transition, reward, mu = (np.array(forest[key]) for key in ("P", "r", "mu"))
    free = np.zeros((0, *reward.shape))
    process = Process(transition, mu, forest["gamma"], reward, free, np.zeros(0))
    yield Case(
        "decision", "mdp_forest", partial(example, "cmdp", **process.data), process.optimum()
    )
    river = data_of("exploration")
    entropy = -DECISION_PROCESSES["cmdp_riverswim_maxent"]["optimal_value"]
    yield Case("decision", "riverswim_maxent", partial(example, "exploration", **river), entropy)
    machine = Process(**data_of("cmdp"))
    yield Case("decision", "cmdp.hc", partial(example, "cmdp", **machine.data), machine.optimum())
    large = random_process(0)
    yield Case(
        "decision", "20 states, 2 costs", partial(example, "cmdp", **large.data), large.optimum()
    )


def data_of(name: str) -> dict[str, Any]:
    data = json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    return {key: np.array(value, dtype=float) for key, value in data.items()}


def least_squares() -> hc.Problem:
    """Ex-CNLS without its map."""
    x = hc.Variable(2, name="x", bounds=(-1, 2.5), start=[0.5, 0.5])
    c = hc.hstack([x[0] - 1, 2 * hc.abs(x[0]) - x[1] - 1])
    near = hc.norm(c - np.array([-0.5, -0.6]), 1) <= 0.8
    return hc.Problem(hc.Minimize(hc.max(hc.abs(c))), [near])


def mixed_optimum() -> float:
    """x y = exp(z)/x = 1/y = exp(z/3), where exp(z/3) + 2 (z − 1) = 0."""
    z = scipy.optimize.brentq(lambda z: np.exp(z / 3) + 2 * (z - 1), -5.0, 5.0, xtol=1e-15)
    return float(3 * np.exp(z / 3) + (z - 1) ** 2)


def rosenbrock(n: int, mapped: bool) -> hc.Problem:
    """(x₁ − 1)²/4 + Σ |x_{i+1} − 2x_i² + 1| from (−1, 1, …, 1), with or without its triangular map."""
    start = np.ones(n)
    start[0] = -1.0
    x = hc.Variable(n, name="x", start=start)
    residual = x[1:] - 2 * x[:-1] ** 2 + 1
    objective = (x[0] - 1) ** 2 / 4 + hc.sum(hc.abs(residual))
    hidden = [x[0], residual] if mapped else None
    return hc.Problem(hc.Minimize(objective), hidden=hidden)
