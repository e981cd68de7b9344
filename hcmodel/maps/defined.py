"""Variables that rows define, as what they are defined to be.

Models often have names for what is computed on the way, as variables with equalities:

    F == A + B K,     λ[s,a] == d[s] π[s,a],     demand == a exp(−b p),     Y == K P

Such a variable occurs alone in one entry of a row for each of its own entries, and what else is in that
row is free of it; or times something that is never 0, as in s (1 + Σ w) == w. So the row says what it
is. With that in its place the row holds, and leaves the model; other maps then see what the model is
made of. A definition may use another one, and the entries of one variable may be defined one after the
other, as visits of stages are. Bounds of the variable that do not follow from the ranges of what
defines it become rows. Where these are not convex they are left out, and the point that comes back is
tested against them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.expansion import function_of
from hcmodel.facts.polynomials import Sums, stacked
from hcmodel.maps.algebra.expanded import Evaluation, Expanded, Row
from hcmodel.maps.algebra.ranges import is_affine
from hcmodel.maps.algebra.replacing import Replacing
from hcmodel.maps.algebra.rewriting import rewritten, without
from hcmodel.maps.determined import has_numbers
from hcmodel.maps.map import Map, Obstacle, Points, Step
from hcmodel.records import dataclass, replace
from hcmodel.solvers.numerics import DATA_ROUNDING

Numbers = NDArray[np.int64]

# Variables that are replaced at once, and links of a chain inside of one: each takes a pass.
MOST = 50


class Defined(Map):
    """φ(x) in place of a variable V with the row V == φ(x); see the module."""

    name = "defined"
    summary = "φ(x) in place of a variable V with the row V == φ(x)"
    literature = "Avriel 1988"
    example = """
    # Profit, with a variable for the demand.
    var price  in [0, 10]
    var demand >= 0

    maximize (price - 1) * demand

    subject to
        law: demand == 20*exp(-0.5*price)
    """
    large = True

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        if has_numbers(model):
            return  # systems of equations say more than each of them
        seen = set[frozenset[Variable]]()
        for affine in (True, False):
            found = _definitions(model, affine=affine)
            names = frozenset(each.variable for each in found)
            if not found or names in seen:
                continue
            seen.add(names)
            yield from _Defined.steps(found)


def _definitions(model: Expanded, *, affine: bool) -> list[_Definition]:
    """Definitions one after the other, affine ones first or last.

    Of Q == r + γ P V and V == π Q only one can be taken: which one leaves equations that maps know is
    not the same for values and for visits.
    """
    found: list[_Definition] = []
    while len(found) < MOST:
        current = found[-1].after if found else model
        pairs = ((v, each) for each in (affine, not affine) for v in current.variables)
        tried = (_definition(current, v, affine=each) for v, each in pairs)
        definition = next(filter(None, tried), None)
        if definition is None:
            break
        found.append(definition)
    return found


@dataclass(frozen=True, eq=False)
class _Definition:
    """A variable, what it is in the others, and the model with that in its place."""

    variable: Variable
    value: Sums
    rows: tuple[Sums, ...]
    """The rows that say so, which are 0."""
    after: Expanded


def _definition(model: Expanded, variable: Variable, *, affine: bool) -> _Definition | None:
    """What rows define a variable to be; None where none do, or where it would change nothing."""
    if not variable.size or not (variable.set.is_box or _is_plain_symmetric(variable)):
        return None
    own = model.symbols.of_variable(variable)
    pending: dict[int, tuple[int, int]] = {}
    rows = list[int]()
    others_last = [is_affine(model, row.sums) != affine for row in model.rows]
    for place in sorted(range(len(model.rows)), key=others_last.__getitem__):
        found = _defines(model, model.rows[place], own)
        if found and not any(symbol in pending for symbol in found):
            pending |= {symbol: (place, entry) for symbol, entry in found.items()}
            rows.append(place)
    if len(pending) < np.unique(own).size:
        return None
    straight = _is_affine(model, rows)
    if straight != affine or (affine and not _is_multiplied(model, own)):
        return None
    return _substituted(model, variable, pending, rows)


def _is_plain_symmetric(variable: Variable) -> bool:
    return variable.set.is_symmetric and not variable.set.is_curved


def _defines(model: Expanded, row: Row, own: Numbers) -> dict[int, int]:
    """The entries of an equality by the symbols that stand alone there, one in each; {} for others."""
    plain = row.factor is None and row.congruence is None and row.image is None
    if row.sense != "==" or row.position is None or not plain:
        return {}
    sums = row.sums
    held = sums.among(np.unique(own) + 1)
    counted = np.arange(sums.size) if row.entries is None else np.ravel(row.entries)
    counts = held.any(axis=1) & np.isin(sums.entry, counted)
    alone = counts & (sums.degrees == 1)
    for here in (alone, counts):
        entry, symbol = sums.entry[here], sums.digits[here][held[here]] - 1
        if symbol.size != entry.size:
            continue  # a product of two of them
        pairs = dict.fromkeys(zip(entry.tolist(), symbol.tolist(), strict=True))
        if len(pairs) == counted.size == np.unique(entry).size and not _has_slack(model, sums):
            return _first_places(sums, pairs)
    return {}


def _first_places(sums: Sums, pairs: Iterable[tuple[int, int]]) -> dict[int, int]:
    """The first entry for each symbol, where further ones say the same; else {}."""
    found: dict[int, int] = {}
    for place, symbol in pairs:
        if found.setdefault(symbol, place) != place and not _same(sums, found[symbol], place):
            return {}
    return found


def _same(sums: Sums, *places: int) -> bool:
    """Whether two entries say the same, as those of symmetric matrices do."""
    one, two = (sums.taken(np.array([place]), ()) for place in places)
    return one.equals(two)


def _has_slack(model: Expanded, sums: Sums) -> bool:
    """Whether a semidefinite matrix stands alone in a row: the slack of a matrix inequality.

    A number, such as a cost with trace(P), is no such row.
    """
    if len(sums.shape) < 2:
        return False
    alone = sums.key[sums.degrees == 1] - 1
    sources = (source for source, _, _ in model.symbols.grouped(np.unique(alone)))
    return any(isinstance(each, Variable) and each.set.is_curved for each in sources)


def _is_affine(model: Expanded, rows: list[int]) -> bool:
    return all(is_affine(model, model.rows[place].sums) for place in rows)


def _is_multiplied(model: Expanded, own: Numbers) -> bool:
    """Whether a variable is in products or functions, or beside products in a matrix inequality."""
    for row, sums in zip((None, *model.rows), model.arrays, strict=True):
        here, products = sums.holding(own), sums.degrees > 1
        if (here & products).any():
            return True
        equation = row is not None and row.sense == "==" and here.any() and products.any()
        if equation and len(sums.shape) == 2 and _has_slack(model, sums):
            return True
    inside = (each for function in model.functions() for each in function.arguments)
    return any(bool(sums.holding(own).any()) for sums in inside)


def _substituted(
    model: Expanded, variable: Variable, pending: dict[int, tuple[int, int]], rows: list[int]
) -> _Definition | None:
    """The model with the definitions in place, those first that need no others of the variable."""
    symbols, left = model.symbols, dict(pending)
    defining = {place: model.rows[place].sums for place in rows}
    kept = tuple(row for place, row in enumerate(model.rows) if place not in defining)
    current = replace(model, rows=kept, is_original=False, written=None)
    values: dict[int, Sums] = {}
    for _ in range(MOST):
        ready = {
            symbol: value
            for symbol, (place, entry) in left.items()
            if (value := _value(model, defining[place], entry, symbol, left)) is not None
        }
        if not ready:
            return None  # each needs another one
        rewriting = Replacing(symbols, ready)
        current = rewritten(current, rewriting, gone=(), new=())
        values |= ready
        left = {symbol: place for symbol, place in left.items() if symbol not in ready}
        if not left:
            break
        defining = {place: rewriting(sums) for place, sums in defining.items()}
    else:
        return None
    numbers = np.ravel(symbols.of_variable(variable)).tolist()
    whole = stacked([values[each] for each in numbers], symbols.coding).reshaped(variable.shape)
    if whole.is_constant:
        return None  # rows that say a value themselves are known without a map
    others = tuple(each for each in current.variables if each is not variable)
    said = tuple(model.rows[place].sums for place in rows)
    return _Definition(variable, whole, said, replace(current, variables=others))


def _value(
    model: Expanded, sums: Sums, entry: int, symbol: int, left: dict[int, tuple[int, int]]
) -> Sums | None:
    """What an entry of a row says that a symbol is; None where that needs symbols that are left."""
    terms = sums.taken(np.array([entry]), ())
    mine = terms.holding(np.array([symbol]))
    if not mine.any():
        return None
    rest, factor = terms.chosen(~mine), without(terms.chosen(mine), symbol + 1)
    if not left.keys().isdisjoint(_symbols_in(model, rest) | _symbols_in(model, factor)):
        return None
    if factor.is_constant:
        return rest.scaled(-1.0 / float(factor.value))
    low, high = model.symbols.interval(factor)
    if low <= 0 <= high and not _is_reciprocal(model, factor):
        return None
    if high < 0:  # maps look for sums with positive weights below
        rest, factor = -rest, -factor
    powers = [factor, Sums.constant(-1.0, model.symbols.coding)]
    over = function_of(model.symbols, ATOMS["power"], {}, powers, ())
    return (-rest).times(over)


def _is_reciprocal(model: Expanded, factor: Sums) -> bool:
    """Whether a factor is one over a product, which is 0 nowhere."""
    if factor.key.size != 1:
        return False
    powers = [model.symbols.power(symbol)[1] for symbol in factor.symbols_used().tolist()]
    return all(power < 0 for power in powers)


def _symbols_in(model: Expanded, sums: Sums) -> set[int]:
    """The symbols in sums, those inside of functions among them."""
    found, seen, pending = set[int](), set[int](), [sums]
    while pending:
        used = pending.pop().symbols_used()
        found |= set(used.tolist())
        for function in model.symbols.functions(used):
            if function.start not in seen:
                seen.add(function.start)
                pending.extend(function.arguments)
    return found


def _final_values(found: list[_Definition]) -> list[Sums]:
    """What the variables are in those that are left: later definitions replace what earlier ones use."""
    values, changes = list[Sums](), dict[int, Sums]()
    for each in reversed(found):
        symbols = each.after.symbols
        value = Replacing(symbols, changes)(each.value)
        numbers = np.ravel(symbols.of_variable(each.variable)).tolist()
        changes |= dict(zip(numbers, value.entries(), strict=True))
        values.append(value)
    return values[::-1]


def _bounds(model: Expanded, variable: Variable, value: Sums) -> Iterator[tuple[bool, Row]]:
    """l <= φ and φ <= h for the bounds of V that the ranges of the others do not imply; is it upper."""
    symbols, coding = model.symbols, model.symbols.coding
    own = Sums.symbols(symbols.of_variable(variable), coding)
    low, high = symbols.interval(value)
    least, most = (np.broadcast_to(end, variable.shape) for end in variable.set.interval)
    below = low <= 0 if variable.set.positive or variable.pos else low < least
    for sign, end, open_ in ((-1.0, least, below), (1.0, most, high > most)):
        places = np.flatnonzero(open_)
        if places.size:
            limit = Sums.constant(np.ravel(end)[places], coding)
            both = (each.taken(places, (places.size,)) for each in (value, own))
            inside, written = ((each - limit).scaled(sign) for each in both)
            yield sign > 0, Row(inside, "<=", None, bound=written)


class _Defined(Step):
    """The variables are their definitions evaluated."""

    name = "defined"
    new = ()
    apart = True

    def __init__(
        self, found: list[_Definition], after: Expanded, released: tuple[str, ...], choice: Hashable
    ) -> None:
        self.gone = tuple(each.variable for each in found)
        self.after, self.released, self.choice = after, released, choice
        self._found = found

    @staticmethod
    def steps(found: list[_Definition]) -> Iterator[_Defined]:
        """With all bounds as rows, then with those of one side, which alone may be convex, then none."""
        after = found[-1].after
        bounds = [
            (each.variable.name, *end)
            for each, value in zip(found, _final_values(found), strict=True)
            for end in _bounds(after, each.variable, value)
        ]
        sides = {is_upper for _, is_upper, _ in bounds}
        for kept in [sides, *({side} for side in (True, False) if len(sides) > 1), set[bool]()]:
            rows = [row for _, is_upper, row in bounds if is_upper in kept]
            lost = dict.fromkeys(name for name, is_upper, _ in bounds if is_upper not in kept)
            whole = replace(after, rows=(*after.rows, *rows))
            yield _Defined(found, whole, tuple(lost), frozenset(kept))
            if not sides:
                return

    def forward(self, point: Points) -> None:
        """Nothing is new."""

    def settle(self, point: Points) -> None:
        self.back(point)

    def fits(self, point: Points) -> bool:
        """Whether the rows that leave the model hold, as they do once a point is settled."""
        numbers = Evaluation(self.after.symbols, point)
        rows = [sums for each in self._found for sums in each.rows]
        both = [(numbers.of(sums), numbers.of(sums, sizes=True)) for sums in rows]
        return all(bool((np.abs(value) <= DATA_ROUNDING * size).all()) for value, size in both)

    def back(self, point: Points) -> None:
        for each in reversed(self._found):  # a definition may use one that was replaced later
            point[each.variable] = Evaluation(self.after.symbols, point).of(each.value)
