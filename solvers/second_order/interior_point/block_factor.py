"""Cholesky factorisation of sparse matrices that fill up, by blocks (the multifrontal method).

Circuits with long wires and random programs have factors whose last thousands of columns are full. A
factorisation entry by entry (QDLDL) does about one operation per nanosecond there, dense linear algebra
ten to twenty. The columns are ordered by minimum degree and collected into blocks of columns with the
same rows below (supernodes). Each block is eliminated in a dense matrix, to which the blocks before it
in the elimination tree have added what they leave (Duff and Reid 1983; Liu 1992).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.linalg import blas, lapack

from hcmodel.solvers.memory import check_dense
from hcmodel.solvers.second_order.interior_point.conjugate_gradients import (
    ConjugateGradients,
    Factor,
)
from hcmodel.solvers.second_order.interior_point.convex_program import FloatArray, IndexArray
from hcmodel.solvers.second_order.interior_point.factorisation import FactorisationError

# Entries that are 0 and are stored so that a column can join the block before it: at most this many, or
# this multiple of the block's entries. A block that is narrow and long has to be added to the next one
# (3,000 gates with long wires, 2,000 random unknowns: 0.3 takes two to three times as long, 10 is equal).
FEW_ZEROS = 64
MULTIPLE_OF_ZEROS = 2.0
# Operations of a factorisation entry by entry in the time that a block takes, whatever its size, and in
# the time of one operation within blocks (circuits of 1,000 and 3,000 gates with long wires).
OPERATIONS_PER_BLOCK = 4e5
SPEEDUP = 10.0
# Rows up to which a block is added to the next at once: a call per column costs as much as 100 entries.
NARROW = 100
# Rows and columns that may be added as a border, each of which takes a solution of the whole system.
MOST_BORDER = 20
# Below this bound of the operations (columns times bandwidth squared) blocks are not considered: a second
# entry by entry, and the analysis takes part of it.
LEAST_WORK = 1e9
# Solutions per factorisation (predictor, corrector, border), and the operations of one step of conjugate
# gradients per entry of the upper triangle: twice the matrix, and as much for preconditioner and vectors
# (10,000 gates with long wires: 0.56 ms for 145,000 entries). Narrow blocks take less than those for
# which OPERATIONS_PER_BLOCK was measured (factorisations of 100,000 gates with local wires take 2.3 s,
# and of 1,000 with long ones 35 ms: as long as 130 and 220 steps; by these numbers it is 390 and 190).
SOLUTIONS = 3
OPERATIONS_PER_ENTRY = 4.0
LEAST_PER_BLOCK = 5e4


def block_factor(indices: IndexArray, starts: IndexArray, size: int) -> BorderedBlocks | None:
    """Blocks for a pattern (upper triangle in compressed columns), None where they are not faster.

    The first `size` columns have to be positive definite; the others are a border. Conjugate gradients
    take their place while they need no more operations than the factorisation.
    """
    if starts.size - 1 - size > MOST_BORDER:
        return None
    inside = slice(0, int(starts[size]))
    upper = sparse.csc_matrix(
        (np.ones(indices[inside].size), indices[inside], starts[: size + 1]), shape=(size, size)
    )
    whole = sparse.csr_matrix(upper + upper.T)
    if size * float(_bandwidth(whole)) ** 2 < LEAST_WORK:
        return None
    found = BlockFactor(upper)
    if found.work <= found.work / SPEEDUP + OPERATIONS_PER_BLOCK * len(found.blocks):
        return None
    operations = found.work / SPEEDUP + LEAST_PER_BLOCK * len(found.blocks)
    steps = int(operations / (SOLUTIONS * OPERATIONS_PER_ENTRY * upper.nnz))
    return BorderedBlocks(ConjugateGradients(upper, found, steps), size, indices, starts)


class BorderedBlocks:
    """A matrix with a few last rows and columns that are dense or negative: a factor of the rest.

    The interface is that of `SparseFactor`. The border goes by its Schur complement.
    """

    def __init__(self, inner: Factor, size: int, indices: IndexArray, starts: IndexArray) -> None:
        self._inner, self._size = inner, size
        self._count = starts.size - 1 - self._size
        self._inside = int(starts[self._size])
        self._rows = indices[self._inside :]
        self._columns = np.repeat(np.arange(self._count), np.diff(starts[self._size :]))

    def factorise(self, entries: FloatArray) -> None:
        self._inner.factorise(entries[: self._inside])
        table = np.zeros((self._size + self._count, self._count))
        table[self._rows, self._columns] = entries[self._inside :]
        self._border, corner = table[: self._size], table[self._size :]
        self._images = self._inner.solve(self._border)
        self._complement = np.triu(corner) + np.triu(corner, 1).T - self._border.T @ self._images

    def solve(self, right: FloatArray) -> FloatArray:
        inside = self._inner.solve(right[: self._size])
        if not self._count:
            return inside
        rest = np.linalg.solve(self._complement, right[self._size :] - self._border.T @ inside)
        return np.concatenate([inside - self._images @ rest, rest])


def _bandwidth(whole: Any) -> int:
    """That of the reverse Cuthill–McKee order."""
    order = sparse.csgraph.reverse_cuthill_mckee(whole, symmetric_mode=True)
    place = np.empty(order.size, dtype=np.intp)
    place[order] = np.arange(order.size)
    rows = np.repeat(np.arange(order.size), np.diff(whole.indptr))
    return int(np.abs(place[rows] - place[whole.indices]).max(initial=0))


class _Block:
    """Columns first … first + width − 1 of the factor, and the rows (these columns first) they meet."""

    def __init__(self, first: int, width: int, rows: IndexArray) -> None:
        self.first, self.width, self.rows = first, width, rows
        self.parent = -1
        self.entries: IndexArray  # of the matrix, in this block's columns
        self.places: IndexArray  # where they go in the dense matrix, which is stored by columns
        self.inside: IndexArray  # the place of what it leaves among the rows of its parent
        self.corner: FloatArray
        self.below: FloatArray


class BlockFactor:
    """P A Pᵀ = L Lᵀ for matrices of one pattern."""

    def __init__(self, upper: Any) -> None:
        size = upper.shape[0]
        self.order = _minimum_degree(upper)
        place = np.empty(size, dtype=np.intp)
        place[self.order] = np.arange(size)
        parent = _elimination_tree(*_lower_rows(upper, place))
        again = _postorder(parent)
        self.order = self.order[again]
        place[self.order] = np.arange(size)
        row, column = place[upper.indices], place[np.repeat(np.arange(size), np.diff(upper.indptr))]
        low, high = np.minimum(row, column), np.maximum(row, column)
        parent = _renumbered(parent, again)
        self.blocks = _blocks(low, high, parent)
        self._place_entries(low, high)
        lengths = np.concatenate(
            [each.rows.size - np.arange(each.width, dtype=float) for each in self.blocks]
        )
        self.work = float(lengths @ lengths)

    def _place_entries(self, low: IndexArray, high: IndexArray) -> None:
        owner = np.repeat(np.arange(len(self.blocks)), [each.width for each in self.blocks])
        sequence = np.argsort(owner[low], kind="stable")
        ends = np.searchsorted(owner[low][sequence], np.arange(len(self.blocks) + 1))
        for number, block in enumerate(self.blocks):
            block.entries = sequence[ends[number] : ends[number + 1]]
            rows = np.searchsorted(block.rows, high[block.entries])
            block.places = (low[block.entries] - block.first) * block.rows.size + rows
            if block.rows.size > block.width:
                block.parent = int(owner[block.rows[block.width]])
                block.inside = np.searchsorted(
                    self.blocks[block.parent].rows, block.rows[block.width :]
                )

    def factorise(self, entries: FloatArray) -> None:
        check_dense("a block of the factor", *[max(each.rows.size for each in self.blocks)] * 2)
        left: dict[int, list[tuple[IndexArray, FloatArray]]] = {}
        for number, block in enumerate(self.blocks):
            count, width = block.rows.size, block.width
            front = np.zeros((count, count), order="F")
            front.ravel(order="K")[block.places] = entries[block.entries]
            for inside, rest in left.pop(number, ()):
                _add(front, inside, rest)
            corner, failed = lapack.dpotrf(front[:width, :width], lower=1, clean=1)
            if failed:
                raise FactorisationError
            block.corner = corner
            if count == width:
                continue
            below = blas.dtrsm(1.0, corner, front[width:, :width], side=1, lower=1, trans_a=1)
            block.below = below
            rest = blas.dsyrk(-1.0, below, 1.0, front[width:, width:], lower=1)
            left.setdefault(block.parent, []).append((block.inside, rest))

    def solve(self, right: FloatArray) -> FloatArray:
        """For a vector, or a matrix of right-hand sides."""
        x = np.array(right[self.order], dtype=float)
        for block in self.blocks:
            own = slice(block.first, block.first + block.width)
            x[own] = lapack.dtrtrs(block.corner, x[own], lower=1)[0]
            if block.rows.size > block.width:
                x[block.rows[block.width :]] -= block.below @ x[own]
        for block in reversed(self.blocks):
            own = slice(block.first, block.first + block.width)
            if block.rows.size > block.width:
                x[own] -= block.below.T @ x[block.rows[block.width :]]
            x[own] = lapack.dtrtrs(block.corner, x[own], lower=1, trans=1)[0]
        found = np.empty_like(x)
        found[self.order] = x
        return found


def _add(front: FloatArray, inside: IndexArray, rest: FloatArray) -> None:
    """Add the lower triangle of what a block leaves; wide ones by columns, which are contiguous."""
    if inside.size <= NARROW:
        front[inside[:, None], inside] += rest
        return
    for column, place in enumerate(inside.tolist()):
        front[inside[column:], place] += rest[column:, column]


# ---- analysis


def _minimum_degree(upper: Any) -> IndexArray:
    """The order of SuperLU, taken from an incomplete factorisation that keeps next to nothing."""
    size = upper.shape[0]
    degrees = np.bincount(upper.indices, minlength=size) + np.diff(upper.indptr)
    pattern = upper + upper.T + sparse.diags_array(2.0 * degrees.astype(float))
    found = sparse.linalg.spilu(
        sparse.csc_matrix(pattern),
        drop_tol=1.0,
        fill_factor=1.0,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return np.argsort(found.perm_c)


def _lower_rows(upper: Any, place: IndexArray) -> tuple[list[int], list[int]]:
    """The pattern's lower triangle by rows: starts, and columns without the diagonal."""
    size = place.size
    row = place[upper.indices]
    column = place[np.repeat(np.arange(size), np.diff(upper.indptr))]
    low, high = np.minimum(row, column), np.maximum(row, column)
    kept = low < high
    low, high = low[kept], high[kept]
    sequence = np.lexsort((low, high))
    starts = np.searchsorted(high[sequence], np.arange(size + 1))
    return starts.tolist(), low[sequence].tolist()


