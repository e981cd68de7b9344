"""The program as the method sees it: free variables, scaled rows, one matrix of exponents.

- Variables whose bounds coincide are substituted.
- Plain terms that have weight 0 in every row are left out.
- A group with one term is affine, and becomes part of the affine matrix.
- Rows that are a constant, not above 0, are left out.
- Equalities that depend on others are left out, where that is affordable to find out.
- Two affine rows that are opposite, a·u <= b and a·u >= b, become one equality.
- The terms of the logarithms come first, those of the plain sums behind them, in one matrix E.
- Rows without a logarithm are scaled to an affine part of size 1.
- Dense matrices become arrays, sparse ones csr_array; small ones are arrays in any case.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
import scipy.sparse as sparse
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace
from hcmodel.solvers.algebra.storage import by_rows
from hcmodel.solvers.numerics import (
    DATA_ROUNDING,
    INFINITE,
    OPERATION_ROUNDING,
    PRODUCT_ROUNDING,
)
from hcmodel.solvers.second_order.interior_point.convex_program import (
    FloatArray,
    IndexArray,
    Matrix,
    SmoothConvexProgram,
    SmoothFunctions,
)

# Arrays up to this many entries, whatever their density (a product with a sparse matrix costs several
# microseconds before it starts), and above a quarter of nonzeros.
SMALL = 3000
DENSE = 0.25
# Operations that are spent on finding dependent equalities: 0.1 s.
DEPENDENCE_WORK = 1e9
# Rows whose slopes are within this factor of 1 stay as they are: an order of magnitude (ablation:
# with 1 400 gates are solved to reduced accuracy, half and double take 1 % more or less).
UNSCALED = 10.0


@dataclass(frozen=True)
class StandardForm:
    """The index 0 of rows is the objective."""

    exponents: Matrix  # E, K × n
    offsets: FloatArray  # b
    starts: IndexArray  # the first term of each group of the logarithms
    groups: IndexArray  # the group of each of the first K_L terms
    group_rows: IndexArray  # the row of each group
    weights: Matrix | None  # W, (m + 1) × K_P, scaled; None if there are no plain sums
    affine: Matrix  # C, scaled
    constants: FloatArray  # c, scaled
    equality: Matrix
    equality_bound: FloatArray
    lower: FloatArray  # of the free variables
    upper: FloatArray
    lower_index: IndexArray  # the free variables with a finite lower bound
    upper_index: IndexArray
    smooth: tuple[SmoothFunctions, ...]
    scale: FloatArray  # of the rows: scaled row = scale × row
    row_index: IndexArray  # the number of each row in the program
    plain_index: IndexArray  # the plain terms that a row has, by their number in the program
    equality_index: IndexArray  # the number of each equality among opposite rows and the program's
    equality_count: int  # of opposite rows and the program's equalities together
    opposite: tuple[IndexArray, IndexArray]  # rows of the program that became the first equalities
    opposite_ratio: FloatArray  # first row = −ratio × second row
    free: IndexArray  # the variables that are not fixed
    fixed_point: FloatArray  # all variables, those that are fixed at their value, the others 0

    @property
    def size(self) -> int:
        return self.free.size

    @property
    def rows(self) -> int:
        return self.constants.size - 1

    @property
    def log_terms(self) -> int:
        return self.groups.size

    def whole(self, u: FloatArray) -> FloatArray:
        """All variables from the free ones."""
        point = self.fixed_point.copy()
        point[self.free] = u
        return point


def standard_form(program: SmoothConvexProgram) -> StandardForm:
    lower = np.where(program.lower > -INFINITE, program.lower, -np.inf)
    upper = np.where(program.upper < INFINITE, program.upper, np.inf)
    reach = OPERATION_ROUNDING * np.maximum(1.0, np.abs(np.where(np.isinf(lower), 0.0, lower)))
    is_fixed = upper - lower <= 4 * reach
    free = np.flatnonzero(~is_fixed)
    fixed_point = (
        np.where(is_fixed, 0.5 * (lower + upper), 0.0) if is_fixed.any() else np.zeros(lower.size)
    )
    parts = _terms(program)
    columns = None if free.size == lower.size else free
    affine, constants = _restricted(parts.affine, parts.constants, columns, fixed_point)
    exponents, offsets = _restricted(parts.exponents, parts.offsets, columns, fixed_point)
    curved = _curved_rows(program, parts)
    first, second, ratio = _opposite_rows(affine, constants, curved)
    equalities = [_rows(affine, first)] if first.size else []
    bounds = [-constants[first]]
    if program.equality is not None:
        assert program.equality_bound is not None
        given, shift = _restricted(
            program.equality, np.zeros(len(program.equality_bound)), columns, fixed_point
        )
        equalities.append(given)
        bounds.append(np.asarray(program.equality_bound, dtype=float) - shift)
    equality, bound = _stacked(equalities, free.size), np.concatenate(bounds)
    independent = _independent_rows(equality, bound)
    kept = np.ones(constants.size, dtype=bool)
    kept[first] = kept[second] = False
    kept[~curved & (_largest_by_row(affine) == 0) & (constants <= 0)] = False
    row_index = np.flatnonzero(kept)
    number = np.cumsum(kept) - 1
    weights = parts.weights
    if row_index.size < constants.size:
        affine, constants = _rows(affine, kept), constants[kept]
        weights = None if weights is None else _rows(weights, kept)
    form = StandardForm(
        exponents=_stored(exponents),
        offsets=offsets,
        starts=parts.starts,
        groups=parts.groups,
        group_rows=number[parts.group_rows],
        weights=None if weights is None else _stored(weights),
        affine=_stored(affine),
        constants=constants,
        equality=_stored(equality if independent is None else _rows(equality, independent)),
        equality_bound=bound if independent is None else bound[independent],
        equality_index=np.arange(bound.size) if independent is None else independent,
        equality_count=bound.size,
        lower=lower[free],
        upper=upper[free],
        lower_index=np.flatnonzero(np.isfinite(lower[free])),
        upper_index=np.flatnonzero(np.isfinite(upper[free])),
        smooth=tuple(program.smooth),
        scale=np.ones(len(constants)),
        row_index=row_index,
        plain_index=parts.plain_index,
        opposite=(first, second),
        opposite_ratio=ratio,
        free=free,
        fixed_point=fixed_point,
    )
    return _scaled(form)


def _scaled(form: StandardForm) -> StandardForm:
    """Rows without a logarithm or a smooth part divided by the size of their affine part.

    Where such a row is active, its exponentials are as large as its affine part.
    """
    size = np.maximum(_largest_by_row(form.affine), np.abs(form.constants))
    scale = np.where((size > 0) & np.isfinite(size), 1.0 / np.where(size > 0, size, 1.0), 1.0)
    scale[form.group_rows] = 1.0
    scale[0] = 1.0  # the objective has a weight
    for part in form.smooth:
        scale[np.isin(form.row_index, part.rows)] = 1.0
    scale[(scale > 1.0 / UNSCALED) & (scale < UNSCALED)] = 1.0
    if np.all(scale == 1.0):
        return form
    return replace(
        form,
        scale=scale,
        constants=scale * form.constants,
        affine=_times_rows(scale, form.affine),
        weights=None if form.weights is None else _times_rows(scale, form.weights),
    )


def _largest_by_row(matrix: Matrix) -> FloatArray:
    if not sparse.issparse(matrix):
        return np.asarray(np.max(np.abs(matrix), axis=1, initial=0.0))
    return _reduced_by_row(np.maximum, by_rows(matrix), np.abs)


def _reduced_by_row(operation: np.ufunc, matrix: Any, of: np.ufunc) -> FloatArray:
    """The entries of each row, or what a function makes of them, taken together; 0 without any."""
    found = np.zeros(matrix.shape[0])
    full = np.flatnonzero(np.diff(matrix.indptr))
    if full.size:
        found[full] = operation.reduceat(of(matrix.data), matrix.indptr[full])
    return found


def _times_rows(scale: FloatArray, matrix: Matrix) -> Matrix:
    if sparse.issparse(matrix):
        rows = sparse.csr_array(matrix)
        data = rows.data * np.repeat(scale, np.diff(rows.indptr))
        return sparse.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)
    return scale[:, None] * matrix


def _curved_rows(program: SmoothConvexProgram, parts: _Terms) -> NDArray[np.bool_]:
    """The rows that are not affine, and the objective."""
    curved = np.zeros(parts.constants.size, dtype=bool)
    curved[0] = True
    curved[parts.group_rows] = True
    if parts.weights is not None:
        curved |= np.asarray(abs(parts.weights).sum(axis=1)).ravel() > 0
    for smooth in program.smooth:
        curved[smooth.rows] = True
    return curved


def _opposite_rows(
    affine: Matrix, constants: FloatArray, curved: NDArray[np.bool_]
) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Pairs of affine rows with a_i u + c_i = −ratio (a_j u + c_j), found by two random projections."""
    candidates = np.flatnonzero(~curved)
    none = np.zeros(0, dtype=np.intp)
    if candidates.size < 2:
        return none, none, np.zeros(0)
    rows = _rows(affine, candidates)
    if sparse.issparse(rows):
        norms = np.sqrt(_reduced_by_row(np.add, rows, np.square))
    else:
        norms = np.sqrt((rows * rows).sum(axis=1))
    used = norms > 0
    if not used.all():
        candidates, norms = candidates[used], norms[used]
        rows = _rows(rows, np.flatnonzero(used))
    projections = np.random.default_rng(0).normal(size=(rows.shape[1], 2))
    keys = np.column_stack([rows @ projections, constants[candidates]]) / norms[:, None]
    sign = np.where(keys[:, 0] < 0, -1.0, 1.0)
    keys *= sign[:, None]
    order = np.lexsort((sign, np.round(keys[:, 2], 9), np.round(keys[:, 0], 9)))
    ahead, behind = order[:-1], order[1:]
    size = 1.0 + np.abs(keys[ahead])
    close = np.all(np.abs(keys[ahead] - keys[behind]) <= DATA_ROUNDING * size, axis=1)
    match = close & (sign[ahead] != sign[behind])
    match[1:] &= ~match[:-1]  # a row belongs to one pair
    first, second = ahead[match], behind[match]
    return candidates[first], candidates[second], norms[first] / norms[second]


