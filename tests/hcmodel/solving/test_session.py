"""One call of solve: where its warnings point to, and what a problem keeps for the next call."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import hcmodel as hc


def test_warnings_about_the_model_point_to_the_line_that_solves_it() -> None:
    x = hc.Variable(name="x", bounds=(-3, 3))
    problem = hc.Problem(hc.Minimize(hc.sin(3 * x) + 0.1 * x**2), hidden=[hc.log(x + 1)])
    assert problem.analyze().verdict == "refuted"
    with pytest.warns(hc.HCWarning) as caught:
        problem.solve()
    texts = [str(each.message) for each in caught if each.filename == __file__]
    assert any("is not defined everywhere" in each for each in texts)
    assert any("not to be hidden convex" in each for each in texts)


def test_a_copy_has_forms_and_an_engine_of_its_own() -> None:
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    problem = hc.Problem(hc.Minimize(x[0] / x[1] + x[1]))
    problem.solve()
    other = copy.copy(problem)
    other.compile("autograd")
    assert (problem.engine, other.engine) == ("auto", "autograd")
    assert other.compilations == 1
    assert other.forms() is not problem.forms()


def test_forms_are_kept_unless_the_time_was_over() -> None:
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    problem = hc.Problem(hc.Minimize(x[0] / x[1] + x[1]))
    problem.solve()
    kept = problem.forms()
    problem.solve()
    assert problem.forms() is kept
    problem.solve(time_limit=1e-9)
    assert problem.status == "user_limit"
    assert np.isfinite(x.value).all()
    assert problem.forms() is not kept
