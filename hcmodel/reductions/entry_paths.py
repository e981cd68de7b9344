"""The way from a variable to an expression each entry of which is one of its entries, scaled and shifted.

The entries are followed through indexing, reshaping, sums with constants and products with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.rules import Dependence
from hcmodel.expressions.leaves import Apply, Expression, Variable
from hcmodel.expressions.sparse_data import dense

FloatArray = NDArray[np.float64]
Path = tuple[Variable, list[tuple[Apply, int]]]
Entries = tuple[Any, Any, Any]


class Liveness:
    """Whether expressions depend on variables. A walk ends at the first variable that it meets."""

    def __init__(self) -> None:
        self._constant: set[int] = set()
        self._live: set[int] = set()
        self.without_path: set[int] = set()
        """Nodes that are known to have no way from a variable (`path_of`): rows may share them."""

    def __call__(self, expression: Expression) -> bool:
        if not expression.args:
            return isinstance(expression, Variable)
        if id(expression) in self._live:
            return True
        first = expression
        while first.args:
            first = first.args[0]
        if isinstance(first, Variable):  # as it is most often
            self._live.add(id(expression))
            return True
        pending: list[Expression] = [expression]
        seen: set[int] = set()
        while pending:
            node = pending.pop()
            if isinstance(node, Variable):
                self._live.add(id(expression))
                return True
            if id(node) not in seen and id(node) not in self._constant:
                seen.add(id(node))
                pending.extend(node.args)
        self._constant |= seen
        return False


def path_of(side: Expression, live: Liveness) -> Path | None:
    """The way from a variable to an expression; None where there is no such way."""
    path: list[tuple[Apply, int]] = []
    node = side
    while not isinstance(node, Variable):
        if not isinstance(node, Apply) or id(node) in live.without_path:
            return None
        places = [place for place, argument in enumerate(node.args) if live(argument)]
        if len(places) != 1 or not _keeps_entries(node, places[0]):
            live.without_path.add(id(node))
            return None
        path.append((node, places[0]))
        node = node.args[places[0]]
    return node, path


def entries_on(variable: Variable, path: Sequence[tuple[Apply, int]]) -> Entries | None:
    """Which entry of the variable each entry at the end of the path is; its factor and its offset."""
    shape = variable.shape
    places = np.arange(variable.size).reshape(shape)
    found: Entries | None = (places, np.ones(shape), np.zeros(shape))
    for step, place in reversed(path):
        assert found is not None
        found = _applied(step, place, found)
        if found is None:
            return None
    return found


def _keeps_entries(node: Apply, place: int) -> bool:
    atom = node.atom
    if atom.moves_entries:
        return len(node.args) == 1
    if atom.summed:
        return True
    shapes = [argument.shape for argument in node.args]
    elementwise = atom.dependence(shapes, dict(node.params)) is Dependence.ELEMENTWISE
    return elementwise and place in atom.linear_in


def _applied(node: Apply, place: int, entries: Entries) -> Entries | None:
    places, factors, offsets = entries
    atom, params = node.atom, dict(node.params)
    if atom.moves_entries:
        numbers = np.asarray(
            atom.function(np, 1 + np.arange(places.size).reshape(places.shape), **params)
        )
        if not numbers.all():
            return None  # zeros between the entries
        moved = numbers.astype(np.intp) - 1
        return places.ravel()[moved], factors.ravel()[moved], offsets.ravel()[moved]
    constants = [None if i == place else number_of(each) for i, each in enumerate(node.args)]
    if any(each is None for i, each in enumerate(constants) if i != place):
        return None
    wide: list[Any] = [np.broadcast_to(each, node.shape) for each in (places, factors, offsets)]
    if atom.summed:
        signs = atom.signs(len(node.args))
        total = sum(
            sign * each for sign, each in zip(signs, constants, strict=True) if each is not None
        )
        return wide[0], signs[place] * wide[1], signs[place] * wide[2] + total
    ones = [np.ones(node.args[place].shape) if each is None else each for each in constants]
    with np.errstate(all="ignore"):
        weights = np.asarray(atom.function(np, *ones, **params), dtype=float)
    if not np.isfinite(weights).all() or not weights.all():
        return None
    return wide[0], weights * wide[1], weights * wide[2]


def number_of(expression: Expression) -> FloatArray | None:
    """The value of a constant; None where a parameter has none, or it is not finite."""
    value = expression.value
    if value is None:
        return None
    array = np.asarray(dense(value), dtype=float)
    return array if np.isfinite(array).all() else None
