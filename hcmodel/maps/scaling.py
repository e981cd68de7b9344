"""Variables times a common positive factor: the rewriting behind occupancies, ratios and perspectives.

With u = s·x, each x in a product is u/s. Products with as many factors s as x's have u alone; what has
fewer keeps 1/s. A row is multiplied by s where that leaves nothing of 1/s. Logarithms become
log u − log s, and s·f(x) becomes f(u) for a function f with f(c·x) = c·f(x).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hcmodel.facts.expansion import Opaque, Symbols
from hcmodel.facts.polynomials import Sums, added
from hcmodel.maps.expanded import Expanded, Row
from hcmodel.maps.map import symbol_sums
from hcmodel.maps.rewriting import Rewriting, substituted

Numbers = NDArray[np.int64]


class Scaling(Rewriting):
    """`products` has for each symbol x that goes the pair (u, s); `factors` what each s becomes."""

    def __init__(
        self,
        symbols: Symbols,
        products: Mapping[int, tuple[int, int]],
        factors: Mapping[int, Sums],
        gone: Numbers,
    ) -> None:
        super().__init__(symbols, gone)
        self.factors = dict(factors)
        size = symbols.count + 1
        self.product = np.zeros(size, dtype=np.int64)
        self.scale = np.zeros(size, dtype=np.int64)
        for x, (u, s) in products.items():
            self.product[x + 1], self.scale[x + 1] = u + 1, s + 1
        self.products = dict(products)
        self.reciprocals: dict[int, int] = {}  # the digit of 1/s by that of s

    def is_kept(self, symbol: int) -> bool:
        return symbol not in self.factors

    def inside(self, sums: Sums) -> Sums:
        """Logarithms of symbols that go, then functions of them, s·f(x) first."""
        sums = self._homogeneous(sums)
        changes: dict[int, Sums] = {}
        for symbol in sums.symbols_used().tolist():
            base = self.symbols.logarithm(symbol)
            if base is None or base.key.size != 1 or base.weight[0] != 1:
                continue
            pair = self.products.get(int(base.key[0]) - 1)
            if pair is not None:
                u, s = pair
                changes[symbol] = self._log(symbol_sums(self.symbols, np.array(u))) - self._log(
                    self.factors.get(s, symbol_sums(self.symbols, np.array(s)))
                )
        return super().inside(substituted(sums, changes))

    def _log(self, base: Sums) -> Sums:
        from hcmodel.expressions.table import ATOMS

        number = self.symbols.of_function(ATOMS["log"], {}, (base,), ())
        return Sums.symbols(number, self.coding)

    def _homogeneous(self, sums: Sums) -> Sums:
        """s·f(x) as f(s·x), for a function that allows it."""
        used = sums.symbols_used()
        candidates = [
            each
            for each in self.symbols.functions(used)
            if each.atom.is_homogeneous and self.is_kept(each.start)
        ]
        if not candidates:
            return sums
        digits = sums.digits
        for scale in self.factors:
            with_scale = (digits == scale + 1).any(axis=1)
            for symbol in np.unique(digits[with_scale]).tolist():
                if symbol == 0 or symbol - 1 == scale:
                    continue
                source, place = self.symbols.source(symbol - 1)
                if not isinstance(source, Opaque) or not source.atom.is_homogeneous:
                    continue
                if not any(self._scaled_by(argument, scale) for argument in source.arguments):
                    continue
                own = symbol_sums(self.symbols, np.array(scale))
                arguments = [each.times(own) for each in source.arguments]
                numbers = self.symbols.of_function(
                    source.atom, source.params, arguments, source.shape
                )
                hit = with_scale & (digits == symbol).any(axis=1)
                parts = sums.chosen(~hit), sums.chosen(hit)
                stripped = _without(parts[1], scale + 1, symbol)
                new = symbol_sums(self.symbols, np.array(int(np.ravel(numbers)[place])))
                sums = added([parts[0], stripped.times(new.broadcast(stripped.shape))])
                digits = sums.digits
                with_scale = (digits == scale + 1).any(axis=1)
        return sums

    def _scaled_by(self, sums: Sums, scale: int) -> bool:
        used = sums.symbols_used()
        return any(self.products.get(int(symbol), (0, -1))[1] == scale for symbol in used)

    def terms(self, sums: Sums) -> Sums:
        digits = sums.digits.copy()
        known = digits < self.product.size
        moving = known & (self.product[np.where(known, digits, 0)] > 0)
        if moving.any():
            extra = []
            for column in range(digits.shape[1]):
                rows = np.flatnonzero(moving[:, column])
                if not rows.size:
                    continue
                old = digits[rows, column]
                digits[rows, column] = self.product[old]
                scale = self.scale[old]
                hits = digits[rows] == scale[:, None]
                found = hits.any(axis=1)
                digits[rows[found], hits[found].argmax(axis=1)] = 0
                more = np.zeros(digits.shape[0], dtype=np.int64)
                more[rows[~found]] = [self._reciprocal(int(each)) for each in scale[~found]]
                extra.append(more)
            key = self.coding.keys(np.column_stack([digits, *extra]))
            sums = Sums.merged(sums.shape, sums.entry, key, sums.weight, self.coding)
        return substituted(sums, self.factors)

    def _reciprocal(self, scale: int) -> int:
        """The digit of 1/s."""
        found = self.reciprocals.get(scale)
        if found is None:
            base = self.factors.get(scale - 1, symbol_sums(self.symbols, np.array(scale - 1)))
            found = self.reciprocals[scale] = self.symbols.of_power(base, -1.0) + 1
        return found

    def row(self, row: Row) -> Row:
        """The row rewritten, multiplied by s where that clears 1/s."""
        plain = self(row.sums)
        needed = self._clearing(plain)
        if needed is None:
            return replace(row, sums=plain)
        scales = symbol_sums(self.symbols, np.where(needed > 0, needed - 1, 0)).scaled(needed > 0)
        factor = (scales + Sums.constant((needed == 0).astype(float), self.coding)).reshaped(
            row.sums.shape
        )
        cleared = self(row.sums.times(factor))
        own = self(factor)
        return replace(
            row, sums=cleared, factor=own if row.factor is None else self(row.factor).times(own)
        )

    def _clearing(self, sums: Sums) -> Numbers | None:
        """For each entry the digit of the s that it is to be multiplied by, 0 for none."""
        needed = np.zeros(sums.size, dtype=np.int64)
        digits = sums.digits
        degree = (digits > 0).sum(axis=1)
        for scale, reciprocal in self.reciprocals.items():
            alone = (digits == reciprocal).any(axis=1) & (degree <= 2)
            entries = sums.entry[alone]
            if (needed[entries] > 0).any():
                return None  # two different factors
            needed[entries] = scale
        return needed if needed.any() else None


def _without(sums: Sums, *factors: int) -> Sums:
    """Each term without one of each of these factors."""
    digits = sums.digits.copy()
    rows = np.arange(digits.shape[0])
    for factor in factors:
        digits[rows, (digits == factor).argmax(axis=1)] = 0
    return Sums.merged(sums.shape, sums.entry, sums.coding.keys(digits), sums.weight, sums.coding)


def scaled_model(
    model: Expanded, rewriting: Scaling, *, gone: object, new: object, rows: object = ()
) -> Expanded | Numbers:
    """The model with all rows rewritten, or the symbols that are left and should not be."""
    objective = rewriting(model.objective)
    every = [rewriting.row(row) for row in model.rows]
    every += [rewriting.row(row) for row in rows]  # type: ignore[attr-defined]
    rest = [rewriting.left(each) for each in (objective, *(row.sums for row in every))]
    left = np.unique(np.concatenate(rest))
    if left.size:
        return left
    absent = set(gone)  # type: ignore[call-overload]
    variables = tuple(each for each in model.variables if each not in absent)
    return Expanded(model.symbols, objective, tuple(every), (*variables, *new))  # type: ignore[misc]
