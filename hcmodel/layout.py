"""The flat vector: which slice belongs to which variable, and how a slice becomes an array.

Names exist outside, the vector inside. Each block is expanded linearly from its stored entries; a
full array in C order is the only storage so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hcmodel.errors import ModelError
from hcmodel.expression import Variable
from hcmodel.shapes import Shape


@dataclass(frozen=True)
class Block:
    """One variable's share of the vector."""

    start: int
    stop: int
    shape: Shape

    def expand(self, xp: Any, stored: Any) -> Any:
        """The variable's array from its stored entries; linear in them."""
        return xp.reshape(stored, self.shape)

    def store(self, array: np.ndarray) -> np.ndarray:
        """The stored entries of an array, the inverse of `expand`."""
        return np.asarray(array, dtype=float).reshape(-1)


class Layout:
    """The order of the variables and their slices of the flat vector."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.variables = tuple(variables)
        self._position = {variable: i for i, variable in enumerate(self.variables)}
        if len(self._position) < len(self.variables):
            raise ModelError("a variable stands twice in the layout; give each once")
        blocks: list[Block] = []
        start = 0
        for variable in self.variables:
            blocks.append(Block(start, start + variable.size, variable.shape))
            start += variable.size
        self.blocks = tuple(blocks)
        self.size = start

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
            if array.shape != block.shape:
                raise ModelError(
                    f"variable '{variable.name}' has shape {block.shape}, not {array.shape}"
                )
            vector[block.start : block.stop] = block.store(array)
        return vector

    def __getstate__(self) -> dict[str, Any]:
        return {"variables": self.variables}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["variables"])  # type: ignore[misc]
