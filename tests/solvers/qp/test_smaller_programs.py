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


LEVEL = {  # cones of a level t beside x, the columns being x and t; and whether the level leads into them
    "norm": (ConeBlock(ConeKind.SECOND_ORDER, 3), [[0, -1], [1, 0], [-2, 0]], [0, 3, 1], True),
    "norm below it": (
        ConeBlock(ConeKind.SECOND_ORDER, 3),
        [[0, 1], [1, 0], [-2, 0]],
        [0, 3, 1],
        True,
    ),
    "two rows": (ConeBlock(ConeKind.NONNEGATIVE, 2), [[1, -1], [-2, -1]], [-1, 3], True),
    "between two rows": (ConeBlock(ConeKind.NONNEGATIVE, 2), [[1, -1], [-2, 1]], [-1, 3], False),
    "square": (ConeBlock(ConeKind.SECOND_ORDER, 3), [[0, -1], [-2, 0], [0, -1]], [1, 0, -1], True),
    "turned square": (
        ConeBlock(ConeKind.SECOND_ORDER, 3),
        [[0, -1], [-2, 0], [0, 1]],
        [1, 0, 1],
        True,
    ),
    "square over 0": (
        ConeBlock(ConeKind.SECOND_ORDER, 3),
        [[0, -1], [-2, 0], [0, -1]],
        [1, 0, 1],
        False,
    ),
    "square over x": (
        ConeBlock(ConeKind.SECOND_ORDER, 3),
        [[-1, -1], [2, 0], [1, -1]],
        [0, 1, 0],
        False,
    ),
    "half of a square": (
        ConeBlock(ConeKind.SECOND_ORDER, 3),
        [[0, -1], [-2, 0], [0, -0.5]],
        [1, 0, -1],
        False,
    ),
    "equation": (ConeBlock(ConeKind.ZERO, 1), [[1, -1]], [2], False),
    "matrix": (ConeBlock(ConeKind.PSD_TRIANGLE, 3), [[0, -1], [1, 0], [0, -1]], [0, 0, 0], False),
}


@pytest.mark.parametrize("name", LEVEL)
def test_cones_that_a_level_leads_into_say_nothing(name: str) -> None:
    cone, entries, offset, leads = LEVEL[name]
    matrix = np.vstack([np.array(entries, dtype=float), [[1.0, 0.0]]])
    program = cone_program(
        np.zeros(2), matrix, np.array([*offset, 5.0]), (cone, ConeBlock(ConeKind.NONNEGATIVE, 1))
    )
    smaller, kept = without_idle(program, np.zeros(program.offset.size, dtype=bool), 1)
    assert kept.tolist() == [not leads] * cone.size + [True]
    assert smaller.matrix.shape[1] == (1 if leads else 2)


def test_a_level_that_something_limits_says_something() -> None:
    matrix = np.array([[0.0, -1.0], [1.0, 0.0], [0.0, 1.0]])
    cones = (ConeBlock(ConeKind.SECOND_ORDER, 2), ConeBlock(ConeKind.NONNEGATIVE, 1))
    program = cone_program(np.zeros(2), matrix, np.array([0.0, 1.0, 4.0]), cones)
    none, limit = np.zeros(3, dtype=bool), np.array([False, False, True])
    assert without_idle(program, none, 1)[1].all()
    assert not without_idle(program, limit, 1)[1].any()
    assert without_idle(program, none, 1)[0].matrix.shape == (3, 2)
