"""What follows from a description of a set by bounds and cones alone: small programs over it.

The defaults of `Domain` rest on these functions. They cost a cone program or a dense decomposition each;
a set that is asked often has closed forms instead.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.solvers.algebra.symmetric import rotated_basis, to_matrix, triangle
from hcmodel.solvers.qp.program import Cone, QPSolution, QuadraticProgram, StepRows
from hcmodel.solvers.qp.table import make_backend

FloatArray = NDArray[np.float64]


def solve_over(rows: StepRows, quadratic: FloatArray, linear: FloatArray) -> QPSolution:
    """minimise ½ Σ quadratic·s² + linear·s over the rows."""
    nothing = np.zeros((0, linear.size))
    program = QuadraticProgram(quadratic, linear, nothing, np.zeros(0), nothing, np.zeros(0), rows)
    return make_backend().solve(program)


def shifted(rows: StepRows, x: FloatArray, metric: FloatArray) -> StepRows:
    """The steps s with x + metric * s within the rows, for an x that is within them.

    Rounding in x must not leave the program without a step: s = 0 is always allowed.
    """
    cones: tuple[Cone, ...] = ()
    if rows.cones:
        scale = scipy.sparse.diags_array(metric)
        cones = tuple(
            Cone(
                cone.kind,
                scipy.sparse.csr_array(cone.matrix @ scale),
                np.zeros(cone.offset.size)
                if cone.kind == "zero"
                else cone.offset + cone.matrix @ x,
            )
            for cone in rows.cones
        )
    lower = np.minimum((rows.lower - x) / metric, 0.0)
    return StepRows(lower, np.maximum((rows.upper - x) / metric, 0.0), cones)


def tangent_rows(rows: StepRows, x: FloatArray, tolerance: float) -> StepRows:
    """The directions at x that stay within the rows to first order.

    What is nearer to a bound than the tolerance, relative to max(1, |x|), counts as on it.
    """
    reach = tolerance * np.maximum(1.0, np.abs(x))
    lower = np.where(x <= rows.lower + reach, 0.0, -np.inf)
    upper = np.where(x >= rows.upper - reach, 0.0, np.inf)
    cones = []
    for cone in rows.cones:
        matrix = cone.matrix
        if cone.kind != "zero":
            matrix = _held_part(cone, x, tolerance)
        cones.append(Cone(cone.kind, scipy.sparse.csr_array(matrix), np.zeros(matrix.shape[0])))
    return StepRows(lower, upper, tuple(cone for cone in cones if cone.offset.size))


def face_equations(
    rows: StepRows, x: FloatArray, metric: FloatArray, share: float
) -> tuple[NDArray[np.bool_], FloatArray]:
    """Entries that a bound holds at x, and equations E s = 0 of the face in steps s of metric units.

    What is nearer to a bound than `share` of the natural length counts as on it.
    """
    held = (x - rows.lower <= share * metric) | (rows.upper - x <= share * metric)
    equations = [np.zeros((0, x.size))]
    for cone in rows.cones:
        matrix = cone.matrix.toarray() * metric
        if cone.kind != "zero":
            length = float(np.max(np.abs(matrix), initial=0.0))
            matrix = _held_part(cone, x, share, length).toarray() * metric
        equations.append(matrix)
    return held, np.vstack(equations)


def _held_part(
    cone: Cone, x: FloatArray, share: float, length: float | None = None
) -> scipy.sparse.csr_array:
    """The rows of the cone's matrix that the cone restricts at x, in the eigenvectors of its bound.

    `share` is relative to `length`, by default to the largest eigenvalue, at least 1.
    """
    if cone.kind != "psd":
        raise ValueError(f"a set with the cone {cone.kind!r} has to say what its faces are")
    values, vectors = np.linalg.eigh(to_matrix(cone.offset + cone.matrix @ x))
    size = max(1.0, float(np.max(np.abs(values)))) if length is None else length
    held = values <= share * size
    first, second = triangle(values.size)
    basis = rotated_basis(vectors)[:, held[first] & held[second]]
    return scipy.sparse.csr_array(basis.T @ cone.matrix.toarray())
