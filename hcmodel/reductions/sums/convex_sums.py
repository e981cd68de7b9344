"""The smooth convex program of a form whose functions are affine or sums of exponentials.

`smooth_convex` makes the programs of all forms, with rows that are neither among them; this one is put
together from the arrays of the form alone (`sum_arrays`), which takes a tenth of the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.reductions.cone.compressed_rows import Rows
from hcmodel.reductions.sums.sum_arrays import SumArrays
from hcmodel.solvers.second_order.interior_point import LogSums, SmoothConvexProgram

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]


def convex_of_sums(arrays: SumArrays) -> SmoothConvexProgram:
    """The program whose rows, then equalities, are those of the form, in order."""
    entries, places = arrays.entries, arrays.places
    affine = _Affine(places.left.size + 1, entries.affine.shape[1])
    own = 1 + places.plain.nonzero()[0]
    affine.add(own, entries.affine, places.left[own - 1], entries.offset, 1.0)
    affine.add(own, entries.affine, places.right[own - 1], entries.offset, -1.0)
    own = 1 + places.single.nonzero()[0]
    affine.add(own, entries.exponents, entries.only(places.left[own - 1]), entries.logs, 1.0)
    own = 1 + (places.single | places.sums).nonzero()[0]
    affine.add(own, entries.exponents, entries.only(places.right[own - 1]), entries.logs, -1.0)
    first, zero = np.zeros(1, dtype=np.intp), np.zeros(1, dtype=np.intp)
    groups, rows = places.left[places.sums], 1 + places.sums.nonzero()[0]
    if not places.in_logs:
        affine.add(zero, entries.affine, first, entries.offset, places.sign)
    elif entries.counts[0] == 1:
        affine.add(zero, entries.exponents, entries.only(first), entries.logs, places.sign)
    else:
        groups, rows = np.concatenate([first, groups]), np.concatenate([zero, rows])
    held: dict[str, Any] = {}
    count = 1 + int((~places.equality).sum())
    matrix, constants = affine.made(), affine.constants
    if count < constants.size:
        held = {"equality": matrix[count:], "equality_bound": -constants[count:]}
        matrix, constants = matrix[:count], constants[:count]
    if groups.size:
        terms = entries.terms[groups]
        held["log_sums"] = LogSums(
            entries.exponents[terms.indices].to_scipy(),
            entries.logs[terms.indices],
            np.arange(groups.size).repeat(terms.lengths),
            rows,
        )
    return SmoothConvexProgram(
        matrix, constants, arrays.lower, arrays.upper, logarithms=entries.logarithms, **held
    )


class _Affine:
    """C and c of all rows, the objective first, added part by part."""

    def __init__(self, height: int, width: int) -> None:
        self.constants = np.zeros(height)
        self._shape = (height, width)
        self._parts: list[tuple[IndexArray, IndexArray, FloatArray]] = []

    def add(
        self, at: IndexArray, rows: Rows, which: IndexArray, numbers: FloatArray, factor: float
    ) -> None:
        """Some of the rows, and of the numbers beside them, times a factor, to the rows `at`."""
        if at.size:
            own = rows[which]
            self._parts.append((at.repeat(own.lengths), own.indices, factor * own.data))
            self.constants[at] += factor * numbers[which]

    def made(self) -> Any:
        none = np.zeros(0, dtype=np.intp)
        parts = zip((none, none, np.zeros(0)), *self._parts, strict=True)
        rows, columns, values = (np.concatenate(each) for each in parts)
        return Rows.of_entries(values, rows, columns, self._shape).to_scipy()
