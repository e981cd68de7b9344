"""Differences that rows keep positive, as variables: s <= μ − λ in place of μ − λ below a fraction line.

A queue with arrivals λ and service μ holds λ/(μ − λ) customers, and a customer stays for 1/(μ − λ). Both
are only meant where μ > λ, which rows say, such as λ <= 0.95 μ or μ − λ >= 0.01, and no bounds of the
variables. The rules of the proof take signs from bounds. So each D(x) that something is divided by and
that is nowhere negative, by one affine row or by a linear program over all, gets a variable s > 0:

    1/D(x)  →  1/s    with    s <= D(x)

Where the objective and the rows do not increase with s, nothing is lost: s = D(x) is the best s for each
x. Else the row is s == D(x). At points with D = 0 the ratio is not defined, so that s is positive.

What comes out is an ordinary model. 1/s is convex, and s <= μ − λ is linear: delays are convex in (μ, λ).
With logarithms λ/s is a product, and s + λ <= μ is a posynomial below a product: so are numbers of
customers, λ/(μ − λ), and of those who wait, λ²/(μ (μ − λ)). A numerator that is k·D + c leaves k + c/s.
Rows and D may be divided by positive entries: with ρ = λ/μ, D = 1 − ρ is μ − λ over μ.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, vstack

from hcmodel.atoms.rules import Monotonicity
from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.expansion import function_of
from hcmodel.facts.polynomials import ONE, Sums, added, stacked
from hcmodel.facts.symbols import Opaque, Symbols
from hcmodel.maps.algebra.expanded import Evaluation, Expanded, Row, replaced
from hcmodel.maps.algebra.ranges import affine_program, is_affine, sign_of
from hcmodel.maps.algebra.replacing import Replacing, cleared, merged_powers
from hcmodel.maps.algebra.rewriting import rewritten, without
from hcmodel.maps.map import Map, Obstacle, Points, Step, fresh_name, symbol_sums, text_of
from hcmodel.records import cached_property, dataclass, replace
from hcmodel.solvers.numerics import PRODUCT_ROUNDING

FloatArray = NDArray[np.float64]

# How far a point is moved to where all differences are positive, beyond where the last one becomes so.
BEYOND = 0.5


class Differences(Map):
    """s <= D(x) for each D that something is divided by; see the module."""

    name = "differences"
    summary = "s <= D(x) for what is divided by and positive by rows, as μ − λ of a queue"
    literature = "Kleinrock 1975; Boyd, Kim, Vandenberghe, Hassibi 2007, section 6"
    example = "queues.hc"

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        below = _differences(model)
        if below:
            yield _Differences.of(model, below)


@dataclass(frozen=True, eq=False)
class _Difference:
    """D, D times what makes it affine, and the symbols that are (sign·D·common)^power, with these powers.

    The common factor is a product of positive entries: 1/(μ² − μ·λ) has D = μ − λ and the factor μ.
    """

    sums: Sums
    affine: Sums
    sign: float
    common: tuple[int, ...]
    least: float
    powers: dict[int, float]

    def value(self, symbols: Symbols, s: Sums, power: float) -> Sums:
        """(sign·s·common)^power."""
        sign = self.sign ** int(power) if self.sign < 0 else 1.0
        found = symbol_sums(symbols, np.array(symbols.of_power(s, power))).scaled(sign)
        for each in self.common:
            own = symbol_sums(symbols, np.array(each))
            found = found.times(symbol_sums(symbols, np.array(symbols.of_power(own, power))))
        return merged_powers(found, symbols)


def _differences(model: Expanded) -> list[_Difference]:
    """What has no sign by the bounds of the variables, has one by the rows, and is divided by."""
    symbols = model.symbols
    found: dict[tuple[bytes, ...], _Difference | None] = {}
    rows: _Rows | None = None
    for symbol in model.used().tolist():
        base, power = symbols.power(symbol)
        if power >= 0 or base.key.size < 2 or base.shape:
            continue
        low, high = symbols.interval(base)
        if low >= 0 or high <= 0:
            continue
        if base.content() not in found:
            rows = _Rows(_without_reciprocals(model)) if rows is None else rows
            found[base.content()] = _signed(rows, base)
        own = found[base.content()]
        if own is not None and (own.sign > 0 or power == round(power)):
            own.powers[symbol] = power
    return [each for each in found.values() if each is not None and each.powers]


def _without_reciprocals(model: Expanded) -> Expanded:
    """The model with rows multiplied by positive entries that they are divided by."""
    rows = tuple(_cleared(model.symbols, row) for row in model.rows)
    return replace(model, rows=rows)


def _cleared(symbols: Symbols, row: Row) -> Row:
    for used in row.sums.symbols_used().tolist():
        base, power = symbols.power(used)
        if power < 0 and base.key.size == 1 and base.degrees[0] == 1 and base.weight[0] == 1:
            symbol = int(base.key[0]) - 1
            if symbols.lower_of(symbol) > 0:
                row = cleared(row, symbol, symbols)
    return row


class _Rows:
    """The entries of the affine rows, by the symbols that they have."""

    def __init__(self, model: Expanded) -> None:
        self.model = model
        self._entries: dict[int, list[Sums]] = {}
        for row in model.rows:
            if row.sense in ("<=", "==") and row.entries is None and is_affine(model, row.sums):
                for entry in row.sums.entries():
                    both = (entry, -entry) if row.sense == "==" else (entry,)
                    for key in entry.key[entry.key != ONE].tolist():
                        self._entries.setdefault(key, []).extend(both)

    def sign(self, affine: Sums) -> int:
        """1 where an affine function is nowhere negative, −1 where it is nowhere positive, else 0."""
        for sign in (1, -1):
            if self.least(affine.scaled(float(sign))) >= 0:
                return sign
        return sign_of(self.model, affine)

    def least(self, affine: Sums) -> float:
        """A lower bound by the bounds of the variables and one row, which is added k >= 0 times."""
        symbols = self.model.symbols
        found = float(symbols.interval(affine)[0])
        for key, weight in zip(affine.key.tolist(), affine.weight.tolist(), strict=True):
            for entry in self._entries.get(key, ()):
                k = -weight / float(entry.weight[entry.key == key][0])
                if k > 0:
                    found = max(found, float(symbols.interval(affine + entry.scaled(k))[0]))
        return found


def _signed(rows: _Rows, base: Sums) -> _Difference | None:
    symbols = rows.model.symbols
    common = _common(symbols, base)
    base = without(base, *(each + 1 for each in common))
    affine = _cleared(symbols, Row(base, "<=", None)).sums
    if not is_affine(rows.model, affine) or affine.is_constant:
        return None
    sign = float(rows.sign(affine))
    if not sign:
        return None
    least = rows.least(base.scaled(sign)) if is_affine(rows.model, base) else 0.0
    return _Difference(base.scaled(sign), affine.scaled(sign), sign, common, max(least, 0.0), {})


def _common(symbols: Symbols, base: Sums) -> tuple[int, ...]:
    """The positive symbols that all terms have, as often as they have them."""
    terms = [Counter(filter(None, row)) for row in base.digits.tolist()]
    shared = functools.reduce(lambda one, two: one & two, terms)
    return tuple(each - 1 for each in shared.elements() if symbols.lower_of(each - 1) > 0)


class _Differences(Step):
    """Variables for the differences."""

    name = "differences"
    gone = ()

    def __init__(
        self, s: Variable, below: Sequence[_Difference], before: Expanded, after: Expanded
    ) -> None:
        self.new, self.after, self._before = (s,), after, before
        coding = after.symbols.coding
        self._sums = stacked([each.sums for each in below], coding).reshaped(s.shape)
        self._affine = stacked([each.affine for each in below], coding)

    @staticmethod
    def of(model: Expanded, below: Sequence[_Difference]) -> _Differences:
        symbols = model.symbols
        ends = np.array([(each.least, symbols.interval(each.sums)[1]) for each in below]).T
        shape = () if len(below) == 1 else (len(below),)
        # a difference that cannot be as large as its row says is left to the rows, which say so
        ends[1, ends[1] < ends[0]] = np.inf
        bounds = tuple(each.reshape(shape) for each in ends)
        s = Variable(shape, name=fresh_name(model, "s"), pos=True, bounds=bounds)
        numbers = np.ravel(symbols.of_variable(s)).tolist()
        changes: dict[int, Sums] = {}
        logs = ((each, symbols.logarithm(each)) for each in model.used().tolist())
        logarithms = [(each, inner) for each, inner in logs if inner is not None]
        for number, each in zip(numbers, below, strict=True):
            own = symbol_sums(symbols, np.array(number))
            for symbol, power in each.powers.items():
                changes[symbol] = each.value(symbols, own, power)
            for symbol, inner in logarithms:
                ratio = inner.multiple_of(each.sums)
                if ratio is not None and ratio > 0:
                    logarithm = function_of(symbols, ATOMS["log"], {}, [own.scaled(ratio)], ())
                    changes[symbol] = logarithm
        reduced = _reduced(model, below)
        after = rewritten(reduced, Replacing(symbols, changes), gone=(), new=(s,))
        relation = "<=" if _falls(after, numbers) else "=="
        whole = stacked([each.sums for each in below], symbols.coding).reshaped(shape)
        tie = Row(symbol_sums(symbols, symbols.of_variable(s)) - whole, relation, None)
        after = replace(after, rows=(*after.rows, tie), is_original=False, written=None)
        step = _Differences(s, below, model, after)
        if relation == "==":
            step.texts = {s: ", ".join(text_of(symbols, each.sums) for each in below[:1])}
        return step

    def fits(self, point: Points) -> bool:
        return bool((Evaluation(self.after.symbols, point).of(self._affine) > 0).all())

    def settle(self, point: Points) -> None:
        """Towards a point at which all differences are positive, as far as they are."""
        inside = None if self.fits(point) else self._inside
        if inside is None:
            return
        evaluation = Evaluation(self.after.symbols, point)
        here = evaluation.of(self._affine)
        there = Evaluation(self.after.symbols, {**point, **inside}).of(self._affine)
        with np.errstate(all="ignore"):
            share = float(np.max(np.where(here <= 0, -here / (there - here), 0.0)))
        share += BEYOND * (1.0 - share)
        for variable, value in inside.items():
            point[variable] = point[variable] + share * (value - point[variable])

    @cached_property
    def _inside(self) -> Points | None:
        """A point at which all differences are positive."""
        return _inside(_without_reciprocals(self._before), self._affine)

    def forward(self, point: Points) -> None:
        """Points at which nothing is defined have no image; they give a start that is moved."""
        self.settle(point)
        value = Evaluation(self.after.symbols, point).of(self._sums)
        point[self.new[0]] = np.where(value > 0, value, np.nan)

    def back(self, point: Points) -> None:
        """Nothing is gone."""

    def tangent_back(self, point: Points, moves: Points) -> None:
        """Nothing is gone."""


# ---- numerators


def _reduced(model: Expanded, below: Sequence[_Difference]) -> Expanded:
    """The model with (k·D + c)/D as k + c/D."""
    arrays = model.arrays
    for each in below:
        for symbol, power in each.powers.items():
            if power == -1 and not each.common:
                base = model.symbols.power(symbol)[0]
                arrays = [_without_multiple(sums, symbol, base) for sums in arrays]
    return replaced(model, arrays)


def _without_multiple(sums: Sums, symbol: int, base: Sums) -> Sums:
    """Each entry with its terms over D as k + c/D, where the numerator is k·D + c."""
    over = np.asarray((sums.digits == symbol + 1).any(axis=1))
    if not over.any():
        return sums
    coding, parts = sums.coding, []
    below = base.chosen(base.key != ONE)
    for entry in sums.reshaped((sums.size,)).entries():
        here = np.asarray((entry.digits == symbol + 1).any(axis=1))
        above = without(entry.chosen(here), symbol + 1)
        moving = above.chosen(above.key != ONE)
        if moving.key.size and np.array_equal(moving.key, below.key):
            ratio = float(moving.weight[0] / below.weight[0])
            near = np.abs(moving.weight - ratio * below.weight)
            if (near <= PRODUCT_ROUNDING * np.abs(moving.weight)).all():
                left = Sums.constant(float(above.value) - ratio * float(base.value), coding)
                own = Sums.symbols(np.array(symbol), coding).times(left)
                entry = added([entry.chosen(~here), Sums.constant(ratio, coding), own])
        parts.append(entry)
    return stacked(parts, coding).reshaped(sums.shape)


# ---- whether a smaller s is worse


def _falls(model: Expanded, numbers: Sequence[int]) -> bool:
    """Whether the objective and the rows do not increase with some entries."""
    directions = _Directions(model.symbols, set(numbers))
    equal = [row.sums for row in model.rows if row.sense != "<="]
    others = [model.objective, *(row.sums for row in model.rows if row.sense == "<=")]
    if any(directions.of(sums) != 0 for sums in equal):
        return False
    return all(directions.of(sums) in (0, -1) for sums in others)


class _Directions:
    """Whether arrays rise (1) or fall (−1) in all of some entries, do not depend on them (0), or None."""

    def __init__(self, symbols: Symbols, entries: set[int]) -> None:
        self._symbols, self._entries = symbols, entries
        self._known: dict[int, int | None] = {}

    def of(self, sums: Sums) -> int | None:
        used = sums.symbols_used().tolist()
        moving = {each: self._symbol(each) for each in used}
        moving = {each: way for each, way in moving.items() if way != 0}
        total = 0
        for row, weight in zip(sums.digits.tolist(), sums.weight.tolist(), strict=True):
            factors = [digit - 1 for digit in row if digit]
            ways = {moving[each] for each in factors if each in moving}
            if not ways:
                continue
            signed = all(self._symbols.lower_of(each) >= 0 for each in factors)
            alone = len(factors) == 1
            way = ways.pop() if len(ways) == 1 and (signed or alone) else None
            if way is None or total == -way * np.sign(weight):
                return None
            total = int(way * np.sign(weight))
        return total

    def _symbol(self, symbol: int) -> int | None:
        source, _ = self._symbols.source(symbol)
        if not isinstance(source, Opaque):
            return int(symbol in self._entries)
        if source.start not in self._known:
            self._known[source.start] = self._function(source)
        return self._known[source.start]

    def _function(self, function: Opaque) -> int | None:
        inside = [self.of(each) for each in function.arguments]
        if not any(way != 0 for way in inside):
            return 0
        facts = [self._symbols.argument(each) for each in function.arguments]
        moves = function.atom.monotonicity(facts, function.params)
        ways = {
            None if way is None else way * _SIGNS.get(move, 0)
            for way, move in zip(inside, moves, strict=True)
            if way != 0
        }
        found = ways.pop() if len(ways) == 1 else None
        return found or None  # 0 stands for an unknown direction here


_SIGNS = {Monotonicity.INCREASING: 1, Monotonicity.DECREASING: -1}


# ---- a point at which all are positive


def _inside(model: Expanded, below: Sums) -> Points | None:
    """A point of bounds and affine rows at which the least of some affine functions is largest."""
    if any(variable.set.is_curved for variable in model.variables):
        return None
    upper, right, *equalities, bounds, columns = affine_program(model)
    moving = below.key != ONE
    place = np.searchsorted(columns, below.key[moving] - 1)
    cells = below.weight[moving], (below.entry[moving], place)
    matrix = csr_array(cells, shape=(below.size, columns.size))
    none = csr_array((right.size, 1))
    found = scipy.optimize.linprog(
        np.append(np.zeros(columns.size), -1.0),
        vstack([hstack([upper, none]), hstack([-matrix, np.ones((below.size, 1))])]),
        np.concatenate([right, below.value.reshape(-1)]),
        hstack([equalities[0], csr_array((equalities[1].size, 1))]),
        equalities[1],
        bounds=np.vstack([bounds, [0.0, 1.0]]),
        method="highs",
    )
    if found.status != 0 or not found.x[-1] > 0:
        return None
    values = dict(zip(columns.tolist(), found.x[:-1].tolist(), strict=True))
    numbers = {each: model.symbols.of_variable(each) for each in model.variables}
    return {
        variable: np.array([values[each] for each in np.ravel(own).tolist()]).reshape(own.shape)
        for variable, own in numbers.items()
    }
