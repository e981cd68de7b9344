"""Reductions over index tuples that belong to outer indices: each of these has a segment of them.

The segments are gathered as rows of a table, filled up to the longest one, and reduced along the
rows; no entry outside a segment takes part in its result.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hcmodel.frontend.mistakes import Mistake
from hcmodel.frontend.signs import is_positive
from hcmodel.frontend.values import (
    Axis,
    Value,
    apply,
    check_entries,
    indexed,
    lengths,
    reshaped,
    spread,
    transposed,
)
from hcmodel.grammar import Span
from hcmodel.records import dataclass


@dataclass(frozen=True, eq=False)
class Tuples:
    """An axis over index tuples: which outer axes they belong to, and where in them."""

    axis: Axis
    outer: tuple[Axis, ...]
    segments: np.ndarray  # of each tuple, the flat position in the outer axes


def reduce_segments(name: str, value: Value, tuples: Tuples, span: Span) -> Value:
    """A reduction over the tuples of each combination of the outer indices."""
    outer = tuples.outer
    axis = tuples.axis
    rows = math.prod(lengths(outer))
    counts = np.bincount(tuples.segments, minlength=rows)
    if (counts == 0).any() and name not in ("sum", "prod", "norm"):
        raise Mistake(f"`{name}` over no members has no value", span)
    if name == "logsumexp":
        raise Mistake(
            "`logsumexp` cannot run over a range that depends on an outer index",
            span,
            "write `log(sum(exp(…) for …))`",
        )
    if axis.length == 0:
        shape = lengths(outer)
        return Value(np.ones(shape) if name == "prod" else np.zeros(shape), outer)
    if axis not in value.axes:
        value = spread(value, tuple(sorted({*value.axes, axis}, key=lambda each: each.number)))
    table = _Table.of(tuples.segments, counts)
    check_entries(table.places.shape)
    place = value.axes.index(axis)
    key: list[Any] = [slice(None)] * value.node.ndim
    key[place] = table.places
    node = indexed(value.node, key)
    after = value.node.ndim - place - 1
    node = _masked(name, node, table, after)
    params: dict[str, Any] = {"axis": (place + 1,)}
    if name == "norm":
        params["p"] = 2.0
    node = apply("sum" if name == "mean" else name, [node], params)
    if name == "mean":
        node = apply("div", [node, counts.reshape((rows, *[1] * after)).astype(float)])
    before, behind = node.shape[:place], node.shape[place + 1 :]
    node = reshaped(node, (*before, *lengths(outer), *behind))
    axes = (*value.axes[:place], *outer, *value.axes[place + 1 :])
    order = sorted(range(len(axes)), key=lambda i: axes[i].number)
    own = range(len(axes), node.ndim)
    return Value(transposed(node, [*order, *own]), tuple(axes[i] for i in order))


@dataclass(frozen=True, eq=False)
class _Table:
    """One row per segment: which tuple stands where, and which places are filled.

    Places that are not repeat the row's first tuple, so that nothing outside it is evaluated.
    """

    places: np.ndarray
    filled: np.ndarray

    @classmethod
    def of(cls, segments: np.ndarray, counts: np.ndarray) -> _Table:
        order = np.argsort(segments, kind="stable")
        width = max(int(counts.max(initial=0)), 1)
        check_entries((len(counts), width))
        starts = np.cumsum(counts) - counts
        columns = np.arange(width)
        filled = columns < counts[:, None]
        wanted = starts[:, None] + np.where(filled, columns, 0)
        return cls(order[np.minimum(wanted, len(order) - 1)], filled)


def _masked(name: str, node: Any, table: _Table, after: int) -> Any:
    """The table's entries with the neutral element where it is not filled."""
    if table.filled.all() or name in ("max", "min"):
        return node
    mask = table.filled.astype(float).reshape((*table.filled.shape, *[1] * after))
    if name == "prod":
        if is_positive(node):
            return apply("power", [node, mask])
        return apply("add", [apply("mul", [node, mask]), 1.0 - mask])
    return apply("mul", [node, mask])
