"""What one iteration of an interior-point backend costs, estimated before it begins.

A backend looks at its clock between iterations only, and an iteration on a large dense program takes
longer than a time limit of seconds. A program with too little time for a few iterations is not begun.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from hcmodel.records import dataclass
from hcmodel.solvers.limits import seconds_left


@dataclass(frozen=True)
class EffortRules:
    """Numbers behind the estimates."""

    # Operations per second of Clarabel's factorisations: 1e9 (dense rows) to 6e9 (matrices) on a core.
    speed: float = 2e9  # programs of 300 to 1000 unknowns; tests/benchmarks/large.py
    # A program that cannot have so many iterations within the time is not begun; solutions take 10 to 50.
    iterations: float = (
        3.0  # well below what any solution takes, as the speed may be several times this
    )


RULES = EffortRules()


@dataclass(frozen=True)
class Effort:
    """Numbers in the factors of a program's equations, and operations to compute them."""

    entries: float
    operations: float

    @property
    def seconds(self) -> float:
        """Of one iteration."""
        return self.operations / RULES.speed

    def time_limit(self) -> float | None:
        """The limit for a backend that stops within the time left; None where it is not to begin.

        One iteration less than the time left, since one that has begun is finished.
        """
        left = seconds_left()
        return None if left < RULES.iterations * self.seconds else left - self.seconds


def effort(matrix: Any, triangles: Iterable[int]) -> Effort:
    """Of a program whose rows are the (sparse) matrix, with semidefinite cones of so many entries each.

    The equations are reduced to the unknowns or to the rows, whichever is less; the reduced matrix has
    at most the squares of the row lengths as entries, and is dense where it has more. A row with one
    entry, such as a bound, only adds to the diagonal of its unknown: where all unknowns but a few have
    one, these few and the other rows remain.
    """
    height, width = matrix.shape
    lengths = np.bincount(matrix.indices, minlength=height).astype(float)
    heights = np.diff(matrix.indptr).astype(float)
    reduced = [_reduced(lengths, width), _reduced(heights, height)]
    single = lengths[matrix.indices] == 1
    columns = np.repeat(np.arange(width), np.diff(matrix.indptr))
    singles = np.bincount(columns[single], minlength=width)
    others = (heights - singles)[singles > 0]
    left = float(np.sum(lengths > 1) + width - others.size)
    if others.size == width:
        reduced.append(_reduced(others, left))
    else:
        reduced.append((left**2 / 2, float(others @ others) + left**3 / 3))
    entries, operations = min(reduced, key=lambda pair: pair[1])
    sizes = np.array([float(size) for size in triangles])
    return Effort(
        entries + matrix.nnz + float(np.sum(sizes**2)) / 2,
        operations + float(np.sum(sizes**3)) / 3,
    )


def _reduced(lengths: Any, size: float) -> tuple[float, float]:
    squares = float(lengths @ lengths)
    filled = min(squares, size**2)
    side = float(np.sqrt(filled))
    return filled / 2, squares + side**3 / 3
