"""Log-log rules for differences and for matrices with positive entries, as CVXPY's DGP has them."""

from __future__ import annotations

import numpy as np
import pytest

import hcmodel as hc

B = np.array([[0.1, 0.2], [0.3, 0.15]])


def solved(objective: hc.Minimize | hc.Maximize, rows=()) -> hc.Problem:
    problem = hc.Problem(objective, list(rows))
    problem.solve()
    assert problem.status == "optimal"
    assert problem.solution.method.startswith("auto: cone")
    return problem


def test_the_perron_eigenvalue_is_minimised() -> None:
    # matrix completion, an example of CVXPY's documentation with its value
    X = hc.Variable((3, 3), name="X", pos=True)
    known = {(0, 0): 1.0, (0, 2): 1.9, (1, 1): 0.8, (2, 0): 3.2, (2, 1): 5.9}
    rows = [X[place] == value for place, value in known.items()]
    rows.append(X[0, 1] * X[1, 0] * X[1, 2] * X[2, 2] == 1)
    problem = solved(hc.Minimize(hc.pf_eigenvalue(X)), rows)
    assert problem.value == pytest.approx(4.702374203, rel=1e-7)
    assert problem.value == pytest.approx(np.abs(np.linalg.eigvals(X.value)).max(), rel=1e-9)


@pytest.mark.parametrize("inverse", [hc.eye_minus_inv, lambda A: hc.inv(np.eye(2) - A)])
def test_the_inverse_of_identity_minus_a_positive_matrix_is_log_convex(inverse) -> None:
    x = hc.Variable(2, name="x", bounds=(0.2, 2))
    cost = hc.sum(inverse(B * hc.reshape(x, (2, 1)))) + hc.sum(1 / x)
    problem = solved(hc.Minimize(cost))
    assert problem.value == pytest.approx(5.17698385, rel=1e-8)  # CVXPY's DGP
    assert list(problem.analyze(samples=None).coordinates.values()) == ["log(x)"]


def test_an_inverse_that_may_leave_the_series_is_not_log_convex() -> None:
    # for x = 4 the spectral radius is above 1, and entries of the inverse are negative
    x = hc.Variable(2, name="x", bounds=(0.2, 4))
    cost = hc.sum(hc.inv(np.eye(2) - B * hc.reshape(x, (2, 1)))) + hc.sum(1 / x)
    problem = hc.Problem(hc.Minimize(cost))
    assert problem.forms().hidden() is None
    # the atom says by its domain that the radius stays below 1
    own = hc.sum(hc.eye_minus_inv(B * hc.reshape(x, (2, 1)))) + hc.sum(1 / x)
    assert solved(hc.Minimize(own)).value == pytest.approx(5.17698385, rel=1e-8)


def test_a_resolvent_of_one_number() -> None:
    # 1/(2 - a) + 1/a is least at a = 1
    a = hc.Variable((1, 1), name="a", pos=True)
    problem = solved(hc.Minimize(hc.sum(hc.resolvent(a, 2.0)) + hc.sum(1 / a)))
    assert problem.value == pytest.approx(2.0, rel=1e-7)


def test_entries_that_are_0_stay_0() -> None:
    a = hc.Variable((1, 1), name="a", pos=True)
    zero, half = np.zeros((1, 1)), np.full((1, 1), 0.5)
    # inv(I - [0, a; 0, 1/2]) = [1, 2a; 0, 2]: least 3 + 2a + 1/a at a = 1/√2
    cost = hc.sum(hc.eye_minus_inv(hc.bmat([[zero, a], [zero, half]]))) + hc.sum(1 / a)
    assert solved(hc.Minimize(cost)).value == pytest.approx(3 + 2 * np.sqrt(2), rel=1e-7)
    # [0, a; 1/a, 1/2] has the eigenvalue (1/2 + √(1/4 + 4)) / 2 whatever a is
    cost = hc.pf_eigenvalue(hc.bmat([[zero, a], [1 / a, half]])) + hc.sum(a + 1 / a)
    expected = 2 + (0.5 + np.sqrt(4.25)) / 2
    assert solved(hc.Minimize(cost)).value == pytest.approx(expected, rel=1e-7)


def test_differences_are_log_concave_where_they_are_positive() -> None:
    z = hc.Variable(2, name="z", pos=True)
    rows = [hc.diff_pos(z[0], z[1]) >= 1, hc.one_minus_pos(z[0] / 4) >= 0.1 * z[1]]
    problem = solved(hc.Maximize(z[0] * z[1]), rows)
    # both rows hold with equality: z = (22/7, 15/7)
    np.testing.assert_allclose(z.value, [22 / 7, 15 / 7], rtol=1e-6)
    assert problem.value == pytest.approx(22 * 15 / 49, rel=1e-7)


def test_a_difference_under_a_fraction_bar() -> None:
    # 1/(1 - z) + 1/z is least at z = 1/2
    z = hc.Variable(name="z", pos=True)
    problem = solved(hc.Minimize(1 / hc.one_minus_pos(z) + 1 / z))
    assert problem.value == pytest.approx(4.0, rel=1e-8)
    assert z.value == pytest.approx(0.5, rel=1e-4)
    # a convex minuend would leave a domain that is not convex
    w = hc.Variable(name="w", bounds=(-3, 3))
    assert not hc.Problem(hc.Maximize(hc.diff_pos(w**2, 1.0))).forms().prove().proven


def test_values_outside_the_domains_are_not_finite() -> None:
    assert np.isnan(hc.diff_pos(1.0, 1.0).value)
    assert np.isnan(hc.eye_minus_inv([[1.0]]).value).all()
    assert np.isnan(hc.eye_minus_inv([[-0.1]]).value).all()
    assert np.isnan(hc.pf_eigenvalue([[1.0, -1.0], [1.0, 1.0]]).value)


def test_a_start_outside_is_explained() -> None:
    x = hc.Variable((2, 2), name="x", bounds=(0.5, 5), start=3.0)
    problem = hc.Problem(hc.Minimize(hc.sum(hc.eye_minus_inv(x))))
    with pytest.raises(hc.SolverError, match="spectral radius is"):
        problem.solve("hidden-newton")


def test_the_language_has_these_functions() -> None:
    problem = hc.parse(
        """
        var x[2] in [0.2, 2], z > 0
        param B[2,2] = [[0.1, 0.2], [0.3, 0.15]]
        minimize sum(eye_minus_inv(B * reshape(x, [2, 1]))) + sum(1/x) +
            1/one_minus_pos(z) + 1/z + pf_eigenvalue(B)
        """
    )
    problem.solve()
    expected = 5.17698385 + 4 + np.abs(np.linalg.eigvals(B)).max()
    assert problem.value == pytest.approx(expected, rel=1e-7)
