"""Exponential cones whose logarithm stands nowhere else.

Where a row has the logarithm of one entry of a vector, the cone program has those of all entries,
exp(t) <= x. Of a t that is in no other row this says x >= 0, and nothing keeps t from −∞: a backend
follows it there and loses digits on its way. Here

    (t, y, x) in K_exp for some t     is     y >= 0, x >= 0,

its closure. What the smaller program has for a solution, a certificate or a direction is one of the other
with t = y log(x / y) and the multiplier 0 of t, since (0, v, w) is in the dual cone for v, w >= 0.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace
from hcmodel.solvers.algebra.marks import some
from hcmodel.solvers.numerics import TINY
from hcmodel.solvers.qp.cone_program import (
    ConeBlock,
    ConeKind,
    ConeProgram,
    ConeSolution,
    cones_left,
    no_quadratic,
)

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class WithoutLogarithms:
    """The smaller program, and the way from its solutions to those of the other."""

    program: ConeProgram
    before: ConeProgram
    rows: IndexArray
    """The row before of each row of the smaller program."""
    logarithms: IndexArray
    """The first rows of the cones that are left out, …"""
    unknowns: IndexArray
    """… and their unknowns t."""

    def solution(self, found: ConeSolution) -> ConeSolution:
        """The solution of the program before."""
        count, width = self.before.offset.size, self.before.linear.size
        slack, dual, primal = np.zeros(count), np.zeros(count), np.zeros(width)
        slack[self.rows], dual[self.rows] = found.slack, found.dual
        kept = np.ones(width, dtype=bool)
        kept[self.unknowns] = False
        primal[kept] = found.primal
        y, x = (np.maximum(slack[self.logarithms + place], 0.0) for place in (1, 2))
        with np.errstate(all="ignore"):
            logs = np.where(y > 0, y * np.log(np.maximum(x, TINY) / y), 0.0)
        slack[self.logarithms] = np.where(np.isfinite(logs), logs, 0.0)
        right = 0.0 if found.is_direction else self.before.offset[self.logarithms]
        matrix = self.before.matrix
        entries = matrix.data[matrix.indptr[self.unknowns]]
        primal[self.unknowns] = (right - slack[self.logarithms]) / entries
        return replace(found, primal=primal, slack=slack, dual=dual)


def without_idle_logarithms(program: ConeProgram, own: int) -> WithoutLogarithms | None:
    """The program without such cones, the first `own` unknowns being needed; None where it has none."""
    first = _first_rows(program)
    if not some(first):
        return None
    matrix, width = program.matrix, program.linear.size
    lone = matrix.indptr[1:] - matrix.indptr[:-1] == 1
    lone &= (program.linear == 0) & (np.arange(width) >= own)
    lone[program.quadratic.indices] = False
    unknowns = lone.nonzero()[0]
    rows = matrix.indices[matrix.indptr[unknowns]]
    idle = first[rows] & (matrix.data[matrix.indptr[unknowns]] != 0)
    if not some(idle):
        return None
    unknowns, rows = unknowns[idle], np.asarray(rows[idle], dtype=np.intp)
    alone = np.bincount(matrix.indices, minlength=program.offset.size)[rows] == 1
    unknowns, rows = unknowns[alone], rows[alone]
    if not rows.size:
        return None
    dropped = np.zeros(program.offset.size, dtype=bool)
    for place in range(3):
        dropped[rows + place] = True
    numbers = np.concatenate([rows + 1, rows + 2])
    order = np.concatenate([(~dropped).nonzero()[0], numbers])
    kept = np.ones(width, dtype=bool)
    kept[unknowns] = False
    quadratic = program.quadratic
    smaller = ConeProgram(
        quadratic[kept][:, kept] if quadratic.nnz else no_quadratic(int(kept.sum())),
        program.linear[kept],
        scipy.sparse.csc_matrix(program.sparse.tocsr()[order][:, kept]),
        program.offset[order],
        (*cones_left(program.cones, dropped), ConeBlock(ConeKind.NONNEGATIVE, numbers.size)),
        program.constant,
    )
    return WithoutLogarithms(smaller, program, order, rows, unknowns)


def _first_rows(program: ConeProgram) -> NDArray[np.bool_]:
    """Which rows are those of t in exp(t/y) y <= x."""
    found, first = np.zeros(program.offset.size, dtype=bool), 0
    for cone in program.cones:
        if cone.kind is ConeKind.EXPONENTIAL:
            found[first : first + cone.size : 3] = True
        first += cone.size
    return found
