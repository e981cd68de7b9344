"""One Newton step on the optimality conditions, with the rows and bounds that seem active held.

One linear system instead of a program: exact to rounding once the active rows are known. Certificates
use it to find better pairs of point and multipliers, and direct methods to add the digits that an
interior-point method leaves out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers.algebra.hessians import SparseHessian, as_dense, is_finite, largest_entry
from hcmodel.solvers.algebra.marks import all_finite, largest
from hcmodel.solvers.algebra.storage import is_sparse
from hcmodel.solvers.coordinates.protocol import Coordinates
from hcmodel.solvers.numerics import DEPENDENT, PRODUCT_ROUNDING, TINY
from hcmodel.solvers.oracle import Evaluation, Oracle
from hcmodel.solvers.qp import QuadraticProgram, make_backend, solve_program
from hcmodel.solvers.qp.program import StepRows

FloatArray = NDArray[np.float64]
Settle = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class PolishingOptions:
    """*Certificates*: the value with which the gaps of the test set's certificates were measured."""

    # Shares of natural lengths within which a point is on a face, and rows are active.
    on_face: float = 1e-7  # certificates
    nearly: float = 1e-4  # certificates
    # A step, in natural lengths, whose square is below rounding.
    straight: float = 1e-8  # the root of OPERATION_ROUNDING
    # Relative singular values of the system that count as 0.
    rank: float = 10 * PRODUCT_ROUNDING


OPTIONS = PolishingOptions()


def polishing_step(
    oracle: Oracle,
    coordinates: Coordinates,
    settled: Settle,
    evaluation: Evaluation,
    multipliers: FloatArray,
) -> tuple[FloatArray, FloatArray] | None:
    """Where the step leads, and the multipliers there; None where the numbers are not finite."""
    point, domain = evaluation.point, coordinates.domain
    hessian = coordinates.hessian(oracle, evaluation, multipliers)
    held = _held(evaluation, multipliers)
    basis: Any
    if isinstance(hessian, SparseHessian):
        basis = domain.face_basis(point, OPTIONS.on_face)
        solved = _sparse(evaluation, hessian, basis, held)
    else:
        basis = domain.flat_face(point, OPTIONS.on_face) if domain.is_box else None
        if basis is None:
            basis = np.asarray(domain.face_basis(point, OPTIONS.on_face).toarray())
        solved = _dense(evaluation, as_dense(hessian), basis, held)
    if solved is None:
        return None
    found = np.zeros(evaluation.rows.size)
    w, found[held] = solved
    step = np.asarray(basis @ w)
    if largest(np.abs(w)) <= OPTIONS.straight:  # what bends is below rounding
        return domain.project(point + step), found
    return settled(coordinates.retract(point, step)), found


def _held(evaluation: Evaluation, multipliers: FloatArray) -> NDArray[np.bool_]:
    """Equalities, and inequalities that are nearly active and have a multiplier."""
    most = max(largest(np.maximum(multipliers, 0.0)), TINY)
    near = np.abs(evaluation.rows) <= OPTIONS.nearly * evaluation.magnitudes
    equality = np.arange(evaluation.rows.size) >= evaluation.inequalities
    return np.asarray(equality | (near & (multipliers > OPTIONS.on_face * most)))


def _dense(
    evaluation: Evaluation, hessian: FloatArray, face: FloatArray, held: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray] | None:
    rows: Any = evaluation.jacobian[held.nonzero()[0]]
    jacobian = np.asarray(rows.toarray() if is_sparse(rows) else rows) @ face
    curvature = face.T @ hessian @ face
    slope = evaluation.gradient @ face
    if not (all_finite(jacobian) and all_finite(curvature) and all_finite(slope)):
        return None
    size = max(largest(np.abs(curvature)), TINY)
    scales = np.maximum(np.abs(jacobian).max(axis=1, initial=0.0), TINY) / size
    jacobian = jacobian / scales[:, None]
    count = jacobian.shape[0]
    system = np.zeros((slope.size + count, slope.size + count))
    system[: slope.size, : slope.size] = curvature
    system[slope.size :, : slope.size] = jacobian
    system[: slope.size, slope.size :] = jacobian.T
    target = -np.concatenate([slope, evaluation.rows[held] / scales])
    solution = _solution(system, target)
    return solution[: face.shape[1]], solution[face.shape[1] :] / scales


def _solution(system: FloatArray, target: FloatArray) -> FloatArray:
    """The solution, or the shortest one where rows are dependent: by a decomposition ten times slower."""
    if not target.size:  # LAPACK prints a complaint
        return target
    lapack = scipy.linalg.lapack
    factors, pivots, failed = lapack.dgetrf(system)
    if not failed:
        inverse_condition, _ = lapack.dgecon(factors, float(np.abs(system).sum(axis=0).max()))
        if inverse_condition > DEPENDENT:
            return np.asarray(lapack.dgetrs(factors, pivots, target)[0])
    # by an orthogonal factorisation with pivots, in half the time of singular values
    found = scipy.linalg.lstsq(
        system, target, cond=OPTIONS.rank, check_finite=False, lapack_driver="gelsy"
    )
    return np.asarray(found[0])


def _sparse(
    evaluation: Evaluation,
    hessian: SparseHessian,
    basis: scipy.sparse.csr_array,
    held: NDArray[np.bool_],
) -> tuple[FloatArray, FloatArray] | None:
    """The same for a Hessian with structure: a program whose rows are all equations is one system too."""
    jacobian = scipy.sparse.csr_array(evaluation.jacobian)[held.nonzero()[0]] @ basis
    sizes = np.asarray(abs(jacobian).max(axis=1).todense()).reshape(-1) if held.any() else 0.0
    scales = np.maximum(sizes, TINY)
    slope = np.asarray(basis.T @ evaluation.gradient)
    along = SparseHessian(
        scipy.sparse.csr_array(basis.T @ hessian.sparse @ basis),
        basis.T @ hessian.plus,
        basis.T @ hessian.minus,
    )
    if not (is_finite(along) and np.isfinite(jacobian.data).all() and np.isfinite(slope).all()):
        return None
    size = max(float(np.abs(slope).max(initial=0.0)), largest_entry(along), TINY)
    free = np.full(slope.size, np.inf)
    program = QuadraticProgram(
        quadratic=along * (1 / size),
        linear=slope / size,
        inequality=scipy.sparse.csr_array((0, slope.size)),
        inequality_bound=np.zeros(0),
        equality=scipy.sparse.csr_array(scipy.sparse.diags_array(1 / scales) @ jacobian)
        if held.any()
        else jacobian,
        equality_bound=-evaluation.rows[held] / scales,
        domain=StepRows(-free, free, ()),
    )
    solution = solve_program(make_backend(), program)
    if not solution.usable:
        return None
    return solution.step, solution.equality_multipliers * size / scales
