"""Inverses, determinants and Lyapunov equations.

A singular matrix gives NaN (the engine turns numpy's error into it), and so does a Lyapunov
equation whose matrix is not stable: its solution would be no covariance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import scipy

from hcmodel.atoms import cones
from hcmodel.atoms.algebra import Adjoint, Factor
from hcmodel.atoms.atom import atom
from hcmodel.atoms.autodiff import define_pullback, detached, is_traced, primitive
from hcmodel.atoms.autodiff import xp as traced
from hcmodel.atoms.rules import (
    Arguments,
    Curvature,
    Domain,
    MatrixKind,
    Params,
    Sign,
)
from hcmodel.atoms.shape_rules import need_square, scalar_of_square, square_matrix
from hcmodel.errors import ModelError
from hcmodel.expressions.shapes import Shape
from hcmodel.expressions.sparse_data import any_nonzero

_TESTED = ContextVar("whether matrices are tested for stability and definiteness", default=True)


@contextmanager
def formally() -> Iterator[None]:
    """Evaluate without tests of stability and definiteness.

    Two ways to write a rational function agree wherever both have a value: to compare them needs no
    matrix that is stable, which random gains hardly ever give.
    """
    token = _TESTED.set(False)
    try:
        yield
    finally:
        _TESTED.reset(token)


def _inverse_definiteness(arguments: Arguments, params: Params) -> MatrixKind:
    """That of the argument; a semidefinite matrix with an inverse is definite."""
    kind = arguments[0].matrix
    return MatrixKind.DEFINITE if kind is MatrixKind.SEMIDEFINITE else kind


@atom(
    shape=square_matrix,
    domain=Domain.INVERTIBLE,
    factors=(Factor(0, inverted=True),),
    superlinear=True,
    definiteness=_inverse_definiteness,
    adjoint=Adjoint("solve"),
)
def inv(xp: Any, A: Any) -> Any:
    """The inverse of a square matrix; NaN where it is singular."""
    return xp.linalg.inv(A)


def _solve_shape(name: str, shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    matrix, right = shapes
    need_square(name, matrix)
    if len(right) not in (1, 2) or right[0] != matrix[0]:
        raise ModelError(
            f"'solve' takes a right-hand side with {matrix[0]} rows, not shape {right}"
        )
    return right


def _affine_in_second(arguments: Arguments, params: Params) -> Curvature:
    """Linear in the second argument while the first is constant."""
    return Curvature.AFFINE if arguments[0].constant else Curvature.UNKNOWN


@atom(
    shape=_solve_shape,
    domain=(Domain.INVERTIBLE, Domain.REALS),
    curvature=_affine_in_second,
    linear_in=(1,),
    factors=(Factor(0, inverted=True), Factor(1)),
    superlinear=True,
    equation=lambda arguments, x: arguments[0] @ x - arguments[1],
    adjoint=Adjoint("solve"),
)
def solve(xp: Any, A: Any, b: Any) -> Any:
    """The solution x of A @ x == b; NaN where A is singular."""
    if np.ndim(b) == 1:
        return xp.reshape(xp.linalg.solve(A, xp.reshape(b, (-1, 1))), (-1,))
    return xp.linalg.solve(A, b)


def _definite_sign(arguments: Arguments, params: Params) -> Sign:
    """Positive for a definite matrix."""
    return Sign.POSITIVE if arguments[0].definite else Sign.UNKNOWN


def _concave_if_definite(arguments: Arguments, params: Params) -> Curvature:
    """log det is concave on the positive definite matrices."""
    return Curvature.CONCAVE if arguments[0].definite else Curvature.UNKNOWN


def _order(arguments: Arguments, params: Params) -> int:
    """The order of the matrix."""
    return arguments[0].shape[0]


@atom(
    shape=scalar_of_square,
    sign=_definite_sign,
    plain_to_log=_concave_if_definite,
    degree=_order,
    superlinear=True,
    cone_form=cones.DETERMINANT,
)
def det(xp: Any, A: Any) -> Any:
    """The determinant of a square matrix."""
    return xp.linalg.det(A)


@atom(
    shape=scalar_of_square,
    domain=Domain.POSITIVE_DEFINITE,
    curvature=_concave_if_definite,
    superlinear=True,
    cone_form=cones.LOG_DET,
)
def logdet(xp: Any, A: Any) -> Any:
    """The logarithm of the determinant of a positive definite matrix; NaN elsewhere."""
    symmetric = (detached(A) + detached(A).T) / 2
    np.linalg.cholesky(symmetric)  # an indefinite matrix may have a positive determinant
    return xp.linalg.slogdet(A)[1]


def _fraction_shape(name: str, shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    """(n,) or (n, m), and (n, n) → a number."""
    above, matrix = shapes
    need_square(name, matrix)
    if len(above) not in (1, 2) or above[0] != matrix[0]:
        raise ModelError(f"'{name}' takes X with {matrix[0]} rows for P of {matrix}, not {above}")
    return ()


def _fraction_sign(arguments: Arguments, params: Params) -> Sign:
    """Positive where an entry of X is never 0, else not negative."""
    above = arguments[0]
    nonzero = above.sign.is_strict or (above.value is not None and any_nonzero(above.value))
    return Sign.POSITIVE if nonzero else Sign.NONNEGATIVE


def _convex_if_definite(arguments: Arguments, params: Params) -> Curvature:
    """Convex in X and P together, where P is positive definite."""
    return Curvature.CONVEX if arguments[1].definite or arguments[1].constant else Curvature.UNKNOWN


def _fraction_in_log(arguments: Arguments, params: Params) -> Curvature:
    """Log-convex in P, where X is constant."""
    constant = arguments[0].constant and arguments[1].definite
    return Curvature.CONVEX if constant else Curvature.UNKNOWN


def _fraction_factors(arguments: Arguments, params: Params) -> tuple[Factor, ...]:
    """x' inv(P) x of a vector x."""
    if len(arguments[0].shape) != 1:
        return ()
    return (Factor(0, transposed=True), Factor(1, inverted=True), Factor(0))


