"""Lower bounds from the dual of a cone program, whatever solver it comes from.

    minimise  ½ xᵀP x + qᵀx + c   s.t.   A x + s = b,   s in K

For every z in the dual cone, every x̄, and every feasible x with an objective of at most a level,

    ½ xᵀP x + qᵀx + c  >=  c − ½ x̄ᵀP x̄ − bᵀz + Σ_j min r_j x_j,        r = q + P x̄ + Aᵀz,

the minimum over the range of x_j at such points (`cone_ranges`). Where ½ D_j (x_j − x̄_j)² is a part of
the objective's curvature, it is the minimum over all numbers of r_j x_j plus that. With a dual solution r
is about 0, so that hardly anything is lost; where x_j is not limited, r_j has to be exactly 0
(`exact_duals`). No x is worse than min(level, that). This is the rigorous bound of C. Jansson, D. Chaykin
and C. Keil, *Rigorous error bounds for the optimal value in semidefinite programming*, SIAM Journal on
Numerical Analysis 46 (2007), with other ranges of x. Rounding of the evaluation is bounded and
subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import CONE_DUALITY, SEARCH
from hcmodel.certify.duals.cone_ranges import ConePlaces, Range, ranges
from hcmodel.certify.duals.exact_duals import exact_shift, has_no_residual, simple_dual
from hcmodel.records import cached_property, dataclass, replace
from hcmodel.solvers.algebra.marks import largest
from hcmodel.solvers.algebra.symmetric import (
    cholesky_rounding,
    is_surely_semidefinite,
    to_matrix,
    to_vector,
)
from hcmodel.solvers.numerics import (
    OPERATION_ROUNDING,
    PRODUCT_ROUNDING,
    SUM_ROUNDING,
    TINY,
)
from hcmodel.solvers.qp.balance import balanced
from hcmodel.solvers.qp.cone_program import ConeKind, ConeProgram, ConeSolution
from hcmodel.solvers.qp.matrix_slacks import without_slacks

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ConeBound:
    """A lower bound; `among_doubles` where logarithms without bounds are taken as those of doubles.

    `reach` is how large the other unknowns of the model without bounds may be, infinite for any size.
    """

    value: float
    among_doubles: bool = False
    reach: float = np.inf


def cone_bound(
    program: ConeProgram,
    solution: ConeSolution,
    level: float,
    logs: NDArray[np.bool_],
    enough: Callable[[float], bool],
    first: Range | None = None,
    *,
    within_reach: bool = False,
) -> ConeBound | None:
    """The best bound found with the dual of a solution, or with a correction of it; None without one.

    `logs` marks the unknowns that are logarithms of a model's variables; `first` has ranges of the first
    unknowns, those of the model, that are known without the program. `within_reach` allows a bound for
    unknowns up to some size.
    """
    if program.constant is None or not np.isfinite(solution.dual).all():
        return None
    named = without_slacks(program)  # fewer unknowns without a range
    if named is not None:
        program, solution, logs = (
            named.program,
            named.taken(solution),
            logs[named.columns[: logs.size]],
        )
        if first is not None:
            own = named.columns[: first.lower.size]
            first = Range(first.lower[own], first.upper[own])
    found = _in_other_units(program, solution, level, enough, first)
    if found is None or not enough(found.value):
        other = _bound(program, solution, level, logs, enough, first, within_reach)
        if found is None or (other is not None and other.value > found.value):
            found = other
    return found


def ray_bound(
    program: ConeProgram,
    z: FloatArray,
    first: Range,
    enough: Callable[[float], bool],
    reach: float | None,
) -> ConeBound | None:
    """What a dual proves of an objective that is 0, for all unknowns.

    If a `reach` is given and that fails, for unknowns of the model up to that size. No better dual is
    looked for.
    """
    with np.errstate(all="ignore"):
        places = ConePlaces.of(program)
        primal, z = np.zeros(program.linear.size), into_dual_cone(places, z)
        known = ranges(program, places, 1.0, first, narrow=False)
        dual = _Dual(program, places, primal, known)
        best = dual.value(z)
        if not enough(best):
            best = max(best, dual.simple(z))
        if enough(best) or reach is None:
            return ConeBound(min(best, 1.0)) if enough(best) else None
        dual.known = ranges(program, places, 1.0, _within(first, reach))
        best = dual.value(z)
    return ConeBound(min(best, 1.0), reach=reach) if enough(best) else None


def _within(known: Range, reach: float) -> Range:
    """The ranges, those that are not finite up to a reach."""
    lower = np.where(np.isfinite(known.lower), known.lower, -reach)
    return Range(lower, np.where(np.isfinite(known.upper), known.upper, reach))


def _in_other_units(
    program: ConeProgram,
    solution: ConeSolution,
    level: float,
    enough: Callable[[float], bool],
    first: Range | None,
) -> ConeBound | None:
    """The bound of the balanced program: rounding is relative to the largest of the numbers added.

    The units are powers of two, so that a bound of one program is one of the other.
    """
    balance = balanced(program)
    if balance is None:
        return None
    unit = balance.value
    if first is not None:
        units = balance.offset / balance.columns[: first.lower.size]
        first = Range(first.lower * units, first.upper * units)
    found = _bound(
        balance.program,
        balance.taken(solution),
        level * unit,
        np.zeros(0, dtype=bool),
        lambda bound: enough(bound / unit),
        first,
        within_reach=False,
    )
    return None if found is None else replace(found, value=found.value / unit)


def _bound(
    program: ConeProgram,
    solution: ConeSolution,
    level: float,
    logs: NDArray[np.bool_],
    enough: Callable[[float], bool],
    first: Range | None,
    within_reach: bool,
) -> ConeBound | None:
    with np.errstate(all="ignore"):
        places = ConePlaces.of(program)
        known = ranges(program, places, level, first, narrow=False)
        dual = _Dual(program, places, solution.primal, known)
        best = dual.value(into_dual_cone(places, solution.dual))
        if not enough(best) and program.quadratic.nnz:
            z = into_dual_cone(places, solution.dual)
            moved = _Dual(program, places, _at_rest(program, solution.primal, z), known)
            if (value := moved.value(z)) > best:
                dual, best = moved, value
        if not enough(best) and places.blocks:
            best = max(best, dual.without_ranges(into_dual_cone(places, solution.dual)))
        if not np.isfinite(best):
            best = _without_small(dual, solution.dual, enough)
        if np.isfinite(best) and not enough(best):
            dual.known = ranges(program, places, level, first)
        if not np.isfinite(best):
            best = max(best, dual.simple(solution.dual))
        if not enough(best) and (np.isfinite(best) or dual.may_be_exact):
            best = max(best, _best(dual, solution.dual, enough))
        among_doubles = False
        if not np.isfinite(best) and dual.limit_logarithms(logs):
            best, among_doubles = _best(dual, solution.dual, enough), True
        reach = np.inf
        if within_reach and first is not None and not enough(best):
            best, reach = _best_within_reach(dual, solution, level, first, enough)
    if not np.isfinite(best):
        return None
    return ConeBound(min(best, level), among_doubles, reach)


def _without_small(dual: _Dual, z: FloatArray, enough: Callable[[float], bool]) -> float:
    """What a dual proves without what rounding leaves of 0: a slope of a matrix that may grow."""
    small, best = without_small(dual.program, z, 0), -np.inf
    for room in CONE_DUALITY.rooms if dual.places.exponential.size else (0.0,):
        inside = with_room(dual.places, small, room)
        best = max(best, dual.value(into_dual_cone(dual.places, inside)))
        if enough(best):
            break
    return best


def _best_within_reach(
    dual: _Dual,
    solution: ConeSolution,
    level: float,
    first: Range,
    enough: Callable[[float], bool],
) -> tuple[float, float]:
    """A bound for unknowns of the model up to some size, the largest one for which it is good enough.

    Where an objective does not change along a line without an end, rounding leaves a slope of 1e-16 along
    it in every dual, and no bound holds on all of the line. −∞ where even a short reach does not help.
    """
    count, ranged = first.lower.size, dual.known
    size = max(1.0, float(np.abs(solution.primal[:count]).max(initial=0.0)))
    free = ~(np.isfinite(ranged.lower) & np.isfinite(ranged.upper))
    known: dict[float, Range] = {}
    for reach in (factor * size for factor in CONE_DUALITY.reaches):
        own = _within(Range(ranged.lower[:count], ranged.upper[:count]), reach)
        known[reach] = ranges(dual.program, dual.places, level, own)
    for z in _corrections(dual, solution.dual, CONE_DUALITY.largest_last_correction):
        if dual.relative_residual(z, free) > CONE_DUALITY.reach_residual:
            continue
        for reach, dual.known in known.items():
            best = dual.value(z)
            if enough(best):
                return best, reach
    return -np.inf, np.inf


def _best(dual: _Dual, z: FloatArray, enough: Callable[[float], bool]) -> float:
    """The best value among the dual and its corrections."""
    best = -np.inf
    for corrected in _corrections(dual, z, CONE_DUALITY.largest_correction):
        best = max(best, dual.value(corrected))
        if enough(best):
            break
    return best


def _corrections(dual: _Dual, z: FloatArray, largest: int) -> Iterator[FloatArray]:
    """The dual and its corrections, all in the cone; with matrices none beyond so many entries of A."""
    z = into_dual_cone(dual.places, z)
    yield z
    if np.prod(dual.program.matrix.shape) > largest and not dual.may_be_sparse:
        return
    for _ in range(CONE_DUALITY.corrections):
        corrected = dual.corrected(z)
        if corrected is None:
            return
        z = into_dual_cone(dual.places, corrected)
        yield z


class _Dual:
    """The bound as a function of z."""

    def __init__(
        self, program: ConeProgram, places: ConePlaces, primal: FloatArray, known: Range
    ) -> None:
        self.program, self.places, self.known = program, places, known
        self.primal = primal
        quadratic = program.quadratic
        self.slope, self.terms = program.linear, np.abs(program.linear)
        self.curved = [0.0]
        if quadratic.nnz:
            pull, rounded, value = _products(quadratic, primal)
            self.slope, self.terms = self.slope + pull, self.terms + rounded
            self.curved = [-0.5 * part for part in value]
        counts = np.diff(program.matrix.indptr) + np.diff(quadratic.indptr)
        self.rounding = SUM_ROUNDING + OPERATION_ROUNDING * (counts + 1)

    def limit_logarithms(self, logs: NDArray[np.bool_]) -> bool:
        """Take logarithms without bounds as those of doubles; False where there are none."""
        known, reach = self.known, SEARCH.largest_logarithm
        marked = np.zeros(known.lower.size, dtype=bool)
        marked[: logs.size] = logs
        marked &= ~(np.isfinite(known.lower) & np.isfinite(known.upper))
        lower = np.where(marked, np.maximum(known.lower, -reach), known.lower)
        upper = np.where(marked, np.minimum(known.upper, reach), known.upper)
        self.known = Range(lower, upper)
        return bool(marked.any())

    def residual(self, z: FloatArray) -> FloatArray:
        return np.asarray(self.slope + self.program.pull(z))

    def relative_residual(self, z: FloatArray, marks: NDArray[np.bool_]) -> float:
        """The largest residual of marked unknowns, relative to the terms that it is the sum of."""
        sizes = np.maximum(self.terms + self.program.pulled_sizes(z), TINY)
        return largest((np.abs(self.residual(z)) / sizes)[marks])

    def value(self, z: FloatArray, exact: NDArray[np.intp] | None = None) -> float:
        """What z proves; −∞ where an unknown without a range has a residual.

        Those of the unknowns `exact` are computed without rounding: they count where they are not 0.
        """
        rest = self.residual(z)
        error = self.rounding * (self.terms + self.program.pulled_sizes(z))
        if exact is not None and has_no_residual(self.program, exact, z):
            rest[exact] = error[exact] = 0.0
        least = self._least_terms(rest, error)
        shifted: list[float] = []
        if not np.isfinite(least).all():
            found = self._shifted(z, rest, error)
            if found is not None:
                least, shifted = found
        assert self.program.constant is not None
        terms = [self.program.constant, *self.curved, *(-self.program.offset * z), *least, *shifted]
        if not np.isfinite(terms).all():
            return -np.inf
        size = float(np.abs(terms).sum())
        return math.fsum(terms) - (SUM_ROUNDING + OPERATION_ROUNDING * self._deepest) * size

    def _least_terms(self, rest: FloatArray, error: FloatArray) -> FloatArray:
        """The least r_j x_j over the ranges; or with a part of the curvature, where that is more."""
        ends = [
            slope * end
            for slope in (rest - error, rest + error)
            for end in (self.known.lower, self.known.upper)
        ]
        least: FloatArray = np.where(np.isnan(ends), 0.0, ends).min(axis=0)  # 0 times infinity is 0
        if np.isfinite(least).all() or not self.program.quadratic.nnz:
            return least
        curvature = self._curvature
        curved = np.minimum((rest - error) * self.primal, (rest + error) * self.primal)
        with np.errstate(all="ignore"):
            curved -= (np.abs(rest) + error) ** 2 / curvature / 2 * (1 + SUM_ROUNDING)
        return np.asarray(np.maximum(least, np.where(curvature > 0, curved, -np.inf)))

    @cached_property
    def _curvature(self) -> FloatArray:
        """D >= 0 for which ½ (x − x̄)ᵀP (x − x̄) is at least ½ Σ D_j (x_j − x̄_j)²."""
        return least_curvature(self.program.quadratic)

    @property
    def _limited(self) -> NDArray[np.bool_]:
        """The unknowns with a range, or in which the objective is curved."""
        ranged = np.isfinite(self.known.lower) & np.isfinite(self.known.upper)
        return ranged | (self._curvature > 0) if self.program.quadratic.nnz else ranged

    def without_ranges(self, z: FloatArray) -> float:
        """What a dual that is exact in all unknowns proves: ranges of matrices are often very wide."""
        known, endless = self.known, np.full(self.known.lower.size, np.inf)
        self.known = Range(-endless, endless)
        try:
            return self.value(z)
        finally:
            self.known = known

    def simple(self, z: FloatArray) -> float:
        """What z proves with simple fractions as weights of unknowns without a range; −∞ if none fit."""
        known = self.known
        if not self.may_be_exact or self.program.quadratic.nnz:
            return -np.inf
        free = np.flatnonzero(~(np.isfinite(known.lower) & np.isfinite(known.upper)))
        found = simple_dual(self.program, free, z)
        return (
            -np.inf if found is None else self.value(into_dual_cone(self.places, found), exact=free)
        )

    @property
    def may_be_exact(self) -> bool:
        """Whether there are few enough unknowns without a range to solve for exact duals."""
        return bool(np.count_nonzero(~self._limited) <= CONE_DUALITY.most_exact)

    def _shifted(
        self, z: FloatArray, rest: FloatArray, error: FloatArray
    ) -> tuple[FloatArray, list[float]] | None:
        """The least terms of the unknowns, and the costs, of a dual that is exact where ranges lack."""
        matrix, size = self.program.sparse, np.abs(rest) + error
        free = ~self._limited
        columns, others = np.flatnonzero(free & (size > 0)), np.flatnonzero(free & (size == 0))
        shift = exact_shift(matrix, self.places, z, columns, size[columns], others)
        if shift is None:
            return None
        moved = np.zeros(z.size)
        moved[shift.rows] = shift.sizes * (1.0 + SUM_ROUNDING)
        error = error + self.program.pulled_sizes(moved) * (1.0 + self.rounding)
        least = self._least_terms(rest, error)
        least[columns] = 0.0
        return least, (-np.abs(self.program.offset) * moved).tolist()

    @property
    def _deepest(self) -> int:
        """The most terms that are added in floating point for one of the terms of the value."""
        return int(np.diff(self.program.quadratic.indptr).max(initial=0))

    def corrected(self, z: FloatArray) -> FloatArray | None:
        """z − W A (AᵀW A)⁻¹ r, which has no residual but for rounding.

        W is the inverse Hessian of the barrier of the cone at z, or like it, so that a correction which
        is small relative to z stays in the cone. It is found by the singular values of √W A.
        """
        if (
            self.may_be_sparse
            and np.prod(self.program.matrix.shape) > CONE_DUALITY.dense_correction
        ):
            return self._corrected_by_factors(z)
        root = _RootWeights(self.places, z)
        columns = root.applied(np.asarray(self.program.sparse.toarray(), dtype=float))
        try:
            found = np.linalg.lstsq(columns.T, self.residual(z), rcond=PRODUCT_ROUNDING)
        except np.linalg.LinAlgError:
            return None
        step = np.asarray(found[0], dtype=float)
        corrected = np.asarray(z - root.applied(step[:, None])[:, 0], dtype=float)
        return corrected if np.isfinite(corrected).all() else None

    @property
    def may_be_sparse(self) -> bool:
        """Whether W is diagonal, and AᵀW A is likely to have a sparse factor."""
        return not self.places.blocks and self.program.matrix.nnz <= CONE_DUALITY.sparse_correction

    def _corrected_by_factors(self, z: FloatArray) -> FloatArray | None:
        """The same by a sparse factor. √W takes the place of W, with which no digit would be left."""
        A, weights = self.program.sparse, _RootWeights(self.places, z).weights
        system = scipy.sparse.csc_array(A.T @ scipy.sparse.diags_array(weights) @ A)
        diagonal = system.diagonal()
        least = PRODUCT_ROUNDING * np.maximum(diagonal, largest(diagonal) * PRODUCT_ROUNDING + TINY)
        try:
            factor = scipy.sparse.linalg.splu(
                system + scipy.sparse.diags_array(least, format="csc")
            )
        except RuntimeError:  # it is singular
            return None
        corrected = np.asarray(z - weights * (A @ factor.solve(self.residual(z))), dtype=float)
        return corrected if np.isfinite(corrected).all() else None


def _products(
    P: scipy.sparse.csc_array, x: FloatArray
) -> tuple[FloatArray, FloatArray, tuple[float, float, float]]:
    """P x, sizes that its rounding is relative to, and numbers whose sum is not below xᵀP x.

    Terms may be a thousand million times their sum, so that they are added with more digits, where the
    machine has them: P x is rounded once, and the last of the numbers is the rounding of the others.
    """
    wide, digits = np.longdouble, np.finfo(np.longdouble).eps / np.finfo(float).eps
    terms = P.data.astype(wide) * x[P.indices].astype(wide)
    filled = np.diff(P.indptr) > 0
    pull, sizes = np.zeros(x.size, dtype=wide), np.zeros(x.size)
    if terms.size:
        pull[filled] = np.add.reduceat(terms, P.indptr[:-1][filled])
        sizes[filled] = np.add.reduceat(np.abs(terms), P.indptr[:-1][filled]).astype(float)
    products = pull * x.astype(wide)
    total = products.sum()
    # Higham 2002, section 4.2
    rounding = float(np.finfo(wide).eps) * (P.nnz + 4) * float(np.abs(x) @ sizes)
    rounded = np.abs(pull).astype(float) + float(digits) * sizes
    return pull.astype(float), rounded, (float(total), float(total - float(total)), rounding)


def least_curvature(P: scipy.sparse.csc_array) -> FloatArray:
    """A diagonal D >= 0 with P − D surely semidefinite, 0 where none is found at a low cost."""
    diagonal: FloatArray = np.asarray(P.diagonal(), dtype=float)
    if P.nnz == np.count_nonzero(diagonal):
        return np.asarray(np.maximum(diagonal, 0.0))
    found = np.zeros(diagonal.size)
    used = (np.diff(P.indptr) > 0).nonzero()[0]
    if used.size > CONE_DUALITY.largest_curvature or not (diagonal[used] > 0).all():
        return found
    root = np.sqrt(diagonal[used])
    own = np.asarray(P[used][:, used].toarray()) / root / root[:, None]
    share = float(np.linalg.eigvalsh(own)[0]) / 2
    less = (share + cholesky_rounding(used.size)) * np.eye(used.size)  # that of the division, too
    if share > 0 and is_surely_semidefinite(own - less):
        found[used] = share * diagonal[used] * (1 - SUM_ROUNDING)
    return found


def _at_rest(program: ConeProgram, primal: FloatArray, z: FloatArray) -> FloatArray:
    """x̄ after Newton steps, so that z leaves no slope where a quadratic objective is curved."""
    P = program.quadratic
    used = (np.diff(P.indptr) > 0).nonzero()[0]
    if not used.size or used.size > CONE_DUALITY.largest_curvature:
        return primal
    own, found = np.asarray(P[used][:, used].toarray()), primal.copy()
    try:
        factor = scipy.linalg.cho_factor(own, check_finite=False)
    except np.linalg.LinAlgError:
        return primal
    for _ in range(CONE_DUALITY.corrections):
        rest = program.linear + P @ found + program.pull(z)
        found[used] -= scipy.linalg.cho_solve(factor, rest[used], check_finite=False)
    return found if np.isfinite(found).all() else primal


class _RootWeights:
    """√W at z: |z| for numbers, the largest of these where z is free, √Z · √Z for matrices."""

    def __init__(self, places: ConePlaces, z: FloatArray) -> None:
        self.weights = np.abs(z)
        self.weights[places.zero] = max(float(self.weights.max(initial=0.0)), 1.0)
        self.roots = []
        for order, first in places.blocks:
            own = slice(first, first + order * (order + 1) // 2)
            values, vectors = np.linalg.eigh(to_matrix(z[own]))
            root = vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
            self.roots.append((own, root))

    def applied(self, columns: FloatArray) -> FloatArray:
        found: FloatArray = self.weights[:, None] * columns
        for own, root in self.roots:
            used = np.flatnonzero(columns[own].any(axis=0))
            images = [to_vector(root @ to_matrix(columns[own, j]) @ root) for j in used]
            found[own] = 0.0
            if images:
                found[own.start + np.arange(len(images[0]))[:, None], used] = np.array(images).T
        return found


# ---- the dual cone


def without_added(program: ConeProgram, z: FloatArray, count: int) -> FloatArray:
    """The dual with 0 for all cones that have an unknown beyond the first `count`, the model's own."""
    touched = np.diff(program.sparse.tocsr()[:, count:].indptr) > 0
    found, start = z.copy(), 0
    for cone in program.cones:
        own = slice(start, start + cone.size)
        start = own.stop
        if cone.kind in (ConeKind.ZERO, ConeKind.NONNEGATIVE):
            found[own][touched[own]] = 0.0
        elif touched[own].any():
            found[own] = 0.0
    return found


