"""What every cone backend can be told."""

from __future__ import annotations

import numpy as np

from hcmodel.records import dataclass
from hcmodel.solvers.numerics import BACKEND_ROUNDING


@dataclass(frozen=True)
class ConeOptions:
    tolerance: float = (
        BACKEND_ROUNDING  # of both residuals and of the gap, relative as the backend does
    )
    max_iterations: int = 200  # Clarabel's default; well-posed programs take 10 to 50
    time_limit: float = np.inf  # seconds
    fine: bool = False
    """Whether a small program may be solved to more digits than `tolerance`, as far as that is cheap."""
