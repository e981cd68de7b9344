"""prox-linear: the outer polyhedral structure is kept exactly, the smooth inner parts are linearised.

max, abs and norms reach this method as rows over variables that bound them, so the model of a step is
exact except for the curvature of the smooth parts. Where that curvature is known, from second derivatives
or from gradients by damped BFGS, it enters the model of the Lagrangian. The trust region takes the place
of the proximal weight ρ̂ (Drusvyatskiy and Paquette 2019) and is adapted in the same way, by actual over
predicted decrease. The method needs no coordinates and claims nothing global.
"""

from __future__ import annotations

from collections.abc import Callable

from hcmodel.records import dataclass
from hcmodel.solvers.second_order.curvature import Curvature, ExactCurvature, NoCurvature
from hcmodel.solvers.second_order.options import Options
from hcmodel.solvers.second_order.quasi_newton import (
    DEFAULTS,
    FromGradients,
    LimitedMemoryCurvature,
    QuasiNewtonOptions,
)
from hcmodel.solvers.second_order.trust_region import TrustRegion

CURVATURES: dict[str, Callable[[QuasiNewtonOptions], Curvature]] = {
    "exact": lambda options: ExactCurvature(),
    "bfgs": FromGradients,
    "lbfgs": LimitedMemoryCurvature,
    "none": lambda options: NoCurvature(),
}


@dataclass(frozen=True)
class ProxLinearOptions(Options):
    """Options of `prox-linear`."""

    curvature: str = "exact"
    """Where the quadratic term comes from: "exact" second derivatives, "bfgs" from gradients (with
    limited memory for many unknowns), "lbfgs" (always so), "none"."""
    quasi_newton: QuasiNewtonOptions = DEFAULTS
    """How "bfgs" and "lbfgs" approximate the curvature."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.curvature not in CURVATURES:
            raise ValueError(
                f"curvature must be one of {', '.join(CURVATURES)}, not {self.curvature!r}"
            )


class ProxLinear(TrustRegion):
    """`prox-linear`."""

    def __init__(self, options: ProxLinearOptions | None = None) -> None:
        chosen = options or ProxLinearOptions()
        super().__init__(chosen, CURVATURES[chosen.curvature](chosen.quasi_newton))
