"""Structures with displacements as unknowns, against semidefinite programs without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.reductions.discovery import discover

BARS = np.random.default_rng(6).normal(size=(8, 3))
LOADS = np.random.default_rng(1).normal(size=(3, 2))
FIRST = LOADS[:, 0]


def areas(least: float = 0.0) -> hc.Variable:
    return hc.Variable(8, name="area", bounds=(least, None))


def stiffness(area: Any) -> Any:
    return BARS.T @ hc.diag(area) @ BARS


def compliance(weights: tuple[float, float], *, largest: bool = False, least: float = 0.0) -> float:
    """The least sum, or largest, of fᵀ K(a)⁻¹ f over both loads, for areas with the sum 1."""
    cvxpy = pytest.importorskip("cvxpy")
    area = cvxpy.Variable(8)
    matrix = BARS.T @ cvxpy.diag(area) @ BARS
    works = [
        weight * cvxpy.matrix_frac(load, matrix)
        for weight, load in zip(weights, LOADS.T, strict=True)
        if weight
    ]
    goal = cvxpy.maximum(*works) if largest else sum(works)
    rows = [cvxpy.sum(area) <= 1, area >= least]
    return float(cvxpy.Problem(cvxpy.Minimize(goal), rows).solve("CLARABEL"))


def least_work(volume: float) -> float:
    area = areas(0.02)
    rows = [stiffness(area) @ u == FIRST, hc.sum(area) <= volume]
    return hc.Problem(hc.Minimize(FIRST @ u), rows).solve()


u, v = hc.Variable(3, name="u"), hc.Variable(3, name="v")
WRITTEN: dict[str, Callable[[Any], tuple[Any, list[Any]]]] = {
    "a product of matrices": lambda a: (FIRST @ u, [stiffness(a) @ u == FIRST]),
    "forces in bars": lambda a: (FIRST @ u, [-(BARS.T @ (a * (BARS @ u))) == -FIRST]),
    "a sum of bars, row by row": lambda a: (
        hc.sum(FIRST * u),
        [sum(BARS[k, i] * a[k] * (BARS[k] @ u) for k in range(8)) == FIRST[i] for i in range(3)],
    ),
    "the energy": lambda a: (
        sum(a[k] * (BARS[k] @ u) ** 2 for k in range(8)),
        [stiffness(a) @ u == FIRST],
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("least", [0.0, 0.02])
def test_areas_of_bars_however_they_are_written(name: str, least: float) -> None:
    area = areas(least)
    objective, rows = WRITTEN[name](area)
    problem = hc.Problem(hc.Minimize(objective), [*rows, hc.sum(area) <= 1])
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(compliance((1, 0), least=least), rel=1e-6)
    stiff = BARS.T @ np.diag(area.value) @ BARS
    assert stiff @ u.value == pytest.approx(FIRST, abs=1e-6)


def test_multipliers_of_the_balance_are_the_displacements() -> None:
    area = areas(0.02)
    balance = stiffness(area) @ u == FIRST
    volume = hc.sum(area) <= 1
    hc.Problem(hc.Minimize(FIRST @ u), [balance, volume]).solve()
    assert balance.dual_value == pytest.approx(-u.value, rel=1e-4)
    rate = (least_work(1.01) - least_work(0.99)) / 0.02
    assert volume.dual_value == pytest.approx(-rate, rel=1e-3)


def test_a_limit_on_the_work_with_the_least_material() -> None:
    area = areas()
    rows = [stiffness(area) @ u == FIRST, FIRST @ u <= 2]
    problem = hc.Problem(hc.Minimize(hc.sum(area)), rows)
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(compliance((1, 0)) / 2, rel=1e-6)


@pytest.mark.parametrize("joined", [True, False])
def test_several_loads_have_works_of_their_own(joined: bool) -> None:
    area, level = areas(), hc.Variable(name="level")
    if joined:
        both = hc.Variable((3, 2), name="both")
        rows = [stiffness(area) @ both == LOADS]
        works = [LOADS[:, k] @ both[:, k] for k in range(2)]
    else:
        rows = [stiffness(area) @ u == LOADS[:, 0], stiffness(area) @ v == LOADS[:, 1]]
        works = [LOADS[:, 0] @ u, LOADS[:, 1] @ v]
    rows += [hc.sum(area) <= 1, *(work <= level for work in works)]
    problem = hc.Problem(hc.Minimize(level), rows)
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(compliance((1, 1), largest=True), rel=1e-6)


def test_the_largest_work_of_several_loads_is_minimised() -> None:
    """Each load has a row of its own once the maximum is lifted; its variable is no coordinate."""
    area, u, v = areas(0.01), hc.Variable(3, name="u"), hc.Variable(3, name="v")
    rows = [stiffness(area) @ u == LOADS[:, 0], stiffness(area) @ v == LOADS[:, 1]]
    goal = hc.Minimize(hc.maximum(LOADS[:, 0] @ u, LOADS[:, 1] @ v))
    problem = hc.Problem(goal, [*rows, hc.sum(area) <= 1])
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(compliance((1, 1), largest=True, least=0.01), rel=1e-6)
    found = problem.analyze()
    assert found.verdict == "proven"
    assert set(found.coordinates.values()) == {"area", "work(u)", "work(v)"}


def test_loose_nodes_do_not_hinder() -> None:
    """The second node carries nothing: at the optimum no bar holds it, and the matrix is singular."""
    directions = np.array([[1.0, 0], [0, 1], [1, 1]])
    area, move = hc.Variable(3, name="area", nonneg=True), hc.Variable(2, name="move")
    matrix = directions.T @ hc.diag(area) @ directions
    problem = hc.Problem(hc.Minimize(move[0]), [matrix @ move == [1, 0], hc.sum(area) <= 2])
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(0.5, rel=1e-6)
    assert not problem.is_hidden_convex()  # loose nodes make local minima


def test_too_little_material_is_shown() -> None:
    area = areas()
    rows = [stiffness(area) @ u == FIRST, hc.sum(area) <= 1, FIRST @ u <= 0.9 * compliance((1, 0))]
    problem = hc.Problem(hc.Minimize(hc.sum(area)), rows)
    problem.solve()
    assert problem.status == "infeasible"


area = hc.Variable(8, name="area", bounds=(0.02, 1))
signed = hc.Variable(8, name="signed", bounds=(-0.1, 1))
BALANCE = stiffness(area) @ u == FIRST
NOT_CONVEX: dict[str, tuple[Any, list[Any]]] = {
    "the largest work": (-FIRST @ u, [BALANCE, hc.sum(area) >= 1]),
    "another weight": (u[0], [BALANCE]),
    "work from below": (hc.sum(area), [BALANCE, FIRST @ u >= 1]),
    "work that is given": (hc.sum(area), [BALANCE, FIRST @ u == 1]),
    "areas of either sign": (FIRST @ u, [stiffness(signed) @ u == FIRST]),
    "a matrix that is not symmetric": (
        FIRST @ u,
        [(BARS.T @ hc.diag(area) @ BARS)[[1, 0, 2]] @ u == FIRST],
    ),
    "a function of displacements": (FIRST @ u + hc.sum(u**4), [BALANCE]),
    "loads that depend on areas": (FIRST @ u, [stiffness(area) @ u == FIRST * area[0]]),
}


@pytest.mark.parametrize("name", NOT_CONVEX)
def test_what_is_not_the_least_work_is_not_claimed(name: str) -> None:
    objective, rows = NOT_CONVEX[name]
    problem = hc.Problem(hc.Minimize(objective), rows)
    assert discover(problem.model).substitution is None
