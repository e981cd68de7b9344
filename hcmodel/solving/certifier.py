"""The certificate as a method asks for it during a run: is this point shown to be good enough?

The only call against the direction of the data flow. What it finds is kept, so that the bound that
ended a run is the bound of the solution and is not searched again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.lower_bound import LowerBound, lower_bound
from hcmodel.records import dataclass
from hcmodel.reductions.form import Form
from hcmodel.solvers.algebra.marks import same
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.qp.cone_program import ConeSolution
from hcmodel.solving.judge import FINEST, gap_allowed

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class CertifierRules:
    """When a run ends on the strength of its gap; chosen on the development set (calls.py)."""

    share: float = 1e-2
    """The part of the gap allowed that a run aims at: the last Newton steps are cheap."""
    narrowing: float = 0.5
    """The factor by which the gap has to shrink from one look at it to the next."""
    slack: float = 1e-9
    """How far outside its domain a point may lie and still count as inside."""


RULES = CertifierRules()


class Certifier:
    """Whether the gap at a point is small enough; None where no bound, or no better one, is found.

    Nothing is claimed on this: a declared map is tested when the run has ended.
    """

    def __init__(self, form: Form, tolerance: float, *, once: bool = False) -> None:
        self.form = form
        self.tolerance = tolerance
        # a method that has one point to show: no further step would make the gap smaller
        self.share = 1.0 if once else RULES.share
        self._narrowest = np.inf
        self._last: tuple[FloatArray, LowerBound] | None = None

    def __call__(
        self,
        evaluation: Evaluation,
        multipliers: FloatArray,
        solution: ConeSolution | None = None,
    ) -> bool | None:
        if not self.form.domain.contains(evaluation.point, RULES.slack):
            return None  # bounds that were left out are broken: the run after it keeps them
        value = self.form.chain.value_back(evaluation.objective)
        allowed = gap_allowed(value, self.tolerance)
        bound = lower_bound(
            self.form,
            evaluation,
            multipliers,
            target=self.share * allowed,
            finest=FINEST * allowed,
            assume_convex=True,
            solution=solution,
            thorough=self.form.proof is None,  # else the cone program is asked in the end
        )
        if bound is None:
            return None
        self._last = evaluation.point.copy(), bound
        gap, before = value - bound.value, self._narrowest
        self._narrowest = min(gap, before)
        if gap <= self.share * allowed:
            return True
        if gap <= RULES.narrowing * before:
            return False
        return True if gap <= allowed else None

    def bound_at(self, point: FloatArray) -> LowerBound | None:
        """The bound found at a point, if it was the last one looked at."""
        if self._last is None or not same(self._last[0], point):
            return None
        return self._last[1]
