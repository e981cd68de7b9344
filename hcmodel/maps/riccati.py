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

The map is one to one where X is definite. The set of X says so, or the row does: where X v = 0 it says
that [v; K v]ᵀ [[Q, Nᵀ], [N, R]] [v; K v] ≤ 0, which Q − Nᵀ R⁻¹ N ≻ 0 excludes. Without either the map is
refused: for A = B = R = 1 and Q = 0 the inequality holds at X = K = 0, while every X > 0 is at least 2.

Whatever the row looks like, its matrices are read off a few of its entries, and the inequality that they
make is multiplied out and compared with the row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.facts.polynomials import Sums, added
from hcmodel.maps.congruences import congruence
from hcmodel.maps.expanded import Evaluation, Expanded, Row
from hcmodel.maps.inverse import inverted, matrix_bound
from hcmodel.maps.map import Map, Obstacle, Points, Step, described, fresh_name, symbol_sums
from hcmodel.maps.matrix_inequalities import slack_of
from hcmodel.maps.matrix_product import partners
from hcmodel.maps.matrix_squares import factor
from hcmodel.maps.product_terms import places_of
from hcmodel.maps.schur import Block, Square, made_block
from hcmodel.records import dataclass, replace
from hcmodel.solvers.numerics import DATA_ROUNDING

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]


class Riccati(Map):
    """P = X⁻¹ and Y = K X⁻¹; see the module."""

    name = "riccati"
    summary = "P = X⁻¹ and Y = K X⁻¹ for a definite X; back: X = P⁻¹, K = Y X"
    literature = "Boyd, El Ghaoui, Feron, Balakrishnan 1994, sections 7.2 and 10.1"
    example = "riccati.hc"
    large = True

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        matrices = [
            each for each in model.variables if each.set.is_curved and each.set.is_symmetric
        ]
        for matrix in matrices:
            if sum(each.shape == matrix.shape for each in matrices) < 2:
                continue  # there is no slack of an inequality
            for gain in partners(model, matrix):
                numbers = model.symbols.of_variable(gain)
                for own, turned in orientations(gain, numbers, matrix.shape[0]):
                    found = _substituted(model, matrix, gain, own, turned)
                    if found is not None:
                        yield found


@dataclass(frozen=True, eq=False)
class Weights:
    """He(X A + X B K) + (C + D K)ᵀ X (C + D K) + X G X + [I; K]ᵀ W [I; K], He(M) = M + Mᵀ."""

    drift: FloatArray
    input: FloatArray
    step: FloatArray
    step_input: FloatArray
    weight: FloatArray
    disturbance: FloatArray

    def keeps_definite(self) -> bool:
        """Whether no singular X satisfies it: the least of [v; k]ᵀ W [v; k] over k is positive."""
        order = len(self.drift)
        state, cross, rest = (
            self.weight[:order, :order],
            self.weight[order:, :order],
            self.weight[order:, order:],
        )
        least = state - cross.T @ np.linalg.pinv(rest, DATA_ROUNDING, hermitian=True) @ cross
        size = np.abs(self.weight).max(initial=0.0)
        return bool(np.linalg.eigvalsh(least).min() > DATA_ROUNDING * size)

    def is_convex(self) -> bool:
        """Whether W ⪰ 0."""
        values = np.linalg.eigvalsh(self.weight)
        return bool(values.min() >= -DATA_ROUNDING * np.abs(values).max())

    def may_be_stable(self) -> bool:
        """Whether some gain stabilises the plant, by the test of Popov, Belevitch and Hautus."""
        discrete = bool(self.step.any() or self.step_input.any())
        plant = (self.step, self.step_input) if discrete else (self.drift, self.input)
        size = max(np.abs(each).max(initial=0.0) for each in plant)
        for root in np.linalg.eigvals(plant[0]):
            if (abs(root) >= 1) if discrete else (root.real >= 0):
                both = np.hstack([plant[0] - root * np.eye(len(plant[0])), plant[1]])
                if np.linalg.svd(both, compute_uv=False)[-1] <= DATA_ROUNDING * size:
                    return False
        return True

    def reach(self) -> float:
        """What the Frobenius norm of [P; Y] is at most, where W ≻ 0; infinite else.

        With the least eigenvalue λ of W, by traces,
        λ |[P; Y]|² <= −2 trace(A P + B Y) − trace(G) <= 2 |[A, B]| |[P; Y]| − trace(G).
        """
        values = np.linalg.eigvalsh(self.weight)
        if values[0] <= DATA_ROUNDING * values[-1]:
            return np.inf
        both = np.hstack([self.drift, self.input])
        size, least = float(np.linalg.norm(both)), float(values[0])
        rest = max(-float(np.trace(self.disturbance)), 0.0)
        return (1 + DATA_ROUNDING) * (size + float(np.sqrt(size**2 + least * rest))) / least


