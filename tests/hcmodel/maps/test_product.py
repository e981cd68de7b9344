"""The product map: regulators are proven and solved with nothing declared, however they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import hcmodel as hc
from hcmodel.maps import matrix_product
from hcmodel.maps.matrix_algebra import matrix_inequalities, named_products, product_terms
from hcmodel.reductions.discovery import Discovery
from hcmodel.reductions.forms import Forms

GENERATOR = np.random.default_rng(7)
N, M = 3, 2
A = GENERATOR.normal(size=(N, N)) + 0.5 * np.eye(N)
B = GENERATOR.normal(size=(N, M))
Q, R, W = np.diag([1.0, 2.0, 3.0]), np.diag([1.0, 0.5]), np.eye(N)
CROSS = 0.2 * GENERATOR.normal(size=(M, N))
RICCATI = float(np.trace(scipy.linalg.solve_continuous_are(A, B, Q, R) @ W))
DISCRETE = float(np.trace(scipy.linalg.solve_discrete_are(A, B, Q, R) @ W))

Model = tuple[Any, list[Any]]


def variables() -> tuple[hc.Variable, hc.Variable]:
    return hc.Variable((N, N), name="P", PSD=(1e-4, 1e4)), hc.Variable((M, N), name="K")


def cost(P: Any, K: Any) -> Any:
    return hc.trace((Q + K.T @ R @ K) @ P)


def loop(P: Any, K: Any) -> Any:
    closed = A + B @ K
    return closed @ P + P @ closed.T + W == 0


def entry(P: Any, K: Any, i: int, j: int) -> Any:
    """One entry of the equation, by sums over indices."""
    total = W[i, j]
    for k in range(N):
        total = total + A[i, k] * P[k, j] + A[j, k] * P[i, k]
        for a in range(M):
            total = total + B[i, a] * K[a, k] * P[k, j] + B[j, a] * P[i, k] * K[a, k]
    return total


def scaled() -> Model:
    """The variables in other units."""
    P, K = hc.Variable((N, N), name="P", PSD=True), hc.Variable((M, N), name="K")
    return cost(5 * P, 0.5 * K), [loop(5 * P, 0.5 * K)]


def by_rows() -> Model:
    """A symmetric P that a row makes definite."""
    P, K = hc.Variable((N, N), name="P", symmetric=True), hc.Variable((M, N), name="K")
    return cost(P, K), [loop(P, K), P >> 1e-6 * np.eye(N)]


def given() -> Model:
    """Data as parameters."""
    P, K = variables()
    a, w = hc.Parameter((N, N), name="a", value=A), hc.Parameter((N, N), name="w", value=W)
    closed = a + B @ K
    return cost(P, K), [closed @ P + P @ closed.T + w == 0]


def turned() -> Model:
    """The gain as its transpose."""
    P, L = hc.Variable((N, N), name="P", PSD=True), hc.Variable((N, M), name="L")
    return cost(P, L.T), [loop(P, L.T)]


def written(change: Callable[[Any, Any], Model]) -> Callable[[], Model]:
    return lambda: change(*variables())


WAYS: dict[str, Callable[[], Model]] = {
    "as in books": written(lambda P, K: (cost(P, K), [loop(P, K)])),
    "two traces": written(lambda P, K: (hc.trace(Q @ P) + hc.trace(R @ K @ P @ K.T), [loop(P, K)])),
    "turned traces": written(
        lambda P, K: (hc.trace(K.T @ R @ K @ P) + hc.trace(P @ Q), [loop(P, K)])
    ),
    "sums of products": written(
        lambda P, K: (hc.sum(Q * P) + hc.sum((R @ K @ P) * K), [loop(P, K)])
    ),
    "quadratic forms": written(
        lambda P, K: (
            hc.trace(Q @ P) + sum(R[a, a] * hc.quad_form(K[a], P) for a in range(M)),
            [loop(P, K)],
        )
    ),
    "split equation": written(
        lambda P, K: (cost(P, K), [A @ P + B @ (K @ P) == -W - P @ A.T - P @ K.T @ B.T])
    ),
    "scaled equation": written(
        lambda P, K: (cost(P, K), [-3 * ((A + B @ K) @ P + W) == 3 * P @ (A + B @ K).T])
    ),
    "indexed sums": written(
        lambda P, K: (
            cost(P, K),
            [entry(P, K, i, j) == 0 for i in range(N) for j in range(i, N)],
        )
    ),
    "einsum": written(lambda P, K: (hc.einsum("ij,ij->", Q + K.T @ R @ K, P), [loop(P, K)])),
    "other units": scaled,
    "parameters": given,
    "a definite matrix by a row": by_rows,
    "transposed gain": turned,
    "a variable for the cost": written(
        lambda P, K: _bounded(P, K),
    ),
}


def _bounded(P: Any, K: Any) -> Model:
    bound = hc.Variable(name="t")
    return bound, [loop(P, K), cost(P, K) <= bound]


@pytest.mark.parametrize("way", WAYS)
def test_the_verdict_does_not_depend_on_the_writing(way: str) -> None:
    """Every way to write the regulator has the same model in (P, K P)."""
    objective, constraints = WAYS[way]()
    problem = hc.Problem(hc.Minimize(objective), constraints)
    assert problem.is_hidden_convex()


@pytest.mark.parametrize("way", ["as in books", "indexed sums", "other units", "transposed gain"])
def test_the_value_is_that_of_riccati(way: str) -> None:
    """Solved, certified, and the gain stabilises."""
    objective, constraints = WAYS[way]()
    problem = hc.Problem(hc.Minimize(objective), constraints)
    assert problem.solve() == pytest.approx(RICCATI, rel=1e-7)
    assert problem.status == "optimal"
    assert "proven convex" in problem.solution.method


def test_the_language() -> None:
    """The same model as text, with sums over indices, and bounds on the gain that do not bind."""
    text = f"""
    param n, m
    param A[n,n], B[n,m]
    var P[n,n] symmetric in psd(1e-4, 1e4)
    var K[m,n] in [-100, 100]
    let F[i in 1..n, j in 1..n] = A[i,j] + sum(B[i,a] * K[a,j] for a in 1..m)
    minimize trace(P) + sum(K[a,i] * P[i,j] * K[a,j] for a in 1..m, i in 1..n, j in 1..n)
    subject to
        lyapunov: F @ P + P @ F.T + eye({N}) == 0
    """
    problem = hc.parse(text, {"n": N, "m": M, "A": A, "B": B})
    reference = np.trace(scipy.linalg.solve_continuous_are(A, B, np.eye(N), np.eye(M)))
    assert problem.solve() == pytest.approx(reference, rel=1e-7)
    assert problem.status == "optimal"
    analysis = problem.analyze(samples=None)
    assert analysis.verdict == "proven"
    assert analysis.coordinates == {"P": "P", "Y": "K @ P"}
    assert "matrix_frac" in analysis.model
    assert any("bounds of K" in each for each in analysis.conditions)


def test_bounds_on_the_gain_that_bind_are_not_claimed() -> None:
    """The model in (P, K P) has lost them: its bound is one, and its point is none."""
    P = hc.Variable((2, 2), name="P", PSD=(1e-4, 1e4))
    K = hc.Variable((1, 2), name="K", bounds=(-0.05, 0.05))
    stable, pushed = A[:2, :2] - 3 * np.eye(2), B[:2, :1]
    closed = stable + pushed @ K
    rows = [closed @ P + P @ closed.T + 20 * np.eye(2) == 0]
    problem = hc.Problem(hc.Minimize(hc.trace(P) + hc.trace(K @ P @ K.T)), rows)
    value = problem.solve()
    one, two = np.eye(1), np.eye(2)
    free = 20 * np.trace(scipy.linalg.solve_continuous_are(stable, pushed, two, one))
    assert value > free * (1 + 1e-6)
    assert problem.status != "optimal"
    assert np.abs(K.value).max() <= 0.05 + 1e-6


def test_cross_terms_and_caps() -> None:
    """Costs of products of states and inputs, and caps on energies of single inputs."""
    P, K = variables()
    mixed = hc.trace((Q + CROSS.T @ K + K.T @ CROSS + K.T @ R @ K) @ P)
    reference = np.trace(scipy.linalg.solve_continuous_are(A, B, Q, R, s=CROSS.T) @ W)
    problem = hc.Problem(hc.Minimize(mixed), [loop(P, K)])
    assert problem.solve() == pytest.approx(reference, rel=1e-7)
    assert problem.status == "optimal"
    energies = hc.diag(K @ P @ K.T)
    capped = hc.Problem(hc.Minimize(hc.trace(P)), [loop(P, K), energies <= 3.0])
    assert capped.is_hidden_convex()
    held = hc.Problem(hc.Minimize(hc.trace(P)), [loop(P, K), K @ P @ K.T << 3.0 * np.eye(M)])
    assert held.is_hidden_convex()


DISCRETE_ROWS: dict[str, Callable[[Any, Any, Any], list[Any]]] = {
    "with a slack": lambda P, F, S: [F @ P @ F.T + W + S == P],
    "by an inequality": lambda P, F, S: [P >> F @ P @ F.T + W],
    "by an equality": lambda P, F, S: [F @ P @ F.T + W == P],
}


@pytest.mark.parametrize("rows", DISCRETE_ROWS)
def test_discrete_time(rows: str) -> None:
    """The covariance of the next state as Schur's complement."""
    P, K = hc.Variable((N, N), name="P", PSD=True), hc.Variable((M, N), name="K")
    slack = hc.Variable((N, N), name="S", PSD=True)
    constraints = DISCRETE_ROWS[rows](P, A + B @ K, slack)
    problem = hc.Problem(hc.Minimize(cost(P, K)), constraints)
    assert problem.solve() == pytest.approx(DISCRETE, rel=1e-6)
    assert problem.status == "optimal"
    assert np.abs(np.linalg.eigvals(A + B @ K.value)).max() < 1


