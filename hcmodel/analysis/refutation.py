"""Refutation of a declared map by sampling.

At each sample the hidden Hessian B = Zᵀ∇²[F − s·c]Z, with Jᵀs = ∇F, tells whether F is convex in u near
it: for the objective B must have no negative eigenvalue, for a row none along the row's own surface
{g = 0} (so that no normal form of the row can be convex if there is one), for an equality none of
either sign. Suspicious points are followed downhill, and count only if a segment in u confirms them.
Kinks are met by the middles of pairs of points.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.analysis.analysis_options import REFUTATION
from hcmodel.analysis.counterexample import Counterexample
from hcmodel.analysis.hidden_map import OBJECTIVE, HiddenMap, MapPoint
from hcmodel.analysis.map_checks import Middles, middles, refute_map
from hcmodel.analysis.segments import (
    Form,
    Segment,
    inside,
    middle_of,
    negative_log,
    objective_violation,
    onto_row,
    plain,
    row_violation,
    search_objective,
    search_row,
)
from hcmodel.records import dataclass
from hcmodel.solvers.numerics import TINY

FloatArray = NDArray[np.float64]

NO_SAMPLE = "no sample was found at which every function is defined"


@dataclass(frozen=True)
class Bend:
    """The most negative curvature at a point, relative, and the tangent direction of it."""

    score: float
    point: MapPoint
    direction: FloatArray


@dataclass(frozen=True)
class Findings:
    """What sampling found. `smallest_eigenvalue` is relative to the function's own derivatives."""

    counterexample: Counterexample | None
    smallest_eigenvalue: float | None
    samples: int
    conditions: tuple[str, ...]


def refute(
    hidden: HiddenMap, samples: int, seed: int, suspects: Sequence[FloatArray] = ()
) -> Findings:
    """Look for a counterexample to hidden convexity under the map, also at points of suspicion."""
    with np.errstate(all="ignore"):  # what is not finite is skipped
        return _search(hidden, samples, np.random.default_rng(seed), suspects)


def _search(
    hidden: HiddenMap,
    samples: int,
    generator: np.random.Generator,
    suspects: Sequence[FloatArray],
) -> Findings:
    points = hidden.sample(samples, generator)
    points += [at for each in suspects if (at := hidden.at(each)).finite and at.invertible]
    if not points:
        return Findings(None, None, 0, (NO_SAMPLE,))
    broken = refute_map(hidden, points)
    if broken is not None:
        return Findings(broken, None, len(points), ())
    pairs = middles(hidden, points)
    lowest: list[float] = []
    segment, note = _refute_objective(hidden, points, pairs, generator, lowest)
    if segment is None:
        segment = _refute_rows(hidden, points, pairs, generator, lowest)
    smallest = min(lowest) if lowest else None
    example = None if segment is None else _described(hidden, segment, note)
    return Findings(example, smallest, len(points), pairs.conditions())


def bend(point: MapPoint, function: int, form: Form = plain, equality: bool = False) -> Bend | None:
    """The most negative curvature in u at a point; for rows along the surface of the row."""
    hidden = point.map
    natural = hidden.natural_basis(point.point)
    curved = natural.T @ point.hidden_hessian(function) @ natural
    slope = natural.T @ point.gradient(function)
    if form is not plain:
        value = point.objective
        curved = -curved / value + np.outer(slope, slope) / value**2
        slope = -slope / value
    if not (np.isfinite(curved).all() and np.isfinite(slope).all()):
        return None
    size = max(float(np.linalg.norm(curved, 2)), float(np.linalg.norm(slope)), TINY)
    frame = np.eye(slope.size)
    if function != OBJECTIVE:
        frame = np.linalg.svd(slope.reshape(1, -1))[2][1:].T
    if frame.shape[1] == 0:
        return None
    values, vectors = np.linalg.eigh(frame.T @ curved @ frame)
    worst = 0
    if equality and values[-1] > -values[0]:
        worst = -1
    score = float(-abs(values[worst]) if equality else values[worst])
    lengths = np.linalg.norm(natural, axis=0)
    return Bend(score / size, point, lengths * (frame @ vectors[:, worst]))


def _refute_objective(
    hidden: HiddenMap,
    points: Sequence[MapPoint],
    pairs: Middles,
    generator: np.random.Generator,
    lowest: list[float],
) -> tuple[Segment | None, str]:
    """A segment on which the objective is not convex in any form, and a note on the other form."""
    seen: list[float] = []
    first = _refute_form(hidden, points, pairs, generator, plain, seen)
    if first is None or any(point.objective >= 0 for point in points):
        lowest.extend(seen)
        return first, ""
    other = _refute_form(hidden, points, pairs, generator, negative_log, lowest)
    return (None, "") if other is None else (first, ", and neither is the logarithm of its size")


