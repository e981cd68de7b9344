"""Small problems whose minima are known in closed form, with and without rows.

They are plain numpy functions with Hessians. Those that are convex as they stand come with the same
problem as one convex program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers.loop import WholeProgram
from hcmodel.solvers.qp import ConeBlock, ConeKind, cone_program
from hcmodel.solvers.second_order.interior_point import SmoothConvexProgram
from hcmodel.solvers.sets.box import Box
from hcmodel.solvers.sets.domain import Domain
from hcmodel.solvers.sets.simplices import Simplices

FloatArray = NDArray[np.float64]
# Value, gradient and Hessian of each function at a point.
Functions = Callable[[FloatArray], list[tuple[float, FloatArray, FloatArray]]]
# Rows b − A x in a cone.
Rows = tuple[ConeBlock, FloatArray, FloatArray]


@dataclass(frozen=True)
class KnownProblem:
    """min F(x) over a domain with rows, inequalities first, and its minimum.

    `programs` has the same problem as one convex program, by the kind that direct methods ask for.
    """

    name: str
    functions: Functions
    domain: Domain
    start: FloatArray
    value: float
    inequalities: int = 0
    equalities: int = 0
    kinked: bool = False
    programs: Mapping[str, WholeProgram] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    @property
    def rows(self) -> int:
        return self.inequalities + self.equalities


def known_problems() -> tuple[KnownProblem, ...]:
    """Convex problems with and without rows, with the reason for each minimum."""
    smooth = (_clipped(), _on_a_simplex(), _disc(), _tank(), _plane())
    return (*(_with_smooth_program(each) for each in smooth), _kinked())


def _clipped() -> KnownProblem:
    """½ Σ w (x − c)² over a box: each entry of c is clipped to the box."""
    w, c = np.array([1.0, 4.0, 9.0]), np.array([2.0, -0.3, 0.5])
    value = 0.5 * float(w[0] * (2.0 - 1.0) ** 2)

    def functions(x: FloatArray) -> list[tuple[float, FloatArray, FloatArray]]:
        return [(float(0.5 * w @ (x - c) ** 2), w * (x - c), np.diag(w))]

    quadratic, bounds = np.diag(w), _between(3, -1.0, 1.0)
    return KnownProblem(
        "box",
        functions,
        Box.of(3, -1.0, 1.0),
        np.array([-1.0, 1.0, -1.0]),
        value,
        programs={"cone": _whole(-w * c, [bounds], quadratic=quadratic)},
    )


def _on_a_simplex() -> KnownProblem:
    """Σ p_i²/w_i over distributions: p is proportional to w, and the value is 1/Σ w."""
    w = np.array([1.0, 2.0, 5.0])

    def functions(p: FloatArray) -> list[tuple[float, FloatArray, FloatArray]]:
        return [(float(np.sum(p**2 / w)), 2 * p / w, np.diag(2 / w))]

    sums = (ConeBlock(ConeKind.ZERO, 1), np.ones((1, 3)), np.ones(1))
    signs = (ConeBlock(ConeKind.NONNEGATIVE, 3), -np.eye(3), np.zeros(3))
    return KnownProblem(
        "simplex",
        functions,
        Simplices(1, 3),
        np.array([0.8, 0.1, 0.1]),
        1 / 8,
        programs={"cone": _whole(np.zeros(3), [sums, signs], quadratic=np.diag(2 / w))},
    )


def _disc() -> KnownProblem:
    """The projection of (1, 2) onto the unit disc, at distance √5 − 1."""
    centre = np.array([1.0, 2.0])

    def functions(x: FloatArray) -> list[tuple[float, FloatArray, FloatArray]]:
        away = x - centre
        objective = (float(away @ away), 2 * away, 2 * np.eye(2))
        return [objective, (float(x @ x - 1), 2 * x, 2 * np.eye(2))]

    # over (x, t): t <= 1 and ‖(2x, t − 1)‖ <= t + 1, which is x·x <= t
    row = (ConeBlock(ConeKind.NONNEGATIVE, 1), np.array([[0.0, 0.0, 1.0]]), np.ones(1))
    square = -np.array([[0.0, 0.0, 1.0], [2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    cone = (ConeBlock(ConeKind.SECOND_ORDER, 4), square, np.array([1.0, 0.0, 0.0, -1.0]))
    linear = np.array([*(-2 * centre), 0.0])
    return KnownProblem(
        "disc",
        functions,
        Box.of(2, -2.0, 2.0),
        np.array([-1.5, 0.5]),
        (np.sqrt(5) - 1) ** 2,
        inequalities=1,
        programs={"cone": _whole(linear, [row, cone], [0], np.diag([2.0, 2.0, 0.0]))},
    )


def _tank() -> KnownProblem:
    """e^(u+v) + 4 e^(−u) + e^(−v) with u + v <= 0: the paper's Ex-CGP in logarithms, of value 5."""
    ones = np.ones(2)

    def functions(u: FloatArray) -> list[tuple[float, FloatArray, FloatArray]]:
        slopes = np.array([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
        terms = np.array([1.0, 4.0, 1.0]) * np.exp(slopes @ u)
        hessian = slopes.T @ np.diag(terms) @ slopes
        return [
            (float(terms.sum()), terms @ slopes, hessian),
            (float(u.sum()), ones, np.zeros((2, 2))),
        ]

    # over (u, v, z): z_k >= exp(slopes_k·u)
    low, high = float(np.log(0.4)), float(np.log(3.0))
    exponents = np.zeros((9, 5))
    exponents[0::3, :2] = -np.array([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    exponents[2::3, 2:] = -np.eye(3)
    ones_between = np.tile([0.0, 1.0, 0.0], 3)
    row = (ConeBlock(ConeKind.NONNEGATIVE, 1), np.array([[1.0, 1.0, 0.0, 0.0, 0.0]]), np.zeros(1))
    cone = (ConeBlock(ConeKind.EXPONENTIAL, 9), exponents, ones_between)
    linear = np.array([0.0, 0.0, 1.0, 4.0, 1.0])
    return KnownProblem(
        "tank",
        functions,
        Box.of(2, low, high),
        np.log([0.6, 1.6]),
        5.0,
        inequalities=1,
        programs={"cone": _whole(linear, [row, cone, _between(2, low, high, 5)], [0])},
    )


def _plane() -> KnownProblem:
    """‖x‖² with Σ x = 1 and x_0 <= 0.1: the others share 0.9, and the value is 0.01 + 0.81/3."""
    ones, unit = np.ones(4), np.eye(4)[0]

    def functions(x: FloatArray) -> list[tuple[float, FloatArray, FloatArray]]:
        flat = np.zeros((4, 4))
        objective = (float(x @ x), 2 * x, 2 * np.eye(4))
        return [objective, (float(x[0] - 0.1), unit, flat), (float(x.sum() - 1), ones, flat)]

    row = (ConeBlock(ConeKind.NONNEGATIVE, 1), unit[None, :], np.array([0.1]))
    sums = (ConeBlock(ConeKind.ZERO, 1), ones[None, :], np.ones(1))
    blocks = [row, sums, _between(4, -2.0, 2.0)]
    return KnownProblem(
        "plane",
        functions,
        Box.of(4, -2.0, 2.0),
        np.array([1.0, -1.0, 2.0, 0.0]),
        0.28,
        1,
        1,
        programs={"cone": _whole(np.zeros(4), blocks, [0, 1], 2 * np.eye(4))},
    )


def _kinked() -> KnownProblem:
    """|x_0 − 0.5| + 2 |x_1| over a box: 0 at (0.5, 0), where no gradient exists."""
    c, w = np.array([0.5, 0.0]), np.array([1.0, 2.0])

    def functions(x: FloatArray) -> list[tuple[float, FloatArray, FloatArray]]:
        return [(float(w @ np.abs(x - c)), w * np.sign(x - c), np.zeros((2, 2)))]

    start = np.array([-0.7, 0.9])
    return KnownProblem("kinks", functions, Box.of(2, -1.0, 1.0), start, 0.0, kinked=True)


@dataclass(frozen=True)
class _SmoothRows:
    """The objective and the inequalities of a problem, as the interior-point method asks for them."""

    functions: Functions
    rows: NDArray[np.intp]

    def values(self, u: FloatArray) -> FloatArray:
        return np.array([value for value, _, _ in self.functions(u)[: self.rows.size]])

    def jacobian(self, u: FloatArray) -> FloatArray:
        return np.array([slope for _, slope, _ in self.functions(u)[: self.rows.size]])

    def hessian(self, u: FloatArray, weights: FloatArray) -> FloatArray:
        parts = zip(weights, self.functions(u), strict=False)
        return np.asarray(sum(weight * hessian for weight, (_, _, hessian) in parts))


def _with_smooth_program(problem: KnownProblem) -> KnownProblem:
    """The problem with itself as a smooth convex program; its equalities are affine."""
    domain, head = problem.domain.cone_rows(), 1 + problem.inequalities
    size = problem.domain.dimension
    at_zero = problem.functions(np.zeros(size))[head:]
    left = [slope[None, :] for _, slope, _ in at_zero]
    right = [np.array([-value]) for value, _, _ in at_zero]
    left += [cone.matrix.toarray() for cone in domain.cones]
    right += [-cone.offset for cone in domain.cones]
    program = SmoothConvexProgram(
        np.zeros((head, size)),
        np.zeros(head),
        domain.lower,
        domain.upper,
        smooth=(_SmoothRows(problem.functions, np.arange(head)),),
        equality=np.vstack(left) if left else None,
        equality_bound=np.concatenate(right) if left else None,
        logarithms=np.zeros(size, dtype=bool),
    )
    none = np.zeros(0, dtype=np.intp)
    whole = WholeProgram(
        program, np.arange(problem.rows), np.ones(problem.rows), (none, none, np.zeros(0))
    )
    return replace(problem, programs={**problem.programs, "smooth convex": whole})


def _whole(
    linear: FloatArray,
    blocks: Sequence[Rows],
    rows: Sequence[int] = (),
    quadratic: FloatArray | None = None,
) -> WholeProgram:
    """½ xᵀP x + qᵀx over rows in cones; `rows` are those of the task's rows."""
    program = cone_program(
        linear,
        np.vstack([matrix for _, matrix, _ in blocks]),
        np.concatenate([offset for _, _, offset in blocks]),
        [block for block, _, _ in blocks],
        quadratic,
    )
    none = np.zeros(0, dtype=np.intp)
    bounds = (none, none, np.zeros(0))
    return WholeProgram(program, np.array(rows, dtype=np.intp), np.ones(len(rows)), bounds)


def _between(count: int, low: float, high: float, width: int | None = None) -> Rows:
    """low <= x_i <= high for the first `count` of `width` unknowns."""
    unit = np.eye(count, width)
    offset = np.concatenate([np.full(count, high), np.full(count, -low)])
    return ConeBlock(ConeKind.NONNEGATIVE, 2 * count), np.vstack([unit, -unit]), offset
