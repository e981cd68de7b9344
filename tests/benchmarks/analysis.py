"""Times of the analysis, in one run: `python tests/benchmarks/analysis.py [samples]`.

The proof of the posynomial program with 100 variables against its solution, and the analysis of every
example, by proof or by sampling.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import hcmodel as hc
from hcmodel.analysis.analyze import Analysis
from hcmodel.proof.prove import prove

EXAMPLES = Path(__file__).parents[2] / "examples"


def analyze(problem: hc.Problem, *arguments: Any, **options: Any) -> Analysis:
    return problem.analyze(*arguments, **options)


def load(name: str) -> hc.Problem:
    path = EXAMPLES / f"{name}.hc"
    data = re.findall(r"^#.*--data (\S+)", path.read_text(), re.MULTILINE)  # as its comment says
    return hc.load(path, [str(EXAMPLES / file) for file in data[:1]] or None)


def best(action: Callable[[], Any], repeats: int = 3) -> float:
    seconds = []
    for _ in range(repeats):
        clock = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - clock)
    return min(seconds)


def proof_against_solution() -> None:
    problem = load("posynomial")
    parts = (problem.objective.expression, problem.objective.sign, problem.constraints)
    problem.solve()
    proof = best(lambda: prove(*parts))
    analysis = best(lambda: analyze(problem))
    solution = best(lambda: problem.solve())
    print(
        f"posynomial, 100 unknowns: proof {1e3 * proof:.1f} ms, analysis with constants "
        f"{1e3 * analysis:.0f} ms, solution {1e3 * solution:.0f} ms"
    )
    print(f"    proof / solution = {proof / solution:.3f}")


def every_example(samples: int) -> None:
    print(f"{'example':<20} {'verdict':<12} {'seconds':>8}  coordinates")
    for path in sorted(EXAMPLES.glob("*.hc")):
        problem = load(path.stem)
        clock = time.perf_counter()
        analysis = analyze(problem, samples)
        seconds = time.perf_counter() - clock
        texts = ", ".join(analysis.coordinates.values())
        print(f"{path.stem:<20} {analysis.verdict:<12} {seconds:8.2f}  {texts[:60]}")


if __name__ == "__main__":
    proof_against_solution()
    every_example(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
