"""Block matrices in a Lyapunov matrix P and a gain K, against CVXPY in P⁻¹ and K P⁻¹."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.maps.matrix_algebra import block_loops
from hcmodel.reductions.forms import Forms
from tests.proven import is_proven

RNG = np.random.default_rng(3)
A, B = RNG.normal(size=(3, 3)), RNG.normal(size=(3, 2))
E, C = RNG.normal(size=(3, 2)), RNG.normal(size=(2, 3))
D, V = RNG.normal(size=(2, 2)), 0.1 * RNG.normal(size=(2, 2))
UNIT, STATES = np.eye(2), np.eye(3)
NONE = np.zeros((3, 2))
LEAST, MOST = 0.05, 40.0


def variables(definite: Any = (LEAST, MOST)) -> tuple[hc.Variable, hc.Variable, hc.Variable]:
    P = hc.Variable((3, 3), name="P", PSD=definite)
    return P, hc.Variable((2, 3), name="K"), hc.Variable(name="g")


def loop(K: Any) -> Any:
    return A + B @ K


def outputs(K: Any) -> Any:
    return C + D @ K


def flow(P: Any, K: Any) -> Any:
    return loop(K).T @ P + P @ loop(K)


def near_misses(problem: hc.Problem) -> tuple[str, ...]:
    return Forms(problem.model).discovery.near_misses


# ---- CVXPY in U = P⁻¹ and Y = K U


def peer(value: Callable[[Any, Any, Any, Any], tuple[Any, list[Any]]]) -> float:
    """The least value of a model in U, Y and g, which `value` makes of these and of CVXPY."""
    cvxpy = pytest.importorskip("cvxpy")
    U, Y, g = cvxpy.Variable((3, 3), symmetric=True), cvxpy.Variable((2, 3)), cvxpy.Variable()
    objective, rows = value(cvxpy, U, Y, g)
    rows = [*rows, U >> STATES / MOST, U << STATES / LEAST]
    return float(cvxpy.Problem(cvxpy.Minimize(objective), rows).solve(solver="CLARABEL"))


def peer_bounded_real(cvxpy: Any, U: Any, Y: Any, g: Any) -> tuple[Any, list[Any]]:
    F, G = A @ U + B @ Y, C @ U + D @ Y
    blocks = [[F + F.T, E, G.T], [E.T, -g * UNIT, V.T], [G, V, -g * UNIT]]
    return g, [cvxpy.bmat(blocks) << 0]


def peer_discrete(cvxpy: Any, U: Any, Y: Any, g: Any) -> tuple[Any, list[Any]]:
    F, G = A @ U + B @ Y, C @ U + D @ Y
    blocks = [
        [U, NONE, F.T, G.T],
        [NONE.T, g * UNIT, E.T, V.T],
        [F, E, U, NONE],
        [G, V, NONE.T, g * UNIT],
    ]
    return g, [cvxpy.bmat(blocks) >> 0]


# ---- the bounded real lemma


Row = Callable[[Any, Any, Any], Any]


def columns(*blocks: Any) -> Any:
    return hc.vstack([hc.hstack(list(each)) for each in blocks])


CONTINUOUS: dict[str, Row] = {
    "as in books": lambda P, K, g: (
        hc.bmat(
            [
                [flow(P, K), P @ E, outputs(K).T],
                [E.T @ P, -g * UNIT, V.T],
                [outputs(K), V, -g * UNIT],
            ]
        )
        << 0
    ),
    "turned, with the states last": lambda P, K, g: (
        hc.bmat(
            [
                [g * UNIT, -V, -outputs(K)],
                [-V.T, g * UNIT, -E.T @ P],
                [-outputs(K).T, -P @ E, -flow(P, K)],
            ]
        )
        >> 0
    ),
    "the states in the middle, scaled": lambda P, K, g: (
        0
        << 3
        * columns(
            (g * UNIT, -outputs(K), -V),
            (-outputs(K).T, -(P @ loop(K)) - (P @ loop(K)).T, -(P @ E)),
            (-V.T, -(E.T @ P), g * UNIT),
        )
    ),
    "multiplied out, with sums on both sides": lambda P, K, g: (
        hc.bmat(
            [
                [A.T @ P + P @ A, P @ E, C.T],
                [E.T @ P, np.zeros((2, 2)), V.T],
                [C, V, np.zeros((2, 2))],
            ]
        )
        << hc.bmat(
            [
                [-(K.T @ B.T @ P) - P @ B @ K, NONE, -(K.T @ D.T)],
                [NONE.T, g * UNIT, np.zeros((2, 2))],
                [-(D @ K), np.zeros((2, 2)), g * UNIT],
            ]
        )
    ),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_the_bounded_real_lemma_however_it_is_written(name: str) -> None:
    P, K, g = variables()
    problem = hc.Problem(hc.Minimize(g), [CONTINUOUS[name](P, K, g)])
    assert problem.solve() == pytest.approx(peer(peer_bounded_real), rel=1e-6)
    assert problem.status == "optimal"
    assert "proven convex in g, inv(P), K @ inv(P)" in problem.solution.method


def test_outputs_as_squares_have_the_square_of_the_level() -> None:
    """With V = 0 the norm is γ; Gᵀ G in the corner has γ² in the other one: P is γ times as large."""
    P, K, g = variables((1e-4, 1e4))
    F, G = flow(P, K), outputs(K)
    row = hc.bmat([[F + G.T @ G, P @ E], [E.T @ P, -g * UNIT]]) << 0
    square = hc.Problem(hc.Minimize(g), [row])
    P, K, level = variables((1e-4, 1e4))
    blocks = [
        [flow(P, K), P @ E, outputs(K).T],
        [E.T @ P, -level * UNIT, 0 * UNIT],
        [outputs(K), 0 * UNIT, -level * UNIT],
    ]
    plain = hc.Problem(hc.Minimize(level), [hc.bmat(blocks) << 0])
    assert is_proven(square)
    assert is_proven(plain)
    # both are infima next to the bounds of P, which differ
    assert square.solve("cone") == pytest.approx(plain.solve("cone") ** 2, rel=1e-2)


@pytest.mark.parametrize("form", ["upright", "parts", "defined", "a symmetric P"])
def test_gains_and_matrices_in_other_forms(form: str) -> None:
    P, K, g = variables()
    rows: list[Any] = []
    gain: Any = K
    F, G = None, None
    if form == "upright":
        gain = hc.Variable((3, 2), name="L").T
    if form == "a symmetric P":
        P = hc.Variable((3, 3), name="P", symmetric=True)
        rows = [P >> LEAST * STATES, P << MOST * STATES]
    if form == "parts":
        gain = hc.vstack([hc.Variable((1, 3), name="one"), hc.Variable((1, 3), name="two")])
    if form == "defined":
        F, G = hc.Variable((3, 3), name="F"), hc.Variable((2, 3), name="G")
        rows = [loop(gain) == F, outputs(gain) == G]
    closed, out = loop(gain) if F is None else F, outputs(gain) if G is None else G
    blocks = [
        [closed.T @ P + P @ closed, P @ E, out.T],
        [E.T @ P, -g * UNIT, V.T],
        [out, V, -g * UNIT],
    ]
    problem = hc.Problem(hc.Minimize(g), [*rows, hc.bmat(blocks) << 0])
    assert problem.solve() == pytest.approx(peer(peer_bounded_real), rel=1e-6)
    assert problem.status == "optimal"


def test_a_single_state_in_one_block() -> None:
    """ẋ = x + u + w with z = (x, u): the least γ, where k goes to −∞, is 1 at most for P >= 0.1."""
    P, k = hc.Variable((1, 1), name="P", PSD=(0.1, 10)), hc.Variable((1, 1), name="k")
    g, one, none = hc.Variable(name="g"), np.eye(1), np.zeros((1, 1))
    blocks = [
        [2 * P @ (1 + k), P, one, k],
        [P, -g * one, none, none],
        [one, none, -g * one, none],
        [k, none, none, -g * one],
    ]
    problem = hc.Problem(hc.Minimize(g), [hc.bmat(blocks) << 0])
    value = problem.solve()
    assert problem.status == "optimal"
    # 2 p (1 + k) + p²/γ + (1 + k²)/γ <= 0, by a grid over p and the best k = −γ p
    grid = np.linspace(0.1, 10, 20_001)
    levels = np.linspace(0.9 * value, 1.1 * value, 801)
    least = [float((2 * grid - s * grid**2 + grid**2 / s + 1 / s).min()) for s in levels]
    assert value == pytest.approx(levels[np.argmax(np.array(least) <= 0)], rel=1e-3)


# ---- discrete time


DISCRETE: dict[str, Row] = {
    "states twice": lambda P, K, g: (
        hc.bmat(
            [
                [P, NONE, loop(K).T @ P, outputs(K).T],
                [NONE.T, g * UNIT, E.T @ P, V.T],
                [P @ loop(K), P @ E, P, NONE],
                [outputs(K), V, NONE.T, g * UNIT],
            ]
        )
        >> 0
    ),
    "states twice, one after the other": lambda P, K, g: (
        hc.bmat(
            [
                [-P, P @ loop(K), P @ E, NONE],
                [loop(K).T @ P, -P, NONE, outputs(K).T],
                [E.T @ P, NONE.T, -g * UNIT, V.T],
                [NONE.T, outputs(K), V, -g * UNIT],
            ]
        )
        << 0
    ),
    "states once": lambda P, K, g: (
        hc.bmat(
            [
                [P - loop(K).T @ P @ loop(K), -(loop(K).T @ P @ E), outputs(K).T],
                [-(E.T @ P @ loop(K)), g * UNIT - E.T @ P @ E, V.T],
                [outputs(K), V, g * UNIT],
            ]
        )
        >> 0
    ),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_the_bounded_real_lemma_in_discrete_time(name: str) -> None:
    P, K, g = variables()
    problem = hc.Problem(hc.Minimize(g), [DISCRETE[name](P, K, g)])
    assert problem.solve() == pytest.approx(peer(peer_discrete), rel=1e-6)
    assert problem.status == "optimal"
    assert "proven convex in g, inv(P), K @ inv(P)" in problem.solution.method


def test_schur_complements_of_lyapunovs_inequality_are_the_inequality() -> None:
    """A model with [[P − I − Kᵀ K, Fᵀ P], [P F, P]] ⪰ 0, and with P − Fᵀ P F ⪰ I + Kᵀ K."""
    values = []
    for blocks in (True, False):
        P, K, _ = variables()
        rest, F = P - STATES - K.T @ K, loop(K)
        row = hc.bmat([[rest, F.T @ P], [P @ F, P]]) if blocks else rest - F.T @ P @ F
        problem = hc.Problem(hc.Minimize(hc.trace(P)), [row >> 0])
        values.append(problem.solve())
        assert problem.status == "optimal"
    assert values[0] == pytest.approx(values[1], rel=1e-6)


def test_rows_of_states_that_are_not_in_a_line() -> None:
    """The same matrix with its rows and columns in another order, states of two copies alternating."""
    P, K, _ = variables()
    F = loop(K)
    whole = hc.bmat([[0.9 * P - 0.1 * STATES, F.T @ P], [P @ F, P]])
    order = np.eye(6)[[0, 3, 1, 4, 2, 5]]
    moved = order @ whole @ order.T
    values = []
    for matrix in (whole, moved):
        problem = hc.Problem(hc.Minimize(hc.trace(P)), [matrix >> 0])
        values.append(problem.solve())
        assert problem.status == "optimal"
    assert values[0] == pytest.approx(values[1], rel=1e-7)


# ---- rows beside Lyapunov's


@pytest.mark.parametrize("together", [True, False])
def test_bounds_of_inputs_on_an_ellipsoid(together: bool) -> None:
    """|K x| <= 2 on xᵀ P x <= 1: the largest ellipsoid, as min log det P."""
    P, K, _ = variables()
    parts = [K] if together else [K[0:1, :], K[1:2, :]]
    rows = [flow(P, K) << -0.1 * P]
    rows += [hc.bmat([[P, k.T], [k, 4 * np.eye(k.shape[0])]]) >> 0 for k in parts]
    problem = hc.Problem(hc.Minimize(hc.logdet(P)), rows)

    def value(cvxpy: Any, U: Any, Y: Any, g: Any) -> tuple[Any, list[Any]]:
        F = A @ U + B @ Y
        mine = [Y] if together else [Y[0:1, :], Y[1:2, :]]
        limits = [cvxpy.bmat([[U, y.T], [y, 4 * np.eye(y.shape[0])]]) >> 0 for y in mine]
        return -cvxpy.log_det(U), [F + F.T << -0.1 * U, *limits]

    assert problem.solve(tol=1e-5) == pytest.approx(peer(value), abs=1e-4)
    assert problem.status == "optimal"


H2: dict[str, Callable[[Any, Any], Any]] = {
    "a square": lambda P, Z: E.T @ P @ E << Z,
    "turned": lambda P, Z: Z - (P @ E).T @ E >> 0,
    "a block": lambda P, Z: hc.bmat([[Z, E.T @ P], [P @ E, P]]) >> 0,
}


@pytest.mark.parametrize("name", H2)
def test_bounds_of_the_energy_of_outputs(name: str) -> None:
    P, K, _ = variables()
    Z = hc.Variable((2, 2), name="Z", symmetric=True)
    rows = [flow(P, K) + outputs(K).T @ outputs(K) << 0, H2[name](P, Z)]
    problem = hc.Problem(hc.Minimize(hc.trace(Z)), rows)

    def value(cvxpy: Any, U: Any, Y: Any, g: Any) -> tuple[Any, list[Any]]:
        F, G = A @ U + B @ Y, C @ U + D @ Y
        return cvxpy.matrix_frac(E, U), [cvxpy.bmat([[F + F.T, G.T], [G, -UNIT]]) << 0]

    assert problem.solve() == pytest.approx(peer(value), rel=1e-6)
    assert problem.status == "optimal"


def over(g: Any, P: Any, K: Any) -> Any:
    """The bounded real lemma with V = 0 by Schur's complements."""
    G = outputs(K)
    return flow(P, K) + P @ E @ E.T @ P / g + G.T @ G / g


