"""Batches of steps and sparse Hessians: the same numbers as step by step and sweep by sweep."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from hcmodel import atoms as hc
from hcmodel.engines import autograd_stack
from hcmodel.engines.autograd_ import AutogradEngine
from hcmodel.engines.autograd_stack import AutogradStack
from hcmodel.engines.graph_program import Program
from hcmodel.engines.interactions import hessian_plan
from hcmodel.expressions.layout import Layout
from hcmodel.expressions.leaves import Expression, Parameter, Variable
from tests.extent import first
from tests.hcmodel.proof.random_expressions import Generator

ALONE = 10**9  # more steps than there are: nothing is joined


@pytest.fixture
def always_sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patterns are used however small or dense a Hessian is."""
    monkeypatch.setattr(autograd_stack, "SPARSE_ROWS", 1)
    monkeypatch.setattr(autograd_stack, "SPARSE_DENSITY", 1.0)


def dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)


def compiled(
    roots: list[Expression], variables: list[Variable], *, fewest: int, split: int = 0
) -> AutogradStack:
    return AutogradEngine(fewest).compile(Program.of(roots, Layout(variables), split))


def swept_one_by_one(stack: AutogradStack, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    stack.__dict__["hessian_plan"] = None
    return dense(stack.hessian(x, weights))


def assert_close(found: np.ndarray, expected: np.ndarray) -> None:
    assert np.isfinite(expected).all()
    size = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11 * size)


@pytest.mark.parametrize("seed", first(10, range(25)))
def test_random_models_have_the_same_derivatives(always_sparse: None, seed: int) -> None:
    rng = np.random.default_rng(seed)
    generator = Generator(rng)
    roots = [generator.expression() for _ in range(6)]
    layout = Layout(generator.variables)
    x = np.full(layout.size, 0.7)
    for variable, block in zip(layout.variables, layout.blocks, strict=True):
        if variable is generator.X:
            x[block.start : block.stop] = block.store(np.array([[1.1, 0.2], [0.2, 0.9]]))
        else:
            x[block.start : block.stop] = np.ravel(rng.uniform(variable.lower, variable.upper))
    inside = []
    for root in roots:
        reference = compiled([root], generator.variables, fewest=ALONE)
        expected = swept_one_by_one(reference, x, np.ones(1))
        if np.isfinite(expected).all():
            inside.append(root)
            for fewest in (ALONE, 1):
                alone = compiled([root], generator.variables, fewest=fewest)
                assert_close(dense(alone.hessian(x, np.ones(1))), expected)
    assert inside
    plain = compiled(inside, generator.variables, fewest=ALONE, split=1)
    joined = compiled(inside, generator.variables, fewest=1, split=1)
    for part in ("all", "objective", "constraints"):
        first, second = plain.evaluate(x, part), joined.evaluate(x, part)
        np.testing.assert_allclose(second.values, first.values, rtol=1e-12)
        assert_close(dense(second.jacobian()), dense(first.jacobian()))
    weights = rng.uniform(-1, 1, plain.size)
    assert_close(dense(joined.hessian(x, weights)), swept_one_by_one(plain, x, weights))


CASES = {
    "sum of squares": (lambda x: hc.sum(x**2), 1),
    "inner product": (lambda x: x @ x, 1),
    "chain": (lambda x: hc.sum(x[1:] * hc.exp(x[:-1])), 3),
    "product without squares": (lambda x: hc.sum(x[::2] * x[1::2]), 2),
    "affine": (lambda x: hc.sum(3 * x) - x[4], 1),
    "kinks": (lambda x: hc.sum(hc.abs(x - 1)) + hc.max(x), 1),
    "rows of a table": (lambda x: hc.sum(hc.prod(hc.reshape(x, (20, 3)), axis=1)), 3),
    "quotients": (lambda x: hc.sum(hc.reshape(x, (20, 3))[:, 0] / x[:20]), 3),
    "sparse matrix": (lambda x: hc.sum(hc.exp(np.eye(60) @ x)), 1),
    "sparse powers": (lambda x: hc.sum(hc.prod(x ** np.eye(60), axis=1)), 1),
}


