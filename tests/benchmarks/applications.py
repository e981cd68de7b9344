"""Regulators and decision processes at length: `python tests/benchmarks/applications.py [--seeds N]`.

`sbl-adals` with no option set, from K = 0 and P = I or from the uniform policy, against Riccati equations
and linear programs. One line a problem, then the worst of each kind. Random plants whose optimum lies
outside the bounds of `examples/lqr.hc` are left out, and counted.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import hcmodel as hc
from tests.problems.applications import (
    REGULATORS,
    Plant,
    Process,
    example,
    published_plant,
    random_plant,
    random_process,
)

MAX_CALLS = 20_000  # a run that needs more has missed its mark anyway


@dataclass(frozen=True)
class Row:
    """One solved problem beside its reference."""

    kind: str
    name: str
    error: float
    violation: float
    calls: int
    seconds: float
    status: str
    sound: bool

    def __str__(self) -> str:
        flaw = "" if self.sound else "  NOT STABLE OR NO POLICY"
        return (
            f"{self.kind:<12} {self.name:<22} error {self.error:9.1e}  violation "
            f"{self.violation:8.1e}  {self.calls:6d} calls {self.seconds:7.1f} s  {self.status}{flaw}"
        )


def row(kind: str, name: str, problem: hc.Problem, optimum: float) -> tuple[Row, hc.Solution]:
    clock = time.process_time()
    problem.solve("sbl-adals", max_calls=MAX_CALLS)
    solution = problem.solution
    assert solution is not None
    value = np.inf if solution.value is None else solution.value
    line = Row(
        kind,
        name,
        abs(value - optimum) / abs(optimum),
        float(solution.certificate.violation),
        solution.oracle_calls.total,
        time.process_time() - clock,
        f"{solution.status.value} ({solution.termination.name})",
        True,
    )
    return line, solution


def regulated(name: str, plant: Plant) -> Row:
    line, solution = row("regulator", name, example("lqr", **plant.data), plant.optimum())
    stable = plant.abscissa(solution.point["K"]) < 0
    return Row(**{**vars(line), "sound": stable})


def decided(kind: str, name: str, process: Process, slack: float) -> Row:
    line, solution = row(kind, name, example("cmdp", **process.data), process.optimum(slack))
    policy = solution.point["policy"]
    sums = np.abs(policy.sum(axis=1) - 1).max()
    return Row(**{**vars(line), "sound": bool(sums <= 1e-9 and policy.min() >= 0)})


def regulators(seeds: int) -> Iterator[Row]:
    for name in REGULATORS:
        yield regulated(name, published_plant(name))
    outside = 0
    for n in range(2, 7):
        for m in range(1, min(n, 3) + 1):
            for seed in range(seeds):
                plant = random_plant(n, m, seed)
                if plant.fits():
                    yield regulated(f"n = {n}, m = {m}, seed {seed}", plant)
                else:
                    outside += 1
    print(f"{outside} random plants have their optimum outside the bounds")


def processes(seeds: int) -> Iterator[Row]:
    for seed in range(seeds):
        try:
            yield decided("two costs", f"seed {seed}", random_process(seed), 0.0)
        except ValueError:
            print(f"two costs    seed {seed}: no policy keeps both limits")
        without = random_process(seed, costs=1, share=0.0)
        yield decided("no Slater", f"seed {seed}", without, 1e-9)


def main() -> None:
    parser = argparse.ArgumentParser(description="Regulators and decision processes at length.")
    parser.add_argument("--seeds", type=int, default=3)
    seeds = parser.parse_args().seeds
    rows: list[Row] = []
    for source in (regulators(seeds), processes(seeds)):
        for line in source:
            print(line, flush=True)
            rows.append(line)
    for kind in dict.fromkeys(line.kind for line in rows):
        of_kind = [line for line in rows if line.kind == kind]
        print(
            f"{kind}: {len(of_kind)} problems, worst error {max(line.error for line in of_kind):.1e}, "
            f"worst violation {max(line.violation for line in of_kind):.1e}, "
            f"most calls {max(line.calls for line in of_kind)}"
        )


if __name__ == "__main__":
    main()
