"""Functions of a model that a map has left as sums of products, of which the affine ones need no graph.

The sums become terms of the compiled stack, as `recognition` would find them in the expressions that were
made of the same sums (`maps/assembly`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hcmodel.engines.graph_program import KnownTerms
from hcmodel.engines.recognition import MOST_TERMS, entry_weights
from hcmodel.engines.terms import LINEAR, MONOMIAL, NUMBER, Terms
from hcmodel.expressions.layout import Layout
from hcmodel.expressions.leaves import Constant, Expression
from hcmodel.expressions.sparse_data import is_sparse
from hcmodel.facts.polynomials import Sums
from hcmodel.facts.symbols import Symbols
from hcmodel.records import dataclass
from hcmodel.solvers.algebra.marks import every, highest

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]


class KnownFunctions(Protocol):
    """Functions of a model that a reduction has made of terms."""

    def terms(self, roots: Sequence[Expression], layout: Layout) -> list[KnownTerms]:
        """What makes the terms of each root; None for those that are not known."""


@dataclass(frozen=True, eq=False)
class KnownSums:
    """Expressions and the sums that they were made of."""

    symbols: Symbols
    pairs: tuple[tuple[Expression, Sums], ...]

    def terms(self, roots: Sequence[Expression], layout: Layout) -> list[KnownTerms]:
        """What makes the terms of each root; None for those that are not known to be affine."""
        known = {id(expression): sums for expression, sums in self.pairs}
        digits = _Digits.of(self.symbols, layout)
        return [_maker(root, known.get(id(root)), digits) for root in roots]


def _maker(root: Expression, sums: Sums | None, digits: _Digits) -> KnownTerms:
    if isinstance(root, Constant) and not is_sparse(root.value):
        return functools.partial(Terms.constant, root.value)
    if sums is None or sums.shape != root.shape or not digits.has_affine(sums):
        return None
    return functools.partial(digits.terms, sums)


@dataclass(frozen=True, eq=False)
class _Digits:
    """By the digit of a symbol: its place in the flat vector, −1 for none, and weight and kind."""

    places: IndexArray
    weights: FloatArray
    kinds: NDArray[np.int8]

    @staticmethod
    def of(symbols: Symbols, layout: Layout) -> _Digits:
        count = symbols.count + 1
        found = _Digits(np.full(count, -1), np.ones(count), np.zeros(count, dtype=np.int8))
        found.kinds[0] = NUMBER
        for variable in layout.variables:
            own = symbols.variables.get(variable)
            if own is not None:
                own = own.reshape(-1) + 1
                found.places[own] = layout.places(variable)
                found.weights[own] = entry_weights(variable)
                found.kinds[own] = MONOMIAL if variable.set.has_logarithm else LINEAR
        return found

    def has_affine(self, sums: Sums) -> bool:
        """Whether sums are affine in entries of the flat vector, and are not too many."""
        keys = sums.key
        if keys.size > MOST_TERMS or highest(keys) >= self.places.size:
            return False  # the key of a product has several digits
        return every((self.places[keys] >= 0) | (keys == 0))

    def terms(self, sums: Sums) -> Terms:
        """The terms of affine sums."""
        keys = sums.key
        factors = keys > 0
        columns = self.places[keys[factors]]
        return Terms(
            sums.shape,
            sums.entry,
            sums.weight * self.weights[keys],
            self.kinds[keys],
            factors.astype(np.intp),
            columns,
            np.ones(columns.size),
            np.zeros(sums.size, dtype=bool),
        )
