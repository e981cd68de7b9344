"""Dense quadratic programs by active sets, against Clarabel and the optimality conditions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from hcmodel.solvers.qp import (
    ConeBlock,
    ConeKind,
    ConeOptions,
    ConeProgram,
    cone_program,
    cone_residuals,
    solve_cone,
)
from hcmodel.solvers.qp.dense_quadratic import RULES, solve_dense

SIZE, COUNT = RULES.fewest, RULES.fewest + 40
GENERATOR = np.random.default_rng(4)
E, TARGET = GENERATOR.normal(size=(COUNT, SIZE)), GENERATOR.normal(size=COUNT)
TOLERANCE = 1e-10


def least_squares(
    matrix: Any,
    target: np.ndarray,
    *,
    box: tuple[float, float] = (-0.02, 0.03),
    equal: np.ndarray | None = None,
    below: np.ndarray | None = None,
) -> ConeProgram:
    """½|r|² with matrix @ x − r = target, a box, and rows equal·x = 0.1, below·x <= −0.05."""
    count, size = matrix.shape
    rows = [sp.hstack([sp.csr_array(matrix), -sp.eye_array(count)])]
    offsets, cones = [target], [ConeBlock(ConeKind.ZERO, count)]
    for row, bound, kind in (
        (equal, 0.1, ConeKind.ZERO),
        (below, -0.05, ConeKind.NONNEGATIVE),
    ):
        if row is not None:
            rows.append(sp.csr_array(np.concatenate([row, np.zeros(count)])[None]))
            offsets.append(np.array([bound]))
            cones.append(ConeBlock(kind, 1))
    sides = sp.hstack([sp.eye_array(size), sp.csr_array((size, count))])
    rows += [2.0 * sides, -sides]  # bounds need not be written with 1
    offsets += [np.full(size, 2.0 * box[1]), np.full(size, -box[0])]
    cones.append(ConeBlock(ConeKind.NONNEGATIVE, 2 * size))
    quadratic = sp.diags_array(np.concatenate([np.zeros(size), np.ones(count)]))
    return cone_program(
        np.zeros(size + count), sp.vstack(rows), np.concatenate(offsets), cones, quadratic
    )


@pytest.mark.parametrize("rows", ["box", "equality", "inequality", "both"])
def test_least_squares_in_a_box_agree_with_clarabel(rows: str) -> None:
    equal = np.ones(SIZE) if rows in ("equality", "both") else None
    below = GENERATOR.normal(size=SIZE) if rows in ("inequality", "both") else None
    program = least_squares(E, TARGET, equal=equal, below=below)
    found = solve_dense(program, TOLERANCE)
    assert found is not None
    assert cone_residuals(program, found).largest <= 1e-11
    peer = solve_cone(program, options=ConeOptions(TOLERANCE))
    np.testing.assert_allclose(found.primal, peer.primal, atol=1e-6)
    np.testing.assert_allclose(found.dual, peer.dual, atol=1e-5)
    held = np.abs(found.primal[:SIZE] + 0.02) < 1e-12
    assert held.any()
    assert not held.all()


def test_without_residuals_the_matrix_itself_may_be_dense() -> None:
    square = E.T @ E
    sides = sp.vstack([sp.eye_array(SIZE), -sp.eye_array(SIZE)])
    box = [ConeBlock(ConeKind.NONNEGATIVE, 2 * SIZE)]
    program = cone_program(-E.T @ TARGET, sides, np.full(2 * SIZE, 0.01), box, square)
    found = solve_dense(program, TOLERANCE)
    assert found is not None
    assert cone_residuals(program, found).largest <= 1e-11


def dependent() -> np.ndarray:
    """Columns of which two differ by 1e-7: their squares have lost the difference."""
    matrix = E.copy()
    matrix[:, 1] = matrix[:, 0] + 1e-7 * matrix[:, 1]
    return matrix


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(least_squares(E[:, :-1], TARGET), id="few unknowns"),
        pytest.param(least_squares(sp.diags_array(np.ones(COUNT)), TARGET), id="sparse"),
        pytest.param(least_squares(E, TARGET, box=(0.1, -0.1)), id="empty box"),
        pytest.param(least_squares(dependent(), TARGET, box=(-1e6, 1e6)), id="dependent columns"),
    ],
)
def test_other_programs_are_left_to_the_general_backend(program: ConeProgram) -> None:
    assert solve_dense(program, TOLERANCE) is None
