"""A declared map put to the test, before a bound rests on it.

The Lagrangian of a bound has to be convex in u. Its hidden Hessian at the reference and at samples of X,
its values beside a chord in u and beside its own minorant, and the orientation of the map can show that
it is not. What passes is not proven.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import MAP_TEST
from hcmodel.certify.declared.curvature_boxes import Enclosed, EnclosedFunctions, is_small
from hcmodel.certify.declared.samples import has_no_inverse, samples_around
from hcmodel.certify.minorants.charts import Chart
from hcmodel.certify.minorants.search import Minorant, Search
from hcmodel.facts.interval_jets import Interval, NotEnclosed
from hcmodel.records import cached_property, dataclass, replace
from hcmodel.reductions.form import Form
from hcmodel.solvers import kkt
from hcmodel.solvers.algebra.hessians import RULES as HESSIAN_RULES
from hcmodel.solvers.algebra.hessians import Hessian, as_dense, has_negative
from hcmodel.solvers.algebra.marks import some
from hcmodel.solvers.coordinates.frame import Frame
from hcmodel.solvers.coordinates.general import MapCoordinates
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
        frame = self._frame(evaluation)
        hessian = self._hessian(evaluation)
        size = self._slope(evaluation)
        gradient = kkt.lagrangian_gradient(evaluation, multipliers)
        bent = self.chart.curvature_of_bounds(evaluation, gradient)
        curved = any(
            has_negative(frame.hessian(each), MAP_TEST.curved, size) for each in (hessian, *bent)
        )
        if curved:
            return True
        batch = _EnclosedSamples.of(self)
        if batch is not None:
            return batch.fails()
        return self._bulges() or self._undercut()

    def _frame(self, evaluation: Evaluation) -> Frame:
        """The units of steps, which are 0 where X does not extend."""
        frame, domain = self.form.geometry.frame(evaluation), self.form.domain
        basis = domain.tangent_basis()
        if frame.columns is not None or basis.shape[0] == basis.shape[1]:
            return frame
        if domain.is_box:
            return replace(frame, scale=frame.scale * np.asarray(basis.sum(axis=1)).reshape(-1))
        return replace(frame, columns=basis.toarray())

    def _slope(self, evaluation: Evaluation) -> float:
        """The size of the terms of the Lagrangian's slope, in the units of the frame."""
        frame = self._frame(evaluation)
        slopes = np.abs(frame.gradient(evaluation.gradient))
        slopes = slopes + np.abs(self.best.multipliers) @ abs(frame.matrix(evaluation.jacobian))
        return float(np.max(slopes, initial=0.0))

    def _bulges(self) -> bool:
        """Whether the Lagrangian is above its own chord in u around a sample of X.

        The hidden Hessian says along which line to look; what it says of ill-conditioned maps is
        rounding, so that the values decide.
        """
        domain, generator = self.form.domain, np.random.default_rng(2)
        if domain.dimension > HESSIAN_RULES.largest_dense:
            return False
        for _ in range(MAP_TEST.curvatures * _effort(domain.dimension)):
            sample = self.oracle.at(domain.sample(generator))
            if not (sample.finite and sample.differentiable):
                continue
            frame = self._frame(sample)
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
        """Whether the Lagrangian lies below its own minorant at a sample, or the map has no inverse."""
        best, derivatives, smooth = self.best, list[FloatArray](), list[bool]()
        start, here = self._lagrangian(best.evaluation)[0], best.evaluation.point
        count, geometry = MAP_TEST.samples * _effort(here.size), self.form.map_geometry
        if geometry is not None and here.size > MAP_TEST.many:
            count = MAP_TEST.fewest
        inverted = geometry is not None and not self.form.stack.kinked
        for there in samples_around(self.form.domain, here, count):
            sample = self.oracle.at(there)
            if not sample.finite:
                continue
            if geometry is not None and inverted and len(smooth) < MAP_TEST.samples:
                derivatives.append(geometry.tangent(there).derivative)
                smooth.append(sample.differentiable)
            image = self.chart.image(sample)
            if not np.isfinite(image).all():
                continue
            inner, terms = self._lagrangian(sample)
            below = start + float(best.slopes[0] @ (image - best.center))
            if inner < below - MAP_TEST.undercut * (terms + abs(start) + abs(below)):
                return True
        return bool(smooth) and has_no_inverse(np.array(derivatives), np.array(smooth))


