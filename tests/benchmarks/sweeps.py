"""Sweeps of 200 points of a geometric program with 25 variables: here, with processes, and with Dask.

    python -m tests.benchmarks.sweeps [POINTS]

Compares the tables digit by digit, seconds left out, and prints how much faster two workers are than one
once their pool runs (issue: at least 1.6 times, on two idle cores).
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np

import hcmodel as hc

VARIABLES, TERMS, REPEATS = 25, 40, 3


def program() -> hc.Problem:
    """A posynomial with random exponents and one constraint on a product."""
    generator = np.random.default_rng(0)
    x = hc.Variable(VARIABLES, name="x", bounds=(0.1, 10))
    cap = hc.Parameter(name="cap", value=1.0, pos=True)
    exponents = generator.normal(size=(TERMS, VARIABLES))
    weights = generator.uniform(0.5, 2, TERMS)
    cost = hc.sum(weights * hc.prod(x**exponents, axis=1))
    return hc.Problem(hc.Minimize(cost), [(hc.prod(x[:5]) <= cap).named("area")])


def digits(table: Any) -> list[list[str]]:
    rows = [table.layout.cells(row) for row in table]
    return [[repr(v) for key, v in row.items() if key != "solve_seconds"] for row in rows]


def timed(problem: hc.Problem, grid: Any, executor: Any) -> tuple[float, Any]:
    """The least of several times, after a first sweep that starts the workers."""
    table, best = problem.sweep(grid, executor, progress=False), np.inf
    for _ in range(REPEATS):
        start = time.perf_counter()
        table = problem.sweep(grid, executor, progress=False)
        best = min(best, time.perf_counter() - start)
    return best, table


def main(points: int = 200) -> None:
    from distributed import Client, LocalCluster

    problem = program()
    caps = np.linspace(0.5, 2, points)
    caps[points // 2] = np.nan
    grid = {"cap": caps}
    seconds, serial = timed(problem, grid, None)
    print(f"{'here':<14} {seconds:6.2f} s  {serial.counts()}")
    known, spawn = digits(serial), get_context("spawn")
    times = {}
    for workers in (1, 2):
        with ProcessPoolExecutor(workers, spawn) as executor:
            times[workers], table = timed(problem, grid, executor)
        same = digits(table) == known
        print(f"{workers} process(es)  {times[workers]:6.2f} s  equal: {same}")
    print(f"two processes are {times[1] / times[2]:.2f} times as fast as one")
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        seconds, table = timed(problem, grid, client)
    print(f"{'Dask, two':<14} {seconds:6.2f} s  equal: {digits(table) == known}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