def _independent_rows(equality: Matrix, bound: FloatArray) -> IndexArray | None:
    """A largest set of independent equalities, in order; None for all of them.

    All are kept if there are too many, or if they contradict each other: the multipliers then prove it.
    """
    rows, columns = equality.shape
    if rows < 2 or rows**2 * columns > DEPENDENCE_WORK:
        return None
    matrix = equality.toarray() if sparse.issparse(equality) else np.asarray(equality, dtype=float)
    scale = np.max(np.abs(matrix), axis=1, initial=0.0)
    scaled = matrix / np.where(scale > 0, scale, 1.0)[:, None]
    _, r, order = scipy.linalg.qr(scaled.T, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(r))
    rank = int(np.sum(diagonal > rows * PRODUCT_ROUNDING * diagonal.max(initial=0.0)))
    if rank == rows:
        return None
    right = (bound / np.where(scale > 0, scale, 1.0))[order]
    point = scipy.linalg.solve_triangular(r[:rank, :rank], right[:rank], trans=1)
    rest = right[rank:] - r[:rank, rank:].T @ point
    if np.max(np.abs(rest), initial=0.0) > DATA_ROUNDING * (1 + np.max(np.abs(right))):
        return None
    return np.sort(order[:rank])


@dataclass(frozen=True)
class _Terms:
    exponents: Matrix
    offsets: FloatArray
    starts: IndexArray
    groups: IndexArray
    group_rows: IndexArray
    weights: Matrix | None
    affine: Matrix
    constants: FloatArray
    plain_index: IndexArray


