"""Matrices that are affine in variables, however they are written: optimal designs of experiments.

Optima are checked by the equivalence theorems of Kiefer and Wolfowitz (1960) and Fedorov (1972): at a
D-optimal design the largest v'M⁻¹v is the number of parameters, at an A-optimal one the largest v'M⁻²v is
the trace of M⁻¹.
"""

from __future__ import annotations

import numpy as np
import pytest

import hcmodel as hc
from tests.proven import is_proven

POINTS = np.random.default_rng(1).normal(size=(6, 3))
HEADER = "param V[6,3]\nvar w[6] in simplex\n"
INFORMATION = {
    "product": "V.T @ diag(w) @ V",
    "sum": "sum(w[i]*outer(V[i,:], V[i,:]) for i in 1..6)",
    "beside the rows": "V.T @ (reshape(w, [6, 1]) * V)",
    "shifted": "V.T @ diag(w) @ V + 0*eye(3)",
}
OBJECTIVES = {
    "logdet": "maximize logdet({})",
    "log of det": "maximize log(det({}))",
    "det": "maximize det({})",
    "root of det": "maximize det({})^(1/3)",
    "trace": "minimize trace(inv({}))",
}


def solved(objective: str, information: str) -> tuple[hc.Problem, np.ndarray]:
    text = HEADER + OBJECTIVES[objective].format(INFORMATION[information])
    problem = hc.parse(text, data={"V": POINTS})
    problem.solve(tol=1e-8)
    (weights,) = problem.variables
    return problem, np.linalg.inv(POINTS.T @ np.diag(weights.value) @ POINTS)


@pytest.mark.parametrize("information", INFORMATION)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_designs_are_proven_and_optimal(objective, information):
    problem, inverse = solved(objective, information)
    assert problem.status == "optimal"
    assert "proven convex in w" in problem.solution.method
    power = inverse if objective != "trace" else inverse @ inverse
    largest = np.einsum("ij,jk,ik->i", POINTS, power, POINTS).max()
    assert largest == pytest.approx(3.0 if objective != "trace" else np.trace(inverse), rel=1e-4)


def matrix_of(values: list[np.ndarray], **bounds: object) -> hc.Problem:
    x = hc.Variable(len(values), name="x", **bounds)
    total = sum((x[i] * value for i, value in enumerate(values)), 3.0 * np.eye(2))
    return hc.Problem(hc.Minimize(hc.trace(hc.inv(total))), [hc.sum(x) <= 1])


ONE = np.diag([1.0, 0.0])
SWAP = np.array([[0.0, 1.0], [1.0, 0.0]])
TURN = np.array([[0.0, 1.0], [-1.0, 0.0]])


@pytest.mark.parametrize(
    ("values", "bounds"),
    [
        ([ONE], {"nonneg": True}),
        ([-ONE], {"bounds": (-1.0, 2.0)}),
        ([ONE, np.eye(2)], {"bounds": (-1.0, 2.0)}),
    ],
)
def test_ranges_show_that_a_matrix_is_definite(values, bounds):
    assert matrix_of(values, **bounds).is_hidden_convex() is True


@pytest.mark.parametrize(
    ("values", "bounds"),
    [
        ([ONE], {}),  # no bound below
        ([-4.0 * ONE], {"bounds": (-1.0, 4.0)}),  # indefinite at 1, where the row leaves x
        ([SWAP], {"bounds": (-9.0, 9.0)}),  # of either sign
        ([TURN], {"nonneg": True}),  # not symmetric
    ],
)
def test_other_matrices_are_not_claimed(values, bounds):
    assert not is_proven(matrix_of(values, **bounds))
