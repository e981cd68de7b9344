"""Regulators with noise that is proportional to the state or to the input are proven."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from numpy.typing import NDArray

import hcmodel as hc
from hcmodel.maps.matrix_algebra import congruences, matrix_inequalities
from hcmodel.reductions.forms import Forms
from tests.extent import pairs

FloatArray = NDArray[np.float64]
Pairs = Sequence[tuple[FloatArray, FloatArray]]

A, B = np.array([[1.1, 0.3], [0.0, 0.9]]), np.array([[0.0], [1.0]])
STATE, INPUT = np.array([[0.1, 0.0], [0.2, 0.1]]), np.array([[0.3], [0.2]])
WIDE, WIDE_NOISE = np.array([[1.0, 0.2], [0.0, 1.0]]), np.array([[0.1, 0.3], [0.2, 0.0]])
W = 0.5 * np.eye(2)
NONE = np.zeros((2, 2))

NOISE: dict[str, Pairs] = {
    "state": [(A, B), (STATE, np.zeros((2, 1)))],
    "input": [(A, B), (NONE, INPUT)],
    "both at once": [(A, B), (STATE, INPUT)],
    "three sources": [(A, B), (STATE, np.zeros((2, 1))), (NONE, INPUT), (NONE, 0.5 * INPUT[::-1])],
    "two inputs": [(A, WIDE), (NONE, WIDE_NOISE)],
    "two inputs and the state": [(A, WIDE), (STATE, WIDE_NOISE), (NONE, np.diag([0.2, 0.3]))],
}


def riccati(pairs: Pairs) -> FloatArray:
    """X of the cost xᵀ X x: the generalised equation of Riccati, by value iteration."""
    X = np.eye(2)
    for _ in range(500):
        below = np.eye(pairs[0][1].shape[1]) + sum(b.T @ X @ b for _, b in pairs)
        cross = sum(b.T @ X @ a for a, b in pairs)
        X = np.eye(2) + sum(a.T @ X @ a for a, _ in pairs) - cross.T @ np.linalg.solve(below, cross)
        X = (X + X.T) / 2  # else rounding grows
    return X


def variables(pairs: Pairs) -> tuple[hc.Variable, hc.Variable]:
    inputs = pairs[0][1].shape[1]
    return hc.Variable((2, 2), name="P", PSD=True), hc.Variable((inputs, 2), name="K")


def next_covariance(pairs: Pairs, P: Any, K: Any) -> Any:
    return sum(((a + b @ K) @ P @ (a + b @ K).T for a, b in pairs), W)


def cost(P: Any, K: Any) -> Any:
    return hc.trace(P) + hc.trace(K @ P @ K.T)


@pytest.mark.parametrize(("kind", "name"), pairs(["==", ">>"], NOISE))
def test_the_value_and_the_multiplier_are_those_of_riccati(name, kind):
    pairs = NOISE[name]
    P, K = variables(pairs)
    right = next_covariance(pairs, P, K)
    row = right == P if kind == "==" else P >> right
    problem = hc.Problem(hc.Minimize(cost(P, K)), [row])
    problem.solve()
    X = riccati(pairs)
    assert problem.status == "optimal"
    assert "proven convex in P, K @ P" in problem.solution.method
    assert problem.value == pytest.approx(np.trace(X @ W), rel=1e-6)
    assert np.abs(row.dual_value) == pytest.approx(np.abs(X), rel=1e-3)
    if kind == "==":  # P is that of the gain
        point = problem.solution.point
        assert next_covariance(pairs, point["P"], point["K"]) == pytest.approx(point["P"])


def multiplied_out(P, K):
    """The squares taken apart, and noise by its own sums over entries."""
    noise = INPUT @ K @ P @ K.T @ INPUT.T
    return A @ P @ A.T + B @ K @ P @ A.T + A @ P @ K.T @ B.T + (B @ K) @ P @ (B @ K).T + W + noise


def turned(P, K):
    """A gain that is written as its transpose."""
    F, G = A.T + K @ B.T, K @ INPUT.T
    return F.T @ P @ F + G.T @ P @ G + W


def by_entries(P, K):
    energy = (K @ P @ K.T)[0, 0]
    return (A + B @ K) @ P @ (A + B @ K).T + W + energy * (INPUT @ INPUT.T)


WRITTEN: dict[str, tuple[Any, tuple[int, int]]] = {
    "multiplied out": (multiplied_out, (1, 2)),
    "turned": (turned, (2, 1)),
    "by entries": (by_entries, (1, 2)),
}


@pytest.mark.parametrize(("scale", "name"), pairs([1.0, -2.0, 1000.0, 0.01], WRITTEN))
def test_the_verdict_does_not_depend_on_how_it_is_written(name, scale):
    right, shape = WRITTEN[name]
    P, K = hc.Variable((2, 2), name="P", PSD=True), hc.Variable(shape, name="K")
    energy = hc.trace(K @ P @ K.T) if shape == (1, 2) else hc.trace(K.T @ P @ K)
    problem = hc.Problem(
        hc.Minimize(hc.trace(P) + hc.sum(energy)), [scale * (right(P, K) - P) == 0]
    )
    problem.solve()
    assert problem.status == "optimal"
    assert "proven" in problem.solution.method
    assert problem.value == pytest.approx(np.trace(riccati(NOISE["input"]) @ W), rel=1e-6)


LANGUAGE = """
param n, m
param A[n,n], B[n,m], C[n,m], W[n,n]
var P[n,n] symmetric in psd(0), K[m,n]
let F = A + B @ K
minimize trace(P) + trace(K @ P @ K.T)
subject to
    settled: F @ P @ F.T + (C @ K) @ P @ (C @ K).T + W == P
