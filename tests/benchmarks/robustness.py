"""Second-order solves at length: `python tests/benchmarks/robustness.py [random] [starts] [--seeds N]`.

`random`: 300 random hidden-convex problems with known optima, `--seeds` (30) of each of ten kinds.
`starts`: the development set from `--starts` (20) random starts each, log-uniform within positive bounds.
A problem counts as solved at a relative error of 1e-6. A claim is false where a certified bound lies
above the optimum, or where the value is further from it than the certified gap. Seconds are of processor
time.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))

import hcmodel as hc
from tests.benchmarks.development_set import Case, development_set
from tests.problems.random_hidden_convex import (
    KINDS,
    KnownProblem,
    random_geometric_program,
    random_problem,
)

FloatArray = NDArray[np.float64]

ACCURACY = 1e-6
SECONDS = 60.0  # for one solve
GOOD = ("optimal", "locally_optimal")
PARTS = ("random", "starts")


@dataclass(frozen=True)
class Run:
    """One solve beside what is known."""

    name: str
    status: str
    error: float
    points: int
    seconds: float
    false_claim: bool = False
    note: str = ""

    @property
    def solved(self) -> bool:
        return self.error <= ACCURACY and self.status in GOOD

    def __str__(self) -> str:
        claim = "  FALSE CLAIM" if self.false_claim else ""
        return (
            f"    {self.name:<28} {self.status:<22} error {self.error:8.1e} {self.points:6d} points "
            f"{self.seconds:6.1f} s  {self.note}{claim}"
        )


def timed(problem: hc.Problem, **request: object) -> tuple[hc.Solution, float]:
    clock = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hc.HCWarning)
        problem.solve(time_limit=SECONDS, **request)
    assert problem.solution is not None
    return problem.solution, time.process_time() - clock


def random_run(known: KnownProblem) -> Run:
    solution, seconds = timed(known.problem)
    size = max(abs(known.optimum), known.unit)
    certificate = solution.certificate
    bound, gap = certificate.lower_bound, certificate.gap
    false_claim = bound is not None and bound > known.optimum + 1e-9 * size
    if solution.status == "optimal":
        false_claim |= solution.value - known.optimum > gap + 1e-9 * size
    return Run(
        known.name,
        solution.status.value,
        known.error(),
        solution.oracle_calls.points,
        seconds,
        false_claim,
        ", ".join(known.traits),
    )


def random_start(problem: hc.Problem, generator: np.random.Generator) -> dict[str, FloatArray]:
    """A point of the domain; log-uniform within positive bounds."""
    layout = problem.canonical.layout
    arrays = layout.unpack(np, problem.canonical.domain.sample(generator))
    return {each.name: array for each, array in zip(layout.variables, arrays, strict=True)}


def started_run(case: Case, seed: int) -> Run:
    problem = case.make()
    start = random_start(problem, np.random.default_rng([7, seed]))
    solution, seconds = timed(problem, start=start)
    bound = solution.certificate.lower_bound
    size = max(abs(case.optimum), 1e-3)
    above = bound is not None and problem.objective.sign * (bound - case.optimum) > 1e-6 * size
    error = case.error(solution.value)
    points = solution.oracle_calls.points
    status = solution.status.value
    return Run(f"{case.name}, start {seed}", status, error, points, seconds, above)


def line(title: str, runs: Sequence[Run], show: int = 6) -> None:
    """One line for the runs of a kind, and the worst of those that were not solved."""
    failed = [run for run in runs if not run.solved or run.false_claim]
    counts = [run.points for run in runs]
    worst = max((run.error for run in runs if run.status in GOOD), default=0.0)
    print(
        f"{title:<26} {len(runs) - len(failed):4d} of {len(runs):4d}   worst error of a claim "
        f"{worst:8.1e}   points {int(np.median(counts)):4d} median {max(counts):5d} most   "
        f"{sum(run.seconds for run in runs):7.1f} s",
        flush=True,
    )
    for run in sorted(failed, key=lambda run: (not run.false_claim, -run.error))[:show]:
        print(run, flush=True)


def random_table(seeds: int) -> None:
    kinds: dict[str, Callable[[int], KnownProblem]] = {
        kind: lambda seed, kind=kind: random_problem(kind, seed) for kind in KINDS
    }
    kinds["geometric"] = random_geometric_program
    everything: list[Run] = []
    for kind, make in kinds.items():
        runs = [random_run(make(seed)) for seed in range(seeds)]
        line(kind, runs)
        everything += runs
    line("all", everything, show=0)
    print(f"false claims: {sum(run.false_claim for run in everything)}")


def starts_table(starts: int, words: Sequence[str]) -> None:
    everything: list[Run] = []
    for case in development_set():
        if words and not any(word in f"{case.kind} {case.name}" for word in words):
            continue
        runs = [started_run(case, seed) for seed in range(starts)]
        line(case.name, runs, show=3)
        everything += runs
    line("all", everything, show=0)
    print(f"false claims: {sum(run.false_claim for run in everything)}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Second-order solves at length.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--problems", nargs="*", default=[], help="words in the names of problems")
    arguments = parser.parse_args()
    parts = arguments.parts or list(PARTS)
    if unknown := set(parts) - set(PARTS):
        parser.error(f"unknown part {sorted(unknown)[0]!r}; there are: {', '.join(PARTS)}")
    if "random" in parts:
        random_table(arguments.seeds)
    if "starts" in parts:
        starts_table(arguments.starts, arguments.problems)


if __name__ == "__main__":
    main()