@dataclass(frozen=True, eq=False)
class _Inequality:
    """A row that says that these weights make a matrix ⪯ 0, and its slack."""

    row: Row
    slack: Variable
    scale: float
    weights: Weights

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
        row = replace(self.row, congruence=inner)
        return made_block(model, row, slack, self.scale, rest, squares)


def _substituted(
    model: Expanded, matrix: Variable, gain: Variable, numbers: Numbers, turned: bool
) -> Step | Obstacle | None:
    """The model in P and Y; None where no row is an inequality of this kind."""
    found, others = list[_Inequality](), list[Row]()
    for row in model.rows:
        read = _read(model, row, matrix, numbers)
        if isinstance(read, _Inequality):
            found.append(read)
        else:
            others.append(row)
    if not found:
        return None
    if not all(each.weights.is_convex() for each in found):
        return Obstacle("riccati", f"the weights of {gain.name} and of the states are indefinite")
    low = (matrix.eigenvalue_bounds or (0.0, np.inf))[0]
    if low <= 0 and not any(each.weights.keeps_definite() for each in found):
        reason = (
            f"{matrix.name} may be singular: bound its eigenvalues from below, as in "
            f"{matrix.name} >> 1e-6 * I, or give the states a positive definite weight"
        )
        return Obstacle("riccati", reason)
    if not (matrix.eigenvalue_bounds or (0.0, np.inf))[1] < np.inf:
        for each in found:
            if not each.weights.may_be_stable():
                # the model in P has points with a singular P only, which solvers cannot tell from others
                reason = f"no {gain.name} stabilises the plant of {_name(each.row)}"
                return Obstacle("riccati", reason)
    step = inverted(replace(model, rows=tuple(others)), matrix)
    if isinstance(step, Obstacle):
        return step
    left = np.intersect1d(numbers, step.after.used())
    if left.size:
        word = described(model.symbols, int(left[0]))
        return Obstacle("riccati", f"{word} is not affine in the inverse of {matrix.name}")
    return _Riccati(model, step, gain, turned, found)


def _name(row: Row) -> str:
    return "a row" if row.position is None else f"c{row.position + 1}"


