"""The reference engine: values by numpy, derivatives by autograd's reverse mode.

A stack is compiled once into merged steps. Steps without variables are folded: computed at
`refresh`, when parameters are read, and never again until the next one. What leaves a function's
domain comes back as a non-finite number, without a warning.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.atoms.autodiff import Pullback, is_traced, stacked, taped, xp
from hcmodel.atoms.rules import Argument, Kind
from hcmodel.engines import sparsity
from hcmodel.engines.batches import FEWEST, batched
from hcmodel.engines.forward import SPARSE_DENSITY, SPARSE_ROWS, Forward, on_tape, swept
from hcmodel.engines.interactions import HessianPlan, Interactions, TooDense, hessian_plan
from hcmodel.errors import DataError, ModelError
from hcmodel.expressions.graph import Graph, join_sums, merge
from hcmodel.expressions.layout import Layout
from hcmodel.expressions.leaves import Expression, Variable
from hcmodel.expressions.shapes import Shape

FloatArray: TypeAlias = NDArray[np.float64]

FEW_SWEEPS = 4  # up to here a pattern cannot save anything worth its making


class AutogradStack:
    """The compiled stack φ: the objective's roots, those of the constraints, then the map's."""

    def __init__(self, graph: Graph, layout: Layout, split: int, stop: int | None = None) -> None:
        """The first `split` roots are the objective's; those from `stop` on are the map's."""
        self.layout = layout
        self.dimension = layout.size
        self._graph = graph
        sizes = [int(np.prod(graph.steps[root].shape, dtype=int)) for root in graph.roots]
        self.size = sum(sizes[:stop])
        self.map_size = sum(sizes) - self.size
        self.objective_size = sum(sizes[:split])
        self._roots_of_part = {
            "objective": graph.roots[:split],
            "constraints": graph.roots[split:stop],
            "all": graph.roots[:stop],
            "map": graph.roots[len(graph.roots) if stop is None else stop :],
        }
        self._root_sizes = tuple(sizes)
        self._live = self._find_live()
        self._order = {part: self._needed(roots) for part, roots in self._roots_of_part.items()}
        names = {step.atom.name for step in graph.steps if step.atom is not None}
        self.has_black_boxes = "function" in names
        self.kinked = any(self._is_kinked(number) for number in self._order["all"])
        self._values: list[Any] | None = None
        self._weights = self._find_weights()
        self._zeros: dict[
            int, NDArray[np.bool_]
        ] = {}  # where weights are 0, which patterns rest on
        self._plans: dict[str, sparsity.Plan] = {}

    def refresh(self) -> None:
        """Read the parameters and compute again what depends on them alone."""
        values: list[Any] = [None] * len(self._graph.steps)
        with np.errstate(all="ignore"):
            for number, step in enumerate(self._graph.steps):
                if self._live[number]:
                    continue
                if step.leaf is None:
                    values[number] = np.asarray(step.run(np, values), dtype=float)
                    continue
                values[number] = step.leaf.value
                if values[number] is None:
                    name = getattr(step.leaf, "name", "")
                    raise DataError(f"parameter '{name}' has no value; set {name}.value first")
        self._values = values
        zeros = {n: values[n] == 0 for n in self._weights if np.size(values[n]) > 1}
        zeros = {number: zero for number, zero in zeros.items() if zero.any()}
        if not _same_zeros(zeros, self._zeros):
            self._plans.clear()
            self.__dict__.pop("hessian_plan", None)
        self._zeros = zeros

    def evaluate(self, x: FloatArray, part: str) -> Forward:
        """One forward pass over the "objective", the "constraints", "all" of both, or the "map"."""
        roots, order = self._roots_of_part[part], self._order[part]
        traced: list[tuple[int, Shape]] = []
        values, pull = self._run(x, roots, order, traced)
        plan = functools.partial(self._plan, part)
        return Forward(values, pull, self.dimension, plan, traced)

    def hessian(self, x: FloatArray, weights: FloatArray) -> FloatArray | scipy.sparse.csr_array:
        """The Hessian of weights·φ by reverse over reverse; compressed rows where it is sparse.

        Weights of the map's entries may follow those of φ.
        """
        weights = np.asarray(weights, dtype=float)
        if weights.shape == (self.size,):
            weights = np.concatenate([weights, np.zeros(self.map_size)])
        if weights.shape != (self.size + self.map_size,):
            raise ModelError(f"{self.size} weights are needed, not shape {weights.shape}")
        shares = np.split(weights, np.cumsum(self._root_sizes)[:-1]) if self._root_sizes else []
        weighted = [i for i, share in enumerate(shares) if np.any(share)]
        roots = [self._graph.roots[i] for i in weighted]
        if not roots:
            shape = (self.dimension, self.dimension)
            return np.zeros(shape) if self.hessian_plan is None else scipy.sparse.csr_array(shape)
        order = self._needed(roots)
        seed = np.concatenate([shares[i] for i in weighted])

        def gradient(point: Any) -> Any:
            pull = self._run(point, roots, order)[1]
            return xp.zeros(self.dimension) if pull is None else pull(seed)

        try:
            with np.errstate(all="ignore"):
                pull = taped(gradient, np.array(x, dtype=float))[1]
        except np.linalg.LinAlgError:
            return np.full((self.dimension, self.dimension), np.nan)
        plan = self.hessian_plan
        if plan is not None:
            seeds = (np.asarray(plan.colors == color, dtype=float) for color in range(plan.sweeps))
            found = np.array([swept(pull, seed, self.dimension) for seed in seeds])
            return plan.matrix(found)
        rows = [swept(pull, unit, self.dimension) for unit in np.eye(self.dimension)]
        hessian = np.array(rows).reshape(self.dimension, self.dimension)
        return (hessian + hessian.T) / 2

    @functools.cached_property
    def hessian_plan(self) -> HessianPlan | None:
        """The sweeps for a sparse Hessian of φ and of the map; None where it is small or dense."""
        if self.dimension < SPARSE_ROWS:
            return None
        interactions = Interactions(self.dimension)
        try:
            self._patterns(self._needed(self._graph.roots), interactions)
            pattern = interactions.pattern()
        except TooDense:
            return None
        dense = pattern.nnz > SPARSE_DENSITY * self.dimension**2
        return None if dense else hessian_plan(pattern)

    def _run(
        self,
        x: Any,
        roots: Sequence[int],
        order: Sequence[int],
        traced: list[tuple[int, Shape]] | None = None,
    ) -> tuple[Any, Pullback | None]:
        """Values and pullback; `traced` is filled with start and shape of the roots on the tape."""
        if not roots:
            return np.zeros(0), None
        if self._values is None:
            self.refresh()
        assert self._values is not None
        steps, start = self._graph.steps, self._values

        def run(point: Any) -> Any:
            values = list(start)
            blocks = self.layout.unpack(xp, point)
            for number in order:
                step = steps[number]
                if isinstance(step.leaf, Variable):
                    values[number] = blocks[self.layout.position(step.leaf)]
                else:
                    values[number] = step.run(xp, values)
            if traced is not None:
                traced.extend(on_tape([values[root] for root in roots]))
            return stacked(*[values[root] for root in roots])

        with np.errstate(all="ignore"):
            return taped(run, x if is_traced(x) else np.array(x, dtype=float))

    def _find_live(self) -> tuple[bool, ...]:
        """Which steps depend on a variable."""
        live: list[bool] = []
        for step in self._graph.steps:
            if isinstance(step.leaf, Variable):
                self.layout.position(step.leaf)  # an unknown variable raises here, by name
                live.append(True)
            else:
                live.append(any(live[argument] for argument in step.arguments))
        return tuple(live)

    def _find_weights(self) -> tuple[int, ...]:
        """Steps without variables whose zeros take entries out of a pattern."""
        found = {
            argument
            for number, step in enumerate(self._graph.steps)
            if self._live[number] and step.atom is not None
            for place, argument in enumerate(step.arguments)
            if not self._live[argument] and sparsity.weighing(step, place)
        }
        return tuple(sorted(found))

    def _needed(self, roots: Sequence[int]) -> tuple[int, ...]:
        """The live steps under `roots`, in order."""
        wanted = set(roots)
        for number in range(max(roots, default=-1), -1, -1):
            if number in wanted:
                wanted.update(self._graph.steps[number].arguments)
        return tuple(number for number in sorted(wanted) if self._live[number])

    def _is_kinked(self, number: int) -> bool:
        step = self._graph.steps[number]
        if step.atom is None:
            return False
        arguments = [Argument(self._graph.steps[a].shape) for a in step.arguments]
        return step.atom.kind(arguments, step.params) is not Kind.SMOOTH

    def _plan(self, part: str) -> sparsity.Plan:
        """Made at the first Jacobian of a part, and kept."""
        if part not in self._plans:
            roots = self._roots_of_part[part]
            rows = sum(int(np.prod(self._graph.steps[root].shape, dtype=int)) for root in roots)
            if min(rows, self.dimension) <= FEW_SWEEPS:
                self._plans[part] = sparsity.dense_plan(rows, self.dimension)
            else:
                sizes = [int(np.prod(self._graph.steps[root].shape, dtype=int)) for root in roots]
                owner = np.repeat(np.arange(len(roots)), sizes)
                self._plans[part] = sparsity.plan(self._pattern(part), self.dimension, owner)
        return self._plans[part]

    def _pattern(self, part: str) -> sparsity.Pattern:
        steps = self._graph.steps
        patterns = self._patterns(self._order[part])
        rows: sparsity.Pattern = []
        for root in self._roots_of_part[part]:
            size = int(np.prod(steps[root].shape, dtype=int))
            rows.extend(patterns.get(root, [sparsity.NOTHING] * size))
        return rows

    def _patterns(
        self, order: Sequence[int], interactions: Interactions | None = None
    ) -> dict[int, sparsity.Pattern]:
        """Columns of each entry of the live steps; pairs of them are noted where that is wanted."""
        steps = self._graph.steps
        patterns: dict[int, sparsity.Pattern] = {}
        for number in order:
            step = steps[number]
            if isinstance(step.leaf, Variable):
                places = self.layout.places(step.leaf)
                patterns[number] = [frozenset((i,)) for i in places.tolist()]
                continue
            shapes = [steps[argument].shape for argument in step.arguments]
            found = [patterns.get(argument) for argument in step.arguments]
            if interactions is not None:
                interactions.add(step, shapes, found)
            zeros = [
                self._zeros.get(argument) if sparsity.weighing(step, place) else None
                for place, argument in enumerate(step.arguments)
            ]
            patterns[number] = sparsity.propagate(step, shapes, found, zeros)
        return patterns


def _same_zeros(one: dict[int, NDArray[np.bool_]], other: dict[int, NDArray[np.bool_]]) -> bool:
    return one.keys() == other.keys() and all(
        np.array_equal(zero, other[number]) for number, zero in one.items()
    )


def compile_stack(
    roots: Sequence[Expression],
    layout: Layout,
    split: int,
    coordinates: Sequence[Expression] = (),
    fewest: int = FEWEST,
) -> AutogradStack:
    """Compile `roots` over the variables of `layout`; the first `split` are the objective's.

    `coordinates` are the entries of the map of hidden coordinates. Graphs of at least `fewest` steps
    are joined into batches.
    """
    graph = join_sums(merge([*roots, *coordinates]))
    joined, split, stop = batched(graph, split, len(roots), fewest)
    return AutogradStack(joined, layout, split, stop)
