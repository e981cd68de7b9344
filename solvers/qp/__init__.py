"""Convex quadratic programs with a box and cones: the sub-problem of every method here."""

from hcmodel.solvers.qp.low_rank import solve_program
from hcmodel.solvers.qp.program import QPSolution, QPStatus, QuadraticProgram, residuals
from hcmodel.solvers.qp.table import BACKENDS, DEFAULT_BACKEND, QPBackend, make_backend

__all__ = [
    "BACKENDS",
    "DEFAULT_BACKEND",
    "QPBackend",
    "QPSolution",
    "QPStatus",
    "QuadraticProgram",
    "make_backend",
    "residuals",
    "solve_program",
]
