"""Geometric programs that are written term by term: all terms, found in one walk over the graph.

A model that a loop in Python builds has a node for every x[3], every power and every product. Where it
is a geometric program of numbers (sums of terms c·x^a·y^b… that are minimised or are at most one such
term), the terms are all that has to be known of it, and other analyses need not look at its nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from hcmodel.expressions.constraint import MATRIX_SENSES, Constraint
from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.node import Apply, Constant, Expression

if TYPE_CHECKING:
    from hcmodel.atoms.atom import Atom

# Coefficient, places of the unknowns in the flat vector of a point, and their exponents.
Monomial: TypeAlias = tuple[float, list[int], list[float]]

# Nodes from which arrays of the terms pay: geometric programs of CBLIB that are loops take 0.8 of the
# calls from 36 on. Fewer are looked at as quickly, and messages show them as they are written.
LEAST_NODES = 30
# Factors of one term, written out, beyond which it is not looked at: t = x·x, t·t, … has 2^k of them.
MOST_FACTORS = 10_000


class Role(Enum):
    """What an atom does to terms; one that multiplies powers of them has a tuple of exponents instead."""

    ADDS = "adds its arguments"
    RAISES = "is its first argument to the power of the second"
    CHOOSES = "is an entry of its argument"
    OTHER = "anything else"


TIMES = (1.0, 1.0)


class Posynomials(NamedTuple):
    """The variables in order of appearance, the terms of each root of the model, and its size."""

    variables: tuple[Variable, ...]
    terms: tuple[list[Monomial], ...]
    nodes: int

    @property
    def is_large(self) -> bool:
        """Whether analyses of the model take longer than making arrays of its terms."""
        return self.nodes >= LEAST_NODES


def posynomials(objective: Expression, constraints: Iterable[Constraint]) -> Posynomials | None:
    """The terms of objective and sides; None where there are others than terms."""
    walk = _Walk()
    found = [walk.terms(objective)]
    for row in constraints:
        left, right = walk.terms(row.lhs), walk.terms(row.rhs)
        smaller, larger = (right, left) if row.sense == ">=" else (left, right)
        if not smaller or not larger or len(larger) > 1 or row.sense in MATRIX_SENSES:
            return None
        if row.sense == "==" and len(smaller) > 1:
            return None
        found += [left, right]
    if not found[0] or not walk.variables:
        return None
    terms = tuple([each for each in found if each])
    return Posynomials(tuple(walk.variables), terms, walk.visited)


class _Roles(dict["Atom", Any]):
    """What atoms do to terms, asked for once in a walk: a model has many nodes and few atoms."""

    def __missing__(self, atom: Atom) -> Any:
        role = atom.role_in_terms
        role = self[atom] = TIMES if role == TIMES else role  # to be asked for by identity
        return role


class _Walk:
    """Everything is walked through from left to right, so that variables appear in their order."""

    def __init__(self) -> None:
        self.variables: list[Variable] = []
        self.visited = 0
        self._size = 0
        self._starts: dict[int, int] = {}
        self._places: dict[int, int] = {}
        self._roles = _Roles()
        self._seen: set[int] = set()

    def terms(self, side: Expression) -> list[Monomial] | None:
        """The terms of a sum, zeros left out; None where something is not a term."""
        if side._shape:
            return None
        if type(side) is Constant and side.number is not None and side.number > 0.0:
            self.visited += 1
            return [(side.number, [], [])]
        found: list[Monomial] = []
        pending = [side]
        while pending:
            node = pending.pop()
            if type(node) is Apply and self._roles[node.atom] is Role.ADDS:
                if id(node) in self._seen:
                    return None  # sums that are shared would be written out again and again
                self._seen.add(id(node))
                self.visited += 1
                pending += node.args[::-1]
            elif type(node) is not Constant or node.number != 0.0:
                term = self._term(node)
                if term is None:
                    return None
                found.append(term)
        return found

    def _term(self, node: Expression) -> Monomial | None:
        """The product of powers that a node is, with a positive coefficient; None where it is not one.

        In loops most are numbers and powers of unknowns, multiplied from left to right.
        """
        places, roles = self._places, self._roles
        factors = []
        while type(node) is Apply and roles[node.atom] is TIMES:
            node, right = node.args
            factors.append(right)
        factors.append(node)
        visited = len(factors) - 1
        coefficient, columns, powers = 1.0, list[int](), list[float]()
        for factor in reversed(factors):
            if type(factor) is Apply and roles[factor.atom] is Role.RAISES:
                base, power = factor.args
                exponent = power.number if type(power) is Constant else None
                visited += 1
            else:
                base, exponent = factor, 1.0
            place = places.get(id(base))
            if place is not None and exponent is not None:
                columns.append(place)
                powers.append(exponent)
                visited += 1
                continue
            if type(factor) is Constant and factor.number is not None and factor.number > 0.0:
                coefficient *= factor.number
                visited += 1
                continue
            number = self._multiplied(base, exponent, columns, powers)
            if number is None:
                return None
            coefficient *= number
        self.visited += visited
        return (coefficient, columns, powers) if 0.0 < coefficient < math.inf else None

    def _multiplied(
        self, node: Expression, power: float | None, columns: list[int], powers: list[float]
    ) -> float | None:
        """The coefficient of a product to a power, whose unknowns are added; None where it is not one."""
        if power is None:
            return None
        coefficient, pending = 1.0, [(node, power)]
        while pending:
            factor, exponent = pending.pop()
            self.visited += 1
            place = self._places.get(id(factor))
            if place is not None:
                columns.append(place)
                powers.append(exponent)
            elif type(factor) is Apply and self._roles[factor.atom] is Role.RAISES:
                base, raised = factor.args
                number = raised.number if type(raised) is Constant else None
                if number is None:
                    return None
                pending.append((base, exponent * number))
            elif type(factor) is Constant:
                number = _power(factor.number, exponent)
                if number is None:
                    return None
                coefficient *= number
            else:
                inner = self._opened(factor, exponent)
                if inner is None or len(columns) > MOST_FACTORS:
                    return None
                pending += inner
        return coefficient

    def _opened(
        self, node: Expression, exponent: float
    ) -> Sequence[tuple[Expression, float]] | None:
        """The factors of a product of powers, last one first; an unknown, once it has its place.

        Arguments of a number are numbers, since atoms of these kinds work entry by entry.
        """
        if type(node) is Apply:
            role = self._roles[node.atom]
            if type(role) is tuple and len(role) == len(node.args):
                pairs = zip(node.args, role, strict=True)
                return [(each, exponent * power) for each, power in pairs][::-1]
        place = self._place(node)
        if place is None:
            return None
        self._places[id(node)] = place
        return ((node, exponent),)

    def _place(self, node: Expression) -> int | None:
        """Where an unknown stands in the flat vector; None of what is not one."""
        if isinstance(node, Variable):
            return self._start(node)
        if type(node) is not Apply or self._roles[node.atom] is not Role.CHOOSES:
            return None
        array, entries = node.args[0], node.params[0][1].entries  # type: ignore[attr-defined]
        if not isinstance(array, Variable) or len(entries) != array.ndim:
            return None
        place = 0
        for position, length in zip(entries, array._shape, strict=True):
            if type(position) is not int:
                return None
            place = place * length + position % length
        start = self._start(array)
        return None if start is None else start + place

    def _start(self, variable: Variable) -> int | None:
        """Where a variable starts; None where it has no logarithm."""
        if id(variable) not in self._starts:
            if not variable.set.has_logarithm:
                return None
            self._starts[id(variable)] = self._size
            self.variables.append(variable)
            self._size += variable.size
        return self._starts[id(variable)]


def _power(number: float | None, exponent: float) -> float | None:
    """A power of a positive number; None where it is none, or too large."""
    if number is None or number <= 0.0:
        return None
    try:
        return number if exponent == 1.0 else number**exponent
    except OverflowError:
        return None
