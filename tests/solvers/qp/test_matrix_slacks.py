"""Matrices that only name the difference of two sides are left out of a program, and come back."""

from __future__ import annotations

import numpy as np
import pytest

from hcmodel.solvers.algebra.symmetric import to_matrix, to_vector
from hcmodel.solvers.qp import ConeOptions, make_cone_backend
from hcmodel.solvers.qp.cone_program import (
    ConeBlock,
    ConeKind,
    ConeProgram,
    ConeSolution,
    ConeStatus,
    cone_program,
)
from hcmodel.solvers.qp.matrix_slacks import without_slacks

CORNER = np.array([[2.0, 1.0], [1.0, 3.0]])
SIZE = 3
"""Entries of a symmetric 2 × 2 matrix."""


def program(cost: float = 1.0, most: float = 100.0) -> ConeProgram:
    """min cost·t,  S = t I − M,  S ⪰ 0,  t <= most; the unknowns are S and t, S in units of −½."""
    A = np.zeros((2 * SIZE + 1, SIZE + 1))
    A[:SIZE, :SIZE] = -0.5 * np.eye(SIZE)
    A[:SIZE, SIZE] = -to_vector(np.eye(2))
    A[SIZE : 2 * SIZE, :SIZE] = 0.5 * np.eye(SIZE)
    A[-1, -1] = 1.0
    b = np.concatenate([-to_vector(CORNER), np.zeros(SIZE), [most]])
    cones = [
        ConeBlock(ConeKind.ZERO, SIZE),
        ConeBlock(ConeKind.PSD_TRIANGLE, SIZE),
        ConeBlock(ConeKind.NONNEGATIVE, 1),
    ]
    return cone_program(np.array([0.0, 0.0, 0.0, cost]), A, b, cones)


def solved(program: ConeProgram) -> ConeSolution:
    return make_cone_backend().solve(program, ConeOptions())


def test_a_matrix_that_names_a_difference_is_left_out() -> None:
    smaller = without_slacks(program())
    assert smaller is not None
    assert [(cone.kind, cone.size) for cone in smaller.program.cones] == [
        (ConeKind.PSD_TRIANGLE, SIZE),
        (ConeKind.NONNEGATIVE, 1),
    ]
    assert smaller.program.linear.tolist() == [1.0]
    assert without_slacks(smaller.program) is None


def test_the_solution_is_one_of_the_program_before() -> None:
    whole = program()
    smaller = without_slacks(whole)
    assert smaller is not None
    found = smaller.solution(solved(smaller.program))
    assert found.status is ConeStatus.SOLVED
    largest = np.linalg.eigvalsh(CORNER)[-1]
    assert found.primal[-1] == pytest.approx(largest)
    assert to_matrix(-0.5 * found.primal[:SIZE]) == pytest.approx(
        largest * np.eye(2) - CORNER, abs=1e-6
    )
    assert whole.sparse @ found.primal + found.slack == pytest.approx(whole.offset, abs=1e-7)
    assert np.abs(whole.linear + whole.pull(found.dual)).max() < 1e-7
    assert whole.offset @ found.dual == pytest.approx(-largest)
    again = smaller.taken(found)
    assert again.dual == pytest.approx(smaller.taken(solved(whole)).dual, abs=1e-6)
    assert np.abs(smaller.program.linear + smaller.program.pull(again.dual)).max() < 1e-7


def test_a_contradiction_and_a_direction_come_back() -> None:
    impossible = program(most=1.0)
    smaller = without_slacks(impossible)
    assert smaller is not None
    found = smaller.solution(solved(smaller.program))
    assert found.status is ConeStatus.INFEASIBLE
    assert impossible.offset @ found.dual < 0.0
    assert np.abs(impossible.pull(found.dual)).max() < 1e-6 * np.abs(found.dual).max()
    endless = program(cost=-1.0, most=np.inf)
    endless = cone_program(
        endless.linear, endless.matrix.toarray()[:-1], endless.offset[:-1], endless.cones[:-1]
    )
    smaller = without_slacks(endless)
    assert smaller is not None
    found = smaller.solution(solved(smaller.program))
    assert found.status is ConeStatus.UNBOUNDED
    assert endless.linear @ found.primal < 0.0
    assert np.abs((endless.sparse @ found.primal)[:SIZE]).max() < 1e-6


@pytest.mark.parametrize("use", ["objective", "row", "quadratic"])
def test_a_matrix_that_is_used_elsewhere_stays(use: str) -> None:
    whole = program()
    A, linear, quadratic = whole.matrix.toarray(), whole.linear.copy(), np.zeros((4, 4))
    if use == "objective":
        linear[:SIZE] = 1.0
    elif use == "row":
        A[-1, :SIZE] = 1.0
    else:
        quadratic[:SIZE, :SIZE] = np.eye(SIZE)
    used = cone_program(linear, A, whole.offset, whole.cones, quadratic)
    assert without_slacks(used) is None
