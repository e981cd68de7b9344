"""Replacing symbols in sums: by other sums, also inside of the functions that are symbols themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.facts.polynomials import ONE, Coding, Sums
from hcmodel.facts.symbols import Opaque, Symbols
from hcmodel.maps.algebra.expanded import Expanded, Row
from hcmodel.records import replace


class Rewriting:
    """What a map does to an array of sums. The base class replaces single symbols.

    `gone` are the symbols that a map takes out of the model. A function with such a symbol inside is
    replaced by the same function of rewritten arguments.
    """

    def __init__(self, symbols: Symbols, gone: NDArray[np.int64]) -> None:
        self.symbols = symbols
        self.coding: Coding = symbols.coding
        self.gone = np.zeros(symbols.count, dtype=bool)
        self.gone[gone] = True
        self._functions: dict[int, tuple[NDArray[np.int64], bool]] = {}

    def __call__(self, sums: Sums) -> Sums:
        return self.terms(self.inside(sums))

    def row(self, row: Row) -> Row:
        """A row rewritten, and with it what it is multiplied by."""
        factor, congruence = (
            None if each is None else self(each) for each in (row.factor, row.congruence)
        )
        return replace(row, sums=self(row.sums), factor=factor, congruence=congruence)

    def terms(self, sums: Sums) -> Sums:
        """The map's own replacement; functions are rewritten already."""
        return sums

    def is_gone(self, symbols: NDArray[np.int64]) -> NDArray[np.bool_]:
        known = symbols < self.gone.size
        return known & self.gone[np.where(known, symbols, 0)]

    def inside(self, sums: Sums) -> Sums:
        """The same sums with functions of symbols that go rewritten."""
        changes: dict[int, Sums] = {}
        for source, places, symbols in self.symbols.grouped(sums.symbols_used()):
            if isinstance(source, Opaque) and self.is_kept(int(symbols[0])):
                numbers, changed = self._function(source)
                if changed:
                    for symbol, new in zip(symbols, np.ravel(numbers)[places], strict=True):
                        changes[int(symbol)] = Sums.symbols(np.array(new), self.coding)
        return substituted(sums, changes)

    def is_kept(self, symbol: int) -> bool:
        """Whether a function stays one; a map may take whole functions out."""
        return not self.is_gone(np.array([symbol]))[0]

    def _function(self, function: Opaque) -> tuple[NDArray[np.int64], bool]:
        found = self._functions.get(function.start)
        if found is None:
            arguments = [self(each) for each in function.arguments]
            changed = any(
                new is not old and new.content() != old.content()
                for new, old in zip(arguments, function.arguments, strict=True)
            )
            numbers = self.symbols.of_function(
                function.atom, function.params, arguments, function.shape
            )
            found = self._functions[function.start] = numbers, changed
        return found


class Exchange(Rewriting):
    """Symbols exchanged for sums, by number; functions of them are the same functions of the sums."""

    def __init__(self, symbols: Symbols, changes: Mapping[int, Sums]) -> None:
        super().__init__(symbols, np.array(sorted(changes), dtype=np.int64))
        self._changes = changes

    @staticmethod
    def of(symbols: Symbols, old: NDArray[np.int64], new: NDArray[np.int64]) -> Exchange:
        """Symbols for symbols, entry by entry."""
        entries = Sums.symbols(np.ravel(new), symbols.coding).entries()
        return Exchange(symbols, dict(zip(np.ravel(old).tolist(), entries, strict=True)))

    def terms(self, sums: Sums) -> Sums:
        return substituted(sums, self._changes)


def rewritten(
    model: Expanded,
    rewriting: Rewriting,
    *,
    gone: Iterable[Variable],
    new: Iterable[Variable],
    rows: Iterable[Row] = (),
) -> Expanded:
    """The model with objective and rows rewritten; `rows` are further ones, in the new variables."""
    absent = set(gone)
    variables = tuple(each for each in model.variables if each not in absent)
    added = tuple(new)
    return Expanded(
        model.symbols,
        rewriting(model.objective),
        (*(rewriting.row(row) for row in model.rows), *rows),
        (*variables, *added),
        closed=model.closed | set(() if model.closed.isdisjoint(absent) else added),
    )


