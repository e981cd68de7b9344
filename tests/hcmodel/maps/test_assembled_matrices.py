"""Lyapunov matrices that are put together from numbers and blocks, against the same as one variable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from tests.proven import is_proven

RNG = np.random.default_rng(7)
A, B = RNG.normal(size=(3, 3)), RNG.normal(size=(3, 2))
UNIT = np.eye(3)
LEAST = 0.1


def scalars(*names: str) -> list[hc.Variable]:
    return [hc.Variable(name=name) for name in names]


def of_numbers() -> Any:
    a, b, c, d, e, f = scalars(*"abcdef")
    return hc.bmat([[a, b, c], [b, d, e], [c, e, f]])


def of_a_vector() -> Any:
    p = hc.Variable(6, name="p")
    return hc.vstack(
        [hc.hstack([p[k] for k in line]) for line in ([5, 0, 2], [0, 1, 3], [2, 3, 4])]
    )


def of_blocks() -> Any:
    first = hc.Variable((2, 2), name="first", symmetric=True)
    side, last = hc.Variable((2, 1), name="side"), hc.Variable((1, 1), name="last")
    return hc.bmat([[first, side], [side.T, last]])


def of_one_variable() -> Any:
    return hc.Variable((3, 3), name="P", symmetric=True)


MADE: dict[str, Callable[[], Any]] = {
    "numbers": of_numbers,
    "a vector": of_a_vector,
    "blocks": of_blocks,
}


def gain(parts: bool) -> Any:
    if not parts:
        return hc.Variable((2, 3), name="K")
    k = scalars(*(f"k{i}" for i in range(6)))
    return hc.bmat([k[:3], k[3:]])


def models(P: Any, K: Any) -> dict[str, hc.Problem]:
    """A cost matrix, a covariance by an inequality and by an equation, and Schur's complement."""
    F, definite = A + B @ K, P >> LEAST * UNIT
    cost = F.T @ P + P @ F + UNIT + K.T @ K << 0
    inner = F @ P + P @ F.T + UNIT
    blocks = hc.bmat([[0.9 * P - 0.1 * UNIT, F.T @ P], [P @ F, P]])
    spent = hc.trace(P) + hc.trace(K @ P @ K.T)
    return {
        "cost matrix": hc.Problem(hc.Minimize(hc.trace(P)), [definite, cost]),
        "covariance": hc.Problem(hc.Minimize(spent), [definite, inner << 0]),
        "equation": hc.Problem(hc.Minimize(spent), [inner == 0, definite]),
        "blocks": hc.Problem(hc.Minimize(hc.trace(P)), [blocks >> 0, LEAST * UNIT << P]),
    }


@pytest.mark.parametrize("kind", ["cost matrix", "covariance", "equation", "blocks"])
@pytest.mark.parametrize("made", MADE)
def test_the_optimum_is_that_of_one_variable(made: str, kind: str) -> None:
    expected = models(of_one_variable(), gain(parts=False))[kind].solve()
    problem = models(MADE[made](), gain(parts=made == "numbers"))[kind]
    assert problem.solve() == pytest.approx(expected, rel=1e-6)
    assert problem.status == "optimal"
    assert "proven convex" in problem.solution.method


@pytest.mark.parametrize("kind", ["cost matrix", "covariance"])
def test_values_are_those_of_cvxpy(kind: str) -> None:
    """In U = P⁻¹ and K U for the cost matrix, in P and K P for the covariance."""
    cvxpy = pytest.importorskip("cvxpy")
    X, Y = cvxpy.Variable((3, 3), PSD=True), cvxpy.Variable((2, 3))
    F = A @ X + B @ Y
    if kind == "cost matrix":
        above = cvxpy.vstack([X, Y])
        rows = [cvxpy.bmat([[-F - F.T, above.T], [above, np.eye(5)]]) >> 0, X << UNIT / LEAST]
        objective = cvxpy.matrix_frac(UNIT, X)
    else:
        rows = [F + F.T + UNIT << 0, X >> LEAST * UNIT]
        objective = cvxpy.trace(X) + cvxpy.matrix_frac(Y.T, X)
    expected = cvxpy.Problem(cvxpy.Minimize(objective), rows).solve(solver="CLARABEL")
    assert models(of_numbers(), gain(parts=True))[kind].solve() == pytest.approx(expected, rel=1e-6)


