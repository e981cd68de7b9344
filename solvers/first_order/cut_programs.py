"""The two programs of a bundle method in hidden coordinates: a lower bound, and the next point.

Over the cuts of a bundle and a set V that contains the image of the domain,

    bound:   minimise t   s.t.  cuts of the objective <= t, cuts of the rows <= 0, v in V
    level:   project u    onto  cuts of the objective <= level, cuts of the rows <= 0, v in V

The first is a linear program where V is a polyhedron (HiGHS), the second a quadratic one (Clarabel);
with a few unknowns, simplex and active sets take a fraction of the time that a backend takes to begin.
Where V is unbounded, both are restricted to a box around u; the bound holds without it as soon as no
side of the box has a multiplier.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import cached_property, dataclass, replace
from hcmodel.solvers.coordinates.protocol import Coordinates
from hcmodel.solvers.first_order.cuts import OBJECTIVE, Bundle, CutPoint
from hcmodel.solvers.numerics import BACKEND_ROUNDING
from hcmodel.solvers.qp import (
    ConeBackend,
    ConeBlock,
    ConeKind,
    ConeOptions,
    ConeProgram,
    ConeStatus,
    QPBackend,
    QuadraticProgram,
    make_cone_backend,
)
from hcmodel.solvers.qp.columns import Columns, above_bounds
from hcmodel.solvers.qp.cone_program import no_quadratic
from hcmodel.solvers.qp.program import StepRows
from hcmodel.solvers.qp.small_polyhedra import lowest_vertex, nearest_point
from hcmodel.solvers.sets.cone_programs import shifted
from hcmodel.solvers.sets.domain import FARTHEST, Domain

FloatArray = NDArray[np.float64]
Marks = NDArray[np.bool_]
Places = NDArray[np.intp]

# Slopes of the objective that differ by more than this factor are too many for one linear program: they
# leave two digits to a backend (geometric programs as black boxes).
SPREAD = 1e8

KINDS = {"zero": ConeKind.ZERO, "psd": ConeKind.PSD_TRIANGLE}


class HiddenSet(Protocol):
    """Coordinates u = c(x), a set V that contains their values, and normals of the plane of these."""

    @property
    def coordinates(self) -> Coordinates: ...
    @property
    def bounds(self) -> Domain: ...
    @property
    def normals(self) -> FloatArray:
        """Columns that are orthogonal to all differences of images; empty where there are none."""


@dataclass(frozen=True)
class Region:
    """V around a point u in units of `metric`, and the sides of the box that stand for infinity."""

    center: FloatArray
    metric: FloatArray
    rows: StepRows
    equality: FloatArray
    below: Marks
    above: Marks
    is_open: bool

    @staticmethod
    def around(where: HiddenSet, center: FloatArray, metric: FloatArray, reach: float) -> Region:
        rows = shifted(where.bounds.cone_rows(), center, metric)
        below, above = rows.lower < -FARTHEST, rows.upper > FARTHEST
        is_open = bool((below | above).any())
        if is_open:
            lower, upper = np.where(below, -reach, rows.lower), np.where(above, reach, rows.upper)
            rows = StepRows(lower, upper, rows.cones)
        normals = np.zeros((0, center.size))
        if where.normals.size:
            normals = where.normals.T * metric
        return Region(center, metric, rows, normals, below, above, is_open)

    @cached_property
    def sides(self) -> tuple[Places, Places]:
        """The unknowns with an upper and with a lower side."""
        upper, lower = np.isfinite(self.rows.upper), np.isfinite(self.rows.lower)
        return upper.nonzero()[0], lower.nonzero()[0]


@dataclass(frozen=True)
class Bound:
    """The answer of the first program: its value and point, and the weights that show it.

    `weights` has one entry for each cut, `equalities` one for each equality row. `whole` says that the
    value bounds the functions over all of V and not only over the box. `conflict` says that the rows
    contradict each other: then the weights prove it and there is no value.
    """

    value: float
    point: FloatArray
    weights: FloatArray
    equalities: FloatArray
    whole: bool
    conflict: bool = False

    def row_multipliers(self, bundle: Bundle, count: int) -> FloatArray:
        """The multipliers of all rows, inequalities first."""
        rows = bundle.owners != OBJECTIVE
        sums = np.bincount(bundle.owners[rows], weights=self.weights[rows], minlength=count)
        return np.concatenate([sums, self.equalities])


@dataclass(frozen=True)
class _Rows:
    """matrix @ w <= offset, and equal @ w = target, in units of the region; rows have length 1."""

    matrix: FloatArray
    offset: FloatArray
    sizes: FloatArray
    equal: FloatArray
    target: FloatArray
    equal_sizes: FloatArray


def _rows(bundle: Bundle, affine: CutPoint, region: Region, limits: FloatArray) -> _Rows:
    """Cuts <= limits, and the equalities as they are at one point."""
    matrix = bundle.slopes * region.metric
    sizes = _lengths(matrix)
    offset = limits - bundle.constants - bundle.slopes @ region.center
    first = affine.evaluation.inequalities
    equal = affine.row_slopes[first:] * region.metric
    values = affine.evaluation.rows[first:] + affine.row_slopes[first:] @ (
        region.center - affine.image
    )
    lengths = _lengths(equal)
    return _Rows(
        matrix / sizes[:, None],
        offset / sizes,
        sizes,
        np.concatenate([equal / lengths[:, None], region.equality]),
        np.concatenate([-values / lengths, np.zeros(region.equality.shape[0])]),
        lengths,
    )


def _scaled(rows: _Rows, objective: Marks, affine: CutPoint, region: Region) -> tuple[_Rows, float]:
    """The rows, and the unit of the objective's values.

    Where the objective's slopes differ by many orders of magnitude, as those of an exponential do, slopes
    that are small beside that of the last point are not enlarged.
    """
    sizes = rows.sizes[objective]
    if not sizes.size:
        return rows, 1.0
    if float(np.max(sizes)) <= SPREAD * float(np.min(sizes)):
        return rows, _median(sizes)
    unit = float(np.linalg.norm(affine.slope * region.metric)) or float(np.max(sizes))
    shares = np.where(objective, np.minimum(rows.sizes / unit, 1.0), 1.0)
    scaled = replace(
        rows,
        matrix=rows.matrix * shares[:, None],
        offset=rows.offset * shares,
        sizes=rows.sizes / shares,
    )
    return scaled, unit


def _lengths(matrix: FloatArray) -> FloatArray:
    if not matrix.size:
        return np.ones(matrix.shape[0])
    found = np.linalg.norm(matrix, axis=1)
    return np.asarray(np.where(found > 0, found, 1.0))


class SmallPrograms:
    """Both programs in a box without equations, up to a number of unknowns.

    The rows of a bundle are made once for both; the last basis is the first one of the next bound.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._read: _CutRows | None = None
        self._basis: tuple[int, ...] = ()

    def fits(self, affine: CutPoint, region: Region) -> bool:
        """Whether the programs are of this kind; the box of a region has all its sides."""
        evaluation = affine.evaluation
        return (
            region.center.size <= self._most
            and not region.rows.cones
            and not region.equality.size
            and evaluation.rows.size == evaluation.inequalities
        )

    def _rows(self, bundle: Bundle, region: Region) -> _CutRows:
        if self._read is None or self._read.bundle is not bundle:
            self._read = _CutRows.of(bundle, region.metric)
        return self._read

    def bound(self, bundle: Bundle, affine: CutPoint, region: Region) -> Bound | None:
        """The least value of the cuts; None where it is not found in this way."""
        rows = self._rows(bundle, region)
        if rows.unit is None:
            return None
        size, count, unit = region.center.size, bundle.size, rows.unit
        reference = float(affine.evaluation.objective)
        offset = rows.offset(region, np.where(rows.objective, reference, 0.0))
        cost = np.zeros(size + 1)
        cost[size] = 1.0
        found = None
        if self._basis:
            found = lowest_vertex(rows.matrix, offset, cost, self._basis)
        if found is None:
            found = lowest_vertex(rows.matrix, offset, cost, rows.first_basis())
        if found is None:
            return None
        weights = np.zeros(offset.size)
        weights[list(found.basis)] = found.weights
        whole = True
        if region.is_open:
            held = np.concatenate([region.above, region.below])
            largest = max(float(found.weights.max()), 1.0)
            whole = not (weights[count:][held] > BACKEND_ROUNDING * largest).any()
        # sides are counted from the end, so that they keep their numbers as cuts are added
        places = [row if row < count else row - offset.size for row in found.basis]
        self._basis = () if found.conflict else tuple(places)
        return Bound(
            value=np.inf if found.conflict else reference + unit * float(found.point[size]),
            point=region.center + region.metric * found.point[:size],
            weights=(1.0 if found.conflict else unit) * weights[:count] / rows.sizes,
            equalities=np.zeros(0),
            whole=whole,
            conflict=found.conflict,
        )

    def projection(
        self, bundle: Bundle, region: Region, limits: FloatArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """The point nearest to the region's centre where the cuts are low enough, and their weights."""
        rows = self._rows(bundle, region)
        found = nearest_point(rows.matrix[:, :-1], rows.offset(region, limits))
        if found is None:
            return None
        return region.center + region.metric * found[0], found[1][: bundle.size]


@dataclass(frozen=True)
class _CutRows:
    """Cuts as rows of length 1 over (w, τ), τ in units of `unit`, and below them the sides of a box.

    `unit` is None where the slopes of the objective differ by too many orders of magnitude.
    """

    bundle: Bundle
    matrix: FloatArray
    sizes: FloatArray
    objective: Marks
    unit: float | None

    @staticmethod
    def of(bundle: Bundle, metric: FloatArray) -> _CutRows:
        steep, size, count = bundle.slopes * metric, metric.size, bundle.size
        lengths = np.sqrt((steep * steep).sum(axis=1))
        sizes = np.where(lengths > 0, lengths, 1.0)
        objective = bundle.owners == OBJECTIVE
        ordered = sorted(sizes[objective].tolist())  # an objective has cuts, but few
        unit = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
        matrix = np.zeros((count + 2 * size, size + 1))
        matrix[:count, :size] = steep / sizes[:, None]
        matrix[:count, size] = objective * (-unit / sizes)
        sides = np.arange(size)
        matrix[count + sides, sides] = 1.0
        matrix[count + size + sides, sides] = -1.0
        narrow = ordered[-1] <= SPREAD * ordered[0]
        return _CutRows(bundle, matrix, sizes, objective, unit if narrow else None)

    def offset(self, region: Region, limits: FloatArray) -> FloatArray:
        values = limits - self.bundle.constants - self.bundle.slopes @ region.center
        return np.concatenate([values / self.sizes, region.rows.upper, -region.rows.lower])

    def first_basis(self) -> list[int]:
        """The latest cut of the objective and the sides of the box against which it falls."""
        last, count = int(np.flatnonzero(self.objective)[-1]), self.sizes.size
        size = self.matrix.shape[1] - 1
        slopes = self.matrix[last, :size].tolist()
        return [last, *(count + size * (slope > 0) + i for i, slope in enumerate(slopes))]


class CutPrograms:
    """Solves the two programs, with backends that are kept for the run.

    Up to `small` unknowns no backend is asked unless rounding hides the answer. HiGHS finds vertices,
    which the method needs with more than a few unknowns. With `few` of them any solution will do, and
    scipy.optimize, which takes longer to import than such a run, is left out.
    """

    def __init__(self, qp: QPBackend, tolerance: float, few: int = 0, small: int = 0) -> None:
        self._qp = qp
        self._few = few
        self._options = ConeOptions(tolerance=tolerance)
        self._linear: ConeBackend = make_cone_backend("highs")
        self._general: ConeBackend = make_cone_backend()
        self._small = SmallPrograms(small)

    def bound(self, bundle: Bundle, affine: CutPoint, region: Region) -> Bound | None:
        """The least value of the cuts; None where the backend finds no answer."""
        if self._small.fits(affine, region):
            quick = self._small.bound(bundle, affine, region)
            if quick is not None:
                return quick
        objective = bundle.owners == OBJECTIVE
        rows = _rows(bundle, affine, region, np.zeros(bundle.size))
        reference = float(affine.evaluation.objective)
        rows, unit = _scaled(rows, objective, affine, region)
        height = np.where(objective, -unit / rows.sizes, 0.0)
        offset = rows.offset + np.where(objective, reference / rows.sizes, 0.0)
        program = _linear_program(rows, height, offset, region)
        backends = [self._general]
        if self._linear.fits(program):
            backends.append(self._linear)
            if region.center.size > self._few:
                backends.reverse()
        found: Bound | None = None
        for backend in backends:
            if backend is self._linear and isinstance(program.matrix, Columns):
                program = replace(program, matrix=program.matrix.sparse())
            found = self._found(backend, program, bundle, rows, region, unit, reference) or found
            good = found is not None and found.whole and not found.conflict
            if good or (found is not None and backend is self._linear):
                break
        return found

    def _found(
        self,
        backend: ConeBackend,
        program: ConeProgram,
        bundle: Bundle,
        rows: _Rows,
        region: Region,
        unit: float,
        reference: float,
    ) -> Bound | None:
        answer = backend.solve(program, self._options)
        conflict = answer.status is ConeStatus.INFEASIBLE
        if not (answer.usable or conflict):
            return None
        equal = rows.target.size
        scale = 1.0 if conflict else unit
        weights = scale * answer.dual[equal : equal + bundle.size] / rows.sizes
        upper, lower = region.sides
        sides = answer.dual[equal + bundle.size :][: upper.size + lower.size]
        own = rows.equal_sizes.size
        held = np.concatenate([region.above[upper], region.below[lower]])
        size = max(float(np.max(np.abs(answer.dual), initial=0.0)), 1.0)
        point = region.center + region.metric * answer.primal[:-1]
        return Bound(
            value=np.inf if conflict else reference + unit * float(answer.primal[-1]),
            point=point,
            weights=np.maximum(weights, 0.0),
            equalities=scale * answer.dual[:own] / rows.equal_sizes,
            whole=not (np.abs(sides[held]) > self._options.tolerance * size).any(),
            conflict=conflict,
        )

    def projection(
        self,
        bundle: Bundle,
        affine: CutPoint,
        region: Region,
        level: float,
        margins: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray] | None:
        """The point nearest to the region's centre where the cuts are low enough, and their weights.

        An infinite level asks for the rows alone. Rows are at most the negative `margins`, or 0.
        """
        below = np.zeros(affine.evaluation.inequalities) if margins is None else -margins
        limits = np.concatenate([[level], below])[bundle.owners - OBJECTIVE]
        if self._small.fits(affine, region):
            quick = self._small.projection(bundle, region, limits)
            if quick is not None:
                return quick
        chosen = np.isfinite(limits)
        rows = _rows(bundle, affine, region, np.where(chosen, limits, 0.0))
        size = region.center.size
        matrix, offset = rows.matrix[chosen], rows.offset[chosen]
        program = QuadraticProgram(
            np.ones(size), np.zeros(size), matrix, offset, rows.equal, rows.target, region.rows
        )
        answer = self._qp.solve(program)
        if not answer.usable:
            return None
        weights = np.zeros(bundle.size)
        weights[chosen] = answer.inequality_multipliers[: offset.size]
        return region.center + region.metric * answer.step, weights


def _median(sizes: FloatArray) -> float:
    """The median, 1 of none; numpy's own takes as long as a small program."""
    ordered, last = np.sort(sizes), sizes.size - 1
    return float(ordered[last // 2] + ordered[(last + 1) // 2]) / 2 if sizes.size else 1.0


def _linear_program(
    rows: _Rows, height: FloatArray, offset: FloatArray, region: Region
) -> ConeProgram:
    """minimise τ over (w, τ); blocks: equalities, cuts, sides of the box, the cones of V."""
    size = region.center.size
    upper, lower = region.sides
    equalities, cuts = rows.target.size, offset.size
    dense = np.zeros((equalities + cuts, size + 1))
    dense[:equalities, :size] = rows.equal
    dense[equalities:, :size] = rows.matrix
    dense[equalities:, size] = height
    matrix: Any = above_bounds(dense, upper, lower, zeros=False)
    offsets = [rows.target, offset, region.rows.upper[upper], -region.rows.lower[lower]]
    kinds = [
        ConeBlock(ConeKind.ZERO, equalities),
        ConeBlock(ConeKind.NONNEGATIVE, cuts + upper.size + lower.size),
    ]
    if region.rows.cones:
        blocks = [_widened(-cone.matrix) for cone in region.rows.cones]
        matrix = scipy.sparse.vstack([matrix.sparse(), *blocks], format="csc")
        offsets += [cone.offset for cone in region.rows.cones]
        kinds += [ConeBlock(KINDS[cone.kind], cone.offset.size) for cone in region.rows.cones]
    linear = np.zeros(size + 1)
    linear[-1] = 1.0
    blocks_in_use = tuple(kind for kind in kinds if kind.size)
    return ConeProgram(
        no_quadratic(size + 1), linear, matrix, np.concatenate(offsets), blocks_in_use, None
    )


def _widened(matrix: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """With a column of zeros for τ."""
    narrow = scipy.sparse.csr_array(matrix)
    parts = (narrow.data, narrow.indices, narrow.indptr)
    return scipy.sparse.csr_array(parts, shape=(narrow.shape[0], narrow.shape[1] + 1))
