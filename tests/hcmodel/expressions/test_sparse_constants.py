"""scipy.sparse matrices are constants like any other, and stay sparse."""

from __future__ import annotations

import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy

import hcmodel as hc
from hcmodel.engines.registry import compile_stack
from hcmodel.expressions.layout import Layout
from hcmodel.expressions.node import Constant
from hcmodel.expressions.sparse_data import is_sparse
from hcmodel.frontend.to_hc import hc_data

FORMATS = ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"]
DENSE = np.array([[1.0, 0.0, 0.0, 2.0], [0.0, 0.0, -3.0, 0.0], [0.0, 4.0, 0.0, 0.5]])
SPARSE = scipy.sparse.csr_array(DENSE)


def leaves() -> tuple[hc.Variable, hc.Variable, hc.Variable]:
    """A vector for each side of the matrix, and a matrix of its shape, with values."""
    x, y = hc.Variable(4, name="x"), hc.Variable(3, name="y")
    entries = hc.Variable((3, 4), name="entries")
    x.value, y.value = np.array([1.0, 2.0, -1.0, 0.5]), np.array([3.0, 1.0, -2.0])
    entries.value = np.linspace(1.0, 2.0, 12).reshape(3, 4)
    return x, y, entries


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("form", FORMATS)
def test_operators_take_every_class_of_scipy_on_both_sides(form: str, kind: str) -> None:
    matrix = getattr(scipy.sparse, f"{form}_{kind}")(SPARSE)
    x, y, entries = leaves()
    pairs: list[tuple[hc.Expression, Any]] = [
        (matrix @ x, DENSE @ x.value),
        (y @ matrix, y.value @ DENSE),
        (matrix.T @ y, DENSE.T @ y.value),
        (matrix + entries, DENSE + entries.value),
        (entries + matrix, DENSE + entries.value),
        (matrix - entries, DENSE - entries.value),
        (entries - matrix, entries.value - DENSE),
        (matrix / entries, DENSE / entries.value),
        (matrix * hc.sum(x), DENSE * 2.5),
    ]
    if kind == "array":
        pairs += [(matrix * entries, DENSE * entries.value), (x * matrix, x.value * DENSE)]
    for expression, expected in pairs:
        np.testing.assert_allclose(expression.value, expected, rtol=1e-15, atol=1e-15)
    for constraint in (matrix @ x <= 1.0, matrix <= entries, entries >= matrix, matrix == entries):
        assert constraint.violation().shape == constraint.shape


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("form", FORMATS)
def test_parameters_take_every_class_of_scipy(form: str, kind: str) -> None:
    matrix = getattr(scipy.sparse, f"{form}_{kind}")(SPARSE)
    x, _, _ = leaves()
    given = hc.Parameter(DENSE.shape, name="given", value=matrix)
    np.testing.assert_allclose((given @ x).value, DENSE @ x.value, rtol=1e-15, atol=1e-15)
    given.value = 2 * matrix
    assert is_sparse(given.value)
    np.testing.assert_allclose((given @ x).value, 2 * DENSE @ x.value, rtol=1e-15, atol=1e-15)


def test_the_old_product_of_matrices_by_a_star_is_refused() -> None:
    x, _, entries = leaves()
    matrix = scipy.sparse.csr_matrix(SPARSE)
    for product in (lambda: matrix * x, lambda: entries * matrix):
        with pytest.raises(hc.ModelError, match="write F @ x"):
            product()


def test_constants_keep_merge_and_pickle_the_sparse_matrix() -> None:
    constant = Constant(scipy.sparse.coo_array(DENSE))
    assert is_sparse(constant.value)
    assert constant.shape == (3, 4)
    assert constant.merge_key() == Constant(SPARSE).merge_key()
    assert constant.merge_key() != Constant(2.0 * SPARSE).merge_key()
    x, _, _ = leaves()
    again = pickle.loads(pickle.dumps(SPARSE @ x))
    np.testing.assert_array_equal(again.value, DENSE @ x.value)
    assert str(SPARSE @ x) == "[3×4 sparse, 5 numbers] @ x"
    with pytest.raises(hc.DataError, match=r"NaN at entry \(1, 2\)"):
        Constant(scipy.sparse.csr_array(np.where(DENSE == -3.0, np.nan, DENSE)))


def test_a_large_sparse_matrix_is_never_made_dense_unasked() -> None:
    large = scipy.sparse.eye_array(20_000, format="csr")
    x = hc.Variable(20_000)
    with pytest.raises(hc.DataError, match="stay sparse in products F @ x"):
        large + x
    with pytest.raises(hc.DataError, match=r"3\.2 GB"):
        hc.exp(large)


