"""Black boxes that are programs: without a map beside scipy, expensive, smooth, and large.

    python -m tests.benchmarks simulators [kinks] [eigenvalues] [cost] [smooth] [family] [large]

`kinks`: evaluations until the value is within 1e-5 of the optimum, and in all, beside scipy's SLSQP (with
gradients) and COBYQA. `eigenvalues`: the same, without COBYQA, on 80 random functions. `cost`:
own time beside a simulator of 0.05 s. `smooth`: the geometric programs as black boxes, with and without a
map. `family`: optima of CVXPY's DGP. `large`: own time per point.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import autograd
import autograd.numpy as anp
import numpy as np
import scipy

import hcmodel as hc
from tests.problems.black_boxes import BOX, geometric_box, geometric_program_box
from tests.problems.kinks import Kinked, eigenvalue, kinked
from tests.problems.library import GEOMETRIC_PROGRAMS

CLOSE = 1e-5  # relative to max(1, |optimum|)
SECONDS = 0.05  # of one call of the simulator
MOST_POINTS = 60_000  # of a run on Rosenbrock's functions


class Watched:
    """A function that notes when its value first came close to the optimum."""

    def __init__(self, case: Kinked) -> None:
        self.case, self.calls, self.least = case, 0, np.inf
        self.close: int | None = None

    def __call__(self, x: Any) -> Any:
        value = self.case.function(x)
        self.calls += 1
        number = float(getattr(value, "_value", value))
        self.least = min(self.least, number)
        allowed = CLOSE * max(1.0, abs(self.case.optimum))
        if self.close is None and number - self.case.optimum <= allowed:
            self.close = self.calls
        return value

    def line(self) -> str:
        return f"{self.close or '-':>6} {self.calls:>6} {self.least - self.case.optimum:8.1e}"


def kinks() -> None:
    print(f"{'':20}   hcmodel: close, all, error   SLSQP                    COBYQA")
    for case in kinked():
        own = Watched(case)
        x = hc.Variable(case.start.size, name="x", start=case.start)
        problem = hc.Problem(hc.Minimize(hc.function(own, x)))
        problem.solve(max_calls=MOST_POINTS)
        lines = [own.line()]
        for method in ("SLSQP", "COBYQA"):
            theirs = Watched(case)
            slopes = None if method == "COBYQA" else autograd.grad(case.function)
            scipy.optimize.minimize(
                theirs, case.start, jac=slopes, method=method, options={"maxiter": 3000}
            )
            lines.append(theirs.line())
        print(f"{case.name:20} {' | '.join(lines)}  {problem.status}", flush=True)


def eigenvalues(count: int = 80) -> None:
    """Points on random eigenvalue functions of 2 to 6 unknowns that SLSQP solves, smooth or not."""
    close, every, worse = [0, 0], [0, 0], 0
    for seed in range(1, count + 1):
        case = eigenvalue(seed, 2 + seed % 5, 3 + (seed * 7 // 5) % 6)
        theirs, own = Watched(case), Watched(case)
        scipy.optimize.minimize(
            theirs,
            case.start,
            jac=autograd.grad(case.function),
            method="SLSQP",
            options={"maxiter": 3000},
        )
        x = hc.Variable(case.start.size, name="x", start=case.start)
        problem = hc.Problem(hc.Minimize(hc.function(own, x)))
        problem.solve()
        print(f"{case.name:20} {own.line()} | {theirs.line()}  {problem.status}", flush=True)
        if theirs.close is not None:
            assert own.close is not None
            close = [close[0] + own.close, close[1] + theirs.close]
            every = [every[0] + own.calls, every[1] + theirs.calls]
            worse += own.close > theirs.close
    print(f"hcmodel and SLSQP where it succeeds: {close} points until close, {every} in all;")
    print(f"hcmodel needs more until close on {worse}")


def cost() -> None:
    """The share of hcmodel's own processor time; the simulator sleeps, so that it takes none."""

    def slow(x: np.ndarray) -> Any:
        time.sleep(SECONDS)
        return np.maximum(x[0] + x[1] + x[2], 1 / (x[0] * x[1] * x[2]))

    def smooth(x: np.ndarray) -> Any:
        time.sleep(SECONDS)
        return np.sum(x) + 1 / np.prod(x)

    geometric_box(0).problem().solve()  # imports what solves of black boxes need
    for name, code, mapped in (
        ("kink, map", slow, True),
        ("kink, no map", slow, False),
        ("smooth, map", smooth, True),
        ("smooth, no map", smooth, False),
    ):
        x = hc.Variable(3, name="x", bounds=(0.1, 10), start=[3.0, 0.5, 1.0])
        problem = hc.Problem(
            hc.Minimize(hc.function(code, x, grad="2-point")),
            hidden=[hc.log(x)] if mapped else None,
        )
        clock = time.process_time()
        problem.solve()
        own = time.process_time() - clock
        assert problem.solution is not None
        calls = problem.solution.function_calls.values
        share = own / (own + calls * SECONDS)
        print(
            f"{name:16} {problem.status:18} {calls:5} calls, own time {100 * share:.1f} %",
            flush=True,
        )


