"""Quadratic programs with dense matrices and bounds, such as least squares in a box, by active sets.

    minimise ½ rᵀD r + ½ xᵀQ x + …   s.t.   E x + c r = e,   rows of x,   l <= x <= u

Residuals r that stand in one equality each are replaced by (e − E x)/c, which leaves a program in x with
the matrix Q + Eᵀ(D/c²)E. Its active sets settle in a few dense factorisations. An interior-point method
for sparse matrices takes as many as it has iterations, each with the residuals among its unknowns.
The square of E loses digits where its columns nearly depend on each other; so the answer is returned only
if it satisfies the optimality conditions of the program as it was.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers.memory import TooLarge, check_dense
from hcmodel.solvers.qp.active_set import ActiveSetBackend
from hcmodel.solvers.qp.cone_program import (
    ConeKind,
    ConeProgram,
    ConeSolution,
    ConeStatus,
    is_accurate,
)
from hcmodel.solvers.qp.program import QPSolution, QPStatus, QuadraticProgram, StepRows

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]
Marks = NDArray[np.bool_]


@dataclass(frozen=True)
class DenseRules:
    """Which programs are solved this way (least squares with 100 to 1,600 unknowns in a box)."""

    # Unknowns but residuals, at least: Clarabel takes milliseconds for fewer.
    fewest: int = 100
    # The same, at most: a factorisation takes seconds for more.
    most: int = 2000
    # Rows that are neither residuals nor bounds, as active sets take them.
    rows: int = 50
    # The share of entries of E that are not 0 above which it counts as dense (not tuned).
    density: float = 0.3
    # The share of the largest curvature below which a direction counts as flat: rounding of the square.
    flat: float = 1e-13
    # Steps to the shortest minimum; the second takes out what the rounding of the first has left.
    refinements: int = 2


RULES = DenseRules()


@dataclass(frozen=True)
class _Reduced:
    """The program in x, and where its parts stand in the cone program."""

    program: QuadraticProgram
    kept: IndexArray
    residuals: IndexArray  # the columns of r
    defining: IndexArray  # the rows of the cone program that define them
    coefficients: FloatArray  # c
    equalities: IndexArray
    inequalities: IndexArray
    upper: IndexArray  # for each unknown the row that bounds it, −1 where none does
    lower: IndexArray


def solve_dense(program: ConeProgram, tolerance: float) -> ConeSolution | None:
    """The solution; None where the program is of another kind or this way is not accurate."""
    reduced = _reduced(program)
    if reduced is None:
        return None
    backend = ActiveSetBackend()
    found = backend.settled(reduced.program)
    if found is None or not found.usable:
        found = _shortest(reduced.program)
    if found is None:
        return None
    solution = _whole(program, reduced, found, backend.trials)
    return solution if is_accurate(program, solution, tolerance) else None


def _reduced(program: ConeProgram) -> _Reduced | None:
    kinds, quadratic = {cone.kind for cone in program.cones}, program.quadratic
    if not quadratic.nnz or not kinds or not kinds <= {ConeKind.ZERO, ConeKind.NONNEGATIVE}:
        return None
    matrix = program.sparse
    columns = matrix.shape[1]
    zero = np.concatenate(
        [
            np.zeros(0, dtype=bool),  # a program without rows
            *(np.full(each.size, each.kind is ConeKind.ZERO) for each in program.cones),
        ]
    )
    residuals, defining, coefficients = _residuals(program, zero)
    kept = np.setdiff1d(np.arange(columns), residuals)
    if not RULES.fewest <= kept.size <= RULES.most:
        return None
    rows = scipy.sparse.csr_array(matrix[:, kept])
    counts = np.diff(rows.indptr)
    left = np.ones(rows.shape[0], dtype=bool)
    left[defining] = False
    equalities = np.flatnonzero(left & zero)
    inequalities = np.flatnonzero(left & ~zero & (counts != 1))
    if equalities.size + inequalities.size > RULES.rows:
        return None
    own = rows[defining]
    entries = own.nnz + quadratic.nnz
    if entries < RULES.density * kept.size * max(kept.size, defining.size):
        return None
    try:
        check_dense("a quadratic program", kept.size + defining.size, kept.size)
    except TooLarge:
        return None
    lower, upper, at_lower, at_upper = _bounds(rows, program.offset, left & ~zero & (counts == 1))
    if (lower > upper).any():
        return None
    diagonal = quadratic.diagonal()
    E, e = own.toarray(), program.offset[defining]
    slopes = diagonal[residuals] / coefficients**2
    square = quadratic[:, kept][kept].toarray() + E.T @ (slopes[:, None] * E)
    shift = slopes * e + program.linear[residuals] / coefficients
    return _Reduced(
        QuadraticProgram(
            square,
            program.linear[kept] - E.T @ shift,
            rows[inequalities].toarray(),
            program.offset[inequalities],
            rows[equalities].toarray(),
            program.offset[equalities],
            StepRows(lower, upper),
        ),
        kept,
        residuals,
        defining,
        coefficients,
        equalities,
        inequalities,
        at_upper,
        at_lower,
    )


def _shortest(program: QuadraticProgram) -> QPSolution | None:
    """The shortest of many minima of a program without rows and bounds, whose matrix is singular."""
    domain, rows = program.domain, program.inequality_bound.size + program.equality_bound.size
    if rows or np.isfinite(domain.lower).any() or np.isfinite(domain.upper).any():
        return None
    curvatures, directions = np.linalg.eigh(program.quadratic)
    kept = curvatures > RULES.flat * np.abs(curvatures).max(initial=0.0)
    directions = directions[:, kept] / np.sqrt(curvatures[kept])
    step = np.zeros(program.linear.size)
    for _ in range(RULES.refinements):
        step -= directions @ (directions.T @ (program.quadratic @ step + program.linear))
    none = np.zeros(0)
    return QPSolution(QPStatus.SOLVED, step, none, none, np.zeros(step.size))


def _residuals(program: ConeProgram, zero: Marks) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Columns with one entry, in an equality of their own, whose P is diagonal; rows; coefficients."""
    matrix, quadratic = program.sparse, program.quadratic
    single = np.flatnonzero(np.diff(matrix.indptr) == 1)
    places = matrix.indptr[single]
    rows, values = matrix.indices[places], matrix.data[places]
    alone = np.diff(quadratic.indptr)[single] <= 1
    diagonal = quadratic.diagonal()[single] > 0
    good = zero[rows] & (values != 0) & alone & diagonal
    single, rows, values = single[good], rows[good], values[good]
    _, first = np.unique(rows, return_index=True)
    return single[first], rows[first].astype(np.intp), values[first]


