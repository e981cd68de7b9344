"""The parts of autograd that hcmodel uses, in one place and with types (autograd has none).

`xp` is autograd's numpy, `primitive` and `define_pullback` add operations to it, `detached` takes
the plain number out of a traced one, and `taped` runs a function once and keeps its tape.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import autograd.core as _core
import autograd.extend as _extend
import autograd.numpy as _numpy
import autograd.tracer as _tracer
import numpy as np

Pull = Callable[[Any], Any]

_untyped_core: Any = _core
_untyped_extend: Any = _extend
_untyped_tracer: Any = _tracer

xp: Any = _numpy
primitive: Callable[[Callable[..., Any]], Callable[..., Any]] = _untyped_extend.primitive
define_pullback: Callable[..., None] = _untyped_extend.defvjp_argnums
detached: Callable[[Any], Any] = _untyped_tracer.getval
is_traced: Callable[[Any], bool] = _untyped_tracer.isbox


class Pullback:
    """The backward pass from the end of a tape."""

    def __init__(self, node: Any) -> None:
        self._node = node

    def __call__(self, cotangent: Any) -> Any:
        return _untyped_core.backward_pass(cotangent, self._node)

    def from_argument(self, position: int, cotangent: Any) -> Any:
        """The pass from one traced argument of the last operation alone: only what is under it."""
        return _untyped_core.backward_pass(cotangent, self._node.parents[position])


def taped(function: Callable[[Any], Any], point: Any) -> tuple[Any, Pullback | None]:
    """The value at `point` and its pullback, None where nothing depends on the point.

    As autograd's own make_vjp, which warns about such constants instead.
    """
    with _untyped_tracer.trace_stack.new_trace() as trace:
        root = _untyped_core.VJPNode.new_root()
        end = function(_untyped_tracer.new_box(point, trace, root))
        if not is_traced(end) or end._trace != trace:
            return end, None
        value, node = end._value, end._node
    return value, Pullback(node)


@primitive
def total(*terms: Any) -> Any:
    """The sum of terms of one shape, as one operation on the tape however many they are."""
    return functools.reduce(operator.add, terms)


def _total_pullback(argnums: Sequence[int], answer: Any, terms: Any, keywords: Any) -> Pull:
    return lambda cotangent: [cotangent] * len(argnums)


define_pullback(total, _total_pullback)


@primitive
def stacked(*arrays: Any) -> Any:
    """All arrays, flattened into one vector."""
    return np.concatenate([np.ravel(array) for array in arrays])


def _stacked_pullback(argnums: Sequence[int], answer: Any, arrays: Any, keywords: Any) -> Pull:
    # One function for all arrays: autograd's own concatenate takes quadratic time in their number.
    shapes = [np.shape(array) for array in arrays]
    stops = np.cumsum([int(np.prod(shape, dtype=int)) for shape in shapes]).tolist()
    starts = [0, *stops]

    def pull(cotangent: Any) -> Any:
        return [xp.reshape(cotangent[starts[i] : stops[i]], shapes[i]) for i in argnums]

    return pull


define_pullback(stacked, _stacked_pullback)


@primitive
def sparse_times(matrix: Any, array: Any) -> Any:
    """The product of a constant sparse matrix with a vector or a dense matrix."""
    return np.asarray(matrix @ array)


def _sparse_pullback(argnums: Sequence[int], answer: Any, factors: Any, keywords: Any) -> Pull:
    transpose = factors[0].T
    return lambda cotangent: [sparse_times(transpose, cotangent)]


define_pullback(sparse_times, _sparse_pullback)
