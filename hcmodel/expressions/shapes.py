"""Shapes: numpy's broadcasting with errors that name both shapes and the operation."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from hcmodel.errors import ModelError

Shape = tuple[int, ...]

# Entries of a variable: each takes 8 bytes several times over. A parameter may be a sparse matrix.
MOST_ENTRIES = 100_000_000
MOST_SPARSE = 10**11


def as_shape(shape: Any, what: str, most: int = MOST_ENTRIES) -> Shape:
    """`shape` as a tuple of non-negative integers; `what` names it in the error."""
    try:
        entries = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        result = tuple(operator.index(entry) for entry in entries)
    except TypeError:
        raise ModelError(
            f"the shape of {what} is an integer or a tuple of integers, not {shape!r}"
        ) from None
    if any(entry < 0 for entry in result):
        raise ModelError(f"the shape of {what} has a negative entry: {result}")
    if math.prod(result) > most:
        raise ModelError(
            f"the shape of {what}, {result}, has {math.prod(result):,} entries; at most "
            f"{most:,} are possible"
        )
    return result


# How users write the operations that have a symbol.
SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "power": "**"}


def broadcast(operation: str, shapes: Sequence[Shape]) -> Shape:
    """The common shape of numpy's broadcasting."""
    first = shapes[0]
    if shapes.count(first) == len(shapes):
        return first
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " and ".join(str(shape) for shape in shapes)
        symbol = SYMBOLS.get(operation, operation)
        raise ModelError(
            f"shapes {listed} do not broadcast in '{symbol}': sizes must agree from the last axis "
            f"backwards, or be 1{_hint(shapes)}"
        ) from None


def _hint(shapes: Sequence[Shape]) -> str:
    """What to write where one array has a number for each row of the other."""
    few, many = sorted(shapes, key=len)[0], sorted(shapes, key=len)[-1]
    if not few or len(few) >= len(many) or many[: len(few)] != few:
        return ""
    wanted = few + (1,) * (len(many) - len(few))
    return f"; one number for each row needs the shape {wanted}: use reshape"


def normalized_axes(axis: Any, ndim: int, operation: str) -> tuple[int, ...] | None:
    """`axis` as sorted non-negative integers; None, all axes, stays None."""
    if axis is None:
        return None
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    try:
        numbers = [operator.index(entry) for entry in axes]
    except TypeError:
        raise ModelError(f"axis of '{operation}' is an integer or a tuple, not {axis!r}") from None
    for number in numbers:
        if not -ndim <= number < ndim:
            raise ModelError(
                f"axis {number} of '{operation}' does not exist: the argument has {ndim} axes"
            )
    result = sorted(number % ndim for number in numbers)
    if len(set(result)) < len(result):
        raise ModelError(f"axis {axis!r} of '{operation}' names an axis twice")
    return tuple(result)
