"""Functions written with other atoms, in Python and in the language, and names that have none."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.atoms.compositions import COMPOSITIONS
from hcmodel.expressions.foreign_habits import MODULE

x = np.array([0.5, -2.0, 1.0])
S = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 3.0]])
VALUES = {
    "sum_squares": ("x", 5.25),
    "sum_smallest": ("x, 2", -1.5),
    "lambda_min": ("S", np.linalg.eigvalsh(S)[0]),
    "tr_inv": ("S", np.trace(np.linalg.inv(S))),
    "one_minus_pos": ("x - 1", 2 - x),
    "resolvent": ("S / 9, 1", np.linalg.inv(np.eye(3) - S / 9)),
    "multiply": ("x, x", x * x),
    "norm1": ("x", 3.5),
    "norm_inf": ("x", 2.0),
    "pnorm": ("x, 3", np.sum(np.abs(x) ** 3) ** (1 / 3)),
    "log_sum_exp": ("x", np.log(np.sum(np.exp(x)))),
    "logistic": ("x", np.log1p(np.exp(x))),
    "log_det": ("S", np.linalg.slogdet(S)[1]),
}


def test_every_function_has_a_value_here() -> None:
    assert sorted(VALUES) == sorted(COMPOSITIONS)


@pytest.mark.parametrize("name", VALUES)
def test_python_and_the_language_agree_with_numpy(name: str) -> None:
    arguments, expected = VALUES[name]
    function = getattr(hc, name)
    found = function(*eval(f"[{arguments}]", {"x": x, "S": S})).value
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    declared = "var S[3,3] symmetric" if "S" in arguments else "var x[3]"
    problem = hc.parse(f"{declared}\nminimize sum({name}({arguments}))")
    for variable in problem.variables:
        variable.value = {"x": x, "S": S}[variable.name]
    np.testing.assert_allclose(problem.objective.expression.value, np.sum(expected), rtol=1e-12)


def test_functions_pickle_and_explain_themselves() -> None:
    assert pickle.loads(pickle.dumps(hc.sum_squares)) is hc.sum_squares
    assert "sum of squares" in hc.sum_squares.__doc__
    with pytest.raises(hc.ModelError, match=r"cannot be called like this.*sum of squares"):
        hc.sum_squares(x, x)


def test_blocks_make_a_matrix() -> None:
    corner = hc.Variable((1, 1), name="c")
    corner.value = [[7.0]]
    matrix = hc.bmat([[S, np.ones((3, 1))], [np.ones((1, 3)), corner]])
    expected = np.block([[S, np.ones((3, 1))], [np.ones((1, 3)), np.full((1, 1), 7.0)]])
    np.testing.assert_array_equal(matrix.value, expected)


def test_other_names_of_cvxpy_say_what_to_write() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'tv'; write hc\.norm"):
        _ = hc.tv
    assert not set(MODULE) & set(hc.__all__)


def test_indices_of_a_comprehension_may_stand_in_the_arguments() -> None:
    text = """
    var X[2,3], y[2] in [1, 2]
    minimize sum(sum_squares(X[i,:]) + quad_over_lin(X[i,:], y[i]) for i in 1..2) +
        sum(sum_largest(X[i,:], 2) + norm(X[i,1]) for i in 1..2)
    """
    problem = hc.parse(text)
    X = np.array([x, [3.0, 0.0, -1.0]])
    y = np.array([1.0, 2.0])
    for variable in problem.variables:
        variable.value = {"X": X, "y": y}[variable.name]
    squares = np.sum(X**2, axis=1)
    largest = 1.5 + 3.0
    expected = squares.sum() + np.sum(squares / y) + largest + 0.5 + 3.0
    assert problem.objective.expression.value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda v: hc.sum_largest(v, 4), "k is an integer from 1 to 3, not 4"),
        (lambda v: hc.sum_largest(v, 1.5), "k is an integer from 1 to 3"),
        (lambda v: hc.huber(v, 0.0), "M of 'huber' is a positive number"),
        (lambda v: hc.geo_mean(v, [1, -1, 1]), "weights p of 'geo_mean' are 3 numbers >= 0"),
        (lambda v: hc.quad_over_lin(v, v), "divides by one number"),
        (lambda v: hc.matrix_frac(v, np.eye(2)), "takes X with 2 rows"),
        (lambda v: hc.lambda_max(v), "needs a square matrix"),
    ],
)
def test_wrong_arguments_are_explained(call, message: str) -> None:
    with pytest.raises(hc.ModelError, match=message):
        call(hc.Variable(3, name="v"))


def test_the_geometric_mean_is_0_at_a_zero_and_undefined_below() -> None:
    assert hc.geo_mean([0.0, 2.0]).value == 0.0
    assert np.isnan(hc.geo_mean([-1.0, 2.0]).value)
    assert hc.geo_mean([0.0, 2.0], p=[0, 1]).value == pytest.approx(2.0)


def test_calls_by_position_and_by_keyword_make_the_same_nodes() -> None:
    x = hc.Variable((2, 3), name="x")
    pairs = [
        (hc.reshape(x, (3, 2)), hc.reshape(a=x, shape=(3, 2))),
        (hc.norm(x, "fro"), hc.norm(x, p="fro", axis=None)),
        (hc.transpose(x), hc.transpose(x, axes=None)),
        (hc.sum_largest(x, 2), hc.sum_largest(a=x, k=2)),
    ]
    for one, two in pairs:
        assert (one.atom, one.params, one.shape) == (two.atom, two.params, two.shape)
    for wrong in ((), (x, 1, 2, 3)):
        with pytest.raises(hc.ModelError, match="cannot be called like this"):
            hc.norm(*wrong)
