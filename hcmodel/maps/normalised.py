"""Models in which only ratios count: a normalisation gives way to one entry that is 1.

The strengths w > 0 of the model of Bradley and Terry enter its likelihood by ratios alone,

    Σ n_ij (log w_i − log(w_i + w_j)),   Σ w = 1,

so that the row Σ w = 1 only chooses one point on each ray. It is not affine in log w, in which everything
else is convex. Each ray of positive vectors also has one point v with v_1 = 1, and v = w/w_1 and
w = v·(c/N(v))^(1/k) are inverse to each other for every normalisation N(w) = c with c > 0 and an N > 0
that is homogeneous of degree k: sums with positive weights, sums of squares, norms.

Where N(w) = c holds, a function may be multiplied by powers of N/c. A row with terms of different degrees
becomes one of a single degree so, and log L for an L of degree d becomes log L − d/k·log(N/c). An
objective of degree 0 has the same values at w and at v, and a row of degree d is multiplied by a positive
number. The normalisation is then the only function that tells w and v apart.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.expansion import function_of
from hcmodel.facts.nonzero import Nonzero
from hcmodel.facts.polynomials import ONE, Sums, added, stacked
from hcmodel.facts.symbols import Opaque, Symbols, is_logarithm
from hcmodel.maps.algebra.expanded import Evaluation, Expanded, Row
from hcmodel.maps.algebra.rewriting import Exchange, rewritten, substituted
from hcmodel.maps.map import Map, Obstacle, Points, Step, described, fresh_name, symbol_sums
from hcmodel.records import dataclass, replace
from hcmodel.solvers.numerics import DATA_ROUNDING

Numbers = NDArray[np.int64]


class Normalised(Map):
    """v = w/w_1 in place of a normalised w; see the module."""

    name = "normalised"
    summary = "v = w / w[1] for a normalised w > 0 of which only ratios count; back: w = v / Σ v"
    literature = "Bradley, Terry 1952; Hunter 2004; Boyd, Kim, Vandenberghe, Hassibi 2007"
    example = "bradley_terry.hc"

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        for found in _normalisations(model):
            step = _substituted(model, found)
            if step is not None:
                yield step


@dataclass(frozen=True, eq=False)
class _Normalisation:
    """N(w) = c: the row that says so, where it is not the set of a variable."""

    sums: Sums
    constant: float
    degree: float
    row: Row | None = None

    @property
    def entries(self) -> Numbers:
        """The symbols that it scales."""
        return self.sums.symbols_used()


def _normalisations(model: Expanded) -> Iterator[_Normalisation]:
    symbols = model.symbols
    for variable in model.variables:
        if variable.set.is_distribution and variable.size == variable.shape[-1] > 1:
            own = symbol_sums(symbols, np.ravel(symbols.of_variable(variable)))
            total = own.grouped(np.zeros(own.size, dtype=np.intp), ())
            yield _Normalisation(total, 1.0, 1.0)
    for row in model.rows:
        found = _of_row(symbols, row) if row.sense == "==" and row.sums.size == 1 else None
        if found is not None:
            yield found


def _of_row(symbols: Symbols, row: Row) -> _Normalisation | None:
    """A row Σ weights · products = constant with one degree and positive weights and variables."""
    sums = row.sums.reshaped(())
    moving = sums.chosen(sums.key != ONE)
    constant = -float(sums.value)
    if moving.key.size < 2 or row.position is None:
        return None
    if constant < 0:
        moving, constant = -moving, -constant
    degrees = moving.degrees
    if constant == 0 or (moving.weight <= 0).any() or (degrees != degrees[0]).any():
        return None
    for source, _, own in symbols.grouped(moving.symbols_used()):
        positive = all(symbols.lower_of(each) > 0 for each in own.tolist())
        if not (isinstance(source, Variable) and source.set.is_box and positive):
            return None
    return _Normalisation(moving, constant, float(degrees[0]), row)


def _substituted(model: Expanded, norm: _Normalisation) -> Step | Obstacle | None:
    """The step; None where the objective depends on sizes, so that the model is of another kind."""
    symbols = model.symbols
    homogeneous = Homogeneous(symbols, norm)
    objective = homogeneous.invariant(model.objective)
    if objective is None or homogeneous.degree(objective, settled=True) != 0:
        return None
    zero = _possible_zero(model, norm)
    if zero is not None:
        return Obstacle("normalised", f"{described(symbols, zero)} may be 0")
    rows: list[tuple[Row, NDArray[np.float64]]] = []
    for row in (*model.rows, *_bounds(model, norm, homogeneous)):
        if row is norm.row:
            continue
        found = homogeneous.row(row)
        if found is None:
            name = "a bound" if row.position is None else model.name_of(row)
            return Obstacle("normalised", f"{name} is not of one degree in the scaled entries")
        rows.append(found)
    return _Ratios.of(model, norm, objective, rows)


def _possible_zero(model: Expanded, norm: _Normalisation) -> int | None:
    """An entry that may be 0, so that it has no logarithm; None where all are positive."""
    symbols, entries = model.symbols, norm.entries
    open_ended = np.array([each for each in entries.tolist() if symbols.lower_of(each) <= 0])
    if not open_ended.size:
        return None
    nonzero = Nonzero(symbols, open_ended)
    nonzero.look(model.arrays, [(row.sums, row.sense) for row in model.rows if row.entries is None])
    missing = open_ended[~nonzero.found[open_ended + 1]]
    return int(missing[0]) if missing.size else None


def _bounds(model: Expanded, norm: _Normalisation, homogeneous: Homogeneous) -> Iterator[Row]:
    """The bounds of the scaled entries that the normalisation does not imply, as rows."""
    symbols, coding = model.symbols, model.symbols.coding
    alone = norm.sums.chosen(norm.sums.degrees == norm.degree)
    for source, places, own in symbols.grouped(norm.entries):
        assert isinstance(source, Variable)
        ends = [np.ravel(np.broadcast_to(end, source.shape))[places] for end in source.set.interval]
        limits: list[Sums] = []
        for symbol, low, high in zip(own.tolist(), *(each.tolist() for each in ends), strict=True):
            entry = symbol_sums(symbols, np.array(symbol))
            if low > 0:
                limits.append(Sums.constant(low, coding) - entry)
            power = coding.keys(np.full((1, int(norm.degree)), symbol + 1))
            weight = alone.weight[alone.key == power[0]].sum()
            if np.isfinite(high) and not weight * high**norm.degree >= norm.constant:
                limits.append(entry - Sums.constant(high, coding))
        if limits:
            yield Row(stacked(limits, coding), "<=", None)


class Homogeneous:
    """How functions grow where the entries of a normalisation are scaled by a common factor."""

    def __init__(self, symbols: Symbols, norm: _Normalisation) -> None:
        self.symbols = symbols
        self._norm = norm
        self._scaled = set(norm.entries.tolist())
        self._degrees: dict[int, float | None] = {}
        self._settled = set[int]()
        """Logarithms and functions of them that do not change with the scale together."""
        over = norm.sums.scaled(1.0 / norm.constant)
        if norm.degree == 1:
            self.unit = over
        else:
            number = symbols.of_power(over, 1.0 / norm.degree)
            self.unit = symbol_sums(symbols, np.array(number))
        """(N/c)^(1/k), which is 1 where the normalisation holds and grows like the entries."""
        self._logarithm = int(symbols.of_function(ATOMS["log"], {}, (over,), ()))
        self._settled.add(self._logarithm)

    def degree(self, sums: Sums, *, settled: bool = False) -> float | None:
        """The degree that all terms of all entries have; None where they differ or have none.

        With `settled` the sums are some that `invariant` made.
        """
        degrees = self._terms(sums, settled=settled)
        if degrees is None or not degrees.size:
            return None if degrees is None else 0.0
        return float(degrees[0]) if (degrees == degrees[0]).all() else None

    def _terms(self, sums: Sums, *, settled: bool) -> NDArray[np.float64] | None:
        """The degree of each term."""
        digits = sums.digits
        degrees = np.zeros(int(digits.max(initial=0)) + 1)
        for symbol in sums.symbols_used().tolist():
            own = 0.0 if settled and symbol in self._settled else self._symbol(symbol)
            if own is None:
                return None
            degrees[symbol + 1] = own
        found: NDArray[np.float64] = degrees[digits].sum(axis=1)
        return found

    def _symbol(self, symbol: int) -> float | None:
        if symbol in self._scaled:
            return 1.0
        source, _ = self.symbols.source(symbol)
        if isinstance(source, Variable):
            return 0.0
        if source.start not in self._degrees:
            self._degrees[source.start] = self._function(source)
        return self._degrees[source.start]

    def _function(self, function: Opaque) -> float | None:
        if not function.shape:
            base, power = self.symbols.power(function.start)
            if power != 1:
                inner = self.degree(base)
                return None if inner is None else power * inner
        degrees = [self.degree(each) for each in function.arguments if each.key.size]
        if None in degrees or not degrees:
            return None if degrees else 0.0
        if all(each == 0 for each in degrees):
            return 0.0
        same = function.atom.is_homogeneous and len(set(degrees)) == 1
        return degrees[0] if same else None

    def invariant(self, sums: Sums) -> Sums | None:
        """The same where the normalisation holds, with logarithms that do not change with the scale."""
        changes: dict[int, Sums] = {}
        for symbol in sums.symbols_used().tolist():
            if self._symbol(symbol) is not None:
                continue
            source, place = self.symbols.source(symbol)
            assert isinstance(source, Opaque)
            new = self._renewed(source, symbol)
            if new is None:
                return None
            changes[symbol] = new.taken(np.array([place]), ()) if source.shape else new
        return self._without_rests(substituted(sums, changes)) if changes else sums

    def _renewed(self, function: Opaque, symbol: int) -> Sums | None:
        """A function with a degree of its own, or of arguments that do not change with the scale."""
        inner = function.arguments[0]
        if is_logarithm(function.atom) and not function.shape:
            degree = self.degree(inner)
            if degree is not None:
                rest = symbol_sums(self.symbols, np.array(self._logarithm))
                own = symbol_sums(self.symbols, np.array(symbol))
                self._settled.add(symbol)
                return own - rest.scaled(degree / self._norm.degree)
        found = [self.invariant(each) for each in function.arguments]
        arguments = [each for each in found if each is not None]
        if len(arguments) < len(found) or any(
            self.degree(each, settled=True) != 0 for each in arguments
        ):
            return None
        new = function_of(self.symbols, function.atom, function.params, arguments, function.shape)
        self._settled.update(new.symbols_used().tolist())
        return new

    def _without_rests(self, sums: Sums) -> Sums:
        """log(N/c) has weights that cancel but for rounding, where a function is invariant."""
        held = sums.holding(np.array([self._logarithm]))
        largest = float(np.abs(sums.weight).max(initial=0.0))
        tiny = held & (np.abs(sums.weight) <= DATA_ROUNDING * largest * sums.key.size)
        # −d log(N/c) of a weight that stays is not 0: it is part of the function
        return sums.chosen(~tiny) if tiny.any() else sums

    def row(self, row: Row) -> tuple[Row, NDArray[np.float64]] | None:
        """A row with one degree in each entry, and these degrees; None where there is no such row."""
        sums = self.invariant(row.sums)
        degrees = None if sums is None else self._terms(sums, settled=True)
        if sums is None or degrees is None:
            return None
        most = np.zeros(sums.size)
        np.maximum.at(most, sums.entry, degrees)
        missing = most[sums.entry] - degrees
        if (missing != np.rint(missing)).any():
            return None
        parts = [sums.chosen(missing == 0)]
        for each in np.unique(missing[missing > 0]).tolist():
            part = sums.chosen(missing == each)
            for _ in range(int(each)):
                part = part.times(self.unit.broadcast(part.shape))
            parts.append(part)
        return replace(row, sums=added(parts)), most.reshape(sums.shape)


class _Ratios(Step):
    """w in place of v = w/w_1."""

    name = "normalised"

    def __init__(self, norm: _Normalisation, pairs: list[tuple[Variable, Variable]]) -> None:
        self._norm = norm
        self._pairs = pairs
        self.gone = tuple(old for old, _ in pairs)
        self.new = tuple(new for _, new in pairs)

    @staticmethod
    def of(
        model: Expanded,
        norm: _Normalisation,
        objective: Sums,
        rows: list[tuple[Row, NDArray[np.float64]]],
    ) -> Step:
        symbols, coding = model.symbols, model.symbols.coding
        pairs: list[tuple[Variable, Variable]] = []
        for source, places, _ in symbols.grouped(norm.entries):
            assert isinstance(source, Variable)
            pairs.append((source, _unscaled(model, source, places)))
        step = _Ratios(norm, pairs)
        old, new = (
            np.concatenate([np.ravel(symbols.of_variable(each)) for each in side])
            for side in (step.gone, step.new)
        )
        exchange = Exchange.of(symbols, old, new)
        first = symbol_sums(symbols, new[old == norm.entries[0]][:1]).reshaped(())
        fixed = Row(first - Sums.constant(1.0, coding), "==", None)
        kept = replace(model, objective=objective, rows=tuple(row for row, _ in rows))
        after = rewritten(kept, exchange, gone=step.gone, new=step.new, rows=[fixed])
        unit = exchange(Homogeneous(symbols, norm).unit)
        scaled = [
            _multiplied(row, degrees, unit, symbols)
            for row, (_, degrees) in zip(after.rows[:-1], rows, strict=True)
        ]
        step.after = replace(after, rows=(*scaled, fixed), is_original=False, written=None)
        word = described(symbols, int(norm.entries[0]))
        step.texts = {new: f"{old.name} / {word}" for old, new in pairs}
        return step

    def forward(self, point: Points) -> None:
        symbols = self.after.symbols
        first = Evaluation(symbols, point).of(symbol_sums(symbols, self._norm.entries[:1]))[0]
        with np.errstate(all="ignore"):  # where it is 0, there is no image
            self._scale(point, dict(self._pairs), 1.0 / first)

    def back(self, point: Points) -> None:
        for old, new in self._pairs:
            point[old] = np.array(point[new], dtype=float).reshape(old.shape)
        self.settle(point)

    def settle(self, point: Points) -> None:
        value = Evaluation(self.after.symbols, point).of(self._norm.sums)[()]
        if abs(value - self._norm.constant) <= DATA_ROUNDING * self._norm.constant:
            return
        with np.errstate(all="ignore"):
            factor = float((self._norm.constant / value) ** (1.0 / self._norm.degree))
        self._scale(point, {old: old for old in self.gone}, factor)

    def _scale(self, point: Points, targets: dict[Variable, Variable], factor: float) -> None:
        """The entries of the normalisation times a factor; the others as they are."""
        for old, target in targets.items():
            numbers = self.after.symbols.of_variable(old)
            scaled = np.isin(numbers, self._norm.entries)
            point[target] = np.where(scaled, factor * point[old], point[old])


def _unscaled(model: Expanded, variable: Variable, places: Numbers) -> Variable:
    """A variable with positive entries of any size in the places of the scaled ones."""
    low, high = (
        np.array(np.broadcast_to(end, variable.shape), dtype=float).reshape(-1)
        for end in variable.set.interval
    )
    positive = np.zeros(variable.size, dtype=bool)
    positive[places] = True
    positive |= (low > 0) | variable.pos
    low[places], high[places] = 0.0, np.inf
    bounds = low.reshape(variable.shape), high.reshape(variable.shape)
    name = fresh_name(model, f"{variable.name}_ratio")
    return Variable(variable.shape, name=name, bounds=bounds, pos=bool(positive.all()))


def _multiplied(row: Row, degrees: NDArray[np.float64], unit: Sums, symbols: Symbols) -> Row:
    """A row that was rewritten, with what it is the user's row multiplied by: unit^degree."""
    factors: list[Sums] = []
    for degree in np.ravel(degrees).tolist():
        whole = Sums.constant(1.0, unit.coding)
        if degree == round(degree) and degree >= 0:
            for _ in range(int(degree)):
                whole = whole.times(unit)
        else:
            whole = symbol_sums(symbols, np.array(symbols.of_power(unit, degree)))
        factors.append(whole)
    factor = stacked(factors, unit.coding).reshaped(row.sums.shape)
    return replace(row, factor=factor if row.factor is None else row.factor.times(factor))
