"""Groups of things that hang together by links."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IndexArray = NDArray[np.intp]


def joined(one: IndexArray, other: IndexArray, ones: int, others: int) -> IndexArray:
    """For each of `ones` the smallest member of its group; links to the same one of `others` join them.

    Labels travel along links and then to the label they point at, so that long chains take few rounds.
    scipy's `connected_components` takes longer to set up than a small program takes to solve.
    """
    labels, before = np.arange(ones), None
    while before is None or (labels != before).any():
        before = labels.copy()
        least = np.full(others, ones)
        np.minimum.at(least, other, labels[one])
        np.minimum.at(labels, one, least[other])
        labels = np.minimum(labels, labels[labels])
    return labels
