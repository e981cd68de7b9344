"""A declared map put to the test, before a bound rests on it.

The Lagrangian of a bound has to be convex in u. Its hidden Hessian at the reference and at samples of X,
its values beside a chord in u and beside its own minorant, and the orientation of the map can show that
it is not. What passes is not proven.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import MAP_TEST
from hcmodel.certify.minorants.charts import Chart
from hcmodel.certify.minorants.search import Minorant, Search
from hcmodel.records import dataclass, replace
from hcmodel.reductions.form import Form
from hcmodel.solvers import kkt
from hcmodel.solvers.algebra.hessians import RULES as HESSIAN_RULES
from hcmodel.solvers.algebra.hessians import Hessian, as_dense, has_negative
from hcmodel.solvers.coordinates.frame import Frame
from hcmodel.solvers.oracle import Evaluation, Oracle

FloatArray = NDArray[np.float64]


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
        curved = any(
            has_negative(frame.hessian(each), MAP_TEST.curved, size) for each in (hessian, *bent)
        )
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
        for _ in range(MAP_TEST.curvatures * _effort(domain.dimension)):
            sample = self.oracle.at(domain.sample(generator))
            if not (sample.finite and sample.differentiable):
                continue
            frame = geometry.frame(sample)
            matrix = as_dense(frame.hessian(self._hessian(sample)))
            if not np.isfinite(matrix).all() or not matrix.size:
                continue
            values, vectors = np.linalg.eigh(matrix)
            largest = max(float(np.max(np.abs(values))), self._slope(sample))
            if values[0] < -MAP_TEST.curved * largest and self._above_chord(
                sample, frame, vectors[:, 0]
            ):
                return True
        return False

    def _above_chord(self, middle: Evaluation, frame: Frame, w: FloatArray) -> bool:
        """Whether L at the middle of a segment in u along w exceeds the mean of L at its ends."""
        geometry, center = self.form.geometry, self.chart.image(middle)
        for length in MAP_TEST.chords:
            step = frame.step(length * w)
            ends = [
                self.oracle.at(self.form.settled(geometry.retract(middle.point, sign * step)))
                for sign in (1, -1)
            ]
            if not all(end.finite for end in ends):
                continue
            images = [self.chart.image(end) for end in ends]
            off = np.max(np.abs(sum(images) - 2 * center), initial=0.0)
            if off > MAP_TEST.straight * np.max(np.abs(images[0] - center), initial=0.0):
                continue  # a bound, or an inverse of the map that failed, bent the segment
            inner, terms = self._lagrangian(middle)
            outer = [self._lagrangian(end) for end in ends]
            margin = MAP_TEST.undercut * (2 * terms + sum(size for _, size in outer))
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
        count = MAP_TEST.samples * _effort(here.size)
        if self.form.map_geometry is not None and here.size > MAP_TEST.many:
            count = MAP_TEST.fewest
        turns: set[bool] = set()
        for number in range(count):
            there = domain.sample(generator)
            if number % 2:
                there = domain.project(here + (there - here) * 2.0 ** -(number % 16))
            sample = self.oracle.at(there)
            if not sample.finite:
                continue
            geometry = self.form.map_geometry
            if geometry is not None and number < MAP_TEST.samples and not self.form.stack.kinked:
                turned = geometry.tangent(there).orientation
                if turned is None and sample.differentiable:
                    return True  # undefined or singular where the model is smooth: no coordinates
                if turned is None:
                    continue
                turns.add(turned)
                if len(turns) > 1:
                    return True  # turned round on the way: two points share an image
            below = start + float(best.slopes[0] @ (self.chart.image(sample) - best.center))
            value, terms = self._lagrangian(sample)
            if value < below - MAP_TEST.undercut * (terms + abs(start) + abs(below)):
                return True
        return False


def _effort(unknowns: int) -> int:
    """How many times the samples of a large model a small one is given."""
    return 1 if unknowns > MAP_TEST.few else MAP_TEST.more