def applied(
    model: Expanded,
    rewriting: Rewriting,
    *,
    gone: Iterable[Variable],
    new: Iterable[Variable],
    rows: Iterable[Row] = (),
) -> Expanded | NDArray[np.int64]:
    """The same where nothing is left that was to go; else the symbols that are."""
    after = rewritten(model, rewriting, gone=gone, new=new, rows=rows)
    used = after.used()
    left = used[rewriting.is_gone(used)]
    return left if left.size else after


def substituted(sums: Sums, changes: Mapping[int, Sums]) -> Sums:
    """Symbols replaced by sums, each a scalar; powers among them."""
    if not changes:
        return sums
    coding = sums.coding
    digits = sums.digits
    wanted = np.array(sorted(changes), dtype=np.int64) + 1
    hit = sums.among(wanted)
    touched: NDArray[np.bool_] = np.asarray(hit.any(axis=1))
    if not touched.any():
        return sums
    names = _names(wanted, changes, coding)
    if names is not None:
        table = np.arange(max(int(digits.max()), int(wanted[-1])) + 1)
        table[wanted] = names
        return Sums.merged(sums.shape, sums.entry, coding.keys(table[digits]), sums.weight, coding)
    same, rest = sums.chosen(~touched), sums.chosen(touched)
    inner, hits = digits[touched], hit[touched]
    # One new array for each number of replaced factors: products are formed for all terms at once.
    stripped = coding.keys(np.where(hits, 0, inner))
    product = Sums((rest.entry.size,), np.arange(rest.entry.size), stripped, rest.weight, coding)
    starts, stack = _stacked(wanted, changes, coding)
    multiply = Sums.pairs  # the first products of a term are all different
    for column in range(inner.shape[1]):
        own = hits[:, column]
        if own.any():
            places = np.where(
                own, starts[np.searchsorted(wanted, np.where(own, inner[:, column], wanted[0]))], 0
            )
            product = multiply(product, stack.taken(places, (places.size,)))
            multiply = Sums.times
    entry = np.concatenate([same.entry, rest.entry[product.entry]])
    key = np.concatenate([same.key, product.key])
    weight = np.concatenate([same.weight, product.weight])
    return Sums.merged(sums.shape, entry, key, weight, coding)


def _names(
    wanted: NDArray[np.int64], changes: Mapping[int, Sums], coding: Coding
) -> NDArray[np.int64] | None:
    """The digits that take the place of others, where each change is a single symbol; else None."""
    found = [changes[int(digit) - 1] for digit in wanted]
    if not all(each.key.size == 1 and each.weight[0] == 1.0 for each in found):
        return None
    keys = np.array([each.key[0] for each in found])
    return keys if ((keys != ONE) & (keys < 1 << coding.bits)).all() else None


def _stacked(
    wanted: NDArray[np.int64], changes: Mapping[int, Sums], coding: Coding
) -> tuple[NDArray[np.intp], Sums]:
    """All replacements one after the other, behind a 1 at place 0."""
    sums = [changes[int(digit) - 1] for digit in wanted]
    entry = np.arange(len(sums) + 1).repeat([1, *[s.key.size for s in sums]])
    key = np.concatenate([[ONE], *[s.key for s in sums]]).astype(np.int64)
    weight = np.concatenate([[1.0], *[s.weight for s in sums]])
    stack = Sums((len(sums) + 1,), entry, key, weight, coding)
    return np.arange(1, len(sums) + 1), stack


def without(sums: Sums, *factors: int) -> Sums:
    """Each term without one of each of these factors, given by their digits."""
    digits = sums.digits.copy()
    rows = np.arange(digits.shape[0])
    for factor in factors:
        digits[rows, (digits == factor).argmax(axis=1)] = 0
    return Sums.merged(sums.shape, sums.entry, sums.coding.keys(digits), sums.weight, sums.coding)
