"""Models that are proven in their variables and in logarithms: the second where the first fails."""

from __future__ import annotations

import pytest

import hcmodel as hc
from hcmodel.records import replace
from hcmodel.reductions.forms import Forms
from hcmodel.solving.judge import Status
from hcmodel.solving.run import _is_no_answer
from hcmodel.solving.strategy import _automatic, made_instead


def product(scale: float, **kind: object) -> tuple[hc.Problem, hc.Constraint]:
    """minimize s·x + y/s with x·y >= 1: 2 at (1/s, s), with a multiplier of 1."""
    x, y = hc.Variable(name="x", **kind), hc.Variable(name="y", **kind)
    row = x * y >= 1
    return hc.Problem(hc.Minimize(scale * x + y / scale), [row]), row


@pytest.mark.parametrize("scale", [1e6, 1e8])
@pytest.mark.parametrize("kind", [{"pos": True}, {"bounds": (1e-12, 1e12)}])
def test_wide_scales_are_solved_in_logarithms(scale: float, kind: dict[str, object]) -> None:
    problem, row = product(scale, **kind)
    assert problem.solve() == pytest.approx(2.0, rel=1e-9)
    assert problem.status == "optimal"
    assert problem.solution.method.endswith("cone (proven convex in log(x), log(y))")
    assert problem["x"].value == pytest.approx(1 / scale, rel=1e-6)
    assert row.dual_value == pytest.approx(1.0, rel=1e-6)


def test_where_the_variables_do_logarithms_are_not_asked() -> None:
    problem, _ = product(10.0, pos=True)
    problem.solve()
    assert problem.status == "optimal"
    assert "log" not in problem.solution.method


def test_models_without_a_proof_in_logarithms_have_no_such_form() -> None:
    x, y = hc.Variable(pos=True, name="x"), hc.Variable(pos=True, name="y")
    sums = Forms(hc.Problem(hc.Minimize(x**2 + y), [x + y >= 1]).model)  # a posynomial above 1
    assert sums.may_be_logarithmic(sums.hidden())
    assert sums.in_logarithms() is None
    powers = Forms(product(10.0, pos=True)[0].model)
    assert powers.in_logarithms() is not None


def test_other_coordinates_leave_those_of_the_model() -> None:
    """The form of the variables is compiled once, whatever was asked in between."""
    forms = Forms(product(10.0, pos=True)[0].model)
    first = forms.hidden()
    assert set(forms.in_logarithms().proof.coordinates.values()) == {"log"}
    assert forms.hidden() is first
    assert set(first.proof.coordinates.values()) == {"identity"}


def test_what_logarithms_do_not_show_is_left_to_the_methods_that_follow() -> None:
    """In logarithms a variable that wants to be 0 has no minimum; in itself it has one, its bound."""
    x = hc.Variable(pos=True, name="x")
    forms = Forms(hc.Problem(hc.Minimize(x), []).model)
    first, again, *_ = _automatic(forms, forms.hidden())
    assert first.instead is None
    ready = made_instead(again)
    assert ready.form.coordinate_names() == ["log(x)"]
    solution = hc.Problem(hc.Minimize(x), [x >= 1])
    solution.solve()
    judged = solution.solution
    assert not _is_no_answer(ready, judged)
    for status in set(Status) - {Status.OPTIMAL}:
        assert _is_no_answer(ready, replace(judged, status=status))
        assert not _is_no_answer(first, replace(judged, status=status))
