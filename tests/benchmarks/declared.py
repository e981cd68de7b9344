"""What the test of declared coordinates costs beside the rest of a solve.

    python -m tests.benchmarks declared [--repeat N]

Each job is a fresh model: build, search, compile, run, certify. The test is what looks at a declared map
that nothing proves: samples, and enclosures of second derivatives. It may take as long as the rest.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import hcmodel as hc
from hcmodel.certify.declared import curvature_boxes, map_test
from tests.benchmarks.general import black_box, two_norms

# The functions of the package that put a declared map to the test.
TESTS = ((map_test, "contradicted"), (curvature_boxes, "settle"), (curvature_boxes, "settle_form"))
MOST = 1.0


class Watch:
    """Seconds inside of the functions that it wraps."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*arguments: Any, **keywords: Any) -> Any:
            start = time.process_time()
            try:
                return function(*arguments, **keywords)
            finally:
                self.seconds += time.process_time() - start

        return wrapped


@contextmanager
def watched() -> Iterator[Watch]:
    watch, kept = Watch(), [getattr(module, name) for module, name in TESTS]
    for (module, name), function in zip(TESTS, kept, strict=True):
        setattr(module, name, watch.timed(function))
    try:
        yield watch
    finally:
        for (module, name), function in zip(TESTS, kept, strict=True):
            setattr(module, name, function)


def coupled(size: int) -> hc.Problem:
    """c = x + 0.3 sin(x reversed), and |c|² + c₁ multiplied out; U is no box."""
    x = hc.Variable(size, name="x", bounds=(-2, 2), start=np.full(size, 0.7))
    turned = hc.sin(x[::-1])
    cost = hc.sum(x**2 + 0.6 * x * turned + 0.09 * turned**2) + x[0] + 0.3 * hc.sin(x[-1])
    return hc.Problem(hc.Minimize(cost), hidden=[x + 0.3 * turned])


def swapped() -> hc.Problem:
    """c = (x₁ + x₂³/3, x₂ − x₁³/3) with a row that is affine in u, neither written in u."""
    x = hc.Variable(2, name="x", bounds=(-1.5, 1.5), start=np.array([1.0, -1.0]))
    c = hc.hstack([x[0] + x[1] ** 3 / 3, x[1] - x[0] ** 3 / 3])
    cost = x[0] ** 2 + x[1] ** 2 + 2 * x[0] * x[1] * (x[1] ** 2 - x[0] ** 2) / 3
    cost = cost + (x[0] ** 6 + x[1] ** 6) / 9
    row = 3 * x[0] + x[1] ** 3 + 3 * x[1] - x[0] ** 3 >= 1
    return hc.Problem(hc.Minimize(cost), [row], hidden=[c])


def cubes(size: int) -> hc.Problem:
    """u = x³ + x, which no atom inverts, and Σ u² multiplied out below a sum of u."""
    x = hc.Variable(size, name="x", bounds=(-1, 2), start=np.full(size, 0.5))
    row = hc.sum(x**3) + hc.sum(x) >= size / 2
    return hc.Problem(hc.Minimize(hc.sum(x**6 + 2 * x**4 + x**2)), [row], hidden=[x**3 + x])


def polar() -> hc.Problem:
    """The point of a ring nearest to (1, 2), in polar coordinates."""
    r = hc.Variable(name="r", bounds=(0.5, 4), start=1.0)
    t = hc.Variable(name="t", bounds=(0.1, 1.5), start=0.3)
    away = r**2 - 2 * r * hc.cos(t) - 4 * r * hc.sin(t) + 5
    flat = r * hc.cos(t) + r * hc.sin(t) <= 2
    return hc.Problem(hc.Minimize(away), [flat], hidden=[hc.hstack([r * hc.cos(t), r * hc.sin(t)])])


def saturated(size: int) -> hc.Problem:
    """Loads behind a soft threshold that all of them share."""
    x = hc.Variable(size, name="x", bounds=(0, 3), start=np.full(size, 1.0))
    total = hc.softplus(hc.sum(x) - size)
    u = x + 0.2 * total
    weights = np.arange(1.0, size + 1)
    cost = hc.sum(x**2) + 0.4 * hc.sum(x) * total + 0.04 * size * total**2
    rows = [hc.sum(x * weights) + 0.2 * weights.sum() * total >= weights.sum()]
    return hc.Problem(hc.Minimize(cost), rows, hidden=[u])


def plain(size: int) -> hc.Problem:
    """Convex functions that no rule of the proof knows: their second derivatives decide."""
    x = hc.Variable(size, name="x", bounds=(-1, 1), start=np.full(size, 0.1))
    objective = hc.sum_squares(x) + 0.3 / size * hc.sin(hc.sum(x))
    return hc.Problem(hc.Minimize(objective), [x[0] * x[1] + hc.sum_squares(x) <= 1], hidden=[x])


MODELS: dict[str, Callable[[], hc.Problem]] = {
    "two norms (Ex-CNLS)": lambda: two_norms().mine(),
    "black-box tank": lambda: black_box().mine(),
    "swapped cubes": swapped,
    "polar coordinates": polar,
    **{f"coupled sines, {n}": functools.partial(coupled, n) for n in (2, 4, 8, 20, 60)},
    **{f"cubes, {n}": functools.partial(cubes, n) for n in (2, 4, 8, 20, 60)},
    **{f"soft threshold, {n}": functools.partial(saturated, n) for n in (2, 4, 8, 20, 60)},
    **{f"identity, {n}": functools.partial(plain, n) for n in (2, 4, 8, 20)},
}


def measured(make: Callable[[], hc.Problem], repeat: int) -> tuple[hc.Problem, float, float]:
    """The last problem, and seconds of the test and of the rest in the quickest job after a first one."""
    best: tuple[float, float] | None = None
    for turn in range(repeat + 1):
        with watched() as watch:
            start = time.process_time()
            problem = make()
            problem.solve()
            rest = time.process_time() - start - watch.seconds
        if turn and (best is None or watch.seconds + rest < sum(best)):
            best = watch.seconds, rest
    assert best is not None
    return problem, *best


def main() -> int:
    parser = argparse.ArgumentParser(prog="declared", description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", default="", help="models whose name begins with this")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| model | status | method | test | rest | ratio |\n|---|---|---|---|---|---|")
    late = []
    for name, make in MODELS.items():
        if not name.startswith(chosen.only):
            continue
        problem, test, rest = measured(make, chosen.repeat)
        assert problem.solution is not None
        print(
            f"| {name} | {problem.status} | {problem.solution.method} | {1e3 * test:.1f} ms "
            f"| {1e3 * rest:.1f} ms | {test / rest:.2f} |",
            flush=True,
        )
        if test > MOST * rest:
            late.append(name)
    print("the test takes at most as long as the rest" if not late else f"late: {', '.join(late)}")
    return bool(late)


if __name__ == "__main__":
    sys.exit(main())
