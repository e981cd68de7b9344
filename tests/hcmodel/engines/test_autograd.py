"""The autograd engine: derivatives, folding, sparsity, kinks, non-finite values, black boxes."""

from __future__ import annotations

import pickle
from typing import Any

import autograd
import autograd.numpy as anp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from hcmodel import atoms as hc
from hcmodel.engines import forward, sparsity
from hcmodel.engines.autograd_ import AutogradEngine
from hcmodel.engines.autograd_stack import AutogradStack
from hcmodel.engines.forward import swept_all
from hcmodel.engines.graph_program import Program
from hcmodel.errors import DataError, ModelError
from hcmodel.expressions.layout import Layout
from hcmodel.expressions.leaves import Expression, Parameter, Variable


def compiled(*roots: Expression, variables: Any = None, split: int = 0) -> AutogradStack:
    found = variables or list({v: None for root in roots for v in root.variables()})
    return AutogradEngine().compile(Program.of(roots, Layout(found), split))


def dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if sp.issparse(matrix) else matrix


# random trees: each case is the expression and the same thing as a plain function

UNARY: list[tuple[Any, Any]] = [
    (hc.exp, lambda a: anp.exp(a)),
    (hc.tanh, lambda a: anp.tanh(a)),
    (hc.sin, lambda a: anp.sin(a)),
    (hc.softplus, lambda a: anp.log(1 + anp.exp(a))),
    (lambda e: e[::-1], lambda a: a[::-1]),
    (lambda e: e[[0, 0, 2]], lambda a: a[np.array([0, 0, 2])]),
    (lambda e: hc.sum(e) + e, lambda a: anp.sum(a) + a),
    (lambda e: hc.prod(e) * e, lambda a: a[0] * a[1] * a[2] * a),
    (lambda e: hc.outer(e, e) @ e, lambda a: anp.outer(a, a) @ a),
    (lambda e: 1 / (1 + e**2), lambda a: 1 / (1 + a**2)),
    (hc.softmax, lambda a: anp.exp(a) / anp.sum(anp.exp(a))),
    (hc.cumsum, lambda a: anp.cumsum(a)),
    (lambda e: -e, lambda a: -a),
]
BINARY: list[tuple[Any, Any]] = [
    (lambda e, f: e + f, lambda a, b: a + b),
    (lambda e, f: e - f, lambda a, b: a - b),
    (lambda e, f: e * f, lambda a, b: a * b),
    (lambda e, f: e / (f**2 + 1), lambda a, b: a / (b**2 + 1)),
    (lambda e, f: e * (e @ f), lambda a, b: a * anp.dot(a, b)),
    (
        lambda e, f: hc.kl_div(hc.exp(e), 1 + f**2),
        lambda a, b: anp.exp(a) * (a - anp.log(1 + b**2)) - anp.exp(a) + 1 + b**2,
    ),
]

x, y = Variable(3, name="x"), Variable(3, name="y")
weight = Parameter(3, name="weight", value=[0.5, -1.0, 2.0])
LEAVES: list[tuple[Expression, Any]] = [
    (x, lambda a, b: a),
    (y, lambda a, b: b),
    (x * 2.0, lambda a, b: 2.0 * a),
    (hc.exp(weight) * y, lambda a, b: np.exp([0.5, -1.0, 2.0]) * b),
    (weight + x, lambda a, b: np.array([0.5, -1.0, 2.0]) + a),
]


def grown(children: st.SearchStrategy) -> st.SearchStrategy:
    def unary(pair: Any, child: Any) -> Any:
        return pair[0](child[0]), lambda a, b: pair[1](child[1](a, b))

    def binary(pair: Any, left: Any, right: Any) -> Any:
        return pair[0](left[0], right[0]), lambda a, b: pair[1](left[1](a, b), right[1](a, b))

    return st.one_of(
        st.builds(unary, st.sampled_from(UNARY), children),
        st.builds(binary, st.sampled_from(BINARY), children, children),
    )


TREES = st.recursive(st.sampled_from(LEAVES), grown, max_leaves=6)
POINTS = st.lists(st.floats(-1, 1).map(lambda v: round(v, 3)), min_size=6, max_size=6)


