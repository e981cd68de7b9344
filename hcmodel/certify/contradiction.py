"""A declared map put to the test, before a bound rests on it.

The Lagrangian of a bound has to be convex in u. Its hidden Hessian at the reference and at samples of X,
its values beside a chord in u and beside its own minorant, and the orientation of the map can show that
it is not. What passes is not proven.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.charts import Chart
from hcmodel.certify.search import Minorant, Search
from hcmodel.reductions.forms import Form
from hcmodel.solvers import kkt
from hcmodel.solvers.algebra.hessians import RULES as HESSIAN_RULES
from hcmodel.solvers.algebra.hessians import Hessian, as_dense, has_negative
from hcmodel.solvers.coordinates.geometry import Frame
from hcmodel.solvers.oracle import Evaluation, Oracle

FloatArray = NDArray[np.float64]

# A hidden Hessian with an eigenvalue below minus this, relative to its size, contradicts the map.
CURVED = 1e-6
# Samples at which values are compared, and at which second derivatives are taken; FEW unknowns allow
# four times as many.
SAMPLES = 64
CURVATURES = 4
FEW = 10
# Unknowns from which on the derivatives of a map are dear, and samples that are taken then.
MANY, FEWEST = 200, 8
# Lengths of the segments in u that are then looked at, and by how much of it one may be bent.
CHORDS = (1.0, 0.1, 0.01)
STRAIGHT = 1e-6
# The margin of comparisons, relative to the terms compared.
UNDERCUT = 1e-7


def contradicted(search: Search) -> bool:
    """Whether the best minorant's function is visibly not convex in declared coordinates."""
    assert search.best is not None
    return _Test(search.form, search.oracle, search.chart, search.best).fails()


@dataclass(frozen=True)
class _Test:
    """The Lagrangian with the multipliers of a minorant, and the coordinates that it is tested in."""

    form: Form
    oracle: Oracle
    chart: Chart
    best: Minorant

    def _hessian(self, evaluation: Evaluation) -> Hessian:
        """The hidden Hessian of the Lagrangian itself, whatever cones take up of its slope."""
        inner = self.form.map_geometry
        geometry = self.form.geometry if inner is None else replace(inner, curved=())
        return geometry.hessian(self.oracle, evaluation, self.best.multipliers)

    def fails(self) -> bool:
        evaluation, multipliers = self.best.pair
        geometry = self.form.geometry
        frame = geometry.frame(evaluation)
        hessian = self._hessian(evaluation)
        size = self._slope(evaluation)
        gradient = kkt.lagrangian_gradient(evaluation, multipliers)
        bent = self.chart.curvature_of_bounds(evaluation, gradient)
        curved = any(has_negative(frame.hessian(each), CURVED, size) for each in (hessian, *bent))
        return curved or self._bulges() or self._undercut()

    def _slope(self, evaluation: Evaluation) -> float:
        """The size of the terms of the Lagrangian's slope, in the units of the frame."""
        frame = self.form.geometry.frame(evaluation)
        slopes = np.abs(frame.gradient(evaluation.gradient))
        slopes = slopes + np.abs(self.best.multipliers) @ abs(frame.matrix(evaluation.jacobian))
        return float(np.max(slopes, initial=0.0))

    def _bulges(self) -> bool:
        """Whether the Lagrangian is above its own chord in u around a sample of X.

        The hidden Hessian says along which line to look; what it says of ill-conditioned maps is
        rounding, so that the values decide.
        """
        domain, geometry, generator = self.form.domain, self.form.geometry, np.random.default_rng(2)
        if domain.dimension > HESSIAN_RULES.largest_dense:
            return False
        for _ in range(CURVATURES if domain.dimension > FEW else 4 * CURVATURES):
            sample = self.oracle.at(domain.sample(generator))
            if not (sample.finite and sample.differentiable):
                continue
            frame = geometry.frame(sample)
            matrix = as_dense(frame.hessian(self._hessian(sample)))
            if not np.isfinite(matrix).all() or not matrix.size:
                continue
            values, vectors = np.linalg.eigh(matrix)
            largest = max(float(np.max(np.abs(values))), self._slope(sample))
            if values[0] < -CURVED * largest and self._above_chord(sample, frame, vectors[:, 0]):
                return True
        return False

    def _above_chord(self, middle: Evaluation, frame: Frame, w: FloatArray) -> bool:
        """Whether L at the middle of a segment in u along w exceeds the mean of L at its ends."""
        geometry, center = self.form.geometry, self.chart.image(middle)
        for length in CHORDS:
            step = frame.step(length * w)
            ends = [
                self.oracle.at(self.form.settled(geometry.retract(middle.point, sign * step)))
                for sign in (1, -1)
            ]
            if not all(end.finite for end in ends):
                continue
            images = [self.chart.image(end) for end in ends]
            off = np.max(np.abs(sum(images) - 2 * center), initial=0.0)
            if off > STRAIGHT * np.max(np.abs(images[0] - center), initial=0.0):
                continue  # a bound, or an inverse of the map that failed, bent the segment
            inner, terms = self._lagrangian(middle)
            outer = [self._lagrangian(end) for end in ends]
            margin = UNDERCUT * (2 * terms + sum(size for _, size in outer))
            if sum(value for value, _ in outer) < 2 * inner - margin:
                return True
        return False

    def _lagrangian(self, evaluation: Evaluation) -> tuple[float, float]:
        """L with the multipliers of the minorant, and the size of its terms."""
        multipliers = self.best.multipliers
        objective = evaluation.objective if evaluation.has_objective else 0.0
        size = abs(objective) + float(np.abs(multipliers) @ np.abs(evaluation.rows))
        return objective + float(multipliers @ evaluation.rows), size

    def _undercut(self) -> bool:
        """Whether the Lagrangian lies below its own minorant at a sample of X: then the map is wrong.

        Samples are drawn from all of X, and around the reference in growing neighbourhoods.
        """
        best, domain = self.best, self.form.domain
        start = self._lagrangian(best.evaluation)[0]
        generator, here = np.random.default_rng(0), best.evaluation.point
        count = SAMPLES if here.size > FEW else 4 * SAMPLES
        if self.form.map_geometry is not None and here.size > MANY:
            count = FEWEST
        turns: set[bool] = set()
        for number in range(count):
            there = domain.sample(generator)
            if number % 2:
                there = domain.project(here + (there - here) * 2.0 ** -(number % 16))
            sample = self.oracle.at(there)
            if not sample.finite:
                continue
            geometry = self.form.map_geometry
            if geometry is not None and number < SAMPLES and not self.form.stack.kinked:
                turned = geometry.orientation(there)
                if turned is None and sample.differentiable:
                    return True  # undefined or singular where the model is smooth: no coordinates
                if turned is None:
                    continue
                turns.add(turned)
                if len(turns) > 1:
                    return True  # turned round on the way: two points share an image
            below = start + float(best.slopes[0] @ (self.chart.image(sample) - best.center))
            value, terms = self._lagrangian(sample)
            if value < below - UNDERCUT * (terms + abs(start) + abs(below)):
                return True
        return False
