"""Geometric programs of CBLIB, as models with arrays and as models with loops, beside Clarabel alone.

    python -m tests.benchmarks cblib DIRECTORY [--only NAME,…] [--repeat N] [--loops]

DIRECTORY has files NAME.json.gz: `n` positive variables without bounds, `objective_log` {j: a} and
`objective_const`, the logarithm of a monomial that is minimised, `posynomials_le_1`, each a list of
[log c, {j: exponent}] whose sum is at most 1, and `monomials_le_1` with one term each. hcmodel's time is
that of the whole job with `tol=1e-8` (build, prove, solve, certify); Clarabel's is that of its own solver
object and run on the cone form, which is made beforehand. `--loops` writes every term in a Python loop
and shows what that costs more, in µs for each term. All are seconds of the processor, the tools take
turns, and the medians count. The allowances, 6 ms and 40 µs a term, are looked at twice: in milliseconds
of this machine, and in those of the machine on which they were written (`yardstick`).
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import clarabel
import numpy as np
import scipy.sparse as sparse

import hcmodel as hc
from tests.benchmarks import yardstick

# What a whole job may take beyond twice Clarabel's time, in seconds.
OVERHEAD = 6e-3
# What a term that is written in a loop may take more, in seconds.
A_TERM = 40e-6
# Relative accuracy of the logarithm of the optimal value against Clarabel's.
ACCURACY = 1e-6


@dataclass(frozen=True)
class Program:
    """log of objective: a·u + constant; rows: Σ_k exp(E_k u + b_k) <= 1, `row` has the row of each k."""

    size: int
    objective: np.ndarray
    constant: float
    exponents: sparse.csr_array
    offsets: np.ndarray
    row: np.ndarray

    @staticmethod
    def read(path: Path) -> Program:
        data = json.loads(gzip.decompress(path.read_bytes()))
        size = int(data["n"])
        objective = np.zeros(size)
        for variable, exponent in data["objective_log"].items():
            objective[int(variable)] = exponent
        groups = [*data["posynomials_le_1"], *([term] for term in data["monomials_le_1"])]
        terms = [(row, term) for row, group in enumerate(groups) for term in group]
        entries = [
            (k, int(j), float(value))
            for k, (_, term) in enumerate(terms)
            for j, value in term[1].items()
        ]
        places, columns, values = (np.array(each) for each in zip(*entries, strict=True))
        return Program(
            size,
            objective,
            float(data["objective_const"]),
            sparse.csr_array((values, (places, columns)), shape=(len(terms), size)),
            np.array([float(term[0]) for _, term in terms]),
            np.array([row for row, _ in terms]),
        )

    @property
    def rows(self) -> int:
        return int(self.row.max()) + 1


def with_arrays(program: Program) -> hc.Problem:
    x = hc.Variable(program.size, name="x", pos=True)
    terms = hc.exp(program.exponents @ hc.log(x) + program.offsets)
    place = (program.row, np.arange(program.row.size))
    total = sparse.csr_array((np.ones(program.row.size), place))
    objective = hc.exp(program.objective @ hc.log(x) + program.constant)
    return hc.Problem(hc.Minimize(objective), [total @ terms <= 1])


def with_loops(program: Program) -> hc.Problem:
    x = hc.Variable(program.size, name="x", pos=True)
    starts, columns, values = (
        program.exponents.indptr,
        program.exponents.indices,
        program.exponents.data,
    )
    rows: list[Any] = [0.0] * program.rows
    for k, (row, offset) in enumerate(zip(program.row, program.offsets, strict=True)):
        term: Any = float(np.exp(offset))
        for entry in range(starts[k], starts[k + 1]):
            term = term * x[int(columns[entry])] ** float(values[entry])
        rows[row] = rows[row] + term
    objective: Any = float(np.exp(program.constant))
    for j in np.flatnonzero(program.objective):
        objective = objective * x[int(j)] ** float(program.objective[j])
    return hc.Problem(hc.Minimize(objective), [row <= 1 for row in rows])


def solved(make: Callable[[Program], hc.Problem], program: Program) -> tuple[str, float]:
    problem = make(program)
    value = problem.solve(tol=1e-8)
    return str(problem.status), float(np.log(value)) if value else np.nan


def clarabel_job(program: Program) -> Callable[[], tuple[str, float]]:
    """Unknowns u and z: Σ z <= 1 for each row with several terms, a·u + b <= 0 for those with one."""
    size, count = program.size, program.row.size
    members = np.bincount(program.row)
    single = members[program.row] == 1
    several = np.flatnonzero(~single)
    sums = np.flatnonzero(members > 1)
    renumbered = np.searchsorted(sums, program.row[several])
    pick = sparse.csr_array(
        (np.ones(several.size), (renumbered, np.arange(several.size))),
        shape=(sums.size, several.size),
    )
    exponents = program.exponents[several]
    none = sparse.csr_array((several.size, several.size))
    triples = sparse.vstack(
        [
            sparse.hstack([-exponents, none]),
            sparse.csr_array((several.size, size + several.size)),
            sparse.hstack(
                [sparse.csr_array((several.size, size)), -sparse.eye_array(several.size)]
            ),
        ],
        format="csr",
    )
    order = np.arange(3 * several.size).reshape(3, several.size).T.reshape(-1)
    alone = program.exponents[np.flatnonzero(single)]
    matrix = sparse.vstack(
        [
            sparse.hstack([alone, sparse.csr_array((alone.shape[0], several.size))]),
            sparse.hstack([sparse.csr_array((sums.size, size)), pick]),
            triples[order],
        ],
        format="csc",
    )
    ones = np.ones(several.size)
    offset = np.concatenate(
        [
            -program.offsets[single],
            np.ones(sums.size),
            np.concatenate([program.offsets[several], ones, 0 * ones])[order],
        ]
    )
    linear = np.concatenate([program.objective, np.zeros(several.size)])
    nonnegative = count - several.size + sums.size
    cones = [clarabel.NonnegativeConeT(nonnegative)]
    cones += [clarabel.ExponentialConeT()] * several.size
    zero = sparse.csc_matrix((linear.size, linear.size))
    stored = sparse.csc_matrix(matrix)

    def job() -> tuple[str, float]:
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-8
        found = clarabel.DefaultSolver(zero, linear, stored, offset, cones, settings).solve()
        return str(found.status), float(found.obj_val) + program.constant

    return job


def timed(job: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.process_time()
    found = job()
    return time.process_time() - begun, found


def medians(jobs: dict[str, Callable[[], Any]], repeat: int) -> tuple[dict[str, float], Any]:
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    found: dict[str, Any] = {}
    for turn in range(repeat + 1):
        for name, job in jobs.items():
            took, found[name] = timed(job)
            if turn:  # the first turn warms up
                seconds[name].append(took)
    return {name: statistics.median(each) for name, each in seconds.items()}, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--loops", action="store_true")
    chosen = parser.parse_args()
    wanted = set(chosen.only.split(",")) - {""}
    print(
        "| name | terms | status | error | hcmodel | Clarabel | ratio | 2 × + 6 ms | slowness | "
        "2 × + 6 ms there | µs a term | µs there |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for path in sorted(chosen.directory.glob("*.json.gz")):
        name = path.name.removesuffix(".json.gz")
        if wanted and name not in wanted:
            continue
        program = Program.read(path)
        jobs: dict[str, Callable[[], Any]] = {
            "arrays": lambda p=program: solved(with_arrays, p),  # type: ignore[misc]
            "clarabel": clarabel_job(program),
            "yardstick": yardstick.job,
        }
        if chosen.loops:
            jobs["loops"] = lambda p=program: solved(with_loops, p)  # type: ignore[misc]
        seconds, found = medians(jobs, chosen.repeat)
        (status, value), (_, reference) = found["arrays"], found["clarabel"]
        error = abs(value - reference) / max(1.0, abs(reference))
        own, theirs = seconds["arrays"], seconds["clarabel"]
        slow = yardstick.slowness(seconds["yardstick"])
        here, there = (
            "yes" if own <= 2 * theirs + each * OVERHEAD else "no" for each in (1.0, slow)
        )
        more = " | "
        if chosen.loops:
            term = (seconds["loops"] - own) / program.row.size
            fits = "yes" if term <= slow * A_TERM else "no"
            more = f"{1e6 * term:.0f} {found['loops'][0]} | {1e6 * term / slow:.0f} {fits}"
        print(
            f"| {name} | {program.row.size} | {status} | {error:.0e} | {1e3 * own:.1f} ms | "
            f"{1e3 * theirs:.1f} ms | {own / theirs:.2f} | {here} | {slow:.2f} | {there} | {more} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
