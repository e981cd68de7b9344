"""Points along single entries, far from where a run ended, at which the objective is shown to fall.

A local minimum hides what lies behind it: x + 1/x − 10⁻⁹/x² has one at 1 and a pole at 0. Each entry is
moved towards each of its bounds, or to the end of the numbers where it has none, by factors of ten. The
values are enclosed by intervals: closer to an edge than the last digits of other terms, what is left by
rounding, divided by a small number, would look like a pole.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.graph import merge
from hcmodel.facts.interval_jets import JETS, Interval, Jet, NotEnclosed, enclosed
from hcmodel.records import dataclass
from hcmodel.reductions.form import Form
from hcmodel.solvers.oracle import Evaluation

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class EntryRules:
    """How many entries are looked at, and how far; the claims' tests (test_claims.py) chose them."""

    entries: int = 12
    """Unknowns up to which all of them are looked at."""
    decade: float = 10.0
    """The factor between two points."""
    decades: int = 300
    """Points towards an edge or outwards: as far as there are numbers."""
    fewest: int = 8
    """Points on which the objective must fall in a row, up to the last one that has a close enclosure."""
    sharp: float = 1e-6
    """The relative width up to which an enclosure is close."""


RULES = EntryRules()


@dataclass(frozen=True)
class EntryPath:
    """Points in order along one entry, and the edge that they approach, if it is finite."""

    entry: int
    points: FloatArray
    edge: float
    outward: float
    """1 or −1: the direction of the entry."""


def falling_entries(form: Form, evaluation: Evaluation) -> Iterator[EntryPath]:
    """The last points along entries on which the objective falls below the value of the evaluation."""
    point = evaluation.point
    if point.size > RULES.entries or form.compiled.has_black_boxes:
        return
    paths = [
        path
        for entry, ends in enumerate(zip(*form.domain.entry_bounds(), strict=True))
        for path in (
            _towards(point, entry, end, way) for end, way in zip(ends, (-1.0, 1.0), strict=True)
        )
        if path.points.shape[0] >= RULES.fewest and form.domain.contains(path.points[0])
    ]
    if not paths:
        return
    try:
        values = _enclosed_objective(form, np.concatenate([path.points for path in paths]))
    except NotEnclosed:
        return
    place = 0
    for path in paths:
        count = path.points.shape[0]
        low, high = values.low[place : place + count], values.high[place : place + count]
        place += count
        first, last = _falling(low, high)
        if last - first >= RULES.fewest and high[last - 1] < evaluation.objective:
            # the rest is evaluated: beyond the largest number an enclosure says nothing
            yield EntryPath(path.entry, path.points[first:], path.edge, path.outward)


def _towards(point: FloatArray, entry: int, end: float, way: float) -> EntryPath:
    """From the point towards a bound, which is not reached, or outwards."""
    powers = RULES.decade ** np.arange(RULES.decades, dtype=float)
    if np.isfinite(end):
        places = end + (point[entry] - end) / powers
        places = places[(places != end) & np.append(True, np.diff(places) != 0)]
    else:
        places = point[entry] + way * max(1.0, abs(point[entry])) * powers
        places = places[np.isfinite(places)]
    points = np.tile(point, (places.size, 1))
    points[:, entry] = places
    return EntryPath(entry, points, end, way)


def _falling(low: FloatArray, high: FloatArray) -> tuple[int, int]:
    """The last range of places with close enclosures in which each value lies below the one before it.

    It is empty where a value after it is shown to be higher. Wide enclosures, next to the largest number,
    show nothing.
    """
    sharp = np.isfinite(low) & np.isfinite(high)
    sharp &= high - low <= RULES.sharp * np.maximum(np.abs(low), np.abs(high))
    if not sharp.any():
        return 0, 0
    last = int(np.flatnonzero(sharp)[-1])
    if (low[last + 1 :] > high[last]).any():
        return 0, 0
    first = last
    while first and high[first] < low[first - 1]:
        first -= 1
    return first, last + 1


def _enclosed_objective(form: Form, points: FloatArray) -> Interval:
    """Intervals that contain the objective at points, with all rounding."""
    number, size = points.shape
    values = Interval.exactly(points.T.copy())
    # no derivatives: their axes have no entries
    unknowns = Jet(
        values,
        Interval.exactly(np.zeros((size, number, 0))),
        Interval.exactly(np.zeros((size, number, 0, 0))),
    )
    canonical = form.canonical
    (root,) = enclosed(merge(canonical.roots[:1]), canonical.layout, unknowns)
    if not isinstance(root, Jet):
        raise NotEnclosed
    flat = JETS.reshape(root, (root.size,))
    with np.errstate(all="ignore"):
        found: Interval = JETS.sum(flat * canonical.outer.objective).value
    return found
