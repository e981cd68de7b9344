"""Roots that the compiled stack knows to be affine enter the cone program as they are."""

from __future__ import annotations

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.problem import Problem
from hcmodel.reductions.cone.affine import Affine
from hcmodel.reductions.cone.cone import Cone
from hcmodel.reductions.form import Form
from hcmodel.reductions.sums.sum_arrays import affine_roots


def regulator() -> Problem:
    A, B = np.array([[0.2, 1.0], [0.5, -0.3]]), np.array([[1.0], [0.4]])
    P = hc.Variable((2, 2), name="P", PSD=(1e-3, 1e3))
    K = hc.Variable((1, 2), name="K", bounds=(-50, 50))
    closed = A + B @ K
    cost = hc.trace((np.eye(2) + K.T @ K) @ P)
    return hc.Problem(hc.Minimize(cost), [closed @ P + P @ closed.T + np.eye(2) == 0])


def hidden(problem: Problem) -> Form:
    problem.solve()
    form = problem.forms().hidden()
    assert form is not None
    assert form.proof is not None
    return form


def test_the_program_is_the_same_with_and_without_them() -> None:
    form = hidden(regulator())
    assert form.last is not None
    model, known = form.chain.end.before, affine_roots(form.program)
    sides = {id(root) for each in model.constraints for root in (each.lhs, each.rhs)}
    assert sides <= set(known)
    assert id(form.canonical.roots[0]) not in known  # a matrix fraction
    programs = [Cone.of(model, form.last, each) for each in (known, {})]
    assert all(isinstance(each, Cone) for each in programs)
    one, two = (each.after for each in programs)  # type: ignore[union-attr]
    np.testing.assert_allclose(one.offset, two.offset, atol=1e-15)
    np.testing.assert_allclose(one.matrix.toarray(), two.matrix.toarray(), atol=1e-15)


def test_their_values_are_those_of_the_model() -> None:
    rng = np.random.default_rng(3)
    x = hc.Variable(3, name="x", bounds=(-2, 2))
    matrix = rng.normal(size=(2, 3))
    problem = hc.Problem(
        hc.Minimize(hc.sum_squares(x) + x[0]),
        [matrix @ x <= 1, hc.exp(x[0]) + x[1] <= 3, x[0] + x[1] == 0.5 - x[2]],
    )
    form = hidden(problem)
    point = rng.normal(size=3)
    found = affine_roots(form.program)
    for root, values in zip(form.canonical.roots, _values(form, point), strict=True):
        affine = found.get(id(root))
        if affine is not None:
            np.testing.assert_allclose(_at(affine, point), values, atol=1e-14)
    curved = [root for root in form.canonical.roots if id(root) not in found]
    assert len(curved) == 2  # the objective, and the row with exp


def _values(form: Form, point: np.ndarray) -> list[np.ndarray]:
    values = np.asarray(form.compiled.evaluate(point, "all").values)
    ends = np.cumsum([root.size for root in form.canonical.roots])[:-1]
    return [np.asarray(part) for part in np.split(values, ends)]


def _at(affine: Affine, point: np.ndarray) -> np.ndarray:
    matrix = affine.rows(point.size).to_scipy()
    return np.asarray(affine.offset + matrix @ point)


def test_roots_in_logarithms_are_not_among_them() -> None:
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    form = hidden(hc.Problem(hc.Minimize(x[0] * x[1] + 4 / x[0]), [x[0] + x[1] <= 3]))
    assert affine_roots(form.program) == {}
    assert form.chain.point_back(np.zeros(2)) == pytest.approx([1.0, 1.0])
