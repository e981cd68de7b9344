"""Hidden Newton: sequential quadratic programming in the coordinates in which the problem is convex.

The quadratic model uses the hidden Hessian of the Lagrangian, so this is Newton's method on the convex
problem in u. The inverse of c is needed only to follow a step along the hidden straight line.
"""

from __future__ import annotations

from hcmodel.solvers.second_order.curvature import ExactCurvature
from hcmodel.solvers.second_order.options import Options
from hcmodel.solvers.second_order.trust_region import TrustRegion


class HiddenNewton(TrustRegion):
    """`hidden-newton`."""

    def __init__(self, options: Options | None = None) -> None:
        super().__init__(options or Options(), ExactCurvature())
