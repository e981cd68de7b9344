"""Norms far out: squares in them overflow at 1e154, where the norm itself is a number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hcmodel as hc
from tests.extent import first

u, v = hc.Variable(2, "u"), hc.Variable(3, "v", nonneg=True)
UNBOUNDED: dict[str, Callable[[], hc.Problem]] = {
    "a norm in the objective": lambda: hc.Problem(hc.Minimize(2 * u[0] + hc.norm(u - 1))),
    "a norm in a row": lambda: hc.Problem(hc.Minimize(u[0]), [hc.norm(u) <= 3 - 2 * u[0]]),
    "signs": lambda: hc.Problem(hc.Maximize(2 * v[0] - hc.norm(v))),
    "a root": lambda: hc.Problem(hc.Minimize(hc.sqrt(hc.sum((u - 1) ** 2)) + 2 * hc.sum(u))),
}


@pytest.mark.parametrize("name", UNBOUNDED)
def test_a_norm_that_grows_more_slowly_than_the_rest_falls_has_no_bound(name: str) -> None:
    problem = UNBOUNDED[name]()
    problem.solve()
    assert problem.status == "unbounded"
    assert problem.solution is not None
    assert "the objective is unbounded, along " in problem.solution.message
    assert problem.solution.method.startswith("auto: cone")
    assert ", then" not in problem.solution.method


@pytest.mark.parametrize("seed", first(25, range(200)))
def test_a_norm_and_a_slope_are_bounded_where_the_slope_is_small(seed: int) -> None:
    """|N x| + c·x is at least 0 if c = Nᵀy for some |y| <= 1, else without bound (duality of norms)."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 7))
    matrix = rng.normal(size=(size, size)) * 10.0 ** rng.uniform(-2, 4)
    dual = rng.normal(size=size)
    dual *= (0.9 if seed % 2 else 1.1) / np.linalg.norm(dual)
    x = hc.Variable(size, "x")
    value, slope = hc.norm(matrix @ x), matrix.T @ dual
    in_a_row = seed % 4 > 1
    level = hc.Variable(name="level")
    rows = [value <= level - slope @ x] if in_a_row else []
    problem = hc.Problem(hc.Minimize(level if in_a_row else value + slope @ x), rows)
    problem.solve()
    if seed % 2:
        assert problem.status in ("optimal", "optimal_inaccurate")
        assert problem.value == pytest.approx(0.0, abs=1e-6)
    else:
        assert problem.status == "unbounded"


@pytest.mark.parametrize("least", [1e-20, 1e-60])
def test_what_rises_before_it_overflows_is_bounded(least: float) -> None:
    """exp(s·x) is a number where it begins to exceed x/2, at log(1/s)/s."""
    x = hc.Variable(name="x")
    falls = -x + 0.5 * hc.norm(hc.hstack([x, 0 * x]))
    problem = hc.Problem(hc.Minimize(falls + hc.exp(least * x)))
    problem.solve()
    assert problem.status not in ("unbounded", "infeasible")