@settings(max_examples=60, deadline=None)
@given(TREES, POINTS)
def test_random_trees_equal_autograd_on_the_plain_function(tree, point) -> None:
    expression, plain = tree
    point = np.array(point)
    stack = compiled(expression, hc.sum(expression), variables=[x, y], split=1)
    forward = stack.evaluate(point, "all")

    def unfolded(vector: Any) -> Any:
        value = plain(vector[:3], vector[3:])
        return anp.concatenate((value, anp.reshape(anp.sum(value), (1,))))

    with np.errstate(all="ignore"):
        expected = unfolded(point)
        if not np.all(np.isfinite(expected)) or np.max(np.abs(expected)) > 1e6:
            return
        expected_jacobian = autograd.jacobian(unfolded)(point)
    scale = 1 + np.max(np.abs(expected_jacobian))
    np.testing.assert_allclose(forward.values, expected, rtol=1e-9, atol=1e-9)
    found = dense(forward.jacobian())
    np.testing.assert_allclose(found, expected_jacobian, rtol=1e-8, atol=1e-8 * scale)
    step = 1e-6
    if step * scale > 1e-2:  # exp(1e6 x): too steep for differences
        return
    for j, unit in enumerate(np.eye(6)):
        sides = [stack.evaluate(point + s * step * unit, "all").values for s in (1, -1)]
        slope = (sides[0] - sides[1]) / (2 * step)
        np.testing.assert_allclose(found[:, j], slope, rtol=1e-3, atol=1e-4 * scale)


def test_parts_split_the_stack() -> None:
    stack = compiled(hc.sum(x), x * y, x[0], variables=[x, y], split=1)
    assert (stack.dimension, stack.size, stack.objective_size) == (6, 5, 1)
    point = np.arange(6.0)
    whole = stack.evaluate(point, "all")
    objective, constraints = (stack.evaluate(point, p) for p in ("objective", "constraints"))
    np.testing.assert_array_equal(
        whole.values, np.concatenate([objective.values, constraints.values])
    )
    np.testing.assert_array_equal(
        dense(whole.jacobian()),
        np.vstack([dense(objective.jacobian()), dense(constraints.jacobian())]),
    )


def test_no_constraints_are_a_normal_case() -> None:
    stack = compiled(hc.sum(x), split=1)
    forward = stack.evaluate(np.ones(3), "constraints")
    assert forward.values.shape == (0,)
    assert forward.jacobian().shape == (0, 3)
    assert stack.hessian(np.ones(3), np.ones(1)).shape == (3, 3)


def test_constant_roots_have_zero_derivatives() -> None:
    stack = compiled(weight * 2.0, x[0] + 0.0, variables=[x])
    forward = stack.evaluate(np.ones(3), "all")
    np.testing.assert_allclose(forward.values, [1.0, -2.0, 4.0, 1.0])
    np.testing.assert_array_equal(forward.jacobian()[:3], np.zeros((3, 3)))
    only_constants = compiled(weight * 2.0, variables=[x])
    np.testing.assert_array_equal(
        only_constants.evaluate(np.ones(3), "all").jacobian(), np.zeros((3, 3))
    )
    np.testing.assert_array_equal(only_constants.hessian(np.ones(3), np.ones(3)), np.zeros((3, 3)))


def test_new_parameter_values_need_only_a_refresh() -> None:
    calls = []

    def folded(a: Any) -> Any:
        calls.append(1)
        return a**2

    p = Parameter(name="p", value=3.0)
    stack = compiled(hc.function(folded, p) * x[0], variables=[x])
    for _ in range(3):
        np.testing.assert_allclose(stack.evaluate(np.ones(3), "all").values, [9.0])
    assert len(calls) == 1
    p.value = 2.0
    stack.refresh()
    np.testing.assert_allclose(stack.evaluate(np.ones(3), "all").values, [4.0])
    assert len(calls) == 2


def test_a_parameter_without_value_is_named() -> None:
    stack = compiled(Parameter(name="cap") * x[0], variables=[x])
    with pytest.raises(DataError, match="'cap' has no value"):
        stack.refresh()


def test_an_unknown_variable_is_named() -> None:
    with pytest.raises(ModelError, match="'y'"):
        compiled(x + y, variables=[x])


def test_a_band_of_rows_needs_few_sweeps() -> None:
    n = 1000
    z = Variable(n)
    stack = compiled(z[:-1] * z[1:], variables=[z])
    point = np.linspace(1, 2, n)
    jacobian = stack.evaluate(point, "all").jacobian()
    assert isinstance(jacobian, sp.csr_array)
    assert jacobian.nnz == 2 * (n - 1)
    expected = sp.diags_array(
        [point[1:], point[:-1]], offsets=[0, 1], shape=(n - 1, n), format="csr"
    )
    assert abs(jacobian - expected).max() == 0
    assert len(stack._plan("all").groups) <= 3


