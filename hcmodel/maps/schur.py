"""Inequalities between matrices that are convex by Schur's complement, as linear ones.

    Yᵀ P⁻¹ Y ⪯ Z  with  P ≻ 0      where      [[Z, Yᵀ], [Y, P]] ⪰ 0

Y, Z and P are affine in the variables, and P is semidefinite by the sets of these, so that it is definite
wherever it has an inverse. Yᵀ R Y with a constant R = Lᵀ L ⪰ 0 is (L Y)ᵀ (L Y); P is the identity then.
A sum of such terms has one block for each of them. What is linear in Y, as in (A Y + B)ᵀ (A Y + B),
belongs to Z. The block is a semidefinite variable of the new model, with the rows that define it.

Whatever the row looks like, it is multiplied out, and the products in it are the weights of a quadratic
function with matrices as values. It is written as squares (`matrix_squares`); these are multiplied out
again, and have to be the same to rounding. Indefinite weights and Yᵀ Y ⪰ Z have no squares.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.polynomials import ONE, Sums, placed
from hcmodel.facts.symbols import Symbols
from hcmodel.maps.algebra.expanded import Evaluation, Expanded, Row
from hcmodel.maps.algebra.inverse_terms import (
    InverseTerms,
    affine_in,
    is_affine,
    is_semidefinite_by_sets,
    with_inverses,
)
from hcmodel.maps.map import Map, Obstacle, Points, Step, fresh_name, symbol_sums
from hcmodel.maps.matrix_algebra.growing import is_nonnegative
from hcmodel.maps.matrix_algebra.matrix_squares import Terms, squares
from hcmodel.maps.matrix_algebra.slacks import slacks_of
from hcmodel.records import dataclass, replace
from hcmodel.solvers.algebra.symmetric import upper_entries
from hcmodel.solvers.numerics import DATA_ROUNDING, SUM_ROUNDING

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]


class Schur(Map):
    """[[Z, Yᵀ], [Y, P]] ⪰ 0 in place of Yᵀ P⁻¹ Y ⪯ Z; see the module."""

    name = "schur"
    summary = "[[Z, Yᵀ], [Y, P]] ⪰ 0 in place of Yᵀ P⁻¹ Y ⪯ Z and of Yᵀ R Y ⪯ Z with R ⪰ 0"
    literature = "Boyd, El Ghaoui, Feron, Balakrishnan 1994, section 2.1"
    example = """
    # An inequality between matrices that is quadratic in Y.
    param A[2,2] = [[1, 2], [0, 1]]
    var Y[2,2]
    var Z[2,2] symmetric

    minimize trace(Z)

    subject to
        square: Y.T @ Y << Z
        link: A @ Y + Y @ A == eye(2)
    """
    large = True

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        step = with_blocks(model)
        if step is not None:
            yield step


@dataclass(frozen=True, eq=False)
class Square:
    """Yᵀ P⁻¹ Y: Y, and P as sums; P is None for the identity."""

    above: Sums
    inner: Sums | None = None

    def value(self, evaluation: Evaluation) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Y, P, and Yᵀ P⁻¹ Y at a point."""
        above = evaluation.of(self.above)
        if self.inner is None:
            return above, np.eye(len(above)), above.T @ above
        inner = evaluation.of(self.inner)
        inner = (inner + inner.T) / 2
        return above, inner, above.T @ np.linalg.pinv(inner, SUM_ROUNDING, hermitian=True) @ above


