"""Nothing is lost where a function, a callback or the user stops a solve."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel import frontend
from hcmodel.certify import lower_bound
from hcmodel.cli import main
from hcmodel.solving import evidence


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

    for module, name in ((evidence, "lower_bound"), (lower_bound, "lower_bound")):
        monkeypatch.setattr(module, name, stopped)
    monkeypatch.setattr(evidence.kkt, "best_multipliers", stopped)
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
        "solving": (hc.Problem, "forms"),
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
