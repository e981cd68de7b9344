"""An iterate of the interior-point method, its residuals, and the Newton direction from it."""

from __future__ import annotations

import numpy as np

from hcmodel.records import dataclass
from hcmodel.solvers.algebra import marks
from hcmodel.solvers.numerics import TINY
from hcmodel.solvers.second_order.interior_point.convex_program import FloatArray, Matrix
from hcmodel.solvers.second_order.interior_point.linear_system import (
    NormalEquations,
    Solution,
    Weights,
)
from hcmodel.solvers.second_order.interior_point.operators import Operators
from hcmodel.solvers.second_order.interior_point.smooth_parts import SmoothParts

# Steps of iterative refinement; each one gains at least a factor 2, mostly six digits (ablation:
# without them 400 gates are solved to reduced accuracy).
REFINEMENTS = 2
# Terms that are far too large for u are asked to shrink by this factor at most: they could not fall
# further than to 0, and would shorten every step (measured before there was
# a second attempt: 1 is equal, without it 3 of 180 random programs more fail; ablation:
# 20 % more iterations without it).
DAMPING = 3.0
# Exponents are cut off here: e^600 is a number, and so is its product with a weight of e^100.
LARGEST_EXPONENT = 600.0
# The share of the residual of the equalities that refinement need not reduce further (ablation: off,
# half and double are equal).
LITTLE = 1e-3


@dataclass
class Iterate:
    """`multipliers` and `slacks` are over the pairs; the objective's weight comes first."""

    u: FloatArray
    terms: FloatArray  # ν
    multipliers: FloatArray
    slacks: FloatArray
    equality: FloatArray  # η


@dataclass
class Model:
    """The terms' values at an iterate, and the rows that follow from them (below the true ones)."""

    term_weights: FloatArray  # ω of each term
    values: FloatArray  # y = ν/ω
    deviations: FloatArray  # E u + b − log y, less its mean in a logarithm
    rows: FloatArray  # f_0 … f_m, with affine functions below the logarithms and exponentials


@dataclass
class Residuals:
    model: Model
    exponents: FloatArray  # E u + b
    affine: FloatArray  # C u + c, with the values of smooth parts
    primal: FloatArray  # over the pairs, 0 for the objective
    dual: FloatArray
    equality: FloatArray
    jacobian: Matrix | None = None  # of the smooth parts


@dataclass
class Direction:
    u: FloatArray
    terms: FloatArray
    multipliers: FloatArray
    slacks: FloatArray
    equality: FloatArray
    exponents: FloatArray  # E du
    dual: FloatArray  # the change of the dual residual
    product: FloatArray  # J du over the pairs
    groups: FloatArray  # J du of the logarithms


def term_model(
    operators: Operators,
    exponents: FloatArray,
    affine: FloatArray,
    terms: FloatArray,
    multipliers: FloatArray,
) -> Model:
    logs = operators.form.log_terms
    weights = operators.term_weights(multipliers)
    values = terms / weights
    deviations = exponents - np.log(values)
    means = operators.group_sums(values * deviations)
    if logs:
        deviations[:logs] -= operators.groups.spread(means)
    plain = values[logs:] * (1 + deviations[logs:])
    rows = operators.row_values(affine.copy(), means, plain)
    return Model(weights, values, deviations, rows)


def evaluate(operators: Operators, smooth: SmoothParts | None, iterate: Iterate) -> Residuals:
    form, head = operators.form, operators.head
    u = iterate.u
    exponents = operators.exponents @ u + form.offsets
    affine = operators.affine @ u + form.constants if operators.has_affine else form.constants
    jacobian = None
    if smooth is not None:
        affine = affine + smooth.values(u)
        jacobian = smooth.jacobian(u)
    model = term_model(operators, exponents, affine, iterate.terms, iterate.multipliers)
    primal = np.empty(operators.pairs)
    primal[:head] = model.rows
    primal[head : operators.first_upper] = (form.lower - u)[form.lower_index]
    primal[operators.first_upper :] = (u - form.upper)[form.upper_index]
    primal += iterate.slacks
    primal[0] = 0.0
    dual = operators.transposed(iterate.terms, iterate.multipliers)
    if operators.equalities:
        dual += operators.equality_t @ iterate.equality
    if jacobian is not None:
        dual += jacobian.T @ iterate.multipliers[:head]
    equality = form.equality_bound  # none
    if operators.equalities:
        equality = operators.equality @ u - form.equality_bound
    return Residuals(model, exponents, affine, primal, dual, equality, jacobian)


