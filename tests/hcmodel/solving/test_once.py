"""A solve does each kind of work once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.analysis import constants
from hcmodel.certify.minorants.search import Search
from hcmodel.reductions import forms, lift, smooth

TANK = Path(__file__).parents[3] / "examples" / "tank.hc"


def test_a_solve_lifts_proves_canonicalises_compiles_and_searches_its_bound_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts: Counter[str] = Counter()

    def counted(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def wrapper(*arguments: Any, **options: Any) -> Any:
            counts[name] += 1
            return original(*arguments, **options)

        monkeypatch.setattr(owner, name, wrapper)

    problem = hc.load(TANK)
    counted(lift, "lift")
    counted(forms, "prove")
    counted(smooth, "canonicalize")
    counted(smooth, "compile_stack")
    counted(Search, "improve")
    problem.solve()
    assert problem.status == "optimal"
    assert counts == dict.fromkeys(counts, 1)
    assert set(counts) == {"lift", "prove", "canonicalize", "compile_stack", "improve"}


@pytest.fixture
def proofs(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One entry for every proof that is made."""
    made: list[None] = []
    for name in ("attempt", "prove"):
        original = getattr(forms, name)

        def wrapper(*arguments: Any, proved: Any = original, **options: Any) -> Any:
            made.append(None)
            return proved(*arguments, **options)

        monkeypatch.setattr(forms, name, wrapper)
    return made


def test_a_model_is_proven_again_only_where_its_data_change(proofs: list[None]) -> None:
    x = hc.Variable(2, bounds=(0.1, 10))
    weight = hc.Parameter(value=2.0)
    problem = hc.Problem(hc.Minimize(hc.sum(weight * x + 1 / x)))
    for _ in range(3):
        problem.solve()
    assert len(proofs) == 1
    weight.value = 3.0
    problem.solve()
    assert len(proofs) == 2


def test_nothing_is_proven_of_functions_of_the_user_in_declared_coordinates(
    proofs: list[None],
) -> None:
    x = hc.Variable(2, bounds=(0.1, 10))
    cost = hc.function(lambda z: z[0] + z[1] + 1 / z[0] + 1 / z[1], x)
    for hidden in ([hc.log(x)], [x + hc.log(x)]):
        forms.Forms(hc.Problem(hc.Minimize(cost), hidden=hidden).model).hidden()
    assert not proofs
    # a function of data is data
    number = hc.function(lambda p: 2 * p, hc.Parameter(value=1.0))
    problem = hc.Problem(hc.Minimize(number * hc.sum(x + 1 / x)), hidden=[hc.log(x)])
    found = forms.Forms(problem.model).hidden()
    assert found is not None
    assert found.proof is not None


def test_exponents_and_coefficients_that_are_zero_are_data() -> None:
    x = hc.Variable(3, bounds=(0.1, 10))
    power, weights = hc.Parameter(value=2.0), hc.Parameter(3, value=[1.0, 0.0, 2.0], nonneg=True)
    problem = hc.Problem(hc.Minimize(hc.sum(weights * x**power) + 1 / hc.prod(x)))
    problem.solve()
    compiled = problem.compilations
    for exponent, values in ((3.0, [1, 1, 1]), (0.5, [0, 2, 1]), (-1.0, [1, 0, 0]), (2, [0, 0, 0])):
        power.value, weights.value = exponent, values
        found = problem.solve()
        assert problem.status == "optimal"
        y = hc.Variable(3, bounds=(0.1, 10))
        fresh = hc.Problem(
            hc.Minimize(hc.sum(np.array(values) * y ** float(exponent)) + 1 / hc.prod(y))
        )
        assert found == pytest.approx(fresh.solve(), rel=1e-6)
    assert problem.compilations == compiled


def test_a_proof_answers_without_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    def sampled(*arguments: Any) -> None:
        raise AssertionError("the model was sampled")

    monkeypatch.setattr(constants, "HiddenMap", sampled)
    problem = hc.load(TANK)
    assert problem.is_hidden_convex() is True
    analysis = problem.analyze(samples=None)
    assert analysis.labels == dict.fromkeys(("mu_c", "diameter_u", "diameter_x"), "bound")
    with pytest.raises(AssertionError, match="sampled"):
        problem.analyze(samples=5)


SIGNOMIAL = "var y[2] in [0.1, 10]\nminimize y[1]*y[2] + 1/y[1] - 3*y[1]^0.5*y[2]^1.5 + y[2]^2\n"


def test_a_signomial_program_names_the_term_that_breaks_the_proof() -> None:
    problem = hc.parse(SIGNOMIAL)
    problem.solve()
    assert problem.status == "locally_optimal"
    assert problem.solution is not None
    assert "not proven to be a global minimum: objective: 3*y[1]^0.5*y[2]^1.5" in str(
        problem.solution
    )
