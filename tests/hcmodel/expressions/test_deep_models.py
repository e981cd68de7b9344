"""Models that are built in loops of Python, as deep as the loops have rounds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

import hcmodel as hc
from hcmodel.expressions.depth import depth, with_room

ROUNDS = 400  # with three calls a level, more than the 1,000 of Python


def horner(x: Any) -> Any:
    found = x[0]
    for i in range(1, ROUNDS):
        found = 0.5 * found + x[i]
    return hc.square(found - 1)


@pytest.mark.parametrize(
    ("objective", "value"),
    [
        (lambda x: sum(x[i] ** 2 for i in range(ROUNDS)) + x[0], -0.25),
        (lambda x: x[0] - sum(-(x[i] ** 2) for i in range(ROUNDS)), -0.25),
        (lambda x: sum(hc.exp(x[i]) - x[i] for i in range(ROUNDS)), ROUNDS),
        (horner, 0.0),
    ],
)
def test_a_sum_of_a_loop_is_solved(objective: Callable[[Any], Any], value: float) -> None:
    """They ended in a `RecursionError`."""
    limit = sys.getrecursionlimit()
    x = hc.Variable(ROUNDS, name="x", bounds=(-1, 1))
    problem = hc.Problem(hc.Minimize(objective(x)))
    assert problem.solve() == pytest.approx(value, abs=1e-6)
    assert problem.status == "optimal"
    assert sys.getrecursionlimit() == limit


def test_a_row_of_a_loop_is_solved() -> None:
    x, t = hc.Variable(ROUNDS, name="x", bounds=(-1, 1)), hc.Variable(name="t")
    rows = [sum(x[i] ** 2 for i in range(ROUNDS)) <= t, hc.sum(x) >= 1]
    problem = hc.Problem(hc.Minimize(t), rows)
    assert problem.solve() == pytest.approx(1 / ROUNDS, rel=1e-5)
    assert problem.status == "optimal"


def test_room_is_made_where_it_is_needed_and_the_limit_is_put_back() -> None:
    x = hc.Variable(name="x")
    nodes = hc.Problem(hc.Minimize(sum(x + i for i in range(400)))).model.nodes
    assert depth(nodes) >= 400
    limit, seen = sys.getrecursionlimit(), list[int]()

    def down(levels: int) -> int:
        seen.append(sys.getrecursionlimit())
        return 0 if levels == 0 else 1 + down(levels - 1)

    assert with_room(lambda: down(3), nodes) == 3
    assert set(seen) == {limit}
    assert with_room(lambda: down(limit + 100), nodes) == limit + 100
    assert max(seen) > limit
    assert sys.getrecursionlimit() == limit
    with pytest.raises(RecursionError):
        with_room(lambda: down(100 * len(nodes) + 10 * limit), nodes)
    assert sys.getrecursionlimit() == limit
