"""Sums of terms in closed form: what is recognised, derivatives, sparsity, parameters, the rest."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import hcmodel as hc
from hcmodel.engines import recognition
from hcmodel.engines.autograd_ import AutogradEngine
from hcmodel.engines.autograd_stack import AutogradStack
from hcmodel.engines.graph_program import Program
from hcmodel.engines.registry import compile_stack
from hcmodel.engines.structured import GLANCES, StructuredEngine, StructuredStack
from hcmodel.expressions.layout import Layout
from hcmodel.expressions.leaves import Expression, Variable
from hcmodel.testing import check_engine
from hcmodel.testing.samples import ALL_SAMPLES
from tests.problems.examples import ALL, loaded

GENERATOR = np.random.default_rng(0)
A = GENERATOR.normal(size=(4, 3)) * (GENERATOR.random((4, 3)) < 0.7)
B = GENERATOR.uniform(0.5, 2, 4)
MOST_UNKNOWNS = 10


def compiled(roots: list[Expression], variables: list[Variable], split: int = 1) -> StructuredStack:
    program = Program.of(roots, Layout(variables), split)
    return StructuredEngine(AutogradEngine()).compile(program)


def dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if sp.issparse(matrix) else matrix


def check_against_autograd(stack: StructuredStack, x: np.ndarray) -> None:
    reference = AutogradEngine().compile(stack.program)
    for part in ("objective", "constraints", "all", "map"):
        found, expected = stack.evaluate(x, part), reference.evaluate(x, part)
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-12, atol=1e-12)
        jacobian = dense(expected.jacobian())
        np.testing.assert_allclose(dense(found.jacobian()), jacobian, rtol=1e-11, atol=1e-11)
        weights = np.linspace(-1, 2, found.values.size)
        np.testing.assert_allclose(found.pullback(weights), weights @ jacobian, atol=1e-10)
    weights = np.linspace(-1, 2, stack.size + stack.map_size)
    hessian = stack.hessian(x, weights)
    assert sp.issparse(hessian) == stack.sparse_hessian
    expected = dense(reference.hessian(x, weights))
    np.testing.assert_allclose(dense(hessian), expected, rtol=1e-10, atol=1e-10)


def looped(x: Variable) -> Expression:
    total: Any = 0.0
    for k in range(4):
        term: Any = B[k]
        for i in range(3):
            term = term * x[i] ** A[k, i]
        total = total + term
    return total


FORMS: dict[str, Callable[[Variable], Any]] = {
    "affine": lambda x: A @ x + 3.0,
    "exponential of logarithms": lambda x: B @ hc.exp(A @ hc.log(x)),
    "product of powers along an axis": lambda x: hc.sum(B * hc.prod(x**A, axis=1)),
    "loops": looped,
    "slices": lambda x: x[:-1] * x[1:] + 0.1 * x[1:],
    "quotients": lambda x: (x[0] + 2 * x[1] * x[2]) / (3 * x[2]) + 1 / x[1],
    "roots and squares": lambda x: hc.sqrt(x[0] * x[1]) - hc.square(x[2]) * hc.inv_pos(x),
    "signomial": lambda x: x[0] * x[1] - 2 * x[2] ** 1.5 - 3,
    "contractions": lambda x: hc.einsum("i,j->ij", x, x) @ x,
    "inner products": lambda x: x @ x + hc.dot(x, np.array([1.0, 0.0, 2.0])),
    "means and traces": lambda x: hc.mean(x) * x[1] + hc.trace(hc.diag(x)),
    "logarithms": lambda x: hc.log(2 * x[0] * x[1] ** 2) - hc.sum(hc.log(x)),
    "cancelled powers": lambda x: x[0] * x[1] / x[0] + x[2] ** 0.0,
    "movements": lambda x: hc.vstack(x, 2 * x[::-1], np.ones(3)).T,
}


@pytest.mark.parametrize("name", FORMS)
def test_these_forms_need_no_engine(name: str) -> None:
    x = Variable(3, name="x", bounds=(0.2, 5))
    stack = compiled([FORMS[name](x), x[0] * x[2]], [x])
    assert stack.structured == (True, True)
    check_against_autograd(stack, np.array([0.7, 1.3, 2.1]))


@pytest.mark.parametrize(
    "form",
    [
        lambda x: hc.exp(x),
        lambda x: x**x,
        lambda x: hc.sin(x) * x,
        lambda x: (x[0] + x[1]) ** 2.5,
        lambda x: hc.log(x[0] + x[1]),
        lambda x: (-x) ** 2,
        lambda x: hc.max(x),
        lambda x: hc.exp(x[0] + hc.log(x[1])),
    ],
)
def test_other_functions_are_left_to_the_engine(form: Callable[[Variable], Any]) -> None:
    x = Variable(3, name="x", bounds=(0.2, 5))
    stack = compiled([x[0] / x[1], form(x), A @ x, hc.prod(x)], [x])
    assert stack.structured == (True, False, True, True)
    check_against_autograd(stack, np.array([0.7, 1.3, 2.1]))


def test_products_of_variables_of_any_sign_are_left_to_the_engine() -> None:
    x, y = Variable(2, name="x"), Variable(2, name="y", pos=True)
    stack = compiled([x @ x, x[0] * y, y[0] * y, A[:, :2] @ x - y[1]], [x, y])
    assert stack.structured == (False, False, True, True)
    check_against_autograd(stack, np.array([-0.7, 1.3, 0.4, 2.0]))


def test_matrices_are_compressed_where_they_are_large() -> None:
    x = Variable(300, name="x", bounds=(0.1, 10))
    rows = x[:-1] * x[1:] + 0.1 * x[1:]
    stack = compiled([hc.sum(1 / x), rows, x - 1], [x])
    point = np.linspace(0.5, 2, 300)
    assert sp.issparse(stack.evaluate(point, "all").jacobian())
    assert stack.sparse_hessian
    check_against_autograd(stack, point)
    mixed = compiled([hc.sum(1 / x), rows, hc.exp(x[1:] - x[:-1])], [x])
    assert mixed.structured == (True, True, False)
    assert mixed.sparse_hessian
    check_against_autograd(mixed, point)


def test_a_term_with_all_unknowns_makes_a_dense_hessian() -> None:
    x = Variable(200, name="x", bounds=(0.1, 10))
    stack = compiled([hc.prod(x), x[:-1] * x[1:]], [x])
    assert not stack.sparse_hessian
    check_against_autograd(stack, np.linspace(0.9, 1.1, 200))


def test_sums_of_many_scalar_terms_are_recognised() -> None:
    x = Variable(20, name="x", pos=True)
    places = np.random.default_rng(0).integers(0, 20, (80, 2))
    total: Any = 0.0
    rows = []
    for i, j in places.tolist():
        total = total + 2.0 * x[i] ** 1.5 * x[j] ** -0.5 / 3.0
        rows.append(x[i] / x[j] - hc.exp(2 * hc.log(x[j])))
    stack = compiled([total + hc.sum(x), *rows, hc.hstack(rows), x[0] * hc.sin(x[1])], [x])
    assert stack.structured == (True,) * 82 + (False,)
    check_against_autograd(stack, np.linspace(0.5, 2, 20))


def test_comprehensions_of_the_language_need_no_engine() -> None:
    text = """
    param K = 4, d = 3
    param b[K] > 0, a[K,d]
    var x[d] in [0.5, 2]
    minimize sum(b[k] * prod(x[i]^a[k,i] for i in 1..d) for k in 1..K)
    subject to
        pair[i in 1..d-1]: x[i] * x[i+1] <= 1
        part[i in 1..d]: sum(x[j] / x[i] for j in i..d if j != i) <= 20
    """
    problem = hc.parse(text, data={"b": B, "a": A})
    canonical = problem.canonical
    stack = compile_stack(canonical.roots, canonical.layout, 1)
    assert isinstance(stack, StructuredStack)
    assert all(stack.structured)
    check_against_autograd(stack, np.array([0.7, 1.3, 1.9]))


# ---- parameters


def test_coefficients_and_exponents_are_read_at_refresh() -> None:
    x = Variable(2, name="x", pos=True)
    b = hc.Parameter(2, name="b", value=[1.0, 2.0])
    a = hc.Parameter((2, 2), name="a", value=[[1.0, 0.5], [-1.0, 0.0]])
    stack = compiled([b @ hc.prod(x**a, axis=1), b * x], [x])
    point = np.array([0.5, 3.0])
    for coefficients, exponents in (
        ([1.0, 2.0], [[1.0, 0.5], [-1.0, 0.0]]),
        ([0.0, -2.0], [[1.0, 0.0], [0.0, 0.0]]),
        ([3.0, 0.0], [[2.0, 1.0], [-1.0, 3.0]]),
    ):
        b.value, a.value = np.array(coefficients), np.array(exponents)
        stack.refresh()
        expected = b.value @ np.prod(point**a.value, axis=1)
        assert stack.evaluate(point, "objective").values == pytest.approx(expected, rel=1e-14)
        check_against_autograd(stack, point)


def test_a_new_value_may_move_a_root_to_the_engine_and_back() -> None:
    """(b·x)^1.5 is a monomial only where b has one entry that is not 0."""
    x = Variable(2, name="x", pos=True)
    b = hc.Parameter(2, name="b", value=[2.0, 0.0])
    stack = compiled([(b @ x) ** 1.5, x[0] * x[1]], [x])
    assert stack.structured == (True, True)
    for value, structured in (([1.0, 2.0], False), ([0.0, 3.0], True), ([-1.0, 0.0], False)):
        b.value = np.array(value)
        stack.refresh()
        assert stack.structured == (structured, True)
        if value[0] >= 0:
            check_against_autograd(stack, np.array([0.5, 3.0]))
        else:
            assert np.isnan(stack.evaluate(np.array([0.5, 3.0]), "objective").values).all()


def test_values_are_those_of_the_first_evaluation_until_a_refresh() -> None:
    x = Variable(name="x", pos=True)
    b = hc.Parameter(name="b", value=2.0)
    stack = compiled([b * x**2], [x])
    b.value = 3.0
    assert stack.evaluate(np.array([1.0]), "all").values == [3.0]
    b.value = 4.0
    assert stack.evaluate(np.array([1.0]), "all").values == [3.0]
    stack.refresh()
    assert stack.evaluate(np.array([1.0]), "all").values == [4.0]


# ---- points, pickles, engines


@pytest.mark.parametrize("size", [3, 300])
def test_outside_the_domain_values_are_not_finite(size: int) -> None:
    x = Variable(size, name="x", pos=True)
    stack = compiled([hc.sum(x[1:] * x[:-1]), x**2 / x[0], 2 * x], [x])
    for value in (0.0, -1.0, np.inf, np.nan):
        point = np.ones(size)
        point[0] = value
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            forward = stack.evaluate(point, "all")
            forward.jacobian()
            forward.pullback(np.ones(forward.values.size))
            stack.hessian(point, np.ones(stack.size))
        assert not np.isfinite(forward.values[0])


def test_a_pickled_stack_works() -> None:
    x = Variable(2, name="x", pos=True)
    stack = pickle.loads(pickle.dumps(compiled([x[0] * x[1], hc.exp(x)], [x])))
    check_against_autograd(stack, np.array([0.5, 2.0]))


def test_the_structure_can_be_left_out() -> None:
    x = Variable(2, name="x", pos=True)
    plain = compile_stack([x[0] * x[1]], Layout([x]), 1, engine="autograd", structured=False)
    structured = compile_stack([x[0] * x[1]], Layout([x]), 1, engine="autograd")
    assert not isinstance(plain, StructuredStack)
    assert isinstance(structured, StructuredStack)
    assert plain.engine == structured.engine == "autograd"


def test_structured_stacks_pass_the_suite_of_engines() -> None:
    """Each atom once; most of its samples differ in what engines alone look at."""
    samples = list({sample.name: sample for sample in ALL_SAMPLES}.values())
    problems = [loaded(name) for name in ALL]
    problems = [each for each in problems if each.canonical.layout.size <= MOST_UNKNOWNS]
    report = check_engine(StructuredEngine(AutogradEngine()), problems, samples=samples)
    assert report.models == len(problems)
    assert report.refused == ()


def test_products_that_are_too_many_are_counted_before_they_are_listed(monkeypatch) -> None:
    """Listing 18 million places took two seconds, in which no time limit holds."""
    monkeypatch.setattr(recognition, "MOST_TERMS", 5)
    monkeypatch.setattr(recognition, "nonzero_places", None)
    x = hc.Variable(3, name="x")
    stack = compiled([hc.sum(x), np.ones((2, 3)) @ x], [x])
    np.testing.assert_allclose(stack.evaluate(np.arange(3.0), "all").values, [3.0, 3.0, 3.0])


def test_structure_is_looked_for_when_a_stack_is_evaluated_again() -> None:
    """A model that is solved in other coordinates is evaluated once as it was written."""
    x, matrix = Variable(3, name="x"), GENERATOR.normal(size=(2, 3))
    stack = compiled([x[0] * x[1], matrix @ x], [x])
    point = GENERATOR.normal(size=3)
    for look in range(GLANCES + 1):
        assert stack.sums is None
        forward = stack.evaluate((look + 1) * point, "all")
        expected = (look + 1) ** 2 * point[0] * point[1]
        np.testing.assert_allclose(
            forward.values, [expected, *(look + 1) * (matrix @ point)], rtol=1e-12
        )
        np.testing.assert_allclose(np.asarray(forward.jacobian())[1:], matrix)
    assert stack.sums is not None
    positive = Variable(3, name="x", pos=True)
    stack = compiled([positive[0] * positive[1]], [positive])
    stack.evaluate(np.ones(3), "all")
    assert stack.sums is not None  # products of powers pay at once


def test_functions_of_the_user_beside_constants_are_called_without_a_look_for_structure() -> None:
    x, cap = Variable(2, name="x", pos=True), hc.Parameter(name="cap", value=3.0)
    area = hc.function(lambda z: z[0] * z[1], x, grad=lambda z: np.array([z[1], z[0]]))
    stack = compiled([area, area, cap + 1.0], [x])
    point = np.array([0.5, 4.0])
    for value in (3.0, 5.0):
        cap.value = value
        stack.refresh()
        forward = stack.evaluate(point, "all")
        np.testing.assert_allclose(forward.values, [2.0, 2.0, value + 1.0])
        np.testing.assert_allclose(forward.jacobian(), [[4.0, 0.5], [4.0, 0.5], [0.0, 0.0]])
    assert stack.sums is None
    check_against_autograd(stack, point)
    beside = compiled([area, 2.0 * x[0]], [x])
    np.testing.assert_allclose(beside.evaluate(point, "all").jacobian(), [[4.0, 0.5], [2.0, 0.0]])
    assert beside.structured == (False, True)


def test_a_function_that_linear_algebra_gives_up_on_has_no_value() -> None:
    def singular(z: np.ndarray) -> np.ndarray:
        raise np.linalg.LinAlgError

    x = Variable(2, name="x", pos=True)
    stack = compiled([hc.function(singular, x, grad=singular)], [x])
    assert np.isnan(stack.evaluate(np.ones(2), "all").values).all()


@pytest.mark.parametrize("positive", [True, False])
def test_a_pass_of_which_values_are_expected_has_no_tape(positive: bool, monkeypatch: Any) -> None:
    x = Variable(2, name="x", pos=positive)
    stack = compiled([hc.sum(hc.sin(x) * hc.exp(x))], [x])
    tapes: list[str] = []
    recorded = AutogradStack._recorded

    def counted(self: AutogradStack, x: np.ndarray, part: str, constants: list[Any]) -> Any:
        tapes.append(part)
        return recorded(self, x, part, constants)

    monkeypatch.setattr(AutogradStack, "_recorded", counted)
    stack.evaluate(np.ones(2), "all")
    assert tapes == ["all"]
    stack.expect_values()
    forward = stack.evaluate(np.full(2, 2.0), "all")
    assert tapes == ["all"]
    slopes = np.exp(2.0) * (np.sin(2.0) + np.cos(2.0))
    np.testing.assert_allclose(forward.jacobian(), np.full((1, 2), slopes))
    assert tapes == ["all", "all"]
