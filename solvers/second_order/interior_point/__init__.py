"""The interior-point method for smooth convex programs, posynomials kept as exponents and coefficients.

`solve(program, options, deadline)` takes a `SmoothConvexProgram` and returns an `InteriorPointResult`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

# Where each name is defined; it is imported when it is first used.
_MODULES = {
    "FarkasCertificate": "certificates",
    "InteriorPointOptions": "outcome",
    "InteriorPointResult": "outcome",
    "InteriorPointStatus": "outcome",
    "KKTResiduals": "outcome",
    "LogSums": "convex_program",
    "SmoothConvexProgram": "convex_program",
    "SmoothFunctions": "convex_program",
    "Sums": "convex_program",
    "solve": "method",
    "verified": "certificates",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
