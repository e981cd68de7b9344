"""The time that is left for a solve, wherever it is spent.

A deadline holds for everything inside `until`, in this thread and no other: methods, backends, sweeps of
a Jacobian and certificates ask here and need no argument for it. Loops that may take long call
`check_time`; a backend is given `seconds_left` as its own limit.
"""

from __future__ import annotations

import math
import time
from contextvars import ContextVar, Token

_DEADLINE: ContextVar[float] = ContextVar("deadline", default=math.inf)
_LATE: ContextVar[bool] = ContextVar("late", default=False)


class BudgetExhausted(Exception):  # noqa: N818  (a signal to the loop, not an error)
    """Raised in place of work that the budget does not allow."""


class TimeExhausted(BudgetExhausted):
    """The deadline has passed."""


class _Held:
    """Holds a deadline inside of it, or none of its own."""

    def __init__(self, deadline: float | None, late: bool = False) -> None:
        self._deadline = deadline
        self._late = late
        self._before: Token[float] | None = None
        self._was_late: Token[bool] | None = None

    def __enter__(self) -> None:
        if self._deadline is not None:
            self._before = _DEADLINE.set(self._deadline)
            self._was_late = _LATE.set(self._late or _LATE.get())

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            _DEADLINE.reset(self._before)
        if self._was_late is not None:
            _LATE.reset(self._was_late)


def until(deadline: float | None) -> _Held:
    """Hold a deadline, a time of the monotonic clock; an earlier one that holds already stays."""
    return _Held(None if deadline is None else min(deadline, _DEADLINE.get()))


def beyond(deadline: float | None = math.inf) -> _Held:
    """Hold another deadline in place of the one that has passed: a point that was found is looked at."""
    return _Held(deadline, late=deadline is not None and seconds_left() == 0)


def is_late() -> bool:
    """Whether what is done now is done after a deadline: no preparation for more work pays."""
    return _LATE.get()


def check_time() -> None:
    """Raise if the deadline has passed."""
    deadline = _DEADLINE.get()
    if deadline != math.inf and time.monotonic() >= deadline:
        raise TimeExhausted


def seconds_left() -> float:
    """Seconds to the deadline, at least 0; infinite where there is none."""
    deadline = _DEADLINE.get()
    return math.inf if deadline == math.inf else max(deadline - time.monotonic(), 0.0)
