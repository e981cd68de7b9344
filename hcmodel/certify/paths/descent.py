"""Paths of feasible points along which the objective falls all the way to the end of the numbers.

The size of a value shows nothing: x² − 10¹² x is below −10²⁰ near its minimum. What shows an unbounded
model is a path on which each further factor of ten lowers the objective by as much as the last one
did, or more. Where the decreases shrink along the whole path, the infimum is not attained. The paths of
`candidate_paths` are followed by evaluating the model as written.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.certify.paths.candidate_paths import (
    RULES,
    CandidatePath,
    Run,
    candidate_paths,
    far_out,
)
from hcmodel.records import dataclass
from hcmodel.reductions.form import Form
from hcmodel.solvers.algebra.marks import all_are_0
from hcmodel.solvers.numerics import LARGEST_NUMBER, MERIT_ROUNDING
from hcmodel.solvers.oracle import Evaluation, Oracle
from hcmodel.solvers.sets.domain import Domain

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Descent:
    """A path of feasible points on which the objective never rises.

    `endless` where the objective has no lower bound on it, else it approaches `limit`. `lowest` is
    the farthest point that counts as inside the model, `moves` has the signs of the entries that run
    away to ±∞, and `vanishing` marks those that approach an edge.
    """

    endless: bool
    limit: float
    lowest: Evaluation
    moves: FloatArray
    vanishing: NDArray[np.bool_]
    pole: FloatArray | None = None
    """The point inside of the domain that the path approaches, where the objective has no value."""
    valley: bool = False
    """Whether it continues a valley in which the run was: other methods would follow it more slowly."""


def falling_path(
    form: Form, evaluation: Evaluation, run: Run, tolerance: float, slack: float
) -> Descent | None:
    """A path that shows an unbounded objective, else one that shows a limit that is not attained.

    `form` is the model as written. A path ends at most by `slack` above the value of the evaluation.
    """
    oracle, found = form.oracle(), None
    model = _Followed(oracle, form.domain, tolerance, _positive(form))
    with np.errstate(all="ignore"):
        for way in candidate_paths(form, oracle, evaluation, run):
            descent = _followed(model, way, evaluation, slack)
            if descent is None or not descent.endless:
                found = found or descent
            elif not _rests_on_violations(model, descent.lowest, evaluation.objective):
                return descent
    return found


def _positive(form: Form) -> NDArray[np.bool_]:
    layout = form.canonical.layout
    marks = np.zeros(form.domain.dimension, dtype=bool)
    for variable in layout.variables:
        marks[layout.slice(variable)] = variable.pos
    return marks


def runs_away(form: Form, evaluation: Evaluation) -> bool:
    """Whether a point is far out in an entry that no bound holds: perhaps nothing attains its value."""
    return not all_are_0(far_out(form.domain, evaluation.point))


@dataclass(frozen=True)
class _Followed:
    """What a path is followed with."""

    oracle: Oracle
    domain: Domain
    tolerance: float
    positive: NDArray[np.bool_] | bool = False
    """The entries of positive variables, which are never 0."""

    def far_out(self, there: Evaluation) -> FloatArray:
        return far_out(self.domain, there.point)

    def unheld(self, moves: FloatArray) -> FloatArray:
        """The entries of moves that no bound holds: those of a distribution go nowhere."""
        lower, upper = self.domain.entry_bounds()
        return np.where(np.isfinite(np.where(moves > 0, upper, lower)), 0.0, moves)

    def attains(self, lowest: Evaluation, vanishing: NDArray[np.bool_]) -> bool:
        """Whether the model has the point that a path ends at, which is as good as its last one."""
        if (vanishing & self.positive).any():
            return False
        there = self.oracle.at(self.domain.project(np.where(vanishing, 0.0, lowest.point)))
        room = MERIT_ROUNDING * abs(lowest.objective)
        return there.finite and self.inside(there) and there.objective <= lowest.objective + room

    def inside(self, there: Evaluation) -> bool:
        units = self.domain.metric(there.point)
        return there.violation_in_units(units) <= self.tolerance

    def satisfies(self, there: Evaluation) -> bool:
        """Whether the rows hold but for rounding, which is relative to the terms of their slopes."""
        if not there.violations.any():
            return True
        with np.errstate(all="ignore"):
            reach = np.abs(there.point) + self.domain.metric(there.point)
            sizes = abs(scipy.sparse.csr_array(there.jacobian)) @ reach
            return bool((there.violations <= RULES.exact * sizes).all())


def _followed(
    model: _Followed, way: CandidatePath, evaluation: Evaluation, slack: float
) -> Descent | None:
    """The path as a descent; None where it rises, leaves the rows or is too short."""
    if not _leads_out(model, way):
        return None
    values, lowest = [evaluation.objective] if way.from_here else list[float](), evaluation
    last = evaluation.point
    fewest = RULES.fewest
    for point in way.points():
        there = model.oracle.at(point)
        if there.objective == -np.inf:
            fewest = 2  # it has passed all numbers, however soon
            break
        allowed = RULES.level * abs(values[0]) if way.valley and values else 0.0
        if not _is_lower(model, there, values, allowed):
            if len(values) < fewest or _ends(model, way, last, there, values):
                return None
            break
        if _is_lost(model, there, values):
            break
        values.append(there.objective)
        last = there.point
        if there.finite and there.objective <= lowest.objective + allowed:
            lowest = there
    least = MERIT_ROUNDING * abs(values[0]) if values else 0.0  # less is rounding next to a minimum
    if len(values) < fewest or not values[-1] < values[0] - least:
        return None
    if values[-1] > evaluation.objective + slack:
        return None
    endless = _steady(np.diff(values), len(values) if way.throughout else RULES.tail)
    endless &= not way.valley  # whose points are not equally spaced
    if (way.edge is not None or way.behind) and not endless:
        return None
    pole = way.edge if way.inside else None
    moves = model.unheld(way.moves)
    if endless:
        return Descent(True, values[-1], lowest, moves, way.vanishing, pole)
    return _with_limit(model, way, values[-1], lowest, moves)


def _leads_out(model: _Followed, way: CandidatePath) -> bool:
    """Whether a way goes to infinity, or to an edge at which the objective has no value: a pole."""
    if not (way.moves.any() or way.vanishing.any()):
        return False
    if way.edge is None or way.inside:
        return True
    return not np.isfinite(model.oracle.at(way.edge).objective)


def _rests_on_violations(model: _Followed, lowest: Evaluation, before: float) -> bool:
    """Whether a gain is lost where the rows hold exactly: x·y with x == 0 grows with y at x = 1e-12.

    Rows that were broken once stay among those that are corrected. Where they cannot be satisfied but for
    rounding, nothing is known of the gain: x <= (1 − 1e-7) x + 1 holds within the tolerance far out.
    """
    there = lowest
    found = np.zeros(there.rows.size, dtype=bool)
    for _ in range(RULES.corrections):
        violations = there.violations
        if not violations.any() or not np.isfinite(there.rows).all():
            break
        found |= violations > 0
        broken = np.flatnonzero(found)
        slopes = scipy.sparse.csr_array(there.jacobian)[broken]
        if not np.isfinite(slopes.data).all():
            return False
        lacking = np.where(violations > 0, there.rows, 0.0)[broken]
        step = scipy.sparse.linalg.lsmr(slopes, -lacking)[0]
        there = model.oracle.at(model.domain.project(there.point + step))
    if not model.satisfies(there):
        return True
    return not before - there.objective >= RULES.share * (before - lowest.objective)


def _with_limit(
    model: _Followed, way: CandidatePath, limit: float, lowest: Evaluation, moves: FloatArray
) -> Descent | None:
    """A path on which the decreases shrink; None where it ends at a point of the model."""
    moves = np.where(moves == 0, model.far_out(lowest), moves)
    if not moves.any() and model.attains(lowest, way.vanishing):
        return None
    return Descent(False, limit, lowest, moves, way.vanishing, valley=way.valley)


def _is_lower(
    model: _Followed, there: Evaluation, values: list[float], allowed: float = 0.0
) -> bool:
    """Whether a point continues a path: feasible, and not above the one before it."""
    if not np.isfinite(there.objective) or not np.isfinite(there.rows).all():
        return False
    rises = bool(values) and there.objective > values[-1] + allowed
    return not rises and model.inside(there)


def _is_computable(model: _Followed, there: Evaluation, values: list[float]) -> bool:
    """Whether a point that does not continue a path shows that it ends; else rounding hides it."""
    if not np.isfinite(there.point).all():
        return False
    if not np.isfinite(there.objective):  # ∞ − ∞ far out shows nothing, +∞ does
        far = np.max(np.abs(there.point)) > LARGEST_NUMBER
        return not (far and np.isnan(there.objective))
    return not (values and _is_rounding(model, there, values[-1]))


def _ends(
    model: _Followed, way: CandidatePath, last: FloatArray, there: Evaluation, values: list[float]
) -> bool:
    """Whether a path ends at a point that does not continue it; rounding or an overflow may hide more."""
    if way.convex and _overflows(model, last, there, values):
        return False
    return _is_computable(model, there, values)


def _overflows(model: _Followed, last: FloatArray, there: Evaluation, values: list[float]) -> bool:
    """Whether a point behind one of a convex path has no value, though all points up to it are lower.

    Squares in a norm overflow where the norm is a number. Exponentials rise before they overflow.
    """
    if not _has_no_value(there) or not np.isfinite(there.point).all():
        return False
    if len(values) <= RULES.overflow or not _steady(np.diff(values), RULES.overflow):
        return False
    beyond = there.point
    for _ in range(RULES.halvings):
        middle = model.oracle.at(model.domain.project(0.5 * last + 0.5 * beyond))
        if _has_no_value(middle):
            beyond = middle.point
        elif _is_lower(model, middle, values):
            last = middle.point
        else:
            return False
    return True


def _has_no_value(there: Evaluation) -> bool:
    return not (np.isfinite(there.objective) and np.isfinite(there.rows).all())


def _is_lost(model: _Followed, there: Evaluation, values: list[float]) -> bool:
    """Whether the decreases were steady up to a point at which rounding makes up the next one."""
    if len(values) < RULES.fewest or not _steady(np.diff(values)):
        return False
    falls, before = values[-1] - there.objective, values[-2] - values[-1]
    if falls >= (1.0 - RULES.steady) * before:
        return False
    changes = [near.objective - there.objective for near in _beside(model, there)]
    return bool(np.max(np.abs(changes)) >= RULES.share * before)


def _beside(model: _Followed, there: Evaluation) -> Iterator[Evaluation]:
    """Points next to one, whose values differ from its own by rounding."""
    generator = np.random.default_rng(0)
    for _ in range(RULES.attempts):
        noise = generator.choice([-1.0, 0.0, 1.0], size=there.point.size)
        beside = model.domain.project(there.point * (1.0 + RULES.last_digit * noise))
        yield model.oracle.at(beside)


def _is_rounding(model: _Followed, there: Evaluation, before: float) -> bool:
    """Whether a point fails only because a direction is known to a last digit."""
    broken = there.violations > model.tolerance * there.magnitudes
    if broken.any() and there.differentiable:
        moves = RULES.last_digit * (abs(there.jacobian) @ np.abs(there.point))
        if (there.violations <= moves)[broken].all():
            return True
    for near in _beside(model, there):
        rise = abs(near.objective - there.objective) >= RULES.share * (there.objective - before)
        moved = np.abs(near.violations - there.violations) >= RULES.share * there.violations
        if (there.objective > before and rise) or (broken.any() and moved[broken].all()):
            return True
    return False


def _steady(changes: FloatArray, tail: int = RULES.tail) -> bool:
    """Whether the last decreases are at least as large as those before them."""
    decreases = -changes[-tail:]
    if not (decreases > 0).all():
        return False
    return bool((decreases[1:] >= (1.0 - RULES.steady) * decreases[:-1]).all())
