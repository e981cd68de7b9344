"""Duals of a cone program that satisfy some equations exactly, although known only up to rounding.

An unknown x_j without any range has to have the residual r_j = 0 in the bound of `cone_duality`, and in
floating point it has not. With as many entries of z as there are such unknowns, the equations

    A_BJᵀ δ = −r_J

have an exact solution δ, and an approximate inverse R of the matrix M = A_BJᵀ bounds it:
|δ| <= |R| |r_J| + γ/(1 − γ) ‖|R| |r_J|‖ with γ = ‖I − R M‖ < 1, norms of the largest entry (Rump 2010,
*Verification methods*, Acta Numerica 19).
Where z is farther inside the dual cone than that, z + δ is in it. Only the size of δ is needed.

Where weights have to be exactly 0, or the equations depend on each other, there is no such inside. Then
the weights in these equations may be simple fractions, as they are in models with small exponents;
whether they fit is computed with fractions.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import CONE_DUALITY
from hcmodel.certify.duals.cone_ranges import ConePlaces
from hcmodel.records import dataclass
from hcmodel.solvers.algebra.groups import joined
from hcmodel.solvers.algebra.symmetric import is_surely_semidefinite, to_matrix
from hcmodel.solvers.numerics import OPERATION_ROUNDING, PRODUCT_ROUNDING, SUM_ROUNDING
from hcmodel.solvers.qp.cone_program import ConeProgram

FloatArray = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True)
class Shift:
    """Entries of z that move, and by how much at most."""

    rows: Places
    sizes: FloatArray


def exact_shift(
    matrix: scipy.sparse.csc_array,
    places: ConePlaces,
    z: FloatArray,
    columns: Places,
    residual: FloatArray,
    others: Places | None = None,
) -> Shift | None:
    """The shift of z after which the residuals of these columns are 0; None where none is shown.

    `residual` bounds what they are, rounding included. Columns that share no row are treated apart, and
    equations are left out where the other rows do: those of a matrix inequality hold an unknown each.
    Rows of `others`, columns that have no residual and must not get one, stay where they are.
    """
    margins = _margins(places, z)
    free, movable = np.zeros(z.size, dtype=bool), np.ones(z.size, dtype=bool)
    free[places.zero] = True
    if others is not None:
        movable[_Entries.of(matrix, others).rows] = False
    entries = _Entries.of(matrix, columns)
    for kept in (movable & ~free & (margins > 0.0), movable):
        if columns.size > np.count_nonzero(kept):
            continue
        own = entries.chosen(kept[entries.rows])
        shift = _shift_by_parts(own, columns.size, margins, residual)
        if shift is not None and _stays_inside(places, z, shift):
            return shift
    return None


@dataclass(frozen=True)
class _Entries:
    """Entries of some columns that are not 0, the columns numbered from 0 on.

    Matrices of scipy take longer to make than the shift of a small program does.
    """

    rows: Places
    columns: Places
    values: FloatArray

    @staticmethod
    def of(matrix: scipy.sparse.csc_array, columns: Places) -> _Entries:
        starts = matrix.indptr[columns]
        counts = matrix.indptr[columns + 1] - starts
        ends = counts.cumsum()
        own = np.arange(counts.sum()) + (starts - ends + counts).repeat(counts)
        found = _Entries(
            matrix.indices[own], np.arange(columns.size).repeat(counts), matrix.data[own]
        )
        return found.chosen(found.values != 0.0)

    def chosen(self, kept: NDArray[Any]) -> _Entries:
        return _Entries(self.rows[kept], self.columns[kept], self.values[kept])

    def block(self, members: Places) -> tuple[Places, FloatArray]:
        """The rows of some columns, and the matrix of these."""
        places = np.full(int(self.columns.max(initial=0)) + 1, -1)
        places[members] = np.arange(members.size)
        own = self.chosen(places[self.columns] >= 0)
        touched, row = np.unique(own.rows, return_inverse=True)
        found = np.zeros((touched.size, members.size))
        np.add.at(found, (row, places[own.columns]), own.values)
        return touched, found


def _shift_by_parts(
    own: _Entries, width: int, margins: FloatArray, residual: FloatArray
) -> Shift | None:
    """The shift, part by part of the columns that hang together."""
    if (np.bincount(own.columns, minlength=width) == 0).any():
        return None
    parts = joined(own.columns, own.rows, width, margins.size)
    sizes = np.bincount(parts, minlength=width)
    if int(sizes.max(initial=0)) > CONE_DUALITY.most_exact:
        return None
    rows, moves = _shift_of_singles(own.chosen(sizes[parts[own.columns]] == 1), margins, residual)
    found, moved = [rows], [moves]
    for part in np.flatnonzero(sizes > 1):
        members = np.flatnonzero(parts == part)
        touched, block = own.block(members)
        shift = _shift(block, margins[touched], residual[members])
        if shift is None:
            return None
        found.append(touched[shift.rows])
        moved.append(shift.sizes)
    return Shift(np.concatenate(found), np.concatenate(moved))


def _shift_of_singles(
    own: _Entries, margins: FloatArray, residual: FloatArray
) -> tuple[Places, FloatArray]:
    """For columns that share no row: the row that is farthest inside, and how far it moves."""
    order = np.lexsort((-margins[own.rows] * np.abs(own.values), own.columns))
    chosen = order[np.unique(own.columns[order], return_index=True)[1]]
    sizes = residual[own.columns[chosen]]
    moves = sizes / np.abs(own.values[chosen]) * (1.0 + PRODUCT_ROUNDING)
    return own.rows[chosen], moves


def _shift(own: FloatArray, margins: FloatArray, residual: FloatArray) -> Shift | None:
    """The shift for columns that hang together, by an approximate inverse."""
    size = own.shape[1]
    if size > own.shape[0]:
        return None
    # rows that are far inside first: pivots of M with its columns weighed by the margins
    rows = scipy.linalg.qr((own * margins[:, None]).T, mode="r", pivoting=True)[1]
    rows = np.sort(rows[:size])
    square = own[rows].T
    try:
        inverse = np.linalg.inv(square)
    except np.linalg.LinAlgError:
        return None
    rounding = SUM_ROUNDING + OPERATION_ROUNDING * size
    rest = np.abs(np.eye(size) - inverse @ square)
    rest += rounding * (np.abs(inverse) @ np.abs(square) + np.eye(size))
    largest = float(rest.sum(axis=1).max()) * (1.0 + rounding)
    if not largest < 1.0:
        return None
    first = (np.abs(inverse) @ residual) * (1.0 + rounding)
    sizes = first + largest / (1.0 - largest) * float(first.max())
    return Shift(rows, sizes * (1.0 + PRODUCT_ROUNDING))


def simple_dual(
    program: ConeProgram, columns: NDArray[np.intp], z: FloatArray
) -> FloatArray | None:
    """z with simple fractions as weights of the rows that have these unknowns; None if far from it."""
    rows = np.unique(program.sparse[:, columns].tocoo().row)
    if rows.size * columns.size > CONE_DUALITY.most_exact**2:
        return None
    size = max(float(np.abs(z).max(initial=0.0)), 1.0)
    rounded = z.copy()
    for row in rows:
        near = Fraction(float(z[row])).limit_denominator(CONE_DUALITY.denominator)
        rounded[row] = float(near)
    moved = float(np.abs(rounded - z).max(initial=0.0))
    return rounded if moved <= CONE_DUALITY.rounded * size else None


def has_no_residual(program: ConeProgram, columns: NDArray[np.intp], z: FloatArray) -> bool:
    """Whether q + Aᵀz is exactly 0 for these unknowns, of a program without a quadratic part."""
    for column in columns:
        own = slice(*program.matrix.indptr[column : column + 2])
        total = Fraction(float(program.linear[column]))
        entries = zip(program.matrix.indices[own], program.matrix.data[own], strict=True)
        total += sum(Fraction(float(number)) * Fraction(float(z[row])) for row, number in entries)
        if total:
            return False
    return True


def _margins(places: ConePlaces, z: FloatArray) -> FloatArray:
    """About how far each entry of z may move."""
    margins = np.abs(z)
    margins[places.zero] = max(float(margins.max(initial=0.0)), 1.0)
    margins[places.power] = 0.0
    for order, start in places.blocks:
        own = slice(start, start + order * (order + 1) // 2)
        margins[own] = max(float(np.linalg.eigvalsh(to_matrix(z[own]))[0]), 0.0)
    return margins


def _stays_inside(places: ConePlaces, z: FloatArray, shift: Shift) -> bool:
    """Whether z is in the dual cone wherever its entries move by up to their sizes."""
    moved = np.zeros(z.size)
    moved[shift.rows] = shift.sizes
    if (z - moved)[places.nonnegative].min(initial=0.0) < 0.0:
        return False
    return (
        _second_order(places, z, moved)
        and _exponential(z[places.exponential], moved[places.exponential])
        and not moved[places.power].any()  # such rows are rarely needed
        and all(_block(z, moved, order, first) for order, first in places.blocks)
    )


def _second_order(places: ConePlaces, z: FloatArray, moved: FloatArray) -> bool:
    own = places.first_tops
    if not own.size or not moved[[*own, *places.members]].any():
        return True
    largest = (np.abs(z) + moved)[places.members] ** 2
    squares = np.bincount(places.tops, largest, minlength=z.size)
    counts = np.bincount(places.tops, minlength=z.size)
    reach = np.sqrt(squares) * (1.0 + SUM_ROUNDING + OPERATION_ROUNDING * counts)
    touched = np.bincount(places.tops, moved[places.members], minlength=z.size) + moved > 0
    inside = (z - moved) >= reach
    return bool(inside[own][touched[own]].all())


def _exponential(z: FloatArray, moved: FloatArray) -> bool:
    """−u·exp(v/u − 1) <= w with u < 0, for the triples that move."""
    triples, ends = z.reshape(-1, 3), moved.reshape(-1, 3)
    own = ends.any(axis=1)
    (u, v, w), (du, dv, dw) = triples[own].T, ends[own].T
    if (u + du >= 0).any():
        return False
    ratio = np.max([(v + a * dv) / (u + b * du) for a in (-1, 1) for b in (-1, 1)], axis=0)
    reach = (du - u) * np.exp(ratio - 1.0) * (1.0 + 2.0 * SUM_ROUNDING * (2.0 + np.abs(ratio)))
    return bool((reach <= w - dw).all())


def _block(z: FloatArray, moved: FloatArray, order: int, first: int) -> bool:
    """Whether a matrix whose entries move stays semidefinite.

    It does if it is semidefinite after the sum of the moves in each row is subtracted from the diagonal.
    """
    own = slice(first, first + order * (order + 1) // 2)
    if not moved[own].any():
        return True
    sums = np.abs(to_matrix(moved[own])).sum(axis=1) * (1.0 + SUM_ROUNDING * order)
    inner = to_matrix(z[own])
    lost = sums + SUM_ROUNDING * np.abs(np.diagonal(inner))
    return is_surely_semidefinite(inner - np.diag(lost))
