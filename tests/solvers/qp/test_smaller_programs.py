"""Programs without some rows, and without what says nothing then."""

from __future__ import annotations

import numpy as np
import pytest

from hcmodel.solvers.qp import ConeBlock, ConeKind, cone_program, solve_cone, without_rows
from hcmodel.solvers.qp.cone_program import ConeProgram, without_idle


def sums_of_exponentials(cost: float = 0.0, middle: float = 1.0) -> ConeProgram:
    """Least x0 with exp(−x0) + exp(−x1) <= 1 and x1 <= 3; the unknowns are x0, x1, z0, z1.

    Rows: z0 + z1 <= 1, x1 <= 3, and two exponential cones (−x_i, 1, z_i).
    """
    matrix = np.zeros((8, 4))
    matrix[0, 2:] = 1.0
    matrix[1, 1] = 1.0
    matrix[2, 0] = matrix[5, 1] = 1.0
    matrix[4, 2] = matrix[7, 3] = -1.0
    offset = np.array([1.0, 3.0, 0.0, middle, 0.0, 0.0, middle, 0.0])
    cones = (ConeBlock(ConeKind.NONNEGATIVE, 2), ConeBlock(ConeKind.EXPONENTIAL, 6))
    return cone_program(np.array([1.0, 0.0, cost, cost]), matrix, offset, cones)


def mask(*rows: int) -> np.ndarray:
    dropped = np.zeros(8, dtype=bool)
    dropped[list(rows)] = True
    return dropped


def test_nothing_is_idle_while_every_unknown_is_bounded() -> None:
    program = sums_of_exponentials()
    smaller, kept = without_idle(program, mask(), 2)
    assert kept.all()
    assert smaller.matrix.shape == (8, 4)
    expected = -np.log(1 - np.exp(-3.0))
    assert solve_cone(smaller).primal[0] == pytest.approx(expected, abs=1e-6)


def test_cones_of_a_sum_that_is_left_out_go_with_it() -> None:
    smaller, kept = without_idle(sums_of_exponentials(), mask(0), 2)
    assert np.flatnonzero(kept).tolist() == [1]
    assert smaller.matrix.sparse().toarray().tolist() == [[0.0, 1.0]]
    assert [(cone.kind, cone.size) for cone in smaller.cones] == [(ConeKind.NONNEGATIVE, 1)]
    assert smaller.linear.tolist() == [1.0, 0.0]


def test_cones_whose_unknown_costs_something_stay() -> None:
    smaller, kept = without_idle(sums_of_exponentials(cost=1.0), mask(0), 2)
    assert np.flatnonzero(kept).tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert smaller.matrix.shape == (7, 4)


def test_cones_of_the_first_unknowns_stay() -> None:
    smaller, kept = without_idle(sums_of_exponentials(), mask(0), 3)
    assert np.flatnonzero(kept).tolist() == [1, 2, 3, 4]  # z0 is one of the first, z1 is not
    assert smaller.matrix.shape == (4, 3)


def test_a_cone_whose_middle_is_not_positive_says_something() -> None:
    _, kept = without_idle(sums_of_exponentials(middle=0.0), mask(0), 2)
    assert np.flatnonzero(kept).tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_of_several_cones_of_three_rows_some_can_be_dropped() -> None:
    smaller = without_rows(sums_of_exponentials(), mask(2, 3, 4))
    assert [cone.size for cone in smaller.cones] == [2, 3]
    assert smaller.offset.tolist() == [1.0, 3.0, 0.0, 1.0, 0.0]
    with pytest.raises(ValueError, match="EXPONENTIAL"):
        without_rows(sums_of_exponentials(), mask(2, 3, 5))
