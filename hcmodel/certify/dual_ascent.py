"""A better dual of a cone program, from one that has no residual and is inside of its cones.

    maximise  −bᵀz   s.t.   Aᵀz = −q,   z in the dual cone

With an orthonormal N whose columns span the z with Aᵀz = 0, all duals without a residual are z + N w. The
method follows the central path of bᵀz − μ·(Σ log det Z + Σ log z) by damped Newton steps as μ falls. All
of its points are inside, so that each proves a bound. What solvers of the whole program return is on the
boundary but for rounding, and proves none where unknowns have no range.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import CONE_DUALITY
from hcmodel.certify.cone_ranges import ConePlaces
from hcmodel.solvers.algebra.symmetric import to_matrix
from hcmodel.solvers.qp.cone_program import ConeKind, ConeProgram

FloatArray = NDArray[np.float64]

KINDS = (ConeKind.ZERO, ConeKind.NONNEGATIVE, ConeKind.PSD_TRIANGLE)


def ascended(
    program: ConeProgram, places: ConePlaces, z: FloatArray, gap: float
) -> Iterator[FloatArray]:
    """Duals along the path, from one inside; `gap` is about what is missing to the best bound."""
    small = program.offset.size <= CONE_DUALITY.most_ascended
    if not small or not all(cone.kind in KINDS for cone in program.cones) or not gap > 0:
        return
    barrier = _Barrier(program, places)
    slope = barrier.basis.T @ program.offset
    weight = gap / barrier.parameter
    for _ in range(CONE_DUALITY.ascents):
        for _ in range(CONE_DUALITY.ascent_steps):
            derivatives = barrier.derivatives(z)
            if derivatives is None:
                return
            gradient, vectors, values = derivatives
            # in the units of the barrier: the Hessian is the square of what is decomposed
            step = -(vectors.T @ (slope / weight + gradient)) / values
            length = float(np.linalg.norm(step))
            z = z + barrier.basis @ (vectors @ (step / values)) / (1.0 + length)
            if length < 1.0 / 2.0:
                break
        yield z
        weight *= CONE_DUALITY.ascent_share


class _Barrier:
    """−Σ log det Z − Σ log z on the duals without a residual."""

    def __init__(self, program: ConeProgram, places: ConePlaces) -> None:
        matrix = np.asarray(program.matrix.toarray(), dtype=float)
        self.basis = scipy.linalg.null_space(matrix.T)
        self._places = places
        self._numbers = places.nonnegative
        self._blocks = []
        for order, first in places.blocks:
            own = slice(first, first + order * (order + 1) // 2)
            stack = np.array([to_matrix(column) for column in self.basis[own].T])
            self._blocks.append((own, stack.reshape(-1, order, order)))
        self.parameter = float(self._numbers.size + sum(order for order, _ in places.blocks))

    def derivatives(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Gradient in w, and eigenvectors of the Hessian with roots of its eigenvalues; None outside."""
        if (z[self._numbers] <= 0).any():
            return None
        rows = [(self.basis[self._numbers] / z[self._numbers][:, None]).T]
        gradient = -rows[0].sum(axis=1)
        for own, stack in self._blocks:
            try:
                inverse = np.linalg.inv(np.linalg.cholesky(to_matrix(z[own])))
            except np.linalg.LinAlgError:
                return None
            inner = inverse @ stack @ inverse.T
            gradient = gradient - np.trace(inner, axis1=1, axis2=2)
            rows.append(inner.reshape(inner.shape[0], -1))
        vectors, values, _ = np.linalg.svd(np.hstack(rows), full_matrices=False)
        return (gradient, vectors, values) if values.size and values[-1] > 0 else None
