"""Products that stand for something convex, as functions that the proof knows.

A model that was multiplied out has lost the functions that its products came from. Here they are found
again, entry by entry, by algebra alone:

- a quadratic form xᵀQx with Q ⪰ 0 or Q ⪯ 0 is a sum of squares, plus or minus;
- a quadratic form over an affine s > 0 is one too: with x = z + s·w, where s is 1 at w and 0 at z,

      q(x)/s  =  q(z)/s + 2·B(z, w) + s·q(w),

  and only q(z)/s is not affine, so that the sign of q on the plane s = 0 decides (`quad_over_lin`);
- sums of c_b(x)·log b(x), with c_b and b affine, are sums of k·a·log(a/b), k·a·log a and −k·log b with
  weights k >= 0, or the negative of that, if one finds such weights: for each b

      c_b  =  Σ_a k_ba·b + k_b·b − Σ_a k_ab·a − g_b,

  linear equations for nonnegative unknowns (`rel_entr`, `entr`);
- a^p·b^q·… with p, q, … > 0 and a sum of at most 1 is a geometric mean, of 1 too where the sum is less;
- the square root of a quadratic form with Q ⪰ 0 is a norm;
- y^p/t^(p−1) and t·log(1 + a/t) are perspectives (`power_ratios`);
- a sum of entries of an inverse is a quadratic form of it (`inverse_entries`).

What is none of these stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.sparse import coo_array

from hcmodel.expressions.table import ATOMS
from hcmodel.facts.polynomials import ONE, Coding, Sums, added, stacked
from hcmodel.facts.symbols import Symbols
from hcmodel.maps.algebra.inverse_entries import with_fractions
from hcmodel.maps.algebra.power_ratios import with_perspectives, with_split_logarithms
from hcmodel.maps.algebra.quadratics import combined, factored, form_of, quadratic
from hcmodel.maps.algebra.rewriting import substituted
from hcmodel.maps.map import ROOT
from hcmodel.solvers.numerics import DATA_ROUNDING, PRODUCT_ROUNDING

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]
Marks = NDArray[np.bool_]


def gathered(sums: Sums, symbols: Symbols) -> Sums:
    """The same sums with products replaced by functions, where these are convex or concave."""
    sums = _with_norms(with_fractions(sums, symbols), symbols)
    sums = with_perspectives(with_split_logarithms(sums, symbols), symbols)
    degrees = sums.degrees
    if int(degrees.max(initial=0)) <= 1:
        return sums
    kinds = _Kinds(sums, symbols)
    if not kinds.any:
        return sums
    touched = np.zeros(sums.size, dtype=bool)
    touched[sums.entry[degrees > 1]] = True
    inside = touched[sums.entry]
    bounds = np.searchsorted(sums.entry, np.arange(sums.size + 1))
    pieces = _Pieces(sums, kinds, symbols)
    for entry in np.flatnonzero(touched).tolist():
        pieces.entry(entry, np.arange(bounds[entry], bounds[entry + 1]))
    return added([sums.chosen(~inside), pieces.total()])


# ---- what stands in the terms


class _Kinds:
    """For each term the logarithm and the reciprocal that it has, as digits, 0 for none or several."""

    def __init__(self, sums: Sums, symbols: Symbols) -> None:
        digits = sums.digits
        count = int(digits.max(initial=0)) + 1
        log, reciprocal = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
        self.arguments: dict[int, Sums] = {}
        self.exponents: dict[int, float] = {}  # of powers between 0 and 1, by digit
        for symbol in symbols.single_functions(sums.symbols_used()):
            inner = symbols.logarithm(symbol)
            base, power = symbols.power(symbol)
            if inner is not None:
                log[symbol + 1] = True
                self.arguments[symbol + 1] = inner
            elif power == -1:
                reciprocal[symbol + 1] = True
                self.arguments[symbol + 1] = base
            elif 0 < power < 1:
                self.arguments[symbol + 1] = base
                self.exponents[symbol + 1] = power
        logs, reciprocals = log[digits], reciprocal[digits]
        rest = (digits > 0).sum(axis=1) - logs.sum(axis=1) - reciprocals.sum(axis=1)
        single_log = (logs.sum(axis=1) == 1) & ~reciprocals.any(axis=1) & (rest <= 1)
        single = (reciprocals.sum(axis=1) == 1) & ~logs.any(axis=1) & (rest <= 2)
        self.log = np.where(single_log, (digits * logs).sum(axis=1), 0)
        self.reciprocal = np.where(single, (digits * reciprocals).sum(axis=1), 0)
        # Two logarithms are a square in logarithmic coordinates, as two other factors are.
        both = (logs.sum(axis=1) == 2) & ~reciprocals.any(axis=1) & (rest == 0)
        self.square = both | (~logs.any(axis=1) & ~reciprocals.any(axis=1) & (rest == 2))
        # The factors beside the logarithm or the reciprocal: at most two, as digits.
        beside = np.where((logs & ~both[:, None]) | reciprocals, 0, digits)
        others = -np.sort(-beside, axis=1)
        wide = np.zeros((digits.shape[0], 2), dtype=np.int64)
        wide[:, : min(2, others.shape[1])] = others[:, :2]
        self.pair = wide
        fractional = np.zeros(count, dtype=bool)
        fractional[list(self.exponents)] = True
        self.mean = (fractional[digits] | (digits == 0)).all(axis=1) & (sums.degrees > 1)
        kinds = (single_log, single, self.square, self.mean)
        self.any = any(bool(each.any()) for each in kinds)


class _Pieces:
    """The terms of the result, collected entry by entry."""

    def __init__(self, sums: Sums, kinds: _Kinds, symbols: Symbols) -> None:
        self.sums, self.kinds, self.symbols = sums, kinds, symbols
        self.coding: Coding = sums.coding
        self._entries: list[NDArray[np.intp]] = []
        self._keys: list[Numbers] = []
        self._weights: list[FloatArray] = []
        self._entry = 0

    def total(self) -> Sums:
        return Sums.merged(
            self.sums.shape,
            np.concatenate([np.zeros(0, dtype=np.intp), *self._entries]),
            np.concatenate([np.zeros(0, dtype=np.int64), *self._keys]),
            np.concatenate([np.zeros(0), *self._weights]),
            self.coding,
        )

    def entry(self, entry: int, terms: NDArray[np.intp]) -> None:
        self._entry = entry
        kinds = self.kinds
        taken = np.zeros(terms.size, dtype=bool)
        log = kinds.log[terms]
        if (kinds.pair[terms[log > 0], 0] > 0).any():
            taken |= self._logarithms(terms, log)
        for digit in np.unique(kinds.reciprocal[terms]).tolist():
            own = (kinds.reciprocal[terms] == digit) & ~taken
            if digit and (kinds.pair[terms[own], 0] > 0).any():
                taken |= self._fraction(terms, own, digit)
        mean = kinds.mean[terms] & ~taken
        if mean.any():
            taken |= self._means(terms, mean)
        square = kinds.square[terms] & ~taken
        if square.any():
            taken |= self._squares(terms, square)
        rest = terms[~taken]
        self._add(self.sums.key[rest], self.sums.weight[rest])

    def _add(self, keys: Numbers, weights: FloatArray) -> None:
        self._entries.append(np.full(keys.size, self._entry, dtype=np.intp))
        self._keys.append(keys)
        self._weights.append(weights)

    def _emit(self, numbers: Numbers, weight: float) -> None:
        flat = np.ravel(numbers)
        self._add(flat + 1, np.full(flat.size, weight))

    # ---- means

    def _means(self, terms: NDArray[np.intp], marks: Marks) -> Marks:
        """Products of powers of which the exponents sum to at most 1."""
        kinds, digits = self.kinds, self.sums.digits
        taken = np.zeros(terms.size, dtype=bool)
        for place in np.flatnonzero(marks).tolist():
            factors = [digit for digit in digits[terms[place]].tolist() if digit]
            powers = [kinds.exponents[digit] for digit in factors]
            left = 1.0 - sum(powers)
            if left >= -PRODUCT_ROUNDING:
                arguments = [kinds.arguments[digit] for digit in factors]
                if left > PRODUCT_ROUNDING:
                    arguments.append(Sums.constant(1.0, self.coding))
                    powers.append(left)
                inside = stacked(arguments, self.coding)
                params = {"axis": None, "p": tuple(powers)}
                numbers = self.symbols.of_function(ATOMS["geo_mean"], params, (inside,), ())
                self._emit(numbers, float(self.sums.weight[terms[place]]))
                taken[place] = True
        return taken

    # ---- squares

    def _squares(self, terms: NDArray[np.intp], marks: Marks) -> Marks:
        """Quadratic forms, one for each group of symbols that stand together."""
        own = np.flatnonzero(marks)
        pair, weight = self.kinds.pair[terms[own]], self.sums.weight[terms[own]]
        used, places = np.unique(pair, return_inverse=True)
        places = places.reshape(pair.shape)
        _, group = scipy.sparse.csgraph.connected_components(
            coo_array((np.ones(own.size), (places[:, 0], places[:, 1])), shape=(used.size,) * 2),
            directed=False,
        )
        taken = np.zeros(terms.size, dtype=bool)
        for each in np.unique(group[places[:, 0]]).tolist():
            mine = group[places[:, 0]] == each
            members = np.flatnonzero(group == each)
            if members.size == 1:
                argument = Sums.symbols(np.array(used[members[0]] - 1), self.coding)
                numbers = self.symbols.of_function(ATOMS["square"], {}, (argument,), ())
                self._emit(numbers, float(weight[mine][0]))
                taken[own[mine]] = True
                continue
            local = np.searchsorted(members, places[mine])
            matrix = form_of(local, weight[mine], members.size)
            sign, factor = factored(matrix)
            if factor is not None:
                argument = self._combined(factor, used[members])
                numbers = self.symbols.of_function(ATOMS["square"], {}, (argument,), argument.shape)
                self._emit(numbers, sign)
                taken[own[mine]] = True
        return taken

    def _combined(self, factor: FloatArray, digits: Numbers) -> Sums:
        """A matrix times symbols, of which the digit 0 stands for 1."""
        return combined(factor, digits, self.coding)

    # ---- squares over something positive

    def _fraction(self, terms: NDArray[np.intp], marks: Marks, digit: int) -> Marks:
        """A quadratic form over s: its affine part, and a sum of squares over s."""
        nothing = np.zeros(terms.size, dtype=bool)
        below = self.kinds.arguments[digit]
        if (self.symbols.interval(below)[0] < 0).any():
            return nothing
        own = terms[np.flatnonzero(marks)]
        pair, weight = self.kinds.pair[own], self.sums.weight[own]
        affine = int(below.degrees.max(initial=0)) <= 1
        wanted = np.append(np.ravel(pair), below.key) if affine else np.ravel(pair)
        used = np.unique(np.append(wanted, 0))
        matrix = form_of(np.searchsorted(used, pair), weight, used.size)
        slope = np.zeros(used.size)
        if affine:
            slope[np.searchsorted(used, below.key)] = below.weight
        pivot = _pivot(slope, matrix) if affine else None
        if pivot is None:
            sign, factor = factored(matrix)
            others, linear = used, None
        else:
            # x with the entry at the pivot expressed by s; see the module
            others = np.delete(used, pivot)
            plane = np.insert(
                np.eye(others.size), pivot, -np.delete(slope, pivot) / slope[pivot], 0
            )
            sign, factor = factored(plane.T @ matrix @ plane)
            across = matrix[:, pivot] / slope[pivot]
            level = matrix[pivot, pivot] / slope[pivot] ** 2
            linear = level * slope + 2.0 * np.insert(plane.T @ across, pivot, 0.0)
        if factor is None:
            return nothing
        if factor.size:
            self._over(factor, others, below, digit, sign)
        if linear is not None:
            self._add(used[linear != 0], linear[linear != 0])
        return marks

    def _over(
        self, factor: FloatArray, digits: Numbers, below: Sums, digit: int, sign: float
    ) -> None:
        varying = factor[:, digits > 0]
        if not np.abs(varying).max(initial=0.0) > PRODUCT_ROUNDING * np.abs(factor).max():
            self._add(np.array([digit]), np.array([sign * float((factor**2).sum())]))
            return
        above = self._combined(factor, digits)
        atom = ATOMS["quad_over_lin"]
        self._emit(self.symbols.of_function(atom, {}, (above, below), ()), sign)

    # ---- logarithms

    def _logarithms(self, terms: NDArray[np.intp], log: Numbers) -> Marks:
        """Products with logarithms, by groups that share symbols."""
        own = np.flatnonzero(log)
        digits = np.unique(log[own])
        arguments = [self.kinds.arguments[int(each)] for each in digits]
        factors = self.kinds.pair[terms[own], 0]
        which = np.searchsorted(digits, log[own])
        taken = np.zeros(terms.size, dtype=bool)
        for group in _groups(arguments, which, factors):
            mine = np.isin(which, group)
            if not (factors[mine] > 0).any():
                continue
            if any(int(arguments[each].degrees.max(initial=0)) > 1 for each in group):
                continue
            weight = self.sums.weight[terms[own[mine]]]
            place = np.searchsorted(group, which[mine])
            args = [arguments[each] for each in group]
            if self._divergences(args, digits[group], place, factors[mine], weight):
                taken[own[mine]] = True
        return taken

    def _divergences(
        self,
        arguments: Sequence[Sums],
        logs: Numbers,
        place: NDArray[np.intp],
        factors: Numbers,
        weight: FloatArray,
    ) -> bool:
        """Σ_b c_b·log b as divergences and entropies, with weights of one sign; see the module."""
        keys = [np.zeros(1, dtype=np.int64), factors, *(each.key for each in arguments)]
        used = np.unique(np.concatenate(keys))
        count, width = len(arguments), used.size
        coefficients = np.zeros((count, width))
        np.add.at(coefficients, (place, np.searchsorted(used, factors)), weight)
        forms = np.zeros((count, width))
        for number, each in enumerate(arguments):
            forms[number, np.searchsorted(used, each.key)] = each.weight
        size = float(np.abs(coefficients).max())
        pairs = [(a, -1) for a in range(count)]
        pairs += [(-1, b) for b in range(count)]
        for b in range(count):
            missing = (forms != 0) & (coefficients[b] == 0)
            pairs += [(a, b) for a in np.flatnonzero(~missing.any(axis=1)).tolist() if a != b]
        matrix, right = _system(pairs, forms, coefficients)
        for sign in (1.0, -1.0):
            found = _nonnegative(matrix, sign * right, size)
            if found is not None:
                for value, (a, b) in zip(found.tolist(), pairs, strict=True):
                    if value:
                        self._divergence(arguments, logs, a, b, sign * value)
                return True
        return False

    def _divergence(
        self, arguments: Sequence[Sums], logs: Numbers, a: int, b: int, weight: float
    ) -> None:
        """weight · a·log(a/b); −1 stands for 1."""
        if a < 0:
            self._add(logs[b : b + 1], np.array([-weight]))
        elif b < 0:
            numbers = self.symbols.of_function(ATOMS["entr"], {}, (arguments[a],), ())
            self._emit(numbers, -weight)
        else:
            pair = arguments[a], arguments[b]
            self._emit(self.symbols.of_function(ATOMS["rel_entr"], {}, pair, ()), weight)


# ---- norms


def _with_norms(sums: Sums, symbols: Symbols) -> Sums:
    """Square roots of positive semidefinite quadratic forms as norms."""
    changes: dict[int, Sums] = {}
    for symbol in symbols.single_functions(sums.symbols_used()):
        base, power = symbols.power(symbol)
        if power != ROOT or int(base.degrees.max(initial=0)) != 2:
            continue
        sign, factor, used = quadratic(base)
        if factor is not None and factor.size and sign > 0:
            inside = combined(factor, used, sums.coding)
            params = {"axis": None, "p": 2.0}
            number = symbols.of_function(ATOMS["norm"], params, (inside,), ())
            changes[symbol] = Sums.symbols(number, sums.coding)
    return substituted(sums, changes)


# ---- matrices


def _pivot(slope: FloatArray, matrix: FloatArray) -> int | None:
    """The entry of x that s takes the place of: one that the form lacks, else the largest of s."""
    absent = (slope != 0) & ~matrix.any(axis=1)
    if absent.any():
        return None  # then the form is definite on the plane s = 0 where it is on the whole space
    return int(np.abs(slope).argmax())


def _system(
    pairs: Sequence[tuple[int, int]], forms: FloatArray, coefficients: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The equations for the weights of the pairs, without those that are 0 = 0."""
    width = forms.shape[1]
    rows, columns, values = [], [], []
    for number, (a, b) in enumerate(pairs):
        form = forms[a] if a >= 0 else np.eye(1, width)[0]  # the digit 0 is the first one
        filled = np.flatnonzero(form)
        for owner, sign in ((a, 1.0), (b, -1.0)):
            if owner >= 0:
                rows.append(owner * width + filled)
                columns.append(np.full(filled.size, number))
                values.append(sign * form[filled])
    row = np.concatenate(rows)
    used = np.unique(np.append(row, np.flatnonzero(coefficients)))
    matrix = np.zeros((used.size, len(pairs)))
    np.add.at(matrix, (np.searchsorted(used, row), np.concatenate(columns)), np.concatenate(values))
    return matrix, coefficients.reshape(-1)[used]


