"""How atoms find the shape of their result, and check their static parameters on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hcmodel.errors import ModelError
from hcmodel.expressions.shapes import Shape, broadcast, normalized_axes

Params = dict[str, Any]


def elementwise(name: str, shapes: Sequence[Shape], params: Params) -> Shape:
    """The shapes broadcast."""
    return broadcast(name, shapes)


def reduced(name: str, shapes: Sequence[Shape], params: Params) -> Shape:
    """The argument's shape without the axes in `axis`; None removes all."""
    axes = params["axis"]
    if axes is None:
        return ()
    return tuple(length for i, length in enumerate(shapes[0]) if i not in axes)


def same(name: str, shapes: Sequence[Shape], params: Params) -> Shape:
    """The argument's shape."""
    return shapes[0]


def scalar(name: str, shapes: Sequence[Shape], params: Params) -> Shape:
    return ()


def with_axes(name: str, shapes: Sequence[Shape], params: Params) -> Params:
    """`axis` with non-negative entries."""
    return {**params, "axis": normalized_axes(params["axis"], len(shapes[0]), name)}


def with_axes_of_nonempty(name: str, shapes: Sequence[Shape], params: Params) -> Params:
    """As `with_axes`, for reductions that have no value over nothing."""
    params = with_axes(name, shapes, params)
    axes = range(len(shapes[0])) if params["axis"] is None else params["axis"]
    if any(shapes[0][axis] == 0 for axis in axes):
        raise ModelError(f"'{name}' over no entries has no value (shape {shapes[0]})")
    return params


def with_one_axis(name: str, shapes: Sequence[Shape], params: Params) -> Params:
    """`axis` as one non-negative integer, or None."""
    axes = normalized_axes(params["axis"], len(shapes[0]), name)
    if axes is not None and len(axes) != 1:
        raise ModelError(f"'{name}' takes one axis, not {params['axis']!r}")
    return {**params, "axis": None if axes is None else axes[0]}


def lines(xp: Any, a: Any, axis: Any) -> Any:
    """`a` with the axes to reduce in front, flattened into one."""
    shape = np.shape(a)
    axes = tuple(range(len(shape))) if axis is None else axis
    kept = tuple(i for i in range(len(shape)) if i not in axes)
    length = math.prod([shape[i] for i in axes])
    return xp.reshape(xp.transpose(a, (*axes, *kept)), (length, *(shape[i] for i in kept)))


def line_length(shape: Shape, axis: Any) -> int:
    """How many entries a reduction along `axis` takes together; None: all."""
    return math.prod([n for i, n in enumerate(shape) if axis is None or i in axis])


def probed(function: Callable[..., Any]) -> Callable[[str, Sequence[Shape], Params], Shape]:
    """The shape that numpy itself gives, asked with arrays that take no memory."""

    def rule(name: str, shapes: Sequence[Shape], params: Params) -> Shape:
        probes = [np.broadcast_to(np.zeros(()), shape) for shape in shapes]
        try:
            return tuple(np.shape(function(np, *probes, **params)))
        except (ValueError, IndexError, TypeError) as error:
            listed = " and ".join(str(shape) for shape in shapes)
            raise ModelError(f"'{name}' does not fit shape {listed}: {error}") from None

    return rule


def need_square(name: str, shape: Shape) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ModelError(f"'{name}' needs a square matrix, not shape {shape}")


def square_matrix(name: str, shapes: Sequence[Shape], params: Params) -> Shape:
    """A square matrix in, one of the same size out."""
    need_square(name, shapes[0])
    return shapes[0]


def scalar_of_square(name: str, shapes: Sequence[Shape], params: Params) -> Shape:
    """A square matrix in, a number out."""
    need_square(name, shapes[0])
    return ()


def spread(arrays: Sequence[Any]) -> list[Any]:
    """The arrays brought to their common shape: autograd's `where` does not sum broadcast axes."""
    shape = np.broadcast_shapes(*(np.shape(array) for array in arrays))
    return [array if np.shape(array) == shape else array + np.zeros(shape) for array in arrays]