LEVELS: dict[str, Callable[[Any, Any, Any], tuple[Any, Any]]] = {
    "both over the level": lambda P, K, g: (g, over(g, P, K) << 0),
    "turned": lambda P, K, g: (g, 0 << -2 * over(g, P, K)),
    "outputs over it": lambda P, K, g: (
        g + hc.trace(P),
        flow(P, K) + outputs(K).T @ outputs(K) / g + 0.1 * P @ E @ E.T @ P << 0,
    ),
    "a disturbance times a number": lambda P, K, g: (
        -g,
        flow(P, K) + outputs(K).T @ outputs(K) + g * (P @ E @ E.T @ P) << 0,
    ),
}


@pytest.mark.parametrize("name", LEVELS)
def test_levels_that_squares_are_divided_by(name: str) -> None:
    P, K, _ = variables()
    objective, row = LEVELS[name](P, K, hc.Variable(name="g", pos=True))
    problem = hc.Problem(hc.Minimize(objective), [row])

    def value(cvxpy: Any, U: Any, Y: Any, g: Any) -> tuple[Any, list[Any]]:
        F, G = A @ U + B @ Y, C @ U + D @ Y
        if "times" in name:
            blocks = [[F + F.T + g * E @ E.T, G.T], [G, -UNIT]]
            return -g, [cvxpy.bmat(blocks) << 0]
        if "outputs" in name:
            blocks = [[F + F.T + 0.1 * E @ E.T, G.T], [G, -g * UNIT]]
            return g + cvxpy.matrix_frac(STATES, U), [cvxpy.bmat(blocks) << 0]
        zeros = np.zeros((2, 2))
        blocks = [[F + F.T, E, G.T], [E.T, -g * UNIT, zeros], [G, zeros, -g * UNIT]]
        return g, [cvxpy.bmat(blocks) << 0]

    assert problem.solve() == pytest.approx(peer(value), rel=1e-6)
    assert problem.status == "optimal"
    assert "inv(P), K @ inv(P)" in problem.solution.method