def _nonnegative(matrix: FloatArray, right: FloatArray, size: float) -> FloatArray | None:
    """A solution x >= 0 of a linear system; None where there is none."""
    try:
        found, _ = scipy.optimize.nnls(matrix, right)
    except RuntimeError:  # its limit of iterations
        return None
    if (np.abs(matrix @ found - right) > DATA_ROUNDING * size).any():
        return None
    return np.where(found > DATA_ROUNDING * size, found, 0.0)


def _groups(
    arguments: Sequence[Sums], which: NDArray[np.intp], factors: Numbers
) -> list[NDArray[np.intp]]:
    """Logarithms that share symbols, in their arguments or their factors."""
    owners = [which, *(np.full(each.key.size, i) for i, each in enumerate(arguments))]
    digits = np.concatenate([factors, *(each.key for each in arguments)])
    owner = np.concatenate(owners)
    kept = digits != ONE
    used, places = np.unique(digits[kept], return_inverse=True)
    count = len(arguments)
    shape = (count + used.size,) * 2
    graph = coo_array((np.ones(places.size), (owner[kept], count + places)), shape=shape)
    _, group = scipy.sparse.csgraph.connected_components(graph, directed=False)
    return [np.flatnonzero(group[:count] == each) for each in np.unique(group[:count])]
