"""Points whose value is certified, and whose rows hold almost within the tolerance."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hcmodel.certify.lower_bound import LowerBound
from hcmodel.solvers.result import Termination
from hcmodel.solving.evidence import NEARLY, Evidence
from hcmodel.solving.judge import Status, judge

TOLERANCE = 1e-6


def evidence(violation: float, gap: float | None) -> Evidence:
    here: Any = SimpleNamespace(objective=5.0, finite=True, relative_violation=violation)
    none = np.zeros(0)
    bound = None if gap is None else LowerBound(5.0 - gap, (), 0, none, none)
    ended = Termination.STALLED
    return Evidence(ended, TOLERANCE, evaluation=here, bound=bound, violation=violation)


@pytest.mark.parametrize(
    ("violation", "gap", "status"),
    [
        (0.0, 1e-6, Status.OPTIMAL),
        (2 * TOLERANCE, 1e-6, Status.OPTIMAL_INACCURATE),
        (2 * TOLERANCE, -1e-6, Status.OPTIMAL_INACCURATE),
        (2 * TOLERANCE, 1e-3, Status.SOLVER_ERROR),  # the value is not certified
        (2 * TOLERANCE, None, Status.SOLVER_ERROR),
        (2 * NEARLY * TOLERANCE, 1e-6, Status.SOLVER_ERROR),  # too far off
    ],
)
def test_what_is_said_of_them(violation: float, gap: float | None, status: Status) -> None:
    assert judge(evidence(violation, gap)) is status
