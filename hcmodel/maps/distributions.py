"""Distributions that are written in other ways.

The maps of decision processes ask for arrays of distributions. Policies are often nonnegative arrays with
rows that say that entries sum to 1: for each state in `sum(policy, axis=1) == 1`, along another axis, row
by row in a loop, or for numbers of their own. So entries x >= 0 with

    Σ x[i] = 1   for i in a line,

lines without a common entry that take up whole variables, become distributions, and these rows go: the
set says the same. Rows that the set already implies are dropped. Distributions of the same length, as of
one variable for each state, become one array.

The last action may be what is left: Σ x[i] <= 1, or 0 <= x <= 1 for one of two actions. Such a line gets
the entry 1 − Σ x[i]. No value changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.variable_sets import make_domain, simplex_conflict
from hcmodel.maps.algebra.expanded import Expanded, Row
from hcmodel.maps.algebra.rewriting import Exchange, rewritten
from hcmodel.maps.map import SHOWN, Map, Obstacle, Points, Step, fresh_name
from hcmodel.records import dataclass, replace
from hcmodel.solvers.numerics import SUM_ROUNDING

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]
Marks = NDArray[np.bool_]

REST = -1
"""In the place of a symbol: what the other entries of a line leave."""


# Unknowns up to which fractions may be actions where no system of equations has them: those of most
# models are not, and to look at each product twice takes seconds (a quadratic form of 800 fractions).
MOST_WITHOUT_SYSTEM = 60


class Distributions(Map):
    """Nonnegative entries with the sum 1 as distributions; see the module."""

    name = "distributions"
    summary = "x >= 0 with rows Σ x = 1 or Σ x <= 1 as distributions"
    literature = "Puterman 1994, section 2.1"
    example = """
    # A process with two states and two actions; the policy is a nonnegative array whose rows sum to 1.
    param moves[2,2,2] = [[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.1, 0.9]]]
    param reward[2,2]  = [[1, 2], [0, 3]]
    var policy[2,2] >= 0
    var visits[2]   >= 0

    let often[s in 1..2, a in 1..2] = visits[s] * policy[s,a]

    maximize sum(often[s,a]*reward[s,a] for s in 1..2, a in 1..2)

    subject to
        policies[s in 1..2]: sum(policy[s,:]) == 1
        flow[t in 1..2]: visits[t] == 0.5 + 0.9*sum(often[s,a]*moves[s,a,t] for s in 1..2, a in 1..2)
    """
    large = True

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        if not model.is_original:
            return
        equal = {row: own for row in model.rows if (own := _lines(model, row, "==")) is not None}
        whole = _arranged(model, equal, np.zeros(model.symbols.count, dtype=bool))
        if whole is not None:
            yield whole
        unknowns = sum(each.size for each in model.variables)
        if unknowns > MOST_WITHOUT_SYSTEM and not _has_system(model):
            return
        less = {row: own for row in model.rows if (own := _lines(model, row, "<=")) is not None}
        units = _units(model)
        if less or units.any():
            rest = _arranged(model, {**equal, **less}, units)
            if rest is not None and rest.choice:
                yield rest


def _lines(model: Expanded, row: Row, sense: str) -> Numbers | None:
    """The symbols, sorted, whose sums the entries of a row compare with 1; with REST for <=, last.

    None where the row says something else.
    """
    sums = row.sums
    if row.sense != sense or not sums.size or int(sums.degrees.max(initial=0)) != 1:
        return None
    varying = sums.degrees == 1
    digits, entry, weights = sums.digits[varying, 0], sums.entry[varying], sums.weight[varying]
    length = int(np.bincount(entry, minlength=sums.size).min())
    if length < 2 or length * sums.size != digits.size:  # lines of one entry are bounds
        return None
    order = np.lexsort((digits, entry))
    symbols, weights = (each[order].reshape(sums.size, length) for each in (digits - 1, weights))
    totals = -np.ravel(sums.value)[:, None]
    equal = np.abs(weights - totals) <= SUM_ROUNDING * np.abs(totals)
    sources = [source for source, _, _ in model.symbols.grouped(np.unique(symbols))]
    plain = all(isinstance(each, Variable) and _may_be_drawn(each) for each in sources)
    if not (plain and equal.all() and (totals > 0 if sense == "<=" else totals != 0).all()):
        return None
    rest = np.full((sums.size, 1 if sense == "<=" else 0), REST)
    return np.hstack([symbols, rest])


def _may_be_drawn(variable: Variable) -> bool:
    """Whether its entries may be those of a distribution, at 0 too."""
    if variable.set.is_distribution:
        return True
    return variable.set.is_box and not variable.pos and bool((variable.lower >= 0).all())


def _units(model: Expanded) -> Marks:
    """The entries of variables between 0 and 1 that stand in products or in a system of equations.

    All entries or none of a variable: the step takes whole variables out of the model.
    """
    found = np.zeros(model.symbols.count, dtype=bool)
    fractions = [
        model.symbols.of_variable(each)
        for each in model.variables
        if each.set.is_box and _may_be_drawn(each) and bool((each.upper <= 1.0).all())
    ]
    met = np.zeros(model.symbols.count + 1, dtype=bool)
    if fractions:
        for sums in model.everywhere():
            met[sums.digits[sums.degrees > 1]] = True
        for function in model.functions():
            if function.atom.equation is not None:
                met[function.arguments[0].digits] = True
    for own in fractions:
        found[own] = met[own + 1].any()
    return found


def _arranged(model: Expanded, lines: dict[Row, Numbers], units: Marks) -> _Distributions | None:
    """All distributions in arrays by their lengths; None where these are what the model has already."""
    known = [
        np.sort(model.symbols.of_variable(each).reshape(-1, each.shape[-1]), axis=1)
        for each in model.variables
        if each.set.is_distribution and each.size
    ]
    names = {line.tobytes() for own in known for line in own}
    said = {row for row, own in lines.items() if {line.tobytes() for line in own} <= names}
    made = _separate(model, {row: own for row, own in lines.items() if row not in said}, units)
    taken = np.zeros(units.size, dtype=bool)
    for own in made.values():
        taken[own[own != REST]] = True
    single = np.flatnonzero(units & ~taken)
    pairs = np.column_stack([single, np.full(single.size, REST)])
    pool = [line for own in (*known, *made.values(), pairs) for line in own]
    rows = tuple(row for row in model.rows if row not in said and row not in made)
    several = len({line.size for line in pool}) < len(known)
    if len(rows) == len(model.rows) and not (several or single.size):
        return None
    if not _has_system(model) and not _multiplies_others(model, pool):
        return None
    arrays = _arrays(model, pool)
    return None if arrays is None else _Distributions(replace(model, rows=rows), arrays)


def _has_system(model: Expanded) -> bool:
    """Whether the model has the solution of a system of equations, as visits are one."""
    return any(function.atom.equation is not None for function in model.functions())


def _multiplies_others(model: Expanded, lines: Sequence[Numbers]) -> bool:
    """Whether an entry of a line stands in a product with something that is not of its line.

    A quadratic form of one distribution has nothing that it is drawn after.
    """
    owner = np.full(model.symbols.count + 1, -1, dtype=np.int64)
    for number, line in enumerate(lines):
        owner[line[line != REST] + 1] = number
    for sums in model.everywhere():
        digits = sums.digits[sums.degrees > 1]
        of = owner[digits]
        first = of.max(axis=1, initial=-1)[:, None]
        if ((digits > 0) & (first >= 0) & (of != first)).any():
            return True
    return False


def _separate(model: Expanded, lines: dict[Row, Numbers], units: Marks) -> dict[Row, Numbers]:
    """The rows, the first ones first, whose lines have no common entry and take up whole boxes.

    What they leave of a box may be `units`, which are lines of their own.
    """
    taken = np.zeros(units.size, dtype=bool)
    found: dict[Row, Numbers] = {}
    for row, lines_of_it in lines.items():
        own = lines_of_it[lines_of_it != REST]
        if np.unique(own).size == own.size and not taken[own].any():
            taken[own] = True
            found[row] = lines_of_it
    boxes = [model.symbols.of_variable(each) for each in model.variables if each.set.is_box]
    while True:
        whole = np.ones(units.size + 1, dtype=bool)  # the last one is that of REST
        whole[:-1] = False
        for box in boxes:
            whole[box] = bool((taken | units)[box].all())
        broken = [row for row, own in found.items() if not whole[own].all()]
        for row in broken:
            own = found.pop(row)
            taken[own[own != REST]] = False
        if not broken:
            return found


@dataclass(frozen=True, eq=False)
class _Array:
    """An array of distributions, and the symbols in the place of which its entries stand, or REST."""

    variable: Variable
    numbers: Numbers
    text: str


def _arrays(model: Expanded, lines: Sequence[Numbers]) -> list[_Array] | None:
    """An array for the lines of each length; None where bounds leave a line no point."""
    symbols = model.symbols
    low, high = np.zeros(symbols.count + 1), np.ones(symbols.count + 1)  # the last one: REST
    for variable in model.variables:
        own = symbols.of_variable(variable)
        low[own], high[own] = variable.lower, variable.upper
    found: list[_Array] = []
    for length in dict.fromkeys(line.size for line in lines):
        numbers = np.array([line for line in lines if line.size == length])
        sources = [source for source, _, _ in symbols.grouped(np.unique(numbers[numbers != REST]))]
        parts = [each for each in sources if isinstance(each, Variable)]
        name, own = parts[0].name, symbols.of_variable(parts[0])
        in_order = numbers[np.argsort(numbers[:, 0])].ravel()
        if len(parts) > 1 or numbers.size < own.size:
            name = fresh_name(model, "drawn")
        elif own.ndim and own.shape[-1] == length and np.array_equal(in_order, own.ravel()):
            numbers = own  # its own lines, in its shape
        if simplex_conflict(low[numbers], high[numbers]) is not None:
            return None
        new = Variable(numbers.shape, name, simplex=True, bounds=(low[numbers], high[numbers]))
        symbols.of_variable(new)
        shown = [each.name for each in parts[:SHOWN]] + ["…"] * (len(parts) > SHOWN)
        found.append(_Array(new, numbers, ", ".join(shown)))
    return found


class _Distributions(Step):
    """Entries of other variables in place of those of the arrays."""

    name = "distributions"

    def __init__(self, model: Expanded, arrays: Sequence[_Array]) -> None:
        symbols = model.symbols
        numbers = np.concatenate([each.numbers.ravel() for each in arrays])
        new = np.concatenate([symbols.of_variable(each.variable).ravel() for each in arrays])
        stands = np.flatnonzero(numbers != REST)
        order = stands[np.argsort(numbers[stands])]
        self._parts = [
            (source, places, order[np.searchsorted(numbers[order], own)])
            for source, places, own in symbols.grouped(numbers[order])
            if isinstance(source, Variable)
        ]
        self.gone = tuple(source for source, _, _ in self._parts)
        self.new = tuple(each.variable for each in arrays)
        self.texts = {each.variable: each.text for each in arrays}
        self._sets = make_domain(self.new)
        self._rest = numbers == REST
        self.choice = bool(self._rest.any())
        self.first = not self.choice  # else maps find more in the model before it, as often as not
        exchange = Exchange.of(symbols, numbers[stands], new[stands])
        self.after = rewritten(model, exchange, gone=self.gone, new=self.new)

    def settle(self, point: Points) -> None:
        """The same proportions with the sum 1, or the distributions next to them within the bounds."""
        flat = self._drawn(point)
        for part, length in self._slices():
            lines = flat[part].reshape(-1, length)
            lines /= np.maximum(lines.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        self._put_back(self._sets.project(flat), point)

    def forward(self, point: Points) -> None:
        flat = self._drawn(point)
        for each, (part, _) in zip(self.new, self._slices(), strict=True):
            point[each] = flat[part].reshape(each.shape)

    def back(self, point: Points) -> None:
        self._put_back(np.concatenate([np.ravel(point[each]) for each in self.new]), point)

    def tangent_back(self, point: Points, moves: Points) -> None:
        self.back(moves)

    def _drawn(self, point: Points) -> FloatArray:
        """The entries of all distributions, one after the other."""
        flat = np.zeros(self._rest.size)
        for old, places, own in self._parts:
            flat[own] = np.ravel(point[old])[places]
        for part, length in self._slices():
            lines, rest = flat[part].reshape(-1, length), self._rest[part].reshape(-1, length)
            lines[rest] = np.maximum(1.0 - lines.sum(axis=1), 0.0)[rest.any(axis=1)]
        return flat

    def _slices(self) -> Iterator[tuple[slice, int]]:
        """Where the entries of each array are, and the length of its lines."""
        start = 0
        for each in self.new:
            yield slice(start, start + each.size), each.shape[-1]
            start += each.size

    def _put_back(self, flat: FloatArray, point: Points) -> None:
        for old, places, own in self._parts:
            values = np.empty(old.size)
            values[places] = flat[own]
            point[old] = values.reshape(old.shape)
