"""The search for a feasible point as a program of its own, where a run ends without an answer.

    minimise t   s.t.   f_i(u) <= σ_i t,   −t <= (A u − b)_j / σ_j <= t,   lower <= u <= upper,   t >= −1

with σ the size of a row's affine part. It has strictly feasible points and its minimum is bounded below,
so it has multipliers as well. If t is positive at the minimum, they are a certificate of infeasibility;
if it is not, u is a feasible point to begin at.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sparse

from hcmodel.records import replace
from hcmodel.solvers.second_order.interior_point.certificates import FarkasCertificate
from hcmodel.solvers.second_order.interior_point.convex_program import (
    FloatArray,
    IndexArray,
    LogSums,
    Matrix,
    SmoothConvexProgram,
    SmoothFunctions,
    Sums,
    log_sums,
)

# t does not have to fall below this: such a point is well inside the rows.
LOWEST = -1.0


def feasibility_program(program: SmoothConvexProgram) -> SmoothConvexProgram:
    """The program in (u, t); its rows are those of the program, then two for each equality."""
    size, rows = program.dimension, program.row_count
    affine = sparse.csr_array(program.affine, dtype=float)[1:]
    blocks = [affine]
    constants = [np.asarray(program.constants, dtype=float)[1:]]
    if program.equality is not None and program.equality_bound is not None:
        equality = sparse.csr_array(program.equality, dtype=float)
        blocks += [equality, -equality]
        constants += [-program.equality_bound, np.asarray(program.equality_bound)]
    matrix = sparse.csr_array(sparse.vstack(blocks))
    constant = np.concatenate(constants)
    column = sparse.csr_array(-_sizes(matrix, constant)[:, None])
    objective = sparse.csr_array(([1.0], ([0], [size])), shape=(1, size + 1))
    whole = sparse.vstack([objective, sparse.hstack([matrix, column])], format="csr")
    more = constant.size - rows
    return SmoothConvexProgram(
        whole,
        np.concatenate([[0.0], constant]),
        np.append(program.lower, LOWEST),
        np.append(program.upper, np.inf),
        None if program.log_sums is None else _rows_only(program.log_sums),
        None if program.sums is None else _constraints_only(program.sums, more),
        tuple(_Widened(part) for part in program.smooth),
        logarithms=None if program.logarithms is None else np.append(program.logarithms, False),
    )


def certificate_of(
    program: SmoothConvexProgram, multipliers: FloatArray, point: FloatArray, reach: float
) -> FarkasCertificate:
    """Weights for the program from the minimum of its feasibility program, tangents at its point."""
    rows, u = program.row_count, point[:-1]
    equalities = (multipliers.size - rows) // 2
    plus, minus = multipliers[rows : rows + equalities], multipliers[rows + equalities :]
    shares, values = np.zeros(0), np.zeros(0)
    if program.log_sums is not None:
        _, shares = log_sums(program.log_sums, u)
    if program.sums is not None:
        values = np.exp(program.sums.exponents @ u + program.sums.offsets)
    return FarkasCertificate(multipliers[:rows], plus - minus, shares, values, u, reach)


def _sizes(matrix: Any, constants: FloatArray) -> FloatArray:
    largest = np.zeros(constants.size)
    if matrix.nnz:
        largest = np.asarray(abs(matrix).max(axis=1).toarray()).ravel()
    size = np.maximum(largest, np.abs(constants))
    return np.where(size > 0, size, 1.0)


def _rows_only(logs: LogSums) -> LogSums | None:
    """Without the terms of the objective."""
    groups = np.asarray(logs.rows) > 0
    kept = groups[logs.groups]
    if not kept.any():
        return None
    exponents = sparse.csr_array(logs.exponents)[kept]
    return LogSums(
        _widened(exponents),
        np.asarray(logs.offsets)[kept],
        (np.cumsum(groups) - 1)[np.asarray(logs.groups)[kept]],
        np.asarray(logs.rows)[groups],
    )


def _constraints_only(sums: Sums, more: int) -> Sums:
    """The weights without the objective's, and `more` rows of zeros at the end."""
    weights = sparse.csr_array(sums.weights)
    empty = sparse.csr_array((1, weights.shape[1]))
    rest = sparse.csr_array((more, weights.shape[1]))
    stacked = sparse.csr_array(sparse.vstack([empty, weights[1:], rest]))
    return replace(sums, exponents=_widened(sparse.csr_array(sums.exponents)), weights=stacked)


def _widened(matrix: sparse.csr_array) -> sparse.csr_array:
    """With a column of zeros for t."""
    parts = (matrix.data, matrix.indices, matrix.indptr)
    return sparse.csr_array(parts, shape=(matrix.shape[0], matrix.shape[1] + 1))


class _Widened:
    """Smooth functions of u as functions of (u, t); those of the objective are left out."""

    def __init__(self, part: SmoothFunctions) -> None:
        self._part = part
        self._kept = np.flatnonzero(np.asarray(part.rows) > 0)
        self.rows: IndexArray = np.asarray(part.rows)[self._kept]

    def values(self, u: FloatArray) -> FloatArray:
        return np.asarray(self._part.values(u[:-1]))[self._kept]

    def jacobian(self, u: FloatArray) -> Matrix:
        return _widened(sparse.csr_array(self._part.jacobian(u[:-1]))[self._kept])

    def hessian(self, u: FloatArray, weights: FloatArray) -> Matrix:
        every = np.zeros(len(self._part.rows))
        every[self._kept] = weights
        inner = sparse.coo_array(self._part.hessian(u[:-1], every))
        return sparse.csr_array((inner.data, (inner.row, inner.col)), shape=(u.size, u.size))
