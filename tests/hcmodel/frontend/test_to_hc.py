"""`to_hc` prints text that loads back to an equal problem."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hcmodel as hc
from hcmodel.frontend.to_hc import hc_data, to_hc
from hcmodel.problem import parse
from tests.extent import several
from tests.hcmodel.frontend.random_models import TameModels


def reloaded(problem):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of variables that a random model does not use
        return parse(to_hc(problem), hc_data(problem))


def same_arrays(first, second):
    np.testing.assert_allclose(first, second, rtol=1e-9, atol=1e-9)


def assert_equal(first, second, seed=0):
    """Same variables, domains, starts, constraints, values and gradients at random points."""
    assert type(first.objective) is type(second.objective)
    assert {v.name for v in first.variables} == {v.name for v in second.variables}
    assert [c.name for c in first.constraints] == [c.name for c in second.constraints]
    assert [c.sense for c in first.constraints] == [c.sense for c in second.constraints]
    assert [c.size for c in first.constraints] == [c.size for c in second.constraints]
    twins = {variable.name: variable for variable in second.variables}
    random = np.random.default_rng(seed)
    for variable in first.variables:
        twin = twins[variable.name]
        assert variable.shape == twin.shape
        assert variable.pos == twin.pos
        same_arrays(variable.lower, twin.lower)
        same_arrays(variable.upper, twin.upper)
        assert (variable.start is None) == (twin.start is None)
        if variable.start is not None:
            same_arrays(variable.start, twin.start)
        low, high = np.maximum(variable.lower, -2), np.minimum(variable.upper, 2)
        variable.value = twin.value = random.uniform(low, high)
    evaluated = []
    for problem in (first, second):
        stack = problem.compile()
        point = problem.canonical.layout.pack([v.value for v in problem.variables])
        forward = stack.evaluate(point, "all")
        jacobian = forward.jacobian()
        jacobian = jacobian.toarray() if hasattr(jacobian, "toarray") else jacobian
        slices = {v.name: problem.canonical.layout.slice(v) for v in problem.variables}
        names = sorted(slices)
        evaluated.append((jacobian[0, :], names, slices))
        problem_sides = [c.lhs.value - c.rhs.value for c in problem.constraints]
        evaluated[-1] += (forward.values[0], problem_sides)
    (one, names, places, value, sides), (other, _, others, twin_value, twin_sides) = evaluated
    same_arrays(value, twin_value)
    for name in names:
        same_arrays(one[places[name]], other[others[name]])
    for left, right in zip(sides, twin_sides, strict=True):
        same_arrays(np.ravel(left), np.ravel(right))
    hidden, twin_hidden = first.hidden or (), second.hidden or ()
    for left, right in zip(hidden, twin_hidden, strict=True):
        same_arrays(left.value, right.value)


@settings(max_examples=several(20, 400), deadline=None)
@given(st.integers(0, 2**32))
def test_a_random_model_written_from_its_graph_loads_back_to_itself(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem = parse(TameModels(seed).model())
    problem = hc.Problem.of(replace(problem.model, source=None))
    assert_equal(problem, reloaded(problem), seed)


@settings(max_examples=several(10, 100), deadline=None)
@given(st.integers(0, 2**32))
def test_a_random_model_written_in_its_own_words_loads_back_to_itself(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem = parse(TameModels(seed).model())
    for parameter in problem.parameters:
        parameter.value = parameter.value * 1.5
    assert_equal(problem, reloaded(problem), seed)


def test_a_model_built_in_python_reads_well():
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    cap = hc.Parameter(name="cap", value=1.0)
    area = (x[0] * x[1] <= cap).named("area")
    problem = hc.Problem(hc.Minimize(x[0] * x[1] + 4 / x[0] + 1 / x[1]), [area], hidden=[hc.log(x)])
    assert to_hc(problem) == (
        "var x[2] in [0.4, 3]\n"
        "param cap = 1\n"
        "\n"
        "minimize x[1] * x[2] + 4 / x[1] + 1 / x[2]\n"
        "\n"
        "subject to\n"
        "    area: x[1] * x[2] <= cap\n"
        "\n"
        "hidden log(x)\n"
    )
    assert_equal(problem, reloaded(problem))


def python_models():
    x = hc.Variable(3, name="x", bounds=(0.5, 2), start=[1, 1.5, 2])
    y = hc.Variable((2, 3), name="y", bounds=([[-1, 0, -2]] * 2, [[1, np.inf, 2]] * 2))
    z = hc.Variable(name="z", pos=True)
    w = hc.Variable((3, 3), name="w", nonneg=True)
    p = hc.Parameter((3,), name="p", value=[1, 2, 3], pos=True)
    shared = hc.exp(x * p) + hc.square(x)
    yield "shared parts", hc.Minimize(hc.sum(shared / (1 + shared))), [shared <= 50]
    yield "indices", hc.Minimize(x[-1] * y[1, ::2] @ x[[0, 2]]), [y[:, [2, 0]] <= x[None, :2]]
    yield "masks", hc.Minimize(hc.sum(x[np.array([True, False, True])])), []
    yield "new axes", hc.Minimize(hc.sum(x[:, None] * x[None, :])), []
    yield "negative numbers", hc.Minimize((-2.5) ** 2 * z - (-3) * z + -(z**2)), [-z <= -1e-5]
    yield "towers", hc.Minimize(z ** (z**2) + (z**z) ** 2 + 2.0**-z), []
    yield "differences", hc.Minimize(z - (z - (z - 1)) / (z / (z / 2))), []
    yield "matrices", hc.Minimize(hc.trace(w @ w.T) + hc.quad_form(x, w)), [w.T @ x == p]
    yield "reductions", hc.Maximize(hc.sum(hc.max(w, axis=0)) + hc.norm(x, 1)), []
    yield "norms", hc.Minimize(hc.norm(w) + hc.norm(x, np.inf) + hc.sum(hc.norm(w, 2, axis=1))), []
    yield "stacks", hc.Minimize(hc.sum(hc.vstack(x, p) * hc.hstack(z, x[:2]))), []
    yield "joined", hc.Minimize(hc.sum(hc.concatenate(w, y, axis=0))), []
    yield "einsum", hc.Minimize(hc.einsum("ij,j->", w, x)), [hc.kron(w, w) >= -1]
    yield "solve", hc.Minimize(hc.sum(hc.solve(w + 9 * np.eye(3), x))), []
    yield "transposed", hc.Minimize(hc.sum(hc.transpose(w, (1, 0)) @ x)), [hc.diag(w) <= x]
    yield "long", hc.Minimize(sum(i * hc.exp(x[i % 3] / i) for i in range(1, 200))), []
    deep = z
    for _ in range(150):
        deep = hc.log1p(deep + 1)
    yield "deep", hc.Minimize(deep), []
    yield "many numbers", hc.Minimize(hc.sum(np.arange(300.0).reshape(100, 3) @ x)), []
    big = hc.Variable(100, name="big", bounds=(0, 1), start=0.5)
    many = hc.Variable(
        100, name="many", bounds=(np.linspace(-1, 0, 100), 1), start=np.linspace(0, 1, 100)
    )
    yield "many bounds", hc.Minimize(hc.sum(many)), []
    yield "large gather", hc.Minimize(hc.sum(big[np.arange(99, -1, -1)] * np.arange(100.0))), []


@pytest.mark.parametrize("case", list(python_models()), ids=lambda case: case[0])
def test_python_models_load_back(case):
    _, objective, constraints = case
    problem = hc.Problem(objective, constraints)
    assert_equal(problem, reloaded(problem))


def test_large_arrays_stand_apart():
    values = np.linspace(1, 2, 1000)
    x = hc.Variable(1000, name="x", bounds=(0, 1))
    a = hc.Parameter(1000, name="a", value=values)
    problem = hc.Problem(hc.Minimize(a @ x))
    assert len(to_hc(problem)) < 100
    assert list(hc_data(problem)) == ["a"]
    assert_equal(problem, reloaded(problem))
    model = hc.Problem(hc.Minimize(a @ x))
    assert list(model.data()) == ["a"]
    assert_equal(model, hc.parse(model.to_hc(), model.data()))


def test_a_loaded_model_keeps_its_words_and_takes_new_values():
    text = "# why\nparam n, a[n] > 0  # data\nvar x[n] in [0, 1]\nminimize sum(a[i]*x[i] for i in 1..n)\n"
    problem = parse(text, {"a": [1, 2]})
    problem.parameters[0].value = [3, 4]
    assert to_hc(problem) == (
        "# why\nparam n = 2, a[n] > 0 = [3, 4]  # data\nvar x[n] in [0, 1]\n"
        "minimize sum(a[i] * x[i] for i in 1..n)\n"
    )


def test_a_replaced_default_may_span_lines():
    problem = parse("param a[2] = [\n  1,\n  2\n]\nvar x[2]\nminimize a @ x", {"a": [5, 6]})
    assert to_hc(problem).startswith("param a[2] = [5, 6]\n")


def test_chains_come_back_as_chains():
    problem = parse("var x\nminimize x\nsubject to\n    2 >= x >= 1\n    x <= 5")
    names = [constraint.name for constraint in problem.constraints]
    assert names == ["c1.upper", "c1.lower", "c2"]
    problem = hc.Problem.of(replace(problem.model, source=None))
    assert "c1: 2 >= x >= 1" in to_hc(problem)
    assert_equal(problem, reloaded(problem))


def test_python_code_has_no_text():
    x = hc.Variable(name="x")
    problem = hc.Problem(hc.Minimize(hc.function(lambda a: a * a, x)))
    with pytest.raises(hc.ModelError, match=r"hc\.function wraps Python code"):
        to_hc(problem)


@pytest.mark.parametrize("name", ["two words", "log", "var", "1x"])
def test_a_name_that_the_language_lacks_is_refused(name):
    problem = hc.Problem(hc.Minimize(hc.Variable(name=name)))
    with pytest.raises(hc.ModelError, match="cannot stand in a model file"):
        to_hc(problem)


def test_a_parameter_without_a_value_is_refused():
    problem = hc.Problem(hc.Minimize(hc.Variable(name="x") * hc.Parameter(name="p")))
    with pytest.raises(hc.ModelError, match="parameter 'p' has no value"):
        to_hc(problem)