class Newton:
    """Newton directions at one iterate, with one factorisation."""

    def __init__(
        self,
        operators: Operators,
        equations: NormalEquations,
        smooth: SmoothParts | None,
        iterate: Iterate,
        residuals: Residuals,
    ) -> None:
        self.operators, self.equations = operators, equations
        self.iterate, self.residuals = iterate, residuals
        self.ratios = iterate.multipliers / iterate.slacks  # λ/s
        self.ratios[0] = 0.0
        self.inverse_ratios = iterate.slacks / iterate.multipliers
        self.inverse_ratios[0] = 0.0
        form, head = operators.form, operators.head
        weights = iterate.multipliers[:head]
        self.hessian = None if smooth is None else smooth.hessian(iterate.u, weights)
        equations.factorise(
            Weights(
                iterate.terms,
                residuals.model.values,
                self.ratios,
                iterate.multipliers[form.group_rows],
                residuals.jacobian,
                self.hessian,
            )
        )

    def direction(
        self, complementarity: FloatArray, deviations: FloatArray, enough: float | None = None
    ) -> Direction:
        """Solve for λ∘ds + s∘dλ = −complementarity, with the terms' `deviations` to be removed.

        It is refined until the dual residual that the direction leaves is at most `enough`.

        Refinement keeps du and dλ apart: λ/s is up to 1e12 at active rows, and dλ computed from du alone
        would carry the rounding of J du times that.
        """
        residuals = self.residuals
        deviations = self._damped(deviations)
        target = residuals.primal - complementarity / self.iterate.multipliers
        target[0] = 0.0
        # the equations: (s/λ) dλ − J du = target, A du = −equality, and the dual rows
        solution = self.equations.solve(-residuals.dual, deviations, target, -residuals.equality)
        found = self._completed(solution, target, deviations)
        if enough is not None and solution.terms is None:
            found = self._refined(found, target, deviations, enough)
        found.slacks = -residuals.primal - found.product
        found.slacks[0] = 0.0
        return found

    def _refined(
        self, found: Direction, target: FloatArray, deviations: FloatArray, enough: float
    ) -> Direction:
        """Iterative refinement of the dual rows and of the equalities."""
        residuals, operators = self.residuals, self.operators
        rest_equality = -residuals.equality
        little = LITTLE * largest(rest_equality)
        for _ in range(REFINEMENTS):
            rest = -residuals.dual - found.dual
            if operators.equalities:
                rest_equality = -residuals.equality - operators.equality @ found.u
            before = (largest(rest), largest(rest_equality))
            if before[0] <= enough and before[1] <= little:
                break
            rest_pairs = target + found.product - self.inverse_ratios * found.multipliers
            more = self.equations.solve(rest, None, rest_pairs, rest_equality)
            better = self._completed(more, rest_pairs, deviations, found)
            left = largest(residuals.dual + better.dual)
            if not left < 0.5 * before[0] and not (before[0] <= enough and left <= enough):
                break
            found = better
        return found

    def _damped(self, deviations: FloatArray) -> FloatArray:
        """The deviations with negative ones limited to −DAMPING, and mean 0 in each logarithm."""
        operators, logs = self.operators, self.operators.form.log_terms
        negative = np.minimum(deviations, 0.0)
        damped = deviations + (negative / (1.0 - negative / DAMPING) - negative)
        if logs:
            means = operators.groups.sums((self.residuals.model.values * damped)[:logs])
            damped[:logs] -= operators.groups.spread(means)
        return damped

    def _completed(
        self,
        solution: Solution,
        pairs: FloatArray,
        deviations: FloatArray,
        base: Direction | None = None,
    ) -> Direction:
        """dλ and dν from du, added to what there is already."""
        operators, iterate, residuals = self.operators, self.iterate, self.residuals
        form, head = operators.form, operators.head
        values = residuals.model.values
        du, dy = solution.u, solution.equality
        exponents = operators.exponents @ du
        product, groups = operators.forward(du, exponents, values)
        if residuals.jacobian is not None:
            product[1:head] += (residuals.jacobian @ du)[1:]
        multipliers = self.ratios * (product + pairs)
        if solution.multipliers is not None:
            multipliers[1 : 1 + solution.multipliers.size] = solution.multipliers
        if base is not None:
            du, dy = base.u + du, base.equality + dy
            exponents, product = base.exponents + exponents, base.product + product
            groups, multipliers = base.groups + groups, base.multipliers + multipliers
        if solution.terms is None:
            centred = exponents + deviations
            if groups.size:
                centred[: form.log_terms] -= operators.groups.spread(groups)
            terms = iterate.terms * centred
        else:
            terms = solution.terms
        terms += values * operators.term_weights(multipliers)
        dual = operators.transposed(terms, multipliers)
        if operators.equalities:
            dual += operators.equality_t @ dy
        if residuals.jacobian is not None and self.hessian is not None:
            dual += residuals.jacobian.T @ multipliers[:head] + self.hessian @ du
        return Direction(du, terms, multipliers, product, dy, exponents, dual, product, groups)


def largest(vector: FloatArray) -> float:
    return marks.largest(np.abs(vector))


def synchronised(
    operators: Operators,
    exponents: FloatArray,
    terms: FloatArray,
    multipliers: FloatArray,
    budget: float,
) -> FloatArray:
    """The weights of the terms, those whose group changes by at most the budget put to what u says."""
    logs = operators.form.log_terms
    weights = operators.term_weights(multipliers)
    result = terms.copy()
    if logs:
        _, shares = operators.groups.log_sums(exponents[:logs])
        exact = np.maximum(weights[:logs] * shares, TINY)
        change = operators.groups.sums(np.abs(exact - terms[:logs]))
        close = operators.groups.spread(change <= budget)
        result[:logs] = np.where(close, exact, terms[:logs])
    if logs < terms.size:
        exact = np.maximum(
            weights[logs:] * np.exp(np.minimum(exponents[logs:], LARGEST_EXPONENT)), TINY
        )
        near = np.abs(exact - terms[logs:]) <= budget
        result[logs:] = np.where(near, exact, terms[logs:])
    return result
