"""Work counted in calls of functions instead of seconds, so that a busy machine changes nothing.

Calls of C functions count too. One call may move large arrays, so where memory is at stake its peak is
measured as well.
"""

from __future__ import annotations

import cProfile
import tracemalloc
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def counted(function: Callable[[], T]) -> tuple[T, int]:
    """The result of a function, and how many calls it made."""
    profile = cProfile.Profile()
    result = profile.runcall(function)
    return result, sum(entry.callcount for entry in profile.getstats())


def measured(function: Callable[[], T]) -> tuple[T, int]:
    """The result of a function, and the most bytes that it held at once."""
    tracemalloc.start()
    try:
        result = function()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
