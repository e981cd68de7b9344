"""The numbers inside the first-order methods, each of which is a choice, not a consequence of rounding.

They belong to the adaptive rule; the theory rule takes every parameter from a theorem. Options that users
set are with each method. The comment at a number names its source:

- N&W: Nocedal and Wright, Numerical Optimization, 2nd edition, 2006
- D&S: Dennis and Schnabel, Numerical Methods for Unconstrained Optimization, 1983
- Nesterov: Gradient methods for minimizing composite functions, 2013: the curvature is multiplied by
  γ_u > 1 where it proves too small, and divided by γ_d >= 1 from step to step
- development set: the value with which the figures of `tests/benchmarks/calls.py` were measured
- safeguard: the same, but no run changed when the value was made about four times as large and as small
  on the problems tried, two to five of the development set (`tests/benchmarks/constants.py --perturb`)
- other names point to the paper or to the quantity from which the value follows
"""

from __future__ import annotations

from dataclasses import field

from hcmodel.records import dataclass


@dataclass(frozen=True)
class LevelRules:
    """Which decreases, shifts and weights are tried in the step for a level (`level_step`)."""

    # α under which the linearised rows count as infeasible over X.
    smallest_shift: float = 2.0**-12  # safeguard
    # α is divided by the first where the rows admit no step, and by the second once it is below the
    # third.
    shift_cut: float = 2.0  # development set
    coarse_cut: float = 4.0  # safeguard
    coarse_below: float = 0.1  # safeguard
    # How many smaller decreases are tried beside the step onto the rows: the first of them, in the
    # decrease that was wanted or that the rows cost, what the next one is divided by, and the
    # least, in the decrease of the steepest coordinate along the step's unit.
    level_trials: int = 6  # safeguard
    first_share: float = 0.25  # development set
    share_cut: float = 16.0  # safeguard
    least_share: float = 1e-3  # safeguard
    # By how much the multiplier of the level may change from one step to the next.
    weight_range: float = 4.0  # development set
    # The step to a vertex of the linear model is taken if it is no longer, in natural units, …
    vertex_reach: float = 0.05  # development set
    # … and computed with a weight that leaves of the quadratic term what makes the program strictly
    # convex.
    vertex_weight: float = 1e6  # safeguard
    # A multiplier of the level this small beside those of the rows, or beside this, means that the
    # level does not bind, and the quotients, which estimate the problem's multipliers, mean
    # nothing.
    negligible: float = 1e-4  # safeguard
    negligible_rows: float = 1e-8  # safeguard
    # A step shorter than this share of its unit is computed again in a unit of its own length times
    # the second, but not under the third of the last one, nor where the unit is already the fourth.
    short: float = 0.01  # development set: tails reach the tolerance
    unit_margin: float = 10.0  # safeguard
    unit_cut: float = 1e-3  # safeguard
    smallest_unit: float = 1e-12  # safeguard

    def __post_init__(self) -> None:
        if not min(self.shift_cut, self.coarse_cut, self.share_cut) > 1.0:
            raise ValueError("shift_cut, coarse_cut and share_cut must be above 1")
        if not self.short * self.unit_margin < 1.0:
            raise ValueError(
                "short·unit_margin must be below 1: a new unit has to be a smaller one"
            )


@dataclass(frozen=True)
class PenaltyRules:
    """When the weights of the merit function follow the multipliers (`level_step`)."""

    # A weight under the first multiple of its multiplier is raised to the second; one above the
    # third is lowered by the factor, but not under the second.
    margin: float = 1.2  # above 1: the penalty is exact (N&W, theorem 17.3); the margin is ours
    raised: float = 2.0  # development set
    excess: float = 4.0  # development set
    lowering: float = 0.5  # development set