def test_an_equality_that_must_stay_one_is_not_relaxed() -> None:
    """With P[0,0] >= v the inequality would have a lower minimum."""
    P, K = hc.Variable((N, N), name="P", PSD=True), hc.Variable((M, N), name="K")
    closed = A + B @ K
    rows = [closed @ P @ closed.T + W == P, P[0, 0] >= 2 * DISCRETE]
    problem = hc.Problem(hc.Minimize(cost(P, K)), rows)
    assert Forms(problem.model).discovery.substitution is None


@pytest.mark.parametrize("atom", [hc.lyap, hc.dlyap])
def test_the_cost_as_a_function_of_the_gain(atom: Any) -> None:
    """lyap and dlyap are cut: P is a variable, with its equation."""
    K = hc.Variable((M, N), name="K", start=np.zeros((M, N)))
    plant = A / 4 - (1.5 * np.eye(N) if atom is hc.lyap else 0.0)
    solver = "continuous" if atom is hc.lyap else "discrete"
    are = getattr(scipy.linalg, f"solve_{solver}_are")
    problem = hc.Problem(hc.Minimize(cost(atom(plant + B @ K, W), K)))
    assert problem.solve() == pytest.approx(np.trace(are(plant, B, Q, R)), rel=1e-7)
    assert problem.status == "optimal"
    assert "proven convex" in problem.solution.method


