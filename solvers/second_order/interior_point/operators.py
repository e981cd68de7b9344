"""Products with the Jacobian and its transpose, through the structure of the program.

Vectors over the *pairs* have one entry for the objective, one for each row, each finite lower bound and
each finite upper bound, in this order. Among the multipliers the objective's entry is its weight; it is 0
in every direction. So a slice of such a vector is what the rows need.
"""

from __future__ import annotations

import numpy as np

from hcmodel.solvers.algebra.marks import every
from hcmodel.solvers.algebra.products import product
from hcmodel.solvers.second_order.interior_point.convex_program import FloatArray, Groups
from hcmodel.solvers.second_order.interior_point.standard_form import StandardForm


class Operators:
    """`values` below are those of the terms: shares p of the logarithms' terms, then plain terms."""

    def __init__(self, form: StandardForm) -> None:
        self.form = form
        self.groups = Groups(form.groups, form.group_rows.size)
        self.exponents, self.affine = product(form.exponents), product(form.affine)
        self.exponents_t, self.affine_t = self.exponents.T, self.affine.T
        self.weights = None if form.weights is None else product(form.weights)
        self.weights_t = None if self.weights is None else self.weights.T
        self.equality, self.equality_t = form.equality, product(form.equality).T
        self.equalities = form.equality_bound.size
        self.head = form.rows + 1  # objective and rows
        self.first_upper = self.head + form.lower_index.size
        self.pairs = self.first_upper + form.upper_index.size
        self.term_rows = form.group_rows[form.groups]
        self.has_affine = bool(
            np.any(form.affine) if isinstance(form.affine, np.ndarray) else form.affine.nnz
        )
        self._rows_once = every(np.bincount(form.group_rows) <= 1)

    def group_sums(self, terms: FloatArray) -> FloatArray:
        """Sums over the groups of the first entries, which belong to logarithms."""
        return self.groups.sums(terms[: self.form.log_terms])

    def term_weights(self, multipliers: FloatArray) -> FloatArray:
        """What multiplies each term's derivative: the weight of its group, or Wᵀ times those of rows."""
        head = multipliers[: self.head]
        if self.weights_t is None:
            return head[self.term_rows]
        plain = self.weights_t @ head
        if not self.form.log_terms:
            return np.asarray(plain)
        return np.concatenate([head[self.term_rows], plain])

    def row_values(self, affine: FloatArray, logs: FloatArray, plain: FloatArray) -> FloatArray:
        """The parts of the rows added up: affine values, groups, plain terms (changes `affine`)."""
        if logs.size:
            if self._rows_once:
                affine[self.form.group_rows] += logs
            else:
                np.add.at(affine, self.form.group_rows, logs)
        if self.weights is not None:
            affine += self.weights @ plain
        return affine

    def forward(
        self, direction: FloatArray, exponents: FloatArray, values: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """J d over the pairs (0 for the objective) and J d of the groups, from d and E d."""
        form = self.form
        scaled = values * exponents
        groups = self.group_sums(scaled)
        found = np.zeros(self.pairs)
        rows = found[: self.head]
        if self.has_affine:
            rows += self.affine @ direction
        self.row_values(rows, groups, scaled[form.log_terms :])
        found[self.head : self.first_upper] = -direction[form.lower_index]
        found[self.first_upper :] = direction[form.upper_index]
        found[0] = 0.0
        return found, groups

    def transposed(self, terms: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Eᵀ terms + Cᵀ multipliers + bounds."""
        form = self.form
        total = np.asarray(self.exponents_t @ terms)
        if self.has_affine:
            total += self.affine_t @ multipliers[: self.head]
        if form.lower_index.size:
            total[form.lower_index] -= multipliers[self.head : self.first_upper]
        if form.upper_index.size:
            total[form.upper_index] += multipliers[self.first_upper :]
        return total
