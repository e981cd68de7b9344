"""`P >> Q` and `P << Q`: values, duals and messages, in Python and in the language."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import hcmodel as hc
from hcmodel import grammar
from hcmodel.report.show import problem_latex

EXAMPLES = Path(__file__).parents[3] / "examples"
Q = np.array([[2.0, 1.0], [1.0, 3.0]])
SIDE = np.array([[0.0], [-1.5]])
VALUES, VECTORS = np.linalg.eigh(Q)
TOP = np.outer(VECTORS[:, 1], VECTORS[:, 1])  # the multiplier of λ I >> Q, by its stationarity


def largest_eigenvalue() -> tuple[hc.Problem, hc.Constraint]:
    t = hc.Variable(name="t")
    cap = (t * np.eye(2) >> Q).named("cap")
    return hc.Problem(hc.Minimize(t), [cap]), cap


@pytest.mark.parametrize("method", ["auto", "cone", "hidden-newton", "prox-linear"])
def test_the_least_bound_of_a_matrix_is_its_largest_eigenvalue(method: str) -> None:
    problem, cap = largest_eigenvalue()
    assert problem.solve(method) == pytest.approx(VALUES[1], rel=1e-7)
    assert problem.status in ("optimal", "locally_optimal")
    np.testing.assert_allclose(cap.dual_value, TOP, atol=1e-6)
    assert cap.violation() <= 1e-7
    assert list(problem.solution.point) == ["t"]


def test_what_is_turned_has_the_same_multiplier() -> None:
    t = hc.Variable(name="t")
    for cap in (Q << t * np.eye(2), Q - t * np.eye(2) << 0, 0 << t * np.eye(2) - Q):
        problem = hc.Problem(hc.Minimize(t), [cap])
        assert problem.solve() == pytest.approx(VALUES[1], rel=1e-7)
        np.testing.assert_allclose(cap.dual_value, TOP, atol=1e-6)
    smallest = Q - t * np.eye(2) >> 0
    assert hc.Problem(hc.Maximize(t), [smallest]).solve() == pytest.approx(VALUES[0], rel=1e-7)
    np.testing.assert_allclose(smallest.dual_value, np.eye(2) - TOP, atol=1e-6)


def test_a_multiplier_is_the_slope_of_the_value() -> None:
    P = hc.Variable((2, 2), name="P", symmetric=True)
    level = hc.Parameter(name="level", value=1.0)
    cap = P >> level * Q
    problem = hc.Problem(hc.Minimize(hc.trace(P @ P)), [cap])
    values = []
    for level.value in (1.0, 1.0 + 1e-4):
        values.append(problem.solve(tol=1e-9))
    slope = (values[1] - values[0]) / 1e-4
    assert np.sum(cap.dual_value * Q) == pytest.approx(slope, rel=1e-3)


def test_contradicting_inequalities_are_named_as_wholes() -> None:
    P = hc.Variable((2, 2), name="P", symmetric=True)
    rows = [(P >> Q).named("above"), (P << 0).named("below"), hc.trace(P) <= 9]
    problem = hc.Problem(hc.Minimize(hc.trace(P)), rows)
    problem.solve()
    assert problem.status == "infeasible"
    assert set(problem.solution.conflict) == {"above", "below"}


def test_the_difference_must_be_concave() -> None:
    P = hc.Variable((2, 2), name="P", symmetric=True)
    assert not hc.Problem(hc.Minimize(hc.trace(P)), [P @ P >> Q, P >> 0]).forms().hidden()
    assert hc.Problem(hc.Minimize(hc.trace(P)), [P @ P << Q, P >> 0]).forms().hidden()


def test_operators_take_arrays_on_both_sides() -> None:
    P = hc.Variable((2, 2), name="P", symmetric=True)
    for constraint, text in (
        (Q >> P, "[[2., 1.], [1., 3.]] >> P"),
        (Q << P, "[[2., 1.], [1., 3.]] << P"),
        (0 >> P, "0 >> P"),
        (scipy.sparse.csr_array(Q) >> P, "[2×2 sparse, 4 numbers] >> P"),
    ):
        assert str(constraint) == text
    P.value = np.diag([-1.0, 2.0])
    assert (P >> 0).violation() == pytest.approx(1.0)
    assert (P << 0).violation() == pytest.approx(2.0)
    assert (P << 3 * np.eye(2)).violation() == 0.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda P, t, X: P >> 1, "multiply the number by the identity"),
        (lambda P, t, X: P >> t, "multiply the number by the identity"),
        (lambda P, t, X: P << np.ones(2), r"not shapes \(2, 2\) and \(2,\).*write <= or >="),
        (lambda P, t, X: t >> 0, "square symmetric matrices"),
        (lambda P, t, X: P >> np.eye(3), "do not broadcast in '>>'"),
        (lambda P, t, X: hc.Problem(hc.Minimize(t), [X >> 0]), "declare the variables with symm"),
        (
            lambda P, t, X: hc.Problem(hc.Minimize(t), [P << [[1, 2], [0, 1]]]),
            "not known to be symm",
        ),
    ],
)
def test_wrong_sides_are_explained(make, message: str) -> None:
    P = hc.Variable((2, 2), name="P", symmetric=True)
    with pytest.raises(hc.ModelError, match=message):
        make(P, hc.Variable(name="t"), hc.Variable((2, 2), name="X"))


def test_data_that_are_no_longer_symmetric_are_an_error() -> None:
    P = hc.Variable((2, 2), name="P", symmetric=True)
    data = hc.Parameter((2, 2), name="data", value=Q)
    problem = hc.Problem(hc.Minimize(hc.trace(P)), [P >> data])
    assert problem.solve() == pytest.approx(5.0)
    data.value = np.array([[1.0, 2.0], [0.0, 1.0]])
    with pytest.raises(hc.ModelError, match="not known to be symmetric"):
        problem.solve()


# ---- blocks


def blocks() -> dict[str, tuple[Any, bool]]:
    """Matrices made of blocks, and whether they are symmetric."""
    x, y, z = (hc.Variable(name=name) for name in "xyz")
    v = hc.Variable(2, name="v")
    S, V = hc.Variable((2, 2), name="S", symmetric=True), hc.Variable((2, 3), name="V")
    zeros = np.zeros((2, 3))
    return {
        "numbers": (hc.bmat([[x, y], [y, z]]), True),
        "other numbers": (hc.bmat([[x, y], [z, y]]), False),
        "a matrix and its transpose": (hc.bmat([[S, V], [V.T, np.eye(3)]]), True),
        "the transpose with another sign": (hc.bmat([[S, V], [-V.T, np.eye(3)]]), False),
        "a multiple on both sides": (hc.bmat([[S, 2 * V], [2 * V.T, x * np.eye(3)]]), True),
        "zeros": (hc.bmat([[S, zeros], [zeros.T, np.eye(3)]]), True),
        "zeros on one side": (hc.bmat([[S, V], [zeros.T, np.eye(3)]]), False),
        "blocks in another order": (hc.bmat([[V, S], [np.eye(3), V.T]]), False),
        "a diagonal of a vector": (hc.bmat([[hc.diag(v), V], [V.T, np.eye(3)]]), True),
        "concatenated": (
            hc.concatenate(
                [hc.concatenate([S, V], axis=1), hc.concatenate([V.T, np.eye(3)], axis=1)]
            ),
            True,
        ),
        "rows of vectors": (hc.vstack([hc.hstack([x, 1.0]), hc.hstack([1.0, y])]), True),
        "vectors as rows": (hc.vstack([v, v]), False),
        "a number that varies between": (x * S @ Q @ S + Q.T @ (S / y) + S @ Q / y, True),
        "on both sides of a product": ((x * S) @ Q @ (S * y) + (S * y) @ Q @ (x * S), True),
        "only on one side": (hc.bmat([[S, x * S @ SIDE], [SIDE.T @ S, np.eye(1)]]), False),
        "different numbers": (hc.bmat([[S, x * S @ SIDE], [y * SIDE.T @ S, np.eye(1)]]), False),
        "a sign in data": (hc.bmat([[S, -S @ SIDE], [-SIDE.T @ S, np.eye(1)]]), True),
        "a sign in data of one side": (hc.bmat([[S, S @ SIDE], [-SIDE.T @ S, np.eye(1)]]), False),
    }


@pytest.mark.parametrize("name", blocks())
def test_blocks_are_known_to_be_symmetric_or_not(name: str) -> None:
    matrix, symmetric = blocks()[name]
    if symmetric:
        hc.Problem(hc.Minimize(hc.trace(matrix)), [matrix >> 0])
        return
    with pytest.raises(hc.ModelError, match="not known to be symmetric"):
        hc.Problem(hc.Minimize(hc.trace(matrix)), [matrix >> 0])


def test_a_block_inequality_is_the_schur_complement() -> None:
    """[[t, a'], [a, A]] ⪰ 0 with A ≻ 0 says t >= a' A⁻¹ a."""
    t = hc.Variable((1, 1), name="t")
    A, a = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[1.0], [-1.0]])
    problem = hc.Problem(hc.Minimize(hc.trace(t)), [hc.bmat([[t, a.T], [a, A]]) >> 0])
    assert problem.solve() == pytest.approx(float((a.T @ np.linalg.solve(A, a)).item()), rel=1e-6)
    assert problem.status == "optimal"


# ---- the language

TEXT = """\
param Q[2,2] = [[2, 1], [1, 3]]
var P[2,2] symmetric, t

minimize trace(P) + t

subject to
    cap: P >> Q
    range: 0 << t * eye(2) << 9 * eye(2)
    Q << t * eye(2)
"""


def test_the_language_has_the_same_operators() -> None:
    problem = hc.parse(TEXT)
    expected = 5.0 + VALUES[1]
    assert problem.solve() == pytest.approx(expected, rel=1e-7)
    assert list(problem.solution.duals) == ["cap", "range.lower", "range.upper", "c3"]
    json.dumps(problem.solution.to_json())
    assert grammar.format_model(TEXT.replace(" >> ", ">>").replace(" << ", "<<")) == TEXT
    built = hc.Problem(problem.objective, problem.constraints)
    assert hc.parse(built.to_hc()).solve() == pytest.approx(expected, rel=1e-7)
    assert pickle.loads(pickle.dumps(built)).solve() == pytest.approx(expected, rel=1e-7)
    assert r"P \succeq Q" in problem_latex(problem)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("X >> 0", "the difference of these is not known to be symmetric"),
        ("t >> 0", "compares symmetric matrices, or one with 0"),
        ("P >> 1", "c times the identity"),
        ("P >> [1, 2]", "square symmetric matrices, not 2"),
        ("c[i in 1..2]: P >> i * eye(2)", "cannot stand in a family"),
        ("c[i in 1..2 if i << 2]: t >= i", "compares matrices, in constraints only"),
        ("0 << P >> eye(2)", "a chain goes in one direction"),
    ],
)
def test_mistakes_in_the_language_are_explained(row: str, message: str) -> None:
    with pytest.raises(hc.HCError, match=message):
        hc.parse(
            "var P[2,2] symmetric, t, X[2,2]\n"
            f"minimize t + sum(X) + trace(P)\nsubject to\n    {row}\n"
        )


def test_a_declaration_says_how_a_variable_is_semidefinite() -> None:
    with pytest.raises(hc.HCError, match=r"in psd\(0\)"):
        hc.parse("var P[2,2] >> 0\nminimize trace(P)")


def bounded_real(order: int, inputs: int) -> hc.Problem:
    """H∞ control by state feedback: the LMI in P and K P, with P between 1e-3 I and 10 I."""
    generator = np.random.default_rng(0)
    A = generator.normal(size=(order, order)) / np.sqrt(order)
    B = generator.normal(size=(order, inputs))
    noise, outputs = generator.normal(size=(order, 2)), order + inputs
    P = hc.Variable((order, order), name="P", PSD=(1e-3, 10))
    K, g = hc.Variable((inputs, order), name="K"), hc.Variable(name="g", nonneg=True)
    moved = (A + B @ K) @ P
    seen = hc.vstack([P, K @ P])
    blocks = [
        [moved + moved.T, noise, seen.T],
        [noise.T, -g * np.eye(2), np.zeros((2, outputs))],
        [seen, np.zeros((outputs, 2)), -g * np.eye(outputs)],
    ]
    return hc.Problem(hc.Minimize(g), [hc.bmat(blocks) << 0])


def test_the_level_bounds_the_gain_of_a_bounded_real_lemma() -> None:
    """The dual of one cone program shows the optimum: no reach is assumed and nothing is searched."""
    problem = bounded_real(6, 2)
    problem.solve()
    certificate = problem.solution.certificate
    assert problem.status == "optimal"
    assert problem.solution.method.startswith("auto: cone")
    assert "then" not in problem.solution.method
    assert certificate.kind == "duality"
    assert len(certificate.conditions) == 1  # the proof, for gains of any size


def test_a_point_that_is_not_exact_enough_is_found_with_slacks() -> None:
    """Without slacks the point of this program violates Riccati's inequality by 4e-6."""
    problem = hc.load(EXAMPLES / "riccati.hc")
    problem.solve()
    assert problem.status == "optimal"
    assert "with slacks of matrix inequalities" in problem.solution.method
    exact = hc.load(EXAMPLES / "riccati.hc")
    exact.solve("cone", options={"slacks": True})
    assert exact.status == "optimal"
    assert "then" not in exact.solution.method
    assert exact.value == pytest.approx(problem.value, rel=1e-8)


def test_rows_that_contradict_each_other_by_less_than_the_tolerance() -> None:
    """C₀₀ = 0 and C₀₁ = 1 for a semidefinite C: C₀₀ may be as small as C₁₁ is large."""
    C = hc.Variable((3, 3), name="C", PSD=True)
    problem = hc.Problem(hc.Minimize(C[0, 0]), [C[0, 1] == 1, C[0, 0] == 0])
    problem.solve()
    assert problem.status == "locally_optimal"
    assert problem.solution is not None
    assert "by less than the tolerance" in problem.solution.message
