"""The engine of compiled functions beside the reference: values, derivatives, domains, storage."""

from __future__ import annotations

import importlib
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.engines import casadi_, registry
from hcmodel.engines.autograd_ import AutogradEngine
from hcmodel.engines.casadi_ import MOST_SCALARS, CasadiEngine, CasadiPass
from hcmodel.engines.deferred import PATIENCE, DeferredStack
from hcmodel.engines.graph_program import Program
from hcmodel.engines.registry import compile_stack, unable
from hcmodel.engines.structured import EVALUATIONS_BEFORE, MOST_ENTRIES
from hcmodel.expressions.layout import Layout

pytest.importorskip("casadi")

rng = np.random.default_rng(3)


def both(roots, variables, coordinates=()):
    program = Program.of(roots, Layout(variables), 1, coordinates)
    return CasadiEngine().compile(program), AutogradEngine().compile(program)


def dense(matrix):
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix


def agree(roots, variables, point) -> None:
    """Value, Jacobian, pullback and Hessian of both engines."""
    mine, reference = both(roots, variables)
    one, other = mine.evaluate(point, "all"), reference.evaluate(point, "all")
    np.testing.assert_allclose(one.values, other.values, rtol=1e-9, atol=1e-12)
    weights = np.linspace(1.0, 2.0, one.values.size)
    np.testing.assert_allclose(one.pullback(weights), other.pullback(weights), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(dense(one.jacobian()), dense(other.jacobian()), rtol=1e-8, atol=1e-9)
    found, expected = mine.hessian(point, weights), reference.hessian(point, weights)
    np.testing.assert_allclose(dense(found), dense(expected), rtol=1e-7, atol=1e-7)


def test_auto_takes_it_and_the_solution_says_so() -> None:
    x = hc.Variable(3, name="x", bounds=(-2, 2))
    problem = hc.Problem(hc.Minimize(hc.sum(hc.sin(x) * hc.exp(x)) + hc.sum(x[1:] * x[:-1])))
    value = problem.solve()
    assert problem.solution.engine == "casadi"
    other = problem.solve(engine="autograd")
    assert problem.solution.engine == "autograd"
    assert value == pytest.approx(other, rel=1e-6)


def test_a_model_that_is_solved_at_once_is_not_compiled(monkeypatch) -> None:
    monkeypatch.setattr(CasadiEngine, "compile", None)
    x = hc.Variable(3, name="x", bounds=(-2, 2))
    problem = hc.Problem(hc.Minimize(hc.sum(hc.exp(x)) - hc.sum(x) + hc.sum(hc.square(x - 0.5))))
    problem.solve()
    assert problem.status == "optimal"


def test_auto_compiles_after_a_number_of_evaluations() -> None:
    x, scale = hc.Variable(2, name="x"), hc.Parameter(name="s", value=2.0)
    layout, root = Layout([x]), hc.sum(scale * hc.sin(x) * x)
    stack = compile_stack([root], layout, 1, structured=False)
    assert isinstance(stack, DeferredStack)
    point, made = np.array([0.5, 1.0]), []
    for number in range(PATIENCE + 2):
        scale.value = 2.0 + number
        stack.refresh()
        forward = stack.evaluate(point, "all")
        expected = (2.0 + number) * np.sum(np.sin(point) * point)
        np.testing.assert_allclose(forward.values, [expected])
        made.append(stack._stack.engine)
    assert made == ["autograd"] * (PATIENCE - 1) + ["casadi"] * 3
    assert stack.engine == "casadi"


def test_no_hessian_is_compiled_to_find_out_whether_it_is_sparse() -> None:
    """That of 1,500 unknowns that all meet took casadi a minute."""
    x = hc.Variable(150, name="x")
    stack = compile_stack([hc.sum(hc.sin(x)) * hc.sum(x)], Layout([x]), 1, structured=False)
    assert isinstance(stack, DeferredStack)
    for _ in range(PATIENCE + 1):
        stack.evaluate(np.ones(150), "all")
    assert not stack.sparse_hessian
    assert not any(kind == "hessian" for kind, _ in stack._stack._functions)


def test_a_small_sum_that_is_evaluated_often_is_compiled_as_a_whole() -> None:
    x, scale = hc.Variable(2, name="x", bounds=(0.4, 3)), hc.Parameter(name="s", value=4.0)
    tank = x[0] * x[1] + scale / x[0] + 1 / x[1]
    stack = compile_stack([tank, x[0] * x[1]], Layout([x]), 1)
    a, b = point = np.array([0.7, 1.3])
    for value in (4.0, 5.0):
        scale.value = value
        stack.refresh()
        made = []
        for _ in range(EVALUATIONS_BEFORE + 2):
            forward = stack.evaluate(point, "all")
            made.append(isinstance(forward, CasadiPass))
            np.testing.assert_allclose(forward.values, [a * b + value / a + 1 / b, a * b])
            slopes = [[b - value / a**2, a - 1 / b**2], [b, a]]
            np.testing.assert_allclose(forward.jacobian(), slopes)
        assert made == [False] * EVALUATIONS_BEFORE + [True] * 2  # in every solve alike
    own, weights = forward.values, np.array([2.0, 3.0])
    stack.evaluate(2 * point, "all")
    np.testing.assert_allclose(own, [a * b + 5 / a + 1 / b, a * b])  # not a view of a buffer
    np.testing.assert_allclose(forward.pullback(weights), weights @ slopes)


def test_large_sums_stay_matrices() -> None:
    x = hc.Variable(100, name="x", bounds=(0.4, 3))
    exponents = rng.normal(size=(MOST_ENTRIES // 100 + 1, 100))
    stack = compile_stack([hc.sum(hc.exp(exponents @ hc.log(x)))], Layout([x]), 1)
    for _ in range(EVALUATIONS_BEFORE + 1):
        forward = stack.evaluate(np.full(100, 1.1), "objective")
    assert not isinstance(forward, CasadiPass)


def test_products_with_constants_are_not_expanded_to_scalars() -> None:
    x = hc.Variable(40, name="x", bounds=(0.4, 3))
    exponents = rng.normal(size=(MOST_SCALARS // 40 + 1, 40)) / 10
    mine, reference = both([hc.sum(hc.exp(exponents @ hc.log(x)))], [x])
    point = np.linspace(0.5, 2.5, 40)
    found, expected = mine.evaluate(point, "all"), reference.evaluate(point, "all")
    np.testing.assert_allclose(found.jacobian(), expected.jacobian(), rtol=1e-9)
    assert mine._traced.x.type_name() == "MX"


def test_functions_of_the_user_are_left_to_the_reference() -> None:
    x = hc.Variable(2, name="x", bounds=(0.5, 2))
    own = hc.function(lambda a: a[0] ** 2 * a[1] + 1 / a[1], x)
    problem = hc.Problem(hc.Minimize(own))
    problem.solve()
    assert problem.solution.engine == "autograd"
    with pytest.raises(hc.ModelError, match="engine 'casadi' cannot express function"):
        problem.solve(engine="casadi")


def test_without_the_package_the_line_to_install_it_is_said(monkeypatch) -> None:
    monkeypatch.setattr("hcmodel.engines.casadi_._installed", lambda: False)
    x = hc.Variable(2, name="x", bounds=(0.5, 2))
    problem = hc.Problem(hc.Minimize(hc.sum(hc.sin(x))))
    with pytest.raises(hc.ModelError, match=r"pip install 'hcmodel\[fast\]'"):
        problem.solve(engine="casadi")
    problem.solve()
    assert problem.solution.engine == "autograd"


@pytest.mark.parametrize("order", [1, 3, 6, 9])
def test_log_determinants_of_any_order(order: int) -> None:
    root = rng.normal(size=(order, order))
    matrix = hc.Variable((order, order), name="A")
    point = (root @ root.T + np.eye(order)).ravel()
    agree([hc.logdet(matrix), hc.trace(hc.inv(matrix))], [matrix], point)


def test_an_indefinite_matrix_has_no_log_determinant() -> None:
    matrix = hc.Variable((2, 2), name="A")
    mine, _ = both([hc.logdet(matrix)], [matrix])
    for bad in (-np.eye(2), np.diag([1.0, -1.0]), np.array([[1.0, 3.0], [-3.0, -0.1]])):
        assert np.isnan(mine.evaluate(bad.ravel(), "all").values).all()


@pytest.mark.parametrize("atom", [hc.lyap, hc.dlyap])
def test_lyapunov_equations_of_unstable_matrices_are_not_solved(atom) -> None:
    matrix = hc.Variable((3, 3), name="A")
    mine, reference = both([hc.trace(atom(matrix, np.eye(3)))], [matrix])
    stable = 0
    for _ in range(30):
        scaled = rng.normal(size=(3, 3)) * 0.6
        point = (scaled - (0.8 * np.eye(3) if atom is hc.lyap else 0.0)).ravel()
        found = mine.evaluate(point, "all").values
        expected = reference.evaluate(point, "all").values
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        stable += bool(np.isfinite(expected).all())
    assert 3 < stable < 27


def test_einsum_of_every_kind() -> None:
    a, b = hc.Variable((2, 3), name="a"), hc.Variable((3, 4), name="b")
    c = hc.Variable((2, 3, 4), name="c")
    roots = [
        hc.sum(hc.square(hc.einsum("ij,jk->ki", a, b))),
        hc.einsum("ij,ijk->ik", a, c),
        hc.einsum("ij,jk,ijk->", a, b, c),
        hc.einsum("ijk->kj", c),
        hc.einsum("ij,kl->iljk", a, b),
    ]
    agree(roots, [a, b, c], rng.normal(size=6 + 12 + 24))


def test_powers_have_derivatives_at_zero() -> None:
    x = hc.Variable(4, name="x")
    exponents = np.array([0.0, 1.0, 2.0, 3.0])
    roots = [hc.sum(x**exponents), hc.sum(x**1), hc.sum(x**0), hc.sum(x**2)]
    agree(roots, [x], np.array([0.0, 0.0, 0.0, -1.0]))


def test_sparse_data_and_new_parameters() -> None:
    import scipy.sparse

    x = hc.Variable(60, name="x")
    matrix = scipy.sparse.random_array((80, 60), density=0.05, rng=rng, format="csr")
    scale = hc.Parameter(80, name="s", value=np.ones(80))
    point = rng.uniform(0.5, 1.5, 60)
    root = hc.exp(scale * (matrix @ x))
    mine, _ = both([hc.sum(root), root], [x])
    assert hasattr(mine.evaluate(point, "constraints").jacobian(), "indptr")
    for value in (np.ones(80), np.linspace(-1, 1, 80)):
        scale.value = value
        mine.refresh()
        found = mine.evaluate(point, "constraints")
        expected = np.exp(value * (matrix @ point))
        np.testing.assert_allclose(found.values, expected)
        slopes = (value * expected)[:, None] * matrix.toarray()
        np.testing.assert_allclose(dense(found.jacobian()), slopes, atol=1e-12)


def test_large_graphs_stay_arrays() -> None:
    count = MOST_SCALARS
    x = hc.Variable(count, name="x")
    mine, _ = both([hc.sum(hc.sin(x[1:] * x[:-1])), x[1:] * x[:-1]], [x])
    point = np.linspace(0.5, 1.5, count)
    jacobian = mine.evaluate(point, "constraints").jacobian()
    assert jacobian.nnz == 2 * (count - 1)
    hessian = mine.hessian(point, np.ones(count))
    assert mine.sparse_hessian
    product = point[1:] * point[:-1]
    beside = np.cos(product) - product * np.sin(product) + 1.0
    np.testing.assert_allclose(hessian.diagonal(1), beside, rtol=1e-9)


def test_roots_without_weight_do_not_spoil_a_hessian() -> None:
    x = hc.Variable(2, name="x")
    mine, _ = both([hc.sum(hc.square(x)), hc.sum(hc.sqrt(x))], [x])
    found = mine.hessian(np.array([0.0, 1.0]), np.array([1.0, 0.0]))
    np.testing.assert_allclose(found, 2 * np.eye(2))


def test_a_compiled_stack_pickles() -> None:
    x = hc.Variable(2, name="x")
    mine, _ = both([hc.sum(hc.exp(x))], [x])
    point = np.array([0.0, 1.0])
    before = mine.evaluate(point, "all").values
    again = pickle.loads(pickle.dumps(mine))
    np.testing.assert_array_equal(again.evaluate(point, "all").values, before)


def test_orders_that_casadi_cannot_expand_are_refused() -> None:
    matrix = hc.Variable((8, 8), name="A")
    program = Program.of([hc.det(matrix), hc.lambda_max(matrix)], Layout([matrix]), 1)
    assert unable(CasadiEngine(), program) == ("det", "lambda_max")


def test_a_casadi_that_cannot_be_imported_is_replaced_with_words(monkeypatch) -> None:
    """Installed for another processor, say: it was an ImportError after eight evaluations."""

    def damaged() -> None:
        raise ImportError("libcasadi.so: wrong ELF class")

    monkeypatch.setattr(casadi_, "casadi", damaged)
    monkeypatch.setattr(casadi_._Import, "failure", None)
    x = hc.Variable(2, name="x", bounds=(-2, 2))
    problem = hc.Problem(hc.Minimize(hc.sum(hc.sin(x) * hc.exp(x)) + x[0] * x[1]))
    with pytest.warns(hc.HCWarning, match="wrong ELF class.*reinstall casadi; autograd is used"):
        found = problem.solve()
    assert problem.solution.engine == "autograd"
    with pytest.raises(hc.ModelError, match=r"cannot be imported.*use another engine"):
        problem.solve(engine="casadi")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        assert problem.solve() == pytest.approx(found)


def test_a_small_stack_that_cannot_be_compiled_stays_as_it_is(monkeypatch) -> None:
    monkeypatch.setattr(casadi_, "casadi", lambda: importlib.import_module("no such module"))
    monkeypatch.setattr(casadi_._Import, "failure", None)
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    stack = compile_stack([x[0] * x[1] + 4 / x[0] + 1 / x[1]], Layout([x]), 1)
    for _ in range(EVALUATIONS_BEFORE - 1):
        stack.evaluate(np.ones(2), "all")
    with pytest.warns(hc.HCWarning, match="autograd is used"):
        forward = stack.evaluate(np.ones(2), "all")
    assert forward.values == pytest.approx([6.0])
    assert stack.engine == "autograd"


def test_a_singular_matrix_prints_nothing(capfd) -> None:
    x = hc.Variable((2, 2), name="x")
    stack, _ = both([hc.sum(hc.inv(x))], [x])
    for entries in ([0.0, 0.0, 1.0, 2.0], [1.0, 2.0, 2.0, 4.0], [0.0] * 4, [1.0, 0.0, 2.0, 0.0]):
        assert not np.isfinite(stack.evaluate(np.array(entries), "all").values).any()
    assert stack.evaluate(np.array([2.0, 0.0, 0.0, 4.0]), "all").values == pytest.approx([0.75])
    assert capfd.readouterr() == ("", "")  # once "LapackLu::prepare: 0-th row is exactly zero"


def test_data_that_would_take_long_to_copy_are_left_to_numpy(monkeypatch) -> None:
    monkeypatch.setattr(registry, "MOST_NUMBERS", 20)
    x = hc.Variable(5, name="x")
    for rows, engine in ((3, "casadi"), (4, "autograd")):
        root = hc.sum(hc.sin(np.ones((rows, 5)) @ x)) + 1.0
        assert compile_stack([root], Layout([x]), 1).engine == engine


@pytest.mark.parametrize(
    "function",
    [
        lambda x: hc.sqrt(x) ** (-2),
        lambda x: hc.sqrt(x) * hc.sqrt(x),
        lambda x: hc.log(x) - hc.log(x),
        lambda x: hc.log(x) / hc.log(x),
        lambda x: 0 * hc.log(x),
    ],
)
def test_what_is_not_defined_is_not_simplified_away(function: Any) -> None:
    """casadi makes 1/x of √x^-2, which has values where x < 0; a run followed them."""
    x = hc.Variable(name="x")
    stack = compile_stack([function(x)], Layout([x]), 1, engine="casadi", structured=False)
    assert np.isnan(stack.evaluate(np.array([-2.0]), "all").values).all()
    assert np.isfinite(stack.evaluate(np.array([3.0]), "all").values).all()
    casadi = pytest.importorskip("casadi")
    assert casadi.GlobalOptions.getSimplificationOnTheFly()  # as it was
