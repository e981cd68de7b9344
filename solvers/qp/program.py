"""The quadratic program and its solution, in terms that no backend owns.

minimise  ½ sᵀ P s + qᵀ s   s.t.   G s <= g,   E s == e,   s in X (bounds and cones)
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace

FloatArray = NDArray[np.float64]
Matrix = Any  # dense, or scipy's csr_array


class QPStatus(Enum):
    SOLVED = "solved"
    ALMOST_SOLVED = "solved to reduced accuracy"
    INFEASIBLE = "no step satisfies the rows"
    UNBOUNDED = "the model has no minimum"
    FAILED = "the backend found no answer"


@dataclass(frozen=True)
class Cone:
    """`offset + matrix @ s` lies in the cone `kind` ("psd" takes a scaled triangle, "zero" is 0)."""

    kind: str
    matrix: scipy.sparse.csr_array
    offset: FloatArray


@dataclass(frozen=True)
class StepRows:
    """`x + metric * s in X` as the QP sees it: bounds on the scaled step s, and cones if any."""

    lower: FloatArray
    upper: FloatArray
    cones: tuple[Cone, ...] = ()


def nearer(steps: StepRows, reach: float) -> StepRows:
    """The same with steps that use up at most the share `reach` of the way to a matrix cone's edge."""
    cones = [
        replace(cone, offset=reach * cone.offset) if cone.kind == "psd" else cone
        for cone in steps.cones
    ]
    return replace(steps, cones=tuple(cones))


@dataclass(frozen=True)
class QuadraticProgram:
    """`quadratic` is P: an array, a csr_array, a vector when it is diagonal, or with structure."""

    quadratic: Any
    linear: FloatArray
    inequality: Matrix
    inequality_bound: FloatArray
    equality: Matrix
    equality_bound: FloatArray
    domain: StepRows

    @property
    def dimension(self) -> int:
        return self.linear.size

    def times_quadratic(self, s: FloatArray) -> FloatArray:
        diagonal = isinstance(self.quadratic, np.ndarray) and self.quadratic.ndim == 1
        return np.asarray(self.quadratic * s if diagonal else self.quadratic @ s)


@dataclass(frozen=True)
class QPSolution:
    """Multipliers are nonnegative for inequalities; `bound_multipliers` push down where positive."""

    status: QPStatus
    step: FloatArray
    inequality_multipliers: FloatArray
    equality_multipliers: FloatArray
    bound_multipliers: FloatArray

    @property
    def usable(self) -> bool:
        return self.status in (QPStatus.SOLVED, QPStatus.ALMOST_SOLVED)


def residuals(program: QuadraticProgram, solution: QPSolution) -> tuple[float, float, float]:
    """(primal violation, stationarity, complementarity) from the data, not from a backend's word.

    Only for programs without cones, whose multipliers `QPSolution` does not carry.
    """
    s = solution.step
    slack = program.inequality_bound - program.inequality @ s
    primal = max(
        float(np.max(-slack, initial=0.0)),
        float(np.max(np.abs(program.equality @ s - program.equality_bound), initial=0.0)),
        float(np.max(program.domain.lower - s, initial=0.0)),
        float(np.max(s - program.domain.upper, initial=0.0)),
    )
    gradient = (
        program.times_quadratic(s)
        + program.linear
        + program.inequality.T @ solution.inequality_multipliers
        + program.equality.T @ solution.equality_multipliers
        + solution.bound_multipliers
    )
    complementarity = np.abs(slack * solution.inequality_multipliers)
    return (
        primal,
        float(np.max(np.abs(gradient), initial=0.0)),
        float(np.max(complementarity, initial=0.0)),
    )
