"""The interior-point method for smooth convex programs, posynomials kept as exponents and coefficients.

`solve(program, options, deadline)` takes a `SmoothConvexProgram` and returns an `InteriorPointResult`.
"""

from hcmodel.solvers.second_order.interior_point.certificates import FarkasCertificate, verified
from hcmodel.solvers.second_order.interior_point.convex_program import (
    LogSums,
    SmoothConvexProgram,
    SmoothFunctions,
    Sums,
)
from hcmodel.solvers.second_order.interior_point.method import solve
from hcmodel.solvers.second_order.interior_point.outcome import (
    InteriorPointOptions,
    InteriorPointResult,
    InteriorPointStatus,
    KKTResiduals,
)

__all__ = [
    "FarkasCertificate",
    "InteriorPointOptions",
    "InteriorPointResult",
    "InteriorPointStatus",
    "KKTResiduals",
    "LogSums",
    "SmoothConvexProgram",
    "SmoothFunctions",
    "Sums",
    "solve",
    "verified",
]
