"""Derivatives of solutions against central differences, on models of all kinds.

    python -m tests.benchmarks derivatives [NAME …]

Prints the largest relative difference of dx/dp, dV/dp and of the adjoint along one random direction of
all parameters; the aim is 1e-6 everywhere.
"""

from __future__ import annotations

import sys

from tests.problems.parametric import ALL, directional, parametric

AIM = 1e-6


def main(names: list[str]) -> int:
    failed = 0
    print(f"{'model':20} {'dx/dp':>9} {'dV/dp':>9} {'adjoint':>9}")
    for name in names or ALL:
        try:
            found = directional(parametric(name))
        except Exception as error:
            failed += 1
            print(f"{name:20} {type(error).__name__}: {error}")
            continue
        failed += found.largest > AIM
        print(f"{name:20} {found.variables:9.1e} {found.value:9.1e} {found.adjoint:9.1e}")
    print(f"{len(names or ALL)} models, {failed} beyond {AIM:g}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
