"""Options of the second-order methods: every number that is a choice and not a consequence of rounding.

The options that users set (`radius`, `patience`, `backend`) are fields of `Options`; the others are
grouped by the component that reads them. The comment at a number names its source:

- N&W: Nocedal and Wright, Numerical Optimization, 2nd edition, 2006
- CGT: Conn, Gould and Toint, Trust-Region Methods, 2000
- development set: the value with which the figures of `tests/benchmarks/calls.py` were measured
- other names point to the paper or to the quantity from which the value follows
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from hcmodel.records import dataclass
from hcmodel.solvers.numerics import BACKEND_ROUNDING
from hcmodel.solvers.qp import DEFAULT_BACKEND, make_backend


@dataclass(frozen=True)
class StepOptions:
    """The quadratic programs of a step (`programs`, `step`)."""

    # Added to the diagonal of B, relative to its largest entry, so that the program is strictly convex.
    proximal: float = 10 * BACKEND_ROUNDING  # ten times the accuracy of the backend
    # The same in the program of the least relaxation, where nothing else fixes the step.
    relaxation_proximal: float = (
        100 * BACKEND_ROUNDING
    )  # weaker than the relaxation, above rounding
    # By this much more than the least relaxation the inequalities are relaxed, relative to the rows.
    relaxation_margin: float = 10 * BACKEND_ROUNDING  # ten times the accuracy of the backend
    # A trust region as wide as this is left out of the program.
    unlimited: float = 1e6  # development set
    # A step shorter than this share of its unit is computed again in a unit of its own length.
    fine: float = 1e-2  # development set
    smallest_unit: float = 1e-13  # development set
    refinements: int = 4  # development set
    # The next unit: this multiple of the length found, and at least this share of the last unit.
    unit_per_length: float = 10.0  # development set
    unit_decrease: float = 1e-3  # development set
    # Wider trust regions, tried in turn where no step within the present one satisfies the rows.
    wider: tuple[float, ...] = (10.0, 1e3, 1e8)  # development set
    # The proximal term of such a step in a matrix frame, relative to slopes and curvature: it keeps the
    # step in the middle of the cones.
    centring: float = 1e-2  # development set (regulators)
    # A step longer than this share of the radius is at the edge of the trust region.
    edge: float = 0.99  # 1, less the accuracy of the program


@dataclass(frozen=True)
class AcceptanceOptions:
    """Which steps are accepted, and the trust region after them (`acceptance`)."""

    # Ratios of actual to predicted decrease: accepted, poor, good.
    accepted: float = (
        1e-4  # N&W, algorithm 4.1 with η = 1e-4, their constant of sufficient decrease
    )
    poor: float = 0.25  # N&W, algorithm 4.1
    good: float = 0.75  # N&W, algorithm 4.1
    # Factors of the radius.
    growth: float = 4.0  # development set (N&W and CGT: 2)
    poor_decrease: float = 0.5  # CGT, algorithm 6.1.1: between 0.25 and 0.5
    rejected_decrease: float = 0.25  # N&W, algorithm 4.1
    # After a point outside a function's domain, or a program without an answer.
    failed_decrease: float = 0.1  # development set
    # An accepted step never leaves a smaller radius than this, in natural units.
    radius_after_acceptance: float = 1e-6  # development set
    smallest_radius: float = 1e-11  # development set: a smaller step does not show in the merit
    largest_radius: float = 1e8  # development set
    # The share of the way to the edge of a matrix cone that a step may use up. Beyond the edge maps such
    # as K = Y P⁻¹ are not defined.
    reach: float = 0.7  # development set (regulators)
    # The factor by which 1 − reach decreases after a good step.
    reach_decrease: float = 0.3  # development set (regulators)
    # A relative decrease of the merit that counts as progress.
    progress: float = 1e-11  # development set
    # The same after many steps: valleys to infinity, as of x² + (x·y − 1)², take thousands of small ones.
    late_progress: float = 1e-9  # the absolute part of the gap that the contract allows by default
    many: int = 500  # several times the steps of any model of the development set
    # A step that ends this near to a point left before, in its own length, is none.
    circle: float = 1e-2  # rows in test_a_penalty_that_rises_and_falls_does_not_lead_in_circles
    # A relative change of the multipliers after which the Hessian is computed again.
    changed_multipliers: float = 0.1  # development set


@dataclass(frozen=True)
class PenaltyOptions:
    """The weights of the rows in the merit (`penalty`)."""

    # The least weight of a row, relative to the slopes of objective and row: a merit must see every row.
    least_weight: float = 1e-3  # development set
    # Weights are at least this multiple of the multipliers.
    above: float = 2.0  # N&W, section 18.3: above the largest multiplier; the factor is ours
    # Weights above this multiple of what is needed decrease by this factor.
    excess: float = 4.0  # development set
    decrease: float = 0.1  # development set
    # The repaired violation must outweigh an increase of the objective by this factor.
    descent: float = 2.0  # N&W (18.36) with ρ = 0.5


@dataclass(frozen=True)
class DetourOptions:
    """When steps are taken in x itself because a bound that is curved in u blocks them (`detour`)."""

    # Steps in a row that such a bound may block before a detour begins.
    patience: int = 1  # development set
    # Each detour takes this many times the steps of the one before, up to the longest.
    growth: int = 3  # development set
    longest: int = 81  # development set: the fifth detour (3⁴)


@dataclass(frozen=True)
class RestOptions:
    """When a run is over: convergence, stalls, conflicts of the rows (`stationarity`, `rest`)."""

    # The share of the tolerance to which residual and violation are brought.
    share: float = 1e-2  # development set: the certificate then needs few steps of its own
    # A step too small to show in the merit is taken if it reduces the residual by this factor.
    finer: float = 0.5  # development set
    # On a bounded domain an objective under minus this is unbounded, since only a pole leads there.
    pole: float = 1e60  # development set
    # The slope of a violated row, in natural units and relative to the violation, that counts as none,
    # and the share of the largest violation from which rows count as violated there.
    flat: float = 1e-3  # development set
    violated: float = 0.5  # development set
    # A relaxed step that removes less than this share of the violation finds it stationary.
    least_repair: float = 1e-6  # development set
    # A stationary violation is looked at in wider trust regions, each this many times the last, so often.
    widening: float = 1e3  # development set
    widenings: int = 3  # development set
    # Programs in a row without an answer that end a run.
    failures: int = 4  # development set


@dataclass(frozen=True)
class Options:
    """Options of the second-order methods."""

    backend: str = DEFAULT_BACKEND
    radius: float = 1.0  # one natural unit
    """The first trust region, in natural units of the coordinates."""
    patience: int = 12  # development set
    """How many steps in a row may leave the merit unchanged before the run counts as stalled."""
    step: StepOptions = StepOptions()
    """The quadratic programs of a step. The numbers of this group and of the following ones are listed,
    with their sources, in `solvers/second_order/options.py`."""
    acceptance: AcceptanceOptions = AcceptanceOptions()
    """Which steps are accepted, and how the trust region changes."""
    penalty: PenaltyOptions = PenaltyOptions()
    """The weights of the rows in the merit."""
    detour: DetourOptions = DetourOptions()
    """When steps are taken in x itself, because a bound that is curved in u blocks them."""
    rest: RestOptions = RestOptions()
    """When a run is over."""

    def __post_init__(self) -> None:
        number = isinstance(self.radius, (int, float)) and not isinstance(self.radius, bool)
        if not number or not (np.isfinite(self.radius) and self.radius > 0):
            raise ValueError(f"radius must be a positive number, not {self.radius!r}")
        if isinstance(self.patience, bool) or not isinstance(self.patience, int):
            raise ValueError(f"patience must be an integer, not {self.patience!r}")
        if self.patience < 1:
            raise ValueError(f"patience must be at least 1, not {self.patience!r}")
        for field in fields(self):
            given, default = getattr(self, field.name), field.default
            if hasattr(default, "__dataclass_fields__") and type(given) is not type(default):
                raise ValueError(f"{field.name} must be {type(default).__name__}, not {given!r}")
        make_backend(self.backend)
