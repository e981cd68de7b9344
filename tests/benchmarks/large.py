"""Large geometric programs: `python tests/benchmarks/large.py [sizes] [--dense] [--peers]`.

Three ways to write sparse programs of d unknowns: terms of three neighbours ("chain"), terms and rows of
random unknowns as exp(A @ log x) with a sparse A ("random"), and the same in a Python loop ("loop").
Seconds are those of the processor. `--dense` solves again with dense second derivatives, as far as 1,200
unknowns; `--peers` gives the chain to CVXPY's DGP, if it is there. The Hessians of random programs fill
up when they are factorised, so that their quadratic programs, not their derivatives, take the time.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

import hcmodel as hc
from hcmodel.engines import autograd_, forward
from tests.problems.large import chained_program

LARGEST_DENSE = 1200
LARGEST = {"chain": 20_000, "random": 2_000, "loop": 2_000}


def chain(size: int) -> hc.Problem:
    return chained_program(size)[0]


def exponents(rng: np.random.Generator, size: int, count: int, most: int) -> np.ndarray:
    """Rows with two or three to `most` entries that are not 0."""
    matrix = np.zeros((count, size))
    for row in matrix:
        width = int(rng.integers(most - 2, most + 1))
        row[rng.choice(size, width, replace=False)] = rng.uniform(-2, 2, width)
    return matrix


def random_data(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    rows = size // 2
    cost, row = exponents(rng, size, size, 5), exponents(rng, size, 3 * rows, 3)
    return cost, rng.uniform(0.5, 2, size), row, rng.uniform(0.5, 2, 3 * rows)


def random(size: int) -> hc.Problem:
    A, c, B, q = random_data(size)
    x = hc.Variable(size, name="x", bounds=(0.1, 10))
    sides = hc.sum(hc.reshape(q * hc.exp(B @ hc.log(x)), (-1, 3)), axis=1)
    return hc.Problem(hc.Minimize(hc.sum(c * hc.exp(A @ hc.log(x)))), [sides <= 8.0])


def loop(size: int) -> hc.Problem:
    A, c, B, q = random_data(size)
    x = hc.Variable(size, name="x", bounds=(0.1, 10))

    def monomial(coefficient: float, powers: np.ndarray) -> Any:
        found: Any = coefficient
        for place in np.flatnonzero(powers).tolist():
            found = found * x[place] ** float(powers[place])
        return found

    terms = [monomial(*pair) for pair in zip(q, B, strict=True)]
    rows = [sum(terms[i : i + 3]) <= 8.0 for i in range(0, len(terms), 3)]
    return hc.Problem(hc.Minimize(sum(monomial(*pair) for pair in zip(c, A, strict=True))), rows)


KINDS: dict[str, Callable[[int], hc.Problem]] = {"chain": chain, "random": random, "loop": loop}


def seconds_of(action: Callable[[], Any]) -> float:
    clock = time.process_time()
    action()
    return time.process_time() - clock


def with_dense_derivatives(make: Callable[[int], hc.Problem], size: int) -> float:
    kept = autograd_.SPARSE_ROWS
    autograd_.SPARSE_ROWS = forward.SPARSE_ROWS = 10**9
    try:
        return seconds_of(make(size).solve)
    finally:
        autograd_.SPARSE_ROWS = forward.SPARSE_ROWS = kept


def by_cvxpy(size: int) -> float:
    import cvxpy as cp

    rng = np.random.default_rng(0)
    x = cp.Variable(size, pos=True)
    count = size - 2

    def terms(powers: np.ndarray, coefficients: np.ndarray) -> list[Any]:
        return [
            coefficients[k] * cp.prod([x[k + i] ** powers[k, i] for i in range(3)])
            for k in range(count)
        ]

    cost = terms(rng.uniform(-2, 2, (count, 3)), rng.uniform(0.5, 2, count))
    row = terms(rng.uniform(0, 2, (count, 3)), rng.uniform(0.5, 2, count))
    limits = [x >= 0.1, x <= 10, *(side <= 2.0 for side in row)]
    problem = cp.Problem(cp.Minimize(sum(cost)), limits)
    return seconds_of(lambda: problem.solve(gp=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=[100, 300, 1000, 5000])
    parser.add_argument("--dense", action="store_true")
    parser.add_argument("--peers", action="store_true")
    options = parser.parse_args()
    peers = options.peers and importlib.util.find_spec("cvxpy") is not None
    print(
        f"{'kind':<8} {'d':>6} {'seconds':>8} {'points':>6}  {'dense/sparse':>12} {'CVXPY':>8}  status"
    )
    for kind, make in KINDS.items():
        for size in options.sizes:
            if size > LARGEST[kind]:
                continue
            problem = make(size)
            seconds = seconds_of(problem.solve)
            ratio = peer = "-"
            if options.dense and size <= LARGEST_DENSE:
                ratio = f"{with_dense_derivatives(make, size) / seconds:.1f}"
            if peers and kind == "chain":
                peer = f"{by_cvxpy(size):.2f}"
            points = problem.solution.oracle_calls.points
            print(
                f"{kind:<8} {size:>6} {seconds:>8.2f} {points:>6}  {ratio:>12} {peer:>8}  "
                f"{problem.status}, {problem.solution.method}",
                flush=True,
            )


if __name__ == "__main__":
    main()
