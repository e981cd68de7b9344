"""Ranges of unknowns that a sum of squares in the objective holds, and those that rows tie to them.

    Σ_j ½ p_j x_j² + qᵀx + c <= level   bounds every x_j with p_j > 0, where the other terms are bounded;
    E y = b − F x − s                   bounds |y| by |b − F x − s| / σ, σ the least singular value of E;
    (E y + e)_ik² <= S_ii S_kk          bounds |y| where S_kk has a range and S_ii is affine in y.

Least squares without bounds are programs of the first kind: min ½ rᵀP r, r = A x − b. The last kind is
that of a gain in a bounded real lemma, whose level bounds S_kk. Ends are widened by rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import CONE_DUALITY
from hcmodel.solvers.numerics import DATA_ROUNDING

if TYPE_CHECKING:
    from hcmodel.certify.duals.cone_ranges import ConePlaces, Range
    from hcmodel.solvers.qp.cone_program import ConeProgram

FloatArray = NDArray[np.float64]
Places = NDArray[np.intp]


def by_squares(program: ConeProgram, level: float, x: Range) -> Range:
    """Ranges of the unknowns that the objective squares; as they were where other terms are unbounded.

    Only for objectives whose matrix is diagonal.
    """
    weights, linear = program.quadratic.diagonal(), program.linear
    squared = weights > 0
    if program.constant is None or program.quadratic.nnz > np.count_nonzero(weights):
        return x
    others = np.flatnonzero(~squared & (linear != 0))
    least = (linear * np.where(linear > 0, x.lower, x.upper))[others]
    if not squared.any() or not np.isfinite(least).all():
        return x
    p, q = weights[squared], linear[squared]
    completed = q**2 / (2.0 * p)
    sizes = abs(level) + abs(program.constant) + np.abs(least).sum() + completed.sum()
    total = level - program.constant - least.sum() + completed.sum() + DATA_ROUNDING * sizes
    reach = np.sqrt(2.0 * max(float(total), 0.0) / p) * (1.0 + DATA_ROUNDING)
    middle = -q / p
    wide = reach + DATA_ROUNDING * np.abs(middle)
    lower, upper = np.full((2, linear.size), np.nan)
    lower[squared], upper[squared] = middle - wide, middle + wide
    return x.cut(lower, upper)


def by_equations(program: ConeProgram, s: Range, x: Range) -> Range:
    """Ranges of the unknowns without one, where rows determine them by unknowns with ranges.

    Such rows are equations, and those A x + s = b whose s has a range: entries of a semidefinite matrix
    that is bounded, as Y in a regulator with a full matrix of weights.
    """
    reach = np.maximum(np.abs(x.lower), np.abs(x.upper))
    slack = np.maximum(np.abs(s.lower), np.abs(s.upper))[: program.offset.size]
    rows, columns, values = program.matrix.indices, program.columns, program.matrix.data
    endless = ~np.isfinite(reach)
    own = np.isfinite(slack)[rows] & endless[columns]
    free, (used, places) = np.flatnonzero(endless), np.unique(rows[own], return_inverse=True)
    if free.size > used.size or used.size * free.size > CONE_DUALITY.largest_equations:
        return x
    dense = np.zeros((used.size, free.size))
    dense[places, np.searchsorted(free, columns[own])] = values[own]
    least = _least_singular_value(dense)
    if not least > 0:
        return x
    known = np.where(endless, 0.0, reach)  # those of `free` are on the other side
    sums = np.bincount(rows, np.abs(values) * known[columns], minlength=slack.size)
    terms = (np.abs(program.offset) + slack + sums)[used]
    return _within(
        x, free, float(np.linalg.norm(terms)) / least * (1.0 + DATA_ROUNDING * used.size)
    )


def by_matrices(program: ConeProgram, places: ConePlaces, s: Range, x: Range) -> Range:
    """Ranges of the unknowns without one, by entries of semidefinite matrices that they are in.

    The sum of S_ik² <= S_ii S_kk over the entries with a range of S_kk and none of S_ii is

        (σ t − |e|)² <= Δ + β t,   t = |y|,   the S_ii being affine in y.
    """
    ends = np.stack([places.rows, places.columns])
    held = np.isfinite(s.upper[ends])
    mixed = held[0] != held[1]
    if not mixed.any():
        return x
    entries = places.crossed[mixed]
    closed = np.where(held[0], *ends)[mixed]
    opened = np.where(held[0], *ends[::-1])[mixed]
    reach = np.maximum(np.abs(x.lower), np.abs(x.upper))
    endless = ~np.isfinite(reach)
    matrix = program.sparse.tocsr()
    near = matrix[np.union1d(entries, opened)].indices
    free = np.unique(near[endless[near]])
    if free.size > entries.size or entries.size * free.size > CONE_DUALITY.largest_equations:
        return x
    least = _least_singular_value(matrix[entries][:, free].toarray())
    if not least > 0:
        return x
    known = np.abs(program.offset) + abs(matrix) @ np.where(endless, 0.0, reach)
    weights = 2.0 * s.upper[closed]  # entries beside the diagonal are stored times √2
    rest = float(np.linalg.norm(known[entries]))
    fixed = float(weights @ known[opened])
    slope = float(np.linalg.norm(abs(matrix[opened][:, free]).T @ weights))
    half = least * rest + slope / 2.0
    radius = (half + float(np.sqrt(half**2 + least**2 * fixed))) / least**2
    return _within(x, free, radius * (1.0 + DATA_ROUNDING * (entries.size + matrix.shape[1])))


def _least_singular_value(dense: FloatArray) -> float:
    """A bound of it from below; 0 where none is known."""
    eigenvalues = np.linalg.eigvalsh(dense.T @ dense)
    size = dense.shape[1]
    least = eigenvalues[0] - DATA_ROUNDING * size * np.abs(eigenvalues).max(initial=0.0)
    return float(np.sqrt(max(least, 0.0)))


def _within(x: Range, free: Places, radius: float) -> Range:
    lower, upper = np.full((2, x.lower.size), np.nan)
    lower[free], upper[free] = -radius, radius
    return x.cut(lower, upper)
