"""The solvers know nothing of the modelling layer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hcmodel.solvers as solvers

ROOT = Path(__file__).parents[2]


def test_the_layers_are_kept_apart() -> None:
    pytest.importorskip("importlinter")
    check = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    answer = subprocess.run(
        [sys.executable, "-c", check, "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "0 broken" in answer.stdout


def test_every_public_name_exists() -> None:
    for name in solvers.__all__:
        assert getattr(solvers, name) is not None


def test_three_callables_are_enough_to_solve_a_problem() -> None:
    # the projection of (1, 2) onto the unit disc is (1, 2)/√5, at distance √5 − 1
    oracle = solvers.function_oracle(
        2,
        lambda x: ((x[0] - 1) ** 2 + (x[1] - 2) ** 2, 2 * (x - np.array([1.0, 2.0]))),
        inequalities=lambda x: (x @ x - 1, 2 * x),
        sizes=(1, 0),
    )
    result = solvers.minimize(oracle, solvers.Box.of(2))
    assert result.termination is solvers.Termination.CONVERGED
    assert result.evaluation is not None
    assert result.evaluation.objective == pytest.approx((np.sqrt(5) - 1) ** 2, rel=1e-6)
    np.testing.assert_allclose(result.point, np.array([1.0, 2.0]) / np.sqrt(5), atol=1e-4)
    # stationarity: 2(x − p) + 2λx = 0, so λ = √5 − 1
    np.testing.assert_allclose(result.multipliers, [np.sqrt(5) - 1], rtol=1e-3)
