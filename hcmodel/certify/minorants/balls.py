"""Balls that hold the solution, and how low a slope can go over half-spaces within them.

A linear minorant of the Lagrangian with slope s at ũ bounds the minimum by the least value of
s·(v − ũ) over a set V that contains the image U of the variables' domain (`Domain.least`).
Where V is unbounded, only what is known to hold the solution counts: a ball, found from the linear
minorants themselves, since every feasible v of value at most f̂ satisfies

    F1(p) + ∇F1(p)·(v − p) <= f̂,    L(p) + ∇L(p)·(v − p) <= f̂,    g(p) + ∇g(p)·(v − p) <= 0

for every p. Bounds come from weak duality with the rounding error included, not from a solver's claim.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import ENCLOSURE
from hcmodel.solvers.limits import seconds_left
from hcmodel.solvers.numerics import DATA_ROUNDING, PRODUCT_ROUNDING, TINY
from hcmodel.solvers.sets.half_spaces import HalfSpaces

FloatArray = NDArray[np.float64]


def ball(halves: HalfSpaces, unit: float, directions: FloatArray | None = None) -> float | None:
    """A radius around the center that holds all v of the half-spaces; None where none is found.

    `directions` are orthonormal columns along which v − center extends, all of them by default. The
    nearest half-spaces, in multiples of `unit`, are tried first: far ones only widen the ball.
    """
    normals = halves.normals if directions is None else halves.normals @ directions
    lengths = np.linalg.norm(normals, axis=1)
    kept = (lengths > 0) & np.isfinite(lengths) & np.isfinite(halves.offsets)
    if max(normals.shape) > ENCLOSURE.most_half_spaces:
        return None
    normals, offsets = normals[kept] / lengths[kept, None], halves.offsets[kept] / lengths[kept]
    tried = 0
    for multiple in ENCLOSURE.distances:
        near = offsets <= multiple * unit
        count = int(np.count_nonzero(near))
        if count > max(tried, normals.shape[1]):
            tried = count
            radius = _radius(normals[near], offsets[near])
            if radius is not None:
                return radius
    return None


def _radius(normals: FloatArray, offsets: FloatArray) -> float | None:
    """From weights y >= 0 with Σ y_i a_i = 0: Σ y_i times the slacks is y·b, which bounds every slack.

    So where the normals with a weight span the space, v − center is bounded. Rounding leaves a small
    Σ y_i a_i = r, which adds |r||v − center| to the sum and is moved to the other side.
    """
    if normals.shape[1] <= ENCLOSURE.quick and _are_endless(normals):
        return None
    weights = _closing_weights(normals, offsets)
    if weights is None:
        return None
    used = weights >= 0.5
    if np.count_nonzero(used) <= normals.shape[1]:
        return None
    normals, offsets, weights = normals[used], offsets[used], weights[used]
    left = float(np.linalg.norm(normals.T @ weights)) + PRODUCT_ROUNDING * float(np.sum(weights))
    smallest = least_singular_value(normals)
    if smallest <= 0:
        return None
    share = float(np.sqrt(np.sum(1.0 / weights**2))) * left / smallest
    if share > ENCLOSURE.largest_share:
        return None
    total = float(weights @ offsets) + PRODUCT_ROUNDING * float(weights @ np.abs(offsets))
    lowest = offsets - max(total, 0.0) / weights
    extent = np.maximum(np.abs(offsets), np.abs(lowest))
    return float(np.linalg.norm(extent) / smallest / (1.0 - share))


def least_over(
    halves: HalfSpaces, slope: FloatArray, radius: float, directions: FloatArray | None = None
) -> float:
    """A number that slope·(v − center) does not fall below over the half-spaces, within the radius.

    With y >= 0 from a linear program and what it leaves, r = slope + Σ y_i a_i, which the ball bounds.
    """
    normals = halves.normals if directions is None else halves.normals @ directions
    wanted = slope if directions is None else directions.T @ slope
    lengths = np.linalg.norm(normals, axis=1)
    kept = (lengths > 0) & np.isfinite(halves.offsets)
    normals, offsets = normals[kept] / lengths[kept, None], halves.offsets[kept] / lengths[kept]
    size = max(float(np.max(np.abs(wanted), initial=0.0)), TINY)
    solution = scipy.optimize.linprog(
        wanted / size, normals, offsets, bounds=(None, None), method="highs"
    )
    weights = np.zeros(offsets.size)
    if solution.success:
        weights = size * np.maximum(-solution.ineqlin.marginals, 0.0)
    left = float(np.linalg.norm(wanted + normals.T @ weights))
    left += PRODUCT_ROUNDING * float(np.linalg.norm(wanted) + np.sum(weights))
    return -float(weights @ offsets) - left * radius


def _are_endless(normals: FloatArray) -> bool:
    """Whether there is a direction d in which no half-space ends: a_i·d <= 0 for all of them.

    The least |Σ (1 + c_i) a_i| over c >= 0 is 0, or what is left is −d (the conditions of optimality).
    """
    try:
        _, left = scipy.optimize.nnls(normals.T, -normals.sum(axis=0))
    except (RuntimeError, np.linalg.LinAlgError):  # out of iterations, or dependent columns
        return False
    return bool(left > ENCLOSURE.endless * normals.shape[0])


def _closing_weights(normals: FloatArray, offsets: FloatArray) -> FloatArray | None:
    """y = a + c >= 0 with Σ y_i a_i = 0 and as many a_i = 1 as there can be, at little y·b."""
    count = offsets.size
    price = np.maximum(offsets, 0.0) / max(float(np.max(np.abs(offsets))), TINY)
    price *= ENCLOSURE.far_price
    solution = scipy.optimize.linprog(
        np.concatenate([price - 1.0, price + ENCLOSURE.weight_price]),
        A_eq=_twice_by_columns(normals),
        b_eq=np.zeros(normals.shape[1]),
        bounds=np.repeat([[0.0, 1.0], [0.0, np.inf]], count, axis=0),
        method="highs",
        # presolve finds nothing here, and takes a third of the time
        options={
            "presolve": False,
            "time_limit": seconds_left(),
            "maxiter": ENCLOSURE.iterations * count,
        },
    )
    if not solution.success:
        return None
    weights = np.maximum(solution.x[:count], 0.0) + np.maximum(solution.x[count:], 0.0)
    return _closer(normals, weights)


def _twice_by_columns(normals: FloatArray) -> Any:
    """[Aᵀ, Aᵀ] as a sparse matrix: the rows of A are its columns."""
    count, size = normals.shape
    places = (normals != 0).reshape(-1).nonzero()[0]
    rows, columns = np.divmod(places, size)
    starts = rows.searchsorted(np.arange(count))
    indptr = np.concatenate([starts, starts + places.size, [2 * places.size]])
    parts = [np.concatenate([each, each]) for each in (normals.reshape(-1)[places], columns)]
    return scipy.sparse.csc_array((*parts, indptr), shape=(size, 2 * count))


def _closer(normals: FloatArray, weights: FloatArray) -> FloatArray:
    """The same weights with the rounding of the program's solver taken out of Σ y_i a_i = 0."""
    used = weights >= 0.5
    if not used.any():
        return weights
    own = normals[used]
    result = np.zeros_like(weights)
    result[used] = weights[used] - _least_squares(own, own.T @ weights[used])
    return result