def _refute_form(
    hidden: HiddenMap,
    points: Sequence[MapPoint],
    pairs: Middles,
    generator: np.random.Generator,
    form: Form,
    lowest: list[float],
) -> Segment | None:
    bends = [found for point in points if (found := bend(point, OBJECTIVE, form)) is not None]
    bends.sort(key=lambda found: found.score)
    if bends and bends[0].score > REFUTATION.suspicious and hidden.dimension:
        worst, rest = bends[: REFUTATION.worst], bends[REFUTATION.worst :]
        bends = [*(_downhill(found, form, generator) for found in worst), *rest]
        bends.sort(key=lambda found: found.score)
    lowest.extend(found.score for found in bends[:1])
    tests = [
        search_objective(found.point, found.direction, form)
        for found in bends[: REFUTATION.worst]
        if found.score < REFUTATION.suspicious
    ]
    tests += [objective_violation(*triple, form) for triple in pairs.inside]
    return _clearest(tests)


def _downhill(start: Bend, form: Form, generator: np.random.Generator) -> Bend:
    """Random steps that shrink, towards more negative curvature."""
    hidden, best, radius = start.point.map, start, REFUTATION.first_step
    for _ in range(REFUTATION.downhill_steps):
        natural = hidden.natural_basis(best.point.point)
        step = natural @ generator.normal(size=natural.shape[1])
        moved = hidden.domain.project(best.point.point + radius * step)
        trial = hidden.at(moved)
        found = bend(trial, OBJECTIVE, form) if trial.finite and trial.invertible else None
        if found is not None and found.score < best.score:
            best = found
        else:
            radius *= REFUTATION.step_decrease
    return best


def _refute_rows(
    hidden: HiddenMap,
    points: Sequence[MapPoint],
    pairs: Middles,
    generator: np.random.Generator,
    lowest: list[float],
) -> Segment | None:
    """A segment that leaves the row at which it bends most."""
    rows = np.arange(hidden.rows)
    if rows.size > REFUTATION.most_rows:
        rows = np.sort(generator.choice(rows, REFUTATION.most_rows, replace=False))
    each = max(4, len(points) // max(1, 4 * rows.size))
    for row in rows.tolist():
        equality = row >= hidden.inequalities
        segment = _refute_row(points, pairs, row, equality, each, lowest)
        if segment is not None:
            return segment
    return None


def _refute_row(
    points: Sequence[MapPoint],
    pairs: Middles,
    row: int,
    equality: bool,
    count: int,
    lowest: list[float],
) -> Segment | None:
    """Test one row on points where its sides are equal, and on the middles of pairs."""
    hidden = points[0].map
    moved = (onto_row(point, row) for point in points[: 2 * count])
    on_surface = list(itertools.islice((point for point in moved if point is not None), count))
    bends = [b for point in on_surface if (b := bend(point, row, equality=equality)) is not None]
    bends.sort(key=lambda each: each.score)
    lowest.extend(each.score for each in bends[:1])
    tests = [
        search_row(row, each.point, each.direction, equality)
        for each in bends[: REFUTATION.worst]
        if each.score < REFUTATION.suspicious
    ]
    triples = list(pairs.inside)
    for first, second in itertools.pairwise(on_surface):
        middle = middle_of(hidden, first, second)
        if middle is not None and inside(hidden, middle.point):
            triples.append((first, second, middle))
    tests += [row_violation(row, *triple, equality) for triple in triples]
    return _clearest(tests)


def _clearest(tests: Sequence[Segment | None]) -> Segment | None:
    confirmed = [segment for segment in tests if segment is not None]
    return max(confirmed, key=lambda segment: segment.excess, default=None)


def _described(hidden: HiddenMap, segment: Segment, note: str) -> Counterexample:
    name = hidden.name(segment.function)
    if segment.function == OBJECTIVE:
        kind = "objective"
        statement = f"the objective is not convex in the declared coordinates{note}: halfway "
        statement += "between c(x) and c(y) it is above the mean of its values"
        left_text, right_text = "F(middle)", "(F(x) + F(y))/2"
    else:
        kind = "equality" if segment.function >= hidden.inequalities else "inequality"
        statement = f"x and y satisfy the row {name}, and the point halfway between c(x) and c(y) "
        statement += "does not: the row is not a convex set in the declared coordinates"
        left_text = "|lhs − rhs| at the middle" if kind == "equality" else "violation at the middle"
        right_text = "allowed"
    return Counterexample(
        kind=kind,
        function=name,
        statement=statement,
        points={
            "x": hidden.arrays(segment.first.point),
            "y": hidden.arrays(segment.second.point),
            "middle": hidden.arrays(segment.middle.point),
        },
        direction=hidden.arrays(segment.second.point - segment.first.point),
        left=segment.left,
        right=segment.right,
        left_text=left_text,
        right_text=right_text,
    )
