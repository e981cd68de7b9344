"""What is demanded of the map itself: full rank, a flat image, one point for each image, U convex.

An image that is curved, two points with one image, or a Jacobian that loses rank everywhere refute the
map. That the middle of two images comes from a point outside the bounds of X does not: the bound
bends in the hidden coordinates, and where it is inactive it can be left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.analysis.analysis_options import MAP_CHECK
from hcmodel.analysis.counterexample import Counterexample
from hcmodel.analysis.hidden_map import HiddenMap, MapPoint
from hcmodel.analysis.segments import inside, middle_of
from hcmodel.records import dataclass
from hcmodel.solvers.numerics import DATA_ROUNDING, PRODUCT_ROUNDING

FloatArray = NDArray[np.float64]


def refute_map(hidden: HiddenMap, points: Sequence[MapPoint]) -> Counterexample | None:
    """A counterexample to rank, flatness or injectivity of the map."""
    return _flat_direction(hidden, points) or _curved(hidden, points) or _folded(hidden, points)


def _flat_direction(hidden: HiddenMap, points: Sequence[MapPoint]) -> Counterexample | None:
    """A direction that the map does not see, at every sample."""
    ranks = [point.rank for point in points]
    if max(ranks) >= hidden.dimension:
        return None
    worst = points[int(np.argmax(ranks))]
    unseen = np.linalg.svd(worst.map_jacobian)[2][-1]
    return Counterexample(
        kind="map",
        function="hidden",
        statement="the map does not change, to first order, along the direction: it cannot be inverted",
        points={"x": hidden.arrays(worst.point)},
        direction=hidden.arrays(hidden.basis @ unseen),
        left=float(hidden.dimension),
        right=float(max(ranks)),
        left_text="dimension of X",
        right_text="largest rank of the map's Jacobian",
    )


def _curved(hidden: HiddenMap, points: Sequence[MapPoint]) -> Counterexample | None:
    """Images that span more dimensions than X has: they lie on a curved surface."""
    if hidden.size <= hidden.dimension or len(points) < hidden.dimension + 2:
        return None
    images = np.array([point.image for point in points])
    spread = np.linalg.svd(images[1:] - images[0], compute_uv=False)
    span = int(np.sum(spread > MAP_CHECK.span * spread[0]))
    if span <= hidden.dimension:
        return None
    used = points[: hidden.dimension + 2]
    return Counterexample(
        kind="map",
        function="hidden",
        statement="the images of the samples span more dimensions than X has, so c(X) is curved",
        points={f"x{i}": hidden.arrays(point.point) for i, point in enumerate(used[:3], start=1)},
        left=float(span),
        right=float(hidden.dimension),
        left_text="dimensions that the images span",
        right_text="dimension of X",
    )


def _folded(hidden: HiddenMap, points: Sequence[MapPoint]) -> Counterexample | None:
    """Two points of X with the same image."""
    for goal, start in itertools.islice(itertools.pairwise(points), MAP_CHECK.most_returns):
        found = hidden.inverse(goal.image, start)
        if found is None or not inside(hidden, found.point):
            continue
        metric = hidden.domain.metric(goal.point)
        apart = float(np.max(np.abs(found.point - goal.point) / metric, initial=0.0))
        gap = float(np.linalg.norm(found.image - goal.image))
        rounding = PRODUCT_ROUNDING * float(np.linalg.norm(goal.image))
        if apart > MAP_CHECK.apart and gap + rounding <= MAP_CHECK.same * _least_stretch(
            goal, found
        ):
            return Counterexample(
                kind="map",
                function="hidden",
                statement="two different points have the same image: the map cannot be inverted",
                points={"x": hidden.arrays(goal.point), "y": hidden.arrays(found.point)},
                left=float(np.linalg.norm(found.point - goal.point)),
                right=gap,
                left_text="‖x − y‖",
                right_text="‖c(x) − c(y)‖",
            )
    return None


def _least_stretch(first: MapPoint, second: MapPoint) -> float:
    """How far apart the images would be if the map stretched as little as at its two points."""
    least = min(
        float(np.linalg.svd(point.map_jacobian, compute_uv=False)[-1]) for point in (first, second)
    )
    return least * float(np.linalg.norm(first.point - second.point))


@dataclass(frozen=True)
class Middles:
    """Middles in u of pairs of samples: those inside X, and what became of the others."""

    inside: tuple[tuple[MapPoint, MapPoint, MapPoint], ...]
    pairs: int
    outside: dict[str, int]
    lost: int

    def conditions(self) -> tuple[str, ...]:
        """What the pairs could not show of U = c(X)."""
        found = []
        if self.outside:
            names = ", ".join(self.outside)
            share = f"{max(self.outside.values())} of {self.pairs}"
            found.append(
                f"the bounds of {names} are not convex in the hidden coordinates ({share} middles lie "
                "outside them): they can be left out where the solution does not touch them, and void "
                "the guarantee where it does"
            )
        if self.lost:
            found.append(
                f"for {self.lost} of {self.pairs} middles no point was found that the map sends "
                "there: whether c(X) is convex stays open"
            )
        return tuple(found)


def middles(hidden: HiddenMap, points: Sequence[MapPoint]) -> Middles:
    """The middles in u of the samples, taken two by two."""
    pairs = list(zip(points[::2], points[1::2], strict=False))
    kept = []
    outside: dict[str, int] = {}
    lost = 0
    for first, second in pairs:
        middle = middle_of(hidden, first, second)
        if middle is None:
            lost += 1
        elif inside(hidden, middle.point):
            kept.append((first, second, middle))
        else:
            for name in _broken_bounds(hidden, middle.point):
                outside[name] = outside.get(name, 0) + 1
    return Middles(tuple(kept), len(pairs), outside, lost)


def _broken_bounds(hidden: HiddenMap, x: FloatArray) -> list[str]:
    """The variables whose own domain does not hold their part of x."""
    moved = hidden.domain.project(x) - x
    layout = hidden.layout
    reach = DATA_ROUNDING * max(1.0, float(np.max(np.abs(x), initial=0.0)))
    return [
        variable.name
        for variable in layout.variables
        if float(np.max(np.abs(moved[layout.slice(variable)]), initial=0.0)) > reach
    ]
