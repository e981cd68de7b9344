"""The linear system with sparse matrices, whose pattern is found once for all iterations."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from hcmodel.solvers.algebra.keys import distinct
from hcmodel.solvers.algebra.products import Product
from hcmodel.solvers.algebra.storage import by_rows
from hcmodel.solvers.numerics import PRODUCT_ROUNDING, TINY
from hcmodel.solvers.second_order.interior_point.block_factor import block_factor
from hcmodel.solvers.second_order.interior_point.convex_program import FloatArray, IndexArray
from hcmodel.solvers.second_order.interior_point.factorisation import (
    ATTEMPTS,
    DenseCholesky,
    FactorisationError,
    SparseFactor,
)
from hcmodel.solvers.second_order.interior_point.linear_system import (
    EQUALITY_RIDGE,
    PROXIMAL,
    Solution,
    Weights,
    WithEqualities,
    bound_weights,
    right_side,
)
from hcmodel.solvers.second_order.interior_point.operators import Operators

# A row with more entries than this, and more than a tenth of all pairs of entries, stays out of M
# in problems with more than SMALL_ORDER variables.
LONG_ROW = 60
SMALL_ORDER = 200
# The share of the pairs before it that a long row adds, at least (ablation:
# off, half and double give the same iterations).
LONG_SHARE = 0.1


def _row_pairs(matrix: Any) -> tuple[IndexArray, IndexArray, IndexArray]:
    """For each row of a csr matrix all pairs of its entries (i <= j), and the row of each pair."""
    lengths = np.diff(matrix.indptr)
    ends = np.repeat(matrix.indptr[1:], lengths)
    positions = np.arange(matrix.nnz)
    counts = ends - positions
    first = np.repeat(positions, counts)
    skipped = np.repeat(np.cumsum(counts) - counts, counts)
    second = first + np.arange(first.size) - skipped
    rows = np.repeat(np.repeat(np.arange(lengths.size), lengths), counts)
    return first, second, rows


class _Varying:
    """Rows that change with the values of the terms: base + S diag(values) E, with a fixed pattern.

    They are the logarithms' Jacobian Ĵ, then that of the rows that are neither affine nor one logarithm.
    """

    def __init__(self, operators: Operators) -> None:
        form = operators.form
        exponents, affine = by_rows(form.exponents), by_rows(form.affine)
        groups, terms, logs = form.group_rows.size, form.offsets.size, form.log_terms
        parts = [(form.groups, np.arange(logs), np.ones(logs))]
        per_row = np.bincount(form.group_rows, minlength=form.rows + 1)
        plain = np.zeros(form.rows + 1, dtype=bool)
        if form.weights is not None:
            weights = sparse.coo_array(form.weights)
            plain[weights.row] = True
        long_affine = np.diff(affine.indptr) > 0
        alone = (per_row == 1) & ~plain & ~long_affine
        mixed = (plain | (per_row > 0)) & ~alone
        mixed[0] = False
        self.mixed_rows = np.flatnonzero(mixed)
        number = np.cumsum(mixed) - 1 + groups
        chosen = mixed[operators.term_rows]
        parts.append(
            (number[operators.term_rows[chosen]], np.flatnonzero(chosen), np.ones(chosen.sum()))
        )
        if form.weights is not None:
            kept = mixed[weights.row]
            parts.append((number[weights.row[kept]], logs + weights.col[kept], weights.data[kept]))
        rows, columns, factors = (np.concatenate(list(part)) for part in zip(*parts, strict=True))
        self.count = groups + self.mixed_rows.size
        # one entry for each pair of an entry of S and one of E
        lengths = np.diff(exponents.indptr)[columns]
        entry = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        entry += np.repeat(exponents.indptr[columns], lengths)
        base = sparse.coo_array(affine[self.mixed_rows] if self.mixed_rows.size else (0, form.size))
        keys = np.concatenate(
            [
                np.repeat(rows, lengths) * np.int64(form.size) + exponents.indices[entry],
                (base.row + groups) * np.int64(form.size) + base.col,
            ]
        )
        unique, place = distinct(keys, self.count * form.size)
        self.rows = unique // form.size
        self.columns = unique % form.size
        starts = np.searchsorted(self.rows, np.arange(self.count + 1))
        self.pattern = sparse.csr_array(
            (np.zeros(unique.size), self.columns, starts), shape=(self.count, form.size)
        )
        self._base = np.bincount(place[entry.size :], base.data, minlength=unique.size)
        self._from_values = Product(
            sparse.csr_array(
                (
                    np.repeat(factors, lengths) * exponents.data[entry],
                    (place[: entry.size], np.repeat(columns, lengths)),
                ),
                shape=(unique.size, terms),
            )
        )
        # which multiplier belongs to a logarithm that is a row by itself
        self.group_rows = np.where(alone[form.group_rows], form.group_rows, 0)
        self.affine_rows = np.flatnonzero(~mixed & long_affine & (per_row == 0))
        self.affine_rows = self.affine_rows[self.affine_rows > 0]

    def entries(self, values: FloatArray) -> FloatArray:
        return self._base + self._from_values @ values

    def weights(self, weights: Weights) -> FloatArray:
        """d − ω of the logarithms (d of the objective is 0), d of the other rows."""
        return np.concatenate(
            [weights.pairs[self.group_rows] - weights.groups, weights.pairs[self.mixed_rows]]
        )


def _constant_rows(operators: Operators, varying: _Varying) -> Any:
    """The exponents and the affine rows: what is multiplied by weights only."""
    rows = by_rows(operators.form.exponents)
    if varying.affine_rows.size:
        affine = by_rows(operators.form.affine)[varying.affine_rows]
        rows = by_rows(sparse.vstack([rows, affine], format="csr"))
    return rows if rows.has_sorted_indices else rows.sorted_indices()


def _constant_weights(weights: Weights, varying: _Varying) -> FloatArray:
    return np.concatenate([weights.terms, weights.pairs[varying.affine_rows]])


class PackedEquations(WithEqualities):
    """Sparse matrices, and an array for M: exponents by their pairs of entries, J as an array."""

    def __init__(self, operators: Operators) -> None:
        super().__init__(operators)
        self.size = operators.form.size
        self._varying = _Varying(operators)
        constant = _constant_rows(operators, self._varying)
        first, second, row = _row_pairs(constant)
        keys = constant.indices[second].astype(np.int64) * self.size + constant.indices[first]
        self._places, place = distinct(keys, self.size**2)  # in the lower triangle
        self._constant = Product(
            sparse.csr_array(
                (constant.data[first] * constant.data[second], (place, row)),
                shape=(self._places.size, constant.shape[0]),
            )
        )

    def factorise(self, weights: Weights) -> None:
        self._weights, varying = weights, self._varying
        matrix = np.zeros((self.size, self.size))
        matrix.ravel()[self._places] = self._constant @ _constant_weights(weights, varying)
        if varying.count:
            rows = np.zeros((varying.count, self.size))
            rows[varying.rows, varying.columns] = varying.entries(weights.values)
            matrix += (rows.T * varying.weights(weights)) @ rows
        np.einsum("ii->i", matrix)[:] += bound_weights(self.operators, weights)
        if self.count:
            self._augmented = float(np.mean(np.diag(matrix))) or 1.0
            matrix += self._augmented * (self.equality.T @ self.equality)
        self._factor = DenseCholesky(matrix)
        self._factorise_equalities()

    def _inverse(self, right: FloatArray) -> FloatArray:
        return self._factor.solve(right)


class SparseEquations:
    """The pattern of the upper triangle of [M, Aᵀ, Bᵀ; A, −δ, 0; B, 0, −1/w], B the long rows."""

    def __init__(self, operators: Operators) -> None:
        self.operators, self.count = operators, operators.equalities
        self.size = size = operators.form.size
        self._varying = varying = _Varying(operators)
        constant = _constant_rows(operators, varying)
        long_constant, long_varying = _long_rows(constant, varying.pattern)
        self._long_constant = np.flatnonzero(long_constant)
        self._long_varying = np.flatnonzero(long_varying)
        self._long_entries = np.flatnonzero(long_varying[varying.rows])
        short_entries = np.flatnonzero(~long_varying[varying.rows])
        short_constant = _without(constant, long_constant)
        short_varying = _without(varying.pattern, long_varying)
        first, second, row = _row_pairs(short_constant)
        first_v, second_v, self._pair_row = _row_pairs(short_varying)
        self._first, self._second = short_entries[first_v], short_entries[second_v]
        equality = sparse.coo_array(operators.equality)
        long_rows = sparse.coo_array(constant[self._long_constant])
        first_long = size + self.count
        first_varying = first_long + self._long_constant.size
        self._order = first_varying + self._long_varying.size
        number = np.searchsorted(self._long_varying, varying.rows[self._long_entries])
        blocks = [  # rows and columns of: M from constant and varying rows, diagonal, A, B
            (short_constant.indices[first], short_constant.indices[second]),
            (short_varying.indices[first_v], short_varying.indices[second_v]),
            (np.arange(self._order), np.arange(self._order)),
            (equality.col, size + equality.row),
            (long_rows.col, first_long + long_rows.row),
            (varying.columns[self._long_entries], first_varying + number),
        ]
        keys = np.concatenate(
            [columns.astype(np.int64) * self._order + rows for rows, columns in blocks]
        )
        unique, place = distinct(keys, self._order**2)
        ends = np.cumsum([rows.size for rows, _ in blocks])[:-1]
        at_constant, self._at_pairs, self._diagonal, at_equality, at_long, self._at_varying = (
            np.split(place, ends)
        )
        self._constant = Product(
            sparse.csr_array(
                (short_constant.data[first] * short_constant.data[second], (at_constant, row)),
                shape=(unique.size, constant.shape[0]),
            )
        )
        self._template = np.zeros(unique.size)
        self._template[at_equality] = equality.data
        self._template[at_long] = long_rows.data
        starts = np.searchsorted(unique, np.arange(self._order + 1) * np.int64(self._order))
        indices = unique % self._order
        self._factor = block_factor(indices, starts, size) or SparseFactor(
            indices, starts, self._order
        )

    def factorise(self, weights: Weights) -> None:
        self._weights, varying = weights, self._varying
        constant = _constant_weights(weights, varying)
        entries = self._constant @ constant
        entries += self._template
        rows, row_weights = varying.entries(weights.values), varying.weights(weights)
        if self._first.size:
            products = rows[self._first] * rows[self._second] * row_weights[self._pair_row]
            entries += np.bincount(self._at_pairs, products, minlength=entries.size)
        entries[self._at_varying] = rows[self._long_entries]
        inner, border = self._diagonal[: self.size], self._diagonal[self.size :]
        diagonal = entries[inner] + bound_weights(self.operators, weights)
        mean = float(np.mean(diagonal)) or 1.0
        entries[border] = -np.concatenate(
            [
                np.full(self.count, EQUALITY_RIDGE / mean),
                1.0 / np.maximum(constant[self._long_constant], TINY),
                1.0 / _away_from_zero(row_weights[self._long_varying]),
            ]
        )
        ridge = PRODUCT_ROUNDING
        for _ in range(ATTEMPTS):
            entries[inner] = diagonal * (1 + ridge) + PROXIMAL
            try:
                self._factor.factorise(entries)
            except FactorisationError:
                ridge *= 100
            else:
                return
        raise FactorisationError

    def solve(
        self,
        dual: FloatArray,
        deviations: FloatArray | None,
        pairs: FloatArray,
        equality: FloatArray,
    ) -> Solution:
        whole = np.zeros(self._order)
        whole[: self.size] = right_side(self.operators, self._weights, dual, deviations, pairs)
        whole[self.size : self.size + self.count] = equality
        try:
            solution = self._factor.solve(whole)
        except FactorisationError:  # conjugate gradients were too slow: by blocks from now on
            self.factorise(self._weights)
            solution = self._factor.solve(whole)
        return Solution(solution[: self.size], solution[self.size : self.size + self.count])


def _away_from_zero(weights: FloatArray) -> FloatArray:
    return np.where(np.abs(weights) > TINY, weights, TINY)


def _without(matrix: Any, dropped: NDArray[np.bool_]) -> Any:
    """The same matrix with the entries of some rows dropped."""
    if not dropped.any():
        return matrix
    lengths = np.diff(matrix.indptr)
    kept = np.repeat(~dropped, lengths)
    starts = np.concatenate([[0], np.cumsum(np.where(dropped, 0, lengths))])
    return sparse.csr_array((matrix.data[kept], matrix.indices[kept], starts), shape=matrix.shape)


def _long_rows(constant: Any, varying: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Rows whose pairs of entries are many, and more than a tenth of what the rest needs."""
    lengths = np.concatenate([np.diff(constant.indptr), np.diff(varying.indptr)]).astype(float)
    pairs = lengths**2
    order = np.argsort(lengths, kind="stable")
    before = np.cumsum(pairs[order]) - pairs[order] + constant.shape[1]
    long = np.zeros(lengths.size, dtype=bool)
    long[order] = (lengths[order] > LONG_ROW) & (pairs[order] > LONG_SHARE * before)
    if constant.shape[1] <= SMALL_ORDER:
        long[:] = False
    return long[: constant.shape[0]], long[constant.shape[0] :]


