"""Curvature in given coordinates, propagated through the graph.

Each node has three channels: the curvature of f, the curvature of log |f| (where f has one sign), and
whether the square root of f is convex (see `patterns`). A variable in the coordinate log x is
log-affine, and so convex; in its own coordinate it is affine. What several rules say is joined.
"""

from __future__ import annotations

from collections.abc import Sequence

from hcmodel.atoms.rules import Sign
from hcmodel.expressions.leaves import Variable
from hcmodel.facts import patterns
from hcmodel.facts.bits import AFFINE, CONCAVE, CONVEX, SWAPPED, UNKNOWN, composed
from hcmodel.facts.node_facts import Facts, Node

Channels = tuple[int, int, bool]  # plain, log, root
NOTHING: Channels = (UNKNOWN, UNKNOWN, False)


def can_be_log(variable: Variable) -> bool:
    """Logarithmic coordinates are for positive boxes."""
    return variable.set.has_logarithm


class Curvatures:
    """The channels of all nodes under one assignment of coordinates, kept up to date.

    `logs` has a bit for each variable in logarithmic coordinates. With `either`, a variable that can be
    is taken to be affine and log-affine at once. All rules are monotone, so that a function has more
    channels then than in any coordinates: what it has not then, it has in none.
    """

    def __init__(self, facts: Facts, logs: int, *, either: bool = False) -> None:
        self.facts = facts
        self.logs = logs
        self.either = either
        self.channels: list[Channels] = []
        self.extend()

    def extend(self) -> None:
        """Take in the nodes that the facts have got since."""
        facts = self.facts
        either = facts.loggable if self.either else 0
        for node in facts.nodes[len(self.channels) :]:
            found = channels_of(node, facts.nodes, self.channels, self.logs, either)
            self.channels.append(found)

    def assign(self, logs: int) -> None:
        """Change the coordinates; only what depends on them is computed again."""
        changed = logs ^ self.logs
        self.logs = logs
        if not changed:
            return
        nodes, channels = self.facts.nodes, self.channels
        for node in nodes:
            if node.variables & changed:
                channels[node.number] = channels_of(node, nodes, channels, logs)


def channels_of(
    node: Node, nodes: Sequence[Node], known: Sequence[Channels], logs: int, either: int = 0
) -> Channels:
    """The channels of one node from those of its arguments."""
    if node.constant:
        if node.undefined:
            return NOTHING
        return AFFINE, (AFFINE if node.supported else UNKNOWN), node.sign.is_nonnegative
    if isinstance(node.expression, Variable):
        if either & node.variables:
            return AFFINE, AFFINE, True
        if logs & node.variables:
            return CONVEX, AFFINE, True
        return _closed(node, AFFINE, UNKNOWN, False)
    plain = log = UNKNOWN
    root = False
    rule = node.rule
    if node.pattern is not None and node.pattern.is_defined:
        plain, log, root = patterns.apply(node.pattern, node.sign, nodes, known)
    elif rule is not None:
        plains, inner_logs, holds = list[int](), list[int](), True
        for number, need in zip(rule.arguments, rule.needs, strict=True):
            inner = known[number]
            plains.append(inner[0])
            inner_logs.append(inner[1])
            holds = holds and (inner[0] & need) == need
        if holds:
            plain = composed(rule.plain, rule.passing, plains)
            plain |= composed(rule.plain_from_log, rule.passing, inner_logs)
            log = composed(rule.log, rule.log_passing, inner_logs)
            log |= composed(rule.log_from_plain, rule.passing, plains)
            if node.pattern is not None:
                more = patterns.apply(node.pattern, node.sign, nodes, known)
                plain, log, root = plain | more[0], log | more[1], more[2]
    return _closed(node, plain, log, root)


def _closed(node: Node, plain: int, log: int, root: bool) -> Channels:
    """What the channels imply for each other, given the sign.

    log-convex functions are convex, positive concave ones log-concave; negative ones by -f.
    """
    sign = node.sign
    if root:
        plain |= CONVEX
    if sign.is_nonnegative and log & CONVEX:
        plain |= CONVEX
        root = True
    elif sign.is_nonpositive and log & CONVEX:
        plain |= CONCAVE
    size = plain if sign is Sign.POSITIVE else SWAPPED[plain]
    if sign.is_strict and size & CONCAVE:
        log |= CONCAVE
    return plain, log, root
