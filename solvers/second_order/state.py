"""The state of a second-order method from one iteration to the next, and the step that it tries."""

from __future__ import annotations

from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers.algebra.hessians import Hessian
from hcmodel.solvers.coordinates.protocol import Coordinates
from hcmodel.solvers.loop import State
from hcmodel.solvers.second_order.detour import Detour
from hcmodel.solvers.second_order.model import QuadraticModel
from hcmodel.solvers.second_order.penalty import Penalty
from hcmodel.solvers.second_order.step import QuadraticStep

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Region:
    """The trust region ‖w‖∞ <= radius, and the share `reach` of the way to the edge of matrix cones."""

    radius: float
    reach: float


@dataclass(frozen=True)
class TrustRegionState(State):
    """`hessian` is kept while the point stays; `near` means that only the promised decrease is open."""

    region: Region = field(default_factory=lambda: Region(1.0, 1.0))
    penalty: Penalty = field(default_factory=lambda: Penalty(np.zeros(0)))
    hessian: Hessian | None = None
    detour: Detour = field(default_factory=Detour)
    steps: int = 0
    stagnant: int = 0
    left: tuple[FloatArray, ...] = ()
    """The points left last. A penalty that rises at one of them and falls at another leads in circles."""
    failures: int = 0
    near: bool = False
    converged: bool = False


@dataclass(frozen=True)
class Proposal:
    """The model at the current point, its minimiser, and the decrease of the merit that it promises."""

    geometry: Coordinates
    hessian: Hessian
    model: QuadraticModel
    step: QuadraticStep
    penalty: Penalty
    promised: float
