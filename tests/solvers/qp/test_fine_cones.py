"""Small cone programs are solved as finely as Clarabel can, within the tolerance at least."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hcmodel.records import replace
from hcmodel.solvers.qp import (
    ConeBlock,
    ConeKind,
    ConeOptions,
    ConeProgram,
    ConeStatus,
    clarabel_,
    cone_program,
)
from hcmodel.solvers.qp.clarabel_ import RULES, ClarabelConeBackend

TOLERANCE = 1e-6


def exponentials(count: int = 1) -> ConeProgram:
    """minimise Σ (exp(x_i) − 2 x_i), least at log 2: unknowns x and t, (x, 1, t) in the cone."""
    cost = np.concatenate([np.full(count, -2.0), np.ones(count)])
    rows, offset = np.zeros((3 * count, 2 * count)), np.tile([0.0, 1.0, 0.0], count)
    for i in range(count):
        rows[3 * i, i] = rows[3 * i + 2, count + i] = -1.0
    return cone_program(cost, rows, offset, (ConeBlock(ConeKind.EXPONENTIAL, 3 * count),))


def error(program: ConeProgram) -> float:
    answer = ClarabelConeBackend().solve(program, ConeOptions(tolerance=TOLERANCE))
    assert answer.status is ConeStatus.SOLVED
    count = program.linear.size // 2
    return float(np.abs(answer.primal[:count] - np.log(2)).max())


def test_a_small_program_is_solved_to_more_digits_than_were_asked_for() -> None:
    assert error(exponentials()) < 1e-9
    large = exponentials(RULES.few)
    assert large.matrix.nnz > RULES.few
    assert 1e-8 < error(large) < TOLERANCE**0.5


def semidefinite() -> ConeProgram:
    """minimise x with [[x, 1], [1, x]] semidefinite."""
    rows = np.array([[-1.0], [0.0], [-1.0]])
    return cone_program(
        np.ones(1), rows, np.array([0.0, 2**0.5, 0.0]), (ConeBlock(ConeKind.PSD_TRIANGLE, 3),)
    )


@pytest.mark.parametrize(
    ("program", "finest"),
    [(exponentials(), [RULES.finest]), (exponentials(RULES.few), [None]), (semidefinite(), [None])],
    ids=["small", "large", "matrices"],
)
def test_programs_that_are_solved_finely(
    program: ConeProgram, finest: list[float | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    run = ClarabelConeBackend._run

    def seen(self: Any, program: Any, options: Any, finest: float | None = None) -> Any:
        asked.append(finest)
        return run(self, program, options, finest)

    monkeypatch.setattr(ClarabelConeBackend, "_run", seen)
    ClarabelConeBackend().solve(program, ConeOptions(tolerance=TOLERANCE))
    assert asked == finest
    asked.clear()
    ClarabelConeBackend().solve(program, ConeOptions(tolerance=1e-14))
    assert asked[0] in (None, 1e-14)  # no coarser than was asked for


@pytest.mark.parametrize("status", clarabel_.UNDECIDED)
def test_where_clarabel_gets_no_further_the_tolerance_counts(
    status: ConeStatus, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ClarabelConeBackend._run

    def stuck(self: Any, program: Any, options: Any, finest: float | None = None) -> Any:
        found = run(self, program, options, None)
        return replace(found, status=found.status if finest is None else status)

    plain = run(ClarabelConeBackend(), exponentials(), ConeOptions(tolerance=TOLERANCE))
    monkeypatch.setattr(ClarabelConeBackend, "_run", stuck)
    found = ClarabelConeBackend().solve(exponentials(), ConeOptions(tolerance=TOLERANCE))
    assert found.status is ConeStatus.SOLVED
    assert found.primal.tolist() == plain.primal.tolist()
    assert found.iterations == 2 * plain.iterations


def test_almost_solved_means_within_the_tolerance_there(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def answered(solver: Any, shape: tuple[int, ...]) -> Any:
        columns, rows = np.zeros(shape[1]), np.zeros(shape[0])
        return SimpleNamespace(status="AlmostSolved", x=columns, s=rows, z=rows, iterations=7)

    settings = clarabel_._settings
    monkeypatch.setattr(
        clarabel_, "_settings", lambda *given: seen.append(settings(*given)) or seen[-1]
    )
    monkeypatch.setattr(clarabel_, "_answered", answered)
    options = ConeOptions(tolerance=TOLERANCE)
    for count, status in ((1, ConeStatus.SOLVED), (RULES.few, ConeStatus.ALMOST_SOLVED)):
        assert ClarabelConeBackend().solve(exponentials(count), options).status is status
    fine, plain = seen
    for name in ("gap_abs", "gap_rel", "feas"):
        assert getattr(fine, f"tol_{name}") == RULES.finest
        assert getattr(fine, f"reduced_tol_{name}") == TOLERANCE
        assert getattr(plain, f"tol_{name}") == TOLERANCE
        assert getattr(plain, f"reduced_tol_{name}") > TOLERANCE
