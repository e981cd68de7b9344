"""Definitions: variables that rows define are replaced, so that maps see what they are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.special

import hcmodel as hc
from hcmodel.maps import defined
from hcmodel.records import replace
from hcmodel.reductions.forms import Forms
from tests.extent import several

GENERATOR = np.random.default_rng(11)
N, M = 3, 2
A, B = GENERATOR.normal(size=(N, N)), GENERATOR.normal(size=(N, M))
RICCATI = float(np.trace(scipy.linalg.solve_continuous_are(A, B, np.eye(N), np.eye(M))))
DISCRETE = float(np.trace(scipy.linalg.solve_discrete_are(A, B, np.eye(N), np.eye(M))))
S, ACTIONS, GAMMA = 4, 2, 0.9
MOVES = GENERATOR.dirichlet(np.ones(S), size=(S, ACTIONS))
REWARD = GENERATOR.normal(size=(S, ACTIONS))
START = np.full(S, 1 / S)
BALANCE = np.kron(np.eye(S), np.ones((1, ACTIONS))) - GAMMA * MOVES.reshape(-1, S).T
BEST = -float(scipy.optimize.linprog(-REWARD.ravel(), A_eq=BALANCE, b_eq=START).fun)

Model = tuple[Any, list[Any], float]


def gains() -> tuple[hc.Variable, hc.Variable]:
    return hc.Variable((N, N), name="P", PSD=True), hc.Variable((M, N), name="K")


def closed_loop() -> Model:
    P, K = gains()
    F = hc.Variable((N, N), name="F")
    rows = [F - B @ K == A, F @ P + P @ F.T + np.eye(N) == 0]
    return hc.trace(P) + hc.trace(K @ P @ K.T), rows, RICCATI


def closed_loop_in_discrete_time() -> Model:
    P, K = gains()
    F = hc.Variable((N, N), name="F")
    return (
        hc.trace(P) + hc.trace(K @ P @ K.T),
        [F == A + B @ K, F @ P @ F.T + np.eye(N) == P],
        DISCRETE,
    )


def covariance_of_inputs() -> Model:
    P, K = gains()
    U, Y = hc.Variable((M, M), name="U", symmetric=True), hc.Variable((M, N), name="Y")
    flow = A @ P + B @ Y
    rows = [2 * U == 2 * K @ Y.T, K @ P == Y, flow + flow.T + np.eye(N) == 0]
    return hc.trace(P) + hc.trace(U), rows, RICCATI


def policy() -> hc.Variable:
    return hc.Variable((S, ACTIONS), name="policy", simplex=True)


def occupancy() -> Model:
    pi, often = policy(), hc.Variable(S, name="often")
    both = hc.Variable((S, ACTIONS), name="both", nonneg=True)
    flow = START + GAMMA * hc.einsum("sa,sat->t", both, MOVES)
    rows = [both == hc.reshape(often, (S, 1)) * pi, often == flow]
    return -hc.sum(REWARD * both), rows, -BEST


def values_of_actions() -> Model:
    pi, value = policy(), hc.Variable(S, name="value")
    action = hc.Variable((S, ACTIONS), name="action")
    later = hc.einsum("sat,t->sa", MOVES, value)
    rows = [action == REWARD + GAMMA * later, value == hc.sum(pi * action, axis=1)]
    return -(START @ value), rows, -BEST


def visits_of_stages() -> Model:
    """Visits without a sign, one stage after the other, and the first one given."""
    stages = 3
    pi = hc.Variable((stages, S, ACTIONS), name="pi", simplex=True)
    often = hc.Variable((stages, S), name="often")
    flows = [hc.reshape(often[t], (S, 1)) * pi[t] for t in range(stages)]
    rows = [often[t + 1] == hc.einsum("sa,sat->t", flows[t], MOVES) for t in range(stages - 1)]
    ahead = np.zeros(S)
    for _ in range(stages):
        ahead = (REWARD + MOVES @ ahead).max(axis=1)
    reward = sum(hc.sum(REWARD * flow) for flow in flows)
    return -reward, [often[0] == START, *rows], -float(START @ ahead)


def demand() -> Model:
    """A bound on the demand that binds is a row: d <= 0.2 where e⁻¹ would be best."""
    price = hc.Variable(name="price", bounds=(0.1, 10))
    sold = hc.Variable(name="sold", bounds=(0, 0.2))
    return -price * sold, [sold == hc.exp(-price)], 0.2 * np.log(0.2)


def shares() -> Model:
    """A share by a row that is multiplied by its denominator, which is never 0."""
    price, share = hc.Variable(name="price", bounds=(0, 10)), hc.Variable(name="share", nonneg=True)
    weight = hc.exp(1 - price)
    best = float(scipy.special.lambertw(1).real)  # the margin is 1 + W(1), and the profit W(1)
    return -price * share, [share * (1 + weight) == weight], -best


def prices(
    relation: Callable[[Any, Any, Any], list[Any]], size: int | None = 2, **sign: Any
) -> Callable[[], Model]:
    """Logit prices with names for the shares; with the margin 10 + m, m = 10 W(n), which is earned."""

    def made() -> Model:
        shape = () if size is None else (size,)
        price = hc.Variable(shape, name="price", bounds=(0, 60))
        outside, share = (
            hc.Variable(name="outside", **sign),
            hc.Variable(shape, name="share", **sign),
        )
        earned = price * share if size is None else price @ share
        best = 10 * float(scipy.special.lambertw(size or 1).real)
        return -earned, relation(price, outside, share), -best

    return made


def odds(price: Any) -> Any:
    return hc.exp(1 - 0.1 * price)


def by_products(price: Any, outside: Any, share: Any) -> list[Any]:
    return [hc.sum(share) + outside == 1, share == outside * odds(price)]


def by_ratios(price: Any, outside: Any, share: Any) -> list[Any]:
    return [hc.sum(share) + outside == 1, share / outside == odds(price)]


def by_what_is_left(price: Any, outside: Any, share: Any) -> list[Any]:
    return [outside == 1 - hc.sum(share), share == outside * odds(price)]


MODELS: dict[str, Callable[[], Model]] = {
    f"prices {relation.__name__} of {size} {sign}": prices(relation, size, **{sign: True})
    for relation in (by_products, by_ratios, by_what_is_left)
    for size in (None, 2)
    for sign in ("pos", "nonneg")
} | {
    each.__name__: each
    for each in (
        closed_loop,
        closed_loop_in_discrete_time,
        covariance_of_inputs,
        occupancy,
        values_of_actions,
        visits_of_stages,
        demand,
        shares,
    )
}


@pytest.mark.parametrize("name", MODELS)
def test_models_with_names_for_what_is_computed_are_proven(name: str) -> None:
    objective, rows, expected = MODELS[name]()
    problem = hc.Problem(hc.Minimize(objective), rows)
    assert problem.solve() == pytest.approx(expected, rel=1e-7)
    assert problem.status == "optimal"
    assert "proven" in problem.solution.method
    assert problem.solution.violation <= 1e-6


def test_a_bound_that_is_not_convex_is_left_out_and_not_claimed() -> None:
    """At least 5 of the energy of the input, where less would be best."""
    P, K = gains()
    energy = hc.Variable(name="energy", bounds=(5 * RICCATI, np.inf))
    F = A + B @ K
    rows = [energy == hc.trace(K @ P @ K.T), F @ P + P @ F.T + np.eye(N) == 0]
    problem = hc.Problem(hc.Minimize(hc.trace(P) + energy), rows)
    value = problem.solve(max_calls=several(300, 5000))
    assert problem.status != "optimal"
    assert value > 5 * RICCATI


def test_equations_that_need_each_other_define_nothing() -> None:
    x, y, z = (hc.Variable(name=name, bounds=(0.5, 2)) for name in "xyz")
    u, v = hc.Variable(name="u"), hc.Variable(name="v")
    rows = [u == x * hc.sin(v), v == y * hc.cos(u)]
    problem = hc.Problem(hc.Minimize(hc.square(u - v) + z), rows)
    assert Forms(problem.model).discovery.substitution is None


def test_bounds_of_one_side_are_kept_where_the_others_are_not_convex() -> None:
    """At most so much energy is convex; that it is at least 0 is not known, and is left out."""
    P, K = gains()
    F = A + B @ K
    free = hc.Problem(
        hc.Minimize(hc.trace(P) + hc.trace(K @ P @ K.T)), [F @ P + P @ F.T + np.eye(N) == 0]
    )
    free.solve()
    cap = 0.99 * float(np.trace(K.value @ P.value @ K.value.T))
    energy = hc.Variable(name="energy", bounds=(0, cap))
    rows = [energy == hc.trace(K @ P @ K.T), F @ P + P @ F.T + np.eye(N) == 0]
    named = hc.Problem(hc.Minimize(hc.trace(P) + energy), rows)
    plain = hc.Problem(
        hc.Minimize(hc.trace(P) + hc.trace(K @ P @ K.T)), [rows[1], energy_row(P, K, cap)]
    )
    assert named.solve() == pytest.approx(plain.solve(), rel=1e-7)
    assert named.status == plain.status == "optimal"
    assert named.value > RICCATI * (1 + 1e-6)


def energy_row(P: Any, K: Any, cap: float) -> Any:
    return hc.trace(K @ P @ K.T) <= cap


def test_a_factor_that_may_be_0_is_not_divided_by() -> None:
    x, v = hc.Variable(name="x", bounds=(-1, 1)), hc.Variable(name="v")
    problem = hc.Problem(hc.Minimize(hc.square(v - 2) + x), [v * x == 1])
    assert Forms(problem.model).discovery.substitution is None


def test_what_is_not_convex_once_it_is_written_out_is_not_claimed() -> None:
    x = hc.Variable(2, name="x", bounds=(-1, 1))
    product = hc.Variable(name="product")
    problem = hc.Problem(hc.Minimize(product), [product == x[0] * x[1]])
    assert Forms(problem.model).discovery.substitution is None


def test_a_variable_that_a_map_has_left_in_the_model_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A step that says that a variable is gone, which its model still has, proves nothing."""
    right = defined._definitions

    def wrong(*given: Any, **options: Any) -> Any:
        found = right(*given, **options)
        for last in found[-1:]:
            short = replace(last.after, variables=last.after.variables[1:])
            found[-1] = replace(last, after=short)
        return found

    objective, rows, _ = demand()
    problem = hc.Problem(hc.Minimize(objective), rows)
    assert Forms(problem.model).discovery.substitution is not None
    monkeypatch.setattr(defined, "_definitions", wrong)
    after = Forms(problem.model).discovery
    assert after.substitution is None
    assert any("is left in the model" in each for each in after.near_misses)


