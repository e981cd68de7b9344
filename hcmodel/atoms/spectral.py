"""Eigenvalues of symmetric matrices, and of matrices with positive entries (Perron and Frobenius)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hcmodel.atoms import cones, enclosures
from hcmodel.atoms.algebra import Pieces
from hcmodel.atoms.atom import atom
from hcmodel.atoms.autodiff import define_pullback, detached, primitive
from hcmodel.atoms.autodiff import xp as traced
from hcmodel.atoms.rules import (
    Arguments,
    Curvature,
    Domain,
    Kind,
    MatrixKind,
    Monotonicity,
    Params,
    Sign,
    all_nonnegative,
    same_sign,
)
from hcmodel.atoms.shape_rules import scalar_of_square, square_matrix
from hcmodel.expressions.node import Expression

# Eigenvalues that are closer than this share of the largest size count as one: its eigenvector then is
# one of many, and has no derivative.
MULTIPLE = 1e-12


@primitive
def _largest(matrix: Any) -> Any:
    """The largest eigenvalue of a symmetric matrix."""
    return np.linalg.eigvalsh(matrix)[-1]


@primitive
def _projector(matrix: Any) -> Any:
    """v v' of the eigenvector v of the largest eigenvalue."""
    vector = np.linalg.eigh(matrix)[1][:, -1]
    return np.outer(vector, vector)


def _largest_pullback(argnums: Sequence[int], answer: Any, args: Any, keywords: Any) -> Any:
    return lambda cotangent: [cotangent * _projector(args[0])]


def _projector_pullback(argnums: Sequence[int], answer: Any, args: Any, keywords: Any) -> Any:
    """dv = (λ - A)⁺ dA v, by perturbation of a simple eigenvalue."""
    values, vectors = np.linalg.eigh(np.asarray(detached(args[0])))
    gaps = values[-1] - values
    simple = gaps > MULTIPLE * np.max(np.abs(values), initial=0.0)
    inverse = (vectors * np.where(simple, 1.0 / np.where(simple, gaps, 1.0), 0.0)) @ vectors.T
    top = vectors[:, -1:]

    def pull(cotangent: Any) -> Any:
        change = traced.dot(inverse, traced.dot((cotangent + cotangent.T) / 2, top))
        return [traced.dot(change, top.T) + traced.dot(top, change.T)]

    return pull


define_pullback(_largest, _largest_pullback)
define_pullback(_projector, _projector_pullback)


def _eigenvalue_sign(arguments: Arguments, params: Params) -> Sign:
    """As the matrix is definite; else at least the largest entry of the diagonal."""
    kind, entries = arguments[0].matrix, same_sign(arguments, params)
    if kind is MatrixKind.DEFINITE or entries is Sign.POSITIVE:
        return Sign.POSITIVE
    if kind is MatrixKind.SEMIDEFINITE or entries is Sign.NONNEGATIVE:
        return Sign.NONNEGATIVE
    return Sign.ZERO if entries is Sign.ZERO else Sign.UNKNOWN


def _eigenvalue_monotonicity(arguments: Arguments, params: Params) -> Monotonicity:
    """Rising in the entries of a matrix without negative ones (Perron and Frobenius)."""
    if arguments[0].sign.is_nonnegative:
        return Monotonicity.INCREASING
    return Monotonicity.UNKNOWN


def _eigenvalue_enclosure(ranges: enclosures.Ranges) -> enclosures.Interval:
    """From the largest entry of the diagonal to the largest of Gershgorin's circles."""
    low, high = ranges.inside[0]
    sizes = np.maximum(np.abs(low), np.abs(high))
    beside = (sizes + sizes.T) / 2
    np.fill_diagonal(beside, 0.0)
    ends = np.max(np.diag(low)), np.max(np.diag(high) + beside.sum(axis=1))
    return enclosures.outward(enclosures.ordered(np.asarray(ends[0]), np.asarray(ends[1])))


def _eigenvalue_pieces(arguments: Arguments, params: Params) -> Pieces:
    """The least t for which t I - (A + A.T) / 2 is semidefinite."""
    identity = np.eye(arguments[0].shape[0])

    def matrix(operands: Sequence[Expression], t: Expression) -> Expression:
        return t * identity - (operands[0] + operands[0].T) / 2

    return Pieces(above=True, rows=lambda operands, t: [], monotone=False, semidefinite=matrix)


