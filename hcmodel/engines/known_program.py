"""A program all of whose roots are known as sums of terms, as those of a map's model mostly are.

Its stack is made of these sums, and nothing is compiled. The graph is there for an engine that is asked
to compile the whole stack, and merged then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hcmodel.atoms.atom import Atom
from hcmodel.engines.graph_program import KnownTerms, Program
from hcmodel.expressions.graph import Graph, join_sums, merge
from hcmodel.expressions.layout import Layout
from hcmodel.expressions.leaves import Expression, Parameter
from hcmodel.expressions.shapes import Shape
from hcmodel.records import cached_property


class KnownProgram(Program):
    """The program of `roots` that are smooth and have neither parameters nor code of the user."""

    has_black_boxes = False
    kinked = False
    is_known = True
    numbers = 0  # for an engine to copy

    def __init__(
        self, roots: Sequence[Expression], layout: Layout, split: int, known: Sequence[KnownTerms]
    ) -> None:
        own = {"layout": layout, "split": split, "stop": len(roots), "known": tuple(known)}
        self.__dict__.update(own, expressions=tuple(roots))  # programs are frozen

    @cached_property
    def graph(self) -> Graph:
        return join_sums(merge(self.__dict__["expressions"]))

    @cached_property
    def root_sizes(self) -> tuple[int, ...]:
        return tuple([root.size for root in self.__dict__["expressions"]])

    @property
    def parameters(self) -> list[Parameter]:
        return []

    def applications(self) -> Iterator[tuple[Atom, list[Shape], dict[str, Any]]]:
        """None: no atom has to be expressed by an engine."""
        return iter(())
