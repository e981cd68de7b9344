"""Rows between logarithms, as rows between their arguments; no variable changes.

Prices are differences of logarithms of shares, and logarithms of demands. So a row between prices, as
p₁ <= p₂ or p₁ − p₂ <= 0.2, has logarithms with both signs, and is not convex as it is. With one
positive logarithm it is

    m·log f  <=  Σ n_j·log g_j + c    where    f  <=  exp(c/m)·Π g_j^(n_j/m)

The right side is concave for affine g where Σ n_j <= m: linear where there is one g with n = m, as in
p₁ <= p₂ for products with the same slope; a geometric mean else. An equality needs one g with n = m. Two
positive logarithms would have a product on the left side, which is not convex.

With v for the difference of both sides of the row as it is written, and R for the right side below, the
new row f − R is R·(exp(v/m) − 1), which is R/m times the old one where that is 0. So multipliers of the
new one, times R/m, are those of the old one.

A row A <= B between two products of powers is one between logarithms, log A <= log B. So are rows between
prices where demand is a power of the price, and x² <= y·z, which is x <= √(y·z). With v = A − B the
logarithm of A/B is log(1 + v/B), so that f − R is R·((1 + v/B)^(1/m) − 1), and R/(m·B) times v near 0.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hcmodel.expressions.table import ATOMS
from hcmodel.facts.expansion import function_of
from hcmodel.facts.polynomials import ONE, Sums, added, stacked
from hcmodel.facts.symbols import Symbols
from hcmodel.maps.algebra.expanded import Expanded, Image, Row
from hcmodel.maps.algebra.replacing import merged_powers
from hcmodel.maps.map import Map, Obstacle, SameVariables, Step
from hcmodel.records import dataclass, replace
from hcmodel.solvers.numerics import LARGEST_LOG, PRODUCT_ROUNDING


class LogRows(Map):
    """f <= exp(c/m)·Π g^(n/m) in place of m·log f <= Σ n·log g + c; see the module."""

    name = "log-rows"
    summary = "rows m log f <= Σ n log g + c as f <= exp(c/m) Π g^(n/m)"
    literature = "Boyd, Vandenberghe 2004, section 3.1.5"
    example = """
    # The point nearest to (3, 1, 2) with (x + z + 5)^2 <= 3 x y, which is written with logarithms.
    var x, y in [0.1, 10]
    var z    in [-3, 3]

    minimize (x - 3)^2 + (y - 1)^2 + (z - 2)^2

    subject to
        mean: 2*log(x + z + 5) <= log(x) + log(y) + log(3)
    """

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        after = without_logs(model)
        if after is not model:
            yield _WithoutLogs(after)


class _WithoutLogs(SameVariables):
    """The same variables."""

    name = "log-rows"

    def __init__(self, after: Expanded) -> None:
        self.after = replace(after, is_original=False, written=None)


def without_logs(model: Expanded) -> Expanded:
    """The model with rows between logarithms as rows between their arguments, where that is convex."""
    rows = tuple(_without_logs(model.symbols, row) for row in model.rows)
    if all(new is old for new, old in zip(rows, model.rows, strict=True)):
        return model
    return replace(model, rows=rows)


def _without_logs(symbols: Symbols, row: Row) -> Row:
    plain = row.factor is None and row.image is None and row.congruence is None
    if row.sense not in ("<=", "==") or not plain:
        return row
    coding = symbols.coding
    parts, factors = list(row.sums.entries()), [Sums.constant(1.0, coding)] * row.sums.size
    rates, scales = np.zeros(row.sums.size), [Sums.constant(0.0, coding)] * row.sums.size
    for place, entry in enumerate(parts):
        pair = _products(symbols, entry)
        logs = entry if pair is None else _log_difference(symbols, *pair)
        found = None if logs is None else _Comparison.of(symbols, logs, row.sense == "==")
        if found is None:
            continue
        parts[place], factors[place] = found.row(symbols), found.factor(symbols)
        rates[place] = 1.0 / found.weight
        if pair is not None:
            scales[place] = pair[1]
            below = function_of(symbols, ATOMS["power"], {}, [pair[1], _minus_one(symbols)], ())
            factors[place] = merged_powers(factors[place].times(below), symbols)
    if not rates.any():
        return row
    shape = row.sums.shape
    return replace(
        row,
        sums=stacked(parts, coding).reshaped(shape),
        factor=stacked(factors, coding).reshaped(shape),
        image=Image(rates.reshape(shape), stacked(scales, coding).reshaped(shape)),
    )


def _minus_one(symbols: Symbols) -> Sums:
    return Sums.constant(-1.0, symbols.coding)


def _products(symbols: Symbols, entry: Sums) -> tuple[Sums, Sums] | None:
    """A and B of a row A − B between two products of positive symbols; None for others."""
    if entry.key.size != 2 or entry.weight.min() > 0 or entry.weight.max() < 0:
        return None
    used = entry.symbols_used().tolist()
    if int(entry.degrees.max()) < 1 or any(symbols.logarithm(each) is not None for each in used):
        return None
    if not all(symbols.lower_of(each) > 0 for each in used):
        return None
    return entry.chosen(entry.weight > 0), -entry.chosen(entry.weight < 0)


def _log_difference(symbols: Symbols, above: Sums, below: Sums) -> Sums | None:
    """log A − log B; None where A − B is convex as it is: A convex and B concave."""
    left, right = (function_of(symbols, ATOMS["log"], {}, [each], ()) for each in (above, below))
    powers, means = (each.weight[each.key != ONE] for each in (left, right))
    convex = (powers < 0).all() or ((powers > 0).sum() == 1 and powers.sum() >= 1)
    if convex and (means > 0).all() and means.sum() <= 1:
        return None
    return left - right


@dataclass(frozen=True, eq=False)
class _Comparison:
    """m·log f <= Σ n·log g + c: f, m, the right side over m, and what both sides are divided by."""

    left: Sums
    weight: float
    right: Sums
    size: float

    @staticmethod
    def of(symbols: Symbols, entry: Sums, equality: bool) -> _Comparison | None:
        """The comparison that an entry is, of a row <= 0 or == 0; None where it is no convex one."""
        moving = entry.key != ONE
        logs = [symbols.logarithm(int(key) - 1) for key in entry.key[moving]]
        inside = [each for each in logs if each is not None]
        if not logs or len(inside) < len(logs):
            return None
        if not all(symbols.interval(each)[0] > 0 for each in inside):
            return None
        weights = entry.weight[moving]
        if equality and (weights > 0).sum() != 1:
            weights, entry = -weights, -entry
        positive = np.flatnonzero(weights > 0)
        if positive.size != 1:
            return None
        weight = float(weights[positive[0]])
        right = -entry.chosen(entry.key != entry.key[moving][positive[0]]).scaled(1.0 / weight)
        right, total = _rounded(right)
        straight = len(logs) == 1 or (len(logs) == 2 and total == 1)
        if total > 1 or (equality and not straight) or abs(right.value) > LARGEST_LOG:
            return None
        size = max(float(np.exp(right.value)), 1.0)
        return _Comparison(inside[int(positive[0])], weight, right, size)

    def row(self, symbols: Symbols) -> Sums:
        """f − R, both divided by the larger number in it."""
        return self.left.scaled(1.0 / self.size) - self._right(symbols)

    def factor(self, symbols: Symbols) -> Sums:
        return self._right(symbols).scaled(1.0 / self.weight)

    def _right(self, symbols: Symbols) -> Sums:
        shift = Sums.constant(np.log(self.size), symbols.coding)
        return function_of(symbols, ATOMS["exp"], {}, [self.right - shift], ())


def _rounded(right: Sums) -> tuple[Sums, float]:
    """Σ n/m·log g + c/m and the sum of the n/m; 1 where it is that to rounding."""
    logs = right.chosen(right.key != ONE)
    total = float(logs.weight.sum())
    if logs.key.size and abs(total - 1.0) <= PRODUCT_ROUNDING * logs.key.size:
        right = added([right.chosen(right.key == ONE), logs.scaled(1.0 / total)])
        total = 1.0
    return right, total
