"""Certified curves of the optimal value over one parameter.

Let W be the value V, or log V, and q the parameter p, or log p. Where the model is proven convex jointly
in its coordinates and q, W is convex in q. Then chords between solved points are upper bounds, and
for any slope s

    W(q) >= s q + min over x and q of (w(x, q) − s q),

a line from below that touches the curve where the minimum is. This minimum is an ordinary solve, in which
the parameter is a variable, and its certified lower bound makes the line certified.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Scale:
    """What W and q are: the sign of the objective, and whether each is a logarithm."""

    sign: float
    log_value: bool
    log_parameter: bool

    def q(self, parameter: Any) -> Any:
        return np.log(parameter) if self.log_parameter else np.asarray(parameter, dtype=float)

    def parameter(self, q: Any) -> Any:
        return np.exp(q) if self.log_parameter else q

    def w(self, value: Any) -> Any:
        return self.sign * (np.log(value) if self.log_value else np.asarray(value, dtype=float))

    def value(self, w: Any) -> Any:
        return np.exp(self.sign * w) if self.log_value else self.sign * w

    def text(self, parameter: str) -> str:
        value = "log V" if self.log_value else "V"
        kind = "convex" if self.sign > 0 else "concave"
        q = f"log({parameter})" if self.log_parameter else parameter
        return f"{value} is {kind} in {q}"


@dataclass(frozen=True)
class Line:
    """W(q) >= offset + slope·q on the whole range, certified."""

    slope: float
    offset: float

    def at(self, q: Any) -> Any:
        return self.offset + self.slope * q


@dataclass(frozen=True)
class ValueCurve:
    """Bounds of the optimal value over a range of the parameter; `lower` and `upper` are functions of it.

    `width` is the largest distance between both, of log V where `relative`, and `within` says whether the
    curve in their middle is within the accuracy that was asked for.
    """

    parameter: str
    scale: Scale
    points: tuple[tuple[float, float], ...]
    """(q, W) of feasible points, in order."""
    lines: tuple[Line, ...]
    accuracy: float
    """Half of the width that is allowed, in units of W."""
    solves: int

    @property
    def relative(self) -> bool:
        return self.scale.log_value

    @property
    def width(self) -> float:
        return max(self.widths(), default=0.0)

    @property
    def within(self) -> bool:
        return self.width <= 2.0 * self.accuracy

    def widths(self) -> list[float]:
        """The largest distance between the curves on each interval between points."""
        ends = zip(self.points[:-1], self.points[1:], strict=True)
        return [interval_width(first, last, self.lines) for first, last in ends]

    def lower(self, parameter: Any) -> Any:
        """A certified lower bound of the optimal value at any parameter of the range."""
        return self._user(parameter, self._below if self.scale.sign > 0 else self._above)

    def upper(self, parameter: Any) -> Any:
        """An upper bound of the optimal value at any parameter of the range."""
        return self._user(parameter, self._above if self.scale.sign > 0 else self._below)

    def middle(self, parameter: Any) -> Any:
        """The curve halfway between both, of log V where `relative`: the value is within ±`accuracy`."""
        low, high = self.lower(parameter), self.upper(parameter)
        return np.sqrt(low * high) if self.relative else (low + high) / 2

    def _user(self, parameter: Any, curve: Callable[[FloatArray], FloatArray]) -> Any:
        given = np.asarray(parameter, dtype=float)
        q = np.asarray(self.scale.q(given), dtype=float)
        first, last = self.points[0][0], self.points[-1][0]
        outside = (q < first - np.spacing(abs(first))) | (q > last + np.spacing(abs(last)))
        found = np.where(outside, np.nan, self.scale.value(curve(q)))
        return found if given.ndim else float(found)

    def _below(self, q: FloatArray) -> FloatArray:
        return np.asarray(np.max([line.at(q) for line in self.lines], axis=0))

    def _above(self, q: FloatArray) -> FloatArray:
        known = np.array(self.points)
        return np.asarray(np.interp(q, known[:, 0], known[:, 1]))

    def draw(self, axes: Any) -> None:
        """Both curves in a picture of the value."""
        q = np.linspace(self.points[0][0], self.points[-1][0], 400)
        across = self.scale.parameter(q)
        axes.fill_between(
            across,
            self.lower(across),
            self.upper(across),
            alpha=0.3,
            label="certified",
            color="#777777",
        )

    def __str__(self) -> str:
        of = "log V" if self.relative else "V"
        shown = "within" if self.within else "not within"
        return (
            f"certified {shown} ±{self.accuracy:.3g} of {of} between the points as well, since "
            f"{self.scale.text(self.parameter)} ({self.solves} solves)"
        )


def interval_width(
    first: tuple[float, float], last: tuple[float, float], lines: Sequence[Line]
) -> float:
    """The largest distance of the chord between two points from the lines below.

    The distance is concave and linear in pieces, so it is largest at an end or where two lines meet.
    """
    if not lines:
        return np.inf
    (q0, w0), (q1, w1) = first, last
    slopes = np.array([line.slope for line in lines])
    offsets = np.array([line.offset for line in lines])
    steps = slopes[:, None] - slopes[None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        meetings = ((offsets[None, :] - offsets[:, None]) / steps)[steps > 0]
    inside = meetings[(meetings > q0) & (meetings < q1)]
    places = np.concatenate([[q0, q1], inside])
    chord = w0 + (w1 - w0) * (places - q0) / (q1 - q0) if q1 > q0 else np.full(places.shape, w0)
    below = np.max(offsets[:, None] + slopes[:, None] * places, axis=0)
    return float(np.max(chord - below))
