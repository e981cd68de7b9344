"""The inverse of a map by Newton's method along the directions of X.

Nothing keeps the iterates inside X: a point outside that the map sends to the goal is worth knowing,
since it shows that a bound of X is curved in u.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers.coordinates.tangent import Tangent
from hcmodel.solvers.numerics import MERIT_ROUNDING, TINY

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class NewtonRules:
    """How long the iteration goes on, and what it accepts. Accuracies are relative to the terms of c."""

    iterations: int = 40  # development set
    # The accuracy that ends the iteration, and the one that is accepted where it gets no better.
    accuracy: float = MERIT_ROUNDING  # c is a composition of products
    accepted: float = 1e-10  # development set
    # Entries of c whose terms are smaller than this share of the largest are measured by that.
    least_scale: float = 1e-4  # development set
    # Old derivatives are kept while the miss decreases by this factor from one iteration to the next.
    fast: float = 0.1  # Newton's steps with derivatives of this age still gain a digit each
    # How often a step is halved until the miss decreases; 0 takes all steps as they are.
    halvings: int = 0
    # Whether the whole miss has to vanish, or the part of it that moves along X can repair.
    whole: bool = False


# A step of a method: fast, and the plain step is taken instead where it fails.
RETRACTION = NewtonRules()
# A search from farther away, whose result has to be exact.
SEARCH = NewtonRules(iterations=30, accepted=1e-12, halvings=8, whole=True)  # tests of the analysis
# One of many attempts, whose failure leads to a shorter one.
ATTEMPT = NewtonRules(iterations=8, whole=True)  # tests/benchmarks/black_boxes.py
# The parts of the way that a search goes in turn where it fails at once.
WAYPOINTS = 8  # tests of the analysis


@dataclass(frozen=True)
class Target:
    """A map with what Newton's method asks of it, and the image that is looked for.

    `directions` are those of X at the start. They only choose the units of the iteration.
    """

    values: Callable[[FloatArray], FloatArray]
    linearised: Callable[[FloatArray], tuple[FloatArray, FloatArray]]
    directions: FloatArray
    goal: FloatArray


def newton(target: Target, start: FloatArray, rules: NewtonRules) -> FloatArray | None:
    """A point with c(x) = goal to rounding, from a start near by; None where none is found."""
    point, last = start, np.inf
    jacobian, tangent = np.zeros((0, 0)), Tangent(target.directions, np.zeros((0, 0)))
    keep = False
    with np.errstate(all="ignore"):
        for _ in range(rules.iterations):
            if keep:
                values = target.values(point)
            else:
                values, jacobian = target.linearised(point)
                tangent = Tangent(target.directions, jacobian @ target.directions)
            miss = target.goal - values
            if not (np.isfinite(miss).all() and tangent.defined):
                return None
            correction = tangent.step(miss)
            repaired = tangent.derivative @ correction
            # Sizes are those of the terms that cancel in c.
            scale = np.abs(target.goal) + np.abs(jacobian) @ np.abs(point)
            scale = np.maximum(scale, rules.least_scale * max(float(np.max(scale)), TINY))
            worst = float(np.max(np.abs(miss if rules.whole else repaired) / scale))
            if not np.isfinite(worst):
                return None
            if worst <= rules.accuracy or (worst >= last and last <= rules.accepted):
                return point
            step = target.directions @ correction
            share = _share(target, point, step, miss, rules.halvings)
            if share is None:
                return point if worst <= rules.accepted else None
            keep = share == 1.0 and worst <= rules.fast * last and np.isfinite(last)
            point, last = point + share * step, worst
    return None


def _share(
    target: Target, point: FloatArray, step: FloatArray, miss: FloatArray, halvings: int
) -> float | None:
    """The part of a step that brings the image nearer to the goal; None where none does."""
    if not halvings:
        return 1.0
    distance, share = float(np.linalg.norm(miss)), 1.0
    for _ in range(halvings):
        there = target.values(point + share * step)
        if float(np.linalg.norm(target.goal - there)) < distance:  # not so where it is NaN
            return share
        share /= 2.0
    return None
