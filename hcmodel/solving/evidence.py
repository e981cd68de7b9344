"""What is known of a point that a run has found: one frozen record, filled by `gather`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.lower_bound import LowerBound
from hcmodel.certify.paths.descent import Descent
from hcmodel.records import dataclass
from hcmodel.reductions.form import Form
from hcmodel.reductions.forms import Forms
from hcmodel.reductions.reduction import BoundOrigin, Origin
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.result import Result, Termination

FloatArray = NDArray[np.float64]

# The multiple of the tolerance up to which violated rows are called nearly satisfied: in regulators whose
# states are a thousand times their noise, rounding leaves 3 to 10 tolerances.
NEARLY = 1e2


@dataclass(frozen=True)
class Outcome:
    """Where a run ended, in the terms of the form that it worked on."""

    form: Form
    result: Result
    start: FloatArray
    """Where the solve has started, a point of the model."""

    def point(self, forms: Forms) -> FloatArray:
        """The point of the model, inside its domain."""
        return forms.written.domain.project(self.form.chain.point_back(self.result.point))


@dataclass(frozen=True)
class Evidence:
    """Evaluations, multipliers, residual, bound and conflict at a point, for a minimisation.

    `evaluation` is of the model as written, `smooth` of the form with kinks lifted, to which
    `multipliers` and `residual` belong. `domination` is a gap from constants that the user gave.
    """

    termination: Termination
    tolerance: float
    evaluation: Evaluation | None = None
    smooth: Evaluation | None = None
    multipliers: FloatArray | None = None
    residual: float = np.inf
    at_kink: bool = False
    """Whether the gradient at the point, one of many, tells neither multipliers nor residual."""
    exact: bool = False
    """Whether the multipliers are those of the convex program, which hold at kinks too."""
    slope: FloatArray | None = None
    """At a kink, what the sets of the model's variables balance, where the convex program knows it."""
    stationary: bool = False
    bound: LowerBound | None = None
    domination: float | None = None
    conflict: LowerBound | None = None
    parts: tuple[Origin | BoundOrigin, ...] | None = None
    """The rows and bounds of an irreducible conflict, where the model is proven convex."""
    descent: Descent | None = None
    """A path on which the objective falls to the end of the numbers."""
    violation: float | None = None
    """The largest violation of a row, relative to its sides and its slopes."""
    better: FloatArray | None = None
    """A feasible point of the model beside this one that is better."""
    cause: BaseException | None = None
    """The exception that ended the run."""
    proven: bool = False
    """Whether the coordinates behind the bound are proven."""
    relaxed: bool = False
    """Whether the bound is one of the model without some of its bounds, so that a gap shows nothing."""
    bends_at: FloatArray | None = None
    """A point of the model at which it is shown not to be convex in the declared coordinates."""
    infimum: float | None = None
    """What the objective comes arbitrarily near to, where no point attains it."""
    undefined: str | None = None
    """Why the model has no value at the point, although its formula gives one."""

    @property
    def has_multipliers(self) -> bool:
        """Whether the multipliers are those of the point, as far as it is a minimum."""
        known = self.exact if self.at_kink else bool(np.isfinite(self.residual))
        return self.smooth is not None and known

    @property
    def feasible(self) -> bool:
        if self.evaluation is None:
            return False
        violation = self.violation
        if violation is None:
            violation = self.evaluation.relative_violation
        return violation <= self.tolerance

    @property
    def nearly_feasible(self) -> bool:
        """Whether rows are violated by so little that rounding may be the reason."""
        if self.violation is None or self.feasible:
            return False
        return self.violation <= NEARLY * self.tolerance

    @property
    def in_small_units(self) -> bool:
        """Whether the rows look satisfied only because they are in units far below 1."""
        loose = self.evaluation is not None and self.evaluation.relative_violation <= self.tolerance
        return loose and not self.feasible

    @property
    def in_valley(self) -> bool:
        """Whether the run stalled in a valley to infinity, where no point attains the infimum."""
        stalled = self.termination is Termination.STALLED and not self.stationary
        return stalled and self.descent is not None and self.descent.valley

    @property
    def gap(self) -> float | None:
        """The certified distance to the minimum; None where nothing is certified."""
        if self.bound is None or self.evaluation is None:
            return self.domination
        return self.evaluation.objective - self.bound.value


@dataclass(frozen=True)
class Pair:
    """A point of a form, and multipliers of its rows."""

    form: Form
    evaluation: Evaluation
    multipliers: FloatArray

    def moved(self, form: Form) -> Pair:
        """The same pair in another form of the same model."""
        there = form.oracle().at(
            form.chain.point(self.form.chain.point_back(self.evaluation.point))
        )
        duals = self.form.duals(self.evaluation, self.multipliers)
        return Pair(form, there, form.multipliers(there, duals))
