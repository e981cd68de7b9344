"""Shares of nested choices: buyers first choose a nest of products, then a product of the nest.

With v_i = exp(a_i − b p_i), the value V_k = Σ v_i of nest k and an exponent γ_k > 0, the shares are

    Q_k = V_k^γ_k / (1 + Σ_l V_l^γ_l),    q_i = Q_k v_i / V_k,    and  q_0 = 1/(1 + Σ_l V_l^γ_l)

for those who buy nothing. From shares back: V_k = (Q_k/q_0)^(1/γ_k) and v_i = V_k q_i/Q_k, so that

    b p_i = a_i − log(q_i/Q_k) − (1/γ_k) log(Q_k/q_0),
    Σ_i b p_i q_i = Σ_i a_i q_i − Σ_i q_i log(q_i/Q_k) − (1/γ_k) Q_k log(Q_k/q_0)

with Q_k = Σ q_i in each nest: affine minus relative entropies, concave in the shares where all products
of a nest have the same b. Where they differ it still is for max b·(1 − γ) <= min b: with w_i = 1/b_i and
a number δ between max w·(1/γ − 1) and min w/γ, the profit is affine minus the sum of
(δ − w_i (1/γ − 1)) q_i log(q_i/Q_k), (w_i/γ − δ) q_i log(q_i/q_0) and δ Q_k log(Q_k/q_0).

A price at most h is q_i^γ Q_k^(1−γ) >= constant · q_0, a geometric mean for γ < 1 and linear for γ = 1.
Prices at least l are convex rows for γ = 1 only; these bounds are left out for other nests, and the point
that comes back is tested. The shares are all q > 0 and q_0 > 0 with q_0 + Σ q = 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.expansion import function_of
from hcmodel.facts.polynomials import ONE, Sums, added, stacked
from hcmodel.facts.symbols import Opaque, Symbols, is_exponential
from hcmodel.maps.algebra.cancelling import cancelled
from hcmodel.maps.algebra.expanded import Expanded, Row
from hcmodel.maps.algebra.replacing import Replacing, cleared
from hcmodel.maps.algebra.rewriting import rewritten
from hcmodel.maps.log_rows import without_logs
from hcmodel.maps.map import Map, Obstacle, Points, Step, fresh_name, symbol_sums
from hcmodel.maps.monotone import Function, functions_of
from hcmodel.maps.shares import excess
from hcmodel.records import dataclass, replace
from hcmodel.solvers.numerics import DATA_ROUNDING

FloatArray = NDArray[np.float64]


class Nests(Map):
    """q_i = Q_k v_i/V_k in place of prices; see the module."""

    name = "nests"
    summary = "shares q of nested choices (nested logit); back: prices by logarithms of shares"
    literature = "Li, Huh 2011; Gallego, Wang 2014"
    example = "nested_logit.hc"

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        model = cancelled(_with_sums(model))
        found = _choice(model)
        if isinstance(found, Obstacle):
            yield found
        elif found is not None:
            yield _substituted(model, found)


@dataclass(frozen=True, eq=False)
class _Nest:
    """κ B^γ, a term of the denominator, with B = Σ ω_i v_i; one product alone has γ = 1."""

    base: Sums
    gamma: float
    kappa: float
    functions: dict[int, tuple[Function, float]]
    """v_i and ω_i by the symbol of the entry in the exponent."""


@dataclass(frozen=True, eq=False)
class _Choice:
    """The denominator 1 + Σ κ_k B_k^γ_k."""

    base: Sums
    nests: tuple[_Nest, ...]


def _with_sums(model: Expanded) -> Expanded:
    """The model with logarithms of sums in place of `logsumexp`."""
    symbols = model.symbols
    changes: dict[int, Sums] = {}
    for function in model.functions():
        if function.atom is ATOMS["logsumexp"]:
            changes |= _logarithms(symbols, function)
    if not changes:
        return model
    return rewritten(model, Replacing(symbols, changes), gone=[], new=[])


def _logarithms(symbols: Symbols, function: Opaque) -> dict[int, Sums]:
    """log Σ exp for each entry of a `logsumexp` along one axis, or along all of them."""
    argument, axis = function.arguments[0], function.params.get("axis")
    numbers = np.arange(argument.size).reshape(argument.shape)
    if isinstance(axis, tuple):
        axis = axis[0] if len(axis) == 1 else None
    lines = numbers.reshape(1, -1)
    if axis is not None:
        lines = np.moveaxis(numbers, axis, -1).reshape(-1, argument.shape[axis])
    if lines.shape[0] != function.numbers.size:
        return {}
    found: dict[int, Sums] = {}
    for symbol, line in zip(function.numbers.reshape(-1).tolist(), lines, strict=True):
        inner = argument.taken(line, (line.size,))
        values = function_of(symbols, ATOMS["exp"], {}, [inner], inner.shape)
        total = values.grouped(np.zeros(line.size, dtype=np.intp), ())
        found[symbol] = function_of(symbols, ATOMS["log"], {}, [total], ())
    return found


def _choice(model: Expanded) -> _Choice | Obstacle | None:
    """The sum of 1 and powers of sums of exponentials that something is divided by."""
    symbols = model.symbols
    candidates = [
        base
        for base, power in map(symbols.power, model.used().tolist())
        if power < 0 and _has_nests(symbols, base)
    ]
    if not candidates:
        return None
    base = candidates[0]
    known: dict[int | None, tuple[int, Function]] = {
        function.symbol: (entry, function)
        for entry, functions in functions_of(model).functions.items()
        for function in functions
    }
    nests: list[_Nest] = []
    moving = base.key != ONE
    for term, kappa in zip(base.key[moving] - 1, base.weight[moving], strict=True):
        inner, gamma = symbols.power(int(term))
        own: dict[int, tuple[Function, float]] = {}
        for digit, weight in zip(inner.key.tolist(), inner.weight.tolist(), strict=True):
            if digit - 1 not in known:
                return Obstacle("nests", "an exponent depends on more than one entry")
            entry, function = known[digit - 1]
            own[entry] = function, weight
        nests.append(_Nest(inner, gamma, float(kappa), own))
    entries = [entry for nest in nests for entry in nest.functions]
    if len(set(entries)) < len(entries) or len(entries) < sum(n.base.key.size for n in nests):
        return Obstacle("nests", "an entry stands in two exponentials")
    return _Choice(base, tuple(nests))


def _has_nests(symbols: Symbols, base: Sums) -> bool:
    """Whether it is 1 and positive powers of sums of functions, at least one of several."""
    if base.shape or base.degrees.max(initial=0) > 1 or (base.weight <= 0).any():
        return False
    if not (base.weight[base.key == ONE] == 1).any():
        return False
    several = False
    for term in base.key[base.key != ONE].tolist():
        inner, gamma = symbols.power(term - 1)
        sums = inner.degrees.max(initial=0) <= 1 and (inner.weight > 0).all()
        if gamma <= 0 or not sums or (inner.key == ONE).any():
            return False
        functions = [symbols.function(digit - 1) for digit in inner.key.tolist()]
        if not all(each is not None and is_exponential(each.atom) for each in functions):
            return False
        several |= inner.key.size > 1 and gamma != 1
    return several


@dataclass(frozen=True, eq=False)
class Monomial:
    """A number times powers of symbols."""

    weight: float
    exponents: dict[int, float]


class Monomials(Replacing):
    """Replaces symbols by products of powers, of which few are left once the exponents are added."""

    def __init__(
        self, symbols: Symbols, products: Mapping[int, Monomial], changes: Mapping[int, Sums]
    ) -> None:
        super().__init__(symbols, changes)
        self._products = products

    def __call__(self, sums: Sums) -> Sums:
        return super().__call__(self._multiplied(sums))

    def _symbol(self, symbol: int) -> Sums | None:
        return None if symbol in self._products else super()._symbol(symbol)

    def _multiplied(self, sums: Sums) -> Sums:
        digits = sums.digits
        hit = np.isin(digits, np.array(list(self._products)) + 1).any(axis=1)
        if not hit.any():
            return sums
        rows: list[list[int]] = []
        weights = sums.weight[hit].copy()
        for place, row in enumerate(digits[hit].tolist()):
            exponents: dict[int, float] = {}
            kept: list[int] = []
            for digit in filter(None, row):
                product = self._products.get(digit - 1)
                if product is None:
                    kept.append(digit)
                    continue
                weights[place] *= product.weight
                for symbol, exponent in product.exponents.items():
                    exponents[symbol] = exponents.get(symbol, 0.0) + exponent
            rows.append([*kept, *self._digits(exponents)])
        width = max(map(len, rows))
        wide = np.array([row + [0] * (width - len(row)) for row in rows], dtype=np.int64)
        key = sums.coding.keys(wide.reshape(len(rows), width))
        made = Sums.merged(sums.shape, sums.entry[hit], key, weights, sums.coding)
        return added([sums.chosen(~np.asarray(hit)), made])

    def _digits(self, exponents: Mapping[int, float]) -> list[int]:
        """The digits of a product of powers."""
        found: list[int] = []
        for symbol, exponent in exponents.items():
            whole = round(exponent)
            if abs(exponent - whole) <= DATA_ROUNDING * (1.0 + abs(whole)) and whole >= 0:
                found += [symbol + 1] * whole
            else:
                own = symbol_sums(self.symbols, np.array(symbol))
                found.append(self.symbols.of_power(own, exponent) + 1)
        return found


class _Symbols:
    """The new symbols: shares by entry, sums of nests, and the rest q_0."""

    def __init__(
        self, model: Expanded, choice: _Choice, shares: dict[int, int], sums: Sequence[Variable]
    ) -> None:
        self.symbols = symbols = model.symbols
        self.rest = Variable(name=fresh_name(model, "r"), pos=True, bounds=(0.0, 1.0))
        self.r = int(symbols.of_variable(self.rest))
        self.shares = shares
        self.nests = [int(symbols.of_variable(each)) for each in sums]
        self.totals = [
            _added(symbols, [shares[entry] for entry in nest.functions]) for nest in choice.nests
        ]

    def power(self, symbol: int, exponent: float) -> Sums:
        """A power of a symbol."""
        own = symbol_sums(self.symbols, np.array(symbol))
        if exponent == 1:
            return own
        return symbol_sums(self.symbols, np.array(self.symbols.of_power(own, exponent)))

    def logarithm(self, sums: Sums) -> Sums:
        return function_of(self.symbols, ATOMS["log"], {}, [sums], ())

    def base(self, place: int, nest: _Nest, power: float) -> Monomial:
        """B^power of a nest: (Q/(κ q_0))^(power/γ)."""
        exponent = power / nest.gamma
        return Monomial(nest.kappa**-exponent, {self.nests[place]: exponent, self.r: -exponent})

    def log_base(self, place: int, nest: _Nest) -> Sums:
        whole = self.logarithm(self.totals[place])
        rest = self.logarithm(symbol_sums(self.symbols, np.array(self.r)))
        shift = Sums.constant(float(np.log(nest.kappa)), self.symbols.coding)
        return (whole - rest - shift).scaled(1.0 / nest.gamma)

    def value(self, place: int, nest: _Nest, entry: int) -> Monomial:
        """v_i = (q_i/Q) B/ω_i."""
        inner = self.base(place, nest, 1.0)
        nest_power = inner.exponents[self.nests[place]] - 1.0
        exponents = {**inner.exponents, self.nests[place]: nest_power, self.shares[entry]: 1.0}
        return Monomial(inner.weight / nest.functions[entry][1], exponents)

    def entry(self, place: int, nest: _Nest, entry: int) -> Sums:
        """What stands in the exponent."""
        function, weight = nest.functions[entry]
        share = symbol_sums(self.symbols, np.array(self.shares[entry]))
        whole = self.logarithm(self.totals[place])
        shift = Sums.constant(float(np.log(weight)) + function.shift, self.symbols.coding)
        inner = self.logarithm(share) - whole + self.log_base(place, nest) - shift
        return inner.scaled(1.0 / function.weight)


def _added(symbols: Symbols, numbers: Sequence[int]) -> Sums:
    own = symbol_sums(symbols, np.array(numbers, dtype=np.int64))
    return own.grouped(np.zeros(own.size, dtype=np.intp), ())


def _substituted(model: Expanded, choice: _Choice) -> Step:
    symbols, coding = model.symbols, model.symbols.coding
    entries = {entry for nest in choice.nests for entry in nest.functions}
    pairs: list[tuple[Variable, Variable]] = []
    shares: dict[int, int] = {}
    changes: dict[int, Sums] = {}
    for variable in model.variables:
        old = np.ravel(symbols.of_variable(variable)).tolist()
        if entries.isdisjoint(old):
            continue
        pairs.append((variable, _share(model, variable, [each in entries for each in old])))
        new = np.ravel(symbols.of_variable(pairs[-1][1])).tolist()
        shares |= dict(zip(old, new, strict=True))
        changes |= {a: symbol_sums(symbols, np.array(b)) for a, b in zip(old, new, strict=True)}
    names = fresh_name(model, "nest")
    sums = [
        Variable(name=f"{names}_{place + 1}", pos=True, bounds=(0.0, 1.0))
        for place in range(len(choice.nests))
    ]
    made = _Symbols(model, choice, shares, sums)
    limits: list[Sums] = []
    released: set[str] = set()
    products, functions = _functions(model, choice, made)
    changes |= functions
    for place, nest in enumerate(choice.nests):
        for entry, (function, _) in nest.functions.items():
            assert function.symbol is not None
            products[function.symbol] = made.value(place, nest, entry)
            changes[entry] = made.entry(place, nest, entry)
            symbols.undoing.update(changes[entry].symbols_used().tolist())
            own, lost = _limits(made, place, nest, entry)
            limits += own
            if lost:
                source, _ = symbols.source(entry)
                assert isinstance(source, Variable)
                released.add(source.name)
    whole = [symbol_sums(symbols, np.array(made.r)), *made.totals]
    total = stacked(whole, coding).grouped(np.zeros(len(whole), dtype=np.intp), ())
    rows = [Row(total - Sums.constant(1.0, coding), "==", None)]
    if limits:
        rows.append(Row(stacked(limits, coding), "<=", None))
    after = rewritten(
        model,
        Monomials(symbols, products, changes),
        gone=[old for old, _ in pairs],
        new=[*(new for _, new in pairs), made.rest],
        rows=rows,
    )
    after = replace(after, rows=tuple(cleared(row, made.r, symbols) for row in after.rows))
    after = without_logs(after)
    used = set(after.used().tolist())
    kept = [place for place, number in enumerate(made.nests) if number in used]
    ties = [
        symbol_sums(symbols, np.array(made.nests[place])) - made.totals[place] for place in kept
    ]
    if ties:
        after = replace(after, rows=(*after.rows, Row(stacked(ties, coding), "==", None)))
    after = replace(after, variables=(*after.variables, *(sums[place] for place in kept)))
    return _Nests(pairs, choice, made, [sums[place] for place in kept], kept, after, released)


def _share(model: Expanded, variable: Variable, inside: Sequence[bool]) -> Variable:
    """The shares of the entries of a variable; others stay as they are."""
    low, high = (
        np.array(np.broadcast_to(end, variable.shape), dtype=float).reshape(-1)
        for end in variable.set.interval
    )
    marks = np.array(inside)
    low[marks], high[marks] = 0.0, 1.0
    bounds = low.reshape(variable.shape), high.reshape(variable.shape)
    name = fresh_name(model, "q")
    return Variable(variable.shape, name=name, bounds=bounds, pos=bool(marks.all()))


def _limits(made: _Symbols, place: int, nest: _Nest, entry: int) -> tuple[list[Sums], bool]:
    """The bounds of v_i as sums that are not positive, and whether one is left out."""
    symbols, (function, weight) = made.symbols, nest.functions[entry]
    ends = np.array([symbols.lower_of(entry), symbols.upper_of(entry)])
    with np.errstate(all="ignore"):
        low, high = np.sort(function.forward(ends)).tolist()
    share, rest = made.shares[entry], symbol_sums(symbols, np.array(made.r))
    alone = nest.gamma == 1
    found: list[Sums] = []
    lost = False
    if low > 0 and nest.gamma <= 1:
        size = (low * weight) ** nest.gamma * nest.kappa
        inner = made.power(share, nest.gamma)
        if not alone:
            inner = inner.times(made.power(made.nests[place], 1.0 - nest.gamma))
        found.append(-excess(inner, rest, size))
    elif low > 0:
        lost = True
    if np.isfinite(high) and alone:
        found.append(excess(made.power(share, 1.0), rest, high * weight * nest.kappa))
    elif np.isfinite(high):
        lost = True
    return found, lost


def _functions(
    model: Expanded, choice: _Choice, made: _Symbols
) -> tuple[dict[int, Monomial], dict[int, Sums]]:
    """What powers and logarithms of the nests and of the denominator become."""
    symbols = model.symbols
    products: dict[int, Monomial] = {}
    changes: dict[int, Sums] = {}
    several = [(place, nest) for place, nest in enumerate(choice.nests) if nest.base.key.size > 1]
    for symbol in model.used().tolist():
        base, power = symbols.power(symbol)
        inner = symbols.logarithm(symbol)
        if power != 1 and base.content() == choice.base.content():
            products[symbol] = Monomial(1.0, {made.r: -power})
        elif inner is not None and (ratio := inner.multiple_of(choice.base) or 0.0) > 0:
            rest = made.logarithm(symbol_sums(symbols, np.array(made.r)))
            changes[symbol] = Sums.constant(float(np.log(ratio)), symbols.coding) - rest
        for place, nest in several:
            if power != 1 and base.content() == nest.base.content():
                products[symbol] = made.base(place, nest, power)
            elif inner is not None and (ratio := inner.multiple_of(nest.base) or 0.0) > 0:
                shift = Sums.constant(float(np.log(ratio)), symbols.coding)
                changes[symbol] = made.log_base(place, nest) + shift
    return products, changes


class _Nests(Step):
    """Prices in place of shares."""

    name = "nests"

    def __init__(
        self,
        pairs: Sequence[tuple[Variable, Variable]],
        choice: _Choice,
        made: _Symbols,
        sums: Sequence[Variable],
        places: Sequence[int],
        after: Expanded,
        released: set[str],
    ) -> None:
        self._pairs, self._choice, self._rest = tuple(pairs), choice, made.rest
        self._sums, self._places = tuple(sums), tuple(places)
        self.gone = tuple(old for old, _ in pairs)
        self.new = (*(new for _, new in pairs), made.rest, *sums)
        self.after = after
        self.released = tuple(sorted(released))
        self.texts = {new: f"shares({old.name})" for old, new in pairs}

    def forward(self, point: Points) -> None:
        values = self._values(point, {old: old for old in self.gone})
        sizes = {
            entry: weight * float(function.forward(values[entry]))
            for nest in self._choice.nests
            for entry, (function, weight) in nest.functions.items()
        }
        totals = [sum(sizes[entry] for entry in nest.functions) for nest in self._choice.nests]
        tops = [
            nest.kappa * total**nest.gamma
            for nest, total in zip(self._choice.nests, totals, strict=True)
        ]
        below = 1.0 + sum(tops)
        for nest, total, top in zip(self._choice.nests, totals, tops, strict=True):
            for entry in nest.functions:
                values[entry] = sizes[entry] / total * top / below
        point[self._rest] = np.asarray(1.0 / below)
        for place, variable in zip(self._places, self._sums, strict=True):
            point[variable] = np.asarray(tops[place] / below)
        for old, new in self._pairs:
            numbers = np.ravel(self.after.symbols.of_variable(old)).tolist()
            point[new] = np.array([values[each] for each in numbers]).reshape(new.shape)

    def back(self, point: Points) -> None:
        values = self._values(point, dict(self._pairs))
        rest = float(point[self._rest])
        with np.errstate(all="ignore"):
            for nest in self._choice.nests:
                top = sum(values[entry] for entry in nest.functions)
                base = (top / (nest.kappa * rest)) ** (1.0 / nest.gamma)
                for entry, (function, weight) in nest.functions.items():
                    values[entry] = function.back(values[entry] / top * base / weight)
        for old in self.gone:
            numbers = np.ravel(self.after.symbols.of_variable(old)).tolist()
            found = np.array([values[each] for each in numbers]).reshape(old.shape)
            point[old] = np.clip(
                found, *(np.broadcast_to(e, old.shape) for e in (old.lower, old.upper))
            )

    def tangent_back(self, point: Points, moves: Points) -> None:
        """w dp = dq/q − dQ/Q + (dQ/Q − dq_0/q_0)/γ, where w stands with p in the exponent."""
        targets = dict(self._pairs)
        values, changes = self._values(point, targets), self._values(moves, targets)
        rest = float(moves[self._rest] / point[self._rest])
        for nest in self._choice.nests:
            top = sum(changes[entry] for entry in nest.functions)
            top /= sum(values[entry] for entry in nest.functions)
            for entry, (function, _) in nest.functions.items():
                own = changes[entry] / values[entry] - top + (top - rest) / nest.gamma
                changes[entry] = own / function.weight
        for old in self.gone:
            numbers = np.ravel(self.after.symbols.of_variable(old)).tolist()
            moves[old] = np.array([changes[each] for each in numbers]).reshape(old.shape)

    def _values(self, point: Points, targets: dict[Variable, Variable]) -> dict[int, float]:
        """Values of the entries by the symbols of the old ones."""
        found: dict[int, float] = {}
        for old, target in targets.items():
            numbers = np.ravel(self.after.symbols.of_variable(old)).tolist()
            found.update(zip(numbers, np.ravel(point[target]).tolist(), strict=True))
        return found
