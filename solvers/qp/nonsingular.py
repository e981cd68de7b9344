"""Among the solutions of a cone program within a tolerance, one whose divisors are far from 0.

A gain K = Y P⁻¹ that comes closer and closer to an infimum which no gain attains, as in H∞ control, grows
without bound, since P becomes singular. The solution of a backend is such a point, to the last digit that
it knows: K is 10⁸ and more, and the rounding of K P alone violates rows. So the objective may be worse by
a part of the tolerance, and the least eigenvalue of P is made as large as that allows:

    maximise t   s.t.   the rows of the program,   objective <= its minimum + allowed,   P ⪰ t I.

Numbers that are divided by, as in x = y/s where ratios are approached far out, are matrices with one
entry; their size is measured by that of all unknowns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace
from hcmodel.solvers.algebra.symmetric import to_matrix, to_vector
from hcmodel.solvers.numerics import BACKEND_ROUNDING
from hcmodel.solvers.qp.cone_program import ConeBlock, ConeKind, ConeProgram, ConeSolution
from hcmodel.solvers.qp.equations import on_equations

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class NonsingularRules:
    """When a matrix counts as singular, and when another solution is better (test_nonsingular.py)."""

    # Least over largest eigenvalue: some times the accuracy of a backend, which knows no more of it.
    singular: float = 1e-9
    # How many times the least eigenvalue has to grow: at a minimum that is attained it hardly does.
    better: float = 10.0
    # How far inside of inequalities a number is looked for: some times the accuracy of a backend.
    margin: float = 10 * BACKEND_ROUNDING


RULES = NonsingularRules()


def nonsingular(
    program: ConeProgram,
    solution: ConeSolution,
    matrices: tuple[slice, ...],
    allowed: float,
    solved: Callable[[ConeProgram], ConeSolution],
) -> ConeSolution | None:
    """The solution with another point; None where all matrices are regular, or some stay singular.

    `matrices` are their rows, and `allowed` is how much worse the objective may be. The multipliers stay
    those of the minimum.
    """
    if program.quadratic.nnz or not matrices or not allowed > 0:
        return None
    ends = [_eigenvalues(solution, rows) for rows in matrices]
    if all(low > RULES.singular * high for low, high in ends):
        return None
    largest, least = max(high for _, high in ends), min(low for low, _ in ends)
    moved = solved(_apart(program, solution, matrices, allowed, largest))
    if not moved.usable or moved.primal[-1] <= RULES.better * max(least, 0.0):
        return None
    point = on_equations(program, moved.primal[:-1])
    return replace(
        solution,
        primal=point,
        slack=program.offset - program.sparse @ point,
        iterations=solution.iterations + moved.iterations,
        beside=True,
    )


def _eigenvalues(solution: ConeSolution, rows: slice) -> tuple[float, float]:
    """The least eigenvalue of a matrix and the largest; of a number, it and what it is measured by."""
    if rows.stop - rows.start == 1:
        return float(solution.slack[rows.start]), float(np.max(np.abs(solution.primal)))
    found = np.linalg.eigvalsh(to_matrix(solution.slack[rows]))
    return float(found[0]), float(found[-1])


def _apart(
    program: ConeProgram,
    solution: ConeSolution,
    matrices: tuple[slice, ...],
    allowed: float,
    largest: float,
) -> ConeProgram:
    """The program whose last unknown, at most `largest`, is the least eigenvalue of the matrices."""
    size = program.linear.size
    eigenvalue = np.zeros(program.offset.size)
    for rows in matrices:
        order = to_matrix(solution.slack[rows]).shape[0]
        eigenvalue[rows] = to_vector(np.eye(order))
    minimum = float(program.linear @ solution.primal)
    last = np.append(np.zeros(size), 1.0)
    matrix = scipy.sparse.vstack(
        [
            scipy.sparse.hstack([program.sparse, scipy.sparse.csc_matrix(eigenvalue[:, None])]),
            scipy.sparse.csc_matrix(np.vstack([np.append(program.linear, 0.0), last])),
        ]
    )
    return ConeProgram(
        scipy.sparse.csc_matrix((size + 1, size + 1)),
        -last,
        scipy.sparse.csc_matrix(matrix),
        np.append(program.offset - _margins(program, matrices), [minimum + allowed, largest]),
        (*program.cones, ConeBlock(ConeKind.NONNEGATIVE, 2)),
    )


def _margins(program: ConeProgram, divisors: tuple[slice, ...]) -> FloatArray:
    """By how much inequalities are tightened: errors of a backend grow by the division by a number."""
    found, start = np.zeros(program.offset.size), 0
    if all(rows.stop - rows.start > 1 for rows in divisors):
        return found
    single = np.bincount(program.matrix.indices, minlength=found.size) <= 1
    for cone in program.cones:
        if cone.kind is ConeKind.NONNEGATIVE:
            found[start : start + cone.size] = RULES.margin
        elif cone.kind is ConeKind.SECOND_ORDER:
            found[start] = RULES.margin
        start += cone.size
    return np.where(single, 0.0, found)  # signs of entries survive a division
