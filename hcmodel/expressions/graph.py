"""The expression graph as a flat list of steps: arguments first, equal sub-expressions merged.

Everything here is iterative, so that a sum of many thousand terms built in a Python loop is no
deeper than any other. Nodes are told apart by `args` alone: leaves have none.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hcmodel.expressions.sparse_data import Numbers, dense, is_sparse

if TYPE_CHECKING:
    from hcmodel.atoms.atom import Atom
    from hcmodel.expressions.layout import Layout
    from hcmodel.expressions.node import Apply, Expression, Leaf


def topological_order(roots: Iterable[Expression]) -> list[Expression]:
    """All nodes under `roots`, each once, every node after its arguments."""
    order: list[Expression] = []
    opened: set[int] = set()  # the arguments are above them on the stack
    done: set[int] = set()
    pending = [*roots]
    pending.reverse()
    while pending:
        node = pending[-1]
        key = id(node)
        if key in done:
            pending.pop()
        elif key in opened or not node.args:
            done.add(key)
            order.append(node)
            pending.pop()
        else:
            opened.add(key)
            pending += node.args[::-1]
    return order


class Step(NamedTuple):
    """One merged node: a leaf, or an atom applied to earlier steps."""

    leaf: Leaf | None
    atom: Atom | None
    params: dict[str, Any]
    arguments: tuple[int, ...]
    shape: tuple[int, ...]

    def run(self, xp: Any, values: Sequence[Any]) -> Any:
        """The step's value from the values of all steps; NaN where linear algebra gives up.

        Sparse values are there only for an atom that takes them (see `fold`).
        """
        assert self.atom is not None
        try:
            return self.atom.function(xp, *[values[i] for i in self.arguments], **self.params)
        except np.linalg.LinAlgError:
            return np.full(self.shape, np.nan)

    def fold(self, values: Sequence[Any]) -> Numbers:
        """The step's value by numpy, sparse values made dense where the atom asks for it."""
        assert self.atom is not None
        try:
            return self.atom.numbers([values[i] for i in self.arguments], self.params)
        except np.linalg.LinAlgError:
            return np.full(self.shape, np.nan)


class Graph(NamedTuple):
    """Steps in an order in which they can be run, and which of them are the roots."""

    steps: tuple[Step, ...]
    roots: tuple[int, ...]


class Merged(NamedTuple):
    """The steps of nodes that are kept alive elsewhere, and the number of each node's step by its id."""

    steps: tuple[Step, ...]
    numbers: dict[int, int]

    def holds(self, roots: Iterable[Expression]) -> bool:
        return all([id(root) in self.numbers for root in roots])  # noqa: C419  (quicker)

    def graph(self, roots: Iterable[Expression]) -> Graph:
        """The graph of some of the nodes; steps that none of them needs are in it too."""
        return Graph(self.steps, tuple([self.numbers[id(root)] for root in roots]))


def merge(roots: Sequence[Expression]) -> Graph:
    """Flatten `roots`; nodes with the same atom, merged arguments and parameters become one."""
    return merged(topological_order(roots)).graph(roots)


def merged(nodes: Iterable[Expression]) -> Merged:
    """The same of nodes that come after their arguments."""
    steps: list[Step] = []
    number_of_node: dict[int, int] = {}
    number_of_key: dict[Hashable, int] = {}
    for node in nodes:
        key: Hashable
        if node.args:
            application: Apply = node  # type: ignore[assignment]
            arguments = tuple([number_of_node[id(argument)] for argument in node.args])
            key = (application.atom, arguments, application.params)
        else:
            leaf: Leaf = node  # type: ignore[assignment]
            key = leaf.merge_key()
        number = number_of_key.get(key)
        if number is None:
            number = len(steps)
            number_of_key[key] = number
            if node.args:
                step = Step(None, application.atom, dict(application.params), arguments, node.shape)
            else:
                step = Step(leaf, None, {}, (), node.shape)
            steps.append(step)
        number_of_node[id(node)] = number
    return Merged(tuple(steps), number_of_node)