@atom(
    shape=scalar_of_square,
    sign=_eigenvalue_sign,
    monotonicity=_eigenvalue_monotonicity,
    curvature=Curvature.CONVEX,
    log_curvature=Curvature.CONVEX,
    kind=Kind.KINKED,
    pieces=_eigenvalue_pieces,
    homogeneous=True,
    superlinear=True,
    enclosure=_eigenvalue_enclosure,
    cone_form=cones.LARGEST_EIGENVALUE,
)
def lambda_max(xp: Any, A: Any) -> Any:
    """The largest eigenvalue of a symmetric matrix, in general of (A + A.T) / 2."""
    symmetric = (A + xp.transpose(A)) / 2
    return _largest(symmetric)


# ---- positive matrices


def _perron(matrix: Any) -> tuple[float, np.ndarray]:
    """The spectral radius of a matrix without negative entries, and the projector v u' / u'v of it."""
    values, right = np.linalg.eig(matrix)
    place = int(np.argmax(values.real))
    left = np.linalg.inv(right)[place]
    return float(values[place].real), np.real(np.outer(right[:, place], left))


@primitive
def _radius(matrix: Any) -> Any:
    """The spectral radius of a matrix without negative entries, which is an eigenvalue."""
    return float(np.max(np.linalg.eigvals(matrix).real))


@primitive
def _perron_projector(matrix: Any) -> Any:
    return _perron(matrix)[1]


def _radius_pullback(argnums: Sequence[int], answer: Any, args: Any, keywords: Any) -> Any:
    return lambda cotangent: [cotangent * traced.transpose(_perron_projector(args[0]))]


def _perron_pullback(argnums: Sequence[int], answer: Any, args: Any, keywords: Any) -> Any:
    """dP = G dA P + P dA G with the group inverse G of λ - A."""
    matrix = np.asarray(detached(args[0]))
    radius, projector = _perron(matrix)
    inverse = np.linalg.inv(radius * np.eye(len(matrix)) - matrix + projector) - projector

    def pull(cotangent: Any) -> Any:
        first = traced.dot(traced.dot(inverse.T, cotangent), projector.T)
        return [first + traced.dot(traced.dot(projector.T, cotangent), inverse.T)]

    return pull


define_pullback(_radius, _radius_pullback)
define_pullback(_perron_projector, _perron_pullback)


def _radius_enclosure(ranges: enclosures.Ranges) -> enclosures.Interval:
    """Between the smallest and the largest sum of a row."""
    low, high = ranges.inside[0]
    ends = np.min(low.sum(axis=1)), np.max(high.sum(axis=1))
    return enclosures.outward(enclosures.ordered(np.asarray(ends[0]), np.asarray(ends[1])))


@atom(
    shape=scalar_of_square,
    domain=Domain.NONNEGATIVE,
    sign=same_sign,
    monotonicity=Monotonicity.INCREASING,
    log_curvature=Curvature.CONVEX,
    homogeneous=True,
    superlinear=True,
    keeps_support=all_nonnegative,
    enclosure=_radius_enclosure,
    cone_form=cones.PERRON_EIGENVALUE,
)
def pf_eigenvalue(xp: Any, A: Any) -> Any:
    """The spectral radius of a matrix with positive entries; NaN where an entry is negative."""
    inside = xp.where(np.all(detached(A) >= 0), 1.0, float("nan"))
    return inside * _radius(A)


def _series_sign(arguments: Arguments, params: Params) -> Sign:
    """Positive for positive entries, else not negative: the result is I + A + A² + …."""
    return Sign.POSITIVE if arguments[0].sign is Sign.POSITIVE else Sign.NONNEGATIVE


def _series_definiteness(arguments: Arguments, params: Params) -> MatrixKind:
    """Definite for a symmetric matrix."""
    symmetric = arguments[0].matrix >= MatrixKind.SYMMETRIC
    return MatrixKind.DEFINITE if symmetric else MatrixKind.GENERAL


@atom(
    shape=square_matrix,
    domain=Domain.CONTRACTING,
    sign=_series_sign,
    monotonicity=Monotonicity.INCREASING,
    log_curvature=Curvature.CONVEX,
    superlinear=True,
    keeps_support=all_nonnegative,
    definiteness=_series_definiteness,
    cone_form=cones.EYE_MINUS_INVERSE,
)
def eye_minus_inv(xp: Any, A: Any) -> Any:
    """inv(I - A) for entries >= 0 and a spectral radius below 1; NaN elsewhere."""
    known, order = np.asarray(detached(A)), np.shape(A)[0]
    inside = bool(np.all(np.isfinite(known)) and np.all(known >= 0))
    if not inside or np.max(np.abs(np.linalg.eigvals(known)), initial=0.0) >= 1:
        return np.full((order, order), np.nan)
    return xp.linalg.inv(np.eye(order) - A)
