"""Comprehensions, families and indexed `let`s mean what plain loops over the indices mean."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hcmodel import grammar
from hcmodel.grammar import syntax
from hcmodel.problem import parse
from tests.extent import several
from tests.hcmodel.frontend.random_models import TameModels
from tests.hcmodel.frontend.reference import Reference
from tests.steps import counted

DATA = {
    "n": 3,
    "A": np.array([[0.5, -1, 2], [1.5, 0.25, -0.5], [1, 1, -2]]),
    "b": np.array([0.5, 1, 2]),
    "r": 0.75,
    "S": np.array([1, 3]),
}


def loaded(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of variables that a random model does not use
        return parse(text)


def set_values(problem, seed):
    random = np.random.default_rng(seed)
    values = {}
    for variable in problem.variables:
        lower, upper = np.maximum(variable.lower, -2), np.minimum(variable.upper, 2)
        variable.value = values[variable.name] = random.uniform(lower, upper)
    return values


@settings(max_examples=several(30, 150), deadline=None)
@given(st.integers(0, 2**32))
def test_a_random_model_has_the_values_that_plain_loops_give(seed):
    text = TameModels(seed).model()
    problem = loaded(text)
    names = {"x": np.ones(3), "v": np.zeros(4), "s": 1.0, "Y": np.zeros((3, 3))}
    names |= DATA | set_values(problem, seed)
    reference = Reference(names, {"v": 0})
    constraints = iter(problem.constraints)
    for statement in grammar.parse(text).statements:
        if isinstance(statement, syntax.LetDeclaration):
            values = [
                reference(statement.value, each)
                for each in reference.members(statement.generators, None, {})
            ]
            value = values if statement.generators else values[0]
            reference.names[statement.name.identifier] = np.array(value)
        elif isinstance(statement, syntax.Objective):
            expected = reference(statement.expression)
            np.testing.assert_allclose(problem.objective.expression.value, expected, rtol=1e-9)
        elif isinstance(statement, syntax.Constraint):
            members = reference.members(statement.generators, statement.condition, {})
            for position in range(len(statement.comparison.operators)):
                constraint = next(constraints)
                left, right = statement.comparison.operands[position : position + 2]
                expected = [reference(left, each) - reference(right, each) for each in members]
                found = constraint.lhs.value - constraint.rhs.value
                np.testing.assert_allclose(
                    np.broadcast_to(found, constraint.shape).ravel(),
                    np.ravel(expected),
                    rtol=1e-9,
                    atol=1e-9,
                )
    assert next(constraints, None) is None


def graph_size(problem):
    return len(problem.compile().program.graph.steps)


POSYNOMIAL = """
param K, d
param b[K] > 0, a[K,d]
var x[d] in [0.5, 2]
minimize sum(b[k] * prod(x[i]^a[k,i] for i in 1..d) for k in 1..K)
subject to
    pair[i in 1..d-1]: x[i] * x[i+1] <= 1
    far[i in 1..d, j in i..d if j > i + 1 and j < i + 4]: x[i] / x[j] <= 4
"""


def posynomial(terms, dimension):
    random = np.random.default_rng(0)
    data = {"b": random.uniform(0.1, 1, terms), "a": random.normal(size=(terms, dimension)) / 30}
    return parse(POSYNOMIAL, data), data


def test_the_graph_follows_the_text_and_not_the_data():
    small, _ = posynomial(3, 6)
    large, _ = posynomial(40, 400)
    assert graph_size(small) == graph_size(large)


def test_a_large_posynomial_is_evaluated_in_array_operations():
    calls = []
    for terms, dimension in ((3, 6), (100, 1000)):
        problem, data = posynomial(terms, dimension)
        stack = problem.compile()
        point = np.random.default_rng(1).uniform(0.5, 2, dimension)
        stack.evaluate(point, "objective").jacobian()  # makes the plan of the sweeps

        def differentiated(stack=stack, point=point):
            forward = stack.evaluate(point, "objective")
            return forward.values, forward.jacobian()

        (values, gradient), count = counted(differentiated)
        calls.append(count)
        monomials = data["b"] * np.exp(data["a"] @ np.log(point))
        np.testing.assert_allclose(values, [monomials.sum()])
        np.testing.assert_allclose(np.ravel(gradient), monomials @ data["a"] / point)
    assert calls[1] == calls[0] < 1000


@pytest.mark.parametrize(
    ("declaration", "written"),
    [("in [0.5, 2]", "exp"), ("> 0", "exp"), ("in [0, 2]", "prod"), ("", "prod")],
)
def test_products_of_powers_go_through_logarithms_where_the_base_is_positive(declaration, written):
    problem = parse(f"var x[3] {declaration}\nminimize prod(x[i]^2 for i in 1..3)")
    assert str(problem.objective.expression).startswith(written)


def test_a_filter_keeps_functions_away_from_what_it_leaves_out():
    problem = parse(
        "param c[3] = [1, -1, 2]\nvar x[3] in [1, 2]\n"
        "minimize sum(log(c[i]*x[i]) for i in 1..3 if c[i] > 0)"
    )
    problem.variables[0].value = np.ones(3)
    assert problem.objective.expression.value == pytest.approx(np.log(2))


def test_families_keep_their_index_tuples():
    problem = parse(
        "var x[4] in [0, 1]\nminimize sum(x)\nsubject to\n"
        "    c[i in 1..4, j in 1..4 if i < j]: x[i] + x[j] >= 1\n    d[i in 2..4]: x[i] <= 1"
    )
    family = problem.families["c"]
    assert family.indices == ("i", "j")
    assert family.members.tolist() == [[1, 2], [1, 3], [1, 4], [2, 3], [2, 4], [3, 4]]
    assert [dimension.length for dimension in family.ranges] == [4, 4]
    assert problem.families["d"].members is None
    assert problem.families["d"].ranges[0].first == 2


def test_a_filtered_sum_of_products_is_one_matrix_product():
    problem = parse(
        "param G[3,3] = 1\nvar p[3] in [1, 2]\nminimize sum(p)\nsubject to\n"
        "    row[i in 1..3]: p[i] >= sum(G[i,j]*p[j] for j in 1..3 if j != i)"
    )
    (row,) = problem.constraints
    assert row.rhs.atom.name == "matmul"
    problem.variables[0].value = [1, 2, 4]
    assert row.rhs.value.tolist() == [6, 5, 3]


@pytest.mark.parametrize(
    ("element", "condition", "expected"),
    [
        ("log(x[i])", "i > 1", np.log(2) + np.log(4)),  # x[1] = 0 has no logarithm
        ("x[i]*x[i-1]", "i > 1", 8),  # x[0] does not exist
        ("x[i]^-1", "i > 1", 0.75),
        ("x[i]^2", "i > 1", 20),
        ("x[i]*[1, 1]", "i > 1", 12),
        ("3", "i > 1", 6),
        ("x[i]", "i > 5", 0),
        ("x[i]", "1 > 2", 0),
    ],
)
def test_what_a_filter_leaves_out_has_no_part_in_the_sum(element, condition, expected):
    problem = parse(
        f"var x[3] in [0, 9]\nminimize x[1] + sum(sum({element} for i in 1..3 if {condition}))"
    )
    problem.variables[0].value = [0, 2, 4]
    assert problem.objective.expression.value == pytest.approx(expected)
