"""A counterexample: points at which an inequality that hidden convexity demands is violated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass

FloatArray = NDArray[np.float64]
Named = Mapping[str, FloatArray]


@dataclass(frozen=True)
class Counterexample:
    """`statement` says which inequality; it asks for left <= right, and left > right was found.

    `kind` is "objective", "inequality", "equality", "map" or "stationary point". `points` are labelled,
    each by the names of the variables. `direction`, if known, is the one in x along which the curvature
    is negative at the middle. `multipliers` and `residual` belong to a stationary point.
    """

    kind: str
    function: str
    statement: str
    points: Mapping[str, Named]
    left: float
    right: float
    left_text: str
    right_text: str
    direction: Named | None = None
    multipliers: Named = field(default_factory=dict)
    residual: float | None = None
