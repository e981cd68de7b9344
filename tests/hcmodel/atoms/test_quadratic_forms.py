"""Signs and curvatures of quadratic forms, by definiteness and by entries."""

from __future__ import annotations

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.atoms.rules import Sign
from hcmodel.facts.node_facts import Facts


@pytest.mark.parametrize(
    ("matrix", "value"),
    [
        (np.diag([1e13, -1.0]), -100.0),  # −1 is data, however large 1e13 is
        (np.diag([1.0, -1e-9]), -1e-7),
        (np.diag([1e13, 1.0]), 0.0),
        (np.array([[1.0, 1.0], [1.0, 1.0 - 1e-14]]), 0.0),  # semidefinite but for rounding
        (np.array([[1.0, 2.0], [2.0, 1.0]]), -200.0),
    ],
)
def test_no_small_entry_is_taken_for_rounding(matrix: np.ndarray, value: float) -> None:
    x = hc.Variable(2, name="x", bounds=(-10, 10))
    problem = hc.Problem(hc.Minimize(hc.quad_form(x, matrix)))
    found = problem.solve()
    if problem.status == "optimal":
        assert found == pytest.approx(value, rel=1e-5, abs=1e-7)
    else:
        assert problem.status == "locally_optimal"
        assert found >= value - 1e-6 * abs(value)


def test_forms_of_positive_vectors_are_proven_in_logarithms() -> None:
    """With entries of P that are positive, xᵀPx is a posynomial, which is never 0; by CVXPY's DGP."""
    x = hc.Variable(4, name="x", pos=True)
    form = hc.quad_form(x[:2], np.array([[1.0, 0.5], [0.5, 2.0]]))
    rows = [0.46 * hc.prod(x) >= form, hc.log(1.28 * hc.prod(x)) >= 0.268 * x[1] * x[0], x <= 20]
    problem = hc.Problem(hc.Maximize(1 / form), rows)
    assert problem.solve() == pytest.approx(133.66636, rel=1e-6)
    assert problem.status == "optimal"
    assert "log(x)" in problem.solution.method


def test_a_definite_matrix_makes_the_form_of_a_vector_that_is_not_0_positive() -> None:
    """P has a negative entry, so that its entries do not say it."""
    x = hc.Variable(2, name="x", bounds=(0.5, 2.0))
    y = hc.Variable(2, name="y", bounds=(-0.5, 2.0))
    matrix = np.array([[2.0, -1.0], [-1.0, 2.0]])
    facts = Facts()
    assert facts[hc.quad_form(x, matrix)].sign is Sign.POSITIVE
    assert facts[hc.quad_form(x, -matrix)].sign is Sign.NEGATIVE
    assert facts[hc.quad_form(y, matrix)].sign is Sign.NONNEGATIVE
