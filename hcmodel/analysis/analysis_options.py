"""The numbers of the analysis, one group for each module that reads them.

They decide how long a counterexample is looked for and how clear it has to be. What is claimed is always
compared by values far beyond rounding. The comment at a number names its source; *analysis* is
tests/benchmarks/analysis.py, whose verdicts and times were measured with these values.
"""

from __future__ import annotations

from hcmodel.records import dataclass
from hcmodel.solvers.numerics import DATA_ROUNDING


@dataclass(frozen=True)
class ConstantsOptions:
    """At how many points constants are estimated (`constants`, `analyze`)."""

    # Constants are looked at on fewer points than convexity: each costs a Hessian of every function.
    samples: int = 30  # analysis
    # Second derivatives are computed whole up to this dimension, and by differences of gradients beyond.
    largest_hessian: int = 40  # analysis
    # Hessians in all, and at least for each function.
    most_hessians: int = 120  # analysis
    least_hessians: int = 5  # analysis
    # Rows beyond this number are looked at in part.
    most_rows: int = 20  # analysis


@dataclass(frozen=True)
class SampleOptions:
    """Samples of X (`hidden_map`, `analyze`)."""

    # Points on which a model is tried where the user names no number.
    points: int = 200  # analysis
    # Samples are drawn again, up to this many times, where a function is not defined.
    draws: int = 5  # analysis


@dataclass(frozen=True)
class MapCheckOptions:
    """When a declared map is refuted as such (`map_checks`)."""

    # Images of samples span a direction if their spread along it is above this share of the largest.
    span: float = 1e-8  # well above the rounding of images
    # Two points with one image must be apart by this, in natural lengths; so many pairs are tried.
    apart: float = 1e-3  # analysis
    most_returns: int = 20  # analysis
    # Images count as one if they are nearer than this part of what the map's slopes promise: a saturated
    # map sends distant points to almost the same image.
    same: float = 1e-6  # analysis


@dataclass(frozen=True)
class SegmentOptions:
    """When a segment in u refutes convexity (`segments`)."""

    # By how much, relative to the values compared, an inequality must be violated, beside so many times
    # what the error of the inverse explains to first order.
    margin: float = 1e-7  # well above the rounding of any function
    explained: float = 100.0  # so that terms of second order are covered too
    # A row holds at a point if it misses by no more than this, relative to its sides.
    satisfied: float = DATA_ROUNDING
    # Half-lengths of segments, in natural units; the one with the clearest violation is kept.
    half_lengths: tuple[float, ...] = tuple(
        2.0**-k for k in range(15)
    )  # to 6e-5 (test_curvature_boxes)
    # Steps onto a row.
    row_steps: int = 25  # Newton's method doubles the digits with each


@dataclass(frozen=True)
class RefutationOptions:
    """Where curvature is looked for (`refutation`)."""

    # Curvature below this, relative to the function's first and second derivatives, is worth a segment.
    suspicious: float = -1e-6  # analysis
    # How many of the worst points are followed downhill or tried by segments, and for how many steps, …
    worst: int = 4  # analysis
    downhill_steps: int = 12  # analysis
    # … the first of this length, in natural units, each that fails by this factor shorter.
    first_step: float = 0.5  # analysis
    step_decrease: float = 0.7  # analysis
    # Rows beyond this number are looked at in part.
    most_rows: int = 400  # analysis


@dataclass(frozen=True)
class MultistartOptions:
    """From where stationary points are looked for (`multistart`)."""

    # Runs of a method, and the limits of each.
    runs: int = 6  # analysis
    calls_per_run: int = 200  # runs of test_refutation_stationary.py that refute take 138 at most
    # Calls of all runs together, after which no more follow.
    calls: int = 500  # of 52 random models (regulators, signomials, quadratic rows) none needs more
    # Runs one after the other without a stationary point of smooth functions, after which no more follow.
    fruitless: int = 3  # half of them
    tolerance: float = 1e-8  # near enough for Newton's method
    # Multipliers under this share of the largest belong to rows that do not hold the point.
    least_multiplier: float = 1e-6  # analysis
    # Terms of sums of products of powers from which they are tried before the maps of the catalogue.
    many_terms: int = 10  # random signomials: with 15 terms maps take ten times as long
    # Newton's method is also started from samples: it finds saddle points and maxima, too.
    newton_starts: int = 12  # analysis
    # So are descents to kinks.
    sharp_starts: int = 16  # analysis
    # By how much, relative to both values, the better point must be better.
    better: float = 1e-4  # far beyond the accuracy of the runs


