"""Every backend of the tables passes `check_backend`, and broken ones do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hcmodel.records import replace
from hcmodel.solvers.qp import (
    BACKENDS,
    CONE_BACKENDS,
    ConeOptions,
    ConeProgram,
    ConeSolution,
    ConeStatus,
    QPSolution,
    QPStatus,
    QuadraticProgram,
    make_backend,
    make_cone_backend,
)
from hcmodel.testing import check_backend


@pytest.mark.parametrize("name", CONE_BACKENDS)
def test_every_cone_backend_of_the_table_passes(name: str) -> None:
    checked = check_backend(CONE_BACKENDS[name])
    assert {"a linear program", "an infeasible linear program", "an unbounded linear program"} <= {
        *checked
    }
    assert ("a semidefinite cone" in checked) == (name == "clarabel")


@pytest.mark.parametrize("name", BACKENDS)
def test_every_backend_of_quadratic_programs_passes(name: str) -> None:
    assert len(check_backend(BACKENDS[name])) == 5


# ---- broken backends


class Broken:
    """Clarabel, whose answers are changed."""

    def __init__(self, change: Callable[[ConeSolution], ConeSolution]) -> None:
        self.change, self.inner = change, make_cone_backend("clarabel")

    def fits(self, program: ConeProgram) -> bool:
        return True

    def solve(self, program: ConeProgram, options: ConeOptions) -> ConeSolution:
        return self.change(self.inner.solve(program, options))


def optimistic(found: ConeSolution) -> ConeSolution:
    infeasible = found.status is ConeStatus.INFEASIBLE
    return replace(found, status=ConeStatus.SOLVED) if infeasible else found


def pessimistic(found: ConeSolution) -> ConeSolution:
    return replace(found, status=ConeStatus.FAILED)


def rough(found: ConeSolution) -> ConeSolution:
    return replace(found, primal=found.primal + 1e-4)


def turned(found: ConeSolution) -> ConeSolution:
    return replace(found, dual=-found.dual)


def by_chance(found: ConeSolution) -> ConeSolution:
    """Solved at first, and almost solved the second time."""
    return replace(found, status=next(CHANCES) if found.usable else found.status)


CHANCES = iter([ConeStatus.SOLVED, ConeStatus.ALMOST_SOLVED] * 100)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (optimistic, "an infeasible linear program: the status is SOLVED, not INFEASIBLE"),
        (pessimistic, "a linear program with an equation: the status is FAILED"),
        (rough, "is more than 1e-06"),
        (turned, "is more than 1e-06"),
        (by_chance, "a second solve ends with ALMOST_SOLVED"),
    ],
)
def test_a_broken_backend_fails_with_the_program_and_the_reason(
    change: Callable[[ConeSolution], ConeSolution], said: str
) -> None:
    with pytest.raises(AssertionError, match=said):
        check_backend(lambda: Broken(change))


class Writing(Broken):
    def solve(self, program: ConeProgram, options: ConeOptions) -> ConeSolution:
        found = self.inner.solve(program, options)
        program.linear[:] *= 1 + 1e-12
        return found


def test_a_backend_that_changes_its_program_fails() -> None:
    with pytest.raises(AssertionError, match="the program was changed"):
        check_backend(lambda: Writing(optimistic))


def test_a_backend_that_fits_nothing_fails() -> None:
    class Nothing(Broken):
        def fits(self, program: ConeProgram) -> bool:
            return False

    with pytest.raises(AssertionError, match="fits none of the programs"):
        check_backend(lambda: Nothing(optimistic))


class BrokenQuadratic:
    def __init__(self, **changes: Any) -> None:
        self.changes, self.inner = changes, make_backend("clarabel")

    def solve(self, program: QuadraticProgram) -> QPSolution:
        found = self.inner.solve(program)
        return replace(found, **{name: f(getattr(found, name)) for name, f in self.changes.items()})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"step": lambda step: step + 1e-4}, "residuals"),
        ({"bound_multipliers": np.negative}, "residuals"),
        ({"inequality_multipliers": np.zeros_like}, "a row: residuals"),
        ({"status": lambda _: QPStatus.SOLVED}, "an infeasible quadratic program: the status is"),
    ],
)
def test_a_broken_backend_of_quadratic_programs_fails(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        check_backend(lambda: BrokenQuadratic(**changes))
