"""Small cone programs are solved as finely as Clarabel can, within the tolerance at least."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
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
    answer = ClarabelConeBackend().solve(program, ConeOptions(tolerance=TOLERANCE, fine=True))
    assert answer.status is ConeStatus.SOLVED
    count = program.linear.size // 2
    return float(np.abs(answer.primal[:count] - np.log(2)).max())


def test_a_small_program_is_solved_to_more_digits_than_were_asked_for() -> None:
    assert error(exponentials()) < 1e-9
    large = exponentials(RULES.few)
    assert large.matrix.nnz > RULES.few
    assert error(large) < TOLERANCE**0.5


def semidefinite() -> ConeProgram:
    """minimise x with [[x, 1], [1, x]] semidefinite."""
    rows = np.array([[-1.0], [0.0], [-1.0]])
    return cone_program(
        np.ones(1), rows, np.array([0.0, 2**0.5, 0.0]), (ConeBlock(ConeKind.PSD_TRIANGLE, 3),)
    )


class Seen:
    """The settings that Clarabel is given, and answers in place of its own, while there are some."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *statuses: str) -> None:
        self.settings: list[Any] = []
        answers, make, solve = list(statuses), clarabel_._settings, clarabel_._answered

        def settings(*given: Any) -> Any:
            self.settings.append(make(*given))
            return self.settings[-1]

        def answered(solver: Any, shape: tuple[int, ...]) -> Any:
            if not answers:
                return solve(solver, shape)
            columns, rows = np.zeros(shape[1]), np.zeros(shape[0])
            return SimpleNamespace(status=answers.pop(0), x=columns, s=rows, z=rows, iterations=50)

        monkeypatch.setattr(clarabel_, "_settings", settings)
        monkeypatch.setattr(clarabel_, "_answered", answered)


@pytest.mark.parametrize(
    ("program", "fine"),
    [(exponentials(), True), (exponentials(RULES.few), False), (semidefinite(), False)],
    ids=["small", "large", "matrices"],
)
def test_small_programs_without_matrices_are_solved_finely(
    program: ConeProgram, fine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Seen(monkeypatch)
    for tolerance in (TOLERANCE, 1e-14):  # no coarser than was asked for
        ClarabelConeBackend().solve(program, ConeOptions(tolerance=tolerance, fine=True))
        for name in ("gap_abs", "gap_rel", "feas"):
            aim = min(tolerance, RULES.finest) if fine else tolerance
            assert getattr(seen.settings[0], f"tol_{name}") == aim
            assert (getattr(seen.settings[0], f"reduced_tol_{name}") == tolerance) == fine
        seen.settings.clear()


def test_only_models_in_logarithms_ask_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere the optimum may be at the edge of a domain, and more digits lead beyond it."""
    seen = Seen(monkeypatch)
    x = hc.Variable(2, name="x", pos=True)
    hc.Problem(hc.Minimize(x[0] * x[1] + hc.sum(1 / x))).solve("cone")
    assert seen.settings[0].tol_feas == RULES.finest
    y = hc.Variable(name="y")
    problem = hc.Problem(hc.Minimize(y), [hc.entr(y - 1) >= -8])
    problem.solve()
    assert problem.status == "optimal"
    assert seen.settings[-1].tol_feas > RULES.finest


@pytest.mark.parametrize("status", ["NumericalError", "InsufficientProgress", "MaxIterations"])
def test_where_clarabel_gets_no_further_the_tolerance_counts(
    status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Seen(monkeypatch, status)
    found = ClarabelConeBackend().solve(exponentials(), ConeOptions(tolerance=TOLERANCE, fine=True))
    assert found.status is ConeStatus.SOLVED
    assert found.primal[0] == pytest.approx(np.log(2), abs=TOLERANCE**0.5)
    assert found.iterations > 50  # of both runs
    assert seen.settings[1].tol_feas == TOLERANCE


def test_almost_solved_means_within_the_tolerance_there(monkeypatch: pytest.MonkeyPatch) -> None:
    Seen(monkeypatch, "AlmostSolved", "AlmostSolved")
    options = ConeOptions(tolerance=TOLERANCE, fine=True)
    for count, status in ((1, ConeStatus.SOLVED), (RULES.few, ConeStatus.ALMOST_SOLVED)):
        assert ClarabelConeBackend().solve(exponentials(count), options).status is status