def test_rows_written_one_by_one_are_the_same_band() -> None:
    n = 60
    z = Variable(n)
    rows = [z[i] * z[i + 1] for i in range(n - 1)] + [hc.sum(z)]
    stack = compiled(*rows, variables=[z])
    assert len(stack._plan("all").groups) <= 4
    point = np.linspace(1, 2, n)
    band = np.diag(point[1:]) @ np.eye(n - 1, n) + np.diag(point[:-1]) @ np.eye(n - 1, n, 1)
    expected = np.vstack([band, np.ones((1, n))])
    np.testing.assert_allclose(dense(stack.evaluate(point, "all").jacobian()), expected)


def test_small_jacobians_of_many_roots_are_swept_together(monkeypatch: pytest.MonkeyPatch) -> None:
    z = Variable(5)
    rows = [z[i] * z[j] for i in range(5) for j in range(i)]
    rows += [hc.sqrt(z[0]) * z[1], hc.concatenate([z[:2], hc.square(z)])]
    sweeps = []
    monkeypatch.setattr(forward, "swept_all", lambda *args: sweeps.append(1) or swept_all(*args))
    stack, point = compiled(*rows, variables=[z]), np.array([0.0, 2.0, 3.0, 4.0, 5.0])
    with np.errstate(all="ignore"):
        spoilt = stack.evaluate(point, "all").jacobian()
    slopes = [
        autograd.grad(lambda v, i=i, j=j: v[i] * v[j])(point) for i in range(5) for j in range(i)
    ]
    np.testing.assert_allclose(spoilt[:10], slopes)  # not spoilt by the slope of the root of 0
    assert not np.isfinite(spoilt[10]).all()
    sweeps.clear()
    found = stack.evaluate(point + 1, "all").jacobian()
    assert len(sweeps) == 1
    np.testing.assert_allclose(found[12:], np.vstack([np.eye(5)[1:2], np.diag(2 * point + 2)]))


def test_many_rows_over_few_variables_are_swept_by_columns() -> None:
    data = np.random.default_rng(0).normal(size=(200, 3))
    stack = compiled(hc.exp(data @ x), variables=[x])
    point = np.array([0.1, -0.2, 0.3])
    expected = np.exp(data @ point)[:, None] * data
    np.testing.assert_allclose(stack.evaluate(point, "all").jacobian(), expected)
    assert len(stack._plan("all").groups) == 3


