"""Riccati's inequality: P = X⁻¹ and Y = K X⁻¹ in place of a cost matrix X and a gain K.

X bounds the cost of the closed loop A + B K where, in continuous or in discrete time,

    (A + B K)ᵀ X + X (A + B K) + Q + Kᵀ R K ⪯ 0,      (A + B K)ᵀ X (A + B K) − X + Q + Kᵀ R K ⪯ 0.

Both are multiplied by P from the left and from the right, which keeps the order of matrices:

    A P + B Y + (A P + B Y)ᵀ + P Q P + Yᵀ R Y ⪯ 0,
    (A P + B Y)ᵀ P⁻¹ (A P + B Y) − P + P Q P + Yᵀ R Y ⪯ 0.

With a disturbance the first one has X G X in addition, as G = E Eᵀ/γ² for the gain γ of H∞ control, and
P X G X P is the constant G. All are convex for [[Q, Nᵀ], [N, R]] ⪰ 0, N the weight of Kᵀ N + Nᵀ K, and
linear by Schur's complement (`schur`). What is linear in X is a matrix fraction of P (`inverse`):
trace(W X) = trace(W P⁻¹). The way back is X = P⁻¹ and K = Y X; multipliers of the row are P Λ P.

Noise that is proportional to the state or to the input adds squares (C + D K)ᵀ X (C + D K) to both, and
(C P + D Y)ᵀ P⁻¹ (C P + D Y).

Block matrices that have X and K in the rows of the states are multiplied by P in these rows alone,
however they are arranged: the bounded real lemma for H∞ norms, in continuous and in discrete time, with a
level γ that is minimised; Lyapunov's inequality as [[X, Fᵀ X], [X F, X]] ⪰ 0 with F = A + B K; limits of
inputs on an ellipsoid, [[X, Kᵀ], [K, u² I]] ⪰ 0; and bounds Eᵀ X E ⪯ Z (`block_loops`).

The map is one to one where X is definite. The set of X says so, or the row does: where X v = 0 it says
that [v; K v]ᵀ [[Q, Nᵀ], [N, R]] [v; K v] ≤ 0, which Q − Nᵀ R⁻¹ N ≻ 0 excludes. So do weights Q ⪰ 0 and
R ≻ 0 if the plant is observable from Q (`loop_weights`). Without either the map is refused: for
A = B = R = 1 and Q = 0 the inequality holds at X = K = 0, while every X > 0 is at least 2.

Whatever the row looks like, its matrices are read off a few of its entries, and the inequality that they
make is multiplied out and compared with the row (`loop_weights`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.facts.polynomials import Sums, added
from hcmodel.facts.symbols import Symbols
from hcmodel.maps.algebra.expanded import Evaluation, Expanded, Row
from hcmodel.maps.algebra.variables_in import variables_in
from hcmodel.maps.conditions import Unmet
from hcmodel.maps.inverse import inverted, matrix_bound
from hcmodel.maps.map import Map, Obstacle, Points, Step, described, fresh_name, symbol_sums
from hcmodel.maps.matrix_algebra.block_loops import BlockInequality, block_weights
from hcmodel.maps.matrix_algebra.loop_weights import Weights, weights_of
from hcmodel.maps.matrix_algebra.matrix_squares import factor
from hcmodel.maps.matrix_algebra.slacks import slack_of
from hcmodel.maps.matrix_product import partners
from hcmodel.maps.schur import Block, Square, made_block
from hcmodel.records import dataclass, replace

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]


class Riccati(Map):
    """P = X⁻¹ and Y = K X⁻¹; see the module."""

    name = "riccati"
    summary = "P = X⁻¹ and Y = K X⁻¹ for a definite X; back: X = P⁻¹, K = Y X"
    literature = "Boyd, El Ghaoui, Feron, Balakrishnan 1994, sections 2.7, 7.2 and 10.1"
    example = "riccati.hc"
    large = True

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        matrices = [
            each for each in model.variables if each.set.is_curved and each.set.is_symmetric
        ]
        for matrix in matrices:
            if sum(each.shape >= matrix.shape for each in matrices) < 2:
                continue  # there is no slack of an inequality
            for gain in partners(model, matrix):
                numbers = model.symbols.of_variable(gain)
                for own, turned in orientations(gain, numbers, matrix.shape[0]):
                    found = _substituted(model, matrix, gain, own, turned)
                    if found is not None:
                        yield found


@dataclass(frozen=True, eq=False)
class _Inequality:
    """A row that says that these weights make a matrix ⪯ 0, and its slack."""

    row: Row
    slack: Variable
    scale: float
    weights: Weights

    def outer(self, matrix: FloatArray) -> FloatArray:
        """What the slack is multiplied by from both sides, with P, and on the way back with X."""
        return matrix

    def block(self, model: Expanded, inner: Sums, product: Sums, slack: Variable) -> Block:
        """The inequality in P and Y as a block matrix; `slack` is P S P."""
        coding = inner.coding
        first = Sums.constant(self.weights.drift, coding) @ inner
        if self.weights.input.any():
            first = first + Sums.constant(self.weights.input, coding) @ product
        rest = -added([first, first.transposed(), Sums.constant(self.weights.disturbance, coding)])
        squares = list[Square]()
        if self.weights.weight.any():
            order = len(self.weights.drift)
            root = factor(self.weights.weight).T
            above = Sums.constant(root[:, :order], coding) @ inner
            squares.append(Square(above + Sums.constant(root[:, order:], coding) @ product))
        if self.weights.step.any() or self.weights.step_input.any():
            above = Sums.constant(self.weights.step, coding) @ inner
            above = above + Sums.constant(self.weights.step_input, coding) @ product
            squares.append(Square(above, inner))
        for step, step_input in self.weights.noise:
            above = Sums.constant(step, coding) @ inner
            squares.append(Square(above + Sums.constant(step_input, coding) @ product, inner))
        row = replace(self.row, congruence=inner)
        return made_block(model, row, slack, self.scale, rest, squares)


def _substituted(
    model: Expanded, matrix: Variable, gain: Variable, numbers: Numbers, turned: bool
) -> Step | Obstacle | None:
    """The model in P and Y; None where no row is an inequality of this kind."""
    found, others = list[_Inequality | BlockInequality](), list[Row]()
    for row in model.rows:
        read = _read(model, row, matrix, numbers)
        if read is not None:
            found.append(read)
        else:
            others.append(row)
    if not any(each.row.sums.holding(numbers).any() for each in found):
        return None
    if not all(each.weights.is_convex() for each in found):
        return Unmet("riccati", f"the weights of {gain.name} and of the states are indefinite")
    low = (matrix.eigenvalue_bounds or (0.0, np.inf))[0]
    if low <= 0 and not any(each.weights.keeps_definite() for each in found):
        reason = (
            f"{matrix.name} may be singular: bound its eigenvalues from below, as in "
            f"{matrix.name} >> 1e-6 * I, or give weights to states that those with a weight do not show"
        )
        return Unmet("riccati", reason)
    if not (matrix.eigenvalue_bounds or (0.0, np.inf))[1] < np.inf:
        for each in found:
            if not each.weights.may_be_stable():
                # the model in P has points with a singular P only, which solvers cannot tell from others
                reason = f"no {gain.name} stabilises the plant of {model.name_of(each.row)}"
                return Unmet("riccati", reason)
    step = inverted(replace(model, rows=tuple(others)), matrix)
    if isinstance(step, Obstacle):
        return step
    left = np.intersect1d(numbers, step.after.used())
    if left.size:
        word = described(model.symbols, int(left[0]))
        return Obstacle("riccati", f"{word} is not affine in the inverse of {matrix.name}")
    return _Riccati(model, step, gain, turned, found)


class _Riccati(Step):
    """X and K in place of P and Y, and slacks in place of the blocks of inequalities."""

    name = "riccati"

    def __init__(
        self,
        model: Expanded,
        inverse: Step,
        gain: Variable,
        turned: bool,
        inequalities: Sequence[_Inequality | BlockInequality],
    ) -> None:
        matrix = inverse.new[0]
        shape = gain.shape[::-1] if turned else gain.shape
        product = Variable((1, *shape)[-2:], name=fresh_name(model, "Y"))
        symbols = model.symbols
        inner, own = (symbol_sums(symbols, symbols.of_variable(v)) for v in (matrix, product))
        blocks = []
        for each in inequalities:
            slack = Variable(each.slack.shape, name=f"{each.slack.name}·{matrix.name}", PSD=True)
            blocks.append(each.block(model, inner, own, slack))
        slacks = tuple(each.slack for each in inequalities)
        self.gone = (*inverse.gone, gain, *slacks)
        self.new = (*inverse.new, product, *(each.block for each in blocks))
        away = {*self.gone}
        kept = tuple(each for each in inverse.after.variables if each not in away)
        self.after = replace(
            inverse.after,
            rows=(*inverse.after.rows, *(each.row for each in blocks)),
            variables=(*kept, product, *(each.block for each in blocks)),
        )
        left = f"{gain.name}.T" if turned else gain.name
        self.texts = {**inverse.texts, product: f"{left} @ inv({inverse.gone[0].name})"}
        self.divisors = (matrix,)
        self.released = (*inverse.released, *((gain.name,) if gain.has_bounds else ()))
        reach = min(each.weights.reach() for each in inequalities)
        self.implied = _ranges(symbols, matrix, product, blocks, reach)
        self._inverse, self._turned, self._gain, self._product = inverse, turned, gain, product
        self._inequalities, self._blocks = tuple(inequalities), tuple(blocks)

    def forward(self, point: Points) -> None:
        self._inverse.forward(point)
        matrix = point[self._inverse.new[0]]
        gain = point[self._gain]
        wide = gain.reshape(1, -1) if gain.ndim < 2 else (gain.T if self._turned else gain)
        point[self._product] = wide @ matrix
        evaluation = Evaluation(self.after.symbols, point)
        for each, block in zip(self._inequalities, self._blocks, strict=True):
            outer, slack = each.outer(matrix), each.slack
            shift = (slack.eigenvalue_bounds or (0.0, np.inf))[0] * np.eye(len(outer))
            point[block.slack] = outer @ (point[slack] - shift) @ outer
            block.forward(evaluation, point)

    def back(self, point: Points) -> None:
        self._inverse.back(point)
        matrix = point[self._inverse.gone[0]]
        gain = point[self._product] @ matrix
        point[self._gain] = (gain.T if self._turned else gain).reshape(self._gain.shape)
        evaluation = Evaluation(self.after.symbols, point)
        for each, block in zip(self._inequalities, self._blocks, strict=True):
            block.back(evaluation, point)
            outer, slack = each.outer(matrix), each.slack
            shift = (slack.eigenvalue_bounds or (0.0, np.inf))[0] * np.eye(len(outer))
            point[slack] = outer @ point[block.slack] @ outer + shift


def _ranges(
    symbols: Symbols, matrix: Variable, product: Variable, blocks: Sequence[Block], reach: float
) -> dict[Variable, tuple[FloatArray, FloatArray]]:
    """Ranges of P, Y and the blocks where no entry of P and Y is larger than `reach`."""
    if not np.isfinite(reach):
        return {}
    ends = {each: np.full(each.shape, reach) for each in (matrix, product)}
    for each in blocks:
        if variables_in(symbols, each.row.sums) <= {matrix, product, each.block}:
            ends[each.block] = each.size(reach)
    return {each: (-end, end) for each, end in ends.items()}


# ---- reading a row


def _read(
    model: Expanded, row: Row, matrix: Variable, numbers: Numbers
) -> _Inequality | BlockInequality | None:
    """The matrices of an inequality; None for rows of other kinds."""
    inner, size = model.symbols.of_variable(matrix), row.sums.shape[:1]
    if row.sense != "==" or row.sums.shape != 2 * size or row.congruence is not None:
        return None
    if not row.sums.holding(inner).any():
        return None
    slack = _slack(model, row, matrix)
    if slack is None or matrix_bound(model, row, matrix) is not None:
        return None
    own = row.sums.holding(model.symbols.of_variable(slack))
    scale = -1.0 / float(row.sums.weight[own][0])
    whole = row.sums.chosen(~own).scaled(-scale)  # this is −S
    low = (slack.eigenvalue_bounds or (0.0, np.inf))[0]
    if low:
        whole = whole + Sums.constant(low * np.eye(size[0]), whole.coding)
    if row.sums.shape == matrix.shape:
        weights = weights_of(whole, inner, numbers, model.symbols.count)
        if weights is not None:
            return _Inequality(row, slack, scale, weights)
        both: Numbers = np.concatenate([np.ravel(inner), np.ravel(numbers)])
        alone = (whole.among(both + 1).sum(axis=1) == whole.degrees).all()
        if alone and whole.holding(numbers).any():
            return None  # all rows are states then, as those of covariances
    blocks = block_weights(whole, inner, numbers, model.symbols)
    return None if blocks is None else BlockInequality(row, slack, scale, blocks)


def orientations(gain: Variable, numbers: Numbers, order: int) -> Iterator[tuple[Numbers, bool]]:
    """The symbols of a gain, or of its transpose, as a matrix with as many columns as X."""
    wide = numbers.reshape(1, -1) if gain.ndim < 2 else numbers
    for turned in (False, True)[: gain.ndim]:
        own = wide.T if turned else wide
        if own.shape[1] == order:
            yield own, turned


def _slack(model: Expanded, row: Row, matrix: Variable) -> Variable | None:
    slack = slack_of(model, row)
    if slack is None or slack is matrix or slack.has_bounds:
        return None
    return slack if (slack.eigenvalue_bounds or (0.0, np.inf))[1] == np.inf else None
