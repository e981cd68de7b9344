"""Stacks of the reference engine: values by numpy, derivatives by autograd's reverse mode.

A stack is compiled once into merged steps. Steps without variables are folded: computed at
`refresh`, when parameters are read, and never again until the next one. What leaves a function's
domain comes back as a non-finite number, without a warning.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.atoms.autodiff import Pullback, is_traced, stacked, taped, xp
from hcmodel.engines import sparsity
from hcmodel.engines.engine import ProgramStack
from hcmodel.engines.forward import (
    SMALL_AT_ONCE,
    SPARSE_DENSITY,
    SPARSE_ROWS,
    Forward,
    Tape,
    roots_on_tape,
    swept_all,
)
from hcmodel.engines.graph_program import PARTS, Program
from hcmodel.engines.interactions import HessianPlan, Interactions, TooDense, hessian_plan
from hcmodel.engines.user_gradients import CalledForward, UserGradients
from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.shapes import Shape
from hcmodel.records import cached_property
from hcmodel.solvers.memory import check_dense

FloatArray: TypeAlias = NDArray[np.float64]

FEW_SWEEPS = 4  # up to here a pattern cannot save anything worth its making
# Entries of a Jacobian for which sweeps without a pattern take less time than finding one.
SMALL_JACOBIAN = 150_000  # a regulator with 20 states has 116,000: 19 ms instead of 65


class AutogradStack(ProgramStack):
    """The compiled stack φ: the objective's roots, those of the constraints, then the map's."""

    engine = "autograd"

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._graph = program.graph
        self._roots = {part: program.roots(part) for part in PARTS}
        self._orders: dict[str, tuple[int, ...]] = {}
        self._values: list[Any] | None = None
        # Where weights are 0: patterns rest on this, and it is found with the first of them.
        self._zeros: dict[int, sparsity.Zeros] | None = None
        self._plans: dict[str, sparsity.Plan] = {}
        # Whether the last pass over a part was asked for derivatives. The next one is expected to be
        # used in the same way: sampling needs values only, and a tape takes several times as long.
        self._differentiated = dict.fromkeys(PARTS, True)
        self._swept: set[str] = set()  # parts that have had a Jacobian without a pattern
        self._called: dict[str, UserGradients | None] = dict.fromkeys(PARTS)
        if self.has_black_boxes:
            parts = self._roots.items()
            self._called = {part: UserGradients.of(program, roots) for part, roots in parts}

    def refresh(self) -> None:
        """Read the parameters and compute again what depends on them alone."""
        self._values = self.program.constants()
        before, self._zeros = self._zeros, None
        if before is not None and not sparsity.same_zeros(self._known_zeros(), before):
            self._plans.clear()
            self.__dict__.pop("hessian_plan", None)

    def evaluate(self, x: FloatArray, part: str) -> Forward | CalledForward:
        """One forward pass over the "objective", the "constraints", "all" of both, or the "map"."""
        called = self._called[part]
        x = np.array(x, dtype=float)
        if called is not None:
            return called.at(x, self._constants)
        record = functools.partial(self._recorded, x, part, self._constants)
        # functions of the user may be expensive, and are called once
        tape = record() if self._differentiated[part] or self.has_black_boxes else None
        values = self._plain(x, part) if tape is None else tape.values
        self._differentiated[part] = False
        return Forward(values, tape or record, self.dimension, functools.partial(self._plan, part))

    def expect_values(self) -> None:
        self._differentiated = dict.fromkeys(PARTS, False)

    def _recorded(self, x: FloatArray, part: str, constants: list[Any]) -> Tape:
        traced: list[tuple[int, Shape]] = []
        values, pull = self._run(x, self._roots[part], self._order(part), constants, traced)
        return Tape(values, pull, traced, functools.partial(self._expect_derivatives, part))

    def _expect_derivatives(self, part: str) -> None:
        self._differentiated[part] = True

    def _plain(self, x: FloatArray, part: str) -> FloatArray:
        """The values of a part, without a tape."""
        with np.errstate(all="ignore"):
            found = self._computed(np, x, self._roots[part], self._order(part), self._constants)
        return np.concatenate([np.ravel(each) for each in found]) if found else np.zeros(0)

    def hessian(self, x: FloatArray, weights: FloatArray) -> FloatArray | scipy.sparse.csr_array:
        """The Hessian of weights·φ by reverse over reverse; compressed rows where it is sparse.

        Weights of the map's entries may follow those of φ.
        """
        shares = self.root_weights(weights)
        weighted = [i for i, share in enumerate(shares) if np.any(share)]
        roots = [self._graph.roots[i] for i in weighted]
        if not roots:
            shape = (self.dimension, self.dimension)
            return np.zeros(shape) if self.hessian_plan is None else scipy.sparse.csr_array(shape)
        order = self.program.needed(roots)
        seed = np.concatenate([shares[i] for i in weighted])

        def gradient(point: Any) -> Any:
            pull = self._run(point, roots, order, self._constants)[1]
            return xp.zeros(self.dimension) if pull is None else pull(seed)

        try:
            with np.errstate(all="ignore"):
                pull = taped(gradient, np.array(x, dtype=float))[1]
        except np.linalg.LinAlgError:
            return np.full((self.dimension, self.dimension), np.nan)
        plan = self.hessian_plan
        if plan is not None:
            seeds = np.asarray(plan.colors == np.arange(plan.sweeps)[:, None], dtype=float)
            return plan.matrix(swept_all(pull, seeds, self.dimension))
        check_dense("the Hessian", self.dimension, self.dimension)
        hessian = swept_all(pull, np.eye(self.dimension), self.dimension)
        return (hessian + hessian.T) / 2

    @property
    def sparse_hessian(self) -> bool:
        return self.hessian_plan is not None

    @cached_property
    def hessian_plan(self) -> HessianPlan | None:
        """The sweeps for a sparse Hessian of φ and of the map; None where it is small or dense."""
        if self.dimension < SPARSE_ROWS:
            return None
        interactions = Interactions(self.dimension)
        try:
            self._patterns(self.program.needed(self._graph.roots), interactions)
            pattern = interactions.pattern()
        except TooDense:
            return None
        dense = pattern.nnz > SPARSE_DENSITY * self.dimension**2
        return None if dense else hessian_plan(pattern)

    @property
    def _constants(self) -> list[Any]:
        """The values of the steps without variables."""
        if self._values is None:
            self.refresh()
        assert self._values is not None
        return self._values

    def _run(
        self,
        x: Any,
        roots: Sequence[int],
        order: Sequence[int],
        constants: list[Any],
        traced: list[tuple[int, Shape]] | None = None,
    ) -> tuple[Any, Pullback | None]:
        """Values and pullback; `traced` is filled with start and shape of the roots on the tape."""
        if not roots:
            return np.zeros(0), None

        def run(point: Any) -> Any:
            found = self._computed(xp, point, roots, order, constants)
            if traced is not None:
                traced.extend(roots_on_tape(found))
            return stacked(*found)

        with np.errstate(all="ignore"):
            return taped(run, x if is_traced(x) else np.array(x, dtype=float))

    def _computed(
        self,
        xp: Any,
        point: Any,
        roots: Sequence[int],
        order: Sequence[int],
        constants: list[Any],
    ) -> list[Any]:
        """The values of the roots."""
        values, steps = list(constants), self._graph.steps
        blocks = self.layout.unpack(xp, point)
        for number in order:
            step = steps[number]
            if isinstance(step.leaf, Variable):
                values[number] = blocks[self.layout.position(step.leaf)]
            else:
                values[number] = step.run(xp, values)
        return [values[root] for root in roots]

    def _order(self, part: str) -> tuple[int, ...]:
        """The live steps under the roots of a part."""
        if part not in self._orders:
            self._orders[part] = self.program.needed(self._roots[part])
        return self._orders[part]

    def _known_zeros(self) -> dict[int, sparsity.Zeros]:
        if self._zeros is None:
            values = self._constants
            self._zeros = sparsity.zeros({number: values[number] for number in self._weights})
        return self._zeros

    @cached_property
    def _weights(self) -> tuple[int, ...]:
        """Steps without variables whose zeros take entries out of a pattern."""
        live = self.program.live
        found = {
            argument
            for number, step in enumerate(self._graph.steps)
            if live[number] and step.atom is not None
            for place, argument in enumerate(step.arguments)
            if not live[argument] and sparsity.weighing(step, place)
        }
        return tuple(sorted(found))

    def _plan(self, part: str) -> sparsity.Plan:
        """Made at the first Jacobian of a part, and kept.

        A small one of few arrays, often the only one, is swept without a pattern at first.
        """
        if part not in self._plans:
            roots = self._roots[part]
            rows = sum(math.prod(self._graph.steps[root].shape) for root in roots)
            if min(rows, self.dimension) <= FEW_SWEEPS:
                self._plans[part] = sparsity.dense_plan(rows, self.dimension)
            elif rows < SPARSE_ROWS and rows * self.dimension <= SMALL_AT_ONCE:
                self._plans[part] = sparsity.dense_plan(rows, rows)
            elif (
                part not in self._swept
                and len(roots) <= FEW_SWEEPS
                and rows * self.dimension <= SMALL_JACOBIAN
            ):
                self._swept.add(part)
                # sweeps by columns need a second tape
                by_rows = rows <= 2 * self.dimension
                return sparsity.dense_plan(rows, rows if by_rows else self.dimension)
            else:
                sizes = [math.prod(self._graph.steps[root].shape) for root in roots]
                owner = np.repeat(np.arange(len(roots)), sizes)
                self._plans[part] = sparsity.plan(self._pattern(part), self.dimension, owner)
        return self._plans[part]

    def _pattern(self, part: str) -> sparsity.Pattern:
        steps = self._graph.steps
        patterns = self._patterns(self._order(part))
        rows: sparsity.Pattern = []
        for root in self._roots[part]:
            size = math.prod(steps[root].shape)
            rows.extend(patterns.get(root, [sparsity.NOTHING] * size))
        return rows

    def _patterns(
        self, order: Sequence[int], interactions: Interactions | None = None
    ) -> dict[int, sparsity.Pattern]:
        """Columns of each entry of the live steps; pairs of them are noted where that is wanted."""
        steps, known_zeros = self._graph.steps, self._known_zeros()
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
                known_zeros.get(argument) if sparsity.weighing(step, place) else None
                for place, argument in enumerate(step.arguments)
            ]
            patterns[number] = sparsity.propagate(step, shapes, found, zeros)
        return patterns
