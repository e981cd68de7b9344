"""Normal forms of constraints: which terms stand on which side, and whether logarithms are taken.

`x*y - z <= 0` is convex in no coordinates as it stands; with the negative term moved across it reads
x*y <= z, log-convex against log-affine. Terms of unknown sign stay where they are.
"""

from __future__ import annotations

import numpy as np

from hcmodel.atoms.rules import Sign
from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.leaves import Apply, Constant, Expression
from hcmodel.expressions.sparse_data import positive_part
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.bits import AFFINE, CONCAVE, CONVEX
from hcmodel.facts.curvature import Curvatures
from hcmodel.facts.node_facts import Facts, Node
from hcmodel.records import dataclass

# A sum of more terms is not taken apart, which bounds the work: each term is an expression of its own.
MAX_TERMS = 2000


@dataclass(frozen=True)
class NormalRow:
    """A constraint in the form in which it is convex, or the best that was found.

    `left <= right`, or `left == right` with `equality`; `>=` is turned, and left - right equals the
    difference of the sides so turned. In the form "difference" the row is left - right, in the form
    "log" it is log(left) - log(right), and both sides are proven to be positive.
    """

    left: Expression
    right: Expression
    equality: bool
    form: str
    straight: bool = False
    """Whether it is known to be affine whatever the coordinates are."""


def candidates(curvatures: Curvatures, constraint: Constraint) -> tuple[NormalRow, ...]:
    """The forms to try, the preferred one first; `curvatures` are those without logarithms."""
    facts = curvatures.facts
    left, right = constraint.lhs, constraint.rhs
    if constraint.sense == ">=":
        left, right = right, left
    equality = constraint.sense == "=="
    written = NormalRow(left, right, equality, "difference")
    if _is_straight(curvatures, written):
        return (written,)
    arrangements = [(left, right)]
    moved = _moved(facts, left, right)
    if moved is not None:
        arrangements.insert(0, moved)
    rows = [
        NormalRow(*sides, equality, "log")
        for sides in arrangements
        if all(facts[side].sign is Sign.POSITIVE for side in sides)
    ]
    return (*rows, written)


def _is_straight(curvatures: Curvatures, row: NormalRow) -> bool:
    """Whether the row is affine whatever the coordinates are, so that nothing else need be tried."""
    facts = curvatures.facts
    nodes = facts[row.left], facts[row.right]
    curvatures.extend()
    variables = nodes[0].variables | nodes[1].variables
    return not variables & facts.loggable and all(
        curvatures.channels[node.number][0] == AFFINE for node in nodes
    )


def straight_row(constraint: Constraint) -> NormalRow:
    """The form of a row that is known to be affine in variables that cannot be in logarithms."""
    left, right = constraint.lhs, constraint.rhs
    if constraint.sense == ">=":
        left, right = right, left
    return NormalRow(left, right, constraint.sense == "==", "difference", straight=True)


def is_affine(row: NormalRow, curvatures: Curvatures) -> bool:
    """Whether both sides of a row as it stands are affine in the coordinates."""
    if row.straight or row.form == "log":
        return row.straight
    facts, channels = curvatures.facts, curvatures.channels
    return all(channels[facts.add(side)][0] == AFFINE for side in (row.left, row.right))


def holds(row: NormalRow, curvatures: Curvatures) -> bool:
    """Whether the row is convex in this form, or affine for an equality."""
    if row.straight:
        return True
    channel = 1 if row.form == "log" else 0
    facts, channels = curvatures.facts, curvatures.channels
    left = channels[facts.add(row.left)][channel]
    right = channels[facts.add(row.right)][channel]
    if row.equality:
        return left == AFFINE and right == AFFINE
    return bool(left & CONVEX) and bool(right & CONCAVE)