TEXT = """param A[3,3], B[3,2], E[3,2], C[2,3], D[2,2], V[2,2]
var P[3,3] symmetric in psd(0.05, 40)
var K[2,3]
var g
let F = A + B @ K
let G = C + D @ K
minimize g
subject to
    bounded_real: vstack(hstack(F.T @ P + P @ F, P @ E, G.T),
                         hstack(E.T @ P, -g*eye(2), V.T),
                         hstack(G, V, -g*eye(2))) << 0
"""


def test_the_language() -> None:
    problem = hc.parse(TEXT, data={"A": A, "B": B, "E": E, "C": C, "D": D, "V": V})
    assert problem.solve() == pytest.approx(peer(peer_bounded_real), rel=1e-6)
    assert problem.status == "optimal"


def test_an_infimum_that_is_not_attained_has_a_point_beside_it() -> None:
    """Without an upper bound P grows without an end as the level comes near its infimum."""
    cvxpy = pytest.importorskip("cvxpy")
    generator = np.random.default_rng(11)
    drift, entering, push = (generator.normal(size=(3, count)) for count in (3, 2, 2))
    P, K, g = variables(0.01)
    g, F = hc.Variable(name="g", pos=True), drift + entering @ K
    row = F.T @ P + P @ F + STATES + K.T @ K + P @ push @ push.T @ P / g << 0
    problem = hc.Problem(hc.Minimize(g), [row])
    value = problem.solve()
    assert problem.status == "optimal"
    assert "inv(P) becomes singular" in str(problem.solution)
    assert np.linalg.eigvals(drift + entering @ K.value).real.max() < 0
    U, Y, level = cvxpy.Variable((3, 3), PSD=True), cvxpy.Variable((2, 3)), cvxpy.Variable()
    moved, out = drift @ U + entering @ Y, cvxpy.vstack([U, Y])
    none = np.zeros((2, 5))
    blocks = [
        [moved + moved.T, push, out.T],
        [push.T, -level * UNIT, none],
        [out, none.T, -np.eye(5)],
    ]
    rows = [cvxpy.bmat(blocks) << 0, U << 100 * STATES]
    expected = cvxpy.Problem(cvxpy.Minimize(level), rows).solve(solver="CLARABEL")
    assert value == pytest.approx(expected, rel=1e-5)


