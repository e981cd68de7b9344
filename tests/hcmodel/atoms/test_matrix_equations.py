"""Lyapunov equations of larger orders: solutions and derivatives are those of the linear system."""

from __future__ import annotations

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.atoms import matrix_equations
from hcmodel.engines.registry import compile_stack
from hcmodel.expressions.layout import Layout

ATOMS = {"lyap": hc.lyap, "dlyap": hc.dlyap}


def stable(order: int, name: str) -> np.ndarray:
    matrix = np.random.default_rng(order).normal(size=(order, order))
    if name == "lyap":
        return matrix - (np.linalg.eigvals(matrix).real.max() + 0.5) * np.eye(order)
    return 0.8 * matrix / np.abs(np.linalg.eigvals(matrix)).max()


@pytest.mark.parametrize("name", ATOMS)
def test_the_solution_satisfies_the_equation(name) -> None:
    order = matrix_equations.LARGEST_SYSTEM + 5
    A = stable(order, name)
    Q = np.random.default_rng(1).normal(size=(order, order))
    x = hc.Variable((order, order), name="x")
    X = ATOMS[name](x, Q)
    x.value = A
    left = A @ X.value + X.value @ A.T + Q if name == "lyap" else A @ X.value @ A.T + Q - X.value
    assert np.max(np.abs(left)) <= 1e-10 * np.max(np.abs(X.value))


@pytest.mark.parametrize("name", ATOMS)
def test_derivatives_are_those_of_the_linear_system(name, monkeypatch) -> None:
    x, y = hc.Variable((3, 3), name="x"), hc.Variable((3, 3), name="y")
    generator = np.random.default_rng(2)
    root = hc.trace(generator.normal(size=(3, 3)) @ ATOMS[name](x, y @ y.T))
    point = np.concatenate([stable(3, name).ravel(), generator.normal(size=9)])
    found = []
    for largest in (3, 2):  # as one linear system, and by the Schur form
        monkeypatch.setattr(matrix_equations, "LARGEST_SYSTEM", largest)
        stack = compile_stack([root], Layout([x, y]), 1, engine="autograd")
        forward = stack.evaluate(point, "objective")
        found.append((forward.values, forward.jacobian(), stack.hessian(point, np.ones(1))))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9 * np.max(np.abs(one)))


def test_an_equation_without_a_solution_is_not_solved() -> None:
    """The eigenvalues 1 and −1 of the matrix add up to 0: then X is not determined."""
    A = np.diag(np.r_[1.0, -np.ones(matrix_equations.LARGEST_SYSTEM)])
    with matrix_equations.formally(), pytest.raises(np.linalg.LinAlgError):
        matrix_equations.lyap.function(np, A, np.eye(len(A)))
    unknown = np.full_like(A, np.nan)
    assert np.isnan(matrix_equations._continuous.function(unknown, A)).all()


def test_regulators_of_large_order_need_no_kronecker_products(monkeypatch) -> None:
    """The gradient of J(K) by an adjoint equation, against differences."""
    order, generator = 12, np.random.default_rng(3)
    A, B = stable(order, "lyap"), generator.normal(size=(order, 2))
    monkeypatch.setattr(np, "kron", None)
    K = hc.Variable((2, order), name="K")
    P = hc.lyap(A + B @ K, np.eye(order))
    stack = compile_stack([hc.trace((np.eye(order) + K.T @ K) @ P)], Layout([K]), 1)

    def cost(gain: np.ndarray) -> float:
        return float(stack.evaluate(gain, "objective").values[0])

    gain, along = np.zeros(2 * order), generator.normal(size=2 * order)
    slope = np.asarray(stack.evaluate(gain, "objective").jacobian()).ravel() @ along
    length = 1e-5
    difference = (cost(gain + length * along) - cost(gain - length * along)) / (2 * length)
    assert slope == pytest.approx(difference, rel=1e-6)
