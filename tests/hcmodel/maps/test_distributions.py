"""Policies that are nonnegative arrays with rows, in the place of distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.maps.algebra.expanded import Expanded
from hcmodel.maps.distributions import Distributions
from hcmodel.reductions.forms import Forms
from tests.extent import several

S, A = 4, 3
RNG = np.random.default_rng(0)
MOVES = RNG.dirichlet(np.ones(S), (S, A))
REWARD, COST = RNG.uniform(size=(2, S, A))
DISCOUNT = 0.9
BEGIN = np.full(S, 1 / S)
CAP = 3.0


def process(policy: Any, rows: list[Any], cap: float = CAP) -> hc.Problem:
    """A discounted process with a budget, by the system that its visits solve."""
    moves = hc.einsum("sa,saz->sz", policy, MOVES)
    visits = hc.solve(np.eye(S) - DISCOUNT * moves.T, BEGIN)
    budget = visits @ hc.sum(policy * COST, axis=1) <= cap
    budget.name = "budget"
    return hc.Problem(hc.Maximize(visits @ hc.sum(policy * REWARD, axis=1)), [*rows, budget])


def best(least: float = 0.0, most: float = 1.0, cap: float = CAP) -> float:
    """The same with the set of distributions, which the maps of processes ask for."""
    policy = hc.Variable((S, A), name="policy", simplex=True, bounds=(least, most))
    return float(process(policy, [], cap).solve())


def array(shape: tuple[int, ...] = (S, A)) -> hc.Variable:
    return hc.Variable(shape, name="policy", nonneg=True)


def by_axis() -> tuple[Any, list[Any]]:
    policy = array()
    return policy, [hc.sum(policy, axis=1) == 1]


def by_product() -> tuple[Any, list[Any]]:
    policy = array()
    return policy, [policy @ np.ones(A) == np.ones(S)]


def in_a_loop() -> tuple[Any, list[Any]]:
    policy = array()
    return policy, [sum(policy[s, a] for a in range(A)) == 1 for s in reversed(range(S))]


def scaled_and_turned() -> tuple[Any, list[Any]]:
    policy = array()
    return policy, [
        3 * np.arange(1.0, S + 1) == hc.sum(policy * np.arange(3.0, 13, 3)[:, None], axis=1)
    ]


def by_bounds_in_rows() -> tuple[Any, list[Any]]:
    policy = hc.Variable((S, A), name="policy")
    return policy, [hc.sum(policy, axis=1) == 1, policy >= 0, policy <= 1]


def along_the_first_axis() -> tuple[Any, list[Any]]:
    policy = array((A, S))
    return policy.T, [hc.sum(policy, axis=0) == 1]


def flat() -> tuple[Any, list[Any]]:
    policy = array((S * A,))
    return hc.reshape(policy, (S, A)), [hc.sum(policy[s * A : s * A + A]) == 1 for s in range(S)]


def twice() -> tuple[Any, list[Any]]:
    policy = array()
    return policy, [hc.sum(policy, axis=1) == 1, 2 * hc.sum(policy, axis=1) == 2]


def said_already() -> tuple[Any, list[Any]]:
    policy = hc.Variable((S, A), name="policy", simplex=True)
    return policy, [hc.sum(policy, axis=1) == 1]


def of_two_variables() -> tuple[Any, list[Any]]:
    first, others = array((S, 1)), hc.Variable((S, A - 1), name="others", nonneg=True)
    return hc.hstack([first, others]), [first[:, 0] + hc.sum(others, axis=1) == 1]


def numbers_of_their_own() -> tuple[Any, list[Any]]:
    numbers = [hc.Variable(name=f"p{place}", nonneg=True) for place in range(S * A)]
    rows = [sum(numbers[s * A : s * A + A]) == 1 for s in range(S)]
    return hc.reshape(hc.hstack(numbers), (S, A)), rows


def a_variable_for_each_state() -> tuple[Any, list[Any]]:
    states = [hc.Variable(A, name=f"in{s}", nonneg=True) for s in range(S)]
    return hc.vstack(states), [hc.sum(each) == 1 for each in states]


def a_distribution_for_each_state() -> tuple[Any, list[Any]]:
    return hc.vstack([hc.Variable(A, name=f"in{s}", simplex=True) for s in range(S)]), []


def the_last_action_is_what_is_left() -> tuple[Any, list[Any]]:
    policy = array((S, A - 1))
    last = hc.reshape(1 - hc.sum(policy, axis=1), (S, 1))
    return hc.hstack([policy, last]), [hc.sum(policy, axis=1) <= 1]


SPELLINGS = [
    *(by_axis, by_product, in_a_loop, scaled_and_turned, by_bounds_in_rows),
    *(along_the_first_axis, flat, twice, said_already, of_two_variables, numbers_of_their_own),
    *(a_variable_for_each_state, a_distribution_for_each_state, the_last_action_is_what_is_left),
]


@pytest.mark.parametrize("spelling", SPELLINGS, ids=lambda each: each.__name__)
def test_a_policy_with_rows_is_one(spelling: Callable[[], tuple[Any, list[Any]]]) -> None:
    policy, rows = spelling()
    problem = process(policy, rows)
    assert problem.solve() == pytest.approx(best(), rel=1e-7)
    assert problem.status == "optimal"
    assert problem.is_hidden_convex()
    np.testing.assert_allclose(np.sum(policy.value, axis=1), 1.0, atol=1e-7)


def test_a_policy_with_rows_in_the_language() -> None:
    text = f"""
    param moves[{S},{A},{S}], reward[{S},{A}]
    var policy[{S},{A}] >= 0
    let visits = solve(eye({S}) - {DISCOUNT} * einsum("sa,saz->zs", policy, moves), {BEGIN.tolist()})
    maximize sum(visits[s] * policy[s,a] * reward[s,a] for s in 1..{S}, a in 1..{A})
    subject to
        drawn[s in 1..{S}]: sum(policy[s,a] for a in 1..{A}) == 1
    """
    problem = hc.parse(text, data={"moves": MOVES, "reward": REWARD})
    assert problem.solve() == pytest.approx(best(cap=1e3), rel=1e-7)
    assert problem.status == "optimal"


def test_one_of_two_actions_is_a_probability() -> None:
    first = hc.Variable(S, name="first", bounds=(0, 1))
    both = hc.transpose(hc.vstack([first, 1 - first]))
    moves = hc.einsum("sa,saz->sz", both, MOVES[:, :2])
    visits = hc.solve(np.eye(S) - DISCOUNT * moves.T, BEGIN)
    problem = hc.Problem(hc.Maximize(visits @ hc.sum(both * REWARD[:, :2], axis=1)))
    values = np.zeros(S)
    for _ in range(500):
        values = (REWARD + DISCOUNT * MOVES @ values)[:, :2].max(axis=1)
    assert problem.solve() == pytest.approx(BEGIN @ values, rel=1e-7)
    assert problem.status == "optimal"


def test_bounds_of_a_policy_are_kept() -> None:
    policy = hc.Variable((S, A), name="policy", bounds=(0.1, 0.7))
    problem = process(policy, [hc.sum(policy, axis=1) == 1], cap=6.0)
    assert problem.solve() == pytest.approx(best(0.1, 0.7, cap=6.0), rel=1e-7)
    assert problem.status == "optimal"


def test_multipliers_of_the_rows_are_derivatives_of_the_value() -> None:
    policy = array()
    drawn = hc.sum(policy, axis=1) == 1
    process(policy, [drawn]).solve()
    assert drawn.dual_value is not None
    step = 1e-4
    for state in range(several(1, S)):
        values = []
        for sign in (1.0, -1.0):
            right = np.ones(S)
            right[state] += sign * step
            other = hc.Variable((S, A), name="other", nonneg=True, start=policy.value)
            values.append(process(other, [hc.sum(other, axis=1) == right]).solve())
        slope = (values[0] - values[1]) / (2 * step)
        assert float(drawn.dual_value[state]) == pytest.approx(slope, rel=1e-4)


def test_a_budget_that_no_policy_keeps_contradicts_the_rows() -> None:
    """Without the rows, no visits cost anything: they belong to the conflict, as do the signs."""
    policy = array()
    drawn = hc.sum(policy, axis=1) == 1
    drawn.name = "drawn"
    problem = process(policy, [drawn], cap=0.1)
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution is not None
    signs = [f"policy[{i}, {j}] >= 0" for i in range(S) for j in range(A)]
    assert problem.solution.conflict == ("drawn", "budget", *signs)


def test_a_parameter_that_is_not_one_any_more_takes_the_proof_away() -> None:
    policy, total = array(), hc.Parameter(S, name="total", value=np.ones(S))
    problem = process(policy, [hc.sum(policy, axis=1) == total])
    first = problem.solve()
    assert problem.status == "optimal"
    total.value = np.full(S, 0.9)
    problem.solve()
    assert problem.status == "locally_optimal"
    total.value = np.ones(S)
    assert problem.solve() == pytest.approx(first, rel=1e-9)
    assert problem.status == "optimal"


# ---- what is no array of distributions


def proposed(variables: list[Any], rows: list[Any]) -> list[Any]:
    often = hc.Variable(name="often", nonneg=True)
    objective = hc.Minimize(often * sum(hc.sum(each * each) for each in variables))
    return list(Distributions().propose(Expanded.of(hc.Problem(objective, rows).model)))


@pytest.mark.parametrize(
    "rows",
    [
        lambda x: [hc.sum(x, axis=1) == 2],
        lambda x: [hc.sum(x, axis=1) >= 1],
        lambda x: [hc.sum(x * np.arange(1.0, 4), axis=1) == 1],
        lambda x: [hc.sum(x[0]) == 1],
        lambda x: [hc.sum(x * x, axis=1) == 1],
        lambda x: [hc.sum(x, axis=1) - x[0, 0] == 1],
        lambda x: [x[:, 0] == 1],
    ],
    ids=["other total", "more", "weights", "a part", "squares", "overlapping", "single entries"],
)
def test_other_rows_are_left_as_they_are(rows: Callable[[Any], list[Any]]) -> None:
    x = hc.Variable((2, 3), name="x", nonneg=True)
    assert proposed([x], rows(x)) == []


@pytest.mark.parametrize("kind", [{"bounds": (-1, 1)}, {"pos": True}, {"bounds": (0.5, 1)}])
def test_entries_that_cannot_be_drawn_are_left_as_they_are(kind: dict[str, Any]) -> None:
    """Negative ones, those that must not be 0, and bounds that leave no distribution."""
    x = hc.Variable((2, 3), name="x", **kind)
    assert proposed([x], [hc.sum(x, axis=1) == 1]) == []


def test_a_line_with_an_entry_of_another_distribution_is_left_as_it_is() -> None:
    x = hc.Variable(2, name="x", nonneg=True)
    y = hc.Variable(3, name="y", simplex=True)
    assert proposed([x, y], [x[0] + x[1] + y[0] == 1]) == []


def test_totals_are_compared_relative_to_their_size() -> None:
    x = hc.Variable((2, 3), name="x", nonneg=True)
    (step,) = proposed([x], [1e6 * hc.sum(x, axis=1) == 1e6 * (1 + 1e-16)])
    assert step.new[0].set.is_distribution
    assert proposed([x], [1e-6 * hc.sum(x, axis=1) == 1e-6 * (1 + 1e-9)]) == []


def test_of_rows_with_common_entries_the_first_are_taken() -> None:
    """A doubly stochastic matrix has distributions along one axis, and rows along the other."""
    x = hc.Variable((3, 3), name="x", nonneg=True)
    (step,) = proposed([x], [hc.sum(x, axis=1) == 1, hc.sum(x, axis=0) == 1])
    assert [each.set.is_distribution for each in step.new] == [True]
    assert [row.position for row in step.after.rows] == [1]


def test_a_quadratic_form_of_one_distribution_is_left_as_it_is() -> None:
    """Nothing is multiplied with it, and the search would look at every product twice."""
    x = hc.Variable(4, name="x", nonneg=True)
    problem = hc.Problem(hc.Maximize(x @ np.arange(16.0).reshape(4, 4) @ x), [hc.sum(x) == 1])
    assert list(Distributions().propose(Expanded.of(Forms(problem.model).bounds.after))) == []


@pytest.mark.parametrize("most", [1.0, 5.0])
def test_variables_are_taken_out_whole(most: float) -> None:
    """Of two entries one is multiplied: both are fractions, or both are left as they are."""
    x = hc.Variable(2, name="x", bounds=(0, np.array([1.0, most])))
    often = hc.Variable(name="often", nonneg=True)
    problem = hc.Problem(hc.Minimize(x[1] - x[0] * often), [often <= 3])
    steps = list(Distributions().propose(Expanded.of(Forms(problem.model).bounds.after)))
    assert [each.new[0].shape for each in steps] == ([(2, 2)] if most == 1.0 else [])
    for step in steps:
        assert not step.after.arrays[0].holding(step.after.symbols.of_variable(step.gone[0])).any()


def test_points_go_there_and_back() -> None:
    first, second = (
        hc.Variable(size, name=name, nonneg=True) for size, name in ((2, "a"), (4, "b"))
    )
    rows = [first[0] + second[0] + second[2] == 1, second[3] + second[1] + first[1] == 1]
    (step,) = proposed([first, second], rows)
    point = {first: np.array([0.5, 0.25]), second: np.array([0.3, 0.35, 0.2, 0.4])}
    step.forward(point)
    found = {each: point[each] for each in step.new}
    for lines in found.values():
        np.testing.assert_allclose(np.sum(lines, axis=-1), 1.0)
    step.back(found)
    np.testing.assert_array_equal(found[first], point[first])
    np.testing.assert_array_equal(found[second], point[second])
