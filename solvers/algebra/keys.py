"""Distinct keys, such as the places that the entries of a sparse matrix add up at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IndexArray = NDArray[np.intp]

# Possible keys for each that is there, up to which keys are marked: sorting takes as long from about
# thirty on (a thousand to a hundred thousand keys).
SPARSE = 10


def distinct(keys: IndexArray, bound: int) -> tuple[IndexArray, IndexArray]:
    """The distinct keys in order, and the place of each key among them, as `np.unique` finds them.

    Keys are not negative and less than `bound`. Where they are not few, they are marked instead of
    sorted, in a tenth of the time.
    """
    if bound > SPARSE * keys.size:
        found, places = np.unique(keys, return_inverse=True)
        return found.astype(np.intp), places
    marks = np.zeros(bound, dtype=bool)
    marks[keys] = True
    found = marks.nonzero()[0]
    numbers = np.empty(bound, dtype=np.intp)
    numbers[found] = np.arange(found.size)
    return found, numbers[keys]
