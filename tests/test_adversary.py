"""A few trials of each class of the adversary; the full run is `python -m tests.benchmarks adversary`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.solving.judge import Status
from tests.benchmarks.adversary import (
    CLASSES,
    TRIALS,
    At,
    black_box,
    doubtful,
    ended_well,
    false_unbounded,
    run,
)
from tests.extent import several


@pytest.mark.parametrize("name", CLASSES)
def test_a_few_trials_find_no_defect(name: str) -> None:
    small = TRIALS[name][0]
    tally = run(name, several(max(small // 3, 2), small * 10), seed=4)
    assert tally.trials >= 2
    assert tally.defects == []


def test_the_adversary_sees_a_false_optimum() -> None:
    x = hc.Variable(name="x", bounds=(-1, 1))
    problem = hc.Problem(hc.Minimize(x**2 - x))
    problem.solve()
    assert doubtful(problem, np.random.default_rng(0)) is None
    x.value = -1.0  # the point and its value are those of a worse point now
    problem.solution = problem.solution and replace(problem.solution, value=2.0)
    assert "a sample has" in str(doubtful(problem, np.random.default_rng(0)))


def test_the_adversary_sees_a_false_unbounded() -> None:
    x = hc.Variable(name="x", bounds=(-1, 1))
    problem = hc.Problem(hc.Maximize(x**2))
    problem.solve()
    assert false_unbounded(problem) is None
    problem.solution = problem.solution and replace(problem.solution, status=Status.UNBOUNDED)
    assert "cannot pass 1" in str(false_unbounded(problem))


def test_the_adversary_sees_a_lost_point() -> None:
    at = At(10**9, "nan")
    problem = black_box(at, "function")
    problem.solve("sbl-adals", max_calls=50)
    assert ended_well(problem, at, lambda: None) is None
    problem.solution = problem.solution and replace(problem.solution, point={})
    assert ended_well(problem, at, lambda: None) == "the point is lost"
