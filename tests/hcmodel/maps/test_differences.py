"""Queues with rows that keep service above arrivals are proven with nothing declared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import hcmodel as hc
from hcmodel.maps import differences
from hcmodel.maps.algebra.expanded import Expanded
from hcmodel.maps.differences import Differences
from hcmodel.reductions import discovery
from hcmodel.reductions.discovery import discover
from hcmodel.reductions.forms import Forms

WORTH, PRICE = np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.5, 2.0])
LOAD, BUDGET = np.array([1.0, 2.0, 3.0]), 20.0


def kleinrock() -> float:
    """The least Σ w λ/(μ − λ) for a budget: what is left of it by square roots (Kleinrock 1964)."""
    return float(np.sqrt(PRICE * WORTH * LOAD).sum() ** 2 / (BUDGET - PRICE @ LOAD))


def rates(low: float = 0.1) -> tuple[hc.Variable, hc.Variable]:
    return (
        hc.Variable(3, name="mu", bounds=(low, 50)),
        hc.Variable(3, name="lam", bounds=(low, 50)),
    )


def rows(mu: Any, lam: Any) -> list[hc.Constraint]:
    return [lam <= 0.95 * mu, lam >= LOAD, PRICE @ mu <= BUDGET]


def plain() -> hc.Problem:
    mu, lam = rates()
    return hc.Problem(hc.Minimize(hc.sum(WORTH * lam / (mu - lam))), rows(mu, lam))


def turned() -> hc.Problem:
    """The difference with the other sign, and the rows as differences."""
    mu, lam = rates()
    return hc.Problem(
        hc.Maximize((WORTH * lam) @ (1 / (lam - mu))),
        [mu - lam >= 0.01, -lam <= -LOAD, BUDGET - PRICE @ mu >= 0],
    )


def by_load() -> hc.Problem:
    """ρ/(1 − ρ) with ρ = λ/μ, and rows in ρ."""
    mu, lam = rates()
    busy = lam / mu
    return hc.Problem(
        hc.Minimize(hc.sum(WORTH * busy / (1 - busy))),
        [busy <= 0.95, lam >= LOAD, hc.sum(mu * PRICE) <= BUDGET],
    )


def by_service_time() -> hc.Problem:
    """The mean time 1/μ of a service as the variable, and μ/(μ − λ) − 1 customers."""
    mu, lam = rates()
    held = mu / (mu - lam) - 1
    return hc.Problem(hc.Minimize(WORTH @ held), [*rows(mu, lam)[1:], lam - 0.95 * mu <= 0])


def one_by_one() -> hc.Problem:
    mu = [hc.Variable(name=f"mu{i}", bounds=(0.1, 50)) for i in range(3)]
    lam = [hc.Variable(name=f"lam{i}", bounds=(0.1, 50)) for i in range(3)]
    held = [WORTH[i] * lam[i] / (mu[i] - lam[i]) for i in (2, 0, 1)]
    kept = [row for i in range(3) for row in (2 * lam[i] <= 1.9 * mu[i], lam[i] >= LOAD[i])]
    return hc.Problem(
        hc.Minimize(held[0] + held[1] + held[2]),
        [*kept, sum(PRICE[i] * mu[i] for i in range(3)) <= BUDGET],
    )


LANGUAGE = """
param n = 3
param worth[n], price[n], load[n]
param budget = 20
var mu[n] in [0.1, 50], lam[n] in [0.1, 50]
let spare = mu - lam
minimize sum(worth[i] * lam[i] / spare[i] for i in 1..n)
subject to
    stable[i in 1..n]: spare[i] >= 0.05*mu[i]
    served: load <= lam
    paid: sum(price[i]*mu[i] for i in 1..n) <= budget
