"""The flat vector: which slice belongs to which variable, and how a slice becomes an array.

Names exist outside, the vector inside. Each block is expanded linearly from its stored entries, as the
set of its variable says: an array is stored whole, in C order, and a symmetric matrix as its scaled
upper triangle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hcmodel.errors import ModelError
from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.variable_sets import VariableSet
from hcmodel.records import dataclass


@dataclass(frozen=True)
class Block:
    """One variable's share of the vector."""

    start: int
    stop: int
    set: VariableSet

    def expand(self, xp: Any, stored: Any) -> Any:
        """The variable's array from its stored entries; linear in them."""
        return self.set.expand(xp, stored)

    def store(self, array: np.ndarray) -> np.ndarray:
        """The stored entries of an array, the inverse of `expand`."""
        return self.set.store(array)


class Layout:
    """The order of the variables and their slices of the flat vector."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.variables = tuple(variables)
        self._position = {variable: i for i, variable in enumerate(self.variables)}
        if len(self._position) < len(self.variables):
            raise ModelError("a variable occurs twice in the layout; give each once")
        blocks: list[Block] = []
        start = 0
        for variable in self.variables:
            stop = start + variable.set.stored_size
            blocks.append(Block(start, stop, variable.set))
            start = stop
        self.blocks = tuple(blocks)
        self.size = start

    def holds(self, variable: Variable) -> bool:
        return variable in self._position

    def position(self, variable: Variable) -> int:
        """The place of `variable` in the order."""
        try:
            return self._position[variable]
        except KeyError:
            raise ModelError(f"variable '{variable.name}' is not part of this problem") from None

    def slice(self, variable: Variable) -> slice:
        """Where `variable` lies in the vector."""
        block = self.blocks[self.position(variable)]
        return slice(block.start, block.stop)

    def places(self, variable: Variable) -> np.ndarray:
        """For each entry of `variable`, in C order, where in the vector it is stored."""
        block = self.blocks[self.position(variable)]
        return np.asarray(block.start + block.set.places())

    def unpack(self, xp: Any, vector: Any) -> list[Any]:
        """The variables' arrays, in order, from the vector."""
        if len(self.blocks) == 1:
            return [self.blocks[0].expand(xp, vector)]
        return [block.expand(xp, vector[block.start : block.stop]) for block in self.blocks]

    def pack(self, values: Sequence[Any]) -> np.ndarray:
        """The vector from the variables' arrays, in order."""
        if len(values) != len(self.blocks):
            raise ModelError(f"{len(self.blocks)} arrays are needed, and {len(values)} were given")
        vector = np.empty(self.size)
        for block, variable, value in zip(self.blocks, self.variables, values, strict=True):
            array = np.asarray(value, dtype=float)
            if array.shape != variable.shape:
                raise ModelError(
                    f"variable '{variable.name}' has shape {variable.shape}, not {array.shape}"
                )
            vector[block.start : block.stop] = block.store(array)
        return vector

    def __reduce__(self) -> tuple[type[Layout], tuple[tuple[Variable, ...]]]:
        """A pickle holds the variables alone: the rest follows from them."""
        return Layout, (self.variables,)
