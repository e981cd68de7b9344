"""Decision processes with a finite horizon whose visits are written one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import hcmodel as hc
from hcmodel.maps.algebra.named_values import visits_of_values
from hcmodel.maps.algebra.named_visits import named_visits
from hcmodel.reductions.forms import Forms

S, A = 4, 3
FORMS = ("products", "matrices", "labels")


def process(stages: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(stages)
    moves = generator.dirichlet(np.ones(S), size=(S, A))
    return moves, generator.random((S, A)), generator.random((S, A))


def totals(policies: list[Any], form: str, moves: np.ndarray, *rates: np.ndarray) -> list[Any]:
    """The expected sum of each rate over all stages."""
    visits: Any = np.ones(S) / S
    found: list[Any] = [0.0] * len(rates)
    for policy in policies:
        for place, rate in enumerate(rates):
            if form == "products":
                cost = hc.sum(hc.reshape(visits, (S, 1)) * policy * rate)
            elif form == "matrices":
                cost = visits @ hc.sum(policy * rate, axis=1)
            else:
                cost = hc.einsum("s,sa,sa->", visits, policy, rate)
            found[place] = found[place] + cost
        if form == "products":
            visits = hc.einsum("sa,sat->t", hc.reshape(visits, (S, 1)) * policy, moves)
        elif form == "matrices":
            visits = visits @ hc.einsum("sa,sat->st", policy, moves)
        else:
            visits = hc.einsum("s,sa,sat->t", visits, policy, moves)
    return found


def value(policies: list[Any], form: str, moves: np.ndarray, rate: np.ndarray) -> Any:
    """The same sum, computed backwards: the mean of the values of the first stage."""
    values: Any = None
    for policy in reversed(policies):
        if form == "actions":
            ahead = rate if values is None else rate + hc.einsum("sat,t->sa", moves, values)
            values = hc.sum(policy * ahead, axis=1)
        else:
            own = hc.sum(policy * rate, axis=1)
            step = hc.einsum("sa,sat->st", policy, moves)
            values = own if values is None else own + step @ values
    return hc.sum(values) / S


def optimum(stages: int, cap: float | None) -> float:
    """By the linear program in occupancies."""
    moves, cost, risk = process(stages)
    rows, right = [], []
    for stage in range(stages):
        for state in range(S):
            row = np.zeros((stages, S, A))
            row[stage, state] = 1.0
            if stage:
                row[stage - 1] -= moves[:, :, state]
            rows.append(row.ravel())
            right.append(0.0 if stage else 1 / S)
    limits = {} if cap is None else {"A_ub": [np.tile(risk.ravel(), stages)], "b_ub": [cap]}
    found = scipy.optimize.linprog(
        np.tile(cost.ravel(), stages), A_eq=np.array(rows), b_eq=right, **limits
    )
    return float(found.fun)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stages", [4, 12])
def test_a_finite_horizon_is_proven_however_its_visits_are_written(stages: int, form: str) -> None:
    """Multiplied out, twelve stages have 10¹² terms."""
    moves, cost, risk = process(stages)
    cap = 0.42 * stages
    policies = [hc.Variable((S, A), name=f"pi{t}", simplex=True) for t in range(stages)]
    total, risks = totals(policies, form, moves, cost, risk)
    problem = hc.Problem(hc.Minimize(total), [risks <= cap])
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(optimum(stages, cap), rel=1e-7)
    assert total.value == pytest.approx(problem.value, rel=1e-9)  # with the policies as they are
    assert risks.value <= cap * (1 + 1e-6)


@pytest.mark.parametrize("form", ["actions", "matrices"])
@pytest.mark.parametrize("stages", [4, 12])
def test_values_that_are_computed_backwards_are_visits(stages: int, form: str) -> None:
    """Values of cost and of risk share their visits; costs of either sign."""
    moves, cost, risk = process(stages)
    cap = 0.42 * stages
    policies = [hc.Variable((S, A), name=f"pi{t}", simplex=True) for t in range(stages)]
    total = value(policies, form, moves, cost - 0.5)
    risks = value(policies, form, moves, risk)
    problem = hc.Problem(hc.Minimize(total), [2 * risks <= 2 * cap])
    assert visits_of_values(problem.model) is not None
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(optimum(stages, cap) - 0.5 * stages, rel=1e-6)
    assert total.value == pytest.approx(problem.value, rel=1e-9)
    assert risks.value <= cap * (1 + 1e-6)


PENALTIES: dict[str, Any] = {
    "squares": lambda m, v: 3 * m.sum(m.square(v - 1 / S)),
    "sizes": lambda m, v: 3 * m.sum(m.abs(v - 1 / S)),
    "entropy": lambda m, v: -m.sum(m.entr(v)),
    "the largest": lambda m, v: 2 * m.max(v),
}


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("stages", [2, 3, 6])
def test_functions_of_the_last_visits_are_convex_in_occupancies(stages: int, name: str) -> None:
    """Squares of visits are not visits, though they are not negative and depend on all policies."""
    cvxpy = pytest.importorskip("cvxpy")
    moves, cost, _ = process(stages)
    policies = [hc.Variable((S, A), name=f"pi{t}", simplex=True) for t in range(stages)]
    visits: Any = np.ones(S) / S
    total: Any = 0.0
    for policy in policies:
        total = total + hc.einsum("s,sa,sa->", visits, policy, cost)
        visits = hc.einsum("s,sa,sat->t", visits, policy, moves)
    total = total + PENALTIES[name](hc, visits)
    problem = hc.Problem(hc.Minimize(total))
    problem.solve()
    assert problem.status == "optimal"
    assert total.value == pytest.approx(problem.value, rel=1e-6)
    occupancies = [cvxpy.Variable((S, A), nonneg=True) for _ in range(stages)]
    before: Any = np.ones(S) / S
    rows, expected = [], 0.0
    for each in occupancies:
        rows.append(cvxpy.sum(each, axis=1) == before)
        expected = expected + cvxpy.sum(cvxpy.multiply(each, cost))
        before = sum(moves[s].T @ each[s] for s in range(S))
    expected = expected + PENALTIES[name](cvxpy, before)
    value = cvxpy.Problem(cvxpy.Minimize(expected), rows).solve(solver="CLARABEL")
    assert problem.value == pytest.approx(value, rel=1e-5)


def test_values_of_two_starts_are_not_claimed() -> None:
    """The second stage has two kinds of visits then."""
    moves, cost, _ = process(5)
    policies = [hc.Variable((S, A), name=f"pi{t}", simplex=True) for t in range(5)]
    whole, later = (value(policies[first:], "actions", moves, cost) for first in (0, 1))
    model = hc.Problem(hc.Minimize(whole - 3 * later)).model
    assert Forms(model).discovery.substitution is None


def test_a_square_of_values_is_convex_in_visits() -> None:
    moves, cost, _ = process(5)
    policies = [hc.Variable((S, A), name=f"pi{t}", simplex=True) for t in range(5)]
    problem = hc.Problem(hc.Minimize(value(policies, "actions", moves, cost) ** 2))
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(optimum(5, None) ** 2, rel=1e-6)


def test_one_policy_for_all_stages_is_not_claimed() -> None:
    moves, cost, _ = process(6)
    policy = hc.Variable((S, A), name="pi", simplex=True)
    problem = hc.Problem(hc.Minimize(totals([policy] * 6, "products", moves, cost)[0]))
    assert named_visits(problem.model) is None
    assert Forms(problem.model).discovery.substitution is None


def test_a_policy_that_returns_later_is_not_claimed() -> None:
    moves, cost, _ = process(6)
    policies = [hc.Variable((S, A), name=f"pi{t}", simplex=True) for t in range(5)]
    whole = [*policies, policies[0]]
    problem = hc.Problem(hc.Minimize(totals(whole, "products", moves, cost)[0]))
    assert named_visits(problem.model) is not None
    assert Forms(problem.model).discovery.substitution is None


def test_visits_that_may_be_negative_get_no_name() -> None:
    moves, cost, _ = process(5)
    policies = [hc.Variable((S, A), name=f"pi{t}", simplex=True) for t in range(5)]
    total = totals(policies, "products", moves - 0.5, cost)[0]
    assert named_visits(hc.Problem(hc.Minimize(total)).model) is None
