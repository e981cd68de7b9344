"""Symbols replaced by sums everywhere, also inside of functions, and the result simplified.

Functions of what has changed are applied again, as when the model was multiplied out: exp(−2 log u) is
u⁻², and log(u²) is 2 log u. Powers of the same symbol in one product are one power.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hcmodel.facts.expansion import function_of
from hcmodel.facts.polynomials import Sums, added
from hcmodel.facts.symbols import Opaque, Symbols
from hcmodel.maps.algebra.expanded import Row
from hcmodel.maps.algebra.rewriting import Rewriting, substituted
from hcmodel.records import replace
from hcmodel.solvers.numerics import DATA_ROUNDING

Numbers = NDArray[np.int64]


class Replacing(Rewriting):
    """`changes` has what takes the place of each symbol; symbols of functions among them."""

    def __init__(self, symbols: Symbols, changes: Mapping[int, Sums]) -> None:
        super().__init__(symbols, np.array(sorted(changes), dtype=np.int64))
        self.changes = dict(changes)
        self._renewed: dict[int, Sums | None] = {}

    def __call__(self, sums: Sums) -> Sums:
        changes: dict[int, Sums] = {}
        for symbol in sums.symbols_used().tolist():
            found = self._symbol(symbol)
            if found is not None:
                changes[symbol] = found
        return merged_powers(substituted(sums, changes), self.symbols) if changes else sums

    def _symbol(self, symbol: int) -> Sums | None:
        """What takes the place of a symbol; None where it stays."""
        if symbol in self.changes:
            return self.changes[symbol]
        source, place = self.symbols.source(symbol)
        if not isinstance(source, Opaque):
            return None
        if source.start not in self._renewed:
            self._renewed[source.start] = self._again(source)
        whole = self._renewed[source.start]
        return None if whole is None else whole.taken(np.array([place]), ())

    def _again(self, function: Opaque) -> Sums | None:
        """A function of rewritten arguments; None where they are the same."""
        arguments = [self(each) for each in function.arguments]
        if all(new is old for new, old in zip(arguments, function.arguments, strict=True)):
            return None
        return function_of(self.symbols, function.atom, function.params, arguments, function.shape)


def cleared(row: Row, symbol: int, symbols: Symbols) -> Row:
    """A row times powers of a positive symbol, entry by entry, so that nothing is divided by it."""
    own = Sums.symbols(np.array(symbol), symbols.coding)
    digits = row.sums.digits
    needed = np.zeros(row.sums.size, dtype=np.int64)
    for used in row.sums.symbols_used().tolist():
        base, power = symbols.power(used)
        if power < 0 and power == round(power) and base.content() == own.content():
            hit = (digits == used + 1).any(axis=1)
            places = row.sums.entry[hit]
            needed[places] = np.maximum(needed[places], -int(power))
    if not needed.any():
        return row
    wide = own.broadcast((row.sums.size,))
    factor = Sums.constant(np.ones(row.sums.size), symbols.coding)
    for level in range(1, int(needed.max()) + 1):
        here = needed >= level
        one = Sums.constant((~here).astype(float), symbols.coding)
        factor = factor.times(wide.scaled(here.astype(float)) + one)
    factor = factor.reshaped(row.sums.shape)
    sums = merged_powers(row.sums.times(factor), symbols)
    return replace(
        row, sums=sums, factor=factor if row.factor is None else row.factor.times(factor)
    )


def merged_powers(sums: Sums, symbols: Symbols) -> Sums:
    """Each product with the powers of one symbol in it multiplied: u · u⁻² is u⁻¹."""
    bases: dict[int, tuple[int, float]] = {}
    for symbol in sums.symbols_used().tolist():
        base, power = symbols.power(symbol)
        plain = power != 1 and base.key.size == 1 and base.weight[0] == 1 and base.degrees[0] == 1
        if plain and (power == round(power) or symbols.interval(base)[0] >= 0):
            bases[symbol + 1] = int(base.key[0]), power
    if not bases:
        return sums
    digits = sums.digits
    hit = np.isin(digits, list(bases)).any(axis=1) & ((digits > 0).sum(axis=1) > 1)
    if not hit.any():
        return sums
    rows = [_merged(row[row > 0].tolist(), bases, symbols) for row in digits[hit]]
    width = max(len(row) for row in rows)
    wide = np.array([row + [0] * (width - len(row)) for row in rows], dtype=np.int64)
    part = sums.chosen(hit)
    key = sums.coding.keys(wide.reshape(len(rows), width))
    changed = Sums.merged(sums.shape, part.entry, key, part.weight, sums.coding)
    return added([sums.chosen(~hit), changed])


def _merged(
    product: list[int], bases: Mapping[int, tuple[int, float]], symbols: Symbols
) -> list[int]:
    """The digits of one product, powers of the same base as one."""
    exponents: dict[int, float] = {}
    for digit in product:
        base, power = bases.get(digit, (digit, 1.0))
        exponents[base] = exponents.get(base, 0.0) + power
    found: list[int] = []
    for base, power in exponents.items():
        if abs(power - round(power)) <= DATA_ROUNDING:
            power = float(round(power))
        if power >= 0 and power == round(power):
            found += [base] * int(power)
        else:
            own = Sums.symbols(np.array(base - 1), symbols.coding)
            found.append(symbols.of_power(own, power) + 1)
    return found