class GenericEquations:
    """Sparse products by scipy, where smooth parts bring matrices whose pattern is not known."""

    def __init__(self, operators: Operators) -> None:
        form = operators.form
        self.operators, self.size, self.count = operators, form.size, operators.equalities
        self._exponents = sparse.csr_array(form.exponents)
        self._affine = sparse.csr_array(form.affine)
        self._weights = None if form.weights is None else sparse.csr_array(form.weights)
        self._groups = sparse.csr_array(
            (np.ones(form.log_terms), (form.groups, np.arange(form.log_terms))),
            shape=(form.group_rows.size, form.offsets.size),
        )
        self._rows_of_groups = sparse.csr_array(
            (
                np.ones(form.group_rows.size),
                (form.group_rows, np.arange(form.group_rows.size)),
            ),
            shape=(operators.head, form.group_rows.size),
        )
        self._equality = sparse.csr_array(operators.equality)
        self._current: Weights

    def factorise(self, weights: Weights) -> None:
        self._current = weights
        form, operators = self.operators.form, self.operators
        scaled = sparse.csr_array(sparse.diags_array(weights.values) @ self._exponents)
        groups = self._groups @ scaled
        rows = self._affine + self._rows_of_groups @ groups
        if self._weights is not None:
            rows = rows + self._weights @ scaled[form.log_terms :]
        if weights.jacobian is not None:
            rows = rows + sparse.csr_array(weights.jacobian)
        diagonal = bound_weights(operators, weights)
        matrix = (
            self._exponents.T @ sparse.diags_array(weights.terms) @ self._exponents
            - groups.T @ sparse.diags_array(weights.groups) @ groups
            + rows.T @ sparse.diags_array(weights.pairs[: operators.head]) @ rows
        )
        if weights.hessian is not None:
            matrix = matrix + sparse.csr_array(weights.hessian)
        center = matrix.diagonal() + diagonal
        scale = float(np.mean(center)) or 1.0
        diagonal += PRODUCT_ROUNDING * center + PROXIMAL
        matrix = matrix + sparse.diags_array(diagonal)
        blocks = [[matrix, self._equality.T], [None, None]]
        whole = matrix
        if self.count:
            blocks[1] = [
                self._equality,
                sparse.diags_array(np.full(self.count, -EQUALITY_RIDGE / scale)),
            ]
            whole = sparse.block_array(blocks)
        upper = sparse.csc_matrix(sparse.triu(whole, format="csc"))
        upper.sort_indices()
        self._factor = SparseFactor(upper.indices, upper.indptr, upper.shape[0])
        self._factor.factorise(upper.data)

    def solve(
        self,
        dual: FloatArray,
        deviations: FloatArray | None,
        pairs: FloatArray,
        equality: FloatArray,
    ) -> Solution:
        right = right_side(self.operators, self._current, dual, deviations, pairs)
        solution = self._factor.solve(np.concatenate([right, equality]))
        return Solution(solution[: self.size], solution[self.size :])
