"""The same models in other units of the variables: what is shown of them does not depend on units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import hcmodel as hc


def costs(y: Sequence[Any]) -> Any:
    return 1.7 * y[0] + 1.9 * y[1] + 0.7 * y[2] + 1.1 * y[3]


def linear(y: Sequence[Any]) -> hc.Problem:
    """One entry has a row of its own, away from 0 by little in small units."""
    rows = [y[0] + 0.4 * y[1] + 0.6 * y[2] + 0.8 * y[3] >= 2.0, hc.sqrt(y[0]) >= 0.5]
    return hc.Problem(hc.Minimize(costs(y)), rows)


def sums(y: Sequence[Any]) -> hc.Problem:
    total = sum((1.4 + k) / each for k, each in enumerate(y))
    return hc.Problem(hc.Minimize(total), [sum(y) <= 2.5])


def norms(y: Sequence[Any]) -> hc.Problem:
    rows = [hc.norm(hc.hstack([y[0] - 1.0, y[1] - 2.0])) <= 1.5, y[0] + y[1] + y[2] >= 2.2]
    return hc.Problem(hc.Minimize(costs(y)), rows)


def products(y: Sequence[Any]) -> hc.Problem:
    rows = [y[0] * y[1] >= 2.0, y[1] * y[2] >= 0.7, y[3] * y[0] >= 1.0]
    return hc.Problem(hc.Minimize(costs(y)), rows)


def impossible(y: Sequence[Any]) -> hc.Problem:
    rows = [y[0] * y[1] >= 9.0, y[0] <= 2.0, y[1] <= 2.0, y[2] * y[3] >= 1.0]
    return hc.Problem(hc.Minimize(costs(y)), rows)


UNITS = {
    "alike": [1.0, 1.0, 1.0, 1.0],
    "small and large": [3e-7, 2e2, 3e-3, 2e-3],
    "far apart": [1e-9, 1e6, 1e-4, 1e3],
}


def in_units(model: Any, units: str) -> tuple[hc.Problem, hc.Variable]:
    x = hc.Variable(4, name="x", pos=True)
    return model([x[k] * (1.0 / unit) for k, unit in enumerate(UNITS[units])]), x


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("model", [linear, sums, norms, products])
def test_minima_do_not_depend_on_units(model: Any, units: str) -> None:
    problem, x = in_units(model, units)
    plain = model(hc.Variable(4, name="y", pos=True))
    problem.solve()
    plain.solve()
    assert problem.status == plain.status == "optimal"
    assert problem.value == pytest.approx(plain.value, rel=2e-6)
    point = x.value / np.array(UNITS[units])
    assert point == pytest.approx(plain.variables[0].value, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("units", UNITS)
def test_contradictions_do_not_depend_on_units(units: str) -> None:
    problem, _ = in_units(impossible, units)
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution.conflict == ("c1", "c2", "c3")


@pytest.mark.parametrize("factor", [1e10, 1e-10])
def test_logarithms_of_numbers_far_apart_have_no_units(factor: float) -> None:
    """All cones of the program are exponential, so that no row can have another unit."""
    x = hc.Variable(name="x")
    assert hc.Problem(hc.Maximize(hc.log(factor * x + 1) - factor * x)).solve() == pytest.approx(0)
    problem = hc.Problem(hc.Minimize(hc.exp(factor * x) - factor * x))
    assert problem.solve() == pytest.approx(1.0)
    assert problem.status == "optimal"