def _terms(program: SmoothConvexProgram) -> _Terms:
    """One matrix of exponents: groups with several terms, then plain terms; the rest is affine."""
    affine, constants = program.affine, np.array(program.constants, dtype=float)
    size = program.dimension
    none = np.zeros(0, dtype=np.intp)
    groups, rows, starts = none, none, none
    parts: list[Matrix] = []
    offsets: list[FloatArray] = []
    if program.log_sums is not None:
        logs = program.log_sums
        counts = np.bincount(logs.groups, minlength=len(logs.rows))
        single = counts[logs.groups] == 1
        exponents, shift = logs.exponents, np.asarray(logs.offsets, dtype=float)
        groups, rows = np.asarray(logs.groups), np.asarray(logs.rows)
        if single.any():
            affine, constants = _with_monomials(
                affine, constants, exponents, shift, rows[groups], single
            )
            several = ~single
            exponents, shift = _rows(exponents, several), shift[several]
            renumbered = np.cumsum(counts > 1) - 1
            groups, rows = renumbered[groups[several]], rows[counts > 1]
        starts = np.searchsorted(groups, np.arange(rows.size))
        parts.append(exponents)
        offsets.append(shift)
    weights = None
    plain_index = none
    if program.sums is not None and len(program.sums.offsets):
        sums = program.sums
        total = np.asarray(abs(sums.weights).sum(axis=0)).ravel()
        plain_index = np.flatnonzero(total > 0)  # a term that no row has would be 0/0
        weights, plain, shift = sums.weights, sums.exponents, np.asarray(sums.offsets, dtype=float)
        if plain_index.size < total.size:
            weights = sparse.csc_array(weights)[:, plain_index]
            plain, shift = _rows(plain, plain_index), shift[plain_index]
        parts.append(plain)
        offsets.append(shift)
        weights = weights if plain_index.size else None
    return _Terms(
        _stacked(parts, size),
        np.concatenate(offsets) if offsets else np.zeros(0),
        starts,
        groups,
        rows,
        weights,
        affine,
        constants,
        plain_index,
    )