@pytest.mark.parametrize("structured", [True, False])
@pytest.mark.parametrize("stored", ["constant", "parameter", "new value"])
def test_engines_agree_with_the_dense_model(stored: str, structured: bool) -> None:
    x, y, entries = leaves()
    matrix: Any = SPARSE
    if stored != "constant":
        matrix = hc.Parameter((3, 4), value=SPARSE if stored == "parameter" else np.ones((3, 4)))
    layout = Layout([x, y, entries])
    stacks, points = [], layout.pack([x.value, y.value, entries.value])
    for each in (matrix, DENSE):
        roots = [
            hc.sum(hc.exp(each @ x)) + hc.sum((y @ each) ** 2),
            each @ hc.transpose(entries) @ y,
            each.T @ y + x**2,
            hc.reshape(each * entries, (12,)),
            (-each) @ x,
            hc.reshape(entries.T @ each, (16,)),
        ]
        stacks.append(compile_stack(roots, layout, 1, structured=structured))
    if stored == "new value":
        stacks[0].evaluate(points, "all").jacobian()
        matrix.value = SPARSE
        stacks[0].refresh()
    weights = np.linspace(-1.0, 1.0, stacks[1].evaluate(points, "all").values.size)
    found, expected = (stack.evaluate(points, "all") for stack in stacks)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-13)
    np.testing.assert_allclose(found.pullback(weights), expected.pullback(weights), rtol=1e-12)
    np.testing.assert_allclose(dense(found.jacobian()), dense(expected.jacobian()), rtol=1e-12)
    hessians = [dense(stack.hessian(points, weights)) for stack in stacks]
    np.testing.assert_allclose(*hessians, rtol=1e-11, atol=1e-12)


def dense(matrix: Any) -> Any:
    return matrix.toarray() if is_sparse(matrix) else matrix


def chain(matrix: Any, size: int) -> hc.Problem:
    x = hc.Variable(size, name="x", bounds=(0.1, 10))
    return hc.Problem(hc.Minimize(hc.sum(1 / x)), [(matrix @ x <= 2.0).named("cap")])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_solutions_are_those_of_the_dense_model(sign: float) -> None:
    matrix = scipy.sparse.eye_array(6) + sign * 0.5 * scipy.sparse.eye_array(6, k=1)
    found, expected = chain(matrix, 6), chain(matrix.toarray(), 6)
    assert found.solve() == pytest.approx(expected.solve(), rel=1e-7)
    assert found.status == expected.status == "optimal"
    form = found.forms().hidden()
    assert form is not None
    assert form.proof is not None
    np.testing.assert_allclose(
        found.constraints[0].dual_value, expected.constraints[0].dual_value, atol=1e-6
    )


def test_a_parameter_takes_new_sparse_values() -> None:
    matrix = scipy.sparse.eye_array(6) + 0.5 * scipy.sparse.eye_array(6, k=1)
    parameter = hc.Parameter((6, 6), name="F", value=matrix, nonneg=True)
    problem = chain(parameter, 6)
    first = problem.solve()
    parameter.value = 2.0 * matrix
    assert is_sparse(parameter.value)
    second = problem.solve()
    assert first == pytest.approx(chain(matrix.toarray(), 6).solve(), rel=1e-7)
    assert second == pytest.approx(chain(2 * matrix.toarray(), 6).solve(), rel=1e-7)
    with pytest.raises(hc.DataError, match="smallest entry is -1"):
        parameter.value = -1.0 * scipy.sparse.eye_array(6)
    with pytest.raises(hc.DataError, match="shape"):
        parameter.value = scipy.sparse.eye_array(5)


LANGUAGE = """
param n
param F[n,n] >= 0
var x[n] in [0.1, 10]
minimize sum(1/x)
subject to
    cap: F @ x <= 2
"""


def test_data_files_and_data_in_python_are_sparse(tmp_path: Path) -> None:
    matrix = scipy.sparse.eye_array(9) + 0.5 * scipy.sparse.eye_array(9, k=1)
    scipy.sparse.save_npz(tmp_path / "matrix.npz", matrix)
    expected = chain(matrix.toarray(), 9).solve()
    for data in ({"F": matrix}, f"F={tmp_path / 'matrix.npz'}"):
        problem = hc.parse(LANGUAGE, data=data)
        assert all(is_sparse(each.value) for each in problem.parameters if each.name == "F")
        assert problem.solve() == pytest.approx(expected, rel=1e-7)
        stored = hc_data(problem.model)
        assert is_sparse(stored["F"])
        assert hc.parse(problem.to_hc(), data=stored).solve() == pytest.approx(expected, rel=1e-7)
    with pytest.raises(hc.DataError, match="write name="):
        hc.parse(LANGUAGE, data=str(tmp_path / "matrix.npz"))
    with pytest.raises(hc.HCError, match=r"must be >= 0"):
        hc.parse(LANGUAGE, data={"F": -matrix})


def test_models_in_python_keep_sparse_constants_in_their_data() -> None:
    matrix = scipy.sparse.eye_array(9) + 0.5 * scipy.sparse.eye_array(9, k=1)
    problem = chain(matrix, 9)
    stored = hc_data(problem.model)
    assert [is_sparse(each) for each in stored.values()] == [True]
    again = hc.parse(problem.to_hc(), data=stored)
    assert again.solve() == pytest.approx(problem.solve(), rel=1e-7)


@pytest.mark.parametrize("kind", ["constant", "parameter", "both signs"])
def test_20_000_sparse_rows_are_proven_and_handed_out_without_a_dense_array(kind: str) -> None:
    size = 20_000
    matrix = scipy.sparse.eye_array(size) + 0.5 * scipy.sparse.eye_array(size, k=7)
    if kind == "both signs":
        matrix = matrix - 0.25 * scipy.sparse.eye_array(size, k=-3)
    tracemalloc.start()
    try:
        factor = hc.Parameter((size, size), value=matrix) if kind == "parameter" else matrix
        problem = chain(factor, size)
        assert problem.forms().hidden() is not None
        data = problem.get_problem_data()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert data.program.matrix.shape[0] >= size
    assert peak < 100e6, "a dense matrix has 3.2e9 bytes"
