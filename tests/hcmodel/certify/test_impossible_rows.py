"""Rows that intervals show to be impossible, without convexity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.certify.impossible_rows import impossible_row
from hcmodel.expressions.model import Model

x = hc.Variable(3, name="x", bounds=(-3, 3))
z = hc.Variable(name="z")
IMPOSSIBLE: dict[str, Callable[[], Any]] = {
    "above all values": lambda: hc.sin(x[0]) >= 1.5,
    "below all values": lambda: z**2 <= -1e-9,
    "one entry of an equality": lambda: hc.tanh(x) * hc.cos(x) == [0.1, 2.0, 0.3],
    "both sides vary": lambda: hc.exp(x[0]) >= 30 + hc.abs(x[1]),
}
POSSIBLE: dict[str, Callable[[], Any]] = {
    "at one point only": lambda: hc.sin(x[0]) >= 1.0,
    "at an end of the box": lambda: hc.exp(x[0]) >= np.exp(3.0),
    "no interval": lambda: z + x[0] >= 1e300,
    "somewhere": lambda: hc.tanh(x) == [0.1, 0.2, 0.3],
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_rows_are_found(name: str) -> None:
    found = impossible_row(Model.checked(hc.Minimize(z), [z >= 0, IMPOSSIBLE[name]()], None))
    assert found is not None
    assert found.position == 1
    assert found.entry == ((1,) if name == "one entry of an equality" else ())


@pytest.mark.parametrize("name", POSSIBLE)
def test_possible_rows_are_not(name: str) -> None:
    assert impossible_row(Model.checked(hc.Minimize(z), [POSSIBLE[name]()], None)) is None


def test_a_solve_says_infeasible_and_names_the_row() -> None:
    """It was a solver error: the functions bend both ways."""
    far = (hc.tanh(x) * hc.cos(x) == [0.1, 2.0, 0.3]).named("far")
    problem = hc.Problem(hc.Minimize(hc.sum(x)), [far])
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution is not None
    assert problem.solution.conflict == ("far[1]",)
