"""Nothing is lost where a function, a callback or the user stops a solve."""

from __future__ import annotations

import functools
import pickle
from typing import Any

import numpy as np
import pytest
import scipy

import hcmodel as hc
from hcmodel import frontend
from hcmodel.certify import lower_bound
from hcmodel.cli import main
from hcmodel.engines import structured
from hcmodel.facts.polynomials import Coding, Sums, contracted
from hcmodel.solvers.limits import until
from hcmodel.solvers.qp.effort import effort
from hcmodel.solvers.result import Termination
from hcmodel.solving import bounding, gathering
from hcmodel.solving.kept_forms import KeptForms


class BrokenError(RuntimeError):
    """What the functions here raise."""


def failing_at(call: int, error: type[BaseException], grad: bool = False) -> hc.Problem:
    """(x − 1)² + sin(x)/10 by a function of the user, which fails at the given call."""
    calls = {"value": 0, "grad": 0}

    def counted(kind: str) -> None:
        calls[kind] += 1
        if calls[kind] == call and (kind == "grad") == grad:
            raise error("sensor offline")

    def value(x: Any) -> Any:
        counted("value")
        return (x - 1) ** 2 + 0.1 * np.sin(x)

    def slope(x: Any) -> Any:
        counted("grad")
        return 2 * (x - 1) + 0.1 * np.cos(x)

    x = hc.Variable(name="x", bounds=(-3, 3), start=3)
    return hc.Problem(hc.Minimize(hc.function(value, x, grad=slope)), [x <= 2.5])


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("call", [1, 2, 3, 5])
def test_an_exception_of_a_function_keeps_what_was_found(call: int, grad: bool) -> None:
    problem = failing_at(call, BrokenError, grad)
    with pytest.raises(hc.SolverError, match="BrokenError: sensor offline") as caught:
        problem.solve("sbl-adals")
    assert isinstance(caught.value.__cause__, BrokenError)
    assert problem.solution is not None
    assert problem.status == "solver_error"
    assert problem.solution.termination is hc.Termination.FAILED
    assert isinstance(problem.solution.cause, BrokenError)
    assert isinstance(pickle.loads(pickle.dumps(problem.solution)), hc.Solution)
    if call > 2:
        (x,) = problem.variables
        assert x.value is not None
        assert -3 <= x.value <= 3
        assert problem.solution.trace
    assert "raised an exception" in str(problem.solution)


@pytest.mark.parametrize("call", range(1, 40, 3))
def test_ctrl_c_in_a_function_keeps_what_was_found(call: int) -> None:
    problem = failing_at(call, KeyboardInterrupt)
    problem.solve("sbl-adals")
    assert problem.solution is not None
    assert problem.solution.point
    assert problem.status in ("user_limit", "optimal", "locally_optimal", "optimal_inaccurate")


@pytest.mark.parametrize("method", ["auto", "prox-linear", "sbl-adals", "ippm-swsg", "cone"])
def test_an_exception_of_the_callback_keeps_what_was_found(method: str) -> None:
    x = hc.Variable(2, name="x", bounds=(0.4, 3), start=[1, 1])
    problem = hc.Problem(hc.Minimize(hc.sum(x + 1 / x)), [x[0] * x[1] <= 4])

    def broken(record: hc.Record) -> bool:
        raise BrokenError("disk full")

    with pytest.raises(hc.SolverError, match="BrokenError: disk full"):
        problem.solve(method, callback=broken)
    assert problem.status == "solver_error"
    assert x.value is not None


def test_ctrl_c_while_a_point_is_judged_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    for module, name in ((bounding, "lower_bound"), (lower_bound, "lower_bound")):
        monkeypatch.setattr(module, name, stopped)
    monkeypatch.setattr(gathering.kkt, "best_multipliers", stopped)
    x = hc.Variable(name="x", bounds=(0.4, 3))
    problem = hc.Problem(hc.Minimize(x + 1 / x))
    assert problem.solve() == pytest.approx(2.0, rel=1e-3)
    assert problem.solution is not None
    assert problem.solution.termination is hc.Termination.INTERRUPTED
    assert problem.status == "user_limit"