class _Riccati(Step):
    """X and K in place of P and Y, and slacks in place of the blocks of inequalities."""

    name = "riccati"

    def __init__(
        self,
        model: Expanded,
        inverse: Step,
        gain: Variable,
        turned: bool,
        inequalities: Sequence[_Inequality],
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
        self.released = (*inverse.released, *((gain.name,) if gain.has_bounds else ()))
        self.implied = _ranges(
            matrix, product, blocks, min(each.weights.reach() for each in inequalities)
        )
        self._inverse, self._turned, self._gain, self._product = inverse, turned, gain, product
        self._slacks, self._blocks = slacks, tuple(blocks)

    def forward(self, point: Points) -> None:
        self._inverse.forward(point)
        matrix = point[self._inverse.new[0]]
        gain = point[self._gain]
        wide = gain.reshape(1, -1) if gain.ndim < 2 else (gain.T if self._turned else gain)
        point[self._product] = wide @ matrix
        evaluation = Evaluation(self.after.symbols, point)
        for slack, block in zip(self._slacks, self._blocks, strict=True):
            shift = (slack.eigenvalue_bounds or (0.0, np.inf))[0] * np.eye(len(matrix))
            point[block.slack] = matrix @ (point[slack] - shift) @ matrix
            block.forward(evaluation, point)

    def back(self, point: Points) -> None:
        self._inverse.back(point)
        matrix = point[self._inverse.gone[0]]
        gain = point[self._product] @ matrix
        point[self._gain] = (gain.T if self._turned else gain).reshape(self._gain.shape)
        evaluation = Evaluation(self.after.symbols, point)
        for slack, block in zip(self._slacks, self._blocks, strict=True):
            block.back(evaluation, point)
            shift = (slack.eigenvalue_bounds or (0.0, np.inf))[0] * np.eye(len(matrix))
            point[slack] = matrix @ point[block.slack] @ matrix + shift


def _ranges(
    matrix: Variable, product: Variable, blocks: Sequence[Block], reach: float
) -> dict[Variable, tuple[FloatArray, FloatArray]]:
    """Ranges of P, Y and the blocks where no entry of P and Y is larger than `reach`."""
    if not np.isfinite(reach):
        return {}
    ends = {each: np.full(each.shape, reach) for each in (matrix, product)}
    for each in blocks:
        ends[each.block] = each.size(reach)
    return {each: (-end, end) for each, end in ends.items()}


# ---- reading a row


def _read(model: Expanded, row: Row, matrix: Variable, numbers: Numbers) -> _Inequality | None:
    """The matrices of an inequality; None for rows of other kinds."""
    inner = model.symbols.of_variable(matrix)
    if row.sense != "==" or row.sums.shape != matrix.shape or row.congruence is not None:
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
    whole = whole + Sums.constant(low * np.eye(len(inner)), whole.coding)
    weights = weights_of(whole, inner, numbers, model.symbols.count)
    return None if weights is None else _Inequality(row, slack, scale, weights)


def weights_of(sums: Sums, matrix: Numbers, gain: Numbers, count: int) -> Weights | None:
    """The weights that make a matrix of sums, X and K given by their symbols of `count`."""
    found = _Reader(sums, matrix, gain, count).matrices()
    return None if found is None else Weights(*found)


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


@dataclass(frozen=True)
class _Term:
    """A term of an entry (i, j): its factors of K and of X by their places, and its weight."""

    row: int
    column: int
    gains: tuple[tuple[int, int], ...]
    matrices: tuple[tuple[int, int], ...]
    weight: float

    @property
    def matrix(self) -> tuple[int, int]:
        """The one factor of X, or no place."""
        return self.matrices[0] if len(self.matrices) == 1 else (-1, -1)


class _Reader:
    """The matrices of an inequality, from the terms of −S by their factors of X and of K."""

    def __init__(self, sums: Sums, inner: Numbers, gains: Numbers, count: int) -> None:
        self._sums, self._inner, self._gains = sums, inner, gains
        self._inputs, self._order = gains.shape
        self._gain_row, self._gain_column = places_of(gains, count + 1)
        self._first, self._second = places_of(inner, count + 1)

    def matrices(self) -> tuple[FloatArray, ...] | None:
        """A, B, C, D, W and G of `_Inequality`, where the terms are what these make."""
        sums, coding = self._sums, self._sums.coding
        gains = (self._gain_row[sums.digits] >= 0).sum(axis=1)
        matrices = (self._first[sums.digits] >= 0).sum(axis=1)
        if (gains + matrices != sums.degrees).any() or gains.max() > 2 or matrices.max() > 2:
            return None
        inner, gain = (Sums.symbols(each, coding) for each in (self._inner, self._gains))
        squares = sums.chosen((gains == 2) & (matrices == 1))
        mixed = sums.chosen((gains == 1) & (matrices == 1))
        step, step_input = np.zeros((self._order,) * 2), np.zeros((self._order, self._inputs))
        entering, rest = np.zeros(step_input.shape), sums
        if squares.key.size:
            found = self._step_input(squares)
            if found is None:
                return None
            step_input, step = found, self._step(mixed, found)
            closed = Sums.constant(step, coding) + Sums.constant(step_input, coding) @ gain
            rest = sums - closed.transposed() @ inner @ closed
        else:
            entering = self._input(mixed)
        drift = self._drift(rest)
        weight = self._weight(sums.chosen(matrices == 0))
        flow = Sums.constant(drift, coding) + Sums.constant(entering, coding) @ gain
        again = inner @ flow
        parts = [again, again.transposed(), self._weighted(weight, gain)]
        disturbance = self._disturbance(sums.chosen((matrices == 2) & (gains == 0)))
        if disturbance.any():
            parts.append(inner @ Sums.constant(disturbance, coding) @ inner)
        if not added(parts).equals(rest):
            return None
        return drift, entering, step, step_input, weight, disturbance

    def _terms(self, sums: Sums, entries: NDArray[np.intp]) -> Iterator[_Term]:
        """The terms of some entries."""
        chosen = sums.chosen(np.isin(sums.entry, entries))
        for entry, digits, weight in zip(chosen.entry, chosen.digits, chosen.weight, strict=True):
            row, column = divmod(int(entry), self._order)
            gains, matrices = list[tuple[int, int]](), list[tuple[int, int]]()
            for digit in digits[digits > 0].tolist():
                if self._gain_row[digit] >= 0:
                    gains.append((int(self._gain_row[digit]), int(self._gain_column[digit])))
                else:
                    matrices.append((int(self._first[digit]), int(self._second[digit])))
            yield _Term(row, column, tuple(gains), tuple(matrices), float(weight))

    @property
    def _diagonal(self) -> NDArray[np.intp]:
        return np.asarray(np.arange(self._order) * (self._order + 1))

    def _step_input(self, squares: Sums) -> FloatArray | None:
        """D, from Kᵀ Dᵀ X D K in the first entry; its sign is free."""
        weights: dict[int, FloatArray] = {}
        for term in self._terms(squares, self._diagonal[:1]):
            (a, i), (b, j) = term.gains
            if i or j:
                return None
            share = np.zeros((self._order,) * 2)
            share[term.matrix] += term.weight / 2
            share[term.matrix[::-1]] += term.weight / 2
            for place in (a * self._inputs + b, b * self._inputs + a):
                weights[place] = weights.get(place, np.zeros(share.shape)) + share / 2
        found = congruence(weights, self._inputs) if weights else None
        return None if found is None else found.T

    def _step(self, mixed: Sums, step_input: FloatArray) -> FloatArray:
        """C, from Kᵀ Dᵀ X C and its transpose on the diagonal, by the largest column of D.

        With this column d and a column c of C, the weights of X are d cᵀ + c dᵀ.
        """
        largest = int(np.argmax(np.abs(step_input).sum(axis=0)))
        column = step_input[:, largest]
        size = float(column @ column)
        weights = np.zeros((self._order,) * 3)
        for term in self._terms(mixed, self._diagonal):
            if term.gains[0] == (largest, term.row):
                weights[term.row][term.matrix] += term.weight / 2
                weights[term.row][term.matrix[::-1]] += term.weight / 2
        images = weights @ column
        overlap = images @ column / (2 * size)
        return np.asarray((images - np.outer(overlap, column)) / size).T

    def _input(self, mixed: Sums) -> FloatArray:
        """B, from X B K and its transpose in the first entry."""
        found = np.zeros((self._order, self._inputs))
        for term in self._terms(mixed, self._diagonal[:1]):
            if term.matrix[0] == 0 and term.gains[0][1] == 0:
                found[term.matrix[1], term.gains[0][0]] = term.weight / 2
        return found

    def _drift(self, sums: Sums) -> FloatArray:
        """A, from X A and its transpose on the diagonal."""
        found = np.zeros((self._order, self._order))
        for term in self._terms(sums.chosen(sums.degrees == 1), self._diagonal):
            if term.row in term.matrix:
                other = sum(term.matrix) - term.row
                found[other, term.row] = term.weight / 2
        return found

    def _disturbance(self, sums: Sums) -> FloatArray:
        """G, from X G X in the first entry."""
        found = np.zeros((self._order, self._order))
        for term in self._terms(sums, self._diagonal[:1]):
            (_, p), (_, q) = term.matrices
            found[p, q] += term.weight / 2
            found[q, p] += term.weight / 2
        return found

    def _weight(self, sums: Sums) -> FloatArray:
        """W = [[Q, Nᵀ], [N, R]], from the constant, the diagonal and the first entry."""
        order, total = self._order, self._order + self._inputs
        found = np.zeros((total, total))
        found[:order, :order] = sums.value
        for term in self._terms(sums.chosen(sums.degrees == 1), self._diagonal):
            a, i = term.gains[0]
            if i == term.row:
                found[order + a, i] = found[i, order + a] = term.weight / 2
        for term in self._terms(sums.chosen(sums.degrees == 2), self._diagonal[:1]):
            a, b = (order + each for each, _ in term.gains)
            found[a, b] += term.weight / 2
            found[b, a] += term.weight / 2
        return (found + found.T) / 2

    def _weighted(self, weight: FloatArray, gain: Sums) -> Sums:
        """[I; K]ᵀ W [I; K]."""
        order, coding = self._order, gain.coding
        cross = Sums.constant(weight[:order, order:], coding) @ gain
        square = gain.transposed() @ Sums.constant(weight[order:, order:], coding) @ gain
        return added(
            [
                Sums.constant(weight[:order, :order], coding),
                cross,
                cross.transposed(),
                square,
            ]
        )
