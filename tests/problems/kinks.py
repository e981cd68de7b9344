"""Functions with kinks of which nothing is known but values and gradients, with their optima."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import autograd.numpy as anp
import numpy as np
import scipy
from numpy.typing import NDArray

import hcmodel as hc

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Kinked:
    """A function without bounds or rows, where a run starts, and its least value."""

    name: str
    function: Callable[[Any], Any]
    start: FloatArray
    optimum: float

    def problem(self) -> hc.Problem:
        x = hc.Variable(self.start.size, name="x", start=self.start)
        return hc.Problem(hc.Minimize(hc.function(self.function, x)))


def rosenbrock(size: int, kind: str) -> Kinked:
    """Nesterov's Chebyshev-Rosenbrock functions (Gürbüzbalaban and Overton 2012), minimum 0 at 1.

    `sharp` and `square`: |x₁ − 1|/4 or its square beside Σ |x_i+1 − 2x_i² + 1|; 1 is the only stationary
    point. `folded`: 2|x_i| in place of 2x_i², with 2^(n−1) points that are stationary in Clarke's sense,
    of which only 1 is a local minimum.
    """

    def function(x: Any) -> Any:
        first = (x[0] - 1) ** 2 / 4 if kind == "square" else anp.abs(x[0] - 1) / 4
        bent = anp.abs(x[:-1]) if kind == "folded" else x[:-1] ** 2
        return first + anp.sum(anp.abs(x[1:] - 2 * bent + 1))

    start = np.ones(size)
    start[0] = -1.0
    return Kinked(f"Rosenbrock {kind} {size}", function, start, 0.0)


def fit(kind: str, seed: int, unknowns: int = 10, data: int = 40) -> Kinked:
    """The least sum (L1) or maximum (max) of absolute residuals; optima by linear programming."""
    generator = np.random.default_rng(seed)
    matrix = generator.normal(size=(data, unknowns))
    target = matrix @ generator.normal(size=unknowns) + generator.laplace(size=data)
    outer = anp.sum if kind == "L1" else anp.max
    slack = np.eye(data) if kind == "L1" else np.ones((data, 1))
    costs = np.concatenate([np.zeros(unknowns), np.ones(slack.shape[1])])
    answer = scipy.optimize.linprog(
        costs,
        A_ub=np.block([[matrix, -slack], [-matrix, -slack]]),
        b_ub=np.concatenate([target, -target]),
        bounds=(None, None),
    )

    def function(x: Any) -> Any:
        return outer(anp.abs(anp.dot(matrix, x) - target))

    return Kinked(f"{kind} fit {seed}", function, np.zeros(unknowns), float(answer.fun))


def eigenvalue(seed: int, unknowns: int = 6, size: int = 5) -> Kinked:
    """The least largest eigenvalue of an affine symmetric matrix; optima by hcmodel's cone program."""
    generator = np.random.default_rng(seed)
    parts = generator.normal(size=(unknowns + 1, size, size))
    parts = (parts + parts.transpose(0, 2, 1)) / 2
    traces = np.trace(parts[1:], axis1=1, axis2=2)
    parts[1:] -= traces[:, None, None] * np.eye(size) / size  # else there is no least value

    def function(x: Any) -> Any:
        return anp.max(anp.linalg.eigh(parts[0] + anp.tensordot(x, parts[1:], 1))[0])

    x = hc.Variable(unknowns, name="x")
    matrix = parts[0] + sum(x[i] * parts[i + 1] for i in range(unknowns))
    optimum = hc.Problem(hc.Minimize(hc.lambda_max(matrix))).solve()
    assert optimum is not None
    return Kinked(f"eigenvalue {seed}", function, np.zeros(unknowns), optimum)


def kinked() -> Iterator[Kinked]:
    """The set of the benchmark: the quick ones first, Rosenbrock's with four unknowns last."""
    for seed in range(3):
        yield fit("L1", seed)
        yield fit("max", seed)
        yield eigenvalue(seed)
    for size in (2, 3, 4):
        for kind in ("sharp", "square", "folded"):
            yield rosenbrock(size, kind)
