"""Declared maps that act on each entry by itself: log(x), x, or x scaled and shifted.

For those the structural proof applies, with the coordinates pinned. An entry of the map is tracked
by a number that says which entry of which variable it is, and whether its logarithm was taken;
rearrangements such as indexing and stacking are run on those numbers with the atoms' own functions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.rules import Argument, Curvature
from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Apply, Expression, Variable
from hcmodel.facts.curvature import can_be_log

IDENTITY, LOG = "identity", "log"

# Codes: 0 is "something else"; entry k of the variables is 1 + k, its logarithm −(1 + k). An entry that
# was shifted or negated is still a coordinate, but its logarithm is not one: it has MOVED added.
MOVED = 1 << 40
Codes = NDArray[np.int64]


def entry_offsets(variables: Sequence[Variable]) -> dict[Variable, int]:
    """Where the entries of each variable begin, counted through all of them."""
    offsets = np.cumsum([0, *(variable.size for variable in variables)])
    return {variable: int(offset) for variable, offset in zip(variables, offsets, strict=False)}


def declared_coordinates(
    parts: Sequence[Expression], variables: Sequence[Variable]
) -> dict[Variable, str] | None:
    """The coordinate of each variable under the map, or None where it is not of this kind.

    Variables that the map does not mention are their own coordinate. A map that names an entry
    twice or leaves out a part of a variable is no map of this kind.
    """
    start = entry_offsets(variables)
    codes = _codes(parts, start)
    entries = _settled(np.concatenate([np.ravel(codes[id(part)]) for part in parts]))
    if (entries == 0).any() or np.unique(np.abs(entries)).size < entries.size:
        return None
    logs, plain = set(-entries[entries < 0]), set(entries[entries > 0])
    coordinates: dict[Variable, str] = {}
    for variable in variables:
        own = set(range(1 + start[variable], 1 + start[variable] + variable.size))
        if own <= logs and can_be_log(variable):
            coordinates[variable] = LOG
        elif own <= plain or not own & (logs | plain):
            coordinates[variable] = IDENTITY
        else:
            return None
    return coordinates


def _codes(parts: Sequence[Expression], start: dict[Variable, int]) -> dict[int, Codes]:
    known: dict[int, Codes] = {}
    for node in topological_order(parts):
        if isinstance(node, Variable):
            own = 1 + start[node] + np.arange(node.size)
            known[id(node)] = own.reshape(node.shape)
        elif isinstance(node, Apply):
            known[id(node)] = _applied(node, known)
        else:
            known[id(node)] = np.zeros(node.shape, dtype=int)
    return known


def _settled(codes: Codes) -> Codes:
    """The codes of finished entries: how an entry was moved no longer matters."""
    return np.where(codes >= MOVED, codes - MOVED, codes)


def _applied(node: Apply, known: dict[int, Codes]) -> Codes:
    """The codes of an atom's result; what is not understood is something else."""
    if node.atom.moves_entries:
        sources = [known[id(argument)] for argument in node.args]
        return np.asarray(node.atom.function(np, *sources, **dict(node.params)), dtype=int)
    moving = [i for i, argument in enumerate(node.args) if argument.variables()]
    unknown = np.zeros(node.shape, dtype=int)
    if len(moving) != 1 or not node.atom.is_invertible:
        return unknown
    facts = [
        Argument(argument.shape) if i in moving else _constant(argument)
        for i, argument in enumerate(node.args)
    ]
    atom, params = node.atom, dict(node.params)
    if atom.inverse(facts, params) is None:
        return unknown
    codes = np.array(np.broadcast_to(known[id(node.args[moving[0]])], node.shape))
    if atom.log_to_plain(facts, params) is Curvature.AFFINE:
        return np.where((codes > 0) & (codes < MOVED), -codes, 0)
    if atom.curvature(facts, params) is not Curvature.AFFINE:
        return unknown
    proportional = atom.log_curvature(facts, params) is Curvature.AFFINE
    return codes if proportional else _moved(codes)


def _constant(argument: Expression) -> Argument:
    value = argument.value
    if value is None:
        return Argument(argument.shape, constant=True)
    return Argument.from_value(value)


def _moved(codes: Codes) -> Codes:
    return np.where((codes > 0) & (codes < MOVED), codes + MOVED, codes)


def entry_codes(parts: Sequence[Expression], variables: Sequence[Variable]) -> Codes:
    """The entries of variables, numbered from 1 in their order, that occur among the parts' entries.

    As they are or times a positive constant.
    """
    start = entry_offsets(variables)
    codes = _codes(parts, start)
    found = [np.ravel(codes[id(part)]) for part in parts]
    entries = np.unique(np.concatenate([np.zeros(0, dtype=int), *found]))
    return entries[(entries > 0) & (entries < MOVED)]


def plain_entries(
    parts: Sequence[Expression], variables: Sequence[Variable]
) -> dict[Variable, NDArray[np.bool_]]:
    """For each variable the entries that are coordinates themselves, as they are."""
    start = entry_offsets(variables)
    codes = _codes(parts, start)
    plain = {
        int(code) for part in parts for code in np.ravel(_settled(codes[id(part)])) if code > 0
    }
    return {
        variable: np.array(
            [1 + start[variable] + k in plain for k in range(variable.size)], dtype=bool
        ).reshape(variable.shape)
        for variable in variables
    }
