"""Unknowns that affine equalities determine are numbers, as the traffic of a network of queues."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.maps import determined
from hcmodel.maps.algebra.expanded import Expanded
from hcmodel.maps.determined import Determined
from hcmodel.reductions import discovery
from hcmodel.reductions.discovery import discover
from hcmodel.reductions.forms import Forms

NEXT = np.array([[0, 0.6, 0.2], [0.1, 0, 0.7], [0.3, 0, 0.1]])
OUTSIDE = np.array([1.0, 0.5, 0.2])


def best(outside: Any = OUTSIDE) -> float:
    """Kleinrock's square roots with the arrivals of the traffic equations."""
    arrivals = np.linalg.solve(np.eye(3) - NEXT.T, outside)
    return float(np.sqrt(arrivals).sum() ** 2 / (20 - arrivals.sum()))


def rates() -> tuple[hc.Variable, hc.Variable]:
    return tuple(hc.Variable(3, name=name, bounds=(0.01, 100)) for name in ("lam", "mu"))


def plain() -> hc.Problem:
    lam, mu = rates()
    rows = [lam == OUTSIDE + NEXT.T @ lam, lam <= 0.95 * mu, hc.sum(mu) <= 20]
    return hc.Problem(hc.Minimize(hc.sum(lam / (mu - lam))), rows)


def split() -> hc.Problem:
    """A row for each queue, some of them multiplied by numbers, in another order."""
    lam, mu = rates()
    traffic = [(1 + j) * (NEXT[:, j] @ lam - lam[j]) == -(1 + j) * OUTSIDE[j] for j in (2, 0, 1)]
    return hc.Problem(
        hc.Minimize(hc.sum(lam / (mu - lam))), [hc.sum(mu) <= 20, *traffic, mu - lam >= 0.01]
    )


def one_by_one() -> hc.Problem:
    lam = [hc.Variable(name=f"lam{i}", bounds=(0.01, 100)) for i in range(3)]
    mu = hc.Variable(3, name="mu", bounds=(0.01, 100))
    traffic = [
        lam[j] == OUTSIDE[j] + sum(float(NEXT[i, j]) * lam[i] for i in range(3)) for j in range(3)
    ]
    stable = [lam[j] <= 0.95 * mu[j] for j in range(3)]
    held = sum(lam[j] / (mu[j] - lam[j]) for j in range(3))
    return hc.Problem(hc.Minimize(held), [*traffic, *stable, hc.sum(mu) <= 20])


@pytest.mark.parametrize("written", [plain, split, one_by_one])
def test_traffic_equations_give_numbers_however_they_are_written(written):
    problem = written()
    problem.solve()
    assert problem.status == "optimal"
    assert "proven convex in mu" in problem.solution.method
    assert problem.value == pytest.approx(best(), rel=1e-6)


def test_the_equations_have_their_multipliers():
    problem = plain()
    problem.solve()
    slopes = [(best(OUTSIDE + 1e-5 * e) - best(OUTSIDE - 1e-5 * e)) / 2e-5 for e in np.eye(3)]
    assert problem.constraints[0].dual_value == pytest.approx(-np.array(slopes), rel=1e-5)


def proposals(rows: Any, bounds: tuple[float, float] = (0.0, 10.0)) -> list[Any]:
    x, y = hc.Variable(2, name="x", bounds=bounds), hc.Variable(name="y", bounds=(0.1, 2))
    problem = hc.Problem(hc.Minimize(x[0] * y + 1 / y + x[1]), rows(x, y))
    return list(Determined().propose(Expanded.of(problem.model)))


def test_only_whole_variables_with_one_solution_become_numbers():
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    (step,) = proposals(lambda x, y: [matrix @ x == [3, 4]])
    assert [each.name for each in step.gone] == ["x"]
    point: dict[Any, Any] = {}
    step.back(point)
    assert next(iter(point.values())) == pytest.approx([1, 1])
    nearly = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-9]])
    for rows in (
        lambda x, y: [x[0] == 2 * x[1]],
        lambda x, y: [matrix @ x == [3 + y, 4]],
        lambda x, y: [matrix @ x <= [3, 4]],
        lambda x, y: [np.array([[1.0, 1.0], [2.0, 2.0]]) @ x == [1, 2]],
        lambda x, y: [nearly @ x == [2, 2 + 1e-9]],
        lambda x, y: [2 * x[0] == 1],
        lambda x, y: [2 * x == [1, 1]],
    ):
        assert proposals(rows) == []


def test_a_part_of_a_variable_stays_with_the_rest():
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    x, y = (hc.Variable(size, name=name, bounds=(0, 10)) for size, name in ((2, "x"), (3, "y")))
    rows = [matrix @ x == [3, 4], matrix @ y[:2] == [3, 4]]
    problem = hc.Problem(hc.Minimize(x[0] * y[2] + x[1] * y[0]), rows)
    assert list(Determined().propose(Expanded.of(problem.model))) == []


def test_numbers_outside_of_the_bounds_are_left_to_the_rows():
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    assert proposals(lambda x, y: [matrix @ x == [3, 4]], bounds=(0.0, 0.9)) == []
    z = hc.Variable(2, name="z", pos=True)
    problem = hc.Problem(hc.Minimize(z[0] * z[1]), [matrix @ z == [0, 0]])
    assert list(Determined().propose(Expanded.of(problem.model))) == []


def test_wrong_numbers_are_caught_by_the_comparison(monkeypatch):
    true = determined._Numbers.back
    monkeypatch.setattr(discovery, "MAPS", (Determined(),))
    x, y = hc.Variable(2, name="x", bounds=(0, 10)), hc.Variable(name="y", bounds=(0.1, 2))
    rows = [np.array([[2.0, 1.0], [1.0, 3.0]]) @ x == [3, 4], x[0] * y**2 <= 3]
    problem = hc.Problem(hc.Minimize(x[0] * y + x[1] / y + y**2), rows)
    assert discover(Forms(problem.model).bounds.after).substitution is not None

    def wrong(self, point):
        true(self, point)
        point.update({each: 1.01 * point[each] for each in self.gone})

    monkeypatch.setattr(determined._Numbers, "back", wrong)
    assert discover(Forms(problem.model).bounds.after).substitution is None
