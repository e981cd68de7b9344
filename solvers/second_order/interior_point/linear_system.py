"""What the solvers of the linear system share: its data, its solution, and its equalities."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from hcmodel.records import dataclass
from hcmodel.solvers.numerics import TINY
from hcmodel.solvers.second_order.interior_point.convex_program import FloatArray, Matrix
from hcmodel.solvers.second_order.interior_point.factorisation import DenseCholesky
from hcmodel.solvers.second_order.interior_point.operators import Operators

# Dependent equalities: minus this, relative, on the diagonal of their Schur complement or block, taken
# out by refinement. A sparse factorisation may begin with these pivots, and loses their reciprocal times
# the rounding: √ε balances both errors.
COMPLEMENT_RIDGE = 1e-11
EQUALITY_RIDGE = 1e-8
# Curvature that is added for directions without any, as in a proximal-point method; its error
# vanishes with the step (ablation: without it varun fails).
PROXIMAL = 1e-10


@dataclass
class Weights:
    """What M is made of at one iterate."""

    terms: FloatArray  # ν
    values: FloatArray  # p of the logarithms' terms, y of the plain ones
    pairs: FloatArray  # d = λ/s over the pairs, 0 for the objective
    groups: FloatArray  # ω
    jacobian: Matrix | None = None  # of the smooth parts, one row per function of the program
    hessian: Matrix | None = None  # of the smooth parts, weighted


@dataclass
class Solution:
    """du and dη, and where du is not accurate enough for them ν∘(E du + deviations) and dλ of rows."""

    u: FloatArray
    equality: FloatArray
    terms: FloatArray | None = None
    multipliers: FloatArray | None = None


class NormalEquations(Protocol):
    def factorise(self, weights: Weights) -> None: ...

    def solve(
        self,
        dual: FloatArray,
        deviations: FloatArray | None,
        pairs: FloatArray,
        equality: FloatArray,
    ) -> Solution:
        """For the right-hand side r = dual − Eᵀ(ν∘deviations) − Jᵀ(d∘pairs).

        It comes in parts because the last two are in the range of M's factors: `LowRankEquations` would
        lose all accuracy if they were added up first. Deviations have mean 0 in each logarithm.
        """
        ...


def right_side(
    operators: Operators,
    weights: Weights,
    dual: FloatArray,
    deviations: FloatArray | None,
    pairs: FloatArray,
) -> FloatArray:
    scaled = weights.pairs * pairs
    terms = weights.values * operators.term_weights(scaled)
    if deviations is not None:
        terms += weights.terms * deviations
    right = dual - operators.transposed(terms, scaled)
    if weights.jacobian is not None:
        right -= weights.jacobian.T @ scaled[: operators.head]
    return right


def bound_weights(operators: Operators, weights: Weights) -> FloatArray:
    """The diagonal that the bounds contribute to M."""
    form = operators.form
    diagonal = np.zeros(form.size)
    diagonal[form.lower_index] = weights.pairs[operators.head : operators.first_upper]
    diagonal[form.upper_index] += weights.pairs[operators.first_upper :]
    return diagonal


class WithEqualities:
    """Equalities by the Schur complement A M⁻¹ Aᵀ, for matrices M that are positive definite."""

    def __init__(self, operators: Operators) -> None:
        self.operators = operators
        self.count = operators.equalities
        matrix = operators.equality
        self.equality = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
        self._images: FloatArray = np.zeros((operators.form.size, 0))
        self._augmented = 0.0
        self._weights: Weights

    def _inverse(self, right: FloatArray) -> FloatArray:
        raise NotImplementedError

    def _factorise_equalities(self) -> None:
        if not self.count:
            return
        self._images = self._inverse(self.equality.T)
        complement = self.equality @ self._images
        diagonal = np.einsum("ii->i", complement)
        diagonal *= 1.0 + COMPLEMENT_RIDGE
        diagonal += TINY
        self._complement = DenseCholesky(complement)

    def solve(
        self,
        dual: FloatArray,
        deviations: FloatArray | None,
        pairs: FloatArray,
        equality: FloatArray,
    ) -> Solution:
        right = right_side(self.operators, self._weights, dual, deviations, pairs)
        if self.count:
            right += self._augmented * (self.equality.T @ equality)
        return self._with_equalities(self._inverse(right), equality)

    def _with_equalities(self, solution: FloatArray, equality: FloatArray) -> Solution:
        if not self.count:
            return Solution(solution, equality)
        multipliers = self._complement.solve(self.equality @ solution - equality)
        return Solution(solution - self._images @ multipliers, multipliers)
