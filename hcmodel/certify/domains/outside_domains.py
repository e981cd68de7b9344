"""Models whose rows and bounds leave no point at which every function is defined.

Rows are propagated in rational numbers (`propagation`), and an argument that has to be positive is one
more row. `nowhere` says when this is asked.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any

import numpy as np

from hcmodel.atoms.rules import Domain
from hcmodel.certify.domains.derived_rows import SPARE, following
from hcmodel.certify.domains.domain_conditions import (
    REGULAR,
    SIDES,
    Condition,
)
from hcmodel.certify.domains.function_ends import entry_of, exact_values, read_functions, row_of
from hcmodel.certify.domains.implied_rows import implied_row
from hcmodel.certify.domains.nowhere import Nowhere
from hcmodel.certify.domains.propagation import (
    HIGHEST,
    LIMITS,
    LOWEST,
    NOTHING,
    SMALLEST,
    ZERO,
    ContradictionError,
    End,
    Parts,
    Propagation,
    Row,
    fraction,
)
from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.model import Model
from hcmodel.facts.expansion import expand
from hcmodel.facts.polynomials import Sums, TooLargeError
from hcmodel.facts.symbols import Symbols
from hcmodel.records import dataclass
from hcmodel.reductions.reduction import BoundOrigin, Origin

# ---- the rows


@dataclass(frozen=True)
class _Rewritten:
    """A row that follows from another one where some sums are positive and some are not negative."""

    row: Row
    positive: list[Row]
    nonnegative: list[Row]
    rounded: bool

    def read(self, search: Propagation) -> None:
        """Take over what it says where the signs are known; of rounded weights only if it cannot hold."""
        parts = self.row.parts
        for each in self.positive:
            least = search.total(each)
            if not (least.value > 0 or (least.is_open and least.value == 0)):
                return
            parts |= least.parts
        for each in self.nonnegative:
            least = search.total(each)
            if least.value < 0:
                return
            parts |= least.parts
        if self.rounded:
            search.check(self.row._replace(parts=parts))
        else:
            search.read_row(self.row._replace(parts=parts))


@dataclass(frozen=True)
class System:
    """All rows of a model in terms, the sums that functions have conditions on, and their symbols."""

    rows: list[Row]
    asked: list[tuple[Condition, Sums]]
    symbols: Symbols
    bounds: dict[Hashable, tuple[End, End]] = field(default_factory=dict)
    factors: dict[Hashable, dict[Hashable, int]] = field(default_factory=dict)
    matrices: list[np.ndarray] = field(default_factory=list)
    """The terms of the entries of semidefinite variables."""
    rewritten: list[_Rewritten] = field(default_factory=list)

    @staticmethod
    def of(model: Model, conditions: Sequence[Condition], *, first: bool) -> System | None:
        """None where there are too many terms, or none; a `first` look takes fewer, and no new rows."""
        most, spare = (LIMITS.few, 0) if first else (LIMITS.terms, SPARE)  # symbols for new rows
        try:
            return System._of(model, conditions, most, spare)
        except TooLargeError:
            return None

    @staticmethod
    def _of(model: Model, conditions: Sequence[Condition], most: int, spare: int) -> System | None:
        constraints = [
            (position, each)
            for position, each in enumerate(model.constraints)
            if not each.is_semidefinite
        ]
        size = sum(each.size for _, each in constraints)
        size += sum(each.argument.size for each in conditions)
        if not 0 < size <= most:
            return None
        roots = [each.lhs - each.rhs for _, each in constraints]
        found, symbols = expand([*roots, *(each.argument for each in conditions)], spare)
        if sum(sums.key.size for sums in found) > most:
            return None
        system = System([], list(zip(conditions, found[len(roots) :], strict=True)), symbols)
        new = list[list[Sums]]()
        for (position, constraint), sums in zip(constraints, found, strict=False):
            sign = -1 if constraint.sense == ">=" else 1
            for entry in constraint.rows.tolist():
                place = tuple(int(i) for i in np.unravel_index(entry, constraint.shape))
                row = row_of(sums, entry, frozenset([Origin(position, place)]), sign)
                system.rows.append(row._replace(equality=constraint.sense == "=="))
                if spare:
                    signs = (1, -1) if constraint.sense == "==" else (sign,)
                    new += [
                        system._rewrite(entry_of(sums, entry).scaled(each), row.parts)
                        for each in signs
                    ]
        for condition, sums in system.asked:
            system.rows.extend(_rows_of(condition, sums))
        for variable in model.variables:
            if variable in symbols.variables:
                system._enter(variable)
        system._enter_terms([*found, *itertools.chain.from_iterable(new)])
        return system

    def _rewrite(self, sums: Sums, parts: Parts) -> list[Sums]:
        """Take over what follows from a scalar that is not positive; the sums that it is written with."""
        used = list[Sums]()
        for each in following(sums, self.symbols):
            positive, nonnegative = (
                [row_of(one, 0, NOTHING) for one in group]
                for group in (each.positive, each.nonnegative)
            )
            row = row_of(each.sums, 0, parts)
            self.rewritten.append(_Rewritten(row, positive, nonnegative, each.rounded))
            used += [each.sums, *each.positive, *each.nonnegative]
        return used

    def _enter(self, variable: Variable) -> None:
        """The bounds of the entries of a variable, and what its set asks of them together."""
        terms = self.symbols.of_variable(variable) + 1
        low, high = (np.broadcast_to(end, variable.shape) for end in variable.set.interval)
        together = BoundOrigin(variable, "set")
        eigenvalues = variable.eigenvalue_bounds
        for place in np.ndindex(variable.shape):
            sides = [BoundOrigin(variable, side, place) for side in ("lower", "upper")]
            ends = [fraction(float(end[place])) for end in (low, high)]
            if not variable.set.is_box and not variable.set.has_bounds:
                sides = [together, together]
            if variable.set.positive:
                ends[0] = max(ends[0], SMALLEST)
            if eigenvalues is not None:
                ends = [fraction(each) for each in eigenvalues] if place[0] == place[1] else ends
            lower, upper = (
                default if isinstance(end, float) else End(end, frozenset([side]), abs(end))
                for end, side, default in zip(ends, sides, (LOWEST, HIGHEST), strict=True)
            )
            self.bounds[int(terms[place])] = lower, upper
        if variable.set.is_distribution:
            for each in terms.reshape(-1, variable.shape[-1]).tolist():
                ones = [(term, Fraction(1)) for term in each]
                own = frozenset([together])
                self.rows.append(Row(ones, Fraction(-1), own, equality=True))
        if eigenvalues is not None and eigenvalues[0] >= 0:
            self.matrices.append(terms)

    def _enter_terms(self, found: Sequence[Sums]) -> None:
        """What products and functions can be by themselves, and those inside of functions."""
        coding = self.symbols.coding
        while found:
            new = set[int]()
            for key in np.unique(np.concatenate([sums.key for sums in found])).tolist():
                digits = [int(digit) for digit in coding.digits(np.array([key]))[0] if digit]
                if len(digits) > 1:
                    self.factors[key] = {digit: digits.count(digit) for digit in digits}
                new.update(digit for digit in digits if digit not in self.bounds)
            for digit in new:
                self.bounds[digit] = self._sign_of(digit - 1)
            functions = self.symbols.functions(np.array(sorted(new), dtype=np.int64) - 1)
            found = [sums for function in functions for sums in function.arguments]

    def _sign_of(self, symbol: int) -> tuple[End, End]:
        """The ends of an entry of a function: its sign is all that is known."""
        low, high = self.symbols.lower_of(symbol), self.symbols.upper_of(symbol)
        if low > 0:
            return End(SMALLEST), HIGHEST
        if high < 0:
            return LOWEST, End(-SMALLEST)
        return End(fraction(low)), End(fraction(high))

    # ---- contradictions

    def contradiction(self, *, deep: bool) -> Nowhere | None:
        """A conflict none of whose parts can be left out of this propagation.

        A `deep` look is also at sums of rows, which linear programs find.
        """
        search, parts = self._tried(None)
        if parts is None and deep:
            implied = [
                row for form in self._forms() if (row := implied_row(search, self.rows, form))
            ]
            self.rows.extend(implied)
            parts = self._tried(None)[1] if implied else None
        if parts is None:
            return None
        for part in _in_order(parts):
            fewer = self._tried(parts - {part})[1]
            parts = parts if fewer is None else fewer
        asked = [part for part in parts if isinstance(part, Condition)]
        rows = [part for part in _in_order(parts) if not isinstance(part, Condition)]
        return Nowhere(tuple(rows), asked[0] if asked else None)

    def _forms(self) -> Iterator[Row]:
        """What is not to be 0 or negative, and, where it must not be 0, not positive."""
        signs = {Domain.NONZERO: (1, -1), Domain.POSITIVE: (-1,), Domain.ABOVE_MINUS_ONE: (-1,)}
        for condition, sums in self.asked:
            for sign in signs.get(condition.domain, ()):
                for entry in range(sums.size):
                    yield row_of(sums, entry, NOTHING, sign)

    def _tried(self, allowed: Parts | None) -> tuple[Propagation, Parts | None]:
        """The parts of a contradiction among some of them; None where none is found."""
        rows = [row for row in self.rows if allowed is None or row.parts <= allowed]
        ends = {
            term: tuple(
                end if allowed is None or end.parts <= allowed else free
                for end, free in zip(pair, (LOWEST, HIGHEST), strict=True)
            )
            for term, pair in self.bounds.items()
        }
        search = Propagation(ends, self.factors)  # type: ignore[arg-type]
        try:
            search.enter(rows)
            for _ in range(LIMITS.passes):
                search.changed = False
                search.read()
                for terms in self.matrices:
                    _read_matrix(search, terms)
                read_functions(search, self.symbols, self.bounds)
                for each in self.rewritten:
                    if allowed is None or each.row.parts <= allowed:
                        each.read(search)
                for condition, sums in self.asked:
                    if allowed is None or condition in allowed:
                        self._check(search, condition, sums)
                if not search.changed:
                    break
        except ContradictionError as found:
            return search, found.parts if allowed is None else found.parts & allowed
        return search, None

    def _check(self, search: Propagation, condition: Condition, sums: Sums) -> None:
        """`ContradictionError` where an argument that must not be 0, or be singular, is so."""
        if condition.domain is Domain.NONZERO:
            for entry in range(sums.size):
                found = exact_values(search, entry_of(sums, entry))
                if found is not None and found[0] == [ZERO]:
                    raise ContradictionError(found[1] | {condition})
                _leave_zero(search, condition, sums, entry)
        elif condition.domain in REGULAR:
            found = exact_values(search, sums)
            if found is not None and _is_singular(found[0], condition.domain):
                raise ContradictionError(found[1] | {condition})
        elif condition.has_edge:
            self._check_edge(search, condition, sums)

    def _check_edge(self, search: Propagation, condition: Condition, sums: Sums) -> None:
        """0 log(0/0) is defined, 1 log(1/0) is not."""
        for other, own in self.asked:
            if other.function is not condition.function or other is condition:
                continue
            for entry in range(sums.size if own.shape == sums.shape else 0):
                most = search.total(row_of(sums, entry, frozenset([condition]), -1))
                least = search.total(row_of(own, entry, NOTHING))
                if most.value >= 0 and least.value > 0:
                    raise ContradictionError(most.parts | least.parts)


def _in_order(parts: Parts) -> list[Any]:
    """What can be left out of a conflict is tried in this order: bounds, rows, what functions ask for."""

    def rank(part: Any) -> tuple[int, int, tuple[int, ...]]:
        if isinstance(part, Origin):
            return 1, part.position, part.entry
        return (2, 0, ()) if isinstance(part, Condition) else (0, 0, part.entry)

    return sorted(parts, key=rank)


def _rows_of(condition: Condition, sums: Sums) -> Iterator[Row]:
    """An argument that has to lie above a number is a row; of a definite matrix, its diagonal."""
    entries: Sequence[int] = range(sums.size)
    limit, strict = SIDES.get(condition.domain, (0, True))
    if condition.domain is Domain.POSITIVE_DEFINITE:
        entries = range(0, sums.size, sums.shape[-1] + 1)
    elif condition.domain not in SIDES:
        return
    strict = strict and not condition.has_edge
    for entry in entries:
        yield row_of(sums, entry, frozenset([condition]), -1, -limit)._replace(strict=strict)


def _read_matrix(search: Propagation, terms: np.ndarray) -> None:
    """A row of a semidefinite matrix is 0 where its entry on the diagonal is."""
    for i in range(len(terms)):
        high = search.range(int(terms[i, i]))[1]
        if high.value == 0:
            for term, side in itertools.product(terms[i].tolist(), (0, 1)):
                search.set(term, side, high)


def _leave_zero(search: Propagation, condition: Condition, sums: Sums, entry: int) -> None:
    """A single term that is not 0 and has 0 as an end ends beside it."""
    row = row_of(sums, entry, NOTHING)
    if len(row.terms) != 1 or row.constant:
        return
    term, _ = row.terms[0]
    for side, end in enumerate(search.range(term)):
        if end.value == 0:
            value = -SMALLEST if side else SMALLEST
            search.set(term, side, End(value, end.parts | {condition}))


def _is_singular(values: Sequence[Fraction], domain: Domain) -> bool:
    """By elimination without rounding; whether a pivot is not positive, where all have to be."""
    size = int(len(values) ** 0.5)
    rows = [list(values[size * i : size * (i + 1)]) for i in range(size)]
    for column in range(size):
        chosen = column
        if domain is Domain.INVERTIBLE:
            pivots = [i for i in range(column, size) if rows[i][column]]
            if not pivots:
                return True
            chosen = pivots[0]
        rows[column], rows[chosen] = rows[chosen], rows[column]
        pivot = rows[column][column]
        if pivot <= 0 and domain is not Domain.INVERTIBLE:
            return True
        for row in rows[column + 1 :]:
            share = row[column] / pivot
            if share:
                pairs = zip(row[column:], rows[column][column:], strict=True)
                row[column:] = [one - share * other for one, other in pairs]
    return False
