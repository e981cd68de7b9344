"""What does not get better as a semidefinite matrix grows at fixed gains.

The equation of a covariance or of a cost matrix may be an inequality where its least solution is the
best one: where the objective and the other rows do not decrease as the matrix grows. At a fixed gain K

    ⟨Q, S⟩ + 2 ⟨N, K S⟩ + ⟨R, K S Kᵀ⟩    with    [[Q, Nᵀ], [N, R]] ⪰ 0

grows with S, and so do increasing functions of it, such as its root, and the largest eigenvalue and the
determinant of a matrix F S Fᵀ + C. A row C − F S Fᵀ ⪰ 0, such as S ⪯ t I, holds with a smaller S, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms import cones
from hcmodel.atoms.rules import Monotonicity
from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.polynomials import Sums
from hcmodel.facts.symbols import Opaque, Symbols
from hcmodel.maps.algebra.expanded import Expanded, Row
from hcmodel.maps.map import Points, symbol_sums
from hcmodel.maps.matrix_algebra.congruences import congruence
from hcmodel.maps.matrix_algebra.slacks import slack_of
from hcmodel.records import dataclass
from hcmodel.solvers.algebra.definite import is_semidefinite

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Loop:
    """F S Fᵀ with F = A + G K; S is a variable or a constant, and K may be absent."""

    drift: FloatArray
    factor: FloatArray
    gain: Variable | None
    turned: bool
    inner: Variable | FloatArray

    def at(self, point: Points) -> FloatArray:
        closed, inner = self.drift + self._moved(point), self._inner(point)
        return np.asarray(closed @ inner @ closed.T)

    def change(self, point: Points, moves: Points) -> FloatArray:
        """How it moves with the gain and with S."""
        closed, inner = self.drift + self._moved(point), self._inner(point)
        half = self._moved(moves) @ inner @ closed.T
        found = half + half.T
        if isinstance(self.inner, Variable):
            found = found + closed @ moves[self.inner] @ closed.T
        return np.asarray(found)

    def _moved(self, point: Points) -> FloatArray:
        """G K."""
        if self.gain is None:
            return np.zeros(self.drift.shape)
        values = np.atleast_2d(point[self.gain])
        return np.asarray(self.factor @ (values.T if self.turned else values))

    def _inner(self, point: Points) -> FloatArray:
        return point[self.inner] if isinstance(self.inner, Variable) else self.inner


def is_covariance(variable: Variable) -> bool:
    return variable.set.is_curved and variable.set.is_symmetric


def plain_variables(symbols: Symbols, sums: Sums) -> list[Variable]:
    """The variables in a sum; functions count as none."""
    found = [source for source, _, _ in symbols.grouped(sums.symbols_used())]
    return [source for source in found if isinstance(source, Variable)]


def _gains(symbols: Symbols, sums: Sums, order: int) -> Iterator[tuple[Variable, Numbers, bool]]:
    """The one variable beside a covariance, as it is and transposed, where it has as many columns."""
    others = [each for each in plain_variables(symbols, sums) if not is_covariance(each)]
    if len(others) != 1 or others[0].ndim > 2:
        return
    numbers = np.atleast_2d(symbols.of_variable(others[0]))
    for turned in (False, True):
        wide = numbers.T if turned else numbers
        if wide.shape[1] == order:
            yield others[0], wide, turned


def loop_of(symbols: Symbols, part: Sums, matrix: Variable) -> Loop | None:
    """F with F S Fᵀ = part, from the terms in S alone and from those in S[1,1]."""
    inner, size = symbols.of_variable(matrix), part.shape[0]
    order = inner.shape[0]
    alone = weights_at(part, pairs_of(inner))
    drift = congruence(alone, size) if alone else None
    if drift is None:
        drift = np.zeros((size, order))
    if _is_loop(symbols, part, Sums.constant(drift, part.coding), inner):
        return Loop(drift, np.zeros((size, 0)), None, False, matrix)
    for gain, wide, turned in _gains(symbols, part, order):
        squares = weights_at(part, pairs_of(wide[:, 0], wide[:, 0], int(inner[0, 0])))
        factor = congruence(squares, size) if squares else None
        if factor is None:
            continue
        moved = symbol_sums(symbols, wide)
        for sign in (1.0, -1.0):
            closed = Sums.constant(drift, part.coding)
            closed = closed + Sums.constant(sign * factor, part.coding) @ moved
            if _is_loop(symbols, part, closed, inner):
                return Loop(drift, sign * factor, gain, turned, matrix)
    return None


def _is_loop(symbols: Symbols, part: Sums, closed: Sums, inner: Numbers) -> bool:
    return (closed @ symbol_sums(symbols, inner) @ closed.transposed()).equals(part)


Pairs = Mapping[tuple[int, ...], tuple[int, int]]


def pairs_of(one: Numbers, two: Numbers | None = None, third: int | None = None) -> Pairs:
    """The places of products of symbols by their sorted digits: of a matrix, or of two lines of K."""
    found: dict[tuple[int, ...], tuple[int, int]] = {}
    if two is None:
        for i, j in np.ndindex(*one.shape):
            found.setdefault((int(one[i, j]) + 1,), (i, j))
        return found
    for a, first in enumerate(one.tolist()):
        for b, second in enumerate(two.tolist()):
            digits = [first + 1, second + 1] + ([] if third is None else [third + 1])
            found.setdefault(tuple(sorted(digits)), (a, b))
    return found


def weights_at(sums: Sums, places: Pairs) -> dict[int, FloatArray]:
    """For each entry the symmetric matrix of the weights of some products, all of the same degree."""
    wanted, pairs = np.array(list(places)), np.array(list(places.values()))
    order, degree = 1 + int(pairs.max()), wanted.shape[1]
    own = sums.degrees == degree
    codes = sums.coding.keys(wanted)
    ordered = np.argsort(codes)
    at = np.searchsorted(codes[ordered], sums.key[own]).clip(max=codes.size - 1)
    listed = codes[ordered][at] == sums.key[own]
    first, second = pairs[ordered[at[listed]]].T
    halves = sums.weight[own][listed] / 2
    entries, place = np.unique(sums.entry[own][listed], return_inverse=True)
    found = np.zeros((entries.size, order, order))
    np.add.at(found, (place, first, second), halves)
    np.add.at(found, (place, second, first), halves)
    return dict(zip(entries.tolist(), found, strict=True))


# ---- what grows


def row_grows(model: Expanded, row: Row, matrix: Variable) -> bool:
    """Whether a row that holds is still satisfied with a smaller matrix."""
    if not _holds(model.symbols, row.sums, matrix):
        return True
    if row.sense != "==":
        return row.sense == "<=" and grows(model.symbols, row.sums, matrix)
    slack = slack_of(model, row)
    if slack is None or slack.has_bounds:
        return False
    if (slack.eigenvalue_bounds or (0.0, np.inf))[1] < np.inf:
        return False  # it grows as the matrix shrinks
    own = row.sums.holding(model.symbols.of_variable(slack))
    scale = float(row.sums.weight[own][0])  # the slack is −(the rest)/scale
    return _keeps_order(model.symbols, row.sums.scaled(1.0 / scale), matrix)


def grows(symbols: Symbols, sums: Sums, matrix: Variable) -> bool:
    """Whether no entry decreases as a matrix grows, at fixed gains."""
    for function in symbols.functions(sums.symbols_used()):
        if not any(_holds(symbols, each, matrix) for each in function.arguments):
            continue
        here = sums.holding(function.numbers)
        if function.shape or (sums.degrees[here] > 1).any():
            return False
        signs = np.unique(np.sign(sums.weight[here])).tolist()
        if not all(_function_grows(symbols, function, matrix, sign) for sign in signs):
            return False
    inner = symbols.of_variable(matrix)
    part = sums.chosen(sums.holding(inner)).reshaped((sums.size,))
    return all(_entry_grows(symbols, each, inner) for each in part.entries() if each.key.size)


def is_nonnegative(symbols: Symbols, sums: Sums) -> bool:
    """Whether a scalar is nowhere negative: by bounds, and as what grows with semidefinite matrices."""
    if float(symbols.interval(sums)[0]) >= 0:
        return True
    for matrix in filter(is_covariance, plain_variables(symbols, sums)):
        marks = sums.holding(symbols.of_variable(matrix))
        if grows(symbols, sums.chosen(marks), matrix):
            sums = sums.chosen(~marks)
    return float(symbols.interval(sums)[0]) >= 0


def _holds(symbols: Symbols, sums: Sums, matrix: Variable) -> bool:
    """Whether a matrix stands in sums, or somewhere inside of their functions."""
    if sums.holding(symbols.of_variable(matrix)).any():
        return True
    inner = symbols.functions(sums.symbols_used())
    return any(_holds(symbols, each, matrix) for function in inner for each in function.arguments)


def _function_grows(symbols: Symbols, function: Opaque, matrix: Variable, sign: float) -> bool:
    """Whether a function of a single argument, times a sign, does not decrease."""
    if len(function.arguments) != 1:
        return False
    argument = function.arguments[0]
    if function.atom.cone_form is cones.LARGEST_EIGENVALUE or function.atom is ATOMS["logdet"]:
        return _keeps_order(symbols, argument.scaled(sign), matrix)
    facts = [symbols.argument(argument)]
    way = function.atom.monotonicity(facts, function.params)[0]
    if way not in (Monotonicity.INCREASING, Monotonicity.DECREASING):
        return False
    turned = sign if way is Monotonicity.INCREASING else -sign
    return grows(symbols, argument.scaled(turned), matrix)


def _keeps_order(symbols: Symbols, sums: Sums, matrix: Variable) -> bool:
    """Whether a matrix of sums is F S Fᵀ and what S does not stand in."""
    inside = sums.holding(symbols.of_variable(matrix))
    part, rest = sums.chosen(inside), sums.chosen(~inside)
    if len(sums.shape) != 2 or not inside.any() or _holds(symbols, rest, matrix):
        return False
    return loop_of(symbols, part, matrix) is not None


def _entry_grows(symbols: Symbols, part: Sums, inner: Numbers) -> bool:
    order = inner.shape[0]
    state = weights_at(part, pairs_of(inner)).get(0, np.zeros((order, order)))
    matrix = symbol_sums(symbols, inner)
    alone = _inner_product(state, matrix)
    if alone.equals(part):
        return is_semidefinite(state)
    for _, wide, _ in _gains(symbols, part, order):
        rows = wide.shape[0]
        square = weights_at(part, pairs_of(wide[:, 0], wide[:, 0], int(inner[0, 0])))
        both = square.get(0, np.zeros((rows, rows)))
        cross = _cross(part, pairs_of(wide[:, 0], inner[0]), (rows, order))
        gain = symbol_sums(symbols, wide)
        mixed = _inner_product(2 * cross, gain @ matrix)
        squares = _inner_product(both, gain @ matrix @ gain.transposed())
        if (alone + mixed + squares).equals(part):
            return is_semidefinite(np.block([[state, cross.T], [cross, both]]))
    return False


def _cross(part: Sums, places: Pairs, shape: tuple[int, int]) -> FloatArray:
    """Half the weights of products of two different lines, in a scalar."""
    found = np.zeros(shape)
    for digits, weight in zip(part.digits.tolist(), part.weight.tolist(), strict=True):
        pair = places.get(tuple(sorted(filter(None, digits))))
        if pair is not None:
            found[pair] = weight / 2
    return found


def _inner_product(weights: FloatArray, matrix: Sums) -> Sums:
    whole = matrix.scaled(weights)
    return whole.grouped(np.zeros(whole.size, dtype=np.intp), ())