def _with_monomials(
    affine: Matrix,
    constants: FloatArray,
    exponents: Matrix,
    offsets: FloatArray,
    rows: IndexArray,
    single: NDArray[np.bool_],
) -> tuple[Matrix, FloatArray]:
    """The affine part with the logarithms of the terms that are alone in their group."""
    chosen = rows[single]
    np.add.at(constants, chosen, offsets[single])
    more = _rows(exponents, single)
    if sparse.issparse(more) or sparse.issparse(affine):
        place = sparse.csr_array(
            (np.ones(chosen.size), (chosen, np.arange(chosen.size))),
            shape=(constants.size, chosen.size),
        )
        return sparse.csr_array(affine) + place @ sparse.csr_array(more), constants
    total = np.array(affine, dtype=float)
    np.add.at(total, chosen, more)
    return total, constants


def _rows(matrix: Matrix, chosen: NDArray[Any]) -> Matrix:
    return sparse.csr_array(matrix)[chosen] if sparse.issparse(matrix) else matrix[chosen]


def _stacked(parts: list[Matrix], size: int) -> Matrix:
    if not parts:
        return np.zeros((0, size))
    if len(parts) == 1:
        return parts[0]
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack([sparse.csr_array(part) for part in parts], format="csr")
    return np.vstack(parts)


def _restricted(
    matrix: Matrix, shift: FloatArray, columns: IndexArray | None, fixed_point: FloatArray
) -> tuple[Matrix, FloatArray]:
    """The columns of the free variables, and the shift with the fixed ones."""
    if columns is None:
        return matrix, np.asarray(shift, dtype=float)
    moved = np.asarray(shift + matrix @ fixed_point, dtype=float)
    if sparse.issparse(matrix):
        return sparse.csc_array(matrix)[:, columns], moved
    return matrix[:, columns], moved


def _stored(matrix: Matrix) -> Matrix:
    rows, columns = matrix.shape
    if sparse.issparse(matrix):
        if rows * columns > SMALL and matrix.nnz < DENSE * rows * columns:
            kept = by_rows(matrix)
            if kept.dtype != float or not kept.has_canonical_format:
                kept = kept.astype(float)  # a copy
                kept.sum_duplicates()
            return kept
        return matrix.toarray().astype(float)
    whole = np.asarray(matrix, dtype=float)
    if whole.size > SMALL and np.count_nonzero(whole) < DENSE * whole.size:
        return sparse.csr_array(whole)
    return whole