PATTERNS = {
    "elementwise": lambda a, b: a[:, None] * b,
    "movement": lambda a, b: hc.diag(hc.concatenate([b, a[::-1]])),
    "reduction": lambda a, b: hc.sum(hc.reshape(hc.outer(a, a), (2, 3, -1)), axis=(0, 2)) + b[0],
    "running": lambda a, b: hc.cumsum(hc.outer(a, b), axis=1),
    "contraction": lambda a, b: hc.outer(a, b) @ hc.outer(b, a) @ b[[0] * 6],
    "einsum": lambda a, b: hc.einsum("i,j,i->ij", a, b, a),
    "dense": lambda a, b: hc.inv(hc.outer(b, b) + np.eye(6)),
    "stack": lambda a, b: hc.vstack([a, hc.broadcast_to(b[1], (6,))]),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_cover_the_jacobian(name: str) -> None:
    a, b = Variable(6), Variable(6)
    stack = compiled(PATTERNS[name](a, b), variables=[a, b])
    point = np.random.default_rng(1).uniform(0.5, 1.5, 12)
    forward = stack.evaluate(point, "all")
    rows = np.array([forward.pullback(unit) for unit in np.eye(stack.size)])
    np.testing.assert_allclose(dense(forward.jacobian()), rows, rtol=1e-12, atol=1e-12)
    for row, columns in zip(rows, stack._pattern("all"), strict=True):
        assert columns is not None
        assert set(np.flatnonzero(row)) <= columns


def test_groups_of_one_color_share_no_column() -> None:
    rng = np.random.default_rng(2)
    rows = [frozenset(rng.choice(30, size=3).tolist()) for _ in range(40)]
    rows[7] = sparsity.FULL
    colors = sparsity.greedy_colors(rows, 30)
    for color in range(colors.max() + 1):
        members = [rows[i] for i in np.flatnonzero(colors == color)]
        if sparsity.FULL in members:
            assert len(members) == 1
        else:
            assert len(frozenset().union(*members)) == sum(map(len, members))


@pytest.mark.parametrize(
    "outside",
    [
        lambda z: hc.log(z[0] - 2),
        lambda z: hc.sqrt(z[0] - 2),
        lambda z: (z[0] - 2) ** 0.5,
        lambda z: hc.inv_pos(z[0] - 1),
        lambda z: hc.entr(z[0] - 2),
        lambda z: hc.kl_div(z[0] - 2, 1.0),
        lambda z: 1 / (z[0] - 1),
        lambda z: hc.exp(1000 * z[0]),
        lambda z: hc.sum(hc.inv(hc.outer(z, z) * 0)),
        lambda z: hc.logdet(hc.outer(z, z) - 5 * np.diag([1.0, 1.0, -1.0])),
        lambda z: hc.sum(hc.solve(hc.outer(z, z) * 0, np.ones(3))),
        lambda z: hc.trace(hc.lyap(hc.diag(z), np.eye(3))),
        lambda z: hc.trace(hc.dlyap(hc.diag(z), np.eye(3))),
        lambda z: hc.max(hc.log(z - 2)),
        lambda z: hc.maximum(hc.log(z[0] - 2), 1.0) + hc.minimum(1.0, hc.log(z[0] - 2)),
        lambda z: hc.norm(hc.log(z - 2)),
    ],
)
def test_outside_the_domain_is_not_finite_and_silent(outside) -> None:
    stack = compiled(outside(x), x[0], variables=[x])
    forward = stack.evaluate(np.ones(3), "all")
    assert not np.isfinite(forward.values[0])
    assert forward.values[1] == 1.0
    forward.jacobian()
    stack.hessian(np.ones(3), np.ones(2))


@pytest.mark.parametrize(
    ("kinked", "expected"),
    [
        (lambda z: hc.abs(z[0]), [1, 0, 0]),
        (lambda z: hc.max(z), [1, 0, 0]),
        (lambda z: hc.min(z), [1, 0, 0]),
        (lambda z: hc.maximum(z[0], z[1]), [1, 0, 0]),
        (lambda z: hc.minimum(z[1], z[0]), [0, 1, 0]),
        (lambda z: hc.norm(z, 1), [1, 1, 1]),
        (lambda z: hc.norm(z, np.inf), [1, 0, 0]),
        (lambda z: hc.norm(z), [0, 0, 0]),
    ],
)
def test_a_kink_has_the_derivative_of_one_active_piece(kinked, expected) -> None:
    stack = compiled(kinked(x), variables=[x])
    assert stack.kinked
    np.testing.assert_array_equal(stack.evaluate(np.zeros(3), "all").jacobian(), [expected])


def test_smooth_stacks_are_not_kinked() -> None:
    assert not compiled(hc.exp(x) * y).kinked


def test_soft_atoms_do_not_overflow() -> None:
    big = np.array([1000.0, -1000.0, 0.0])
    roots = [hc.sigmoid(x), hc.softplus(x), hc.logsumexp(x), hc.softmax(x)]
    stack = compiled(*roots, variables=[x])
    forward = stack.evaluate(big, "all")
    np.testing.assert_allclose(forward.values, [1, 0, 0.5, 1000, 0, np.log(2), 1000, 1, 0, 0])
    assert np.all(np.isfinite(dense(forward.jacobian())))
    assert np.all(np.isfinite(stack.hessian(big, np.ones(stack.size))))


def test_boundary_values_of_entropies() -> None:
    roots = [hc.entr(x[0]), hc.kl_div(x[0], x[1])]
    values = compiled(*roots, variables=[x]).evaluate(np.array([0.0, 2.0, 0.0]), "all").values
    np.testing.assert_allclose(values, [0.0, 2.0])


def test_a_black_box_must_keep_its_shape() -> None:
    stack = compiled(hc.function(lambda a: a, x), variables=[x])
    with pytest.raises(ModelError, match=r"returned shape \(3,\).*shape=\(\)"):
        stack.evaluate(np.ones(3), "all")
    wrong = hc.function(lambda a: np.sum(a), x, grad=lambda a: np.ones(2))
    with pytest.raises(ModelError, match=r"grad returned shape \(2,\)"):
        compiled(wrong, variables=[x]).evaluate(np.ones(3), "all").jacobian()
    few = hc.function(lambda a, b: np.sum(a * b), x, y, grad=lambda a, b: (b,))
    with pytest.raises(ModelError, match="one for each"):
        compiled(few).evaluate(np.ones(6), "all").jacobian()


def test_black_boxes_with_several_gradients() -> None:
    bilinear = hc.function(lambda a, b: np.sum(a * b), x, y, grad=lambda a, b: (b, a))
    stack = compiled(bilinear, variables=[x, y])
    point = np.arange(6.0)
    np.testing.assert_allclose(stack.evaluate(point, "all").jacobian(), [[3, 4, 5, 0, 1, 2]])
    swap = np.block([[np.zeros((3, 3)), np.eye(3)], [np.eye(3), np.zeros((3, 3))]])
    np.testing.assert_allclose(stack.hessian(point, np.ones(1)), swap, atol=1e-8)


def test_a_singular_hessian_weight_skips_what_it_does_not_need() -> None:
    stack = compiled(hc.log(x[0]), x[1] ** 2, variables=[x])
    hessian = stack.hessian(np.array([-1.0, 1.0, 1.0]), np.array([0.0, 1.0]))
    np.testing.assert_allclose(hessian, np.diag([0.0, 2.0, 0.0]))


def test_compiled_stacks_pickle() -> None:
    p = Parameter(name="p", value=2.0)
    stack = compiled(p * hc.sum(hc.exp(x)), x * y, split=1)
    point = np.linspace(0, 1, 6)
    before = stack.evaluate(point, "all")
    twin, twin_parameter = pickle.loads(pickle.dumps((stack, p)))
    after = twin.evaluate(point, "all")
    np.testing.assert_array_equal(after.values, before.values)
    np.testing.assert_array_equal(dense(after.jacobian()), dense(before.jacobian()))
    twin_parameter.value = 4.0
    twin.refresh()
    np.testing.assert_allclose(twin.evaluate(point, "objective").values, 2 * before.values[:1])


def test_the_point_is_not_changed_and_not_kept() -> None:
    stack = compiled(hc.sum(x**2))
    point = np.ones(3)
    forward = stack.evaluate(point, "all")
    point[:] = 5.0
    np.testing.assert_allclose(forward.jacobian(), [[2.0, 2.0, 2.0]])


def test_passes_without_derivatives_have_the_same_values_and_derivatives() -> None:
    x, weight = Variable(3), Parameter(value=2.0)
    stack = compiled(hc.sum(hc.exp(x * weight)) + hc.prod(x))
    point = np.array([0.3, -0.4, 0.5])
    on_tape = stack.evaluate(point, "constraints")
    plain = stack.evaluate(point, "constraints")
    assert np.array_equal(plain.values, on_tape.values)
    weight.value = 3.0
    stack.refresh()  # of no effect on passes that were made before
    assert np.array_equal(plain.jacobian(), on_tape.jacobian())


def test_functions_of_the_user_are_called_once_at_a_point() -> None:
    points = []

    def function(a: Any) -> Any:
        points.append(a)
        return anp.sum(a**2)

    stack = compiled(hc.function(function, Variable(2)))
    for point in np.eye(2):
        values_only = stack.evaluate(point, "constraints")
    before = len(points)
    assert np.allclose(values_only.jacobian(), [[0.0, 2.0]])
    assert before == len(points)


# functions with gradients of their own


def pair_of_values(x: np.ndarray, c: np.ndarray) -> np.ndarray:
    return np.array([x[0] * c[0] + x[1] ** 2, np.exp(x[0])])


def slopes_of_pair(x: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    by_x = np.array([[c[0], 2 * x[1]], [np.exp(x[0]), 0.0]])
    return by_x, np.array([[x[0], 0.0], [0.0, 0.0]])


def test_functions_with_gradients_need_no_tape_and_agree_with_one() -> None:
    x, y = Variable(2, name="x"), Variable(name="y")
    fixed = Parameter(2, name="c", value=[3.0, 1.0])
    pair = hc.function(pair_of_values, x, fixed, shape=(2,), grad=slopes_of_pair)
    single = hc.function(lambda a, b: b * a[1], x, y, grad=lambda a, b: ([0.0, b], a[1]))
    point, weights = np.array([0.3, -0.7, 2.0]), np.array([1.0, -2.0, 0.5])
    direct = compiled(pair, single, variables=[x, y], split=1).evaluate(point, "all")
    taped = compiled(1.0 * pair, 1.0 * single, variables=[x, y], split=1).evaluate(point, "all")
    assert type(direct) is not type(taped)
    np.testing.assert_allclose(direct.values, taped.values, rtol=1e-14)
    np.testing.assert_allclose(direct.jacobian(), dense(taped.jacobian()), rtol=1e-14)
    np.testing.assert_allclose(direct.pullback(weights), taped.pullback(weights), rtol=1e-14)


def test_a_gradient_that_linear_algebra_gives_up_on_is_not_finite() -> None:
    def singular(x: np.ndarray) -> np.ndarray:
        raise np.linalg.LinAlgError

    x = Variable(2, name="x")
    found = compiled(hc.function(lambda a: a[0], x, grad=singular)).evaluate(np.ones(2), "all")
    assert np.isnan(found.jacobian()).all()
