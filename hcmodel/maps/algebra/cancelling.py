"""What a sum is divided by and multiplied with falls out: (v₁ + v₂) w / (v₁ + v₂) = w.

A model that is multiplied out does not show its factors. They are found by long division in one of the
symbols of the divisor. Sums that leave a remainder stay as they are.
"""

from __future__ import annotations

import numpy as np

from hcmodel.facts.polynomials import ONE, Sums, added
from hcmodel.facts.symbols import Symbols
from hcmodel.maps.algebra.expanded import Expanded
from hcmodel.maps.algebra.replacing import Replacing
from hcmodel.maps.algebra.rewriting import rewritten


def cancelled(model: Expanded) -> Expanded:
    """The model without divisors that are factors as well, where they are part of another divisor.

    So v_i/V · V/(1 + V), the share of a product in a nest times that of the nest, is v_i/(1 + V).
    """
    divisors = _inner(model)
    if not divisors:
        return model
    return rewritten(model, _Cancelling(model.symbols, divisors), gone=[], new=[])


def _inner(model: Expanded) -> tuple[int, ...]:
    """The symbols V⁻¹ of sums whose terms are some of those of another sum, with a constant, below."""
    powers = {symbol: model.symbols.power(symbol) for symbol in model.used().tolist()}
    found = {symbol: base for symbol, (base, power) in powers.items() if power == -1}
    sums = {s: set(base.key.tolist()) for s, base in found.items() if base.key.size > 1}
    outer = [keys for keys in sums.values() if ONE in keys]
    return tuple(s for s, keys in sums.items() if any(keys < each for each in outer))


class _Cancelling(Replacing):
    """Divides by each of the divisors, also inside of functions."""

    def __init__(self, symbols: Symbols, divisors: tuple[int, ...]) -> None:
        super().__init__(symbols, {})
        self._divisors = divisors

    def __call__(self, sums: Sums) -> Sums:
        for divisor in self._divisors:
            sums = self._over(sums, divisor)
        return super().__call__(sums)

    def _over(self, sums: Sums, divisor: int) -> Sums:
        """The same without a divisor in the entries whose terms with it are a multiple of its base."""
        over = sums.digits == divisor + 1
        here = over.any(axis=1)
        if not here.any():
            return sums
        over &= np.cumsum(over, axis=1) == 1  # one of several
        keys = sums.coding.keys(np.where(over, 0, sums.digits)[here])
        above = Sums.merged(sums.shape, sums.entry[here], keys, sums.weight[here], sums.coding)
        quotient, rest = divided(above, self.symbols.power(divisor)[0])
        whole = np.ones(sums.size, dtype=bool)
        whole[rest.entry] = False
        if not whole[sums.entry[here]].any():
            return sums
        return added(
            [sums.chosen(~(here & whole[sums.entry])), quotient.chosen(whole[quotient.entry])]
        )


def divided(above: Sums, below: Sums) -> tuple[Sums, Sums]:
    """Quotient and remainder, entry by entry, of a division by a scalar that is linear in its symbols."""
    place = int(np.flatnonzero(below.key != ONE)[0])
    main, weight = int(below.key[place]), float(below.weight[place])
    wide = below.broadcast(above.shape)
    quotient, rest = Sums.constant(np.zeros(above.shape), above.coding), above
    for power in range(above.degrees.max(initial=0), 0, -1):
        digits = rest.digits
        top = (digits == main).sum(axis=1) == power
        if not top.any():
            continue
        first = (digits == main) & (np.cumsum(digits == main, axis=1) == 1)
        keys = rest.coding.keys(np.where(first, 0, digits)[top])
        part = Sums.merged(
            rest.shape, rest.entry[top], keys, rest.weight[top] / weight, rest.coding
        )
        quotient, rest = quotient + part, rest - part.times(wide)
    return quotient, rest
