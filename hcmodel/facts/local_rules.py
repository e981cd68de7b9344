"""The atom table's answers at one node, as bits ready to compose.

The logarithmic channel speaks of log |a| for a of one sign, so that -x*y and 1/(-x) lose nothing;
for a > 0 it is the table's own. Sums whose terms have one sign are log-sum-exps; a difference of
known sign is log-concave.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hcmodel.atoms.atom import Atom
from hcmodel.atoms.rules import Argument, Domain, MatrixKind, Monotonicity, Sign
from hcmodel.expressions.sparse_data import count_nonzero
from hcmodel.facts.answers import Answers
from hcmodel.facts.bits import AFFINE, CONCAVE, CONVEX, OF_CURVATURE, PASSING, UNKNOWN, Passing
from hcmodel.records import dataclass

if TYPE_CHECKING:
    from hcmodel.facts.node_facts import Node

INCREASING, DECREASING = PASSING[Monotonicity.INCREASING], PASSING[Monotonicity.DECREASING]


@dataclass(frozen=True, slots=True)
class LocalRule:
    """Curvatures of an atom in its varying arguments, and what their domains ask of them."""

    arguments: tuple[int, ...]
    needs: tuple[int, ...]  # the curvature without which the domain might not be convex
    passing: tuple[Passing, ...]
    plain: int
    plain_from_log: int
    log_from_plain: int
    log: int
    log_passing: tuple[Passing, ...]


def local_rule(
    atom: Atom,
    params: dict[str, Any],
    nodes: Sequence[Node],
    answers: Answers,
    sign: Sign,
    supported: bool,
) -> LocalRule | None:
    """The rule at a node with these arguments; None where the domain admits nothing."""
    # one loop without functions of its own: a rule is made for each node of each search
    log = UNKNOWN
    log_moves: Sequence[Monotonicity] | None = None
    if supported and all(node.supported for node in _logarithmic(nodes, answers)):
        log, log_moves = _log_rule(atom, params, nodes, answers, sign)
    arguments, needs = list[int](), list[int]()
    passing, log_passing = list[Passing](), list[Passing]()
    positive = True
    for i, node in enumerate(nodes):
        if node.constant:
            continue
        domain = answers.domains[i]
        need = UNKNOWN if domain is Domain.REALS else _needed(node, domain)
        if need is None:
            return None
        arguments.append(node.number)
        needs.append(need)
        passing.append(PASSING[answers.moves[i]])
        log_move = Monotonicity.UNKNOWN if log_moves is None else log_moves[i]
        log_passing.append(PASSING[log_move])
        positive = positive and node.sign is Sign.POSITIVE
    return LocalRule(
        arguments=tuple(arguments),
        needs=tuple(needs),
        passing=tuple(passing),
        plain=OF_CURVATURE[answers.curvature],
        plain_from_log=OF_CURVATURE[answers.log_to_plain] if positive else UNKNOWN,
        log_from_plain=OF_CURVATURE[answers.plain_to_log] if sign is Sign.POSITIVE else UNKNOWN,
        log=log,
        log_passing=tuple(log_passing),
    )


def _needed(node: Node, domain: Domain) -> int | None:
    """What makes the part of the space where the argument lies in the domain convex; None: nothing."""
    sign = node.sign
    if domain is Domain.REALS or node.constant:
        return UNKNOWN
    if domain is Domain.POSITIVE:
        return UNKNOWN if sign is Sign.POSITIVE else CONCAVE
    if domain is Domain.NONNEGATIVE:
        return UNKNOWN if sign.is_nonnegative else CONCAVE
    if domain is Domain.ABOVE_MINUS_ONE:
        return UNKNOWN if float(np.min(node.interval[0], initial=0.0)) > -1 else CONCAVE
    if domain is Domain.NONZERO:
        if sign.is_strict:
            return UNKNOWN
        if sign is Sign.NONNEGATIVE:
            return CONCAVE
        return CONVEX if sign is Sign.NONPOSITIVE else None
    if domain is Domain.CONTRACTING:
        # convex where the logarithms of the entries are, as the spectral radius is log-convex
        return UNKNOWN if sign.is_nonnegative else None
    if domain is Domain.INVERTIBLE and node.definiteness >= MatrixKind.SEMIDEFINITE:
        return AFFINE
    if domain is Domain.POSITIVE_DEFINITE and node.definiteness >= MatrixKind.SYMMETRIC:
        return AFFINE
    return None


def is_inside(node: Node, domain: Domain) -> bool:
    """Whether an argument is known to lie in a domain at every point of the variables' sets."""
    if domain is Domain.CONTRACTING:  # signs do not show it
        return False
    return node.known or _needed(node, domain) == UNKNOWN


