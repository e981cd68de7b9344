"""How many of a test's examples run: some by default, all of them with `HCMODEL_TESTS=all`.

The suite has to end within minutes. Tests over random or costly examples run the first few, and the
long run, to be started by hand like the benchmarks, has the rest:

    HCMODEL_TESTS=all python -m pytest -n 2
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from typing import TypeVar

Case = TypeVar("Case")
Other = TypeVar("Other")

ALL = os.environ.get("HCMODEL_TESTS") == "all"


def first(count: int, cases: Iterable[Case]) -> list[Case]:
    """The first `count` cases, or all of them in the long run."""
    return list(cases) if ALL else list(cases)[:count]


def pairs(ones: Iterable[Case], others: Iterable[Other]) -> list[tuple[Case, Other]]:
    """Each case of both at least once, or all pairs of them in the long run."""
    left, right = list(ones), list(others)
    if ALL:
        return list(itertools.product(left, right))
    return [(left[i % len(left)], right[i % len(right)]) for i in range(max(len(left), len(right)))]


def several(few: int, many: int) -> int:
    """How many random examples to try."""
    return many if ALL else few
