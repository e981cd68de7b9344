"""Room for functions that go down an expression by calling themselves.

A sum of a loop of Python, `sum(x[i]**2 for i in range(1000))`, is as deep as the loop has rounds, and
Python ends a recursion after 1,000 calls. Where that happens the work is done again with a limit that
follows from the depth. The limit is one of the whole process: it is put back when it is no longer needed.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from hcmodel.expressions.node import Expression

Made = TypeVar("Made")

# Calls for one level of an expression: bounds in a cone program take up to ten (test_deep_models.py).
CALLS = 20
# Calls that a stack of 8 MB has room for; sums of 6,000 terms take 60,000.
MOST_CALLS = 200_000

_lock = threading.Lock()
_users: list[int] = []


def depth(nodes: Sequence[Expression]) -> int:
    """The length of the longest way down; every node comes after its arguments."""
    found: dict[int, int] = {}
    for node in nodes:
        found[id(node)] = 1 + max((found[id(each)] for each in node.args), default=0)
    return max(found.values(), default=0)


def with_room(make: Callable[[], Made], nodes: Sequence[Expression]) -> Made:
    """What is made, with as many calls inside of each other as the nodes are deep."""
    try:
        return make()
    except RecursionError:
        pass
    with _room(min(CALLS * depth(nodes), MOST_CALLS)):
        return make()


@contextmanager
def _room(calls: int) -> Iterator[None]:
    with _lock:
        if not _users:
            _users.append(sys.getrecursionlimit())
        _users.append(calls)
        sys.setrecursionlimit(max(sys.getrecursionlimit(), _users[0] + calls))
    try:
        yield
    finally:
        with _lock:
            _users.remove(calls)
            if len(_users) == 1:
                sys.setrecursionlimit(_users.pop())