"""


def test_it_is_the_same_in_the_language():
    data = {"A": A.tolist(), "B": B.tolist(), "C": INPUT.tolist(), "W": W.tolist()}
    problem = hc.parse(LANGUAGE, data=data)
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(np.trace(riccati(NOISE["input"]) @ W), rel=1e-6)


def test_a_limit_of_the_energy_is_a_row_of_the_same_model():
    """Against CVXPY in P, Y and Z."""
    cvxpy = pytest.importorskip("cvxpy")
    pairs = NOISE["two inputs"]
    P, K = variables(pairs)
    rows = [next_covariance(pairs, P, K) == P, hc.trace(K @ P @ K.T) <= 0.4]
    problem = hc.Problem(hc.Minimize(hc.trace(P)), rows)
    problem.solve()
    p, y, z = (cvxpy.Variable((2, 2), **how) for how in ({"PSD": True}, {}, {"symmetric": True}))
    total = sum(a @ p @ a.T + a @ y.T @ b.T + b @ y @ a.T + b @ z @ b.T for a, b in pairs) + W
    block = cvxpy.bmat([[z, y], [y.T, p]])
    same = [p - total >> 0, block >> 0, cvxpy.trace(z) <= 0.4]
    reference = cvxpy.Problem(cvxpy.Minimize(cvxpy.trace(p)), same).solve("CLARABEL")
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(reference, rel=1e-5)


@pytest.mark.parametrize("kind", ["==", "<<"])
@pytest.mark.parametrize("sources", [[INPUT], [INPUT, 0.5 * INPUT[::-1]]])
def test_noise_of_the_input_in_continuous_time(sources, kind):
    """Riccati's equation with R + Σ Cᵀ X C in place of R, solved again and again."""
    P, K = hc.Variable((2, 2), name="P", PSD=True), hc.Variable((1, 2), name="K")
    plant = A - np.eye(2)
    flow = (plant + B @ K) @ P
    total = flow + flow.T + sum((c @ K) @ P @ (c @ K).T for c in sources) + W
    row = total == 0 if kind == "==" else total << 0
    problem = hc.Problem(hc.Minimize(cost(P, K)), [row])
    problem.solve()
    X = np.zeros((2, 2))
    for _ in range(40):
        weight = np.eye(1) + sum(c.T @ X @ c for c in sources)
        X = scipy.linalg.solve_continuous_are(plant, B, np.eye(2), weight)
    assert problem.status == "optimal"
    assert "proven" in problem.solution.method
    assert problem.value == pytest.approx(np.trace(X @ W), rel=1e-6)
    assert np.abs(row.dual_value) == pytest.approx(np.abs(X), rel=1e-3)


def next_cost(pairs: Pairs, X: Any, K: Any) -> Any:
    return sum(((a + b @ K).T @ X @ (a + b @ K) for a, b in pairs), np.eye(2) + K.T @ K)