def test_multipliers_of_the_row_that_makes_it_definite() -> None:
    """Those of the model with one variable, where the row holds with equality in some direction."""
    duals = []
    for made in (of_one_variable, of_numbers):
        P, K = made(), gain(parts=False)
        F, row = A + B @ K, P >> LEAST * UNIT
        spent = hc.trace(P) + 10 * hc.trace(K @ P @ K.T)
        hc.Problem(hc.Minimize(spent), [row, F @ P + P @ F.T + 0.1 * UNIT << 0]).solve(tol=1e-8)
        duals.append(row.dual_value)
    assert np.abs(duals[0]).max() > 1e-3
    assert duals[1] == pytest.approx(duals[0], abs=1e-4)


def row_of(P: Any) -> list[Any]:
    K = hc.Variable((2, P.shape[0]), name="K")
    F = A[: P.shape[0], : P.shape[0]] + B[: P.shape[0]] @ K
    return [F.T @ P + P @ F << -np.eye(P.shape[0])]


def test_a_matrix_with_a_structure_is_not_claimed() -> None:
    """[[a, b], [b, a]] has an inverse of this kind, which the map does not know; nor has a, b, 2 b."""
    a, b, c = scalars(*"abc")
    for P in (hc.bmat([[a, b], [b, a]]), hc.bmat([[a, b], [b, 2 * c]]), hc.bmat([[a, 1], [1, b]])):
        problem = hc.Problem(hc.Minimize(hc.trace(P)), [P >> LEAST * np.eye(2), *row_of(P)])
        assert not is_proven(problem)


def test_a_matrix_that_may_be_indefinite_or_singular_is_not_claimed() -> None:
    a, b, c = scalars(*"abc")
    P, K = hc.bmat([[a, b], [b, c]]), hc.Variable((2, 2), name="K")
    F = A[:2, :2] + B[:2] @ K
    decay = F.T @ P + P @ F << -0.1 * P
    for least, proven in ((-1.0, False), (0.0, False), (LEAST, True)):
        problem = hc.Problem(hc.Minimize(a + c), [P >> least * np.eye(2), decay])
        assert is_proven(problem) is proven
    assert not is_proven(hc.Problem(hc.Minimize(a + c), [decay, P << np.eye(2)]))


def test_an_entry_that_is_left_is_not_claimed() -> None:
    """p has an entry more than the matrix."""
    p = hc.Variable(4, name="p")
    P = hc.bmat([[p[0], p[1]], [p[1], p[2]]])
    rows = [P >> LEAST * np.eye(2), *row_of(P)]
    assert not is_proven(hc.Problem(hc.Minimize(hc.trace(P) + p[3] ** 2), rows))


def test_bounds_of_entries_are_tested_on_the_point() -> None:
    """Bounds that hold at the optimum leave it proven; others leave it without a proof."""
    rows: list[Any]
    statuses = {}
    for least in (-10.0, 0.7):
        a, c = scalars("a", "c")
        b = hc.Variable(name="b", bounds=(least, 10.0))
        P = hc.bmat([[a, b], [b, c]])
        rows = [P >> LEAST * np.eye(2), *row_of(P)]
        problem = hc.Problem(hc.Minimize(a + c), rows)
        problem.solve(time_limit=3)
        statuses[least] = problem.status
        assert float(b.value) >= least - 1e-6
    assert statuses[-10.0] == "optimal"
    assert statuses[0.7] != "optimal"
