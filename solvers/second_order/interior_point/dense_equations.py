"""The linear system with arrays: Cholesky, Woodbury's formula, orthogonal transformations."""

from __future__ import annotations

import numpy as np
import scipy

from hcmodel.solvers.second_order.interior_point.convex_program import FloatArray, Matrix
from hcmodel.solvers.second_order.interior_point.factorisation import (
    DenseCholesky,
    FactorisationError,
)
from hcmodel.solvers.second_order.interior_point.linear_system import (
    PROXIMAL,
    Solution,
    Weights,
    WithEqualities,
    bound_weights,
)
from hcmodel.solvers.second_order.interior_point.operators import Operators


def _array(matrix: Matrix) -> FloatArray:
    return matrix if isinstance(matrix, np.ndarray) else np.asarray(matrix.toarray())


class _Arrays(WithEqualities):
    """The rows of B with M = BᵀB + bounds; the terms of a logarithm are centred: E_k − Ĵ_g."""

    def __init__(self, operators: Operators) -> None:
        super().__init__(operators)
        form = operators.form
        self.exponents = _array(form.exponents)
        self.affine = _array(form.affine)
        self.weights = None if form.weights is None else _array(form.weights)

    def _parts(self, weights: Weights) -> tuple[FloatArray, FloatArray]:
        """The centred exponents and the Jacobian of the rows without the objective."""
        form, logs = self.operators.form, self.operators.form.log_terms
        centred, jacobian = self.exponents, self.affine
        if logs:
            first = self.exponents[:logs]
            means = np.add.reduceat(weights.values[:logs, None] * first, form.starts, axis=0)
            jacobian = jacobian.copy()
            np.add.at(jacobian, form.group_rows, means)
            centred = first - means[form.groups]
            if logs < form.offsets.size:
                centred = np.concatenate([centred, self.exponents[logs:]])
        if self.weights is not None:
            plain = weights.values[logs:, None] * self.exponents[logs:]
            jacobian = jacobian + self.weights @ plain
        if weights.jacobian is not None:
            jacobian = jacobian + _array(weights.jacobian)
        return centred, jacobian[1:]


class DenseEquations(_Arrays):
    def factorise(self, weights: Weights) -> None:
        self._weights = weights
        centred, jacobian = self._parts(weights)
        matrix = (centred.T * weights.terms) @ centred
        if jacobian.shape[0]:
            matrix += (jacobian.T * weights.pairs[1 : self.operators.head]) @ jacobian
        if weights.hessian is not None:
            matrix += _array(weights.hessian)
        diagonal = np.einsum("ii->i", matrix)
        diagonal += bound_weights(self.operators, weights)
        if self.count:
            # M may be singular where only equalities determine u; this leaves the solution as it is
            self._augmented = float(np.mean(diagonal)) or 1.0
            matrix += self._augmented * (self.equality.T @ self.equality)
        self._factor = DenseCholesky(matrix)
        self._factorise_equalities()

    def _inverse(self, right: FloatArray) -> FloatArray:
        return self._factor.solve(right)


class LowRankEquations(_Arrays):
    """(D + BᵀB)⁻¹ (r + Bᵀt) = D⁻¹ (r + Bᵀ q) with (I + B D⁻¹ Bᵀ) q = t − B D⁻¹ r.

    B has the centred exponents times √ν and the rows' Jacobian times √d. Since q = t − B du, the changes
    of ν and λ are −√ν q and −√d q, and the dual rows hold to rounding whatever the accuracy of du.
    """

    def factorise(self, weights: Weights) -> None:
        centred, jacobian = self._parts(weights)
        self._weights = weights
        self._scale = 1.0 / np.sqrt(bound_weights(self.operators, weights))
        rows = np.concatenate([centred, jacobian])
        head = self.operators.head
        self._roots = np.sqrt(np.concatenate([weights.terms, weights.pairs[1:head]]))
        self._rows = rows * self._roots[:, None] * self._scale
        inner = self._rows @ self._rows.T
        np.einsum("ii->i", inner)[:] += 1.0
        self._factor = DenseCholesky(inner)
        self._factorise_equalities()

    def _inverse(self, right: FloatArray) -> FloatArray:
        scale = self._scale if right.ndim == 1 else self._scale[:, None]
        scaled = scale * right
        return np.asarray(scale * (scaled - self._rows.T @ self._factor.solve(self._rows @ scaled)))

    def solve(
        self,
        dual: FloatArray,
        deviations: FloatArray | None,
        pairs: FloatArray,
        equality: FloatArray,
    ) -> Solution:
        form, operators = self.operators.form, self.operators
        scaled = self._weights.pairs * pairs
        rest = dual.copy()
        rest[form.lower_index] += scaled[operators.head : operators.first_upper]
        rest[form.upper_index] -= scaled[operators.first_upper :]
        rest *= self._scale
        inside = np.zeros(self._roots.size)
        if deviations is not None:
            inside[: deviations.size] = deviations
        inside[form.offsets.size :] = pairs[1 : operators.head]
        inside *= -self._roots
        solution, inner = self._split(rest, inside)
        multipliers = equality
        if self.count:
            excess = self.equality @ (self._scale * solution) - equality
            multipliers = self._complement.solve(excess)
            rest -= self._scale * (self.equality.T @ multipliers)
            solution, inner = self._split(rest, inside)
        inner *= -self._roots
        terms = form.offsets.size
        return Solution(self._scale * solution, multipliers, inner[:terms], inner[terms:])

    def _split(self, rest: FloatArray, inside: FloatArray) -> tuple[FloatArray, FloatArray]:
        inner = self._factor.solve(inside - self._rows @ rest)
        return rest + self._rows.T @ inner, inner