def smooth() -> None:
    for mapped in (True, False):
        good = 0
        for name in sorted(GEOMETRIC_PROGRAMS):
            problem, optimum = geometric_program_box(name, mapped)
            problem.solve()
            assert problem.solution is not None
            value = np.inf if problem.value is None else problem.value
            error = abs(value - optimum) / max(1.0, abs(optimum))
            good += error <= CLOSE and (problem.status == "optimal" or not mapped)
            points = problem.solution.oracle_calls.points
            print(f"{name:24} {problem.status:18} error {error:.1e} {points:6} points", flush=True)
        print(f"{'with' if mapped else 'without'} a map: {good} of {len(GEOMETRIC_PROGRAMS)}")


def family() -> None:
    """The family of black boxes beside the same models in CVXPY's DGP."""
    import cvxpy

    worst, most, certified = 0.0, 0, 0
    for seed in range(30):
        box = geometric_box(seed)
        y = cvxpy.Variable(box.start.size, pos=True)

        def posynomial(part: Any, y: Any = y) -> Any:
            terms = [
                c * cvxpy.prod(cvxpy.hstack([y[i] ** a[i] for i in np.flatnonzero(a)]))
                for c, a in zip(part.coefficients, part.exponents, strict=True)
            ]
            return sum(terms[1:], terms[0])

        parts = [posynomial(part) for part in box.parts]
        if box.kind == "max":
            objective = cvxpy.max(cvxpy.hstack(parts))
        elif box.kind == "norm":
            objective = cvxpy.norm(cvxpy.hstack(parts))
        else:
            objective = parts[0] + sum(cvxpy.maximum(p, 1 / p) for p in parts[1:])
        rows = [posynomial(row) <= 1 for row in box.rows] + [y >= BOX[0], y <= BOX[1]]
        optimum = cvxpy.Problem(cvxpy.Minimize(objective), rows).solve(gp=True)
        problem = box.problem()
        problem.solve()
        assert problem.value is not None
        assert problem.solution is not None
        error = abs(problem.value - optimum) / max(1.0, abs(optimum))
        points = problem.solution.oracle_calls.points
        worst, most = max(worst, error), max(most, points)
        certified += problem.status == "optimal"
        print(
            f"{box.kind:5} {seed:3} {problem.status:10} error {error:.1e} {points:4} points",
            flush=True,
        )
    print(f"30 boxes: {certified} certified, largest error {worst:.1e}, at most {most} points")


def large() -> None:
    for size in (100, 300, 500):
        for kind in ("smooth", "kink"):

            def code(x: Any, kind: str = kind) -> Any:
                bend = anp.sum((x - 1) ** 2 * anp.arange(1, x.size + 1) / x.size)
                return bend if kind == "smooth" else bend + anp.sum(anp.abs(x[1:] - x[:-1]))

            x = hc.Variable(size, name="x", bounds=(0.1, 10), start=3)
            problem = hc.Problem(hc.Minimize(hc.function(code, x)))
            clock = time.process_time()
            problem.solve(max_calls=200)
            assert problem.solution is not None
            points = problem.solution.oracle_calls.points
            own = 1000 * (time.process_time() - clock) / points
            print(
                f"{kind:7} {size:4} unknowns {problem.status:18} {points:5} points, {own:.1f} ms each",
                flush=True,
            )


SECTIONS: dict[str, Callable[[], None]] = {
    "kinks": kinks,
    "eigenvalues": eigenvalues,
    "cost": cost,
    "smooth": smooth,
    "family": family,
    "large": large,
}


def main() -> int:
    chosen = [name for name in sys.argv[1:] if name in SECTIONS] or list(SECTIONS)
    warnings.simplefilter("ignore")
    for name in chosen:
        print(f"--- {name}")
        SECTIONS[name]()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
