"""Powers over powers, and logarithms of ratios: perspectives that multiplying out has hidden.

With p > 1 and t > 0 the perspective t·(y/t)^p = y^p/t^(p−1) is convex in (y, t). By functions that the
proof knows it is, for E_p(y, t),

    E_2(y, t)  =  y²/t,        E_p(y, t)  =  E_{p/2}(y, t)²/t    for p > 2,
    E_p(y, t)  =  y²/(t^(p−1)·y^(2−p))    for 1 < p < 2 and y > 0,

each a square over something affine, or over a geometric mean. So y needs no sign where p is a power of
2, and may be a norm then. A ratio y^p/t^q with q < p − 1 is a power of one of these,

    y^p/t^q  =  E_a(y, t)^b    with    b = p − q,  a = p/b,

and below several bases it is their geometric mean that is t.

log(1 + a/t) with t > 0 is log(t + a) − log t: so t·log(1 + a/t), the rate of a channel of width t, is the
negative of a relative entropy and a linear function.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms import cones
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.polynomials import Sums, added, stacked
from hcmodel.facts.symbols import Symbols
from hcmodel.maps.algebra.quadratics import combined, quadratic
from hcmodel.maps.algebra.rewriting import substituted
from hcmodel.records import dataclass
from hcmodel.solvers.numerics import PRODUCT_ROUNDING


def with_perspectives(sums: Sums, symbols: Symbols) -> Sums:
    """The same sums with ratios of powers as squares over something, where these are convex."""
    if int(sums.degrees.max(initial=0)) < 2:
        return sums
    changed = dict[int, int]()
    for place in _candidates(sums, symbols).tolist():
        ratio = PowerRatio.of(sums.digits[place], symbols)
        number = None if ratio is None else ratio.written(symbols)
        if number is not None:
            changed[place] = number
    if not changed:
        return sums
    keys = sums.key.copy()
    for place, number in changed.items():
        keys[place] = number + 1
    return Sums.merged(sums.shape, sums.entry, keys, sums.weight, sums.coding)


def _candidates(sums: Sums, symbols: Symbols) -> NDArray[np.intp]:
    """The terms with powers of one symbol over others, and a sum of powers that is large enough."""
    digits = sums.digits
    powers = np.ones(int(digits.max(initial=0)) + 1)
    powers[0] = 0.0
    for symbol in symbols.single_functions(sums.symbols_used()):
        base, power = symbols.power(symbol)
        square = power > 0 and int(base.degrees.max(initial=0)) == 2  # of a norm, perhaps
        powers[symbol + 1] = 2.0 * power if square else power
    if not (powers < 0).any():
        return np.zeros(0, dtype=np.intp)
    own = powers[digits]
    above, below = own > 0, own < 0
    last = np.where(above, digits, 0).max(axis=1)
    single = last == np.where(above, digits, powers.size).min(axis=1)
    large = own.sum(axis=1) >= 1 - PRODUCT_ROUNDING
    squares = (np.where(above, own, 0.0).sum(axis=1) == 2) & (own.min(axis=1) == -1)
    return np.flatnonzero(single & large & below.any(axis=1) & ~squares)


@dataclass(frozen=True, eq=False)
class PowerRatio:
    """y^p over the product of the powers of positive bases: y as a vector, of which it is the norm."""

    above: Sums
    power: float
    below: list[tuple[Sums, float]]
    base: Sums
    base_power: float
    """y as it is written, and its power."""

    @staticmethod
    def of(digits: NDArray[np.int64], symbols: Symbols) -> PowerRatio | None:
        """The ratio that a product is; None for others, and for squares over one base."""
        found: dict[tuple[bytes, ...], tuple[Sums, float]] = {}
        for digit in digits[digits > 0].tolist():
            base, power = symbols.power(digit - 1)
            before = found.get(base.content(), (base, 0.0))[1]
            found[base.content()] = base, before + power
        pairs = [each for each in found.values() if each[1]]
        above = [each for each in pairs if each[1] > 0]
        below = [_root(base, -power, symbols) for base, power in pairs if power < 0]
        if len(above) != 1 or not below:
            return None
        if not all(float(symbols.interval(base)[0]) >= 0 for base, _ in below):
            return None
        base, power = above[0]
        if len(below) == 1 and (power, below[0][1]) == (2.0, 1.0):
            return None
        return PowerRatio(*_as_norm(base, power, symbols), below, base, power)

    def written(self, symbols: Symbols) -> int | None:
        """The symbol of the ratio as a power of a perspective; None where it is not convex."""
        total = sum(power for _, power in self.below)
        outer = self.power - total
        if outer < 1 - PRODUCT_ROUNDING:
            return None
        inner = self.power / outer
        if not _is_power_of_two(inner) and not self._is_positive(symbols):
            return None
        found = _perspective(self.above, self._mean(symbols, total), inner, symbols)
        if outer > 1 + PRODUCT_ROUNDING:
            base = Sums.symbols(np.array(found), symbols.coding)
            found = symbols.of_power(base, outer)
        return found

    def _is_positive(self, symbols: Symbols) -> bool:
        """Whether y is one affine function that is positive."""
        affine = self.above.size == 1 and int(self.above.degrees.max(initial=0)) <= 1
        return affine and bool((symbols.interval(self.above)[0] > 0).all())

    def _mean(self, symbols: Symbols, total: float) -> Sums:
        """The geometric mean of the bases below, weighted by their powers."""
        if len(self.below) == 1:
            return self.below[0][0]
        weights = [power / total for _, power in self.below]
        return _geometric_mean([base for base, _ in self.below], weights, symbols)


def _root(base: Sums, power: float, symbols: Symbols) -> tuple[Sums, float]:
    """A power of an affine function for one of its square, multiplied out; others as they are."""
    content = base.content()
    if content not in symbols.roots:
        symbols.roots[content] = _square_root(base)
    root = symbols.roots[content]
    return (base, power) if root is None else (root, 2.0 * power)


def _square_root(base: Sums) -> Sums | None:
    """The affine function that a sum is the square of, if there is one."""
    if int(base.degrees.max(initial=0)) != 2:
        return None
    _, factor, used = quadratic(base)
    if factor is None or factor.shape[0] != 1:
        return None
    root = combined(factor, used, base.coding).reshaped(())
    root = root if root.weight[0] > 0 else -root
    return root if root.times(root).equals(base) else None


def _as_norm(base: Sums, power: float, symbols: Symbols) -> tuple[Sums, float]:
    """A vector and a power of its norm that a power of a base is; of a number, the vector of it."""
    if int(base.degrees.max(initial=0)) == 2:
        sign, factor, used = quadratic(base)
        if factor is not None and factor.size and sign > 0:
            return combined(factor, used, base.coding), 2.0 * power
    function = symbols.function(int(base.key[0]) - 1) if base.key.size == 1 else None
    norm = function is not None and function.atom.cone_form is cones.NORM and base.weight[0] == 1
    if function is not None and norm and function.params["p"] in (2.0, "fro"):
        argument = function.arguments[0]
        return argument.reshaped((argument.size,)), power
    return base.reshaped((1,)), power


def _is_power_of_two(power: float) -> bool:
    while power > 2:
        power /= 2
    return abs(power - 2) <= PRODUCT_ROUNDING


def _perspective(above: Sums, below: Sums, power: float, symbols: Symbols) -> int:
    """The symbol of E_p; see the module."""
    if power > 2 + PRODUCT_ROUNDING:
        root = _perspective(above, below, power / 2, symbols)
        above = Sums.symbols(np.array([root]), symbols.coding)
    elif power < 2 - PRODUCT_ROUNDING:
        own = above.reshaped(())
        below = _geometric_mean([below, own], [power - 1, 2 - power], symbols)
    atom = ATOMS["quad_over_lin"]
    return int(symbols.of_function(atom, {}, (above, below), ()))


def _geometric_mean(bases: list[Sums], weights: list[float], symbols: Symbols) -> Sums:
    params = {"axis": None, "p": tuple(weights)}
    inside = stacked(bases, symbols.coding)
    number = symbols.of_function(ATOMS["geo_mean"], params, (inside,), ())
    return Sums.symbols(np.array(number), symbols.coding)


# ---- logarithms


def with_split_logarithms(sums: Sums, symbols: Symbols) -> Sums:
    """The same sums with logarithms of ratios as differences, where something is multiplied by them."""
    changes: dict[int, Sums] = {}
    several = sums.chosen(sums.degrees > 1)
    for symbol in symbols.single_functions(several.symbols_used()):
        inside = symbols.logarithm(symbol)
        over = None if inside is None else _over(inside, symbols)
        if over is not None:
            logs = [symbols.of_function(ATOMS["log"], {}, (each,), ()) for each in over]
            above, below = (Sums.symbols(np.array(each), sums.coding) for each in logs)
            changes[symbol] = above - below
    return substituted(sums, changes)


def _over(inside: Sums, symbols: Symbols) -> tuple[Sums, Sums] | None:
    """The affine numerator and denominator of a sum with one positive denominator; None for others."""
    digits = inside.digits
    for symbol in inside.symbols_used().tolist():
        base, power = symbols.power(symbol)
        if power != -1 or not float(symbols.interval(base)[0]) > 0:
            continue
        over = digits == symbol + 1
        here = over.any(axis=1)
        if (over.sum(axis=1) > 1).any() or int(base.degrees.max()) > 1:
            continue
        keys = inside.coding.keys(np.where(over, 0, digits)[here])
        alone = Sums.merged((), inside.entry[here], keys, inside.weight[here], inside.coding)
        above = added([inside.chosen(~here).times(base), alone])
        variables = above.degrees.max(initial=0) <= 1
        if variables and not symbols.functions(above.symbols_used()):
            return above, base
    return None
