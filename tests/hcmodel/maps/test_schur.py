"""Matrix inequalities that are convex by Schur's complement, proven however they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.maps import schur
from hcmodel.maps.matrix_algebra.matrix_squares import Terms, squares
from hcmodel.reductions import discovery
from hcmodel.reductions.forms import Forms

Row = Callable[[Any, Any, Any], Any]

RNG = np.random.default_rng(3)
A, B, TARGET = RNG.normal(size=(2, 2)), RNG.normal(size=(2, 3)), RNG.normal(size=(2, 3))
MIX = RNG.normal(size=(3, 3))
ROOT = RNG.normal(size=(2, 2))
WEIGHT = ROOT @ ROOT.T
SEMIDEFINITE = np.outer(ROOT[0], ROOT[0])
SWAP = np.array([[0.0, 1.0], [1.0, 0.0]])


def variables(definite: Any = True) -> tuple[hc.Variable, hc.Variable, hc.Variable]:
    return (
        hc.Variable((2, 3), name="Y"),
        hc.Variable((3, 3), name="Z", symmetric=True),
        hc.Variable((2, 2), name="P", PSD=definite),
    )


def is_proven(*rows: Any, objective: Any = 0.0) -> bool:
    model = hc.Problem(hc.Minimize(objective), list(rows)).model
    return Forms(model).discovery.substitution is not None


CONVEX: dict[str, Row] = {
    "square": lambda Y, Z, P: Y.T @ Y << Z,
    "turned": lambda Y, Z, P: Z >> Y.T @ Y,
    "with a minus sign": lambda Y, Z, P: -(Y.T @ Y) >> -Z,
    "beside affine terms": lambda Y, Z, P: (
        Z - Y.T @ Y - MIX.T @ Y.T @ B - B.T @ Y @ MIX >> -np.eye(3)
    ),
    "affine inside": lambda Y, Z, P: (A @ Y + B).T @ WEIGHT @ (A @ Y + B) << Z,
    "of low rank": lambda Y, Z, P: Y.T @ SEMIDEFINITE @ Y << Z,
    "columns mixed": lambda Y, Z, P: (Y @ MIX).T @ WEIGHT @ Y @ MIX << Z,
    "rows": lambda Y, Z, P: Y @ Y.T << P,
    "split": lambda Y, Z, P: 0.5 * Y.T @ Y + 2 * Z << 3 * Z - Y.T @ WEIGHT @ Y / 2,
    "entry by entry": lambda Y, Z, P: hc.einsum("ai,aj->ij", Y, Y) << Z,
    "outer products": lambda Y, Z, P: hc.outer(Y[0], Y[0]) + hc.outer(Y[1], Y[1]) << Z,
    "symmetric squares": lambda Y, Z, P: Z @ MIX @ MIX.T @ Z + Y.T @ Y << np.eye(3),
    "fraction": lambda Y, Z, P: Y.T @ hc.inv(P) @ Y << Z,
    "fraction, scaled": lambda Y, Z, P: (A @ Y + B).T @ hc.inv(2 * P + WEIGHT) @ (A @ Y + B) << Z,
    "fraction by solving": lambda Y, Z, P: Z - hc.solve(P, Y).T @ Y >> 0,
    "two fractions": lambda Y, Z, P: Y.T @ hc.inv(P) @ Y + B.T @ hc.inv(P) @ B << Z,
    "fraction and square": lambda Y, Z, P: Z >> Y.T @ hc.inv(P) @ Y + MIX @ Y.T @ Y @ MIX.T,
    "inverse": lambda Y, Z, P: A.T @ hc.inv(P) @ A << np.eye(2),
    "over a number": lambda Y, Z, P: Y.T @ Y / (1 + hc.trace(P)) << Z,
}


@pytest.mark.parametrize("name", CONVEX)
def test_convex_rows_are_proven_however_they_are_written(name: str) -> None:
    Y, Z, P = variables()
    assert is_proven(CONVEX[name](Y, Z, P), objective=hc.trace(Z) + hc.trace(P))


NOT_CONVEX: dict[str, Row] = {
    "the other direction": lambda Y, Z, P: Y.T @ Y >> Z,
    "indefinite weight": lambda Y, Z, P: Y.T @ SWAP @ Y << Z,
    "indefinite sum": lambda Y, Z, P: Y.T @ Y - 2 * Y.T @ SEMIDEFINITE @ Y << Z,
    "fraction, other direction": lambda Y, Z, P: Y.T @ hc.inv(P) @ Y >> Z,
    "product of two": lambda Y, Z, P: Y.T @ B + B.T @ Y + Z @ Z << Z @ Y.T @ B + B.T @ Y @ Z,
    "multiplied by the matrix": lambda Y, Z, P: Y.T @ P @ Y << Z,
    "entries squared": lambda Y, Z, P: P * P << np.eye(2) * hc.trace(P),
}


@pytest.mark.parametrize("name", NOT_CONVEX)
def test_rows_that_are_not_convex_are_not_claimed(name: str) -> None:
    Y, Z, P = variables()
    objective = hc.trace(Z) + hc.trace(P) + hc.sum(Y)
    assert not is_proven(NOT_CONVEX[name](Y, Z, P), objective=objective)


def test_an_inverse_of_what_may_be_indefinite_is_not_claimed() -> None:
    """With P negative definite Yᵀ P⁻¹ Y ⪯ Z says less than the block does."""
    Y, Z, _ = variables()
    P = hc.Variable((2, 2), name="P", symmetric=True)
    assert not is_proven(Y.T @ hc.inv(P) @ Y << Z, objective=hc.trace(Z))
    assert not is_proven(Y.T @ Y / (1 + P[0, 0]) << Z, objective=hc.trace(Z))


def test_an_equality_between_squares_is_no_inequality() -> None:
    """It defines Z: what grows with Z is convex in Y, and what falls with it is not."""
    Y, Z, _ = variables()
    assert is_proven(Y.T @ Y == Z, objective=hc.trace(Z))
    assert not is_proven(Y.T @ Y == Z, objective=hc.sum(Y) - hc.trace(Z))


@pytest.mark.parametrize("name", [None, "energy"])
def test_a_failure_says_what_is_in_the_way(name: str | None) -> None:
    Y, Z, _ = variables()
    row = Y.T @ Y >> Z
    problem = hc.Problem(hc.Minimize(hc.trace(Z)), [row if name is None else row.named(name)])
    found = Forms(problem.model).discovery.near_misses
    assert any(f"schur map: the products in {name or 'c1'}" in each for each in found)


def test_the_contraction_nearest_to_a_target_and_its_multipliers() -> None:
    """Maximise ⟨C, Y⟩ over Yᵀ Y ⪯ M: the sum of the singular values of C M^½.

    Multipliers by differences of that value.
    """
    half = ROOT.T @ ROOT + np.eye(2)
    limit = hc.Parameter((2, 2), name="limit", value=half)
    Y = hc.Variable((3, 2), name="Y")
    row = Y.T @ Y << limit
    problem = hc.Problem(hc.Maximize(hc.trace(TARGET @ Y)), [row])

    def value(matrix: np.ndarray) -> float:
        return float(np.linalg.norm(TARGET.T @ np.linalg.cholesky(matrix), "nuc"))

    assert problem.solve() == pytest.approx(value(half), rel=1e-7)
    assert problem.status == "optimal"
    assert "proven" in problem.solution.method
    for direction in (np.diag([1.0, 0.0]), SWAP, np.diag([0.0, 1.0])):
        step = 1e-5 * direction
        slope = (value(half + step) - value(half - step)) / 2e-5
        assert float(np.sum(row.dual_value * direction)) == pytest.approx(slope, abs=1e-5)


def test_fractions_and_their_multipliers_against_the_closed_form() -> None:
    """Minimise trace(P) with Yᵀ P⁻¹ Y ⪯ M for a given Y: P = Y M⁻¹ Yᵀ where that is definite.

    Written with `>>` and a minus sign, so that the multiplier is that of the row as written.
    """
    matrix = MIX @ MIX.T + np.eye(3)
    P = hc.Variable((2, 2), name="P", PSD=True)
    row = -(B.T @ hc.inv(P) @ B) >> -matrix
    problem = hc.Problem(hc.Minimize(hc.trace(P)), [row])
    exact = B @ np.linalg.inv(matrix) @ B.T
    assert problem.solve() == pytest.approx(np.trace(exact), rel=1e-7)
    assert problem.status == "optimal"
    assert P.value == pytest.approx(exact, abs=1e-5)
    slope = np.linalg.inv(matrix) @ B.T @ B @ np.linalg.inv(matrix)
    assert row.dual_value == pytest.approx(slope, abs=1e-5)


def test_a_model_with_squares_and_fractions_against_cvxpy() -> None:
    cvxpy = pytest.importorskip("cvxpy")
    Y, Z, P = variables(0.1)
    rows = [
        (A @ Y + B).T @ hc.inv(P) @ (A @ Y + B) + MIX.T @ Y.T @ WEIGHT @ Y @ MIX
        << Z + Y.T @ B + B.T @ Y,
        hc.trace(P) <= 2,
        hc.sum(Y) == 1,
    ]
    problem = hc.Problem(hc.Minimize(hc.lambda_max(Z)), rows)
    problem.solve()
    y, z, p = (
        cvxpy.Variable((2, 3)),
        cvxpy.Variable((3, 3), symmetric=True),
        cvxpy.Variable((2, 2), PSD=True),
    )
    above, square = A @ y + B, np.linalg.cholesky(WEIGHT).T @ y @ MIX
    none = np.zeros((2, 2))
    whole = cvxpy.bmat(
        [
            [z + y.T @ B + B.T @ y, above.T, square.T],
            [above, p, none],
            [square, none, np.eye(2)],
        ]
    )
    limits = [whole >> 0, cvxpy.trace(p) <= 2, cvxpy.sum(y) == 1, p >> 0.1 * np.eye(2)]
    peer = cvxpy.Problem(cvxpy.Minimize(cvxpy.lambda_max(z)), limits)
    peer.solve(solver="CLARABEL")
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(peer.value, rel=1e-6)


def test_a_slack_of_the_user_is_one_and_keeps_its_least_eigenvalue() -> None:
    """Z − Yᵀ Y == S with S ⪰ 2 I and ⟨B, Y⟩ == 1: trace(Z) is 6 and the least |Y|²."""
    Y, Z, _ = variables()
    S = hc.Variable((3, 3), name="S", PSD=2.0)
    problem = hc.Problem(hc.Minimize(hc.trace(Z)), [Z - Y.T @ Y == S, hc.sum(B * Y) == 1])
    assert problem.solve() == pytest.approx(6 + 1 / np.sum(B * B), rel=1e-7)
    assert problem.status == "optimal"
    assert S.value == pytest.approx(2 * np.eye(3), abs=1e-5)


def test_a_slack_with_an_upper_bound_is_not_taken_for_one() -> None:
    Y, Z, _ = variables()
    S = hc.Variable((3, 3), name="S", PSD=(0.0, 2.0))
    assert not is_proven(Z - Y.T @ Y == S, objective=hc.trace(Z))


def test_rows_in_other_coordinates_are_found_together() -> None:
    """A posynomial in x beside a matrix square: x in logarithms, Y and Z as they are."""
    Y, Z, _ = variables()
    x = hc.Variable(2, name="x", pos=True)
    rows = [Y.T @ Y << Z, x[0] * x[1] >= 2, hc.sum(Y) == 1]
    problem = hc.Problem(hc.Minimize(hc.trace(Z) + x[0] + 3 * x[1] * x[0] ** 0.5), rows)
    assert Forms(problem.model).discovery.substitution is not None


def test_wrong_squares_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The squares are multiplied out again: weights that are off by a millionth are refused."""

    def off(terms: Terms) -> Any:
        found = squares(terms)
        return None if found is None else found * (1 + 1e-6)

    monkeypatch.setattr(schur, "squares", off)
    Y, Z, _ = variables()
    assert not is_proven(Y.T @ Y << Z, objective=hc.trace(Z))


