"""The status is a pure function of the evidence; these are the contract's sentences, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hcmodel.certify.lower_bound import LowerBound
from hcmodel.certify.paths.descent import Descent
from hcmodel.solvers import Termination
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solving.evidence import Evidence
from hcmodel.solving.judge import LIMITS, Status, gap_allowed, judge
from tests.solvers.models import tank as tank_oracle

TOLERANCE = 1e-6


def evaluation(x: tuple[float, float] = (2.0, 0.5)) -> Evaluation:
    """Ex-CGP: x1 x2 + 4/x1 + 1/x2 with x1 x2 <= 1, whose minimum is 5 at (2, ½)."""
    return tank_oracle().oracle.at(np.array(x))


def bound(value: float) -> LowerBound:
    return LowerBound(value, (), 0, np.zeros(2), np.zeros(1))


def path(*, endless: bool) -> Descent:
    nothing = np.zeros(2)
    return Descent(endless, 4.0, evaluation(), nothing, nothing.astype(bool))


def evidence(**changes: Any) -> Evidence:
    """A stationary, feasible point with the value 5, and nothing certified."""
    known: dict[str, Any] = {
        "termination": Termination.CONVERGED,
        "tolerance": TOLERANCE,
        "evaluation": evaluation(),
        "stationary": True,
    }
    return Evidence(**{**known, **changes})


ALLOWED = gap_allowed(5.0, TOLERANCE)


def test_the_gap_allowed_is_relative_with_a_small_absolute_part() -> None:
    assert gap_allowed(5.0, 1e-6) == pytest.approx(5e-6 + 1e-9)
    assert gap_allowed(-5.0, 1e-6) == gap_allowed(5.0, 1e-6)
    assert gap_allowed(0.0, 1e-6) == pytest.approx(1e-9)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        pytest.param({"bound": bound(5 - 0.5 * ALLOWED)}, Status.OPTIMAL, id="certified"),
        pytest.param({"bound": bound(5 - 2 * ALLOWED)}, Status.LOCALLY_OPTIMAL, id="gap too wide"),
        pytest.param({}, Status.LOCALLY_OPTIMAL, id="stationary, nothing certified"),
        pytest.param({"stationary": False}, Status.OPTIMAL_INACCURATE, id="feasible only"),
        pytest.param({"domination": 0.5 * ALLOWED}, Status.OPTIMAL, id="by given constants"),
        pytest.param({"domination": 2 * ALLOWED}, Status.LOCALLY_OPTIMAL, id="constants too weak"),
        pytest.param(
            {"bound": bound(5.1)}, Status.OPTIMAL_INACCURATE, id="a value far below its own bound"
        ),
        # more than a hundredth of the value 5 apart from the bound, on either side
        pytest.param({"bound": bound(5.04)}, Status.LOCALLY_OPTIMAL, id="a little below"),
        pytest.param({"bound": bound(5.06)}, Status.OPTIMAL_INACCURATE, id="too far below"),
        pytest.param(
            {"bound": bound(4.96), "proven": True}, Status.LOCALLY_OPTIMAL, id="a little above"
        ),
        pytest.param(
            {"bound": bound(4.94), "proven": True},
            Status.OPTIMAL_INACCURATE,
            id="a gap where stationary means optimal",
        ),
        pytest.param(
            {"bound": bound(4.94), "proven": True, "relaxed": True},
            Status.LOCALLY_OPTIMAL,
            id="a gap that bounds leave which were left out",
        ),
        pytest.param(
            {"bound": bound(4.94)},
            Status.LOCALLY_OPTIMAL,
            id="a gap that declared coordinates leave",
        ),
        pytest.param(
            {"bound": bound(5 - 2 * ALLOWED), "domination": 0.0},
            Status.LOCALLY_OPTIMAL,
            id="a certified bound counts before constants",
        ),
        pytest.param({"descent": path(endless=True)}, Status.UNBOUNDED, id="a path without end"),
        pytest.param(
            {"descent": path(endless=False)}, Status.LOCALLY_OPTIMAL, id="a path to a limit"
        ),
        pytest.param(
            {"termination": Termination.UNBOUNDED},
            Status.LOCALLY_OPTIMAL,
            id="a method's word shows nothing",
        ),
        pytest.param({"conflict": bound(1.0)}, Status.LOCALLY_OPTIMAL, id="feasible after all"),
    ],
)
def test_feasible_points(changes: dict[str, Any], status: Status) -> None:
    assert judge(evidence(**changes)) is status


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        pytest.param({"conflict": bound(1.0)}, Status.INFEASIBLE, id="a proof"),
        pytest.param({}, Status.SOLVER_ERROR, id="no evidence of anything"),
        pytest.param(
            {"termination": Termination.INFEASIBLE_STATIONARY},
            Status.INFEASIBLE_INACCURATE,
            id="the violation has a stationary point",
        ),
        pytest.param(
            {"termination": Termination.UNBOUNDED}, Status.SOLVER_ERROR, id="outside the rows"
        ),
        pytest.param(
            {"bound": bound(5.0)}, Status.SOLVER_ERROR, id="a bound says nothing of this point"
        ),
        pytest.param(
            {"termination": Termination.TIME_LIMIT}, Status.USER_LIMIT, id="stopped on the way"
        ),
    ],
)
def test_infeasible_points(changes: dict[str, Any], status: Status) -> None:
    violated = evaluation((2.0, 0.6))  # x1 x2 = 1.2
    assert judge(evidence(evaluation=violated, **changes)) is status


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_decides_only_where_nothing_was_shown(limit: Termination) -> None:
    assert judge(evidence(termination=limit, bound=bound(5.0))) is Status.OPTIMAL
    assert judge(evidence(termination=limit)) is Status.LOCALLY_OPTIMAL
    assert judge(evidence(termination=limit, stationary=False)) is Status.USER_LIMIT
    assert judge(Evidence(limit, TOLERANCE)) is Status.USER_LIMIT


def test_without_a_point_nothing_is_known() -> None:
    assert judge(Evidence(Termination.CONVERGED, TOLERANCE)) is Status.SOLVER_ERROR
    with np.errstate(all="ignore"):
        outside = evaluation((0.0, 1.0))  # 4/x1 is not finite there
    assert judge(evidence(evaluation=outside)) is Status.SOLVER_ERROR


def test_the_tolerance_decides_what_is_feasible() -> None:
    nearly = evaluation((2.0, 0.5 + 1e-4))
    assert not evidence(evaluation=nearly).feasible
    assert evidence(evaluation=nearly, tolerance=1e-3).feasible


@pytest.mark.parametrize(
    ("below", "status"), [(0.005, Status.LOCALLY_OPTIMAL), (0.015, Status.OPTIMAL_INACCURATE)]
)
def test_under_a_value_of_one_the_distance_below_a_bound_counts_as_it_is(
    below: float, status: Status
) -> None:
    small = evaluation()
    small.objective = 0.5  # a hundredth of max(1, 0.5) may be used
    assert judge(evidence(evaluation=small, bound=bound(0.5 + below))) is status
    assert judge(evidence(evaluation=small, bound=bound(0.5 - below), proven=True)) is status