class OrthogonalEquations(_Arrays):
    """QR of B, bounds included, so that M = BᵀB is never formed: for M that is singular to rounding.

    du = R⁻¹(Qᵀt + R⁻ᵀr) for the right-hand side r + Bᵀt, and q = t − B du gives the changes of ν and λ as
    in `LowRankEquations`. Rows are sorted by their norm and columns are pivoted: so the method of
    Householder is accurate where the weights of rows differ by many orders (Higham 2002, 19.4).
    """

    def factorise(self, weights: Weights) -> None:
        form = self.operators.form
        self._weights = weights
        centred, jacobian = self._parts(weights)
        identity = np.eye(form.size)
        rows = np.concatenate(
            [centred, jacobian, -identity[form.lower_index], identity[form.upper_index]]
        )
        self._roots = np.sqrt(np.concatenate([weights.terms, weights.pairs[1:]]))
        rows *= self._roots[:, None]
        rows = np.concatenate([rows, np.sqrt(PROXIMAL) * identity])
        self._order = np.argsort(-np.max(np.abs(rows), axis=1, initial=0.0), kind="stable")
        self._q, self._r, self._columns = scipy.linalg.qr(
            rows[self._order], mode="economic", pivoting=True, check_finite=False
        )
        diagonal = np.abs(np.diag(self._r))
        if not np.isfinite(diagonal).all() or not diagonal.size or diagonal.max() == 0:
            raise FactorisationError
        self._factorise_equalities()

    def _inverse(self, right: FloatArray) -> FloatArray:
        inner = scipy.linalg.solve_triangular(
            self._r, right[self._columns], trans=1, check_finite=False
        )
        solution = np.empty(right.shape)
        solution[self._columns] = scipy.linalg.solve_triangular(self._r, inner, check_finite=False)
        return solution

    def solve(
        self,
        dual: FloatArray,
        deviations: FloatArray | None,
        pairs: FloatArray,
        equality: FloatArray,
    ) -> Solution:
        terms = self.operators.form.offsets.size
        inside = np.zeros(self._roots.size)
        if deviations is not None:
            inside[:terms] = deviations
        inside[terms:] = pairs[1:]
        inside *= -self._roots
        solution, inner = self._split(dual, inside)
        multipliers = equality
        if self.count:
            multipliers = self._complement.solve(self.equality @ solution - equality)
            solution, inner = self._split(dual - self.equality.T @ multipliers, inside)
        inner *= -self._roots
        return Solution(solution, multipliers, inner[:terms], inner[terms:])

    def _split(self, rest: FloatArray, inside: FloatArray) -> tuple[FloatArray, FloatArray]:
        lifted = scipy.linalg.solve_triangular(
            self._r, rest[self._columns], trans=1, check_finite=False
        )
        known = np.concatenate([inside, np.zeros(rest.size)])[self._order]
        coordinates = self._q.T @ known
        solution = np.empty(rest.size)
        solution[self._columns] = scipy.linalg.solve_triangular(
            self._r, coordinates + lifted, check_finite=False
        )
        left = known - self._q @ coordinates
        left -= self._q @ (self._q.T @ left)  # orthogonal to rounding
        left -= self._q @ lifted
        inner = np.empty(left.size)
        inner[self._order] = left
        return solution, inner[: inside.size]
