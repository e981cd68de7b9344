"""Cones of logarithms that stand nowhere else are left out, and their rows come back."""

from __future__ import annotations

import numpy as np
import pytest

from hcmodel.solvers.qp import ConeOptions, make_cone_backend
from hcmodel.solvers.qp.cone_program import (
    ConeBlock,
    ConeKind,
    ConeProgram,
    ConeStatus,
    cone_program,
)
from hcmodel.solvers.qp.idle_logarithms import without_idle_logarithms

OWN = 2


def program(bound: float = 0.0, cost: tuple[float, float] = (1.0, 2.0)) -> ConeProgram:
    """min cost·x, x₀ + x₁ >= 3, log x₀ >= bound; the unknowns are x and t, and t₁ is needed nowhere."""
    A = np.zeros((8, 4))
    A[0, :2] = -1.0
    A[1, 2], A[3, 0] = -1.0, -1.0
    A[4, 3], A[6, 1] = -1.0, -1.0
    A[7, 2] = -1.0
    b = np.array([-3.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, -bound])
    cones = [
        ConeBlock(ConeKind.NONNEGATIVE, 1),
        ConeBlock(ConeKind.EXPONENTIAL, 6),
        ConeBlock(ConeKind.NONNEGATIVE, 1),
    ]
    return cone_program(np.array([*cost, 0.0, 0.0]), A, b, cones)


def test_a_logarithm_that_no_row_needs_is_left_out() -> None:
    whole = program()
    smaller = without_idle_logarithms(whole, OWN)
    assert smaller is not None
    kinds = [(cone.kind, cone.size) for cone in smaller.program.cones]
    assert kinds == [
        (ConeKind.NONNEGATIVE, 1),
        (ConeKind.EXPONENTIAL, 3),
        (ConeKind.NONNEGATIVE, 1),
        (ConeKind.NONNEGATIVE, 2),
    ]
    assert smaller.program.linear.tolist() == [1.0, 2.0, 0.0]
    assert without_idle_logarithms(smaller.program, OWN) is None
    assert without_idle_logarithms(whole, 4) is None  # the unknowns are those of a model


def test_the_solution_is_one_of_the_program_before() -> None:
    whole = program(bound=0.5)
    smaller = without_idle_logarithms(whole, OWN)
    assert smaller is not None
    found = smaller.solution(make_cone_backend().solve(smaller.program, ConeOptions()))
    assert found.status is ConeStatus.SOLVED
    assert found.primal[0] == pytest.approx(3.0, abs=1e-6)
    left = whole.matrix @ found.primal + found.slack - whole.offset
    assert np.abs(left).max() < 1e-7
    assert np.abs(whole.linear + whole.pull(found.dual)).max() < 1e-7
    assert found.dual[4:6].tolist() == pytest.approx([0.0, 0.0], abs=1e-7)
    t, y, x = found.slack[4:7]
    assert x == pytest.approx(y * np.exp(t / y), rel=1e-6)


def test_a_contradiction_comes_back() -> None:
    whole = program(bound=2.0)
    rows = np.vstack([whole.matrix.toarray(), [[1.0, 0.0, 0.0, 0.0]]])  # x₀ <= 1
    cones = [*whole.cones, ConeBlock(ConeKind.NONNEGATIVE, 1)]
    impossible = cone_program(whole.linear, rows, np.append(whole.offset, 1.0), cones)
    smaller = without_idle_logarithms(impossible, OWN)
    assert smaller is not None
    found = smaller.solution(make_cone_backend().solve(smaller.program, ConeOptions()))
    assert found.status is ConeStatus.INFEASIBLE
    assert impossible.offset @ found.dual == pytest.approx(-1.0)
    assert np.abs(impossible.pull(found.dual)).max() < 1e-6


def test_a_direction_comes_back() -> None:
    whole = program(cost=(1.0, -1.0))
    smaller = without_idle_logarithms(whole, OWN)
    assert smaller is not None
    found = smaller.solution(make_cone_backend().solve(smaller.program, ConeOptions()))
    assert found.status is ConeStatus.UNBOUNDED
    assert np.abs(whole.matrix @ found.primal + found.slack).max() < 1e-6
    assert whole.linear @ found.primal == pytest.approx(-1.0)
