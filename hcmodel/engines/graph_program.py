"""What an engine compiles: an array-level graph, the layout of the flat vector, and the parts.

The graph is merged and its sums are joined. A step is *live* if it depends on a variable; the others
are constants and parameters, which `constants` evaluates with numpy, so that an engine has to express
the atoms of live steps only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hcmodel.atoms.atom import Atom
from hcmodel.atoms.rules import Always, Argument, Kind
from hcmodel.engines.terms import Terms
from hcmodel.errors import DataError
from hcmodel.expressions.graph import Graph, join_sums, merge
from hcmodel.expressions.layout import Layout
from hcmodel.expressions.leaves import Expression, Parameter, Variable
from hcmodel.expressions.shapes import Shape
from hcmodel.expressions.sparse_data import dense, is_sparse
from hcmodel.records import cached_property, dataclass

if TYPE_CHECKING:
    from hcmodel.expressions.model import Model

PARTS = ("objective", "constraints", "all", "map")

# Makes the terms of a root that is known as a sum of them; None for others.
KnownTerms: TypeAlias = Callable[[], Terms] | None


@dataclass(frozen=True)
class Program:
    """The stack φ before it is compiled.

    The first `split` roots of the graph belong to the objective, those up to `stop` to the constraints,
    and the rest to the map of hidden coordinates.
    """

    graph: Graph
    layout: Layout
    split: int
    stop: int
    known: tuple[KnownTerms, ...] = ()
    """The first roots as sums of terms, where they are known as such."""

    @classmethod
    def of(
        cls,
        roots: Sequence[Expression],
        layout: Layout,
        split: int,
        coordinates: Sequence[Expression] = (),
        known: Sequence[KnownTerms] = (),
        model: Model | None = None,
    ) -> Program:
        """The program of `roots` and of the entries of a map, over the variables of `layout`.

        Nodes of `model` are merged once, whatever is made of them.
        """
        wanted = [*roots, *coordinates]
        if model is not None and model.merged.holds(wanted):
            graph = join_sums(model.merged.graph(wanted))
        else:
            graph = join_sums(merge(wanted))
        return cls(graph, layout, split, len(roots), tuple(known))

    @property
    def is_known(self) -> bool:
        """Whether all roots are known as sums of terms."""
        count = len(self.known)
        return count == len(self.root_sizes) and all(each is not None for each in self.known)

    @property
    def dimension(self) -> int:
        return self.layout.size

    @property
    def parameters(self) -> list[Parameter]:
        leaves = [step.leaf for step in self.graph.steps]
        return [leaf for leaf in leaves if isinstance(leaf, Parameter)]

    @cached_property
    def root_sizes(self) -> tuple[int, ...]:
        """The number of entries of each root."""
        steps = self.graph.steps
        return tuple([math.prod(steps[root].shape) for root in self.graph.roots])

    @cached_property
    def numbers(self) -> int:
        """The numbers in constants and parameters; of sparse ones those that are stored."""
        leaves = [step.leaf for step in self.graph.steps if step.leaf is not None]
        values: list[Any] = [leaf.value for leaf in leaves if not leaf.is_variable]
        return sum([each.nnz if is_sparse(each) else np.size(each) for each in values])

    @property
    def objective_size(self) -> int:
        return sum(self.root_sizes[: self.split])

    @property
    def size(self) -> int:
        """The number of entries of φ, without those of the map."""
        return sum(self.root_sizes[: self.stop])

    @property
    def map_size(self) -> int:
        return sum(self.root_sizes[self.stop :])

    def roots(self, part: str) -> tuple[int, ...]:
        """The numbers of the steps that are the roots of a part, one of `PARTS`."""
        roots, split, stop = self.graph.roots, self.split, self.stop
        return {
            "objective": roots[:split],
            "constraints": roots[split:stop],
            "all": roots[:stop],
            "map": roots[stop:],
        }[part]

    @cached_property
    def live(self) -> tuple[bool, ...]:
        """Which steps depend on a variable; a variable outside the layout is an error by name."""
        live: list[bool] = []
        for step in self.graph.steps:
            found = False
            if isinstance(step.leaf, Variable):
                self.layout.position(step.leaf)
                found = True
            for argument in step.arguments:
                found = found or live[argument]
            live.append(found)
        return tuple(live)

    def needed(self, roots: Sequence[int]) -> tuple[int, ...]:
        """The live steps under `roots`, in an order in which they can be run."""
        wanted = set(roots)
        for number in range(max(roots, default=-1), -1, -1):
            if number in wanted:
                wanted.update(self.graph.steps[number].arguments)
        live = self.live
        return tuple([number for number in sorted(wanted) if live[number]])

    def applications(self) -> Iterator[tuple[Atom, list[Shape], dict[str, Any]]]:
        """Atom, shapes of the arguments and static parameters of each live step."""
        steps = self.graph.steps
        for number, step in enumerate(steps):
            if self.live[number] and step.atom is not None:
                yield step.atom, [steps[a].shape for a in step.arguments], step.params

    @cached_property
    def has_black_boxes(self) -> bool:
        """Whether a function of the user's own is called anywhere."""
        atoms = {step.atom for step in self.graph.steps}
        return any(atom is not None and atom.black_box for atom in atoms)

    @cached_property
    def kinked(self) -> bool:
        """Whether an atom under the objective or the constraints is not smooth."""
        steps = self.graph.steps
        for number in self.needed(self.roots("all")):
            step = steps[number]
            if step.atom is None:
                continue
            rule = step.atom.kind
            if isinstance(rule, Always):
                kind = rule.value
            else:
                kind = rule([Argument(steps[a].shape) for a in step.arguments], step.params)
            if kind is not Kind.SMOOTH:
                return True
        return False

    def constants(self) -> list[Any]:
        """The value of each step that depends on parameters and numbers alone, None for the others."""
        values: list[Any] = [None] * len(self.graph.steps)
        with np.errstate(all="ignore"):
            for number, step in enumerate(self.graph.steps):
                if self.live[number]:
                    continue
                if step.leaf is None:
                    values[number] = step.fold(values)
                    continue
                values[number] = step.leaf.value
                if values[number] is None:
                    name = getattr(step.leaf, "name", "")
                    raise DataError(f"parameter '{name}' has no value; set {name}.value first")
        sparse = {number for number, value in enumerate(values) if is_sparse(value)}
        if sparse:
            self._make_dense(values, sparse)
        return values

    def _make_dense(self, values: list[Any], sparse: set[int]) -> None:
        """Sparse values as arrays where they are roots, or where a live step does not take them."""
        for root in sparse.intersection(self.graph.roots):
            values[root] = dense(values[root])
        for number, step in enumerate(self.graph.steps):
            if (
                step.atom is not None
                and self.live[number]
                and not sparse.isdisjoint(step.arguments)
            ):
                own = [values[argument] for argument in step.arguments]
                for argument, value in zip(step.arguments, step.atom.operands(own), strict=True):
                    values[argument] = value
