"""Sums of terms as Python lists, for the steps of models that are written number by number.

Such a model has a step for each x[3], each power and each product. Arrays with one entry would take ten
times as long; `stacked` makes arrays of them where they meet in a sum or become roots.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from hcmodel.atoms.atom import Atom
from hcmodel.atoms.rules import Always, Argument, Dependence
from hcmodel.engines.terms import MONOMIAL, NUMBER, Terms
from hcmodel.expressions.graph import Step

Powers: TypeAlias = tuple[tuple[int, float], ...]
Term: TypeAlias = tuple[float, int, Powers]  # weight, kind, unknowns with their exponents
# None where nothing is known of the number.
Scalar: TypeAlias = "list[Term] | None"

ELEMENTWISE = Always(Dependence.ELEMENTWISE)


def entry(terms: Terms, step: Step) -> Scalar:
    """The one entry of an array that a movement chooses."""
    assert step.atom is not None
    place = int(step.atom.function(np, terms.numbers, **step.params)) - 1
    if place < 0:
        return []
    return None if terms.unknown[place] else _at(terms, place)


def whole(terms: Terms) -> Scalar:
    """An array with one entry as a number."""
    return _at(terms, 0)


def _at(terms: Terms, place: int) -> list[Term]:
    weights, kinds, columns, powers = terms.listed
    first, inner = terms.starts
    found: list[Term] = []
    for number in range(first[place], first[place + 1]):
        own = range(inner[number], inner[number + 1])
        found.append((weights[number], kinds[number], tuple((columns[i], powers[i]) for i in own)))
    return found


def applied(step: Step, arguments: Sequence[Scalar | float]) -> Scalar:
    """A sum or a product of powers of numbers; None for anything else."""
    atom = step.atom
    assert atom is not None
    if atom.summed:
        return added(atom.signs(len(arguments)), arguments)
    if atom.dependence != ELEMENTWISE:
        return None
    exponents = _exponents(atom, step, arguments)
    if exponents is None or any(not isinstance(a, float) for a in arguments[len(exponents) :]):
        return None
    factors = [_power(_listed(a), power) for a, power in zip(arguments, exponents, strict=False)]
    return functools.reduce(_times, factors)


def added(signs: Sequence[int], arguments: Sequence[Scalar | float]) -> Scalar:
    """The sum with these signs."""
    total: list[Term] = []
    for argument, sign in zip(arguments, signs, strict=True):
        terms = _listed(argument)
        if terms is None:
            return None
        total += terms if sign == 1 else [(sign * w, kind, powers) for w, kind, powers in terms]
    return total


def _listed(argument: Scalar | float) -> Scalar:
    if isinstance(argument, float):
        return [(argument, NUMBER, ())] if argument != 0 else []
    return argument


def _exponents(
    atom: Atom, step: Step, arguments: Sequence[Scalar | float]
) -> tuple[float, ...] | None:
    rule = atom.exponents
    if isinstance(rule, Always):
        found = rule.value
    else:
        facts = [
            Argument((), constant=True, value=np.array(each))
            if isinstance(each, float)
            else Argument(())
            for each in arguments
        ]
        found = rule(facts, step.params)
    if found is None:
        return None
    powers = tuple([each for each in found if isinstance(each, float)])
    return powers if len(powers) == len(found) else None


def _power(base: Scalar, exponent: float) -> Scalar:
    """Known for one positive term, and for a number that is not 0 to the power −1."""
    if base is None or exponent == 1:
        return base
    if len(base) != 1:
        return None
    weight, kind, powers = base[0]
    if kind == NUMBER and exponent == -1:
        return [(1.0 / weight, NUMBER, ())]
    if weight <= 0 or kind > MONOMIAL:
        return None
    if exponent == 0:
        return [(1.0, NUMBER, ())]
    try:
        raised = weight**exponent
    except OverflowError:
        raised = float("inf")
    if raised == 0 or math.isinf(raised):
        return None  # the term would be lost
    return [(raised, kind, tuple([(column, exponent * power) for column, power in powers]))]


def _times(one: Scalar, two: Scalar) -> Scalar:
    """Known where one factor has one term at most."""
    if one is None or two is None or (len(one) > 1 and len(two) > 1):
        return None
    found: list[Term] = []
    for weight, kind, powers in one:
        for other, its_kind, its_powers in two:
            if kind and its_kind and (kind != MONOMIAL or its_kind != MONOMIAL):
                return None
            if weight and other and (not weight * other or math.isinf(weight * other)):
                return None  # the term would be lost
            found.append((weight * other, max(kind, its_kind), powers + its_powers))
    return found


def stacked(scalars: Sequence[Scalar]) -> Terms:
    """Numbers as a vector."""
    known = [scalar or [] for scalar in scalars]
    terms = [term for scalar in known for term in scalar]
    powers = [power for term in terms for power in term[2]]
    return Terms(
        (len(known),),
        np.arange(len(known)).repeat([len(scalar) for scalar in known]),
        np.array([term[0] for term in terms], dtype=float),
        np.array([term[1] for term in terms], dtype=np.int8),
        np.array([len(term[2]) for term in terms], dtype=np.intp),
        np.array([column for column, _ in powers], dtype=np.intp),
        np.array([power for _, power in powers], dtype=float),
        np.array([scalar is None for scalar in scalars], dtype=bool),
    )