@dataclass(frozen=True, eq=False)
class Block:
    """E − Σ Yᵀ P⁻¹ Y = S ⪰ 0 as a block matrix that is a variable, with the row that defines it."""

    block: Variable
    slack: Variable
    row: Row
    squares: tuple[Square, ...]
    least: float
    """The smallest eigenvalue that S may have, which is subtracted from the block."""

    def forward(self, evaluation: Evaluation, points: Points) -> None:
        """The block at a point, from S and what the squares are made of."""
        size = self.slack.shape[0]
        matrix = np.zeros(self.block.shape)
        matrix[:size, :size] = points[self.slack] - self.least * np.eye(size)
        start = size
        for each in self.squares:
            above, inner, value = each.value(evaluation)
            own = slice(start, start + len(above))
            matrix[own, :size], matrix[:size, own], matrix[own, own] = above, above.T, inner
            matrix[:size, :size] += (value + value.T) / 2
            start += len(above)
        points[self.block] = matrix

    def size(self, reach: float) -> FloatArray:
        """How large the entries of the block are at most where those of other variables are `reach`."""
        sums = self.row.sums
        weights = np.abs(sums.weight) * np.where(sums.key == ONE, 1.0, reach)
        found = np.bincount(sums.entry, weights=weights, minlength=sums.size) - reach  # its own
        return np.asarray((1 + DATA_ROUNDING) * found.reshape(sums.shape))

    def back(self, evaluation: Evaluation, points: Points) -> None:
        """S, from the block."""
        size = self.slack.shape[0]
        left = points[self.block][:size, :size] + self.least * np.eye(size)
        for each in self.squares:
            left = left - each.value(evaluation)[2]
        points[self.slack] = (left + left.T) / 2


def with_blocks(model: Expanded) -> Step | Obstacle | None:
    """All rows with squares as blocks; None where there are no such rows, or where one has no squares."""
    rows, blocks = list[Row](), list[Block]()
    for row in model.rows:
        found = _block_of(model, row)
        if isinstance(found, Obstacle):
            return found
        if found is None:
            rows.append(row)
        else:
            blocks.append(found)
            rows.append(found.row)
    return _Blocks(model, rows, blocks) if blocks else None


class _Blocks(Step):
    """Slacks in place of the blocks of matrix inequalities."""

    name = "schur"

    def __init__(self, model: Expanded, rows: Sequence[Row], blocks: Sequence[Block]) -> None:
        self.gone = tuple(each.slack for each in blocks)
        self.new = tuple(each.block for each in blocks)
        kept = tuple(each for each in model.variables if each not in set(self.gone))
        self.after = replace(
            model, rows=tuple(rows), variables=(*kept, *self.new), is_original=False
        )
        self._blocks = tuple(blocks)

    def forward(self, point: Points) -> None:
        evaluation = Evaluation(self.after.symbols, point)
        for each in self._blocks:
            each.forward(evaluation, point)

    def back(self, point: Points) -> None:
        evaluation = Evaluation(self.after.symbols, point)
        for each in self._blocks:
            each.back(evaluation, point)


# ---- one row


def _block_of(model: Expanded, row: Row) -> Block | Obstacle | None:
    """A row with squares as a block; None for other rows, an obstacle where they are not convex."""
    shape = row.sums.shape
    if row.sense != "==" or len(shape) != 2 or shape[0] != shape[1]:
        return None
    reader = _Reader(model, row)
    if not reader.has_squares:
        return None
    slacks = list(slacks_of(model, row))
    for slack in slacks:
        if (slack.eigenvalue_bounds or (0.0, np.inf))[1] < np.inf or slack.has_bounds:
            continue
        own = reader.sums.holding(model.symbols.of_variable(slack))
        scale = -1.0 / float(reader.sums.weight[own][0])
        rest = reader.sums.chosen(~own).scaled(scale)  # this is S
        found = reader.squares(rest)
        if found is not None:
            return made_block(model, row, slack, scale, *found)
    if not slacks:
        return None
    reason = f"the products in {model.name_of(row)} are not found to be a sum of squares"
    return Obstacle("schur", reason)


def made_block(
    model: Expanded, row: Row, slack: Variable, scale: float, rest: Sums, squares: Sequence[Square]
) -> Block:
    """[[E, Yᵀ …], [Y, P …]] as a semidefinite variable; `scale` times the row is E − Σ Yᵀ P⁻¹ Y − S."""
    coding, size = rest.coding, rest.shape[0]
    low = (slack.eigenvalue_bounds or (0.0, np.inf))[0]
    corner = rest - Sums.constant(low * np.eye(size), coding)
    whole = size + sum(each.above.shape[0] for each in squares)
    numbers = np.arange(whole * whole).reshape(whole, whole)
    parts = [(corner, numbers[:size, :size])]
    start = size
    for each in squares:
        own = slice(start, start + each.above.shape[0])
        start = own.stop
        inner = each.inner
        if inner is None:
            inner = Sums.constant(np.eye(each.above.shape[0]), coding)
        parts += [
            (each.above, numbers[own, :size]),
            (each.above.transposed(), numbers[:size, own]),
            (inner, numbers[own, own]),
        ]
    matrix = placed(parts, numbers.shape, coding)
    name = fresh_name(model, f"block·{model.name_of(row)}")
    block = Variable(numbers.shape, name=name, PSD=True)
    factor = Sums.constant(scale, coding)
    defining = replace(
        row,
        sums=matrix - symbol_sums(model.symbols, model.symbols.of_variable(block)),
        factor=factor if row.factor is None else row.factor.scaled(scale),
        entries=upper_entries(whole),
        leading=size if row.leading is None else row.leading,  # the row may be a block itself
    )
    return Block(block, slack, defining, tuple(squares), low)


