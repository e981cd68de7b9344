"""Directions along which cone programs fall for ever (`hcmodel.solvers.qp.rays`)."""

import numpy as np
import pytest

from hcmodel.solvers.qp import ConeOptions, make_cone_backend
from hcmodel.solvers.qp.cone_program import ConeBlock, ConeKind, cone_program
from hcmodel.solvers.qp.rays import recedes, recession, sharpened

EQUATION = np.array([[0.1, -1.0, 1.4]])
EXACT = np.array([1.0, 0.8, 0.5])  # 0.1 − 0.8 + 0.7 = 0


@pytest.mark.parametrize("kind", [ConeKind.ZERO, ConeKind.NONNEGATIVE])
def test_what_moves_rows_that_hardly_move_is_taken_off(kind: ConeKind) -> None:
    program = cone_program(-np.ones(3), EQUATION, np.zeros(1), [ConeBlock(kind, 1)])
    given = EXACT + np.array([0.0, 3e-9, 0.0])
    found = sharpened(program, given)
    assert abs(EQUATION @ given)[0] == pytest.approx(3e-9)
    assert abs(EQUATION @ found)[0] <= 1e-16
    assert found == pytest.approx(EXACT, abs=1e-8)


def test_rows_that_move_stay_as_they_are() -> None:
    rows = np.vstack([EQUATION, [-1.0, 0.0, 0.0]])
    program = cone_program(-np.ones(3), rows, np.zeros(2), [ConeBlock(ConeKind.NONNEGATIVE, 2)])
    given = np.array([1.0, 2.0, 0.5])  # −1.2 and −1: both slacks grow
    assert sharpened(program, given) is given


def test_squares_do_not_grow_along_a_sharpened_direction() -> None:
    program = cone_program(
        -np.ones(3),
        np.zeros((1, 3)),
        np.zeros(1),
        [ConeBlock(ConeKind.NONNEGATIVE, 1)],
        quadratic=EQUATION.T @ EQUATION,
    )
    found = sharpened(program, EXACT + np.array([0.0, 0.0, 1e-8]))
    assert abs(EQUATION @ found)[0] <= 1e-16


def test_a_direction_that_rows_which_stay_would_take_away_is_kept() -> None:
    """Both rows hardly move, and nothing but 0 keeps both."""
    rows = [[1e-6, 1.0], [1e-6, -1.0]]
    program = cone_program(-np.ones(2), rows, np.zeros(2), [ConeBlock(ConeKind.NONNEGATIVE, 2)])
    given = np.array([1.0, 0.0])
    assert sharpened(program, given) is given


def test_what_is_no_direction_is_left_as_it_is() -> None:
    program = cone_program(-np.ones(1), [[1.0]], np.zeros(1), [ConeBlock(ConeKind.NONNEGATIVE, 1)])
    for nothing in (np.zeros(1), np.array([np.inf])):
        assert sharpened(program, nothing) is nothing


def test_rows_hardly_move_relative_to_their_largest_entry() -> None:
    program = cone_program(
        -np.ones(2), [[1.0, 1e6]], np.zeros(1), [ConeBlock(ConeKind.NONNEGATIVE, 1)]
    )
    assert sharpened(program, np.array([1.0, 0.0])) == pytest.approx([1.0, -1e-6], abs=1e-11)


def steepest(program):
    return make_cone_backend().solve(recession(program), ConeOptions())


def test_the_steepest_direction_is_looked_for_within_a_box() -> None:
    # x + y == 1, x >= −3 and the objective −x + 2 y: along (1, −1)
    program = cone_program(
        np.array([-1.0, 2.0]),
        [[1.0, 1.0], [-1.0, 0.0]],
        np.array([1.0, 3.0]),
        [ConeBlock(ConeKind.ZERO, 1), ConeBlock(ConeKind.NONNEGATIVE, 1)],
    )
    assert steepest(program).primal == pytest.approx([1.0, -1.0], abs=1e-8)
    # ‖(x, y)‖ <= 1: none
    norm = cone_program(
        np.array([-1.0, 2.0]),
        np.vstack([np.zeros((1, 2)), -np.eye(2)]),
        np.array([1.0, 0.0, 0.0]),
        [ConeBlock(ConeKind.SECOND_ORDER, 3)],
    )
    assert steepest(norm).primal == pytest.approx([0.0, 0.0], abs=1e-6)


def test_no_direction_is_steep_along_which_a_square_grows() -> None:
    program = cone_program(
        np.array([-5.0, -1.0]),
        np.zeros((1, 2)),
        np.zeros(1),
        [ConeBlock(ConeKind.NONNEGATIVE, 1)],
        quadratic=np.diag([1.0, 0.0]),
    )
    assert steepest(program).primal == pytest.approx([0.0, 1.0], abs=1e-8)


@pytest.mark.parametrize("unit", [1.0, 1e-120])
def test_rows_that_can_be_followed_are_told_in_any_unit(unit: float) -> None:
    """x − 2 y >= 0, and (x, y, y) in a second-order cone: along (2, 1), but not along (1, 1)."""
    rows = unit * np.array([[-1.0, 2.0], [-1.0, 0.0], [0.0, -1.0], [0.0, -1.0]])
    cones = [ConeBlock(ConeKind.NONNEGATIVE, 1), ConeBlock(ConeKind.SECOND_ORDER, 3)]
    program = cone_program(np.zeros(2), rows, np.zeros(4), cones)
    assert recedes(program, np.array([2.0, 1.0 + 1e-8]))
    assert not recedes(program, np.array([1.99, 1.0]))
    narrow = cone_program(np.zeros(2), rows[1:], np.zeros(3), cones[1:])
    assert recedes(narrow, np.array([2.0**0.5, 1.0]))
    assert not recedes(narrow, np.array([1.4, 1.0]))
    assert not recedes(narrow, np.array([-1.0, 0.0]))
    assert recedes(narrow, np.array([1.0, 0.0]))


@pytest.mark.parametrize("unit", [1.0, 1e-210])
def test_squares_grow_in_any_unit(unit: float) -> None:
    nothing = [ConeBlock(ConeKind.NONNEGATIVE, 1)]
    square = unit * np.diag([1.0, 0.0])
    program = cone_program(-np.ones(2), np.zeros((1, 2)), np.zeros(1), nothing, quadratic=square)
    assert not recedes(program, np.array([1.0, 0.0]))
    assert recedes(program, np.array([0.0, 1.0]))
    assert recedes(program, np.array([1e-9, 1.0]))  # more digits no backend knows


@pytest.mark.parametrize("kind", [ConeKind.ZERO, ConeKind.EXPONENTIAL])
def test_cones_that_move_show_nothing(kind: ConeKind) -> None:
    rows = np.array([[1.0, -1.0], [1.0, -1.0], [1.0, -1.0]])
    program = cone_program(np.zeros(2), rows, np.zeros(3), [ConeBlock(kind, 3)])
    assert recedes(program, np.ones(2))
    assert not recedes(program, np.array([1.0, 0.5]))
