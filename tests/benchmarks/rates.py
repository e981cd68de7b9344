"""Empirical rates under the theory rule: `python tests/benchmarks/rates.py`.

Calls that a method needs for accuracy ε, over one decade of ε, on the family `conflict` of the promise
tests (a linear program in hidden coordinates whose constraint opposes its objective). The slope of
log calls against log 1/ε is compared with the theorem's exponent. The theorems hide logarithms, which
alone add to a slope; the last column divides by the promise's own growth instead: 0 means that the calls
grow exactly as the theorem says.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from hcmodel.solvers.first_order.accelerated_gradient import AcceleratedGradient
from hcmodel.solvers.first_order.switching_subgradient import SwitchingSubgradient
from hcmodel.solvers.first_order.theory_bundle import TheoryStarBundleLevel
from hcmodel.solvers.first_order.theory_ippm import TheoryIppm
from hcmodel.solvers.loop import Task, run
from hcmodel.solvers.theory.budget import budget
from tests.solvers.theory.test_theory_promises import DOMAIN, Member, conflict

CASES: list[tuple[str, float, np.ndarray, Callable[[Member], Any]]] = [
    ("sbl-star", 1.0, np.geomspace(1e-3, 1e-4, 4), lambda m: TheoryStarBundleLevel(m.constants)),
    (
        "ippm-acgd",
        1.0,
        np.geomspace(3e-2, 3e-3, 4),
        lambda m: TheoryIppm(AcceleratedGradient(), m.constants),
    ),
    (
        "ippm-swsg",
        3.0,
        np.geomspace(0.25, 0.15, 3),
        lambda m: TheoryIppm(SwitchingSubgradient(), m.constants),
    ),
]


def needed(member: Member, method: Any, accuracy: float) -> int:
    """Calls until the first iterate whose error and violation are at most ε."""
    oracle = member.oracle.restricted()
    oracle.calls = type(oracle.calls)()
    task = Task(oracle, DOMAIN, accuracy, member.value)
    for record in run(method, task, member.start).trace:
        if record.objective - member.value <= accuracy and record.violation <= accuracy:
            return record.calls
    raise AssertionError(f"the promise was not kept at {accuracy}")


def slope(accuracies: np.ndarray, calls: np.ndarray) -> float:
    return float(np.polyfit(np.log(1 / accuracies), np.log(calls), 1)[0])


def main() -> None:
    print(
        f"{'method':<10} {'exponent':>8} {'slope':>6} {'beside the promise':>19}   calls at each ε"
    )
    for name, exponent, accuracies, make in CASES:
        member = conflict(0)
        gap = member.oracle.at(member.start).objective - member.value
        calls = np.array([needed(member, make(member), accuracy) for accuracy in accuracies])
        promises = np.array(
            [budget(name, e, member.constants, delta0=gap).calls for e in accuracies], dtype=float
        )
        fitted, extra = slope(accuracies, calls), slope(accuracies, calls / promises)
        pairs = ", ".join(f"{e:.1e}: {c}" for e, c in zip(accuracies, calls, strict=True))
        print(f"{name:<10} {exponent:8.0f} {fitted:6.2f} {extra:19.2f}   {pairs}")


if __name__ == "__main__":
    main()