def _least_squares(rows: FloatArray, target: FloatArray) -> FloatArray:
    """The shortest c with Σ c_i a_i = target; by squares, where these are accurate enough."""
    if rows.shape[1] > ENCLOSURE.few:
        factor, failed = scipy.linalg.lapack.dpotrf(rows.T @ rows, lower=1)
        diagonal = np.abs(np.diag(factor))
        if not failed and diagonal.min() > ENCLOSURE.far_from_singular * diagonal.max():
            return np.asarray(rows @ scipy.linalg.lapack.dpotrs(factor, target, lower=1)[0])
    return np.asarray(np.linalg.lstsq(rows.T, target, rcond=DATA_ROUNDING)[0])


def least_singular_value(matrix: FloatArray) -> float:
    """A number that the smallest singular value of a tall matrix does not fall below.

    Of many columns it is the root of the least eigenvalue of the squares, where rounding takes little off
    that: this takes a third of the time.
    """
    rows, columns = matrix.shape
    if columns > ENCLOSURE.few:
        squares = matrix.T @ matrix
        value = float(np.linalg.eigvalsh(squares)[0])
        least = value - PRODUCT_ROUNDING * (rows + columns) * float(np.trace(squares))
        if least > 0.5 * value:
            return float(np.sqrt(least))
    values = np.linalg.svd(matrix, compute_uv=False)
    return float(values[-1] - PRODUCT_ROUNDING * columns * values[0])
