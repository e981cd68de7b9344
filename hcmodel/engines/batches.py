"""Steps that do the same to different entries, joined into one step on an array.

A model written in loops has a step for every number: x[3], x[3] ** 2, their product. Engines pay for
steps much more than for entries. Here every entry of a step gets an address; steps of one depth with the
same atom, parameters and shapes become one step along a new first axis, whose arguments are gathered
from addresses, and steps that only move entries vanish into the addresses of what is gathered.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from hcmodel.atoms.atom import Atom
from hcmodel.atoms.autodiff import stacked
from hcmodel.atoms.rules import Dependence
from hcmodel.expressions.graph import Graph, Step
from hcmodel.expressions.leaves import Variable, as_expression
from hcmodel.expressions.node import Leaf
from hcmodel.expressions.shapes import Shape
from hcmodel.expressions.table import ATOMS

# Graphs with fewer steps run as fast as they are.
FEWEST = 1000


def gather(xp: Any, *sources: Any, places: np.ndarray, shape: Shape) -> Any:
    """Entries of the sources, counted through all of them, in an array of a given shape."""
    flat = stacked(*sources) if len(sources) > 1 else xp.reshape(sources[0], (-1,))
    return xp.reshape(flat[places], shape)


class _Gathering(Atom):
    """An atom that engines use and that is not in the table."""

    def __reduce__(self) -> str:  # type: ignore[override]
        return "GATHER"


def _gathering() -> _Gathering:
    like = ATOMS["concatenate"]
    facts = {each.name: getattr(like, each.name) for each in fields(like)}
    own = {"name": "gather", "function": gather, "static": ("places", "shape")}
    return _Gathering(**{**facts, **own})


GATHER = _gathering()


def batched(graph: Graph, split: int, stop: int, fewest: int = FEWEST) -> tuple[Graph, int, int]:
    """The joined graph, with one root for the objective's, the constraints' and the map's each.

    `split` and `stop` are where the roots of the second and of the third kind begin, and are returned
    for the new roots. Small graphs come back as they are.
    """
    if len(graph.steps) < fewest or any(0 in step.shape for step in graph.steps):
        return graph, split, stop
    joiner = _Joiner(graph)
    joiner.run()
    parts = (graph.roots[:split], graph.roots[split:stop], graph.roots[stop:])
    roots = [joiner.side_by_side(part) for part in parts]
    counts = np.cumsum([len(root) for root in roots])
    kept = tuple(number for root in roots for number in root)
    return Graph(tuple(joiner.steps), kept), int(counts[0]), int(counts[1])


class _Joiner:
    def __init__(self, graph: Graph) -> None:
        self.old = graph.steps
        self.live: list[bool] = []  # whether steps depend on a variable
        for step in graph.steps:
            under = any(self.live[argument] for argument in step.arguments)
            self.live.append(under or isinstance(step.leaf, Variable))
        self.steps: list[Step] = []
        most = 2 + len(graph.roots) + sum(1 + len(step.arguments) for step in graph.steps)
        self._bases = np.zeros(most, dtype=int)  # the first address of each new step
        self._end = 0
        self._placed: dict[int, tuple[int, int]] = {}  # of old steps: new step and first address
        self._addresses: dict[int, np.ndarray] = {}  # of the entries of old steps, where asked for
        self._known: dict[Hashable, int] = {}
        zero = as_expression(0.0)
        assert isinstance(zero, Leaf)
        self._emit(Step(zero, None, {}, (), ()))  # address 0: what movements fill with zeros

    def run(self) -> None:
        for depth in self._by_depth():
            groups: dict[Hashable, list[int]] = {}
            for number in depth:
                if not self._moves(number):
                    groups.setdefault(self._key(number), []).append(number)
            for group in groups.values():
                self._join(group)
            for number in depth:
                if self._moves(number):
                    step = self.old[number]
                    assert step.atom is not None
                    sources = [self._entries(argument) for argument in step.arguments]
                    moved = step.atom.function(np, *sources, **step.params)
                    self._addresses[number] = np.asarray(moved).astype(int).reshape(step.shape)

    def side_by_side(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """The one step that holds all entries of old steps in a vector; none where there are none."""
        if not numbers:
            return ()
        return (self._gathered(np.concatenate([self._entries(i).ravel() for i in numbers])),)

    def _by_depth(self) -> list[list[int]]:
        """Steps by the number of operations under them; movements are none."""
        depth = np.zeros(len(self.old), dtype=int)
        found: list[list[int]] = []
        for number, step in enumerate(self.old):
            if self.live[number] and step.arguments:
                under = max(int(depth[argument]) for argument in step.arguments)
                depth[number] = under + (not self._moves(number))
            while len(found) <= depth[number]:
                found.append([])
            found[int(depth[number])].append(number)
        return found

    def _moves(self, number: int) -> bool:
        step = self.old[number]
        if step.atom is None or not self.live[number]:
            return False
        return self._dependence(step) is Dependence.MOVEMENT

    def _dependence(self, step: Step) -> Any:
        assert step.atom is not None
        return step.atom.dependence([self.old[a].shape for a in step.arguments], step.params)

    def _key(self, number: int) -> Hashable:
        """Equal for steps that can be joined."""
        step = self.old[number]
        if step.atom is None or not self.live[number]:
            return number
        dependence = self._dependence(step)
        shapes = tuple(self.old[argument].shape for argument in step.arguments)
        if dependence is Dependence.REDUCTION:
            whole = step.params["axis"] is None
            if not shapes[0] or (whole and step.shape):
                return number
        elif dependence is not Dependence.ELEMENTWISE:
            return number
        lives = tuple(self.live[argument] for argument in step.arguments)
        return step.atom, tuple(sorted(step.params.items())), shapes, lives

    def _join(self, group: list[int]) -> None:
        first = self.old[group[0]]
        if first.atom is None or not self.live[group[0]]:
            for number in group:  # leaves and constants stay as they are
                step = self.old[number]
                arguments = tuple(self._whole(argument) for argument in step.arguments)
                self._place([number], step._replace(arguments=arguments))
            return
        long_sum = first.atom.summed == (1,) and len(first.arguments) > 2
        if long_sum and all(self.old[a].shape == first.shape for a in first.arguments):
            terms = [self._entries(a) for number in group for a in self.old[number].arguments]
            shape = (len(group), len(first.arguments), *first.shape)
            summed = self._gathered(np.stack(terms).reshape(shape))
            new = Step(None, ATOMS["sum"], {"axis": (1,)}, (summed,), (len(group), *first.shape))
        elif len(group) == 1:
            new = first._replace(arguments=tuple(self._whole(a) for a in first.arguments))
        else:
            new = self._alongside(group)
        self._place(group, new)

    def _alongside(self, group: list[int]) -> Step:
        first = self.old[group[0]]
        params = dict(first.params)
        reduction = self._dependence(first) is Dependence.REDUCTION
        if reduction:
            axis, axes = params["axis"], len(self.old[first.arguments[0]].shape)
            axis = tuple(range(axes)) if axis is None else axis
            params["axis"] = axis + 1 if isinstance(axis, int) else tuple(i + 1 for i in axis)
        arguments = []
        for position in range(len(first.arguments)):
            numbers = [self.old[number].arguments[position] for number in group]
            shape = self.old[numbers[0]].shape
            padding = () if reduction else (1,) * (len(first.shape) - len(shape))
            if not self.live[numbers[0]] and len(set(numbers)) == 1:
                arguments.append(self._whole(numbers[0]))  # a constant for all of them
                continue
            addresses = np.stack([self._entries(number) for number in numbers])
            arguments.append(self._gathered(addresses.reshape(len(group), *padding, *shape)))
        return Step(None, first.atom, params, tuple(arguments), (len(group), *first.shape))

    def _place(self, group: list[int], new: Step) -> None:
        """Append a step, and note where its entries are."""
        place = len(self.steps)
        start = self._emit(new)
        size = math.prod(self.old[group[0]].shape)
        for position, number in enumerate(group):
            self._placed[number] = place, start + position * size

    def _emit(self, step: Step) -> int:
        """Append a step; the address of its first entry."""
        start = self._end
        self._bases[len(self.steps)] = start
        self.steps.append(step)
        self._end += math.prod(step.shape)
        return start

    def _entries(self, number: int) -> np.ndarray:
        """The addresses of the entries of an old step. Large sparse constants are never asked for."""
        if number not in self._addresses:
            _, first = self._placed[number]
            shape = self.old[number].shape
            size = math.prod(shape)
            self._addresses[number] = np.arange(first, first + size).reshape(shape)
        return self._addresses[number]

    def _whole(self, number: int) -> int:
        if number in self._placed:
            place, first = self._placed[number]
            if first == self._bases[place] and self.steps[place].shape == self.old[number].shape:
                return place
        return self._gathered(self._entries(number))

    def _gathered(self, addresses: np.ndarray) -> int:
        """The new step with the entries at these addresses: one that is there, or a gathering."""
        flat, shape = addresses.ravel(), addresses.shape
        key = (flat.tobytes(), shape)
        if key in self._known:
            return self._known[key]
        owner = np.searchsorted(self._bases[: len(self.steps)], flat, side="right") - 1
        sources = np.unique(owner)
        only = int(sources[0])
        base = int(self._bases[only])
        if self.steps[only].shape == shape and np.array_equal(flat, base + np.arange(flat.size)):
            self._known[key] = only
            return only
        sizes = [math.prod(self.steps[source].shape) for source in sources.tolist()]
        starts = np.concatenate([[0], np.cumsum(sizes)])[:-1]
        places = flat - self._bases[owner] + starts[np.searchsorted(sources, owner)]
        params = {"places": places, "shape": shape}
        self._known[key] = len(self.steps)
        self._emit(Step(None, GATHER, params, tuple(sources.tolist()), shape))
        return self._known[key]
