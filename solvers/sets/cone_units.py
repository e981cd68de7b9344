"""Units in which a positive definite matrix is the identity.

Near the boundary of a matrix cone a natural move of P = L Lᵀ is L E Lᵀ with ‖E‖ about 1: this is the
metric of −log det, in which eigenvalues move by factors. In these units a program over matrices whose
eigenvalues are many orders of magnitude apart is as well conditioned as one at the identity. Stored
vectors are those of `algebra.symmetric`; in the eigenbasis of P the scaling is diagonal.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.solvers.algebra.symmetric import rotated_basis, to_matrix, triangle
from hcmodel.solvers.numerics import BACKEND_ROUNDING, LARGEST_NUMBER
from hcmodel.solvers.qp.program import Cone, StepRows

FloatArray = NDArray[np.float64]

# The least eigenvalue, relative to the largest, that gives a unit of its own: smaller ones are what an
# interior-point step leaves of 0.
LEAST = BACKEND_ROUNDING


def _eigenbasis(vector: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Directions vᵢvⱼᵀ + vⱼvᵢᵀ at length 1, and their natural lengths √(λᵢλⱼ)."""
    values, vectors = np.linalg.eigh(to_matrix(vector))
    largest = max(float(np.max(np.abs(values), initial=0.0)), 1.0 / LARGEST_NUMBER)
    values = np.maximum(values, LEAST * largest)
    rows, columns = triangle(values.size)
    return rotated_basis(vectors), np.sqrt(values[rows] * values[columns])


def natural_directions(
    steps: StepRows, directions: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """`directions` with those along matrix cones replaced by natural ones, and which these are.

    `steps` are in units of 1. A matrix with a fixed entry keeps the directions that it has.
    """
    natural, inside = directions.copy(), np.zeros(directions.shape[1], dtype=bool)
    for cone in steps.cones:
        if cone.kind != "psd":
            continue
        entries = np.unique(cone.matrix.indices)
        own = np.flatnonzero(directions[entries].any(axis=0))
        if own.size != entries.size or inside[own].any():
            continue
        basis, lengths = _eigenbasis(cone.offset)
        natural[np.ix_(entries, own)] = basis * lengths
        inside[own] = True
    return natural, inside


def centred(cone: Cone) -> Cone:
    """The same matrix cone after the congruence L⁻¹(·)L⁻ᵀ that makes its offset the identity."""
    if cone.kind != "psd":
        return cone
    basis, lengths = _eigenbasis(cone.offset)
    scaled = basis / lengths
    matrix = np.asarray(cone.matrix.T @ scaled).T
    return Cone(cone.kind, scipy.sparse.csr_array(matrix), scaled.T @ cone.offset)
