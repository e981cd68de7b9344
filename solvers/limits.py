"""The time that is left for a solve, wherever it is spent.

A deadline holds for everything inside `until`, in this thread and no other: methods, backends, sweeps of
a Jacobian and certificates ask here and need no argument for it. Loops that may take long call
`check_time`; a backend is given `seconds_left` as its own limit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_DEADLINE: ContextVar[float] = ContextVar("deadline", default=math.inf)


class BudgetExhausted(Exception):  # noqa: N818  (a signal to the loop, not an error)
    """Raised in place of work that the budget does not allow."""


class TimeExhausted(BudgetExhausted):
    """The deadline has passed."""


@contextmanager
def until(deadline: float | None) -> Iterator[None]:
    """Hold a deadline, a time of the monotonic clock; an earlier one that holds already stays."""
    if deadline is None:
        yield
        return
    before = _DEADLINE.set(min(deadline, _DEADLINE.get()))
    try:
        yield
    finally:
        _DEADLINE.reset(before)


@contextmanager
def beyond(deadline: float | None = math.inf) -> Iterator[None]:
    """Hold another deadline in place of the one that has passed: a point that was found is looked at."""
    if deadline is None:
        yield
        return
    before = _DEADLINE.set(deadline)
    try:
        yield
    finally:
        _DEADLINE.reset(before)


def check_time() -> None:
    """Raise if the deadline has passed."""
    if time.monotonic() >= _DEADLINE.get():
        raise TimeExhausted


def seconds_left() -> float:
    """Seconds to the deadline, at least 0; infinite where there is none."""
    return max(_DEADLINE.get() - time.monotonic(), 0.0)