@pytest.mark.parametrize("kind", ["==", "<<"])
@pytest.mark.parametrize("name", NOISE)
def test_cost_matrices_with_noise_in_discrete_time(name: str, kind: str) -> None:
    """The solution of the generalised equation of Riccati is the least cost matrix."""
    X, K = variables(NOISE[name])
    after = next_cost(NOISE[name], X, K)
    row = after == X if kind == "==" else after << X
    problem = hc.Problem(hc.Minimize(hc.trace(X)), [row])
    best = riccati(NOISE[name])
    assert problem.solve() == pytest.approx(np.trace(best), rel=1e-6)
    assert problem.status == "optimal"
    if kind == "==":
        np.testing.assert_allclose(X.value, best, rtol=1e-3)


@pytest.mark.parametrize(("state", "input_"), [(1, 0), (0, 1), (1, 1)])
def test_cost_matrices_with_noise_in_continuous_time(state: int, input_: int) -> None:
    """Riccati's equation with the squares of the noise in its weights, solved again and again."""
    X, K = hc.Variable((2, 2), name="X", PSD=True), hc.Variable((1, 2), name="K")
    F, noise = A - np.eye(2) + B @ K, state * STATE + input_ * INPUT @ K
    flow = F.T @ X + X @ F + noise.T @ X @ noise
    problem = hc.Problem(hc.Minimize(hc.trace(X)), [flow + np.eye(2) + K.T @ K == 0])
    best = np.zeros((2, 2))
    for _ in range(100):
        below = np.eye(1) + input_ * INPUT.T @ best @ INPUT
        beside = state * input_ * STATE.T @ best @ INPUT
        weight = np.eye(2) + state * STATE.T @ best @ STATE
        best = scipy.linalg.solve_continuous_are(A - np.eye(2), B, weight, below, s=beside)
    assert problem.solve() == pytest.approx(np.trace(best), rel=1e-6)
    assert problem.status == "optimal"


def test_squares_with_negative_signs_are_no_noise() -> None:
    """X − (c K)ᵀ X (c K) is no cost of a plant, and falls as X grows."""
    X, K = variables(NOISE["input"])
    F = A + B @ K
    row = F.T @ X @ F - 0.1 * (INPUT @ K).T @ X @ (INPUT @ K) + np.eye(2) + K.T @ K == X
    found = Forms(hc.Problem(hc.Minimize(hc.trace(X)), [row]).model).discovery
    assert found.substitution is None


def test_a_set_that_keeps_small_covariances_out_is_kept_by_discrete_time_alone():
    """P >= W in discrete time, whatever the gain; in continuous time it may be as small as it likes."""
    P, K = hc.Variable((2, 2), name="P", PSD=0.1), hc.Variable((1, 2), name="K")
    settled = hc.Problem(hc.Minimize(cost(P, K)), [next_covariance(NOISE["input"], P, K) == P])
    found = Forms(settled.model).discovery.substitution
    assert found is not None
    assert found.released == ()
    flow, noise = (A + B @ K) @ P, INPUT @ K @ P @ K.T @ INPUT.T
    moving = hc.Problem(hc.Minimize(cost(P, K)), [flow + flow.T + noise + W == 0])
    found = Forms(moving.model).discovery.substitution
    assert found is not None
    assert found.released == ("P",)


def test_a_set_that_keeps_the_best_covariance_out_is_a_bound_and_no_more():
    """At least 100 in each direction: the covariances in the set are above those of the inequality."""
    P, K = hc.Variable((2, 2), name="P", PSD=100.0), hc.Variable((1, 2), name="K")
    problem = hc.Problem(hc.Minimize(cost(P, K)), [next_covariance(NOISE["input"], P, K) == P])
    value = problem.solve(max_calls=300)
    assert np.trace(riccati(NOISE["input"]) @ W) < 200 <= value
    assert problem.solution.lower_bound <= value * (1 + 1e-6)
    assert np.linalg.eigvalsh(P.value)[0] >= 100.0 * (1 - 1e-4)


def refused(name: str) -> hc.Problem:
    pairs = NOISE["input"]
    P, K = variables(pairs)
    right, noise = next_covariance(pairs, P, K), INPUT @ K @ P @ K.T @ INPUT.T
    rows = {
        "noise that is taken off": [right - 2 * noise == P],
        "noise that is taken off an inequality": [P >> right - 2 * noise],
        "noise that is taken off in continuous time": [
            (A + B @ K) @ P + ((A + B @ K) @ P).T - noise + W == 0
        ],
        "no other noise": [right - W == P],
        "a variance from below": [right == P, P[0, 0] >= 9],
        "the inequality turned": [P << right, hc.trace(P) >= 5],
        "a slack with an upper bound": [right + hc.Variable((2, 2), name="S", PSD=(0, 0.1)) == P],
    }
    return hc.Problem(hc.Minimize(cost(P, K)), rows[name])


