"""Perspectives of powers and exponentials, by a variable that is at least what they are.

With t > 0 the perspective t·f(y/t) of a convex f is convex in (y, t). Multiplied out it is a product that
no rule of the proof knows. What lies above it is a convex set that the proof does know:

    y^p / (t₁^q₁ t₂^q₂ …)  <= z     where    y <= z^(1/p) t₁^(q₁/p) t₂^(q₂/p) …,
    t·exp(a/t)             <= z     where    t·log(t/z) + a <= 0,
    t·log(Σ w exp(a/t))    <= z     where    t·log(t/v_i) + a_i <= z  and  Σ w_i v_i <= t,
    t·huber(y/t)           <= z     where    n²/t + 2 M v <= z  and  |y − n| <= v.

The first row is between a convex y >= 0, such as a norm, and a geometric mean, for p > 1 and q₁ + q₂ + …
<= p − 1; the second has a relative entropy. Where each of them has positive weights in the
objective and in rows <= alone, z takes its place, and nothing is lost: z may be what it bounds, and
a larger z does not help. softplus(a) is log(1 + exp(a)). For a positively homogeneous f, such as a norm
or a maximum, t·f(y/t) = f(y) and t·f(y/t)² = f(y)²/t, whatever the weights are. Ratios that are squares
of something over t are known without a variable (`power_ratios`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms import cones
from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.polynomials import ONE, Sums, added, stacked
from hcmodel.facts.symbols import Opaque, Symbols, is_exponential
from hcmodel.maps.algebra.expanded import Evaluation, Expanded, Row, replaced
from hcmodel.maps.algebra.power_ratios import PowerRatio
from hcmodel.maps.algebra.rewriting import without
from hcmodel.maps.map import (
    ROOT,
    Map,
    Obstacle,
    Points,
    Step,
    Together,
    fresh_name,
    symbol_sums,
)
from hcmodel.records import dataclass, replace
from hcmodel.solvers.numerics import PRODUCT_ROUNDING


class Bounded(Map):
    """z in the place of perspectives that it is at least; see the module."""

    name = "bounded"
    summary = (
        "z >= t f(y/t) for perspectives of powers, exponentials, their logarithms and Huber's loss"
    )
    literature = "Rockafellar 1970, section 5; Chares 2009; MOSEK 2024, sections 4 and 5"
    example = """
    # The perspective t exp(y/t) of the exponential, beside squares.
    var y in [-5, 5]
    var t in [0.01, 5]

    minimize t*exp(y/t) + (y - 1)^2 + (t - 0.7)^2
    """

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        steps = list[Step]()
        for homogeneous in (True, False):
            finder = _Finder(model)
            found = [*finder.functions(homogeneous), *([] if homogeneous else finder.ratios())]
            if found:
                steps.append(_Bounded.of(model, found))
                model = steps[-1].after
        if steps:
            yield steps[0] if len(steps) == 1 else Together(steps)


@dataclass(frozen=True, eq=False)
class _Bound:
    """What z takes the place of: by arrays of the model and terms in them, with the weights of z."""

    value: Sums
    """What z is at least, a scalar."""
    places: list[tuple[int, NDArray[np.bool_], Sums]]
    """An array, the terms of it that go, and the weights of z in its entries."""
    kind: str
    inside: tuple[Sums, ...]
    """y and what it is bounded by beside z; or D, the a_i, and their weights or the M of Huber."""
    power: float = 1.0


class _Finder:
    """What may be bounded in a model."""

    def __init__(self, model: Expanded) -> None:
        self.model, self.symbols = model, model.symbols
        self._signs = [1.0, *(0.0 if row.sense == "==" else 1.0 for row in model.rows)]

    def ratios(self) -> Iterator[_Bound]:
        """Ratios of powers that are convex and that are no squares."""
        terms: dict[int, list[tuple[int, int]]] = {}
        for number, sums in enumerate(self.model.arrays):
            for place in np.flatnonzero(sums.degrees > 1).tolist():
                terms.setdefault(int(sums.key[place]), []).append((number, place))
        for key, where in terms.items():
            digits = self.symbols.coding.digits(np.array([key]))[0]
            found = _ratio(digits, self.symbols) if self._has_reciprocal(digits) else None
            arrays = self.model.arrays
            weights = [
                arrays[number].weight[place] * self._signs[number] for number, place in where
            ]
            if found is None or min(weights) <= 0:
                continue
            value = Sums(
                (), np.zeros(1, dtype=np.intp), np.array([key]), np.ones(1), arrays[0].coding
            )
            places = []
            for number in dict.fromkeys(number for number, _ in where):
                marks = arrays[number].key == key
                own = arrays[number].chosen(marks)
                constant = replace(own, key=np.full(own.key.size, ONE, dtype=own.key.dtype))
                places.append((number, marks, constant))
            yield _Bound(value, places, "ratio", found[:2], found[2])

    def _has_reciprocal(self, digits: NDArray[np.int64]) -> bool:
        return any(self.symbols.power(each - 1)[1] < 0 for each in digits[digits > 0].tolist())

    def functions(self, homogeneous: bool) -> Iterator[_Bound]:
        """D·f(a/D) with a positive affine D, of homogeneous functions or of others."""
        for symbol in self.symbols.single_functions(self.model.used()):
            function = self.symbols.function(symbol)
            assert function is not None
            if function.atom.is_homogeneous != homogeneous:
                continue
            found = (self._homogeneous if homogeneous else self._function)(symbol, function)
            if found is not None:
                yield found

    def _function(self, symbol: int, function: Opaque) -> _Bound | None:
        atom, arguments = function.atom, function.arguments
        inside = self.symbols.logarithm(symbol)
        if is_exponential(atom):
            return self._perspective(symbol, list(arguments), "exponential")
        if inside is not None:
            return self._logarithm(symbol, inside) if (inside.weight > 0).all() else None
        if atom.cone_form is cones.SOFT_PLUS:  # log(1 + exp(a))
            exponents = [Sums.constant(0.0, arguments[0].coding), arguments[0]]
            return self._perspective(symbol, exponents, "logarithm", np.ones(2))
        if atom.cone_form is cones.HUBER:
            return self._perspective(symbol, list(arguments), "huber", function.params["M"])
        return None

    def _logarithm(self, symbol: int, inside: Sums) -> _Bound | None:
        exponents = list[Sums]()
        for key in inside.key.tolist():
            function = None if key == ONE else self.symbols.function(key - 1)
            if key == ONE:
                exponents.append(Sums.constant(0.0, inside.coding))
            elif function is not None and is_exponential(function.atom):
                exponents.append(function.arguments[0])
            else:
                return None
        return self._perspective(symbol, exponents, "logarithm", inside.weight)

    def _homogeneous(self, symbol: int, function: Opaque) -> _Bound | None:
        """f(a) in place of D·f(a/D), and f(a)ᵐ/D^(m − 1) in place of D·f(a/D)ᵐ, with any weights."""
        symbols, below = self.symbols, self._below(function.arguments)
        if below is None or self._is_nested(symbol):
            return None
        inside = [_times_inside(each, below, symbols) for each in function.arguments]
        arguments = [each for each in inside if each is not None]
        if len(arguments) < len(inside):
            return None
        new = symbols.of_function(function.atom, function.params, arguments, ())
        value, one = symbol_sums(symbols, np.array(new)), Sums.constant(1.0, below.coding)
        places = list[tuple[int, NDArray[np.bool_], Sums]]()
        for number, sums in enumerate(self.model.arrays):
            copies = (sums.digits == symbol + 1).sum(axis=1)
            for count in np.unique(copies[copies > 0]).tolist():
                marks = np.asarray(copies == count)
                digits = np.full(count, symbol + 1).tolist()
                ratio = _multiples(without(sums.chosen(marks), *digits), below)
                if ratio is None:
                    return None
                rest = one
                if count > 1:
                    rest = symbol_sums(symbols, np.array(symbols.of_power(below, 1.0 - count)))
                for _ in range(count - 1):
                    rest = rest.times(value)
                places.append((number, marks, ratio.times(rest)))
        return _Bound(value, places, "homogeneous", ()) if places else None

    def _perspective(
        self, symbol: int, arguments: list[Sums], kind: str, data: Any = 1.0
    ) -> _Bound | None:
        """What stands in the place of a function whose factors are all multiples of one D."""
        places = list[tuple[int, NDArray[np.bool_], Sums]]()
        below = self._below(arguments)
        if below is None:
            return None
        numerators = [_times(each, below, self.symbols) for each in arguments]
        for number, sums in enumerate(self.model.arrays):
            marks = np.asarray((sums.digits == symbol + 1).any(axis=1))
            if not marks.any():
                continue
            ratio = _multiples(without(sums.chosen(marks), symbol + 1), below)
            if ratio is None or not self._signs[number] or not (ratio.weight > 0).all():
                return None
            places.append((number, marks, ratio))
        rest = tuple(each for each in numerators if each is not None)
        if not places or len(rest) < len(numerators) or self._is_nested(symbol):
            return None
        own = symbol_sums(self.symbols, np.array(symbol))
        inside = below, stacked(list(rest), below.coding), Sums.constant(data, below.coding)
        return _Bound(below.times(own), places, kind, inside)

    def _is_nested(self, symbol: int) -> bool:
        """Whether a function stands inside of another one."""
        functions = self.model.functions()
        inner = np.array([symbol])
        return any(each.holding(inner).any() for f in functions for each in f.arguments)

    def _below(self, exponents: Sequence[Sums]) -> Sums | None:
        """The positive affine D that exponents are divided by."""
        for exponent in exponents:
            for used in exponent.symbols_used().tolist():
                function = self.symbols.function(used)
                if function is not None and function.atom.is_homogeneous:
                    return self._below(function.arguments)
                base, power = self.symbols.power(used)
                affine = int(base.degrees.max(initial=0)) == 1
                plain = affine and not self.symbols.functions(base.symbols_used())
                if power == -1 and plain and float(self.symbols.interval(base)[0]) > 0:
                    return base
        return None


def _ratio(digits: NDArray[np.int64], symbols: Symbols) -> tuple[Sums, Sums, float] | None:
    """y, the product of the powers of what it is divided by, each over p, and p."""
    found = PowerRatio.of(digits, symbols)
    if found is None or found.written(symbols) is not None:
        return None
    base, power, below = found.base, found.base_power, found.below
    if int(base.degrees.max(initial=0)) == 2 and found.above.size > 1:
        base, power = symbol_sums(symbols, np.array(symbols.of_power(base, ROOT))), 2.0 * power
    total = sum(each for _, each in below)
    if power <= 1 or power - total < 1 - PRODUCT_ROUNDING:
        return None
    if not all(float(symbols.interval(each)[0]) >= 0 for each in (base, *(b for b, _ in below))):
        return None
    product = Sums.constant(1.0, base.coding)
    for each, exponent in below:
        root = symbol_sums(symbols, np.array(symbols.of_power(each, exponent / power)))
        product = product.times(root)
    return base, product, power


def _times(sums: Sums, below: Sums, symbols: Symbols) -> Sums | None:
    """An array times D, where it is affine: terms over D lose that, others are multiplied by D."""
    digits = sums.digits
    over = np.zeros(digits.shape, dtype=bool)
    for used in sums.symbols_used().tolist():
        base, power = symbols.power(used)
        if power == -1 and base.equals(below):
            over |= digits == used + 1
    here = np.asarray(over.any(axis=1))
    if (over.sum(axis=1) > 1).any():
        return None
    keys = sums.coding.keys(np.where(over, 0, digits)[here])
    alone = Sums.merged(sums.shape, sums.entry[here], keys, sums.weight[here], sums.coding)
    found = added([sums.chosen(~here).times(below), alone])
    plain = not symbols.functions(found.symbols_used())
    return found if plain and int(found.degrees.max(initial=0)) <= 1 else None


def _times_inside(sums: Sums, below: Sums, symbols: Symbols) -> Sums | None:
    """The same where terms may be homogeneous functions, of which the arguments are multiplied by D."""
    parts, rest = list[Sums](), sums
    for used in sums.symbols_used().tolist():
        function = symbols.function(used)
        if function is None or not function.atom.is_homogeneous:
            continue
        own = rest.key == used + 1
        inside = [_times_inside(each, below, symbols) for each in function.arguments]
        arguments = [each for each in inside if each is not None]
        if len(arguments) < len(inside) or rest.holding(np.array([used])).sum() > own.sum():
            return None
        new = symbols.of_function(function.atom, function.params, arguments, ())
        taken = rest.chosen(own)
        parts.append(replace(taken, key=np.full(taken.key.size, int(new) + 1)))
        rest = rest.chosen(~own)
    found = _times(rest, below, symbols)
    return None if found is None else added([found, *parts])


def _multiples(sums: Sums, below: Sums) -> Sums | None:
    """The numbers k for which the entries of an array are k·D; None where they are not."""
    first = sums.key == below.key[0]
    entry, weight = sums.entry[first], sums.weight[first] / below.weight[0]
    keys = np.full(entry.size, ONE, dtype=sums.key.dtype)
    found = Sums.merged(sums.shape, entry, keys, weight, sums.coding)
    return None if sums.multiple_of(found.times(below)) is None else found


class _Bounded(Step):
    """Variables above perspectives."""

    name = "bounded"
    gone = ()

    def __init__(self, values: Sequence[tuple[Variable, Sums]], after: Expanded) -> None:
        self.new = tuple(variable for variable, _ in values)
        self._values, self.after = tuple(values), after

    @staticmethod
    def of(model: Expanded, found: Sequence[_Bound]) -> _Bounded:
        arrays = list(model.arrays)
        values, rows, gone = (
            list[tuple[Variable, Sums]](),
            list[Row](),
            dict[int, NDArray[np.bool_]](),
        )
        more: dict[int, list[Sums]] = {}
        for bound in found:
            own, added_rows = _in_place(model, bound, values)
            for number, marks, weights in bound.places:
                gone[number] = gone.get(number, np.zeros(marks.size, dtype=bool)) | marks
                more.setdefault(number, []).append(weights.times(own))
            rows += added_rows
        for number, marks in gone.items():
            arrays[number] = added([arrays[number].chosen(~marks), *more[number]])
        after = replaced(model, arrays, is_original=False, written=None)
        new = tuple(variable for variable, _ in values)
        after = replace(after, rows=(*after.rows, *rows), variables=(*model.variables, *new))
        return _Bounded(values, after)

    def forward(self, point: Points) -> None:
        for variable, value in self._values:
            found = Evaluation(self.after.symbols, point).of(value)
            point[variable] = found.reshape(variable.shape)

    def back(self, point: Points) -> None:
        """Nothing is gone."""

    def tangent_back(self, point: Points, moves: Points) -> None:
        """Nothing is gone."""


def _name(model: Expanded, values: Sequence[tuple[Variable, Sums]]) -> str:
    return fresh_name(model, f"z{len(values) + 1}" if values else "z")


def _in_place(
    model: Expanded, bound: _Bound, values: list[tuple[Variable, Sums]]
) -> tuple[Sums, list[Row]]:
    """What takes the place of a perspective, with the rows that bound it; `values` gets variables."""
    if bound.kind == "homogeneous":
        return bound.value, []
    if bound.kind == "huber":
        return _huber(model, bound, values)
    kind = {"ratio": {"nonneg": True}, "exponential": {"pos": True}}.get(bound.kind, {})
    z = Variable((), name=_name(model, values), **kind)
    own = symbol_sums(model.symbols, model.symbols.of_variable(z))
    values.append((z, bound.value))
    return own, list(_rows(model, bound, own, values))


def _huber(
    model: Expanded, bound: _Bound, values: list[tuple[Variable, Sums]]
) -> tuple[Sums, list[Row]]:
    """n²/D + 2 M v with v >= |a − n|, which is least for the n in [−M D, M D] that is next to a."""
    symbols, (below, above, width) = model.symbols, bound.inside
    a, most = above.reshaped(()), below.scaled(width.value)

    def function(name: str, *arguments: Sums) -> Sums:
        return symbol_sums(symbols, np.array(symbols.of_function(ATOMS[name], {}, arguments, ())))

    nearest = function("maximum", function("minimum", a, most), -most)
    made = list[Sums]()
    for value in (nearest, function("abs", a - nearest)):
        variable = Variable((), name=_name(model, values), nonneg=bool(made))
        values.append((variable, value))
        made.append(symbol_sums(symbols, symbols.of_variable(variable)))
    n, v = made
    reciprocal = symbol_sums(symbols, np.array(symbols.of_power(below, -1.0)))
    rows = [Row(a - n - v, "<=", None), Row(n - a - v, "<=", None)]
    return added([n.times(n).times(reciprocal), v.scaled(2.0 * width.value)]), rows


def _rows(
    model: Expanded, bound: _Bound, z: Sums, values: list[tuple[Variable, Sums]]
) -> Iterator[Row]:
    """The rows that say that z is at least what it takes the place of; see the module."""
    symbols = model.symbols
    if bound.kind == "ratio":
        base, product = bound.inside
        root = symbol_sums(symbols, np.array(symbols.of_power(z, 1.0 / bound.power)))
        yield Row(base - root.times(product), "<=", None)
        return
    below, numerators, weights = bound.inside
    if bound.kind == "exponential":
        yield Row(_entropy(symbols, below, z) + numerators.reshaped(()), "<=", None)
        return
    total = -below
    for numerator, weight in zip(numerators.entries(), weights.value.tolist(), strict=True):
        v = Variable((), name=_name(model, values), pos=True)
        own = symbol_sums(symbols, symbols.of_variable(v))
        reciprocal = symbol_sums(symbols, np.array(symbols.of_power(below, -1.0)))
        exponent = (numerator - bound.value).times(reciprocal)
        number = symbols.of_function(ATOMS["exp"], {}, (exponent,), ())
        values.append((v, below.times(symbol_sums(symbols, np.array(number)))))
        yield Row(_entropy(symbols, below, own) + numerator - z, "<=", None)
        total = added([total, own.scaled(weight)])
    yield Row(total, "<=", None)


def _entropy(symbols: Symbols, one: Sums, two: Sums) -> Sums:
    """t·log(t/z)."""
    return symbol_sums(
        symbols, np.array(symbols.of_function(ATOMS["rel_entr"], {}, (one, two), ()))
    )
