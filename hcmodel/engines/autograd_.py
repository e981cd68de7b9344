"""The reference engine: values by numpy, derivatives by autograd's reverse mode (`autograd_stack`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hcmodel.atoms.atom import Atom
from hcmodel.engines.batches import FEWEST, batched
from hcmodel.engines.engine import CompiledStack
from hcmodel.engines.graph_program import Program
from hcmodel.expressions.shapes import Shape
from hcmodel.records import dataclass


@dataclass(frozen=True)
class AutogradEngine:
    """The entry of the table: it expresses every atom.

    Graphs of at least `fewest` steps are joined into batches.
    """

    fewest: int = FEWEST
    name: str = "autograd"
    missing: str | None = None

    def expresses(self, atom: Atom, shapes: Sequence[Shape], params: dict[str, Any]) -> bool:
        return True

    def compile(self, program: Program) -> CompiledStack:
        from hcmodel.engines.autograd_stack import AutogradStack  # most models need none

        joined, split, stop = batched(program.graph, program.split, program.stop, self.fewest)
        if joined is not program.graph:
            program = Program(joined, program.layout, split, stop)
        return AutogradStack(program)