def _logarithmic(nodes: Sequence[Node], answers: Answers) -> Sequence[Node]:
    """The arguments that are seen through their logarithm: of a power, not the exponent."""
    return nodes if answers.exponents is None else nodes[: len(answers.exponents)]


def is_supported(
    atom: Atom, params: dict[str, Any], nodes: Sequence[Node], answers: Answers, sign: Sign
) -> bool:
    """Whether each entry is 0 everywhere, or strictly of the node's sign everywhere."""
    if sign.is_strict:
        return True
    inner = _logarithmic(nodes, answers)
    if sign is Sign.UNKNOWN or not all(node.supported for node in inner):
        return False
    if atom.summed:
        signs = _term_signs(atom, nodes)
        return all(each.is_nonnegative for each in signs) or all(
            each.is_nonpositive for each in signs
        )
    if answers.exponents is not None:
        return all(
            (exponent is not None and bool(np.all(exponent > 0))) or node.sign.is_strict
            for exponent, node in zip(answers.exponents, inner, strict=True)
        )
    return atom.keeps_support(answers.facts, params) or _acts_on_sizes(atom, params, answers)


def _acts_on_sizes(atom: Atom, params: dict[str, Any], answers: Answers) -> bool:
    """Whether |f(a, b, …)| = f(|a|, |b|, …) for arguments of one sign each."""
    if atom.magnitudes or atom.moves_entries:
        return True
    if answers.exponents is not None:
        return all(
            exponent is not None and bool(np.all(exponent == np.rint(exponent)))
            for exponent in answers.exponents
        )
    return atom.adds_products([fact.shape for fact in answers.facts], params)


def _log_rule(
    atom: Atom,
    params: dict[str, Any],
    nodes: Sequence[Node],
    answers: Answers,
    sign: Sign,
) -> tuple[int, Sequence[Monotonicity]]:
    """Curvature and monotonicity of log |f| in the log |a| of its arguments."""
    if atom.summed:
        return _log_sum(_term_signs(atom, nodes), sign)
    inner = _logarithmic(nodes, answers)
    if all(node.sign.is_nonnegative for node in inner) and sign.is_nonnegative:
        facts: Sequence[Argument] = answers.facts
        moves: Sequence[Monotonicity] = answers.moves
    else:
        if not _acts_on_sizes(atom, params, answers):
            return UNKNOWN, [Monotonicity.UNKNOWN] * len(nodes)
        count = len(inner)
        facts = [*map(_size, answers.facts[:count]), *answers.facts[count:]]
        moves = atom.monotonicity(facts, params)
    curvature = OF_CURVATURE[atom.log_curvature(facts, params)]
    if curvature == CONVEX and atom.is_multilinear and _picks(atom, params, nodes):
        curvature = AFFINE
    return curvature, moves


def _term_signs(atom: Atom, nodes: Sequence[Node]) -> list[Sign]:
    """The signs of the terms of a sum, with those that are subtracted negated."""
    signs = atom.signs(len(nodes))
    return [
        node.sign if sign > 0 else node.sign.negated
        for node, sign in zip(nodes, signs, strict=True)
    ]


def _size(fact: Argument) -> Argument:
    """The same argument without its sign."""
    if fact.sign.is_nonnegative:
        return fact
    value = None if fact.value is None else abs(fact.value)
    return Argument(fact.shape, fact.sign.negated, fact.constant, value)


def _log_sum(signs: Sequence[Sign], sign: Sign) -> tuple[int, list[Monotonicity]]:
    """Of the logarithm of the size of a sum, in the logarithms of the sizes of its terms."""
    rising, falling = Monotonicity.INCREASING, Monotonicity.DECREASING
    if len(signs) == 1:
        return AFFINE, [rising]
    if all(each.is_nonnegative for each in signs) or all(each.is_nonpositive for each in signs):
        return CONVEX, [rising] * len(signs)
    unknown = [Monotonicity.UNKNOWN] * len(signs)
    if not sign.is_strict:
        return UNKNOWN, unknown
    leading = [each.is_nonnegative == (sign is Sign.POSITIVE) for each in signs]
    if sum(leading) != 1:
        return UNKNOWN, unknown
    return CONCAVE, [rising if leads else falling for leads in leading]


def _picks(atom: Atom, params: dict[str, Any], nodes: Sequence[Node]) -> bool:
    """Whether each entry of a product with a constant takes one term at most."""
    if len(nodes) != 2 or nodes[0].constant == nodes[1].constant:
        return False
    value = nodes[0].value if nodes[0].constant else nodes[1].value
    if value is None or count_nonzero(value) > max(value.shape, default=1):
        return False
    taken = (value != 0).astype(float)
    pair = [taken if node.constant else np.ones(node.shape) for node in nodes]
    return bool(np.all(np.asarray(atom.function(np, *pair, **params)) <= 1))
