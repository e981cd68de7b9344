"""What a solve remembers of the calls of a user's functions, and how many more of them it may make.

A solve looks at a point from several sides: as written, in hidden coordinates, for second derivatives. A
function is called once for all of them. Methods count the points that they ask for themselves; what
judges a point has no count of its own, and may call functions only as often as `max_calls` has left.
"""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.autodiff import detached, is_traced
from hcmodel.solvers.oracle import CallsExhausted

# Bytes of values that are remembered: those of 100,000 points where each is a number, some points where
# it is a large array. Large points are not kept, only what tells them apart, as long as a digest.
MOST_BYTES = 10_000_000
DIGEST = 16  # bytes: two of 10⁹ points are the same with probability 10⁻²⁰
SHORT = 64  # bytes up to which the numbers themselves are taken: no digest is made as quickly


class CallMemory:
    """The values of a solve by function and arguments, and the calls that are left."""

    def __init__(self) -> None:
        self.left: float = math.inf
        self.judged = 0
        self._values: OrderedDict[Hashable, NDArray[Any]] = OrderedDict()
        self._bytes = 0

    def draw(self, calls: int) -> None:
        """Take so many calls from those that are left, or raise where there are not as many."""
        if calls > self.left:
            raise CallsExhausted
        self.left -= calls

    def find(self, key: Hashable) -> NDArray[Any] | None:
        """A copy of a value."""
        found = self._values.get(key)
        return None if found is None else found.copy()

    def keep(self, key: Hashable, value: Any) -> None:
        """Keep a copy of a value, and forget the oldest ones where there are too many."""
        kept = np.array(value if isinstance(value, float) else _plain(value))
        if kept.dtype.kind not in "biuf" or key in self._values:
            return  # what is no array of numbers is refused where it is used
        self._values[key] = kept
        self._bytes += kept.nbytes + SHORT
        while self._bytes > MOST_BYTES:
            _, value = self._values.popitem(last=False)
            self._bytes -= value.nbytes + SHORT


_MEMORY: ContextVar[CallMemory | None] = ContextVar("calls", default=None)


def current() -> CallMemory | None:
    """The memory of the solve that runs in this thread."""
    return _MEMORY.get()


def calls_judging() -> int:
    """The calls that judging has made in the solve that runs."""
    memory = _MEMORY.get()
    return 0 if memory is None else memory.judged


class Remembering:
    """Calls inside of it are remembered: functions are pure, but what they read may change later."""

    def __enter__(self) -> None:
        self._before = _MEMORY.set(CallMemory())

    def __exit__(self, *error: object) -> None:
        _MEMORY.reset(self._before)


class AtMost:
    """Functions may be called so often inside of it, which counts as judging; None: without a limit."""

    def __init__(self, calls: int | None) -> None:
        self._allowed = calls if calls is None else max(calls, 0)
        self._memory = None if calls is None else _MEMORY.get()

    def __enter__(self) -> None:
        if self._memory is not None and self._allowed is not None:
            self._memory.left = self._allowed

    def __exit__(self, *error: object) -> None:
        memory = self._memory
        if memory is not None and self._allowed is not None:
            memory.judged += round(self._allowed - memory.left)
            memory.left = math.inf


def key_of_call(function: Any, arrays: Sequence[Any]) -> Hashable | None:
    """What tells a call apart from others; None for arguments that are not real numbers."""
    parts: list[Hashable] = [id(function)]
    for array in arrays:
        values = array if type(array) is np.ndarray else np.asarray(_plain(array))
        if values.dtype.kind not in "biuf":
            return None
        numbers = values.tobytes()
        if len(numbers) > SHORT:
            numbers = hashlib.blake2b(numbers, digest_size=DIGEST).digest()
        parts += (values.shape, values.dtype.char, numbers)
    return tuple(parts)


def _plain(value: Any) -> Any:
    while is_traced(value):
        value = detached(value)
    return value