@atom(
    shape=_fraction_shape,
    domain=(Domain.REALS, Domain.POSITIVE_DEFINITE),
    sign=_fraction_sign,
    curvature=_convex_if_definite,
    plain_to_log=_fraction_in_log,
    factors=_fraction_factors,
    superlinear=True,
    cone_form=cones.MATRIX_FRAC,
)
def matrix_frac(xp: Any, X: Any, P: Any) -> Any:
    """trace(X.T @ inv(P) @ X) for a positive definite P; NaN elsewhere."""
    if _TESTED.get():
        np.linalg.cholesky((detached(P) + detached(P).T) / 2)
    columns = xp.reshape(X, (np.shape(X)[0], -1))
    return xp.sum(columns * xp.linalg.solve(P, columns))


def _lyapunov_shape(name: str, shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    need_square(name, shapes[0])
    if shapes[1] != shapes[0]:
        raise ModelError(
            f"'{name}' takes two matrices of one shape, not {shapes[0]} and {shapes[1]}"
        )
    return shapes[0]


def _lyapunov_definiteness(arguments: Arguments, params: Params) -> MatrixKind:
    """That of Q: of a stable equation the solution is an integral or a sum of M @ Q @ M.T."""
    return arguments[1].matrix


def _eigenvalues(A: Any) -> np.ndarray:
    return np.linalg.eigvals(detached(A))


# Up to this order a Lyapunov equation is solved as one linear system, by Kronecker products. Their cost
# grows with the sixth power of the order, that of Bartels and Stewart's method with the third.
LARGEST_SYSTEM = 10


def _sum_of_products(xp: Any, A: Any, unit: np.ndarray) -> Any:
    """A ⊗ I + I ⊗ A; of numbers in a quarter of the time of kron, which is 25 calls of Python."""
    if is_traced(A):
        return xp.kron(A, unit) + xp.kron(unit, A)
    left, right = A[:, None, :, None] * unit[:, None, :], unit[:, None, :, None] * A[:, None, :]
    return (left + right).reshape(unit.size, unit.size)


@primitive
def _continuous(A: Any, Q: Any) -> Any:
    """The solution of A @ X + X @ A.T + Q == 0 (Bartels and Stewart, 1972)."""
    if not (np.isfinite(A).all() and np.isfinite(Q).all()):
        return np.full(np.shape(A), np.nan)
    triangle, basis = scipy.linalg.schur(A)
    found, scale, failed = scipy.linalg.lapack.dtrsyl(
        triangle, triangle, -(basis.T @ Q @ basis), tranb="T"
    )
    if failed or not scale > 0:
        raise np.linalg.LinAlgError("Singular matrix")  # as numpy says of the linear system
    return basis @ (found / scale) @ basis.T


@primitive
def _discrete(A: Any, Q: Any) -> Any:
    """The solution of X == A @ X @ A.T + Q, by that of a continuous equation.

    With B = (A − I) (A + I)⁻¹ it is B @ X + X @ B.T + 2 (A + I)⁻¹ Q (A + I)⁻ᵀ == 0 (Smith, 1968).
    """
    n = np.shape(A)[0]
    inverse = np.linalg.inv(A + np.eye(n))
    return _continuous.function((A - np.eye(n)) @ inverse, 2 * inverse @ Q @ inverse.T)


def _continuous_pullback(argnums: Sequence[int], answer: Any, args: Any, keywords: Any) -> Any:
    """The adjoint equation A.T @ S + S @ A + cotangent == 0 has the derivatives."""

    def pull(cotangent: Any) -> Any:
        weight = _continuous(traced.transpose(args[0]), cotangent)
        by_matrix = traced.dot(weight, answer.T) + traced.dot(weight.T, answer)
        return [weight if number else by_matrix for number in argnums]

    return pull


def _discrete_pullback(argnums: Sequence[int], answer: Any, args: Any, keywords: Any) -> Any:
    def pull(cotangent: Any) -> Any:
        weight = _discrete(traced.transpose(args[0]), cotangent)
        moved = traced.dot(args[0], answer), traced.dot(args[0], answer.T)
        by_matrix = traced.dot(weight, moved[1]) + traced.dot(weight.T, moved[0])
        return [weight if number else by_matrix for number in argnums]

    return pull


define_pullback(_continuous, _continuous_pullback)
define_pullback(_discrete, _discrete_pullback)


@atom(
    shape=_lyapunov_shape,
    domain=(Domain.HURWITZ, Domain.REALS),
    curvature=_affine_in_second,
    linear_in=(1,),
    definiteness=_lyapunov_definiteness,
    superlinear=True,
    equation=lambda arguments, x: arguments[0] @ x + x @ arguments[0].T + arguments[1],
    adjoint=Adjoint("lyap", by_columns=False),
)
def lyap(xp: Any, A: Any, Q: Any) -> Any:
    """The solution X of A @ X + X @ A.T + Q == 0; NaN unless A is stable (Hurwitz)."""
    if _TESTED.get() and not np.all(_eigenvalues(A).real < 0):
        return np.full(np.shape(A), np.nan)
    n = np.shape(A)[0]
    if n > LARGEST_SYSTEM:
        return _continuous(A, Q)
    operator = _sum_of_products(xp, A, np.eye(n))
    return -xp.reshape(xp.linalg.solve(operator, xp.reshape(Q, (n * n, 1))), (n, n))


@atom(
    shape=_lyapunov_shape,
    domain=(Domain.SCHUR, Domain.REALS),
    curvature=_affine_in_second,
    linear_in=(1,),
    definiteness=_lyapunov_definiteness,
    superlinear=True,
    equation=lambda arguments, x: x - arguments[0] @ x @ arguments[0].T - arguments[1],
    adjoint=Adjoint("dlyap", by_columns=False),
)
def dlyap(xp: Any, A: Any, Q: Any) -> Any:
    """The solution X of X == A @ X @ A.T + Q; NaN unless A is stable (Schur)."""
    if _TESTED.get() and not np.all(np.abs(_eigenvalues(A)) < 1):
        return np.full(np.shape(A), np.nan)
    n = np.shape(A)[0]
    if n > LARGEST_SYSTEM:
        return _discrete(A, Q)
    operator = np.eye(n * n) - xp.kron(A, A)
    return xp.reshape(xp.linalg.solve(operator, xp.reshape(Q, (n * n, 1))), (n, n))
