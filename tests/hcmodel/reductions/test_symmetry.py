"""Which equalities are known to be between symmetric matrices, and what becomes of their rows."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.expressions.graph import values_at
from hcmodel.expressions.leaves import Constant
from hcmodel.reductions.reduction import Origin
from hcmodel.reductions.semidefinite import Semidefinite
from hcmodel.reductions.triangle import equates_symmetric
from hcmodel.solvers.algebra.symmetric import to_vector

RNG = np.random.default_rng(0)
A, EVEN = RNG.normal(size=(3, 3)), np.array([[2.0, 1, 0], [1, 3, -1], [0, -1, 4]])
P = hc.Variable((3, 3), name="P", PSD=True)
S = hc.Variable((3, 3), name="S", symmetric=True)
Q = hc.Variable((2, 2), name="Q", symmetric=True)
X = hc.Variable((3, 3), name="X")
K = hc.Variable((2, 3), name="K")
v = hc.Variable(3, name="v")
t = hc.Variable(name="t")
B = RNG.normal(size=(3, 2))
CLOSED = A + B @ K

SYMMETRIC = {
    "a sum": P + S - 2 * EVEN,
    "a number added": P + 1,
    "a multiple": t * P / 3,
    "a pair": X + X.T,
    "a pair of a sum": (X + A) + (A + X).T,
    "a Gram matrix": K.T @ K,
    "a congruence": A @ P @ A.T,
    "brackets elsewhere": X @ (S @ X.T),
    "Lyapunov": CLOSED @ P + P @ CLOSED.T + EVEN,
    "Lyapunov multiplied out": A @ P + B @ (K @ P) + P @ CLOSED.T,
    "Stein": CLOSED @ P @ CLOSED.T + EVEN - P,
    "Riccati": A.T @ P + P @ A - P @ B @ B.T @ P + EVEN,
    "an inverse": hc.inv(P) + hc.inv(X) + hc.inv(X.T),
    "a solution": hc.lyap(X, S) + hc.dlyap(CLOSED, EVEN),
    "a diagonal": hc.diag(v) - hc.outer(v, v),
    "entry by entry": hc.exp(P) * S + P**2,
    "a Kronecker product": hc.kron(Q, EVEN[:2, :2]),
}
NOT_SYMMETRIC = {
    "a plain variable": X + P,
    "one side of a pair": CLOSED @ P,
    "the wrong pair": A @ P + P @ A,
    "an antisymmetric pair": X - X.T,
    "a product of symmetric ones": P @ S,
    "two different factors": X @ P @ K.T @ K,
    "an asymmetric constant": P + A,
    "an asymmetric right-hand side": hc.lyap(X, X),
    "a broadcast row": P + v,
    "an outer product": hc.outer(v, v + 1),
}


@pytest.mark.parametrize("name", SYMMETRIC)
def test_symmetric_expressions_are_known_to_be(name: str) -> None:
    assert equates_symmetric(SYMMETRIC[name] == 0)
    values = {Q: EVEN[:2, :2], P: EVEN, S: EVEN - np.eye(3), X: A - 5 * np.eye(3), v: np.ones(3)}
    values |= {K: np.linalg.lstsq(B, -A - 0.1 * np.eye(3), rcond=None)[0], t: np.array(2.0)}
    for variable, value in values.items():
        variable.value = value
    value = SYMMETRIC[name].value
    finite = np.nan_to_num(value)  # a solution of an unstable equation is none
    assert finite == pytest.approx(finite.T, abs=1e-9)


@pytest.mark.parametrize("name", NOT_SYMMETRIC)
def test_nothing_is_claimed_of_the_others(name: str) -> None:
    assert not equates_symmetric(NOT_SYMMETRIC[name] == 0)
    assert not equates_symmetric(NOT_SYMMETRIC[name] == P)


def test_only_the_difference_of_the_sides_has_to_be_symmetric() -> None:
    assert equates_symmetric(A @ P == -(P @ A.T))
    assert not equates_symmetric(A @ P == P @ A.T)  # antisymmetric
    assert not equates_symmetric(P <= EVEN)


def test_long_sums_are_looked_at_piece_by_piece() -> None:
    terms = [RNG.normal(size=(3, 3)) @ X for _ in range(200)]
    pairs = sum(term + term.T for term in terms)
    assert equates_symmetric(pairs == 0)
    assert equates_symmetric(sum(terms) + sum(term.T for term in terms) == 0)
    # the partner of the first term is too far away to be found: both triangles stay, which is correct
    rest = sum(term.T for term in terms[1:])
    assert not equates_symmetric(sum(terms) + rest + terms[0].T == 0)


def test_random_expressions_are_symmetric_where_this_is_claimed() -> None:
    """Whatever is claimed holds at random values; and something is claimed."""
    generator = np.random.default_rng(1)
    leaves = [P, S, X, X.T, CLOSED, Constant(A)]
    for variable in (P, S):
        half = generator.normal(size=(3, 3))
        variable.value = half @ half.T
    X.value, K.value = generator.normal(size=(3, 3)), generator.normal(size=(2, 3))
    claimed = 0
    for one, two, three in itertools.product(leaves, repeat=3):
        for expression in (one @ two + three, one @ two @ three, one @ two + (one @ two).T - three):
            if equates_symmetric(expression == 0):
                claimed += 1
                value = expression.value
                assert value == pytest.approx(value.T, abs=1e-9)
    assert claimed > 50


def lyapunov(W: hc.Parameter) -> hc.Problem:
    Y = hc.Variable((3, 3), name="Y", PSD=(1e-3, 1e3))
    stable = A - 4 * np.eye(3)
    rows = (stable @ Y + Y @ stable.T + W == 0).named("lyapunov")
    return hc.Problem(hc.Minimize(hc.trace(Y)), [rows])


def test_rows_of_one_triangle_know_their_entries() -> None:
    chain = lyapunov(hc.Parameter((3, 3), name="W", value=EVEN)).forms().written.chain
    upper = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    assert [chain.origin(row) for row in range(6)] == [Origin(0, entry) for entry in upper]


def test_a_symmetric_dual_gives_the_lagrangians_term() -> None:
    form = lyapunov(hc.Parameter((3, 3), name="W", value=EVEN)).forms().written
    multipliers = np.arange(1.0, 7.0)
    dual = form.chain.duals_back(form.domain.middle(), multipliers).rows[0]
    assert dual is not None
    difference = RNG.normal(size=(3, 3))
    difference += difference.T
    np.testing.assert_array_equal(dual, dual.T)
    assert np.sum(dual * difference) == pytest.approx(multipliers @ difference[np.triu_indices(3)])


def test_asymmetric_data_bring_the_other_triangle_back() -> None:
    W = hc.Parameter((3, 3), name="W", value=EVEN)
    problem = lyapunov(W)
    problem.solve()
    assert problem.canonical.outer.size == 6
    assert problem.status == "optimal"
    W.value = EVEN + np.array([[0.0, 0, 0], [1, 0, 0], [0, 0, 0]])
    assert problem.canonical.outer.size == 9
    problem.solve()  # the two triangles ask for different things
    assert problem.status.startswith("infeasible")
    W.value = 2 * EVEN
    problem.solve()
    assert problem.canonical.outer.size == 6
    assert problem.status == "optimal"
    assert problem.compilations == 1


def test_a_parameter_may_get_its_value_later_and_problems_still_pickle() -> None:
    W = hc.Parameter((3, 3), name="W")
    problem = lyapunov(W)
    assert problem.canonical.outer.size == 9
    W.value = EVEN
    assert problem.canonical.outer.size == 6
    again = pickle.loads(pickle.dumps(problem))
    assert again.solve() == pytest.approx(problem.solve())


def test_a_matrix_inequality_is_measured_by_its_sides() -> None:
    """Their difference is next to 0 where it holds with equality: the size of the sides counts."""
    P, R = (hc.Variable((2, 2), PSD=True, name=name) for name in "PR")
    for inequality in (P >> 2 * R, 2 * R << P):
        model = hc.Problem(hc.Minimize(hc.trace(P)), [inequality]).model
        after = Semidefinite.of(model).after
        row = after.constraints[0]
        assert row.lhs is P
        values = {P: 1e6 * np.eye(2), R: 5e5 * np.eye(2)}
        point = np.zeros(after.layout.size)
        for variable, value in values.items():
            point[after.layout.slice(variable)] = to_vector(value)
        (right,) = values_at(after.layout, point, [row.rhs])
        assert right == pytest.approx(1e6 * np.eye(2))


def test_a_matrix_that_is_compared_with_numbers_is_one_side() -> None:
    P = hc.Variable((2, 2), symmetric=True, name="P")
    for row in (P >> 0, 0 << P, P >> np.eye(2)):
        after = Semidefinite.of(hc.Problem(hc.Minimize(hc.trace(P)), [row]).model).after
        assert isinstance(after.constraints[0].rhs, hc.Variable)
