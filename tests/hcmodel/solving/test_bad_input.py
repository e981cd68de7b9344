"""Wrong declarations, starts and data: a clear error or status, and never a hang."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hcmodel as hc


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hc.Variable((2, 3), name="P", PSD=True), r"'P' .*square shape.*\(2, 3\)"),
        (lambda: hc.Variable(4, name="P", symmetric=True), r"'P' .*square shape.*\(4,\)"),
        (lambda: hc.Variable((0, 0), name="P", PSD=True), r"'P' .*n >= 1, not \(0, 0\)"),
        (lambda: hc.Variable((2, 2), name="P", PSD="a"), "PSD of variable 'P' is True, .*'a'"),
        (lambda: hc.Variable((2, 2), name="P", PSD=(1,)), r"PSD of variable 'P' .*\(1,\)"),
        (
            lambda: hc.Variable((2, 2), name="P", PSD=(None, 3)),
            r"PSD of variable 'P' .*\(None, 3\)",
        ),
        (lambda: hc.Variable((2, 2), name="P", PSD=(1, 2, 3)), r"PSD of variable 'P'"),
        (lambda: hc.Variable((2, 2), name="P", PSD=(2, 1)), r"in order; got \(2, 1\)"),
        (lambda: hc.Variable((2, 2), name="P", PSD=-1), "eigenvalue >= 0"),
        (lambda: hc.Variable((2, 2), name="P", PSD=np.inf), "PSD of variable 'P'"),
        (lambda: hc.Variable((2, 2), name="P", PSD=np.nan), "PSD of variable 'P'"),
        (
            lambda: hc.Variable(3, name="p", simplex=True, bounds=(0.4, 1)),
            "'p' is in a simplex, but its lower bounds sum to 1.2, more than 1",
        ),
        (
            lambda: hc.Variable((2, 2), name="p", simplex=True, bounds=(0, [[1, 1], [0.5, 0.4]])),
            r"row \[1\] of variable 'p' .*upper bounds sum to 0.9, less than 1",
        ),
        (
            lambda: hc.Variable(2, name="p", simplex=True, bounds=(2, 3)),
            "'p' is in a simplex, but one of its bounds leaves no number between 0 and 1",
        ),
        (
            lambda: hc.Variable(
                (2, 2), name="P", symmetric=True, bounds=([[0, 1], [0, 0]], [[1, 1], [0, 1]])
            ),
            r"'P' is symmetric, but its bounds at \[0, 1\] and \[1, 0\] leave no number",
        ),
    ],
)
def test_wrong_declarations_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(hc.ModelError, match=message):
        make()


def test_false_of_numpy_is_no_cone() -> None:
    assert hc.Variable((2, 3), PSD=np.False_).set.is_box


def test_entries_that_no_such_matrix_has_are_refused_by_name() -> None:
    P = hc.Variable((2, 2), name="P", PSD=(2, 3), bounds=(0, 1))
    with pytest.raises(hc.ModelError, match="'P' has no value: no matrix has eigenvalues between"):
        hc.Problem(hc.Minimize(hc.trace(P)))


ASYMMETRIC = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.5], [0.0, 0.2, 1.0]])


def test_an_asymmetric_start_is_refused_with_its_largest_pair() -> None:
    message = r"not symmetric.*entry \[1, 2\] is 0.5 and entry \[2, 1\] is 0.2"
    with pytest.raises(hc.DataError, match=message):
        hc.Variable((3, 3), name="P", PSD=True, start=ASYMMETRIC)
    P = hc.Variable((3, 3), name="P", symmetric=True)
    with pytest.raises(hc.DataError, match=message):
        P.value = ASYMMETRIC
    problem = hc.Problem(hc.Minimize(hc.sum(P**2)))
    with pytest.raises(hc.DataError, match=message):
        problem.solve(start={"P": ASYMMETRIC})


def test_rounding_in_a_start_is_evened_out() -> None:
    start = np.eye(3) + 1e-13 * ASYMMETRIC
    P = hc.Variable((3, 3), name="P", PSD=True, start=start)
    assert P.start is not None
    np.testing.assert_array_equal(P.start, P.start.T)


def decision_process(transition: Any) -> hc.Problem:
    policy = hc.Variable((3, 2), name="policy", simplex=True)
    step = hc.einsum("sa,sat->st", policy, transition)
    visits = 0.1 * hc.solve(np.eye(3) - 0.9 * step.T, np.full(3, 1 / 3))
    return hc.Problem(hc.Minimize(visits @ np.arange(3.0)))


def transitions() -> np.ndarray:
    return np.random.default_rng(0).dirichlet(np.ones(3), size=(3, 2))


def test_a_transition_row_that_does_not_sum_to_one_is_named() -> None:
    data = transitions()
    data[1, 0] *= 0.9
    problem = decision_process(hc.Parameter((3, 2, 3), name="T", value=data))
    with pytest.warns(hc.HCWarning, match=r"parameter 'T' .*row \[1, 0\] sums to 0.9, not 1"):
        problem.solve()
    with pytest.warns(hc.HCWarning, match=r"constant array of shape \(3, 2, 3\) .*row \[1, 0\]"):
        decision_process(data).solve()


def test_right_transitions_and_other_data_give_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decision_process(transitions()).solve()
        # no row of it is a distribution: something else
        decision_process(2 * transitions() / 3).solve()


def test_the_language_counts_the_row_from_one() -> None:
    text = (
        "param T[2,2,2], mu[2] = [0.5, 0.5]\nvar p[2,2] in simplex\n"
        "let step[s in 1..2, t in 1..2] = sum(p[s,a] * T[s,a,t] for a in 1..2)\n"
        "minimize sum(solve(eye(2) - 0.9*step.T, mu)^2)\n"
    )
    data = np.full((2, 2, 2), 0.5)
    data[1, 0, 0] = 0.6
    problem = hc.parse(text, {"T": data})
    with pytest.warns(hc.HCWarning, match=r"parameter 'T' .*row \[2, 1\] sums to 1.1"):
        problem.solve()


def test_an_unstable_start_of_the_direct_regulator_points_to_the_pair_form() -> None:
    A, B = np.array([[0.5, 1.0], [0.0, 0.3]]), np.array([[0.0], [1.0]])
    K = hc.Variable((1, 2), name="K", bounds=(-0.1, 0.1))
    P = hc.lyap(A + B @ K, np.eye(2))
    problem = hc.Problem(hc.Minimize(hc.trace((np.eye(2) + K.T @ K) @ P)))
    with pytest.raises(hc.SolverError, match=r"'lyap'.*\(P, K\)") as caught:
        problem.solve(start={K: [[0.0, 0.0]]})
    message = str(caught.value)
    assert "eigenvalues with negative real part, but the largest real part is 0.5" in message
    assert "K = [[0. 0.]]" in message


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: hc.sum(hc.log(hc.sin(x) - 3)), r"'log', sin\(x\) - 3, must be > 0, .* is -3"),
        (
            lambda x: hc.sum(1 / (hc.abs(x) - hc.maximum(x, -x))),
            "'div', .*, must be not 0, but it is 0",
        ),
        (lambda x: hc.sum((hc.sin(x) - 3) ** 0.5), r"'power', sin\(x\) - 3, must be >= 0"),
        (lambda x: hc.logdet(hc.diag(hc.sin(x) - 3)), "must be positive definite.*value is -3"),
        (
            lambda x: hc.sum(hc.inv(hc.diag(hc.abs(x) - hc.maximum(x, -x)))),
            "'inv'.* must be invertible, .*singular",
        ),
        (lambda x: hc.trace(hc.dlyap(hc.diag(x + 3), np.eye(2))), "unit circle, .*modulus is 3"),
        (lambda x: hc.exp(1000 + x[0]), "is not finite"),
    ],
)
def test_a_function_outside_its_domain_at_the_start_is_named(
    function: Callable[[hc.Variable], hc.Expression], message: str
) -> None:
    x = hc.Variable(2, name="x", bounds=(-1, 1))
    with pytest.raises(hc.SolverError, match=message):
        hc.Problem(hc.Minimize(function(x))).solve()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda x: hc.sum(hc.log(x - 3)),
            "log(x - 3) is not defined where x[0] <= 1 holds: x - 3 must be > 0",
        ),
        (lambda x: hc.sum(1 / (x * 0)), "1 / (x * 0) is not defined anywhere: x * 0 must be not 0"),
        (lambda x: hc.sum((x - 3) ** 0.5), "x - 3 must be >= 0"),
        (lambda x: hc.logdet(hc.diag(x - 3)), "diag(x - 3) must be positive definite"),
        (lambda x: hc.sum(hc.inv(hc.diag(0 * x))), "must be invertible"),
    ],
)
def test_a_function_outside_its_domain_everywhere_is_named(
    function: Callable[[hc.Variable], hc.Expression], message: str
) -> None:
    """Other starts, which were asked for in an error, do not help."""
    x = hc.Variable(2, name="x", bounds=(-1, 1))
    problem = hc.Problem(hc.Minimize(function(x)))
    problem.solve()
    assert problem.status == "infeasible"
    assert message in problem.solution.message


@pytest.mark.parametrize("largest", [1e3, np.inf])
def test_an_unstable_mode_out_of_reach_of_the_input_is_infeasible(largest: float) -> None:
    # the first state grows whatever K is, so no covariance satisfies the equation's entry (0, 0)
    A, B = np.diag([1.0, -1.0]), np.array([[0.0], [1.0]])
    P = hc.Variable((2, 2), name="P", PSD=(1e-3, largest), start=np.eye(2))
    K = hc.Variable((1, 2), name="K", bounds=(-50, 50), start=np.zeros((1, 2)))
    closed = A + B @ K
    rows = (closed @ P + P @ closed.T + np.eye(2) == 0).named("lyapunov")
    problem = hc.Problem(hc.Minimize(hc.trace((np.eye(2) + K.T @ K) @ P)), [rows])
    assert problem.solve("sbl-adals", max_calls=500) == np.inf
    assert problem.status in ("infeasible", "infeasible_inaccurate")
    assert problem.solution is not None
    assert problem.solution.conflict[0] == "lyapunov[0, 0]"
    assert set(problem.solution.conflict[1:]) <= {"the set of P"}  # P[0, 0] > 0, where it is proven
