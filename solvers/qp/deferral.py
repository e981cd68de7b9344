"""Semidefinite bounds that a cone program is first solved without.

A block δI <= P or P <= MI of a matrix P that is a part of a larger semidefinite block, as in
[P, Y'; Y, X] >= 0, is seldom active: the larger block keeps P semidefinite, and the bounds are
there for the sake of a bounded set. Each of them costs a solver about as much as the block that matters.
Where the solution without them satisfies them, it is the solution.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.solvers.qp.cone_program import (
    ConeKind,
    ConeProgram,
    ConeSolution,
    cone_violation,
)


def deferred_rows(program: ConeProgram) -> NDArray[np.bool_] | None:
    """The rows of such bounds; None where there are none."""
    if sum(cone.kind is ConeKind.PSD_TRIANGLE for cone in program.cones) <= 1:
        return None
    sizes = [cone.size for cone in program.cones]
    firsts = np.concatenate([[0], np.cumsum(sizes)])[:-1].astype(int)
    blocks = [
        (int(first), cone.size)
        for first, cone in zip(firsts, program.cones, strict=True)
        if cone.kind is ConeKind.PSD_TRIANGLE
    ]
    matrix = program.matrix
    alone = np.bincount(matrix.indices, minlength=program.offset.size) == 1
    column = np.zeros(program.offset.size, dtype=np.intp)
    column[matrix.indices] = np.repeat(np.arange(matrix.shape[1]), np.diff(matrix.indptr))
    # the unknowns that are, but for a factor and a constant, entries of a block
    columns = [column[first : first + size][alone[first : first + size]] for first, size in blocks]
    found = np.zeros(program.offset.size, dtype=bool)
    for (first, size), own in zip(blocks, columns, strict=True):
        whole = np.unique(own).size == size
        larger = [each for (_, other), each in zip(blocks, columns, strict=True) if other > size]
        if whole and any(np.isin(own, each).all() for each in larger):
            found[first : first + size] = True
    return found if found.any() else None


def completed(
    program: ConeProgram, deferred: NDArray[np.bool_], solution: ConeSolution
) -> ConeSolution | None:
    """The solution of the whole program from one without some rows; None where it violates them."""
    slack = program.offset - program.sparse @ solution.primal
    first = 0
    for cone in program.cones:
        own = slice(first, first + cone.size)
        first += cone.size
        if deferred[own].any() and cone_violation([cone], slack[own]) > 0:
            return None
    dual = np.zeros(program.offset.size)
    dual[~deferred], slack[~deferred] = solution.dual, solution.slack
    return ConeSolution(solution.status, solution.primal, slack, dual, solution.iterations)
