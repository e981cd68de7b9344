"""The derivation of a proof as a tree that people can check: each node with its sign and curvatures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.printing import infix
from hcmodel.facts.bits import AFFINE, CONVEX, WORDS
from hcmodel.facts.curvature import Channels
from hcmodel.facts.node_facts import Node
from hcmodel.records import dataclass

# Lines of a derivation that people may still read.
MAX_LINES = 400


@dataclass(frozen=True)
class Line:
    """One node: how deep it stands, its text, and what is known of it."""

    depth: int
    text: str
    facts: str


@dataclass(frozen=True)
class Part:
    """One function of the model: what is claimed of it, and the nodes of its sides."""

    title: str
    roots: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Derivation:
    """The trees of all functions; `str` prints them, `lines` gives them one node at a time.

    `names` has the words of the model's text for the nodes that stand in one; the others are counted
    from `first`.
    """

    parts: tuple[Part, ...]
    nodes: tuple[Node, ...] = field(repr=False)
    channels: tuple[Channels, ...] = field(repr=False)
    names: Mapping[int, str] = field(repr=False, default_factory=dict)
    first: int = 0

    def lines(self) -> Iterator[Line]:
        """The nodes, function by function, arguments below; constants and repetitions left out."""
        for part in self.parts:
            yield Line(0, part.title, "")
            seen: set[int] = set()
            pending = [(1, number) for number in reversed(part.roots)]
            while pending:
                depth, number = pending.pop()
                node = self.nodes[number]
                repeated = number in seen and bool(node.arguments)
                seen.add(number)
                facts = "as above" if repeated else describe(node, self.channels[number])
                text = self.names.get(number) or infix(node.expression, self.first)
                yield Line(depth, text, facts)
                if not repeated:
                    pending.extend(
                        (depth + 1, i)
                        for i in reversed(node.arguments)
                        if not self.nodes[i].constant
                    )

    def __str__(self) -> str:
        written: list[str] = []
        for line in self.lines():
            if len(written) == MAX_LINES:
                written.append("…")
                break
            facts = f"    [{line.facts}]" if line.facts else ""
            written.append("  " * line.depth + line.text + facts)
        return "\n".join(written)


def describe(node: Node, channels: Channels) -> str:
    """Sign and curvatures in words: `positive, convex, log-affine`."""
    plain, log, root = channels
    words: list[str] = []
    if node.sign.value != "unknown":
        words.append(node.sign.value)
    if node.constant:
        return ", ".join([*words, "constant"])
    if plain:
        words.append(WORDS[plain])
    if log:
        positive = node.sign.is_nonnegative
        words.append(f"log-{WORDS[log]}" if positive else f"its size log-{WORDS[log]}")
    if root and not log & CONVEX:
        words.append("with a convex root")
    if isinstance(node.expression, Variable):
        words.append("in the coordinate log" if log == AFFINE else "its own coordinate")
    elif not plain and not log:
        words.append("curvature unknown")
    return ", ".join(words)