def test_multipliers_are_slopes_of_the_value() -> None:
    """The multiplier of M ⪯ R by differences of the value in R, for a corner and for what is beside."""
    P, K, g = variables()
    row = CONTINUOUS["as in books"](P, K, g)
    problem = hc.Problem(hc.Minimize(g), [row])
    problem.solve(tol=1e-8)
    for place in ((4, 4), (0, 3), (1, 1)):
        direction = np.zeros((7, 7))
        direction[place] = direction[place[::-1]] = 1.0
        values = []
        for sign in (1.0, -1.0):
            P, K, g = variables()
            moved = CONTINUOUS["as in books"](P, K, g)
            moved = moved.lhs - sign * 1e-3 * direction << 0
            values.append(hc.Problem(hc.Minimize(g), [moved]).solve(tol=1e-8))
        slope = (values[0] - values[1]) / 2e-3
        assert -float(np.sum(row.dual_value * direction)) == pytest.approx(
            slope, rel=2e-3, abs=1e-4
        )


# ---- what is not claimed


def bounded_real(P: Any, K: Any, g: Any) -> Any:
    return CONTINUOUS["as in books"](P, K, g)


NOT_CLAIMED: dict[str, Callable[[Any, Any, Any], list[Any]]] = {
    "a gain with a structure": lambda P, K, g: [bounded_real(P, K, g), K[0, 1] == 0],
    "a rate of decay that is unknown": lambda P, K, g: [
        hc.bmat([[flow(P, K) + g * P, P @ E], [E.T @ P, -g * UNIT]]) << 0
    ],
    "an unknown between the states": lambda P, K, g: [
        hc.bmat([[flow(P, K) + g * STATES, P @ E], [E.T @ P, -g * UNIT]]) << 0
    ],
    "an unknown beside the outputs": lambda P, K, g: [
        hc.bmat([[flow(P, K), g * C.T], [g * C, -UNIT]]) << 0
    ],
    "the other direction": lambda P, K, g: [
        hc.bmat([[flow(P, K) + K.T @ K, P @ E], [E.T @ P, -g * UNIT]]) >> 0
    ],
    "gains that pay": lambda P, K, g: [
        hc.bmat([[flow(P, K) - K.T @ K, P @ E], [E.T @ P, -g * UNIT]]) << 0
    ],
    "a gain between other rows": lambda P, K, g: [
        hc.bmat([[flow(P, K), P @ E], [E.T @ P, K[:, :2] + K[:, :2].T - g * UNIT]]) << 0
    ],
    "outputs times an unknown": lambda P, K, g: [
        flow(P, K) + g * (outputs(K).T @ outputs(K)) << 0,
        g >= 0.1,
    ],
    "a level that may be negative": lambda P, K, g: [
        flow(P, K) + outputs(K).T @ outputs(K) / g << 0,
    ],
    "outputs that pay over a level": lambda P, K, g: [
        flow(P, K) + 10 * STATES - outputs(K).T @ outputs(K) / (1 + g**2) << 0,
    ],
    "two different matrices": lambda P, K, g: [
        hc.bmat([[flow(P, K), P @ E], [E.T @ P, -g * UNIT]]) << 0,
        hc.bmat([[P, (K @ P).T], [K @ P, 4 * UNIT]]) >> 0,
    ],
}


