"""The benchmark that changes numbers of the solvers: what it changes is read, and put back."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from hcmodel.solvers.second_order.interior_point import (
    InteriorPointOptions,
    InteriorPointStatus,
    SmoothConvexProgram,
    solve,
)
from tests.benchmarks.constants import ROOT, Number, numbers

ablation = pytest.importorskip("tests.benchmarks.ablation")
PLACE = "hcmodel.solvers.second_order.interior_point."
MODULES = [importlib.import_module(PLACE + name) for name in ("iterate", "method", "outcome")]


def number_of(file: str, name: str) -> Number:
    found = numbers(ROOT / "solvers" / "second_order" / "interior_point" / file)
    return next(each for each in found if each.name == name)


def test_a_field_is_changed_in_new_options_and_put_back() -> None:
    program = SmoothConvexProgram(np.ones((1, 1)), np.zeros(1), np.zeros(1), np.ones(1))
    with ablation.changed(number_of("outcome.py", "max_iterations"), 0, MODULES):
        assert solve(program).status is InteriorPointStatus.ITERATION_LIMIT
        assert InteriorPointOptions(max_iterations=7).max_iterations == 7
    assert solve(program).status is InteriorPointStatus.SOLVED


def test_a_module_constant_is_changed_and_put_back() -> None:
    iterate = MODULES[0]
    with ablation.changed(number_of("iterate.py", "DAMPING"), 9.0, MODULES):
        assert iterate.DAMPING == 9.0
    assert iterate.DAMPING == 3.0


def test_verdicts() -> None:
    before = {"a": ("optimal", 10.0), "b": ("optimal", 10.0)}
    assert ablation.compared(before, before)[0] == "none"
    assert ablation.compared(before, {**before, "b": ("optimal", 11.0)})[0] == "effect"
    assert ablation.compared(before, {**before, "b": ("optimal", 15.0)})[0] == "missed"
    assert ablation.compared(before, {**before, "b": ("wrong", 1.0)})[0] == "missed"