"""


def in_the_language() -> hc.Problem:
    data = {"worth": WORTH.tolist(), "price": PRICE.tolist(), "load": LOAD.tolist()}
    return hc.parse(LANGUAGE, data=data)


WRITTEN = [plain, turned, by_load, by_service_time, one_by_one, in_the_language]


@pytest.mark.parametrize("written", WRITTEN)
def test_customers_in_queues_end_at_the_square_roots_however_they_are_written(written):
    problem = written()
    problem.solve()
    assert problem.status == "optimal"
    assert "proven convex in log(" in problem.solution.method
    assert abs(problem.value) == pytest.approx(kleinrock(), rel=1e-6)


def test_multipliers_are_those_of_the_rows_as_they_are_written():
    """The derivative by the budget, and that by an arrival at fixed others, in closed form."""
    mu, lam = rates()
    stable, served, paid = rows(mu, lam)
    hc.Problem(hc.Minimize(hc.sum(WORTH * lam / (mu - lam))), [stable, served, paid]).solve(
        tol=1e-9
    )
    left, roots = BUDGET - PRICE @ LOAD, np.sqrt(PRICE * WORTH * LOAD)
    assert stable.dual_value == pytest.approx(np.zeros(3), abs=1e-7)
    assert paid.dual_value == pytest.approx(roots.sum() ** 2 / left**2, rel=1e-5)
    slopes = roots.sum() / left * roots / LOAD + roots.sum() ** 2 / left**2 * PRICE
    assert served.dual_value == pytest.approx(slopes, rel=1e-5)


@pytest.mark.parametrize("waiting", ["multiplied", "by the load"])
def test_customers_who_wait_are_proven(waiting):
    """λ²/(μ (μ − λ)), against one search for each queue: nothing but the price of μ ties them."""
    mu, lam = rates()
    busy = lam / mu
    number = lam**2 / (mu * (mu - lam)) if waiting == "multiplied" else busy**2 / (1 - busy)
    problem = hc.Problem(hc.Minimize(PRICE @ mu + WORTH @ number), [lam <= 0.95 * mu, lam >= LOAD])
    problem.solve()

    def cost(m, i):
        return PRICE[i] * m + WORTH[i] * LOAD[i] ** 2 / (m * (m - LOAD[i]))

    best = [
        minimize_scalar(cost, bounds=(LOAD[i] / 0.95, 50), args=(i,), method="bounded").fun
        for i in range(3)
    ]
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(sum(best), rel=1e-6)


@pytest.mark.parametrize("how", ["sum", "max", "rows"])
def test_delays_are_convex_in_service_and_arrivals_together(how):
    """Customers may choose a queue: Σ λ is given, and capacities are bought at the same time."""
    cvxpy = pytest.importorskip("cvxpy")
    mu, lam = rates(0.0)
    m, a = cvxpy.Variable(3), cvxpy.Variable(3, nonneg=True)
    given = [lam <= 0.95 * mu, hc.sum(lam) == 6]
    same = [a <= 0.95 * m, cvxpy.sum(a) == 6]
    inverse = cvxpy.inv_pos(m - a)
    if how == "rows":
        problem = hc.Problem(hc.Minimize(PRICE @ mu), [*given, 1 / (mu - lam) <= WORTH])
        reference = cvxpy.Problem(cvxpy.Minimize(PRICE @ m), [*same, inverse <= WORTH])
    else:
        whole, other = (hc.sum, cvxpy.sum) if how == "sum" else (hc.max, cvxpy.max)
        objective, paid = whole(WORTH / (mu - lam)), PRICE @ mu <= BUDGET
        problem = hc.Problem(hc.Minimize(objective), [*given, paid])
        delay = other(cvxpy.multiply(WORTH, inverse))
        reference = cvxpy.Problem(cvxpy.Minimize(delay), [*same, PRICE @ m <= BUDGET])
    problem.solve()
    assert problem.status == "optimal"
    assert "proven" in problem.solution.method
    assert problem.value == pytest.approx(reference.solve("CLARABEL"), rel=1e-6)


def test_flows_that_share_queues_are_routed():
    """λ is a sum of flows, and (k·D + c)/D is k + c/D: convex in the flows for given services."""
    cvxpy = pytest.importorskip("cvxpy")
    flow = hc.Variable((2, 3), name="flow", bounds=(0, 50))
    service, demand = np.array([3.0, 4.0, 5.0]), np.array([2.0, 4.0])
    load = hc.sum(flow, axis=0)
    held = hc.sum(load / (service - load)) + 0.1 * flow[0, 0]
    problem = hc.Problem(
        hc.Minimize(held), [load <= 0.95 * service, hc.sum(flow, axis=1) == demand]
    )
    problem.solve()
    f = cvxpy.Variable((2, 3), nonneg=True)
    spare = service - cvxpy.sum(f, axis=0)
    cost = service @ cvxpy.inv_pos(spare) - 3 + 0.1 * f[0, 0]
    reference = cvxpy.Problem(cvxpy.Minimize(cost), [cvxpy.sum(f, axis=1) == demand])
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(reference.solve("CLARABEL"), rel=1e-6)


def test_a_difference_that_pays_when_it_is_small_is_tied_by_an_equality():
    """s <= D alone would let s be smaller than D, for the linear term rises with 1/s."""
    mu, lam = (hc.Variable(name=name, bounds=(0.1, 10)) for name in ("mu", "lam"))
    objective = (1 / (mu - lam) - 1) ** 2 + 0.1 * mu
    problem = hc.Problem(hc.Minimize(objective), [lam <= 0.9 * mu, lam >= 2])
    found = Differences().propose(Expanded.of(problem.model))
    assert [step.after.rows[-1].sense for step in found] == ["=="]
    problem.solve()
    best = minimize_scalar(lambda s: (1 / s - 1) ** 2 + 0.1 * (2 + s), bounds=(0.3, 8))
    assert problem.value == pytest.approx(best.fun, rel=1e-6)  # λ = 2


@pytest.mark.parametrize("where", ["an equality", "a product with either sign", "a cost"])
def test_a_difference_is_tied_by_an_inequality_only_where_a_small_one_costs(where):
    mu, lam, z = (hc.Variable(name=name, bounds=(0.1, 10)) for name in ("mu", "lam", "z"))
    x = hc.Variable(name="x", bounds=(-1, 1))
    kept, delay = [lam <= 0.9 * mu, lam >= 2], 1 / (mu - lam)
    models = {
        "an equality": hc.Problem(hc.Minimize(mu + z), [*kept, delay == 2 * z]),
        "a product with either sign": hc.Problem(hc.Minimize(mu + x * delay), kept),
        "a cost": hc.Problem(hc.Minimize(mu + z * delay), kept),
    }
    (step,) = Differences().propose(Expanded.of(models[where].model))
    assert step.after.rows[-1].sense == ("<=" if where == "a cost" else "==")


def test_a_row_in_the_other_direction_gives_no_sign():
    """λ >= 0.5 μ leaves μ − λ open; the row may not be taken off."""
    mu, lam = (hc.Variable(name=name, bounds=(0.1, 10)) for name in ("mu", "lam"))
    problem = hc.Problem(hc.Minimize(mu + lam / (mu - lam)), [lam >= 0.5 * mu])
    assert list(Differences().propose(Expanded.of(problem.model))) == []


def refused() -> list[hc.Problem]:
    mu, lam = rates()
    together = [lam <= 0.95 * mu, hc.sum(lam) == 6, hc.sum(mu) <= 20]
    held = hc.sum(lam / (mu - lam))
    open_rows = [lam >= LOAD, PRICE @ mu <= BUDGET]
    return [
        hc.Problem(hc.Minimize(held), together),  # pooling: a minimum at each corner
        hc.Problem(hc.Minimize(held), open_rows),  # nothing keeps μ above λ
        hc.Problem(hc.Minimize(held), [0.95 * mu >= 0.9 * lam, *open_rows]),
        hc.Problem(hc.Minimize(hc.sum(1 / (mu - lam))), [*open_rows, lam[:2] <= 0.9 * mu[:2]]),
        hc.Problem(
            hc.Minimize(PRICE @ mu - hc.sum(1 / (mu - lam))), [lam <= 0.9 * mu, lam >= LOAD]
        ),
        hc.Problem(hc.Maximize(held - PRICE @ mu), [lam <= 0.9 * mu, lam >= LOAD]),
    ]


@pytest.mark.parametrize("number", range(6))
def test_what_is_not_convex_or_not_positive_is_not_claimed(number):
    problem = refused()[number]
    assert discover(Forms(problem.model).bounds.after).substitution is None


def test_delays_from_below_are_linear_rows():
    """1/(μ − λ) >= w is w (μ − λ) <= 1 where μ > λ: two maps."""
    mu, lam = rates()
    apart = 1 / (mu - lam) >= WORTH
    problem = hc.Problem(hc.Maximize(PRICE @ mu), [apart, lam <= 0.9 * mu, lam <= LOAD])
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(PRICE @ (LOAD + 1 / WORTH), rel=1e-6)
    assert apart.dual_value == pytest.approx(PRICE / WORTH**2, rel=1e-4)


def test_a_sign_may_need_several_rows():
    """μ − λ >= 0 by two rows with a level between them: by the linear program alone."""
    mu, lam, level = (hc.Variable(name=name, bounds=(0.1, 10)) for name in ("mu", "lam", "level"))
    problem = hc.Problem(
        hc.Minimize(mu + lam / (mu - lam)), [lam <= 0.9 * level, level <= mu, lam >= 2]
    )
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(2 + 2 * np.sqrt(2), rel=1e-6)


def test_many_queues_are_compared_at_a_point_that_is_moved_into_the_rows():
    """At random points of the bounds one of 40 differences is negative."""
    count = 40
    mu, lam = (hc.Variable(count, name=name, bounds=(0.1, 50)) for name in ("mu", "lam"))
    load = np.linspace(1, 2, count)
    problem = hc.Problem(
        hc.Minimize(hc.sum(mu) + hc.sum(lam / (mu - lam))), [lam <= 0.95 * mu, lam >= load]
    )
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(float(np.sum(load + 2 * np.sqrt(load))), rel=1e-6)


def test_a_start_at_which_nothing_is_defined_is_moved():
    mu, lam = (hc.Variable(name=name, bounds=(0.1, 10)) for name in ("mu", "lam"))
    problem = hc.Problem(hc.Minimize(mu + lam / (mu - lam)), [lam <= 0.95 * mu, lam >= 2])
    (step,) = Differences().propose(Expanded.of(problem.model))
    point = {mu: np.array(1.0), lam: np.array(3.0)}
    assert not step.fits(point)
    step.settle(point)
    assert step.fits(point)
    inside = {mu: np.array(3.0), lam: np.array(2.9)}
    step.settle(inside)
    assert (inside[mu], inside[lam]) == (3.0, 2.9)


def test_wrong_reductions_are_caught_by_the_comparison(monkeypatch):
    true = differences._Difference.value
    monkeypatch.setattr(
        differences._Difference,
        "value",
        lambda self, symbols, s, power: true(self, symbols, s, power).scaled(1.001),
    )
    monkeypatch.setattr(discovery, "MAPS", (Differences(),))
    found = discover(Forms(plain().model).bounds.after)
    assert found.substitution is None
    assert any("the rewriting changed" in each.reason for each in found.obstacles)


def test_a_difference_that_cannot_be_as_large_as_its_row_says_is_infeasible():
    """0.09 − 0.64 x − 0.76 y is at most 0.09 for x, y >= 0, and should be 0.1."""
    x = hc.Variable(2, name="x", nonneg=True)
    below = np.array([-0.64, -0.76]) @ x + 0.09
    rows = [below >= 0.1, hc.norm(x) <= 3]
    problem = hc.Problem(hc.Minimize((np.array([0.2, 1.24]) @ x - 1.57) / below), rows)
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution.conflict == ("c1", "x[0] >= 0", "x[1] >= 0")
