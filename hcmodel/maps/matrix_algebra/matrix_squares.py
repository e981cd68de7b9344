"""Quadratic functions with symmetric matrices as values, written as sums of squares.

    Q(x) = Σ over r of (L_r x)(L_r x)ᵀ,    that is    vᵀ Q(x) v = Σ over r of (vᵀ L_r x)²  for every v

Such a Q is convex in the order of matrices, and Q(x) ⪯ Z is linear by Schur's complement. The products
v_i x_k have a Gram matrix G with G[(i,k),(j,l)] + G[(i,l),(j,k)] twice the weight of x_k x_l in Q[i,j],
and a factor of a semidefinite G is L. For i = j the weights tell all of G. For i ≠ j they tell its
symmetric part; the other part follows from G being semidefinite, which has nothing in directions in which
its diagonal blocks have nothing.

The answer is exact only where the caller has multiplied it out again and compared.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers.numerics import DATA_ROUNDING, DEPENDENT

FloatArray = NDArray[np.float64]
Places = NDArray[np.intp]

# Products v_i x_k of which a Gram matrix is made: its factor takes a second for this many.
MOST_PRODUCTS = 2_000
# Values of a function beyond the number of its unknown weights, from which these are found.
SPARE_VALUES = 4


@dataclass(frozen=True, eq=False)
class Terms:
    """Weights of the products x_k x_l in the entries (i, j) of a symmetric matrix, as lists."""

    order: int
    """The number of rows of the matrix."""
    count: int
    """The number of the x."""
    row: Places
    column: Places
    first: Places
    second: Places
    weight: FloatArray

    def chosen(self, marks: NDArray[np.bool_]) -> Terms:
        """Some of the terms."""
        return Terms(
            self.order,
            self.count,
            self.row[marks],
            self.column[marks],
            self.first[marks],
            self.second[marks],
            self.weight[marks],
        )

    def values(self, outer: FloatArray, inner: FloatArray) -> FloatArray:
        """The parts of vᵀ Q(x) v, a column for each term and a row for each pair of a v and an x."""
        products = outer[:, self.row] * outer[:, self.column]
        return products * inner[:, self.first] * inner[:, self.second] * self.weight


def squares(terms: Terms) -> FloatArray | None:
    """L with the indices (r, i, k); None where the terms are not found to be a sum of squares."""
    order, count = terms.order, terms.count
    twice = (terms.row == terms.column) & (terms.first == terms.second)
    diagonal = np.zeros((order, count))
    np.add.at(diagonal, (terms.row[twice], terms.first[twice]), terms.weight[twice])
    if (diagonal < 0).any() or not diagonal.any():
        return None
    numbers = np.full((order, count), -1, dtype=np.intp)
    own = np.nonzero(diagonal)
    if own[0].size > MOST_PRODUCTS:
        return None
    numbers[own] = np.arange(own[0].size)
    gram = _gram(terms, numbers, int(own[0].size))
    if gram is None:
        return None
    root = factor(gram)
    found = np.zeros((root.shape[1], order, count))
    found[:, own[0], own[1]] = root.T
    return found


def _gram(terms: Terms, numbers: Places, size: int) -> FloatArray | None:
    """The Gram matrix; `numbers` has the place of v_i x_k in it, −1 where there is none."""
    gram = np.zeros((size, size))
    upper = terms.chosen(terms.row <= terms.column)
    cell = upper.row * terms.order + upper.column
    kernels: dict[int, FloatArray] = {}
    nothing = np.zeros((0, 0))
    order = np.argsort(cell, kind="stable")
    cells, starts = np.unique(cell[order], return_index=True)
    pairs = [divmod(int(each), terms.order) for each in cells]
    parts = np.split(order, starts[1:])
    cells_and_parts = zip(pairs, parts, strict=True)
    for (i, j), part in sorted(cells_and_parts, key=lambda each: each[0][0] != each[0][1]):
        local = np.flatnonzero((numbers[i] >= 0) | (numbers[j] >= 0))
        place = np.full(terms.count, -1, dtype=np.intp)
        place[local] = np.arange(local.size)
        first, second = place[upper.first[part]], place[upper.second[part]]
        if (first < 0).any() or (second < 0).any():
            return None  # a product of something without a square
        matrix = np.zeros((local.size, local.size))
        np.add.at(matrix, (first, second), upper.weight[part] / 2)
        matrix = matrix + matrix.T
        if i == j:
            gram[np.ix_(numbers[i, local], numbers[i, local])] = matrix
            kernels[i] = _kernel(matrix)
            continue
        own_kernels = kernels.get(i, nothing), kernels.get(j, nothing)
        block = _cross(2 * matrix, numbers[i, local], numbers[j, local], *own_kernels)
        left, right = numbers[i, local] >= 0, numbers[j, local] >= 0
        own = np.ix_(numbers[i, local][left], numbers[j, local][right])
        gram[own] = block[np.ix_(left, right)]
    return np.triu(gram) + np.triu(gram, 1).T


def _kernel(matrix: FloatArray) -> FloatArray:
    """An orthonormal basis of what a semidefinite matrix sends to 0."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors[:, values <= DATA_ROUNDING * np.abs(values).max(initial=0.0)])