@pytest.mark.parametrize("name", CASES)
def test_a_sparse_hessian_takes_few_sweeps(name: str) -> None:
    function, most = CASES[name]
    x = Variable(60, name="x")
    stack = compiled([function(x)], [x], fewest=ALONE)
    point = np.random.default_rng(3).uniform(0.5, 1.5, 60)
    found = stack.hessian(point, np.ones(1))
    assert sp.issparse(found)
    assert stack.hessian_plan is not None
    assert stack.hessian_plan.sweeps <= most
    expected = swept_one_by_one(compiled([function(x)], [x], fewest=ALONE), point, np.ones(1))
    assert_close(found.toarray(), expected)


@pytest.mark.parametrize(
    "function",
    [hc.logsumexp, lambda x: hc.square(hc.sum(x)), lambda x: hc.quad_form(x, np.ones((300, 300)))],
)
def test_a_dense_hessian_has_no_plan(function: Any) -> None:
    x = Variable(300, name="x")
    assert compiled([function(x)], [x], fewest=ALONE).hessian_plan is None


@pytest.mark.parametrize("seed", range(5))
def test_every_entry_is_recovered_from_the_sweeps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = 60
    matrix = np.where(rng.uniform(size=(size, size)) < 0.04, rng.standard_normal((size, size)), 0.0)
    matrix[0, :: seed + 2] = 1.0  # a column that meets many others
    matrix = matrix + matrix.T + np.diag(rng.uniform(1, 2, size))
    plan = hessian_plan(sp.csr_array(matrix))
    swept = np.array([matrix @ (plan.colors == color) for color in range(plan.sweeps)])
    np.testing.assert_allclose(plan.matrix(swept).toarray(), matrix, rtol=1e-12, atol=1e-13)
    assert plan.sweeps < size / 2


def test_other_zeros_in_a_parameter_make_another_pattern() -> None:
    x, weights = Variable(60, name="x"), Parameter((60, 60), name="weights")
    stack = compiled([hc.exp(weights @ x)], [x], fewest=ALONE)
    point = np.linspace(0.1, 1, 60)
    for matrix in (np.eye(60), np.eye(60) + np.eye(60, k=5), np.eye(60, k=-1)):
        weights.value = matrix
        stack.refresh()
        values = np.exp(matrix @ point)
        np.testing.assert_allclose(
            dense(stack.evaluate(point, "all").jacobian()), values[:, None] * matrix, rtol=1e-12
        )
        expected = matrix.T @ (values[:, None] * matrix)
        np.testing.assert_allclose(dense(stack.hessian(point, np.ones(60))), expected, rtol=1e-12)


def looped(x: Variable, rng: np.random.Generator) -> list[Expression]:
    def monomial() -> Expression:
        places, powers = rng.choice(x.size, 3, replace=False), rng.uniform(-2, 2, 3)
        first, second, third = (x[int(i)] ** p for i, p in zip(places, powers, strict=True))
        return rng.uniform(0.5, 2) * first * second * third

    rows = [monomial() + monomial() for _ in range(15)]
    return [sum(monomial() for _ in range(20)), *rows, hc.prod(x[:3] ** np.array([1.0, 2.0, 0.5]))]


def test_loops_run_as_few_steps() -> None:
    x = Variable(60, name="x")
    roots = looped(x, np.random.default_rng(0))
    plain = compiled(roots, [x], fewest=ALONE, split=1)
    joined = compiled(roots, [x], fewest=1, split=1)
    assert len(joined._order("all")) < 30 < 200 < len(plain._order("all"))
    point = np.random.default_rng(1).uniform(0.5, 2, 60)
    for part in ("all", "objective", "constraints"):
        one, other = plain.evaluate(point, part), joined.evaluate(point, part)
        np.testing.assert_allclose(other.values, one.values, rtol=1e-13)
        np.testing.assert_allclose(dense(other.jacobian()), dense(one.jacobian()), rtol=1e-11)
    weights = np.random.default_rng(2).uniform(size=plain.size)
    expected = swept_one_by_one(plain, point, weights)
    assert_close(dense(joined.hessian(point, weights)), expected)
    again = pickle.loads(pickle.dumps(joined))
    expected = joined.evaluate(point, "all").values
    np.testing.assert_array_equal(again.evaluate(point, "all").values, expected)
