"""The nearest point at which the equations of a cone program hold up to rounding.

A backend stops where all rows hold within its tolerance, which is relative to the largest number of the
program. Equations can be satisfied exactly by one step, of the size of what they lack.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers.qp.cone_program import ConeKind, ConeProgram

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class EquationRules:
    """How the step is found."""

    # Equations up to which their products are an array: those of a regulator with 40 states take 30 ms.
    most: int = 1000
    # Steps: the first leaves a millionth of what equations lack, by the rounding of their products.
    steps: int = 3
    # Singular values below this, relatively, are those of equations that depend on each other.
    dependent: float = 1e-12


RULES = EquationRules()


def on_equations(program: ConeProgram, point: FloatArray) -> FloatArray:
    """The nearest point at which the equations hold up to rounding."""
    zero = np.repeat(
        [cone.kind is ConeKind.ZERO for cone in program.cones],
        [cone.size for cone in program.cones],
    )
    if not zero.any():
        return point
    rows, offset = program.sparse.tocsr()[zero.nonzero()[0]], program.offset[zero]
    if offset.size > RULES.most:
        for _ in range(RULES.steps):
            point = point - scipy.sparse.linalg.lsmr(rows, rows @ point - offset)[0]
        return point
    products = (rows @ rows.T).toarray()
    values, vectors = np.linalg.eigh(products)
    kept = values > RULES.dependent * values[-1]
    values, vectors = values[kept], vectors[:, kept]
    for _ in range(RULES.steps):
        shares = vectors @ ((vectors.T @ (rows @ point - offset)) / values)
        point = point - rows.T @ shares
    return np.asarray(point)
