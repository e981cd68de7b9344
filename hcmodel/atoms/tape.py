"""Tapes whose nodes know their operations, so that many sweeps can be done at once.

Importing this module imports autograd: `taped` does so when the first tape is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import autograd.core as _core
import autograd.numpy as _numpy
import autograd.numpy.numpy_boxes as _boxes
import autograd.numpy.numpy_vjps as _vjps
import autograd.tracer as _tracer
import autograd.util as _util

_untyped_core: Any = _core
_untyped_numpy: Any = _numpy
_untyped_boxes: Any = _boxes
_untyped_vjps: Any = _vjps
_untyped_tracer: Any = _tracer
_untyped_util: Any = _util

# Operations that autograd itself puts on a tape: reading entries, the way back of that, and the sums of
# cotangents, each of which hands its cotangent on as it is.
item: Any = _untyped_boxes.ArrayBox.__getitem__
untake: Any = _untyped_vjps.untake
# What `where` puts on a tape: later versions of autograd have a function around it.
where: Any = getattr(_untyped_numpy, "_original_where", _untyped_numpy.where)
identities: tuple[Any, ...] = (
    _untyped_core.VSpace.add,
    _untyped_core.VSpace.mut_add,
    _untyped_core.sparse_add,
)


class TapeNode(_untyped_core.VJPNode):  # type: ignore[misc]
    """A node of a tape, with its operation, the answer, and the arguments that are on the tape.

    Its pullback is made when it is asked for: making that of a product takes longer than the product,
    and sweeps that are done together need none.
    """

    __slots__ = ["_vjp", "answer", "arguments", "keywords", "numbers", "operation"]
    _vjp: Any

    def __init__(
        self, value: Any, fun: Any, args: Any, kwargs: Any, parent_argnums: Any, parents: Any
    ) -> None:
        self._vjp = None
        if fun not in _untyped_core.primitive_vjps:
            super().__init__(value, fun, args, kwargs, parent_argnums, parents)  # says so
        self.parents = parents  # type: ignore[misc]  # a slot of autograd's class
        self.operation, self.answer = fun, value
        self.arguments, self.keywords, self.numbers = args, kwargs, parent_argnums

    def initialize_root(self) -> None:
        super().initialize_root()
        self.operation = self.answer = None
        self.arguments, self.keywords, self.numbers = (), {}, ()

    @property
    def vjp(self) -> Callable[[Any], Any]:
        """What autograd's backward pass calls with a cotangent."""
        if self._vjp is None:
            maker = _untyped_core.primitive_vjps[self.operation]
            self._vjp = maker(self.numbers, self.answer, self.arguments, self.keywords)
        made: Callable[[Any], Any] = self._vjp
        return made

    @vjp.setter
    def vjp(self, made: Callable[[Any], Any]) -> None:
        self._vjp = made

    @property
    def size(self) -> int:
        """How many numbers the answer has; a sparse cotangent counts as one."""
        return int(getattr(self.answer, "size", 1))


# Comparisons and the like are kept off its tapes, as off autograd's own.
_untyped_tracer.notrace_primitives[TapeNode] = _untyped_tracer.notrace_primitives[
    _untyped_core.VJPNode
]


def tape_order(end: TapeNode) -> list[TapeNode]:
    """The nodes that the end rests on, each before its parents."""
    return list(_untyped_util.toposort(end))


def dense_cotangent(cotangent: Any) -> Any:
    """A cotangent as an array; those of entries are made as instructions where to add them."""
    return _untyped_core.add_outgrads(None, cotangent)[0]
