"""Matrix expressions as sums of products of variables: what is read has the values of the expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import hcmodel as hc
from hcmodel.expressions.graph import values_at
from hcmodel.facts.matrix_products import Letter, MatrixSum, read

N, M = 3, 2
GENERATOR = np.random.default_rng(0)
A, B, C = (GENERATOR.normal(size=shape) for shape in ((N, N), (N, M), (M, M)))
P = hc.Variable((N, N), name="P", PSD=True)
K = hc.Variable((M, N), name="K")
g = hc.Variable(name="g")
F = A + B @ K

READ: dict[str, Any] = {
    "a closed loop": F @ P @ F.T,
    "a difference with numbers": 2 * (P - np.eye(N)) / 4 - (F @ P).T,
    "a congruence": F @ P @ F.T - P,
    "sparse numbers": scipy.sparse.csr_array(A) @ P @ scipy.sparse.csr_array(A).T,
    "einsum": hc.einsum("ij,kj->ik", P, F),
    "blocks": hc.bmat([[P, (K @ P).T], [K @ P, g * C]]),
    "columns side by side": hc.hstack([P, (K @ P).T, B]),
    "some rows": (F @ P)[1:, [2, 0]],
    "one row": F[[1]] @ P,
    "a trace": hc.trace((np.eye(N) + K.T @ C @ K) @ P) - 3 * g + 1,
    "an entry": (K @ P @ K.T)[0, 1] + P[2, 2],
    "a matrix of numbers": hc.vstack([A, 0 * A]) + hc.vstack([P, A]),
}

NOT_READ: dict[str, Any] = {
    "an inverse": hc.inv(P) @ A,
    "a number in every entry": P + g,
    "products entry by entry": P * P,
    "a function": hc.exp(K),
    "a vector": K @ np.ones(N),
    "entries in another order": hc.reshape(K, (N, M)),
    "a product of numbers": g * hc.trace(P) * np.eye(N),
    "rows that are mixed": hc.diag(hc.diag(P)),
}


def found(expression: Any) -> tuple[hc.Problem, list[MatrixSum] | None]:
    rows = [expression <= 0] if expression.shape else []
    objective = hc.sum(P) * 0 if expression.shape else expression
    problem = hc.Problem(hc.Minimize(objective), rows)
    graph = problem.model.graph
    place = graph.roots[1 if expression.shape else 0]
    return problem, read(graph._replace(roots=(place,)))


def value(root: MatrixSum, point: dict[Any, np.ndarray]) -> np.ndarray:
    def of(letter: Letter) -> np.ndarray:
        own = np.atleast_2d(point[letter.variable])
        return own.T if letter.transposed else own

    total = np.array(root.constant, dtype=float)
    for product in root.products:
        matrix = None
        for letter, after in zip((None, *product.letters), product.matrices, strict=True):
            for each in (None if letter is None else of(letter), after):
                if each is not None:
                    matrix = each if matrix is None else matrix @ each
        assert matrix is not None
        total = total + (matrix if root.shape else np.trace(matrix))
    return total


@pytest.mark.parametrize("name", READ)
def test_what_is_read_has_the_values_of_the_expression(name: str) -> None:
    expression = READ[name]
    problem, roots = found(expression)
    assert roots is not None
    layout = problem.model.layout
    generator = np.random.default_rng(1)
    for _ in range(3):
        point = {each: generator.normal(size=each.shape) for each in problem.model.variables}
        for each in point:
            if each.set.is_symmetric:
                point[each] = point[each] + point[each].T
        vector = layout.pack([point[each] for each in problem.model.variables])
        expected = values_at(layout, vector, [expression])[0]
        np.testing.assert_allclose(value(roots[0], point), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", NOT_READ)
def test_what_is_no_sum_of_products_is_not_read(name: str) -> None:
    assert found(NOT_READ[name])[1] is None


def test_long_sums_are_left_to_the_entries() -> None:
    total: Callable[[int], Any] = lambda count: sum(  # noqa: E731
        (np.diag(np.arange(float(N)) + k) @ P for k in range(count)), np.zeros((N, N))
    )
    assert found(total(64))[1] is not None
    assert found(total(65))[1] is None