def _moved(
    facts: Facts, left: Expression, right: Expression
) -> tuple[Expression, Expression] | None:
    """Both sides with their negative terms moved across; None where nothing moves."""
    kept: tuple[list[Expression], list[Expression]] = ([], [])
    moves = False
    for side, expression in enumerate((left, right)):
        terms = _terms(facts, expression)
        for negated, term in terms:
            sign = facts[term].sign
            if negated:
                sign = sign.negated
            crosses = sign.is_nonpositive and sign is not Sign.ZERO
            if sign is Sign.ZERO:
                moves |= len(terms) > 1
                continue
            if crosses != negated:
                term = -term
            kept[side ^ crosses].append(term)
            moves |= crosses
    if not moves or not all(kept):
        return None
    return _total(kept[0]), _total(kept[1])


def _total(terms: list[Expression]) -> Expression:
    """The terms added up, two by two, so that long sums stay shallow."""
    while len(terms) > 1:
        pairs = [a + b for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + ([terms[-1]] if len(terms) % 2 else [])
    return terms[0]


def _terms(facts: Facts, expression: Expression) -> list[tuple[bool, Expression]]:
    """The terms of a sum, each with whether it is subtracted; those of one sign are kept whole."""
    found: list[tuple[bool, Expression]] = []
    pending = [(False, expression)]
    while pending:
        negated, term = pending.pop()
        node = facts[term]
        parts = None
        if node.sign is Sign.UNKNOWN and len(found) + len(pending) < MAX_TERMS:
            parts = _parts(facts, node, term)
        if parts is None:
            found.append((negated, term))
        else:
            pending.extend((negated != flips, part) for flips, part in reversed(parts))
    return found


def _parts(facts: Facts, node: Node, term: Expression) -> list[tuple[bool, Expression]] | None:
    if not isinstance(term, Apply) or node.constant:
        return None
    atom = term.atom
    if atom.summed:
        signs = atom.signs(len(term.args))
        return [(sign < 0, argument) for sign, argument in zip(signs, term.args, strict=True)]
    varying = [i for i, argument in enumerate(term.args) if not facts[argument].constant]
    if len(varying) != 1 or varying[0] not in atom.linear_in:
        return None  # else it is linear in one argument, so that a sum can be drawn out of it
    place = varying[0]
    inner = term.args[place]
    parts = _parts(facts, facts[inner], inner) if facts[inner].sign is Sign.UNKNOWN else None
    if parts is not None:
        return [(flips, _applied(term, place, part)) for flips, part in parts]
    if len(term.args) != 2 or not atom.is_multilinear:
        return None
    return _by_sign_of_factor(facts, term, 1 - place)


def _applied(term: Apply, place: int, part: Expression) -> Expression:
    """The term's atom applied to one part of its argument, which may lack the argument's shape."""
    inner = term.args[place]
    if part.shape == () and inner.shape != () and len(term.args) == 1:
        # a linear function of equal entries
        weights = np.asarray(term.atom.function(np, np.ones(inner.shape), **dict(term.params)))
        return _filled(part if np.all(weights == 1) else part * _shortened(weights), term.shape)
    return _with_argument(term, place, _filled(part, inner.shape))


def _shortened(weights: np.ndarray) -> np.ndarray | float:
    """The number that all weights are, or the weights themselves."""
    same = weights.size and np.all(weights == weights.flat[0])
    return float(weights.flat[0]) if same else weights


def _filled(part: Expression, shape: tuple[int, ...]) -> Expression:
    return part if part.shape == shape else ATOMS["broadcast_to"](part, shape)


def _with_argument(term: Apply, place: int, argument: Expression) -> Expression:
    arguments = (*term.args[:place], argument, *term.args[place + 1 :])
    return Apply(term.atom, arguments, term.params, term.shape)


def _by_sign_of_factor(
    facts: Facts, term: Apply, place: int
) -> list[tuple[bool, Expression]] | None:
    """A product with a constant of mixed signs as the part with its positive entries and the rest."""
    factor = term.args[place]
    if facts[factor].sign is not Sign.UNKNOWN:
        return None
    if isinstance(factor, Constant):
        up: Expression = Constant(positive_part(factor.value))
        down: Expression = Constant(positive_part(-factor.value))
    else:
        up, down = ATOMS["maximum"](factor, 0.0), ATOMS["maximum"](-factor, 0.0)
    return [(False, _with_argument(term, place, up)), (True, _with_argument(term, place, down))]
