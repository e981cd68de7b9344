"""Times of the foundation, as ratios and shares in one run: `python tests/benchmarks/foundation.py`.

Import against the import of the dependencies; building, compiling and solving Ex-CGP; the development
set of geometric programs with calls and seconds for each.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))


def import_seconds(statement: str, repeats: int = 7) -> float:
    best = float("inf")
    for _ in range(repeats):
        clock = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        best = min(best, time.perf_counter() - clock)
    return best


def imports() -> None:
    empty = import_seconds("pass")
    dependencies = import_seconds("import numpy, scipy, lark, autograd, clarabel") - empty
    own = import_seconds("import hcmodel") - empty
    print(f"import: {own:.3f} s, dependencies {dependencies:.3f} s, ratio {own / dependencies:.2f}")


def stages() -> None:
    from tests.problems.library import tank

    tank()[0].solve()  # fills caches, so that the first run's set-up is not measured
    clock = time.perf_counter()
    problem, _, _ = tank()
    built = time.perf_counter()
    problem.compile()
    compiled = time.perf_counter()
    problem.solve()
    solved = time.perf_counter()
    print(
        f"Ex-CGP: build {1e3 * (built - clock):.2f} ms, compile {1e3 * (compiled - built):.2f} ms, "
        f"solve {1e3 * (solved - compiled):.1f} ms"
    )


def development_set() -> None:
    from tests.problems.library import GEOMETRIC_PROGRAMS, geometric_program

    print(f"{'problem':<28} {'error':>9} {'violation':>9} {'calls':>6} {'seconds':>8}  status")
    for name in GEOMETRIC_PROGRAMS:
        problem, optimum = geometric_program(name)
        problem.solve("sbl-adals")
        solution = problem.solution
        assert solution is not None
        assert solution.value is not None
        error = abs(solution.value - optimum) / abs(optimum)
        print(
            f"{name:<28} {error:9.1e} {solution.certificate.violation:9.1e} "
            f"{solution.oracle_calls.total:6d} {solution.solve_seconds:8.2f}  {solution.status}"
        )


if __name__ == "__main__":
    imports()
    stages()
    development_set()