@dataclass(frozen=True)
class StationaryOptions:
    """Newton's method on the KKT system, and when its end is beyond doubt (`stationary`)."""

    # What is this near to a bound or a row, in natural units, is taken to be on it.
    near: float = 1e-5  # above the accuracy of the runs before
    # What is this near to a bound after that, in natural units, is on it but for rounding.
    on_face: float = DATA_ROUNDING
    newton_steps: int = 25  # analysis
    longest_step: float = 0.5  # analysis: in natural units
    # The steps, in natural units, at which the method ends and at which it has converged.
    last_step: float = 1e-13  # a thousand OPERATION_ROUNDING, about
    converged: float = 1e-9  # Newton: the next step would be below rounding
    # Rows whose slopes are this small beside the steepest, after elimination, depend on the others.
    dependent: float = 1e-9  # analysis
    # The residual that a KKT point may have, against the objective's own variation.
    residual: float = 1e-9  # analysis
    # How well conditioned the KKT system must be, and how clear a multiplier, against that variation.
    condition: float = 1e-7  # analysis
    clear: float = 1e-7  # analysis
    # Distances, in natural units, at which the KKT system is compared with its linear model, how often,
    # and by how much of the distance it may differ.
    radii: tuple[float, ...] = (1e-3, 1e-4)  # analysis
    comparisons: int = 3  # analysis
    nonlinear: float = 0.5  # analysis
    # The violation that a stationary point may have.
    feasible: float = 1e-11  # ten times DATA_ROUNDING


@dataclass(frozen=True)
class SharpOptions:
    """Descents to kinks by linear programs, and when a kink is a sharp minimum (`sharp`)."""

    largest_dimension: int = 12  # analysis: beyond, samples do not find all pieces
    # Steps, the first radius in natural units, and the factors by which it shrinks after a step that is
    # shorter than this share of it, and after one that turns back.
    descent_steps: int = 30  # analysis
    first_radius: float = 0.2  # analysis
    short: float = 0.5  # analysis
    short_decrease: float = 0.1  # analysis
    turn_decrease: float = 0.3  # analysis
    # A descent is given up if it starts within the first of a known point, and if it comes within its
    # radius, or the second, of one once the radius has shrunk by the third.
    known_start: float = 1e-4  # analysis
    known: float = 1e-6  # the final radius
    shrunk: float = 0.1  # analysis
    # What a violated row costs, in units of the objective's slope.
    price: float = 1e3  # above the multipliers that are expected in natural units
    # The radius at which the pieces are read in the end, and the slope that counts as a rise, relative to
    # the gradient of the objective.
    final_radius: float = 1e-6  # analysis
    least_rise: float = 1e-3  # analysis
    # Rows nearer to their bound than this many radii take part.
    reach: float = 20.0  # analysis
    # Gradients that differ by more than this share of the slope belong to different pieces, and values
    # that do are not those of the pieces.
    distinct: float = 1e-3  # what curvature explains at the final radius
    # The violation that a sharp minimum may have.
    feasible: float = 1e-9  # analysis
    # Points around, beside two for each variable, from which the pieces are read.
    more_points: int = 4  # analysis


CONSTANTS = ConstantsOptions()
SAMPLE = SampleOptions()
MAP_CHECK = MapCheckOptions()
SEGMENT = SegmentOptions()
REFUTATION = RefutationOptions()
MULTISTART = MultistartOptions()
STATIONARY = StationaryOptions()
SHARP = SharpOptions()
