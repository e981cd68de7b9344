"""The table of QP backends: a name, and what makes an instance of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from hcmodel.solvers.qp.clarabel_ import ClarabelBackend
from hcmodel.solvers.qp.program import QPSolution, QuadraticProgram


class QPBackend(Protocol):
    """An instance belongs to one run, so it may keep what the next program can use again."""

    def solve(self, program: QuadraticProgram) -> QPSolution: ...


BACKENDS: dict[str, Callable[[], QPBackend]] = {"clarabel": ClarabelBackend}
DEFAULT_BACKEND = "clarabel"


def make_backend(name: str = DEFAULT_BACKEND) -> QPBackend:
    if name not in BACKENDS:
        raise ValueError(f"unknown QP backend {name!r}; there are: {', '.join(sorted(BACKENDS))}")
    return BACKENDS[name]()
