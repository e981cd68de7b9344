"""The flat graph: order, merging of equal sub-expressions, and depth without recursion."""

from __future__ import annotations

import copy
import pickle

import numpy as np

from hcmodel import atoms as hc
from hcmodel.engines.registry import compile_stack
from hcmodel.expressions.graph import merge, topological_order, values_at, values_once
from hcmodel.expressions.layout import Layout
from hcmodel.expressions.leaves import Parameter, Variable
from hcmodel.expressions.model import Minimize, Model


def test_arguments_come_before_their_node() -> None:
    x = Variable(3)
    expression = hc.exp(x) * x + hc.sum(x)
    order = topological_order([expression])
    place = {id(node): i for i, node in enumerate(order)}
    assert len(place) == len(order)
    assert all(place[id(a)] < place[id(node)] for node in order for a in node.args)


def test_equal_subexpressions_are_merged() -> None:
    x, p = Variable(3), Parameter(value=2.0)
    left = hc.exp(x[0:2] * 2.0) + hc.sum(x, axis=0)
    right = hc.exp(x[0:2] * 2.0) + hc.sum(x, axis=-1)
    graph = merge([left, right, p * left, p * right])
    assert graph.roots[0] == graph.roots[1]
    assert graph.roots[2] == graph.roots[3]
    # leaves x, 2.0, p; index, mul, exp, sum, add, mul
    assert len(graph.steps) == 9


def test_different_parameters_and_keys_are_not_merged() -> None:
    x, y = Variable((2, 2)), Variable((2, 2))
    expressions = [x[0], x[1], y[0], hc.sum(x), hc.sum(x, axis=0), x[[0, 1]], x[[1, 0]], x[0:1]]
    assert len(set(merge(expressions).roots)) == len(expressions)


def test_a_common_subexpression_is_evaluated_once() -> None:
    calls = []

    def counted(a):
        calls.append(1)
        return a * a

    x = Variable()
    roots = [hc.function(counted, x + 1.0) * 2, hc.function(counted, x + 1.0) - 3]
    stack = compile_stack(roots, Layout([x]), 1)
    np.testing.assert_allclose(stack.evaluate(np.array([2.0]), "all").values, [18.0, 6.0])
    assert len(calls) == 1


def test_a_sum_of_ten_thousand_terms_needs_no_recursion() -> None:
    x = Variable(10, name="x")
    x.value = np.ones(10)
    total = 0
    for i in range(10_000):
        total = total + x[i % 10]
    assert total.value == 10_000
    assert str(total).endswith("x[8] + x[9]")
    (only,) = total.variables()
    assert only is x
    stack = compile_stack([total], Layout([x]), 1)
    forward = stack.evaluate(np.ones(10), "objective")
    np.testing.assert_allclose(forward.jacobian(), np.full((1, 10), 1000.0))
    twin = pickle.loads(pickle.dumps(total))
    assert twin.value == 10_000
    copy.deepcopy(total)
    pickle.dumps(stack)


def test_values_at_one_point_with_and_without_a_search_for_equal_expressions() -> None:
    x = Variable(2, name="x")
    rate = Parameter(2, name="rate", value=[2.0, 3.0])
    matrix = hc.reshape(hc.hstack([x, x]), (2, 2))
    roots = [hc.sum(rate * x + 1.0) + x[0] * x[1], hc.exp(x), hc.solve(matrix, x)]
    point, layout = np.array([0.5, -1.0]), Layout([x])
    once = values_once(layout, point, topological_order(roots), roots)
    for mine, other in zip(once, values_at(layout, point, roots), strict=True):
        np.testing.assert_array_equal(mine, other)
    assert float(once[0]) == 2.0 * 0.5 - 3.0 + 2.0 - 0.5
    assert np.isnan(once[2]).all()  # the rows of the matrix are equal


def test_rows_in_another_form_keep_what_is_known_of_their_expressions() -> None:
    x, y = Variable(3, name="x", pos=True), Variable(name="y", pos=True)
    row = hc.sum(x) <= 1 + y
    model = Model(Minimize(y), (row,))
    known = model.nodes, model.variables, model.layout
    same = model.with_rows((row.like(row.lhs, row.rhs, form="log"),), "log")
    assert all(
        one is other for one, other in zip((same.nodes, same.variables), known, strict=False)
    )
    assert same.layout is known[2]
    assert (same.objective_form, same.constraints[0].form) == ("log", "log")
    turned = model.with_rows((row.like(row.rhs, row.lhs, sense=">="),), "plain")
    assert turned.nodes == tuple(topological_order(turned.roots))
    assert turned.nodes is not known[0]
    other = model.with_rows((row.like(row.lhs, row.rhs, sense="=="),), "plain")
    assert other.nodes is not known[0]
