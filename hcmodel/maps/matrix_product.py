"""The product map of control: P positive definite and Y = K P in place of P and K.

A feedback gain K enters the equations of its closed loop in products with the covariance P alone. With
Y = K P these are linear, and what is quadratic in K becomes a matrix fraction:

    K P          →  Y
    K P Kᵀ       →  Y P⁻¹ Yᵀ,   so that  trace(R K P Kᵀ) = trace(R Y P⁻¹ Yᵀ), convex for R ⪰ 0

The way back is K = Y P⁻¹. An inequality between matrices in which K P Kᵀ occurs alone is a linear one
by Schur's complement: E − G Y P⁻¹ Yᵀ Gᵀ ⪰ 0 where [[E, G Y], [Yᵀ Gᵀ, P]] ⪰ 0. Where noise grows with
the input there are several G, and a Z ⪰ Y P⁻¹ Yᵀ takes the place of K P Kᵀ. The equality
P == Σ (A_r + B_r K) P (A_r + B_r K)ᵀ + W of a covariance in discrete time may be an inequality ⪰ where
objective and rows do not decrease as P grows: its solution is the least P of all. Bounds on K are
not convex in Y and P; they are left out, and the point that is found is tested against them.

Squares of what is affine in P and K P, over a number γ or times one, are products of Y and P: so is
(C P + D K P)ᵀ (C P + D K P)/γ of an H∞ norm γ, which Schur's complement makes linear with a block γ I.

A model that is written with matrices is read as such, and has names for K P and K P Kᵀ before it is
multiplied out (`named_products`). Else K P is the sum over i of K[a,i] P[i,l], and nothing else in K and
P is linear in Y: so the products K[a,i] P[i,l] must have equal weights for all i.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.model import Model
from hcmodel.maps.algebra.expanded import Expanded, Row
from hcmodel.maps.algebra.rewriting import applied
from hcmodel.maps.map import (
    Map,
    Obstacle,
    Points,
    Step,
    Together,
    described,
    fresh_name,
    symbol_sums,
)
from hcmodel.maps.matrix_algebra.matrix_inequalities import (
    Inequality,
    Noisy,
    inequality,
    lost_bounds,
)
from hcmodel.maps.matrix_algebra.named_products import named
from hcmodel.maps.matrix_algebra.product_terms import Products
from hcmodel.records import replace
from hcmodel.solvers.numerics import DATA_ROUNDING, SUM_ROUNDING

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]


class Product(Map):
    """Y = K P for a positive definite P; see the module."""

    name = "product"
    summary = "P ≻ 0 and Y = K P; back: K = Y P⁻¹"
    literature = "Bernussou, Peres, Geromel 1989; Boyd, El Ghaoui, Feron, Balakrishnan 1994"
    example = "lqr.hc"
    large = True

    def propose_written(self, model: Model) -> Iterator[Step | Obstacle]:
        for each in named(model):
            yield _rewritten(each.model, each.rewriting, each.gain, each.turned, each.product)

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        matrices = [v for v in model.variables if v.set.is_curved and v.set.is_symmetric]
        pairs = {matrix: partners(model, matrix) for matrix in matrices}
        several = [matrix for matrix, gains in pairs.items() if gains]
        together = _together(model, several) if len(several) > 1 else None
        if together is not None:
            yield together
            return
        for matrix, gains in pairs.items():
            for gain in gains:
                yield from _single(model, matrix, gain)


def _single(model: Expanded, matrix: Variable, gain: Variable) -> Iterator[Step | Obstacle]:
    """One gain, as it is or transposed, with one matrix."""
    numbers = model.symbols.of_variable(gain)
    for turned in [False, True] if gain.ndim == 2 else [False]:
        wide = numbers.reshape(1, -1) if gain.ndim < 2 else numbers
        wide = wide.T if turned else wide
        if wide.shape[1] == matrix.shape[0]:
            yield _substituted(model, gain, wide, matrix, turned)


def _together(model: Expanded, matrices: Sequence[Variable]) -> Step | None:
    """A gain with each of several matrices at once, as for the stages of a finite horizon."""
    steps: list[Step] = []
    for matrix in matrices:
        fitting = (
            step
            for gain in partners(model, matrix)
            for step in _single(model, matrix, gain)
            if isinstance(step, Step)
        )
        step = next(fitting, None)
        if step is not None:
            steps.append(step)
            model = step.after
    return Together(steps) if len(steps) > 1 else None


def partners(model: Expanded, matrix: Variable) -> list[Variable]:
    """The variables that stand in products with entries of a matrix."""
    found = model.partners.get(matrix)
    if found is None:  # several maps ask for them
        found = model.partners[matrix] = _partners(model, matrix)
    return found


def _partners(model: Expanded, matrix: Variable) -> list[Variable]:
    symbols = model.symbols
    own = np.zeros(symbols.count + 1, dtype=bool)
    own[symbols.of_variable(matrix).reshape(-1) + 1] = True
    met = np.zeros(symbols.count + 1, dtype=bool)
    for sums in model.everywhere():
        digits = sums.digits
        met[digits[own[digits].any(axis=1)]] = True
    met[0] = False  # no factor
    found: dict[Variable, None] = {}
    for source, _, _ in symbols.grouped(np.flatnonzero(met) - 1):
        if isinstance(source, Variable) and not (
            source.set.is_symmetric or source.set.is_distribution
        ):
            found[source] = None
    return list(found)


def divided(product: FloatArray, matrix: FloatArray) -> FloatArray:
    """K with K P = Y, by the pseudo-inverse where P is nearly singular.

    Else it is solved for: K P is Y again up to rounding, also where P is badly conditioned.
    """
    values = np.linalg.eigvalsh(matrix)
    if values[0] > DATA_ROUNDING * values[-1]:
        return np.asarray(np.linalg.solve(matrix, product.T).T)
    return np.asarray(product @ np.linalg.pinv(matrix, rcond=SUM_ROUNDING, hermitian=True))


def _substituted(
    model: Expanded, gain: Variable, numbers: Numbers, matrix: Variable, turned: bool
) -> Step | Obstacle:
    new = Variable(numbers.shape, name=fresh_name(model, "Y"))
    return _rewritten(model, Products(model, numbers, matrix, new), gain, turned, new)


def _rewritten(
    model: Expanded, rewriting: Products, gain: Variable, turned: bool, new: Variable
) -> Step | Obstacle:
    matrix, numbers = rewriting.matrix, rewriting.numbers
    left, right = (f"{gain.name}.T" if turned else gain.name), matrix.name
    rows, inequalities = list[Row](), list[Inequality | Noisy]()
    for row in model.rows:
        found = inequality(model, row, rewriting)
        if found is None:
            rows.append(row)
        elif isinstance(found, Obstacle):
            return found
        else:
            inequalities.append(found)
    plain = replace(model, rows=tuple(rows))
    gone = [gain, *(slack for each in inequalities for slack in each.gone)]
    blocks = [new for each in inequalities for new in each.new]
    more = [row for each in inequalities for row in each.rows]
    after = applied(plain, rewriting, gone=gone, new=[new, *blocks], rows=more)
    if isinstance(after, np.ndarray):
        word = described(model.symbols, int(after[0]))
        return Obstacle("product", f"{word} is not affine in ({matrix.name}, {left} @ {right})")
    step = _Gain(gain, matrix, new, turned, tuple(inequalities), after)
    step.texts = {new: f"{left} @ {right}"}
    whole = symbol_sums(model.symbols, numbers) @ symbol_sums(
        model.symbols, model.symbols.of_variable(matrix)
    )
    step.implied = {new: model.symbols.interval(whole)}
    return step


class _Gain(Step):
    """K in place of Y, and slacks in place of the blocks of matrix inequalities."""

    name = "product"

    def __init__(
        self,
        gain: Variable,
        matrix: Variable,
        new: Variable,
        turned: bool,
        inequalities: tuple[Inequality | Noisy, ...],
        after: Expanded,
    ) -> None:
        self.gone = (gain, *(slack for each in inequalities for slack in each.gone))
        self.new = (new, *(more for each in inequalities for more in each.new))
        self.after = after
        bounded = (gain.name,) if gain.has_bounds else ()
        self.released = (*bounded, *lost_bounds(inequalities))
        self.divisors = (matrix,)
        self._matrix, self._turned, self._inequalities = matrix, turned, inequalities

    def forward(self, point: Points) -> None:
        gain = self._wide(point[self.gone[0]])
        point[self.new[0]] = gain @ point[self._matrix]
        for each in self._inequalities:
            each.forward(point[self.new[0]], gain, point)

    def back(self, point: Points) -> None:
        matrix, product = point[self._matrix], point[self.new[0]]
        gain = divided(product, matrix)
        narrow = gain.T if self._turned else gain
        point[self.gone[0]] = narrow.reshape(self.gone[0].shape)
        for each in self._inequalities:
            each.back(gain, point)

    def tangent_back(self, point: Points, moves: Points) -> None:
        """dK = (dY − K dP) P⁻¹; slacks move with the block, by differences."""
        super().tangent_back(point, moves)
        gain, matrix = self._wide(point[self.gone[0]]), point[self._matrix]
        change = moves[self.new[0]] - gain @ moves[self._matrix]
        moved = divided(change, matrix)
        moves[self.gone[0]] = (moved.T if self._turned else moved).reshape(self.gone[0].shape)

    def _wide(self, gain: FloatArray) -> FloatArray:
        """The gain as a matrix with as many columns as P has."""
        wide = gain.reshape(1, -1) if gain.ndim < 2 else gain
        return wide.T if self._turned else wide
