"""Functions of the user with gradients of their own, evaluated without a tape.

Where each root is such a function of variables and constants, or a constant, its derivatives are rows of
the Jacobian as they are. A tape for them takes several times as long as a small function itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.atom import Derivatives
from hcmodel.engines.forward import SPARSE_ROWS
from hcmodel.engines.graph_program import Program
from hcmodel.errors import ModelError
from hcmodel.expressions.graph import Step
from hcmodel.expressions.leaves import Variable
from hcmodel.records import cached_property, dataclass
from hcmodel.solvers.memory import check_dense

FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class UserGradients:
    """The roots of one part, and where the variables among their arguments are stored."""

    program: Program
    roots: tuple[int, ...]
    blocks: tuple[tuple[tuple[int, slice], ...] | None, ...]
    """For each root the places of arguments that are variables, with their entries of the vector; None
    for a constant."""

    @staticmethod
    def of(program: Program, roots: Sequence[int]) -> UserGradients | None:
        """None where another atom stands between the functions and the variables or the roots.

        A Jacobian of many rows may be sparse, which a tape finds out.
        """
        steps, live = program.graph.steps, program.live
        if not any(live[root] for root in roots):
            return None
        if sum(math.prod(steps[root].shape) for root in roots) >= SPARSE_ROWS:
            return None
        blocks: list[tuple[tuple[int, slice], ...] | None] = []
        for root in roots:
            step = steps[root]
            if not live[root]:
                blocks.append(None)
                continue
            if step.atom is None or step.atom.derivatives(step.params) is None:
                return None
            own = []
            for place, argument in enumerate(step.arguments):
                leaf = steps[argument].leaf
                if isinstance(leaf, Variable) and leaf.set.stored_size == leaf.size:
                    own.append((place, program.layout.slice(leaf)))
                elif live[argument]:
                    return None
            blocks.append(tuple(own))
        return UserGradients(program, tuple(roots), tuple(blocks))

    @cached_property
    def _variables(self) -> tuple[tuple[int, int], ...]:
        """The steps that are variables, and their places in the layout."""
        leaves = [step.leaf for step in self.program.graph.steps]
        position = self.program.layout.position
        return tuple(
            (i, position(leaf)) for i, leaf in enumerate(leaves) if isinstance(leaf, Variable)
        )

    @cached_property
    def sweeps(self) -> tuple[_Sweep, ...]:
        return tuple(
            _Sweep.of(root, self.program.graph.steps[root], blocks)
            for root, blocks in zip(self.roots, self.blocks, strict=True)
        )

    def at(self, x: FloatArray, constants: Sequence[Any]) -> CalledForward:
        """The values at a point; `constants` has those of the steps without variables."""
        values = list(constants)
        arrays = self.program.layout.unpack(np, x)
        for number, position in self._variables:
            values[number] = arrays[position]
        found, given = [], []
        with np.errstate(all="ignore"):
            for sweep in self.sweeps:
                arguments = [values[each] for each in sweep.arguments]
                given.append(arguments)
                found.append(sweep.value(arguments, values[sweep.root]))
        return CalledForward(self, given, np.concatenate(found))


@dataclass(frozen=True)
class _Sweep:
    """A root: the number of its entries, its function, and what derivatives are asked for.

    A constant has no function.
    """

    root: int
    count: int
    arguments: tuple[int, ...]
    function: Derivatives | None
    places: list[int]
    blocks: list[slice]

    def value(self, arguments: Sequence[Any], constant: Any) -> FloatArray:
        """The entries of the root, which may be a constant; NaN where linear algebra gives up."""
        if self.function is None:
            return np.ravel(constant)
        try:
            found: FloatArray = self.function.value(arguments).reshape(-1)
        except np.linalg.LinAlgError:
            return np.full(self.count, np.nan)
        return found

    @staticmethod
    def of(root: int, step: Step, blocks: tuple[tuple[int, slice], ...] | None) -> _Sweep:
        count = math.prod(step.shape)
        if blocks is None:
            return _Sweep(root, count, (), None, [], [])
        assert step.atom is not None
        function = step.atom.derivatives(step.params)
        places, parts = [place for place, _ in blocks], [part for _, part in blocks]
        return _Sweep(root, count, step.arguments, function, places, parts)


class CalledForward:
    """One pass: the values, and derivatives when they are asked for."""

    def __init__(
        self, plan: UserGradients, arguments: Sequence[Sequence[Any]], values: FloatArray
    ) -> None:
        self.values = values
        self._plan = plan
        self._arguments = arguments
        self._jacobian: FloatArray | None = None

    def jacobian(self) -> FloatArray:
        if self._jacobian is None:
            self._jacobian = self._assembled()
        return self._jacobian

    def pullback(self, weights: Any) -> FloatArray:
        """The gradient of weights·φ."""
        weights = np.asarray(weights, dtype=float)
        if weights.shape != self.values.shape:
            raise ModelError(f"{self.values.size} weights are needed, not shape {weights.shape}")
        return np.asarray(weights @ self.jacobian())

    def _assembled(self) -> FloatArray:
        plan, dimension = self._plan, self._plan.program.dimension
        check_dense("a Jacobian", self.values.size, dimension)
        found = np.zeros((self.values.size, dimension))
        first = 0
        with np.errstate(all="ignore"):
            for sweep, arguments in zip(plan.sweeps, self._arguments, strict=True):
                if sweep.function is not None:
                    rows = found[first : first + sweep.count]
                    try:
                        parts = sweep.function(arguments, sweep.places)
                        for block, part in zip(sweep.blocks, parts, strict=True):
                            rows[:, block] += part.reshape(sweep.count, -1)
                    except np.linalg.LinAlgError:
                        rows[:] = np.nan
                first += sweep.count
        return found