@pytest.mark.parametrize("atom", [hc.lyap, hc.dlyap])
def test_the_cost_to_go(atom: Any) -> None:
    """trace(X W) for X from lyap(Fᵀ, Q + Kᵀ R K) is the cost by the covariance."""
    K = hc.Variable((M, N), name="K")
    closed = (A + B @ K) if atom is hc.lyap else 0.3 * A + B @ K
    problem = hc.Problem(hc.Minimize(hc.trace(W @ atom(closed.T, Q + K.T @ R @ K))))
    riccati = scipy.linalg.solve_discrete_are(0.3 * A, B, Q, R)
    expected = RICCATI if atom is hc.lyap else float(np.trace(riccati @ W))
    plant = -B.T @ scipy.linalg.solve_continuous_are(A, B, Q, R) if atom is hc.lyap else 0 * B.T
    K.value = 2 * plant
    assert problem.solve() == pytest.approx(expected, rel=1e-7)
    assert problem.status == "optimal"


def test_a_gain_without_cost_needs_bounds_for_a_certificate() -> None:
    """What K P may be follows from bounds of both."""
    P, K = hc.Variable((N, N), name="P", PSD=(1, 100)), hc.Variable((M, N), name="K")
    closed = A + B @ K
    rows = [closed @ P + P @ closed.T << -np.eye(N), K <= 50, K >= -50]
    problem = hc.Problem(hc.Minimize(hc.trace(P)), rows)
    problem.solve()
    assert problem.status == "optimal"
    assert problem.solution.gap <= 1e-5 * problem.value


