"""The protocol of engines: what compiles a program, and what the compiled stack has to offer.

An engine is a table entry in `hcmodel.engines.registry`. `hcmodel.testing.check_engine` tests one: every
atom and every example model, from the value to the second derivative.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.atom import Atom
from hcmodel.engines.graph_program import Program
from hcmodel.errors import HCWarning, ModelError
from hcmodel.expressions.layout import Layout
from hcmodel.expressions.shapes import Shape
from hcmodel.records import dataclass
from hcmodel.solvers.oracle import Forward, Matrix, Stack

FloatArray: TypeAlias = NDArray[np.float64]

__all__ = [
    "CompiledStack",
    "Engine",
    "EngineUnavailable",
    "Forward",
    "Matrix",
    "ProgramStack",
    "WrappedEngine",
    "compiled_if_possible",
]


class EngineUnavailable(ModelError):  # noqa: N818  (what it says of the engine)
    """An engine is installed and cannot run on this machine."""


class CompiledStack(Stack, Protocol):
    """The compiled functions φ.

    `evaluate` and `hessian` are those of `Stack`. Where a function leaves its domain they return numbers
    that are not finite; they do not raise or warn. What they return belongs to the caller: an engine
    that works in buffers copies out of them. Matrices are dense arrays, or compressed rows where they are
    large and sparse.
    """

    @property
    def engine(self) -> str:
        """The name of the engine that compiled it."""

    @property
    def layout(self) -> Layout: ...
    @property
    def map_size(self) -> int:
        """The number of entries of the map of hidden coordinates."""

    @property
    def has_black_boxes(self) -> bool:
        """Whether functions of the user's own are among the atoms."""

    @property
    def sparse_hessian(self) -> bool:
        """Whether `hessian` returns compressed rows."""

    def refresh(self) -> None:
        """Read the values of the parameters; the first evaluation does so itself."""

    def expect_values(self) -> None:
        """Prepare for an evaluation whose derivatives will hardly be asked for."""


class Engine(Protocol):
    """One entry of the table."""

    @property
    def name(self) -> str: ...
    @property
    def missing(self) -> str | None:
        """What has to be installed before the engine can run; None where nothing is missing."""

    def expresses(self, atom: Atom, shapes: Sequence[Shape], params: dict[str, Any]) -> bool:
        """Whether the engine can compile this atom for arguments of these shapes."""

    def compile(self, program: Program) -> CompiledStack: ...


def compiled_if_possible(engine: Engine, program: Program) -> CompiledStack | None:
    """The compiled stack; None, with a warning, where the engine turns out not to run here."""
    try:
        return engine.compile(program)
    except EngineUnavailable as error:
        warnings.warn(f"{error}; autograd is used instead", HCWarning, stacklevel=2)
        return None


@dataclass(frozen=True)
class WrappedEngine:
    """An engine around another one, with its name and its limits; a base class."""

    inner: Engine

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def missing(self) -> str | None:
        return self.inner.missing

    def expresses(self, atom: Atom, shapes: Sequence[Shape], params: dict[str, Any]) -> bool:
        return self.inner.expresses(atom, shapes, params)


class ProgramStack:
    """What every compiled stack knows from its program; a base class for those of the engines.

    Each of these has the name of its engine, too.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.layout = program.layout
        self.dimension = program.dimension
        self.size = program.size
        self.map_size = program.map_size
        self.objective_size = program.objective_size
        self.has_black_boxes = program.has_black_boxes
        self.kinked = program.kinked

    def expect_values(self) -> None:
        """Derivatives cost nothing until they are asked for, unless an engine says otherwise."""

    def root_weights(self, weights: FloatArray) -> list[FloatArray]:
        """The weights of each root's entries; those of the map may be left out and are 0 then."""
        sizes = self.program.root_sizes
        return np.split(self.all_weights(weights), np.cumsum(sizes)[:-1]) if sizes else []

    def all_weights(self, weights: FloatArray) -> FloatArray:
        """The weights of all entries; those of the map may be left out and are 0 then."""
        weights = np.asarray(weights, dtype=float)
        if self.map_size and weights.shape == (self.size,):
            weights = np.concatenate([weights, np.zeros(self.map_size)])
        if weights.shape != (self.size + self.map_size,):
            raise ModelError(f"{self.size} weights are needed, not shape {weights.shape}")
        return weights
