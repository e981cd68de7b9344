"""Entries of variables that cannot be 0 at a point of a model, though their bounds allow it.

A geometric program is often written with `x >= 0`. Its logarithm is a coordinate once 0 is excluded, and
the model itself may exclude it, for an entry s that is nowhere negative:

- a function is not defined there: 1/s, s^-0.5, log(s), also with other factors, 1/(s·y);
- a row is violated there: the terms with a factor s vanish, and the rest of a row `rest <= 0` is
  positive, as in x·y >= 3 or x == 2 + y with y >= 0.

A logarithm counts where what it is multiplied with cannot be 0, since s·log(s) has the value 0 at s = 0.
An entry of any sign is positive where its logarithm, or a root in a denominator, is taken. What is found
helps to find more: from x·y >= z with z > 0 follows x > 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms import cones
from hcmodel.facts.polynomials import Sums
from hcmodel.facts.symbols import Opaque, Symbols
from hcmodel.solvers.numerics import DATA_ROUNDING

Marks = NDArray[np.bool_]
Numbers = NDArray[np.int64]


class Nonzero:
    """The symbols that are proven positive, found round by round."""

    def __init__(self, symbols: Symbols, candidates: Numbers) -> None:
        self.symbols = symbols
        self.lower, self.upper = symbols.ends()
        self.candidate = np.zeros(self.lower.size, dtype=bool)
        self.candidate[candidates + 1] = True
        self.found = np.zeros(self.lower.size, dtype=bool)
        """By digit, which is the symbol + 1; what is found has a positive lower bound from then on."""
        self._powers: dict[int, list[int]] | None = None

    def look(self, arrays: Sequence[Sums], rows: Iterable[tuple[Sums, str]]) -> None:
        """Mark what the functions in some arrays and the rows exclude, until nothing new is found."""
        listed = [
            side for sums, sense in rows for side in ((sums, -sums) if sense == "==" else (sums,))
        ]
        before = -1
        while before != int(self.found.sum()):
            before = int(self.found.sum())
            for sums in arrays:
                self._functions(sums)
            for sums in listed:
                self._row(sums)

    def exclude_factors(self, objective: Sums) -> bool:
        """Whether there are factors of a product that is maximised; these are marked.

        `objective` is minimised, the negative of a product: where a factor is 0 it is 0, and no point is
        worse.
        """
        if objective.weight[0] > 0 or (self.lower[objective.digits] < 0).any():
            return False
        common = self._vanishing(objective.digits[0].tolist())
        new = {digit for digit in common if not self.found[digit]}
        self._mark(new)
        return bool(new)

    def _mark(self, digits: Iterable[int]) -> None:
        for digit in digits:
            self.found[digit] = True
            for each in (digit, *self._powers_of(digit)):
                self.lower[each] = max(self.lower[each], np.finfo(float).tiny)

    def _powers_of(self, digit: int) -> list[int]:
        """The powers of a symbol, which are positive where it is."""
        if self._powers is None:
            self._powers = {}
            for symbol in range(self.symbols.count):
                if self.symbols.function(symbol) is None:
                    continue
                base, power = self.symbols.power(symbol)
                if power != 1 and base.key.size == 1 and base.weight[0] > 0:
                    self._powers.setdefault(int(base.key[0]), []).append(symbol + 1)
        return self._powers.get(digit, [])

    # ---- functions

    def _functions(self, sums: Sums) -> None:
        """What is excluded where a function in a sum has no value."""
        for symbol in sums.symbols_used().tolist():
            if self.symbols.function(symbol) is None:
                continue
            inner = self.symbols.logarithm(symbol)
            base, power = self.symbols.power(symbol)
            if inner is not None:
                if self._counts(sums, symbol + 1):
                    self._exclude_zero(inner, signed=True)
                    self._functions(inner)
            elif power < 0:
                self._exclude_zero(base, signed=power != round(power))
                self._functions(base)
            elif power != 1:
                self._root(base, power)
                self._functions(base)

    def _root(self, base: Sums, power: float) -> None:
        """A root of an entry has values where the entry is not negative."""
        alone = base.key.size == 1 and base.degrees[0] == 1 and base.weight[0] > 0
        if alone and power != round(power) and self.candidate[int(base.key[0])]:
            digit = int(base.key[0])
            self.lower[digit] = max(self.lower[digit], 0.0)

    def _counts(self, sums: Sums, digit: int) -> bool:
        """Whether a symbol has a term in which nothing else can be 0."""
        digits = sums.digits[(sums.digits == digit).any(axis=1)]
        alone = (self.lower[digits] > 0) | (self.upper[digits] < 0) | (digits == digit)
        return bool(alone.all(axis=1).any())

    def _exclude_zero(self, base: Sums, *, signed: bool) -> None:
        """A sum that is not 0: the factors that all of its terms have are not 0 either."""
        alone = base.key.size == 1 and base.degrees[0] == 1 and base.weight[0] > 0
        if signed and alone and self.candidate[int(base.key[0])]:
            self._mark([int(base.key[0])])
            return
        common: set[int] | None = None
        for digits in base.digits.tolist():
            own = self._vanishing(digits)
            common = own if common is None else common & own
        self._mark(digit for digit in common or () if self.lower[digit] >= 0)

    def _vanishing(self, digits: Iterable[int]) -> set[int]:
        """The candidates that make a product 0 where they are 0."""
        found: set[int] = set()
        for digit in digits:
            if not digit:
                continue
            if self.candidate[digit]:
                found.add(digit)
                continue
            if self.symbols.function(digit - 1) is None:
                continue
            base, power = self.symbols.power(digit - 1)
            if power > 0 and power != 1 and base.key.size == 1:
                found |= self._vanishing(base.digits[0].tolist())
            elif power == 1:
                found |= self._in_function(digit)
        return found

    def _in_function(self, digit: int) -> set[int]:
        """The candidates that make a mean, or the least of nonnegative numbers, 0."""
        function, _ = self.symbols.source(digit - 1)
        if not isinstance(function, Opaque) or function.shape or self.lower[digit] < 0:
            return set()
        if function.atom.cone_form not in (cones.GEO_MEAN, cones.SMALLEST, cones.MINIMUM):
            return set()
        found: set[int] = set()
        for argument in function.arguments:
            for entry in argument.entries():
                if entry.key.size == 1:
                    found |= self._vanishing(entry.digits[0].tolist())
        return found

    # ---- rows

    def _row(self, sums: Sums) -> None:
        """Rows sums <= 0: an entry that leaves something positive where it is 0 is not 0."""
        term, hit = self._vanishing_terms(sums)
        if not term.size:
            return
        low, positive = self._lows(sums)
        entry = sums.entry
        infinite, size = np.isneginf(low), sums.size
        finite = np.where(infinite, 0.0, low)
        columns = [finite, infinite, low < 0, positive]
        totals = [np.bincount(entry, weights=each, minlength=size) for each in columns]
        joint, place = np.unique(entry[term] * self.found.size + hit, return_inverse=True)
        parts = [np.bincount(place, weights=each[term]) for each in columns]
        rest, unbounded, negative, strict = (
            total[joint // self.found.size] - part
            for total, part in zip(totals, parts, strict=True)
        )
        sizes = np.bincount(entry, weights=np.abs(finite), minlength=size)
        rounding = DATA_ROUNDING * sizes[joint // self.found.size]
        excluded = (unbounded == 0) & ((rest > rounding) | ((negative == 0) & (strict > 0)))
        self._mark(np.unique(joint[excluded] % self.found.size).tolist())

    def _vanishing_terms(self, sums: Sums) -> tuple[Numbers, Numbers]:
        """Pairs of a term and a candidate, not found yet, that makes it 0, each pair once."""
        owners = {
            digit: [
                each
                for each in self._vanishing([digit])
                if not self.found[each] and self.lower[each] >= 0
            ]
            for digit in (sums.symbols_used() + 1).tolist()
        }
        most = max(map(len, owners.values()), default=0)
        if not most:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        table = np.zeros((max(owners) + 1, most), dtype=np.int64)
        for digit, own in owners.items():
            table[digit, : len(own)] = own
        hits = table[sums.digits].reshape(sums.key.size, -1)
        term, column = np.nonzero(hits)
        joint = np.unique(term * self.found.size + hits[term, column])
        return joint // self.found.size, joint % self.found.size

    def _lows(self, sums: Sums) -> tuple[NDArray[np.float64], Marks]:
        """The least value of each term, and whether it is positive everywhere."""
        digits = sums.digits
        low, high = np.ones(digits.shape[0]), np.ones(digits.shape[0])
        with np.errstate(all="ignore"):
            for digit in digits.T:
                ends = [a * b for a in (low, high) for b in (self.lower[digit], self.upper[digit])]
                clean = [np.where(np.isnan(each), 0.0, each) for each in ends]
                low, high = np.minimum.reduce(clean), np.maximum.reduce(clean)
            least = np.minimum(sums.weight * low, sums.weight * high)
        least = np.where(np.isnan(least), -np.inf, least)
        positive = (sums.weight > 0) & (self.lower[digits] > 0).all(axis=1)
        return least, positive
