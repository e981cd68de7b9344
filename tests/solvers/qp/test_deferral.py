"""Semidefinite bounds that are left out at first: which they are, and when the rest is the whole."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hcmodel.solvers.algebra.symmetric import to_vector
from hcmodel.solvers.qp import ConeOptions, make_cone_backend
from hcmodel.solvers.qp.cone_program import (
    ConeBlock,
    ConeKind,
    ConeProgram,
    cone_program,
    cone_residuals,
    without_rows,
)
from hcmodel.solvers.qp.deferral import completed, deferred_rows

FloatArray = NDArray[np.float64]


def program(least: float) -> ConeProgram:
    """minimise p + x s.t. p >= least, p <= 9, [p, 1; 1, x] >= 0: p = max(1, least), x = 1/p."""
    matrix = np.array([[-1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 0.0], [0.0, -1.0]])
    offset = np.array([-least, 9.0, *to_vector(np.array([[0.0, 1.0], [1.0, 0.0]]))])
    blocks = [ConeBlock(ConeKind.PSD_TRIANGLE, size) for size in (1, 1, 3)]
    return cone_program(np.ones(2), matrix, offset, blocks)


def test_bounds_of_a_matrix_inside_a_larger_block_are_deferred() -> None:
    deferred = deferred_rows(program(0.5))
    assert deferred is not None
    assert deferred.tolist() == [True, True, False, False, False]


def test_nothing_is_deferred_without_a_larger_block() -> None:
    bounds = without_rows(program(0.5), np.array([False, False, True, True, True]))
    assert deferred_rows(bounds) is None


@pytest.mark.parametrize(("least", "holds"), [(0.5, False), (2.0, True)])
def test_a_solution_without_the_bounds_is_one_unless_it_violates_them(
    least: float, holds: bool
) -> None:
    whole = program(least)
    deferred = deferred_rows(whole)
    assert deferred is not None
    part = make_cone_backend().solve(without_rows(whole, deferred), ConeOptions())
    assert part.primal[0] == pytest.approx(1.0, abs=1e-4)
    found = completed(whole, deferred, part)
    assert (found is None) == holds
    if found is not None:
        assert cone_residuals(whole, found).largest <= 1e-8