def test_a_decentralised_gain_is_a_near_miss() -> None:
    """Zeros of K are not affine in (P, K P), and the analysis says so."""
    P, K = variables()
    problem = hc.Problem(hc.Minimize(cost(P, K)), [loop(P, K), K[0, 1] == 0])
    discovery = Forms(problem.model).discovery
    assert discovery.substitution is None
    assert discovery.near_misses == ("product map: K[0, 1] is not affine in (P, K @ P)",)


UNSTABILISABLE: dict[str, tuple[list[list[float]], list[list[float]]]] = {
    "a state that no input reaches": ([[0.0, 1.0], [0.0, 1.0]], [[1.0], [0.0]]),
    "two inputs that do the same": ([[1.0, 0.0], [0.0, -1.0]], [[0.0, 0.0], [1.0, 1.0]]),
    "an input and a multiple of it": ([[1.0, 0.0], [0.0, -1.0]], [[0.0, 0.0], [1.0, 2.0]]),
    "a difference that no input reaches": (
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0]],
        [[1.0, 2.0], [1.0, 2.0], [0.0, 0.0]],
    ),
}


@pytest.mark.parametrize("name", UNSTABILISABLE)
def test_a_plant_that_no_gain_stabilises_is_infeasible(name: str) -> None:
    """Certified although K has no bounds, so that only weights of exactly no slope prove it."""
    plant, inputs = (np.array(each) for each in UNSTABILISABLE[name])
    states = len(plant)
    P = hc.Variable((states, states), name="P", PSD=(1e-3, 1e3))
    K = hc.Variable((inputs.shape[1], states), name="K")
    closed = plant + inputs @ K
    rows = [(closed @ P + P @ closed.T + np.eye(states) == 0).named("lyapunov")]
    problem = hc.Problem(hc.Minimize(hc.trace(P)), rows)
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution.method.startswith("auto: cone")
    assert "the set of P" in problem.solution.conflict


@pytest.mark.parametrize("size", [np.nan, np.inf, 1e200])
def test_a_gain_beyond_all_numbers_has_no_covariance(size: float) -> None:
    """Plants that no gain stabilises drive gains to infinity; the way back raises nothing."""
    gain = np.full((M, N), size)
    loop = matrix_inequalities.ClosedLoop(A, B, W)
    assert np.isnan(loop.covariance(gain)).all()
    noisy = matrix_inequalities.NoisyLoop(np.ones((N, N, N + M, N + M)), W, 0.0)
    assert np.isnan(noisy.covariance(gain)).all()


NOT_MEMBERS: dict[str, Callable[[Any, Any], Model]] = {
    "a concave cost": lambda P, K: (hc.trace(P) - hc.trace(K @ P @ K.T), [loop(P, K)]),
    "a gain alone": lambda P, K: (cost(P, K) + hc.sum(hc.square(K)), [loop(P, K)]),
    "a part of a product": lambda P, K: (cost(P, K), [loop(P, K), K[0, 0] * P[0, 0] <= 1]),
    "another order": lambda P, K: (cost(P, K) + hc.sum(K[:, :2] @ P[1:, :]), [loop(P, K)]),
    "a floor under an energy": lambda P, K: (cost(P, K), [loop(P, K), K[0] @ P @ K[0] >= 5]),
}


