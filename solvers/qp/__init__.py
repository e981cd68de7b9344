"""Convex quadratic programs with a box and cones (the sub-problem of the methods), cone programs."""

from hcmodel.solvers.qp.cone_options import ConeOptions
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
from hcmodel.solvers.qp.low_rank import solve_program
from hcmodel.solvers.qp.program import QPSolution, QPStatus, QuadraticProgram, residuals
from hcmodel.solvers.qp.table import (
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