@pytest.mark.parametrize("name", NOT_CLAIMED)
def test_other_matrices_are_not_claimed(name: str) -> None:
    P, K, g = variables()
    assert not is_proven(hc.Problem(hc.Minimize(g), NOT_CLAIMED[name](P, K, g)))


def test_a_matrix_that_may_be_singular_is_not_claimed() -> None:
    """With A = diag(1, −1) and the output x₂ + u alone, P = diag(0, p) hides that x₁ grows.

    γ = 0.5 is reached there by K = 0, while every P ≻ 0 says that the loop is stable.
    """
    drift, entering = np.diag([1.0, -1.0]), np.array([[1.0], [0.0]])
    push, out, through = np.array([[0.0], [1.0]]), np.array([[0.0, 1.0]]), np.ones((1, 1))
    for least, proven in ((True, False), (1e-2, True)):
        P, K = hc.Variable((2, 2), name="P", PSD=least), hc.Variable((1, 2), name="K")
        g, F, G = hc.Variable(name="g"), drift + entering @ K, out + through @ K
        none = np.zeros((1, 1))
        blocks = [
            [F.T @ P + P @ F, P @ push, G.T],
            [push.T @ P, -g * np.eye(1), none],
            [G, none, -g * np.eye(1)],
        ]
        problem = hc.Problem(hc.Minimize(g), [hc.bmat(blocks) << 0])
        assert is_proven(problem) is proven
        if not proven:
            assert any("P may be singular" in each for each in near_misses(problem))


