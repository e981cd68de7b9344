"""What a solve found: the point, what it is, how it is known, and how it was reached.

Everything that is claimed here comes from a fresh evaluation of the model at the point, never from
what a method said of itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.solvers.oracle import Evaluation, OracleCalls
from hcmodel.solvers.result import Record, Termination

FloatArray = NDArray[np.float64]


class Status(StrEnum):
    """What the point is. A status is its own name, so that it compares with plain strings."""

    OPTIMAL = "optimal"
    LOCALLY_OPTIMAL = "locally_optimal"
    OPTIMAL_INACCURATE = "optimal_inaccurate"
    INFEASIBLE = "infeasible"
    INFEASIBLE_INACCURATE = "infeasible_inaccurate"
    UNBOUNDED = "unbounded"
    USER_LIMIT = "user_limit"
    SOLVER_ERROR = "solver_error"


@dataclass(frozen=True)
class Certificate:
    """What is known of the point. None where nothing is.

    `stationarity` is the KKT residual; `violation` the largest violation of a constraint as written.
    """

    kind: str
    violation: float | None
    stationarity: float | None
    lower_bound: float | None = None
    gap: float | None = None
    conditions: tuple[str, ...] | None = None


@dataclass(frozen=True)
class BoundDuals:
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True)
class Solution:
    """The outcome of `Problem.solve`, in the user's units and sign."""

    value: float | None
    status: Status
    termination: Termination
    point: Mapping[str, FloatArray]
    duals: Mapping[str, FloatArray]
    bound_duals: Mapping[str, BoundDuals]
    certificate: Certificate
    trace: tuple[Record, ...]
    oracle_calls: OracleCalls
    iterations: int
    method: str
    engine: str
    compile_seconds: float
    solve_seconds: float
    message: str
    conflict: tuple[str, ...] = ()

    def rank(self) -> int:
        """How much the status says, to choose between the outcomes of several methods."""
        return RANKS.get(self.status, 0) if self.point else -1

    def is_final(self) -> bool:
        """Whether another method could add nothing, or was not asked to."""
        return self.status not in (
            Status.OPTIMAL_INACCURATE,
            Status.INFEASIBLE_INACCURATE,
            Status.SOLVER_ERROR,
        )

    def __str__(self) -> str:
        from hcmodel.report.text import solution_text

        return solution_text(self)

    def _repr_html_(self) -> str:
        from hcmodel.report.html import solution_html

        return solution_html(self)

    def plot(self, path: str | None = None) -> Any:
        """Objective and violation against oracle calls, as a matplotlib figure (extra `plot`)."""
        from hcmodel.report.plot import convergence_figure

        return convergence_figure(self, path)

    def to_json(self, model: str | None = None) -> dict[str, Any]:
        """A dict of plain numbers and lists, ready for `json.dumps`."""
        from hcmodel.report.json import solution_json

        return solution_json(self, model)


RANKS = {
    Status.OPTIMAL: 5,
    Status.INFEASIBLE: 5,
    Status.UNBOUNDED: 4,
    Status.LOCALLY_OPTIMAL: 4,
    Status.OPTIMAL_INACCURATE: 3,
    Status.INFEASIBLE_INACCURATE: 2,
    Status.USER_LIMIT: 1,
    Status.SOLVER_ERROR: 0,
}

LIMITS = (
    Termination.CALL_LIMIT,
    Termination.ITERATION_LIMIT,
    Termination.TIME_LIMIT,
    Termination.INTERRUPTED,
    Termination.CALLBACK,
)


# A value so far below a certified bound, relatively, is owed to the tolerance of the rows alone.
OVERDRAWN = 1e-2


def gap_allowed(value: float, tolerance: float) -> float:
    """The certified gap up to which a point counts as optimal."""
    return tolerance * abs(value) + 1e-3 * tolerance


def judge(
    termination: Termination,
    evaluation: Evaluation | None,
    stationary: bool,
    tolerance: float,
    gap: float | None = None,
    impossible: bool = False,
) -> Status:
    """What the point is, from its own evaluation; the termination decides only where that cannot.

    `gap` is certified, and `impossible` says that infeasibility is.
    """
    if evaluation is None or not evaluation.finite:
        return Status.USER_LIMIT if termination in LIMITS else Status.SOLVER_ERROR
    feasible = evaluation.relative_violation <= tolerance
    if termination is Termination.UNBOUNDED and feasible:
        return Status.UNBOUNDED
    # A point far below its own bound uses up the tolerance of the rows: no more is claimed for it.
    if feasible and gap is not None and abs(gap) <= gap_allowed(evaluation.objective, tolerance):
        return Status.OPTIMAL
    overdrawn = gap is not None and gap < -OVERDRAWN * max(1.0, abs(evaluation.objective))
    if feasible and stationary and not overdrawn:
        return Status.LOCALLY_OPTIMAL
    if impossible and not feasible:
        return Status.INFEASIBLE
    if termination in LIMITS:
        return Status.USER_LIMIT
    if feasible:
        return Status.OPTIMAL_INACCURATE
    if termination is Termination.INFEASIBLE_STATIONARY:
        return Status.INFEASIBLE_INACCURATE
    return Status.SOLVER_ERROR
