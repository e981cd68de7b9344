"""Directions along which a cone program falls for ever, as exact as floating point allows.

A backend knows such a direction d to some eight digits. A row that moves by 1e-9 where it should stay is
left behind after 1e9 steps, so that the direction could not be followed far. The rows that hardly move
are taken to stay: what moves them is removed by least squares, up to rounding.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.solvers.numerics import BACKEND_ROUNDING
from hcmodel.solvers.qp.cone_program import (
    ConeBlock,
    ConeKind,
    ConeProgram,
    no_quadratic,
    within,
)

FloatArray = NDArray[np.float64]

# A row stays where it moves by so little, relative to its largest entry: the root of the accuracy.
STILL = BACKEND_ROUNDING**0.5
# Least squares with 6 digits each, after which rows move by rounding alone.
REFINEMENTS = 3
# The share of the terms of a row by which it may miss its cone, and of a direction below which an entry
# is 0: a backend knows eight digits of a direction.
MISSED = 1e-6
# The share of a direction that has to be left: otherwise rows were taken to stay that must not.
LEFT = 0.5


def recession(program: ConeProgram) -> ConeProgram:
    """The program of the steepest direction with entries in [−1, 1] in which all rows can be followed.

    It always has a solution: 0, where the program falls along none.
    """
    size, cones = program.linear.size, program.cones
    matrix, quadratic = program.sparse, program.quadratic
    if quadratic.nnz:  # along a direction in which the square grows, nothing falls for ever
        matrix = scipy.sparse.csc_matrix(scipy.sparse.vstack([quadratic, matrix]))
        cones = (ConeBlock(ConeKind.ZERO, size), *cones)
    rays = ConeProgram(
        no_quadratic(size), program.linear, matrix, np.zeros(matrix.shape[0]), cones, constant=0.0
    )
    return within(rays, np.arange(size), 1.0)


def sharpened(program: ConeProgram, ray: FloatArray) -> FloatArray:
    """The direction without what moves the rows that hardly move; as it is where that is most of it."""
    size = float(np.max(np.abs(ray), initial=0.0))
    if not 0.0 < size < np.inf:
        return ray
    matrix = scipy.sparse.vstack([program.sparse, program.quadratic], format="csr")
    moved = np.abs(matrix @ ray)
    scales = abs(matrix).max(axis=1).toarray().reshape(-1)
    rows = matrix[np.flatnonzero((scales > 0.0) & (moved <= STILL * size * scales))]
    if not rows.shape[0]:
        return ray
    found = ray
    for _ in range(REFINEMENTS):
        found = found - scipy.sparse.linalg.lsmr(rows, rows @ found)[0]
    return found if np.max(np.abs(found)) >= LEFT * size else ray


def recedes(program: ConeProgram, ray: FloatArray) -> bool:
    """Whether all rows can be followed along a direction without end, and no square grows.

    Rows are measured by their own terms, so that small coefficients count: x² grows, in any unit. What
    moves cones other than second-order ones is not looked at, and shows nothing.
    """
    ray = np.where(np.abs(ray) > MISSED * np.max(np.abs(ray), initial=0.0), ray, 0.0)
    if program.quadratic.nnz:
        moved, own = program.quadratic @ ray, abs(program.quadratic) @ np.abs(ray)
        if (np.abs(moved) > MISSED * own).any():
            return False
    slack, sizes = -(program.sparse @ ray), MISSED * (abs(program.sparse) @ np.abs(ray))
    first = 0
    for cone in program.cones:
        own, missed = slack[first : first + cone.size], sizes[first : first + cone.size]
        first += cone.size
        if cone.kind is ConeKind.NONNEGATIVE:
            inside = bool((own >= -missed).all())
        elif cone.kind is ConeKind.SECOND_ORDER:
            inside = bool(own[0] + missed[0] >= max(np.linalg.norm(own[1:]) - missed[1:].sum(), 0))
        else:
            inside = bool((np.abs(own) <= missed).all())
        if not inside:
            return False
    return True
