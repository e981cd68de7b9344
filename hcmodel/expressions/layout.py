"""The flat vector: which slice belongs to which variable, and how a slice becomes an array.

Names exist outside, the vector inside. Each block is expanded linearly from its stored entries: an
array is stored whole, in C order, and a symmetric matrix as its scaled upper triangle.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hcmodel.errors import ModelError
from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.shapes import Shape
from hcmodel.solvers.algebra.symmetric import ROOT_TWO, to_vector, triangle


@dataclass(frozen=True)
class Block:
    """One variable's share of the vector."""

    start: int
    stop: int
    shape: Shape
    symmetric: bool = False

    def expand(self, xp: Any, stored: Any) -> Any:
        """The variable's array from its stored entries; linear in them."""
        if self.symmetric:
            places, factors = _spread(self.shape[0])
            return xp.reshape(stored[places] * factors, self.shape)
        return xp.reshape(stored, self.shape)

    def store(self, array: np.ndarray) -> np.ndarray:
        """The stored entries of an array, the inverse of `expand`."""
        if self.symmetric:
            return to_vector(np.asarray(array, dtype=float))
        return np.asarray(array, dtype=float).reshape(-1)


@functools.cache
def _spread(order: int) -> tuple[np.ndarray, np.ndarray]:
    """For each entry of a symmetric matrix, where it is stored and by what it is scaled."""
    rows, columns = triangle(order)
    places = np.zeros((order, order), dtype=int)
    places[rows, columns] = places[columns, rows] = np.arange(rows.size)
    factors = np.where(np.eye(order, dtype=bool), 1.0, 1.0 / ROOT_TWO)
    return places.reshape(-1), factors.reshape(-1)


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
            symmetric = variable.domain_kind in ("symmetric", "psd")
            order = variable.shape[0] if symmetric else 0
            size = order * (order + 1) // 2 if symmetric else variable.size
            blocks.append(Block(start, start + size, variable.shape, symmetric))
            start += size
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
        own = _spread(block.shape[0])[0] if block.symmetric else np.arange(block.stop - block.start)
        return np.asarray(block.start + own)

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