def without_small(program: ConeProgram, z: FloatArray, count: int) -> FloatArray:
    """The dual with 0 for all cones in which it has no more than what a backend leaves of 0."""
    sizes = np.zeros(z.size)
    np.maximum.at(sizes, program.cone_of_row, np.abs(z))
    large = sizes > CONE_DUALITY.negligible * sizes.max(initial=0.0)
    return np.where(large[program.cone_of_row], z, 0.0)


def with_room(places: ConePlaces, z: FloatArray, room: float) -> FloatArray:
    """The dual with exponential cones that hold it when entries move a little: v grows, and w stays.

    The unknown of w is often one without a range above, so that w must not grow; v is that of a constant.
    """
    z = z.copy()
    u, v, w = z[places.exponential].reshape(-1, 3).T
    with np.errstate(all="ignore"):
        least = np.where((u < 0) & (w > 0), u * (1.0 + np.log(w / -u)), -np.inf)
    z[places.exponential[1::3]] = np.where(np.isfinite(least), np.maximum(v, least) - room * u, v)
    return z


def into_dual_cone(places: ConePlaces, z: FloatArray) -> FloatArray:
    """A vector of the dual cone near z, with a margin for rounding; what it costs is in its residual."""
    z = z.copy()
    z[places.nonnegative] = np.maximum(z[places.nonnegative], 0.0)
    if places.tops.size:
        _second_order(places, z)
    if places.exponential.size:
        z[places.exponential] = _exponential(z[places.exponential].reshape(-1, 3)).reshape(-1)
    if places.power.size:
        triples = z[places.power].reshape(-1, 3)
        z[places.power] = _power(triples, places.exponents).reshape(-1)
    for order, first in places.blocks:
        own = slice(first, first + order * (order + 1) // 2)
        block = to_matrix(z[own])
        if is_surely_semidefinite(block):
            continue
        eigenvalues = np.linalg.eigvalsh(block)
        margin = SUM_ROUNDING * order * float(np.abs(eigenvalues).max())
        missing = margin - float(eigenvalues[0])
        if missing > 0:
            z[own] += missing * to_vector(np.eye(order))
    return z


def _second_order(places: ConePlaces, z: FloatArray) -> None:
    """z_0 >= ‖(z_1, …)‖; the cone is its own dual."""
    squares = np.bincount(places.tops, z[places.members] ** 2, minlength=z.size)
    counts = np.bincount(places.tops, minlength=z.size)
    reach = np.sqrt(squares) * (1.0 + SUM_ROUNDING + OPERATION_ROUNDING * counts)
    own = places.first_tops
    z[own] = np.maximum(z[own], reach[own])


def _exponential(triples: FloatArray) -> FloatArray:
    """−u·exp(v/u − 1) <= w with u < 0, or u = 0, v >= 0, w >= 0."""
    u, v, w = triples.T
    u = np.minimum(u, 0.0)
    inside = u < 0
    ratio = v / np.where(inside, u, -1.0)
    reach = -u * np.exp(ratio - 1.0) * (1.0 + SUM_ROUNDING * (2.0 + np.abs(ratio)))
    least = np.where(inside & np.isfinite(reach), reach, 0.0)
    u = np.where(np.isfinite(reach), u, 0.0)
    v = np.where(u < 0, v, np.maximum(v, 0.0))
    return np.column_stack([u, v, np.maximum(w, least)])


def _power(triples: FloatArray, exponents: FloatArray) -> FloatArray:
    """(u/α)^α (v/(1−α))^(1−α) >= |w|, u >= 0, v >= 0."""
    u, v = np.maximum(triples[:, :2], 0.0).T
    reach = (u / exponents) ** exponents * (v / (1.0 - exponents)) ** (1.0 - exponents)
    reach = reach * (1.0 - CONE_DUALITY.power_rounding)
    return np.column_stack([u, v, np.clip(triples[:, 2], -reach, reach)])
