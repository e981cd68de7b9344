"""What each method needs on the development set: `python tests/benchmarks/calls.py`.

Points, oracle calls, iterations, seconds, relative error to the known optimum and certified gap, for
every method from the same starts; then the peers on a few problems of each kind (`peers.py`). The tables
are written into docs/benchmarks.md. `--methods auto …` and `--problems WORD …` choose, and then print
only. Seconds are of processor time, so that they stand a busy machine.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

from regions import filled, table  # noqa: E402

import hcmodel as hc  # noqa: E402
from tests.benchmarks import peers  # noqa: E402
from tests.benchmarks.development_set import Case, development_set  # noqa: E402

PAGE = ROOT / "docs" / "benchmarks.md"
METHODS = (
    "auto",
    "hidden-newton",
    "prox-linear",
    "sbl-adals",
    "sbl-star",
    "ippm-acgd",
    "ippm-swsg",
)
# Limits of a run: methods of first order would go on for minutes on some problems.
FIRST_ORDER = {"max_calls": 5000, "time_limit": 4.0}
SECOND_ORDER = {"time_limit": 90.0}
LIMITS = dict.fromkeys(METHODS, FIRST_ORDER)
LIMITS |= dict.fromkeys(("auto", "hidden-newton", "prox-linear"), SECOND_ORDER)
SOLVED = 1e-6


@dataclass(frozen=True)
class Row:
    """One run. `gap` is None where nothing was certified; `status` may be why there was no run."""

    case: Case
    method: str
    status: str
    points: int = 0
    calls: int = 0
    iterations: int = 0
    seconds: float = 0.0
    error: float = np.inf
    gap: float | None = None

    @property
    def ran(self) -> bool:
        return self.points > 0

    @property
    def solved(self) -> bool:
        """Feasible and near the optimum; a point that breaks the rows has another status."""
        return self.error <= SOLVED and self.status in peers.FEASIBLE

    def cells(self) -> tuple[str, ...]:
        name = self.case.name
        if not self.ran:
            return (name, self.status, *[""] * 6)
        error, gap = f"{self.error:.0e}", "" if self.gap is None else f"{max(self.gap, 0.0):.0e}"
        counts = (str(self.points), str(self.calls), str(self.iterations))
        return (name, self.status, *counts, f"{self.seconds:.2f}", error, gap)


def run(case: Case, method: str) -> Row:
    problem = case.make()
    known = case.optimum if method == "sbl-star" else None
    clock = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hc.HCWarning)
            problem.solve(method, optimal_value=known, **LIMITS[method])
    except hc.NotHiddenConvexError:
        return Row(case, method, "needs a map")
    solution = problem.solution
    assert solution is not None
    calls, gap = solution.oracle_calls, solution.certificate.gap
    return Row(
        case=case,
        method=method,
        status=solution.status.value,
        points=calls.points,
        calls=calls.total,
        iterations=solution.iterations,
        seconds=time.process_time() - clock,
        error=case.error(solution.value),
        gap=None if gap is None else gap / (abs(case.optimum) or 1.0),
    )


def summary(rows: Sequence[Row]) -> str:
    """One line a method."""
    lines = []
    for method in dict.fromkeys(row.method for row in rows):
        own = [row for row in rows if row.method == method and row.ran]
        done = [row for row in own if row.solved]
        certified = sum(row.status == "optimal" for row in own)
        lines.append(
            (
                f"`{method}`",
                f"{len(done)} of {len(own)}",
                str(certified),
                _median([row.points for row in done]),
                str(max((row.points for row in done), default=0)),
                _median([row.seconds for row in done], ".2f"),
            )
        )
    header = ("method", f"error ≤ {SOLVED:g}", "`optimal`", "median points", "most", "median s")
    return table(header, lines)


def _median(values: Sequence[float], style: str = ".0f") -> str:
    return f"{np.median(values):{style}}" if values else "–"


def details(rows: Sequence[Row]) -> str:
    """A table for each method."""
    header = ("problem", "status", "points", "calls", "iterations", "seconds", "error", "gap")
    parts = []
    for method in dict.fromkeys(row.method for row in rows):
        own = [row.cells() for row in rows if row.method == method]
        parts.append(f"### `{method}`\n\n{table(header, own)}")
    return "\n\n".join(parts)


def chosen(words: Iterable[str]) -> list[Case]:
    words = list(words)
    cases = list(development_set())
    return [case for case in cases if not words or any(word in case.name for word in words)]


def main() -> None:
    parser = argparse.ArgumentParser(description="Calls, seconds and gaps on the development set.")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--problems", nargs="+", default=[], help="parts of the problems' names")
    arguments = parser.parse_args()
    rows = []
    for method in arguments.methods:
        for case in chosen(arguments.problems):
            rows.append(run(case, method))
            print(f"{method:<14}", "  ".join(rows[-1].cells()), flush=True)
    print(summary(rows))
    if arguments.problems or arguments.methods != list(METHODS):
        return
    beside = peers.comparison()
    print(beside)
    text = PAGE.read_text(encoding="utf-8")
    regions = {"summary": summary(rows), "calls": details(rows), "peers": beside}
    PAGE.write_text(filled(text, regions), encoding="utf-8")


if __name__ == "__main__":
    main()
