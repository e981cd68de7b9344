"""`check_backend`: a backend of cone or quadratic programs on small programs with known minima.

The minima are known in closed form. An answer is judged by the residuals that `cone_residuals` and
`residuals` recompute from the data, and not by what the backend says of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers.qp import (
    ConeBackend,
    ConeBlock,
    ConeKind,
    ConeOptions,
    ConeProgram,
    ConeStatus,
    QPBackend,
    QPStatus,
    QuadraticProgram,
    cone_program,
    cone_residuals,
    residuals,
)
from hcmodel.solvers.qp.program import StepRows
from hcmodel.testing.naming import named

FloatArray = NDArray[np.float64]

# The statuses of a program that has a minimum, no feasible point, or no lower bound.
MINIMUM = (ConeStatus.SOLVED, ConeStatus.ALMOST_SOLVED)
EMPTY = (ConeStatus.INFEASIBLE, ConeStatus.ALMOST_INFEASIBLE)
ENDLESS = (ConeStatus.UNBOUNDED, ConeStatus.ALMOST_UNBOUNDED)


@dataclass(frozen=True)
class _Known:
    """A program and what is known of it: the statuses that are right, and the minimum."""

    name: str
    program: ConeProgram
    statuses: tuple[ConeStatus, ...] = MINIMUM
    value: float | None = None


def check_backend(
    make: Callable[[], ConeBackend] | Callable[[], QPBackend], *, accuracy: float = 1e-6
) -> tuple[str, ...]:
    """Check a backend on every program that it fits; the names of these are returned.

    `make` gives a new instance, as an entry of `CONE_BACKENDS` or `BACKENDS` does. A backend of cone
    programs has a method `fits`, one of quadratic programs has none. `accuracy` is the largest residual,
    and the largest error of a minimum, that is allowed. Raises `AssertionError` with the name of the
    program and what failed.
    """
    checked = []
    for known in _known_programs():
        backend: Any = make()
        if hasattr(backend, "fits") and backend.fits(known.program):
            with named(known.name):
                _check(known, backend, accuracy)
            checked.append(known.name)
    for name, program, statuses, value in _known_quadratics():
        backend = make()
        if not hasattr(backend, "fits"):
            with named(name):
                _check_quadratic(program, backend, statuses, value, accuracy)
            checked.append(name)
    assert checked, "the backend fits none of the programs"
    return tuple(checked)


def _check(known: _Known, backend: ConeBackend, accuracy: float) -> None:
    program, options = known.program, ConeOptions()
    before = _numbers(program)
    solution = backend.solve(program, options)
    expected = " or ".join(each.name for each in known.statuses)
    assert solution.status in known.statuses, (
        f"the status is {solution.status.name}, not {expected}"
    )
    found = cone_residuals(program, solution)
    assert found.largest <= accuracy, f"{found} is more than {accuracy:g}"
    if known.value is not None:
        curved = 0.5 * solution.primal @ (program.quadratic @ solution.primal)
        value = float(curved + program.linear @ solution.primal)
        assert abs(value - known.value) <= accuracy, f"the value is {value}, not {known.value}"
    unchanged = zip(before, _numbers(program), strict=True)
    assert all(np.array_equal(old, new) for old, new in unchanged), "the program was changed"
    again = backend.solve(program, options)
    assert again.status is solution.status, f"a second solve ends with {again.status.name}"
    parts = zip((solution.primal, solution.dual), (again.primal, again.dual), strict=True)
    same = all(np.allclose(one, two, atol=accuracy, equal_nan=True) for one, two in parts)
    assert same, "a second solve of the same program has another answer"


def _numbers(program: ConeProgram) -> tuple[FloatArray, ...]:
    """Copies of what a backend is handed."""
    matrices = (program.quadratic.toarray(), program.sparse.toarray())
    return (*matrices, program.linear.copy(), program.offset.copy())


def _made(
    linear: Sequence[float],
    *blocks: tuple[ConeBlock, Any, Any],
    quadratic: Sequence[Sequence[float]] | None = None,
) -> ConeProgram:
    """min ½ xᵀP x + qᵀx with b − A x in cones, from the blocks of rows (cone, A, b)."""
    return cone_program(
        np.array(linear),
        np.vstack([np.array(matrix, dtype=float) for _, matrix, _ in blocks]),
        np.concatenate([np.array(offset, dtype=float) for _, _, offset in blocks]),
        [cone for cone, _, _ in blocks],
        None if quadratic is None else np.array(quadratic),
    )


def _known_programs() -> tuple[_Known, ...]:
    return (*_linear(), *_without_a_solution(), *_curved())


def _linear() -> tuple[_Known, ...]:
    """Over x, y >= 0: x + 2 y on x + y = 1, and x + y where 2 x + y and x + 2 y are 9/4 or more."""
    signs = (ConeBlock(ConeKind.NONNEGATIVE, 2), -np.eye(2), np.zeros(2))
    total = (ConeBlock(ConeKind.ZERO, 1), [[1.0, 1.0]], [1.0])
    covered = (ConeBlock(ConeKind.NONNEGATIVE, 2), [[-2.0, -1.0], [-1.0, -2.0]], [-2.25, -2.25])
    return (
        _Known("a linear program with an equation", _made([1.0, 2.0], total, signs), value=1.0),
        _Known("a linear program", _made([1.0, 1.0], covered, signs), value=1.5),
    )


def _without_a_solution() -> tuple[_Known, ...]:
    """x >= 1 and x <= 0 exclude each other; −x has no minimum over x >= 0."""
    one = ConeBlock(ConeKind.NONNEGATIVE, 1)
    apart = _made([1.0], (one, [[-1.0]], [-1.0]), (one, [[1.0]], [0.0]))
    falling = _made([-1.0], (one, [[-1.0]], [0.0]))
    # ‖(x, y)‖ <= 1 and x >= 2; y has no minimum in the cone ‖(x, y)‖ <= t
    disc = (ConeBlock(ConeKind.SECOND_ORDER, 3), [[0, 0], [-1, 0], [0, -1]], [1, 0, 0])
    cone = (ConeBlock(ConeKind.SECOND_ORDER, 3), -np.eye(3)[[2, 0, 1]], np.zeros(3))
    beyond = (one, [[-1.0, 0.0]], [-2.0])
    return (
        _Known("an infeasible linear program", apart, EMPTY),
        _Known("an unbounded linear program", falling, ENDLESS),
        _Known("an infeasible second-order program", _made([0.0, 1.0], disc, beyond), EMPTY),
        _Known("an unbounded second-order program", _made([0.0, 1.0, 0.0], cone), ENDLESS),
    )


def _curved() -> tuple[_Known, ...]:
    one = ConeBlock(ConeKind.NONNEGATIVE, 1)
    # ½ x² + y² on x + y >= 3, at (2, 1)
    sum_of_two = (one, [[-1.0, -1.0]], [-3.0])
    quadratic = _made([0.0, 0.0], sum_of_two, quadratic=[[1.0, 0.0], [0.0, 2.0]])
    # x + y on the unit disc
    disc = (ConeBlock(ConeKind.SECOND_ORDER, 3), [[0, 0], [-1, 0], [0, -1]], [1, 0, 0])
    # z >= exp(x) with x >= 1
    exponential = (
        ConeBlock(ConeKind.EXPONENTIAL, 3),
        [[-1.0, 0.0], [0.0, 0.0], [0.0, -1.0]],
        [0.0, 1.0, 0.0],
    )
    from_one = (one, [[-1.0, 0.0]], [-1.0])
    # √(x y) >= 2 makes x + y at least 4
    power = (
        ConeBlock(ConeKind.POWER, 3, exponent=0.5),
        [[-1.0, 0.0], [0.0, -1.0], [0.0, 0.0]],
        [0.0, 0.0, 2.0],
    )
    # [x, 1; 1, y] ⪰ 0 makes x y at least 1, and x + 4 y at least 4
    matrix = (
        ConeBlock(ConeKind.PSD_TRIANGLE, 3),
        [[-1.0, 0.0], [0.0, 0.0], [0.0, -1.0]],
        [0.0, float(np.sqrt(2.0)), 0.0],
    )
    return (
        _Known("a quadratic program", quadratic, value=3.0),
        _Known("a second-order cone", _made([1.0, 1.0], disc), value=-float(np.sqrt(2.0))),
        _Known("an exponential cone", _made([0.0, 1.0], exponential, from_one), value=float(np.e)),
        _Known("a power cone", _made([1.0, 1.0], power), value=4.0),
        _Known("a semidefinite cone", _made([1.0, 4.0], matrix), value=4.0),
    )


# ---- quadratic programs

_Quadratic = tuple[str, QuadraticProgram, tuple[QPStatus, ...], float | None]
SOLVED = (QPStatus.SOLVED, QPStatus.ALMOST_SOLVED)


def _check_quadratic(
    program: QuadraticProgram,
    backend: QPBackend,
    statuses: tuple[QPStatus, ...],
    value: float | None,
    accuracy: float,
) -> None:
    solution = backend.solve(program)
    assert solution.status in statuses, f"the status is {solution.status.name}"
    if value is None:
        return
    found = residuals(program, solution)
    assert max(found) <= accuracy, f"residuals {found} are more than {accuracy:g}"
    assert (solution.inequality_multipliers >= -accuracy).all(), "a multiplier is negative"
    s, bounds = solution.step, solution.bound_multipliers
    inside = (s > program.domain.lower + accuracy) & (s < program.domain.upper - accuracy)
    assert (np.abs(bounds[inside]) <= accuracy).all(), (
        "a bound that is not reached has a multiplier"
    )
    lower = inside | (s > program.domain.upper - accuracy)
    assert (bounds[lower] >= -accuracy).all(), "the multiplier of an upper bound is negative"
    reached = float(0.5 * s @ program.times_quadratic(s) + program.linear @ s)
    assert abs(reached - value) <= accuracy, f"the value is {reached}, not {value}"


def _known_quadratics() -> tuple[_Quadratic, ...]:
    """½ ‖s − c‖² − ½ ‖c‖² over boxes, with c = (2, −0.5, 0.25)."""
    c, unit, none = np.array([2.0, -0.5, 0.25]), np.eye(3), np.zeros((0, 3))
    box, free = StepRows(-np.ones(3), np.ones(3)), StepRows(np.full(3, -np.inf), np.full(3, np.inf))
    empty, one = np.zeros(0), np.ones((1, 3))
    limit, total = np.array([1.0]), np.array([-1.25])
    # c is clipped to (1, −0.5, 0.25); on Σ s = −1.25 each entry of c falls by 1
    clipped = QuadraticProgram(unit, -c, none, empty, none, empty, box)
    moved = QuadraticProgram(np.ones(3), -c, none, empty, one, total, free)
    # Σ s <= 1 holds at the clipped point, where the sum is 0.75; Σ s <= −1.25 does not hold at c
    idle = QuadraticProgram(np.ones(3), -c, one, limit, none, empty, box)
    active = QuadraticProgram(unit, -c, one, total, none, empty, free)
    apart = QuadraticProgram(unit, -c, one, np.array([-4.0]), none, empty, box)
    square = 0.5 * float(c @ c)
    return (
        ("a quadratic program over a box", clipped, SOLVED, 0.5 - square),
        ("a quadratic program with an equation", moved, SOLVED, 1.5 - square),
        ("a quadratic program with a row that is idle", idle, SOLVED, 0.5 - square),
        ("a quadratic program with a row", active, SOLVED, 1.5 - square),
        ("an infeasible quadratic program", apart, (QPStatus.INFEASIBLE,), None),
    )
