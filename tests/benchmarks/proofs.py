"""The structural proof at full count: random expressions, and its time against the solve.

    python tests/benchmarks/proofs.py

Prints how many random expressions were proven, how many of their claims failed at sampled midpoints
(none may), and what a proof of the large geometric program costs beside solving it.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import hcmodel as hc
from hcmodel.proof.prove import prove
from tests.hcmodel.proof.random_expressions import Generator, check

EXPRESSIONS = 20_000
PAIRS = 200
EXAMPLES = Path(__file__).parents[2] / "examples"


def midpoints() -> None:
    """Claims about random expressions, in random coordinates."""
    rng = np.random.default_rng(2026)
    generator = Generator(rng)
    checked = [check([generator.expression()], rng, PAIRS) for _ in range(EXPRESSIONS)]
    broken = [claim for each in checked for claim in each.broken]
    proven = sum(each.proven for each in checked)
    print(f"{proven} of {EXPRESSIONS} random expressions proven, {len(broken)} claims broken")
    for claim in broken[:20]:
        print(f"  {claim}")


def times() -> None:
    """Proof and solve of the geometric program in 100 variables."""
    problem = hc.load(EXAMPLES / "posynomial.hc", data=EXAMPLES / "posynomial.json")
    begun = time.perf_counter()
    proof = prove(problem.objective.expression, 1.0, problem.constraints)
    proved = time.perf_counter()
    problem.solve()
    solved = time.perf_counter()
    ratio = (proved - begun) / (solved - proved)
    print(
        f"d = 100: proven {proof.proven} in {1e3 * (proved - begun):.1f} ms, {ratio:.1e} of a solve"
    )


if __name__ == "__main__":
    times()
    midpoints()
