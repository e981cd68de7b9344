"""Rows that follow from a row, whose ends say more than its own.

x/(1 + x) >= 1 has no point with x >= 0, as x >= 1 + x has none; the ends of x/(1 + x), x and 1/(1 + x) by
themselves do not show it. A row is multiplied by its denominators, and what is under a logarithm or a
root is compared with the exponential or the square of the rest: log(1 + exp(x)) <= x is
1 + exp(x) <= exp(x). All of it is algebra on terms; nothing is rounded but the weights.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hcmodel.atoms import cones
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.expansion import function_of
from hcmodel.facts.polynomials import ONE, Sums, TooLargeError, added
from hcmodel.facts.symbols import Symbols, is_logarithm
from hcmodel.records import dataclass, replace

# How often a row is rewritten: log(x/(1 + x)) >= 0 is a row of exponentials, of which one is a ratio.
DEPTH = 3
# How many logarithms of the same thing are its power: that of a sum has many terms.
POWERS = (1.0, 2.0, 3.0)
# Symbols that rewriting may add to those of a model, and terms of a rewritten row.
SPARE = 200
MOST_TERMS = 200
# Multiples of its inverse up to it have 20 of the 53 digits of a number: products of two are exact.
SHORT = 2.0**10


@dataclass(frozen=True)
class Following:
    """A scalar that is not positive where another one is not, if others are positive or not negative."""

    sums: Sums
    positive: tuple[Sums, ...] = ()
    nonnegative: tuple[Sums, ...] = ()
    rounded: bool = False
    """Whether weights may have been rounded, so that what it misses 0 by is to be larger."""


def following(sums: Sums, symbols: Symbols) -> list[Following]:
    """What follows from a scalar that is not positive."""
    if not sums.key.size:
        return []
    sums = sums.scaled(1.0 / np.abs(sums.weight).max())  # 0.3 a <= 0.3 b is a <= b
    found, new = list[Following](), [Following(sums, rounded=not _is_short(sums))]
    known = {sums.content()}
    for _ in range(DEPTH):
        made = list[Following]()
        for each in new:
            for other in _rewritten(each, symbols):
                if other.sums.key.size <= MOST_TERMS and other.sums.content() not in known:
                    known.add(other.sums.content())
                    rounded = each.rounded or other.rounded or not _is_short(other.sums)
                    made.append(replace(other, rounded=rounded))
        new = made
        found += made
    return found


def _is_short(sums: Sums) -> bool:
    """Whether all weights have so few digits that their products are exact."""
    scaled = sums.weight * SHORT
    return bool(((np.abs(sums.weight) <= SHORT) & (scaled == np.round(scaled))).all())


def _rewritten(row: Following, symbols: Symbols) -> Iterator[Following]:
    for rule in (_without_denominators, _by_inverses):
        try:
            yield from rule(row, symbols)
        except TooLargeError:
            continue


# ---- denominators


def _without_denominators(row: Following, symbols: Symbols) -> Iterator[Following]:
    """The row times the powers of what it is divided by, and with powers of the same base joined."""
    sums, positive = row.sums, row.positive
    bases = {
        base.content(): base
        for symbol in sums.symbols_used().tolist()
        for base, power in [symbols.power(symbol)]
        if power != 1
    }
    changed = False
    for base in bases.values():
        cleared = _cleared(sums, base, symbols)
        if cleared is not None:
            sums, odd = cleared
            changed = True
            positive = (*positive, base) if odd else positive
    if changed:
        yield Following(sums, positive, row.nonnegative)


def _cleared(sums: Sums, base: Sums, symbols: Symbols) -> tuple[Sums, bool] | None:
    """The sums times a natural power of a base, without its powers, and whether that power is odd."""
    own, content = dict[int, float](), base.content()
    for symbol in sums.symbols_used().tolist():
        inside, power = symbols.power(symbol)
        if inside.content() == content:
            own[symbol] = power
    plain = _symbol_of(base)
    if plain is not None:
        own[plain] = 1.0
    digits = sums.digits
    exponents = np.zeros(sums.key.size)
    marks = np.zeros(digits.shape, dtype=bool)
    for symbol, power in own.items():
        here = digits == symbol + 1
        marks |= here
        exponents += power * here.sum(axis=1)
    least = min(float(exponents.min(initial=0.0)), 0.0)
    left = exponents - least
    if (left != np.round(left)).any() or least != round(least):
        return None
    keys = sums.coding.keys(np.where(marks, 0, digits))
    parts, raised = list[Sums](), Sums.constant(1.0, sums.coding)
    for power in range(int(left.max(initial=0.0)) + 1):
        here = left == power
        rest = Sums.merged((), sums.entry[here], keys[here], sums.weight[here], sums.coding)
        parts.append(rest.times(raised))
        raised = raised.times(base)
    return added(parts), bool(round(least) % 2)


def _symbol_of(base: Sums) -> int | None:
    """The symbol that a base is; None where it is a sum or a product."""
    if base.key.size != 1 or base.degrees[0] != 1 or base.weight[0] != 1:
        return None
    return int(base.key[0]) - 1


# ---- inverse functions


def _by_inverses(row: Following, symbols: Symbols) -> Iterator[Following]:
    """For each term that is a logarithm, a root or a norm: its inside, and the inverse of the rest."""
    sums = row.sums
    for place in np.flatnonzero((sums.degrees == 1) & (sums.key != ONE)).tolist():
        symbol, weight = int(sums.key[place]) - 1, float(sums.weight[place])
        rest = sums.chosen(np.arange(sums.key.size) != place).scaled(-1.0 / weight)
        sign = float(np.sign(weight))
        inside = _under_logarithm(symbol, symbols)
        if inside is not None:
            other = _exponential(rest, symbols)
            exact = not rest.value.any()  # the exponential of a number is rounded
            made = (inside - other).scaled(sign)
            yield Following(made, row.positive, row.nonnegative, not exact)
        inside = _under_root(symbol, symbols)
        if inside is not None:
            needs = row.nonnegative if sign > 0 else (*row.nonnegative, rest)
            square = rest.times(rest)
            yield Following((inside - square).scaled(sign), row.positive, needs)


def _under_logarithm(symbol: int, symbols: Symbols) -> Sums | None:
    """The exponential of a symbol that is a logarithm; 1 + exp(s) for softplus(s)."""
    found = symbols.function(symbol)
    if found is None:
        return None
    if is_logarithm(found.atom):
        return found.arguments[0]
    if found.atom.cone_form is not cones.SOFT_PLUS:
        return None
    one = Sums.constant(1.0, symbols.coding)
    return one + function_of(symbols, ATOMS["exp"], {}, found.arguments, ())


def _exponential(exponent: Sums, symbols: Symbols) -> Sums:
    """The exponential of a scalar; what a logarithm is taken of is positive where that has a value."""
    product = Sums.constant(1.0, symbols.coding)
    kept = np.ones(exponent.key.size, dtype=bool)
    for place in np.flatnonzero(exponent.degrees == 1).tolist():
        inside = symbols.logarithm(int(exponent.key[place]) - 1)
        times = float(exponent.weight[place])
        if inside is not None and times in POWERS:
            kept[place] = False
            for _ in range(int(times)):
                product = product.times(inside)
    rest = exponent.chosen(kept)
    if not rest.key.size:
        return product
    return product.times(function_of(symbols, ATOMS["exp"], {}, [rest], ()))


def _under_root(symbol: int, symbols: Symbols) -> Sums | None:
    """The square of a symbol that is a root, a norm or an absolute value."""
    base, power = symbols.power(symbol)
    if power == 0.5:
        return base
    found = symbols.function(symbol)
    if found is None or found.atom.cone_form not in (cones.NORM, cones.ABSOLUTE):
        return None
    argument = found.arguments[0]
    if found.params.get("p", 2.0) not in (2.0, "fro"):
        return None
    return argument.times(argument).grouped(np.zeros(argument.size, dtype=np.intp), ())
