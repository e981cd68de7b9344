"""Quadratic programs whose matrix is S + V Vᵀ − R Rᵀ, without forming it.

    ½ sᵀ(S + V Vᵀ − R Rᵀ)s = min over r of ½ sᵀS s + ½ tᵀt − rᵀRᵀs + ½ rᵀr,   t = Vᵀs

The program has variables (s, t, r) then, and rows t = Vᵀs. Its matrix is positive semidefinite where
S − R Rᵀ is, as the Schur complement of the identity shows; r needs no rows, since the minimum sets it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from hcmodel.records import replace
from hcmodel.solvers.algebra.hessians import SparseHessian
from hcmodel.solvers.qp.program import QPSolution, QuadraticProgram, StepRows
from hcmodel.solvers.qp.table import QPBackend


def solve_program(backend: QPBackend, program: QuadraticProgram) -> QPSolution:
    """Solve a program of any structure; backends see plain matrices only."""
    return restricted(program, backend.solve(expanded(program)))


def expanded(program: QuadraticProgram) -> QuadraticProgram:
    """The program over (s, t, r); the same program where its matrix has no columns V and R."""
    hessian = program.quadratic
    if not isinstance(hessian, SparseHessian):
        return program
    taken, freed = hessian.plus.shape[1], hessian.minus.shape[1]
    more = taken + freed
    if not more:
        return replace(program, quadratic=hessian.sparse)
    blocks = [
        [hessian.sparse, None, -hessian.minus if freed else None],
        [None, scipy.sparse.eye_array(taken) if taken else None, None],
        [
            -hessian.minus.T if freed else None,
            None,
            scipy.sparse.eye_array(freed) if freed else None,
        ],
    ]
    used = [0, *([1] if taken else []), *([2] if freed else [])]
    quadratic = scipy.sparse.block_array([[blocks[i][j] for j in used] for i in used], format="csr")
    sums = scipy.sparse.hstack(
        [
            scipy.sparse.csr_array(hessian.plus.T),
            -scipy.sparse.eye_array(taken),
            scipy.sparse.csr_array((taken, freed)),
        ]
    )
    equality = scipy.sparse.vstack([_widened(program.equality, more), sums]) if taken else None
    free = np.full(more, np.inf)
    domain = program.domain
    return QuadraticProgram(
        quadratic=quadratic,
        linear=np.concatenate([program.linear, np.zeros(more)]),
        inequality=_widened(program.inequality, more),
        inequality_bound=program.inequality_bound,
        equality=_widened(program.equality, more) if equality is None else _csr(equality),
        equality_bound=np.concatenate([program.equality_bound, np.zeros(taken)]),
        domain=StepRows(
            np.concatenate([domain.lower, -free]),
            np.concatenate([domain.upper, free]),
            tuple(replace(cone, matrix=_widened(cone.matrix, more)) for cone in domain.cones),
        ),
    )


def restricted(program: QuadraticProgram, solution: QPSolution) -> QPSolution:
    """The solution of the program as it was, from that of the expanded one."""
    return QPSolution(
        solution.status,
        solution.step[: program.dimension],
        solution.inequality_multipliers,
        solution.equality_multipliers[: program.equality_bound.size],
        solution.bound_multipliers[: program.dimension],
    )


def _widened(matrix: Any, more: int) -> scipy.sparse.csr_array:
    """With columns of zeros on the right."""
    narrow = scipy.sparse.csr_array(matrix)
    parts = (narrow.data, narrow.indices, narrow.indptr)
    return scipy.sparse.csr_array(parts, shape=(narrow.shape[0], narrow.shape[1] + more))


def _csr(matrix: Any) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array(matrix)