@pytest.mark.parametrize("rows", [0, 1])
def test_one_call_gives_a_point(rows: int) -> None:
    x = hc.Variable(name="x", bounds=(0.4, 3), start=2.0)
    problem = hc.Problem(hc.Minimize(hc.sin(x)), [x**3 <= 20][:rows])
    problem.solve(max_calls=1)
    assert problem.solution is not None
    assert problem.value == pytest.approx(np.sin(2.0))
    assert problem.status == "user_limit"
    assert problem.solution.oracle_calls.total <= 1


MODEL = "var x in [0.4, 3]\nminimize x + 1/x\n"


@pytest.mark.parametrize("moment", ["parsing", "solving", "import"])
def test_ctrl_c_ends_the_command_with_one_line(
    moment: str,
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    place = {
        "parsing": (frontend, "_builder"),
        "solving": (KeptForms, "of"),
    }
    if moment in place:
        target, name = place[moment]
        monkeypatch.setattr(target, name, stopped)
    else:
        monkeypatch.setattr("hcmodel.cli.command.main", stopped)
    path = tmp_path / "m.hc"
    path.write_text(MODEL)
    assert main(["solve", str(path)]) == 130
    captured = capsys.readouterr()
    assert captured.err == "interrupted\n"
    assert captured.out == ""


# ---- memory ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "cone", "sbl-adals"])
def test_a_cone_that_does_not_fit_is_refused_before_it_is_made(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the triangle of a 400 × 400 matrix has 80,200 entries; 8 bytes times their square are 51.5 GB
    monkeypatch.setenv("HCMODEL_MEMORY_LIMIT", "16")
    X = hc.Variable((400, 400), name="X", PSD=True)
    problem = hc.Problem(hc.Minimize(hc.trace(X)), [X[0, 0] >= 1])
    with pytest.raises(hc.SolverError, match=r"400 × 400 matrices needs about 51.5 GB.*16 GB"):
        problem.solve(method, max_calls=10)
    assert problem.status == "solver_error"


def test_a_wrong_limit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HCMODEL_MEMORY_LIMIT", "lots")
    X = hc.Variable((2, 2), name="X", PSD=True)
    with pytest.raises(hc.HCError, match="HCMODEL_MEMORY_LIMIT is a positive number"):
        hc.Problem(hc.Minimize(hc.trace(X))).solve()


def test_a_dense_matrix_that_does_not_fit_is_refused_before_it_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # every entry of x meets every other one: the Hessian has 100² entries of 8 bytes, 0.08 MB
    monkeypatch.setenv("HCMODEL_MEMORY_LIMIT", "5e-5")
    x = hc.Variable(100, name="x", bounds=(-1, 1), start=0.3)
    problem = hc.Problem(hc.Minimize(hc.sin(hc.sum(x)) * hc.cos(hc.sum(x**2))))
    with pytest.raises(hc.SolverError, match=r"100 × 100 numbers needs 8e-05 GB.*is 5e-05 GB"):
        problem.solve("prox-linear")
    assert problem.status == "solver_error"
    assert x.value is not None


def test_factors_that_do_not_fit_are_refused_before_they_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # the rows and bounds have 40,400 numbers, the dense triangle that they fill 20,000: 16 bytes each
    monkeypatch.setenv("HCMODEL_MEMORY_LIMIT", "0.0005")
    A = np.random.default_rng(0).normal(size=(200, 200))
    x = hc.Variable(200, name="x", bounds=(-1, 1))
    problem = hc.Problem(hc.Minimize(hc.sum(x)), [A @ x <= 1])
    with pytest.raises(hc.SolverError, match=r"factors of about 0.000966 GB.*limit is 0.0005 GB"):
        problem.solve("cone")


# ---- time ------------------------------------------------------------------------------------------


def proven() -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    return hc.Problem(
        hc.Minimize(x[0] * x[1] + 4 / x[0] + hc.maximum(1 / x[1], x[1])), [x[0] * x[1] <= 1]
    )


def not_proven() -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(-2, 2), start=[1, 1])
    return hc.Problem(hc.Minimize(hc.sin(x[0] * x[1]) + x[0] ** 2), [x[1] >= -1])


@functools.cache
def solved(model: Any) -> hc.Problem:
    problem: hc.Problem = model()
    problem.solve()
    return problem


@pytest.mark.parametrize("model", [proven, not_proven])
@pytest.mark.parametrize("readings", [1, 20, 150, 600])
def test_a_deadline_at_any_moment_leaves_a_point_and_a_later_solve_intact(
    model: Any, readings: int, clock: Any
) -> None:
    # the deadline passes at the given reading of the clock, wherever that is: compiling, the proof, a
    # sweep, a backend, the certificate
    fresh, problem = solved(model), model()
    clock.tick = 1.0
    problem.solve(time_limit=readings)
    clock.tick = 0.0
    assert problem.solution is not None
    assert all(np.isfinite(array).all() for array in problem.solution.point.values())
    assert problem.solution.point
    assert problem.status in ("user_limit", fresh.status)
    if readings == 1:
        assert problem.solution.termination is hc.Termination.TIME_LIMIT
    problem.solve()
    assert problem.status == fresh.status
    assert problem.value == pytest.approx(fresh.value, rel=1e-9)


@pytest.mark.parametrize("readings", [1, 300])
def test_a_deadline_ends_an_analysis_at_any_moment(readings: int, clock: Any) -> None:
    problem = not_proven()
    clock.tick = 1.0
    found = problem.analyze(samples=20, time_limit=readings)
    assert found.verdict in ("not refuted", "refuted")
    if readings == 1:
        assert "time limit" in found.conditions[0]
    with pytest.raises(hc.ModelError, match="time_limit must be a positive number"):
        problem.analyze(time_limit=-1)


def test_a_cone_program_without_time_for_its_iterations_is_not_begun(clock: Any) -> None:
    # 400 rows of 400 unknowns: 6.4e7 + 2.1e7 operations in each iteration, 0.04 s at 2e9 per second
    rows = scipy.sparse.csc_matrix(np.ones((400, 400)))
    cost = effort(rows, [])
    assert cost.operations == pytest.approx(400**3 + 400**3 / 3)
    assert effort(rows, [100]).operations == pytest.approx(cost.operations + 100**3 / 3)
    with until(clock.now + 3600.0):
        assert cost.time_limit() == pytest.approx(3600.0 - cost.seconds)
    with until(-np.inf):
        assert cost.time_limit() is None
    assert cost.time_limit() == np.inf


@pytest.mark.parametrize("free", [0, 1])
def test_bounds_of_the_unknowns_make_a_program_of_few_rows_no_more_expensive(free: int) -> None:
    """20 rows of 400 unknowns with bounds: unknowns are eliminated, 20 rows and free unknowns remain."""
    rows = scipy.sparse.vstack([np.ones((20, 400)), np.eye(400)[free:]], format="csc")
    operations = (400 - free) * 20**2 + (20 + free) ** 3 / 3
    assert effort(rows, []).operations == pytest.approx(operations)


def looks(clock: Any, work: Any) -> int:
    """How often some work looks at the time."""
    clock.tick, before = 1.0, clock.now
    with until(1e9):
        work()
    clock.tick = 0.0
    return round(clock.now - before)


def test_a_large_product_is_ended_between_its_operations(clock: Any) -> None:
    """Products of a process with 500 states have five million terms: each operation takes a while."""
    coding = Coding.of(100)
    visits, policy = (Sums.symbols(np.arange(n) + s, coding) for n, s in ((3, 0), (6, 3)))
    moves = Sums.constant(np.ones((3, 2, 3)), coding)
    factors = [visits, policy.reshaped((3, 2)), moves]
    assert looks(clock, lambda: contracted(factors, "s,sa,sat->t", (3,))) >= 20


def test_the_terms_of_a_large_matrix_are_found_in_several_looks(clock: Any) -> None:
    x = hc.Variable(3, name="x")
    problem = hc.Problem(hc.Minimize(hc.sum(x)), [np.ones((2, 3)) @ x >= 1])
    stack = problem.forms().written.compiled
    assert looks(clock, lambda: stack.terms) >= 12


def test_no_structure_is_looked_for_when_the_time_is_over(
    clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A linear program of 1,500 dense rows took two seconds more to evaluate its start."""
    asked: list[int] = []
    found = structured.recognised
    monkeypatch.setattr(structured, "recognised", lambda *rest: asked.append(1) or found(*rest))
    x = hc.Variable(3, name="x", nonneg=True, start=[1.0, 2.0, 3.0])
    limit = hc.Parameter(name="limit", value=1.0)  # a model that is not looked at without structure
    problem = hc.Problem(hc.Minimize(hc.sum(x)), [np.ones((2, 3)) @ x >= limit])
    clock.tick = 1.0
    problem.solve(time_limit=1)
    clock.tick = 0.0
    assert problem.status == "user_limit"
    assert problem.value == pytest.approx(6.0)
    assert x.value == pytest.approx([1.0, 2.0, 3.0])
    assert len(asked) == 1  # begun in time, and given up
    assert problem.solve() == pytest.approx(1.0)


# ---- Ctrl-C inside of other work


def interrupted_at(call: int) -> hc.Problem:
    """A model without coordinates whose function is interrupted once, and then goes on as before."""
    x, calls = hc.Variable(2, name="x", bounds=(-2, 2)), [0]

    def value(z: Any) -> Any:
        calls[0] += 1
        if calls[0] == call:
            raise KeyboardInterrupt
        return np.sin(3 * z[0]) * z[1] + z[1] ** 2

    def slope(z: Any) -> Any:
        return np.array([3 * np.cos(3 * z[0]) * z[1], np.sin(3 * z[0]) + 2 * z[1]])

    return hc.Problem(hc.Minimize(hc.function(value, x, grad=slope)), [x[0] * x[1] >= -1])


@pytest.mark.parametrize("call", [2, 40, 130])
def test_ctrl_c_ends_an_analysis(call: int) -> None:
    """It ended one of its runs only, and the verdict came after all the others."""
    with pytest.raises(KeyboardInterrupt):
        interrupted_at(call).analyze(samples=20)


@pytest.mark.parametrize("work", ["report", "landscape"])
def test_ctrl_c_in_a_solve_ends_the_work_that_it_is_a_part_of(work: str) -> None:
    problem = interrupted_at(8)
    with pytest.raises(KeyboardInterrupt):
        getattr(problem, work)()
    assert problem.solution is not None  # the best point is kept
    assert problem.solution.point


def test_ctrl_c_in_a_look_at_gradients_after_a_run_keeps_the_point(monkeypatch) -> None:
    """A run that shows nothing is followed by calls of the user's function that check its gradient."""

    def interrupted(model, start):
        raise KeyboardInterrupt

    monkeypatch.setattr("hcmodel.solving.session.warn_about_gradients", interrupted)
    x = hc.Variable(2, name="x", bounds=(-2, 2), start=[1.0, 1.0])
    wrong = hc.function(lambda z: z @ z, x, grad=lambda z: -2 * z)
    problem = hc.Problem(hc.Minimize(wrong))
    problem.solve("prox-linear")
    assert problem.status == "user_limit"
    assert problem.solution.termination is Termination.INTERRUPTED
    assert problem.solution.point["x"].shape == (2,)
