"""The symbols of expressions that are multiplied out: entries of variables, and of functions of sums."""

from __future__ import annotations

import bisect
import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms import cones
from hcmodel.atoms.atom import Atom
from hcmodel.atoms.rules import Always, Argument, Monotonicity, Sign
from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.shapes import Shape
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.polynomials import Coding, Sums, TooLargeError
from hcmodel.records import dataclass
from hcmodel.solvers.limits import check_time

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Opaque:
    """A function that is no polynomial, applied to polynomials; its entries are symbols."""

    atom: Atom
    params: dict[str, Any]
    arguments: tuple[Sums, ...]
    shape: Shape
    start: int
    """The first of its symbols."""

    @property
    def numbers(self) -> Numbers:
        """Its symbols."""
        size = math.prod(self.shape)
        return self.start + np.arange(size, dtype=np.int64).reshape(self.shape)


@dataclass
class Symbols:
    """What each symbol is: an entry of a variable, or of an opaque function; and where it lies."""

    coding: Coding
    variables: dict[Variable, Numbers] = field(default_factory=dict)
    lower: list[FloatArray] = field(default_factory=list)
    upper: list[FloatArray] = field(default_factory=list)
    roles: dict[Variable, str] = field(default_factory=dict)
    """What maps have put variables in place of: a "reciprocal" or a "product"."""
    count: int = 0
    is_full: bool = False
    """Whether a symbol was asked for that the coding has no digit for."""
    first_index: int = 0
    """How people count the entries of this model: from 0 in Python, from 1 in the language."""
    row_names: tuple[str, ...] = ()
    """How people call the constraints of this model, by position."""
    undoing: set[int] = field(default_factory=set)
    """Functions of a map's new variables that stand for the old ones: to take them back is no map."""
    logs_rewritten: bool = False
    """Whether a logarithm was split at the common denominator of a sum, or is that of a determinant."""
    _known: dict[Hashable, int] = field(default_factory=dict)
    _ends: FloatArray = field(default_factory=lambda: np.ones((2, 1)))
    """Lower and upper bounds by digit, with room for more symbols; the digit 0 is 1."""
    _starts: list[int] = field(default_factory=list)
    _start_array: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """The same as an array, which is made anew when symbols were added."""
    _sources: list[Variable | Opaque] = field(default_factory=list)
    _powers: dict[int, tuple[Sums, float]] = field(default_factory=dict)
    roots: dict[Hashable, Sums | None] = field(default_factory=dict)
    """Affine functions whose squares sums are, by the contents of these: many terms share a base."""

    def of_variable(self, variable: Variable) -> Numbers:
        """The symbols of a variable's entries; those of a symmetric matrix stand for two entries."""
        found = self.variables.get(variable)
        if found is None:
            own = np.arange(variable.size, dtype=np.int64).reshape(variable.shape)
            if variable.set.is_symmetric:
                own = np.minimum(own, own.T)
            low, high = (_filled(end, variable.shape) for end in variable.set.interval)
            if variable.set.positive or variable.pos:
                low = np.maximum(low, np.finfo(float).tiny)
            found = own + self._taken(low, high)
            self._sources.append(variable)
            self.variables[variable] = found
        return found

    def of_function(
        self, atom: Atom, params: dict[str, Any], arguments: Sequence[Sums], shape: Shape
    ) -> Numbers:
        """The symbols of a function's entries, the same ones for equal arguments."""
        frozen = tuple(sorted(params.items()))
        key = (atom, frozen, shape, *(each.content() for each in arguments))
        start = self._known.get(key)
        if start is None:
            check_time()
            asked = () if isinstance(atom.sign, Always) else arguments
            sign = atom.sign([self.argument(each) for each in asked], params)
            size = math.prod(shape)
            low, high = _LOWER[sign], _UPPER[sign]
            if not shape and len(arguments) == 1 and low == -high == -np.inf:
                low, high = self._range(atom, params, arguments[0])
            start = self._taken(np.full(size, low), np.full(size, high))
            self._known[key] = start
            self._sources.append(Opaque(atom, params, tuple(arguments), shape, start))
        size = math.prod(shape)
        return start + np.arange(size, dtype=np.int64).reshape(shape)

    def _range(self, atom: Atom, params: dict[str, Any], inside: Sums) -> tuple[float, float]:
        """The values of a function of one number at the ends of its range, where it is monotone."""
        known = self.argument(inside)
        way = None if inside.shape else atom.monotonicity([known], params)[0]
        if way not in (Monotonicity.INCREASING, Monotonicity.DECREASING):
            return -np.inf, np.inf
        with np.errstate(all="ignore"):
            ends = [float(atom.function(np, end, **params)) for end in self.interval(inside)]
        low, high = ends if way is Monotonicity.INCREASING else reversed(ends)
        return (-np.inf if np.isnan(low) else low), (np.inf if np.isnan(high) else high)

    def source(self, symbol: int) -> tuple[Variable | Opaque, int]:
        """The variable or function that a symbol belongs to, and the place of its entry."""
        place = bisect.bisect_right(self._starts, symbol) - 1
        return self._sources[place], symbol - self._starts[place]

    def grouped(self, symbols: Numbers) -> Iterator[tuple[Variable | Opaque, Numbers, Numbers]]:
        """Sorted symbols by what they belong to, with the places of their entries."""
        owner = self._owners(symbols)
        single = symbols.size > 0 and owner[0] == owner[-1]
        owners = [int(owner[0])] if single else sorted(set(owner.tolist()))
        for each in owners:
            own = symbols if len(owners) == 1 else symbols[owner == each]
            yield self._sources[each], own - self._starts[each], own

    def _owners(self, symbols: Numbers) -> Numbers:
        if self._start_array.size != len(self._starts):
            self._start_array = np.array(self._starts, dtype=np.int64)
        return self._start_array.searchsorted(symbols, side="right") - 1

    def functions(self, symbols: Numbers) -> list[Opaque]:
        """The functions that some symbols belong to, each once."""
        owners = sorted(set(self._owners(symbols).tolist()))
        sources = [self._sources[each] for each in owners]
        return [each for each in sources if isinstance(each, Opaque)]

    def single_functions(self, symbols: Numbers) -> list[int]:
        """Those among some symbols that are functions of a single entry: powers and logarithms are."""
        return [each.start for each in self.functions(symbols) if not each.shape]

    def lower_of(self, symbol: int) -> float:
        """A lower bound of a symbol."""
        place = bisect.bisect_right(self._starts, symbol) - 1
        return float(self.lower[place][symbol - self._starts[place]])

    def upper_of(self, symbol: int) -> float:
        """An upper bound of a symbol."""
        place = bisect.bisect_right(self._starts, symbol) - 1
        return float(self.upper[place][symbol - self._starts[place]])

    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds by digit, as copies; the digit 0 is 1."""
        low, high = self._ends[:, : self.count + 1].copy()
        return low, high

    def function(self, symbol: int) -> Opaque | None:
        """The function of a single entry that a symbol is; None for anything else, as for a product."""
        if symbol >= self.count:
            return None  # the key of a product is larger than those of all symbols
        source, _ = self.source(symbol)
        return source if isinstance(source, Opaque) and not source.shape else None

    def power(self, symbol: int) -> tuple[Sums, float]:
        """The base and exponent that a symbol stands for; itself to the power 1 where it is no power."""
        known = self._powers.get(symbol)  # many maps ask this of all symbols
        if known is None:
            found = self.function(symbol)
            is_power = found is not None and found.atom is ATOMS["power"]
            if found is None or not is_power or not found.arguments[1].is_constant:  # as k^x
                known = Sums.symbols(np.array(symbol), self.coding), 1.0
            else:
                known = found.arguments[0], float(found.arguments[1].value)
            self._powers[symbol] = known
        return known

    def of_power(self, base: Sums, power: float) -> int:
        """The symbol of a power of a scalar."""
        exponent = Sums.constant(power, self.coding)
        return int(self.of_function(ATOMS["power"], {}, (base, exponent), ()))

    def logarithm(self, symbol: int) -> Sums | None:
        """What a symbol is the logarithm of; None where it is none."""
        found = self.function(symbol)
        return found.arguments[0] if found is not None and is_logarithm(found.atom) else None

    def interval(self, sums: Sums) -> tuple[FloatArray, FloatArray]:
        """Bounds of the entries of an array, from those of the symbols."""
        ends = np.ones((2, sums.key.size))
        with np.errstate(all="ignore"):
            for digit in sums.digits.T:
                products = (ends[:, None] * self._ends[:, digit]).reshape(4, -1)
                products[np.isnan(products)] = 0.0  # 0 · ∞
                ends = np.array([products.min(axis=0), products.max(axis=0)])
            pair = [sums.weight * end for end in ends]
            found = [
                np.bincount(sums.entry, weights=each, minlength=sums.size).reshape(sums.shape)
                for each in (np.minimum(*pair), np.maximum(*pair))
            ]
        return np.asarray(found[0], dtype=float), np.asarray(found[1], dtype=float)

    def argument(self, sums: Sums) -> Argument:
        """What the rules of an atom may know of an argument."""
        if sums.is_constant:
            return Argument.from_value(sums.value)
        low, high = self.interval(sums)
        return Argument(sums.shape, _sign(low, high))

    def _taken(self, low: FloatArray, high: FloatArray) -> int:
        start = self.count
        self.count += low.size
        if self.count + 1 >= 1 << self.coding.bits:
            self.is_full = True
            raise TooLargeError
        self._starts.append(start)
        self.lower.append(low.reshape(-1).astype(float))
        self.upper.append(high.reshape(-1).astype(float))
        if self.count + 1 > self._ends.shape[1]:
            wider = np.ones((2, 2 * (self.count + 1)))
            wider[:, : start + 1] = self._ends[:, : start + 1]
            self._ends = wider
        self._ends[:, start + 1 : self.count + 1] = self.lower[-1], self.upper[-1]
        return start


_LOWER = {Sign.POSITIVE: np.finfo(float).tiny, Sign.NONNEGATIVE: 0.0, Sign.ZERO: 0.0}
_UPPER = {Sign.NEGATIVE: -np.finfo(float).tiny, Sign.NONPOSITIVE: 0.0, Sign.ZERO: 0.0}
for _each in Sign:
    _LOWER.setdefault(_each, -np.inf)
    _UPPER.setdefault(_each, np.inf)


def is_exponential(atom: Atom) -> bool:
    """Whether the logarithm of the result is the argument."""
    return atom.cone_form is not None and atom.cone_form.plain_to_log is cones.first


def is_logarithm(atom: Atom) -> bool:
    """Whether the result is the logarithm of the argument."""
    return atom.cone_form is not None and atom.cone_form.log_to_plain is cones.first


def _filled(end: Any, shape: Shape) -> FloatArray:
    """A bound for each entry."""
    return end if np.shape(end) == shape else np.full(shape, end)


def _sign(low: FloatArray, high: FloatArray) -> Sign:
    if (low > 0).all():
        return Sign.POSITIVE
    if (low >= 0).all():
        return Sign.NONNEGATIVE
    if (high < 0).all():
        return Sign.NEGATIVE
    return Sign.NONPOSITIVE if (high <= 0).all() else Sign.UNKNOWN
