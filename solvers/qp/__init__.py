"""Convex quadratic programs with a box and cones (the sub-problem of the methods), cone programs."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hcmodel.solvers.qp.cone_program import (
    ConeBlock,
    ConeKind,
    ConeProgram,
    ConeResiduals,
    ConeSolution,
    ConeStatus,
    cone_program,
    cone_residuals,
    without_rows,
)

if TYPE_CHECKING:
    from hcmodel.solvers.qp.cone_options import ConeOptions
    from hcmodel.solvers.qp.low_rank import solve_program
    from hcmodel.solvers.qp.program import QPSolution, QPStatus, QuadraticProgram, residuals
    from hcmodel.solvers.qp.table import (
        ACTIVE_SET,
        BACKENDS,
        CONE_BACKENDS,
        DEFAULT_BACKEND,
        ConeBackend,
        QPBackend,
        make_backend,
        make_cone_backend,
        solve_cone,
    )

__all__ = [
    "ACTIVE_SET",
    "BACKENDS",
    "CONE_BACKENDS",
    "DEFAULT_BACKEND",
    "ConeBackend",
    "ConeBlock",
    "ConeKind",
    "ConeOptions",
    "ConeProgram",
    "ConeResiduals",
    "ConeSolution",
    "ConeStatus",
    "QPBackend",
    "QPSolution",
    "QPStatus",
    "QuadraticProgram",
    "cone_program",
    "cone_residuals",
    "make_backend",
    "make_cone_backend",
    "residuals",
    "solve_cone",
    "solve_program",
    "without_rows",
]

# Where each public name is defined; it is imported when it is first used.
_MODULES = {
    "ConeOptions": "cone_options",
    "solve_program": "low_rank",
    "QPSolution": "program",
    "QPStatus": "program",
    "QuadraticProgram": "program",
    "residuals": "program",
    "ACTIVE_SET": "table",
    "BACKENDS": "table",
    "CONE_BACKENDS": "table",
    "DEFAULT_BACKEND": "table",
    "ConeBackend": "table",
    "QPBackend": "table",
    "make_backend": "table",
    "make_cone_backend": "table",
    "solve_cone": "table",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'hcmodel.solvers.qp' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"hcmodel.solvers.qp.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