@dataclass(frozen=True)
class SearchRules:
    """Backtracking along a direction (`level_step`)."""

    # The share of the promised decrease that is asked for.
    sufficient: float = 1e-4  # N&W, section 3.1
    # The share of a step under which the search has failed.
    shortest: float = 1e-10  # the accuracy of the backend that computed the step
    # The next length is the bottom of the parabola, between these shares of the last length.
    least_cut: float = 0.1  # D&S, algorithm A6.3.1
    most_cut: float = 0.5  # D&S, algorithm A6.3.1
    # The next length after a point outside the domain of a function, of which nothing else is
    # known.
    outside_cut: float = 0.25  # safeguard
    # A trial point is repaired if the rows make up this share of what it misses the linear model
    # by, and it misses that by this share of the promised decrease.
    bent_share: float = 0.5  # development set
    bent_least: float = 0.5  # development set


@dataclass(frozen=True)
class FeasibilityRules:
    """The phase on the rows (`feasibility`)."""

    # The share of the tolerance that the rows are brought to, before the objective is looked at and
    # at the end: a point that just satisfies the tolerance would leave it again.
    feasible_share: float = 0.1  # development set
    # The share of the way to the edge of a matrix cone that a step onto the rows may use up.
    reach: float = 0.7  # as in the second-order methods
    # A step onto the rows has failed if both its share and its length, in natural units, are
    # smaller.
    shortest: float = 0.01  # safeguard
    # Variables up to which a norm that is a matrix is worth its time.
    largest_matrix: int = 200  # safeguard
    # Relative decrease of F2 under which a proximal step of the widest kind counts as none.
    stationary: float = 1e-7  # safeguard
    # The width w of the first proximal step, and its limits: a step of the widest kind that
    # promises nothing, or of the narrowest that fails, is the last.
    first_width: float = 10.0  # safeguard
    widest: float = 1e4  # safeguard
    narrowest: float = 1e-6  # safeguard
    # The factor by which w changes after such a step before those limits are reached.
    width_change: float = 10.0  # safeguard
    # Limits of the factor by which w follows the curvature after a step that succeeded.
    width_cut: float = 0.2  # safeguard
    width_growth: float = 4.0  # safeguard
    # Slack of a row, in natural units, that no step uses up.
    largest_slack: float = 1e6  # safeguard
    # Rows violated by this share of the worst count as those that conflict. Where their slopes, per
    # natural unit and relative to the violation, are all below the second, so many samples of X are
    # tried.
    violated_share: float = 0.5  # safeguard
    flat: float = 1e-6  # safeguard
    most_restarts: int = 3  # safeguard
    level: LevelRules = field(default_factory=LevelRules)
    search: SearchRules = field(default_factory=SearchRules)


@dataclass(frozen=True)
class BundleRules:
    """The bundle-level methods (`bundle_level`)."""

    # A KKT residual within this many tolerances is worth a least-squares fit of the multipliers.
    near: float = 1e3  # safeguard
    # Rows times variables up to which that fit is cheap enough to be made at every step.
    small: int = 2000  # safeguard
    # The share of the tolerance within which a given optimal value counts as reached.
    level_margin: float = 1e-3  # development set (sbl-star)
    # How many past points with their derivatives are kept, where the matrix that they give has at
    # most the second number of rows and the Jacobian at most the third number of entries.
    bundle: int = 80  # safeguard
    largest_matrix: int = 200  # safeguard
    largest_jacobian: int = 100_000  # safeguard
    # The first decrease is that along a natural step times this.
    first_step: float = 0.1  # development set
    # The rounding of F1 is at least that of its slope over this share of a natural step.
    smallest_slope: float = 1e-3  # safeguard
    # The wanted decrease and the weight are multiplied by this after a step that failed.
    failed_cut: float = 0.1  # safeguard
    # Where the level has this share in a promised decrease, the next decrease follows the curvature
    # within the two factors; else the step went mostly onto the rows, and it follows within the
    # fourth and 1.
    mostly: float = 0.5  # development set
    least_change: float = 0.1  # development set
    most_change: float = 4.0  # development set
    rows_change: float = 0.5  # safeguard
    # The most by which the multiplier of the level grows beyond the one that was used.
    weight_growth: float = 2.0  # development set
    # The relative decrease of F1 by which a point far out still escapes. X is unbounded that way if
    # it has a point farther out by the second factor, or at least by the third.
    escape: float = 1e-4  # safeguard
    farther: float = 10.0  # safeguard
    beyond: float = 5.0  # safeguard
    level: LevelRules = field(default_factory=LevelRules)
    penalty: PenaltyRules = field(default_factory=PenaltyRules)
    search: SearchRules = field(default_factory=SearchRules)
    feasibility: FeasibilityRules = field(default_factory=FeasibilityRules)


