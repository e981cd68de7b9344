"""Whether all or some marks are set, and the like, for arrays with a few entries.

A method of numpy takes four times as long to reduce a few marks as to count them, its norm as long as
three products, and small models ask hundreds of times.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Marks = NDArray[np.bool_]


def every(marks: Marks) -> bool:
    return bool(np.count_nonzero(marks) == marks.size)


def some(marks: Marks) -> bool:
    return bool(np.count_nonzero(marks))


def all_finite(numbers: FloatArray) -> bool:
    """Whether each number is finite."""
    return bool(np.count_nonzero(np.isfinite(numbers)) == numbers.size)


def same(one: FloatArray, other: FloatArray) -> bool:
    """Whether two arrays have the same shape and entries."""
    return one.shape == other.shape and every(one == other)


def length(vector: FloatArray) -> float:
    """The Euclidean norm."""
    return math.sqrt(vector @ vector)
