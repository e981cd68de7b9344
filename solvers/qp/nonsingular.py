"""Among the solutions of a cone program within a tolerance, one whose matrices are far from singular.

A gain K = Y P⁻¹ that comes closer and closer to an infimum which no gain attains, as in H∞ control, grows
without bound, since P becomes singular. The solution of a backend is such a point, to the last digit that
it knows: K is 10⁸ and more, and the rounding of K P alone violates rows. So the objective may be worse by
a part of the tolerance, and the least eigenvalue of P is made as large as that allows:

    maximise t   s.t.   the rows of the program,   objective <= its minimum + allowed,   P ⪰ t I.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace
from hcmodel.solvers.algebra.symmetric import to_matrix, to_vector
from hcmodel.solvers.qp.cone_program import ConeBlock, ConeKind, ConeProgram, ConeSolution

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class NonsingularRules:
    """When a matrix counts as singular, and when another solution is better (test_nonsingular.py)."""

    # Least over largest eigenvalue: some times the accuracy of a backend, which knows no more of it.
    singular: float = 1e-9
    # How many times the least eigenvalue has to grow: at a minimum that is attained it hardly does.
    better: float = 10.0


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
    eigenvalues = [np.linalg.eigvalsh(to_matrix(solution.slack[rows])) for rows in matrices]
    if all(each[0] > RULES.singular * each[-1] for each in eigenvalues):
        return None
    largest = max(float(each[-1]) for each in eigenvalues)
    least = min(float(each[0]) for each in eigenvalues)
    moved = solved(_apart(program, solution, matrices, allowed, largest))
    if not moved.usable or moved.primal[-1] <= RULES.better * max(least, 0.0):
        return None
    point = moved.primal[:-1]
    return replace(
        solution,
        primal=point,
        slack=program.offset - program.matrix @ point,
        iterations=solution.iterations + moved.iterations,
        beside=True,
    )


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
            scipy.sparse.hstack([program.matrix, scipy.sparse.csc_matrix(eigenvalue[:, None])]),
            scipy.sparse.csc_matrix(np.vstack([np.append(program.linear, 0.0), last])),
        ]
    )
    return ConeProgram(
        scipy.sparse.csc_matrix((size + 1, size + 1)),
        -last,
        scipy.sparse.csc_matrix(matrix),
        np.append(program.offset, [minimum + allowed, largest]),
        (*program.cones, ConeBlock(ConeKind.NONNEGATIVE, 2)),
    )
