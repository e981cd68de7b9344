"""An engine in one screen: values by numpy, derivatives by central differences.

It proves that the protocol suffices: nothing here knows autograd, and nothing elsewhere knows this.
Second derivatives are differences of differences, with about five digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.atom import Atom
from hcmodel.engines.engine import ProgramStack
from hcmodel.engines.graph_program import Program
from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.shapes import Shape

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class DifferencesEngine:
    """`lacking` names the atoms that it refuses, so that tests can see how that is told."""

    name: str = "differences"
    missing: str | None = None
    lacking: tuple[str, ...] = ()

    def expresses(self, atom: Atom, shapes: Sequence[Shape], params: dict[str, Any]) -> bool:
        return atom.name not in self.lacking

    def compile(self, program: Program) -> DifferencesStack:
        return DifferencesStack(program)


@dataclass(frozen=True)
class Pass:
    values: FloatArray
    point: FloatArray
    function: Callable[[FloatArray], FloatArray]

    def jacobian(self) -> FloatArray:
        return central(self.function, self.point, 1e-6)

    def pullback(self, weights: FloatArray) -> FloatArray:
        return np.asarray(weights @ self.jacobian())


class DifferencesStack(ProgramStack):
    engine = "differences"
    sparse_hessian = False

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._constants: list[Any] | None = None

    def refresh(self) -> None:
        self._constants = self.program.constants()

    def evaluate(self, x: FloatArray, part: str) -> Pass:
        roots = self.program.roots(part)
        point = np.array(x, dtype=float)

        def function(at: FloatArray) -> FloatArray:
            return self._run(at, roots)

        return Pass(function(point), point, function)

    def hessian(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        shares = np.concatenate([np.zeros(0), *self.root_weights(weights)])

        def gradient(at: FloatArray) -> FloatArray:
            return central(lambda y: np.array([shares @ self._all(y)]), at, 1e-4)[0]

        found = central(gradient, np.array(x, dtype=float), 1e-4)
        return (found + found.T) / 2

    def _all(self, x: FloatArray) -> FloatArray:
        return self._run(x, self.program.graph.roots)

    def _run(self, x: FloatArray, roots: Sequence[int]) -> FloatArray:
        if self._constants is None:
            self.refresh()
        assert self._constants is not None
        values = list(self._constants)
        blocks = self.layout.unpack(np, x)
        with np.errstate(all="ignore"):
            for number in self.program.needed(roots):
                step = self.program.graph.steps[number]
                if isinstance(step.leaf, Variable):
                    values[number] = blocks[self.layout.position(step.leaf)]
                else:
                    values[number] = step.run(np, values)
        return np.concatenate([np.zeros(0), *(np.ravel(values[root]) for root in roots)])


def central(
    function: Callable[[FloatArray], FloatArray], point: FloatArray, step: float
) -> FloatArray:
    rows = function(point).size
    jacobian = np.zeros((rows, point.size))
    for i in range(point.size):
        ahead, behind = point.copy(), point.copy()
        ahead[i] += step * min(max(abs(point[i]), 1e-2), 1.0)
        behind[i] -= step * min(max(abs(point[i]), 1e-2), 1.0)
        with np.errstate(all="ignore"):
            jacobian[:, i] = (function(ahead) - function(behind)) / (ahead[i] - behind[i])
    return jacobian
