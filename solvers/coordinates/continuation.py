"""The inverse of a map within X: a straight line in u is followed in x as far as it stays inside.

The inverse may be found only from near by, and where bounds of X are curved in u a line between two
images may leave X. So the line is followed in parts, which are halved where one fails and doubled where
it succeeds. Where the line is blocked, the image nearest to its end is looked for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers.coordinates.protocol import Coordinates
from hcmodel.solvers.numerics import BACKEND_ROUNDING

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ContinuationRules:
    """How closely a line is followed. *black boxes*: measured with tests/benchmarks/black_boxes.py."""

    # The shortest part of the line that is tried.
    shortest: float = (
        2.0**-30
    )  # black boxes: u of Chebyshev and Rosenbrock's function changes so fast
    # How many parts are tried in all.
    parts: int = 100  # black boxes
    # After a failure the next part is at most so long, in natural lengths of x and to first order.
    longest: float = 1.0  # within which Newton's method may be expected to succeed
    # A line that leaves X before this share of it is blocked.
    blocked: float = 1e-3  # black boxes
    # Steps towards the nearest image.
    iterations: int = 20  # black boxes
    # Halvings of such a step.
    halvings: int = 10  # black boxes
    # The ratio of two distances in a row above which these steps end.
    slow: float = 0.99  # black boxes


RULES = ContinuationRules()


def reached(
    coordinates: Coordinates, start: FloatArray, goal: FloatArray, metric: FloatArray
) -> FloatArray | None:
    """The point of X whose image is `goal`, or else one whose image is as near to it as was found.

    Distances are in units of `metric`. None where nothing nearer than the start is found.
    """
    domain = coordinates.domain

    def inside(x: FloatArray) -> bool:
        return domain.contains(x, BACKEND_ROUNDING * max(1.0, float(np.abs(x).max())))

    x, share = follow(coordinates, start, goal, inside)
    if share < RULES.blocked and domain.is_box:
        x = nearest(coordinates, x, goal, metric)
    return None if (x == start).all() else domain.project(x)


def follow(
    coordinates: Coordinates,
    start: FloatArray,
    goal: FloatArray,
    inside: Callable[[FloatArray], bool],
) -> tuple[FloatArray, float]:
    """The point whose image is `goal` and 1, or the last one inside on the way there and its share."""
    first, point = coordinates.image(start), start
    done, part = 0.0, 1.0
    for _ in range(RULES.parts):
        share = min(1.0, done + part)
        image = first + share * (goal - first)
        found = coordinates.inverse(image, point, thorough=False)
        if found is not None and np.isfinite(found).all() and inside(found):
            point, done, part = found, share, 2.0 * part
            if done == 1.0:
                break
        else:
            part = min(part / 2.0, _natural_part(coordinates, point, goal - first))
            if part < RULES.shortest:
                break
    return point, done


def nearest(
    coordinates: Coordinates, start: FloatArray, goal: FloatArray, metric: FloatArray
) -> FloatArray:
    """A point of the box X whose image is nearer to `goal`, by Gauss and Newton's method with bounds."""
    lower, upper = coordinates.domain.entry_bounds()
    x = start
    miss: FloatArray = (goal - coordinates.image(start)) / metric
    for _ in range(RULES.iterations):
        tangent = coordinates.tangent(x)
        sizes = np.max(np.abs(tangent.directions), axis=0)
        moving = np.argmax(np.abs(tangent.directions), axis=0)
        if not tangent.defined or not sizes.size:
            return x
        room = ((lower - x)[moving] / sizes, (upper - x)[moving] / sizes)
        room = (np.minimum(room[0], 0.0), np.maximum(room[1], 0.0))
        free = room[1] > room[0]
        columns = (tangent.derivative / metric[:, None])[:, free]
        found = scipy.optimize.lsq_linear(columns, miss, (room[0][free], room[1][free]))
        step = tangent.directions[:, free] @ found.x
        before, share = float(np.linalg.norm(miss)), 1.0
        for _ in range(RULES.halvings):
            there: FloatArray = np.clip(x + share * step, lower, upper)
            left = (goal - coordinates.image(there)) / metric
            if float(np.linalg.norm(left)) < before:
                break
            share /= 2.0
        else:
            return x
        x, miss = there, left
        if float(np.linalg.norm(miss)) > RULES.slow * before:
            return x
    return x


def _natural_part(coordinates: Coordinates, x: FloatArray, change: FloatArray) -> float:
    """The part of a change of u that moves x by its natural length, to first order."""
    tangent = coordinates.tangent(x)
    if not tangent.full_rank:
        return 1.0
    step = tangent.directions @ tangent.step(change)
    moved = float(np.max(np.abs(step) / coordinates.domain.metric(x), initial=0.0))
    return 1.0 if moved <= RULES.longest else RULES.longest / moved
