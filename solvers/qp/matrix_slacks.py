"""Matrices that stand for the difference of the two sides of a matrix inequality.

The rows  S = F(x),  S in the semidefinite cone  are those of  F(x) in the cone, if S stands nowhere else.
Models have S as a variable, for methods that project onto sets. Without it a backend takes half of the
time and solves more programs, and fewer unknowns without bounds are in the way of a bound from its dual.
With it the rows of the model hold more exactly.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace
from hcmodel.solvers.qp.cone_program import (
    ConeKind,
    ConeProgram,
    ConeSolution,
    cones_left,
    no_quadratic,
)

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]
Marks = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class WithoutSlacks:
    """The smaller program, and the way from its solutions to those of the other and back.

    `factors` times an equation is the row of a cone: s_inside = factor · (b − A x)_equation + offset.
    """

    program: ConeProgram
    before: ConeProgram
    unknowns: IndexArray
    """The slacks, for each …"""
    equations: IndexArray
    """… the equation that defines it, …"""
    inside: IndexArray
    """… the row of a cone that it fills, …"""
    factors: FloatArray
    """… and the weight of the one in the other."""
    rows: Marks
    """The rows that are left, …"""
    columns: Marks
    """… and the unknowns."""

    def solution(self, found: ConeSolution) -> ConeSolution:
        """The solution of the program before."""
        count, width = self.before.offset.size, self.before.linear.size
        slack, dual, primal = np.zeros(count), np.zeros(count), np.zeros(width)
        slack[self.rows], dual[self.rows] = found.slack, found.dual
        dual[self.equations] = self.factors * dual[self.inside]
        primal[self.columns] = found.primal
        rest = self.before.sparse @ primal
        right = 0.0 if found.is_direction else self.before.offset
        own = self.before.sparse[self.equations, self.unknowns]
        primal[self.unknowns] = (right - rest)[self.equations] / np.asarray(own).reshape(-1)
        return replace(found, primal=primal, slack=slack, dual=dual)

    def taken(self, solution: ConeSolution) -> ConeSolution:
        """A solution of the program before as one of the smaller program."""
        return replace(
            solution,
            primal=solution.primal[self.columns],
            slack=solution.slack[self.rows],
            dual=solution.dual[self.rows],
        )


def without_slacks(program: ConeProgram) -> WithoutSlacks | None:
    """The program without unknowns that only name what has to be semidefinite; None where it has none."""
    if not any(cone.kind is ConeKind.PSD_TRIANGLE for cone in program.cones):
        return None
    if not program.matrix.data.all():  # entries that are 0 for now
        matrix = program.sparse.copy()
        matrix.eliminate_zeros()
        program = replace(program, matrix=matrix)
    matrix, width = program.sparse, program.linear.size
    rows, columns, data = matrix.indices, program.columns, matrix.data
    kinds = [cone.kind for cone in program.cones]
    sizes = [cone.size for cone in program.cones]
    equation, matrices = (
        np.array([each is kind for each in kinds]).repeat(sizes)
        for kind in (ConeKind.ZERO, ConeKind.PSD_TRIANGLE)
    )
    alone = np.bincount(rows, minlength=program.offset.size) == 1
    defines, fills = equation[rows], (matrices & alone)[rows]
    slack = (np.diff(matrix.indptr) == 2) & (program.linear == 0)
    for marks in (defines, fills):
        slack &= np.bincount(columns[marks], minlength=width) == 1
    slack[program.quadratic.indices] = False
    first, second = ((marks & slack[columns]).nonzero()[0] for marks in (defines, fills))
    chosen = np.unique(rows[first], return_index=True)[1]  # an equation defines one of them
    if not chosen.size:
        return None
    first, second = first[chosen], second[chosen]
    unknowns, equations, inside = columns[first], rows[first], rows[second]
    factors = -data[second] / data[first]
    return _made(program, np.asarray(unknowns), equations, inside, factors)


def _made(
    program: ConeProgram,
    unknowns: IndexArray,
    equations: IndexArray,
    inside: IndexArray,
    factors: FloatArray,
) -> WithoutSlacks:
    count, width = program.offset.size, program.linear.size
    left, kept = np.ones(count, dtype=bool), np.ones(width, dtype=bool)
    left[equations], kept[unknowns] = False, False
    # row `inside` becomes the equation times its factor: what was in it is the slack alone
    target, weight = np.arange(count), np.ones(count)
    target[equations], weight[equations] = inside, factors
    matrix, own = program.sparse, kept[program.columns]
    rows = matrix.indices[own]
    numbers = left.cumsum() - 1
    smaller = scipy.sparse.csc_matrix(
        (
            matrix.data[own] * weight[rows],
            (numbers[target[rows]], (kept.cumsum() - 1)[program.columns[own]]),
        ),
        shape=(int(left.sum()), int(kept.sum())),
    )
    offset = program.offset.copy()
    offset[inside] += factors * offset[equations]
    quadratic = program.quadratic
    return WithoutSlacks(
        ConeProgram(
            quadratic[kept][:, kept] if quadratic.nnz else no_quadratic(int(kept.sum())),
            program.linear[kept],
            smaller,
            offset[left],
            cones_left(program.cones, ~left),
            program.constant,
        ),
        *(program, unknowns, equations, inside, factors, left, kept),
    )
