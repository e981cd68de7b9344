"""Half-spaces around a centre, by which certificates enclose a set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class HalfSpaces:
    """normals @ (v − center) <= offsets."""

    normals: FloatArray
    offsets: FloatArray

    @staticmethod
    def none(dimension: int) -> HalfSpaces:
        return HalfSpaces(np.zeros((0, dimension)), np.zeros(0))

    @staticmethod
    def between(lower: FloatArray, upper: FloatArray, center: FloatArray) -> HalfSpaces:
        """The finite ones among lower <= v <= upper, upper bounds first."""
        identity = np.eye(center.size)
        above, below = np.isfinite(upper), np.isfinite(lower)
        return HalfSpaces.joined(
            [
                HalfSpaces(identity[above], (upper - center)[above]),
                HalfSpaces(-identity[below], (center - lower)[below]),
            ]
        )

    @staticmethod
    def joined(parts: Sequence[HalfSpaces]) -> HalfSpaces:
        return HalfSpaces(
            np.vstack([part.normals for part in parts]),
            np.concatenate([part.offsets for part in parts]),
        )

    def widened(self, own: slice, dimension: int) -> HalfSpaces:
        """The same in a larger space, in which these coordinates are those of `own`."""
        normals = np.zeros((self.offsets.size, dimension))
        normals[:, own] = self.normals
        return HalfSpaces(normals, self.offsets)
