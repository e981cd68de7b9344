"""The numbers of the certificate, one group for each module that reads them.

No bound rests on any of them: every pair of point and multipliers gives a valid bound, and what has to
be exact takes rounding into account (`solvers.numerics`). They decide how long and where better pairs are
looked for, and how hard a declared map is tested. The comment at a number names its source;
*certificates* is tests/benchmarks/certificates.py, whose gaps were measured with these values.
"""

from __future__ import annotations

import numpy as np

from hcmodel.records import dataclass


@dataclass(frozen=True, eq=False, repr=False)
class BoundOptions:
    """When a bound is good enough (`lower_bound`)."""

    # The gap, relative to the value, that is aimed at where no target is given, and at most elsewhere.
    finest: float = 1e-10  # a thousand times MERIT_ROUNDING: the next Newton step may be rounding
    # A relative violation below which a contradiction of the rows may be rounding.
    conflict: float = 1e-9  # ten times the accuracy of the backend
    # The share of the largest multiplier below which a row takes no part in a contradiction.
    involved: float = 1e-6  # what an interior-point method leaves is about 1e-8
    # A bound within this of the point, in its units, is named among the conditions as active.
    active: float = 1e-9  # ten times the accuracy of the backend


@dataclass(frozen=True, eq=False, repr=False)
class ChartOptions:
    """The coordinates of the certificate (`charts`)."""

    # How far, relatively, images of so many samples may lie from the affine hull found at a point.
    hull: float = 1e-7  # well above the rounding of images
    samples: int = 4  # a hull that is too small misses the first sample already


@dataclass(frozen=True, eq=False, repr=False)
class SearchOptions:
    """How long better pairs are looked for (`search`)."""

    # A gap, relative to the value, at which pairs can be taken to be good.
    near: float = 1e-3  # certificates
    # Steps in a row that may close less than this share of the gap before the search ends.
    patience: int = 3  # certificates
    worth: float = 0.1  # certificates
    # Unknowns up to which a bound that is good enough is made better still.
    refined: int = 100  # a Newton step there takes milliseconds
    # Newton steps on the Lagrangian alone.
    rounds: int = 3  # certificates
    # Weights of rows that contradict each other are rounded to multiples of 1/denominator of the largest,
    # where they are that close to one.
    denominator: float = 2520.0  # the least common multiple of 1, …, 10
    simple: float = 1e-6  # what Clarabel's infeasibility weights are worth: regulators of the tests
    # The widths within which rows count as active when multipliers are fitted.
    active: tuple[float, ...] = (
        1e-9,
        1e-6,
    )  # ten times the backend's accuracy; the default tolerance
    # The largest logarithm of a variable without bounds, where a bound needs one: doubles reach e^±709.
    largest_logarithm: float = 700.0
    # How far a point is moved off kinks, in natural units.
    off_kinks: float = 1e-9  # ten times the accuracy of the backend


@dataclass(frozen=True, eq=False, repr=False)
class NewtonOptions:
    """Single Newton steps (`newton_steps`)."""

    # The trust region, in natural units.
    radius: float = 10.0  # certificates
    # A step this much shorter than the unit it was computed in is computed again, so often, …
    fine: float = 1e-2  # as in the methods of second order
    units: int = 3  # certificates
    # … in a unit of this multiple of its length, at least this share of the last, at least this.
    unit_per_length: float = 10.0  # as in the methods of second order
    unit_decrease: float = 1e-4  # certificates
    smallest_unit: float = 1e-12  # certificates
    # Halvings of a step until the Lagrangian falls.
    halvings: int = 4  # certificates


