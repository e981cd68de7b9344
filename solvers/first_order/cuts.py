"""Cuts in hidden coordinates: linear functions that lie below the objective and the rows everywhere.

With u = c(x), s a sub-gradient of H = F∘c⁻¹ at u_k and H convex,

    H(v) >= H(u_k) + s·(v − u_k)   for every v in U.

`Bundle` holds such cuts of the objective and of the inequalities. Equalities are affine in u, so that
their values and slopes at one point say all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import cached_property, dataclass, replace
from hcmodel.solvers.coordinates.protocol import Coordinates
from hcmodel.solvers.numerics import TINY
from hcmodel.solvers.oracle import Evaluation

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]

# The owner of a cut of the objective; cuts of rows are owned by the number of their row.
OBJECTIVE = -1


@dataclass(frozen=True)
class CutPoint:
    """A point that was evaluated: its image u, and the slopes by u of the objective and of all rows."""

    evaluation: Evaluation
    image: FloatArray
    slope: FloatArray
    row_slopes: FloatArray

    @cached_property
    def violation(self) -> float:
        """The relative violation of the rows."""
        return self.evaluation.relative_violation

    @cached_property
    def functions(self) -> FloatArray:
        """The values of the objective and of all rows."""
        return np.concatenate([[self.evaluation.objective], self.evaluation.rows])

    @cached_property
    def cuts(self) -> tuple[FloatArray, FloatArray]:
        """Slopes and constants of the cuts of the objective and of the inequalities."""
        count = self.evaluation.inequalities
        slopes = np.concatenate([self.slope[None, :], self.row_slopes[:count]])
        return slopes, self.functions[: count + 1] - slopes @ self.image

    def charged(self, multipliers: FloatArray) -> float:
        """The objective, with violations charged by multipliers."""
        if self.violation == 0:
            return self.evaluation.objective
        prices = np.abs(multipliers) @ self.evaluation.violations
        return self.evaluation.objective + float(prices)


def cut_point(coordinates: Coordinates, evaluation: Evaluation) -> CutPoint | None:
    """The point with its slopes; None where it has none, so that nothing follows from it."""
    if not (evaluation.finite and evaluation.differentiable):
        return None
    gradients = np.concatenate([evaluation.gradient[None, :], _dense(evaluation.jacobian)])
    slopes = coordinates.slopes(evaluation.point, gradients)
    image = coordinates.image(evaluation.point)
    if slopes is None or not (slopes is gradients or np.isfinite(slopes).all()):
        return None
    if not (image is evaluation.point or np.isfinite(image).all()):
        return None
    return CutPoint(evaluation, image, slopes[0], slopes[1:])


@dataclass(frozen=True)
class Bundle:
    """Cuts slope·v + constant of the objective and of the inequalities, one entry of each array a cut.

    `owners` says of which function, `sources` at which of the `points`, and `ages` for how many
    iterations a cut has had no weight. `best` is kept among the points whatever becomes of its cuts.
    """

    points: tuple[CutPoint, ...]
    slopes: FloatArray
    constants: FloatArray
    owners: IndexArray
    sources: IndexArray
    ages: IndexArray

    @staticmethod
    def of(point: CutPoint) -> Bundle:
        none = np.zeros(0, dtype=np.intp)
        empty = Bundle((), np.zeros((0, point.image.size)), np.zeros(0), none, none, none)
        return empty.extended(point)

    @staticmethod
    def of_all(points: Sequence[CutPoint]) -> Bundle:
        """The cuts of several points."""
        each = [point.cuts for point in points]
        counts = [constants.size for _, constants in each]
        owners = [np.arange(OBJECTIVE, count + OBJECTIVE) for count in counts]
        return Bundle(
            tuple(points),
            np.concatenate([slopes for slopes, _ in each]),
            np.concatenate([constants for _, constants in each]),
            np.concatenate(owners),
            np.repeat(np.arange(len(each)), counts),
            np.zeros(sum(counts), dtype=np.intp),
        )

    @property
    def size(self) -> int:
        return self.constants.size

    @property
    def last(self) -> CutPoint:
        return self.points[-1]

    def extended(self, point: CutPoint) -> Bundle:
        """With the cuts of a new point."""
        slopes, constants = point.cuts
        owners = np.arange(OBJECTIVE, constants.size + OBJECTIVE)
        if not self.points:
            none = np.zeros(owners.size, dtype=np.intp)
            return Bundle((point,), slopes, constants, owners, none, none)
        return Bundle(
            (*self.points, point),
            np.concatenate([self.slopes, slopes]),
            np.concatenate([self.constants, constants]),
            np.concatenate([self.owners, owners]),
            np.concatenate([self.sources, np.full(owners.size, len(self.points))]),
            np.concatenate([self.ages, np.zeros(owners.size, dtype=np.intp)]),
        )

    def aged(self, used: NDArray[np.bool_]) -> Bundle:
        """One iteration later, in which only the cuts `used` had a weight."""
        return replace(self, ages=np.where(used, 0, self.ages + 1))

    def thinned(self, most: int, least_age: int, keep: Sequence[CutPoint]) -> Bundle:
        """Without the cuts that have been idle longest, down to `most` of them where that is allowed.

        Cuts younger than `least_age` stay, and so do the points `keep` and the last one.
        """
        surplus = self.size - most
        idle = np.flatnonzero(self.ages >= least_age)
        if surplus <= 0 or not idle.size:
            return self
        order = idle[np.argsort(-self.ages[idle], kind="stable")]
        stay = np.ones(self.size, dtype=bool)
        stay[order[:surplus]] = False
        wanted = {id(point) for point in (*keep, self.last)}
        used = np.zeros(len(self.points), dtype=bool)
        used[self.sources[stay]] = True
        used |= np.array([id(point) in wanted for point in self.points])
        places = np.cumsum(used) - 1
        return Bundle(
            tuple(point for point, kept in zip(self.points, used, strict=True) if kept),
            self.slopes[stay],
            self.constants[stay],
            self.owners[stay],
            places[self.sources[stay]],
            self.ages[stay],
        )

    def above(self, point: CutPoint) -> float:
        """By how much a cut exceeds its function at a point, relative to the terms; 0 if none does.

        More than rounding shows that the functions are not convex in these coordinates, or that a
        slope is wrong.
        """
        values = point.functions[self.owners - OBJECTIVE]
        return _excess(self.slopes, self.constants, point.image, values)

    def below(self, point: CutPoint) -> float:
        """The same of the cuts of another point at all points of the bundle."""
        slopes, constants = point.cuts
        images = np.array([each.image for each in self.points]).T
        values = np.array([each.functions for each in self.points]).T[: constants.size]
        return _excess(slopes, constants[:, None], images, values)


def _excess(
    slopes: FloatArray, constants: FloatArray, images: FloatArray, values: FloatArray
) -> float:
    excess = slopes @ images + constants - values
    if not excess.max(initial=0.0) > 0:
        return 0.0
    terms = np.abs(slopes) @ np.abs(images) + np.abs(constants) + np.abs(values)
    return float((excess / (terms + TINY)).max())


def bent_equalities(first: CutPoint, second: CutPoint) -> float:
    """How far equalities are from affine between two points, relative to the terms."""
    one, other = first.evaluation, second.evaluation
    count = one.inequalities
    if count == one.rows.size:
        return 0.0
    change = first.row_slopes[count:] * (second.image - first.image)
    miss = np.abs(one.rows[count:] + change.sum(axis=1) - other.rows[count:])
    terms = np.abs(one.rows[count:]) + np.abs(change).sum(axis=1) + one.magnitudes[count:]
    return float(np.max(miss / terms, initial=0.0))


def _dense(matrix: Any) -> FloatArray:
    if type(matrix) is np.ndarray:
        return matrix
    return np.asarray(matrix.toarray() if scipy.sparse.issparse(matrix) else matrix)
