"""Models whose rows and bounds leave no point at which every function is defined.

log(x) with x == 0 and 1/(x + y) with x + y <= 0, x, y >= 0 have no value at any point of their models. A
method that takes rows for satisfied within a tolerance finds points beside them, at which the
function is as large or as small as one likes: so this is looked at before any method runs. Rows are
propagated in rational numbers (`propagation`), and an argument that has to be positive is one more row.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any

import numpy as np

from hcmodel.atoms.rules import Argument, Domain, Monotonicity, Sign, sign_of
from hcmodel.certify.implied_rows import implied_row
from hcmodel.certify.propagation import (
    HIGHEST,
    LIMITS,
    LOWEST,
    NOTHING,
    ROUNDING,
    SMALLEST,
    ZERO,
    ContradictionError,
    End,
    Parts,
    Propagation,
    Row,
    fraction,
)
from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Apply, Constant, Expression, Variable
from hcmodel.expressions.model import Model
from hcmodel.expressions.sparse_data import is_sparse
from hcmodel.facts.expansion import Opaque, Symbols, expand
from hcmodel.facts.intervals import interval_sign
from hcmodel.facts.polynomials import ONE, Sums, TooLargeError
from hcmodel.records import dataclass
from hcmodel.reductions.entry_paths import Liveness, path_of
from hcmodel.reductions.forms import Forms
from hcmodel.reductions.reduction import BoundOrigin, Origin
from hcmodel.solvers.algebra.marks import some
from hcmodel.solvers.numerics import TINY

# Where an argument has to be on one side of a number: the number, and whether it may be the number.
SIDES = {
    Domain.POSITIVE: (0, True),
    Domain.NONNEGATIVE: (0, False),
    Domain.ABOVE_MINUS_ONE: (-1, True),
}
REGULAR = (Domain.INVERTIBLE, Domain.POSITIVE_DEFINITE)
# Numbers below this may be lost in powers of them: no zero that is computed from them is believed.
SMALL = 1e-60  # the fifth power is still a number
# What the sign of an argument shows of it.
SHOWN_BY_SIGN = {
    Sign.POSITIVE: (*SIDES, Domain.NONZERO),
    Sign.NEGATIVE: (Domain.NONZERO,),
    Sign.NONNEGATIVE: (Domain.NONNEGATIVE, Domain.ABOVE_MINUS_ONE),
    Sign.ZERO: (Domain.NONNEGATIVE, Domain.ABOVE_MINUS_ONE),
}


@dataclass(frozen=True, eq=False)
class Condition:
    """What a function asks of one of its arguments."""

    function: Apply
    place: int
    domain: Domain

    @property
    def argument(self) -> Expression:
        return self.function.args[self.place]

    @property
    def has_edge(self) -> bool:
        """Whether the function has a value where all its arguments are 0, as 0 log(0/0) has."""
        node = self.function
        if len(node.args) < 2 or self.domain is not Domain.POSITIVE:
            return False
        zeros = [
            each.value if isinstance(each, Constant) else np.zeros(each.shape) for each in node.args
        ]
        with np.errstate(all="ignore"):
            return bool(np.isfinite(node.atom.numbers(zeros, dict(node.params))).all())


@dataclass(frozen=True)
class Nowhere:
    """Rows and bounds that leave no point, and what a function asks for that none of them gives."""

    parts: tuple[Origin | BoundOrigin, ...]
    condition: Condition | None


def nowhere_in(forms: Forms, *, every: bool = False) -> Nowhere | None:
    """The same of a model about which a run has left doubts, its kinks as rows where it takes these.

    `every`: also where all functions are defined everywhere, as tanh(x) >= 1 holds by rounding only.
    """
    found, lift = nowhere_defined(forms.model, forms.bounds.after, every=every), forms.lift
    if found is not None or not lift.definitions:
        return found
    found = nowhere_defined(lift.after, lift.after, every=every)
    if found is None:
        return None
    parts = [lift.origin(each) if isinstance(each, Origin) else each for each in found.parts]
    own = forms.model.layout.holds
    kept = [each for each in parts if isinstance(each, Origin) or (each and own(each.variable))]
    return Nowhere(tuple(kept), None)  # its function is one of variables that were added


def nowhere_defined(
    model: Model, bounded: Model, *, first: bool = False, every: bool = False
) -> Nowhere | None:
    """Why no point of a model satisfies its rows, as far as functions at the edge of domains say it.

    `bounded` is the model with rows that are bounds in its variables' sets, and is looked at before: most
    models need nothing else. The `first` look, which every solve begins with, is at small models with
    entries or sums that rows and bounds fix, or keep from being positive.
    """
    if first and not _is_pinned(bounded):
        return None
    if not every and not _is_questionable(bounded, first):
        return None
    conditions = [each for each in _conditions(model) if _is_of_the_model(each)]
    try:
        system = _System.of(model, conditions, LIMITS.few if first else LIMITS.terms)
    except TooLargeError:
        return None
    return None if system is None else system.contradiction(deep=not first)


# ---- which models are looked at


def _conditions(model: Model) -> Iterator[Condition]:
    """What the functions of a model ask of arguments that vary."""
    for node in model.nodes:
        if isinstance(node, Apply) and not node.atom.is_defined_everywhere:
            facts = [_argument(each) for each in node.args]
            domains = node.atom.domains(facts, dict(node.params))
            for place, domain in enumerate(domains):
                if domain is not Domain.REALS and not facts[place].constant:
                    yield Condition(node, place, domain)


def _argument(expression: Expression) -> Argument:
    if isinstance(expression, Constant):
        return Argument.from_value(expression.value)
    return Argument(expression.shape, constant=not expression.variables())


def _is_pinned(model: Model) -> bool:
    """Whether a bound or a row may keep something at a number, or from being positive, by itself."""
    for variable in model.variables:
        low, high = variable.set.interval
        if some(high <= 0) or some(low == high):
            return True
    live = Liveness()
    return any(_may_pin(row, live) for row in model.constraints)


def _may_pin(row: Constraint, live: Liveness) -> bool:
    for number, other in ((row.lhs, row.rhs), (row.rhs, row.lhs)):
        if not live(number):
            value = number.value
            if value is None or is_sparse(value) or some(np.asarray(value) <= 0):
                return True
            return row.sense == "==" and path_of(other, live) is not None
    return True


def _is_questionable(model: Model, first: bool) -> bool:
    """Whether the sets and signs alone leave open that a function is defined, or a row can hold."""
    signs = _Signs()
    for condition in _conditions(model):
        if condition.domain in (*SIDES, Domain.NONZERO):
            if condition.domain not in SHOWN_BY_SIGN.get(signs[condition.argument], ()):
                return True
        elif condition.domain in REGULAR and _may_be_singular(condition.argument, model, first):
            return True
    return any(
        isinstance(number, (Constant, Variable))
        and signs[number] in (Sign.ZERO, Sign.NONPOSITIVE)
        and signs[other] is Sign.POSITIVE
        for row in model.constraints
        for number, other in ((row.lhs, row.rhs), (row.rhs, row.lhs))
    )


def _may_be_singular(matrix: Expression, model: Model, first: bool) -> bool:
    """Of matrices that are functions of variables, the first look is at those of fixed ones only."""
    if isinstance(matrix, Variable):
        return matrix.eigenvalue_bounds is None or matrix.eigenvalue_bounds[0] <= 0
    if not first:
        return True
    equalities = (row for row in model.constraints if row.sense == "==")
    fixed = {
        side for row in equalities for side in (row.lhs, row.rhs) if isinstance(side, Variable)
    }
    return fixed.issuperset(matrix.variables())


def _is_of_the_model(condition: Condition) -> bool:
    """Whether no function of the user is inside."""
    inside = topological_order([condition.argument])
    return not any(isinstance(node, Apply) and node.atom.black_box for node in inside)


class _Signs:
    """Signs by the table of atoms alone, made when they are asked for."""

    def __init__(self) -> None:
        self._known: dict[int, Sign] = {}

    def __getitem__(self, expression: Expression) -> Sign:
        if id(expression) not in self._known:
            for node in topological_order([expression]):
                if id(node) not in self._known:
                    self._known[id(node)] = self._sign(node)
        return self._known[id(expression)]

    def _sign(self, node: Expression) -> Sign:
        if isinstance(node, Variable):
            return Sign.POSITIVE if node.set.positive else interval_sign(node.set.interval)
        if not isinstance(node, Apply):
            return Sign.UNKNOWN if node.value is None else sign_of(node.value)
        facts = [
            Argument.from_value(each.value)
            if isinstance(each, Constant)
            else Argument(each.shape, self._known[id(each)])
            for each in node.args
        ]
        return node.atom.sign(facts, dict(node.params))


# ---- the rows


@dataclass(frozen=True)
class _System:
    """All rows of a model in terms, the sums that functions have conditions on, and their symbols."""

    rows: list[Row]
    asked: list[tuple[Condition, Sums]]
    symbols: Symbols
    bounds: dict[Hashable, tuple[End, End]] = field(default_factory=dict)
    factors: dict[Hashable, dict[Hashable, int]] = field(default_factory=dict)
    matrices: list[np.ndarray] = field(default_factory=list)
    """The terms of the entries of semidefinite variables."""

    @staticmethod
    def of(model: Model, conditions: Sequence[Condition], most: int) -> _System | None:
        """None where there are more terms than `most`, or none."""
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
        found, symbols = expand([*roots, *(each.argument for each in conditions)])
        if sum(sums.key.size for sums in found) > most:
            return None
        system = _System([], list(zip(conditions, found[len(roots) :], strict=True)), symbols)
        for (position, constraint), sums in zip(constraints, found, strict=False):
            sign = -1 if constraint.sense == ">=" else 1
            for entry in constraint.rows.tolist():
                place = tuple(int(i) for i in np.unravel_index(entry, constraint.shape))
                row = _row(sums, entry, frozenset([Origin(position, place)]), sign)
                system.rows.append(row._replace(equality=constraint.sense == "=="))
        for condition, sums in system.asked:
            system.rows.extend(_rows_of(condition, sums))
        for variable in model.variables:
            if variable in symbols.variables:
                system._enter(variable)
        system._enter_terms(found)
        return system

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
        """What products and functions can be by themselves."""
        coding = self.symbols.coding
        for key in np.unique(np.concatenate([sums.key for sums in found])).tolist():
            digits = [int(digit) for digit in coding.digits(np.array([key]))[0] if digit]
            if len(digits) > 1:
                self.factors[key] = {digit: digits.count(digit) for digit in digits}
            for digit in digits:
                if digit not in self.bounds:
                    self.bounds[digit] = self._sign_of(digit - 1)

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
                    yield _row(sums, entry, NOTHING, sign)

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
                self._read_functions(search)
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
                found = _exact(search, _entry_of(sums, entry))
                if found is not None and found[0] == [ZERO]:
                    raise ContradictionError(found[1] | {condition})
                _leave_zero(search, condition, sums, entry)
        elif condition.domain in REGULAR:
            found = _exact(search, sums)
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
                most = search.total(_row(sums, entry, frozenset([condition]), -1))
                least = search.total(_row(own, entry, NOTHING))
                if most.value >= 0 and least.value > 0:
                    raise ContradictionError(most.parts | least.parts)

    def _read_functions(self, search: Propagation) -> None:
        """Functions of arguments that are numbers have values, others perhaps a sign."""
        used = np.unique(np.array(list(self.bounds), dtype=np.int64)) - 1
        for function in self.symbols.functions(used):
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
            _read_ends(search, function, moves)
            if moves == (Monotonicity.INCREASING,):
                _read_argument(search, function, facts)


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
    search: Propagation, function: Opaque, arrays: Sequence[Any], parts: Parts, sides: Sequence[int]
) -> None:
    """The values of a function at some arguments as ends of its entries."""
    with np.errstate(all="ignore"):
        result = np.ravel(function.atom.numbers(arrays, function.params))
    if not np.isfinite(result).all():
        return  # it is asked what the argument has to be
    facts = [Argument.from_value(array) for array in arrays]
    lost = function.atom.sign(facts, function.params).is_strict  # a zero is an underflow then
    lost = lost or any(((array != 0) & (np.abs(array) < SMALL)).any() for array in arrays)
    for number, value in zip(function.numbers.ravel() + 1, result, strict=True):
        exact = Fraction(float(value))
        if (lost and not exact) or 0 < abs(exact) < TINY:
            continue
        slack = ROUNDING * abs(exact)
        for side in sides:
            end = exact + slack if side else exact - slack
            search.set(int(number), side, End(end, parts, abs(exact)))


def _read_ends(search: Propagation, function: Opaque, moves: Sequence[Monotonicity]) -> None:
    """Ends of a monotone function from those of its arguments."""
    if Monotonicity.UNKNOWN in moves:
        return
    for side in (0, 1):
        arrays, parts = [], NOTHING
        for sums, move in zip(function.arguments, moves, strict=True):
            sign = 1 if (side == 0) == (move is Monotonicity.INCREASING) else -1
            ends = [search.total(_row(sums, entry, NOTHING, sign)) for entry in range(sums.size)]
            if any(isinstance(end.value, float) for end in ends):
                break
            arrays.append(np.array([sign * float(end.value) for end in ends]).reshape(sums.shape))
            parts = parts.union(*(end.parts for end in ends))
        else:
            _take(search, function, arrays, parts, (side,))


def _read_argument(search: Propagation, function: Opaque, facts: Sequence[Argument]) -> None:
    """Ends of the argument of an increasing function from its own: exp(x) <= 1 leaves x <= 0."""
    inverse, sums = function.atom.inverse(facts, function.params), function.arguments[0]
    if inverse is None or sums.shape != function.shape:
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
                back = float(function.atom.numbers([np.zeros(())], function.params))
            if value == (-np.inf if side else np.inf):
                raise ContradictionError(end.parts)
            if not np.isfinite(value) or (not value and back != there):
                continue
            bound = Fraction(value) + (1 if side else -1) * ROUNDING * abs(Fraction(value))
            row = _row(sums, entry, end.parts, 1 if side else -1)
            search.read_row(row._replace(constant=row.constant + (-bound if side else bound)))


def _in_order(parts: Parts) -> list[Any]:
    """What can be left out of a conflict is tried in this order: bounds, rows, what functions ask for."""

    def rank(part: Any) -> tuple[int, int, tuple[int, ...]]:
        if isinstance(part, Origin):
            return 1, part.position, part.entry
        return (2, 0, ()) if isinstance(part, Condition) else (0, 0, part.entry)

    return sorted(parts, key=rank)


def _row(sums: Sums, entry: int, parts: Parts, sign: int = 1, shift: int = 0) -> Row:
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
        yield _row(sums, entry, frozenset([condition]), -1, -limit)._replace(strict=strict)


def _read_matrix(search: Propagation, terms: np.ndarray) -> None:
    """A row of a semidefinite matrix is 0 where its entry on the diagonal is."""
    for i in range(len(terms)):
        high = search.range(int(terms[i, i]))[1]
        if high.value == 0:
            for term, side in itertools.product(terms[i].tolist(), (0, 1)):
                search.set(term, side, high)


def _numbers(search: Propagation, sums: Sums) -> tuple[np.ndarray, Parts] | None:
    """The values of an array all entries of which are numbers, and what they follow from."""
    found = _exact(search, sums)
    if found is None:
        return None
    values, parts = found
    return np.array([float(each) for each in values]).reshape(sums.shape), parts


def _exact(search: Propagation, sums: Sums) -> tuple[list[Fraction], Parts] | None:
    values, parts = list[Fraction](), NOTHING
    for entry in range(sums.size):
        least = search.total(_row(sums, entry, NOTHING))
        most = search.total(_row(sums, entry, NOTHING, -1))
        if isinstance(least.value, float) or least.value != -most.value:
            return None
        values.append(least.value)
        parts |= least.parts | most.parts
    return values, parts


def _entry_of(sums: Sums, entry: int) -> Sums:
    own = sums.entry == entry
    places = np.zeros(int(own.sum()), dtype=np.intp)
    return Sums((), places, sums.key[own], sums.weight[own], sums.coding)


def _sign(search: Propagation, sums: Sums, entry: int) -> tuple[Sign, Parts]:
    least = search.total(_row(sums, entry, NOTHING))
    if least.value < 0:
        return Sign.UNKNOWN, NOTHING
    return Sign.POSITIVE if least.value > 0 else Sign.NONNEGATIVE, least.parts


def _leave_zero(search: Propagation, condition: Condition, sums: Sums, entry: int) -> None:
    """A single term that is not 0 and has 0 as an end ends beside it."""
    row = _row(sums, entry, NOTHING)
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
