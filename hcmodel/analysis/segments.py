"""Straight lines in hidden coordinates: the tests that turn a suspicion into a counterexample.

A point halfway between c(x) and c(y) is mapped back, and what convexity demands there is compared
with what is found. The margin is far beyond rounding, and beyond what the error of the inverse can
explain. For the objective the demand is F(middle) <= ½F(x) + ½F(y). For a row it is that the middle of
two points that satisfy the row satisfies it too, whichever normal form of the row one looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from hcmodel.analysis.analysis_options import SEGMENT
from hcmodel.analysis.hidden_map import OBJECTIVE, HiddenMap, MapPoint
from hcmodel.records import dataclass
from hcmodel.solvers.numerics import DATA_ROUNDING, OPERATION_ROUNDING, TINY

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Segment:
    """Two ends, the point halfway in u, and the sides of the violated inequality."""

    function: int
    first: MapPoint
    second: MapPoint
    middle: MapPoint
    left: float
    right: float
    excess: float
    """left − right, relative to the values compared."""


Form = Callable[[float], float]


def plain(value: float) -> float:
    return value


def negative_log(value: float) -> float:
    """−log(−F): how a maximised product is seen."""
    return float(-np.log(-value)) if value < 0 else np.inf


def inside(hidden: HiddenMap, x: FloatArray) -> bool:
    """Whether x lies in X, to rounding."""
    size = max(1.0, float(np.max(np.abs(x), initial=0.0)))
    return hidden.domain.contains(x, DATA_ROUNDING * size)


def middle_of(hidden: HiddenMap, first: MapPoint, second: MapPoint) -> MapPoint | None:
    """The point halfway in u, inside X or not; None where none was found."""
    target = 0.5 * (first.image + second.image)
    between = hidden.at(0.5 * (first.point + second.point))
    for start in (between, first, second):
        if start.invertible:
            found = hidden.inverse(target, start)
            if found is not None:
                return found
    return None


def objective_violation(
    first: MapPoint, second: MapPoint, middle: MapPoint, form: Form = plain
) -> Segment | None:
    """The segment, if the objective at its middle is clearly above the mean of the ends."""
    left = form(middle.objective)
    right = 0.5 * (form(first.objective) + form(second.objective))
    if not (np.isfinite(left) and np.isfinite(right)):
        return None
    size = max(abs(form(first.objective)), abs(form(second.objective)), abs(left), TINY)
    explained = _explained(OBJECTIVE, first, second, middle)
    if form is not plain:
        explained /= abs(middle.objective)
    needed = SEGMENT.margin * size + SEGMENT.explained * explained
    if not left - right > needed:  # not so where a slope is NaN
        return None
    return Segment(OBJECTIVE, first, second, middle, left, right, (left - right) / size)


def row_violation(
    row: int, first: MapPoint, second: MapPoint, middle: MapPoint, equality: bool
) -> Segment | None:
    """The segment, if both ends satisfy the row and the middle clearly does not."""
    for end in (first, second):
        value = abs(end.rows[row]) if equality else end.rows[row]
        if value > SEGMENT.satisfied * end.magnitudes[row]:
            return None
    found = float(abs(middle.rows[row]) if equality else middle.rows[row])
    explained = _explained(row, first, second, middle)
    size = float(middle.magnitudes[row])
    if not found > SEGMENT.margin * size + SEGMENT.explained * explained:
        return None
    return Segment(row, first, second, middle, found, 0.0, found / size)


def _explained(function: int, first: MapPoint, second: MapPoint, middle: MapPoint) -> float:
    """What the function may differ by because the middle is not met exactly, to first order."""
    missed = np.abs(middle.image - 0.5 * (first.image + second.image))
    rounding = np.abs(first.image) + np.abs(second.image) + np.abs(middle.image)
    return float(np.abs(middle.slope(function)) @ (missed + OPERATION_ROUNDING * rounding))


def search_objective(middle: MapPoint, direction: FloatArray, form: Form = plain) -> Segment | None:
    """The clearest violation among segments around a point, along a tangent direction y."""
    found = [
        segment
        for first, second in _ends(middle, direction)
        if (segment := objective_violation(first, second, middle, form)) is not None
    ]
    return max(found, key=lambda segment: segment.excess, default=None)


def search_row(row: int, middle: MapPoint, direction: FloatArray, equality: bool) -> Segment | None:
    """Segments whose ends lie on the row, near a point of the row and along a direction."""
    hidden = middle.map
    found = []
    for ends in _ends(middle, direction):
        on_row = [onto_row(end, row) for end in ends]
        first, second = on_row
        if first is None or second is None:
            continue
        halfway = hidden.inverse(0.5 * (first.image + second.image), middle)
        if halfway is None or not inside(hidden, halfway.point):
            continue
        segment = row_violation(row, first, second, halfway, equality)
        if segment is not None:
            found.append(segment)
    return max(found, key=lambda segment: segment.excess, default=None)


def _ends(middle: MapPoint, direction: FloatArray) -> Iterator[tuple[MapPoint, MapPoint]]:
    """Pairs of points of X whose middle in u is `middle`, along the tangent direction y."""
    hidden = middle.map
    along = middle.map_jacobian @ direction
    for length in SEGMENT.half_lengths:
        ends = []
        for signed in (length, -length):
            guess = hidden.at(middle.point + hidden.basis @ (signed * direction))
            start = guess if guess.invertible else middle
            end = hidden.inverse(middle.image + signed * along, start)
            if end is not None and inside(hidden, end.point):
                ends.append(end)
        if len(ends) == 2:
            yield ends[0], ends[1]


def onto_row(start: MapPoint, row: int) -> MapPoint | None:
    """A point of X near `start` at which the row's two sides are equal to rounding."""
    hidden, current = start.map, start
    for _ in range(SEGMENT.row_steps):
        if abs(current.rows[row]) <= 0.5 * SEGMENT.satisfied * current.magnitudes[row]:
            break
        natural = hidden.natural_basis(current.point)
        slope = natural.T @ current.gradient(row)
        steepness = float(slope @ slope)
        if not steepness > 0.0:
            return None
        step = natural @ (slope * (-current.rows[row] / steepness))
        current = hidden.at(hidden.domain.project(current.point + step))
        if not current.finite:
            return None
    held = abs(current.rows[row]) <= SEGMENT.satisfied * current.magnitudes[row]
    return current if held and inside(hidden, current.point) else None