@pytest.mark.parametrize(
    "name",
    [
        "noise that is taken off",
        "noise that is taken off an inequality",
        "noise that is taken off in continuous time",
        "no other noise",
        "a variance from below",
        "the inequality turned",
        "a slack with an upper bound",
    ],
)
def test_what_could_lose_something_is_not_claimed(name):
    assert Forms(refused(name).model).discovery.substitution is None


@pytest.mark.parametrize("size", [(2, 1, 2), (2, 3, 2), (3, 4, 3), (4, 6, 2), (2, 2, 3)])
def test_squares_are_found_from_the_weights_of_symmetric_matrices(size):
    order, columns, count = size
    generator = np.random.default_rng(sum(size))
    for sparse in (False, True):
        factors = generator.normal(size=(count, order, columns))
        factors = factors * (generator.uniform(size=factors.shape) < 0.6) if sparse else factors
        found = congruences.congruences(congruences._weights(factors))
        X = generator.normal(size=(columns, columns))
        wanted = np.einsum("ria,ab,rjb->ij", factors, X + X.T, factors)
        assert np.einsum("ria,ab,rjb->ij", found, X + X.T, found) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_maps_that_keep_no_order_have_no_squares(seed):
    generator = np.random.default_rng(seed)
    factors = generator.normal(size=(2, 3, 3))
    less = generator.normal(size=(1, 3, 3))
    tensor = congruences._weights(factors) - congruences._weights(less)
    assert congruences.congruences(tensor) is None
    transposed = np.einsum("ij,ab->ijab", np.eye(3), np.eye(3)) - congruences._weights(less)
    assert congruences.congruences(transposed) is None


@pytest.mark.parametrize("size", [(2, 1, 1), (2, 2, 2), (3, 1, 2), (4, 2, 2)])
def test_flows_are_found_beside_the_squares(size):
    order, inputs, count = size
    generator = np.random.default_rng(sum(size))
    flow = np.eye(order, order + inputs)
    factors = generator.normal(size=(count + 1, order, order + inputs))  # the last one is C
    tensor = congruences._weights(factors, flow)
    found = congruences.congruences(tensor, flow)
    assert congruences._weights(found, flow) == pytest.approx(tensor, abs=1e-9)
    less = congruences._weights(2 * generator.normal(size=(1, order, order + inputs)))
    assert congruences.congruences(tensor - less, flow) is None


def test_a_slack_grows_by_what_the_new_matrix_has_too_much():
    """Z + D in place of Z and S' − Q(D) in place of S': the point that comes back has S again."""
    pairs = NOISE["two inputs"]
    (P, K), S = variables(pairs), hc.Variable((2, 2), name="S", PSD=True)
    problem = hc.Problem(hc.Minimize(cost(P, K)), [next_covariance(pairs, P, K) + S == P])
    found = Forms(problem.model).discovery.substitution
    generator = np.random.default_rng(0)
    gain, slack, root = (generator.normal(size=(2, 2)) for _ in range(3))
    values = {P: 2 * np.eye(2), K: gain, S: slack @ slack.T}
    after = found.after
    x = found.before.layout.pack([values[each] for each in found.before.variables])
    u = dict(zip(after.variables, after.layout.unpack(np, found.point(x)), strict=True))
    (block,) = (each for each in after.variables if each.shape == (4, 4))
    more = root @ root.T
    u[block] = u[block] + np.pad(more, (0, 2))
    u[S] = u[S] - sum(b @ more @ b.T for _, b in pairs)
    again = found.point_back(after.layout.pack([u[each] for each in after.variables]))
    assert again == pytest.approx(x)


def test_a_wrong_block_is_caught_by_the_comparison(monkeypatch):
    pairs = NOISE["input"]
    P, K = variables(pairs)
    problem = hc.Problem(hc.Minimize(cost(P, K)), [next_covariance(pairs, P, K) == P])

    def wrong(self, product, gain, points):
        points[self.block], points[self.slack] = np.eye(3), np.zeros((2, 2))

    assert Forms(problem.model).discovery.substitution is not None
    monkeypatch.setattr(matrix_inequalities.Noisy, "forward", wrong)
    assert Forms(problem.model).discovery.substitution is None