def test_a_wrong_value_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models before and after are compared at points: weights that are off by a thousandth differ."""
    right = defined._value

    def wrong(*given: Any) -> Any:
        found = right(*given)
        return None if found is None else found.scaled(1.001)

    objective, rows, _ = closed_loop()
    problem = hc.Problem(hc.Minimize(objective), rows)
    monkeypatch.setattr(defined, "_value", wrong)
    assert Forms(problem.model).discovery.substitution is None


@pytest.mark.parametrize("squared", [False, True])
def test_a_cost_that_a_row_defines(squared: bool) -> None:
    """trace(P) in a row of a number is not the slack of a matrix inequality."""
    A, B = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.0], [1.0]])
    P, K = hc.Variable((2, 2), name="P", PSD=True), hc.Variable((1, 2), name="K")
    c, F = hc.Variable(name="c"), A + B @ K
    cost = hc.trace((np.eye(2) + K.T @ K) @ P) if squared else hc.trace(P) + hc.trace(K @ P @ K.T)
    problem = hc.Problem(hc.Minimize(c), [c == cost, F @ P + P @ F.T + np.eye(2) == 0])
    problem.solve()
    best = scipy.linalg.solve_continuous_are(A, B, np.eye(2), np.eye(1))
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(np.trace(best), rel=1e-8)
