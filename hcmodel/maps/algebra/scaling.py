"""Variables times a common positive factor: the rewriting behind occupancies, ratios and perspectives.

With u = s·x, each x in a product is u/s, and s·(1/s) is 1. Functions of x become functions of u:

    log(b(x))    →  log(s·b) − log s             s·b(u/s) is affine in u and s where b is affine in x
    b(x)^p       →  (s^k·b)^p / s^(k·p)          k = 1 for an affine b, 2 for a quadratic one
    f(b(x))      →  f(s·b) / s                   for f(c·b) = c·f(b), such as norms and maxima

A row of which a term is not positively homogeneous of degree 1 in u and s, such as u/s or log u − log s,
is multiplied by s, which makes the perspective of a convex function convex: s·(u/s)² = u²/s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.polynomials import Sums, added
from hcmodel.facts.symbols import Opaque, Symbols, is_logarithm
from hcmodel.maps.algebra.expanded import Row
from hcmodel.maps.algebra.rewriting import Rewriting, substituted
from hcmodel.maps.map import symbol_sums
from hcmodel.records import replace
from hcmodel.solvers.algebra.marks import every
from hcmodel.solvers.numerics import DATA_ROUNDING

Numbers = NDArray[np.int64]
FloatArray = NDArray[np.float64]


class Scaling(Rewriting):
    """`products` has for each symbol x that goes the pair (u, s); `factors` what each s becomes.

    `values` are other symbols that are replaced first, such as 1/(c·x + d) by a new variable.
    Inside, s and 1/s are symbols until the end, so that they cancel (`before_factors`).
    """

    def __init__(
        self,
        symbols: Symbols,
        products: Mapping[int, tuple[int, int]],
        factors: Mapping[int, Sums],
        gone: Numbers,
        values: Mapping[int, Sums] | None = None,
    ) -> None:
        super().__init__(symbols, gone)
        self.factors = dict(factors)
        self.values = dict(values or {})
        size = symbols.count + 1
        self.product = np.zeros(size, dtype=np.int64)
        self.scale = np.zeros(size, dtype=np.int64)
        for x, (u, s) in products.items():
            self.product[x + 1], self.scale[x + 1] = u + 1, s + 1
        self.owner = {u + 1: s + 1 for u, s in products.values()}  # the digit of s by that of u
        self.reciprocals: dict[int, int] = {}  # the digit of 1/s by that of s
        self._replaced = {
            old: new
            for old, new in self.factors.items()
            if new.key.size != 1 or new.key[0] != old + 1 or new.weight[0] != 1
        }
        self._known: dict[int, Sums] = {}  # functions rewritten, by symbol

    def __call__(self, sums: Sums) -> Sums:
        return self.after_factors(self.before_factors(sums))

    def before_factors(self, sums: Sums) -> Sums:
        """The sums in u, s and 1/s."""
        changes: dict[int, Sums] = {}
        for source, _, symbols in self.symbols.grouped(sums.symbols_used()):
            for symbol in symbols.tolist():
                if symbol in self.values:
                    changes[symbol] = self.values[symbol]
                elif isinstance(source, Opaque) and symbol not in self.factors:
                    new = self._function_of(source, symbol)
                    if new is not None:
                        changes[symbol] = new
        return self._cancelled(self._divided(substituted(sums, changes)))

    def after_factors(self, sums: Sums) -> Sums:
        """Each s replaced by what it becomes."""
        return substituted(sums, self._replaced)

    # ---- products

    def _divided(self, sums: Sums) -> Sums:
        """Each x as u/s; 1/s is left out where the product has an s."""
        digits = sums.digits.copy(order="K")
        known = digits < self.product.size
        moving = known & (self.product[np.where(known, digits, 0)] > 0)
        if not moving.any():
            return sums
        extra = []
        for column in range(digits.shape[1]):
            rows = moving[:, column].nonzero()[0]
            if not rows.size:
                continue
            old = digits[rows, column]
            digits[rows, column] = self.product[old]
            scale = self.scale[old]
            found = _taken_out(digits, rows, scale)
            found |= scale == 0  # nothing to divide by
            if not every(found):
                more = np.zeros(digits.shape[0], dtype=np.int64)
                more[rows[~found]] = [self._reciprocal(int(each)) for each in scale[~found]]
                extra.append(more)
        key = self.coding.keys(np.column_stack([digits, *extra]) if extra else digits)
        return Sums.merged(sums.shape, sums.entry, key, sums.weight, self.coding)

    def _cancelled(self, sums: Sums) -> Sums:
        """Pairs of s and 1/s taken out."""
        digits = sums.digits
        count = int(digits.max(initial=0)) + 1
        inverse = np.zeros(count, dtype=np.int64)
        for scale, reciprocal in self.reciprocals.items():
            if reciprocal < count:
                inverse[reciprocal] = scale
        wanted = inverse[digits]
        if not wanted.any():
            return sums
        digits = digits.copy(order="K")
        for column in range(digits.shape[1]):
            rows = wanted[:, column].nonzero()[0]
            found = _taken_out(digits, rows, wanted[rows, column])
            digits[rows[found], column] = 0
        return Sums.merged(
            sums.shape, sums.entry, self.coding.keys(digits), sums.weight, self.coding
        )

    def _reciprocal(self, scale: int) -> int:
        """The digit of 1/s, by that of s."""
        found = self.reciprocals.get(scale)
        if found is None:
            found = self.symbols.of_power(self._factor(scale), -1.0) + 1
            self.reciprocals[scale] = found
        return found

    def _factor(self, scale: int) -> Sums:
        """What s becomes, by its digit."""
        own = self.factors.get(scale - 1)
        return self._symbol(scale) if own is None else own

    def _symbol(self, digit: int) -> Sums:
        return symbol_sums(self.symbols, np.array(digit - 1))

    def _power_of(self, scale: int, power: float) -> Sums:
        """s^power: as many factors s or 1/s, and s to a power between 0 and 1."""
        whole = int(np.floor(power))
        digit = scale if whole > 0 else self._reciprocal(scale) if whole < 0 else 0
        total = Sums.constant(1.0, self.coding)
        for _ in range(abs(whole)):
            total = total.times(self._symbol(digit))
        if power == whole:
            return total
        number = self.symbols.of_power(self._factor(scale), power - whole)
        return total.times(symbol_sums(self.symbols, np.array(number)))

    # ---- functions

    def _function_of(self, source: Opaque, symbol: int) -> Sums | None:
        """A function of x as one of u; None where it stays as it is."""
        found = self._known.get(symbol)
        if found is not None:
            return found
        if not source.shape:
            base, power = self.symbols.power(symbol)
            alone = int(base.key[0]) if base.key.size == 1 and base.weight[0] == 1 else 0
            if power == round(power) and power < 0 and alone - 1 in self.factors:
                found = self._known[symbol] = self._power_of(alone, power)
                return found
        inner = [self.before_factors(each) for each in source.arguments]
        if all(
            one.content() == two.content() for one, two in zip(inner, source.arguments, strict=True)
        ):
            after = [self.after_factors(each) for each in inner]
            if all(one is two for one, two in zip(after, inner, strict=True)):
                return None
        for place, number in enumerate(np.ravel(source.numbers).tolist()):
            self._known[number] = self._rewritten(source, inner, place)
        return self._known[symbol]

    def _rewritten(self, source: Opaque, inner: Sequence[Sums], place: int) -> Sums:
        """An entry of a function of arguments in u, s and 1/s."""
        if is_logarithm(source.atom) and not source.shape:
            return self._logarithm(inner[0])
        if not source.shape and source.atom is ATOMS["power"] and inner[1].is_constant:
            return self._power(inner[0], float(inner[1].value))
        scale = self._single_scale(inner)
        divisor = Sums.constant(1.0, self.coding)
        if scale and source.atom.is_homogeneous:
            cleared = [self._cancelled(each.times(self._symbol(scale))) for each in inner]
            if not self._single_scale(cleared):
                inner, divisor = cleared, self._symbol(self._reciprocal(scale))
        arguments = [self.after_factors(each) for each in inner]
        numbers = self.symbols.of_function(source.atom, source.params, arguments, source.shape)
        number = int(np.ravel(numbers)[place])
        return symbol_sums(self.symbols, np.array(number)).times(divisor)

    def _single_scale(self, inner: Sequence[Sums]) -> int:
        """The digit of the one s of which 1/s occurs; 0 where there is none, or several."""
        used = np.concatenate([each.symbols_used() for each in inner]) + 1
        found = [s for s, reciprocal in self.reciprocals.items() if (used == reciprocal).any()]
        return found[0] if len(found) == 1 else 0

    def _cleared(self, base: Sums) -> tuple[Sums, int, int]:
        """A sum times the least power of s that leaves nothing of 1/s; s as a digit, and the power."""
        scale = self._single_scale([base])
        if not scale:
            return base, 0, 0
        digits = base.digits.copy()
        reciprocals = digits == self.reciprocals[scale]
        counts = reciprocals.sum(axis=1)
        digits[reciprocals] = 0
        power = int(counts.max())
        more = np.where(np.arange(power - counts.min()) < (power - counts)[:, None], scale, 0)
        keys = self.coding.keys(
            np.hstack([digits, more])
        )  # never as long as before it is cancelled
        return (
            Sums.merged(base.shape, base.entry, keys, base.weight, self.coding),
            scale,
            power,
        )

    def _logarithm(self, base: Sums) -> Sums:
        cleared, scale, power = self._cleared(base)
        found = self._log(self.after_factors(cleared))
        if not power:
            return found
        return found - self._log(self._factor(scale)).scaled(float(power))

    def _log(self, base: Sums) -> Sums:
        """The logarithm of a scalar, of its factors where it is a product of nonnegative ones."""
        factors = [int(each) for each in base.digits[0] if each] if base.key.size == 1 else []
        weight = float(base.weight[0])
        if factors and weight > 0 and (weight != 1 or len(factors) > 1):
            whole = symbol_sums(self.symbols, np.array(factors) - 1)
            if len(factors) == 1 or (self.symbols.interval(whole)[0] >= 0).all():
                parts = [Sums.constant(np.log(weight), self.coding)]
                return added([*parts, *(self._log(self._symbol(each)) for each in factors)])
        number = self.symbols.of_function(ATOMS["log"], {}, (base,), ())
        return Sums.symbols(number, self.coding)

    def _power(self, base: Sums, power: float) -> Sums:
        cleared, scale, times = self._cleared(base)
        found = self._raised(self.after_factors(cleared), power)
        return found.times(self._power_of(scale, -times * power)) if times else found

    def _raised(self, base: Sums, power: float) -> Sums:
        """A power of a scalar: a number times that of a sum of which the first weight is ±1."""
        if base.is_constant:
            with np.errstate(all="ignore"):  # what is no number ends the search (`discovery`)
                return Sums.constant(base.value**power, self.coding)
        if power == 2 and int(base.degrees.max()) <= 1:
            return base.times(base)
        size = np.abs(base.weight[0])
        number = self.symbols.of_power(base.scaled(1.0 / size), power)
        with np.errstate(all="ignore"):  # as above
            weight = size**power
        return symbol_sums(self.symbols, np.array(number)).scaled(weight)

    # ---- rows

    def row(self, row: Row) -> Row:
        """The row rewritten, multiplied by s where it is not homogeneous of degree 1."""
        plain = self.before_factors(row.sums)
        needed = self._clearing(plain)
        if not needed.any():
            factor = None if row.factor is None else self(row.factor)
            return replace(row, sums=self.after_factors(plain), factor=factor)
        scales = symbol_sums(self.symbols, np.where(needed > 0, needed - 1, 0)).scaled(needed > 0)
        own = (scales + Sums.constant((needed == 0).astype(float), self.coding)).reshaped(
            row.sums.shape
        )
        cleared = self._cancelled(plain.times(own))
        if row.factor is not None:
            own = self._cancelled(self.before_factors(row.factor).times(own))
        return replace(row, sums=self.after_factors(cleared), factor=self.after_factors(own))

    def _clearing(self, sums: Sums) -> Numbers:
        """For each entry the digit of the s that it is to be multiplied by, 0 for none."""
        digits = sums.digits
        count = int(digits.max(initial=0)) + 1
        degree, scale = np.zeros(count), np.zeros(count, dtype=np.int64)
        needed = np.zeros(sums.size, dtype=np.int64)
        used = list(self.symbols.grouped(sums.symbols_used()))
        for source, _, own in used:
            if isinstance(source, Variable) or source.shape:
                degree[own + 1] = self._degree(int(own[0]))  # the same for all entries
            else:
                degree[own + 1] = [self._degree(symbol) for symbol in own.tolist()]
        if (degree[1:][sums.symbols_used()] > DATA_ROUNDING).all():
            return needed  # all terms grow, but for numbers, which have no s
        of_reciprocal = {reciprocal: each for each, reciprocal in self.reciprocals.items()}
        known = of_reciprocal | self.owner
        of_function: dict[int, int] = {}
        for source, _, own in used:
            if isinstance(source, Variable):
                scale[own + 1] = [known.get(digit, 0) for digit in (own + 1).tolist()]
            else:
                own_scales = [self._scale_of(each, known, of_function) for each in own.tolist()]
                scale[own + 1] = own_scales
        linked = scale[digits].max(axis=1, initial=0)
        low = (linked > 0) & (degree[digits].sum(axis=1) <= DATA_ROUNDING)
        needed[sums.entry[low]] = linked[low]
        if (needed[sums.entry[low]] != linked[low]).any():
            return np.zeros(sums.size, dtype=np.int64)  # two different factors
        return needed

    def _degree(self, symbol: int) -> float:
        """How a symbol grows where u and s grow by a common factor."""
        source, _ = self.symbols.source(symbol)
        if isinstance(source, Variable):
            return 1.0
        if is_logarithm(source.atom):
            return 0.0
        base, power = self.symbols.power(symbol)
        if power == 1:
            return 1.0
        return power * max(map(self._term_degree, base.digits.tolist()), default=0.0)

    def _term_degree(self, digits: Sequence[int]) -> float:
        return sum(self._degree(digit - 1) for digit in digits if digit)

    def _scale_of(self, symbol: int, known: dict[int, int], of_function: dict[int, int]) -> int:
        """The digit of the s that a symbol in u and 1/s goes with; 0 for others.

        `known` has it for the digits of u and 1/s. `of_function` collects it for functions, by their
        first symbol: it is the same for all entries, and a solution of equations has thousands of them.
        """
        found = known.get(symbol + 1)
        if found is not None:
            return found
        source, _ = self.symbols.source(symbol)
        if not isinstance(source, Opaque):
            return 0
        if source.start not in of_function:
            inside = (each for part in source.arguments for each in part.symbols_used().tolist())
            scales = (self._scale_of(each, known, of_function) for each in inside)
            of_function[source.start] = next(filter(None, scales), 0)
        return of_function[source.start]


def _taken_out(digits: Numbers, rows: Numbers, wanted: Numbers) -> NDArray[np.bool_]:
    """In which rows a digit that is not 0 was found; the first place of it becomes 0."""
    found = wanted == 0
    for column in digits.T:
        here = ~found & (column[rows] == wanted)
        column[rows[here]] = 0
        found |= here
    return np.asarray(found & (wanted > 0))
