"""Entries that are never negative by what functions of them allow, and those that keep off 0.

Where x log x, √x or log x have a value, x is not negative: the set that methods and bounds work on is
cut there, as by a bound that is written. The slope of these has no end at 0. Such an entry moves by
factors, as one with a positive lower bound does: a step that ends on the bound would be refused, and
one that ends near it changes the slope beyond what a model of it foresees.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.atom import Atom
from hcmodel.atoms.rules import Always, Argument, Domain
from hcmodel.expressions.leaves import Apply, Constant, Expression, Parameter, Variable
from hcmodel.expressions.model import Model
from hcmodel.maps.separable import entry_codes, entry_offsets
from hcmodel.solvers.algebra.marks import some

Marks = Mapping[Variable, NDArray[np.bool_]]

NO_NEGATIVES = (Domain.POSITIVE, Domain.NONNEGATIVE)


def entries_at_0(model: Model) -> tuple[Marks, Marks]:
    """The entries that functions bound by 0, and those with a bound at 0 and an infinite slope there.

    Both are empty where there is none.
    """
    variables = model.variables
    free, at_0 = (any(each(variable) for variable in variables) for each in (_is_free, _may_be_0))
    if not free and not at_0:
        return {}, {}
    nodes = model.nodes
    known: dict[Hashable, tuple[int, ...]] = {}
    bounded = _marked(_limited_arguments(nodes) if free else [], variables)
    if not at_0 and not any((marks & _below_0(each)).any() for each, marks in bounded.items()):
        return {}, {}
    applied = [node for node in nodes if isinstance(node, Apply) and _can_be_steep(node.atom)]
    steep = _marked([each for node in applied for each in _steep_arguments(node, known)], variables)
    held = {
        variable: marks & ((variable.lower == 0.0) | (bounded[variable] & _below_0(variable)))
        for variable, marks in steep.items()
    }
    return bounded, held


def _marked(arguments: Sequence[Expression], variables: Sequence[Variable]) -> Marks:
    """Of each variable the entries that are among the arguments, as they are or times a number > 0."""
    if not arguments:
        return {variable: np.zeros(variable.shape, dtype=bool) for variable in variables}
    codes = entry_codes(arguments, variables)
    return {
        variable: np.isin(1 + start + np.arange(variable.size), codes).reshape(variable.shape)
        for variable, start in entry_offsets(variables).items()
    }


def _is_free(variable: Variable) -> bool:
    """Whether an entry of a box may be negative and positive."""
    return variable.set.is_box and some(_below_0(variable))


def _below_0(variable: Variable) -> NDArray[np.bool_]:
    return np.asarray((variable.lower < 0.0) & (variable.upper > 0.0))


def _limited_arguments(nodes: Sequence[Expression]) -> list[Expression]:
    """The arguments that may not be negative, whatever values the parameters have."""
    changing: set[int] = set()
    found: list[Expression] = []
    for node in nodes:
        inside = bool(changing) and any(id(each) in changing for each in node.args)
        if inside or isinstance(node, Parameter):
            changing.add(id(node))
        if not isinstance(node, Apply) or node.atom.is_defined_everywhere:
            continue
        if not isinstance(node.atom.domain, Always) and not _has_number(node):
            continue  # it may depend on a parameter, or differ between the entries
        domains = node.atom.domains([_known(argument) for argument in node.args], dict(node.params))
        pairs = zip(node.args, domains, strict=True)
        limited = [argument for argument, domain in pairs if domain in NO_NEGATIVES]
        found += [argument for argument in limited if id(argument) not in changing]
    return found


def _has_number(node: Apply) -> bool:
    """Whether all arguments but the first are numbers, as the exponent of a power is."""
    return all(isinstance(each, Constant) and not each.shape for each in node.args[1:])


def _may_be_0(variable: Variable) -> bool:
    """Whether an entry has the bound 0; those of positive variables move by factors anyway."""
    return not variable.set.positive and some(np.asarray(variable.lower == 0.0))


def _can_be_steep(atom: Atom) -> bool:
    rule = atom.infinite_slope
    return not isinstance(rule, Always) or bool(rule.value)


def _steep_arguments(node: Apply, known: dict[Hashable, tuple[int, ...]]) -> list[Expression]:
    """The arguments in which the slope is infinite at 0; `known` has the answers so far."""
    # models written in loops ask the same of many numbers
    numbers = [
        float(argument.value) if isinstance(argument, Constant) and not argument.shape else None
        for argument in node.args
    ]
    key = (node.atom, node.params, tuple(argument.shape for argument in node.args), *numbers)
    places = known.get(key)
    if places is None:
        arguments = [_known(argument) for argument in node.args]
        places = tuple(node.atom.infinite_slope(arguments, dict(node.params)))
        unknown = sum(argument.value is None for argument in arguments)
        if unknown == numbers.count(None):  # else a value is among the facts
            known[key] = places
    return [node.args[place] for place in places]


def _known(argument: Expression) -> Argument:
    value = None if argument.variables() else argument.value
    return Argument(argument.shape) if value is None else Argument.from_value(value)
