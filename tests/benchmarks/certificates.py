"""What a certificate costs, against one Newton iteration and the analysis by sampling, in one run.

`python tests/benchmarks/certificates.py`. First with the gap that the default tolerance asks for as the
target, then with the finest.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import hcmodel as hc
from hcmodel.certify.lower_bound import lower_bound
from hcmodel.solvers.loop import Task, run
from hcmodel.solvers.second_order.hidden_newton import HiddenNewton
from hcmodel.solving.start import start_vector
from tests.problems.applications import example, random_plant, random_process
from tests.problems.library import geometric_program

TOLERANCE = 1e-6


def best_seconds(action: Callable[[], Any], repeats: int = 5) -> float:
    best = float("inf")
    for _ in range(repeats):
        clock = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - clock)
    return best


def measure(name: str, problem: hc.Problem, samples: int) -> None:
    forms = problem.forms()
    forms.refresh()
    form = forms.hidden()
    assert form is not None
    start = form.chain.point(start_vector(problem.model, problem.canonical.domain, None, False))
    task = Task(form.oracle(), form.domain, TOLERANCE, geometry=form.geometry)
    clock = time.perf_counter()
    result = run(HiddenNewton(), task, start, max_iterations=400)
    iteration = (time.perf_counter() - clock) / max(result.iterations, 1)
    evaluation = form.oracle().at(result.point)
    value = problem.objective.sign * float(problem.solve(tol=TOLERANCE) or 0.0)
    clock = time.perf_counter()
    problem.analyze(samples)
    analysis = time.perf_counter() - clock
    for target in (TOLERANCE * abs(value), None):
        certify = functools.partial(
            lower_bound, form, evaluation, result.multipliers, target=target
        )
        seconds, bound = best_seconds(certify), certify()
        shown = "no bound" if bound is None else f"gap {(value - bound.value) / abs(value):8.1e}"
        print(
            f"{name:<12} {1e3 * seconds:8.2f} ms, {seconds / iteration:5.2f} Newton iterations, "
            f"{seconds / analysis:6.4f} of the analysis, {shown}"
        )


def main() -> None:
    measure("GP, d = 100", geometric_program("fatkhullin_cgp100")[0], 200)
    for n, m in ((4, 2), (10, 3)):
        measure(f"LQR, n = {n}", example("lqr", **random_plant(n, m, 0).data), 200)
    process = random_process(0, states=20, actions=5, costs=1, share=0.6)
    measure("MDP, 20 × 5", example("cmdp", **process.data), 20)


if __name__ == "__main__":
    main()
