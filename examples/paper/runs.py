"""Runs of the methods that also keep the points they pass through.

A record of the trace has the calls, the objective and the violation, but no point; `Recorder` stands
between the loop and a method and keeps the points. Runs are cached, as figures and table share them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import models
import numpy as np
from numpy.typing import NDArray

import hcmodel as hc
from hcmodel.solvers import Oracle, Result
from hcmodel.solvers.loop import Method, Recorder, Task, run
from hcmodel.solvers.methods import METHODS
from hcmodel.solvers.oracle import Budget
from hcmodel.solving.start import start_vector

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Path:
    """A run: the trace as arrays, the point of each record, and the result.

    The phases before the descent, which look at a part of the problem only, are left out of the arrays.
    """

    name: str
    calls: FloatArray
    objective: FloatArray
    violation: FloatArray
    points: FloatArray
    result: Result

    @property
    def value(self) -> float:
        assert self.result.evaluation is not None
        return float(self.result.evaluation.objective)

    @property
    def final_violation(self) -> float:
        assert self.result.evaluation is not None
        return float(np.max(self.result.evaluation.violations, initial=0.0))


def record(
    name: str,
    problem: hc.Problem,
    method: Method[Any],
    *,
    tolerance: float = 1e-6,
    optimal_value: float | None = None,
    max_calls: int | None = None,
) -> Path:
    """Run a method on a model's compiled functions, and keep the points."""
    stack, canonical = problem.compile(), problem.canonical
    oracle = Oracle(stack, canonical.outer, budget=Budget(max_calls))
    task = Task(oracle, canonical.domain, tolerance, optimal_value)
    start = start_vector(problem.model, canonical.domain, None, warm_start=False)
    recorder = Recorder(method)
    result = run(recorder, task, start)
    kept = [
        (entry, point)
        for entry, point in zip(result.trace, recorder.points, strict=False)
        if entry.phase not in ("objective", "feasibility")
    ]
    trace, points = zip(*kept, strict=True)
    return Path(
        name,
        np.array([entry.calls for entry in trace], dtype=float),
        np.array([entry.objective for entry in trace]),
        np.array([entry.violation for entry in trace]),
        np.array(points),
        result,
    )


def adaptive(problem: hc.Problem, method: str, **settings: Any) -> Path:
    """A method of the table under the adaptive rule, with its defaults."""
    entry = METHODS[method]
    return record(method, problem, entry.make(entry.options()), **settings)


OPTIMUM_GEOMETRIC = 5.0
OPTIMUM_LEAST_SQUARES = 0.15
OPTIMUM_LARGE = 0.0711365067
CALLS_LARGE = 1210


@cache
def least_squares() -> Path:
    return adaptive(models.LEAST_SQUARES.problem(), "ippm-swsg", max_calls=8000)


@cache
def inconsistent(start: tuple[float, float], method: str) -> Path:
    problem = replace(models.INCONSISTENT, start=start).problem()
    return adaptive(problem, method, max_calls=1500)


@cache
def geometric() -> tuple[Path, ...]:
    build = models.GEOMETRIC.problem
    return (
        adaptive(build(), "ippm-acgd", max_calls=5000),
        adaptive(build(), "sbl-star", optimal_value=OPTIMUM_GEOMETRIC),
        adaptive(build(), "sbl-adals"),
    )


@cache
def large() -> tuple[Path, ...]:
    """The four methods on d = 100 within the paper's calls, under the adaptive rule."""
    limit = {"max_calls": CALLS_LARGE}
    return (
        adaptive(models.large(), "ippm-swsg", **limit),
        adaptive(models.large(), "ippm-acgd", **limit),
        adaptive(models.large(), "sbl-star", optimal_value=OPTIMUM_LARGE, **limit),
        adaptive(models.large(), "sbl-adals", **limit),
    )


@cache
def cosine() -> Path:
    return adaptive(models.cosine(), "sbl-star", optimal_value=0.0)


@cache
def without_constraint(plane: models.Plane) -> Path:
    """The minimum of F1 alone; sub-gradients, as two of the three objectives have a kink there."""
    return adaptive(plane.problem(constrained=False), "ippm-sm", max_calls=3000)
