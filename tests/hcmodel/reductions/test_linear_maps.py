"""Matrices of linear atoms are those that columns, one after the other, would show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy

import hcmodel as hc
from hcmodel.atoms.rules import Argument
from hcmodel.facts.node_facts import Facts
from hcmodel.reductions.cone import linear_maps

MOVEMENTS: dict[str, Callable[[Any], Any]] = {
    "an entry": lambda X: X[1, 2],
    "a row": lambda X: X[-1],
    "entries twice": lambda X: X[[0, 1, 0], [2, 2, 2]],
    "transposed": lambda X: X.T,
    "reshaped": lambda X: hc.reshape(X, (9,)),
    "a diagonal with zeros around it": lambda X: hc.diag(X[0]),
    "the diagonal": hc.diag,
    "the sum": hc.sum,
    "sums of rows": lambda X: hc.sum(X, axis=1),
    "means of columns": lambda X: hc.mean(X, axis=0),
}


@pytest.mark.parametrize("name", MOVEMENTS)
def test_entries_that_are_moved(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expression = MOVEMENTS[name](hc.Variable((3, 3), name="X"))
    facts = [Argument(argument.shape) for argument in expression.args]
    expected = linear_maps._probed(expression, 0, [None])
    monkeypatch.setattr(linear_maps, "_probed", None)  # it takes a column for each entry
    found = linear_maps.coefficients(expression, 0, [None], facts)
    x = np.random.default_rng(0).normal(size=expected.shape[1])
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found @ x, expected @ x)


def test_linear_atoms_of_no_known_structure_are_probed() -> None:
    x = hc.Variable(3, name="x")
    sums = hc.cumsum(x)
    found = linear_maps.coefficients(sums, 0, [None], [Argument((3,))])
    assert found is not None
    assert found.to_scipy().toarray() == pytest.approx(np.tril(np.ones((3, 3))))
    matrix = np.array([[2.0, 1.0], [0.0, 4.0]])
    y = hc.Variable(2, name="y")
    solved = hc.solve(matrix, y)
    found = linear_maps.coefficients(solved, 1, [matrix, None], [Argument((2, 2)), Argument((2,))])
    assert found is not None
    assert found.to_scipy().toarray() == pytest.approx(np.linalg.inv(matrix))
    bent = hc.exp(x)
    assert linear_maps.coefficients(bent, 0, [None], [Argument((3,))]) is None


def test_a_power_is_linear_where_its_exponent_is_1() -> None:
    x = hc.Variable(2, name="x", pos=True)
    for exponent, expected in ((1.0, np.eye(2)), (2.0, None)):
        power = hc.Parameter(name="p", value=exponent)
        node = x**power
        facts = [Facts()[argument].argument for argument in node.args]
        found = linear_maps.coefficients(node, 0, [None, np.asarray(exponent)], facts)
        if expected is None:
            assert found is None
        else:
            assert found is not None
            assert found.to_scipy().toarray() == pytest.approx(expected)


# Subscripts, and the shapes of the arguments; one argument stands alone.
EINSUMS: dict[str, list[tuple[int, ...]]] = {
    "ij,jk->ik": [(2, 3), (3, 4)],
    "ij,kj->ik": [(2, 3), (4, 3)],
    "ij,j->i": [(2, 3), (3,)],
    "ij,i->j": [(2, 3), (2,)],
    "ii,i->i": [(3, 3), (3,)],
    "ii,ij->j": [(3, 3), (3, 2)],
    "ij,ij->": [(2, 3), (2, 3)],
    "ij,ij->ij": [(2, 3), (2, 3)],
    "i,j->ij": [(2,), (3,)],
    "i,i->": [(3,), (3,)],
    "i,->i": [(3,), ()],
    "i,j->i": [(2,), (3,)],
    "ij->ji": [(2, 3)],
    "ii->i": [(3, 3)],
    "ii->": [(3, 3)],
    "ij->j": [(2, 3)],
}


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("subscripts", EINSUMS)
def test_matrices_of_contractions(subscripts: str, place: int) -> None:
    """The matrix times the entries of an argument is what numpy makes of the argument."""
    shapes = EINSUMS[subscripts]
    generator = np.random.default_rng(place)
    values = [generator.normal(size=shape) for shape in shapes]
    own = values.pop(place % len(shapes))
    for other in values:
        other[other < -0.5] = 0.0  # entries without a weight
    operands = [*values[: place % len(shapes)], own, *values[place % len(shapes) :]]
    expected = np.einsum(subscripts, *operands)
    others: list[Any] = values or [None]
    others += [scipy.sparse.csr_array(other) for other in values if other.ndim == 2]
    for other in others:
        found = linear_maps._contraction(
            subscripts, place % len(shapes), own.shape, other, expected.shape
        )
        assert found.shape == (expected.size, own.size)
        np.testing.assert_allclose(found @ own.ravel(), expected.ravel(), atol=1e-12)


def test_a_number_in_a_contraction_is_a_weight() -> None:
    # 2 x + x² is least at −1, for each of three entries
    x = hc.Variable(3, name="x", bounds=(-2, 1))
    cost = hc.sum(hc.einsum("i,->i", x, 2.0)) + hc.sum_squares(x)
    assert hc.Problem(hc.Minimize(cost)).solve("cone") == pytest.approx(-3.0)
