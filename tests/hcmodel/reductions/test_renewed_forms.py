"""New values of parameters: a structured form is renewed from its arrays and not proven again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.reductions import forms as forms_module


@pytest.fixture
def proofs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of proofs so far, in a list of one."""
    count = [0]
    for name in ("attempt", "prove"):
        original = getattr(forms_module, name)

        def counted(*arguments: object, made: Any = original, **options: object) -> object:
            count[0] += 1
            return made(*arguments, **options)

        monkeypatch.setattr(forms_module, name, counted)
    return count


def tank(cap: hc.Parameter, weight: hc.Parameter, power: hc.Parameter) -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    cost = x[0] * x[1] + weight / x[0] + x[1] ** -power
    return hc.Problem(hc.Minimize(cost), [x[0] * x[1] - cap <= 0])


def data() -> tuple[hc.Parameter, hc.Parameter, hc.Parameter]:
    return (
        hc.Parameter(name="cap", value=1.0),
        hc.Parameter(name="weight", value=4.0),
        hc.Parameter(name="power", value=1.0),
    )


def test_values_that_keep_their_signs_need_no_new_proof(proofs: list[int]) -> None:
    cap, weight, power = data()
    problem = tank(cap, weight, power)
    assert problem.solve() == pytest.approx(5.0)
    before = proofs[0]
    for values in ((0.8, 4.0, 1.0), (1.1, 2.5, 1.0), (1.1, 2.5, 0.5), (1.0, 4.0, 1.0)):
        cap.value, weight.value, power.value = values
        value = problem.solve()
        assert problem.status == "optimal"
        assert proofs[0] == before
        assert value == pytest.approx(tank(*data_with(values)).solve(), rel=1e-7)
        before = proofs[0]
    dual = problem.constraints[0].dual_value
    assert dual == pytest.approx(1.0, abs=1e-5)


def data_with(values: tuple[float, ...]) -> tuple[hc.Parameter, ...]:
    made = data()
    for parameter, value in zip(made, values, strict=True):
        parameter.value = value
    return made


def test_a_term_that_was_0_comes_back(proofs: list[int]) -> None:
    # with weight 0 the proof leaves the term out of the row that it arranges
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    weight = hc.Parameter(name="weight", value=0.0)
    row = x[0] + weight * x[0] * x[1] - 2 * x[1] <= 0
    problem = hc.Problem(hc.Minimize(1 / x[0] + x[1]), [row])
    for value in (0.0, 1.5, 0.5, 0.0):
        weight.value = value
        found = problem.solve()
        assert problem.status == "optimal"
        a, b = x.value
        assert a + value * a * b <= 2 * b + 1e-6
        fresh = hc.Problem(hc.Minimize(1 / x[0] + x[1]), [x[0] + value * x[0] * x[1] <= 2 * x[1]])
        assert found == pytest.approx(fresh.solve(), rel=1e-7)
    assert proofs[0] >= 3


def test_a_sign_that_breaks_the_proof_is_not_missed() -> None:
    cap, weight, power = data()
    problem = tank(cap, weight, power)
    problem.solve()
    weight.value = -4.0
    problem.forms().refresh()
    form = problem.forms().hidden()
    assert form is not None  # other coordinates do
    assert form.coordinate_names() != ["log(x)"]
    weight.value = 4.0
    assert problem.solve() == pytest.approx(5.0)
    assert problem.status == "optimal"


def test_an_infeasible_value_has_its_conflict_from_a_proof_of_its_own() -> None:
    cap, weight, power = data()
    problem = tank(cap, weight, power)
    problem.solve()
    cap.value = 0.1
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution.conflict
    cap.value = 0.9
    problem.solve()
    assert problem.status == "optimal"


def test_the_program_that_is_handed_out_has_the_new_numbers() -> None:
    cap, weight, power = data()
    problem = tank(cap, weight, power)
    problem.solve()
    cap.value = 0.5
    problem.solve()
    data_of_program = problem.get_problem_data().program
    fresh = tank(*data_with((0.5, 4.0, 1.0))).get_problem_data().program
    np.testing.assert_allclose(data_of_program.offset, fresh.offset)
