"""Expressions: shapes and values as numpy's, indexing, numpy's functions, errors that help."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import basic_indices, mutually_broadcastable_shapes

from hcmodel import atoms as hc
from hcmodel.errors import DataError, HCError, ModelError
from hcmodel.expressions.foreign_habits import MODULE
from hcmodel.expressions.leaves import Constant, Constraint, Expression, Parameter, Variable
from hcmodel.expressions.printing import infix
from hcmodel.expressions.variable_sets import BoxSet, SemidefiniteSet, SimplexSet, SymmetricSet


@pytest.fixture
def x() -> Variable:
    variable = Variable(3, name="x")
    variable.value = [1.0, 2.0, 4.0]
    return variable


def same(expression: Expression, expected: object) -> None:
    assert isinstance(expression, Expression)
    assert expression.shape == np.shape(expected)
    np.testing.assert_allclose(expression.value, expected)


def test_operators_mean_what_numpy_means(x: Variable) -> None:
    v = np.array([1.0, 2.0, 4.0])
    same(x + 1, v + 1)
    same(1 - x, 1 - v)
    same(2 * x / 3, 2 * v / 3)
    same(8 / x, 8 / v)
    same(x**2, v**2)
    same(2**x, 2**v)
    same(-x, -v)
    same(+x, v)
    same(abs(-x), v)
    same(x @ x, v @ v)
    same(np.ones((2, 3)) @ x, np.ones((2, 3)) @ v)
    same(x.T, v)
    same(sum(x), v.sum())


def test_arrays_on_the_left_do_not_swallow_expressions(x: Variable) -> None:
    v = np.array([1.0, 2.0, 4.0])
    for expression, expected in [(v + x, 2 * v), (v - x, 0 * v), (v * x, v * v), (v / x, v / v)]:
        same(expression, expected)
    same(v[:, None] * x, np.outer(v, v))
    same(np.float64(2.0) * x, 2 * v)
    constraint = v <= x
    assert isinstance(constraint, Constraint)
    assert constraint.sense == "<="
    assert constraint.rhs is x


@given(mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3))
def test_broadcast_shapes_are_numpys(shapes) -> None:
    (left, right), result = shapes
    assert (Variable(left) * Variable(right)).shape == result
    assert hc.maximum(Variable(left), Variable(right)).shape == result
    assert (Variable(left) <= Variable(right)).shape == result


@given(st.data())
def test_basic_indexing_is_numpys(data) -> None:
    array = np.arange(24.0).reshape(2, 3, 4)
    key = data.draw(basic_indices(array.shape, allow_newaxis=True))
    same(Constant(array)[key], array[key])


def test_fancy_indexing_is_numpys() -> None:
    array = np.arange(12.0).reshape(3, 4)
    keys = [
        [0, 2],
        ([0, 1], [1, 3]),
        (slice(None), np.array([[0, 1], [2, 3]])),
        array > 4,
        np.array([True, False, True]),
        (..., -1),
        np.int64(1),
    ]
    for key in keys:
        same(Constant(array)[key], array[key])


def test_iteration_goes_over_the_first_axis() -> None:
    matrix = Constant(np.arange(6.0).reshape(2, 3))
    assert len(matrix) == 2
    for row, expected in zip(matrix, matrix.value, strict=True):
        same(row, expected)
    with pytest.raises(TypeError, match="scalar"):
        len(Constant(1.0))
    with pytest.raises(TypeError, match="scalar"):
        iter(Constant(1.0))


def test_numpy_functions_dispatch_to_atoms(x: Variable) -> None:
    v = np.array([1.0, 2.0, 4.0])
    for function in (np.log, np.exp, np.sqrt, np.square, np.sin, np.cos, np.tanh, np.log1p):
        same(function(x), function(v))
    for function in (np.sum, np.prod, np.mean, np.cumsum, np.max, np.min, np.diag, np.linalg.norm):
        same(function(x), function(v))
    matrix = Constant(np.array([[2.0, 1.0], [0.0, 3.0]]))
    for function in (np.linalg.inv, np.linalg.det, np.trace, np.transpose, np.ravel):
        same(function(matrix), function(matrix.value))
    same(np.sum(matrix, 0), matrix.value.sum(0))
    same(np.sum(matrix, axis=1), matrix.value.sum(1))
    same(np.linalg.norm(matrix), np.linalg.norm(matrix.value))
    same(np.linalg.norm(x, ord=1), 7.0)
    same(np.maximum(x, 2), np.maximum(v, 2))
    same(np.hstack([x, x]), np.hstack([v, v]))
    same(np.concatenate([x, np.ones(2)]), np.concatenate([v, np.ones(2)]))
    same(np.einsum("i,i->", x, x), 21.0)
    same(np.dot(v, x), 21.0)
    same(np.matmul(v, x), 21.0)
    same(np.reciprocal(x), 1 / v)
    same(np.reshape(x, (3, 1)), v.reshape(3, 1))
    assert np.shape(x) == (3,)
    assert np.size(x) == 3


@pytest.mark.parametrize("call", [np.arctan, np.median, np.add.reduce, np.sort, np.asarray])
def test_other_numpy_functions_raise_with_a_hint(call, x: Variable) -> None:
    with pytest.raises(ModelError, match=r"hc\."):
        call(x)


def test_in_place_numpy_is_refused(x: Variable) -> None:
    array = np.ones(3)
    with pytest.raises(ModelError, match="add"):
        array += x


def test_constraints_are_kept_as_written(x: Variable) -> None:
    constraint = (x[0] * x[1] <= 1).named("area")
    assert constraint.name == "area"
    assert str(constraint) == "x[0] * x[1] <= 1"
    assert repr(constraint) == "area: x[0] * x[1] <= 1"
    assert constraint.shape == ()
    assert constraint.dual_value is None
    np.testing.assert_allclose(constraint.violation(), 1.0)
    np.testing.assert_allclose((x >= 2).violation(), [1.0, 0.0, 0.0])
    np.testing.assert_allclose((x == 2).violation(), [1.0, 0.0, 2.0])
    with pytest.raises(ModelError, match="no value"):
        (Variable() <= 1).violation()


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda x: 0 <= x <= 1, "chain"),
        (lambda x: x < 1, "<="),
        (lambda x: x > 1, ">="),
        (lambda x: x != 1, "<="),
        (lambda x: x ^ 2, r"\*\*"),
        (lambda x: 2 ^ x, r"\*\*"),
        (lambda x: bool(x), "truth"),
        (lambda x: x + np.ones(2), r"\(3,\) and \(2,\).*'\+'"),
        (lambda x: x <= np.ones(2), r"\(3,\) and \(2,\).*'<='"),
        (lambda x: x @ np.ones(2), r"\(3,\) and \(2,\).*'@'"),
        (lambda x: 2.0 @ x, r"\*"),
        (lambda x: x[3], r"\[3\].*\(3,\).*start at 0"),
        (lambda x: x[0, 1], r"\(3,\)"),
        (lambda x: x[1.5], "integer"),
        (lambda x: hc.sum(x, axis=1), "axis 1"),
        (lambda x: hc.sum(x, 0), "keywords"),
        (lambda x: hc.sum(x, dim=0), "axis"),
        (lambda x: hc.exp(), "exp"),
        (lambda x: hc.max(x[0], x[1]), "use maximum"),
        (lambda x: hc.reshape(x, (2, 2)), r"\(3,\).*\(2, 2\)"),
        (lambda x: hc.inv(x), "square"),
        (lambda x: hc.norm(x, 0.5), "p >= 1"),
        (lambda x: hc.norm(hc.outer(x, x), 2), "fro"),
        (lambda x: hc.einsum("ij,j", x, x), r"'ij' does not fit shape \(3,\)"),
        (lambda x: hc.einsum("i,i->j", x, x), "labels"),
        (lambda x: hc.einsum("ii", hc.outer(x, x)), "diag"),
        (lambda x: hc.exp([x, x[1]]), "hstack"),
        (lambda x: hc.concatenate([x[0], x[1]]), "hstack"),
        (lambda x: hc.exp(x <= 1), "constraint"),
        (lambda x: hc.max(Variable(0)), "no entries"),
        (lambda x: hc.function(3, x), "callable"),
        (lambda x: (x <= 1).named(""), "name"),
    ],
)
def test_model_errors_say_what_to_do(wrong, hint: str, x: Variable) -> None:
    with pytest.raises(ModelError, match=hint):
        wrong(x)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda: Variable(2, name="x", bounds=([0, 3], [1, 2])), r"'x'.*x\[1\].*lower 3"),
        (lambda: Variable(name="x", bounds=(1, 0)), "'x'.*empty"),
        (lambda: Variable(name="x", pos=True, bounds=(None, 0)), "empty"),
        (lambda: Variable(name="x", bounds=3), "pair"),
        (lambda: Variable((2, 3), name="P", symmetric=True), r"'P'.*square"),
        (lambda: Variable(3, name="P", PSD=True), "square"),
        (lambda: Variable((2, 2), name="P", PSD=(3, 1)), "PSD"),
        (lambda: Variable(name="p", simplex=True), "last axis"),
        (lambda: Variable(-1), "negative"),
        (lambda: Variable(2.5), "integer"),
        (lambda: Variable(name=3), "string"),
    ],
)
def test_variable_declarations_are_checked(wrong, hint: str) -> None:
    with pytest.raises(ModelError, match=hint):
        wrong()


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda: Variable(2, name="x", bounds=(np.nan, 1)), "lower bound of variable 'x'"),
        (lambda: Variable(2, name="x", bounds=(np.zeros(3), 1)), r"\(3,\).*\(2,\)"),
        (lambda: Variable(2, name="x", start=[1, np.nan]), r"start of variable 'x'.*\(1,\)"),
        (lambda: setattr(Variable(2, name="x"), "value", [1.0]), "'x'"),
        (lambda: setattr(Variable(name="x"), "value", np.inf), "'x'.*finite"),
        (lambda: Parameter(2, name="b", value=[1, np.nan]), r"parameter 'b'.*NaN at entry \(1,\)"),
        (lambda: Parameter(2, name="b", value=1.0), r"'b' has shape \(\)"),
        (lambda: Parameter(name="b", value=-1, pos=True), "'b' must be positive"),
        (lambda: Parameter(name="b", value=-1, nonneg=True), "'b' must be >= 0"),
        (lambda: Variable() + np.nan, "constant is NaN"),
        (lambda: Variable() * np.inf, "finite"),
        (lambda: Variable() + "a", "real number"),
        (lambda: Variable() + 1j, "real number"),
    ],
)
def test_data_is_checked(wrong, hint: str) -> None:
    with pytest.raises(DataError, match=hint):
        wrong()


def test_all_errors_are_one_tree() -> None:
    assert issubclass(ModelError, HCError)
    assert issubclass(DataError, HCError)


def test_bounds_fold_and_spread() -> None:
    x = Variable((2, 2), bounds=(None, [1, np.inf]), nonneg=True)
    np.testing.assert_array_equal(x.lower, np.zeros((2, 2)))
    np.testing.assert_array_equal(x.upper, [[1, np.inf], [1, np.inf]])
    assert Variable(pos=True).pos
    assert Variable((2, 2), PSD=1e-3).eigenvalue_bounds == (1e-3, np.inf)
    assert isinstance(Variable(2).set, BoxSet)
    assert isinstance(Variable((2, 2), symmetric=True).set, SymmetricSet)
    assert isinstance(Variable((2, 2), PSD=True).set, SemidefiniteSet)
    assert isinstance(Variable((2, 3), simplex=True).set, SimplexSet)


def test_a_value_remembers_who_wrote_it() -> None:
    x = Variable(name="x")
    assert x._value_origin is None
    x.value = 1.0
    assert x._value_origin == "user"
    x._write(2.0, "solve")
    assert x._value_origin == "solve"
    x.value = None
    assert x._value_origin is None


def test_parameter_versions_grow_with_each_value() -> None:
    p = Parameter(2, value=[1, 2])
    before = p.version
    p.value = [3, 4]
    assert p.version == before + 1
    with pytest.raises(ValueError, match="read-only"):
        p.value[0] = 5


def test_unnamed_leaves_have_distinct_names() -> None:
    names = {Variable().name for _ in range(5)} | {Parameter().name for _ in range(5)}
    assert len(names) == 10


def test_leaves_inside_an_expression_are_found_once(x: Variable) -> None:
    y, p = Variable(name="y"), Parameter(name="p", value=2.0)
    expression = p * x[0] + y * x[1] + p
    assert [v.name for v in expression.variables()] == ["x", "y"]
    assert [q.name for q in expression.parameters()] == ["p"]
    assert expression.value is None
    assert expression in {expression}


def test_expressions_print_as_written(x: Variable) -> None:
    y = Variable((2, 2), name="y")
    p = Parameter(name="p")
    cases = {
        x[0] * x[1] + 4 / x[0]: "x[0] * x[1] + 4 / x[0]",
        -(x[0] ** 2): "-x[0]**2",
        (-x[0]) ** 2: "(-x[0])**2",
        (x[0] + 1) * 2: "(x[0] + 1) * 2",
        x[0] - (x[1] - p): "x[0] - (x[1] - p)",
        2 ** (x[0] ** 2): "2**x[0]**2",
        y.T @ y[:, 0]: "y.T @ y[:, 0]",
        hc.sum(hc.exp(y), axis=0): "sum(exp(y), axis=(0,))",
        x[::2] * -3: "x[::2] * -3",
        x + np.ones(3): "x + [1., 1., 1.]",
    }
    for expression, text in cases.items():
        assert str(expression) == text
    assert repr(x) == "Variable((3,), name='x')"
    assert len(str(hc.hstack([x] * 500))) < 500


UNKNOWN = {
    "did you mean `symmetric`": lambda: Variable((2, 2), symetric=True),
    r"nonnegative=True of hc\.Variable is nonneg=True": lambda: Variable(nonnegative=True),
    r"positive=True of hc\.Variable is pos=True": lambda: Variable(positive=True),
    r"lower=0 of hc\.Variable is bounds=\(lower, upper\)": lambda: Variable(lower=0),
    "its arguments are shape, name, bounds, start": lambda: Variable(colour=1),
    "its arguments are shape, name, value, pos, nonneg$": lambda: Parameter(colour=1),
}


@pytest.mark.parametrize("message", UNKNOWN)
def test_arguments_that_are_not_there_are_answered(message: str) -> None:
    for kind in (ModelError, TypeError):  # as hcmodel's errors, and as Python's own
        with pytest.raises(kind, match=message):
            UNKNOWN[message]()


def test_a_name_in_the_place_of_the_shape_is_answered() -> None:
    with pytest.raises(
        ModelError, match=r"write hc\.Variable\(name='x'\), or hc\.Variable\(n, name='x'\)"
    ):
        Variable("x")
    with pytest.raises(ModelError, match=r"write hc\.Parameter\(name='cap'\)"):
        Parameter("cap", 3)


def test_bounds_as_pairs_for_each_entry_are_refused_with_what_to_write() -> None:
    both = (
        r"as in scipy, write bounds=\(\[0, 0\], \[1, 2\]\); "
        r"for the lower bounds \[0, 1\] and the upper bounds \[0, 2\], "
        r"write bounds=\(\[0, 1\], \[0, 2\]\)"
    )
    for bounds in ([(0, 1), (0, 2)], ((0, 1), (0, 2))):
        with pytest.raises(ModelError, match=both):
            Variable(2, bounds=bounds)
    with pytest.raises(ModelError, match=r"write bounds=\(\[0, 0, None\], \[1, 2, 3\]\)"):
        Variable(3, bounds=[(0, 1), (0, 2), (None, 3)])
    with pytest.raises(ModelError, match=r"write bounds=\(\[0, 0, 0, 0, …\], \[1, 1, 1, 1, …\]\)"):
        Variable(9, bounds=[(0, 1)] * 9)


def test_bounds_as_arrays_are_lower_and_upper_ones() -> None:
    for bounds in (
        ([0, 1], [0.5, 2]),
        [[0, 1], [0.5, 2]],
        [np.array([0, 1]), np.array([0.5, 2])],
        (np.array([0, 1]), (0.5, 2)),
    ):
        x = Variable(2, bounds=bounds)
        assert (list(x.lower), list(x.upper)) == ([0, 1], [0.5, 2])
    wide = Variable((3, 2), bounds=((0, 1), (0.5, 2)))
    assert wide.lower.tolist() == [[0, 1]] * 3


def test_a_format_for_numbers_asks_for_the_value(x: Variable) -> None:
    with pytest.raises(
        ModelError, match=r"the expression x\[0\] is not a number.*: x\[0\]\.value$"
    ):
        f"{x[0]:.3f}"
    with pytest.raises(ModelError, match=r"take its value: \(x\[0\] \+ x\[1\]\)\.value$"):
        format(x[0] + x[1], "g")
    assert f"{x[0]} {x[2].value:.2f} {x.value[2]:.1f}" == "x[0] 4.00 4.0"


FORMULAS = (
    "cosh",
    "sinh",
    "tan",
    "log2",
    "log10",
    "expm1",
    "exp2",
    "cbrt",
    "std",
    "var",
    "ptp",
    "diff",
)


@pytest.mark.parametrize("name", FORMULAS)
def test_numpys_functions_that_are_no_atoms_say_what_to_write(x: Variable, name: str) -> None:
    function = getattr(np, name)
    with pytest.raises(
        ModelError, match=rf"np\.{name} is not known for expressions; write"
    ) as raised:
        function(x)
    text = str(raised.value).partition("; write ")[2].partition(", for")[0]
    written = eval(text, {"hc": hc, "numpy": np, "a": x})
    np.testing.assert_allclose(written.value, function(x.value), rtol=1e-14)


def test_formulas_for_functions_of_two_arguments_and_matrices() -> None:
    a, b, n = Variable(2, name="a"), Variable(2, name="b"), 3
    A = Variable((n, n), name="A")
    a.value, b.value, A.value = [1.0, 2.0], [3.0, 0.5], np.arange(9.0).reshape(3, 3)
    names = {"hc": hc, "numpy": np, "A": A, "n": n, "p": 2, "q": 1}
    for name in ("tril", "triu"):
        np.testing.assert_array_equal(eval(MODULE[name], names).value, getattr(np, name)(A.value))
    assert list(eval(MODULE["upper_tri"], names).value) == [1.0, 2.0, 5.0]
    rows = np.linalg.norm(A.value, axis=1)
    assert eval(MODULE["mixed_norm"], names).value == pytest.approx(np.sum(rows))
    hypot = eval(MODULE["hypot"], {"hc": hc, "a": a, "b": b})
    np.testing.assert_allclose(hypot.value, np.hypot(a.value, b.value))


def test_other_functions_of_numpy_go_through_function(x: Variable) -> None:
    for call in (np.arctan, np.linalg.cond):
        with pytest.raises(
            ModelError, match=r"is not known for expressions; wrap it with hc\.function"
        ):
            call(x)


def test_expressions_print_with_the_indices_of_the_language(x: Variable) -> None:
    y = Variable((2, 3), name="y")
    labelled = Variable(3, name="z")
    labelled.labels = (("a", "b", "c"),)
    from_zero = Variable((2, 3), name="v")
    from_zero.labels = ((0, 1), (5, 7, 9))
    cases = {
        x[0] * x[2]: "x[1] * x[3]",
        x[:2]: "x[:2]",
        x[0:2]: "x[1..2]",
        x[1:1]: "x[1:1]",
        x[[0, 2]]: "x[[1, 3]]",
        x[np.array([True, False, True])]: "x[[ True, False,  True]]",
        x[-1]: "x[-1]",
        y[:, 1]: "y[:, 2]",
        y[0, None, 1:3]: "y[1, None, 2..3]",
        y[..., 0]: "y[..., 1]",
        labelled[1]: 'z["b"]',
        labelled[[0, 2]]: 'z[["a", "c"]]',
        labelled[0:2]: 'z["a".."b"]',
        from_zero[0, 2]: "v[0, 9]",
        from_zero[0, 0:2]: "v[0, 5..7]",
        (x + 1)[0]: "(x + 1)[1]",
    }
    for expression, text in cases.items():
        assert infix(expression, first=1) == text


def test_atoms_document_themselves() -> None:
    assert str(inspect.signature(hc.norm)) == "(a, p=None, *, axis=None)"
    assert str(inspect.signature(hc.einsum)) == "(subscripts, /, *arrays)"
    assert inspect.getdoc(hc.exp) == "The exponential, entry by entry."
    assert all(atom.documentation for atom in hc.ATOMS.values())


def test_leaves_and_expressions_pickle_and_copy(x: Variable) -> None:
    p = Parameter(name="p", value=2.0)
    expression = p * hc.sum(x[[0, 1]] ** 2) + hc.log(x)[::2]
    for twin in (pickle.loads(pickle.dumps(expression)), copy.deepcopy(expression)):
        assert str(twin) == str(expression)
        np.testing.assert_allclose(twin.value, expression.value)
        assert twin.variables()[0] is not x
    constraint, variable = pickle.loads(pickle.dumps(((x <= p).named("c"), x)))
    assert constraint.lhs is variable
    assert (constraint.name, variable.name) == ("c", "x")
    np.testing.assert_array_equal(variable.lower, x.lower)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: Parameter((2, 2), symmetric=True), "is seen in the value"),
        (lambda: Parameter(2, bounds=(0, 1)), "pos=True or nonneg=True"),
        (lambda: Parameter(2, neg=True), "used as -p"),
        (lambda: Variable(2, integer=True), "all variables are continuous"),
    ],
)
def test_arguments_of_other_tools_are_answered_with_what_to_write(
    made: Callable[[], object], words: str
) -> None:
    with pytest.raises(ModelError, match=words):
        made()