class _Reader:
    """The terms of a row by what they are: squares, squares with an inverse, or anything else."""

    def __init__(self, model: Expanded, row: Row) -> None:
        self._model, self._symbols = model, model.symbols
        self.sums = with_inverses(model.symbols, row.sums)
        self._inverses = list(_inverses(model.symbols, self.sums))
        plain = np.zeros(model.symbols.count + 1, dtype=bool)
        for variable in model.variables:
            plain[model.symbols.of_variable(variable) + 1] = True
        self._plain = plain

    @property
    def has_squares(self) -> bool:
        """Whether there is the square of a variable on the diagonal, or the inverse of a matrix."""
        if self._inverses:
            return True
        two = self.sums.degrees == 2
        digits, entry = self.sums.digits[two], self.sums.entry[two]
        if not digits.size:
            return False
        square = (digits[:, 0] == digits[:, 1]) & self._plain[digits[:, 0]]
        return bool((square & (entry % (self.sums.shape[0] + 1) == 0)).any())

    def squares(self, rest: Sums) -> tuple[Sums, list[Square]] | None:
        """What is affine in S, and the squares subtracted from it; None where these are not found."""
        found = list[Square]()
        left = rest
        for inverse in self._inverses:
            own = left.holding(inverse.numbers)
            if own.any():
                above = inverse.squares(-left.chosen(own), self._plain)
                part = None if above is None else [Square(each, inverse.inner) for each in above]
                if part is None:
                    return None
                left = left.chosen(~own)
                found += part
        quadratic = left.degrees > 1
        if quadratic.any():
            if not self._plain[left.digits[quadratic]].any(axis=1).all():
                return None
            part = _constant_squares(-left.chosen(quadratic), self._plain)
            if part is None:
                return None
            found += part
            left = left.chosen(~quadratic)
        used = left.digits
        if not (self._plain[used] | (used == 0)).all() or not left.equals(left.transposed()):
            return None
        return (left, found) if found else None


def _constant_squares(sums: Sums, plain: NDArray[np.bool_]) -> list[Square] | None:
    """L Y of terms that are Yᵀ Lᵀ L Y."""
    digits = sums.digits
    if sums.degrees.max() > 2 or not plain[digits[:, :2]].all():
        return None
    used, places = np.unique(digits[:, :2], return_inverse=True)
    places = places.reshape(-1, 2)
    order = sums.shape[0]
    row, column = np.divmod(sums.entry, order)
    terms = Terms(order, used.size, row, column, places[:, 0], places[:, 1], sums.weight)
    found = squares(terms)
    if found is None:
        return None
    above = affine_in(found, used, sums)
    return [Square(above)] if (above.transposed() @ above).equals(sums) else None


# ---- inverses


def _inverses(symbols: Symbols, sums: Sums) -> Iterator[InverseTerms]:
    """The inverses of semidefinite matrices in a row, and the reciprocals of what is positive."""
    used = sums.symbols_used()
    for function in symbols.functions(used):
        if function.atom is ATOMS["inv"] and is_semidefinite_by_sets(
            symbols, function.arguments[0]
        ):
            yield InverseTerms(function.numbers, function.arguments[0])
        elif not function.shape:
            base, power = symbols.power(function.start)
            if power == -1 and is_affine(symbols, base) and is_nonnegative(symbols, base):
                yield InverseTerms(np.array([[function.start]]), base.reshaped((1, 1)))
