"""How much memory a program or a matrix needs, estimated before it is taken; and a pause for the
collector of garbage.

The kernel ends a process that takes too much, and everything it has found is lost. The limit is half of
the machine's memory; the environment variable `HCMODEL_MEMORY_LIMIT`, in gigabytes, sets another.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable

LIMIT_VARIABLE = "HCMODEL_MEMORY_LIMIT"
BYTES_OF_A_NUMBER = 8  # double precision
PAGE = 4096  # bytes; no limit is below the least that the kernel gives
GIGABYTE = 1e9  # decimal, as machines are sold
HOW_TO_RAISE = f"raise the limit with {LIMIT_VARIABLE} (in GB)"


class TooLarge(MemoryError):  # noqa: N818  (says what is too large, and is still a MemoryError)
    """A program needs more memory than the limit allows."""


def memory_limit() -> float:
    """The most memory, in bytes, that one program or matrix may take."""
    given = os.environ.get(LIMIT_VARIABLE)
    if given:
        try:
            limit = float(given)
        except ValueError:
            limit = 0.0
        if not limit > 0:
            raise ValueError(f"{LIMIT_VARIABLE} is a positive number of gigabytes, not {given!r}")
        return limit * GIGABYTE
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2


def check_semidefinite(orders: Iterable[int]) -> None:
    """Raise unless an interior-point method can afford semidefinite cones of matrices of these orders.

    Its equations have a dense block for each cone, with the square of the entries of a triangle.
    """
    known = list(orders)
    if not known:
        return
    needed = sum(BYTES_OF_A_NUMBER * (order * (order + 1) / 2) ** 2 for order in known)
    limit = memory_limit()
    if needed > limit:
        largest = max(known)
        raise TooLarge(
            f"a semidefinite cone of {largest} × {largest} matrices needs about "
            f"{needed / GIGABYTE:.3g} GB, and the limit is {limit / GIGABYTE:.3g} GB; make the matrix "
            f"smaller or block-diagonal, or {HOW_TO_RAISE}"
        )


def check_dense(what: str, rows: int, columns: int) -> None:
    """Raise unless a dense matrix of this size is within the limit; `what` names it."""
    needed = float(BYTES_OF_A_NUMBER) * rows * columns
    if needed > PAGE and needed > memory_limit():
        raise TooLarge(
            f"{what} as a dense matrix of {rows:,} × {columns:,} numbers needs {needed / GIGABYTE:.3g} "
            f"GB, and the limit is {memory_limit() / GIGABYTE:.3g} GB; make the model smaller or "
            f"sparser, use a first-order method, or {HOW_TO_RAISE}"
        )


def check_factors(entries: float) -> None:
    """Raise unless the factors of a program's equations, with so many numbers, are within the limit."""
    needed = 2 * BYTES_OF_A_NUMBER * entries  # each with its row
    if needed > memory_limit():
        raise TooLarge(
            f"the equations of the convex program have factors of about {needed / GIGABYTE:.3g} GB, and "
            f"the limit is {memory_limit() / GIGABYTE:.3g} GB; make the model smaller or sparser, use a "
            f"first-order method, or {HOW_TO_RAISE}"
        )


class CollectionPaused:
    """No search for cyclic garbage inside of it, as in Pyomo (`PauseGC`).

    While a model of many terms is walked through, everything that is made stays: of the time that models
    written in loops took, a quarter went into looking at it again and again (tests/benchmarks/cblib.py).
    """

    def __enter__(self) -> None:
        self._was_enabled = gc.isenabled()
        if self._was_enabled:
            gc.disable()

    def __exit__(self, *error: object) -> None:
        if self._was_enabled:
            gc.enable()
