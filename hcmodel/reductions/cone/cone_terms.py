"""Sums as lists of terms: the terms in one array, and for each the entry that it is a term of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Apply
from hcmodel.reductions.cone.affine import Affine, joined
from hcmodel.reductions.cone.compressed_rows import Rows

Places = NDArray[np.intp]
Terms: TypeAlias = tuple[Affine, Places]


def repeated(targets: Places, wanted: Places, count: int) -> tuple[Places, Places]:
    """For each wanted target the places of its terms, one after the other, and whose they are."""
    order = np.argsort(targets, kind="stable")
    starts = np.searchsorted(targets[order], np.arange(count + 1))
    lengths = np.diff(starts)[wanted]
    ends = np.cumsum(lengths)
    first = np.repeat(starts[wanted] - (ends - lengths), lengths)
    places = order[first + np.arange(int(lengths.sum()))]
    return places, np.repeat(np.arange(wanted.size), lengths)


def spread_terms(
    terms: Affine, targets: Places, shape: tuple[int, ...], wide: tuple[int, ...]
) -> Terms:
    """Terms of an array as terms of the array broadcast to a wider shape."""
    if shape == wide:
        return terms, targets
    count = math.prod(shape)
    source = np.broadcast_to(np.arange(count).reshape(shape), wide).reshape(-1)
    places, new = repeated(targets, source, count)
    return terms.taken(places, (places.size,)), new


def moved_entries(expression: Apply, shapes: Sequence[tuple[int, ...]]) -> Places:
    """For each entry of a movement the number of the entry that it was, from 1 on; 0 is a zero."""
    numbers, start = [], 1
    for shape in shapes:
        count = math.prod(shape)
        numbers.append(start + np.arange(count).reshape(shape))
        start += count
    moved = expression.atom.function(np, *numbers, **dict(expression.params))
    return np.asarray(moved, dtype=np.intp).reshape(-1)


def moved_terms(expression: Apply, parts: Sequence[Terms]) -> Terms:
    """Terms of entries that are moved."""
    shapes = [argument.shape for argument in expression.args]
    moved = moved_entries(expression, shapes)
    sizes = np.concatenate([[0], np.cumsum([argument.size for argument in expression.args])])
    targets = np.concatenate(
        [own + start for (_, own), start in zip(parts, sizes[:-1], strict=True)]
    )
    kept = np.flatnonzero(moved)
    places, new = repeated(targets, moved[kept] - 1, int(sizes[-1]))
    return joined([terms for terms, _ in parts]).taken(places, (places.size,)), kept[new]


def weighted_places(
    targets: Places, matrix: Rows, count: int
) -> tuple[Places, Places, NDArray[np.float64]]:
    """The terms of a product with a matrix of positive weights: which, whose, and how much of each."""
    rows, columns, weights = matrix.entries()
    kept = weights > 0
    row, column, weight = rows[kept], columns[kept], weights[kept]
    places, chosen = repeated(targets, column, count)
    return places, row[chosen], weight[chosen]
