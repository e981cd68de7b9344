"""Sums of products with the entries of an inverse, as Σ Yᵀ P⁻¹ Y with Y affine in the variables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.polynomials import Sums, added
from hcmodel.facts.symbols import Opaque, Symbols
from hcmodel.maps.algebra.rewriting import substituted
from hcmodel.maps.map import symbol_sums
from hcmodel.maps.matrix_algebra.matrix_squares import Terms, fractions
from hcmodel.records import dataclass
from hcmodel.solvers.algebra.definite import is_semidefinite
from hcmodel.solvers.numerics import DATA_ROUNDING

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class InverseTerms:
    """P⁻¹ of a semidefinite P: its symbols, of which two stand for the same entry, and P."""

    numbers: Numbers
    inner: Sums

    def squares(self, sums: Sums, plain: NDArray[np.bool_]) -> list[Sums] | None:
        """The Y of terms that are a sum of Yᵀ P⁻¹ Y; `plain` has the variables, by digit."""
        order, inner = sums.shape[0], self.numbers.shape[0]
        digits = sums.digits
        own = np.isin(digits, self.numbers + 1)
        if (own.sum(axis=1) != 1).any() or sums.degrees.max() > 3:
            return None
        here = np.argmax(own, axis=1)
        lines = np.arange(digits.shape[0])
        left, right = self._places(digits[lines, here])
        others = np.zeros((digits.shape[0], 2), dtype=np.int64)
        rest = np.sort(np.where(own, 0, digits), axis=1)[:, -2:]
        others[:, 2 - rest.shape[1] :] = rest
        if not (plain[others] | (others == 0)).all():
            return None
        used, places = np.unique(others, return_inverse=True)
        places = places.reshape(-1, 2)
        row, column = np.divmod(sums.entry, order)
        terms = Terms(order, used.size, row, column, places[:, 0], places[:, 1], sums.weight)
        found = fractions(order, inner, terms, left, right)
        if found is None:
            return None
        parts = [affine_in(each, used, sums) for each in found]
        middle = Sums.symbols(self._upper(), sums.coding)
        again = added([each.transposed() @ middle @ each for each in parts])
        return parts if again.equals(self._symmetric(sums)) else None

    def _upper(self) -> Numbers:
        """The symbols with one for each pair of entries that are equal."""
        return np.minimum(self.numbers, self.numbers.T)

    def _places(self, digits: Numbers) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        place = np.searchsorted(np.ravel(self.numbers), digits - 1)
        a, b = np.divmod(place, self.numbers.shape[0])
        return np.minimum(a, b), np.maximum(a, b)

    def _symmetric(self, sums: Sums) -> Sums:
        digits = sums.digits.copy()
        own = np.isin(digits, self.numbers + 1)
        a, b = self._places(digits[own])
        digits[own] = self.numbers[a, b] + 1
        return Sums.merged(
            sums.shape, sums.entry, sums.coding.keys(digits), sums.weight, sums.coding
        )


def affine_in(weights: FloatArray, digits: Numbers, sums: Sums) -> Sums:
    """The sums over k of weights[r, i, k] times the symbol of a digit, as a matrix; the digit 0 is 1."""
    small = DATA_ROUNDING * np.abs(weights).max(initial=0.0)
    r, i, k = np.nonzero(np.abs(weights) > small)
    shape = weights.shape[:2]
    entry = r * shape[1] + i
    return Sums.merged(shape, entry, digits[k].astype(np.int64), weights[r, i, k], sums.coding)


def with_inverses(symbols: Symbols, sums: Sums) -> Sums:
    """A row with solve(P, B) as P⁻¹ B."""
    changes: dict[int, Sums] = {}
    for function in symbols.functions(sums.symbols_used()):
        if function.atom is not ATOMS["solve"]:
            continue
        matrix, right = function.arguments
        if is_semidefinite_by_sets(symbols, matrix):
            numbers = symbols.of_function(ATOMS["inv"], {}, (matrix,), matrix.shape)
            value = Sums.symbols(numbers, symbols.coding) @ right
            entries = value.entries()
            changes.update(zip(np.ravel(function.numbers).tolist(), entries, strict=True))
    return substituted(sums, changes)


def is_affine(symbols: Symbols, sums: Sums) -> bool:
    """Whether sums are affine in variables."""
    if sums.degrees.max(initial=0) > 1:
        return False
    return not any(isinstance(each, Opaque) for each, _, _ in symbols.grouped(sums.symbols_used()))


def is_semidefinite_by_sets(symbols: Symbols, sums: Sums) -> bool:
    """Whether a matrix is affine and semidefinite by the sets of its variables.

    It is the sum of positive multiples of semidefinite variables, of a diagonal that is not negative, and
    of a constant that is semidefinite.
    """
    if not is_affine(symbols, sums) or not sums.equals(sums.transposed()):
        return False
    rest = sums
    for variable, _, _ in symbols.grouped(sums.symbols_used()):
        assert isinstance(variable, Variable)
        if not (variable.set.is_curved and variable.shape == sums.shape):
            continue
        numbers = symbols.of_variable(variable)
        own = rest.holding(numbers)
        weight = float(rest.weight[own][0])
        if weight > 0 and rest.chosen(own).equals(symbol_sums(symbols, numbers).scaled(weight)):
            rest = rest.chosen(~own)
    constant = rest.chosen(rest.degrees == 0)
    linear = rest.chosen(rest.degrees == 1)
    if linear.key.size:
        on_diagonal = linear.entry % (sums.shape[0] + 1) == 0
        if not on_diagonal.all() or (symbols.interval(linear)[0] < 0).any():
            return False
    return is_semidefinite(constant.value)
