"""Rows with kinks as several rows: what they are, how multipliers walk, and which models they prove."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.reductions.split import MOST_ROWS, Split
from hcmodel.testing import check_reduction
from tests.extent import first

TASTES = np.array([2.0, 3.0, 2.5])


def priced(*slopes: float) -> tuple[hc.Variable, Any]:
    """Prices of three products, and the revenue from buyers who choose by a multinomial logit."""
    p = hc.Variable(3, name="p", bounds=(0.1, 20))
    v = hc.exp(TASTES - np.array(slopes or (1.0, 1.0, 1.0)) * p)
    return p, hc.sum(p * v) / (1 + hc.sum(v))


Rows = Callable[[Any], list[Any]]
# The first few are solved by default, and all of them are split.
KINKS: dict[str, tuple[Rows, Rows]] = {
    "abs": (
        lambda p: [hc.abs(p[0] - p[1] - 1) <= 0.25],
        lambda p: [p[0] - p[1] <= 1.25, p[0] - p[1] >= 0.75],
    ),
    "max": (
        lambda p: [hc.maximum(p[0], p[1]) + 0.5 <= p[2]],
        lambda p: [p[0] + 0.5 <= p[2], p[1] + 0.5 <= p[2]],
    ),
    "min": (
        lambda p: [hc.minimum(p[1], p[2]) >= p[0] + 0.5],
        lambda p: [p[1] >= p[0] + 0.5, p[2] >= p[0] + 0.5],
    ),
    "the largest entry": (
        lambda p: [hc.max(p[:2]) <= p[2] - 0.5],
        lambda p: [p[0] <= p[2] - 0.5, p[1] <= p[2] - 0.5],
    ),
    "a kink in a kink": (
        lambda p: [hc.maximum(hc.abs(p[0] - p[1] - 1), p[2] - p[1]) <= 0.25],
        lambda p: [p[0] - p[1] <= 1.25, p[1] - p[0] <= -0.75, p[2] - p[1] <= 0.25],
    ),
    "an array": (
        lambda p: [hc.abs(p[1:] - p[:-1] - 0.5) <= 0.1],
        lambda p: [p[1:] - p[:-1] <= 0.6, p[:-1] - p[1:] <= -0.4],
    ),
    "the largest norm": (
        lambda p: [hc.norm(hc.hstack([p[0] - p[1] - 1, p[2] - p[1]]), np.inf) <= 0.25],
        lambda p: [p[0] - p[1] <= 1.25, p[1] - p[0] <= -0.75, hc.abs(p[2] - p[1]) <= 0.25],
    ),
}


@pytest.mark.parametrize("name", first(4, KINKS))
def test_rows_between_prices_are_proven_piece_by_piece(name: str) -> None:
    """They ended `locally_optimal`; the optimum is that of the pieces written as rows."""
    kinked, plain = KINKS[name]
    values = []
    for rows in (kinked, plain):
        p, revenue = priced()
        problem = hc.Problem(hc.Maximize(revenue), rows(p))
        values.append(problem.solve())
        assert problem.status == "optimal"
    assert values[0] == pytest.approx(values[1], rel=1e-6)


@pytest.mark.parametrize("seed", first(1, range(3)))
def test_no_feasible_point_is_above_the_certified_value(seed: int) -> None:
    generator = np.random.default_rng(seed)
    gaps, width = generator.uniform(-1, 1, size=2), generator.uniform(0.05, 0.5)
    p, revenue = priced()
    kink = hc.maximum(hc.abs(p[0] - p[1] - gaps[0]), p[2] - p[1] - gaps[1])
    problem = hc.Problem(hc.Maximize(revenue), [kink <= width])
    best = problem.solve()
    assert problem.status == "optimal"
    middle = generator.uniform(0.5, 8, size=20_000)
    first = middle + gaps[0] + generator.uniform(-width, width, size=20_000)
    last = middle + gaps[1] + generator.uniform(-2, width, size=20_000)
    points = np.stack([first, middle, last], axis=1)
    points = points[(points > 0.1).all(axis=1)]
    assert len(points) > 1000
    weights = np.exp(TASTES - points)
    found = (points * weights).sum(axis=1) / (1 + weights.sum(axis=1))
    assert found.max() <= best + 1e-9
    assert found.max() >= best - 0.05 * abs(best)


def test_the_multiplier_of_a_row_is_that_of_its_active_piece() -> None:
    duals = []
    for rows in KINKS["abs"]:
        p, revenue = priced()
        made = rows(p)
        hc.Problem(hc.Maximize(revenue), made).solve()
        duals.append([float(row.dual_value) for row in made])
    assert duals[0][0] == pytest.approx(sum(duals[1]), rel=1e-4)
    assert duals[0][0] > 1e-3


@pytest.mark.parametrize("name", KINKS)
def test_both_sides_agree(name: str) -> None:
    p, revenue = priced()
    model = hc.Problem(hc.Minimize(-revenue), KINKS[name][0](p)).forms().bounds.after
    split = Split.of(model)
    assert len(split.after.constraints) > 1
    check_reduction(split)
    x = np.array([3.0, 1.0, 2.0])
    before = max(_violations(model, x))
    assert max(_violations(split.after, x)) == pytest.approx(before)


def _violations(model: Any, x: Any) -> list[float]:
    sides = model.values_at(x)[1:]
    signs = [-1.0 if each.sense == ">=" else 1.0 for each in model.constraints]
    pairs = zip(sides[::2], sides[1::2], signs, strict=True)
    return [float(np.max(sign * (left - right))) for left, right, sign in pairs]


UNSPLIT: dict[str, Rows] = {
    "an equality": lambda p: [hc.abs(p[0] - p[1]) == 1],
    "the wrong side": lambda p: [hc.abs(p[0] - p[1]) >= 1],
    "a sum over an array": lambda p: [hc.sum(hc.abs(p)) <= 9],
    "the sum of sizes": lambda p: [hc.norm(p, 1) <= 9],
    "too many": lambda p: [sum(hc.abs(p[0] - k) for k in range(MOST_ROWS)) <= 900],
}


@pytest.mark.parametrize("name", UNSPLIT)
def test_other_kinks_stay(name: str) -> None:
    p, revenue = priced()
    model = hc.Problem(hc.Minimize(-revenue), UNSPLIT[name](p)).forms().bounds.after
    assert Split.of(model).after is model


def test_the_conflict_names_the_row_that_was_split() -> None:
    p, revenue = priced()
    apart = (hc.abs(p[0] - p[1]) <= 0.2).named("apart")
    far = (p[0] >= p[1] + 1).named("far")
    problem = hc.Problem(hc.Maximize(revenue), [apart, far, p[2] <= 5])
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution is not None
    assert problem.solution.conflict == ("apart", "far")
