"""Whether all or some marks are set, and the like, for arrays with a few entries.

A method of numpy takes four times as long to reduce a few marks as to count them, its norm as long as
three products, and small models ask hundreds of times.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def every(marks: NDArray[Any]) -> bool:
    """Whether all are set; of numbers, whether none is 0."""
    return bool(np.count_nonzero(marks) == marks.size)


def some(marks: NDArray[Any]) -> bool:
    """Whether one is set; of numbers, whether one is not 0."""
    return bool(np.count_nonzero(marks))


def all_finite(numbers: FloatArray) -> bool:
    """Whether each number is finite."""
    return bool(np.count_nonzero(np.isfinite(numbers)) == numbers.size)


def largest(sizes: FloatArray) -> float:
    """The largest of numbers that are not negative, NaN where one is not a number; 0 where there is none.

    Numpy's method takes three times as long to set up its loop.
    """
    return float(sizes.item(sizes.argmax())) if sizes.size else 0.0


def highest(numbers: NDArray[Any]) -> int:
    """The largest of whole numbers that are not negative; 0 where there is none."""
    return int(numbers.item(numbers.argmax())) if numbers.size else 0


def same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two arrays have the same shape and entries."""
    return one.shape == other.shape and every(one == other)


def length(vector: FloatArray) -> float:
    """The Euclidean norm."""
    return math.sqrt(vector @ vector)
