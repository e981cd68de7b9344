"""The table of engines: names, refusals, and the choice of `auto`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.engines.registry import ENGINES
from tests.hcmodel.engines.central_differences import DifferencesEngine


def tank(**variable: object) -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(0.4, 3), **variable)
    rows = [(x[0] * x[1] <= 1).named("area")]
    return hc.Problem(hc.Minimize(x[0] * x[1] + 4 / x[0] + hc.exp(-hc.log(x[1]))), rows)


def kinked() -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    return hc.Problem(hc.Minimize(hc.max(4 / x) + hc.norm(x) - hc.log(x[1])))


@pytest.fixture(autouse=True)
def without_extras() -> Iterator[None]:
    """The table as it is without the extra `fast`, so that `auto` is the same everywhere.

    Its order counts: `monkeypatch.delitem` would put casadi behind autograd for all later tests.
    """
    kept = dict(ENGINES)
    del ENGINES["casadi"]
    yield
    ENGINES.clear()
    ENGINES.update(kept)


@pytest.fixture
def differences(monkeypatch) -> DifferencesEngine:
    engine = DifferencesEngine()
    monkeypatch.setitem(ENGINES, "differences", engine)
    return engine


def test_auto_takes_the_first_engine_and_the_solution_says_which() -> None:
    problem = tank()
    problem.solve()
    assert problem.solution.engine == next(iter(ENGINES)) == "autograd"


def test_a_second_engine_solves_the_same_problem(differences) -> None:
    for make in (tank, kinked):
        reference, problem = make(), make()
        reference.solve(engine="autograd")
        problem.solve(engine="differences", tol=1e-5)
        assert problem.solution.engine == "differences"
        assert reference.status == "optimal"
        assert problem.status == "optimal"
        assert problem.value == pytest.approx(reference.value, rel=1e-5)


def test_an_engine_named_at_compile_stays_for_later_solves(differences) -> None:
    problem = tank()
    stack = problem.compile(engine="differences")
    assert stack.engine == "differences"
    problem.solve(tol=1e-5)
    assert problem.solution.engine == "differences"
    problem.solve(engine="autograd")
    assert problem.solution.engine == "autograd"
    problem.solve(tol=1e-5)
    assert problem.solution.engine == "differences"
    problem.compile(engine="auto")
    problem.solve()
    assert problem.solution.engine == "autograd"


def test_one_engine_compiles_once() -> None:
    problem = tank()
    problem.compile(engine="autograd")
    problem.solve(engine="autograd")
    problem.solve(engine="autograd")
    assert problem.compilations == 1


def test_the_analysis_uses_the_engine_of_compile(differences, monkeypatch) -> None:
    problem = tank()
    problem.compile(engine="differences")
    monkeypatch.setattr(type(ENGINES["autograd"]), "compile", None)
    assert problem.analyze(samples=5).verdict == "proven"


@pytest.mark.parametrize("call", ["compile", "solve"])
def test_an_unknown_engine_is_told_what_there_is(call) -> None:
    with pytest.raises(hc.ModelError, match=r"unknown engine 'jax'; there are: auto, autograd$"):
        getattr(tank(), call)(engine="jax")


@pytest.mark.parametrize("call", ["compile", "solve"])
def test_an_engine_says_which_atoms_it_cannot_express(call, monkeypatch) -> None:
    monkeypatch.setitem(ENGINES, "differences", DifferencesEngine(lacking=("exp", "log", "det")))
    with pytest.raises(hc.ModelError, match=r"engine 'differences' cannot express log, exp;"):
        getattr(tank(), call)(engine="differences")


def test_auto_passes_over_engines_that_cannot_express_an_atom(monkeypatch) -> None:
    reordered = {"differences": DifferencesEngine(lacking=("exp",)), **ENGINES}
    monkeypatch.setattr("hcmodel.engines.registry.ENGINES", reordered)
    problem = tank()
    assert problem.compile().engine == "autograd"
    reordered["differences"] = DifferencesEngine(lacking=("det",))
    assert tank().compile().engine == "differences"


def test_auto_passes_over_engines_that_are_not_installed(monkeypatch) -> None:
    absent = DifferencesEngine(missing="the package differ")
    reordered = {"differences": absent, **ENGINES}
    monkeypatch.setattr("hcmodel.engines.registry.ENGINES", reordered)
    assert tank().compile().engine == "autograd"
    with pytest.raises(hc.ModelError, match="engine 'differences' needs the package differ"):
        tank().compile(engine="differences")
    del reordered["autograd"]
    with pytest.raises(hc.ModelError, match="no engine can compile this model: engine 'diff"):
        tank().compile()


def test_atoms_of_constants_need_no_engine(monkeypatch) -> None:
    monkeypatch.setitem(ENGINES, "differences", DifferencesEngine(lacking=("exp", "inv")))
    x = hc.Variable(2, name="x", bounds=(0.5, 2))
    matrix = hc.Parameter((2, 2), name="A", value=2 * np.eye(2))
    problem = hc.Problem(hc.Minimize(hc.sum(hc.inv(matrix) @ x) + hc.exp(2.0)))
    problem.solve(engine="differences", tol=1e-5)
    assert problem.value == pytest.approx(0.5 + np.exp(2.0), rel=1e-6)
