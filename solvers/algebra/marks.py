"""Whether all or some marks are set, and the like, for arrays with a few entries.

A method of numpy takes ten times as long to reduce a few marks as Python to find one among their bytes,
its norm as long as three products, and small models ask hundreds of times.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def every(marks: NDArray[np.bool_]) -> bool:
    """Whether all are set."""
    return 0 not in marks.tobytes()


def some(marks: NDArray[np.bool_]) -> bool:
    """Whether one is set."""
    return 1 in marks.tobytes()


def all_finite(numbers: FloatArray) -> bool:
    """Whether each number is finite."""
    return 0 not in np.isfinite(numbers).tobytes()


def none_is_0(numbers: NDArray[Any]) -> bool:
    return bool(np.count_nonzero(numbers) == numbers.size)


def all_are_0(numbers: NDArray[Any]) -> bool:
    return not np.count_nonzero(numbers)


def largest(sizes: FloatArray) -> float:
    """The largest of numbers that are not negative, NaN where one is not a number; 0 where there is none.

    Numpy's method takes three times as long to set up its loop.
    """
    return float(sizes.item(sizes.argmax())) if sizes.size else 0.0


def least(sizes: FloatArray) -> float:
    """The smallest of numbers, of which there is one."""
    return float(sizes.item(sizes.argmin()))


def highest(numbers: NDArray[Any]) -> int:
    """The largest of whole numbers that are not negative; 0 where there is none."""
    return int(numbers.item(numbers.argmax())) if numbers.size else 0


def same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two arrays have the same shape and entries."""
    return one.shape == other.shape and every(one == other)


def length(vector: FloatArray) -> float:
    """The Euclidean norm."""
    return math.sqrt(vector @ vector)