def _bounds(
    rows: scipy.sparse.csr_array, offset: FloatArray, single: Marks
) -> tuple[FloatArray, FloatArray, IndexArray, IndexArray]:
    """Lower and upper bounds from rows with one entry, and the row behind each of them."""
    size = rows.shape[1]
    ends = np.full(size, -np.inf), np.full(size, np.inf)
    behind = np.full(size, -1, dtype=np.intp), np.full(size, -1, dtype=np.intp)
    numbers = np.flatnonzero(single)
    entries = rows.indptr[numbers]
    for row, entry in zip(numbers.tolist(), entries.tolist(), strict=True):
        column, value = int(rows.indices[entry]), float(rows.data[entry])
        side = int(value > 0)
        bound = float(offset[row]) / value
        if (bound < ends[1][column]) if side else (bound > ends[0][column]):
            ends[side][column], behind[side][column] = bound, row
    return ends[0], ends[1], behind[0], behind[1]


def _whole(program: ConeProgram, reduced: _Reduced, found: QPSolution, trials: int) -> ConeSolution:
    """The solution of the cone program: residuals, slacks and multipliers of all rows."""
    primal = np.zeros(program.linear.size)
    primal[reduced.kept] = found.step
    rest = program.offset - program.sparse @ primal
    primal[reduced.residuals] = rest[reduced.defining] / reduced.coefficients
    dual = np.zeros(program.offset.size)
    slopes = program.quadratic @ primal + program.linear
    dual[reduced.defining] = -slopes[reduced.residuals] / reduced.coefficients
    dual[reduced.equalities] = found.equality_multipliers
    dual[reduced.inequalities] = found.inequality_multipliers
    pushes = found.bound_multipliers
    matrix = scipy.sparse.csr_array(program.sparse)
    for behind, own in ((reduced.upper, pushes > 0), (reduced.lower, pushes < 0)):
        held = np.flatnonzero(own & (behind >= 0))
        rows = behind[held]
        dual[rows] = pushes[held] / matrix.data[matrix.indptr[rows]]
    slack = program.offset - program.sparse @ primal
    first = 0
    for cone in program.cones:
        part = slack[first : first + cone.size]
        part[:] = 0.0 if cone.kind is ConeKind.ZERO else np.maximum(part, 0.0)
        first += cone.size
    return ConeSolution(ConeStatus.SOLVED, primal, slack, dual, trials)
