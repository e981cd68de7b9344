"""Families of large models, time and memory against size, beside other tools.

    python -m tests.benchmarks large [--only chain,gates] [--most 20000] [--peers] [--json F] [--plot F]

Each model is built and solved in a process of its own: processor seconds of the whole job with proof and
certificate (imports and a small model of the same family come before), its peak memory, the certified
gap. `--peers` gives the model to CasADi + IPOPT, too. `--json` adds the figures to those in a file and
replaces older ones of the same size, and `--plot` draws what is in the file, beside the times that Joshi
and Boyd (2008) report for circuits of the same kind, on a desktop of 2008.

Families: chains xᵢxᵢ₊₁ + 0.1xᵢ₊₁ <= 1; circuits of examples/large with local and with long wires;
decision processes with 5 actions and 8 successors, or with 20 actions and all states as successors, sizes
are pairs; regulators with 4 inputs, sizes are states; terms and rows of random unknowns as
exp(A @ log x) with a sparse A, and the same in a loop.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sparse

import hcmodel as hc
from tests.benchmarks.general import QUIET, gates
from tests.benchmarks.speed import Job, Work, chain, regulator
from tests.problems.large import sparse_process

# Gates and seconds (Joshi and Boyd, IEEE Transactions on Automation Science and Engineering, 2008).
JOSHI_BOYD = ((1e4, 25.0), (1e5, 240.0), (1e6, 2400.0))
IPOPT = "CasADi + IPOPT"


def exponents(rng: np.random.Generator, size: int, count: int, most: int) -> Any:
    """Rows with two or three to `most` entries that are not 0."""
    rows, columns = [], []
    for row in range(count):
        width = int(rng.integers(most - 2, most + 1))
        rows += [row] * width
        columns += rng.choice(size, width, replace=False).tolist()
    powers = rng.uniform(-2, 2, len(rows))
    return sparse.csr_array((powers, (rows, columns)), shape=(count, size))


def random_data(size: int) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    rng = np.random.default_rng(0)
    rows = size // 2
    cost, row = exponents(rng, size, size, 5), exponents(rng, size, 3 * rows, 3)
    return cost, rng.uniform(0.5, 2, size), row, rng.uniform(0.5, 2, 3 * rows)


def random(size: int) -> Work:
    A, c, B, q = random_data(size)

    def mine() -> hc.Problem:
        x = hc.Variable(size, name="x", bounds=(0.1, 10))
        sides = hc.sum(hc.reshape(q * hc.exp(B @ hc.log(x)), (-1, 3)), axis=1)
        return hc.Problem(hc.Minimize(hc.sum(c * hc.exp(A @ hc.log(x)))), [sides <= 8.0])

    def with_ipopt() -> float:
        import casadi

        u = casadi.MX.sym("u", size)
        both = [casadi.DM(sparse.csc_matrix(matrix)) for matrix in (A, B)]
        terms = q * casadi.exp(casadi.mtimes(both[1], u))
        program = {
            "x": u,
            "f": casadi.dot(c, casadi.exp(casadi.mtimes(both[0], u))),
            "g": casadi.sum1(casadi.reshape(terms, 3, q.size // 3)).T,
        }
        solver = casadi.nlpsol("random", "ipopt", program, QUIET)
        bounds = {"lbx": np.log(0.1), "ubx": np.log(10), "lbg": -np.inf, "ubg": 8}
        return float(solver(x0=0, **bounds)["f"])

    return Work(f"random d = {size}", mine, _peers(with_ipopt), {})


def loop(size: int) -> Work:
    A, c, B, q = random_data(size)

    def mine() -> hc.Problem:
        x = hc.Variable(size, name="x", bounds=(0.1, 10))

        def monomials(coefficients: np.ndarray, powers: Any) -> list[Any]:
            found = []
            for row, coefficient in enumerate(coefficients.tolist()):
                term: Any = coefficient
                for place in range(powers.indptr[row], powers.indptr[row + 1]):
                    term = term * x[int(powers.indices[place])] ** float(powers.data[place])
                found.append(term)
            return found

        terms = monomials(q, B)
        rows = [sum(terms[i : i + 3]) <= 8.0 for i in range(0, len(terms), 3)]
        return hc.Problem(hc.Minimize(sum(monomials(c, A))), rows)

    return Work(f"loop d = {size}", mine, {}, {})


def process(pairs: int) -> Work:
    return Work(f"process {pairs}", lambda: sparse_process(pairs // 5)[0], {}, {})


def dense_process(pairs: int) -> Work:
    states = pairs // 20
    return Work(f"dense process {pairs}", lambda: sparse_process(states, 20, states)[0], {}, {})


def _peers(with_ipopt: Job) -> dict[str, Job]:
    return {IPOPT: with_ipopt} if importlib.util.find_spec("casadi") is not None else {}


@dataclass(frozen=True)
class Family:
    make: Callable[[int], Work]
    sizes: tuple[int, ...]
    unit: str = "unknowns"
    first: int = 50
    """The size of the model that is solved before."""


FAMILIES: dict[str, Family] = {
    "chain": Family(chain, (1_000, 10_000, 18_000, 20_000, 22_000, 24_000, 100_000)),
    "gates": Family(gates, (1_000, 10_000, 100_000), "gates"),
    "long gates": Family(lambda n: gates(n, long=True), (1_000, 3_000, 10_000), "gates"),
    "process": Family(process, (1_000, 2_500, 10_000), "pairs"),
    "dense process": Family(dense_process, (1_000, 4_000, 10_000), "pairs", 100),
    "regulator": Family(lambda n: regulator(n, 4), (10, 20, 30, 50), "states", 5),
    "random": Family(random, (1_000, 2_000, 5_000)),
    "loop": Family(loop, (1_000, 10_000)),
}


@dataclass(frozen=True)
class Figure:
    """One run of one tool."""

    family: str
    size: int
    tool: str
    seconds: float
    memory: float
    """Peak, in GB."""
    status: str = ""
    gap: float | None = None
    """Certified, relative to the value."""
    value: float | None = None


def one(family: str, size: int, tool: str) -> Figure:
    """In this process."""
    warnings.simplefilter("ignore")
    made = FAMILIES[family]
    made.make(made.first).mine().solve()
    work, status, gap = made.make(size), "", None
    clock = time.process_time()
    if tool == "hcmodel":
        problem = work.mine()
        value = problem.solve()
        status, found = problem.status, problem.solution.certificate.gap
        gap = None if found is None else float(found / max(abs(value), 1e-12))
    else:
        value = work.peers[tool]()
    seconds = time.process_time() - clock
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return Figure(family, size, tool, seconds, memory, status, gap, float(value))


def measured(family: str, size: int, tool: str) -> Figure:
    """In a process of its own, whose memory is that of this run."""
    words = [sys.executable, "-m", "tests.benchmarks", "large", "--one", family, str(size), tool]
    answer = subprocess.run(words, capture_output=True, text=True, check=False)
    if answer.returncode:
        return Figure(family, size, tool, np.nan, np.nan, answer.stderr.strip().split("\n")[-1])
    return Figure(**json.loads(answer.stdout.strip().split("\n")[-1]))


def kept(figures: list[Figure], path: Path) -> list[Figure]:
    """The figures of a file with these in place of older ones; written back."""
    before = [Figure(**each) for each in json.loads(path.read_text())] if path.exists() else []
    new = {(each.family, each.size, each.tool): each for each in [*before, *figures]}
    every = sorted(new.values(), key=lambda each: (each.family, each.tool, each.size))
    path.write_text(json.dumps([asdict(each) for each in every], indent=1) + "\n")
    return every


def table(figures: list[Figure]) -> str:
    lines = [
        "| family | size | tool | seconds | GB | status | gap |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in figures:
        gap = "" if each.gap is None else f"{each.gap:.0e}"
        numbers = f"{each.seconds:.3g} | {each.memory:.2f} | {each.status} | {gap}"
        lines.append(f"| {each.family} | {each.size:,} | {each.tool} | {numbers} |")
    return "\n".join(lines)


def plot(figures: list[Figure], path: Path) -> None:
    """Time against size, log–log: one colour per family, dashed for IPOPT."""
    from hcmodel.report.canvas import CYCLE, new_figure, plain_frame, saved

    figure = new_figure(7.0, 4.6)
    axes = figure.subplots()
    families = [name for name in FAMILIES if name not in ("loop",)]
    for color, family in zip(CYCLE, families, strict=False):
        for tool, style in (("hcmodel", "-o"), (IPOPT, "--s")):
            own = [e for e in figures if (e.family, e.tool) == (family, tool)]
            own = sorted((e for e in own if np.isfinite(e.seconds)), key=lambda e: e.size)
            if own:
                label = family if tool == "hcmodel" else f"{family}, {tool}"
                points = [e.size for e in own], [e.seconds for e in own]
                axes.plot(*points, style, color=color, ms=4, lw=1.4, label=label)
    sizes, seconds = zip(*JOSHI_BOYD, strict=True)
    axes.plot(sizes, seconds, ":^", color="0.35", ms=5, lw=1.2, label="gates, Joshi and Boyd 2008")
    axes.set(xscale="log", yscale="log", xlabel="size", ylabel="processor seconds, whole job")
    axes.grid(alpha=0.25, lw=0.5)
    plain_frame(axes)
    axes.legend(fontsize=7, frameon=False, ncols=2)
    saved(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default=",".join(FAMILIES), help=f"of {', '.join(FAMILIES)}")
    parser.add_argument("--most", type=int, default=20_000, help="the largest size")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    parser.add_argument(
        "--one", nargs=3, metavar=("FAMILY", "SIZE", "TOOL"), help="in this process"
    )
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(asdict(one(chosen.one[0], int(chosen.one[1]), chosen.one[2]))))
        return
    figures: list[Figure] = []
    for name in filter(None, chosen.only.split(",")):
        for size in (each for each in FAMILIES[name].sizes if each <= chosen.most):
            tools = ["hcmodel"]
            if chosen.peers and name in ("chain", "gates", "long gates", "random"):
                tools.append(IPOPT)
            for tool in tools:
                figures.append(measured(name, size, tool))
                print(figures[-1], flush=True)
    every = figures if chosen.json is None else kept(figures, chosen.json)
    print(table(every))
    if chosen.plot is not None:
        plot(every, chosen.plot)


if __name__ == "__main__":
    main()
