"""Sets V that contain the image U of the variables' domain, and how low a slope can go over them.

A linear minorant of the Lagrangian with slope s at ũ bounds the minimum by the least value of
s·(v − ũ) over V. Where V is unbounded, only what is known to hold the solution counts: a ball, found
from the linear minorants themselves, since every feasible v of value at most f̂ satisfies

    F1(p) + ∇F1(p)·(v − p) <= f̂,    L(p) + ∇L(p)·(v − p) <= f̂,    g(p) + ∇g(p)·(v − p) <= 0

for every p. Bounds come from weak duality with the rounding error in it, not from a solver's word.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.solvers.sets.bounded_matrices import BoundedMatrices
from hcmodel.solvers.sets.bounded_simplices import BoundedSimplices
from hcmodel.solvers.sets.cones import Simplices, SymmetricMatrices, to_matrix, triangle
from hcmodel.solvers.sets.domain import Box, Domain, Product

FloatArray = NDArray[np.float64]

# Half-spaces and unknowns beyond which the search for a ball is left out.
LARGEST_SEARCH = 2000
# Distances, in units of the point's size, up to which half-spaces are tried, one after the other.
DISTANCES = (10.0, 1e3, 1e6, np.inf)
# What rounding may contribute to a length before the ball counts as not found.
LARGEST_SHARE = 0.5
ROUNDING = 1e-14


def least(domain: Domain, slope: FloatArray, center: FloatArray, reach: float = np.inf) -> float:
    """A number that slope·(v − center) does not fall below for v in the domain, |v − center| <= reach."""
    if isinstance(domain, Product):
        total, start = 0.0, 0
        for factor in domain.factors:
            own = slice(start, start + factor.dimension)
            total += least(factor, slope[own], center[own], reach)
            start = own.stop
        return total
    if isinstance(domain, Box):
        return _over_sides(slope, domain.lower - center, domain.upper - center, reach)
    if isinstance(domain, SymmetricMatrices):
        values, vectors = np.linalg.eigh(to_matrix(slope))
        own = np.einsum("ki,kl,li->i", vectors, to_matrix(center), vectors)
        return _over_sides(values, domain.smallest - own, domain.largest - own, reach)
    if isinstance(domain, BoundedMatrices) and np.isinf(domain.matrices.largest):
        return max(
            least(domain.matrices, slope, center, reach),
            least(domain.entries, slope, center, reach),
        )
    return -domain.support(-slope) - float(slope @ center)


def _over_sides(slope: FloatArray, below: FloatArray, above: FloatArray, reach: float) -> float:
    """The least slope·d over below <= d <= above, |d| <= reach."""
    side = np.where(slope > 0, below, above)
    far = (np.abs(side) >= reach) & (slope != 0)
    near = (slope != 0) & ~far
    total = float(slope[near] @ side[near])
    if far.any():
        total -= float(np.linalg.norm(slope[far])) * reach
    return total


def entry_bounds(domain: Domain) -> tuple[FloatArray, FloatArray]:
    """Bounds of the single entries over a domain."""
    if isinstance(domain, Product):
        pairs = [entry_bounds(factor) for factor in domain.factors]
        return np.concatenate([low for low, _ in pairs]), np.concatenate([up for _, up in pairs])
    if isinstance(domain, Box):
        return domain.lower, domain.upper
    if isinstance(domain, Simplices):
        return np.zeros(domain.dimension), np.ones(domain.dimension)
    if isinstance(domain, BoundedSimplices):
        return np.maximum(domain.lower, 0.0), np.minimum(domain.upper, 1.0)
    if isinstance(domain, BoundedMatrices):
        (low, high), box = entry_bounds(domain.matrices), domain.entries
        return np.maximum(low, box.lower), np.minimum(high, box.upper)
    if isinstance(domain, SymmetricMatrices):
        rows, columns = triangle(domain.order)
        # |P_ij| is at most half the spread of the eigenvalues, and √2 P_ij is what is stored
        spread = (domain.largest - domain.smallest) / np.sqrt(2.0)
        on = rows == columns
        return np.where(on, domain.smallest, -spread), np.where(on, domain.largest, spread)
    free = np.full(domain.dimension, np.inf)
    return -free, free


@dataclass(frozen=True)
class HalfSpaces:
    """normals @ (v − center) <= offsets."""

    normals: FloatArray
    offsets: FloatArray

    @staticmethod
    def joined(parts: list[HalfSpaces]) -> HalfSpaces:
        return HalfSpaces(
            np.vstack([part.normals for part in parts]),
            np.concatenate([part.offsets for part in parts]),
        )


def sides(domain: Domain, center: FloatArray) -> HalfSpaces:
    """Half-spaces that contain the domain."""
    lower, upper = entry_bounds(domain)
    identity = np.eye(domain.dimension)
    above, below = np.isfinite(upper), np.isfinite(lower)
    parts = [
        HalfSpaces(identity[above], (upper - center)[above]),
        HalfSpaces(-identity[below], (center - lower)[below]),
    ]
    start = 0
    for factor in domain.factors if isinstance(domain, Product) else (domain,):
        own = slice(start, start + factor.dimension)
        matrices = factor.matrices if isinstance(factor, BoundedMatrices) else factor
        if isinstance(matrices, SymmetricMatrices) and np.isfinite(matrices.smallest):
            parts.append(_minors(matrices, center[own], own, domain.dimension))
        start = own.stop
    return HalfSpaces.joined(parts)


def _minors(
    matrices: SymmetricMatrices, center: FloatArray, own: slice, dimension: int
) -> HalfSpaces:
    """±2 P_ij <= (P_ii − δ) + (P_jj − δ) for matrices P ⪰ δ I."""
    rows, columns = triangle(matrices.order)
    diagonal = np.flatnonzero(rows == columns)
    normals, offsets = [], []
    for place in np.flatnonzero(rows != columns):
        ends = own.start + diagonal[[rows[place], columns[place]]]
        for sign in (1.0, -1.0):
            normal = np.zeros(dimension)
            normal[own.start + place] = sign * np.sqrt(2.0)
            normal[ends] = -1.0
            normals.append(normal)
            offsets.append(-2.0 * matrices.smallest - float(normal[own] @ center))
    return HalfSpaces(np.array(normals).reshape(-1, dimension), np.array(offsets))


def ball(halves: HalfSpaces, unit: float, directions: FloatArray | None = None) -> float | None:
    """A radius around the center that holds all v of the half-spaces; None where none is found.

    `directions` are orthonormal columns along which v − center extends, all of them by default. The
    nearest half-spaces, in multiples of `unit`, are tried first: far ones only widen the ball.
    """
    normals = halves.normals if directions is None else halves.normals @ directions
    lengths = np.linalg.norm(normals, axis=1)
    kept = (lengths > 0) & np.isfinite(lengths) & np.isfinite(halves.offsets)
    if max(normals.shape) > LARGEST_SEARCH:
        return None
    normals, offsets = normals[kept] / lengths[kept, None], halves.offsets[kept] / lengths[kept]
    tried = 0
    for multiple in DISTANCES:
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
    weights = _closing_weights(normals, offsets)
    if weights is None:
        return None
    used = weights >= 0.5
    if np.count_nonzero(used) <= normals.shape[1]:
        return None
    normals, offsets, weights = normals[used], offsets[used], weights[used]
    left = float(np.linalg.norm(normals.T @ weights)) + ROUNDING * float(np.sum(weights))
    smallest = float(np.linalg.svd(normals, compute_uv=False)[-1]) - ROUNDING * offsets.size
    if smallest <= 0:
        return None
    share = float(np.sqrt(np.sum(1.0 / weights**2))) * left / smallest
    if share > LARGEST_SHARE:
        return None
    total = float(weights @ offsets) + ROUNDING * float(weights @ np.abs(offsets))
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
    size = max(float(np.max(np.abs(wanted), initial=0.0)), 1e-300)
    solution = scipy.optimize.linprog(
        wanted / size, normals, offsets, bounds=(None, None), method="highs"
    )
    weights = np.zeros(offsets.size)
    if solution.success:
        weights = size * np.maximum(-solution.ineqlin.marginals, 0.0)
    left = float(np.linalg.norm(wanted + normals.T @ weights))
    left += ROUNDING * float(np.linalg.norm(wanted) + np.sum(weights))
    return -float(weights @ offsets) - left * radius


def _closing_weights(normals: FloatArray, offsets: FloatArray) -> FloatArray | None:
    """y = a + c >= 0 with Σ y_i a_i = 0 and as many a_i = 1 as there can be, at little y·b."""
    count = offsets.size
    price = np.maximum(offsets, 0.0) / max(float(np.max(np.abs(offsets))), 1e-300)
    solution = scipy.optimize.linprog(
        np.concatenate([-np.ones(count) + 1e-3 * price, 1e-3 * price + 1e-6]),
        A_eq=scipy.sparse.csr_array(np.hstack([normals.T, normals.T])),
        b_eq=np.zeros(normals.shape[1]),
        bounds=[(0.0, 1.0)] * count + [(0.0, None)] * count,
        method="highs",
    )
    if not solution.success:
        return None
    weights = np.maximum(solution.x[:count], 0.0) + np.maximum(solution.x[count:], 0.0)
    return _closer(normals, weights)


def _closer(normals: FloatArray, weights: FloatArray) -> FloatArray:
    """The same weights with the rounding of the program's solver taken out of Σ y_i a_i = 0."""
    used = weights >= 0.5
    if not used.any():
        return weights
    correction = np.linalg.lstsq(normals[used].T, normals[used].T @ weights[used], rcond=1e-12)[0]
    result = np.zeros_like(weights)
    result[used] = weights[used] - correction
    return result
