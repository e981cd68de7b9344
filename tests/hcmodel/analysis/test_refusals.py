"""How much work a refusal takes, counted in models and runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.analysis import multistart
from hcmodel.analysis.analysis_options import MULTISTART
from hcmodel.records import replace
from hcmodel.reductions import discovery
from hcmodel.reductions.discovery import LIMITS, discover


def chained(count: int) -> hc.Problem:
    """A chain of quartics with many stationary points."""
    x = hc.Variable(count, bounds=(-3, 3), name="x")
    return hc.Problem(hc.Minimize(hc.sum(x**4 - 3 * x**2 + 0.1 * x)))


def signomial(count: int) -> hc.Problem:
    """3·n terms of both signs, each with exponents of its own."""
    rng = np.random.default_rng(0)
    x = hc.Variable(count, bounds=(0.1, 10), name="x")
    exponents = rng.normal(size=(3 * count, count)) * (rng.random((3 * count, count)) < 3 / count)
    weights = rng.normal(size=3 * count)
    terms = [weights[k] * hc.prod(x ** exponents[k]) for k in range(3 * count)]
    return hc.Problem(hc.Minimize(sum(terms[1:], terms[0])))


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[int]:
    calls: list[int] = []
    function = getattr(module, name)

    def counting(*args: Any, **keywords: Any) -> Any:
        calls.append(1)
        return function(*args, **keywords)

    monkeypatch.setattr(module, name, counting)
    return calls


def refused(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Maps that are tried, all of them in vain."""
    calls: list[int] = []

    def refusing(*args: Any, **keywords: Any) -> bool:
        calls.append(1)
        return False

    monkeypatch.setattr(discovery, "_settle", refusing)
    return calls


def test_a_point_that_refutes_a_model_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = counted(monkeypatch, multistart, "minimize")
    assert chained(6).is_hidden_convex() is False
    assert not runs  # Newton's method from samples has found it


def test_runs_that_find_nothing_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = counted(monkeypatch, multistart, "minimize")
    monkeypatch.setattr(multistart, "polish", lambda *args: None)
    assert chained(6).is_hidden_convex() is None
    assert len(runs) == MULTISTART.fruitless


def test_sums_of_many_products_are_refuted_before_a_map_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each map makes a new model of all terms, and takes longer than a run."""
    tried = counted(monkeypatch, discovery, "_settle")
    assert signomial(5).is_hidden_convex() is False
    assert not tried


def test_what_few_runs_leave_open_is_still_looked_at_by_maps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = refused(monkeypatch)
    monkeypatch.setattr(multistart, "polish", lambda *args: None)
    assert signomial(5).is_hidden_convex() is None
    assert tried


def regulator(states: int) -> hc.Problem:
    """A regulator each of whose inputs sees one state only."""
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(states, states)) / states, rng.normal(size=(states, 2))
    P = hc.Variable((states, states), name="P", PSD=(1e-3, 1e3))
    K = hc.Variable((2, states), name="K", bounds=(-50, 50))
    closed = A + B @ K
    rows = [closed @ P + P @ closed.T + np.eye(states) == 0, K[0, 1:] == 0, K[1, :1] == 0]
    return hc.Problem(hc.Minimize(hc.trace((np.eye(states) + K.T @ K) @ P)), rows)


def test_all_runs_together_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A regulator with 8 states took 16 s, most of it for runs that did not become feasible."""
    calls: list[int] = []
    function = multistart.minimize

    def counting(*args: Any, **keywords: Any) -> Any:
        result = function(*args, **keywords)
        calls.append(result.calls.total)
        return result

    monkeypatch.setattr(multistart, "minimize", counting)
    short = replace(MULTISTART, calls_per_run=40, calls=60)  # without the limit, three runs follow
    monkeypatch.setattr(multistart, "MULTISTART", short)
    regulator(3).is_hidden_convex()
    assert len(calls) == 2
    assert sum(calls) <= short.calls + short.calls_per_run


def test_the_start_is_not_run_from_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a start of the user's, runs begin at the middle, and then at samples."""
    starts: list[Any] = []
    function = multistart.minimize

    def noting(oracle: Any, domain: Any, start: Any, **keywords: Any) -> Any:
        starts.append(tuple(start))
        return function(oracle, domain, start, **keywords)

    monkeypatch.setattr(multistart, "minimize", noting)
    monkeypatch.setattr(multistart, "polish", lambda *args: None)
    chained(6).is_hidden_convex()
    assert len(set(starts)) == len(starts) == MULTISTART.fruitless


def test_models_with_many_functions_are_rewritten_fewer_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = refused(monkeypatch)
    # a tenth of the work, so that a tenth of the functions are many
    monkeypatch.setattr(discovery, "LIMITS", replace(LIMITS, work=LIMITS.work // 10))
    discover(signomial(2).model)
    assert len(tried) > LIMITS.fewest
    tried.clear()
    discover(signomial(8).model)
    assert 1 <= len(tried) <= LIMITS.fewest