@pytest.mark.parametrize("name", NOT_MEMBERS)
def test_what_is_not_convex_is_not_claimed(name: str) -> None:
    """Models that look alike and are not convex in (P, K P)."""
    objective, constraints = NOT_MEMBERS[name](*variables())
    problem = hc.Problem(hc.Minimize(objective), constraints)
    assert Forms(problem.model).discovery.substitution is None


def scaled(number: float) -> Callable[[Any], Any]:
    """A rule whose sums are multiplied by a number."""
    return lambda right: (
        lambda self, *given: (lambda s: s and s.scaled(number))(right(self, *given))
    )


BROKEN: dict[str, tuple[Any, str, Callable[[Any], Any]]] = {
    "weights of Y": (product_terms.Products, "_linear", scaled(1.01)),
    "weights of fractions": (product_terms.Products, "_fractions", scaled(2.0)),
    "weights of named products": (named_products._Naming, "_of_matrix", scaled(1.01)),
    "weights in traces": (named_products._Naming, "_of_trace", scaled(1.01)),
    "the corner of a block": (
        matrix_inequalities,
        "congruence",
        lambda right: lambda *given: (lambda f: None if f is None else 1.1 * f)(right(*given)),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rewriting that is wrong by one per cent gives no proof: the numbers are compared."""
    place, attribute, change = BROKEN[name]
    P, K = hc.Variable((N, N), name="P", PSD=True), hc.Variable((M, N), name="K")
    closed = A + B @ K
    rows = [loop(P, K)] if place is not matrix_inequalities else [P >> closed @ P @ closed.T + W]
    problem = hc.Problem(hc.Minimize(cost(P, K)), rows)
    if place is product_terms.Products:  # entries are multiplied out where names fit nowhere
        monkeypatch.setattr(matrix_product, "named", lambda model: iter(()))
    elif place is named_products._Naming:  # and the other way round
        monkeypatch.setattr(matrix_product.Product, "propose", lambda self, model: iter(()))
    assert Forms(problem.model).discovery.substitution is not None
    monkeypatch.setattr(place, attribute, change(getattr(place, attribute)))
    assert Forms(problem.model).discovery.substitution is None


def test_coordinates_that_do_not_determine_the_variables_are_an_error() -> None:
    """The sum of a vector says nothing of its entries, and no map of the catalogue helps."""
    x = hc.Variable(3, name="x", bounds=(-1, 1))
    cost = hc.sum(hc.sin(3 * x) * hc.cos(x))
    problem = hc.Problem(hc.Minimize(cost), hidden=[hc.sum(x)])
    with pytest.raises(hc.ModelError, match="do not determine x"):
        problem.solve()


def test_declared_coordinates_that_the_catalogue_explains_are_proven() -> None:
    """(P, K P) and affine functions of them are the map; (P, K) is refuted as it was."""
    P, K = variables()
    rows = [loop(P, K)]
    right = hc.Problem(hc.Minimize(cost(P, K)), rows, hidden=[2 * P, K @ P + CROSS @ P])
    assert right.analyze(samples=None).verdict == "proven"
    wrong = hc.Problem(hc.Minimize(cost(P, K)), rows, hidden=[P, K])
    analysis = wrong.analyze(samples=20)
    assert analysis.verdict == "refuted"
    assert any("without the declaration" in each for each in analysis.conditions)


def test_maps_that_fit_are_explained_where_no_other_says_more() -> None:
    """A Lyapunov solution as a variable proves nothing alone; what is in its way is found when asked."""
    K = hc.Variable((M, N), name="K", bounds=(-5, 5))
    P = hc.lyap(A - 5 * np.eye(N) + B @ K, W)
    problem = hc.Problem(hc.Minimize(cost(P, K) + hc.sum(hc.sin(K))))
    found = Forms(problem.model).discovery
    assert found.near_misses == ("product map: K[0, 0] is not affine in (P, K @ P)",)
    alone = Discovery(unproven=found.unproven)
    assert [each for each in alone.near_misses if each.startswith("implicit map: objective: ")]