@dataclass(frozen=True)
class AdaLSRules(BundleRules):
    """The adaptive line search on top of them (`adaptive_line_search`)."""

    # β of Algorithms 4 and 5.
    beta: float = 0.5  # Fatkhullin et al. 2025, Theorem 3
    # α under which an epoch ends.
    epoch_shift: float = 1.0 / 16.0  # safeguard
    # By how much the distance to η grows when η proves too high.
    lowering: float = 8.0  # a step at α = 1 uses up half of it, and δ grows by `most_change` = 4
    # The first distance to η, in steps of the first decrease at α = 1.
    first_gap: float = 2.0  # safeguard


@dataclass(frozen=True)
class IppmRules:
    """The outer steps of the proximal point methods (`ippm`)."""

    # The part of the tolerance that the residual may have in natural units beside the first slope.
    first_slope: float = 0.1  # as `natural_share` in `kkt`
    # The part of the tolerance that F1 has to decrease by to be progress, or else the residual by a
    # factor.
    slow: float = 0.03  # safeguard
    residual_fall: float = 0.7  # safeguard
    # Steps onto the rows that repair a candidate, one call each, and the factor by which each has
    # to lower the violation.
    repairs: int = 8  # development set
    repair_fall: float = 0.5  # safeguard
    # ρ̂ is multiplied by these after an accepted step that settled, and after one that failed.
    settled: float = 0.5  # development set
    failed: float = 4.0  # safeguard
    # The number of inner steps is multiplied by this when it was too small.
    more_steps: float = 1.5  # safeguard
    feasibility: FeasibilityRules = field(default_factory=FeasibilityRules)


@dataclass(frozen=True)
class AcceleratedRules:
    """The inner solver ACGD (`accelerated_gradient`)."""

    # The inner error, in gradients of the prox term, at which a sub-problem counts as solved.
    inner_share: float = 1.0  # Solodov and Svaiter 1999: an error relative to the step
    # By how much Λ rises at least, and at most, where the curvature met is larger, and how often.
    least_rise: float = 1.5  # Nesterov, γ_u
    largest_rise: float = 10.0  # safeguard
    restarts: int = 30  # safeguard
    # What Λ is multiplied by from one outer step to the next, but it is at least a share of ρ̂.
    forget: float = 0.5  # Nesterov, γ_d = 2
    least_smoothness: float = 1e-12  # safeguard
    # The shares of the violation that the linear models are asked to take off, one after the other.
    shifts: tuple[float, ...] = (1.0, 0.5, 0.1, 0.0)  # development set


@dataclass(frozen=True)
class SubgradientRules:
    """The inner solver SwSG (`switching_subgradient`)."""

    # Polyak's step goes past the level by this share, so that the iterates come to lie inside.
    overshoot: float = 0.01  # development set
    # With equalities: a distance to the rows, in lengths of the last objective step, that is
    # allowed.
    near_rows: float = 0.5  # development set
    # The largest sub-gradient, in those of the centre, that a step is made of.
    steepest: float = 2.0  # development set
    # Polyak steps on F2 that make one step of the first phase, and the factor by which they have to
    # lower the violation.
    polyak_steps: int = 50  # development set
    violation_fall: float = 0.5  # development set
    # The decrease that is asked for, in ρ̂‖x − x_k‖².
    decrease_share: float = 0.5  # the proximal objective is then below its value at x_k