def test_a_wrong_block_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models before and after are compared at points: a block without its last square differs."""
    right = schur.made_block

    def wrong(model: Any, row: Any, slack: Any, scale: float, rest: Any, parts: Any) -> Any:
        return right(model, row, slack, 2 * scale, rest, parts)

    monkeypatch.setattr(schur, "made_block", wrong)
    Y, Z, _ = variables()
    problem = hc.Problem(hc.Minimize(hc.trace(Z)), [Y.T @ Y << Z])
    found = discovery.discover(Forms(problem.model).bounds.after)
    assert found.substitution is None


@pytest.mark.parametrize("seed", range(6))
def test_random_sums_of_squares_are_found(seed: int) -> None:
    """Σ over r of (L_r x)(L_r x)ᵀ, dense: a sum of squares with the same values is found."""
    rng = np.random.default_rng(seed)
    order, rank = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    count = order * rank + int(rng.integers(3))
    factors = rng.normal(size=(rank, order, count))
    weights = np.einsum("rik,rjl->ijkl", factors, factors)
    places = [each.reshape(-1) for each in np.indices(weights.shape)]
    found = squares(Terms(order, count, *places, weights.reshape(-1)))
    assert found is not None
    assert len(found) == rank
    v, x = rng.normal(size=(2, order)), rng.normal(size=(2, count))
    values = [np.einsum("rik,pi,pk->pr", each, v, x) for each in (found, factors)]
    assert np.sum(values[0] ** 2, axis=1) == pytest.approx(np.sum(values[1] ** 2, axis=1))
