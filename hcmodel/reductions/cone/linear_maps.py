"""Sparse matrices of atoms that are linear in one argument, the others constant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.atoms.rules import Argument, Contraction, Dependence
from hcmodel.expressions.leaves import Apply
from hcmodel.expressions.sparse_data import Numbers, dense, is_sparse, nonzero_places
from hcmodel.reductions.cone.compressed_rows import Rows
from hcmodel.solvers.limits import check_time

FloatArray = NDArray[np.float64]


def coefficients(
    expression: Apply, place: int, constants: Sequence[Numbers | None], facts: Sequence[Argument]
) -> Rows | None:
    """The matrix of a node in its argument `place`, which alone is not constant; None: not linear."""
    atom, params = expression.atom, dict(expression.params)
    if place not in atom.linear_in:
        exponents = atom.exponents(facts, params)
        if exponents is None or len(exponents) <= place or not is_one(exponents[place]):
            return None
    dependence = atom.dependence([argument.shape for argument in expression.args], params)
    shape = expression.args[place].shape
    if dependence is Dependence.ELEMENTWISE:
        return _scaling(expression, shape, constants)
    if dependence is Dependence.REDUCTION and len(expression.args) == 1:
        found = _reduction(expression, params)
        return _probed(expression, place, constants) if found is None else found
    if dependence is Dependence.MOVEMENT and len(expression.args) == 1:
        return _movement(expression, params)
    if isinstance(dependence, Contraction) and len(expression.args) <= 2:
        other = next((each for each in constants if each is not None), None)
        return _contraction(dependence.subscripts, place, shape, other, expression.shape)
    return _probed(expression, place, constants) if place in atom.linear_in else None


def is_one(exponent: Any) -> bool:
    return exponent is not None and bool(np.all(exponent == 1))


def _scaling(
    expression: Apply, shape: tuple[int, ...], constants: Sequence[Numbers | None]
) -> Rows:
    """Entry by entry times a constant: the result for ones in place of the argument."""
    ones = [np.ones(shape) if each is None else dense(each) for each in constants]
    found = expression.atom.function(np, *ones, **dict(expression.params))
    weights = np.broadcast_to(found, expression.shape).reshape(-1)
    numbers = np.arange(math.prod(shape)).reshape(shape)
    columns = np.broadcast_to(numbers, expression.shape).reshape(-1)
    rows = np.arange(columns.size)
    return Rows.of_entries(weights, rows, columns, (columns.size, numbers.size))


def _reduction(expression: Apply, params: dict[str, Any]) -> Rows | None:
    """The matrix of a sum over axes with one weight for all entries; None for anything else."""
    shape, count = expression.args[0].shape, expression.args[0].size
    axes = params.get("axis")
    axes = (axes,) if isinstance(axes, int) else axes
    every = range(len(shape)) if axes is None else axes
    thin = tuple(1 if i in every else n for i, n in enumerate(shape))
    if math.prod(thin) != expression.size:
        return None
    numbers = np.arange(expression.size).reshape(thin)
    rows = np.broadcast_to(numbers, shape).reshape(-1)
    total = float(np.sum(expression.atom.function(np, np.ones(shape), **params)))
    weights = np.full(count, total / max(count, 1))
    return Rows.of_entries(weights, rows, np.arange(count), (expression.size, count))


def _movement(expression: Apply, params: dict[str, Any]) -> Rows:
    """The matrix that moves entries: the atom applied to their numbers, with 0 for a zero."""
    shape, count = expression.args[0].shape, expression.args[0].size
    numbers = np.arange(1, count + 1).reshape(shape)
    moved = expression.atom.function(np, numbers, **params)
    found = np.asarray(moved).reshape(-1).astype(np.intp)
    rows = np.flatnonzero(found)
    size = (expression.size, count)
    return Rows.of_entries(np.ones(rows.size), rows, found[rows] - 1, size)


def _probed(expression: Apply, place: int, constants: Sequence[FloatArray | None]) -> Rows:
    """The matrix of a linear function of which nothing else is known, column by column."""
    shape, count = expression.args[place].shape, expression.args[place].size
    columns = []
    for unit in np.eye(count):
        operands = [
            unit.reshape(shape) if i == place else dense(each) for i, each in enumerate(constants)
        ]
        found = expression.atom.function(np, *operands, **dict(expression.params))
        columns.append(scipy.sparse.csc_array(np.reshape(found, (-1, 1))))
    return Rows.of(scipy.sparse.hstack(columns, format="csr"))


def _contraction(
    subscripts: str,
    place: int,
    shape: tuple[int, ...],
    other: Numbers | None,
    result: tuple[int, ...],
) -> Rows:
    """The matrix of an einsum in one of its arguments, the other one constant."""
    inputs, output = subscripts.split("->")
    labels = inputs.split(",")
    own = labels[place]
    known = labels[1 - place] if other is not None else ""
    lengths = dict(zip(own, shape, strict=True))
    if other is not None:
        lengths |= dict(zip(known, other.shape, strict=True))
    index: dict[str, NDArray[np.intp]] = {}
    weights = np.ones(1)
    check_time()
    product = len(shape) == 1 and len(result) == 1 and set(known) == {own, output} and own != output
    if product:  # a matrix times a vector, from either side
        matrix = scipy.sparse.csr_array(other)
        return Rows.of(matrix if output == known[0] else matrix.T)
    if other is not None:
        places = nonzero_places(other)
        weights = other.data if is_sparse(other) else np.asarray(other[places]).reshape(-1)
        kept = np.ones(weights.size, dtype=bool)
        for label, positions in zip(known, places, strict=True):
            if label in index:  # a diagonal
                kept &= index[label] == positions
            index[label] = positions
        weights = weights[kept]
        index = {label: positions[kept] for label, positions in index.items()}
    for label in dict.fromkeys(own):
        if label not in index:
            length, count = lengths[label], weights.size
            index = {each: np.repeat(old, length) for each, old in index.items()}
            index[label] = np.tile(np.arange(length), count)
            weights = np.repeat(weights, length)
    columns = raveled([index[each] for each in own], shape, weights.size)
    rows = raveled([index[each] for each in output], result, weights.size)
    size = math.prod(shape), math.prod(result)
    return Rows.of_entries(weights, rows, columns, (size[1], size[0]))


def raveled(
    index: Sequence[NDArray[np.intp]], shape: tuple[int, ...], count: int
) -> NDArray[np.intp]:
    """Entries of an array counted in C order; all of them 0 for a scalar."""
    if not shape:
        return np.zeros(count, dtype=np.intp)
    return np.asarray(np.ravel_multi_index(tuple(index), shape), dtype=np.intp)