def _elimination_tree(starts: list[int], columns: list[int]) -> list[int]:
    """The parent of each column, −1 for roots (Liu 1986, with compressed paths)."""
    size = len(starts) - 1
    parent, ancestor = [-1] * size, [-1] * size
    for row in range(size):
        for place in range(starts[row], starts[row + 1]):
            column = columns[place]
            while column != -1 and column < row:
                following = ancestor[column]
                ancestor[column] = row
                if following == -1:
                    parent[column] = row
                column = following
    return parent


def _postorder(parent: list[int]) -> IndexArray:
    """Children before their parents, and the descendants of a column together."""
    size = len(parent)
    children: list[list[int]] = [[] for _ in range(size)]
    for column in range(size):
        if parent[column] >= 0:
            children[parent[column]].append(column)
    found: list[int] = []
    ahead = [column for column in range(size) if parent[column] < 0]
    while ahead:  # parents first, backwards
        column = ahead.pop()
        found.append(column)
        ahead += children[column]
    return np.array(found[::-1], dtype=np.intp)


def _renumbered(parent: list[int], order: IndexArray) -> list[int]:
    number = np.empty(order.size + 1, dtype=np.intp)
    number[order] = np.arange(order.size)
    number[-1] = -1
    return [int(number[parent[column]]) for column in order.tolist()]


