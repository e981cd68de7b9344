"""Entries that cannot be 0 are positive, so that their logarithms are coordinates.

Geometric programs are often written with `x >= 0`, or with boxes that begin at 0, and their logarithms
are coordinates for positive x only. The model itself may exclude 0: by a function that is not defined
there, such as 1/x or log(x), or by a row that is violated there, such as x·y >= 3 (`facts.nonzero`). The
model with x > 0 then has the same points.

A product that is maximised is 0 where one of its factors is 0:

    maximise x·y·z   subject to   x·y + y·z + x·z <= 6,   x, y, z >= 0.

With x, y, z > 0 the maximum is the same if a feasible point has a positive product, and the maximum of
the product is at least 0 in any case. So no upper bound is taken that is below 0, and a contradiction
between the rows for positive x is not one for x >= 0.

A level t that is maximised may have any sign, and be 0 wherever the rest of the model holds: maximise t
subject to t·D(x) <= N(x) with N >= 0. It is positive then, as a product that is maximised is.

The entries of an array that are positive may be some of many. They become a variable of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.facts.nonzero import Nonzero
from hcmodel.facts.polynomials import Sums
from hcmodel.maps.algebra.expanded import Expanded, Row
from hcmodel.maps.algebra.rewriting import Exchange, rewritten
from hcmodel.maps.identity import maximised_term
from hcmodel.maps.map import SHOWN, Map, Obstacle, Points, Step, fresh_name
from hcmodel.records import dataclass

Marks = NDArray[np.bool_]
Parts = tuple[NDArray[np.intp], ...]


@dataclass(frozen=True, eq=False)
class Positivity:
    """For each box the entries that are positive at all points that count."""

    marks: Mapping[Variable, Marks]
    by_objective: tuple[str, ...]
    """The variables whose zeros are left out because they are not better than other points."""


class Positive(Map):
    """x > 0 for entries that cannot be 0; see the module."""

    name = "positive"
    summary = "x > 0 where the model excludes x = 0, so that log x is a coordinate"
    literature = "Duffin, Peterson, Zener 1967; Boyd, Kim, Vandenberghe, Hassibi 2007"
    example = """
    # The largest box with half a surface of 6; its bounds allow sides of length 0.
    var x[3] >= 0

    maximize x[1]*x[2]*x[3]

    subject to
        surface: x[1]*x[2] + x[2]*x[3] + x[1]*x[3] <= 6
    """
    large = True

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        found = positivity(model) if model.is_original else None
        if found is None:
            return
        parts: dict[Variable, Parts] = {}
        for variable, marks in found.marks.items():
            places = np.flatnonzero(marks), np.flatnonzero(~marks)
            parts[variable] = tuple(each for each in places if each.size)
        yield Parted.of(model, parts, found.marks, self.name, by_objective=found.by_objective)


def positivity(model: Expanded) -> Positivity | None:
    """The variables with entries that are found to be positive; None where there are none."""
    open_ended = {
        variable: variable.lower
        for variable in model.variables
        if variable.set.is_box and not variable.pos and bool((variable.lower <= 0).any())
    }
    if not open_ended:
        return None
    product = maximised_term(model.objective)
    level = None if product is None else _level(model, product)
    from_zero = any(bool((low == 0).any()) for low in open_ended.values())
    if level is None and not (from_zero or model.functions()):
        return None  # only functions exclude negative numbers
    symbols = model.symbols
    digits = {v: symbols.of_variable(v).reshape(-1) for v in open_ended}
    candidates = np.concatenate(
        [own[np.ravel(open_ended[v] <= 0) & np.ravel(v.upper > 0)] for v, own in digits.items()]
    )
    nonzero = Nonzero(symbols, candidates)
    rows = [(_counting(row), row.sense) for row in model.rows if row.sense in ("<=", "==")]
    nonzero.look(model.arrays, rows)
    before = nonzero.found.copy()
    if level is not None:
        nonzero.lower[level + 1] = 0.0
    if product is not None and nonzero.exclude_factors(product):
        nonzero.look(model.arrays, rows)
    marks = {}
    by_objective = []
    for variable, own in digits.items():
        new = nonzero.found[own + 1]
        if new.any():
            marks[variable] = new | np.ravel(variable.lower > 0)
        if (new & ~before[own + 1]).any():
            by_objective.append(variable.name)
    return Positivity(marks, tuple(by_objective)) if marks else None


def _level(model: Expanded, product: Sums) -> int | None:
    """The symbol of an entry that alone is maximised, and that may be 0 in all rows; None for others."""
    if product.degrees[0] != 1:
        return None
    symbols, symbol = model.symbols, int(product.key[0]) - 1
    source, _ = symbols.source(symbol)
    if not isinstance(source, Variable) or not source.set.is_box:
        return None
    if not symbols.lower_of(symbol) < 0 < symbols.upper_of(symbol):
        return None
    own = np.array([symbol])
    inside = (each for function in model.functions() for each in function.arguments)
    if any(each.holding(own).any() for each in inside):
        return None
    for row in model.rows:
        holding = row.sums.holding(own)
        if holding.any():
            rest = row.sums.chosen(~holding)
            places = np.unique(row.sums.entry[holding])
            if row.sense != "<=" or (np.ravel(symbols.interval(rest)[1])[places] > 0).any():
                return None
    return symbol


def _counting(row: Row) -> Sums:
    """The entries of a row that count."""
    if row.entries is None:
        return row.sums
    return row.sums.taken(np.ravel(row.entries), (row.entries.size,))


class Parted(Step):
    """Variables in place of parts of others, which are positive where all of their entries are."""

    ceiling: float = np.inf
    """The value of the points that have no image."""

    def __init__(
        self, name: str, parts: Mapping[Variable, tuple[tuple[Variable, NDArray[np.intp]], ...]]
    ) -> None:
        self.name = name
        self._parts = parts
        self.gone = tuple(parts)
        self.new = tuple(new for own in parts.values() for new, _ in own)
        if all(len(own) == 1 and own[0][0].shape == old.shape for old, own in parts.items()):
            self.renamed = {old: own[0][0] for old, own in parts.items()}
        self.choice = tuple(len(own) for own in parts.values())

    @staticmethod
    def of(
        model: Expanded,
        parts: Mapping[Variable, Parts],
        positive: Mapping[Variable, Marks],
        name: str,
        *,
        by_objective: tuple[str, ...],
    ) -> Parted:
        """`parts` has the places of the entries of each new variable, which are told by `positive`."""
        symbols = model.symbols
        made: dict[Variable, tuple[tuple[Variable, NDArray[np.intp]], ...]] = {}
        texts: dict[Variable, str] = {}
        old, new = [], []
        for variable, places in parts.items():
            own = []
            for each in places:
                whole = each.size == variable.size
                low, high = (np.ravel(end)[each] for end in (variable.lower, variable.upper))
                shape = variable.shape if whole else (each.size,) if each.size > 1 else ()
                part = Variable(
                    shape,
                    name=variable.name if whole else fresh_name(model, f"{variable.name}_part"),
                    bounds=(low.reshape(shape), high.reshape(shape)),
                    pos=bool(positive[variable][each].all()),
                )
                own.append((part, each))
                texts[part] = (
                    variable.name if whole else _entries(variable, each, symbols.first_index)
                )
                old.append(np.ravel(symbols.of_variable(variable))[each])
                new.append(np.ravel(symbols.of_variable(part)))
            made[variable] = tuple(own)
        step = Parted(name, made)
        step.texts = texts
        step.outside = by_objective
        if by_objective:
            step.ceiling = float(model.objective.value)
        exchange = Exchange.of(symbols, np.concatenate(old), np.concatenate(new))
        step.after = rewritten(model, exchange, gone=step.gone, new=step.new)
        return step

    def forward(self, point: Points) -> None:
        for old, own in self._parts.items():
            values = np.ravel(point[old])
            for new, places in own:
                point[new] = values[places].reshape(new.shape)

    def back(self, point: Points) -> None:
        for old, own in self._parts.items():
            values = np.zeros(old.size)
            for new, places in own:
                values[places] = np.ravel(point[new])
            point[old] = values.reshape(old.shape)

    def tangent_back(self, point: Points, moves: Points) -> None:
        self.back(moves)

    def value_back(self, value: float) -> float:
        """No point is above the ceiling, and all that have no image are on it."""
        return min(value, self.ceiling)


def _entries(variable: Variable, places: NDArray[np.intp], first: int) -> str:
    """Some entries of a variable as people write them."""
    words = []
    for place in places.tolist()[: SHOWN + 1]:
        entry = np.unravel_index(place, variable.shape)
        words.append(f"{variable.name}[{', '.join(str(int(each) + first) for each in entry)}]")
    return ", ".join(words if places.size <= SHOWN else [*words[:2], "…"])