@dataclass(frozen=True, eq=False, repr=False)
class EnclosureOptions:
    """Balls around the points of low value (`level_sets`, `balls`)."""

    # How far above the value at hand the level lies, relative to it or to this size.
    margin: float = 0.1  # certificates
    smallest_value: float = 1e-6  # the default tolerance
    # Coordinates along which points are looked at; each costs two evaluations.
    largest_search: int = 200  # certificates
    # The same under a general map, where each of these points has to be found by Newton's method.
    largest_map_search: int = 60  # certificates
    # Shares of a move that are tried, until one ends where all functions are defined.
    shares: tuple[float, ...] = (1.0, 0.3, 0.1)  # certificates
    # The length of moves. Near the point, slopes on both sides are opposite, and sure to close; farther
    # away they say more.
    around: float = 1.0  # to where the level is about reached
    close: float = 0.2  # certificates
    # The longest move under a general map, in the size of the image.
    longest: float = 0.3  # certificates
    # A move leads to where a parabola has risen this many times to the level.
    rise: float = 2.0  # certificates
    # The least size that an image is taken to have, the unit of distances.
    smallest_image: float = 1e-3  # certificates
    # Distances, in that unit, up to which half-spaces are tried, one after the other.
    distances: tuple[float, ...] = (10.0, 1e3, 1e6, np.inf)  # certificates
    # Half-spaces and unknowns beyond which the search for a ball is left out.
    most_half_spaces: int = 2000  # the time of a linear program with as many rows
    # Iterations of this program for each half-space: the simplex method may cycle.
    iterations: int = 50  # those of programs that end need fewer than 5
    # What rounding may contribute to a length before the ball counts as not found.
    largest_share: float = 0.5  # the bound is divided by one minus this
    # Prices of far half-spaces and of weights above 1 in the linear program, beside 1 for each weight.
    far_price: float = 1e-3  # certificates
    weight_price: float = 1e-6  # certificates
    # The radius beyond which that of a linear program is asked for.
    farthest: float = (
        1e10  # where the rounding of a slope, 1e-16, costs more than the default tolerance
    )
    # The distance up to which a bound is taken to hold an entry that is pulled towards it.
    held: float = 1e-6  # ten times that within which the Newton step puts entries on bounds
    # Unknowns up to which singular values take no longer than a factorisation.
    few: int = 30  # 0.1 ms
    # Unknowns up to which least squares tell in less time than a linear program whether there is a ball,
    # and what these leave, for each half-space, where there is none.
    quick: int = 60  # with 38 unknowns and 366 half-spaces 2 ms, the program 10 ms
    endless: float = 1e-6  # the root of DATA_ROUNDING: where it is less, the program decides
    # The share of its largest pivot that every pivot of a factorisation exceeds, if squares are accurate.
    far_from_singular: float = (
        1e-4  # then eight digits are left, and what is solved for is rounding
    )


@dataclass(frozen=True, eq=False, repr=False)
class MapTestOptions:
    """How a declared map is put to the test (`map_test`)."""

    # A hidden Hessian with an eigenvalue below minus this, relative to its size, contradicts the map.
    curved: float = 1e-6  # certificates
    # Samples at which values are compared, and at which second derivatives are taken; so many times as
    # many for few unknowns.
    samples: int = 64  # certificates
    curvatures: int = 4  # certificates
    few: int = 4  # beyond that the test would take longer than the rest of a solve (declared)
    more: int = 4  # certificates
    # Halvings of the domain down to the smallest neighbourhood that is sampled, plus one.
    neighbourhoods: int = (
        16  # 2^−15 of the domain is about the root of the default tolerance, squared
    )
    # Unknowns up to which all samples are evaluated as one batch of enclosures.
    largest_batch: int = 8  # of ten it takes twice as long as one by one (declared)
    # Unknowns from which on the derivatives of a map are expensive, and samples that are taken then.
    many: int = 200  # tests/benchmarks/large.py
    fewest: int = 8  # tests/benchmarks/large.py
    # Lengths of the segments in u that are looked at, and by how much of it one may be bent.
    chords: tuple[float, ...] = (1.0, 0.1, 0.01)  # certificates
    straight: float = 1e-6  # certificates
    # How far a function may lie below one of its cuts, relative to the terms.
    cut: float = 1e-6  # derivatives by differences are exact to about 1e-8
    # The margin of comparisons, relative to the terms compared.
    undercut: float = 1e-7  # well above the rounding of any function


@dataclass(frozen=True)
class BoxOptions:
    """How far enclosures of second derivatives settle declared coordinates (`curvature_boxes`)."""

    # Unknowns beyond which boxes are too many: halving each side once makes 2^n of them.
    most_unknowns: int = 4  # sixteen boxes, about 10 ms
    # Boxes in all, and where no number of them would prove anything.
    most_boxes: int = 2000  # about 20 ms for a model of twenty operations
    unproven: int = 500  # about 10 ms, as long as the samples take
    # Halvings one after the other, and those between two looks at the boxes.
    most_halvings: int = 40  # the side of a box is 1e-12 of the domain's in one dimension
    halvings: int = 3  # a look takes as long for eight boxes as for one
    # Boxes after which the search ends if none of them was shown to be convex.
    boxes_without_proof: int = 64  # the tables of declared are the same with 2,000
    # The curvature, relative to the size of the derivatives, that refutes: data may be rounded.
    bent: float = 1e-6  # as in MapTestOptions.curved
    # Halvings after the first point that refutes, to find lower points than the one at hand.
    further: int = 12  # a box becomes 4,000 times as short in one dimension
    # Boxes that are halved then: those in which the objective may be lowest.
    most_kept: int = 64  # the wells of test_curvature_boxes are found with 4, too
    # Middles of boxes that are kept as better points.
    kept: int = 8  # one of them is in the lowest well