def test_outputs_that_see_all_states_keep_the_matrix_definite() -> None:
    """z = (x, u): where P v = 0 the inequality says that v = 0."""
    P, K, g = variables(True)
    out = hc.vstack([STATES, K])
    blocks = [
        [flow(P, K), P @ E, out.T],
        [E.T @ P, -g * UNIT, np.zeros((2, 5))],
        [out, np.zeros((5, 2)), -g * np.eye(5)],
    ]
    assert is_proven(hc.Problem(hc.Minimize(g), [hc.bmat(blocks) << 0]))


@pytest.mark.parametrize("twice", [True, False])
def test_a_plant_that_no_gain_stabilises_is_named(twice: bool) -> None:
    P, K = hc.Variable((2, 2), name="P", PSD=0.1), hc.Variable((1, 2), name="K")
    closed = np.diag([1.1, -0.5]) + np.array([[0.0], [1.0]]) @ K
    matrix = hc.bmat([[P, closed.T @ P], [P @ closed, P]]) if twice else P - closed.T @ P @ closed
    problem = hc.Problem(hc.Minimize(hc.trace(P)), [matrix >> 0])
    assert not is_proven(problem)
    assert any("no K stabilises the plant of c1" in each for each in near_misses(problem))


def test_a_slow_plant_is_no_obstacle_for_growth_that_is_allowed() -> None:
    """Fᵀ P F ⪯ 1.5 P holds for the eigenvalue 1.1, which no gain moves."""
    P, K = hc.Variable((2, 2), name="P", PSD=0.1), hc.Variable((1, 2), name="K")
    closed = np.diag([1.1, -0.5]) + np.array([[0.0], [1.0]]) @ K
    problem = hc.Problem(hc.Minimize(hc.trace(P)), [closed.T @ P @ closed << 1.5 * P])
    assert problem.solve() == pytest.approx(0.2, rel=1e-5)
    assert problem.status == "optimal"


def test_a_wrong_rule_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models before and after are compared at points."""
    right = block_loops.BlockInequality.block

    def wrong(self: Any, model: Any, inner: Any, product: Any, slack: Any) -> Any:
        return right(self, model, inner, product.scaled(1.01), slack)

    monkeypatch.setattr(block_loops.BlockInequality, "block", wrong)
    P, K, g = variables()
    assert not is_proven(hc.Problem(hc.Minimize(g), [bounded_real(P, K, g)]))