def _blocks(low: IndexArray, high: IndexArray, parent: list[int]) -> list[_Block]:
    """Consecutive columns whose rows are the same, up to a few entries that are 0."""
    size = len(parent)
    sequence = np.argsort(low, kind="stable")
    ends = np.searchsorted(low[sequence], np.arange(size + 1))
    below = high[sequence]
    found: list[_Block] = []
    waiting: dict[int, list[IndexArray]] = {}  # what blocks leave, by the column that it goes to
    first, rows = 0, np.zeros(0, dtype=np.intp)
    present = np.zeros(size, dtype=bool)  # whether a row is in the block that is open
    for column in range(size):
        own = np.concatenate([below[ends[column] : ends[column + 1]], *waiting.pop(column, ())])
        width = column - first
        if rows.size > width and rows[width] == column:
            more = np.unique(own[~present[own]])
            if more.size * width <= max(FEW_ZEROS, MULTIPLE_OF_ZEROS * rows.size * width):
                if more.size:
                    rows = np.union1d(rows, more)
                    present[more] = True
                continue
        if column:
            _close(first, column, rows, found, waiting)
            present[rows] = False
            own = np.concatenate([own, *waiting.pop(column, ())])
        first, rows = column, np.unique(np.append(own, column))
        present[rows] = True
    if size:
        _close(first, size, rows, found, waiting)
    return found


def _close(
    first: int,
    end: int,
    rows: IndexArray,
    found: list[_Block],
    waiting: dict[int, list[IndexArray]],
) -> None:
    width = end - first
    found.append(_Block(first, width, rows))
    if rows.size > width:
        waiting.setdefault(int(rows[width]), []).append(rows[width:])
