"""What a point is, decided from the evidence alone."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from hcmodel.solvers.result import Termination

if TYPE_CHECKING:
    from hcmodel.solving.evidence import Evidence


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


LIMITS = (
    Termination.CALL_LIMIT,
    Termination.ITERATION_LIMIT,
    Termination.TIME_LIMIT,
    Termination.INTERRUPTED,
    Termination.CALLBACK,
)

# Ends of a method by a rule of its own.
ENDED = (Termination.CONVERGED, Termination.STALLED)
# Ends after which no time is left to look closer.
OUT_OF_TIME = (Termination.TIME_LIMIT, Termination.INTERRUPTED)

# A value below a certified bound by more than this, relatively, cannot come from rounding: it uses the
# tolerance of the rows. One above it by more is not called a minimum, either. Between a thousandth and a
# tenth the claims' tests (test_claims.py) pass.
BELOW_BOUND = 1e-2

# A bound is refined up to this part of the gap allowed, which takes one more Newton step. Small programs
# are solved so finely that it takes none (tests.benchmarks speed, Ex-CGP).
FINEST = 1e-4


def gap_allowed(value: float, tolerance: float) -> float:
    """The certified gap up to which a point counts as optimal (the contract's tol·|value| + 1e-3·tol)."""
    return tolerance * abs(value) + 1e-3 * tolerance


def is_nearly_optimal(evidence: Evidence) -> bool:
    """Whether the value is shown to be optimal, and rows hold almost within the tolerance."""
    evaluation, gap = evidence.evaluation, evidence.gap
    if evaluation is None or gap is None or not evidence.nearly_feasible:
        return False
    return abs(gap) <= gap_allowed(evaluation.objective, evidence.tolerance)


def judge(evidence: Evidence) -> Status:
    """The status that the evidence supports; the termination decides only where nothing else can."""
    evaluation, termination = evidence.evaluation, evidence.termination
    if termination in (Termination.FAILED, Termination.OUT_OF_MEMORY):
        return Status.SOLVER_ERROR
    if evaluation is None or not evaluation.finite:
        return Status.USER_LIMIT if termination in LIMITS else Status.SOLVER_ERROR
    gap = evidence.gap
    if evidence.feasible:
        if evidence.descent is not None and evidence.descent.endless:
            return Status.UNBOUNDED
        if gap is not None and abs(gap) <= gap_allowed(evaluation.objective, evidence.tolerance):
            return Status.OPTIMAL
        apart = BELOW_BOUND * max(1.0, abs(evaluation.objective))
        # in proven coordinates stationary means optimal, unless bounds of the model were left out
        minimal = evidence.proven and not evidence.relaxed
        contradicted = gap is not None and (gap < -apart or (gap > apart and minimal))
        if evidence.stationary and not contradicted:
            return Status.LOCALLY_OPTIMAL
    elif evidence.conflict is not None:
        return Status.INFEASIBLE
    if termination in LIMITS:
        return Status.USER_LIMIT
    if evidence.feasible or is_nearly_optimal(evidence):
        return Status.OPTIMAL_INACCURATE
    if termination in (Termination.INFEASIBLE_STATIONARY, Termination.INFEASIBLE):
        return Status.INFEASIBLE_INACCURATE
    return Status.SOLVER_ERROR