def _cross(
    total: FloatArray,
    left: Places,
    right: Places,
    left_kernel: FloatArray,
    right_kernel: FloatArray,
) -> FloatArray:
    """G with G + Gᵀ = total that has nothing in the kernel of the left block, nor in that of the right.

    `left` and `right` have the places in the Gram matrix, −1 for what a block does not have at all. With
    at most one x in both blocks, one of G[k,l] and G[l,k] is 0. Else the antisymmetric part of G is
    known on both kernels, and is taken to be 0 beyond them.
    """
    if np.count_nonzero((left >= 0) & (right >= 0)) <= 1:
        half = np.where(np.eye(len(total), dtype=bool), 0.5, 1.0)
        return total * half
    bases = [_extended(own, kernel) for own, kernel in ((left, left_kernel), (right, right_kernel))]
    whole = np.hstack(bases)
    known, sizes, turned = np.linalg.svd(whole, full_matrices=False)
    rank = int(np.count_nonzero(sizes > DEPENDENT * sizes.max(initial=0.0)))
    known = known[:, :rank]
    image = total @ np.hstack([bases[0], -bases[1]]) @ turned[:rank].T / (2 * sizes[:rank])
    outside = np.eye(len(total)) - known @ known.T
    return np.asarray(total / 2 + image @ known.T - known @ image.T @ outside)


def _extended(own: Places, kernel: FloatArray) -> FloatArray:
    """The kernel of a block among more x than it has: with all of those that it does not have."""
    absent = np.flatnonzero(own < 0)
    found = np.zeros((own.size, absent.size + kernel.shape[1]))
    found[absent, np.arange(absent.size)] = 1.0
    found[own >= 0, absent.size :] = kernel
    return found


def factor(matrix: FloatArray) -> FloatArray:
    """L with L Lᵀ = matrix and as few columns as its rank, where the matrix is semidefinite."""
    tolerance = DATA_ROUNDING * float(np.abs(matrix).max())
    factored, pivots, rank, _ = scipy.linalg.lapack.dpstrf(matrix, tol=tolerance, lower=1)
    found = np.zeros((len(matrix), rank))
    found[pivots - 1] = np.tril(factored)[:, :rank]
    return found


def fractions(
    order: int, inner: int, terms: Terms, left: Places, right: Places
) -> FloatArray | None:
    """M with the indices (r, a, i, k) and Q(x) = Σ over r of (M_r x)ᵀ U (M_r x), U a symmetric matrix.

    The terms are those of products U[a,b] x_k x_l with a and b in `left` and `right`, a ≤ b, where U has
    `inner` rows. Those with a = b give the rows of the M_r, up to a rotation of the r for each a; the
    others say how these are turned against each other.
    """
    rows = list[FloatArray]()
    for a in range(inner):
        own = terms.chosen((left == a) & (right == a))
        found = squares(own) if own.weight.size else np.zeros((0, order, terms.count))
        if found is None:
            return None
        rows.append(found)
    starts = np.cumsum([0, *(len(each) for each in rows)])
    turns = np.eye(starts[-1])
    most = max(len(each) for each in rows) ** 2 + SPARE_VALUES
    generator = np.random.default_rng(0)
    outer, points = generator.normal(size=(most, order)), generator.normal(size=(most, terms.count))
    values = terms.values(outer, points)
    parts = [np.einsum("rik,pi,pk->pr", each, outer, points) for each in rows]
    for a in range(inner):
        for b in range(a + 1, inner):
            own = (left == a) & (right == b)
            if not own.any():
                continue
            products = np.einsum("pr,ps->prs", parts[a], parts[b]).reshape(most, -1)
            turn = np.linalg.lstsq(products, values[:, own].sum(axis=1) / 2, rcond=None)[0]
            block = turn.reshape(len(rows[a]), len(rows[b]))
            turns[starts[a] : starts[a + 1], starts[b] : starts[b + 1]] = block
            turns[starts[b] : starts[b + 1], starts[a] : starts[a + 1]] = block.T
    if not starts[-1]:
        return None
    root = factor(turns)
    found = np.zeros((root.shape[1], inner, order, terms.count))
    for a, each in enumerate(rows):
        found[:, a] = np.einsum("rik,rq->qik", each, root[starts[a] : starts[a + 1]])
    return found
