"""The tables of backends, for quadratic and for cone programs: a name, and what makes an instance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from hcmodel.solvers.qp.active_set import ActiveSetBackend
from hcmodel.solvers.qp.clarabel_ import ClarabelBackend, ClarabelConeBackend
from hcmodel.solvers.qp.cone_options import ConeOptions
from hcmodel.solvers.qp.cone_program import ConeProgram, ConeSolution
from hcmodel.solvers.qp.highs_ import HighsConeBackend
from hcmodel.solvers.qp.program import QPSolution, QuadraticProgram


class QPBackend(Protocol):
    """An instance belongs to one run, so it may keep what the next program can use again."""

    def solve(self, program: QuadraticProgram) -> QPSolution: ...


DEFAULT_BACKEND = "clarabel"
# For series of programs with few rows, of which each is much like the last one.
ACTIVE_SET = "active-set"
BACKENDS: dict[str, Callable[[], QPBackend]] = {
    DEFAULT_BACKEND: ClarabelBackend,
    ACTIVE_SET: ActiveSetBackend,
}


def make_backend(name: str = DEFAULT_BACKEND) -> QPBackend:
    if name not in BACKENDS:
        raise ValueError(f"unknown QP backend {name!r}; there are: {', '.join(sorted(BACKENDS))}")
    return BACKENDS[name]()


class ConeBackend(Protocol):
    """An instance belongs to one run; `fits` says whether the backend has the program's cones."""

    def fits(self, program: ConeProgram) -> bool: ...

    def solve(self, program: ConeProgram, options: ConeOptions) -> ConeSolution: ...


CONE_BACKENDS: dict[str, Callable[[], ConeBackend]] = {
    "clarabel": ClarabelConeBackend,
    "highs": HighsConeBackend,
}


def make_cone_backend(name: str = DEFAULT_BACKEND) -> ConeBackend:
    if name not in CONE_BACKENDS:
        known = ", ".join(sorted(CONE_BACKENDS))
        raise ValueError(f"unknown cone backend {name!r}; there are: {known}")
    return CONE_BACKENDS[name]()


def solve_cone(
    program: ConeProgram,
    backend: str | ConeBackend = DEFAULT_BACKEND,
    options: ConeOptions | None = None,
) -> ConeSolution:
    """Solve a cone program once; for a series of programs make a backend and keep it."""
    instance = make_cone_backend(backend) if isinstance(backend, str) else backend
    return instance.solve(program, options or ConeOptions())