@dataclass(frozen=True)
class _EnclosedSamples:
    """All samples of a small model in one batch of enclosures, with their derivatives.

    A batch takes a sixth of the time of samples one by one, and the curvature is known at each of them.
    """

    test: _Test
    points: FloatArray
    over: Enclosed

    @staticmethod
    def of(test: _Test) -> _EnclosedSamples | None:
        """None for large models, and for functions without an enclosure."""
        form, here, multipliers = test.form, test.best.evaluation.point, test.best.multipliers
        if not is_small(form, MAP_TEST.largest_batch):
            return None
        count = MAP_TEST.samples * _effort(here.size)
        points = np.array(list(samples_around(form.domain, here, count)))
        try:
            functions = EnclosedFunctions(form, test.chart, multipliers, multipliers.nonzero()[0])
            return _EnclosedSamples(test, points, functions.over(points, points))
        except NotEnclosed:
            return None

    def fails(self) -> bool:
        """Whether the Lagrangian bends or is below its minorant somewhere, or the map has no inverse."""
        return self._has_no_inverse() or some(self._defined & (self.over.bends | self._below))

    @cached_property
    def _defined(self) -> NDArray[np.bool_]:
        """Samples at which the functions are."""
        return np.broadcast_to(np.isfinite(self._terms), len(self.points))

    @cached_property
    def _terms(self) -> FloatArray:
        """The sizes of the terms of the Lagrangian."""
        weights = np.abs(self.test.best.multipliers[self.test.best.multipliers != 0])
        found = np.abs(_middle_of(self.over.objective.value))
        for weight, row in zip(weights, self.over.rows, strict=True):
            found = found + weight * np.abs(_middle_of(row.value))
        return found

    @property
    def _below(self) -> NDArray[np.bool_]:
        """Samples at which the Lagrangian is below its minorant."""
        best, start = self.test.best, self.test._lagrangian(self.test.best.evaluation)[0]
        below = start + (self._images - best.center) @ best.slopes[0]
        margin = MAP_TEST.undercut * (self._terms + abs(start) + np.abs(below))
        return np.asarray(_middle_of(self.over.lagrangian.value) < below - margin)

    @property
    def _images(self) -> FloatArray:
        """u at the samples, one in each row."""
        own, coordinates = self.over.map, self.test.chart.coordinates
        if own is None or not isinstance(coordinates, MapCoordinates):
            return self.points
        return coordinates.selected(_middle_of(own.value)).T

    def _has_no_inverse(self) -> bool:
        """Whether the map has no inverse, by its derivatives at some of the samples."""
        geometry, own = self.test.form.map_geometry, self.over.map
        if geometry is None or own is None or self.test.form.stack.kinked:
            return False
        first = slice(0, MAP_TEST.samples)
        slopes = np.swapaxes(_middle_of(own.gradient)[:, first], 0, 1)
        gradient = _middle_of(self.over.lagrangian.gradient)[first]
        smooth = self._defined[first] & np.isfinite(gradient).all(axis=-1)
        derivatives = np.array([geometry.selected(each) for each in slopes])
        for number in (~np.isfinite(derivatives).all(axis=(-2, -1))).nonzero()[0]:
            # an enclosure may be too wide
            derivatives[number] = geometry.tangent(self.points[number]).derivative
        known = self._defined[first]
        return has_no_inverse(derivatives[known], smooth[known])


def _middle_of(interval: Interval) -> FloatArray:
    with np.errstate(all="ignore"):
        return np.asarray((interval.low + interval.high) / 2)


def _effort(unknowns: int) -> int:
    """How many times as many samples as a large model a small one is given."""
    return 1 if unknowns > MAP_TEST.few else MAP_TEST.more
