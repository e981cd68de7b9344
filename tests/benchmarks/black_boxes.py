"""Black boxes with kinks: points, certified gaps and errors of `hidden-bundle`, and its bounds.

    python -m tests.benchmarks black_boxes [--family N] [--bounds N]

The family are maxima, norms and absolute values of posynomials with rows, as code, with the map log(x);
then the problems that the literature names; then random boxes with known optima, whose certified bound
must not lie above them. The numbers of the method were chosen with this run.
"""

from __future__ import annotations

import argparse
import time

import hcmodel as hc
from tests.problems.black_boxes import (
    chebyshev_rosenbrock,
    geometric_box,
    least_squares_box,
    random_box,
)

# How far a bound may lie above the optimum by rounding, relative to it.
ROUNDING = 1e-7


def line(name: str, problem: hc.Problem) -> str:
    """One solved box: status, points, value and relative gap."""
    problem.solve()
    solution = problem.solution
    assert solution is not None
    gap = solution.certificate.gap
    shown = "-" if gap is None else f"{gap / max(abs(solution.value or 0.0), 1.0):.1e}"
    status, points = solution.status.value, solution.oracle_calls.points
    return f"{name:24} {status:20} {points:5} points  value {solution.value:.8g}  gap {shown}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks black_boxes")
    parser.add_argument("--family", type=int, default=30)
    parser.add_argument("--bounds", type=int, default=500)
    arguments = parser.parse_args()
    print(line("Ex-CNLS", least_squares_box()))
    for size in (5, 10):
        print(line(f"Chebyshev-Rosenbrock {size}", chebyshev_rosenbrock(size)))
    for seed in range(arguments.family):
        box = geometric_box(seed)
        print(line(f"{box.kind} {seed}", box.problem()), flush=True)
    above = bounds = certified = 0
    seconds = []
    for seed in range(arguments.bounds):
        problem, optimum = random_box(seed)
        clock = time.process_time()
        problem.solve(max_calls=2000)
        seconds.append(time.process_time() - clock)
        assert problem.solution is not None
        certified += problem.status == "optimal"
        bound = problem.solution.certificate.lower_bound
        if bound is not None:
            bounds += 1
            above += bound > optimum + ROUNDING * max(1.0, abs(optimum))
    print(f"{arguments.bounds} random boxes: {bounds} bounds, {above} above the optimum")
    print(
        f"{certified} optimal, {sum(seconds):.0f} s in all, {max(seconds, default=0.0):.1f} s at most"
    )
    return int(above > 0)


if __name__ == "__main__":
    raise SystemExit(main())
