"""What the functions of a model ask of their arguments, and which models are worth a closer look."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hcmodel.atoms.rules import Argument, Domain, Sign, sign_of
from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Apply, Constant, Expression, Variable
from hcmodel.expressions.model import Model
from hcmodel.expressions.sparse_data import is_sparse
from hcmodel.facts.intervals import interval_sign
from hcmodel.records import dataclass
from hcmodel.reductions.entry_paths import Liveness, path_of
from hcmodel.solvers.algebra.marks import some

# Where an argument has to be on one side of a number: the number, and whether it may be the number.
SIDES = {
    Domain.POSITIVE: (0, True),
    Domain.NONNEGATIVE: (0, False),
    Domain.ABOVE_MINUS_ONE: (-1, True),
}
REGULAR = (Domain.INVERTIBLE, Domain.POSITIVE_DEFINITE)
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


def conditions_of(model: Model) -> Iterator[Condition]:
    """What the functions of a model ask of arguments that vary."""
    for node in model.nodes:
        if isinstance(node, Apply) and not node.atom.is_defined_everywhere:
            facts = [_argument(each) for each in node.args]
            domains = node.atom.domains(facts, dict(node.params))
            for place, domain in enumerate(domains):
                if domain is not Domain.REALS and not facts[place].constant:
                    yield Condition(node, place, domain)


def _argument(expression: Expression) -> Argument:
    """What is known at the values that parameters have now: an exponent decides what its base may be."""
    value = None if expression.variables() else expression.value
    return Argument(expression.shape) if value is None else Argument.from_value(value)


def is_pinned(model: Model) -> bool:
    """Whether a bound or a row may keep something at a number, or from being positive, by itself."""
    for variable in model.variables:
        low, high = variable.set.interval
        if some(high <= 0) or some(low == high):
            return True
    live = Liveness()
    return any(_may_pin(row, live) for row in model.constraints)


def _may_pin(row: Constraint, live: Liveness) -> bool:
    for number, other in ((row.rhs, row.lhs), (row.lhs, row.rhs)):
        if not live(number):
            value = number.value
            if value is None or is_sparse(value) or some(np.asarray(value) <= 0):
                return True
            return row.sense == "==" and path_of(other, live) is not None
    return True


def is_questionable(model: Model, first: bool) -> bool:
    """Whether the sets and signs alone leave open that a function is defined, or a row can hold."""
    signs = _Signs()
    for condition in conditions_of(model):
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


def is_of_the_model(condition: Condition) -> bool:
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
