"""Ends of functions and of their arguments in a propagation, in rational numbers.

A function of arguments that are numbers has a value, a monotone one has ends where its arguments have,
and others have a sign at least. Values are computed in floating point: they are widened by its rounding,
and nothing is made of those that may have been lost below its range.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from hcmodel.atoms import cones
from hcmodel.atoms.algebra import Inverse
from hcmodel.atoms.rules import Argument, Monotonicity, Sign
from hcmodel.certify.domains.propagation import (
    NOTHING,
    ROUNDING,
    SMALLEST,
    ZERO,
    ContradictionError,
    End,
    Parts,
    Propagation,
    Row,
)
from hcmodel.facts.polynomials import ONE, Sums
from hcmodel.facts.symbols import Opaque, Symbols
from hcmodel.solvers.numerics import TINY

# Numbers below this may be lost in powers of them: no zero that is computed from them is believed.
SMALL = 1e-60  # the fifth power is still a number
# Where functions have values without rounding, if these are among the same numbers.
EXACT = frozenset((0.0, 1.0))
# Functions that grow where all of their arguments do, though none of these decides alone.
ORDERED = (cones.MAXIMUM, cones.MINIMUM, cones.LARGEST, cones.SMALLEST)


def row_of(sums: Sums, entry: int, parts: Parts, sign: int = 1, shift: int = 0) -> Row:
    """sign · (entry of some sums + shift) <= 0."""
    first, last = np.searchsorted(sums.entry, (entry, entry + 1))
    terms, constant = list[tuple[Hashable, Fraction]](), Fraction(shift)
    pairs = zip(sums.key[first:last].tolist(), sums.weight[first:last].tolist(), strict=True)
    for key, weight in pairs:
        if key == ONE:
            constant += Fraction(weight)
        else:
            terms.append((key, sign * Fraction(weight)))
    return Row(terms, sign * constant, parts)


def read_functions(search: Propagation, symbols: Symbols, terms: Iterable[Hashable]) -> None:
    """Functions of arguments that are numbers have values, others perhaps a sign."""
    used = np.unique(np.array(list(terms), dtype=np.int64)) - 1
    for function in symbols.functions(used):
        if function.atom.black_box:
            continue
        values = [_numbers(search, sums) for sums in function.arguments]
        if all(value is not None for value in values):
            parts = NOTHING.union(*(each[1] for each in values if each is not None))
            arrays = [each[0] for each in values if each is not None]
            _take(search, function, arrays, parts, (0, 1))
            continue
        facts, parts = _facts_of(search, function)
        if function.atom.sign(facts, function.params) is Sign.POSITIVE:
            for number in function.numbers.ravel() + 1:
                search.set(int(number), 0, End(SMALLEST, parts))
        moves = function.atom.monotonicity(facts, function.params)
        inverse = function.atom.inverse(facts, function.params)
        _read_ends(search, function, moves, inverse)
        if moves == (Monotonicity.INCREASING,) and inverse is not None:
            _read_argument(search, function, inverse)


def _facts_of(search: Propagation, function: Opaque) -> tuple[list[Argument], Parts]:
    """The arguments of a function with their signs, and what these follow from."""
    facts, parts = list[Argument](), NOTHING
    for sums in function.arguments:
        if sums.is_constant:
            facts.append(Argument.from_value(sums.value))
            continue
        signs = [_sign(search, sums, entry) for entry in range(sums.size)]
        known = {sign for sign, _ in signs}
        facts.append(Argument(sums.shape, known.pop() if len(known) == 1 else Sign.UNKNOWN))
        parts = parts.union(*(each for _, each in signs))
    return facts, parts


def _take(
    search: Propagation,
    function: Opaque,
    arrays: Sequence[Any],
    parts: Parts,
    sides: Sequence[int],
    is_open: bool = False,
) -> None:
    """The values of a function at some arguments as ends of its entries.

    `is_open`: the arguments are not attained, and the function does not attain its values elsewhere.
    """
    with np.errstate(all="ignore"):
        result = np.ravel(function.atom.numbers(arrays, function.params))
    if not np.isfinite(result).all():
        return  # it is asked what the argument has to be
    facts = [Argument.from_value(array) for array in arrays]
    lost = function.atom.sign(facts, function.params).is_strict  # a zero is an underflow then
    lost = lost or any(((array != 0) & (np.abs(array) < SMALL)).any() for array in arrays)
    whole = is_open and EXACT.issuperset(np.abs(arrays[0]).ravel().tolist())
    for number, value in zip(function.numbers.ravel() + 1, result, strict=True):
        exact = Fraction(float(value))
        if (lost and not exact) or 0 < abs(exact) < TINY:
            continue
        sharp = whole and abs(float(value)) in EXACT
        slack = ZERO if sharp else ROUNDING * abs(exact)
        for side in sides:
            end = exact + slack if side else exact - slack
            search.set(int(number), side, End(end, parts, abs(exact), sharp))


def _read_ends(
    search: Propagation,
    function: Opaque,
    moves: Sequence[Monotonicity],
    inverse: Inverse | None,
) -> None:
    """Ends of a monotone function from those of its arguments."""
    pairs = list(zip(function.arguments, moves, strict=True))
    if any(move is Monotonicity.UNKNOWN and not sums.is_constant for sums, move in pairs):
        return
    strict = inverse is not None or function.atom.cone_form in ORDERED
    for side in (0, 1):
        if inverse is not None and len(moves) == 1:
            _read_limit(search, function, moves[0], inverse, side)
        arrays, parts, is_open = [], NOTHING, strict
        for sums, move in pairs:
            sign = 1 if (side == 0) == (move is Monotonicity.INCREASING) else -1
            ends = [search.total(row_of(sums, entry, NOTHING, sign)) for entry in range(sums.size)]
            if any(isinstance(end.value, float) for end in ends):
                break
            arrays.append(np.array([sign * _rounded(end) for end in ends]).reshape(sums.shape))
            parts = parts.union(*(end.parts for end in ends))
            is_open &= sums.is_constant or all(_is_beyond(end) for end in ends)
        else:
            _take(search, function, arrays, parts, (side,), is_open)


def _is_beyond(end: End) -> bool:
    """Whether no point attains an end where it is rounded."""
    there = Fraction(_rounded(end))
    return there < end.value or (end.is_open and there == end.value)


def _rounded(end: End) -> float:
    """An end as a number; one beside 0 is 0, as it only says that 0 is not attained."""
    return 0.0 if 0 < end.value < SMALL else float(end.value)


def _read_limit(
    search: Propagation, function: Opaque, move: Monotonicity, inverse: Inverse, side: int
) -> None:
    """Ends that a strictly monotone function does not attain: what it tends to as its argument runs away.

    1 is such an end of tanh, at which its inverse is infinite.
    """
    away = np.array(np.inf if (side == 1) == (move is Monotonicity.INCREASING) else -np.inf)
    with np.errstate(all="ignore"):
        limit = float(function.atom.numbers([away], function.params))
        back = float(inverse(np, np.array(limit))) if np.isfinite(limit) else 0.0
    if limit and back == away:  # signs say what an end at 0 does
        exact = Fraction(limit)
        for number in (function.numbers.ravel() + 1).tolist():
            search.set(number, side, End(exact, NOTHING, abs(exact), is_open=True))


def _read_argument(search: Propagation, function: Opaque, inverse: Inverse) -> None:
    """Ends of the argument of an increasing function from its own: exp(x) <= 1 leaves x <= 0."""
    sums = function.arguments[0]
    if sums.shape != function.shape:
        return
    for entry, number in enumerate((function.numbers.ravel() + 1).tolist()):
        for side, end in enumerate(search.range(number)):
            if isinstance(end.value, float) or 0 < abs(end.value) < TINY:
                continue
            there = float(end.value)
            if Fraction(there) != end.value or abs(there) > 1:
                continue  # what overflows is not infinite
            with np.errstate(all="ignore"):
                value = float(inverse(np, np.array(there)))
            if value == (-np.inf if side else np.inf):
                raise ContradictionError(end.parts)
            exact = _is_exact(function, value, there)
            if not np.isfinite(value) or (not value and not exact):
                continue
            slack = ZERO if exact else ROUNDING * abs(Fraction(value))
            bound = Fraction(value) + (slack if side else -slack)
            row = row_of(sums, entry, end.parts, 1 if side else -1)
            row = row._replace(constant=row.constant + (-bound if side else bound))
            search.read_row(row._replace(strict=end.is_open))


def _is_exact(function: Opaque, argument: float, value: float) -> bool:
    """Whether a value was not rounded: that of log at 1 was not, that of tanh at 40 was."""
    if not {abs(argument), abs(value)} <= EXACT:
        return False
    with np.errstate(all="ignore"):
        return float(function.atom.numbers([np.array(argument)], function.params)) == value


def _numbers(search: Propagation, sums: Sums) -> tuple[np.ndarray, Parts] | None:
    """The values of an array all entries of which are numbers, and what they follow from."""
    found = exact_values(search, sums)
    if found is None:
        return None
    values, parts = found
    return np.array([float(each) for each in values]).reshape(sums.shape), parts


def exact_values(search: Propagation, sums: Sums) -> tuple[list[Fraction], Parts] | None:
    values, parts = list[Fraction](), NOTHING
    for entry in range(sums.size):
        least = search.total(row_of(sums, entry, NOTHING))
        most = search.total(row_of(sums, entry, NOTHING, -1))
        if isinstance(least.value, float) or least.value != -most.value:
            return None
        values.append(least.value)
        parts |= least.parts | most.parts
    return values, parts


def entry_of(sums: Sums, entry: int) -> Sums:
    own = sums.entry == entry
    places = np.zeros(int(own.sum()), dtype=np.intp)
    return Sums((), places, sums.key[own], sums.weight[own], sums.coding)


def _sign(search: Propagation, sums: Sums, entry: int) -> tuple[Sign, Parts]:
    least = search.total(row_of(sums, entry, NOTHING))
    if least.value < 0:
        return Sign.UNKNOWN, NOTHING
    return Sign.POSITIVE if least.value > 0 else Sign.NONNEGATIVE, least.parts
