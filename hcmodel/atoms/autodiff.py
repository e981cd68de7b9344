"""The parts of autograd that hcmodel uses, in one place and with types (autograd has none).

`xp` is autograd's numpy, `primitive` and `define_pullback` add operations to it, `detached` takes
the plain number out of a traced one, and `taped` runs a function once and keeps its tape. autograd is
imported when something is traced for the first time: until then every number is a plain one.
"""

from __future__ import annotations

import functools
import importlib
import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hcmodel.records import cached_property

if TYPE_CHECKING:
    from hcmodel.atoms.tape import TapeNode

Pull = Callable[[Any], Any]


class _Autograd:
    """The modules of autograd, imported when one of them is first asked for."""

    @cached_property
    def core(self) -> Any:
        return importlib.import_module("autograd.core")

    @cached_property
    def extend(self) -> Any:
        return importlib.import_module("autograd.extend")

    @cached_property
    def tracer(self) -> Any:
        return importlib.import_module("autograd.tracer")


class _Numpy:
    """autograd's numpy; names are kept, so that each is looked up once."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(importlib.import_module("autograd.numpy"), name)
        setattr(self, name, found)
        return found


_autograd = _Autograd()
xp: Any = _Numpy()


def _is_loaded() -> bool:
    """Whether anything can be traced at all, by hcmodel or by the user."""
    return "autograd.tracer" in sys.modules


def is_traced(value: Any) -> bool:
    return _is_loaded() and bool(_autograd.tracer.isbox(value))


def detached(value: Any) -> Any:
    """The plain number of a traced one."""
    return _autograd.tracer.getval(value) if _is_loaded() else value


class Primitive:
    """A function that autograd does not look into, with a pullback of its own."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.pullback: Any = None
        functools.update_wrapper(self, function)

    @cached_property
    def traced(self) -> Callable[..., Any]:
        """The operation that stands on a tape."""
        made: Callable[..., Any] = _autograd.extend.primitive(self.function)
        if self.pullback is not None:
            _autograd.extend.defvjp_argnums(made, self.pullback)
        return made

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return (self.traced if _is_loaded() else self.function)(*arguments, **keywords)


primitive = Primitive


def define_pullback(function: Primitive, pullback: Callable[..., Any]) -> None:
    """`pullback(argnums, answer, args, keywords)` gives a function of the cotangent."""
    function.pullback = pullback


class Pullback:
    """The backward pass from the end of a tape."""

    def __init__(self, node: Any) -> None:
        self._node = node

    def __call__(self, cotangent: Any) -> Any:
        return _autograd.core.backward_pass(cotangent, self._node)

    def from_argument(self, position: int, cotangent: Any) -> Any:
        """The pass from one traced argument of the last operation alone: only what is under it."""
        return _autograd.core.backward_pass(cotangent, self._node.parents[position])

    def end(self, position: int | None = None) -> TapeNode:
        """The last node, or the one of a traced argument of the last operation."""
        node: TapeNode = self._node if position is None else self._node.parents[position]
        return node


def taped(function: Callable[[Any], Any], point: Any) -> tuple[Any, Pullback | None]:
    """The value at `point` and its pullback, None where nothing depends on the point.

    As autograd's own make_vjp, which warns about such constants instead.
    """
    from hcmodel.atoms.tape import TapeNode  # imports autograd

    tracer = _autograd.tracer
    with tracer.trace_stack.new_trace() as trace:
        root = TapeNode.new_root()
        end = function(tracer.new_box(point, trace, root))
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
    stops = np.cumsum([math.prod(shape) for shape in shapes]).tolist()
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