@dataclass(frozen=True)
class ConeDualityOptions:
    """Bounds from the dual of a cone program (`cone_duality`, `cone_ranges`)."""

    # How far above the value at hand the level lies, relative to it; no bound is above the level.
    margin: float = 1e-3  # far above any gap that matters, and the ranges hardly depend on it
    # Passes over all rows that look for ranges. Each costs about as much as a product with A.
    sweeps: int = 8  # a range walks from the objective to a bound, an entry, a cone, and on
    # A pass in which no range becomes finite, or shorter by this factor, is the last.
    shorter: float = 0.5  # residuals are at rounding level: the ranges' sizes hardly matter
    # Corrections of a dual that leaves a residual.
    corrections: int = 2  # the second takes out what the first left by its own rounding
    # Entries of A up to which a correction is tried, which takes its singular values, …
    largest_correction: int = 300_000  # about 50 ms
    # … entries of A from which on, and those that are not 0 up to which, a sparse factor is used, …
    dense_correction: int = 10_000  # about 2 ms
    sparse_correction: int = 100_000  # denoising with 400 to 10,000 values (test_cone_duality)
    # … the same where only a search of many Newton steps is left, …
    largest_last_correction: int = 5_000_000  # about two seconds
    # … and up to which a dual inside the cone is looked for, which takes them too.
    largest_inner: int = 100_000  # about 15 ms
    # Unknowns without a range up to which a dual is looked for that is exact in them.
    most_exact: int = 200  # a square matrix of that order is inverted in a millisecond or two
    # Entries of dense equations up to which the least singular value is looked for.
    largest_equations: int = 6_000_000  # 2,000 × 1,600 takes about as long as solving the program
    # Unknowns of a quadratic objective up to which its least curvature is looked for.
    largest_curvature: int = 1000  # eigenvalues take half a second
    # The largest denominator of weights that are tried as simple fractions, …
    denominator: int = 64  # exponents of models are halves, thirds, fifths
    # … and how far the dual may be from them, relative to its largest weight.
    rounded: float = 1e-6  # solvers end with about 1e-8
    # The share of its largest weight below which a dual of a contradiction says nothing.
    negligible: float = 1e-7  # solvers end with about 1e-8
    # How far inside of its exponential cones a dual is put that has to move, relative to its entries:
    rooms: tuple[float, ...] = (0.0, 1e-9, 1e-8, 1e-7)  # by as little as residuals of solvers allow
    # Sizes of unknowns without bounds, relative to the largest one at the point, for which a bound is
    # looked for where none holds for all of them.
    reaches: tuple[float, ...] = (
        1e9,
        1e6,
        1e3,
    )  # 1e9 times a slope of rounding, 1e-16, is below tol
    # The largest residual of a dual, relative to its terms, in unknowns that only a reach limits. More
    # than that is no rounding, and the bound is one of the reach: x <= 1e21 contradicts log x >= 100.
    reach_residual: float = 1e-6  # solvers end with about 1e-8
    # The residual of a ray, in all, that the rounding of the data explains, relative to its terms.
    ray_rounding: float = (
        3e-17  # each is exact to 1.1e-16; plants that are nearly one: 1e-16 and more
    )
    # The weight of a matrix, relative to the heaviest one, below which a ray may do without it.
    ray_light: float = 0.1  # unstabilisable plants in random coordinates (test_unstabilisable)
    # Eigenvalues of a ray, relative to its largest weight, that are 0, …
    ray_zero: float = (
        1e-3  # those that are not seldom are that small (regulators of test_unstabilisable)
    )
    # … steps that make it exact, and steps after which it has to have a smaller residual.
    ray_steps: int = 14  # where equations touch, each leaves a quarter
    ray_patience: int = 3  # some of them go astray before others lead back
    # What rounding may contribute to a limit before it counts as not found.
    largest_share: float = 0.5  # the limit is divided by one minus this
    # The relative rounding of the powers in the test of a power cone.
    power_rounding: float = 1e-14  # two powers and a product, each exact to several epsilons


@dataclass(frozen=True)
class HullOptions:
    """When gradients near a point show it to be stationary (`hulls`)."""

    # How far from the point they may be taken, in natural units.
    reach: float = 1e-5  # ten times the default tolerance
    # The largest entry of their least combination, relative to the largest gradient.
    least: float = 1e-4  # tests/benchmarks/black_boxes.py
    # Linearisations: how far their combination is looked at, in natural units.
    promise: float = 1.0


BOUND = BoundOptions()
HULL = HullOptions()
CHART = ChartOptions()
SEARCH = SearchOptions()
NEWTON = NewtonOptions()
ENCLOSURE = EnclosureOptions()
MAP_TEST = MapTestOptions()
BOXES = BoxOptions()
CONE_DUALITY = ConeDualityOptions()