def join_sums(graph: Graph) -> Graph:
    """The same graph with each chain a + b + c + … as one step.

    Models built in loops have long ones. A sum is absorbed by the sum that alone uses it, if both
    have the same shape.
    """
    adding = {number for number, step in enumerate(graph.steps) if _adds(step)}
    if all(adding.isdisjoint(graph.steps[number].arguments) for number in adding):
        return graph
    uses = Counter(argument for step in graph.steps for argument in step.arguments)
    uses.update(graph.roots)
    terms: dict[int, deque[int]] = {}  # of the sums that are still to be absorbed
    joined: dict[int, deque[int]] = {}
    for number, step in enumerate(graph.steps):
        if number not in adding:
            continue
        collected: deque[int] = deque()
        for argument in step.arguments:
            absorbed = terms.get(argument)
            if absorbed is None or uses[argument] > 1 or graph.steps[argument].shape != step.shape:
                collected.append(argument)
                continue
            del terms[argument], joined[argument]
            if len(collected) <= len(absorbed):
                absorbed.extendleft(reversed(collected))
                collected = absorbed
            else:
                collected.extend(absorbed)
        terms[number] = joined[number] = collected
    kept: list[Step] = []
    place: dict[int, int] = {}
    for number, step in enumerate(graph.steps):
        arguments: Iterable[int] = step.arguments
        if number in adding:
            if number not in joined:
                continue
            arguments = joined[number]
        place[number] = len(kept)
        renumbered = tuple([place[argument] for argument in arguments])
        kept.append(Step(step.leaf, step.atom, step.params, renumbered, step.shape))
    return Graph(tuple(kept), tuple(place[root] for root in graph.roots))


def _adds(step: Step) -> bool:
    """Whether the step is a sum of any number of terms."""
    return step.atom is not None and step.atom.variadic and step.atom.summed == (1,)


def evaluate(root: Expression) -> Numbers | None:
    """The value of `root` at its leaves' values, or None where a leaf has none."""
    graph = join_sums(merge([root]))
    values: list[Any] = []
    with np.errstate(all="ignore"):
        for step in graph.steps:
            value = step.leaf.value if step.leaf is not None else step.fold(values)
            if value is None:
                return None
            values.append(value)
    found = values[graph.roots[0]]
    return found if is_sparse(found) else np.array(found, dtype=float)


def values_at(layout: Layout, x: np.ndarray, roots: Sequence[Expression]) -> list[np.ndarray]:
    """The values of `roots` at a point, parameters at their current values."""
    return graph_values(join_sums(merge(roots)), layout, x)


def values_once(
    layout: Layout, x: np.ndarray, nodes: Sequence[Expression], roots: Sequence[Expression]
) -> list[np.ndarray]:
    """`values_at` without a search for equal expressions, which takes longer than one evaluation.

    `nodes` are those of the roots, every node after its arguments.
    """
    arrays = layout.unpack(np, x)
    values: dict[int, Any] = {}
    with np.errstate(all="ignore"):
        for node in nodes:
            if node.args:
                values[id(node)] = applied(node, [values[id(each)] for each in node.args])  # type: ignore[arg-type]
            elif getattr(node, "is_variable", False):
                values[id(node)] = arrays[layout.position(node)]  # type: ignore[arg-type]
            else:
                values[id(node)] = node.value
    return [np.asarray(dense(values[id(root)]), dtype=float) for root in roots]


def applied(node: Apply, arguments: Sequence[Any]) -> Numbers:
    """The value of a node from those of its arguments; NaN where linear algebra gives up."""
    try:
        return node.atom.numbers(arguments, dict(node.params))
    except np.linalg.LinAlgError:
        return np.full(node.shape, np.nan)


def graph_values(graph: Graph, layout: Layout, x: np.ndarray) -> list[np.ndarray]:
    """The values of the roots of a graph at a point, parameters at their current values."""
    arrays = layout.unpack(np, x)
    values: list[Any] = []
    with np.errstate(all="ignore"):
        for step in graph.steps:
            if step.leaf is None:
                values.append(step.fold(values))
            elif getattr(step.leaf, "is_variable", False):
                values.append(arrays[layout.position(step.leaf)])  # type: ignore[arg-type]
            else:
                values.append(step.leaf.value)
    return [np.asarray(dense(values[root]), dtype=float) for root in graph.roots]
