"""A stack that is compiled when it turns out to be used often.

Compiling takes as long as several evaluations by the reference engine, and a model that is solved as one
convex program is evaluated at two or three points. So `engine="auto"` evaluates by the reference first
and compiles later, when evaluations have taken about as long as compiling does.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hcmodel.engines.engine import (
    CompiledStack,
    Engine,
    Forward,
    ProgramStack,
    WrappedEngine,
    compiled_if_possible,
)
from hcmodel.engines.graph_program import Program
from hcmodel.records import dataclass

FloatArray: TypeAlias = NDArray[np.float64]

# Evaluations before a stack is compiled. Compiling at once made small proven models 5 to 15 ms slower; an
# evaluation by autograd takes 0.3 to 2 ms. The number itself was not tuned.
PATIENCE = 8


@dataclass(frozen=True)
class DeferredEngine(WrappedEngine):
    """An engine whose stacks are first evaluated by another one."""

    reference: Engine

    @property
    def name(self) -> str:
        return (self.reference if self.inner.missing else self.inner).name

    def compile(self, program: Program) -> DeferredStack:
        return DeferredStack(program, self)


class DeferredStack(ProgramStack):
    """The stack of the reference engine, then that of the other one."""

    def __init__(self, program: Program, engines: DeferredEngine) -> None:
        super().__init__(program)
        self._engines = engines
        self._reference: CompiledStack = engines.reference.compile(program)
        self._stack = self._reference
        self._left = PATIENCE

    @property
    def engine(self) -> str:
        return self._engines.name

    def refresh(self) -> None:
        self._stack.refresh()

    def expect_values(self) -> None:
        self._stack.expect_values()

    def evaluate(self, x: FloatArray, part: str) -> Forward:
        return self._current().evaluate(x, part)

    def hessian(self, x: FloatArray, weights: FloatArray) -> Any:
        return self._current().hessian(x, weights)

    @property
    def sparse_hessian(self) -> bool:
        """From the pattern of the reference engine: the other one compiles the Hessian to find it."""
        return self._reference.sparse_hessian

    def _current(self) -> CompiledStack:
        """The stack for one more evaluation."""
        if self._left > 0:
            self._left -= 1
            if self._left == 0:
                compiled = compiled_if_possible(self._engines.inner, self.program)
                self._stack = compiled or self._reference
        return self._stack
